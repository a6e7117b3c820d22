//! Sums and dot products by big integers: slow, and sharing nothing with what is measured.
//!
//! Input: finite numbers. Output: the nearest `f64` to the real sum, ties to even. The mantissas of one
//! exponent are added as integers.

use num_bigint::BigInt;

/// The nearest number to the sum.
pub fn sum(terms: &[f64]) -> f64 {
    let mut sum = Sum::default();
    for &x in terms {
        let (mantissa, exponent) = parts(x);
        sum.add(mantissa, exponent);
    }
    sum.nearest(-1074)
}

/// The nearest number to the dot product.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = Sum::default();
    for (&x, &y) in a.iter().zip(b) {
        let ((m, e), (n, f)) = (parts(x), parts(y));
        sum.add(m * n, e + f);
    }
    sum.nearest(-2148)
}

/// A mantissa and an exponent: `x` is `mantissa * 2^(exponent - 1074)`.
fn parts(x: f64) -> (i128, usize) {
    assert!(x.is_finite());
    let (exponent, fraction) = ((x.abs().to_bits() >> 52) as usize, x.to_bits() & ((1 << 52) - 1));
    let size = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    (if x < 0.0 { -i128::from(size) } else { size.into() }, exponent.saturating_sub(1))
}

/// Integers by exponent.
struct Sum(Vec<BigInt>);

impl Default for Sum {
    fn default() -> Self {
        Sum(vec![BigInt::ZERO; 2 * 2046])
    }
}

impl Sum {
    fn add(&mut self, mantissa: i128, exponent: usize) {
        self.0[exponent] += mantissa;
    }

    /// The nearest number, where exponent 0 means `2^unit`, of which there are at least as many bits as of an
    /// `f64`.
    fn nearest(&self, unit: i32) -> f64 {
        let total = self.0.iter().rev().fold(BigInt::ZERO, |sum, integer| (sum << 1u32) + integer);
        let size = total.magnitude();
        let cut = (size.bits() as i32 - 53).max(-1074 - unit) as u64;
        let mut quotient: BigInt = BigInt::from(size.clone()) >> cut;
        let half = cut > 0 && size.bit(cut - 1);
        let more = size.trailing_zeros().is_some_and(|zeros| zeros + 1 < cut);
        if half && (more || quotient.bit(0)) {
            quotient += 1;
        }
        // At most 2^53, and exact in two steps, the last of which may reach subnormals or overflow.
        let quotient = u64::try_from(quotient).expect("at most 54 bits") as f64;
        let power = cut as i32 + unit;
        let size = quotient * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
        if total.sign() == num_bigint::Sign::Minus { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_nearest_numbers() {
        let half = f64::EPSILON / 2.0;
        for (terms, expected) in [
            (&[][..], 0.0),
            (&[1e100, 1.0, -1e100], 1.0),
            (&[1.0, half], 1.0),
            (&[1.0, half, 5e-324], 1.0 + f64::EPSILON),
            (&[1.0 + f64::EPSILON, half], 1.0 + 2.0 * f64::EPSILON),
            (&[-f64::MIN_POSITIVE, 5e-324], -f64::MIN_POSITIVE.next_down()),
            (&[f64::MAX, f64::MAX, -f64::MAX], f64::MAX),
            (&[f64::MAX, f64::MAX], f64::INFINITY),
        ] {
            assert_eq!(sum(terms), expected, "{terms:?}");
            assert_eq!(dot(terms, &vec![1.0; terms.len()]), expected, "{terms:?}");
        }
        assert_eq!(dot(&[5e-324; 2], &[0.5; 2]), 5e-324);
        assert_eq!(dot(&[5e-324], &[0.5]), 0.0);
        assert_eq!(dot(&[1e200, 3.0, -1e200], &[1e200, 1.0, 1e200]), 3.0);
    }
}
