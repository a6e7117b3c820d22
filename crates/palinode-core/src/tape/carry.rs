//! Whether a `Var` still carries a derivative, found by looking back along the tape.
//!
//! Input: a `Var`. Output: false only if every path from it to an input crosses a partial of zero, so that
//! its derivative is zero whatever is asked for. Example: `x*x + y*y + z*z` where all three are 0.
//!
//! Libraries guard divisions by `is_zero`. If such a sum were "not zero" because it is on the tape, they
//! would divide 0 by 0 where the plain program does not.
//!
//! Invariant: the search is bounded, and says "carries" where it gives up.

use super::Var;
use super::arena::{FIRST, LEAF, SINK};
use super::recorder::Recorder;
use super::scope::with_recorder;
use palinode_num::Scalar;
use std::collections::BinaryHeap;

/// How many edges a search looks at. What vanishes does so in the last few operations, or not at all.
const MOST_EDGES: usize = 4096;

impl<S: Scalar> Var<S> {
    /// Whether its derivative can be anything but zero; see the module's documentation.
    pub(crate) fn carries_derivative(self) -> bool {
        let pending = self.parents().into_iter().zip(self.partials());
        // The highest node first: its parents all lie below it.
        let mut ahead: BinaryHeap<u32> = pending
            .filter(|(parent, partial)| *parent != SINK && !partial.vanishes())
            .map(|(p, _)| p)
            .collect();
        if ahead.is_empty() {
            return false;
        }
        with_recorder(self.stamp(), |recorder: &mut Recorder<S>| {
            if recorder.arena.failure().is_some() {
                return true;
            }
            let mut above = recorder.arena.next_node();
            let mut seen = 0;
            for (first_node, parents, partials) in recorder.arena.filled().rev() {
                if parents.is_empty() {
                    continue;
                }
                let (mut node, mut end) = (above, parents.len());
                above = first_node;
                while ahead.peek().is_some_and(|&next| next >= first_node) {
                    let mut start = end - 1;
                    while parents[start] & FIRST == 0 {
                        start -= 1;
                    }
                    node -= 1;
                    seen += end - start;
                    if seen > MOST_EDGES {
                        return true;
                    }
                    if ahead.peek() == Some(&node) {
                        while ahead.peek() == Some(&node) {
                            ahead.pop();
                        }
                        // An input, or the output of a custom operation.
                        if parents[start] == LEAF {
                            return true;
                        }
                        let edges = parents[start..end].iter().zip(&partials[start..end]);
                        ahead.extend(
                            edges.filter(|(_, partial)| !partial.vanishes()).map(|(p, _)| p & !FIRST),
                        );
                    }
                    end = start;
                }
            }
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Dual, Tape, Var};

    #[test]
    fn a_sum_of_squares_at_zero_carries_nothing() {
        let f = |x: &[Var<f64>]| {
            let squares = x.iter().fold(Var::lift(0.0), |sum, &x| sum + x * x);
            assert!(squares.is_active() && !squares.carries_derivative());
            assert!(!(squares.sqrt() * 2.0).carries_derivative());
            assert!(x[0].carries_derivative() && (squares + x[4]).carries_derivative());
            assert!(!Var::lift(0.0).carries_derivative());
            squares
        };
        Tape::new().record(&[0.0; 5], f).unwrap();
    }

    #[test]
    fn the_second_order_of_a_square_is_carried() {
        let f = |x: &[Var<Dual<f64>>]| {
            let squares = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
            assert!(squares.carries_derivative());
            squares
        };
        Tape::new().record(&[Dual::new(0.0, 1.0); 3], f).unwrap();
    }

    #[test]
    fn a_search_across_chunks_ends() {
        let f = |x: &[Var<f64>]| {
            let zero = x[0] * x[0] + x[1] * 0.0 + x[2] * 0.0;
            assert!(!zero.carries_derivative());
            let far = (0..300).fold(x[0] + x[1] + x[2], |far, _| far * x[0] + x[1] * x[2]);
            assert!(far.carries_derivative());
            assert!(!(zero * zero + zero).carries_derivative());
            far
        };
        Tape::new().record(&[0.0, 1.0, 2.0], f).unwrap();
    }
}
