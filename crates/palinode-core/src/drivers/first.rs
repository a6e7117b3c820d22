//! First derivatives, and higher ones of a function of one variable.

use super::LANES;
use crate::confusion::Seeded;
use crate::dual::Dual;
use crate::error::{Error, same_length};
use crate::finite;
use crate::jet::Jet;
use crate::points::{Parts, add_parts, verified};
use crate::tape::{Outputs, Record, Tape, Var};
use palinode_num::Scalar;

/// The gradient of a scalar function.
///
/// ```
/// let g = palinode_core::grad(|x| x[0] * x[0] + 3.0 * x[1], &[2.0, 5.0])?;
/// assert_eq!(g, [4.0, 3.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn grad<S: Scalar>(f: impl FnMut(&[Var<S>]) -> Var<S>, x: &[S]) -> Result<Vec<S>, Error> {
    value_and_grad(f, x).map(|(_, gradient)| gradient)
}

/// The value and the gradient of a scalar function. [`Tape::accumulate`] is for gradients whose every entry
/// is rounded once.
pub fn value_and_grad<S: Scalar>(f: impl FnMut(&[Var<S>]) -> Var<S>, x: &[S]) -> Result<(S, Vec<S>), Error> {
    Tape::new().value_and_grad(f, x)
}

impl<S: Scalar> Tape<S> {
    /// [`value_and_grad`] in this tape's memory: later calls of the same size allocate only the answer.
    pub fn value_and_grad(
        &mut self,
        f: impl FnMut(&[Var<S>]) -> Var<S>,
        x: &[S],
    ) -> Result<(S, Vec<S>), Error> {
        let mut gradient = vec![S::zero(); x.len()];
        let value = self.gradient_into(f, x, &mut gradient)?;
        Ok((value, gradient))
    }

    /// The value, with the gradient written to `gradient`; later calls of the same size allocate nothing,
    /// unless sums are asked for ([`Tape::accumulate`]).
    pub fn gradient_into(
        &mut self,
        mut f: impl FnMut(&[Var<S>]) -> Var<S>,
        x: &[S],
        gradient: &mut [S],
    ) -> Result<S, Error> {
        same_length("the space for the gradient", x.len(), gradient.len())?;
        finite::inputs(x)?;
        verified(x, (Parts::ByInput, 1), |x, parts| {
            let value = self.gradient_once(&mut f, x, gradient)?;
            add_parts(parts, gradient);
            Ok(value)
        })
    }

    /// [`gradient_into`](Self::gradient_into), as it is at this point.
    pub(super) fn gradient_once(
        &mut self,
        f: impl FnOnce(&[Var<S>]) -> Var<S>,
        x: &[S],
        gradient: &mut [S],
    ) -> Result<S, Error> {
        let mut record = self.record_once(x, f)?;
        finite::outputs(record.values())?;
        let value = record.values()[0];
        gradient.copy_from_slice(record.reverse(&[S::one()])?);
        finite::row(0, gradient)?;
        Ok(value)
    }
}

/// Forward mode: the values of a function and their derivatives in the direction `v`.
///
/// ```
/// let (y, dy) = palinode_core::jvp(|x| [x[0] * x[1], x[1]], &[2.0, 5.0], &[1.0, 0.0])?;
/// assert_eq!((y, dy), (vec![10.0, 5.0], vec![5.0, 0.0]));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn jvp<S: Scalar, O: Outputs<S, Dual<S>>>(
    mut f: impl FnMut(&[Dual<S>]) -> O,
    x: &[S],
    v: &[S],
) -> Result<(Vec<S>, Vec<S>), Error> {
    same_length("the direction", x.len(), v.len())?;
    finite::inputs(x)?;
    finite::given("direction", v)?;
    let mut run = |x: &[S], v: &dyn Fn(usize) -> S| {
        let inputs: Vec<Dual<S>> = x.iter().enumerate().map(|(i, &x)| Dual::new(x, v(i))).collect();
        let (mut values, mut tangents) = (Vec::new(), Vec::new());
        f(&inputs).for_each(&mut |y| {
            values.push(y.value);
            tangents.push(y.tangent);
        });
        (values, tangents)
    };
    let seeded = Seeded::<Dual<S>>::new();
    seeded.check("jvp", x, |x| parts_of(&run(x, &|_| S::zero()).1))?;
    verified(x, (Parts::Along, 1), |x, parts| {
        let (values, tangents) = run(x, &|i| v[i]);
        finite::outputs(&values)?;
        finite::derivatives("directional derivative of output", 0, &tangents)?;
        add_parts(parts, &tangents);
        Ok((values, tangents))
    })
}

/// The primals of derivative parts.
pub(super) fn parts_of<S: Scalar>(numbers: &[S]) -> Vec<f64> {
    let mut parts = Vec::new();
    add_parts(Some(&mut parts), numbers);
    parts
}

/// Reverse mode: the values of a function and the cotangents of its inputs for cotangents `u` of its outputs.
///
/// ```
/// let (y, g) = palinode_core::vjp(|x| [x[0] * x[1], x[0]], &[2.0, 5.0], &[1.0, 10.0])?;
/// assert_eq!((y, g), (vec![10.0, 2.0], vec![15.0, 2.0]));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn vjp<S: Scalar, O: Outputs<S>>(
    mut f: impl FnMut(&[Var<S>]) -> O,
    x: &[S],
    u: &[S],
) -> Result<(Vec<S>, Vec<S>), Error> {
    finite::inputs(x)?;
    finite::given("output cotangent", u)?;
    let mut tape = Tape::new();
    verified(x, (Parts::ByInput, 1), |x, parts| {
        let mut record = tape.record_once(x, &mut f)?;
        finite::outputs(record.values())?;
        let gradient = record.reverse(u)?.to_vec();
        finite::derivatives("cotangent of input", 0, &gradient)?;
        add_parts(parts, &gradient);
        Ok((record.values().to_vec(), gradient))
    })
}

/// The Jacobian, a row per output. One recording; sweeps in reverse if there are fewer outputs than inputs,
/// else forward, several at a time.
///
/// ```
/// let j = palinode_core::jacobian(|x| [x[0] * x[1], x[0] - x[1]], &[2.0, 5.0])?;
/// assert_eq!(j, [[5.0, 2.0], [1.0, -1.0]]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn jacobian<S: Scalar, O: Outputs<S>>(
    mut f: impl FnMut(&[Var<S>]) -> O,
    x: &[S],
) -> Result<Vec<Vec<S>>, Error> {
    finite::inputs(x)?;
    let mut tape = Tape::new();
    verified(x, (Parts::ByInput, 1), |x, parts| {
        let record = tape.record_once(x, &mut f)?;
        finite::outputs(record.values())?;
        let jacobian = record.jacobian()?;
        add_parts(parts, &jacobian.concat());
        Ok(jacobian)
    })
}

impl<S: Scalar> Record<'_, S> {
    /// The Jacobian of this recording, a row per output. If the tape adds up by sums ([`Tape::accumulate`]),
    /// all sweeps are in reverse.
    pub fn jacobian(&self) -> Result<Vec<Vec<S>>, Error> {
        let (rows, columns) = (self.output_count(), self.input_count());
        let mut jacobian = vec![vec![S::zero(); columns]; rows];
        if rows <= columns || self.adds_up_by_sums() {
            for start in (0..rows).step_by(LANES) {
                let columns_of_block = self.reverse_many::<LANES>(&unit_block(rows, start))?;
                for (column, lanes) in columns_of_block.iter().enumerate() {
                    for (row, &entry) in jacobian[start..].iter_mut().zip(lanes) {
                        row[column] = entry;
                    }
                }
            }
        } else {
            for start in (0..columns).step_by(LANES) {
                let rows_of_block = self.forward_many::<LANES>(&unit_block(columns, start))?;
                for (row, lanes) in jacobian.iter_mut().zip(&rows_of_block) {
                    for (entry, &lane) in row[start..].iter_mut().zip(lanes) {
                        *entry = lane;
                    }
                }
            }
        }
        jacobian.iter().enumerate().try_for_each(|(output, row)| finite::row(output, row))?;
        Ok(jacobian)
    }
}

/// Unit vectors number `start`, `start + 1`, ... of length `len`, a lane each.
fn unit_block<S: Scalar, const N: usize>(len: usize, start: usize) -> Vec<[S; N]> {
    let mut block = vec![[S::zero(); N]; len];
    for (lane, entry) in block[start..].iter_mut().take(N).enumerate() {
        entry[lane] = S::one();
    }
    block
}

/// The value and the first `K` derivatives of a function of one variable.
///
/// ```
/// let d = palinode_core::derivatives::<f64, 4>(|x| x.powi(3), 2.0)?;
/// assert_eq!(d, [8.0, 12.0, 12.0, 6.0, 0.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn derivatives<S: Scalar, const K: usize>(
    mut f: impl FnMut(Jet<S, K>) -> Jet<S, K>,
    x: S,
) -> Result<Vec<S>, Error> {
    finite::inputs(&[x])?;
    let seeded = Seeded::<Jet<S, K>>::new();
    seeded.check("derivatives", &[x], |x| parts_of(&f(Jet::lift(x[0])).derivatives()[1..]))?;
    verified(&[x], (Parts::ByOrder, K), |x, parts| {
        let derivatives = f(Jet::variable(x[0])).derivatives();
        finite::outputs(&derivatives[..1])?;
        finite::derivatives("derivative of order", 1, &derivatives[1..])?;
        add_parts(parts, &derivatives[1..]);
        Ok(derivatives)
    })
}
