//! Which known values a linear block needs, and how it gets them: computed again, or kept.
//!
//! Input: the known and the linear half of a block. Output: the linear half with everything it uses in its
//! scope, and the values that the known half must keep.

use smallvec::smallvec;

use crate::fast::{FastMap, FastSet};
use crate::op::{Axis, IntOp, Narrow, Op};
use crate::program::{Block, Inst, Value};
use crate::transform::split::{KnownHalf, Splitter, Thread, read_log};
use crate::types::{Elem, Span, Type};

/// What to do about the known values that a linear block uses.
pub(crate) struct Plan {
    /// To be kept by the known half, in order.
    pub(crate) stored: Vec<Value>,
    /// To be computed again: which of `cheap`, ascending.
    again: Vec<usize>,
    /// Lengths to be computed again besides, in order.
    measures: Vec<Inst>,
    /// The loop counter of the known half and of the linear half.
    round: Option<(Value, Value)>,
    id: u32,
    /// The known instructions, in order, that may be computed again.
    cheap: Vec<Inst>,
    /// Reads of scalar logs.
    prefix: Vec<Inst>,
    /// Where arrays are kept.
    places: Vec<Place>,
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
        let counter = round.map(|(k, _)| k);
        let (stored, again) = splitter.kept_or_again(id, counter, &needs, &cheap, &chosen);
        let mut plan = Plan {
            stored,
            again,
            measures: Vec::new(),
            round,
            id,
            cheap,
            prefix: Vec::new(),
            places: Vec::new(),
        };
        measured.into_iter().for_each(|length| plan.require(splitter, length));
        plan
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
            reach(&self.cheap, &by_result, at, &mut needed, &mut at_hand)
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

/// How many operations are repeated for one length or position.
const MAX_REPEATED: usize = 32;

/// Whether instruction `at` can be repeated from what is at hand; `needed` collects the instructions to
/// repeat.
fn reach(
    cheap: &[Inst],
    by_result: &FastMap<Value, usize>,
    at: usize,
    needed: &mut Vec<usize>,
    at_hand: &mut dyn FnMut(Value) -> bool,
) -> bool {
    if needed.contains(&at) {
        return true;
    }
    if needed.len() >= MAX_REPEATED {
        return false;
    }
    needed.push(at);
    cheap[at].args.iter().all(|&arg| {
        at_hand(arg)
            || by_result.get(&arg).is_some_and(|&other| reach(cheap, by_result, other, needed, at_hand))
    })
}

impl Splitter<'_> {
    /// The format in which an array is kept, if not its own.
    pub(crate) fn narrow(&self, array: Value) -> Option<Narrow> {
        self.shared.storage.narrow_for(self.b.name_of(array).as_deref(), self.b.ty(array))
    }
}
