//! Fused operations on plain numbers, by runs of places: each stage of the block is done for a few hundred
//! places before the next one, by loops of vectors over strips that stay in the cache.
//!
//! Input: the stages of a fused operation, its operands and results. Output: the results, bit by bit those of
//! the instructions that do one place after the other. Where a stage fails for some place of a run, nothing
//! of that run is written: the instructions begin there, find the first place, and say what is wrong with it.
//!
//! Invariants: nothing is allocated. Comparisons of reals are shown to the hook for decisions where they may
//! matter; where all of them are asked for, in order, no run is done by strips.

use core::ops::Range;

use palinode_core::decision::{self, TINY};
use palinode_core::machine::{Task, on_this_machine};
use smallvec::SmallVec;

use super::code::{FusedSite, Kind, Stage, Term};
use super::error::RunErrorKind;
use super::ledger::Memory;
use super::rows::{self, RUN};
use super::scalar_ops::{compare_reals, integer};
use super::trap;
use super::value::{Array, Source, from_int, round32, to_int};
use crate::op::{Comparison, IntOp, Logical, Op};
use crate::types::Elem;

/// The places of strips: reals, integers, truth values.
const REALS: usize = 16 * RUN;
const OTHERS: usize = 4 * RUN;
/// Blocks of which not even so many places have room are done one place after the other.
const SHORTEST: usize = 32;

/// Memory for strips.
pub(super) struct Room {
    reals: [f64; REALS],
    ints: [i64; OTHERS],
    bools: [bool; OTHERS],
}

impl Room {
    pub(super) const EMPTY: Room = Room { reals: [0.0; REALS], ints: [0; OTHERS], bools: [false; OTHERS] };
}

const OP: &str = "fused";

/// A stage has failed for some place.
struct Failed;

/// The registers of the frame.
#[derive(Clone, Copy)]
pub(super) struct Registers<'a> {
    pub(super) reals: &'a [f64],
    pub(super) ints: &'a [i64],
    pub(super) bools: &'a [bool],
}

/// Does the `count` places of a fused operation whose results have been made, until a run fails; how many.
pub(super) fn run(
    site: &FusedSite,
    count: usize,
    trap: bool,
    registers: Registers<'_>,
    arrays: &mut [Array<f64>],
    room: &mut Room,
    memory: &mut Memory,
) -> Result<usize, RunErrorKind> {
    let stages = &site.stages;
    let fits = |(room, &strips): (usize, &u32)| room / (strips as usize).max(1);
    let longest = [REALS, OTHERS, OTHERS].into_iter().zip(&stages.strips).map(fits).fold(RUN, usize::min);
    if longest < SHORTEST || (stages.compares_reals && decision::is_logged()) {
        return Ok(0);
    }
    // Runs of about the same length.
    let length = count.div_ceil(count.div_ceil(longest).max(1)).max(1);
    for from in (0..count).step_by(length) {
        let places = from..count.min(from + length);
        let mut run = Run { site, places: places.clone(), length, trap, registers, arrays, room };
        if stages.list.iter().any(|stage| run.stage(stage).is_err()) {
            return Ok(from);
        }
        for (result, &strip) in site.results.iter().zip(&stages.results) {
            let first = strip as usize * length;
            let strip = first..first + places.len();
            let (array, places) = (&mut arrays[result.slot as usize], places.clone());
            match result.elem {
                Elem::F64 | Elem::F32 => {
                    array.reals_mut(OP, memory)?.data_mut()[places].copy_from_slice(&room.reals[strip]);
                }
                Elem::Int => {
                    array.ints_mut(OP, memory)?.data_mut()[places].copy_from_slice(&room.ints[strip]);
                }
                Elem::Bool => {
                    array.bools_mut(OP, memory)?.data_mut()[places].copy_from_slice(&room.bools[strip]);
                }
            }
        }
    }
    Ok(count)
}

/// A run of places.
struct Run<'a> {
    site: &'a FusedSite,
    places: Range<usize>,
    /// The distance between strips.
    length: usize,
    trap: bool,
    registers: Registers<'a>,
    arrays: &'a [Array<f64>],
    room: &'a mut Room,
}

/// The strips of one kind but the one that is being written.
#[derive(Clone, Copy)]
struct Strips<'a, T> {
    before: &'a [T],
    behind: &'a [T],
    length: usize,
    count: usize,
}

impl<'a, T> Strips<'a, T> {
    fn get(&self, strip: u32) -> &'a [T] {
        let first = strip as usize * self.length;
        let from = match first.checked_sub(self.before.len()) {
            None => &self.before[first..],
            // The one that is being written lies between.
            Some(first) => &self.behind[first - self.length..],
        };
        &from[..self.count]
    }
}

/// The strip to be written, if it is of this kind, and the others.
fn apart<T>(all: &mut [T], written: Option<u32>, length: usize, count: usize) -> (&mut [T], Strips<'_, T>) {
    let Some(strip) = written else {
        return (&mut [], Strips { before: all, behind: &[], length, count });
    };
    let (before, rest) = all.split_at_mut(strip as usize * length);
    let (written, behind) = rest.split_at_mut(length);
    (&mut written[..count], Strips { before, behind, length, count })
}

impl Run<'_> {
    fn stage(&mut self, stage: &Stage) -> Result<(), Failed> {
        let (length, count) = (self.length, self.places.len());
        let to = |kind: Kind| (stage.to == kind).then_some(stage.strip);
        let (real, reals) = apart(&mut self.room.reals, to(Kind::Real), length, count);
        let (int, ints) = apart(&mut self.room.ints, to(Kind::Int), length, count);
        let (bool, bools) = apart(&mut self.room.bools, to(Kind::Bool), length, count);
        macro_rules! source {
            ($at:expr, $kind:ident, $strips:ident) => {
                match stage.args[$at] {
                    Term::Operand(number) => {
                        let slot = self.site.operands[number as usize];
                        let data = self.arrays[slot as usize].$kind().data();
                        Source::Many(&data[self.places.clone()])
                    }
                    Term::Same(slot) => Source::One(self.registers.$kind[slot as usize]),
                    Term::Strip(strip) => Source::Many($strips.get(strip)),
                }
            };
        }
        macro_rules! real {
            ($at:expr) => {
                source!($at, reals, reals)
            };
        }
        macro_rules! int {
            ($at:expr) => {
                source!($at, ints, ints)
            };
        }
        macro_rules! bool {
            ($at:expr) => {
                source!($at, bools, bools)
            };
        }
        match &stage.op {
            Op::Map(rule) => {
                let args: SmallVec<[Source<'_, f64>; 3]> =
                    (0..stage.args.len()).map(|at| real!(at)).collect();
                rows::values(*rule, &args, real);
                if self.trap {
                    trap::check_run(rule.row, &args, real).map_err(|_| Failed)?;
                }
            }
            Op::Int(op) => integers(*op, int!(0), int!(1), int)?,
            Op::Compare(op) if stage.from == Kind::Real => compare_real_runs(*op, real!(0), real!(1), bool),
            Op::Compare(op) => {
                let op = *op;
                each_of_two(int!(0), int!(1), bool, |a, b| op.holds(a, b));
            }
            Op::Logical(op) => match op {
                Logical::And => each_of_two(bool!(0), bool!(1), bool, |a, b| a & b),
                Logical::Or => each_of_two(bool!(0), bool!(1), bool, |a, b| a | b),
                Logical::Not => each(bool!(0), bool, |a: bool| !a),
            },
            Op::Select => match stage.to {
                Kind::Real => select(bool!(0), real!(1), real!(2), real),
                Kind::Int => select(bool!(0), int!(1), int!(2), int),
                Kind::Bool => select(bool!(0), bool!(1), bool!(2), bool),
                Kind::Array => unreachable!("{SCALARS}"),
            },
            Op::Convert(_) => match (stage.from, stage.to) {
                (Kind::Real, Kind::Real) => each(real!(0), real, |a: f64| a),
                (Kind::Int, Kind::Int) => each(int!(0), int, |a: i64| a),
                (Kind::Int, Kind::Real) => each(int!(0), real, from_int::<f64>),
                (Kind::Real, Kind::Int) => {
                    let a = real!(0);
                    for (at, value) in int.iter_mut().enumerate() {
                        *value = to_int(a.get(at)).map_err(|_| Failed)?;
                    }
                }
                (Kind::Bool | Kind::Array, _) | (_, Kind::Bool | Kind::Array) => {
                    unreachable!("the verifier: numbers are converted to numbers")
                }
            },
            // Plain numbers have no derivative to stop.
            Op::StopGradient => match stage.to {
                Kind::Real => each(real!(0), real, |a: f64| a),
                Kind::Int => each(int!(0), int, |a: i64| a),
                Kind::Bool => each(bool!(0), bool, |a: bool| a),
                Kind::Array => unreachable!("{SCALARS}"),
            },
            other => unreachable!("`{}` is not elementwise", other.name()),
        }
        if stage.rounds {
            let were_finite = !self.trap || trap::all_finite(real);
            on_this_machine(Round(real));
            // What was infinite before is looked at one by one.
            if self.trap && (!were_finite || !trap::all_finite(real)) {
                return Err(Failed);
            }
        }
        Ok(())
    }
}

const SCALARS: &str = "the verifier: the block of a fused operation is about scalars";

struct Round<'a>(&'a mut [f64]);

impl Task for Round<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|x| *x = round32(*x));
    }
}

struct OfOne<'a, A, T, F>(Source<'a, A>, &'a mut [T], F);

impl<A: Copy, T: Copy, F: Fn(A) -> T> Task for OfOne<'_, A, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfOne(a, values, f) = self;
        match a {
            Source::One(a) => values.fill(f(a)),
            Source::Many(a) => values.iter_mut().zip(a).for_each(|(value, &a)| *value = f(a)),
        }
    }
}

fn each<A: Copy, T: Copy>(a: Source<'_, A>, values: &mut [T], f: impl Fn(A) -> T) {
    on_this_machine(OfOne(a, values, f));
}

struct OfTwo<'a, A, T, F>(Source<'a, A>, Source<'a, A>, &'a mut [T], F);

impl<A: Copy, T: Copy, F: Fn(A, A) -> T> Task for OfTwo<'_, A, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfTwo(a, b, values, f) = self;
        let places = values.iter_mut();
        match (a, b) {
            (Source::Many(a), Source::Many(b)) => {
                places.zip(a).zip(b).for_each(|((value, &a), &b)| *value = f(a, b));
            }
            (Source::Many(a), Source::One(b)) => places.zip(a).for_each(|(value, &a)| *value = f(a, b)),
            (Source::One(a), Source::Many(b)) => places.zip(b).for_each(|(value, &b)| *value = f(a, b)),
            (Source::One(a), Source::One(b)) => values.fill(f(a, b)),
        }
    }
}

fn each_of_two<A: Copy, T: Copy>(
    a: Source<'_, A>,
    b: Source<'_, A>,
    values: &mut [T],
    f: impl Fn(A, A) -> T,
) {
    on_this_machine(OfTwo(a, b, values, f));
}

/// Integer arithmetic, until it fails somewhere.
fn integers(op: IntOp, a: Source<'_, i64>, b: Source<'_, i64>, values: &mut [i64]) -> Result<(), Failed> {
    for (at, value) in values.iter_mut().enumerate() {
        *value = integer(op, a.get(at), b.get(at)).map_err(|_| Failed)?;
    }
    Ok(())
}

/// Comparisons of reals, of which those that may be suspicious are shown to the hook for decisions.
fn compare_real_runs(op: Comparison, a: Source<'_, f64>, b: Source<'_, f64>, values: &mut [bool]) {
    let is_plain = |a: f64, b: f64| {
        let distance = (a - b).abs();
        (distance > 2.0 * TINY) & (distance < f64::INFINITY)
    };
    each_of_two(a, b, values, is_plain);
    if !values.iter().fold(true, |all, &plain| all & plain) {
        for (at, _) in values.iter().enumerate().filter(|(_, plain)| !**plain) {
            compare_reals(op, a.get(at), b.get(at));
        }
    }
    match op {
        Comparison::Less => each_of_two(a, b, values, |a, b| a < b),
        Comparison::LessEq => each_of_two(a, b, values, |a, b| a <= b),
        Comparison::Equal => each_of_two(a, b, values, |a, b| a == b),
    }
}

struct Select<'a, T>(Source<'a, bool>, Source<'a, T>, Source<'a, T>, &'a mut [T]);

impl<T: Copy> Task for Select<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Select(condition, a, b, values) = self;
        let Source::Many(condition) = condition else {
            for (at, value) in values.iter_mut().enumerate() {
                *value = if condition.get(at) { a.get(at) } else { b.get(at) };
            }
            return;
        };
        let places = values.iter_mut().zip(condition);
        match (a, b) {
            (Source::Many(a), Source::Many(b)) => {
                places.zip(a).zip(b).for_each(|(((value, &c), &a), &b)| *value = if c { a } else { b });
            }
            (Source::Many(a), Source::One(b)) => {
                places.zip(a).for_each(|((value, &c), &a)| *value = if c { a } else { b });
            }
            (Source::One(a), Source::Many(b)) => {
                places.zip(b).for_each(|((value, &c), &b)| *value = if c { a } else { b });
            }
            (Source::One(a), Source::One(b)) => {
                places.for_each(|(value, &c)| *value = if c { a } else { b });
            }
        }
    }
}

fn select<T: Copy>(condition: Source<'_, bool>, a: Source<'_, T>, b: Source<'_, T>, values: &mut [T]) {
    on_this_machine(Select(condition, a, b, values));
}
