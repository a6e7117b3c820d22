//! When the rounds of a loop are alike, so that a few of them stand for all.
//!
//! Two questions. Of the text: does anything that depends on the round's number decide a length, a trip count or a branch? Of the walk: did two
//! rounds allocate the same, and did what they carry change by the same? Then every later round does so too, and only the
//! logs differ, which grow by the same number of elements each time.

use std::collections::HashSet;

use crate::op::{Axis, Op};
use crate::plan::buffers::Ledger;
use crate::plan::walk::Thing;
use crate::program::{Block, Function, Inst, Value};

/// Whether no length, trip count or branch in the body of a `for` depends on the round's number, or on integers and lengths of which
/// `changes` says that they change. (A branch on reals is walked both ways in every round.)
/// `constant` says of an array of integers from around the loop whether all its entries are the same.
pub(super) fn is_steady(
    function: &Function,
    body: &Block,
    changes: &[Option<i64>],
    constant: &dyn Fn(Value) -> bool,
) -> bool {
    let captured = body.captures().into_iter().filter(|&value| constant(value)).collect();
    let mut check = Check { function, varying: HashSet::from([body.params[0]]), captured };
    for ((&param, &next), &change) in body.params[1..].iter().zip(&body.results).zip(changes) {
        let ty = function.ty(param);
        let contents_count = !ty.is_real() && !ty.is_scalar() && param != next;
        let changes = (!ty.is_real() || !ty.is_scalar()) && change != Some(0);
        if contents_count || changes {
            check.varying.insert(param);
        }
    }
    check.block(body)
}

/// Integers that change from round to round, arrays of them, and arrays whose length does.
struct Check<'a> {
    function: &'a Function,
    varying: HashSet<Value>,
    /// Arrays of integers, all of them the same.
    captured: HashSet<Value>,
}

impl Check<'_> {
    fn block(&mut self, block: &Block) -> bool {
        block.insts.iter().all(|inst| self.inst(inst))
    }

    fn inst(&mut self, inst: &Inst) -> bool {
        if decides(inst).iter().any(|value| self.varying.contains(value)) {
            return false;
        }
        let mut depends = false;
        inst.for_each_use(&mut |value| depends |= self.varying.contains(&value));
        if depends {
            // What a loop carries on from it; its own counter runs alike in every round of ours.
            let counters = usize::from(matches!(inst.op, Op::For { .. }));
            for inner in &inst.blocks {
                self.track(inner.params.iter().skip(counters));
            }
        }
        if !inst.blocks.iter().all(|inner| self.block(inner)) {
            return false;
        }
        if depends && self.passes_on(inst) {
            self.track(&inst.results);
        }
        true
    }

    fn track<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) {
        let function = self.function;
        let counts = |value: &&Value| !(function.ty(**value).is_real() && function.ty(**value).is_scalar());
        self.varying.extend(values.into_iter().filter(counts));
    }

    /// Whether results vary because operands do. The elements of a real array do not matter, only its length.
    fn passes_on(&self, inst: &Inst) -> bool {
        let Op::Read(axes) = &inst.op else { return true };
        if self.captured.contains(&inst.args[0]) {
            return false;
        }
        let ty = self.function.ty(inst.results[0]);
        !ty.is_real()
            || (axes.contains(&Axis::All) && self.varying.contains(&inst.args[0]))
            || axes.contains(&Axis::List)
    }
}

/// The operands that decide a length, a trip count or a branch.
fn decides(inst: &Inst) -> Vec<Value> {
    match &inst.op {
        Op::For { .. } | Op::Iota => inst.args[..1].to_vec(),
        Op::Broadcast(_) | Op::Reshape | Op::Resize | Op::Unpack(_) => inst.args[1..].to_vec(),
        // Its conditions are inside.
        Op::While => inst.blocks[0].results.clone(),
        Op::Read(axes) | Op::Write(axes) | Op::AddAt(axes) => {
            let mut at = inst.args.len() - axes.iter().map(|axis| axis.operands()).sum::<usize>();
            let mut found = Vec::new();
            for axis in axes {
                if *axis == Axis::Range {
                    found.push(inst.args[at + 1]);
                }
                at += axis.operands();
            }
            found
        }
        // A callee may use any of them.
        Op::Call(_) => inst.args.clone(),
        // A branch on data is walked both ways, whatever the round; one on the round's number is not.
        Op::If => inst.args.clone(),
        Op::Const(_)
        | Op::Map(_)
        | Op::Int(_)
        | Op::Compare(_)
        | Op::Logical(_)
        | Op::Select
        | Op::Convert(_)
        | Op::StopGradient
        | Op::Dim(_)
        | Op::Permute(_)
        | Op::Concat(_)
        | Op::Reduce(..)
        | Op::Push
        | Op::Pack(_)
        | Op::MatMul { .. }
        | Op::Outer { .. }
        | Op::Linalg(_)
        | Op::Fused => Vec::new(),
    }
}

/// The first lengths of arrays, and integers as they are.
pub(super) fn lengths(carried: &[Thing], ledger: &Ledger) -> Vec<Option<i64>> {
    let one = |thing: &Thing| match thing {
        Thing::Array(id) => ledger.get(*id).shape.first().copied().flatten().map(|length| length as i64),
        Thing::Int(value) => *value,
        Thing::Unset | Thing::Real => None,
    };
    carried.iter().map(one).collect()
}

/// What a round did.
#[derive(PartialEq)]
pub(super) struct Round {
    /// The sizes of its fresh arrays, summed up.
    trace: u64,
    /// By how much each carried length or integer changed.
    pub(super) changes: Vec<Option<i64>>,
    /// Whether each carried array is still in the same buffer.
    stays: Vec<bool>,
}

impl Round {
    pub(super) fn new(before: &[Thing], shapes: &[Option<i64>], after: &[Thing], ledger: &Ledger) -> Round {
        let now = lengths(after, ledger);
        let change =
            |(old, new): (&Option<i64>, &Option<i64>)| old.zip(*new).map(|(old, new)| new.wrapping_sub(old));
        Round {
            trace: ledger.trace,
            changes: shapes.iter().zip(&now).map(change).collect(),
            stays: before.iter().zip(after).map(|(a, b)| a == b).collect(),
        }
    }

    /// Makes as if so many more such rounds had passed.
    pub(super) fn jump(&self, rounds: u64, carried: &mut [Thing], ledger: &mut Ledger) {
        for (thing, &change) in carried.iter_mut().zip(&self.changes) {
            match thing {
                Thing::Array(id) => {
                    let more = change.and_then(|change| u64::try_from(change).ok()).unwrap_or(0) * rounds;
                    if more > 0 {
                        ledger.grow(*id, more);
                    }
                    let buffer = ledger.get_mut(*id);
                    if more > 0 {
                        buffer.ints = buffer.ints.take().and_then(|ints| ints.after(more / rounds, rounds));
                    }
                }
                Thing::Int(value) => {
                    let moved = change.and_then(|change| change.checked_mul(i64::try_from(rounds).ok()?));
                    *value = value.zip(moved).and_then(|(value, moved)| value.checked_add(moved));
                }
                Thing::Unset | Thing::Real => {}
            }
        }
    }

    /// The bytes by which one round makes the carried arrays longer.
    pub(super) fn growth(&self, carried: &[Thing], ledger: &Ledger) -> u64 {
        let one = |(thing, change): (&Thing, &Option<i64>)| match (thing, change) {
            (Thing::Array(id), Some(change)) if *change > 0 => {
                *change as u64 * ledger.element_bytes(ledger.get(*id).elem)
            }
            _ => 0,
        };
        carried.iter().zip(&self.changes).map(one).sum()
    }
}
