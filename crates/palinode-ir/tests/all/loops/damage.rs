//! Texts of loop forms with something in them changed.

use crate::random::Random;

/// Another number in the place of one of a line.
fn renumbered(line: &str, random: &mut Random) -> String {
    let is_begin = |(at, c): (usize, char)| {
        c.is_ascii_digit() && !line[..at].ends_with(|before: char| before.is_ascii_digit())
    };
    let begins: Vec<usize> = line.char_indices().filter(|&one| is_begin(one)).map(|(at, _)| at).collect();
    if begins.is_empty() {
        return line.to_string();
    }
    let begin = *random.pick(&begins);
    let digits = line[begin..].find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len() - begin);
    let number: u64 = line[begin..begin + digits].parse().unwrap_or(0);
    let large = [63, 511, 1 << 31, 1 << 60, i64::MAX as u64, 1 << 63, u64::MAX];
    let other = match random.below(8) {
        0 | 1 => number.saturating_add(1),
        2 | 3 => number.saturating_sub(1),
        4 => 0,
        5 => number.saturating_mul(2),
        6 => random.below(12) as u64,
        _ => *random.pick(&large),
    };
    format!("{}{other}{}", &line[..begin], &line[begin + digits..])
}

/// The text with lines lost, doubled, exchanged, with other numbers or odd characters in them.
pub(crate) fn damaged(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for _ in 0..1 + random.below(3) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(9) {
            0 => drop(lines.remove(at)),
            1 => lines.swap(at, other),
            2 => lines.insert(at, lines[other].clone()),
            3 => {
                let chars: Vec<char> = lines[at].chars().collect();
                let (before, after) = chars.split_at(random.below(chars.len() + 1));
                let odd =
                    ["r", "b", "-", "[", "]", "}", "{", " ", ",", "=", "*", "\\", "ä", "i", "<", "<-1>"];
                let after = after.iter().skip(random.below(2));
                lines[at] =
                    format!("{}{}{}", String::from_iter(before), random.pick(&odd), String::from_iter(after));
            }
            _ => lines[at] = renumbered(&lines[at], random),
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}
