//! The arrays of a program as a table and as a chart: when they are born, used, changed, and let go.
//!
//! Input: the lifetimes that `palinode_ir::plan` finds, a row for each version of an array. Output: text and
//! JSON. Versions that lie in the same memory, one after the other, are one row for people; programs get each
//! version.

use std::collections::BTreeMap;

use palinode_ir::plan::{Lifetime, Lifetimes, Prediction, StateKind, lifetimes};
use palinode_ir::{self as ir, Elem, Function, Op, Program, Span};
use serde_json::{Value, json};

use crate::chart::{Chart, Life};
use crate::numbers::{self, size};
use crate::table::{Cell, HEADING, headings, layout};

/// The arrays of a program.
pub(crate) struct Arrays {
    all: Lifetimes,
    /// One for each piece of memory, in order of birth.
    rows: Vec<Row>,
    /// Of each point, the first later one that uses its first result.
    users: Vec<Option<usize>>,
    /// How many values are no arrays.
    scalars: usize,
}

/// What an array is called.
#[derive(Clone, Debug, PartialEq)]
enum Name {
    /// As in the model.
    Own(String),
    /// What a loop keeps of each round.
    Log {
        /// The variable that is kept, if it has a name.
        of: Option<String>,
        /// What computes it.
        op: &'static str,
        span: Span,
    },
    Unnamed,
}

/// A piece of memory and what lies in it.
struct Row {
    name: Name,
    /// The number of its first version.
    first: u32,
    state: StateKind,
    shape: String,
    bytes: u64,
    offset: u64,
    born: Option<usize>,
    forward: Option<usize>,
    reverse: Option<usize>,
    kept_for: Option<usize>,
    changed: Vec<usize>,
}

impl Row {
    fn new(versions: &[&Lifetime], name: Name) -> Row {
        let first = versions[0];
        let largest = versions.iter().max_by_key(|one| one.bytes).expect("there is a first");
        let mut changed: Vec<usize> = versions.iter().filter_map(|one| one.consumed_by).collect();
        changed.sort_unstable();
        changed.dedup();
        Row {
            name,
            first: first.value.index() as u32,
            state: first.state,
            shape: largest.shape.as_ref().map_or(String::new(), |shape| shape_text(shape, largest.ty.elem)),
            bytes: largest.bytes,
            offset: first.offset,
            born: first.born,
            forward: versions.iter().filter_map(|one| one.forward).max(),
            reverse: versions.iter().filter_map(|one| one.reverse).max(),
            kept_for: versions.iter().filter_map(|one| one.kept_for).min(),
            changed,
        }
    }

    fn called(&self, place: &dyn Fn(Span) -> Option<usize>) -> String {
        match &self.name {
            Name::Own(name) => name.clone(),
            Name::Log { of: Some(name), .. } => format!("log of {name}"),
            Name::Log { of: None, op, span } => match place(*span) {
                Some(line) => format!("log of {}, line {line}", plain(op)),
                None => format!("log of {}", plain(op)),
            },
            Name::Unnamed => format!("v{}", self.first),
        }
    }

    fn life(&self) -> Life {
        let from = self.born.unwrap_or(0);
        let to = self.forward.max(self.reverse).unwrap_or(from).max(from);
        let kept = self.kept_for.map(|before| (self.forward.unwrap_or(from).max(from), before));
        Life { from, to, kept, bytes: self.bytes }
    }
}

/// The name of an operation for people: that a product is strong is of no interest here.
fn plain(op: &'static str) -> &'static str {
    match op {
        "dim" => "a length",
        _ => op.strip_prefix("strong_").unwrap_or(op),
    }
}

/// The arrays that loops append to, and what they append.
fn logs(main: &Function) -> BTreeMap<ir::Value, Name> {
    let mut made: BTreeMap<ir::Value, (&'static str, Span)> = BTreeMap::new();
    let mut packed: BTreeMap<ir::Value, ir::Value> = BTreeMap::new();
    let mut pushed: Vec<(ir::Value, ir::Value)> = Vec::new();
    main.body.for_each_inst(&mut |inst| {
        made.extend(inst.results.iter().map(|&result| (result, (inst.op.name(), inst.span))));
        if matches!(inst.op, Op::Pack(_)) {
            packed.insert(inst.results[0], inst.args[0]);
        }
        if matches!(inst.op, Op::Push) {
            pushed.push((inst.args[0], inst.args[1]));
        }
    });
    let name = |value: ir::Value| {
        // In fewer bits it is still the same array.
        let value = *packed.get(&value).unwrap_or(&value);
        let (op, span) = made.get(&value).copied().unwrap_or(("state", Span::NONE));
        Name::Log { of: main.name_of(value).map(|name| name.to_string()), op, span }
    };
    pushed.into_iter().map(|(log, value)| (log, name(value))).collect()
}

/// Of each instruction, outer ones first, the first later one that uses its first result.
fn users(main: &Function) -> Vec<Option<usize>> {
    let mut users: Vec<Option<usize>> = Vec::new();
    let mut made: BTreeMap<ir::Value, usize> = BTreeMap::new();
    main.body.for_each_inst(&mut |inst| {
        let at = users.len();
        users.push(None);
        for from in inst.args.iter().filter_map(|arg| made.get(arg)) {
            users[*from].get_or_insert(at);
        }
        made.extend(inst.results.first().map(|&result| (result, at)));
    });
    users
}

fn shape_text(shape: &[u64], elem: Elem) -> String {
    let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
    let kind = match elem {
        Elem::F64 | Elem::F32 => "",
        Elem::Int => " int",
        Elem::Bool => " bool",
    };
    format!("[{}]{kind}", lengths.join(", "))
}

impl Arrays {
    pub(crate) fn new(
        program: &Program,
        prediction: &Prediction,
        kinds: &[StateKind],
        has_gradient: bool,
    ) -> Arrays {
        let all = lifetimes(program, prediction, kinds, has_gradient);
        let mut buffers: BTreeMap<_, Vec<&Lifetime>> = BTreeMap::new();
        for row in &all.rows {
            buffers.entry(row.buffer).or_default().push(row);
        }
        let main = program.main();
        let logs = logs(main);
        let name = |versions: &[&Lifetime]| {
            let log = versions.iter().find_map(|one| logs.get(&one.value).cloned());
            let own = || versions.iter().find_map(|one| one.name.clone()).map(Name::Own);
            log.or_else(own).unwrap_or(Name::Unnamed)
        };
        let mut rows: Vec<Row> =
            buffers.values().map(|versions| Row::new(versions, name(versions))).collect();
        rows.sort_by_key(|row| row.born.map_or(0, |born| born + 1));
        let mut scalars = 0;
        main.body.for_each_definition(&mut |value| scalars += usize::from(main.ty(value).is_scalar()));
        Arrays { all, rows, users: users(main), scalars }
    }

    /// The bytes that are live at the peak: of what was given, of what loops keep, of everything else.
    pub(crate) fn at_peak(&self, program: &Program, prediction: &Prediction) -> (u64, u64, u64) {
        let of = |value: ir::Value| {
            let version = self.all.rows.iter().find(|row| row.value == value)?;
            self.rows.iter().find(|row| row.first as usize == version.buffer.index())
        };
        let (mut given, mut logs) = (0, 0);
        for array in &prediction.live {
            let row = array
                .value
                .filter(|(function, _)| *function == program.entry)
                .and_then(|(_, value)| of(value));
            let sum = match row {
                Some(row) if matches!(row.name, Name::Log { .. }) => &mut logs,
                Some(row) if row.born.is_none() => &mut given,
                Some(_) | None => continue,
            };
            *sum += array.bytes;
        }
        (given, logs, prediction.peak.saturating_sub(given + logs))
    }

    pub(crate) fn arena(&self) -> u64 {
        self.all.arena
    }

    /// The largest rows, in order of birth, and the others.
    fn shown(&self, most: usize) -> (Vec<&Row>, Vec<&Row>) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|&at| (core::cmp::Reverse(self.rows[at].bytes), at));
        let most = if most == 0 { order.len() } else { most };
        let mut is_shown = vec![false; self.rows.len()];
        order.iter().take(most).for_each(|&at| is_shown[at] = true);
        let rows = || self.rows.iter().zip(&is_shown);
        (
            rows().filter(|(_, shown)| **shown).map(|(row, _)| row).collect(),
            rows().filter(|(_, shown)| !**shown).map(|(row, _)| row).collect(),
        )
    }

    pub(crate) fn table(&self, most: usize, place: &dyn Fn(Span) -> Option<usize>) -> String {
        let scalars = numbers::plural(self.scalars as u64, "number");
        if self.rows.is_empty() {
            return format!("  no arrays; {scalars} in registers\n\n");
        }
        let (shown, rest) = self.shown(most);
        let heads = "array|state|shape|bytes|offset|born|forwards|backwards|kept for|changed by";
        let mut rows = vec![headings(heads)];
        for row in shown {
            let last = |at: Option<usize>| self.when(at, place);
            let born = match row.born {
                None => "given".to_string(),
                at => self.when(at, place),
            };
            let kept =
                row.kept_for.map_or(String::new(), |at| self.operation(self.wanted_by(row, at), place));
            rows.push(vec![
                Cell::new(row.called(place)),
                Cell::new(row.state.name()),
                Cell::new(&*row.shape),
                Cell::new(size(row.bytes)).right(),
                Cell::new(numbers::count(row.offset)).right(),
                Cell::new(born),
                Cell::new(last(row.forward)),
                Cell::new(last(row.reverse)),
                Cell::new(kept),
                Cell::new(self.changes(row, place)),
            ]);
        }
        let mut out = layout(rows, "  ");
        if !rest.is_empty() {
            let bytes: u64 = rest.iter().map(|row| row.bytes).sum();
            let word = if rest.len() == 1 { "array" } else { "arrays" };
            out.push_str(&format!("  and {} more {word} of {} together\n", rest.len(), size(bytes)));
        }
        let arena = size(self.all.arena);
        out.push_str(&format!("  and {scalars} in registers; one arena for all arrays takes {arena}\n\n"));
        out
    }

    /// The line of a point; the end for what is a result.
    fn when(&self, at: Option<usize>, place: &dyn Fn(Span) -> Option<usize>) -> String {
        match at {
            None => String::new(),
            Some(at) if at >= self.all.points.len() => "result".to_string(),
            Some(at) => match self.line(at, place) {
                Some(line) => format!("line {line}"),
                None => plain(self.all.points[at].op).to_string(),
            },
        }
    }

    /// The line of a point; of what is around it, or else of what comes next, if nobody wrote it.
    fn line(&self, at: usize, place: &dyn Fn(Span) -> Option<usize>) -> Option<usize> {
        let points = &self.all.points;
        let depth = points[at].depth;
        let around = || points[..at].iter().rev().find(|point| point.depth < depth);
        let next = || points[at..].iter().find(|point| point.depth <= depth && !point.span.is_none());
        place(points[at].span).or_else(|| place(around()?.span)).or_else(|| place(next()?.span))
    }

    /// What an array is kept for; of a log, what uses the entry that is read from it.
    fn wanted_by(&self, row: &Row, at: usize) -> usize {
        let is_read =
            |at: usize| self.all.points.get(at).is_some_and(|point| matches!(point.op, "read" | "reshape"));
        let mut at = at;
        while matches!(row.name, Name::Log { .. }) && is_read(at) {
            match self.users[at] {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// `mul, line 9`.
    fn operation(&self, at: usize, place: &dyn Fn(Span) -> Option<usize>) -> String {
        let Some(point) = self.all.points.get(at) else { return "result".to_string() };
        let line = self.line(at, place).map_or(String::new(), |line| format!(", line {line}"));
        format!("{}{line}", plain(point.op))
    }

    fn changes(&self, row: &Row, place: &dyn Fn(Span) -> Option<usize>) -> String {
        let mut words: Vec<String> = Vec::new();
        for &at in &row.changed {
            let word = self.operation(at, place);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        match words.len() {
            0..=2 => words.join("; "),
            n => format!("{}; {} more", words[0], n - 1),
        }
    }

    pub(crate) fn chart(&self, most: usize, place: &dyn Fn(Span) -> Option<usize>) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let chart = Chart::new(self.all.points.len() + 1, self.all.turn);
        let (shown, _) = self.shown(most);
        let mut rows =
            vec![vec![Cell::new("lifetimes").style(HEADING), Cell::new(chart.heading()).style(HEADING)]];
        rows.extend(
            shown.iter().map(|row| vec![Cell::new(row.called(place)), Cell::new(chart.bar(row.life()))]),
        );
        let lives: Vec<Life> = self.rows.iter().map(Row::life).collect();
        rows.push(vec![Cell::new("bytes").style(HEADING), Cell::new(chart.height(&lives))]);
        format!("{}  {}\n\n", layout(rows, "  "), "█ in use   ░ kept for the reverse sweep")
    }

    /// Each version of each array.
    pub(crate) fn json(&self, place: &dyn Fn(Span) -> Option<usize>) -> Value {
        let point = |at: Option<usize>| {
            let at = at?;
            let Some(point) = self.all.points.get(at) else { return Some(json!({ "result": true })) };
            let way = if at < self.all.turn { "forwards" } else { "backwards" };
            Some(json!({ "point": at, "op": point.op, "line": place(point.span), "way": way }))
        };
        let one = |row: &Lifetime| {
            json!({
                "name": row.name,
                "value": format!("v{}", row.value.index()),
                "buffer": format!("v{}", row.buffer.index()),
                "state": row.state.name(),
                "shape": row.shape,
                "bytes": row.bytes,
                "offset": row.offset,
                "born": point(row.born),
                "forward": point(row.forward),
                "reverse": point(row.reverse),
                "kept_for": point(row.kept_for),
                "changed_by": point(row.consumed_by),
            })
        };
        Value::Array(self.all.rows.iter().map(one).collect())
    }
}
