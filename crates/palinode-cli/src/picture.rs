//! A schedule as a picture: rounds to the right, the reverse sweep downwards.
//!
//! Input: the actions of a schedule. Output: lines of text. A line is one run from a snapshot to the next
//! round that is reversed; lines whose run would not be seen at this width are left out. A sweep that turns
//! has a step behind its last round: there the first line ends.

use palinode_core::schedule::{Action, Slot};

use crate::chart::columns;

/// A round takes at most so many columns.
const WIDEST: usize = 3;
/// The most lines.
const ROWS: usize = 14;

/// One run forwards.
#[derive(Clone, Debug, Default)]
struct Run {
    from: u64,
    /// The round that it ends with, which is then reversed.
    to: u64,
    /// The rounds before which there is a snapshot.
    kept: Vec<u64>,
}

/// The picture for so many rounds, the turn among them, and how many runs it leaves out.
pub(crate) fn picture(rounds: u64, actions: impl Iterator<Item = Action>, turns: bool) -> (Vec<String>, u64) {
    let columns = columns(rounds, WIDEST);
    let column = |round: u64| (u128::from(round) * columns as u128 / u128::from(rounds.max(1))) as usize;
    let mut kept: Vec<(Slot, u64)> = Vec::new();
    let (mut from, mut all) = (0, 0);
    let mut seen: Vec<Run> = Vec::new();
    for action in actions {
        match action {
            Action::Advance { .. } | Action::Record { .. } => {}
            Action::Snapshot { slot, step } => kept.push((slot, step)),
            Action::Restore { step, .. } => from = step,
            Action::Free { slot } => kept.retain(|(other, _)| *other != slot),
            Action::Reverse { step } => {
                all += 1;
                if all == 1 || column(step) > column(from) {
                    seen.push(Run { from, to: step, kept: kept.iter().map(|(_, round)| *round).collect() });
                }
            }
        }
    }
    let shown: Vec<&Run> = match seen.len() {
        count if count <= ROWS => seen.iter().collect(),
        count => (0..ROWS).map(|row| &seen[row * (count - 1) / (ROWS - 1)]).collect(),
    };
    let mut lines: Vec<String> = shown.iter().map(|run| line(run, columns, &column)).collect();
    if let Some(first) = lines.first_mut().filter(|_| turns) {
        *first = first.replace('◀', "◆");
    }
    (lines, all - shown.len() as u64)
}

fn line(run: &Run, columns: usize, column: &dyn Fn(u64) -> usize) -> String {
    let (from, to) = (column(run.from), column(run.to));
    // A round may take several columns.
    let to = to.max(column(run.to + 1).saturating_sub(1));
    let mut out: Vec<char> = (0..columns)
        .map(|at| match at {
            at if at > to => '░',
            at if at >= from => '─',
            _ => ' ',
        })
        .collect();
    for &round in &run.kept {
        out[column(round)] = '●';
    }
    out[to] = '◀';
    out.into_iter().collect::<String>().trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::WIDTH;
    use palinode_core::schedule::binomial;

    #[test]
    fn short_loops_are_shown_round_by_round() {
        let (lines, more) = picture(5, binomial(5, 2).unwrap(), false);
        assert_eq!(more, 2);
        assert_eq!(
            lines.join("\n"),
            "●─────●───────◀\n\
             ●     ●────◀░░░\n\
             ●────◀░░░░░░░░░"
        );
        let (lines, _) = picture(5, binomial(5, 2).unwrap(), true);
        assert_eq!(lines[0], "●─────●───────◆");
        assert!(lines[1..].iter().all(|line| line.contains('◀')));
    }

    #[test]
    fn long_loops_fit_the_terminal() {
        for (rounds, slots) in [(1, 1), (2, 1), (59, 3), (61, 60), (1000, 10), (100_000, 30)] {
            let (lines, _) = picture(rounds, binomial(rounds, slots).unwrap(), rounds % 2 == 0);
            assert!(!lines.is_empty() && lines.len() <= ROWS);
            assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{rounds} {slots}");
            assert!(lines.iter().all(|line| line.matches('●').count() <= slots as usize));
        }
        assert_eq!(picture(0, binomial(0, 1).unwrap(), false), (Vec::new(), 0));
    }
}
