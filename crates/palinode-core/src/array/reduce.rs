//! Reductions: sums, means, dot products, largest and smallest elements, of all elements or along an axis.
//!
//! Input: an array. Output: a `Var`, or an array with an axis less. One entry on the tape each. Sums have the
//! order of `palinode_num::sums`, unless an [`Accumulator`] says otherwise; what it says is for values. In
//! reverse a sum has nothing to add up, in a forward sweep over the tape tangents are added one after the
//! other.
//!
//! Elements that tie for the largest or smallest share its derivative equally, as in programs.

use super::{Array, need_at};
use crate::rules::{Multiply, Two};
use crate::tape::arrays::{Argument, Home, Linear, Operands, Partial, Places, Region, Shape, View};
use crate::tape::{Recorder, Stamp, Var, with_recorder};
use core::panic::Location;
use palinode_num::sums::sum_axis;
use palinode_num::{Accumulator, Logic, Scalar};
use std::sync::Arc;

/// A new node for a number that an operation on whole arrays makes.
fn leaf<S: Scalar>(name: &'static str, value: S, stamp: Stamp) -> u32 {
    let zero = S::zero();
    with_recorder(stamp, |recorder: &mut Recorder<S>| {
        recorder.push_leaf(name, value, zero, stamp.is_traced())
    })
}

/// One node, as often as there are elements.
fn to_node(node: u32, len: usize) -> Region {
    Region { home: Home::Nodes, places: Places::View(View::repeated(node as usize, &[len])) }
}

impl<S: Scalar> Array<S> {
    /// The sum of all elements.
    #[track_caller]
    pub fn sum(&self) -> Var<S> {
        self.sum_with(Accumulator::Naive)
    }

    /// The sum of all elements, accumulated as asked for. Its cotangent goes to every element as it is, so
    /// there is nothing to accumulate in the reverse sweep.
    ///
    /// ```
    /// use palinode_core::{Accumulator, Array, value_and_grad};
    ///
    /// let f = |how| value_and_grad(|x| Array::from_vars(x).sum_with(how), &[1.0, 1e100, -1e100]);
    /// assert_eq!(f(Accumulator::Naive)?, (0.0, vec![1.0; 3]));
    /// assert_eq!(f(Accumulator::Exact)?, (1.0, vec![1.0; 3]));
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_with(&self, how: Accumulator) -> Var<S> {
        let stamp = self.stamp();
        stamp.check();
        let value = S::sum_with(&self.values(), how);
        let Some(from) = self.region() else { return Var::lift(value) };
        let node = leaf("sum", value, stamp);
        self.record(stamp, Linear::moving("sum", to_node(node, self.len()), true, Some(from)));
        Var::of_node(value, node, stamp)
    }

    /// The mean of all elements.
    #[track_caller]
    pub fn mean(&self) -> Var<S> {
        self.mean_with(Accumulator::Naive)
    }

    /// The mean of all elements, with the sum accumulated as asked for.
    #[track_caller]
    pub fn mean_with(&self, how: Accumulator) -> Var<S> {
        self.sum_with(how) / self.len() as f64
    }

    /// The sum of the products of corresponding elements.
    ///
    /// # Panics
    /// If the shapes differ, or the arrays belong to different tapes.
    #[track_caller]
    pub fn dot(&self, other: &Array<S>) -> Var<S> {
        self.dot_with(other, Accumulator::Naive)
    }

    /// [`dot`](Self::dot), accumulated as asked for. In the reverse sweep every element gets one product, so
    /// there is nothing to accumulate.
    ///
    /// # Panics
    /// If the shapes differ, or the arrays belong to different tapes.
    #[track_caller]
    pub fn dot_with(&self, other: &Array<S>, how: Accumulator) -> Var<S> {
        let (mine, theirs) = (self.shape(), other.shape());
        assert!(
            mine == theirs,
            "palinode: PAL0101: dot of shapes {} and {}; they must be the same",
            Shape(mine),
            Shape(theirs)
        );
        let at = Location::caller();
        let stamp = self.stamp().join(other.stamp());
        stamp.check();
        let value = S::dot_with(&self.values(), &other.values(), how);
        let regions = [self.region(), other.region()];
        if regions.iter().all(Option::is_none) {
            return Var::lift(value);
        }
        let need = need_at::<S>("dot", at, stamp);
        let values =
            vec![self.keep_if(regions[1].is_some(), need), other.keep_if(regions[0].is_some(), need)];
        let operands = Some(Box::new(Operands { formula: Arc::new(Two(Multiply {})), values }));
        let arguments = regions
            .into_iter()
            .zip([1, 0])
            .filter_map(|(region, other)| {
                Some(Argument { region: region?, partial: Partial::Operand(other) })
            })
            .collect();
        let node = leaf("dot", value, stamp);
        let output = to_node(node, self.len());
        self.record(stamp, Linear { name: "dot", output, replaces: true, arguments, operands });
        Var::of_node(value, node, stamp)
    }

    #[track_caller]
    fn extreme(&self, name: &'static str, pick: impl Fn(S, S) -> S) -> Var<S> {
        // Its values in another shape, without the tape, to be searched through.
        let flat = Array::constant_of(self.values(), &[1, self.len()]);
        let (values, ties) = flat.extremes_along(name, 1, pick);
        let stamp = self.stamp();
        stamp.check();
        let Some(home) = self.buffer.storage().map(Home::Storage) else { return Var::lift(values[0]) };
        let node = leaf(name, values[0], stamp);
        let linear = ties.linear(name, home, &self.view, |_| node as usize, Home::Nodes);
        self.record(stamp, linear);
        Var::of_node(values[0], node, stamp)
    }

    /// The sums along an axis, which disappears.
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn sum_axis(&self, axis: usize) -> Array<S> {
        self.sum_axis_with(axis, Accumulator::Naive)
    }

    /// The sums along an axis, each accumulated as asked for.
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn sum_axis_with(&self, axis: usize, how: Accumulator) -> Array<S> {
        let (outer, length, inner) = self.split_at(axis);
        let stamp = self.stamp();
        stamp.check();
        let from = self.values();
        let values = match how {
            Accumulator::Naive => {
                let mut values = vec![S::zero(); outer * inner];
                sum_axis(&from, [outer, length, inner], &mut values);
                values
            }
            Accumulator::Compensated | Accumulator::Exact => {
                let mut line = vec![S::zero(); length];
                let mut sum = |o: usize, i: usize| {
                    line.iter_mut().enumerate().for_each(|(k, x)| *x = from[(o * length + k) * inner + i]);
                    S::sum_with(&line, how)
                };
                let places = (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i)));
                places.map(|(o, i)| sum(o, i)).collect()
            }
        };
        let shape = self.shape_without(axis);
        let Some(from) = self.region() else { return Array::constant_of(values, &shape) };
        let result = Array::active_of(values, &shape, stamp);
        let places = Places::View(result.view.spread_along(axis, length));
        let output = Region { home: result.output().home, places };
        result.record(stamp, Linear::moving("sum_axis", output, true, Some(from)));
        result
    }

    /// The means along an axis, which disappears.
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn mean_axis(&self, axis: usize) -> Array<S> {
        self.mean_axis_with(axis, Accumulator::Naive)
    }

    /// The means along an axis, with each sum accumulated as asked for.
    ///
    /// ```
    /// use palinode_core::{Accumulator, Array};
    ///
    /// let x = Array::<f64>::from_values([6.0, 1e100, -1e100]).reshaped(&[1, 3]);
    /// assert_eq!(x.mean_axis(1).values(), [0.0]);
    /// assert_eq!(x.mean_axis_with(1, Accumulator::Exact).values(), [2.0]);
    /// ```
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn mean_axis_with(&self, axis: usize, how: Accumulator) -> Array<S> {
        let length = self.split_at(axis).1;
        self.sum_axis_with(axis, how) / length as f64
    }

    #[track_caller]
    fn extreme_axis(&self, name: &'static str, axis: usize, pick: impl Fn(S, S) -> S) -> Array<S> {
        let (values, ties) = self.extremes_along(name, axis, pick);
        let stamp = self.stamp();
        stamp.check();
        let shape = self.shape_without(axis);
        let Some(home) = self.buffer.storage().map(Home::Storage) else {
            return Array::constant_of(values, &shape);
        };
        let result = Array::active_of(values, &shape, stamp);
        let to = result.output().home;
        result.record(stamp, ties.linear(name, home, &self.view, |k| k, to));
        result
    }

    /// The extremes along an axis, and which elements reach them.
    #[track_caller]
    fn extremes_along(&self, name: &str, axis: usize, pick: impl Fn(S, S) -> S) -> (Vec<S>, Ties<S>) {
        let (outer, length, inner) = self.split_at(axis);
        assert!(
            length > 0 || outer * inner == 0,
            "palinode: PAL0101: {name} of no elements (shape {})",
            Shape(self.shape())
        );
        let from = self.values();
        let mut values = Vec::with_capacity(outer * inner);
        let mut ties = Ties { from: Vec::new(), to: Vec::new(), shares: Vec::new() };
        for o in 0..outer {
            for i in 0..inner {
                let element = |k| (o * length + k) * inner + i;
                let extreme = (1..length).fold(from[element(0)], |x, k| pick(x, from[element(k)]));
                let first = ties.from.len();
                for k in 0..length {
                    if from[element(k)].equal(extreme).decided() == Some(true) {
                        ties.from.push(element(k));
                        ties.to.push(values.len());
                    }
                }
                let tied = ties.from.len() - first;
                let share = S::one() / S::from_int(tied as i32);
                ties.shares.extend(core::iter::repeat_n(share, tied));
                values.push(extreme);
            }
        }
        (values, ties)
    }

    /// How many elements there are before, along and after an axis.
    #[track_caller]
    fn split_at(&self, axis: usize) -> (usize, usize, usize) {
        let shape = self.shape();
        assert!(
            axis < shape.len(),
            "palinode: PAL0101: there is no axis {axis} in shape {}, counted from 0",
            Shape(shape)
        );
        (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
    }

    fn shape_without(&self, axis: usize) -> Vec<usize> {
        let mut shape = self.shape().to_vec();
        shape.remove(axis);
        shape
    }
}

macro_rules! extremes {
    ($($name:ident $along:ident $pick:ident;)*) => {
        impl<S: Scalar> Array<S> {$(
            #[doc = concat!("The ", stringify!($name), " element.")]
            ///
            /// # Panics
            /// If there is no element.
            #[track_caller]
            pub fn $name(&self) -> Var<S> {
                self.extreme(stringify!($name), S::$pick)
            }

            #[doc = concat!("The ", stringify!($name), " elements along an axis, which disappears.")]
            ///
            /// # Panics
            /// If there is no such axis, or no element along it.
            #[track_caller]
            pub fn $along(&self, axis: usize) -> Array<S> {
                self.extreme_axis(stringify!($along), axis, S::$pick)
            }
        )*}
    };
}
extremes! {
    largest largest_axis max;
    smallest smallest_axis min;
}

/// Elements that reach an extreme: which, of which result, and their shares of its derivative.
struct Ties<S> {
    from: Vec<usize>,
    to: Vec<usize>,
    shares: Vec<S>,
}

impl<S: Scalar> Ties<S> {
    fn linear(
        self,
        name: &'static str,
        from: Home,
        view: &View,
        place: impl Fn(usize) -> usize,
        to: Home,
    ) -> Linear<S> {
        let cells: Vec<usize> = view.walk().collect();
        let list = |places: Vec<usize>| Places::List(places.into_iter().map(|place| place as u32).collect());
        let sources = self.from.iter().map(|&element| cells[element]).collect();
        let targets = self.to.iter().map(|&result| place(result)).collect();
        let partial = match self.to.windows(2).all(|pair| pair[0] != pair[1]) {
            true => Partial::One,
            false => Partial::Saved(self.shares),
        };
        let arguments = vec![Argument { region: Region { home: from, places: list(sources) }, partial }];
        let output = Region { home: to, places: list(targets) };
        Linear { name, output, replaces: true, arguments, operands: None }
    }
}
