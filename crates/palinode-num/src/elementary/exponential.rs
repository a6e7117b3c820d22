//! Exponentials, and the logistic function.
//!
//! Method: `x = (64 n + i) ln(2) / 64 + r` (Cody and Waite), `e^x = 2^n 2^(i/64) e^r` with the power from a
//! table and its error beside it, and `e^r - 1` from a short polynomial (Tang, "Table-driven implementation
//! of the exponential function in IEEE floating-point arithmetic", 1989). All that is rounded before the last
//! sum is below 2^-7 of it.

use super::constants::{EXP, LN_2, POWERS, POWERS_REST, STEP_HIGH, STEP_LOW, STEPS_OF_E};
use super::double::{Double, EXPONENT_AT, ONE, Word, rounded};
use super::pair::{Pair, polynomial, quotient};

/// Beyond these, `e^x` is 0 or infinite.
pub(super) const LEAST: f64 = -746.0;
pub(super) const LARGEST: f64 = 710.0;

/// A number from [`LEAST`] to [`LARGEST`], as steps of `ln(2) / 64` and the remainder.
pub(super) struct Reduced<D: Double> {
    /// The number of steps.
    steps: D,
    /// A word with the low bits of that number.
    word: D::Word,
    /// The remainder, not divided by the step.
    r: D,
}

#[inline(always)]
pub(super) fn reduce<D: Double>(x: D) -> Reduced<D> {
    let (steps, word) = rounded(x * STEPS_OF_E);
    Reduced { steps, word, r: (x - steps * STEP_HIGH) - steps * STEP_LOW }
}

/// The same for a pair, tidy or not.
#[inline(always)]
pub(super) fn reduce_pair<D: Double>(x: Pair<D>) -> Reduced<D> {
    let (steps, word) = rounded(x.value() * STEPS_OF_E);
    Reduced { steps, word, r: (x.hi - steps * STEP_HIGH) - (steps * STEP_LOW - x.lo) }
}

impl<D: Double> Reduced<D> {
    /// `2^(i/64) e^r`, from 1 to 2 or a little beyond. Tidy except for some bits.
    #[inline(always)]
    pub(super) fn fraction(&self) -> Pair<D> {
        let r = self.r;
        let power = D::element(&POWERS, self.word);
        let less_one = (D::element(&POWERS_REST, self.word) + r) + r * r * polynomial(r, &EXP);
        Pair::new(power, power * less_one)
    }
    /// `64 n` in the low bits.
    #[inline(always)]
    fn whole_steps(&self) -> D::Word {
        self.word - (self.word & D::Word::of(63))
    }
    /// Two powers of two whose product is `2^n`, which may be too large or too small for one.
    #[inline(always)]
    pub(super) fn scales(&self) -> (D, D) {
        let (_, half) = rounded(self.steps * (0.5 / 64.0));
        let half = half.up(EXPONENT_AT);
        let rest = self.whole_steps().up(EXPONENT_AT - 6) - half;
        let power = |exponent| D::from_word(D::Word::of(ONE) + exponent);
        (power(half), power(rest))
    }
    /// Times `2^n`, rounded once.
    #[inline(always)]
    pub(super) fn scaled(&self, number: D) -> D {
        let (one, other) = self.scales();
        number * one * other
    }
    /// Times `2^n`, where that is a normal number.
    #[inline(always)]
    pub(super) fn moved(&self, number: D) -> D {
        D::from_word(number.to_word() + self.whole_steps().up(EXPONENT_AT - 6))
    }
}

#[inline(always)]
pub(super) fn exp<D: Double>(x: D) -> D {
    let reduced = reduce(x.at_least(LEAST).at_most(LARGEST));
    reduced.scaled(reduced.fraction().value())
}

/// Whether `e^x` and `2^x` are normal numbers, far from the ends.
#[inline(always)]
pub(super) fn is_moderate(x: f64) -> bool {
    x.abs() < 700.0
}

#[inline(always)]
pub(super) fn exp_of_moderate(x: f64) -> f64 {
    let reduced = reduce(x);
    reduced.moved(reduced.fraction().value())
}

#[inline(always)]
pub(super) fn exp2_of_moderate(x: f64) -> f64 {
    let reduced = reduce_binary(x);
    reduced.moved(reduced.fraction().value())
}

#[inline(always)]
fn reduce_binary<D: Double>(x: D) -> Reduced<D> {
    let (steps, word) = rounded(x * 64.0);
    Reduced { steps, word, r: (x - steps * (1.0 / 64.0)) * LN_2 }
}

#[inline(always)]
pub(super) fn exp2<D: Double>(x: D) -> D {
    let reduced = reduce_binary(x.at_least(-1080.0).at_most(1025.0));
    reduced.scaled(reduced.fraction().value())
}

/// `1 / (1 + e)` or `e / (1 + e)` with `e = e^-|x|`.
#[inline(always)]
pub(super) fn logistic<D: Double>(x: D) -> D {
    let reduced = reduce((-x.abs()).at_least(LEAST));
    let fraction = reduced.fraction().tidy();
    let (one, other) = reduced.scales();
    let e = fraction.times(one).times(other);
    let divisor = Pair::quick_sum(D::of(1.0), e.hi).plus(e.lo).tidy();
    let negative = x.less(D::of(0.0));
    let result = quotient(Pair::select(negative, fraction, Pair::of(D::of(1.0))), divisor).value();
    D::select(negative, result * one * other, result)
}
