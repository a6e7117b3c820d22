//! CSV: a header names the columns; without one the file as a whole must be named (`X=file.csv`).
//!
//! Commas, semicolons or tabs separate; blanks around cells do not count; a cell in quotes may hold
//! separators and line ends, and `""` for a quote. A line that starts with `#` and a blank is a comment.
//!
//! Invariant: nothing is skipped or mended in silence. A line is a comment, a row, or blank before the first
//! row or after the last; anything else is an error with its line and column. That is why rows are cut here
//! and not by a crate: those that there are repair quotes and drop lines
//! ([0032](../../../../docs/adr/0032-strict-data.md)).

use std::ops::Range;

use super::{Bad, Found, Reader, Wanted, is_missing, near, number};
use crate::assign::Numbers;
use crate::problem::{Failed, Problem};

/// A cell: its text without quotes, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    pub(super) range: Range<usize>,
}

impl Row {
    pub(super) fn text(&self, column: usize) -> &str {
        &self.cells[column].text
    }
}

/// Binds columns to names: `t` to an argument `t` of one axis, `x0`, `x1` ... to a matrix `x` or `X`. Gives
/// what it found, and the names of all columns.
pub(super) fn by_name(
    reader: &mut Reader<'_>,
    wanted: &[Wanted],
) -> Result<(Vec<Found>, Vec<String>), Failed> {
    let table = read(reader)?;
    let Some((header, rows)) = table.split_first() else {
        return Err(empty(reader).into());
    };
    let header_range = header.range.clone();
    if header.cells.iter().all(|cell| cell.text.parse::<f64>().is_ok()) {
        let problem = reader.problem(
            "PAL0287",
            "the first line has only numbers, so no column has a name",
            header_range,
        );
        let example = wanted.iter().find(|one| one.rank > 0).or(wanted.first()).map_or("X", |one| &one.name);
        let help = format!("add a header, or say which input it is: `--data {example}={}`", reader.file);
        return Err(problem.help(help).into());
    }
    let mut found = Vec::new();
    for one in wanted {
        let columns = columns_of(reader, header, one, wanted)?;
        if !columns.is_empty() {
            found.push((one, columns));
        }
    }
    if found.is_empty() {
        let columns: Vec<&str> = header.cells.iter().map(|cell| &*cell.text).collect();
        return Err(reader.nothing_wanted("column", &columns, header_range, wanted));
    }
    if rows.is_empty() {
        return Err(no_row(reader, header).into());
    }
    check_even(reader, &table)?;
    let mut all = Vec::new();
    for (one, columns) in found {
        let data = numbers(reader, one, rows, &columns, Some(header))?;
        let shape = match one.rank {
            0 if rows.len() == 1 => Vec::new(),
            0 | 1 => vec![rows.len()],
            _ => vec![rows.len(), columns.len()],
        };
        let origin = match columns.as_slice() {
            [column] => format!("column `{}` of {}", header.text(*column), reader.file),
            _ => format!("{} columns of {}", columns.len(), reader.file),
        };
        all.push(Found { name: one.name.clone(), numbers: Numbers { shape, data }, origin });
    }
    Ok((all, header.cells.iter().map(|cell| cell.text.clone()).collect()))
}

/// The columns of an argument: the one that is called like it, or those of a matrix.
fn columns_of(
    reader: &mut Reader<'_>,
    header: &Row,
    one: &Wanted,
    wanted: &[Wanted],
) -> Result<Vec<usize>, Failed> {
    let named = only(reader, header, std::slice::from_ref(&one.name), |cell, name| cell == name)?;
    if one.rank != 2 {
        return Ok(named.into_iter().collect());
    }
    let counted = family(reader, header, &one.name, wanted)?;
    match (named, counted.first()) {
        (Some(column), Some(&other)) => Err(both_meant(reader, header, column, other, &one.name)),
        (Some(column), None) => Ok(vec![column]),
        (None, _) => Ok(counted),
    }
}

/// The file is for one argument. A header names it, or counts its columns; what is neither may be a row gone
/// wrong. Gives what it found, and the names of the columns that were not read.
pub(super) fn whole(reader: &mut Reader<'_>, one: &Wanted) -> Result<(Vec<Found>, Vec<String>), Failed> {
    let table = read(reader)?;
    let Some(first) = table.first() else {
        return Err(empty(reader).into());
    };
    let header = if is_header(reader, first)? { Some(first) } else { None };
    let rows = &table[usize::from(header.is_some())..];
    let columns: Vec<usize> = match header {
        Some(header) => named_columns(reader, header, one)?,
        None => (0..first.cells.len()).collect(),
    };
    if rows.is_empty() {
        return Err(no_row(reader, first).into());
    }
    check_even(reader, &table)?;
    let data = numbers(reader, one, rows, &columns, header)?;
    let shape = match (one.rank, rows.len(), columns.len()) {
        (0, 1, 1) => Vec::new(),
        (0 | 1, n, 1) | (1, 1, n) => vec![n],
        (_, n, m) => vec![n, m],
    };
    let numbers = Numbers { shape, data };
    let unread = (0..first.cells.len()).filter(|column| !columns.contains(column));
    let unread = unread.map(|column| first.text(column).to_string()).collect();
    Ok((vec![Found { name: one.name.clone(), numbers, origin: reader.file.to_string() }], unread))
}

/// The columns that the header of a file for one argument names: the one that is called like it, or all,
/// counted from 0 and taken in the order of their numbers.
fn named_columns(reader: &mut Reader<'_>, header: &Row, one: &Wanted) -> Result<Vec<usize>, Failed> {
    let mut columns = columns_of(reader, header, one, std::slice::from_ref(one))?;
    // Of a table for several arguments, one column may be taken; a matrix would get another shape.
    if one.rank < 2 && !columns.is_empty() {
        return Ok(columns);
    }
    if one.rank < 2 {
        columns = family(reader, header, &one.name, std::slice::from_ref(one))?;
    }
    let Some(other) = (0..header.cells.len()).find(|column| !columns.contains(column)) else {
        return Ok(columns);
    };
    let (cell, name) = (&header.cells[other], &one.name);
    let (what, write) = match (one.rank, header.cells.len()) {
        (_, 1) => (format!("the name of `{name}`"), format!("write `{name}` there or remove it")),
        (2, _) => {
            (format!("a column of `{name}`"), format!("write `{name}0`, `{name}1`, ... there or remove it"))
        }
        _ => (format!("the name of `{name}`"), format!("write `{name}` above its column")),
    };
    let message = match cell.text.is_empty() {
        true => format!("a cell of the first line is empty, so it is not {what}"),
        false => format!("`{}` in the first line is neither a number nor {what}", cell.text),
    };
    let problem = reader.problem("PAL0287", message, cell.range.clone());
    let help = format!("if the line is a header, {write}; a row has numbers only");
    Err(problem.help(help).into())
}

pub(super) fn no_row(reader: &mut Reader<'_>, header: &Row) -> Problem {
    let problem = reader.problem("PAL0287", "there is a header but no row of data", header.range.clone());
    problem.help("add rows of numbers below it")
}

pub(super) fn empty(reader: &Reader<'_>) -> Problem {
    reader.whole("PAL0287", "the data file has no data").help("put a header and rows of numbers into it")
}

/// Whether the first line has names. One with names and numbers, or with what is neither (`1_000`, `$12`,
/// `1e5x`), may be a row, and a guess would lose it.
fn is_header(reader: &mut Reader<'_>, first: &Row) -> Result<bool, Failed> {
    let is_word = |cell: &&Cell| cell.text.parse::<f64>().is_err() && !is_missing(&cell.text);
    let Some(name) = first.cells.iter().find(is_word) else { return Ok(false) };
    let is_name = |cell: &&Cell| cell.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if let Some(cell) = first.cells.iter().filter(is_word).find(|cell| !is_name(cell)) {
        let message = format!("`{}` in the first line is neither a name nor a number", cell.text);
        let problem = reader.problem("PAL0285", message, cell.range.clone());
        let help = "write a number with digits, a point and an exponent only; a name of a column begins with a letter";
        return Err(problem.help(help).into());
    }
    match first.cells.iter().find(|cell| cell.text.parse::<f64>().is_ok()) {
        None => Ok(true),
        Some(number) => {
            let message = format!(
                "the first line has a name, `{}`, and a number, `{}`: is it a header or a row?",
                name.text, number.text
            );
            let problem = reader.problem("PAL0285", message, name.range.clone());
            Err(problem.help("a header has names only, a row has numbers only").into())
        }
    }
}

/// The text as rows.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Vec<Row>, Failed> {
    let separator = separator(reader.text);
    let mut scan = Scan { text: reader.text, at: 0, separator };
    let mut rows: Vec<Row> = Vec::new();
    let (mut leading, mut blanks) = (Vec::new(), Vec::new());
    while scan.at < scan.text.len() {
        let line = scan.line();
        let words = scan.text[line.clone()].trim();
        if let Some(rest) = scan.text[line.clone()].strip_prefix('#') {
            if !(rest.trim().is_empty() || rest.starts_with([' ', '\t', '#'])) {
                return Err(no_comment(reader, line, separator).into());
            }
            scan.skip(line);
        } else if words.is_empty() && (separator != b'\t' || scan.text[line.clone()].is_empty()) {
            // Before the first row, and after the last, nothing is missing.
            let side = if rows.is_empty() { &mut leading } else { &mut blanks };
            side.push(line.clone());
            scan.skip(line);
        } else {
            if let Some(blank) = blanks.first() {
                return Err(blank_line(reader, blank.clone()).into());
            }
            let row = scan.row().map_err(|(message, range)| {
                let problem = reader.problem("PAL0287", format!("this is not CSV: {message}"), range);
                Failed::from(
                    problem.help("a cell in quotes is closed by a quote; `\"\"` is a quote inside it"),
                )
            })?;
            rows.push(row);
        }
    }
    // In a file of one column a blank line is a row without a value, wherever it is.
    if rows.first().is_some_and(|row| row.cells.len() == 1)
        && let Some(blank) = leading.first().or(blanks.first())
    {
        return Err(blank_line(reader, blank.clone()).into());
    }
    Ok(rows)
}

fn blank_line(reader: &mut Reader<'_>, range: Range<usize>) -> Problem {
    let problem = reader.problem("PAL0284", "a blank line: is a value missing?", range);
    problem.help("remove the line, or fill in the gap: a gradient through a missing value means nothing")
}

/// A line that starts with `#` and is no comment.
fn no_comment(reader: &mut Reader<'_>, line: Range<usize>, separator: u8) -> Problem {
    let end = reader.text[line.clone()].find(separator as char).map_or(line.end, |at| line.start + at);
    let word = reader.text[line.start..end].trim_end();
    let range = line.start..line.start + word.len();
    if is_missing(word) {
        return reader
            .problem("PAL0284", format!("`{word}` is not a value"), range)
            .help("remove the row, or fill in the gap: a gradient through a missing value means nothing");
    }
    reader
        .problem("PAL0287", format!("`{word}` may be a comment or a cell"), range)
        .help("a comment has a blank after `#`; put a cell that starts with `#` into quotes")
}

/// What separates cells: the first of comma, tab and semicolon that the first row has outside of quotes.
fn separator(text: &str) -> u8 {
    let is_row = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let first = text.lines().find(is_row).unwrap_or("");
    let mut bare = String::new();
    for (at, part) in first.split('"').enumerate() {
        if at % 2 == 0 {
            bare.push_str(part);
        }
    }
    [b',', b'\t', b';'].into_iter().find(|&mark| bare.contains(mark as char)).unwrap_or(b',')
}

/// A text that is being cut into rows.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    separator: u8,
}

impl Scan<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The line that begins here, without its end.
    fn line(&self) -> Range<usize> {
        let Some(length) = self.text[self.at..].find('\n') else { return self.at..self.text.len() };
        let line = &self.text[self.at..self.at + length];
        self.at..self.at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    fn skip(&mut self, line: Range<usize>) {
        self.at = line.end;
        self.line_end();
    }

    /// Goes past a line end, if there is one here.
    fn line_end(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let length = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
        self.at += length;
        length > 0 || rest.is_empty()
    }

    fn blanks(&mut self) {
        while self.byte().is_some_and(|byte| (byte == b' ' || byte == b'\t') && byte != self.separator) {
            self.at += 1;
        }
    }

    fn row(&mut self) -> Result<Row, (String, Range<usize>)> {
        let start = self.at;
        let first_line = self.line();
        let mut cells = Vec::new();
        loop {
            cells.push(self.cell()?);
            if self.byte() == Some(self.separator) {
                self.at += 1;
            } else if self.line_end() {
                // What is shown of a row is its first line.
                let shown = self.text[first_line.clone()].trim_end().len();
                return Ok(Row { cells, range: start..start + shown });
            } else {
                return Err((
                    "a carriage return is not followed by a line feed".into(),
                    self.at..self.at + 1,
                ));
            }
        }
    }

    /// A cell, up to the separator or line end after it.
    fn cell(&mut self) -> Result<Cell, (String, Range<usize>)> {
        self.blanks();
        let start = self.at;
        if self.byte() != Some(b'"') {
            let rest = &self.text[start..];
            let end = rest.find([self.separator as char, '\n', '\r']).unwrap_or(rest.len());
            self.at = start + end;
            let text = rest[..end].trim_end();
            return Ok(Cell { text: text.to_string(), range: start..start + text.len() });
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(end) = self.text[self.at..].find('"') else {
                return Err(("this quote is not closed".into(), start..start + 1));
            };
            text.push_str(&self.text[self.at..self.at + end]);
            self.at += end + 1;
            if self.byte() != Some(b'"') {
                break;
            }
            text.push('"');
            self.at += 1;
        }
        let range = start..self.at;
        self.blanks();
        if self.byte().is_some_and(|byte| byte != self.separator && byte != b'\n' && byte != b'\r') {
            return Err(("there is more after the closing quote".into(), self.at..self.at + 1));
        }
        Ok(Cell { text: text.trim().to_string(), range })
    }
}

/// Every row has as many cells as the first.
fn check_even(reader: &mut Reader<'_>, table: &[Row]) -> Result<(), Failed> {
    let expected = table.first().map_or(0, |row| row.cells.len());
    match table.iter().find(|row| row.cells.len() != expected) {
        Some(row) => Err(uneven(reader, row, expected).into()),
        None => Ok(()),
    }
}

/// A row with another number of cells than the first.
pub(super) fn uneven(reader: &mut Reader<'_>, row: &Row, expected: usize) -> Problem {
    let message = format!(
        "this row has {}, the first has {expected}",
        crate::numbers::plural(row.cells.len() as u64, "cell")
    );
    let problem = reader.problem("PAL0286", message, row.range.clone());
    problem.help(if row.cells.len() < expected {
        "a cell may be missing; every row needs one in each column"
    } else {
        "a decimal comma may have cut a number in two; write `1.5`, not `1,5`"
    })
}

/// The cells of these columns as numbers, row by row.
fn numbers(
    reader: &mut Reader<'_>,
    one: &Wanted,
    rows: &[Row],
    columns: &[usize],
    header: Option<&Row>,
) -> Result<Vec<f64>, Failed> {
    let mut data = Vec::with_capacity(rows.len() * columns.len());
    for row in rows {
        for &column in columns {
            let cell = &row.cells[column];
            match number(&cell.text, one.is_whole) {
                Ok(x) => data.push(x),
                Err(bad) => {
                    let title = header.map_or_else(
                        || format!("column {}", column + 1),
                        |names| format!("column `{}`", names.text(column)),
                    );
                    return Err(bad_cell(reader, cell, bad, &title).into());
                }
            }
        }
    }
    Ok(data)
}

pub(super) fn bad_cell(reader: &mut Reader<'_>, cell: &Cell, bad: Bad, title: &str) -> Problem {
    let (text, range) = (&cell.text, cell.range.clone());
    let message = match bad {
        Bad::Missing if text.is_empty() => format!("a value is missing in {title}"),
        bad => format!("`{text}` in {title} is {}", bad.words()),
    };
    let problem = reader.problem(bad.code(), message, range);
    match bad {
        Bad::NotANumber if text.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            problem.help("write decimals with a point")
        }
        Bad::NotANumber => problem
            .help("only columns that the model uses are read; rename the column, or make its cells numbers"),
        Bad::Missing => problem
            .help("remove the row, or fill in the gap: a gradient through a missing value means nothing"),
        bad => problem.help(bad.help()),
    }
}

/// The columns `name0`, `name1`, ... in this order; the name may be in lower case and followed by `_`. A
/// column that looks like one of them and is none would be lost.
fn family(
    reader: &mut Reader<'_>,
    header: &Row,
    name: &str,
    wanted: &[Wanted],
) -> Result<Vec<usize>, Failed> {
    let mut columns = Vec::new();
    loop {
        let k = columns.len();
        let spellings = [format!("{name}{k}"), format!("{name}_{k}")];
        match only(reader, header, &spellings, str::eq_ignore_ascii_case)? {
            Some(column) => columns.push(column),
            None => break,
        }
    }
    let is_one = |cell: &str| {
        let start = cell.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name));
        let Some(digits) = start.map(|start| &cell[start.len()..]) else { return false };
        let digits = digits.strip_prefix('_').unwrap_or(digits);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_other = |cell: &str| wanted.iter().any(|one| one.name == cell);
    let lost = (0..header.cells.len()).find(|column| {
        !columns.contains(column) && is_one(header.text(*column)) && !is_other(header.text(*column))
    });
    let Some(lost) = lost else { return Ok(columns) };
    let missing = format!("{name}{}", columns.len());
    let message = match columns.last() {
        Some(&last) => format!(
            "the columns of `{name}` go on with `{}` after `{}`: there is no `{missing}`",
            header.text(lost),
            header.text(last)
        ),
        None => {
            format!("`{}` looks like a column of `{name}`, but there is no `{missing}`", header.text(lost))
        }
    };
    let problem = reader.problem("PAL0287", message, header.cells[lost].range.clone());
    let names: Vec<&str> = header.cells.iter().map(|cell| &*cell.text).collect();
    let counted = wanted.iter().find(|one| one.name == name).filter(|_| columns.is_empty());
    let help = counted.and_then(|one| near(one, &names, "column")).unwrap_or_else(|| {
        "number the columns 0, 1, 2, ... without gaps, or rename those that you do not mean".to_string()
    });
    Err(problem.help(help).into())
}

/// The column that is called one of these, if there is any; two would be a guess.
fn only(
    reader: &mut Reader<'_>,
    header: &Row,
    spellings: &[String],
    same: impl Fn(&str, &str) -> bool,
) -> Result<Option<usize>, Failed> {
    let fits = |cell: &str| spellings.iter().any(|word| same(cell, word));
    let mut columns = (0..header.cells.len()).filter(|&column| fits(header.text(column)));
    let (first, second) = (columns.next(), columns.next());
    let (Some(a), Some(b)) = (first, second) else { return Ok(first) };
    Err(both_meant(reader, header, a, b, &spellings[0]))
}

/// Two columns for one name would be a guess.
pub(super) fn both_meant(reader: &mut Reader<'_>, header: &Row, a: usize, b: usize, name: &str) -> Failed {
    let (one, other) = (header.text(a), header.text(b));
    let message = if one == other {
        format!("the columns {} and {} are both called `{one}`", a + 1, b + 1)
    } else {
        format!("the columns `{one}` and `{other}` are both meant by `{name}`")
    };
    let problem = reader.problem("PAL0287", message, header.cells[b].range.clone());
    let problem = reader.and(problem, header.cells[a].range.clone(), "the first is here");
    problem.help("rename or remove one of them").into()
}
