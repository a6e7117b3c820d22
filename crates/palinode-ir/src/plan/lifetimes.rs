//! The lifetime of every array of a program: where it is born, where it is used last forwards and backwards,
//! what keeps it, what changes it, and where it would lie in one arena.
//!
//! Input: the program of a value, or of value and gradient, and its prediction. Output: a row for each array
//! of the entry, in order of birth.
//!
//! Points are the entry's instructions in the order of the text, those of blocks after the instruction that
//! holds them. What a loop uses of what is around it lives to the loop's end. *Backwards* begins where the
//! first result is complete.
//!
//! Offsets are found by interval colouring: buffers in order of birth, each at the lowest place that nothing
//! live covers. An array that is changed in place stays in its buffer, and so does one that a loop carries;
//! an update that copies begins a new one.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::named::named;
use crate::op::{FuncId, Op};
use crate::plan::Prediction;
use crate::plan::narrow::turn;
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Span, Type};

named! {
    /// What kind of state a value is (seed "Memory and State").
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum StateKind {
        /// Exists during one run: temporaries, residuals, cotangents.
        Ephemeral = "ephemeral",
        /// Outlives runs: parameters, the state of an optimizer.
        Persistent = "persistent",
        /// Shared by everything: random keys.
        Global = "global",
        /// Belongs to the world: data that was read, effects.
        External = "external",
    }
}

/// An instruction, as a place in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// What it does.
    pub op: &'static str,
    /// Where it comes from.
    pub span: Span,
    /// How many loops and branches are around it.
    pub depth: usize,
}

/// One array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its value.
    pub value: Value,
    /// The variable it is a version of, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// What kind of state it is.
    pub state: StateKind,
    /// The most bytes that it has.
    pub bytes: u64,
    /// The point that makes it; nothing for an argument.
    pub born: Option<usize>,
    /// The last point that uses it forwards.
    pub forward: Option<usize>,
    /// The last point that uses it backwards.
    pub reverse: Option<usize>,
    /// The first point backwards that uses it: the operation whose rule keeps it.
    pub kept_for: Option<usize>,
    /// The point that changes it in place, or copies it if it is needed later.
    pub consumed_by: Option<usize>,
    /// The first of the arrays that lie in the same memory, one after the other.
    pub buffer: Value,
    /// Its lengths when it has the most bytes, if they are known.
    pub shape: Option<Vec<u64>>,
    /// Its place in the arena.
    pub offset: u64,
}

/// The arrays of a program in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The entry's instructions.
    pub points: Vec<Point>,
    /// The first point backwards; as many as there are points if nothing runs backwards.
    pub turn: usize,
    /// One for each array, in order of birth.
    pub rows: Vec<Lifetime>,
    /// The bytes of an arena in which every array has its place.
    pub arena: u64,
}

/// The lifetimes of the arrays of a program. `states` says of each argument what kind of state it is;
/// `has_gradient`, that the results after the first come from a reverse sweep.
pub fn lifetimes(
    program: &Program,
    prediction: &Prediction,
    states: &[StateKind],
    has_gradient: bool,
) -> Lifetimes {
    let main = program.main();
    let copies = prediction.copies.iter().filter(|copied| copied.value.0 == program.entry);
    let mut scan = Scan { copied: copies.map(|copied| copied.value.1).collect(), ..Scan::default() };
    let ends = scan.block(&main.body, 0);
    let total = scan.points.len();
    for &result in &main.body.results {
        scan.use_at(result, total);
    }
    scan.take_over();
    let turn = match turn(&main.body).checked_sub(1) {
        Some(last) if has_gradient => ends[last] + 1,
        Some(_) | None => total,
    };
    let mut rows: Vec<Lifetime> = scan
        .defined
        .iter()
        .filter(|(value, _)| !main.ty(**value).is_scalar())
        .map(|(&value, &born)| row(main, program.entry, prediction, &scan, value, born, turn))
        .collect();
    for row in &mut rows {
        if let Some(at) = main.body.params.iter().position(|&param| param == row.value) {
            row.state = states.get(at).copied().unwrap_or(StateKind::Persistent);
        }
    }
    fill(&mut rows);
    rows.sort_by_key(|row| (row.born.map_or(0, |born| born + 1), row.value));
    let arena = colour(&mut rows);
    Lifetimes { points: scan.points, turn, rows, arena }
}

#[derive(Default)]
struct Scan {
    points: Vec<Point>,
    /// Where each value is made; nothing for arguments.
    defined: BTreeMap<Value, Option<usize>>,
    uses: HashMap<Value, Vec<usize>>,
    consumed: HashMap<Value, usize>,
    /// Results of updates that copy.
    copied: HashSet<Value>,
    /// Arrays that an instruction or a loop may take over as its own, with its result and its last point.
    taken: Vec<(Value, Value, usize)>,
    /// Values that lie in one buffer.
    same: HashMap<Value, Value>,
}

impl Scan {
    fn use_at(&mut self, value: Value, point: usize) {
        self.uses.entry(value).or_default().push(point);
    }

    /// Where the buffer of a value is noted.
    fn buffer(&self, value: Value) -> Value {
        let mut value = value;
        while let Some(&other) = self.same.get(&value) {
            value = other;
        }
        value
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.buffer(a), self.buffer(b));
        if a != b {
            self.same.insert(a.max(b), a.min(b));
        }
    }

    /// What nothing needs afterwards goes on in the same buffer.
    fn take_over(&mut self) {
        for (array, result, end) in core::mem::take(&mut self.taken) {
            if self.uses.get(&array).is_none_or(|uses| uses.iter().all(|&at| at <= end)) {
                self.join(array, result);
            }
        }
    }

    /// The points at which the instructions of a block end.
    fn block(&mut self, block: &Block, depth: usize) -> Vec<usize> {
        let at = self.points.len().checked_sub(1).filter(|_| depth > 0);
        for &param in &block.params {
            self.defined.insert(param, at);
        }
        block.insts.iter().map(|inst| self.inst(inst, depth)).collect()
    }

    fn inst(&mut self, inst: &Inst, depth: usize) -> usize {
        let at = self.points.len();
        self.points.push(Point { op: inst.op.name(), span: inst.span, depth });
        for &arg in &inst.args {
            self.use_at(arg, at);
        }
        if let Some(changed) = inst.op.consumes() {
            self.consumed.insert(inst.args[changed], at);
            if !self.copied.contains(&inst.results[0]) {
                self.taken.push((inst.args[changed], inst.results[0], at));
            }
        }
        // The turn of a sweep runs before its rounds are reversed.
        let order: &[usize] = if inst.blocks.len() == 3 { &[0, 2, 1] } else { &[0, 1] };
        for block in order.iter().filter_map(|&at| inst.blocks.get(at)) {
            self.block(block, depth + 1);
        }
        let end = self.points.len() - 1;
        for block in &inst.blocks {
            for &result in &block.results {
                self.use_at(result, end);
            }
        }
        if inst.op.repeats() {
            // The next round needs it again.
            for value in inst.blocks.iter().flat_map(Block::captures) {
                self.use_at(value, end);
            }
        }
        if matches!(inst.op, Op::Sweep { .. }) {
            let (advance, back) = (&inst.blocks[0], &inst.blocks[1]);
            let state = advance.results.len();
            for (at, &next) in advance.results.iter().enumerate() {
                self.join(back.params[1 + at], advance.params[1 + at]);
                self.join(next, advance.params[1 + at]);
            }
            for (at, &result) in inst.results.iter().enumerate().take(back.results.len()) {
                self.join(back.params[1 + state + at], result);
                if inst.blocks.len() == 2 {
                    self.taken.push((inst.args[1 + state + at], result, end));
                }
                self.join(back.results[at], result);
            }
            if let Some(turn) = inst.blocks.get(2) {
                let (ends, given) = turn.params.split_at(state);
                for (&end, &own) in ends.iter().zip(&advance.params[1..]) {
                    self.join(end, own);
                }
                for (&arg, &inner) in inst.args[1 + state..].iter().zip(given) {
                    self.join(inner, arg);
                }
                for (&given, &result) in turn.results.iter().zip(&inst.results) {
                    self.join(given, result);
                }
            }
        } else if inst.op.repeats() {
            let body = &inst.blocks[inst.blocks.len() - 1];
            let counters = usize::from(matches!(inst.op, Op::For { .. }));
            for (at, &result) in inst.results.iter().enumerate() {
                self.join(body.params[at + counters], result);
                self.taken.push((inst.args[at + counters], result, end));
                self.join(body.results[at], result);
                if let Some(head) = inst.blocks.first().filter(|_| counters == 0) {
                    self.join(head.params[at], result);
                }
            }
        }
        for &result in &inst.results {
            self.defined.insert(result, Some(at));
        }
        end
    }
}

fn row(
    main: &Function,
    entry: FuncId,
    prediction: &Prediction,
    scan: &Scan,
    value: Value,
    born: Option<usize>,
    turn: usize,
) -> Lifetime {
    let uses = scan.uses.get(&value).map_or(&[][..], |uses| uses);
    let ty = main.ty(value);
    let size = ty.elem.bytes(prediction.real_bytes) as u64;
    let backwards = || uses.iter().copied().filter(|&at| at >= turn && at < scan.points.len());
    Lifetime {
        value,
        name: main.name_of(value).map(|name| name.to_string()),
        ty,
        state: StateKind::Ephemeral,
        bytes: prediction.elements.get(&(entry, value)).copied().unwrap_or(0) * size,
        born,
        forward: uses.iter().copied().filter(|&at| at < turn).max(),
        reverse: uses.iter().copied().filter(|&at| at >= turn).max(),
        kept_for: backwards().min().filter(|_| born.is_none_or(|born| born < turn)),
        consumed_by: scan.consumed.get(&value).copied(),
        buffer: scan.buffer(value),
        shape: prediction.shapes.get(&(entry, value)).cloned(),
        offset: 0,
    }
}

/// What a loop carries into a round is as long as what lies in its memory otherwise: the walk notes results
/// only.
fn fill(rows: &mut [Lifetime]) {
    let mut largest: HashMap<Value, (u64, Option<Vec<u64>>)> = HashMap::new();
    for row in rows.iter().filter(|row| row.shape.is_some()) {
        let known = largest.entry(row.buffer).or_default();
        if known.1.is_none() || row.bytes > known.0 {
            *known = (row.bytes, row.shape.clone());
        }
    }
    for row in rows.iter_mut().filter(|row| row.shape.is_none() && row.bytes == 0) {
        if let Some((bytes, shape)) = largest.get(&row.buffer) {
            (row.bytes, row.shape) = (*bytes, shape.clone());
        }
    }
}

/// Finds a place for each buffer; gives the size of the arena.
fn colour(rows: &mut [Lifetime]) -> u64 {
    // The time and the bytes of each buffer.
    let mut buffers: BTreeMap<Value, (usize, usize, u64)> = BTreeMap::new();
    for row in rows.iter() {
        let born = row.born.map_or(0, |born| born + 1);
        let last = row.forward.max(row.reverse).map_or(born, |last| last + 1);
        let buffer = buffers.entry(row.buffer).or_insert((born, last, 0));
        *buffer = (buffer.0.min(born), buffer.1.max(last), buffer.2.max(row.bytes));
    }
    let mut order: Vec<(Value, (usize, usize, u64))> = buffers.into_iter().collect();
    order.sort_by_key(|&(value, (born, _, bytes))| (born, core::cmp::Reverse(bytes), value));
    let mut placed: Vec<(u64, u64, usize, usize)> = Vec::new();
    let mut offsets: HashMap<Value, u64> = HashMap::new();
    let mut arena = 0;
    for (value, (born, last, bytes)) in order {
        let mut others: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&(_, _, from, to)| from <= last && born <= to)
            .map(|&(start, end, _, _)| (start, end))
            .collect();
        others.sort_unstable();
        let mut offset = 0;
        for (start, end) in others {
            if offset + bytes <= start {
                break;
            }
            offset = offset.max(end);
        }
        placed.push((offset, offset + bytes, born, last));
        offsets.insert(value, offset);
        arena = arena.max(offset + bytes);
    }
    for row in rows {
        row.offset = offsets[&row.buffer];
    }
    arena
}
