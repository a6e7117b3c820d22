//! The error function and the gamma function's logarithm at 192 bits.
//!
//! Input -> output: finite arguments in, a result with an absolute error below about 2^-170 of the terms it
//! is made of out; `erf` and `erfc` are accurate relative to themselves, `ln_gamma` also next to its zeros at
//! 1 and 2, but not next to those at negative arguments.

use super::Wide;
use super::constants::{EULER_GAMMA, LN_SQRT_TWO_PI, ONE_OVER_SQRT_PI, PI, STIRLING, ZETA_2_OVER_2};

/// The error function by its series with positive terms, for `|x| <= 6`:
/// `2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!!`.
pub(crate) fn erf(x: Wide) -> Wide {
    let square = x.square();
    let doubled = square.scaled(1);
    let ratio = doubled.to_f64();
    let (mut last, mut size) = (1, 1.0);
    while size > 1e-40 {
        last += 2;
        size *= ratio / last as f64;
    }
    // Horner's scheme 1 + d/3 (1 + d/5 (1 + ...)) as a fraction, so that only one division is left.
    let (mut numerator, mut denominator) = (Wide::ONE, Wide::ONE);
    for odd in (3..=last).rev().step_by(2) {
        denominator = denominator * Wide::from_int(odd);
        numerator = denominator + doubled * numerator;
    }
    let sum = numerator.over(denominator);
    (x * ONE_OVER_SQRT_PI).scaled(1) * (-square).exp() * sum
}

/// `1 - erf(x)` for `x >= 6` by its continued fraction `e^(-x^2)/sqrt(pi) / (x + (1/2)/(x + (2/2)/(x + ...`.
pub(crate) fn erfc_far(x: Wide) -> Wide {
    /// At `x = 6` the convergents agree to more than 130 bits by then.
    const CONVERGENTS: i64 = 120;
    let (mut p, mut p_before) = (Wide::ONE, Wide::ZERO);
    let (mut q, mut q_before) = (x, Wide::ONE);
    for k in 1..=CONVERGENTS {
        let half_k = Wide::from_int(k).scaled(-1);
        (p, p_before) = (x * p + half_k * p_before, p);
        (q, q_before) = (x * q + half_k * q_before, q);
    }
    (-x.square()).exp() * ONE_OVER_SQRT_PI * p.over(q)
}

/// `ln Gamma(x)` for `x > 0` by Stirling's series after climbing to 40.
pub(crate) fn ln_gamma(x: Wide) -> Wide {
    const SERIES_FROM: i64 = 40;
    let (mut large, mut climbed) = (x, Wide::ONE);
    while large.compare_magnitude(Wide::from_int(SERIES_FROM)).is_lt() {
        climbed = climbed * large;
        large = large + Wide::ONE;
    }
    let inverse = large.recip();
    let square = inverse.square();
    let tail = STIRLING.iter().rev().fold(Wide::ZERO, |sum, &term| term - sum * square) * inverse;
    let half = Wide::ONE.scaled(-1);
    (large - half) * large.ln() - large + LN_SQRT_TWO_PI + tail - climbed.ln()
}

/// `ln Gamma(1 + t)` for `|t| < 2^-60`: two terms of its Taylor series, leaving 2^-120 of the result.
pub(crate) fn ln_gamma_next_to_one(t: Wide) -> Wide {
    t * (t * ZETA_2_OVER_2 - EULER_GAMMA)
}

/// `ln|Gamma(x)|` for negative `x` given `mirrored = 1 - x` and `offset = x - round(x)`, not zero.
pub(crate) fn ln_gamma_reflected(mirrored: Wide, offset: Wide) -> Wide {
    // Half the angle is within the series' range; sin 2a = 2 sin a cos a.
    let (sin, cos) = (PI * offset.abs()).scaled(-1).sin_cos_reduced();
    PI.over((sin * cos).scaled(1)).ln() - ln_gamma(mirrored)
}
