//! Data files -> numbers by name.
//!
//! Input: a CSV or JSON file and the names that may be bound. Output: for each name found its numbers, and
//! where they are. Only cells that are used are read as numbers: a table may have columns of words.

mod csv;
#[cfg(test)]
mod fuzz;
mod json;
mod rows;

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::assign::{Numbers, ROUNDED, WHOLE, WRITE_ROUNDED, closest, is_rounded, listed, vanished};
use crate::files;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::sources::FileId;

/// What a data file can be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) rank: usize,
    /// Only whole numbers will do.
    pub(crate) is_whole: bool,
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

/// A length that a JSON file states beside its arrays, and where.
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    pub(crate) name: String,
    pub(crate) length: f64,
    pub(crate) file: FileId,
    pub(crate) range: Range<usize>,
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
    /// The lengths of the model that it states.
    pub(crate) lengths: Vec<Stated>,
}

/// The rows of a batch: numbers for some arguments, one after the other in each row.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The file.
    pub(crate) file: String,
    pub(crate) count: usize,
    pub(crate) parts: Vec<Part>,
}

/// What the rows have of one argument.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Which of those that were wanted.
    pub(crate) argument: usize,
    /// Its lengths, in every row.
    pub(crate) shape: Vec<usize>,
    /// Row after row.
    pub(crate) data: Vec<f64>,
}

impl Part {
    /// The numbers of a row.
    pub(crate) fn row(&self, row: usize) -> &[f64] {
        let elements = self.shape.iter().product::<usize>();
        &self.data[row * elements..(row + 1) * elements]
    }
}

/// Reads a table of which every row is a sample, and every column an argument or one of its elements.
pub(crate) fn load_rows(session: &mut Session, path: &Path, wanted: &[Wanted]) -> Result<Rows, Failed> {
    let text = files::read(path, "the batch")?;
    let name = path.display().to_string();
    rows::read(&mut Reader { session, file: &name, text: &text }, wanted)
}

/// Reads a data file: what was wanted and found, and what it has unless it gives a single argument.
pub(crate) fn load(
    session: &mut Session,
    spec: &Spec,
    wanted: &[Wanted],
    lengths: &[&str],
) -> Result<(Vec<Found>, Option<Contents>), Failed> {
    let text = files::read(&spec.path, "the data file")?;
    let name = spec.path.display().to_string();
    let ending = spec.path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_ascii_lowercase();
    let is_json = match ending.as_str() {
        "json" => true,
        "csv" | "tsv" | "txt" | "dat" => false,
        _ => text.trim_start().starts_with(['{', '[']),
    };
    let only = match &spec.name {
        None => None,
        Some(name) => match wanted.iter().find(|one| one.name == *name) {
            Some(one) => Some(one),
            None => {
                let names: Vec<&str> = wanted.iter().map(|one| &*one.name).collect();
                let problem = crate::assign::unknown(name, "param or input", &names);
                return Err(problem.note(format!("it is given the file {}", spec.path.display())).into());
            }
        },
    };
    let mut reader = Reader { session, file: &name, text: &text };
    let each = if is_json { "field" } else { "column" };
    // A file for one argument may have columns for others, which are not missed, but not left out in silence.
    let (found, names) = match only {
        Some(one) => {
            let (found, unread) = reader.whole_file(is_json, one)?;
            let is_length = |name: &&str| is_json && lengths.contains(name);
            let unread: Vec<&str> =
                unread.iter().map(String::as_str).filter(|name| !is_length(name)).collect();
            if !unread.is_empty() {
                reader.session.warn(not_read(&name, one, each, &unread));
            }
            (found, Vec::new())
        }
        None => reader.by_name(is_json, wanted)?,
    };
    // A column has a number for each row, so it states no length.
    let lengths = if is_json { json::lengths(&mut reader, lengths)? } else { Vec::new() };
    if only.is_some() && lengths.is_empty() {
        return Ok((found, None));
    }
    Ok((found, Some(Contents { file: name, names, each, lengths })))
}

/// Of a file for one argument, the rest was not read.
fn not_read(file: &str, one: &Wanted, each: &str, unread: &[&str]) -> Problem {
    let mut names: Vec<String> = unread.iter().take(12).map(|name| format!("`{name}`")).collect();
    if unread.len() > names.len() {
        names.push("...".to_string());
    }
    let names = names.join(", ").replace("``", "one without a name");
    let message = format!("`--data {0}={file}` reads the {each} `{0}` only, not {names}", one.name);
    let help = format!("`--data {file}` reads every {each} that is named like a param or input of the model");
    Problem::new("PAL0610", Exit::Input, message).help(help).only_warning()
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
    closest(name, names).map(|other| format!("rename the {each} `{other}` to `{name}`, if you mean it"))
}

/// A file that is being read, and how its problems are reported.
struct Reader<'a> {
    session: &'a mut Session,
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    /// What one argument is given, and the names of what was not read.
    fn whole_file(&mut self, is_json: bool, one: &Wanted) -> Result<(Vec<Found>, Vec<String>), Failed> {
        if is_json { json::whole(self, one) } else { csv::whole(self, one) }
    }

    /// What was wanted and found, and the names of all that is there.
    fn by_name(&mut self, is_json: bool, wanted: &[Wanted]) -> Result<(Vec<Found>, Vec<String>), Failed> {
        if is_json { json::by_name(self, wanted) } else { csv::by_name(self, wanted) }
    }

    /// A problem with a range of bytes.
    fn problem(&mut self, code: &'static str, message: impl Into<String>, range: Range<usize>) -> Problem {
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
    fn and(&mut self, problem: Problem, range: Range<usize>, words: &str) -> Problem {
        let other = self.problem(problem.code, "", range);
        let (Some(own), Some(label)) = (problem.labels.first(), other.labels.first()) else { return problem };
        let sources = &self.session.sources;
        let together = sources.text(own.file) == sources.text(label.file)
            && sources.place(own.file, 0) == sources.place(label.file, 0);
        let file = if together { own.file } else { label.file };
        let range = label.range.clone();
        problem.at(file, range, words)
    }

    /// Nothing in the file is named like an argument.
    fn nothing_wanted(
        &mut self,
        each: &str,
        names: &[&str],
        range: Range<usize>,
        wanted: &[Wanted],
    ) -> Failed {
        let message = format!("no {each} is named like a param or input of the model");
        let takes: Vec<&str> = wanted.iter().map(|one| &*one.name).collect();
        let help = wanted.iter().find_map(|one| near(one, names, each));
        let help = help.unwrap_or_else(|| format!("the model takes {}", listed(&takes)));
        self.problem("PAL0287", message, range).help(help).into()
    }

    /// A problem with the file as a whole.
    fn whole(&self, code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(code, Exit::Input, message).note(format!("in {}", self.file))
    }
}

/// The words for a missing value; those with `#` are what spreadsheets write.
fn is_missing(cell: &str) -> bool {
    let known = ["", "na", "n/a", "nan", "null", "none", "-", "?", ".", "#n/a", "#na", "#n/a n/a", "<na>"];
    let broken = ["#div/0!", "#name?", "#null!", "#num!", "#ref!", "#value!", "#spill!", "#calc!"];
    known.iter().chain(&broken).any(|word| cell.eq_ignore_ascii_case(word))
}

/// Why a text is not taken for a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bad {
    Missing,
    Infinite,
    TooLarge,
    TooSmall,
    NotANumber,
    NotWhole,
    BeyondWhole,
    /// Digits that would be rounded away.
    TooManyDigits,
}

impl Bad {
    fn code(self) -> &'static str {
        match self {
            Bad::Missing | Bad::Infinite | Bad::TooLarge | Bad::TooSmall => "PAL0284",
            Bad::NotANumber | Bad::NotWhole | Bad::BeyondWhole | Bad::TooManyDigits => "PAL0285",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Bad::Missing => "not a value",
            Bad::Infinite => "not a finite number",
            Bad::TooLarge => "too large for a number of 64 bits",
            Bad::TooSmall => "too small for a number of 64 bits: it would become 0",
            Bad::NotANumber => "not a number",
            Bad::NotWhole => "not an integer",
            Bad::BeyondWhole => "too large for an integer that is read exactly",
            Bad::TooManyDigits => ROUNDED,
        }
    }

    fn help(self) -> &'static str {
        match self {
            Bad::NotWhole => "round it, or declare the input as real",
            Bad::BeyondWhole => "integers go up to 9007199254740991 (2^53 - 1); declare the input as real",
            Bad::TooSmall => "write 0 if you mean it",
            Bad::TooManyDigits => WRITE_ROUNDED,
            _ => "remove the row, or give it a finite number",
        }
    }
}

/// A text as a number, if an `f64` holds what it says (but for the rounding of decimals).
fn number(text: &str, is_whole: bool) -> Result<f64, Bad> {
    if is_missing(text) {
        return Err(Bad::Missing);
    }
    let x = text.parse::<f64>().map_err(|_| Bad::NotANumber)?;
    match x {
        x if x.is_nan() => Err(Bad::Missing),
        x if x.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => Err(Bad::TooLarge),
        x if x.is_infinite() => Err(Bad::Infinite),
        x if vanished(text, x) => Err(Bad::TooSmall),
        x if is_whole && x.fract() != 0.0 => Err(Bad::NotWhole),
        x if is_whole && x.abs() >= WHOLE => Err(Bad::BeyondWhole),
        // A fraction may have been rounded away.
        _ if is_whole && has_fraction(text) => Err(Bad::NotWhole),
        x if is_rounded(text, x) => Err(Bad::TooManyDigits),
        x => Ok(x),
    }
}

/// Whether decimals without an exponent have another digit than 0 after the point.
fn has_fraction(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    !text.contains(['e', 'E']) && fraction.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_lose_something_are_refused() {
        for (text, is_whole, expected) in [
            ("1.5", false, Ok(1.5)),
            ("-0", false, Ok(-0.0)),
            ("+.5e1", false, Ok(5.0)),
            ("0.000e-500", false, Ok(0.0)),
            ("1e400", false, Err(Bad::TooLarge)),
            ("-1e400", false, Err(Bad::TooLarge)),
            ("1e-400", false, Err(Bad::TooSmall)),
            ("4.9e-324", false, Ok(5e-324)),
            ("inf", false, Err(Bad::Infinite)),
            ("NaN", false, Err(Bad::Missing)),
            ("#N/A", false, Err(Bad::Missing)),
            ("#DIV/0!", false, Err(Bad::Missing)),
            ("1,5", false, Err(Bad::NotANumber)),
            ("0x10", false, Err(Bad::NotANumber)),
            ("7", true, Ok(7.0)),
            ("7.0", true, Ok(7.0)),
            ("7e2", true, Ok(700.0)),
            ("7.5", true, Err(Bad::NotWhole)),
            ("4503599627370496.3", true, Err(Bad::NotWhole)),
            ("9007199254740991", true, Ok(9_007_199_254_740_991.0)),
            ("9007199254740992", true, Err(Bad::BeyondWhole)),
            ("9007199254740993", true, Err(Bad::BeyondWhole)),
            ("-9007199254740993", true, Err(Bad::BeyondWhole)),
            ("1e30", true, Err(Bad::BeyondWhole)),
            ("9007199254740992", false, Ok(9_007_199_254_740_992.0)),
            ("9007199254740993", false, Err(Bad::TooManyDigits)),
            ("-0012345678901234567890123", false, Err(Bad::TooManyDigits)),
            ("+1180591620717411303424", false, Ok(1_180_591_620_717_411_303_424.0)),
            ("9007199254740993.0", false, Ok(9_007_199_254_740_992.0)),
            ("1.2345678901234567890e30", false, Ok(1.234_567_890_123_456_8e30)),
        ] {
            let found = number(text, is_whole);
            assert_eq!(found, expected, "{text}");
            assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        }
    }
}
