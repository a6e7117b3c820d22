//! Derivatives along a way that a model takes only at these inputs.
//!
//! Input: a model of which a comparison was suspicious (an exact tie, or a zero beside a tiny threshold) when it ran, and how to get its derivative. Output:
//! nothing, or why that derivative is not the model's.
//!
//! The comparisons are those of the model itself: a derivative has others, such as the conventions at kinks, which are no decisions. What is differentiated by is moved, data are
//! not.

use palinode_core::points::{self, Parts};
use palinode_ir::Program;
use palinode_ir::interp::{Code, Datum, Limits};

use crate::execute;
use crate::gradient::{NoGradient, entry};

/// How many copies of the derivative's numbers there are at once, at most: the one that is looked at, the one at the point again, four to the sides and the four before them, one on its way, and two of the points. The logs of
/// comparisons are beside it.
pub(crate) const COPIES: usize = 13;

/// Looks to the sides of the inputs at `wrt`. `program` gives the value; `derivative` gives all numbers of the derivative at some inputs, `of` says what these numbers are, and the highest order.
pub(crate) fn check(
    program: &Program,
    (inputs, wrt): (&[Datum<f64>], &[usize]),
    limits: &Limits,
    of: (Parts, usize),
    mut derivative: impl FnMut(&[Datum<f64>]) -> Result<Vec<f64>, NoGradient>,
) -> Result<(), NoGradient> {
    let code = Code::new(program);
    let point: Vec<f64> = wrt.iter().filter_map(|&at| inputs[at].as_vector()).flatten().copied().collect();
    points::verified(&point, of, |point, parts| {
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
