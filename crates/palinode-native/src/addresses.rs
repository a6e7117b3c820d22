//! Addresses that were computed and can be used again: fewer instructions for Cranelift to look at.

use cranelift_codegen::ir::{Block, Value};
use palinode_ir::loops::Reg;

/// A base, and terms times the bytes of an element.
pub(crate) struct Sum {
    pub(crate) base: Value,
    pub(crate) terms: Vec<(Reg, i64)>,
    pub(crate) bytes: i64,
    pub(crate) value: Value,
}

/// The sums that were computed in a block.
#[derive(Default)]
pub(crate) struct Addresses {
    block: Option<Block>,
    known: Vec<Sum>,
}

/// So many of the last ones are looked at.
const LAST: usize = 8;

impl Addresses {
    pub(crate) fn find(
        &mut self,
        block: Option<Block>,
        base: Value,
        terms: &[(Reg, i64)],
        bytes: i64,
    ) -> Option<Value> {
        if self.block != block {
            self.block = block;
            self.known.clear();
        }
        let mut last = self.known.iter().rev().take(LAST);
        last.find(|sum| sum.base == base && sum.terms == terms && sum.bytes == bytes).map(|sum| sum.value)
    }

    pub(crate) fn learn(&mut self, sum: Sum) {
        self.known.push(sum);
    }

    /// What is known in a block is known in another, which follows it only.
    pub(crate) fn goes_on(&mut self, block: Option<Block>, next: Block) {
        if self.block == block {
            self.block = Some(next);
        }
    }

    /// A register is set.
    pub(crate) fn forget(&mut self, reg: Reg) {
        self.known.retain(|sum| sum.terms.iter().all(|term| term.0 != reg));
    }
}
