//! Reverse sweeps through loops that keep snapshots.
//!
//! The part of the state that rounds change has registers and buffers, like what a loop carries, and a buffer
//! for its snapshots; the rest stays as it is. There is memory for as many snapshots as the interpreter
//! keeps.
//!
//! What a turn gives has registers and buffers that are set before the sweep, to zeros, as what a loop
//! carries is: so whoever looks at the form need not know that the turn comes before every round backwards.

use super::super::form::{Index, Kept, Kind, Stmt};
use super::control::Carried;
use super::value::{Arr, Def, Single, Val, Whole};
use super::{Lower, Refusal};
use crate::interp::bookkeeping;
use crate::interp::store_rule::snapshots_of;
use crate::liveness::InstMarks;
use crate::op::Keep;
use crate::program::{Inst, Value};

impl<'p> Lower<'p> {
    pub(super) fn sweep(&mut self, inst: &'p Inst, marks: &InstMarks, keep: Keep) -> Result<(), Refusal> {
        let (advance, back, turn) = (&inst.blocks[0], &inst.blocks[1], inst.blocks.get(2));
        let args = self.operands(&inst.args, &marks.dies);
        let mut args = args.into_iter();
        let Some(Val::Single(Single::Whole(rounds))) = args.next() else { unreachable!("typing: a number") };
        self.compute_captures(&inst.blocks.iter().collect::<Vec<_>>())?;
        let count = advance.results.len();
        let state: Vec<Val> = args.by_ref().take(count).collect();
        let others: Vec<Val> = args.collect();
        if rounds.most <= 0 && turn.is_none() {
            return self.define_all(inst, others);
        }
        let room = self.room(keep, &rounds, &state, turn.is_some())?;
        // What a round hands on unchanged stays where it is.
        let ours = &advance.params[1..];
        let theirs = &back.params[1..=count];
        let changes: Vec<bool> =
            ours.iter().zip(&advance.results).map(|(param, result)| param != result).collect();
        let chosen = |values: &[Value], wanted: bool| -> Vec<Value> {
            values
                .iter()
                .zip(&changes)
                .filter(|(_, changes)| **changes == wanted)
                .map(|(&value, _)| value)
                .collect()
        };
        let (mut changing, mut fixed) = (Vec::new(), Vec::new());
        for (val, &changes) in state.into_iter().zip(&changes) {
            if changes { &mut changing } else { &mut fixed }.push(self.kept_apart(val)?);
        }
        let carried = self.enter(advance, &chosen(ours, true), changing, false)?;
        let (mut given, mut reversed) = (Vec::new(), Vec::new());
        match turn {
            Some(_) => given = self.given(others)?,
            None => reversed = self.enter(back, &back.params[1 + count..], others, false)?,
        }
        if carried.iter().chain(&reversed).any(|carried| matches!(carried, Carried::Log { .. })) {
            return self.refuse("a sweep over a vector that grows");
        }
        let kept =
            carried.iter().map(|carried| self.snapshots(carried, room)).collect::<Result<Vec<_>, _>>()?;
        let counter = self.counter(0, (rounds.most - 1).max(0));
        let operand = self.whole(&rounds);
        let (least, most) = self.ranges[counter.index()];
        let round = Val::Single(Single::Whole(Whole { index: Index::reg(counter), least, most }));

        let outer = self.enter_loop();
        self.define(advance.params[0], round.clone())?;
        self.define_carried(&chosen(ours, true), &carried)?;
        self.define_values(&chosen(ours, false), &fixed)?;
        let results = self.round(advance, &marks.blocks[0])?;
        let results = results.into_iter().zip(&changes).filter(|(_, changes)| **changes).map(|(val, _)| val);
        let results: Vec<Val> = results.collect();
        self.next_round(&carried, results)?;
        let forwards = self.leave_loop(advance, outer);

        let mut turning = None;
        if let Some(turn) = turn {
            let outer = self.enter_loop();
            self.define_carried(&chosen(&turn.params[..count], true), &carried)?;
            self.define_values(&chosen(&turn.params[..count], false), &fixed)?;
            self.define_values(&turn.params[count..], &given)?;
            drop(given);
            let results = self.round(turn, &marks.blocks[2])?;
            let written = self.blocks.pop().expect("the turn is being written");
            let zeros =
                results.iter().map(|result| self.zeros_like(result)).collect::<Result<Vec<_>, _>>()?;
            let names: Vec<Value> =
                back.params[1 + count..].iter().chain(&inst.results[back.results.len()..]).copied().collect();
            reversed = self.enter(back, &names, zeros, false)?;
            if reversed.iter().any(|carried| matches!(carried, Carried::Log { .. })) {
                return self.refuse("a sweep over a vector that grows");
            }
            self.blocks.push(written);
            self.next_round(&reversed, results)?;
            turning = Some(self.leave_loop(turn, outer));
        }

        let outer = self.enter_loop();
        self.define(back.params[0], round)?;
        self.define_carried(&chosen(theirs, true), &carried)?;
        self.define_values(&chosen(theirs, false), &fixed)?;
        let turned = &reversed[..back.results.len()];
        self.define_carried(&back.params[1 + count..], turned)?;
        let results = self.round(back, &marks.blocks[1])?;
        self.next_round(turned, results)?;
        let backwards = self.leave_loop(back, outer);

        for carried in carried {
            drop(self.after(carried));
        }
        drop(fixed);
        self.form.spans.push((counter, self.span));
        self.emit(Stmt::Sweep {
            counter,
            rounds: operand,
            room,
            state: kept,
            advance: forwards,
            turn: turning,
            back: backwards,
        });
        let results: Vec<Val> = reversed.into_iter().map(|carried| self.after(carried)).collect();
        self.define_all(inst, results)
    }

    /// How many snapshots there is memory for.
    fn room(&self, keep: Keep, rounds: &Whole, state: &[Val], turns: bool) -> Result<u64, Refusal> {
        let (mut bytes, mut arrays) = (0, 0);
        for val in state {
            bytes += match val {
                Val::Single(single) => single.kind().bytes() as u64,
                Val::Array(array) => {
                    arrays += 1;
                    (array.elements() * array.kind().bytes()) as u64
                }
                Val::Log(_) => return self.refuse("a sweep over a vector that grows"),
            };
        }
        let rounds = u64::try_from(rounds.most).unwrap_or(0);
        match snapshots_of(keep, rounds, turns, state.len(), bytes + bookkeeping::snapshot(arrays)) {
            Ok(kept) => Ok(kept.snapshots),
            Err(_) => self.refuse("a sweep with a budget below one state"),
        }
    }

    /// A value that both blocks read, and that neither may change where it is: an array goes to memory.
    fn kept_apart(&mut self, val: Val) -> Result<Val, Refusal> {
        match val {
            Val::Array(array) if array.is_computed() => Ok(Val::Array(self.copied(array, None)?)),
            val => Ok(val),
        }
    }

    /// What a turn is given, and may change where it is: nothing that is yet to be computed needs that.
    fn given(&mut self, values: Vec<Val>) -> Result<Vec<Val>, Refusal> {
        let mut given = Vec::new();
        for val in values {
            let val = self.kept_apart(val)?;
            if let Val::Array(array) = &val
                && let Some(handle) = self.owned(array)
            {
                let buf = handle.buf;
                drop(handle);
                self.settle(buf)?;
            }
            given.push(val);
        }
        Ok(given)
    }

    /// What something of this kind, or as long, is before it is known.
    fn zeros_like(&mut self, val: &Val) -> Result<Val, Refusal> {
        Ok(match val {
            Val::Single(single) => Val::Single(Single::nothing(single.kind())),
            val => {
                let Arr { elem, shape, .. } = self.array_of(val)?;
                let zero = Single::nothing(Kind::of(elem));
                Val::Array(Arr { elem, shape, def: Def::Filled(zero) })
            }
        })
    }

    fn define_values(&mut self, params: &[Value], values: &[Val]) -> Result<(), Refusal> {
        params.iter().zip(values).try_for_each(|(&param, val)| self.define(param, val.clone()))
    }

    /// The snapshots of what is carried.
    fn snapshots(&mut self, carried: &Carried, room: u64) -> Result<Kept, Refusal> {
        let all = |count: usize| match usize::try_from(room).ok().and_then(|room| room.checked_mul(count)) {
            Some(elements) if elements < 1 << 40 => Some(elements),
            _ => None,
        };
        let (kind, count): (Kind, usize) = match carried {
            Carried::Single(reg) => (self.form.registers[reg.index()], 1),
            Carried::Array { arr, .. } => (arr.kind(), arr.elements()),
            Carried::Log { .. } => unreachable!("refused"),
        };
        let Some(elements) = all(count) else {
            return self.refuse("a list of snapshots that does not fit into memory");
        };
        let snapshots = self.allocate(kind, elements).buf;
        Ok(match carried {
            Carried::Single(reg) => Kept::Scalar { reg: *reg, snapshots },
            Carried::Array { arr: Arr { def: Def::Stored { handle, .. }, .. }, .. } => {
                Kept::Array { buf: handle.buf, count, snapshots }
            }
            Carried::Array { .. } | Carried::Log { .. } => unreachable!("what is carried is stored"),
        })
    }
}
