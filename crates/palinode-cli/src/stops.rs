//! How close `while` loops came to another number of rounds, where the gradient may jump.
//!
//! Input: a program and its inputs. Output: for each loop by how much its condition held before the last round and failed at the end, and which argument would have to move how far to
//! change that, to first order.

use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::transform::{self, Margins};
use palinode_ir::{Program, Span, passes};
use serde_json::{Value, json};

use crate::{numbers, value};

/// A condition that holds or fails by less than this part of its larger side is close.
const CLOSE: f64 = 1e-3;

/// Larger moves than this part of an argument are not spoken of: slopes say nothing about them.
const FAR: f64 = 0.5;

/// How a loop ended.
pub(crate) struct Stop {
    pub(crate) span: Span,
    /// By how much the condition held before the last round.
    last: f64,
    /// By how much it failed at the end.
    stop: f64,
    /// The argument that would have to move least, as a part of itself, and how far.
    nearest: Option<(usize, f64)>,
}

/// How the loops of a program ended. With `wrt`, also what would change that. What cannot be found out is left out: the model itself has run.
pub(crate) fn stops(
    program: &Program,
    inputs: &[Datum<f64>],
    limits: &Limits,
    wrt: Option<&[usize]>,
) -> Vec<Stop> {
    let (program, found) = transform::with_margins(&passes::inline(program));
    if found.is_empty() {
        return Vec::new();
    }
    let limits = Limits { trap_nonfinite: false, ..*limits };
    let Ok(results) = Code::new(&passes::simplify(&program)).run(inputs, &limits) else { return Vec::new() };
    let number = |at: usize| results[at].as_real().unwrap_or(f64::NAN);
    let stop = |margins: &Margins| {
        let (last, stop) = (number(margins.last), -number(margins.stop));
        let nearest = wrt.and_then(|wrt| {
            let both = [margins.last, margins.stop].into_iter();
            both.filter_map(|at| nearest(&program, at, wrt, inputs, &limits))
                .min_by(|a, b| a.1.total_cmp(&b.1))
        });
        Stop { span: margins.span, last, stop, nearest }
    };
    found.iter().map(stop).collect()
}

/// The argument that brings a margin to zero with the smallest move, as a part of itself.
fn nearest(
    program: &Program,
    result: usize,
    wrt: &[usize],
    inputs: &[Datum<f64>],
    limits: &Limits,
) -> Option<(usize, f64)> {
    let mut only = program.clone();
    let entry = only.entry.index();
    let body = &mut only.functions[entry].body;
    body.results = vec![body.results[result]];
    only.outputs = vec![only.outputs[result].clone()];
    let derived = passes::simplify(&transform::value_and_grad(&only, wrt).ok()?);
    let found = Code::new(&derived).run(inputs, limits).ok()?;
    let margin = found[0].as_real()?;
    let norm = |datum: &Datum<f64>| {
        datum.as_vector().map_or(0.0, |data| data.iter().map(|x| x * x).sum::<f64>().sqrt())
    };
    let moves = wrt
        .iter()
        .zip(&found[1..])
        .map(|(&at, slope)| (at, (margin / norm(slope)).abs() / norm(&inputs[at])));
    moves.filter(|(_, part)| part.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
}

impl Stop {
    fn is_close(&self) -> bool {
        self.last.min(self.stop) < CLOSE
    }

    /// How it ended, and what would have changed that; `name` names an argument.
    pub(crate) fn words(&self, name: &dyn Fn(usize) -> String) -> String {
        let short = |x: f64| numbers::short(x, 3);
        let moves = match self.nearest.filter(|(_, part)| *part < FAR) {
            Some((at, part)) => format!(
                "; if `{}` moves by about {} %, the number of rounds changes",
                name(at),
                short(100.0 * part)
            ),
            None => String::new(),
        };
        match self.last {
            // No round was run.
            f64::INFINITY => {
                format!("the condition failed at once, by {} of its larger side{moves}", short(self.stop))
            }
            held => format!(
                "the condition failed by {} of its larger side, after it had held by {}{moves}",
                short(self.stop),
                short(held)
            ),
        }
    }

    /// A warning, if the number of rounds was a close thing.
    pub(crate) fn flag(&self, line: Option<usize>) -> Option<String> {
        let place = line.map_or(String::new(), |line| format!(" in line {line}"));
        let (what, by) = if self.stop < self.last {
            ("went on for another round: its condition failed", self.stop)
        } else {
            ("ended a round earlier: its condition held", self.last)
        };
        self.is_close().then(|| {
            format!(
                "the loop{place} almost {what} by {} only; where the number of rounds changes, the gradient may jump",
                numbers::short(by, 3)
            )
        })
    }

    pub(crate) fn json(&self, line: Option<usize>, name: &dyn Fn(usize) -> String) -> Value {
        json!({
            "line": line,
            "failed_by": value::number(self.stop),
            "held_by": value::number(self.last),
            "close": self.is_close(),
            "nearest": self.nearest.map(|(at, part)| json!({ "name": name(at), "relative_move": part })),
        })
    }
}
