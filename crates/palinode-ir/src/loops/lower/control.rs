//! Loops and branches.
//!
//! A value that a loop carries has a register, or a buffer, which the rounds hand on. A round that makes a
//! new array makes it in other memory, and the two are exchanged at its end. The results of branches are in
//! the same register or buffer, whichever ran.

use std::rc::Rc;

use super::super::form::{Buf, Index, Kind, Operand, Place, Reg, Role, Stmt};
use super::log::{LONG, Pushes};
use super::scalar::{multiple, sum};
use super::value::{Arr, Def, Handle, Log, Single, Val, Whole};
use super::{ANY, Lower, Refusal};
use crate::liveness::{BlockMarks, InstMarks};
use crate::program::{Block, Inst, Value};

/// Up to so many possible rounds, there is memory for all of them, though there may be fewer.
const FEW: i64 = 1 << 16;

/// What is carried from round to round.
pub(super) enum Carried {
    /// In a register.
    Single(Reg),
    /// In a buffer.
    Array { arr: Arr, handle: Rc<Handle> },
    /// A log, as it is when the loop begins, and the register of its length.
    Log { log: Log, length: Reg },
}

impl<'p> Lower<'p> {
    pub(super) fn for_loop(
        &mut self,
        inst: &'p Inst,
        marks: &InstMarks,
        descending: bool,
    ) -> Result<(), Refusal> {
        let block = &inst.blocks[0];
        let args = self.operands(&inst.args, &marks.dies);
        let mut args = args.into_iter();
        let Some(Val::Single(Single::Whole(rounds))) = args.next() else { unreachable!("typing: a number") };
        self.compute_captures(&[block])?;
        if rounds.most <= 0 {
            let results: Vec<Val> = args.collect();
            return self.define_all(inst, results);
        }
        // Memory for as many rounds as there could be, if these are not many.
        let grows = rounds.index.known().is_none() && rounds.most > FEW;
        let carried = self.enter(block, &block.params[1..], args.collect(), grows)?;
        let counter = self.counter(0, rounds.most - 1);
        let operand = self.whole(&rounds);
        let outer = self.enter_loop();
        let (least, most) = self.ranges[counter.index()];
        let k = Single::Whole(Whole { index: Index::reg(counter), least, most });
        self.define(block.params[0], Val::Single(k))?;
        self.define_carried(&block.params[1..], &carried)?;
        let results = self.round(block, &marks.blocks[0])?;
        let lengths = self.next_round(&carried, results)?;
        let mut body = self.leave_loop(block, outer);
        let mut finals = Vec::new();
        for (carried, length) in carried.into_iter().zip(lengths) {
            finals.push(match (carried, length) {
                (Carried::Log { log, length: reg }, Some(after)) => {
                    self.log_after(log, reg, &after, &rounds, counter, descending, &mut body)?
                }
                (carried, _) => self.after(carried),
            });
        }
        self.form.spans.push((counter, self.span));
        self.emit(Stmt::For { counter, rounds: operand, descending, counts: true, body });
        self.define_all(inst, finals)
    }

    /// A log after a loop. If all rounds add as many elements, its length in the body follows from the round.
    #[allow(clippy::too_many_arguments)] // a log and a loop
    fn log_after(
        &mut self,
        log: Log,
        reg: Reg,
        after: &Log,
        rounds: &Whole,
        counter: Reg,
        descending: bool,
        body: &mut Vec<Stmt>,
    ) -> Result<Val, Refusal> {
        self.unsave(Rc::as_ptr(&log.handle), 1);
        let grown = after.grown.saturating_mul(rounds.most);
        let most = log.length.most.saturating_add(grown).min(LONG);
        let each = after.length.index.plus(&Index::reg(reg), -1).and_then(|growth| growth.known());
        let done = if descending {
            // The round is `rounds - 1 - counter`.
            rounds.index.offset(-1).and_then(|last| last.plus(&Index::reg(counter), -1))
        } else {
            Some(Index::reg(counter))
        };
        let exact = each.and_then(|each| {
            let start = log.length.index.plus(&done?, each)?;
            // A negative number of rounds counts as none.
            let total =
                if rounds.least >= 0 { sum(&log.length, &multiple(rounds, each)?, 1)? } else { return None };
            Some((start, total))
        });
        let length = match exact {
            Some((start, total)) => {
                replace(body, reg, &start);
                body.insert(0, Stmt::Index { to: reg, index: start });
                total
            }
            None => {
                let from = log.length.index.clone();
                self.emit(Stmt::Index { to: reg, index: from });
                let (index, to) = (after.length.index.clone(), reg);
                body.push(Stmt::Index { to, index });
                self.ranges[reg.index()] = (0, most);
                Whole { index: Index::reg(reg), least: 0, most }
            }
        };
        let length = Whole { least: length.least.max(0), most: length.most.min(most), ..length };
        let log = Log { length, grown: log.grown.saturating_add(grown), ..log };
        if self.form.buffers[log.handle.buf.index()].role == Role::Workspace {
            if log.length.most >= LONG && each != Some(0) && !log.is_carried {
                return self.refuse("a log whose length has no bound");
            }
            self.reserve(&log.handle, &log.length.clone());
        }
        Ok(self.settled_log(log))
    }

    pub(super) fn while_loop(&mut self, inst: &'p Inst, marks: &InstMarks) -> Result<(), Refusal> {
        let (head, body) = (&inst.blocks[0], &inst.blocks[1]);
        let args = self.operands(&inst.args, &marks.dies);
        self.compute_captures(&[head, body])?;
        let carried = self.enter(body, &body.params, args, true)?;
        for carried in &carried {
            if let Carried::Log { log, length } = carried {
                let index = log.length.index.clone();
                self.emit(Stmt::Index { to: *length, index });
            }
        }
        let outer = self.enter_loop();
        self.define_carried(&head.params, &carried)?;
        let holds = self.round(head, &marks.blocks[0])?;
        let Some(Val::Single(Single::Truth(holds))) = holds.into_iter().next() else {
            unreachable!("typing: a condition")
        };
        let condition = self.leave_loop(head, outer);
        let outer = self.enter_loop();
        self.define_carried(&body.params, &carried)?;
        let results = self.round(body, &marks.blocks[1])?;
        let lengths = self.next_round(&carried, results)?;
        for (carried, after) in carried.iter().zip(&lengths) {
            if let (Carried::Log { length, .. }, Some(after)) = (carried, after) {
                let index = after.length.index.clone();
                self.emit(Stmt::Index { to: *length, index });
            }
        }
        let stmts = self.leave_loop(body, outer);
        self.emit(Stmt::While { condition, holds, body: stmts });
        let finals = carried.into_iter().map(|carried| match carried {
            Carried::Log { log, length } => {
                self.unsave(Rc::as_ptr(&log.handle), 1);
                let length = Whole { index: Index::reg(length), least: 0, most: LONG };
                Val::Log(Log { length, grown: LONG, ..log })
            }
            carried => self.after(carried),
        });
        let finals: Vec<Val> = finals.collect();
        self.define_all(inst, finals)
    }

    /// Formulas that a block uses are computed before it: it may run often, or not at all.
    pub(super) fn compute_captures(&mut self, blocks: &[&'p Block]) -> Result<(), Refusal> {
        for value in blocks.iter().flat_map(|block| block.captures()) {
            if let Some(Val::Array(array)) = &self.frame().env[value.index()]
                && array.is_computed()
            {
                self.compute(value, None)?;
            }
        }
        Ok(())
    }

    /// What a loop carries, in registers and buffers of its own, set to what it begins with.
    pub(super) fn enter(
        &mut self,
        body: &Block,
        params: &[Value],
        args: Vec<Val>,
        grows: bool,
    ) -> Result<Vec<Carried>, Refusal> {
        let mut carried = Vec::with_capacity(args.len());
        for (&param, arg) in params.iter().zip(args) {
            let ty = self.ty(param);
            let pushes = if ty.rank == 1 { self.pushes(body, param) } else { Pushes::None };
            carried.push(match arg {
                Val::Single(single) => {
                    let reg = self.register(Kind::of(ty.elem));
                    let from = self.operand(&single);
                    self.emit(Stmt::Move { to: reg, from });
                    Carried::Single(reg)
                }
                arg if pushes != Pushes::None => {
                    let grows = grows || pushes == Pushes::Unbounded;
                    let log = self.log_of(arg, ty.elem, grows)?;
                    let length = self.counter(0, LONG);
                    self.save(Rc::as_ptr(&log.handle), 1);
                    Carried::Log { log, length }
                }
                arg => {
                    let array = self.array_of(&arg)?;
                    drop(arg);
                    let name = self.frame().function.name_of(param).cloned();
                    let (mut arr, mut handle) = self.changeable(array, name.clone())?;
                    // Only memory of the workspace is exchanged.
                    if !self.is_workspace(&handle) {
                        (arr, handle) = self.copied_apart(arr, name)?;
                    }
                    self.save(Rc::as_ptr(&handle), 2);
                    Carried::Array { arr, handle }
                }
            });
        }
        Ok(carried)
    }

    /// Notes that so many copies of a handle are held without need of what is in the memory.
    fn save(&mut self, handle: *const Handle, times: usize) {
        *self.saved.entry(handle).or_default() += times;
    }

    fn unsave(&mut self, handle: *const Handle, times: usize) {
        let count = self.saved.get_mut(&handle).expect("it was saved");
        *count -= times;
        if *count == 0 {
            self.saved.remove(&handle);
        }
    }

    /// What a round finds. A buffer is needed by the carried value, not by the [`Carried`] that keeps it
    /// here.
    pub(super) fn define_carried(&mut self, params: &[Value], carried: &[Carried]) -> Result<(), Refusal> {
        for (&param, carried) in params.iter().zip(carried) {
            let val = match carried {
                Carried::Single(reg) => Val::Single(self.single(*reg)),
                Carried::Array { arr, .. } => Val::Array(arr.clone()),
                Carried::Log { log, length } => {
                    let length = Whole { index: Index::reg(*length), least: 0, most: LONG };
                    Val::Log(Log { length, grown: 0, is_carried: true, ..log.clone() })
                }
            };
            self.define(param, val)?;
        }
        Ok(())
    }

    /// Begins the block of a loop; gives what [`Lower::leave_loop`] needs.
    pub(super) fn enter_loop(&mut self) -> usize {
        self.blocks.push(Vec::new());
        let frame = self.frame_mut();
        core::mem::replace(&mut frame.innermost, frame.pending.len())
    }

    pub(super) fn leave_loop(&mut self, block: &Block, outer: usize) -> Vec<Stmt> {
        self.leave(block);
        let frame = self.frame_mut();
        frame.pending.truncate(frame.innermost);
        frame.innermost = outer;
        self.blocks.pop().expect("just pushed")
    }

    pub(super) fn round(&mut self, block: &'p Block, marks: &BlockMarks) -> Result<Vec<Val>, Refusal> {
        self.insts(block, marks)?;
        Ok(self.operands(&block.results, &marks.results_die))
    }

    /// Forgets what is defined in a block.
    fn leave(&mut self, block: &Block) {
        block.for_each_definition(&mut |value| self.frame_mut().env[value.index()] = None);
    }

    /// Hands the results of a round on. Returns the logs as they are at its end.
    pub(super) fn next_round(
        &mut self,
        carried: &[Carried],
        results: Vec<Val>,
    ) -> Result<Vec<Option<Log>>, Refusal> {
        let mut logs = Vec::with_capacity(carried.len());
        let mut arrays: Vec<(usize, Arr)> = Vec::new();
        let mut moves: Vec<(Reg, Operand)> = Vec::new();
        for (at, (carried, result)) in carried.iter().zip(results).enumerate() {
            logs.push(None);
            match (carried, result) {
                (Carried::Single(reg), Val::Single(single)) => {
                    let from = self.operand(&single);
                    if from != Operand::Reg(*reg) {
                        moves.push((*reg, from));
                    }
                }
                (Carried::Log { log, .. }, Val::Log(after)) => {
                    if !Rc::ptr_eq(&log.handle, &after.handle) {
                        return self.refuse("a log that becomes another one");
                    }
                    logs[at] = Some(after);
                }
                (Carried::Array { arr, .. }, result) => {
                    let array = self.array_of(&result)?;
                    if array.shape != arr.shape {
                        return self.refuse("an array that changes its lengths from round to round");
                    }
                    arrays.push((at, array));
                }
                _ => return self.refuse("a vector that is a log in some rounds"),
            }
        }
        // Every result in memory of its own; what reads carried registers and memory is computed before these
        // change.
        let mut made: Vec<(usize, Arr)> = Vec::new();
        for (at, array) in arrays {
            let array = if self.owned(&array).is_some() { array } else { self.copied(array, None)? };
            made.push((at, array));
        }
        let mut taken: Vec<Buf> = Vec::new();
        let mut homes: Vec<(Buf, Buf)> = Vec::new();
        let mut kept = Vec::new();
        for (at, array) in made {
            let Carried::Array { arr, handle: home } = &carried[at] else { unreachable!("an array") };
            let own = Rc::clone(array.contiguous().expect("it was stored so").0);
            drop(array);
            let is_free = self.is_unique(&own) && self.is_workspace(&own) && !taken.contains(&own.buf);
            let from = if is_free {
                own
            } else {
                self.copied_apart(Arr::whole(arr.elem, Rc::clone(&arr.shape), own), None)?.1
            };
            taken.push(from.buf);
            homes.push((home.buf, from.buf));
            kept.push(from);
        }
        self.moves(moves);
        self.exchange(homes);
        Ok(logs)
    }

    /// Makes all these moves at once.
    fn moves(&mut self, mut moves: Vec<(Reg, Operand)>) {
        let targets: Vec<Reg> = moves.iter().map(|(to, _)| *to).collect();
        for at in 0..moves.len() {
            // What is overwritten before it is read is put aside.
            if let Operand::Reg(from) = moves[at].1
                && targets[..at].contains(&from)
            {
                let aside = self.register(self.form.registers[from.index()]);
                self.ranges[aside.index()] = self.ranges[from.index()];
                self.emit(Stmt::Move { to: aside, from: Operand::Reg(from) });
                moves[at].1 = Operand::Reg(aside);
            }
        }
        for (to, from) in moves {
            self.emit(Stmt::Move { to, from });
        }
    }

    /// Exchanges memory so that each home holds what the other buffer of its pair held. No buffer is the
    /// second of two pairs.
    fn exchange(&mut self, mut pairs: Vec<(Buf, Buf)>) {
        for at in 0..pairs.len() {
            let (home, from) = pairs[at];
            if home == from {
                continue;
            }
            self.emit(Stmt::Swap { a: home, b: from });
            // What was in `home` is in `from` now.
            for (_, other) in &mut pairs[at + 1..] {
                if *other == home {
                    *other = from;
                }
            }
        }
    }

    pub(super) fn after(&mut self, carried: Carried) -> Val {
        match carried {
            Carried::Single(reg) => {
                // A loop around may set the register again, but then this loop runs again, too.
                if self.form.registers[reg.index()] == Kind::Int {
                    self.ranges[reg.index()] = ANY;
                }
                Val::Single(self.single(reg))
            }
            Carried::Array { arr, handle } => {
                self.unsave(Rc::as_ptr(&handle), 2);
                drop(handle);
                Val::Array(arr)
            }
            Carried::Log { .. } => unreachable!("logs have lengths of their own"),
        }
    }

    pub(super) fn branches(&mut self, inst: &'p Inst, marks: &InstMarks) -> Result<(), Refusal> {
        let args = self.operands(&inst.args, &marks.dies);
        let Val::Single(Single::Truth(holds)) = args[0].clone() else { unreachable!("typing: a condition") };
        let [then, other] = &inst.blocks[..] else { unreachable!("the verifier: two blocks") };
        self.compute_captures(&[then, other])?;
        if let Operand::Bool(known) = holds {
            let which = usize::from(!known);
            let results = self.round(&inst.blocks[which], &marks.blocks[which])?;
            self.forget(&marks.blocks[1 - which].release_at_start);
            self.leave(&inst.blocks[which]);
            return self.define_all(inst, results);
        }
        let captures: Vec<Value> = [then, other].iter().flat_map(|block| block.captures()).collect();
        for &value in &captures {
            if let Some(Val::Array(array)) = &self.frame().env[value.index()]
                && let Some(handle) = self.owned(array)
            {
                let buf = handle.buf;
                drop(handle);
                self.settle(buf)?;
            }
        }
        // What one branch uses up is there for the other.
        let before: Vec<(Value, Option<Val>)> =
            captures.iter().map(|&value| (value, self.frame().env[value.index()].clone())).collect();
        let handles: Vec<*const Handle> = before
            .iter()
            .filter_map(|(_, val)| match val {
                Some(Val::Array(array)) => match &array.def {
                    Def::Stored { handle, .. } => Some(Rc::as_ptr(handle)),
                    _ => None,
                },
                Some(Val::Log(log)) => Some(Rc::as_ptr(&log.handle)),
                _ => None,
            })
            .collect();
        for &handle in &handles {
            self.save(handle, 1);
        }
        self.blocks.push(Vec::new());
        let firsts = self.round(then, &marks.blocks[0])?;
        self.leave(then);
        let firsts = self.branch_results(firsts, None)?;
        let mut then_stmts = self.blocks.pop().expect("just pushed");
        for (value, val) in before {
            self.frame_mut().env[value.index()] = val;
        }
        for &handle in &handles {
            self.unsave(handle, 1);
        }
        // The first branch may give an array that the second one changes in its own way.
        let given: Vec<*const Handle> = firsts
            .iter()
            .filter_map(|first| match first {
                Val::Array(array) => array.contiguous().map(|(handle, _)| Rc::as_ptr(handle)),
                Val::Log(log) => Some(Rc::as_ptr(&log.handle)),
                Val::Single(_) => None,
            })
            .filter(|handle| handles.contains(handle))
            .collect();
        for &handle in &given {
            self.save(handle, 1);
        }
        self.blocks.push(Vec::new());
        let seconds = self.round(other, &marks.blocks[1])?;
        self.leave(other);
        let seconds = self.branch_results(seconds, Some(&firsts))?;
        for handle in given {
            self.unsave(handle, 1);
        }
        let mut other_stmts = self.blocks.pop().expect("just pushed");
        let mut results = Vec::new();
        for (first, second) in firsts.into_iter().zip(seconds) {
            results.push(self.joined(first, second, &mut then_stmts, &mut other_stmts)?);
        }
        self.emit(Stmt::If { holds, then: then_stmts, other: other_stmts });
        self.define_all(inst, results)
    }

    /// Results of a branch: arrays in memory of their own, or in that of an outer value.
    fn branch_results(&mut self, results: Vec<Val>, firsts: Option<&[Val]>) -> Result<Vec<Val>, Refusal> {
        let mut found: Vec<Val> = Vec::new();
        for (at, result) in results.into_iter().enumerate() {
            found.push(match result {
                Val::Array(array) => {
                    let same = match firsts.map(|firsts| &firsts[at]) {
                        Some(Val::Array(first)) => {
                            let home = first.contiguous().map(|(handle, _)| handle.buf);
                            home.is_some() && home == array.contiguous().map(|(handle, _)| handle.buf)
                        }
                        _ => false,
                    };
                    let is_own = self.owned(&array).is_some_and(|handle| {
                        // In memory that nothing else needs, so that it can be exchanged.
                        firsts.is_none() || same || (self.needs(&handle) == 2 && self.is_workspace(&handle))
                    });
                    Val::Array(if is_own { array } else { self.copied(array, None)? })
                }
                other => other,
            });
        }
        Ok(found)
    }

    /// A result of two branches in one place.
    fn joined(
        &mut self,
        first: Val,
        second: Val,
        then: &mut Vec<Stmt>,
        other: &mut Vec<Stmt>,
    ) -> Result<Val, Refusal> {
        match (first, second) {
            (Val::Single(a), Val::Single(b)) => {
                if a == b {
                    return Ok(Val::Single(a));
                }
                let to = self.register(a.kind());
                if let (Single::Whole(a), Single::Whole(b)) = (&a, &b) {
                    self.ranges[to.index()] = (a.least.min(b.least), a.most.max(b.most));
                }
                for (single, stmts) in [(a, then), (b, other)] {
                    stmts.extend(self.in_block(|lower| {
                        let from = lower.operand(&single);
                        lower.emit(Stmt::Move { to, from });
                        Ok::<(), Refusal>(())
                    })?);
                }
                Ok(Val::Single(self.single(to)))
            }
            (Val::Log(a), Val::Log(b)) if Rc::ptr_eq(&a.handle, &b.handle) => {
                if a.length == b.length {
                    return Ok(Val::Log(Log { grown: a.grown.max(b.grown), ..a }));
                }
                let to = self.counter(a.length.least.min(b.length.least), a.length.most.max(b.length.most));
                for (log, stmts) in [(&a, then), (&b, other)] {
                    stmts.push(Stmt::Index { to, index: log.length.index.clone() });
                }
                let (least, most) = self.ranges[to.index()];
                let length = Whole { index: Index::reg(to), least, most };
                Ok(Val::Log(Log { length, grown: a.grown.max(b.grown), ..a }))
            }
            (Val::Array(a), Val::Array(b)) => {
                if a.shape != b.shape {
                    return self.refuse("an array whose lengths depend on a branch");
                }
                let home = match self.owned(&a) {
                    Some(handle) => handle,
                    None => return self.refuse("a part of an array as the result of a branch"),
                };
                let own = match self.owned(&b) {
                    Some(handle) => handle,
                    None => return self.refuse("a part of an array as the result of a branch"),
                };
                if home.buf == own.buf {
                    return Ok(Val::Array(a));
                }
                // `home` may be an outer value that the first branch gives as it is; then it is copied there.
                drop(b);
                let workspace = self.is_workspace(&home) && self.is_workspace(&own);
                if workspace && self.needs(&home) == 2 && self.needs(&own) == 1 {
                    other.push(Stmt::Swap { a: home.buf, b: own.buf });
                    return Ok(Val::Array(a));
                }
                let fresh = self.allocate(a.kind(), a.elements());
                for (handle, stmts) in [(&home, then), (&own, other)] {
                    let source = Arr::whole(a.elem, Rc::clone(&a.shape), Rc::clone(handle));
                    let place = Place::first(fresh.buf, a.shape.to_vec());
                    stmts.extend(self.in_block(|lower| lower.fill(&place, &source))?);
                }
                Ok(Val::Array(Arr::whole(a.elem, Rc::clone(&a.shape), fresh)))
            }
            _ => self.refuse("a vector that is a log in one branch only"),
        }
    }
}

/// Puts an index in the place of a register, wherever it is part of one.
fn replace(stmts: &mut [Stmt], reg: Reg, by: &Index) {
    let within = |index: &mut Index| {
        if let Ok(at) = index.terms.binary_search_by_key(&reg, |term| term.0) {
            let factor = index.terms.remove(at).1;
            *index = index.plus(by, factor).expect("a length of a log fits");
        }
    };
    for stmt in stmts {
        stmt.for_each_index(&mut |index| within(index));
        for block in stmt.blocks_mut() {
            replace(block, reg, by);
        }
    }
}
