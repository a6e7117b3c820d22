//! A table of samples: every row is one, every column an argument or one element of it.
//!
//! Input: CSV whose header names params and inputs (`x`, `w[0]`, `w[1]`, `"m[0,1]"`). Output: numbers, row by
//! row.
//!
//! Invariant: no column and no cell is left out in silence. A column that is none of an argument, named twice
//! or missing between others is an error, as is every cell that is no number; several are reported at once.

use super::csv::{self, Row};
use super::{Bad, Part, Reader, Rows, Wanted, number};
use crate::assign::{closest, listed};
use crate::problem::{Failed, Problem};

/// So many problems are reported at once; the rest is counted.
const MOST: usize = 8;

pub(super) fn read(reader: &mut Reader<'_>, wanted: &[Wanted]) -> Result<Rows, Failed> {
    let table = csv::read(reader)?;
    let Some((header, rows)) = table.split_first() else { return Err(csv::empty(reader).into()) };
    let mut problems = Vec::new();
    let columns = columns(reader, header, wanted, &mut problems);
    let parts: Vec<(usize, Vec<usize>, Vec<usize>)> = wanted
        .iter()
        .enumerate()
        .filter_map(|(at, one)| whole(reader, header, at, one, &columns, &mut problems))
        .collect();
    if rows.is_empty() {
        problems.push(csv::no_row(reader, header));
    }
    let mut more = 0;
    let mut add = |problem: &mut dyn FnMut() -> Problem| {
        if problems.len() < MOST { problems.push(problem()) } else { more += 1 }
    };
    for row in rows.iter().filter(|row| row.cells.len() != header.cells.len()) {
        add(&mut || csv::uneven(reader, row, header.cells.len()));
    }
    let mut data: Vec<Vec<f64>> = parts.iter().map(|_| Vec::new()).collect();
    for row in rows.iter().filter(|row| row.cells.len() == header.cells.len()) {
        for ((argument, _, columns), data) in parts.iter().zip(&mut data) {
            for &column in columns {
                let cell = &row.cells[column];
                match number(&cell.text, wanted[*argument].is_whole) {
                    Ok(x) => data.push(x),
                    Err(bad) => {
                        let title = format!("column `{}`", header.text(column));
                        add(&mut || bad_cell(reader, cell, bad, &title));
                    }
                }
            }
        }
    }
    if more > 0
        && let Some(last) = problems.pop()
    {
        problems.push(last.note(format!("and {more} more in {}", reader.file)));
    }
    if !problems.is_empty() {
        return Err(Failed(problems));
    }
    let parts = parts.into_iter().zip(data);
    let parts = parts.map(|((argument, shape, _), data)| Part { argument, shape, data }).collect();
    Ok(Rows { file: reader.file.to_string(), count: rows.len(), parts })
}

fn bad_cell(reader: &mut Reader<'_>, cell: &csv::Cell, bad: Bad, title: &str) -> Problem {
    let problem = csv::bad_cell(reader, cell, bad, title);
    // Here there are no columns that nobody reads.
    match bad {
        Bad::NotANumber if !cell.text.contains(',') => problem.help("correct it, or remove the row"),
        _ => problem,
    }
}

/// What a column is of: an argument, and which of its elements.
struct Column {
    argument: usize,
    index: Vec<usize>,
}

/// Every column, if it is of an argument.
fn columns(
    reader: &mut Reader<'_>,
    header: &Row,
    wanted: &[Wanted],
    problems: &mut Vec<Problem>,
) -> Vec<Option<Column>> {
    let mut found: Vec<Option<Column>> = Vec::new();
    for (at, cell) in header.cells.iter().enumerate() {
        let column = match of_argument(&cell.text, wanted) {
            Ok(column) => column,
            Err((message, help)) => {
                problems.push(reader.problem("PAL0287", message, cell.range.clone()).help(help));
                found.push(None);
                continue;
            }
        };
        let same = |other: &Option<Column>| {
            other.as_ref().is_some_and(|one| one.argument == column.argument && one.index == column.index)
        };
        if let Some(first) = found.iter().position(same) {
            let Failed(twice) = csv::both_meant(reader, header, first, at, &cell.text);
            problems.extend(twice);
        }
        found.push(Some(column));
    }
    found
}

/// `x`, `w[3]`, `m[1,2]` or `m[1][2]`; or what is wrong, and what to do.
fn of_argument(text: &str, wanted: &[Wanted]) -> Result<Column, (String, String)> {
    let (name, indices) =
        text.split_once('[').map_or((text, None), |(name, rest)| (name.trim_end(), Some(rest)));
    let names: Vec<&str> = wanted.iter().map(|one| &*one.name).collect();
    let Some(argument) = names.iter().position(|own| *own == name) else {
        let message = match text.is_empty() {
            true => "a column has no name".to_string(),
            false => format!("the column `{text}` is no param or input of the model"),
        };
        let help = match closest(name, &names) {
            Some(other) => format!("rename it to `{other}`, if you mean that, or remove it"),
            None => format!("remove it; the model takes {}", listed(&names)),
        };
        return Err((message, help));
    };
    let index = match indices {
        None => Some(Vec::new()),
        Some(rest) => rest.strip_suffix(']').and_then(|rest| {
            let parts = rest.replace("][", ",");
            parts.split(',').map(|part| part.trim().parse().ok()).collect::<Option<Vec<usize>>>()
        }),
    };
    let rank = wanted[argument].rank;
    match index {
        Some(index) if index.len() == rank => Ok(Column { argument, index }),
        _ => {
            let example = match rank {
                0 => format!("`{name}`"),
                1 => format!("`{name}[0]`, `{name}[1]`, ..."),
                _ => format!("`\"{name}[{}]\"`, ...", vec!["0"; rank].join(",")),
            };
            Err((format!("`{text}` is no element of `{name}`"), format!("its columns are {example}")))
        }
    }
}

/// An argument that has columns: its place, its lengths, and the columns of its elements in their order.
fn whole(
    reader: &mut Reader<'_>,
    header: &Row,
    at: usize,
    one: &Wanted,
    columns: &[Option<Column>],
    problems: &mut Vec<Problem>,
) -> Option<(usize, Vec<usize>, Vec<usize>)> {
    let mut own: Vec<(&[usize], usize)> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        if let Some(column) = column.as_ref().filter(|column| column.argument == at) {
            own.push((&column.index, place));
        }
    }
    own.sort_unstable();
    own.dedup_by_key(|(index, _)| *index);
    let last = own.last()?.1;
    let length = |axis: usize| own.iter().map(|(index, _)| index[axis] + 1).max().unwrap_or(0);
    let shape: Vec<usize> = (0..one.rank).map(length).collect();
    // Without gaps, the elements are all there, in their order.
    let mut index = vec![0; one.rank];
    for (found, _) in &own {
        if *found != index {
            break;
        }
        for axis in (0..one.rank).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] || axis == 0 {
                break;
            }
            index[axis] = 0;
        }
    }
    let elements: usize = shape.iter().try_fold(1_usize, |all, &n| all.checked_mul(n)).unwrap_or(usize::MAX);
    if own.len() != elements {
        let index: Vec<String> = index.iter().map(usize::to_string).collect();
        let missing = format!("{}[{}]", one.name, index.join(","));
        let message = format!("there is `{}`, but no column `{missing}`", header.text(last));
        let problem = reader.problem("PAL0287", message, header.cells[last].range.clone());
        problems.push(problem.help("every element needs a column, counted from 0"));
        return None;
    }
    Some((at, shape, own.into_iter().map(|(_, place)| place).collect()))
}
