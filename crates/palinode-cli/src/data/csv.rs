//! CSV: a header names the columns; without one the file as a whole must be named (`X=file.csv`).
//!
//! Commas, semicolons or tabs separate; `#` starts a comment line; blanks around cells do not count.

use std::ops::Range;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::{Found, Reader, Wanted, is_missing, near};
use crate::assign::{Numbers, listed};
use crate::problem::{Failed, Problem};

/// The rows of a file, as text.
struct Table {
    rows: Vec<StringRecord>,
    separator: u8,
}

/// Binds columns to names: `t` to an argument `t` of one axis, `x0`, `x1` ... to a matrix `x` or `X`. Gives what it found, and the
/// names of all columns.
pub(super) fn by_name(
    reader: &mut Reader<'_>,
    wanted: &[Wanted],
) -> Result<(Vec<Found>, Vec<String>), Failed> {
    let table = read(reader)?;
    let Some((header, rows)) = table.rows.split_first() else {
        return Err(empty(reader).into());
    };
    if header.iter().all(|cell| cell.parse::<f64>().is_ok()) {
        let range = table.record_range(reader.text, header);
        let problem =
            reader.problem("PAL0287", "the first line has only numbers, so no column has a name", range);
        let example = wanted.iter().find(|one| one.rank > 0).or(wanted.first()).map_or("X", |one| &one.name);
        let help = format!("add a header, or say which input it is: `--data {example}={}`", reader.file);
        return Err(problem.help(help).into());
    }
    let mut found = Vec::new();
    for one in wanted {
        let columns =
            match only(reader, &table, header, std::slice::from_ref(&one.name), |cell, name| cell == name)? {
                Some(column) => vec![column],
                None if one.rank == 2 => family(reader, &table, header, &one.name)?,
                None => continue,
            };
        if !columns.is_empty() {
            found.push((one, columns));
        }
    }
    if found.is_empty() {
        let range = table.record_range(reader.text, header);
        let problem =
            reader.problem("PAL0287", "no column is named like a param or input of the model", range);
        let columns: Vec<&str> = header.iter().collect();
        if let Some(help) = wanted.iter().find_map(|one| near(one, &columns, "column")) {
            return Err(problem.help(help).into());
        }
        let names: Vec<&str> = wanted.iter().map(|one| &*one.name).collect();
        return Err(problem.help(format!("the model takes {}", listed(&names))).into());
    }
    if rows.is_empty() {
        let range = table.record_range(reader.text, header);
        return Err(reader.problem("PAL0287", "there is a header but no row of data", range).into());
    }
    check_even(reader, &table)?;
    let mut all = Vec::new();
    for (one, columns) in found {
        let data = numbers(reader, &table, rows, &columns, Some(header))?;
        let shape = match one.rank {
            0 if rows.len() == 1 => Vec::new(),
            0 | 1 => vec![rows.len()],
            _ => vec![rows.len(), columns.len()],
        };
        let origin = match columns.as_slice() {
            [column] => format!("column `{}` of {}", &header[*column], reader.file),
            _ => format!("{} columns of {}", columns.len(), reader.file),
        };
        all.push(Found { name: one.name.clone(), numbers: Numbers { shape, data }, origin });
    }
    Ok((all, header.iter().map(str::to_string).collect()))
}

/// The whole file is one argument; a header is skipped, or names the column of a single axis.
pub(super) fn whole(reader: &mut Reader<'_>, one: &Wanted) -> Result<Vec<Found>, Failed> {
    let table = read(reader)?;
    let Some(first) = table.rows.first() else {
        return Err(empty(reader).into());
    };
    let is_header = first.iter().any(|cell| cell.parse::<f64>().is_err() && !is_missing(cell));
    let (header, rows) = if is_header { (Some(first), &table.rows[1..]) } else { (None, &table.rows[..]) };
    if rows.is_empty() {
        return Err(empty(reader).into());
    }
    check_even(reader, &table)?;
    let named = match header {
        Some(header) if one.rank < 2 => {
            only(reader, &table, header, std::slice::from_ref(&one.name), |cell, name| cell == name)?
        }
        _ => None,
    };
    let columns: Vec<usize> = match named {
        Some(column) => vec![column],
        None => (0..first.len()).collect(),
    };
    let data = numbers(reader, &table, rows, &columns, header)?;
    let shape = match (one.rank, rows.len(), columns.len()) {
        (0, 1, 1) => Vec::new(),
        (0 | 1, n, 1) | (1, 1, n) => vec![n],
        (_, n, m) => vec![n, m],
    };
    let numbers = Numbers { shape, data };
    Ok(vec![Found { name: one.name.clone(), numbers, origin: reader.file.to_string() }])
}

fn empty(reader: &Reader<'_>) -> Problem {
    reader.whole("PAL0287", "the data file has no data").help("put a header and rows of numbers into it")
}

fn read(reader: &mut Reader<'_>) -> Result<Table, Failed> {
    let text = reader.text;
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or("");
    let separator =
        [b',', b'\t', b';'].into_iter().find(|&mark| first.contains(mark as char)).unwrap_or(b',');
    let mut lines = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in lines.records() {
        match record {
            Ok(record) => rows.push(record),
            Err(error) => {
                let at = error.position().map_or(0, |position| position.byte() as usize);
                let problem = reader.problem("PAL0287", format!("this is not CSV: {error}"), at..at + 1);
                return Err(problem.into());
            }
        }
    }
    // The crate skips empty lines; a line of blanks is one as well.
    rows.retain(|record| !(record.len() == 1 && record[0].is_empty()));
    Ok(Table { rows, separator })
}

/// Every row has as many cells as the first.
fn check_even(reader: &mut Reader<'_>, table: &Table) -> Result<(), Failed> {
    let expected = table.rows.first().map_or(0, StringRecord::len);
    let Some(row) = table.rows.iter().find(|row| row.len() != expected) else { return Ok(()) };
    let message = format!(
        "this row has {}, the first has {expected}",
        crate::numbers::plural(row.len() as u64, "cell")
    );
    let range = table.record_range(reader.text, row);
    let problem = reader.problem("PAL0286", message, range);
    let help = if row.len() < expected {
        "a cell may be missing; every row needs one in each column"
    } else {
        "a decimal comma may have cut a number in two; write `1.5`, not `1,5`"
    };
    Err(problem.help(help).into())
}

/// The cells of these columns as numbers, row by row.
fn numbers(
    reader: &mut Reader<'_>,
    table: &Table,
    rows: &[StringRecord],
    columns: &[usize],
    header: Option<&StringRecord>,
) -> Result<Vec<f64>, Failed> {
    let mut data = Vec::with_capacity(rows.len() * columns.len());
    for row in rows {
        for &column in columns {
            let cell = &row[column];
            match cell.parse::<f64>() {
                Ok(x) if x.is_finite() => data.push(x),
                parsed => {
                    let range = table.cell_range(reader.text, row, column);
                    let title = header.map_or_else(
                        || format!("column {}", column + 1),
                        |names| format!("column `{}`", &names[column]),
                    );
                    return Err(bad_cell(reader, cell, parsed.ok(), &title, range).into());
                }
            }
        }
    }
    Ok(data)
}

fn bad_cell(
    reader: &mut Reader<'_>,
    cell: &str,
    parsed: Option<f64>,
    title: &str,
    range: Range<usize>,
) -> Problem {
    if is_missing(cell) {
        let message = if cell.is_empty() {
            format!("a value is missing in {title}")
        } else {
            format!("`{cell}` in {title} is not a value")
        };
        let problem = reader.problem("PAL0284", message, range);
        return problem
            .help("remove the row, or fill the gap in: a gradient through a missing value means nothing");
    }
    if parsed.is_some() {
        let problem = reader.problem("PAL0284", format!("`{cell}` in {title} is not a finite number"), range);
        return problem.help("remove the row, or give it a finite number");
    }
    let problem = reader.problem("PAL0285", format!("`{cell}` in {title} is not a number"), range);
    if cell.replacen(',', ".", 1).parse::<f64>().is_ok() {
        problem.help("write decimals with a point")
    } else {
        problem
            .help("only columns that the model uses are read; rename the column, or make its cells numbers")
    }
}

/// The columns `name0`, `name1`, ... in this order; the name may be in lower case and followed by `_`.
fn family(
    reader: &mut Reader<'_>,
    table: &Table,
    header: &StringRecord,
    name: &str,
) -> Result<Vec<usize>, Failed> {
    let mut columns = Vec::new();
    loop {
        let k = columns.len();
        let spellings = [format!("{name}{k}"), format!("{name}_{k}")];
        match only(reader, table, header, &spellings, str::eq_ignore_ascii_case)? {
            Some(column) => columns.push(column),
            None => return Ok(columns),
        }
    }
}

/// The column that is called one of these, if there is any; two would be a guess.
fn only(
    reader: &mut Reader<'_>,
    table: &Table,
    header: &StringRecord,
    spellings: &[String],
    same: impl Fn(&str, &str) -> bool,
) -> Result<Option<usize>, Failed> {
    let fits = |cell: &str| spellings.iter().any(|word| same(cell, word));
    let mut columns = (0..header.len()).filter(|&column| fits(&header[column]));
    let (first, second) = (columns.next(), columns.next());
    let (Some(a), Some(b)) = (first, second) else { return Ok(first) };
    let message = if header[a] == header[b] {
        format!("the columns {} and {} are both called `{}`", a + 1, b + 1, &header[a])
    } else {
        format!("the columns `{}` and `{}` are both meant by `{}`", &header[a], &header[b], spellings[0])
    };
    let ranges = [b, a].map(|column| table.cell_range(reader.text, header, column));
    let problem = reader.problem("PAL0287", message, ranges[0].clone());
    let problem = reader.and(problem, ranges[1].clone(), "the first is here");
    Err(problem.help("rename or remove one of them").into())
}

impl Table {
    /// The bytes of a record.
    fn record_range(&self, text: &str, record: &StringRecord) -> Range<usize> {
        let start = self.record_start(text, record);
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        start..start + text[start..end].trim_end().len()
    }

    fn record_start(&self, text: &str, record: &StringRecord) -> usize {
        let mut start = record.position().map_or(0, |position| position.byte() as usize).min(text.len());
        // The position may lie before comments and empty lines that were skipped.
        loop {
            let line = text[start..].lines().next().unwrap_or("");
            let skipped = line.trim().is_empty() || line.starts_with('#');
            match text[start..].find('\n') {
                Some(at) if skipped => start += at + 1,
                _ => return start,
            }
        }
    }

    /// The bytes of a cell, without blanks around it.
    fn cell_range(&self, text: &str, record: &StringRecord, column: usize) -> Range<usize> {
        let start = self.record_start(text, record);
        let bytes = &text.as_bytes()[start..];
        let (mut at, mut seen, mut quoted, mut cell) = (0, 0, false, 0);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => quoted = !quoted,
                b'\n' if !quoted => break,
                mark if mark == self.separator && !quoted => {
                    if seen == column {
                        break;
                    }
                    seen += 1;
                    cell = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        let words = text.get(start + cell..start + at).unwrap_or("");
        let before = words.len() - words.trim_start().len();
        let from = start + cell + if words.trim().is_empty() { 0 } else { before };
        from..from + words.trim().len()
    }
}
