//! The lengths of an operation's results, from the lengths of its operands.
//!
//! Input: an operation and what is known of its operands. Output: the shape of each result; a length that
//! depends on data is `None`, or the most that it can be. Mistakes of the program (lengths that do not fit)
//! are not looked for here: the run reports them.

use crate::op::{Length, Lengths, Op, lengths};
use crate::plan::buffers::{Ledger, Shape, elements};
use crate::plan::known::Thing;

/// The shapes of the results of an instruction that makes new arrays. A scalar result has shape `[]`.
pub(super) fn result_shapes(op: &Op, args: &[Thing], results: usize, ledger: &Ledger) -> Vec<Shape> {
    let shapes: Vec<Shape> = args.iter().map(|arg| arg.shape(ledger)).collect();
    let ranks: Vec<u8> = shapes.iter().map(|shape| shape.len() as u8).collect();
    let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    let one = |length: &Length| match *length {
        Length::Of(arg, axis) => shapes[arg].get(usize::from(axis)).copied().flatten(),
        Length::Int(arg) => args[arg].most().map(|n| u64::try_from(n).unwrap_or(0)),
        Length::Sum(axis) => shapes.iter().map(|shape| shape[usize::from(axis)]).fold(Some(0), sum),
        Length::Elements => shapes.iter().map(|shape| elements(shape)).fold(Some(0), sum),
        Length::Words(narrow) => elements(&shapes[0]).map(|count| count.div_ceil(narrow.per_word() as u64)),
        Length::Least => shapes[0].iter().copied().reduce(|a, b| Some(a?.min(b?))).flatten(),
    };
    match lengths(op, &ranks) {
        Lengths::Alike => {
            let arrays = shapes.iter().filter(|shape| !shape.is_empty()).cloned();
            vec![arrays.reduce(known_of_both).unwrap_or_default(); results]
        }
        Lengths::Each(each) => each.iter().map(|lengths| lengths.iter().map(one).collect()).collect(),
        Lengths::Inside => unreachable!("`{}` is walked through, not measured", op.name()),
    }
}

/// Lengths that either operand knows; operands of elementwise operations have the same.
fn known_of_both(a: Shape, b: Shape) -> Shape {
    a.into_iter().zip(b).map(|(a, b)| a.or(b)).collect()
}
