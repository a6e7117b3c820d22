//! What reverse mode keeps of each round of a loop, and what it computes again.
//!
//! Whatever is chosen, the gradient is bitwise the same: what is computed again is computed by the same operations from the same numbers. The
//! exception says so: numbers that are kept in fewer bits are rounded.

use std::collections::BTreeMap;

use super::rounds::Rounds;
use crate::fast::FastSet;
use crate::op::{Axis, Narrow, Op, Recompute};
use crate::program::{Inst, Value};
use crate::transform::split::Splitter;
use crate::types::{Elem, Type};

/// What to do with one variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Keep its value: of an operation's input this is "store the input", of its result "store the output".
    Keep,
    /// Compute it again from what is kept, if its operation can be repeated.
    Recompute,
    /// Where it is kept, keep arrays in fewer bits. The gradient is then not exact.
    Narrow(Narrow),
}

/// How reverse mode stores what it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// For everything that is not named below.
    pub recompute: Recompute,
    /// For variables of the source by name; all versions of a variable are meant.
    pub choices: BTreeMap<String, Choice>,
    /// For arrays that are kept and not named: in fewer bits, if asked for. The gradient is then not exact.
    pub narrow: Option<Narrow>,
    /// How often each `while` goes round, if a run has counted that: the gradient is for the inputs of that run, and a plan of it can be made.
    pub rounds: Vec<Rounds>,
}

impl From<Recompute> for Storage {
    fn from(recompute: Recompute) -> Storage {
        Storage { recompute, ..Storage::default() }
    }
}

impl Storage {
    /// The format in which an array of this name and type is kept, if not its own.
    pub(crate) fn narrow_for(&self, name: Option<&str>, ty: Type) -> Option<Narrow> {
        let wanted = match name.and_then(|name| self.choices.get(name)) {
            Some(Choice::Narrow(narrow)) => Some(*narrow),
            Some(Choice::Keep | Choice::Recompute) => None,
            None => self.narrow,
        };
        wanted.filter(|_| ty.elem == Elem::F64 && !ty.is_scalar())
    }
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

    /// The results of a block's instructions, given in order, that are to be computed again because of a choice by name: those of the variable,
    /// and the unnamed ones that it is made from or that are made from it, partials for instance.
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
