//! Random data files: what is read is what is there, or it is refused with a place.
//!
//! The truth comes from readers of others: the `csv` crate and `serde_json`. What was read is written back
//! and read by them, and must be what they read in the original. Files that are one argument as a whole, with
//! a header or without, are held to a count of their lines. `PALINODE_DATA_FILES=1000000` tries more.

use super::*;
use crate::answer::Json;
use palinode_core::Key;

pub(super) struct Draws(Key, u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Draws {
        Draws(Key::from_seed(seed), 0)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.1 += 1;
        self.0.below(n as u64, self.1) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// One of the words between bars.
    fn of_list<'a>(&mut self, words: &'a str) -> &'a str {
        self.of(&words.split('|').collect::<Vec<_>>())
    }
}

fn is_comment(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| rest.trim().is_empty() || rest.starts_with([' ', '\t', '#']))
}

/// A refusal has a place, unless the file is empty, and says what to do.
fn code_of(Failed(problems): Failed, text: &str) -> &'static str {
    let problem = &problems[0];
    if problem.labels.is_empty() {
        // Nothing but comments and blanks has no place to show.
        assert_eq!(problem.message, "the data file has no data");
        assert!(reference(text).is_empty(), "{text:?}");
    }
    assert!(problem.help.is_some(), "{text:?}: {problem:?}");
    problem.code
}

fn files() -> usize {
    std::env::var("PALINODE_DATA_FILES").ok().and_then(|word| word.parse().ok()).unwrap_or(1_500)
}

fn wanted() -> Vec<Wanted> {
    let one = |name: &str, rank, is_whole| Wanted { name: name.to_string(), rank, is_whole };
    vec![one("t", 1, false), one("y", 1, false), one("x", 2, false), one("k", 1, true)]
}

/// What a file gives, or the code of its refusal.
fn read(text: &str, is_json: bool) -> Result<Vec<Found>, &'static str> {
    let mut session = Session::new("test", false);
    let mut reader = Reader { session: &mut session, file: "data", text };
    reader.by_name(is_json, &wanted()).map(|(found, _)| found).map_err(|failed| code_of(failed, text))
}

const NUMBERS: &[&str] = &["1", "-2.5", "0", "3e2", "0.1", "1e-300", "12345678.9", "+4", ".5"];
const OTHERS: &str = "#N/A|NA||nan|inf|1e400|1e-400|a|#1|# 2|\"5|\"6\"7|9007199254740993|1;5|-";

/// A table, and whether nothing is wrong with it.
fn table(draws: &mut Draws) -> (String, bool) {
    let mark = draws.of(&[",", ",", ";", "\t"]);
    let end = draws.of(&["\n", "\n", "\r\n"]);
    let mut is_clean = true;
    let mut names: Vec<String> = Vec::new();
    let all = [["t"].as_slice(), &["y"], &["x0", "X1", "x_2"], &["k"], &["word"], &["\"quoted name\""]];
    for group in all {
        if draws.one_in(2) {
            names.extend(group.iter().map(ToString::to_string));
        }
    }
    if draws.one_in(6) {
        names.push(draws.of(&["x3", "x4", "x01", "t", "T", "#t", "", "x", "X_1"]).to_string());
        is_clean = false;
    }
    let has_data = names.iter().any(|name| ["t", "y", "x0", "k"].contains(&&**name));
    is_clean &= has_data && !names.is_empty();
    let mut text = String::new();
    let mut noise = |draws: &mut Draws, text: &mut String, may_be_blank: bool| {
        if draws.one_in(12) {
            let line = draws.of(&["# a comment, \"with\" marks", "#", "## x", "#no", "", "  ", "#N/A"]);
            is_clean &= is_comment(line) || (line.trim().is_empty() && may_be_blank);
            text.push_str(line);
            text.push_str(end);
        }
    };
    noise(draws, &mut text, mark != "\t" && names.len() > 1);
    text.push_str(&names.join(mark));
    text.push_str(end);
    let rows = draws.below(5);
    let mut clean_cells = rows > 0;
    for row in 0..rows {
        noise(draws, &mut text, false);
        let mut cells: Vec<String> = Vec::new();
        for name in &names {
            let cell = match name.as_str() {
                _ if draws.one_in(25) => {
                    clean_cells = false;
                    draws.of_list(OTHERS).to_string()
                }
                "word" | "\"quoted name\"" => {
                    draws.of(&["a", "\"b, c\"", "\"d \"\" e\"", "f g", "\"two\nlines\""]).to_string()
                }
                "k" => draws.of(&["1", "2", "-7.0", "3e2"]).to_string(),
                _ if draws.one_in(8) => format!("\"{}\"", draws.of(NUMBERS)),
                _ => draws.of(NUMBERS).to_string(),
            };
            // That reader knows no quotes after a blank.
            let blanks = if cell.starts_with('"') { "" } else { draws.of(&["", "", " "]) };
            cells.push(format!("{blanks}{cell}{blanks}"));
        }
        if draws.one_in(30) {
            clean_cells = false;
            match draws.below(2) {
                0 => cells.push(String::new()),
                _ => drop(cells.pop()),
            }
        }
        text.push_str(&cells.join(mark));
        if row + 1 < rows || !draws.one_in(3) {
            text.push_str(end);
        }
    }
    (text, is_clean && clean_cells)
}

/// Breaks a text somewhere, now and then.
fn broken(draws: &mut Draws, text: String) -> (String, bool) {
    if !draws.one_in(3) {
        return (text, false);
    }
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=draws.below(2) {
        let at = draws.below(chars.len() + 1);
        let mark = draws.of(&[",", "\"", "\n", "#", ";", "1", "e", " ", "\r", "}", "]", ":", "x"]);
        match draws.below(3) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 if at < chars.len() => chars[at] = mark.chars().next().expect("it is one"),
            _ => chars.insert(at, mark.chars().next().expect("it is one")),
        }
    }
    (chars.into_iter().collect(), true)
}

/// The rows as another reader sees them, comments and blank lines left out.
fn reference(text: &str) -> Vec<Vec<String>> {
    let mut bare = String::new();
    let mut quotes = 0;
    for line in text.split_inclusive('\n') {
        if quotes % 2 == 0 && is_comment(line) {
            continue;
        }
        quotes += line.matches('"').count();
        bare.push_str(line);
    }
    let first = bare.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let outside: String = first.split('"').step_by(2).collect();
    let mark = [b',', b'\t', b';'].into_iter().find(|&mark| outside.contains(mark as char)).unwrap_or(b',');
    let mut reader = ::csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).delimiter(mark).trim(::csv::Trim::All);
    let rows = reader
        .from_reader(bare.as_bytes())
        .into_records()
        .map(|record| record.expect("text is UTF-8").iter().map(str::to_string).collect::<Vec<_>>());
    rows.filter(|row| *row != [""]).collect()
}

/// What was read, written as a table and read by the other reader.
fn written_back(found: &Found) -> Vec<f64> {
    let columns = found.numbers.shape.get(1).copied().unwrap_or(1);
    let rows = found.numbers.data.chunks(columns.max(1));
    let lines: Vec<String> =
        rows.map(|row| row.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(",")).collect();
    let all = reference(&lines.join("\n"));
    all.into_iter().flatten().map(|cell| cell.parse().unwrap()).collect()
}

/// Where a column of a matrix belongs: `x_2` to 2.
fn place(name: &str) -> Option<usize> {
    let rest = name.strip_prefix(['x', 'X'])?;
    rest.strip_prefix('_').unwrap_or(rest).parse().ok()
}

#[test]
fn tables_are_read_whole_or_refused() {
    let mut draws = Draws::new(15);
    let (mut accepted, mut refused, mut compared) = (0, 0, 0);
    for _ in 0..files() {
        let (text, is_clean) = table(&mut draws);
        let (text, is_broken) = broken(&mut draws, text);
        let found = match read(&text, false) {
            Ok(found) => found,
            Err(code) => {
                assert!(!is_clean || is_broken, "{code} {text:?}");
                refused += 1;
                continue;
            }
        };
        accepted += 1;
        let rows = reference(&text);
        // A quote inside a cell is a matter of taste.
        if is_broken && rows.iter().flatten().any(|cell| cell.contains('"')) {
            continue;
        }
        compared += 1;
        // Without quotes, lines are rows.
        if !text.contains('"') {
            let lines =
                text.lines().filter(|line| !is_comment(line)).skip_while(|line| line.trim().is_empty());
            let lines = lines.filter(|line| rows[0].len() == 1 || !line.trim().is_empty());
            assert_eq!(lines.count(), rows.len(), "{text:?}");
        }
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text:?}");
        let bits = |data: &[f64]| data.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let parsed =
            |column: usize| rows[1..].iter().map(move |row| &row[column]).map(|cell| cell.parse::<f64>());
        for one in &found {
            let columns: Vec<usize> = match rows[0].iter().position(|name| *name == one.name) {
                Some(column) => vec![column],
                None => {
                    let mut all: Vec<(usize, usize)> = rows[0]
                        .iter()
                        .enumerate()
                        .filter_map(|(column, name)| Some((place(name)?, column)))
                        .collect();
                    all.sort();
                    assert!(all.iter().enumerate().all(|(at, (place, _))| at == *place), "{text:?}");
                    all.into_iter().map(|(_, column)| column).collect()
                }
            };
            let mut expected = Vec::new();
            for row in 0..rows.len() - 1 {
                for &column in &columns {
                    expected.push(parsed(column).nth(row).unwrap().unwrap_or_else(|_| panic!("{text:?}")));
                }
            }
            assert_eq!(bits(&one.numbers.data), bits(&expected), "{text:?}");
            // Whole numbers keep their digits.
            let cells = rows[1..].iter().flat_map(|row| columns.iter().map(|&column| row[column].as_str()));
            for (cell, x) in cells.zip(&one.numbers.data) {
                let digits = cell.trim_start_matches(['+', '-']).trim_start_matches('0');
                let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                assert!(!is_whole || format!("{:.0}", x.abs()) == digits, "{text:?}");
            }
            assert_eq!(bits(&written_back(one)), bits(&expected), "{text:?}");
        }
        // Nothing that is named like an argument was left.
        for name in &rows[0] {
            let is_wanted = ["t", "y", "k", "x"].contains(&&**name) || place(name).is_some();
            let base = if place(name).is_some() { "x" } else { name };
            assert!(!is_wanted || found.iter().any(|one| one.name == base), "{text:?}");
        }
    }
    assert!(
        accepted * 20 > files() && refused * 5 > files() && compared * 4 > accepted * 3,
        "{accepted} {refused} {compared}"
    );
}

/// A file that is one argument as a whole: every line is a comment, the header, which names it or all its
/// columns, or a row; a word that may be either is refused.
#[test]
fn single_arguments_are_read_whole_or_refused() {
    let first = [
        "t", "T", "time", "x0", "x1", "X_2", "_a", "1_000", "$12", "1e5x", "12%", "(3)", "3 m", "nan", "-",
        "inf", "", " ",
    ];
    let headers =
        ["t", "T", "t,time", "y,t", "x1,x0", "X_0,X_1,x2", "x0,x1,x1", "x0,x2", "a,b", "time", "x", "x,x0"];
    let mut draws = Draws::new(17);
    let (mut accepted, mut refused, mut headed) = (0, 0, 0);
    for _ in 0..files() {
        let mut columns = 1 + draws.below(3);
        let mut lines: Vec<String> = Vec::new();
        if draws.one_in(3) {
            lines.push(draws.of(&headers).to_string());
            columns = lines[0].split(',').count();
        }
        for at in lines.len()..1 + draws.below(5) {
            let cells = (0..columns).map(|_| match draws.one_in(if at == 0 { 2 } else { 20 }) {
                true => draws.of(&first).to_string(),
                false => draws.of(NUMBERS).to_string(),
            });
            lines.push(cells.collect::<Vec<_>>().join(","));
            if draws.one_in(15) {
                lines.push(draws.of(&["", "# 5", "#", "#5", "  "]).to_string());
            }
        }
        let text = lines.join("\n");
        // What follows the last line end is no line.
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let one = &wanted()[if draws.one_in(3) { 2 } else { 0 }];
        let mut session = Session::new("test", false);
        let mut reader = Reader { session: &mut session, file: "data", text: &text };
        let (found, unread) = match reader.whole_file(false, one) {
            Ok(found) => found,
            Err(failed) => {
                code_of(failed, &text);
                refused += 1;
                continue;
            }
        };
        accepted += 1;
        let rows: Vec<&String> = lines.iter().filter(|line| !is_comment(line)).collect();
        assert!(columns > 1 || rows.iter().all(|row| !row.trim().is_empty()), "{text:?}");
        let rows: Vec<&str> = rows.iter().map(|row| row.trim()).filter(|row| !row.is_empty()).collect();
        let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').map(str::trim).collect()).collect();
        let is_name = |cell: &&str| {
            cell.starts_with(|c: char| c.is_alphabetic() || c == '_') && cell.parse::<f64>().is_err()
        };
        let has_header = cells[0].iter().any(is_name);
        let mut counted: Vec<(usize, usize)> = cells[0]
            .iter()
            .enumerate()
            .filter(|_| has_header && one.name == "x")
            .filter_map(|(column, name)| Some((place(name)?, column)))
            .collect();
        counted.sort();
        let is_counted = counted.iter().map(|(number, _)| *number).eq(0..columns);
        let used: Vec<usize> = match cells[0].iter().position(|cell| *cell == one.name) {
            Some(column) if one.rank < 2 || columns == 1 => vec![column],
            _ if is_counted => counted.iter().map(|(_, column)| *column).collect(),
            // Without a header; one that names nothing was refused.
            _ => {
                assert!(!has_header, "{text:?}");
                (0..columns).collect()
            }
        };
        let expected: Vec<f64> = cells[usize::from(has_header)..]
            .iter()
            .flat_map(|row| {
                used.iter().map(|&column| row[column].parse().unwrap_or_else(|_| panic!("{text:?}")))
            })
            .collect();
        assert_eq!(found[0].numbers.data, expected, "{text:?}");
        let others = (0..columns).filter(|column| !used.contains(column)).map(|column| cells[0][column]);
        assert!(others.eq(unread), "{text:?}");
        headed += usize::from(has_header);
    }
    assert!(
        accepted * 5 > files() && refused * 5 > files() && headed * 20 > files(),
        "{accepted} {refused} {headed}"
    );
}

/// A value of a field, and whether it is an array of numbers.
fn value(draws: &mut Draws, name: &str, is_clean: &mut bool) -> String {
    let mut number = |draws: &mut Draws| match draws.one_in(60) {
        true => {
            *is_clean = false;
            let others = "null|\"1\"|NaN|1e400|1e-400|01|-|true|[1]|{}|9007199254740993.5|1.";
            draws.of_list(others).to_string()
        }
        false if name == "k" => draws.of(&["1", "-20", "3e2"]).to_string(),
        false => {
            draws.of(&["1", "-2.5", "0", "3e2", "0.1", "1E-300", "12345678.9", "-0.0", "2e+4"]).to_string()
        }
    };
    let blank = |draws: &mut Draws| draws.of(&["", "", " ", "\n "]);
    let mut list = |draws: &mut Draws, length: usize| {
        let items: Vec<String> = (0..length).map(|_| format!("{}{}", blank(draws), number(draws))).collect();
        format!("[{}]", items.join(","))
    };
    if name != "x" {
        let length = draws.below(5);
        return list(draws, length);
    }
    let (rows, columns) = (draws.below(4), draws.below(4));
    let lists: Vec<String> = (0..rows).map(|_| list(draws, columns)).collect();
    format!("[{}]", lists.join(", "))
}

fn flat(value: &serde_json::Value, out: &mut Vec<f64>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| flat(item, out)),
        other => out.push(other.as_f64().expect("it is a number")),
    }
}

#[test]
fn documents_are_read_whole_or_refused() {
    let mut draws = Draws::new(16);
    let (mut accepted, mut refused, mut twice) = (0, 0, 0);
    for _ in 0..files() {
        let mut is_clean = true;
        let mut names: Vec<&str> = Vec::new();
        for name in ["t", "y", "x", "k", "other", "\\u0074"] {
            if draws.one_in(if name == "\\u0074" { 12 } else { 2 }) {
                names.push(name);
            }
        }
        is_clean &= names.iter().any(|name| *name != "other");
        if draws.one_in(8) && !names.is_empty() {
            names.push(names[draws.below(names.len())]);
        }
        // `\u0074` is another way to write `t`.
        let spelt: Vec<&str> = names.iter().map(|name| if *name == "\\u0074" { "t" } else { name }).collect();
        let is_twice = (0..spelt.len()).any(|at| spelt[..at].contains(&spelt[at]));
        let fields: Vec<String> = names
            .iter()
            .map(|name| format!("\"{name}\": {}", value(&mut draws, name, &mut is_clean)))
            .collect();
        let (text, is_broken) = broken(&mut draws, format!("{{{}}}", fields.join(",")));
        let found = match read(&text, true) {
            Ok(found) => found,
            Err(code) => {
                assert!(!is_clean || is_twice || is_broken, "{code} {text}");
                (refused, twice) = (refused + 1, twice + usize::from(is_twice && !is_broken));
                continue;
            }
        };
        assert!(!is_twice || is_broken, "{text}");
        accepted += 1;
        let document: serde_json::Value = match serde_json::from_str(&text) {
            Ok(document) => document,
            // A number in a field that nobody asked for.
            Err(error) if error.to_string().contains("out of range") => continue,
            Err(error) => panic!("{error} {text}"),
        };
        for one in &found {
            let mut expected = Vec::new();
            flat(&document[&one.name], &mut expected);
            // That reader may be off by a rounding.
            let close = |a: &f64, b: &f64| (a - b).abs() <= 4.0 * f64::EPSILON * b.abs();
            assert_eq!(one.numbers.data.len(), expected.len(), "{text}");
            assert!(one.numbers.data.iter().zip(&expected).all(|(a, b)| close(a, b)), "{text}");
            let mut back = Vec::new();
            let (shape, data) = (&one.numbers.shape, &one.numbers.data);
            let array = Json::Array { shape, element: Box::new(|at| crate::value::number(data[at])) };
            array.write(&mut back).unwrap();
            let back: serde_json::Value = serde_json::from_slice(&back).unwrap();
            let mut again = Vec::new();
            flat(&back, &mut again);
            assert!(
                again.len() == expected.len() && again.iter().zip(&expected).all(|(a, b)| close(a, b)),
                "{text}"
            );
            let mut shape = Vec::new();
            let mut level = &document[&one.name];
            while let Some(items) = level.as_array() {
                shape.push(items.len());
                let Some(first) = items.first() else { break };
                level = first;
            }
            assert_eq!(one.numbers.shape, shape, "{text}");
        }
        for wanted in wanted() {
            let is_there = document.get(&wanted.name).is_some();
            assert_eq!(is_there, found.iter().any(|one| one.name == wanted.name), "{text}");
        }
    }
    assert!(
        accepted * 10 > files() && refused * 5 > files() && twice * 40 > files(),
        "{accepted} {refused} {twice}"
    );
}
