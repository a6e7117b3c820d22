//! Lifetimes as bars: time runs to the right, forwards and then backwards.
//!
//! Input: when each array is there and when it is used. Output: lines of text, at most [`WIDTH`] columns of
//! time. Pure text: nothing here knows about programs.

/// The most columns of time.
pub(crate) const WIDTH: usize = 60;
/// Bars of eight heights.
pub(crate) const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A point of time takes at most so many columns.
const WIDEST: usize = 4;

/// The columns of so many points, of which each takes at most `widest`.
pub(crate) fn columns(points: u64, widest: usize) -> usize {
    let points = points.min(WIDTH as u64) as usize;
    points * (WIDTH / points.max(1)).clamp(1, widest)
}

/// The life of one array, in points of time; ends are included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// After this point and before that one it is only kept.
    pub(crate) kept: Option<(usize, usize)>,
    pub(crate) bytes: u64,
}

/// The axis of time.
pub(crate) struct Chart {
    points: usize,
    /// The first point backwards; as many as there are points if there is none.
    turn: usize,
    columns: usize,
}

impl Chart {
    pub(crate) fn new(points: usize, turn: usize) -> Chart {
        let points = points.max(1);
        Chart { points, turn: turn.min(points), columns: columns(points as u64, WIDEST) }
    }

    /// The points that a column stands for; at least one.
    fn span(&self, column: usize) -> (usize, usize) {
        let from = column * self.points / self.columns;
        let to = ((column + 1) * self.points).div_ceil(self.columns) - 1;
        (from, to.clamp(from, self.points - 1))
    }

    /// The column before which the reverse sweep begins, if there is one.
    fn middle(&self) -> Option<usize> {
        (self.turn < self.points).then(|| (self.turn * self.columns / self.points).clamp(1, self.columns))
    }

    fn line(&self, mark: impl Fn(usize) -> char) -> String {
        let middle = self.middle();
        let mut out = String::new();
        for column in 0..self.columns {
            if middle == Some(column) {
                out.push('|');
            }
            out.push(mark(column));
        }
        out.trim_end().to_string()
    }

    /// Where forwards and backwards are.
    pub(crate) fn heading(&self) -> String {
        match self.middle() {
            Some(middle) => format!("{:<middle$}|backwards", if middle >= 8 { "forwards" } else { "" }),
            None => "forwards".to_string(),
        }
    }

    /// A bar: full where the array is used or may still change, light where it is only kept.
    pub(crate) fn bar(&self, life: Life) -> String {
        self.line(|column| {
            let (from, to) = self.span(column);
            let is_kept = life.kept.is_some_and(|(after, before)| from > after && to < before);
            match () {
                () if to < life.from || from > life.to => ' ',
                () if is_kept => '░',
                () => '█',
            }
        })
    }

    /// How many bytes are there, from nothing to the most.
    pub(crate) fn height(&self, lives: &[Life]) -> String {
        let at = |point: usize| -> u64 {
            lives.iter().filter(|life| life.from <= point && point <= life.to).map(|life| life.bytes).sum()
        };
        let all: Vec<u64> = (0..self.points).map(at).collect();
        let most = all.iter().copied().max().unwrap_or(0);
        self.line(|column| {
            let (from, to) = self.span(column);
            let bytes = all[from..=to].iter().copied().max().unwrap_or(0);
            match (bytes * 8).div_ceil(most.max(1)) {
                0 => ' ',
                step => STEPS[step as usize - 1],
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_use_and_keeping() {
        let chart = Chart::new(10, 6);
        assert_eq!(chart.columns, 40);
        let life = Life { from: 1, to: 8, kept: Some((2, 8)), bytes: 8 };
        let bar = chart.bar(life);
        assert_eq!(bar, "    ████████░░░░░░░░░░░░|░░░░░░░░████");
        assert_eq!(chart.heading().find('|'), bar.chars().position(|c| c == '|'));
        let other = Life { from: 8, to: 9, kept: None, bytes: 56 };
        assert_eq!(chart.height(&[life, other]), "    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁|▁▁▁▁▁▁▁▁████▇▇▇▇");
    }

    #[test]
    fn long_programs_fit_the_terminal() {
        for points in [1, 2, 59, 60, 61, 1000] {
            for turn in [1, points / 2 + 1, points] {
                let chart = Chart::new(points, turn);
                let all = chart.bar(Life { from: 0, to: points, kept: None, bytes: 1 });
                assert!(all.chars().count() <= WIDTH + 1, "{points} {turn}");
                // No array is too short to be seen.
                for at in [0, points / 2, points - 1] {
                    let one = chart.bar(Life { from: at, to: at, kept: None, bytes: 1 });
                    assert!(one.contains('█'), "{points} {turn} {at}");
                }
            }
        }
    }
}
