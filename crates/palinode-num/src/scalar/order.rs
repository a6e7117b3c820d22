//! Sums, dot products and chains as [`crate::sums`] defines them, over any number: what the methods of
//! [`Scalar`] do by default.
//!
//! Input: terms or pairs by index. Output: one number.

use super::{Accumulator, Scalar};
use crate::machine::{Task, on_this_machine};

/// The elements of a block.
pub const BLOCK: usize = 1024;
/// The lanes of a block.
pub const LANES: usize = 16;

/// The sum of the terms at places 0 to `count`.
pub(crate) fn sum_over<S: Scalar>(count: usize, term: impl Fn(usize) -> S) -> S {
    if count == 0 { S::zero() } else { tree(0, count, &term) }
}

fn tree<S: Scalar>(from: usize, count: usize, term: &impl Fn(usize) -> S) -> S {
    if count <= BLOCK {
        return block(from, count, term);
    }
    let first = BLOCK * (count.div_ceil(BLOCK).next_power_of_two() / 2);
    tree(from, first, term) + tree(from + first, count - first, term)
}

fn block<S: Scalar>(from: usize, count: usize, term: &impl Fn(usize) -> S) -> S {
    let mut lanes = [S::zero(); LANES];
    for (place, lane) in lanes.iter_mut().enumerate().take(count) {
        *lane = term(from + place);
    }
    let end = from + count;
    for start in (from + LANES..end).step_by(LANES) {
        for (lane, place) in lanes.iter_mut().zip(start..end) {
            *lane = *lane + term(place);
        }
    }
    combined(&mut lanes[..count.min(LANES)])
}

/// The sum of lanes that are present.
#[inline(always)]
pub(crate) fn combined<S: Scalar>(lanes: &mut [S]) -> S {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half.min(lanes.len().saturating_sub(half)) {
            lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The sum of strong products.
pub(crate) fn strong_dot_over<S: Scalar>(count: usize, pair: impl Fn(usize) -> (S, S)) -> S {
    match knowledge(count, &pair) {
        Knowledge::AllFinite => S::dot_over(count, pair),
        Knowledge::Symbols | Knowledge::SomeInfinite if S::DEPTH == 0 => S::sum_over(count, |place| {
            let (a, b) = pair(place);
            a.strong_mul(b)
        }),
        // A tape does not compute while it asks for terms.
        Knowledge::Symbols | Knowledge::SomeInfinite => {
            let products: Vec<S> = (0..count).map(pair).map(|(a, b)| a.strong_mul(b)).collect();
            S::sum_of(&products)
        }
    }
}

/// The same, accumulated as asked for.
pub(super) fn strong_dot_with_over<S: Scalar>(
    count: usize,
    how: Accumulator,
    pair: impl Fn(usize) -> (S, S),
) -> S {
    if how == Accumulator::Naive {
        return strong_dot_over(count, pair);
    }
    match knowledge(count, &pair) {
        Knowledge::AllFinite => S::dot_with_over(count, how, pair),
        // Whether a symbol is zero is not known, so its products must stay strong.
        Knowledge::Symbols => strong_dot_over(count, pair),
        Knowledge::SomeInfinite if S::DEPTH == 0 => S::dot_with_over(count, how, |place| {
            let (a, b) = pair(place);
            if zero_wins(a, b) { (S::zero(), S::zero()) } else { (a, b) }
        }),
        Knowledge::SomeInfinite => {
            let counts = |&(x, y): &(S, S)| !x.vanishes() && !y.vanishes();
            // A zero with derivatives does not vanish, and its value wins all the same: their strong product
            // is a term of the sum.
            let factors = |(x, y)| if zero_wins(x, y) { (S::strong_mul(x, y), S::one()) } else { (x, y) };
            let (a, b): (Vec<S>, Vec<S>) = (0..count).map(pair).filter(counts).map(factors).unzip();
            S::dot_with(&a, &b, how)
        }
    }
}

/// The chain without the products in which a zero wins.
pub(crate) fn strong_chain_over<S: Scalar>(start: S, count: usize, pair: impl Fn(usize) -> (S, S)) -> S {
    let pairs = || (0..count).map(&pair);
    match knowledge(count, &pair) {
        Knowledge::AllFinite => S::chain_over(start, count, pair),
        Knowledge::Symbols => pairs().fold(start, |sum, (a, b)| sum + a.strong_mul(b)),
        Knowledge::SomeInfinite => pairs().fold(start, |sum, (a, b)| {
            if !zero_wins(a, b) {
                a.mul_add(b, sum)
            } else if a.vanishes() || b.vanishes() {
                sum
            } else {
                // A zero that has derivatives. Taking +0 away changes no bit of the value; adding it could.
                sum - (-a).strong_mul(b)
            }
        }),
    }
}

/// What is known of factors. Glances: that zeros win is a convention of the rules, and no decision of the
/// program.
enum Knowledge {
    AllFinite,
    SomeInfinite,
    /// Whether some of them are zero is not known.
    Symbols,
}

fn knowledge<S: Scalar>(count: usize, pair: &impl Fn(usize) -> (S, S)) -> Knowledge {
    let factors = || (0..count).flat_map(|place| <[S; 2]>::from(pair(place)));
    if factors().all(is_finite) {
        Knowledge::AllFinite
    } else if factors().any(|x| x.glance_at(0).is_none()) {
        Knowledge::Symbols
    } else {
        Knowledge::SomeInfinite
    }
}

#[inline(always)]
pub(crate) fn is_finite<S: Scalar>(x: S) -> bool {
    x.is_so(f64::is_finite)
}

/// Whether one of two factors is zero and the other infinite or NaN.
#[inline(always)]
pub(crate) fn zero_wins<S: Scalar>(a: S, b: S) -> bool {
    let is_zero = |x: S| x.is_so(|x| x == 0.0);
    is_zero(a) & !is_finite(b) | is_zero(b) & !is_finite(a)
}

/// Whether no number is infinite or NaN.
pub(crate) fn all_finite<S: Scalar>(numbers: &[S]) -> bool {
    if S::IS_FLOAT { on_this_machine(AllFinite(numbers)) } else { numbers.iter().all(|&x| is_finite(x)) }
}

struct AllFinite<'a, S>(&'a [S]);

impl<S: Scalar> Task for AllFinite<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        // A branch for each would not be vectorised.
        self.0.chunks(512).all(|some| some.iter().fold(true, |all, &x| all & is_finite(x)))
    }
}
