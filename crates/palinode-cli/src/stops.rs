//! How close `while` loops came to another number of rounds, where the gradient may jump.
//!
//! Input: a program and its inputs. Output: for each loop by how much its condition held before the last
//! round and failed at the end, and which argument would have to move how far to change that, to first order.

use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::transform::{self, Margins};
use palinode_ir::{Program, Span, passes};
use serde_json::{Value, json};

use crate::model::only;
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

/// How the loops of a program end, ready to be run.
pub(crate) struct Stops<'a> {
    code: Option<Code>,
    loops: Vec<Loop>,
    wrt: &'a [usize],
}

/// A loop and its margins.
struct Loop {
    margins: Margins,
    /// The gradients of both margins, if it is asked what would change them.
    slopes: Vec<Code>,
}

impl<'a> Stops<'a> {
    /// With `wrt`, also for what would change how loops end.
    pub(crate) fn new(program: &Program, wrt: Option<&'a [usize]>) -> Stops<'a> {
        let (program, found) = transform::with_margins(&passes::inline(program));
        if found.is_empty() {
            return Stops { code: None, loops: Vec::new(), wrt: &[] };
        }
        let slopes = |margins: &Margins| match wrt {
            Some(wrt) => {
                [margins.last, margins.stop].into_iter().filter_map(|at| slopes(&program, at, wrt)).collect()
            }
            None => Vec::new(),
        };
        let loops = found.into_iter().map(|margins| Loop { slopes: slopes(&margins), margins }).collect();
        Stops { code: Some(Code::new(&passes::simplify(&program))), loops, wrt: wrt.unwrap_or(&[]) }
    }

    /// How they ended. What cannot be found out is left out: the model itself has run.
    pub(crate) fn run(&self, inputs: &[Datum<f64>], limits: &Limits) -> Vec<Stop> {
        let limits = Limits { trap_nonfinite: false, ..*limits };
        let ran = self.code.as_ref().and_then(|code| code.run(inputs, &limits).ok());
        let Some(results) = ran else { return Vec::new() };
        let number = |at: usize| results[at].as_real().unwrap_or(f64::NAN);
        let stop = |Loop { margins, slopes }: &Loop| {
            let (last, stop) = (number(margins.last), -number(margins.stop));
            let nearest = slopes.iter().filter_map(|code| nearest(code, self.wrt, inputs, &limits));
            Stop { span: margins.span, last, stop, nearest: nearest.min_by(|a, b| a.1.total_cmp(&b.1)) }
        };
        self.loops.iter().map(stop).collect()
    }
}

/// The gradient of one result.
fn slopes(program: &Program, result: usize, wrt: &[usize]) -> Option<Code> {
    let derived = transform::value_and_grad(&only(program, result), wrt).ok()?;
    Some(Code::new(&passes::simplify(&derived)))
}

/// The argument that brings a margin to zero with the smallest move, as a part of itself.
fn nearest(slopes: &Code, wrt: &[usize], inputs: &[Datum<f64>], limits: &Limits) -> Option<(usize, f64)> {
    let found = slopes.run(inputs, limits).ok()?;
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
                format!(
                    "the condition failed at once, by {} (relative to its larger side){moves}",
                    short(self.stop)
                )
            }
            held => format!(
                "the condition failed by {} (relative to its larger side), after holding by {}{moves}",
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
                "the loop{place} almost {what} by only {}; where the number of rounds changes, the gradient may jump",
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
