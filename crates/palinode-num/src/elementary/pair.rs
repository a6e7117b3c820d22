//! Numbers of more bits: the sum of two doubles, and polynomials.
//!
//! Input -> output: doubles in, a [`Pair`] out, whose sum is the result without or with very little error.
//! A pair is *tidy* if its low part is below the last place of its high part; those that are not say so.
//!
//! Papers: Dekker, "A floating-point technique for extending the available precision" (1971). Numbers are
//! split by cutting bits off, not by multiplying: that cannot overflow.

use super::double::Double;

/// `hi + lo`.
#[derive(Clone, Copy)]
pub(super) struct Pair<D> {
    pub(super) hi: D,
    pub(super) lo: D,
}

impl<D: Double> Pair<D> {
    #[inline(always)]
    pub(super) fn new(hi: D, lo: D) -> Self {
        Self { hi, lo }
    }
    /// A single number.
    #[inline(always)]
    pub(super) fn of(hi: D) -> Self {
        Self { hi, lo: D::of(0.0) }
    }
    /// The nearest number, or one next to it.
    #[inline(always)]
    pub(super) fn value(self) -> D {
        self.hi + self.lo
    }
    /// The sum of two numbers, exactly, where the first one is larger, or zero, or the sum is exact.
    #[inline(always)]
    pub(super) fn quick_sum(large: D, small: D) -> Self {
        let hi = large + small;
        Self { hi, lo: small - (hi - large) }
    }
    /// The sum of two numbers, exactly.
    #[inline(always)]
    pub(super) fn sum(a: D, b: D) -> Self {
        let hi = a + b;
        let b_used = hi - a;
        let a_used = hi - b_used;
        Self { hi, lo: (a - a_used) + (b - b_used) }
    }
    /// The same sum with the low part below the last place of the high part; it must be the smaller part
    /// already.
    #[inline(always)]
    pub(super) fn tidy(self) -> Self {
        Self::quick_sum(self.hi, self.lo)
    }
    /// The sum with something small.
    #[inline(always)]
    pub(super) fn plus(self, small: D) -> Self {
        Self { hi: self.hi, lo: self.lo + small }
    }
    /// Times a power of two.
    #[inline(always)]
    pub(super) fn times(self, power_of_two: D) -> Self {
        Self { hi: self.hi * power_of_two, lo: self.lo * power_of_two }
    }
    #[inline(always)]
    pub(super) fn select(mask: D::Mask, if_true: Self, if_false: Self) -> Self {
        Self { hi: D::select(mask, if_true.hi, if_false.hi), lo: D::select(mask, if_true.lo, if_false.lo) }
    }
}

/// `a^2` to 79 bits. Not tidy: the high part is a square of 26 bits.
#[inline(always)]
pub(super) fn square<D: Double>(a: D) -> Pair<D> {
    let high = a.high();
    Pair::new(high * high, (a - high) * (a + high))
}

/// `a (b + rest)` to 79 bits, where `b` has at most 26 bits and `rest` is below its last place. Not tidy.
#[inline(always)]
pub(super) fn times_constant<D: Double>(a: D, b: f64, rest: f64) -> Pair<D> {
    let high = a.high();
    Pair::new(high * b, (a - high) * b + a * rest)
}

/// `a b` to 79 bits. Not tidy.
#[inline(always)]
pub(super) fn product<D: Double>(a: D, b: D) -> Pair<D> {
    let (a_high, b_high) = (a.high(), b.high());
    Pair::new(a_high * b_high, (a - a_high) * b + a_high * (b - b_high))
}

/// `a - q b` where `q` is nearly `a / b`, with an error far below the last place of `a`.
#[inline(always)]
fn remainder<D: Double>(a: D, q: D, b: D) -> D {
    let (q_high, b_high) = (q.high(), b.high());
    (a - q_high * b_high) - (q * (b - b_high) + (q - q_high) * b_high)
}

/// `a / b` of tidy pairs, tidy, given about `1 / b.hi`.
#[inline(always)]
pub(super) fn quotient_by<D: Double>(a: Pair<D>, b: Pair<D>, inverse: D) -> Pair<D> {
    let q = a.hi * inverse;
    // In this order, low parts that are the constant zero vanish from the text.
    let rest = remainder(a.hi, q, b.hi) - (q * b.lo - a.lo);
    Pair::new(q, rest * inverse)
}

/// `a / b` of tidy pairs, tidy.
#[inline(always)]
pub(super) fn quotient<D: Double>(a: Pair<D>, b: Pair<D>) -> Pair<D> {
    quotient_by(a, b, D::of(1.0) / b.hi)
}

/// The square root of a tidy pair, tidy; 0 of 0.
#[inline(always)]
pub(super) fn root<D: Double>(a: Pair<D>) -> Pair<D> {
    let root = a.hi.sqrt();
    let squared = square(root);
    let rest = ((a.hi - squared.hi) - squared.lo) + a.lo;
    let divisor = D::select(root.equal(D::of(0.0)), D::of(1.0), root);
    Pair::new(root, rest * (D::of(0.5) / divisor))
}

/// A polynomial, lowest coefficient first, by Estrin's scheme: neighbours are combined with `z`, the results
/// with `z^2` and so on, which takes fewer dependent steps than Horner's.
#[inline(always)]
pub(super) fn polynomial<D: Double, const N: usize>(z: D, coefficients: &[f64; N]) -> D {
    let mut terms = [D::of(0.0); N];
    let mut count = N.div_ceil(2);
    for i in 0..count {
        let low = coefficients[2 * i];
        terms[i] = if 2 * i + 1 < N { z * coefficients[2 * i + 1] + low } else { D::of(low) };
    }
    let mut power = z * z;
    while count > 1 {
        for i in 0..count.div_ceil(2) {
            terms[i] = if 2 * i + 1 < count { terms[2 * i + 1] * power + terms[2 * i] } else { terms[2 * i] };
        }
        count = count.div_ceil(2);
        if count > 1 {
            power = power * power;
        }
    }
    terms[0]
}
