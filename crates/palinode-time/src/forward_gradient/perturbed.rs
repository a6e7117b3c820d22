//! Parameters that are duals while they are read.
//!
//! Input: parameters and a draw of directions. Output: `p.get(i)`, a number with the `i`-th entries of all
//! directions as tangents, made on the spot. So there is never a second copy of the parameters.

use super::directions::Draw;
use palinode_core::rules::{Binary, Multiply};
use palinode_core::{AccumulateProducts, Accumulator, Compensated, DualN, Naive, Summand};

/// Parameters that move in `K` directions; numbers of type `S`.
#[derive(Debug)]
pub struct Perturbed<'p, 'a, const K: usize, S = f64> {
    values: &'p [S],
    /// None for parameters that do not move.
    draw: Option<&'p Draw<'a, K>>,
}

impl<'p, 'a, const K: usize, S: Summand> Perturbed<'p, 'a, K, S> {
    pub(crate) fn new(values: &'p [S], draw: &'p Draw<'a, K>) -> Self {
        Perturbed { values, draw: Some(draw) }
    }

    pub(crate) fn at_rest(values: &'p [S]) -> Self {
        Perturbed { values, draw: None }
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Parameter `i`, with its tangents.
    ///
    /// # Panics
    /// If there is none of that number.
    #[inline]
    pub fn get(&self, i: usize) -> DualN<S, K> {
        match self.draw {
            Some(draw) => DualN::new(self.values[i], draw.at(i).map(S::from_f64)),
            None => DualN::lift(self.values[i]),
        }
    }

    /// The inner product of `x` and as many parameters from `start` on, as a layer of a network computes it,
    /// accumulated as asked for: with [`Accumulator::Naive`] one product after the other; with
    /// [`Accumulator::Exact`] value and slopes are rounded once each, however many parameters there are.
    ///
    /// ```
    /// use palinode_core::{Accumulator, DualN, Key};
    /// use palinode_time::{Directions, forward_gradient};
    ///
    /// let (p, x) = ([1.0, 1e100, -1e100], [DualN::lift(1.0); 3]);
    /// let f = |how| forward_gradient::<1>(&p, Directions::Rademacher, Key::from_seed(1), |p| p.dot(0, &x, how));
    /// assert_eq!(f(Accumulator::Naive)?.value(), 0.0);
    /// assert_eq!(f(Accumulator::Exact)?.value(), 1.0);
    /// # Ok::<(), palinode_time::EstimateError>(())
    /// ```
    ///
    /// # Panics
    /// If there are not as many parameters.
    pub fn dot(&self, start: usize, x: &[DualN<S, K>], how: Accumulator) -> DualN<S, K> {
        match how {
            Accumulator::Naive => self.dot_by::<Naive<S>>(start, x),
            Accumulator::Compensated => self.dot_by::<Compensated<S>>(start, x),
            Accumulator::Exact => self.dot_by::<S::ExactDot>(start, x),
        }
    }

    fn dot_by<A: AccumulateProducts<S>>(&self, start: usize, x: &[DualN<S, K>]) -> DualN<S, K> {
        let mut value = A::default();
        let mut slopes: [A; K] = core::array::from_fn(|_| A::default());
        for (i, x) in x.iter().enumerate() {
            let p = self.get(start + i);
            value.add_product(p.value, x.value);
            // The row of the rule table, with its strong zero: a tangent of zero adds nothing.
            let z = p.value * x.value;
            let (dp, dx) = (Multiply {}.dx(p.value, x.value, z), Multiply {}.dy(p.value, x.value, z));
            for (lane, slope) in slopes.iter_mut().enumerate() {
                for (tangent, partial) in [(p.tangents[lane], dp), (x.tangents[lane], dx)] {
                    if !tangent.vanishes() && !partial.vanishes() {
                        slope.add_product(tangent, partial);
                    }
                }
            }
        }
        DualN::new(value.total(), slopes.map(|slope| slope.total()))
    }
}
