//! Reduction of angles of any size modulo a quarter turn.
//!
//! Input: a finite angle as a sum of two `f64`s. Output: the quadrant and the angle left over, with full
//! relative accuracy, however large the angle is or however close it lies to a multiple of pi/2.
//!
//! Method: Payne and Hanek, "Radian reduction for trigonometric functions" (1983): only the digits of `2/pi`
//! that matter modulo 4 are multiplied.

use super::constants::{PI, TWO_OVER_PI, TWO_OVER_PI_BITS};
use super::{Wide, decode};

/// `high + low = k pi/2 + rest` as `(k mod 4, rest)` with `|rest| <= pi/4` up to rounding.
pub(crate) fn reduce(high: f64, low: f64) -> (u32, Wide) {
    if high.abs() < core::f64::consts::FRAC_PI_4 {
        return (0, Wide::from_f64(high) + Wide::from_f64(low));
    }
    let (k_high, high) = quarter_turns(high);
    let (k_low, low) = quarter_turns(low);
    let (mut k, mut turns) = (k_high + k_low, high + low);
    let half = Wide::ONE.scaled(-1);
    if turns.compare_magnitude(half).is_gt() {
        k += if turns.negative { 3 } else { 1 };
        turns = turns - Wide { negative: turns.negative, ..Wide::ONE };
    }
    (k % 4, turns * PI.scaled(-1))
}

/// `v * 2/pi = k + rest` as `(k mod 4, rest)` with `|rest| <= 1/2`.
fn quarter_turns(v: f64) -> (u32, Wide) {
    const WINDOW: usize = 5;
    const WINDOW_BITS: i64 = 64 * WINDOW as i64;
    let (fraction, power) = decode(v);
    if power < -60 {
        return (0, Wide::from_f64(v) * TWO_OVER_PI);
    }
    // Digits of weight 2^-i with i <= power - 2 only add multiples of 4.
    let start = power - 2;
    let mut product = [0; WINDOW];
    let mut carry = 0;
    for (index, digit) in product.iter_mut().enumerate() {
        let digits = bits_at(start + WINDOW_BITS - 64 * (index as i64 + 1));
        (*digit, carry) = fraction.carrying_mul_add(digits, 0, carry);
    }
    // The product is modulo 4, in units of 2^-(WINDOW_BITS - 2).
    let top = &mut product[WINDOW - 1];
    let mut k = (*top >> 62) as u32;
    *top &= (1 << 62) - 1;
    let mut negative = v.is_sign_negative();
    if *top >> 61 == 1 {
        // Above one half: count from the next quarter.
        k += 1;
        let mut borrow = false;
        for digit in &mut product {
            (*digit, borrow) = 0u64.borrowing_sub(*digit, borrow);
        }
        product[WINDOW - 1] &= (1 << 62) - 1;
        negative = !negative;
    }
    let k = if v.is_sign_negative() { 8 - k } else { k };
    (k % 4, Wide::from_fixed(negative, &product, WINDOW_BITS - 2))
}

/// The 64 digits of `2/pi` after the digit of weight `2^-position`; digits before the point are 0.
fn bits_at(position: i64) -> u64 {
    let word = |index: i64| match usize::try_from(index) {
        Ok(index) => TWO_OVER_PI_BITS.get(index).copied().expect("the table covers the largest f64"),
        Err(_) => 0,
    };
    let (index, shift) = (position.div_euclid(64), position.rem_euclid(64) as u32);
    let pair = u128::from(word(index)) << 64 | u128::from(if shift == 0 { 0 } else { word(index + 1) });
    (pair << shift >> 64) as u64
}
