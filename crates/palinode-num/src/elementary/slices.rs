//! Elementary functions of slices.
//!
//! Input -> output: slices in, values out, eight at a time with the text that suits almost all arguments;
//! then the rare ones among the eight once more. Short groups are filled up with ones. The loop over eight
//! is what the compiler vectorises, once for each instruction set.

use super::{OfOne, OfTwo};
use crate::machine::{Task, on_this_machine};
use core::marker::PhantomData;

const LANES: usize = 8;

/// An argument of a function of slices.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A number for each value.
    Each(&'a [f64]),
    /// The same number for all values.
    Same(f64),
}

impl Operand<'_> {
    /// Numbers `at` to `at + count`, then ones.
    #[inline(always)]
    fn group(self, at: usize, count: usize) -> [f64; LANES] {
        match self {
            Self::Each(numbers) => filled(&numbers[at..at + count]),
            Self::Same(number) => [number; LANES],
        }
    }
}

#[inline(always)]
fn filled(numbers: &[f64]) -> [f64; LANES] {
    let mut group = [1.0; LANES];
    match <&[f64; LANES]>::try_from(numbers) {
        Ok(all) => group = *all,
        Err(_) => group[..numbers.len()].copy_from_slice(numbers),
    }
    group
}

#[inline(always)]
fn store(group: &[f64; LANES], values: &mut [f64]) {
    match <&mut [f64; LANES]>::try_from(&mut *values) {
        Ok(all) => *all = *group,
        Err(_) => values.copy_from_slice(&group[..values.len()]),
    }
}

/// The function of eight numbers.
#[inline(always)]
fn of_group<F: OfOne>(x: &[f64; LANES]) -> [f64; LANES] {
    let mut values = [0.0; LANES];
    let mut any_rare = false;
    for lane in 0..LANES {
        values[lane] = F::fast(x[lane]);
        any_rare |= F::is_rare(x[lane]);
    }
    if any_rare {
        for lane in 0..LANES {
            let slow = F::slow(x[lane]);
            values[lane] = if F::is_rare(x[lane]) { slow } else { values[lane] };
        }
    }
    values
}

/// The function of eight pairs.
#[inline(always)]
fn of_groups<F: OfTwo>(x: &[f64; LANES], y: &[f64; LANES]) -> [f64; LANES] {
    let mut values = [0.0; LANES];
    let mut any_rare = false;
    for lane in 0..LANES {
        values[lane] = F::fast(x[lane], y[lane]);
        any_rare |= F::is_rare(x[lane], y[lane]);
    }
    if any_rare {
        for lane in 0..LANES {
            let slow = F::slow(x[lane], y[lane]);
            values[lane] = if F::is_rare(x[lane], y[lane]) { slow } else { values[lane] };
        }
    }
    values
}

pub(super) struct OfSlice<'a, F>(&'a [f64], &'a mut [f64], PhantomData<F>);

impl<'a, F> OfSlice<'a, F> {
    pub(super) fn new(x: &'a [f64], values: &'a mut [f64]) -> Self {
        assert_eq!(x.len(), values.len(), "the arguments and the values differ in length");
        Self(x, values, PhantomData)
    }
}

impl<F: OfOne> Task for OfSlice<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, values) in self.0.chunks(LANES).zip(self.1.chunks_mut(LANES)) {
            store(&of_group::<F>(&filled(x)), values);
        }
    }
}

pub(super) fn of_slice<F: OfOne>(x: &[f64], values: &mut [f64]) {
    on_this_machine(OfSlice::<F>::new(x, values));
}

struct InPlace<'a, F>(&'a mut [f64], PhantomData<F>);

impl<F: OfOne> Task for InPlace<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for numbers in self.0.chunks_mut(LANES) {
            store(&of_group::<F>(&filled(numbers)), numbers);
        }
    }
}

pub(super) fn in_place<F: OfOne>(numbers: &mut [f64]) {
    on_this_machine(InPlace::<F>(numbers, PhantomData));
}

pub(super) struct OfSlices<'a, F>(Operand<'a>, Operand<'a>, &'a mut [f64], PhantomData<F>);

impl<'a, F> OfSlices<'a, F> {
    pub(super) fn new(x: Operand<'a>, y: Operand<'a>, values: &'a mut [f64]) -> Self {
        for operand in [x, y] {
            if let Operand::Each(numbers) = operand {
                assert_eq!(numbers.len(), values.len(), "an argument and the values differ in length");
            }
        }
        Self(x, y, values, PhantomData)
    }
}

impl<F: OfTwo> Task for OfSlices<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self(x, y, values, _) = self;
        for (index, values) in values.chunks_mut(LANES).enumerate() {
            let (at, count) = (index * LANES, values.len());
            store(&of_groups::<F>(&x.group(at, count), &y.group(at, count)), values);
        }
    }
}

pub(super) fn of_slices<F: OfTwo>(x: Operand, y: Operand, values: &mut [f64]) {
    on_this_machine(OfSlices::<F>::new(x, y, values));
}
