//! Error-free transforms: a rounded `f64` operation together with its rounding error, which is an `f64` too.
//!
//! Input -> output: two `f64`s in, `(rounded, error)` with `rounded + error` exactly the sum or product out,
//! provided nothing overflows and, for products, the error is not below the smallest subnormal.
//!
//! Papers: Knuth, "The Art of Computer Programming" 2 (two_sum); Dekker, "A floating-point technique for
//! extending the available precision" (1971).

/// The sum and its rounding error.
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_used = sum - a;
    let a_used = sum - b_used;
    (sum, (a - a_used) + (b - b_used))
}

/// The sum and its rounding error where `|a| >= |b|` or `a` is 0.
#[inline(always)]
pub(crate) fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The product and its rounding error.
#[inline(always)]
pub(crate) fn two_product(a: f64, b: f64) -> (f64, f64) {
    // Without the instruction `mul_add` is a slow library call, and Dekker's splitting gives the same result.
    if cfg!(target_feature = "fma") { two_product_fused(a, b) } else { two_product_split(a, b) }
}

#[inline(always)]
pub(crate) fn two_product_fused(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// Factors must stay below 2^995, or the splitting overflows.
#[inline(always)]
pub(crate) fn two_product_split(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let (a_high, a_low) = split(a);
    let (b_high, b_low) = split(b);
    let error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    (product, error)
}

/// [`two_product`] for factors of any size: where splitting would overflow, they are scaled, exactly.
/// Provided the product does not overflow.
#[inline]
pub(crate) fn two_product_of_any(a: f64, b: f64) -> (f64, f64) {
    const LARGE: f64 = f64::MAX / (1_u64 << 40) as f64;
    const DOWN: f64 = 1.0 / (1_u64 << 60) as f64;
    if a.abs() < LARGE && b.abs() < LARGE {
        return two_product(a, b);
    }
    // The other factor is small, or the product would overflow: scaling the large one down and the error up
    // loses nothing.
    let (large, other) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
    let (_, error) = two_product(large * DOWN, other);
    (a * b, error / DOWN)
}

/// `a` as a sum of two halves of at most 26 bits.
#[inline(always)]
fn split(a: f64) -> (f64, f64) {
    const SPLITTER: f64 = ((1u32 << 27) + 1) as f64;
    let scaled = SPLITTER * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

#[cfg(test)]
mod tests {
    use super::{quick_two_sum, two_product_fused, two_product_split, two_sum};
    use crate::wide::Wide;
    use proptest::prelude::*;

    #[test]
    fn factors_that_cannot_be_split_are_scaled() {
        let large = 2e300;
        assert_eq!(super::two_product_of_any(large, 1.0), (large, 0.0));
        assert_eq!(super::two_product_of_any(-1.0, large), (-large, 0.0));
        let (a, b) = (f64::MAX / 3.0, 1.0 / 3.0);
        assert_eq!(super::two_product_of_any(a, b), two_product_fused(a, b));
        let sum = crate::Accumulator::Compensated.dot(&[large, 1.0, -large], &[1.0; 3]);
        assert_eq!(sum, 1.0);
    }

    fn is_exact(wide: Wide, (rounded, error): (f64, f64)) -> bool {
        (wide - Wide::from_f64(rounded) - Wide::from_f64(error)).is_zero()
    }

    /// Moderate exponents: two numbers and their sum fit the 192 bits that the check is made in.
    fn number() -> impl Strategy<Value = f64> {
        (any::<i64>(), -60..60i32).prop_map(|(n, power)| n as f64 * f64::from(power).exp2())
    }

    proptest! {
        #[test]
        fn sums_are_exact(a in number(), b in number()) {
            let exact = Wide::from_f64(a) + Wide::from_f64(b);
            prop_assert_eq!(two_sum(a, b).0, a + b);
            prop_assert!(is_exact(exact, two_sum(a, b)));
            let (large, small) = if a.abs() < b.abs() { (b, a) } else { (a, b) };
            prop_assert!(is_exact(exact, quick_two_sum(large, small)));
        }

        #[test]
        fn products_are_exact_with_and_without_hardware_fma(a in number(), b in number()) {
            let exact = Wide::from_f64(a) * Wide::from_f64(b);
            prop_assert_eq!(two_product_split(a, b).0, a * b);
            prop_assert!(is_exact(exact, two_product_split(a, b)));
            prop_assert_eq!(two_product_fused(a, b), two_product_split(a, b));
        }
    }
}
