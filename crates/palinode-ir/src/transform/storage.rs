//! What reverse mode keeps of each round of a loop, and what it computes again.
//!
//! Whatever is chosen, the gradient is bitwise the same: what is computed again is computed by the same
//! operations from the same numbers. The exception says so: numbers that are kept in fewer bits are rounded.

use std::collections::BTreeMap;

use crate::interp::Rounds;
use crate::op::{Narrow, Recompute};
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
    /// How often each `while` goes round, if a run has counted that: the gradient is for the inputs of that
    /// run, and a plan of it can be made.
    pub rounds: Vec<Rounds>,
    /// Whether loops that keep snapshots run for their values before their sweeps start again: one run more,
    /// but what happens between has all memory to itself.
    pub two_runs: bool,
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
