//! Which operations and regions were exercised, and in how many programs: of reals, those that carried a
//! derivative; of integers and truth values, those that occur.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use palinode_ir::{Axis, Block, Function, Linalg, Op, Program, Value};

/// How many programs used what.
pub(crate) struct Coverage {
    pub(crate) programs: usize,
    pub(crate) used: BTreeMap<String, usize>,
}

/// Names that tell variants apart where they have rules of their own.
fn labels(op: &Op) -> Vec<String> {
    let by_axes = |axes: &[Axis]| axes.iter().map(|axis| format!("{} {axis:?}", op.name())).collect();
    match op {
        Op::Read(axes) | Op::Write(axes) | Op::AddAt(axes) => by_axes(axes),
        Op::For { descending: true, .. } => vec!["for down".to_string()],
        _ => vec![op.name().to_string()],
    }
}

/// Every operation that the generator and transforms make. (`pack`, `unpack`, `sweep`, and what equations are
/// made of are made on request only; `plan.rs`, `sweeps.rs` and `implicit.rs` test them.)
fn every_operation() -> Vec<Op> {
    let on_request = |op: &Op| {
        matches!(op, Op::Pack(_) | Op::Unpack(_) | Op::Sweep { .. } | Op::Settled(_))
            || matches!(op, Op::Linalg(Linalg::SolveChecked { .. }))
    };
    let axes = [Axis::At, Axis::Range, Axis::All, Axis::List];
    let access =
        axes.into_iter().flat_map(|axis| [Op::Read, Op::Write, Op::AddAt].map(|make| make(vec![axis])));
    let down = Op::For { descending: true, keep: None };
    Op::all().into_iter().filter(|op| !on_request(op)).chain(access).chain([down]).collect()
}

impl Coverage {
    /// Nothing was used so far.
    pub(crate) fn new() -> Coverage {
        let names: BTreeSet<String> = every_operation().iter().flat_map(labels).collect();
        Coverage { programs: 0, used: names.into_iter().map(|name| (name, 0)).collect() }
    }

    /// Counts what occurs in one program or in the programs made from it.
    pub(crate) fn count(&mut self, family: &[Program]) {
        self.programs += 1;
        let mut seen = BTreeSet::new();
        for function in family.iter().flat_map(|program| &program.functions) {
            let mut reached: HashSet<Value> = function.body.params.iter().copied().collect();
            // Twice, because a loop carries what its body makes.
            for _ in 0..2 {
                reach(function, &function.body, &mut reached, &mut seen);
            }
        }
        for name in seen {
            *self.used.entry(name).or_default() += 1;
        }
    }

    /// A line for each operation, the rarest first.
    pub(crate) fn table(&self) -> String {
        let mut rows: Vec<(&String, &usize)> = self.used.iter().collect();
        rows.sort_by_key(|(_, count)| **count);
        let line = |(name, count): (&String, &usize)| {
            format!("{:>6.2} %  {name}", 100.0 * *count as f64 / self.programs as f64)
        };
        rows.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// What fewer than this share of the programs used.
    pub(crate) fn rarer_than(&self, share: f64) -> Vec<&str> {
        let least = share * self.programs as f64;
        self.used.iter().filter(|(_, used)| (**used as f64) < least).map(|(name, _)| name.as_str()).collect()
    }
}

/// Follows real values from operand to result and notes the operations on the way.
fn reach(function: &Function, block: &Block, reached: &mut HashSet<Value>, seen: &mut BTreeSet<String>) {
    for inst in &block.insts {
        let (mut depends, mut reals) = (false, false);
        inst.for_each_use(&mut |value| {
            reals |= function.ty(value).is_real();
            depends |= function.ty(value).is_real() && reached.contains(&value);
        });
        for inner in &inst.blocks {
            if depends {
                reached.extend(inner.params.iter().filter(|&&param| function.ty(param).is_real()));
            }
            reach(function, inner, reached, seen);
        }
        if depends {
            reached.extend(inst.results.iter().filter(|&&result| function.ty(result).is_real()));
        }
        if depends || !reals {
            seen.extend(labels(&inst.op));
        }
    }
}
