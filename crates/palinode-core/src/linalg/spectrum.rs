//! Spectra in which values coincide: which do, and whether a derivative exists all the same.
//!
//! Input: eigenvalues or singular values in order, tangents and cotangents. Output: runs of values that
//! coincide as far as rounding can tell, and the error that names a pair of them.
//!
//! Inside a run the vectors are any basis of a space, so only what does not depend on the basis has a
//! derivative: the same cotangent for each value, no cotangent that turns the vectors into one another. The
//! kernels turn the basis of every run so that none stands out ([`matrix::turn`]). The tests look at every
//! component of a number (tangents, partials), so that a derivative of higher order is not taken for zero.
//!
//! Beside a run, values that are merely near have derivatives of their own, large ones: a function that does
//! not depend on the basis cancels them, and digits with them, as many as a quotient of the order of the
//! derivative by the gap makes. Where more than six of ten digits would go that way, it is refused as well:
//! forward numbers by the gap alone, since what becomes of them is not known; in reverse by what the gap does
//! to the cotangent.

use super::dense;
use super::kernel::Kernel;
use crate::error::Error;
use crate::matrix;
use core::ops::Range;
use nalgebra::{DMatrix, DVector};

/// Runs of values that coincide.
pub(super) struct Clusters {
    what: &'static str,
    runs: Vec<Range<usize>>,
    run_of: Vec<usize>,
    values: Vec<f64>,
    /// The largest absolute value.
    size: f64,
}

/// How far apart values may be and still coincide: a small multiple of what a backward stable algorithm for a
/// matrix of this size may be off by.
pub(super) fn tolerance<S: Kernel>(values: &DVector<S>, size: usize) -> f64 {
    let largest = values.iter().filter_map(|x| x.peek()).fold(0.0, |a: f64, b| a.max(b.abs()));
    matrix::coincidence(size, S::epsilon(), largest)
}

impl Clusters {
    /// The runs of values in order, of which neighbours are at most `tolerance` apart.
    pub(super) fn of<S: Kernel>(what: &'static str, values: &DVector<S>, tolerance: f64) -> Clusters {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let single = |runs: &mut Vec<Range<usize>>, to: usize| {
            let from = runs.last().map_or(0, |run| run.end);
            runs.extend((from..to).map(|i| i..i + 1));
        };
        matrix::for_each_run(values.as_slice(), tolerance, |run| {
            single(&mut runs, run.start);
            runs.push(run);
        });
        single(&mut runs, values.len());
        let run_of = runs.iter().enumerate().flat_map(|(at, run)| run.clone().map(move |_| at)).collect();
        let values: Vec<f64> = values.iter().map(|x| x.peek().unwrap_or(f64::NAN)).collect();
        let size = values.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        Clusters { what, runs, run_of, values, size }
    }

    /// The runs, single values included.
    pub(super) fn runs(&self) -> &[Range<usize>] {
        &self.runs
    }

    /// Whether these two values coincide.
    pub(super) fn together(&self, i: usize, j: usize) -> bool {
        self.run_of[i] == self.run_of[j]
    }

    /// An error if any values coincide.
    pub(super) fn refuse_all(&self) -> Result<(), Error> {
        match self.runs.iter().find(|run| run.len() > 1) {
            Some(run) => Err(self.error(run.start, run.start + 1)),
            None => Ok(()),
        }
    }

    /// An error if values coincide or are so near that tangents of their vectors have lost their digits.
    pub(super) fn refuse_near<S: Kernel>(&self) -> Result<(), Error> {
        self.refuse_all()?;
        let is_near = |&i: &usize| (self.values[i] - self.values[i - 1]).abs() < narrowest::<S>() * self.size;
        (1..self.values.len()).find(is_near).map_or(Ok(()), |i| Err(self.error(i - 1, i)))
    }

    /// An error if a cotangent of a pair of vectors, of size `scale(i, j)`, was divided by so small a
    /// `gap(i, j)` that its rounding error counts in a result of size `found`.
    pub(super) fn refuse_lost<S: Kernel>(
        &self,
        scale: impl Fn(usize, usize) -> f64,
        gap: impl Fn(f64, f64) -> f64,
        found: f64,
    ) -> Result<(), Error> {
        for j in 0..self.values.len() {
            for i in (0..j).filter(|&i| !self.together(i, j)) {
                let gap = gap(self.values[i], self.values[j]).abs();
                if is_lost::<S>(scale(i, j), gap, self.size, found) {
                    return Err(self.error(i, j));
                }
            }
        }
        Ok(())
    }

    /// An error unless the values of each run have the same cotangent.
    pub(super) fn refuse_unequal<S: Kernel>(&self, cotangents: &DMatrix<S>) -> Result<(), Error> {
        let allowed = negligible::<S>(dense::largest(cotangents.iter()));
        for run in &self.runs {
            for i in run.start + 1..run.end {
                if (cotangents[i] - cotangents[run.start]).magnitude() > allowed {
                    return Err(self.error(run.start, i));
                }
            }
        }
        Ok(())
    }

    /// An error if two vectors of one run have a cotangent that turns them into each other.
    pub(super) fn refuse_turning<S: Kernel>(&self, turning: &DMatrix<S>, scale: f64) -> Result<(), Error> {
        let allowed = negligible::<S>(scale);
        for run in &self.runs {
            for j in run.clone() {
                for i in run.start..j {
                    if turning[(i, j)].magnitude() > allowed {
                        return Err(self.error(i, j));
                    }
                }
            }
        }
        Ok(())
    }

    /// That these two coincide.
    pub(super) fn error(&self, first: usize, second: usize) -> Error {
        Error::Degenerate { what: self.what, first, second, value: self.values[first] }
    }
}

/// What a derivative may lose of its digits, as an error relative to it.
fn kept<S: Kernel>() -> f64 {
    S::epsilon().powf(0.4)
}

/// The relative gap at which as much is lost as may be, by a quotient of the order of the derivative.
pub(super) fn narrowest<S: Kernel>() -> f64 {
    (S::epsilon() / kept::<S>()).powf(1.0 / f64::from(S::DEPTH + 1))
}

/// Whether the rounding error of a cotangent of this scale counts in a result of size `found`, when it is
/// divided by a gap between values of this size, and differentiated as often as the number does.
pub(super) fn is_lost<S: Kernel>(scale: f64, gap: f64, size: f64, found: f64) -> bool {
    let error = S::epsilon() * scale / gap * (size / gap).powi(S::DEPTH as i32);
    gap < narrowest::<S>() * size && error > kept::<S>() * found
}

/// What is rounding error in cotangents of this size.
pub(super) fn negligible<S: Kernel>(scale: f64) -> f64 {
    S::epsilon().powf(0.75) * scale
}

/// Whether a block is the same number times the identity, as far as rounding at this scale can tell.
pub(super) fn is_multiple_of_identity<S: Kernel>(block: &DMatrix<S>, scale: f64) -> bool {
    let allowed = negligible::<S>(scale);
    (0..block.ncols()).all(|j| {
        (0..block.nrows()).all(|i| {
            let excess = if i == j { block[(i, i)] - block[(0, 0)] } else { block[(i, j)] };
            excess.magnitude() <= allowed
        })
    })
}

/// Entry by entry `m_ij` over what `join` makes of values `j` and `i`, zero where that must not be asked.
pub(super) fn divided<S: Kernel>(
    m: &DMatrix<S>,
    values: &DVector<S>,
    join: fn(S, S) -> S,
    is_zero: impl Fn(usize, usize) -> bool,
) -> DMatrix<S> {
    let entry = |i, j| if is_zero(i, j) { S::zero() } else { m[(i, j)] / join(values[j], values[i]) };
    DMatrix::from_fn(m.nrows(), m.ncols(), entry)
}

/// `m - m^T`.
pub(super) fn antisymmetric<S: Kernel>(m: &DMatrix<S>) -> DMatrix<S> {
    dense::difference(m, &m.transpose())
}
