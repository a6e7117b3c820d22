//! Columns of text.

use anstyle::{AnsiColor, Style};

/// How headings look on a terminal.
pub(crate) const HEADING: Style = Style::new().dimmed();
/// How the main result looks.
pub(crate) const STRONG: Style = Style::new().bold();
/// How what is well looks.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// How what needs a look looks.
pub(crate) const DOUBT: Style = AnsiColor::Yellow.on_default();
/// How what is wrong looks.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// Text in a style; where colours do not belong they are taken out on the way.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    right: bool,
    loose: bool,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub(crate) fn style(mut self, style: Style) -> Cell {
        self.style = style;
        self
    }

    /// Against the right edge.
    pub(crate) fn right(mut self) -> Cell {
        self.right = true;
        self
    }

    /// May reach into the columns after it.
    pub(crate) fn loose(mut self) -> Cell {
        self.loose = true;
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::new(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::new(text)
    }
}

/// Rows in columns, two blanks before each line and `gap` between columns; empty columns are left out.
pub(crate) fn layout(rows: &[Vec<Cell>], gap: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    // A column is as wide as its widest cell; one with nothing but a heading does not appear.
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let body = rows.iter().skip(1).filter_map(|row| row.get(column));
            let is_empty = rows.len() > 1 && body.clone().all(|cell| cell.text.is_empty());
            let all = rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.loose);
            if is_empty { 0 } else { all.map(Cell::width).max().unwrap_or(0) }
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from(" ");
        let mut pending = String::from(" ");
        for (cell, &width) in row.iter().zip(&widths) {
            if width == 0 {
                continue;
            }
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            if cell.text.is_empty() {
                pending.push_str(&padding);
            } else {
                let (before, after) =
                    if cell.right { (padding, String::new()) } else { (String::new(), padding) };
                line.push_str(&pending);
                line.push_str(&before);
                line.push_str(&styled(cell.style, &cell.text));
                pending = after;
            }
            pending.push_str(gap);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let rows = vec![
            vec!["name".into(), Cell::new("value").right(), "unit".into(), "note".into()],
            vec!["a".into(), Cell::new("1.5").right(), "".into(), "x".into()],
            vec!["long name".into(), Cell::new("-20").right(), "".into(), "".into()],
        ];
        assert_eq!(
            layout(&rows, "  "),
            "  name       value  note\n  a            1.5  x\n  long name    -20\n"
        );
    }
}
