//! Finiteness checks that every driver shares. What is not finite is noted: where a comparison led to it,
//! `points` looks at that.

use crate::decision::note_undefined;
use crate::error::Error;
use palinode_num::{Scalar, lanes};

/// The primal, if it is infinite or NaN; symbols pass. Nothing but an error depends on it, so it is no look
/// at the number.
fn non_finite<S: Scalar>(x: S) -> Option<f64> {
    let of_lane = |lane: usize| x.glance_at(lane).filter(|value| !value.is_finite());
    // One look at all lanes: one after the other takes as long as what is looked at.
    if const { S::LANES > 1 } && (0..S::LANES).fold(true, |fine, lane| fine & of_lane(lane).is_none()) {
        return None;
    }
    if const { S::LANES > 1 } && lanes::is_grouped() {
        // An error of one sample is none of the others.
        lanes::leave_if(|lane| of_lane(lane).is_some());
        return None;
    }
    (0..S::LANES).find_map(of_lane)
}

/// An error that names the first input which is not finite.
pub(crate) fn inputs<S: Scalar>(x: &[S]) -> Result<(), Error> {
    given("input", x)
}

/// An error that names the first entry of `what` which is not finite.
pub(crate) fn given<S: Scalar>(what: &'static str, x: &[S]) -> Result<(), Error> {
    given_lanes(what, x.as_chunks::<1>().0)
}

/// [`given`], for several at once.
pub(crate) fn given_lanes<S: Scalar, const N: usize>(what: &'static str, x: &[[S; N]]) -> Result<(), Error> {
    let bad = x.iter().enumerate().find_map(|(position, lanes)| {
        lanes.iter().find_map(|&x| non_finite(x)).map(|value| Error::NonFiniteInput { what, position, value })
    });
    bad.map_or(Ok(()), Err)
}

/// An error that names the first output which is not finite.
pub(crate) fn outputs<S: Scalar>(y: &[S]) -> Result<(), Error> {
    first_bad(y).map_or(Ok(()), |(position, value)| Err(Error::NonFiniteOutput { position, value }))
}

/// An error that names the first derivative of output `output` which is not finite.
pub(crate) fn row<S: Scalar>(output: usize, row: &[S]) -> Result<(), Error> {
    first_bad(row).map_or(Ok(()), |(input, value)| Err(Error::NonFiniteDerivative { output, input, value }))
}

/// An error that names the first derivative which is not finite as `what` and its position, counted from
/// `start`.
pub(crate) fn derivatives<S: Scalar>(what: &'static str, start: usize, found: &[S]) -> Result<(), Error> {
    first_bad(found)
        .map_or(Ok(()), |(i, value)| Err(Error::NonFiniteDerivativeOf { what, position: start + i, value }))
}

/// An error if the derivative of output `output` by input `input` is not finite.
pub(crate) fn entry<S: Scalar>(output: usize, input: usize, value: S) -> Result<(), Error> {
    first_bad(&[value]).map_or(Ok(()), |(_, value)| Err(Error::NonFiniteDerivative { output, input, value }))
}

fn first_bad<S: Scalar>(numbers: &[S]) -> Option<(usize, f64)> {
    let bad = numbers.iter().enumerate().find_map(|(i, &x)| non_finite(x).map(|value| (i, value)));
    bad.inspect(|_| note_undefined())
}
