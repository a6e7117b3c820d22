//! Products of matrices.
//!
//! Input: matrices as rows after rows. Output: the same, and one entry of the tape; its sweeps are those of
//! `tape/arrays/product.rs`.

use super::{Array, need_at};
use crate::tape::arrays::{Factor, Product, Shape, Sizes, Whole, check_elements, product};
use crate::tape::with_recorder;
use core::panic::Location;
use palinode_num::{Accumulator, Scalar};

impl<S: Scalar> Array<S> {
    /// The product of two matrices, or of a matrix and a vector on either side.
    ///
    /// ```
    /// use palinode_core::{Array, value_and_grad};
    ///
    /// let weights = Array::from_values([1.0, 2.0, 3.0, 4.0]).reshaped(&[2, 2]);
    /// let (y, g) = value_and_grad(|x| weights.matmul(&Array::from_vars(x)).sum(), &[1.0, 10.0])?;
    /// assert_eq!((y, g), (64.0, vec![4.0, 6.0]));
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the shapes do not fit, or the arrays belong to different tapes.
    #[track_caller]
    pub fn matmul(&self, other: &Array<S>) -> Array<S> {
        self.matmul_with(other, Accumulator::Naive)
    }

    /// [`matmul`](Self::matmul) with every entry accumulated as asked for: those of the product, and in the
    /// reverse sweep those of the two products that are the factors' cotangents. With [`Accumulator::Exact`]
    /// each is rounded once, so that it does not matter in which order the samples of a batch are the rows of
    /// a matrix.
    ///
    /// ```
    /// use palinode_core::{Accumulator, Array, value_and_grad};
    ///
    /// let samples = Array::from_values([1.0, 1e100, -1e100]).reshaped(&[3, 1]);
    /// let (_, g) = value_and_grad(|w| {
    ///     samples.matmul_with(&Array::from_vars(w), Accumulator::Exact).sum()
    /// }, &[0.0])?;
    /// assert_eq!(g, [1.0]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the shapes do not fit, or the arrays belong to different tapes.
    #[track_caller]
    pub fn matmul_with(&self, other: &Array<S>, how: Accumulator) -> Array<S> {
        let (left, right) = (self.shape(), other.shape());
        let fits = match (left, right) {
            (&[m, k], &[l, n]) if k == l => Some((Sizes { m, k, n, of_vector: false }, vec![m, n])),
            (&[m, k], &[l]) if k == l => Some((Sizes { m, k, n: 1, of_vector: true }, vec![m])),
            (&[k], &[l, n]) if k == l => Some((Sizes { m: 1, k, n, of_vector: true }, vec![n])),
            _ => None,
        };
        let Some((size, shape)) = fits else {
            panic!(
                "palinode: PAL0101: matmul of shapes {} and {}: the first one's columns must be as many as the second \
                 one's rows",
                Shape(left),
                Shape(right)
            )
        };
        check_elements("matmul", &shape);
        let at = Location::caller();
        let stamp = self.stamp().join(other.stamp());
        stamp.check();
        let (a, b) = (self.values(), other.values());
        let values = product(size, Factor::ByRows(&a), Factor::ByRows(&b), false, how);
        let [active, other_active] = [self.is_active(), other.is_active()];
        if !active && !other_active {
            return Array::constant_of(values, &shape);
        }
        let result = Array::active_of(values, &shape, stamp);
        let need = need_at::<S>("matmul", at, stamp);
        let kept = [self.keep_if(other_active, need), other.keep_if(active, need)];
        let regions = [self.region(), other.region()];
        let product = Product { size, output: result.output(), regions, kept, how };
        with_recorder(stamp, |recorder| recorder.push_whole(Whole::Product(Box::new(product))));
        result
    }
}
