//! Columns of text.

use anstyle::{AnsiColor, Style};

use crate::answer::Text;

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

/// The word before a line.
pub(crate) fn label(word: &str) -> String {
    styled(HEADING, &format!("{word:<9}"))
}

/// One cell.
#[derive(Default)]
pub(crate) struct Cell<'a> {
    text: Text<'a>,
    style: Style,
    right: bool,
    loose: bool,
}

impl<'a> Cell<'a> {
    pub(crate) fn new(text: impl Into<Text<'a>>) -> Cell<'a> {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub(crate) fn style(mut self, style: Style) -> Cell<'a> {
        self.style = style;
        self
    }

    /// Against the right edge.
    pub(crate) fn right(mut self) -> Cell<'a> {
        self.right = true;
        self
    }

    /// May reach into the columns after it.
    pub(crate) fn loose(mut self) -> Cell<'a> {
        self.loose = true;
        self
    }

    /// What the column has to leave for it: an array of unknown width is loose.
    fn width(&self) -> usize {
        self.text.width().unwrap_or(0)
    }
}

impl From<&str> for Cell<'_> {
    fn from(text: &str) -> Self {
        Cell::new(text)
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::new(text)
    }
}

/// Headings, with bars between.
pub(crate) fn headings(words: &str) -> Vec<Cell<'_>> {
    words.split('|').map(|word| Cell::new(word).style(HEADING)).collect()
}

/// Rows in columns, two blanks before each line and `gap` between columns; empty columns are left out.
pub(crate) fn table<'a>(rows: Vec<Vec<Cell<'a>>>, gap: &str) -> Text<'a> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    // A column is as wide as its widest cell; one with nothing but a heading does not appear.
    let widths: Vec<Option<usize>> = (0..columns)
        .map(|column| {
            let body = rows.iter().skip(1).filter_map(|row| row.get(column));
            let is_empty = rows.len() > 1 && body.clone().all(|cell| cell.text.is_empty());
            let all = rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.loose);
            let has_any = rows.iter().filter_map(|row| row.get(column)).any(|cell| !cell.text.is_empty());
            (has_any && !is_empty).then(|| all.map(Cell::width).max().unwrap_or(0))
        })
        .collect();
    let mut out = Text::default();
    for row in rows {
        out = out.then(" ");
        let mut pending = String::from(" ");
        for (cell, &width) in row.into_iter().zip(&widths) {
            let Some(width) = width else { continue };
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            if cell.text.is_empty() {
                pending.push_str(&padding);
            } else {
                let (before, after) =
                    if cell.right { (padding, String::new()) } else { (String::new(), padding) };
                let style = cell.style;
                out =
                    out.then(format!("{pending}{before}{style}")).then(cell.text).then(format!("{style:#}"));
                pending = after;
            }
            pending.push_str(gap);
        }
        out = out.then("\n");
    }
    out
}

/// The same in one string, where no cell is an array.
pub(crate) fn layout(rows: Vec<Vec<Cell<'_>>>, gap: &str) -> String {
    table(rows, gap).into_words()
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
            layout(rows, "  "),
            "  name       value  note\n  a            1.5  x\n  long name    -20\n"
        );
    }
}
