//! Data files -> numbers by name.
//!
//! Input: a CSV or JSON file and the names that may be bound. Output: for each name found its numbers, and where they are.
//! Only cells that are used are read as numbers: a table may have columns of words.

mod csv;
mod json;

use std::path::{Path, PathBuf};

use crate::assign::Numbers;
use crate::files;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;

/// What a data file can be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) rank: usize,
}

/// Numbers from a file.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) numbers: Numbers,
    /// `column `x` of data.csv`, for messages.
    pub(crate) origin: String,
}

/// A data file, and the one name it gives if that is said.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl Spec {
    /// `file`, or `name=file`; files are looked for in `base`.
    pub(crate) fn parse(text: &str, base: Option<&Path>) -> Spec {
        let placed = |path: &str| match base {
            Some(base) => base.join(path),
            None => PathBuf::from(path),
        };
        if let Some((name, path)) = text.split_once('=')
            && is_name(name.trim())
            && !placed(text).exists()
        {
            return Spec { name: Some(name.trim().to_string()), path: placed(path.trim()) };
        }
        Spec { name: None, path: placed(text.trim()) }
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// Reads a data file.
pub(crate) fn load(session: &mut Session, spec: &Spec, wanted: &[Wanted]) -> Result<Vec<Found>, Failed> {
    let text = files::read(&spec.path, "the data file")?;
    let name = spec.path.display().to_string();
    let ending = spec.path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_ascii_lowercase();
    let is_json = match ending.as_str() {
        "json" => true,
        "csv" | "tsv" | "txt" | "dat" => false,
        _ => text.trim_start().starts_with(['{', '[']),
    };
    let mut reader = Reader { session, file: &name, text: &text };
    let only = match &spec.name {
        None => None,
        Some(name) => match wanted.iter().find(|one| one.name == *name) {
            Some(one) => Some(one),
            None => {
                let names: Vec<&str> = wanted.iter().map(|one| &*one.name).collect();
                return Err(crate::assign::unknown(name, "param or input", &names).into());
            }
        },
    };
    match (is_json, only) {
        (true, None) => json::by_name(&mut reader, wanted),
        (true, Some(one)) => json::whole(&mut reader, one),
        (false, None) => csv::by_name(&mut reader, wanted),
        (false, Some(one)) => csv::whole(&mut reader, one),
    }
}

/// A file that is being read, and how its problems are reported.
struct Reader<'a> {
    session: &'a mut Session,
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    /// A problem with a range of bytes.
    fn problem(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        range: std::ops::Range<usize>,
    ) -> Problem {
        let start = range.start.min(self.text.len());
        let bytes = self.text.as_bytes();
        let line_start = bytes[..start].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line_end = bytes[start..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| start + at);
        let number = bytes[..line_start].iter().filter(|&&b| b == b'\n').count() + 1;
        let line = self.text.get(line_start..line_end).unwrap_or("").trim_end_matches('\r');
        let within = start - line_start..range.end.clamp(start, line_end) - line_start;
        let (file, range) = self.session.sources.add_line(self.file, line, number, within);
        Problem::new(code, Exit::Input, message).at(file, range, "")
    }

    /// A problem with the file as a whole.
    fn whole(&self, code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(code, Exit::Input, message).note(format!("in {}", self.file))
    }
}

/// The words for a missing value.
fn is_missing(cell: &str) -> bool {
    let known = ["", "na", "n/a", "nan", "null", "none", "-", "?", "."];
    known.iter().any(|word| cell.eq_ignore_ascii_case(word))
}
