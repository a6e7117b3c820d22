//! Data files -> numbers by name.
//!
//! Input: a CSV or JSON file and the names that may be bound. Output: for each name found its numbers, and where they are.
//! Only cells that are used are read as numbers: a table may have columns of words.

mod csv;
mod json;

use std::path::{Path, PathBuf};

use crate::assign::{Numbers, closest};
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

/// What a data file that is read by name has.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    /// The file.
    pub(crate) file: String,
    /// Its columns or fields.
    pub(crate) names: Vec<String>,
    /// `column` or `field`.
    pub(crate) each: &'static str,
}

/// Reads a data file: what was wanted and found, and what it has unless it gives a single argument.
pub(crate) fn load(
    session: &mut Session,
    spec: &Spec,
    wanted: &[Wanted],
) -> Result<(Vec<Found>, Option<Contents>), Failed> {
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
    if let Some(one) = only {
        let found = if is_json { json::whole(&mut reader, one) } else { csv::whole(&mut reader, one) }?;
        return Ok((found, None));
    }
    let (found, names) =
        if is_json { json::by_name(&mut reader, wanted) } else { csv::by_name(&mut reader, wanted) }?;
    let each = if is_json { "field" } else { "column" };
    Ok((found, Some(Contents { file: name, names, each })))
}

/// What to do about an argument that a file lacks, if one of its columns or fields may be meant.
pub(crate) fn near(one: &Wanted, names: &[&str], each: &str) -> Option<String> {
    let name = &one.name;
    if one.rank == 2 {
        let is =
            |word: &&&str| ["", "_"].iter().any(|mid| word.eq_ignore_ascii_case(&format!("{name}{mid}1")));
        if let Some(first) = names.iter().find(is) {
            let zero = format!("{}0", first.trim_end_matches('1'));
            return Some(format!(
                "columns are counted from 0, but the first here is `{first}`: rename it to `{zero}`, and so on"
            ));
        }
    }
    closest(name, names).map(|other| format!("rename the {each} `{other}` to `{name}`, if it is meant"))
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

    /// Adds a place to a problem; both are shown together if they are in one line.
    fn and(&mut self, problem: Problem, range: std::ops::Range<usize>, words: &str) -> Problem {
        let other = self.problem(problem.code, "", range);
        let (Some(own), Some(label)) = (problem.labels.first(), other.labels.first()) else { return problem };
        let sources = &self.session.sources;
        let together = sources.text(own.file) == sources.text(label.file)
            && sources.place(own.file, 0) == sources.place(label.file, 0);
        let file = if together { own.file } else { label.file };
        let range = label.range.clone();
        problem.at(file, range, words)
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
