//! The fast path: a block of numbers condensed into a few numbers with exactly the same sum, in vector
//! instructions.
//!
//! Input -> output: up to [`BLOCK`] `f64`s in; [`LEVELS`] sums per lane out, or `None` if the block spans too
//! many binades (more than 40 between its largest number and the smallest), is too large, too small or not
//! finite. The caller then adds number by number.
//!
//! How it is exact: adding and subtracting a large anchor rounds a number to a multiple of the anchor's last
//! bit. What is cut off is had by a subtraction without error, and multiples of one unit that stay below 2^53
//! of them add up without error (Rump, Ogita and Oishi, "Accurate floating-point summation I", 2008). The
//! first anchor cuts at 46 bits below the largest number, the second 47 bits further down; a remainder that
//! is not zero is noticed.

use crate::error_free::two_product;

/// Numbers side by side: enough for several vector registers in flight.
pub(super) const LANES: usize = 8;
/// Numbers condensed at once: 64 a lane, which is what `HEADROOM` is made for.
pub(super) const BLOCK: usize = 64 * LANES;
/// How many anchors there are.
const LEVELS: usize = 2;
/// An anchor is 2^7 times a power of two above all numbers (and half as much again): 64 of them stay within
/// its binade.
const HEADROOM: u64 = 7;
/// From one anchor to the next, in binades.
const STEP: u64 = 47;
/// Biased exponents of largest numbers for which neither anchors nor sums nor remainders leave the normal
/// range.
const SMALLEST: u64 = 250;
const LARGEST: u64 = 2000;

/// Attempts of the fast path: after one that failed, the next seven blocks are not tried, since their numbers
/// are likely of the same kind and a failure costs about as much as a success.
#[derive(Default)]
pub(super) struct Pace {
    skip: u32,
}

impl Pace {
    pub(super) fn attempt<T>(&mut self, worthwhile: bool, condense: impl FnOnce() -> Option<T>) -> Option<T> {
        if !worthwhile {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let condensed = condense();
        self.skip = if condensed.is_none() { 7 } else { 0 };
        condensed
    }
}

/// Numbers with the same sum.
pub(super) type Condensed = [[f64; LANES]; LEVELS];

/// Numbers with the sum of the block, whose length is a multiple of [`LANES`] and at most [`BLOCK`].
#[inline(never)]
pub(super) fn condense(block: &[f64]) -> Option<Condensed> {
    let (chunks, rest) = block.as_chunks::<LANES>();
    debug_assert!(rest.is_empty() && block.len() <= BLOCK);
    let mut largest = [0.0; LANES];
    for chunk in chunks {
        for (largest, x) in largest.iter_mut().zip(chunk) {
            // A NaN is passed over here and found below.
            *largest = if x.abs() > *largest { x.abs() } else { *largest };
        }
    }
    let exponent = largest.into_iter().fold(0.0, f64::max).to_bits() >> 52;
    if exponent > LARGEST {
        return None;
    }
    let exponent = exponent.max(SMALLEST);
    let anchors = [anchor(exponent + HEADROOM), anchor(exponent + HEADROOM - STEP)];

    let mut sums = [[0.0; LANES]; LEVELS];
    let mut left = [0; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            let mut x = chunk[i];
            for (anchor, sum) in anchors.iter().zip(&mut sums) {
                let cut = (anchor + x) - anchor;
                sum[i] += cut;
                x -= cut;
            }
            left[i] |= x.to_bits();
        }
    }
    // The sign of a zero does not matter; a NaN is left over as itself.
    let nothing_left = left.into_iter().fold(0, |all, bits| all | bits) << 1 == 0;
    nothing_left.then_some(sums)
}

/// 1.5 times a power of two: in the middle of its binade, so that both signs round alike.
fn anchor(exponent: u64) -> f64 {
    f64::from_bits(exponent << 52 | 1 << 51)
}

/// Numbers with the sum of all products: rounded products and their errors, condensed apart.
pub(super) fn condense_products(a: &[f64], b: &[f64]) -> Option<[Condensed; 2]> {
    let (mut products, mut errors) = ([0.0; BLOCK], [0.0; BLOCK]);
    let (products, errors) = (&mut products[..a.len()], &mut errors[..a.len()]);
    let smallest = multiply(a, b, products, errors);
    // Products of factors that are not zero must be far enough above the subnormals for their errors to be
    // exact.
    let exact = smallest >= EXACT_ERRORS || tiny_products_are_zero(a, b, products);
    if !exact { None } else { Some([condense(products)?, condense(errors)?]) }
}

/// 2^-960: the error of a product above it is a multiple of 2^-1066 or more. (Smaller products would be left
/// over as well, unless they have underflowed to zero.)
const EXACT_ERRORS: f64 = f64::from_bits((1023 - 960) << 52);

/// Products and errors, and the size of the smallest product. An error is infinite or NaN where its
/// computation overflowed.
#[inline(never)]
fn multiply(a: &[f64], b: &[f64], products: &mut [f64], errors: &mut [f64]) -> f64 {
    let mut smallest = [f64::INFINITY; LANES];
    let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
    let (products, errors) = (products.as_chunks_mut::<LANES>().0, errors.as_chunks_mut::<LANES>().0);
    for (((a, b), products), errors) in a.iter().zip(b).zip(products).zip(errors) {
        for i in 0..LANES {
            let (product, error) = two_product(a[i], b[i]);
            (products[i], errors[i]) = (product, error);
            smallest[i] = if product.abs() < smallest[i] { product.abs() } else { smallest[i] };
        }
    }
    smallest.into_iter().fold(f64::INFINITY, f64::min)
}

#[cold]
fn tiny_products_are_zero(a: &[f64], b: &[f64], products: &[f64]) -> bool {
    let tiny = |p: f64| p.abs() < EXACT_ERRORS;
    a.iter().zip(b).zip(products).all(|((&a, &b), &p)| !tiny(p) || a == 0.0 || b == 0.0)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, condense, condense_products};
    use crate::{ExactSum, Key};

    /// The condensed numbers have the sum of the block: compared without rounding.
    fn is_exact(block: &[f64]) -> bool {
        let condensed = condense(block).expect("the block is harmless");
        let one_by_one: ExactSum = block.iter().copied().collect();
        condensed.as_flattened().iter().copied().collect::<ExactSum>() == one_by_one
    }

    /// Ordinary data takes the fast path; if it did not, only time would tell.
    #[test]
    fn ordinary_numbers_are_condensed() {
        let key = Key::from_seed(1);
        for block in 0..100 {
            let normals: Vec<f64> = (0..BLOCK as u64).map(|i| key.split(block).gaussian(i)).collect();
            assert!(is_exact(&normals));
            assert!(condense_products(&normals, &normals).is_some());
            let others: Vec<f64> = (0..BLOCK as u64).map(|i| key.fold(block).uniform(i) - 0.5).collect();
            assert!(is_exact(&others));
            assert!(condense_products(&normals, &others).is_some());
        }
    }

    /// The most that the headroom must hold: every number just below, or at, a power of two, and all of one
    /// sign.
    #[test]
    fn the_largest_sums_fit() {
        for exponent in [-770, -1, 0, 1, 900] {
            let power = f64::from_bits(((1023 + exponent) as u64) << 52);
            for x in [power, power.next_down(), power.next_up()] {
                assert!(is_exact(&[x; BLOCK]) && is_exact(&[-x; BLOCK]));
                let mut signs = [x; BLOCK];
                signs.iter_mut().step_by(3).for_each(|x| *x = -*x);
                assert!(is_exact(&signs));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut block = [1.0; BLOCK];
        block[77] = f64::from_bits((1023 - 40) << 52 | 1); // its last bit is 92 below the largest
        assert!(is_exact(&block));
        block[77] = f64::from_bits((1023 - 41) << 52 | 1);
        assert!(condense(&block).is_none());
        for x in [f64::NAN, f64::INFINITY, f64::MAX, 5e-324] {
            block[77] = x;
            assert!(condense(&block).is_none(), "{x}");
        }
        assert!(is_exact(&[0.0; BLOCK]) && is_exact(&[-0.0; BLOCK]));
        let tiny = [1e-150; BLOCK];
        assert!(condense_products(&tiny, &tiny).is_none(), "the errors of the products underflow");
    }
}
