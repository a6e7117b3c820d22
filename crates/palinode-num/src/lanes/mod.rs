//! `Lanes`: a number of `N` samples, one in each lane.
//!
//! Input: `N` floats that are computed with in the same way. Output: in each lane the bits that its sample
//! has alone. Operations are loops over lanes, elementary functions those of slices, so the compiler and the
//! kernels use vectors; what records operations records one for all lanes.
//!
//! Comparisons inside of rules give a [`Mask`], an answer per lane. Where one answer is needed for all lanes,
//! as by an `if`, the lanes *decide*: those that answer otherwise than most leave their group, and whoever
//! opened it ([`together`]) runs them again. So what the remaining lanes hold is right by construction: every
//! operation is the lane's own, and every question was answered as the lane would have.
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | the number |
//! | `mask.rs` | answers, one in each lane |
//! | `group.rs` | which lanes are still together, and where the others have left |
//! | `scalar.rs` | `Scalar` and `Real` |
//!
//! Invariants: no operation mixes lanes; whatever gives one answer for all lanes goes through `group.rs`; a
//! group always follows one of its lanes, so a run ends as that lane's would.
//!
//! Known limits: at most 64 lanes; what is read from the text of a number is not seen as a decision.

mod group;
mod mask;
mod scalar;

pub use group::{Left, alone, are_apart, is_grouped, leave_if, together};
pub use mask::Mask;

/// A number of `N` samples: all of them are computed with at once. It takes whole lines of the cache, eight
/// samples each: loads that straddle two cost more than all else.
///
/// ```
/// use palinode_num::{Lanes, Scalar};
///
/// let x = Lanes([0.0, 1.0, 4.0, 9.0]);
/// assert_eq!((x.sqrt() * 2.0 + 1.0).0, [1.0, 3.0, 5.0, 7.0]);
/// assert_eq!(x.relu().exp().0[3], 9.0_f64.exp()); // the bits of one by one
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Lanes<const N: usize>(pub [f64; N]);

impl<const N: usize> Lanes<N> {
    const FITS: () = assert!(N > 0 && N <= 64, "a group has 1 to 64 lanes");

    /// The same number in all lanes.
    #[inline(always)]
    pub fn splat(value: f64) -> Self {
        const { Self::FITS }
        Lanes([value; N])
    }

    /// A number per lane.
    #[inline(always)]
    pub fn from_fn(of_lane: impl FnMut(usize) -> f64) -> Self {
        const { Self::FITS }
        Lanes(core::array::from_fn(of_lane))
    }

    /// The number in a lane.
    ///
    /// # Panics
    /// If there is no such lane.
    #[inline(always)]
    pub fn lane(self, lane: usize) -> f64 {
        self.0[lane]
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Lanes(core::array::from_fn(|lane| f(self.0[lane])))
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Lanes(core::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    fn ask(self, other: Self, f: impl Fn(f64, f64) -> bool) -> Mask<N> {
        Mask(core::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}
