//! Derivatives along a way that a model takes only at these inputs.
//!
//! Input: whether a comparison of the model was suspicious (an exact tie, or a zero beside a tiny threshold) when it ran, and how to get its derivative. Output:
//! nothing, or why that derivative is not the model's.
//!
//! The comparisons are those of the model itself: a derivative has others, such as the conventions at kinks, which are no decisions. What is differentiated by is moved, data are
//! not.

use palinode_core::points::{self, Parts};
use palinode_ir::Program;
use palinode_ir::interp::{Code, Datum, Limits};

use crate::execute;
use crate::gradient::{NoGradient, entry};

/// The numbers that is differentiated by.
pub(crate) fn point(inputs: &[Datum<f64>], wrt: &[usize]) -> impl Iterator<Item = f64> {
    wrt.iter().filter_map(|&at| inputs[at].as_vector()).flatten().copied()
}

/// Looks to the sides of the inputs at `wrt`, if that is needed. `derivative` gives all numbers of the derivative at some inputs, `of` says what these numbers are, and the highest order.
pub(crate) fn check(
    is_suspicious: bool,
    program: &Program,
    (inputs, wrt): (&[Datum<f64>], &[usize]),
    limits: &Limits,
    of: (Parts, usize),
    mut derivative: impl FnMut(&[Datum<f64>]) -> Result<Vec<f64>, NoGradient>,
) -> Result<(), NoGradient> {
    if !is_suspicious {
        return Ok(());
    }
    let code = Code::new(program);
    points::verified(&point(inputs, wrt).collect::<Vec<f64>>(), of, |point, parts| {
        let mut moved = inputs.to_vec();
        let places = wrt.iter().flat_map(|&at| (0..inputs[at].elements()).map(move |element| (at, element)));
        places.zip(point).for_each(|((at, element), &x)| *entry(&mut moved[at], element) = x);
        execute::run(&code, &moved, limits).map_err(NoGradient::Run)?;
        if let Some(parts) = parts {
            parts.extend(points::unseen(|| derivative(&moved))?);
        }
        Ok(())
    })
}
