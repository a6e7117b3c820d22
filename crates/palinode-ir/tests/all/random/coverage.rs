//! Which operations and regions carried a derivative, and in how many programs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use palinode_ir::{Block, Function, Op, Program, Value};

/// How many programs used what.
#[derive(Default)]
pub(crate) struct Coverage {
    pub(crate) programs: usize,
    pub(crate) used: BTreeMap<String, usize>,
}

/// A name that tells variants apart where they have rules of their own.
fn label(op: &Op) -> String {
    match op {
        Op::Read(axes) | Op::Write(axes) | Op::AddAt(axes) => {
            let kinds: BTreeSet<String> =
                axes.iter().map(|axis| format!("{axis:?}").to_lowercase()).collect();
            format!("{} {}", op.name(), kinds.into_iter().collect::<Vec<_>>().join("+"))
        }
        Op::For { descending: true } => "for down".to_string(),
        op => op.name().to_string(),
    }
}

impl Coverage {
    /// Counts the operations and regions of a program through which its arguments reach something.
    pub(crate) fn count(&mut self, program: &Program) {
        self.programs += 1;
        let mut seen = BTreeSet::new();
        for function in &program.functions {
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
}

/// Follows real values from operand to result and notes the operations on the way.
fn reach(function: &Function, block: &Block, reached: &mut HashSet<Value>, seen: &mut BTreeSet<String>) {
    for inst in &block.insts {
        let mut depends = false;
        inst.for_each_use(&mut |value| depends |= function.ty(value).is_real() && reached.contains(&value));
        for inner in &inst.blocks {
            if depends {
                reached.extend(inner.params.iter().filter(|&&param| function.ty(param).is_real()));
            }
            reach(function, inner, reached, seen);
        }
        if depends {
            seen.insert(label(&inst.op));
            reached.extend(inst.results.iter().filter(|&&result| function.ty(result).is_real()));
        }
    }
}
