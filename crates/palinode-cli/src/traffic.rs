//! What loops compute and how much they move: whether a model is bound by arithmetic or by memory.

use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, LoopTraffic, Refusal};
use palinode_ir::{Program, Span};
use serde_json::{Value, json};

use crate::numbers;
use crate::table::{Cell, headings, label, layout};

/// An elementary function takes about as long as so many additions.
const OF_FUNCTION: f64 = 20.0;

/// The loops of a program as machine code runs them, and the whole program.
pub(crate) struct Moved(Result<(Vec<LoopTraffic>, LoopTraffic), Refusal>);

impl Moved {
    pub(crate) fn new(program: &Program, inputs: &[Datum<f64>]) -> Moved {
        Moved(loops::lower(program, inputs, true).map(|form| form.traffic()))
    }

    /// A row for every loop, and one for everything; a line that says why there is none.
    pub(crate) fn table(&self, line: &dyn Fn(Span) -> Option<usize>) -> String {
        let (loops, all) = match &self.0 {
            Ok(found) => found,
            Err(refusal) => {
                let line = line(refusal.span).map_or(String::new(), |line| format!(" (line {line})"));
                return format!("{}not counted, because of {}{line}\n\n", label("moves"), refusal.what);
            }
        };
        if all.traffic.bytes() == 0 {
            return String::new();
        }
        let mut rows = vec![headings("moves|rounds|flops|functions|read|written|flops per byte")];
        rows.extend(loops.iter().map(|found| {
            let place = line(found.span).map_or("a loop".to_string(), |line| format!("line {line}"));
            row(place, Some(found.rounds), found)
        }));
        rows.push(row("in all".to_string(), None, all));
        layout(rows, "  ") + "\n"
    }

    pub(crate) fn json(&self, line: &dyn Fn(Span) -> Option<usize>) -> Value {
        let Ok((loops, all)) = &self.0 else { return Value::Null };
        let one = |found: &LoopTraffic| {
            let LoopTraffic { span, rounds, traffic, at_least } = found;
            json!({
                "line": line(*span),
                "rounds": rounds,
                "flops": traffic.flops,
                "functions": traffic.functions,
                "bytes_read": traffic.read,
                "bytes_written": traffic.written,
                "flops_per_byte": traffic.intensity(OF_FUNCTION),
                "at_least": at_least,
            })
        };
        json!({ "loops": loops.iter().map(one).collect::<Vec<_>>(), "all": one(all) })
    }
}

fn row(place: String, rounds: Option<u64>, found: &LoopTraffic) -> Vec<Cell<'static>> {
    let LoopTraffic { traffic, at_least, .. } = found;
    let more = if *at_least { ">= " } else { "" };
    let none = |n: u64, text: String| if n == 0 { String::new() } else { format!("{more}{text}") };
    let intensity = traffic.intensity(OF_FUNCTION).map_or(String::new(), |flops| numbers::short(flops, 2));
    let numbers = [
        rounds.map_or(String::new(), |rounds| format!("{more}{}", numbers::count(rounds))),
        none(traffic.flops, numbers::count(traffic.flops)),
        none(traffic.functions, numbers::count(traffic.functions)),
        none(traffic.read, numbers::size(traffic.read)),
        none(traffic.written, numbers::size(traffic.written)),
        intensity,
    ];
    let cells = numbers.into_iter().map(|text| Cell::new(text).right());
    core::iter::once(Cell::new(place)).chain(cells).collect()
}
