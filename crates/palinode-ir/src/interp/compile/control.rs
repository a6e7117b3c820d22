//! Loops, branches and fused operations as jumps, and the moves at their ends.

use std::collections::{HashMap, HashSet};

use super::Lower;
use crate::interp::code::{FusedResult, FusedSite, Ins, Kind, Operand, Place, Slot, SweepSite};
use crate::interp::store_rule::fused_reuses;
use crate::liveness::{BlockMarks, InstMarks};
use crate::op::{Keep, Op};
use crate::program::{Block, Inst, Value};
use crate::types::Elem;

impl Lower<'_> {
    pub(super) fn for_loop(&mut self, inst: &Inst, marks: &InstMarks, descending: bool) {
        let body = &inst.blocks[0];
        self.carry(inst, &inst.args[1..], &marks.dies[1..], &[&body.params[1..]]);
        let k = self.define(body.params[0]).slot;
        let n = self.slot(inst.args[0]);
        self.hand_on_in_place(body, &body.params[1..]);
        let start = self.emit_open(if descending {
            Ins::ForDown { k, n, end: 0 }
        } else {
            Ins::ForUp { k, n, end: 0 }
        });
        let top = self.here();
        self.block(body, &marks.blocks[0]);
        self.move_results(body, &marks.blocks[0], &inst.results);
        self.emit(if descending { Ins::NextDown { k, body: top } } else { Ins::NextUp { k, n, body: top } });
        self.land(start);
    }

    pub(super) fn while_loop(&mut self, inst: &Inst, marks: &InstMarks) {
        let (head, body) = (&inst.blocks[0], &inst.blocks[1]);
        self.carry(inst, &inst.args, &marks.dies, &[&head.params, &body.params]);
        self.hand_on_in_place(body, &body.params);
        let top = self.here();
        self.block(head, &marks.blocks[0]);
        let holds = self.slot(head.results[0]);
        let exit = self.emit_open(Ins::JumpIfNot { c: holds, to: 0 });
        self.out.whiles.push((exit, inst.span));
        self.block(body, &marks.blocks[1]);
        self.move_results(body, &marks.blocks[1], &inst.results);
        self.emit(Ins::JumpBack { to: top });
        self.land(exit);
    }

    /// The state has a register for each value, whichever block works on it; so have the cotangents, which
    /// become the results. The turn, if there is one, moves what it gives to the results.
    pub(super) fn sweep(&mut self, inst: &Inst, marks: &InstMarks, keep: Keep) {
        let (advance, back, turn) = (&inst.blocks[0], &inst.blocks[1], inst.blocks.get(2));
        let (states, cotangents) = back.params[1..].split_at(advance.results.len());
        for &result in &inst.results {
            self.define(result);
        }
        for (&inner, &result) in cotangents.iter().zip(&inst.results) {
            self.slots[inner.index()] = Some(self.slot(result));
        }
        let mut state = Vec::new();
        for (&ours, &theirs) in advance.params[1..].iter().zip(states) {
            let place = self.define(ours);
            self.slots[theirs.index()] = Some(place.slot);
            state.push(place);
        }
        let mut others: Vec<Place> = cotangents.iter().map(|&value| self.place(value)).collect();
        if let Some(turn) = turn {
            let (ends, given) = turn.params.split_at(states.len());
            for (&end, place) in ends.iter().zip(&state) {
                self.slots[end.index()] = Some(place.slot);
            }
            others = given.iter().map(|&value| self.define(value)).collect();
        }
        let counter = self.define(advance.params[0]).slot;
        self.slots[back.params[0].index()] = Some(counter);
        // The number of rounds is looked at after the moves, which may go over its register.
        let rounds = self.fresh(Kind::Int);
        self.emit(Ins::MoveInt { d: rounds, a: self.slot(inst.args[0]) });
        let to = state.iter().copied().chain(others);
        let from = inst.args[1..].iter().zip(&marks.dies[1..]);
        let moves = to.zip(from).map(|(to, (&from, &dies))| (to, self.slot(from), dies)).collect();
        self.parallel(moves);
        let named = |&value: &Value| (self.place(value), self.function.name_of(value).cloned());
        let cotangents_named = cotangents.iter().map(named).collect();
        let site = self.out.sweeps.len() as u32;
        self.out.sweeps.push(SweepSite {
            keep,
            rounds,
            counter,
            state,
            cotangents: cotangents_named,
            span: self.span,
            advance: 0,
            back: 0,
            turn: None,
            end: 0,
        });
        self.emit(Ins::SweepStart { site });
        let top = self.here();
        self.emit(Ins::SweepNext { site });
        self.out.sweeps[site as usize].advance = self.here();
        self.hand_on_in_place(advance, &advance.params[1..]);
        self.block(advance, &marks.blocks[0]);
        self.move_results(advance, &marks.blocks[0], &advance.params[1..]);
        self.emit(Ins::JumpBack { to: top });
        self.out.sweeps[site as usize].back = self.here();
        self.hand_on_in_place(back, cotangents);
        self.block(back, &marks.blocks[1]);
        self.move_results(back, &marks.blocks[1], &inst.results);
        self.emit(Ins::JumpBack { to: top });
        if let Some(turn) = turn {
            self.out.sweeps[site as usize].turn = Some(self.here());
            self.block(turn, &marks.blocks[2]);
            self.move_results(turn, &marks.blocks[2], &inst.results);
            self.emit(Ins::JumpBack { to: top });
        }
        self.out.sweeps[site as usize].end = self.here();
    }

    /// Moves the initial values of a loop into the registers that its blocks and its results share.
    fn carry(&mut self, inst: &Inst, initial: &[Value], dies: &[bool], params: &[&[Value]]) {
        for (at, &result) in inst.results.iter().enumerate() {
            let slot = self.define(result).slot;
            for block in params {
                self.slots[block[at].index()] = Some(slot);
            }
        }
        let moves = initial.iter().zip(dies).zip(&inst.results);
        let moves = moves.map(|((&from, &dies), &to)| (self.place(to), self.slot(from), dies)).collect();
        self.parallel(moves);
    }

    fn move_results(&mut self, block: &Block, marks: &BlockMarks, to: &[Value]) {
        let moves = block.results.iter().zip(&marks.results_die).zip(to);
        let moves = moves.map(|((&from, &dies), &to)| (self.place(to), self.slot(from), dies)).collect();
        self.parallel(moves);
    }

    /// Sets the register of a parameter aside for the scalar that is handed on to it, where nothing reads the
    /// parameter once that scalar is known.
    fn hand_on_in_place(&mut self, body: &Block, params: &[Value]) {
        let mut defined: HashMap<Value, usize> = HashMap::new();
        let mut last_use: HashMap<Value, usize> = HashMap::new();
        for (at, inst) in body.insts.iter().enumerate() {
            defined.extend(inst.results.iter().map(|&result| (result, at)));
            inst.for_each_use(&mut |value| {
                last_use.insert(value, at);
            });
        }
        for (&param, &next) in params.iter().zip(&body.results) {
            let (Some(&at), None) = (defined.get(&next), self.slots[next.index()]) else { continue };
            if self.kind(param) == Kind::Array || body.results.contains(&param) {
                continue;
            }
            let by = &body.insts[at];
            // A loop reads its number of rounds in every round, and blocks run after results have begun to
            // change.
            let reads_late = by.blocks.iter().any(|block| uses(block, param))
                || (matches!(by.op, Op::For { .. }) && by.args[0] == param);
            let free = last_use.get(&param).is_none_or(|&last| last < at || (last == at && !reads_late));
            if free {
                self.slots[next.index()] = self.slots[param.index()];
            }
        }
    }

    pub(super) fn branches(&mut self, inst: &Inst, marks: &InstMarks) {
        let condition = self.slot(inst.args[0]);
        let results: Vec<Place> = inst.results.iter().map(|&result| self.define(result)).collect();
        for block in &inst.blocks {
            let inner: HashSet<Value> =
                block.insts.iter().flat_map(|inst| inst.results.iter().copied()).collect();
            for (place, value) in results.iter().zip(&block.results) {
                let free = place.kind != Kind::Array && inner.contains(value);
                if free && self.slots[value.index()].is_none() {
                    self.slots[value.index()] = Some(place.slot);
                }
            }
        }
        let otherwise = self.emit_open(Ins::JumpIfNot { c: condition, to: 0 });
        self.block(&inst.blocks[0], &marks.blocks[0]);
        self.move_results(&inst.blocks[0], &marks.blocks[0], &inst.results);
        let end = self.emit_open(Ins::Jump { to: 0 });
        self.land(otherwise);
        self.block(&inst.blocks[1], &marks.blocks[1]);
        self.move_results(&inst.blocks[1], &marks.blocks[1], &inst.results);
        self.land(end);
    }

    /// A loop over the elements, in scalar code.
    pub(super) fn fused(&mut self, inst: &Inst, marks: &InstMarks) {
        let block = &inst.blocks[0];
        let arrays: Vec<(Value, Value)> = inst
            .args
            .iter()
            .copied()
            .zip(block.params.iter().copied())
            .filter(|&(arg, _)| !self.ty(arg).is_scalar())
            .collect();
        for (&arg, &param) in inst.args.iter().zip(&block.params) {
            if self.ty(arg).is_scalar() {
                self.slots[param.index()] = Some(self.slot(arg));
            }
        }
        let plain = |block: &Block| BlockMarks {
            insts: block.insts.iter().map(|_| InstMarks::default()).collect(),
            ..BlockMarks::default()
        };
        if arrays.is_empty() {
            self.block(block, &plain(block));
            inst.results.iter().for_each(|&result| {
                self.define(result);
            });
            let moves = block.results.iter().zip(&inst.results);
            let moves = moves.map(|(&from, &to)| (self.place(to), self.slot(from), false)).collect();
            self.parallel(moves);
            return;
        }
        let (mut operands, results) = self.fused_registers(inst, marks);
        let slots = operands.iter().map(|&(_, slot)| slot).collect();
        let additions = additions(block, arrays.iter().map(|&(_, param)| param));
        let params: Vec<Value> = arrays.iter().map(|&(_, param)| param).collect();
        self.out.fused.push(FusedSite {
            operands: slots,
            results: results.clone(),
            additions,
            instructions: 0,
            stages: self.stages(block, &params),
        });
        let site = self.out.fused.len() as u32 - 1;
        let (k, n) = (self.fresh(Kind::Int), self.fresh(Kind::Int));
        let start = self.emit_open(Ins::Fused { site, k, n, end: 0 });
        let top = self.here();
        // An element of every operand is read before one of a result is written: the result may go over an
        // operand.
        for (&(_, param), &(_, a)) in arrays.iter().zip(&operands) {
            let Place { kind, slot: d } = self.define(param);
            self.emit(match kind {
                Kind::Real => Ins::LoadReal { d, a, k },
                Kind::Int => Ins::LoadInt { d, a, k },
                Kind::Bool | Kind::Array => Ins::LoadBool { d, a, k },
            });
        }
        self.block(block, &plain(block));
        for (&FusedResult { slot: a, .. }, &value) in results.iter().zip(&block.results) {
            let Place { kind, slot: x } = self.place(value);
            self.emit(match kind {
                Kind::Real => Ins::StoreReal { a, k, x },
                Kind::Int => Ins::StoreInt { a, k, x },
                Kind::Bool | Kind::Array => Ins::StoreBool { a, k, x },
            });
        }
        self.emit(Ins::NextElement { k, n, body: top });
        self.out.fused[site as usize].instructions = u64::from(self.here() - top);
        self.land(start);
        // What results went over has become them.
        operands.retain(|(_, slot)| results.iter().all(|result| result.slot != *slot));
        for operand in self.operands(&inst.args, &marks.dies) {
            if operand.take && operands.iter().any(|&(_, slot)| slot == operand.place.slot) {
                self.emit(Ins::Release { a: operand.place.slot });
            }
        }
    }

    /// The registers of a fused operation: of each array operand while it runs, and of each result.
    fn fused_registers(&mut self, inst: &Inst, marks: &InstMarks) -> (Vec<(Value, Slot)>, Vec<FusedResult>) {
        let dying = self.operands(&inst.args, &marks.dies);
        let is_array = |&(_, operand): &(&Value, &Operand)| operand.place.kind == Kind::Array;
        let arrays: Vec<(Value, Operand)> = inst
            .args
            .iter()
            .zip(&dying)
            .filter(is_array)
            .map(|(&value, &operand)| (value, operand))
            .collect();
        let lent: Vec<(Elem, bool)> =
            arrays.iter().map(|&(value, operand)| (self.ty(value).elem, operand.take)).collect();
        let kinds: Vec<Elem> = inst.results.iter().map(|&result| self.ty(result).elem).collect();
        let mut operands: Vec<(Value, Slot)> =
            arrays.iter().map(|&(value, operand)| (value, operand.place.slot)).collect();
        let mut results = Vec::new();
        for ((&result, &elem), origin) in inst.results.iter().zip(&kinds).zip(fused_reuses(&lent, &kinds)) {
            let over = origin.map(|at| arrays[at]);
            if let Some((_, lender)) = over
                && self.slots[result.index()].is_none()
            {
                self.slots[result.index()] = Some(lender.place.slot);
            }
            let slot = self.define(result).slot;
            if let Some((value, lender)) = over
                && slot != lender.place.slot
            {
                self.emit(Ins::TakeArray { d: slot, a: lender.place.slot });
                operands.iter_mut().filter(|(of, _)| *of == value).for_each(|(_, at)| *at = slot);
            }
            results.push(FusedResult { slot, elem, over_operand: over.is_some() });
        }
        (operands, results)
    }

    /// Moves that happen at once: `(to, from, the array dies)`. No two go to the same register.
    fn parallel(&mut self, moves: Vec<(Place, Slot, bool)>) {
        for kind in Kind::ALL {
            let of_kind = moves.iter().filter(|(to, _, _)| to.kind == kind);
            let all: Vec<Move> = of_kind.map(|&(to, from, dies)| Move { to: to.slot, from, dies }).collect();
            self.parallel_of(kind, all);
        }
    }

    fn parallel_of(&mut self, kind: Kind, all: Vec<Move>) {
        let (staying, mut moves): (Vec<Move>, Vec<Move>) = all.into_iter().partition(|m| m.to == m.from);
        let staying: HashSet<Slot> = staying.iter().map(|m| m.from).collect();
        // How many moves still read a register, and which one overwrites it.
        let mut readers: HashMap<Slot, usize> = HashMap::new();
        moves.iter().for_each(|m| *readers.entry(m.from).or_default() += 1);
        let writer: HashMap<Slot, usize> = moves.iter().enumerate().map(|(at, m)| (m.to, at)).collect();
        let is_free = |readers: &HashMap<Slot, usize>, slot: Slot| readers.get(&slot).is_none_or(|&n| n == 0);
        let mut ready: Vec<usize> =
            (0..moves.len()).rev().filter(|&at| is_free(&readers, moves[at].to)).collect();
        let mut done = vec![false; moves.len()];
        let mut oldest = 0;
        loop {
            let (at, to) = match ready.pop() {
                Some(at) => {
                    done[at] = true;
                    (at, moves[at].to)
                }
                None => {
                    while oldest < moves.len() && done[oldest] {
                        oldest += 1;
                    }
                    if oldest == moves.len() {
                        return;
                    }
                    // Only cycles are left: set the source of one move aside.
                    (oldest, self.spare(kind))
                }
            };
            let Move { from, dies, .. } = moves[at];
            let left = readers.get_mut(&from).expect("a pending move reads it");
            *left -= 1;
            let take = dies && *left == 0 && !staying.contains(&from);
            self.emit_move(kind, to, from, take);
            if !done[at] {
                moves[at] = Move { from: to, dies: true, ..moves[at] };
                readers.insert(to, 1);
            }
            if is_free(&readers, from)
                && let Some(&next) = writer.get(&from)
                && !done[next]
            {
                ready.push(next);
            }
        }
    }

    fn spare(&mut self, kind: Kind) -> Slot {
        if let Some(spare) = self.spare[kind as usize] {
            return spare;
        }
        let spare = self.fresh(kind);
        self.spare[kind as usize] = Some(spare);
        spare
    }

    fn emit_move(&mut self, kind: Kind, d: Slot, a: Slot, take: bool) {
        self.emit(match kind {
            Kind::Real => Ins::MoveReal { d, a },
            Kind::Int => Ins::MoveInt { d, a },
            Kind::Bool => Ins::MoveBool { d, a },
            Kind::Array if take => Ins::TakeArray { d, a },
            Kind::Array => Ins::ShareArray { d, a },
        });
    }
}

#[derive(Clone, Copy)]
struct Move {
    to: Slot,
    from: Slot,
    dies: bool,
}

/// How many additions of a fused block add two numbers that differ from place to place.
fn additions(block: &Block, arrays: impl Iterator<Item = Value>) -> u64 {
    let mut vary: HashSet<Value> = arrays.collect();
    let mut count = 0;
    for inst in &block.insts {
        if inst.op == Op::add() && inst.args.iter().all(|arg| vary.contains(arg)) {
            count += 1;
        }
        if inst.args.iter().any(|arg| vary.contains(arg)) {
            vary.extend(&inst.results);
        }
    }
    count
}

fn uses(block: &Block, value: Value) -> bool {
    let mut found = false;
    block.for_each_use(&mut |used| found |= used == value);
    found
}
