//! Operations with a rule of their own: many inputs, many outputs, one node on the tape.
//!
//! Input: the values of the outputs and a rule that carries output cotangents to input cotangents.
//! Output: `Var`s for the outputs. Dense linear algebra is built from this, and so can be anything else whose
//! adjoint is known as a whole: a solver, a lookup table, a call into another language.
//!
//! The rule is stated once, in reverse. Forward sweeps over a tape derive from it, one output at a time,
//! unless the operation says how to do better.

use crate::error::Error;
use palinode_num::Scalar;

/// The rule of a custom operation, with whatever it saved for the reverse sweep.
///
/// ```
/// use palinode_core::{CustomRule, Error, Var, custom, value_and_grad};
///
/// /// The mean and the spread of a sample, as one node.
/// struct Moments { deviations: Vec<f64> }
/// impl CustomRule<f64> for Moments {
///     fn name(&self) -> &'static str { "moments" }
///     fn reverse(&self, outputs: &[f64], inputs: &mut [f64]) -> Result<(), Error> {
///         let n = inputs.len() as f64;
///         for (input, deviation) in inputs.iter_mut().zip(&self.deviations) {
///             *input += outputs[0] / n + outputs[1] * 2.0 * deviation / n;
///         }
///         Ok(())
///     }
/// }
/// let (variance, g) = value_and_grad(|x| {
///     let values: Vec<f64> = x.iter().map(|v| v.value()).collect();
///     let mean = values.iter().sum::<f64>() / 3.0;
///     let deviations: Vec<f64> = values.iter().map(|v| v - mean).collect();
///     let variance = deviations.iter().map(|d| d * d).sum::<f64>() / 3.0;
///     custom(x, &[mean, variance], Moments { deviations })[1]
/// }, &[1.0, 2.0, 6.0]).unwrap();
/// assert_eq!((variance, g), (14.0 / 3.0, vec![-4.0 / 3.0, -2.0 / 3.0, 2.0]));
/// ```
pub trait CustomRule<S>: Send + 'static {
    /// How tables call it.
    fn name(&self) -> &'static str;

    /// Adds to `inputs` what the cotangents `outputs` contribute: `inputs += J^T outputs`.
    ///
    /// An error where no such derivative exists; the sweep stops and its caller gets it.
    fn reverse(&self, outputs: &[S], inputs: &mut [S]) -> Result<(), Error>;

    /// Writes to `outputs` the tangents `J inputs`. By default this is derived from [`CustomRule::reverse`],
    /// one call per output.
    fn forward(&self, inputs: &[S], outputs: &mut [S]) -> Result<(), Error>
    where
        S: Scalar,
    {
        for k in 0..outputs.len() {
            let mut seed = vec![S::zero(); outputs.len()];
            seed[k] = S::one();
            let mut row = vec![S::zero(); inputs.len()];
            self.reverse(&seed, &mut row)?;
            outputs[k] = row
                .iter()
                .zip(inputs)
                .fold(S::zero(), |sum, (&slope, &tangent)| slope.strong_add_to(tangent, sum));
        }
        Ok(())
    }

    /// The heap bytes that the rule itself has saved.
    fn saved_bytes(&self) -> usize {
        0
    }
}

/// A rule from a closure that adds to the cotangents of inputs what those of outputs contribute. For rules
/// that may fail, or that save much, implement [`CustomRule`].
///
/// ```
/// use palinode_core::{Var, custom, custom_rule, grad};
///
/// let g = grad(|x| {
///     let factor = 3.0;
///     let tripled = custom_rule("tripled", move |outputs: &[f64], inputs| inputs[0] += factor * outputs[0]);
///     custom(x, &[factor * x[0].value()], tripled)[0]
/// }, &[2.0]).unwrap();
/// assert_eq!(g, [3.0]);
/// ```
pub fn custom_rule<S>(
    name: &'static str,
    reverse: impl Fn(&[S], &mut [S]) + Send + 'static,
) -> impl CustomRule<S> {
    ByClosure(name, reverse)
}

struct ByClosure<F>(&'static str, F);

impl<S, F: Fn(&[S], &mut [S]) + Send + 'static> CustomRule<S> for ByClosure<F> {
    fn name(&self) -> &'static str {
        self.0
    }
    fn reverse(&self, outputs: &[S], inputs: &mut [S]) -> Result<(), Error> {
        (self.1)(outputs, inputs);
        Ok(())
    }
}

/// A custom operation on a tape.
pub(crate) struct CustomNode<S> {
    /// The nodes it reads, in the order of its arguments; [`SINK`](super::SINK) stands for a constant.
    pub(super) inputs: Vec<u32>,
    /// The first of its outputs' nodes.
    pub(super) first_output: u32,
    pub(super) outputs: u32,
    pub(super) rule: Box<dyn CustomRule<S>>,
}

impl<S: Scalar> CustomNode<S> {
    /// One more than the last output's node.
    pub(crate) fn end(&self) -> u32 {
        self.first_output + self.outputs
    }

    /// How tables call it.
    pub(crate) fn name(&self) -> &'static str {
        self.rule.name()
    }

    /// Gives its nodes other numbers, in the same order; its outputs stay together.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.first_output = number(self.first_output);
        self.inputs.iter_mut().for_each(|input| *input = number(*input));
    }

    fn output_range(&self) -> core::ops::Range<usize> {
        self.first_output as usize..self.end() as usize
    }

    /// What these cotangents of its outputs contribute to those of its inputs; `None` if all are zero.
    pub(crate) fn contributions(&self, outputs: &[S]) -> Result<Option<Vec<S>>, Error> {
        if outputs.iter().all(|c| c.vanishes()) {
            return Ok(None);
        }
        let mut inputs = vec![S::zero(); self.inputs.len()];
        self.rule.reverse(outputs, &mut inputs)?;
        Ok(Some(inputs))
    }

    pub(crate) fn reverse<const N: usize>(&self, cotangents: &mut [[S; N]]) -> Result<(), Error> {
        for lane in 0..N {
            let outputs: Vec<S> = cotangents[self.output_range()].iter().map(|c| c[lane]).collect();
            let Some(inputs) = self.contributions(&outputs)? else { continue };
            for (&node, contribution) in self.inputs.iter().zip(inputs) {
                let target = &mut cotangents[node as usize][lane];
                *target = *target + contribution;
            }
        }
        Ok(())
    }

    pub(crate) fn forward<const N: usize>(&self, tangents: &mut [[S; N]]) -> Result<(), Error> {
        for lane in 0..N {
            let inputs: Vec<S> = self.inputs.iter().map(|&node| tangents[node as usize][lane]).collect();
            if inputs.iter().all(|t| t.vanishes()) {
                // The outputs' tangents are zero already.
                continue;
            }
            let mut outputs = vec![S::zero(); self.outputs as usize];
            self.rule.forward(&inputs, &mut outputs)?;
            for (target, tangent) in tangents[self.output_range()].iter_mut().zip(outputs) {
                target[lane] = tangent;
            }
        }
        Ok(())
    }

    /// The bytes that a sweep needs for a while: the cotangents that its rule is given and gives. What the
    /// rule takes itself is not known.
    pub(crate) fn scratch_bytes(&self) -> usize {
        (self.inputs.len() + self.outputs as usize) * size_of::<S>()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.inputs.capacity() * size_of::<u32>() + size_of_val(&*self.rule) + self.rule.saved_bytes()
    }
}
