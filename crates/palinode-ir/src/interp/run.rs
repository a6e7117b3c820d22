//! Running register code: inputs, frames and outputs. The loop over the instructions is in `execute`.
//!
//! Frames are windows of four stacks on the heap: a recursion as deep as the limits allow needs no native
//! stack.

mod execute;
mod sweep;

use core::any::TypeId;
use std::sync::Arc;

pub use sweep::RoundBack;

use palinode_core::Real;

use super::code::{FunctionCode, FusedResult, FusedSite, Kind, Operand, Place};
use super::error::{RunError, RunErrorKind};
use super::ledger::{Memory, Record};
use super::store::Store;
use super::store_rule::takes_chunks;
use super::strips::{self, Registers, Room};
use super::tensor::Datum;
use super::value::{Array, Val, known, mismatch};
use super::{Limits, Stats, bookkeeping, general};
use crate::op::Literal;
use crate::types::{Elem, Span, Type};

/// How many steps pass between two reports of progress.
const STEPS_PER_REPORT: u64 = 1 << 16;

/// What is reported about a run while it goes on.
pub(super) trait Observer {
    /// So many steps have been taken.
    fn steps(&mut self, _so_far: u64) {}

    /// Whether [`Observer::back`] is wanted.
    fn watches(&self) -> bool {
        false
    }

    /// A sweep has reversed a round.
    fn back(&mut self, _round: &RoundBack) {}
}

/// Nobody looks.
pub(super) struct Nobody;

impl Observer for Nobody {}

/// Steps only.
pub(super) struct Steps<'a>(pub(super) &'a mut dyn FnMut(u64));

impl Observer for Steps<'_> {
    fn steps(&mut self, so_far: u64) {
        (self.0)(so_far);
    }
}

/// Rounds of sweeps only.
pub(super) struct RoundsBack<'a>(pub(super) &'a mut dyn FnMut(&RoundBack));

impl Observer for RoundsBack<'_> {
    fn watches(&self) -> bool {
        true
    }

    fn back(&mut self, round: &RoundBack) {
        (self.0)(round);
    }
}

/// A call in progress: where its registers start, and where it goes on.
#[derive(Clone, Copy)]
struct Frame {
    function: usize,
    next: usize,
    bases: [usize; 4],
}

/// Where and why a run stopped.
struct Failure {
    kind: RunErrorKind,
    function: usize,
    at: usize,
}

struct Machine<'c, R> {
    functions: &'c [FunctionCode],
    constants: Vec<Vec<R>>,
    reals: Vec<R>,
    ints: Vec<i64>,
    bools: Vec<bool>,
    arrays: Vec<Array<R>>,
    /// The callers of the running function, outermost first.
    callers: Vec<Frame>,
    /// The bytes of the registers of all calls that are running, and what has been charged for them.
    registers: u64,
    frames_charged: u64,
    /// Operands and results of kernels, kept for their memory.
    args: Vec<Val<R>>,
    out: Vec<Val<R>>,
    /// For fused operations, if there are any.
    room: Option<&'c mut Room>,
    memory: Memory,
    limits: Limits,
    /// The sweeps that are running, outermost first.
    #[allow(clippy::vec_box)] // a list has room for four, which would be kilobytes
    sweeps: Vec<Box<sweep::Running<R>>>,
}

/// What a run gives: its results, what it cost, and what was written down of it.
pub(super) type Ran<R> = (Vec<Datum<R>>, Stats, Record);

/// Runs the function number `entry`. Only a `RECORDED` run writes anything down.
pub(super) fn run<R: Real, const RECORDED: bool>(
    functions: &[FunctionCode],
    entry: usize,
    inputs: &[Datum<R>],
    limits: &Limits,
    record: Record,
    observer: &mut dyn Observer,
) -> Result<Ran<R>, RunError> {
    let is_plain = TypeId::of::<R>() == TypeId::of::<f64>();
    if is_plain && functions.iter().any(|function| !function.fused.is_empty()) {
        // On the stack: the account of the run is about the heap.
        let mut room = Room::EMPTY;
        run_in::<R, RECORDED>(functions, entry, inputs, limits, record, observer, Some(&mut room))
    } else {
        run_in::<R, RECORDED>(functions, entry, inputs, limits, record, observer, None)
    }
}

/// The same, with room for strips if they are of use.
#[inline(never)]
fn run_in<R: Real, const RECORDED: bool>(
    functions: &[FunctionCode],
    entry: usize,
    inputs: &[Datum<R>],
    limits: &Limits,
    record: Record,
    observer: &mut dyn Observer,
    room: Option<&mut Room>,
) -> Result<Ran<R>, RunError> {
    let main = &functions[entry];
    let error =
        |kind, span, function: &FunctionCode| RunError { kind, span, function: function.name.clone() };
    let name = |index: usize| main.param_names[index].clone();
    check_inputs(&main.param_types, &name, inputs).map_err(|kind| error(kind, Span::NONE, main))?;
    let memory = Memory::new(limits.budget, record);
    let real = size_of::<R>() as u64;
    let registers = main.registers.bytes(real);
    let lists: u64 = functions.iter().map(|function| function.registers.list_bytes(real)).sum();
    let frames_charged = bookkeeping::frames(1, registers);
    let at_start = memory.ledger.charge_beside(bookkeeping::RUN + lists + frames_charged, "call");
    at_start.map_err(|kind| error(kind, Span::NONE, main))?;
    let mut machine = Machine {
        functions,
        constants: functions.iter().map(constants).collect(),
        reals: Vec::new(),
        ints: Vec::new(),
        bools: Vec::new(),
        arrays: Vec::new(),
        callers: Vec::new(),
        registers,
        frames_charged,
        args: Vec::new(),
        out: Vec::new(),
        room,
        memory,
        limits: *limits,
        sweeps: Vec::new(),
    };
    let frame = machine.enter(entry);
    for ((place, ty), input) in main.params.iter().zip(&main.param_types).zip(inputs) {
        let memory = &mut machine.memory;
        let mut value = Val::from_datum(input, memory).map_err(|kind| error(kind, Span::NONE, main))?;
        if ty.elem == Elem::F32 {
            value.round32("input", memory).map_err(|kind| error(kind, Span::NONE, main))?;
        }
        machine.store(&frame, *place, value);
    }
    match machine.execute::<RECORDED>(frame, observer) {
        Err(Failure { kind, function, at }) => {
            let function = &functions[function];
            Err(error(kind, function.spans[at], function))
        }
        Ok(()) => {
            let results: Vec<Val<R>> =
                main.results.iter().map(|&operand| machine.fetch(&frame, operand)).collect();
            machine.arrays.clear();
            let result_bytes = machine.memory.stats().result_bytes;
            let mut outputs = Vec::with_capacity(results.len());
            for result in results {
                let copy = bookkeeping::result(result.bytes());
                let charged = machine.memory.ledger.charge_beside(copy, "result");
                charged.map_err(|kind| error(kind, Span::NONE, main))?;
                outputs.push(result.into_datum());
            }
            let stats = Stats { result_bytes, ..machine.memory.stats() };
            Ok((outputs, stats, machine.memory.ledger.take_record()))
        }
    }
}

fn constants<R: Real>(function: &FunctionCode) -> Vec<R> {
    let one = |literal: &Literal| match literal {
        Literal::Real(value) => R::from_f64(*value),
        Literal::Named(name) => R::constant(*name),
        Literal::Int(_) | Literal::Bool(_) => unreachable!("only reals are listed"),
    };
    function.real_constants.iter().map(one).collect()
}

/// Whether inputs are what parameters of these types and names take.
pub(crate) fn check_inputs<R>(
    params: &[Type],
    name: &dyn Fn(usize) -> Arc<str>,
    inputs: &[Datum<R>],
) -> Result<(), RunErrorKind> {
    if inputs.len() != params.len() {
        return Err(RunErrorKind::InputCount { expected: params.len(), given: inputs.len() });
    }
    for (index, (input, &expected)) in inputs.iter().zip(params).enumerate() {
        let given = input.ty();
        let same_kind = given.elem == expected.elem || (given.is_real() && expected.is_real());
        if !same_kind || given.rank != expected.rank {
            return Err(RunErrorKind::InputType { index, name: name(index), expected, given });
        }
        let consistent = match input {
            Datum::Real(tensor) => tensor.is_consistent(),
            Datum::Int(tensor) => tensor.is_consistent(),
            Datum::Bool(tensor) => tensor.is_consistent(),
        };
        if !consistent {
            let (shape, elements) = (input.shape().into(), input.elements());
            return Err(RunErrorKind::InputData { index, shape, elements });
        }
    }
    Ok(())
}

impl<R: Real> Machine<'_, R> {
    /// Charges the registers of a call that is about to be entered, with which so many are running. Stacks do
    /// not become smaller again.
    fn charge_frame(&mut self, function: usize, calls: usize) -> Result<(), RunErrorKind> {
        self.registers += self.functions[function].registers.bytes(size_of::<R>() as u64);
        let needed = bookkeeping::frames(calls, self.registers);
        if needed > self.frames_charged {
            self.memory.ledger.charge_beside(needed - self.frames_charged, "call")?;
            self.frames_charged = needed;
        }
        Ok(())
    }

    /// Makes the registers of a function on top of the stacks.
    fn enter(&mut self, function: usize) -> Frame {
        let bases = [self.reals.len(), self.ints.len(), self.bools.len(), self.arrays.len()];
        let code = &self.functions[function];
        let [reals, ints, bools, arrays] = code.sizes;
        self.reals.resize(bases[0] + reals, R::zero());
        self.ints.resize(bases[1] + ints, 0);
        self.bools.resize(bases[2] + bools, false);
        self.arrays.resize_with(bases[3] + arrays, || Array::Empty);
        fn set<T: Copy>(file: &mut [T], first: usize, constants: &[T]) {
            file[first..first + constants.len()].copy_from_slice(constants);
        }
        set(&mut self.reals, bases[0] + code.first_constants[0], &self.constants[function]);
        set(&mut self.ints, bases[1] + code.first_constants[1], &code.int_constants);
        set(&mut self.bools, bases[2] + code.first_constants[2], &code.bool_constants);
        Frame { function, next: 0, bases }
    }

    fn leave(&mut self, frame: &Frame) {
        self.registers -= self.functions[frame.function].registers.bytes(size_of::<R>() as u64);
        self.reals.truncate(frame.bases[0]);
        self.ints.truncate(frame.bases[1]);
        self.bools.truncate(frame.bases[2]);
        self.arrays.truncate(frame.bases[3]);
    }

    fn store(&mut self, frame: &Frame, place: Place, value: Val<R>) {
        let at = frame.bases[place.kind as usize] + place.slot as usize;
        match value {
            Val::Real(value) => self.reals[at] = value,
            Val::Int(value) => self.ints[at] = value,
            Val::Bool(value) => self.bools[at] = value,
            Val::Array(value) => self.arrays[at] = value,
        }
    }

    fn fetch(&mut self, frame: &Frame, operand: Operand) -> Val<R> {
        let at = frame.bases[operand.place.kind as usize] + operand.place.slot as usize;
        match operand.place.kind {
            Kind::Real => Val::Real(self.reals[at]),
            Kind::Int => Val::Int(self.ints[at]),
            Kind::Bool => Val::Bool(self.bools[at]),
            Kind::Array if operand.take => Val::Array(core::mem::replace(&mut self.arrays[at], Array::Empty)),
            Kind::Array => Val::Array(self.arrays[at].clone()),
        }
    }

    /// Copies or moves a register of one frame to a register of another.
    fn transfer(&mut self, from: &Frame, operand: Operand, to: &Frame, place: Place) {
        let kind = place.kind as usize;
        let source = from.bases[kind] + operand.place.slot as usize;
        let target = to.bases[kind] + place.slot as usize;
        match place.kind {
            Kind::Real => self.reals[target] = self.reals[source],
            Kind::Int => self.ints[target] = self.ints[source],
            Kind::Bool => self.bools[target] = self.bools[source],
            Kind::Array => {
                self.arrays[target] = if operand.take {
                    core::mem::replace(&mut self.arrays[source], Array::Empty)
                } else {
                    self.arrays[source].clone()
                };
            }
        }
    }

    /// Counts the steps that have been taken and allows some more.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, allowed: &mut u64, observer: &mut dyn Observer) -> Result<u64, RunErrorKind> {
        self.memory.stats.steps += *allowed;
        if self.memory.stats.steps > 0 {
            observer.steps(self.memory.stats.steps);
        }
        let left = self.limits.steps - self.memory.stats.steps;
        if left == 0 {
            return Err(RunErrorKind::StepLimit { limit: self.limits.steps });
        }
        *allowed = left.min(STEPS_PER_REPORT);
        Ok(*allowed)
    }

    /// Makes the results of a fused operation; gives the number of elements.
    fn start_fused(&mut self, frame: &Frame, site: &FusedSite) -> Result<i64, RunErrorKind> {
        const OP: &str = "fused";
        let arrays = &mut self.arrays[frame.bases[3]..];
        let memory = &mut self.memory;
        for &operand in &site.operands {
            arrays[operand as usize].flatten(OP, memory)?;
        }
        let first = arrays[site.operands[0] as usize].shape().to_vec();
        for &other in &site.operands[1..] {
            let other = arrays[other as usize].shape();
            if other != first {
                return Err(mismatch(OP, &first, other));
            }
        }
        let count = first.iter().product::<usize>();
        for &FusedResult { slot, elem, over_operand } in &site.results {
            memory.stats.elements_filled += count as u64;
            if over_operand {
                arrays[slot as usize].own(OP, memory)?;
                continue;
            }
            let made = match elem {
                Elem::F64 | Elem::F32 => {
                    Val::from_reals(Store::filled(OP, first.clone(), R::zero(), memory)?)
                }
                Elem::Int => Val::from_ints(Store::filled(OP, first.clone(), 0, memory)?),
                Elem::Bool => Val::from_bools(Store::filled(OP, first.clone(), false, memory)?),
            };
            let Val::Array(made) = made else { unreachable!("arrays are made of arrays") };
            arrays[slot as usize] = made;
        }
        memory.stats.elements_added += site.additions * count as u64;
        Ok(count as i64)
    }

    /// Does places of a fused operation whose results have been made by strips; how many.
    fn by_strips(&mut self, frame: &Frame, site: &FusedSite, count: i64) -> Result<i64, RunErrorKind> {
        let (Some(room), Some(reals), Some(arrays)) = (
            self.room.as_deref_mut(),
            known::<_, Vec<f64>>(&mut self.reals),
            known::<_, Vec<Array<f64>>>(&mut self.arrays),
        ) else {
            return Ok(0);
        };
        let [real, int, bool, array] = frame.bases;
        let registers =
            Registers { reals: &reals[real..], ints: &self.ints[int..], bools: &self.bools[bool..] };
        let (count, trap) = (count as usize, self.limits.trap_nonfinite);
        let done = strips::run(site, count, trap, registers, &mut arrays[array..], room, &mut self.memory)?;
        Ok(done as i64)
    }

    /// An operation done by a kernel.
    #[inline(never)]
    fn general(&mut self, frame: &Frame, site: usize) -> Result<(), RunErrorKind> {
        let site = &self.functions[frame.function].generals[site];
        for (at, operand) in site.operands.iter().enumerate() {
            if operand.place.kind == Kind::Array && !takes_chunks(&site.op, at) {
                let array = &mut self.arrays[frame.bases[3] + operand.place.slot as usize];
                array.flatten(site.op.name(), &mut self.memory)?;
            }
        }
        let (mut args, mut out) = (core::mem::take(&mut self.args), core::mem::take(&mut self.out));
        args.clear();
        args.extend(site.operands.iter().map(|&operand| self.fetch(frame, operand)));
        let done = general::apply(&site.op, site.single, &mut args, &mut out, &self.limits, &mut self.memory);
        for (value, &place) in out.drain(..).zip(&site.results) {
            self.store(frame, place, value);
        }
        args.clear();
        self.args = args;
        self.out = out;
        done
    }
}
