//! Which known values a linear block needs, and how it gets them: computed again, or kept.
//!
//! Input: the known and the linear half of a block. Output: the linear half with everything it uses in its
//! scope, and the values that the known half must keep.

use smallvec::smallvec;

use crate::fast::{FastMap, FastSet};
use crate::op::{Axis, IntOp, Narrow, Op, Recompute};
use crate::program::{Block, Inst, Value};
use crate::transform::split::{KnownHalf, Splitter, Thread, read_log};
use crate::transform::storage::{Choice, Storage};
use crate::types::{Elem, Span, Type};

/// What to do about the known values that a linear block uses.
pub(crate) struct Plan {
    /// To be kept by the known half, in order.
    pub(crate) stored: Vec<Value>,
    /// To be computed again: which of `cheap`, ascending.
    again: Vec<usize>,
    /// How many operations may be repeated to get one value back.
    longest: usize,
    /// Lengths to be computed again besides, in order.
    measures: Vec<Inst>,
    /// The loop counter of the known half and of the linear half.
    round: Option<(Value, Value)>,
    id: u32,
    needs: Vec<Value>,
    /// The known instructions, in order, that may be computed again.
    cheap: Vec<Inst>,
    /// Reads of scalar logs.
    prefix: Vec<Inst>,
    /// Where arrays are kept.
    places: Vec<Place>,
}

/// Values in the order in which they were chosen, each once.
struct Chosen {
    order: Vec<Value>,
    all: FastSet<Value>,
}

impl From<Vec<Value>> for Chosen {
    fn from(order: Vec<Value>) -> Chosen {
        Chosen { all: order.iter().copied().collect(), order }
    }
}

impl Chosen {
    fn contains(&self, value: &Value) -> bool {
        self.all.contains(value)
    }

    fn push(&mut self, value: Value) {
        if self.all.insert(value) {
            self.order.push(value);
        }
    }
}

/// Where a kept array is in its log.
struct Place {
    array: Value,
    log: Value,
    lengths: Vec<Value>,
    /// The position, if it is kept too; else it follows from `flat`.
    position: Option<Value>,
    flat: Value,
    /// The format it is kept in, if not its own.
    narrow: Option<Narrow>,
}

/// The logs of a loop's own values.
pub(crate) struct Kept {
    /// `log_out` is the block's parameter here.
    pub(crate) threads: Vec<Thread>,
    /// What the linear half uses instead of a kept value.
    pub(crate) available: FastMap<Value, Value>,
}

impl Plan {
    /// Finds what `linear` uses of the block `id`, and decides.
    pub(crate) fn make(
        splitter: &Splitter<'_>,
        id: u32,
        known: &[Inst],
        round: Option<(Value, Value)>,
        linear: &Block,
    ) -> Plan {
        let mut needs = Vec::new();
        let mut seen = FastSet::default();
        linear.for_each_use(&mut |value| {
            if splitter.owner.get(&value) == Some(&id) && seen.insert(value) {
                needs.push(value);
            }
        });
        let (measured, needs): (Vec<Value>, Vec<Value>) =
            needs.into_iter().partition(|need| splitter.measures.contains_key(need));
        let known: Vec<&Inst> = known.iter().rev().collect();
        let chosen = splitter.chosen_again(id, &known);
        let may_repeat = |inst: &&&Inst| {
            splitter.may_repeat(id, inst) || inst.results.iter().any(|result| chosen.contains(result))
        };
        let cheap: Vec<Inst> = known.iter().filter(may_repeat).map(|&inst| inst.clone()).collect();
        let mut plan = Plan {
            stored: Vec::new(),
            again: Vec::new(),
            longest: longest(&splitter.shared.storage),
            measures: Vec::new(),
            round,
            id,
            needs,
            cheap,
            prefix: Vec::new(),
            places: Vec::new(),
        };
        plan.decide(splitter);
        measured.into_iter().for_each(|length| plan.require(splitter, length));
        plan
    }

    /// Chooses between keeping and computing again. Either every need is kept unless it is cheap to make from
    /// the others, or, where that is less, what the cheap needs are made from is kept instead of them.
    fn decide(&mut self, splitter: &Splitter<'_>) {
        let by_result: FastMap<Value, usize> =
            self.cheap.iter().enumerate().map(|(at, inst)| (inst.results[0], at)).collect();
        let round = self.round.map(|(k, _)| k);
        let mut dear: Vec<Value> =
            self.needs.iter().copied().filter(|need| !by_result.contains_key(need)).collect();
        dear.retain(|value| Some(*value) != round);
        let mut wanted: Vec<usize> =
            self.needs.iter().filter_map(|need| by_result.get(need).copied()).collect();
        wanted.sort_unstable();

        let (mut roots, mut again) = (Chosen::from(dear.clone()), FastSet::default());
        let id = self.id;
        let longest = self.longest;
        let is_outside = |value: Value| splitter.owner.get(&value) != Some(&id) || Some(value) == round;
        let from_roots = wanted.iter().all(|&at| {
            let mut needed = Vec::new();
            let mut leaf = |value: Value| {
                if !is_outside(value) && !by_result.contains_key(&value) {
                    roots.push(value);
                }
                !by_result.contains_key(&value) || is_outside(value)
            };
            let reached = reach(&self.cheap, &by_result, at, &mut needed, longest, &mut leaf);
            again.extend(needed);
            reached
        });
        let (mut kept, mut also) = (Chosen::from(dear), FastSet::default());
        for &at in &wanted {
            let mut needed = Vec::new();
            let mut at_hand = |value: Value| is_outside(value) || kept.contains(&value);
            if reach(&self.cheap, &by_result, at, &mut needed, longest, &mut at_hand) {
                also.extend(needed);
            } else {
                kept.push(self.cheap[at].results[0]);
            }
        }
        // An array counts for many numbers.
        let weight = |values: &[Value]| -> usize {
            values.iter().map(|&value| if splitter.b.ty(value).rank > 0 { 1000 } else { 1 }).sum()
        };
        if from_roots && weight(&roots.order) <= weight(&kept.order) {
            (kept, also) = (roots, again);
        }
        self.again = also.into_iter().filter(|&at| !kept.contains(&self.cheap[at].results[0])).collect();
        self.again.sort_unstable();
        self.stored = kept.order;
    }

    /// Makes an integer of the block available, too, with which a kept array is found: computed again if that
    /// takes nothing that is not there, else kept.
    fn require(&mut self, splitter: &Splitter<'_>, value: Value) {
        let is_again =
            |plan: &Plan, value: Value| plan.again.iter().any(|&at| plan.cheap[at].results.contains(&value));
        let round = self.round.map(|(k, _)| k);
        let is_there = |plan: &Plan, value: Value| {
            splitter.owner.get(&value) != Some(&plan.id)
                || Some(value) == round
                || plan.stored.contains(&value)
                || plan.measures.iter().any(|inst| inst.results.contains(&value))
                || is_again(plan, value)
        };
        if is_there(self, value) {
            return;
        }
        if let Some(inst) = splitter.measures.get(&value) {
            inst.args.iter().for_each(|&arg| self.require(splitter, arg));
            self.measures.push(inst.clone());
            return;
        }
        let by_result: FastMap<Value, usize> =
            self.cheap.iter().enumerate().map(|(at, inst)| (inst.results[0], at)).collect();
        let mut needed = Vec::new();
        let reached = by_result.get(&value).is_some_and(|&at| {
            let mut at_hand = |value: Value| is_there(self, value);
            reach(&self.cheap, &by_result, at, &mut needed, self.longest, &mut at_hand)
        });
        if reached {
            self.again.extend(needed);
            self.again.sort_unstable();
            self.again.dedup();
        } else {
            self.stored.push(value);
        }
    }

    /// Logs for the stored values of a loop body; the known half pushes, the linear half reads at `flat`.
    pub(crate) fn keep(
        &mut self,
        splitter: &mut Splitter<'_>,
        flat: Value,
        regular: bool,
        known: &mut KnownHalf,
    ) -> Kept {
        // Arrays first: their lengths and positions are needed as well.
        let arrays: Vec<Value> =
            self.stored.iter().copied().filter(|&value| splitter.b.ty(value).rank > 0).collect();
        let mut places = Vec::new();
        for &array in &arrays {
            let rank = splitter.b.ty(array).rank;
            let lengths: Vec<Value> = (0..rank).map(|axis| splitter.length(array, axis)).collect();
            // Literals belong to no block.
            let fixed = regular
                && lengths.iter().all(|length| splitter.depth.get(length).is_none_or(|depth| *depth == 0));
            let position = (!fixed).then(|| {
                let position = splitter.b.fresh(Type::INT);
                splitter.own(position);
                position
            });
            for further in lengths.iter().copied().chain(position) {
                self.require(splitter, further);
            }
            places.push((array, lengths, position));
        }
        let mut kept = Kept { threads: Vec::new(), available: FastMap::default() };
        let mut pushes = Vec::new();
        let mut array_threads = FastMap::default();
        let positions: FastMap<Value, Value> =
            places.iter().filter_map(|&(array, _, position)| Some((array, position?))).collect();
        for &value in &self.stored {
            let narrow = splitter.narrow(value);
            let elem = if narrow.is_some() { Elem::Int } else { splitter.b.ty(value).elem };
            let ty = Type::array(elem, 1);
            let [log_in, param, after, whole] = [(); 4].map(|()| splitter.b.fresh(ty));
            kept.threads.push(Thread { ty, log_in, log_out: param, whole });
            if let Some(&position) = positions.get(&value) {
                pushes.push(Inst::new(Op::Dim(0), vec![param], vec![position], Span::NONE));
            }
            let mut pushed = value;
            if let Some(narrow) = narrow {
                pushed = splitter.b.fresh(ty);
                pushes.push(Inst::new(Op::Pack(narrow), vec![value], vec![pushed], Span::NONE));
            }
            pushes.push(Inst::new(Op::Push, vec![param, pushed], vec![after], Span::NONE));
            array_threads.insert(value, whole);
        }
        // A position is kept too, so it is computed before anything is pushed.
        pushes.sort_by_key(|inst| inst.op == Op::Push);
        known.insts.splice(0..0, pushes.into_iter().rev());
        // Logs of scalars come first: one of them has an entry per round and can tell the offset.
        let of_arrays: FastSet<Value> = arrays.iter().map(|array| array_threads[array]).collect();
        kept.threads.sort_by_key(|thread| of_arrays.contains(&thread.whole));

        splitter.b.open_with(Vec::new());
        for &value in &self.stored {
            if splitter.b.ty(value).rank == 0 {
                let read = read_log(&mut splitter.b, array_threads[&value], flat);
                kept.available.insert(value, read);
            }
        }
        let head = splitter.b.close(&[]).insts;
        self.prefix = head;
        self.places = places
            .into_iter()
            .map(|(array, lengths, position)| Place {
                array,
                log: array_threads[&array],
                lengths,
                position,
                flat,
                narrow: splitter.narrow(array),
            })
            .collect();
        kept
    }

    /// Makes everything that the linear block uses available in it.
    pub(crate) fn recompute(
        self,
        splitter: &mut Splitter<'_>,
        mut available: FastMap<Value, Value>,
        linear: &mut Block,
    ) {
        if let Some((known, here)) = self.round {
            available.insert(known, here);
        }
        splitter.b.open_with(Vec::new());
        for inst in self.prefix {
            splitter.b.push(inst);
        }
        let at_hand =
            |available: &FastMap<Value, Value>, value: Value| *available.get(&value).unwrap_or(&value);
        // Lengths may be computed again, so scalars come before the kept arrays that need them, except for
        // those made from arrays.
        let mut after_arrays: FastSet<Value> = self.places.iter().map(|place| place.array).collect();
        let again = self.again.into_iter().map(|at| self.cheap[at].clone());
        let (scalars, arrays): (Vec<Inst>, Vec<Inst>) = again.partition(|inst| {
            let is_late = splitter.b.ty(inst.results[0]).rank > 0
                || inst.args.iter().any(|arg| after_arrays.contains(arg));
            if is_late {
                after_arrays.extend(&inst.results);
            }
            !is_late
        });
        let repeat = |splitter: &mut Splitter<'_>, available: &mut FastMap<Value, Value>, inst: Inst| {
            let result = splitter.b.fresh_like(inst.results[0]);
            let args = inst.args.iter().map(|&arg| at_hand(available, arg)).collect();
            available.insert(inst.results[0], result);
            splitter.b.push(Inst { args, results: smallvec![result], ..inst });
        };
        for inst in scalars.into_iter().chain(self.measures) {
            repeat(splitter, &mut available, inst);
        }
        for place in self.places {
            let lengths: Vec<Value> = place.lengths.iter().map(|&value| at_hand(&available, value)).collect();
            let size = lengths[1..]
                .iter()
                .fold(lengths[0], |size, &length| splitter.b.integer(IntOp::Mul, size, length));
            // How many entries of the log it takes.
            let entries = match place.narrow {
                None => size,
                Some(narrow) => {
                    let per_word = splitter.b.int(narrow.per_word() as i64);
                    let last = splitter.b.int(narrow.per_word() as i64 - 1);
                    let filled = splitter.b.integer(IntOp::Add, size, last);
                    splitter.b.integer(IntOp::Div, filled, per_word)
                }
            };
            let start = match place.position {
                Some(position) => at_hand(&available, position),
                None => splitter.b.integer(IntOp::Mul, place.flat, entries),
            };
            let step = splitter.b.int(1);
            let mut read = splitter.b.emit(Op::Read(vec![Axis::Range]), &[place.log, start, entries, step]);
            if let Some(narrow) = place.narrow {
                read = splitter.b.emit(Op::Unpack(narrow), &[read, size]);
            }
            if lengths.len() > 1 {
                read = splitter.b.emit(Op::Reshape, &[&[read], &lengths[..]].concat());
            }
            available.insert(place.array, read);
        }
        for inst in arrays {
            repeat(splitter, &mut available, inst);
        }
        let mut insts = splitter.b.close(&[]).insts;
        linear.substitute(&available);
        insts.append(&mut linear.insts);
        linear.insts = insts;
    }
}

/// How many operations may be repeated to get one value back.
fn longest(storage: &Storage) -> usize {
    match storage.recompute {
        _ if !storage.choices.is_empty() => 256,
        Recompute::Nothing | Recompute::Cheap => 8,
        Recompute::Elementwise => 32,
        Recompute::Anything => 256,
    }
}

/// Whether instruction `at` can be repeated from what is at hand; `needed` collects the instructions to
/// repeat.
fn reach(
    cheap: &[Inst],
    by_result: &FastMap<Value, usize>,
    at: usize,
    needed: &mut Vec<usize>,
    budget: usize,
    at_hand: &mut dyn FnMut(Value) -> bool,
) -> bool {
    if needed.contains(&at) {
        return true;
    }
    if needed.len() >= budget {
        return false;
    }
    needed.push(at);
    cheap[at].args.iter().all(|&arg| {
        at_hand(arg)
            || by_result
                .get(&arg)
                .is_some_and(|&other| reach(cheap, by_result, other, needed, budget, at_hand))
    })
}

impl Splitter<'_> {
    /// The format in which an array is kept, if not its own.
    pub(crate) fn narrow(&self, array: Value) -> Option<Narrow> {
        self.shared.storage.narrow_for(self.b.name_of(array).as_deref(), self.b.ty(array))
    }

    /// Whether an instruction of the block `id` may be repeated in the linear half.
    pub(crate) fn may_repeat(&self, id: u32, inst: &Inst) -> bool {
        let storage = &self.shared.storage;
        let named = inst.results.first().and_then(|&result| self.b.name_of(result));
        match named.and_then(|name| storage.choices.get(&*name)) {
            Some(Choice::Keep) => false,
            Some(Choice::Recompute) => self.effort(id, inst).is_some(),
            Some(Choice::Narrow(_)) | None => {
                self.effort(id, inst).is_some_and(|effort| effort <= storage.recompute)
            }
        }
    }

    /// The results of a block's instructions, given in order, that are to be computed again because of a
    /// choice by name: those of the variable, and the unnamed ones that it is made from or that are made from
    /// it, partials for instance.
    pub(crate) fn chosen_again(&self, id: u32, insts: &[&Inst]) -> FastSet<Value> {
        let storage = &self.shared.storage;
        let mut chosen = FastSet::default();
        if !storage.choices.values().any(|choice| *choice == Choice::Recompute) {
            return chosen;
        }
        let choice = |inst: &Inst| {
            let name = inst.results.first().and_then(|&result| self.b.name_of(result))?;
            Some(storage.choices.get(&*name).copied())
        };
        let may = |inst: &Inst| self.effort(id, inst).is_some();
        for inst in insts.iter().filter(|inst| may(inst)) {
            let from_chosen = choice(inst).is_none() && inst.args.iter().any(|arg| chosen.contains(arg));
            if from_chosen || choice(inst) == Some(Some(Choice::Recompute)) {
                chosen.extend(&inst.results);
            }
        }
        let mut wanted: FastSet<Value> = FastSet::default();
        for inst in insts.iter().rev().filter(|inst| may(inst)) {
            let is_operand =
                choice(inst).is_none() && inst.results.iter().any(|result| wanted.contains(result));
            if is_operand {
                chosen.extend(&inst.results);
            }
            if inst.results.iter().any(|result| chosen.contains(result)) {
                wanted.extend(&inst.args);
            }
        }
        chosen
    }

    /// How much must be allowed for an instruction to be repeated; nothing if it cannot be.
    fn effort(&self, id: u32, inst: &Inst) -> Option<Recompute> {
        // An array from outside that nothing changes can be looked at again.
        let stays = |array: &Value| {
            self.owner.get(array).is_some_and(|owner| *owner != id) && !self.consumed.contains(array)
        };
        // Lengths must be there before the arrays that have them.
        let is_real = inst.results.iter().all(|&result| self.b.ty(result).is_real());
        let effort = match &inst.op {
            Op::Dim(_) if !stays(&inst.args[0]) => None,
            Op::Read(axes) if stays(&inst.args[0]) => {
                let one = axes.iter().all(|axis| *axis == Axis::At);
                Some(if one { Recompute::Cheap } else { Recompute::Elementwise })
            }
            // A part of an array that is computed again, or of one that is kept.
            Op::Read(_) if self.consumed.contains(&inst.args[0]) => None,
            op => op.facts().again,
        };
        effort.filter(|&effort| is_real || effort <= Recompute::Cheap)
    }
}
