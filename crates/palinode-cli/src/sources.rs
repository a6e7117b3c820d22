//! The texts that problems point into: models, lines of data files, words of the command line.
//!
//! A text may be a piece of a longer file; then it knows the line and column where it starts.

use std::ops::Range;

use codespan_reporting::files::{Error, Files, line_starts};

/// The number of a text.
pub(crate) type FileId = usize;

struct Source {
    name: String,
    text: String,
    starts: Vec<usize>,
    /// The number of the first line, from 1.
    first_line: usize,
    /// How many characters of the first line are left out.
    hidden: usize,
}

/// All texts of a run of the command.
#[derive(Default)]
pub(crate) struct Sources {
    all: Vec<Source>,
}

/// Lines of data longer than this are shown in part.
const WIDE: usize = 100;

impl Sources {
    /// A whole text.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.push(name.into(), text.into(), 1, 0)
    }

    /// A line of a longer file, of which `range` (in bytes) will be pointed at; gives the range in what is
    /// kept.
    pub(crate) fn add_line(
        &mut self,
        name: &str,
        line: &str,
        number: usize,
        range: Range<usize>,
    ) -> (FileId, Range<usize>) {
        let range = on_boundaries(line, range);
        let before = line[..range.start].chars().count();
        let hidden = if line.chars().count() > WIDE { before.saturating_sub(WIDE / 2) } else { 0 };
        let cut = line.char_indices().nth(hidden).map_or(line.len(), |(at, _)| at);
        let kept: String = line[cut..].chars().take(WIDE).collect();
        let shifted = range.start - cut..(range.end - cut).min(kept.len());
        (self.push(name.to_string(), kept, number, hidden), shifted)
    }

    fn push(&mut self, name: String, text: String, first_line: usize, hidden: usize) -> FileId {
        let starts = line_starts(&text).collect();
        self.all.push(Source { name, text, starts, first_line, hidden });
        self.all.len() - 1
    }

    fn get(&self, id: FileId) -> Result<&Source, Error> {
        self.all.get(id).ok_or(Error::FileMissing)
    }

    /// The name of a text.
    pub(crate) fn name_of(&self, id: FileId) -> &str {
        self.all.get(id).map_or("?", |source| &source.name)
    }

    /// The text.
    pub(crate) fn text(&self, id: FileId) -> &str {
        self.all.get(id).map_or("", |source| &source.text)
    }

    /// Line and column of a byte, from 1.
    pub(crate) fn place(&self, id: FileId, at: usize) -> (usize, usize) {
        self.location(id, at).map_or((1, 1), |place| (place.line_number, place.column_number))
    }

    /// A range that lies within the text and between characters.
    pub(crate) fn clamp(&self, id: FileId, range: Range<usize>) -> Range<usize> {
        on_boundaries(self.text(id), range)
    }
}

fn on_boundaries(text: &str, range: Range<usize>) -> Range<usize> {
    let floor = |at: usize| {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(range.start);
    start..floor(range.end).max(start)
}

impl<'a> Files<'a> for Sources {
    type FileId = FileId;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<&'a str, Error> {
        Ok(&self.get(id)?.name)
    }

    fn source(&'a self, id: FileId) -> Result<&'a str, Error> {
        Ok(&self.get(id)?.text)
    }

    fn line_index(&'a self, id: FileId, at: usize) -> Result<usize, Error> {
        let starts = &self.get(id)?.starts;
        Ok(starts.partition_point(|&start| start <= at).saturating_sub(1))
    }

    fn line_number(&'a self, id: FileId, line: usize) -> Result<usize, Error> {
        Ok(self.get(id)?.first_line + line)
    }

    fn column_number(&'a self, id: FileId, line: usize, at: usize) -> Result<usize, Error> {
        let range = self.line_range(id, line)?;
        let source = self.get(id)?;
        let before = source.text[range.start..at.clamp(range.start, range.end)].chars().count();
        Ok(before + 1 + if line == 0 { source.hidden } else { 0 })
    }

    fn line_range(&'a self, id: FileId, line: usize) -> Result<Range<usize>, Error> {
        let source = self.get(id)?;
        let max = source.starts.len();
        let start = *source.starts.get(line).ok_or(Error::LineTooLarge { given: line, max })?;
        Ok(start..source.starts.get(line + 1).copied().unwrap_or(source.text.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_line_is_shown_around_the_place() {
        let mut sources = Sources::default();
        let line: String = (0..200).map(|n| format!("{n},")).collect();
        let at = line.find("150,").unwrap();
        let (id, range) = sources.add_line("wide.csv", &line, 7, at..at + 3);
        assert_eq!(&sources.text(id)[range.clone()], "150");
        assert_eq!(sources.place(id, range.start), (7, at + 1));
        assert!(sources.text(id).len() <= WIDE);
    }

    #[test]
    fn ranges_never_cut_a_character() {
        let mut sources = Sources::default();
        let id = sources.add("x", "aµb");
        assert_eq!(sources.clamp(id, 2..2), 1..1);
        assert_eq!(sources.clamp(id, 3..99), 3..4);
    }
}
