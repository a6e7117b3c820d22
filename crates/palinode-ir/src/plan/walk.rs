//! An imagined run: the control flow, the lengths and the lifetimes of a program, without its numbers.
//!
//! Input: a program, the shapes of its inputs, and how to find out what depends on data: from the events of a
//! real run, or not at all. Output: peak bytes, what is live at the peak, and the copies that remain. It
//! follows the memory model that `interp` states, so for the same numbers of rounds it predicts a real run
//! exactly, allocation by allocation.
//!
//! A `for` whose rounds are alike is not walked to its end (`loops.rs`): three rounds, a jump that lets the
//! logs grow, and the last round (`steady.rs` says when). A branch on data without a record is walked both
//! ways; what follows is walked once, with at least the memory of either (`join.rs`): then the peak is a
//! bound.
//!
//! A walk takes at most [`EFFORT`], or about as long as the run that it imagines. One that would take longer
//! is made again as a bound ([`Walk::bounding`]): loops whose rounds are unlike each other forget the number
//! of the round, and know only how large it can be; then their rounds are alike.
//!
//! Known limits: calls nested deeper than [`MAX_DEPTH`] are refused, because the walk uses the native stack;
//! so are loops of which more rounds would have to be walked than a run takes time for.

mod loops;
mod operations;
mod sweep;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::interp::bookkeeping::{self, Registers};
use crate::interp::{Datum, Event, check_inputs};
use crate::liveness::{self, BlockMarks, InstMarks};
use crate::op::{FuncId, Op};
use crate::plan::buffers::{Buffer, Ledger, Shape, State, elements};
use crate::plan::known::{Id, Ints, Thing};
use crate::plan::{Copied, Growth, PlanError, Snapshots, join};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Elem, Span, Type};

const MAX_DEPTH: usize = 300;
/// So many instructions may be walked through, whatever the run takes: some milliseconds.
pub(super) const EFFORT: u64 = 40_000;
/// A run does about so much work (`Ledger::work`) while one instruction is walked through.
const WORK_PER_INST: f64 = 20.0;
/// What it takes to copy and to join the state at a branch: one instruction for so many registers and
/// buffers.
const THINGS_PER_INST: usize = 16;

/// A walk through a program.
pub(super) struct Walk<'p> {
    program: &'p Program,
    marks: Rc<[BlockMarks]>,
    /// The bytes of the registers of each function.
    registers: Vec<u64>,
    /// The bytes of the lists of their constants.
    lists: u64,
    state: State,
    function: FuncId,
    /// The functions that are running, outermost first.
    calls: Vec<FuncId>,
    record: Option<&'p [Event]>,
    events: Option<core::slice::Iter<'p, Event>>,
    /// Whether every decision was known.
    pub(super) exact: bool,
    pub(super) growth: BTreeMap<Span, Growth>,
    pub(super) snapshots: BTreeMap<Span, Snapshots>,
    pub(super) copies: BTreeMap<(FuncId, Value), Copied>,
    /// The most elements that each array had.
    pub(super) most: BTreeMap<(FuncId, Value), u64>,
    /// The lengths that it had then, if all are known.
    pub(super) shapes: BTreeMap<(FuncId, Value), Vec<u64>>,
    /// The instruction that is running, by its first result.
    pub(super) running: Option<(FuncId, Value)>,
    /// Stop when so many bytes are live.
    stop_at: Option<u64>,
    /// So many instructions may be walked through, whatever the run takes: [`EFFORT`], or each of a long
    /// program once or twice.
    least: u64,
    /// How many instructions have been walked through.
    pub(super) effort: u64,
    /// By how much its limit is divided.
    part: f64,
    /// Whether loops may forget the numbers of their rounds, and whether one did.
    bounding: bool,
    pub(super) forgot: bool,
    /// What short sweeps have shown.
    trials: sweep::Trials,
    /// Which functions hold no array and no snapshots, and call none that does.
    scalar: Vec<bool>,
    /// What calls of them with real arguments gave and how much work they were, by how deep they are and what
    /// registers there are then: the next one is the same.
    scalar_calls: HashMap<(FuncId, usize, u64), (Vec<Thing>, f64)>,
}

/// Which functions hold no array and no snapshots, and call none that does.
fn scalar_functions(program: &Program) -> Vec<bool> {
    let holds_none = |function: &Function| {
        let sweeps = function.body.count(|inst| matches!(inst.op, Op::Sweep { .. }));
        sweeps == 0 && function.values.iter().all(|value| value.ty.is_scalar())
    };
    let mut scalar: Vec<bool> = program.functions.iter().map(holds_none).collect();
    let callees: Vec<Vec<usize>> = program.functions.iter().map(Function::callees).collect();
    let mut is_settled = false;
    while !is_settled {
        is_settled = true;
        for (at, callees) in callees.iter().enumerate() {
            if scalar[at] && callees.iter().any(|&callee| !scalar[callee]) {
                (scalar[at], is_settled) = (false, false);
            }
        }
    }
    scalar
}

/// Why a walk ended early.
pub(super) enum Stop {
    Problem(PlanError),
    /// It would take longer than the run.
    TooLong,
    /// As many bytes are live as were asked for.
    Reached,
}

impl From<PlanError> for Stop {
    fn from(problem: PlanError) -> Stop {
        Stop::Problem(problem)
    }
}

type Walked<T = ()> = Result<T, Stop>;

impl<'p> Walk<'p> {
    pub(super) fn new(program: &'p Program, real_bytes: usize, events: Option<&'p [Event]>) -> Walk<'p> {
        let marks = program.functions.iter().map(liveness::mark).collect();
        Walk::with_marks(program, marks, real_bytes, events)
    }

    fn with_marks(
        program: &'p Program,
        marks: Rc<[BlockMarks]>,
        real_bytes: usize,
        events: Option<&'p [Event]>,
    ) -> Walk<'p> {
        let registers: Vec<Registers> = program.functions.iter().map(Registers::of).collect();
        let real = real_bytes as u64;
        Walk {
            program,
            marks,
            registers: registers.iter().map(|registers| registers.bytes(real)).collect(),
            lists: registers.iter().map(|registers| registers.list_bytes(real)).sum(),
            state: State { ledger: Ledger::new(real_bytes), frames: Vec::new(), snapshots: Vec::new() },
            function: program.entry,
            calls: Vec::new(),
            record: events,
            events: events.map(<[Event]>::iter),
            exact: true,
            growth: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            copies: BTreeMap::new(),
            most: BTreeMap::new(),
            shapes: BTreeMap::new(),
            running: None,
            stop_at: None,
            least: EFFORT.max(2 * program.size() as u64),
            effort: 0,
            part: 1.0,
            bounding: false,
            forgot: false,
            trials: sweep::Trials::default(),
            scalar: scalar_functions(program),
            scalar_calls: HashMap::new(),
        }
    }

    /// A walk that may take only a part of what one may take.
    pub(super) fn dividing(mut self, part: u64) -> Walk<'p> {
        self.part = part as f64;
        self
    }

    /// A walk that is quick, and gives a bound where it would not be.
    pub(super) fn bounding(mut self) -> Walk<'p> {
        self.bounding = true;
        self
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.state.ledger
    }

    /// Another walk through the same program.
    pub(super) fn walked_again(&self) -> Walk<'p> {
        Walk::with_marks(self.program, Rc::clone(&self.marks), self.ledger().real_bytes(), self.record)
    }

    /// The same walk again, which stops when the most bytes are live.
    pub(super) fn again_to_the_peak(self) -> Walk<'p> {
        let mut again = self.walked_again();
        again.stop_at = Some(self.ledger().peak);
        (again.bounding, again.part) = (self.bounding, self.part);
        again.trials = self.trials;
        again
    }

    fn stop_at_peak(&self) -> Walked {
        if self.stop_at == Some(self.ledger().live) { Err(Stop::Reached) } else { Ok(()) }
    }

    /// Walks from the inputs to the results.
    pub(super) fn run<R>(&mut self, inputs: &[Datum<R>]) -> Walked {
        let main = self.program.main();
        let types: Vec<Type> = main.body.params.iter().map(|&param| main.ty(param)).collect();
        let name = |at: usize| main.name_of(main.body.params[at]).cloned().unwrap_or_else(|| "?".into());
        check_inputs(&types, &name, inputs)
            .map_err(|wrong| PlanError::Inputs { code: wrong.code(), message: wrong.to_string() })?;
        self.state.ledger.reserve(0, bookkeeping::RUN + self.lists);
        let entry = bookkeeping::frames(1, self.registers[self.program.entry.index()]);
        self.state.ledger.charge_frames(entry);
        let mut frame = vec![Thing::Unset; main.values.len()];
        for (&param, input) in main.body.params.iter().zip(inputs) {
            let thing = self.input(main.ty(param), input)?;
            self.note_value(param, thing);
            frame[param.index()] = thing;
        }
        let results = self.call(self.program.entry, frame)?;
        let element = |value: Value| self.ledger().element_bytes(main.ty(value).elem);
        let elements: Vec<u64> = main.body.results.iter().map(|&value| element(value)).collect();
        for (thing, bytes) in results.into_iter().zip(elements) {
            let copy = bookkeeping::result(self.size(thing).saturating_mul(bytes));
            self.state.ledger.reserve(0, copy);
            self.drop_all(&[thing]);
        }
        if self.events.as_mut().and_then(Iterator::next).is_some() {
            let what = "more events than the program has";
            return Err(PlanError::Diverged { span: Span::NONE, what }.into());
        }
        Ok(())
    }

    fn input<R>(&mut self, ty: Type, input: &Datum<R>) -> Walked<Thing> {
        if ty.is_scalar() {
            return Ok(match input {
                Datum::Real(_) => Thing::Real,
                Datum::Int(tensor) => Thing::Int(tensor.data.first().copied()),
                Datum::Bool(tensor) => Thing::Int(tensor.data.first().map(|&b| i64::from(b))),
            });
        }
        let shape: Shape = input.shape().iter().map(|&length| Some(length as u64)).collect();
        let id = self.allocate(ty.elem, shape, Span::NONE)?;
        self.state.ledger.get_mut(id).ints = match input {
            Datum::Int(tensor) if ty.rank == 1 => {
                Some(Ints::new(tensor.data.iter().map(|&n| Some(n)).collect()))
            }
            Datum::Real(_) | Datum::Int(_) | Datum::Bool(_) => None,
        };
        Ok(Thing::Array(id))
    }

    // ---- memory

    /// A fresh array. Where a length depends on data, the record says how many elements there are.
    fn allocate(&mut self, elem: Elem, mut shape: Shape, span: Span) -> Walked<Id> {
        let known = elements(&shape);
        let count = match &mut self.events {
            None => known.ok_or(PlanError::DependsOnData { what: "the length of an array", span })?,
            Some(events) => match events.next() {
                Some(&Event::Elements(recorded)) if known.is_none_or(|known| known == recorded) => recorded,
                _ => return Err(PlanError::Diverged { span, what: "another allocation" }.into()),
            },
        };
        if shape.iter().filter(|length| length.is_none()).count() == 1 {
            let others =
                shape.iter().flatten().fold(1, |product: u64, &length| product.saturating_mul(length));
            let unknown = shape.iter_mut().find(|length| length.is_none()).expect("there is one");
            *unknown = count.checked_div(others);
        }
        let id = self.state.ledger.allocate(elem, shape, count);
        self.stop_at_peak()?;
        Ok(id)
    }

    /// A copy of an array, which one holder of the old one then holds instead.
    fn copy(&mut self, id: Id, span: Span) -> Walked<Id> {
        let Buffer { elem, shape, ints, at_most, .. } = self.ledger().get(id).clone();
        let fresh = self.allocate(elem, shape, span)?;
        self.state.ledger.work += self.size(Thing::Array(fresh)) as f64;
        let copy = self.state.ledger.get_mut(fresh);
        (copy.ints, copy.at_most) = (ints, at_most);
        self.state.ledger.release(id);
        Ok(fresh)
    }

    fn frame(&mut self) -> &mut Vec<Thing> {
        self.state.frames.last_mut().expect("a function is running")
    }

    fn set(&mut self, value: Value, thing: Thing) {
        self.frame()[value.index()] = thing;
    }

    fn get(&self, value: Value) -> Thing {
        self.state.frames.last().expect("a function is running")[value.index()]
    }

    /// The operands in order; of several uses of a dying array, the last one takes it.
    fn fetch(&mut self, values: &[Value], dies: &[bool]) -> Vec<Thing> {
        let mut found = Vec::with_capacity(values.len());
        for (at, &value) in values.iter().enumerate() {
            let thing = self.get(value);
            if let Thing::Array(id) = thing {
                if dies[at] && !values[at + 1..].contains(&value) {
                    self.set(value, Thing::Unset);
                } else {
                    self.state.ledger.hold(id);
                }
            }
            found.push(thing);
        }
        found
    }

    fn drop_all(&mut self, things: &[Thing]) {
        for thing in things {
            if let Thing::Array(id) = thing {
                self.state.ledger.release(*id);
            }
        }
    }

    fn release(&mut self, values: &[Value]) {
        for &value in values {
            if let Thing::Array(id) = self.get(value) {
                self.state.ledger.release(id);
                self.set(value, Thing::Unset);
            }
        }
    }

    // ---- control

    fn call(&mut self, callee: FuncId, frame: Vec<Thing>) -> Walked<Vec<Thing>> {
        if self.state.frames.len() >= MAX_DEPTH {
            return Err(PlanError::TooDeep { limit: MAX_DEPTH }.into());
        }
        self.calls.push(callee);
        let registers = self.calls.iter().map(|callee| self.registers[callee.index()]).sum();
        self.state.ledger.charge_frames(bookkeeping::frames(self.calls.len(), registers));
        let params = &self.program.function(callee).body.params;
        // Without a call graph's every path: there may be more than anybody could walk.
        let known = (self.events.is_none()
            && self.scalar[callee.index()]
            && params.iter().all(|param| matches!(frame[param.index()], Thing::Real)))
        .then_some((callee, self.calls.len(), registers));
        if let Some((results, work)) = known.and_then(|known| self.scalar_calls.get(&known)) {
            self.calls.pop();
            self.state.ledger.work += work;
            return Ok(results.clone());
        }
        let work = self.ledger().work;
        let caller = core::mem::replace(&mut self.function, callee);
        self.state.frames.push(frame);
        let program = self.program;
        let body = &program.function(callee).body;
        let marks = Rc::clone(&self.marks);
        let marks = &marks[callee.index()];
        self.block(body, marks)?;
        let results = self.fetch(&body.results, &marks.results_die);
        let left = self.state.frames.pop().expect("it was pushed");
        self.drop_all(&left);
        self.calls.pop();
        self.function = caller;
        if let Some(known) = known {
            self.scalar_calls.insert(known, (results.clone(), self.ledger().work - work));
        }
        Ok(results)
    }

    fn block(&mut self, block: &'p Block, marks: &BlockMarks) -> Walked {
        self.release(&marks.release_at_start);
        for (inst, marks) in block.insts.iter().zip(&marks.insts) {
            self.inst(inst, marks)?;
            self.release(&marks.release_after);
        }
        Ok(())
    }

    /// Remembers what an array holds and how long it was.
    fn note_value(&mut self, value: Value, thing: Thing) {
        if let Thing::Array(id) = thing {
            let of = (self.function, value);
            if self.ledger().get(id).value != Some(of) {
                self.state.ledger.get_mut(id).value = Some(of);
            }
            let buffer = self.state.ledger.get(id);
            let elements = buffer.elements().unwrap_or(buffer.made);
            if self.most.get(&of).is_none_or(|&most| elements > most) {
                self.most.insert(of, elements);
                match buffer.shape.iter().copied().collect() {
                    Some(shape) => self.shapes.insert(of, shape),
                    None => self.shapes.remove(&of),
                };
            }
        }
    }

    fn inst(&mut self, inst: &'p Inst, marks: &InstMarks) -> Walked {
        self.spend(1)?;
        self.running = inst.results.first().map(|&result| (self.function, result));
        match &inst.op {
            Op::For { descending, .. } => self.for_loop(inst, marks, *descending),
            Op::While { .. } => self.while_loop(inst, marks),
            Op::Sweep { keep, .. } => self.sweep(inst, marks, *keep),
            Op::If => self.branch(inst, marks),
            Op::Call(callee) => {
                let args = self.fetch(&inst.args, &marks.dies);
                let function = self.program.function(*callee);
                let mut frame = vec![Thing::Unset; function.values.len()];
                for (&param, arg) in function.body.params.iter().zip(args) {
                    frame[param.index()] = arg;
                }
                let results = self.call(*callee, frame)?;
                self.define(inst, &results);
                Ok(())
            }
            // What has blocks of its own has no lengths, which stops the walk.
            _ => self.operation(inst, marks),
        }
    }

    fn define(&mut self, inst: &Inst, results: &[Thing]) {
        for (&value, &thing) in inst.results.iter().zip(results) {
            self.set(value, thing);
            self.note_value(value, thing);
        }
    }

    /// The next decision of the record; what is known without it must agree.
    fn decision(&mut self, known: Option<i64>, span: Span) -> Walked<Option<bool>> {
        let known = known.map(|value| value != 0);
        match &mut self.events {
            None => Ok(known),
            Some(events) => match events.next() {
                Some(&Event::Holds(holds)) if known.is_none_or(|known| known == holds) => Ok(Some(holds)),
                _ => Err(PlanError::Diverged { span, what: "another decision" }.into()),
            },
        }
    }

    fn branch(&mut self, inst: &'p Inst, marks: &InstMarks) -> Walked {
        match self.decision(self.get(inst.args[0]).int(), inst.span)? {
            Some(holds) => self.side(inst, marks, usize::from(!holds)),
            None => {
                self.exact = false;
                let before = self.copied_state()?;
                self.side(inst, marks, 0)?;
                let first = core::mem::replace(&mut self.state, before);
                self.side(inst, marks, 1)?;
                self.state = join::joined(&first, &self.state);
                self.stop_at_peak()
            }
        }
    }

    /// The state, to go on from it twice.
    fn copied_state(&mut self) -> Walked<State> {
        let things: usize = self.state.frames.iter().chain(&self.state.snapshots).map(Vec::len).sum();
        self.spend((things / THINGS_PER_INST) as u64)?;
        Ok(self.state.clone())
    }

    /// Notes what the walk takes; ends it if a run would have been quicker. A recorded run has an end, and
    /// was waited for.
    fn spend(&mut self, effort: u64) -> Walked {
        self.effort += effort;
        let most = self.least as f64 + self.ledger().work / WORK_PER_INST;
        if self.effort as f64 * self.part > most && self.events.is_none() {
            Err(Stop::TooLong)
        } else {
            Ok(())
        }
    }

    fn side(&mut self, inst: &'p Inst, marks: &InstMarks, which: usize) -> Walked {
        let (block, marks) = (&inst.blocks[which], &marks.blocks[which]);
        self.block(block, marks)?;
        let results = self.fetch(&block.results, &marks.results_die);
        self.define(inst, &results);
        Ok(())
    }
}
