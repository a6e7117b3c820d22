//! Samples that are computed together, in the lanes of one number
//! ([0054](../../../../docs/adr/0054-batches.md)).
//!
//! Input: how many samples there are, and a run that computes whatever it likes with the [`Lanes`] of some of
//! them: gradients, Jacobians, recordings. Output: an answer per sample, with the bits of one by
//! one.
//!
//! Samples run together as long as they decide alike. Those that do not leave their group and wait for
//! others that went the same way; with them they run again. Samples with something suspicious, a number that
//! is not finite or an error run alone, so that what is reported is that of the sample.
//!
//! Invariants: an answer does not depend on which samples were together; a run settles a sample at least, or
//! sends all of its samples to run alone, so there are at most two runs per sample. Where decisions are
//! counted or logged, every sample runs alone.
//!
//! Known limits: the run is called as often as it takes, with samples in any order: what it leaves behind
//! elsewhere is not per sample. No group inside another one.

use crate::decision;
use crate::error::{Error, same_length};
use crate::tape::{Tape, Var};
use palinode_num::Lanes;
use palinode_num::lanes::{self, Left};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The samples of a group, one in each lane.
///
/// Some may be there twice, to fill a group up.
#[derive(Clone, Copy, Debug)]
pub struct Samples<const N: usize> {
    in_lane: [usize; N],
}

impl<const N: usize> Samples<N> {
    fn of(samples: &[usize]) -> Self {
        Samples { in_lane: core::array::from_fn(|lane| *samples.get(lane).unwrap_or(&samples[0])) }
    }

    /// A number of each sample.
    #[inline]
    pub fn pick(&self, mut of_sample: impl FnMut(usize) -> f64) -> Lanes<N> {
        Lanes::from_fn(|lane| of_sample(self.in_lane[lane]))
    }

    /// The points of the samples, number by number.
    ///
    /// # Panics
    /// If one is shorter than that of the first lane.
    pub fn points<P: AsRef<[f64]>>(&self, points: &[P]) -> Vec<Lanes<N>> {
        let count = points[self.in_lane[0]].as_ref().len();
        (0..count).map(|i| self.pick(|sample| points[sample].as_ref()[i])).collect()
    }

    /// The sample in each lane.
    pub fn in_lanes(&self) -> [usize; N] {
        self.in_lane
    }
}

/// An answer for all lanes, which is an answer for each of them.
pub trait PerLane<const N: usize> {
    /// The answer for one.
    type One;
    /// That of a lane.
    fn of_lane(&self, lane: usize) -> Self::One;
    /// Whether it is one for each: what went wrong may have gone wrong for some of them only.
    fn is_for_each(&self) -> bool {
        true
    }
}

impl<const N: usize> PerLane<N> for Lanes<N> {
    type One = f64;
    fn of_lane(&self, lane: usize) -> f64 {
        self.lane(lane)
    }
}

impl<const N: usize, T: PerLane<N>> PerLane<N> for Vec<T> {
    type One = Vec<T::One>;
    fn of_lane(&self, lane: usize) -> Self::One {
        self.iter().map(|item| item.of_lane(lane)).collect()
    }
    fn is_for_each(&self) -> bool {
        self.iter().all(PerLane::is_for_each)
    }
}

impl<const N: usize, T: PerLane<N>, const K: usize> PerLane<N> for [T; K] {
    type One = [T::One; K];
    fn of_lane(&self, lane: usize) -> Self::One {
        core::array::from_fn(|i| self[i].of_lane(lane))
    }
    fn is_for_each(&self) -> bool {
        self.iter().all(PerLane::is_for_each)
    }
}

impl<const N: usize, T: PerLane<N>, E: Clone> PerLane<N> for Result<T, E> {
    type One = Result<T::One, E>;
    fn of_lane(&self, lane: usize) -> Self::One {
        self.as_ref().map(|answer| answer.of_lane(lane)).map_err(E::clone)
    }
    fn is_for_each(&self) -> bool {
        self.as_ref().is_ok_and(PerLane::is_for_each)
    }
}

/// What is kept from one run to the next, such as the space for a gradient: answers are taken out of it after
/// each run.
impl<const N: usize, T: PerLane<N>> PerLane<N> for &RefCell<T> {
    type One = T::One;
    fn of_lane(&self, lane: usize) -> Self::One {
        self.borrow().of_lane(lane)
    }
    fn is_for_each(&self) -> bool {
        self.borrow().is_for_each()
    }
}

/// What is the same for all samples that went the same way.
macro_rules! common {
    ($($Type:ty)*) => {$(
        impl<const N: usize> PerLane<N> for $Type {
            type One = $Type;
            fn of_lane(&self, _: usize) -> $Type {
                *self
            }
        }
    )*};
}
common! { () bool u32 u64 usize }

macro_rules! tuples {
    ($(($($T:ident $i:tt)*))*) => {$(
        impl<const N: usize, $($T: PerLane<N>),*> PerLane<N> for ($($T,)*) {
            type One = ($($T::One,)*);
            fn of_lane(&self, lane: usize) -> Self::One {
                ($(self.$i.of_lane(lane),)*)
            }
            fn is_for_each(&self) -> bool {
                $(self.$i.is_for_each())&&*
            }
        }
    )*};
}
tuples! { (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) }

/// Runs samples `0..samples`, `N` at a time, and gives an answer for each: that of a run by itself, bit by
/// bit. The run takes numbers of its samples by [`Samples::pick`], and does with them what it likes.
///
/// ```
/// use palinode_core::{Lanes, Var, hessian, in_lanes};
///
/// // Some samples take the one branch, some the other.
/// let f = |x: &[Var<Var<Lanes<4>>>]| if x[0] > 2.0 { x[0] * x[0] * x[1] } else { (x[0] + x[1]).sin() };
/// let points = [[1.0, 2.0], [3.0, 4.0], [1.5, 0.5], [5.0, 1.0], [0.0, 0.0]];
/// let hessians = in_lanes(points.len(), |samples| hessian(f, &samples.points(&points)));
/// assert_eq!(hessians[1], Ok(vec![vec![8.0, 6.0], vec![6.0, 0.0]]));
/// assert_eq!(hessians[4], Ok(vec![vec![0.0; 2]; 2]));
/// ```
///
/// # Panics
/// If it runs inside itself. A panic of the run goes on when its sample runs alone.
pub fn in_lanes<const N: usize, R: PerLane<N>>(
    samples: usize,
    mut run: impl FnMut(&Samples<N>) -> R,
) -> Vec<R::One> {
    let mut waiting = Waiting::new(samples);
    let mut answers: Vec<Option<R::One>> = (0..samples).map(|_| None).collect();
    let mut group = Vec::with_capacity(N);
    while waiting.next_group(N, &mut group) {
        let in_lane = Samples::of(&group);
        if group.len() == 1 || decision::are_kept() {
            for &sample in &group {
                let answer = lanes::alone(|| run(&Samples::of(&[sample])));
                answers[sample] = Some(answer.of_lane(0));
            }
            continue;
        }
        // The lanes of those that leave hold anything, so a panic may be of one sample only.
        let ran = catch_unwind(AssertUnwindSafe(|| lanes::together(N, || run(&in_lane))));
        let (answer, left) = match ran {
            Ok((answer, left)) if answer.is_for_each() => (Some(answer), left),
            Ok((_, left)) => (None, left),
            Err(_) => (None, Vec::new()),
        };
        let how_left = |lane: usize| left.iter().find(|&&(who, _)| who == lane).map(|&(_, how)| how);
        for (lane, &sample) in group.iter().enumerate() {
            match (how_left(lane), &answer) {
                (Some(Left::Path(path)), _) => waiting.wait(sample, path),
                (None, Some(answer)) => answers[sample] = Some(answer.of_lane(lane)),
                (Some(Left::Alone), _) | (None, None) => waiting.alone.push(sample),
            }
        }
    }
    answers.into_iter().map(|answer| answer.expect("every sample has been run")).collect()
}

/// Samples that have no answer yet.
struct Waiting {
    fresh: core::ops::Range<usize>,
    /// Those that left a group, by the way that they went.
    by_path: BTreeMap<u64, Vec<usize>>,
    alone: Vec<usize>,
}

impl Waiting {
    fn new(samples: usize) -> Self {
        Waiting { fresh: 0..samples, by_path: BTreeMap::new(), alone: Vec::new() }
    }

    fn wait(&mut self, sample: usize, path: u64) {
        self.by_path.entry(path).or_default().push(sample);
    }

    /// The next samples to run together, if there are any: most that wait have to be as many as fit, as long
    /// as there are others.
    fn next_group(&mut self, most: usize, group: &mut Vec<usize>) -> bool {
        group.clear();
        if let Some(sample) = self.alone.pop() {
            group.push(sample);
            return true;
        }
        let full = self.by_path.iter().find(|(_, samples)| samples.len() >= most).map(|(&path, _)| path);
        let path = match full {
            Some(path) => Some(path),
            None if self.fresh.is_empty() => self.by_path.keys().next().copied(),
            None => None,
        };
        match path {
            Some(path) => {
                let samples = self.by_path.get_mut(&path).expect("it was found");
                group.extend(samples.drain(samples.len().saturating_sub(most)..));
                if samples.is_empty() {
                    self.by_path.remove(&path);
                }
            }
            None => group.extend(self.fresh.by_ref().take(most)),
        }
        !group.is_empty()
    }
}

/// The value and the gradient at each point, computed `N` points at a time: the answers, errors among them,
/// are those of [`value_and_grad`](crate::value_and_grad) one by one.
///
/// ```
/// use palinode_core::{Lanes, value_and_grad_batch};
///
/// let points: Vec<[f64; 2]> = (0..20).map(|i| [f64::from(i), 2.0]).collect();
/// let answers = value_and_grad_batch(|x: &[palinode_core::Var<Lanes<8>>]| x[0] * x[0] * x[1], &points);
/// assert_eq!(answers[3], Ok((18.0, vec![12.0, 9.0])));
/// ```
#[allow(clippy::type_complexity)] // (value, gradient) per point says more than a name would
pub fn value_and_grad_batch<const N: usize, P: AsRef<[f64]>>(
    mut f: impl FnMut(&[Var<Lanes<N>>]) -> Var<Lanes<N>>,
    points: &[P],
) -> Vec<Result<(f64, Vec<f64>), Error>> {
    let Some(length) = points.first().map(|point| point.as_ref().len()) else { return Vec::new() };
    let fits = |point: &P| same_length("a point of the batch", length, point.as_ref().len());
    let fitting: Vec<usize> = (0..points.len()).filter(|&i| fits(&points[i]).is_ok()).collect();
    let mut tape = Tape::new();
    // In lanes they are so large that the allocator may ask the system for them each time.
    let (mut point, gradient) = (Vec::with_capacity(length), RefCell::new(vec![Lanes::splat(0.0); length]));
    let answers = in_lanes(fitting.len(), |samples| {
        point.clear();
        point.extend((0..length).map(|i| samples.pick(|sample| points[fitting[sample]].as_ref()[i])));
        let value = tape.gradient_into(&mut f, &point, &mut gradient.borrow_mut());
        value.map(|value| (value, &gradient))
    });
    let mut answers = answers.into_iter();
    let answer = |point: &P| match fits(point) {
        Ok(()) => answers.next().expect("one for each that fits"),
        Err(error) => Err(error),
    };
    points.iter().map(answer).collect()
}
