//! Second derivatives by nesting: forward over reverse for one direction, reverse over reverse for all.

use super::check;
use crate::dual::Dual;
use crate::error::{Error, same_length};
use crate::tape::{Record, Tape, Var};
use palinode_num::Scalar;

/// The value, the gradient and the Hessian times `v`, by forward over reverse: about twice the cost of a gradient.
///
/// ```
/// let (y, g, hv) = palinode_core::hvp(|x| x[0] * x[0] * x[1], &[3.0, 2.0], &[1.0, 0.0])?;
/// assert_eq!((y, g, hv), (18.0, vec![12.0, 9.0], vec![4.0, 6.0]));
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[allow(clippy::type_complexity)] // (value, gradient, product) says more than a name would
pub fn hvp<S: Scalar<Bool = bool>>(
    f: impl FnOnce(&[Var<Dual<S>>]) -> Var<Dual<S>>,
    x: &[S],
    v: &[S],
) -> Result<(S, Vec<S>, Vec<S>), Error> {
    same_length("the direction", x.len(), v.len())?;
    check::given("direction", v)?;
    let point: Vec<Dual<S>> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, v)).collect();
    let (value, gradient) = Tape::new().value_and_grad(f, &point)?;
    let (gradient, product): (Vec<S>, Vec<S>) = gradient.into_iter().map(|g| (g.value, g.tangent)).unzip();
    check::derivatives("product of the Hessian and the direction at input", 0, &product)?;
    Ok((value.value, gradient, product))
}

/// The Hessian, a row per input. The gradient itself is recorded once (reverse over reverse), then swept.
///
/// ```
/// let h = palinode_core::hessian(|x| x[0] * x[0] * x[1], &[3.0, 2.0])?;
/// assert_eq!(h, [[4.0, 6.0], [6.0, 0.0]]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn hessian<S: Scalar<Bool = bool>>(
    f: impl FnOnce(&[Var<Var<S>>]) -> Var<Var<S>>,
    x: &[S],
) -> Result<Vec<Vec<S>>, Error> {
    record_gradient(f, x, |record| record.jacobian())
}

/// Records the computation of a gradient, reverse sweep included, and hands that recording over.
pub(super) fn record_gradient<S: Scalar<Bool = bool>, R>(
    f: impl FnOnce(&[Var<Var<S>>]) -> Var<Var<S>>,
    x: &[S],
    use_record: impl FnOnce(Record<'_, S>) -> Result<R, Error>,
) -> Result<R, Error> {
    check::inputs(x)?;
    let mut inner_error = None;
    let mut outer = Tape::new();
    let record = outer.record(x, |x: &[Var<S>]| {
        Tape::new().value_and_grad(f, x).map(|(_, gradient)| gradient).unwrap_or_else(|error| {
            inner_error = Some(error);
            Vec::new()
        })
    })?;
    inner_error.map_or(Ok(()), Err)?;
    use_record(record).map_err(|error| match error {
        // The outputs of that recording are the gradient.
        Error::NonFiniteDerivative { output, input, value } => {
            Error::NonFiniteSecondDerivative { first: output, second: input, value }
        }
        other => other,
    })
}
