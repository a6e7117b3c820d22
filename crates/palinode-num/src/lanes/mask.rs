//! Answers to a comparison of [`Lanes`](super::Lanes), one in each lane.

use super::group;
use crate::scalar::Logic;
use core::ops::{BitAnd, BitOr, Not};

/// What a comparison of numbers of several lanes gives: an answer per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Mask<const N: usize>(pub [bool; N]);

impl<const N: usize> Mask<N> {
    /// In how many lanes it holds.
    #[inline(always)]
    pub fn count(self) -> usize {
        self.0.iter().map(|&holds| usize::from(holds)).sum()
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(bool, bool) -> bool) -> Self {
        Mask(core::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl<const N: usize> BitAnd for Mask<N> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }
}

impl<const N: usize> BitOr for Mask<N> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }
}

impl<const N: usize> Not for Mask<N> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Mask(self.0.map(|holds| !holds))
    }
}

impl<const N: usize> Logic for Mask<N> {
    /// Known if all lanes agree.
    #[inline(always)]
    fn known(self) -> Option<bool> {
        match self.count() {
            0 => Some(false),
            count if count == N => Some(true),
            _ => None,
        }
    }

    #[inline(always)]
    fn decided(self) -> Option<bool> {
        Some(group::decide(&self.0))
    }
}
