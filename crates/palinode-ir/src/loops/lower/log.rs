//! Vectors that loops push to.
//!
//! Where the numbers of rounds are known, the memory of a log is as long as it will become, which is known
//! when its loops have been written; elsewhere it grows at run time, and every push reserves memory first. A
//! log that every round makes longer by the same number of elements needs no register for its length: that
//! follows from the round.

use std::rc::Rc;

use super::super::form::{Index, Kind, Place, Role, Stmt};
use super::array::Transfer;
use super::scalar::sum;
use super::value::{Arr, Def, Handle, Log, Val, Whole};
use super::{Lower, Refusal};
use crate::fast::FastSet;
use crate::op::Op;
use crate::program::{Block, Value};
use crate::types::Elem;

/// No log has so many elements; as a bound it means that nothing is known.
pub(super) const LONG: i64 = 1 << 40;

impl Lower<'_> {
    /// A log that begins with the elements of an array. Where it may become longer than is known, it grows.
    pub(super) fn log_of(&mut self, val: Val, elem: Elem, grows: bool) -> Result<Log, Refusal> {
        let kind = Kind::of(elem);
        match val {
            Val::Log(log) if self.may_change(&log.handle) => {
                let role = self.form.buffers[log.handle.buf.index()].role;
                if grows && role != Role::Growing {
                    return self.moved_log(&log, kind);
                }
                Ok(log)
            }
            other => {
                let array = self.array_of(&other)?;
                drop(other);
                let n = array.elements() as i64;
                let role = if grows { Role::Growing } else { Role::Workspace };
                // A log of the workspace gets its length when all pushes are known.
                let handle = self.buffer(kind, 0, role, None);
                let length = Whole::known(n);
                self.reserve(&handle, &length);
                let place = Place::first(handle.buf, vec![n as usize]);
                self.fill(&place, &array)?;
                Ok(Log { elem, handle, length, grown: 0, is_carried: false })
            }
        }
    }

    /// A log in memory that grows, with what was in the workspace.
    fn moved_log(&mut self, log: &Log, kind: Kind) -> Result<Log, Refusal> {
        let Some(n) = log.length.index.known() else {
            return self.refuse("a vector of unknown length that begins to grow without bound");
        };
        let handle = self.buffer(kind, 0, Role::Growing, None);
        self.reserve(&handle, &log.length);
        let from = Arr::whole(log.elem, vec![n as usize].into(), Rc::clone(&log.handle));
        let place = Place::first(handle.buf, vec![n as usize]);
        self.fill(&place, &from)?;
        Ok(Log { handle, ..log.clone() })
    }

    /// Makes sure that the memory of a log is long enough for so many elements.
    pub(super) fn reserve(&mut self, handle: &Rc<Handle>, length: &Whole) {
        let buffer = &mut self.form.buffers[handle.buf.index()];
        match buffer.role {
            Role::Growing => {
                let length = length.index.clone();
                self.emit(Stmt::Reserve { buf: handle.buf, length });
            }
            Role::Workspace | Role::Input(_) => {
                // The memory is as long as the log ever becomes, which is not known yet inside of a loop.
                if length.most < LONG {
                    buffer.length = buffer.length.max(u64::try_from(length.most).unwrap_or(0));
                }
            }
        }
    }

    /// Appends elements.
    pub(super) fn push(&mut self, mut args: Vec<Val>) -> Result<Val, Refusal> {
        let more = args.split_off(1);
        let first = args.pop().expect("a log");
        let elem = match &first {
            Val::Log(log) => log.elem,
            Val::Array(array) => array.elem,
            Val::Single(_) => unreachable!("typing: a vector"),
        };
        let mut log = self.log_of(first, elem, false)?;
        for x in more {
            let count = match &x {
                Val::Single(_) => 1,
                Val::Array(array) => array.elements() as i64,
                Val::Log(log) => match log.length.index.known() {
                    Some(n) => n,
                    None => return self.refuse("pushing a vector whose length is not known"),
                },
            };
            let Some(length) = sum(&log.length, &Whole::known(count), 1) else {
                return self.refuse("a log whose length has no bound");
            };
            self.reserve(&log.handle, &length);
            let at = log.length.index.clone();
            let buf = log.handle.buf;
            match x {
                Val::Single(single) => {
                    let from = self.operand(&single);
                    self.emit(Stmt::Store { buf, at, from });
                }
                other => {
                    let array = self.array_of(&other)?;
                    let flat = if array.shape.len() == 1 {
                        array
                    } else {
                        let flat = self.reshape(vec![Val::Array(array)], &[count as usize])?;
                        let Some(Val::Array(flat)) = flat else { unreachable!("as many elements") };
                        flat
                    };
                    self.write_all(Transfer { array: &flat, buf, first: &at, strides: &[1], adds: false })?;
                }
            }
            log.length = length;
            log.grown = log.grown.saturating_add(count);
        }
        Ok(Val::Log(log))
    }

    /// How a vector is pushed to in a block, or in one inside of it.
    pub(super) fn pushes(&self, block: &Block, value: Value) -> Pushes {
        let mut same: FastSet<Value> = FastSet::default();
        same.insert(value);
        let mut found = Pushes::None;
        look(block, false, &mut same, &mut found);
        found
    }

    /// A log as an array, where its length has turned out to be known.
    pub(super) fn settled_log(&self, log: Log) -> Val {
        match log.length.index.known() {
            Some(n) => {
                let shape: Rc<[usize]> = [n as usize].into();
                let def = Def::Stored { handle: log.handle, first: Index::constant(0), strides: [1].into() };
                Val::Array(Arr { elem: log.elem, shape, def })
            }
            None => Val::Log(log),
        }
    }
}

/// How a vector is pushed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pushes {
    /// It is not.
    None,
    /// As often as loops with a known number of rounds run.
    Bounded,
    /// In a loop that may run any number of rounds.
    Unbounded,
}

/// Looks for pushes to these values and to later versions of them; blocks are in order, so a version comes
/// before what is made of it.
fn look(block: &Block, in_while: bool, same: &mut FastSet<Value>, found: &mut Pushes) {
    for inst in &block.insts {
        let is_same = |same: &FastSet<Value>, at: usize| same.contains(&inst.args[at]);
        match &inst.op {
            Op::Push | Op::Resize if is_same(same, 0) => {
                *found = (*found).max(if in_while { Pushes::Unbounded } else { Pushes::Bounded });
                same.insert(inst.results[0]);
            }
            Op::For { .. } | Op::While { .. } => {
                let is_while = matches!(inst.op, Op::While { .. });
                let skip = usize::from(!is_while);
                for at in (skip..inst.args.len()).filter(|&at| is_same(same, at)).collect::<Vec<_>>() {
                    inst.blocks.iter().for_each(|block| {
                        same.insert(block.params[at]);
                    });
                    same.insert(inst.results[at - skip]);
                }
                inst.blocks.iter().for_each(|block| look(block, in_while || is_while, same, found));
            }
            _ => inst.blocks.iter().for_each(|block| look(block, in_while, same, found)),
        }
    }
}
