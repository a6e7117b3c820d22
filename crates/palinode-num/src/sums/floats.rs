//! Sums and dot products of slices of floats, by vector instructions.
//!
//! Input: slices. Output: what the definition in [`super`] says, bit by bit. Two blocks are added at a time,
//! so that additions do not wait for each other; the lanes of a block alone fill one or two vectors.

use super::{BLOCK, LANES, Tree};
use crate::machine::{Task, on_this_machine};
use crate::scalar::Scalar;
use crate::scalar::order::combined;

/// Blocks that are added at a time.
const TOGETHER: usize = 2;
/// The rows of lanes in a block.
const ROWS: usize = BLOCK / LANES;

/// The sum of a slice of floats.
pub(crate) fn sum<S: Scalar>(x: &[S]) -> S {
    on_this_machine(Sum(x))
}

/// The dot product of two slices of floats, which have one length.
pub(crate) fn dot<S: Scalar>(a: &[S], b: &[S]) -> S {
    on_this_machine(Dot(a, b))
}

/// A chain. (Only in a task is a fused multiplication and addition an instruction.)
pub(crate) fn chain<S: Scalar>(start: S, count: usize, pair: impl Fn(usize) -> (S, S)) -> S {
    on_this_machine(Chain { start, count, pair })
}

pub(super) struct Chain<S, P> {
    pub(super) start: S,
    pub(super) count: usize,
    pub(super) pair: P,
}

impl<S: Scalar, P: Fn(usize) -> (S, S)> Task for Chain<S, P> {
    type Output = S;
    #[inline(always)]
    fn run(self) -> S {
        let mut sum = self.start;
        for place in 0..self.count {
            let (a, b) = (self.pair)(place);
            sum = a.mul_add(b, sum);
        }
        sum
    }
}

pub(crate) struct Sum<'a, S>(pub(crate) &'a [S]);

impl<S: Scalar> Task for Sum<'_, S> {
    type Output = S;
    #[inline(always)]
    fn run(self) -> S {
        reduced(self.0, self.0, |x, _| x)
    }
}

pub(crate) struct Dot<'a, S>(pub(crate) &'a [S], pub(crate) &'a [S]);

impl<S: Scalar> Task for Dot<'_, S> {
    type Output = S;
    #[inline(always)]
    fn run(self) -> S {
        reduced(self.0, self.1, |x, y| x * y)
    }
}

/// The sum of the terms that are made of corresponding elements.
#[inline(always)]
pub(super) fn reduced<S: Scalar>(a: &[S], b: &[S], term: impl Fn(S, S) -> S + Copy) -> S {
    let b = &b[..a.len()];
    if a.len() <= BLOCK {
        return if a.is_empty() { S::zero() } else { block(a, b, term) };
    }
    let mut tree = Tree::new(S::zero());
    let add = |x: S, y: S| x + y;
    let (mut a, mut b) = (a, b);
    while let (Some((group, rest)), Some((other, others))) =
        (a.split_first_chunk::<{ TOGETHER * BLOCK }>(), b.split_first_chunk())
    {
        let [first, second] = group_sums(group, other, term);
        tree.push(TOGETHER, first + second, add);
        (a, b) = (rest, others);
    }
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        tree.push(1, block(a, b, term), add);
    }
    tree.total(add)
}

/// The sums of some whole blocks.
#[inline(always)]
fn group_sums<S: Scalar>(
    a: &[S; TOGETHER * BLOCK],
    b: &[S; TOGETHER * BLOCK],
    term: impl Fn(S, S) -> S,
) -> [S; TOGETHER] {
    let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
    let mut lanes = [[-S::zero(); LANES]; TOGETHER];
    for row in 0..ROWS {
        for (block, lanes) in lanes.iter_mut().enumerate() {
            let (a, b) = (&a[block * ROWS + row], &b[block * ROWS + row]);
            for l in 0..LANES {
                lanes[l] = lanes[l] + term(a[l], b[l]);
            }
        }
    }
    lanes.map(|mut lanes| combined(&mut lanes))
}

/// The sum of a block, which has an element.
#[inline(always)]
fn block<S: Scalar>(a: &[S], b: &[S], term: impl Fn(S, S) -> S) -> S {
    let ((a_rows, a), (b_rows, b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [-S::zero(); LANES];
    for (a, b) in a_rows.iter().zip(b_rows) {
        for l in 0..LANES {
            lanes[l] = lanes[l] + term(a[l], b[l]);
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
        *lane = *lane + term(a, b);
    }
    combined(&mut lanes)
}
