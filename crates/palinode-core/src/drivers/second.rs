//! Second derivatives by nesting: forward over reverse for one direction, reverse over reverse for all.

use super::first::parts_of;
use crate::confusion::Seeded;
use crate::dual::Dual;
use crate::error::{Error, same_length};
use crate::finite;
use crate::points::{Parts, add_parts, verified};
use crate::tape::{Record, Tape, Var};
use palinode_num::Scalar;

/// The value, the gradient and the Hessian times `v`, by forward over reverse: about twice the cost of a
/// gradient.
///
/// ```
/// let (y, g, hv) = palinode_core::hvp(|x| x[0] * x[0] * x[1], &[3.0, 2.0], &[1.0, 0.0])?;
/// assert_eq!((y, g, hv), (18.0, vec![12.0, 9.0], vec![4.0, 6.0]));
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[allow(clippy::type_complexity)] // (value, gradient, product) says more than a name would
pub fn hvp<S: Scalar>(
    mut f: impl FnMut(&[Var<Dual<S>>]) -> Var<Dual<S>>,
    x: &[S],
    v: &[S],
) -> Result<(S, Vec<S>, Vec<S>), Error> {
    same_length("the direction", x.len(), v.len())?;
    finite::inputs(x)?;
    finite::given("direction", v)?;
    let mut tape = Tape::new();
    let mut gradient_of = |x: &[S], v: &dyn Fn(usize) -> S| {
        let point: Vec<Dual<S>> = x.iter().enumerate().map(|(i, &x)| Dual::new(x, v(i))).collect();
        let mut gradient = vec![Dual::zero(); x.len()];
        tape.gradient_once(&mut f, &point, &mut gradient).map(|value| (value, gradient))
    };
    let seeded = Seeded::<Dual<S>>::new();
    seeded.check("hvp", x, |x| {
        let tangent = |dual: &Dual<S>| dual.tangent;
        gradient_of(x, &|_| S::zero()).map_or_else(
            |_| Vec::new(),
            |(value, gradient)| {
                let tangents: Vec<S> = gradient.iter().chain([&value]).map(tangent).collect();
                parts_of(&tangents)
            },
        )
    })?;
    verified(x, (Parts::ByInput, 2), |x, mut parts| {
        let (value, gradient) = gradient_of(x, &|i| v[i])?;
        let (gradient, product): (Vec<S>, Vec<S>) =
            gradient.into_iter().map(|g| (g.value, g.tangent)).unzip();
        finite::derivatives("product of the Hessian and the direction at input", 0, &product)?;
        add_parts(parts.as_deref_mut(), &gradient);
        add_parts(parts, &product);
        Ok((value.value, gradient, product))
    })
}

/// The Hessian, a row per input. The gradient itself is recorded once (reverse over reverse), then swept.
///
/// ```
/// let h = palinode_core::hessian(|x| x[0] * x[0] * x[1], &[3.0, 2.0])?;
/// assert_eq!(h, [[4.0, 6.0], [6.0, 0.0]]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn hessian<S: Scalar>(
    mut f: impl FnMut(&[Var<Var<S>>]) -> Var<Var<S>>,
    x: &[S],
) -> Result<Vec<Vec<S>>, Error> {
    finite::inputs(x)?;
    verified(x, (Parts::ByInput, 2), |x, mut parts| {
        record_gradient(&mut f, x, |record| {
            let hessian = record.jacobian()?;
            add_parts(parts.as_deref_mut(), record.values());
            add_parts(parts, &hessian.concat());
            Ok(hessian)
        })
    })
}

/// Records the computation of a gradient, reverse sweep included, as it is at this point, and hands that
/// recording over.
pub(super) fn record_gradient<S: Scalar, R>(
    f: impl FnOnce(&[Var<Var<S>>]) -> Var<Var<S>>,
    x: &[S],
    use_record: impl FnOnce(Record<'_, S>) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut inner_error = None;
    let mut outer = Tape::new();
    let record = outer.record_once(x, |x: &[Var<S>]| {
        let mut gradient = vec![Var::zero(); x.len()];
        match Tape::new().gradient_once(f, x, &mut gradient) {
            Ok(_) => gradient,
            Err(error) => {
                inner_error = Some(error);
                Vec::new()
            }
        }
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
