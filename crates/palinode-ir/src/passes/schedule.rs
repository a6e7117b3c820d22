//! Reads of an array, before the update that consumes it.
//!
//! An update can happen in place only if nothing needs the old version afterwards. So within each block, an
//! instruction that reads a version after the instruction that takes it over (an update, or a loop or
//! function that is given it) moves before that one, together with what it depends on, unless it depends on
//! the update itself. Everything else keeps its order. What moves up never overtakes a read of a version that
//! it consumes itself: such a read moves along.
//!
//! The work is bounded: after [`STEPS`] instructions looked at for each one in the block, the rest stays as
//! it is.

use super::each;
use super::memory::taken;
use crate::fast::{FastMap, FastSet};
use crate::program::{Block, Function, Inst, Program, Value};

/// How many instructions are looked at for each instruction of a block.
const STEPS: usize = 64;

/// Moves reads before updates.
pub fn schedule(program: &Program) -> Program {
    each(program, "schedule", schedule_function)
}

pub(super) fn schedule_function(function: &mut Function) {
    if !function.has_arrays() {
        return;
    }
    function.rewrite(|function, body| schedule_block(function, body));
}

/// The arrays that an instruction reads and leaves alone, its blocks included. Who takes an array over, or
/// passes it on, gains nothing by being early.
fn reads(function: &Function, inst: &Inst) -> Vec<Value> {
    let mut seen: FastSet<Value> = taken(function, inst).into_iter().collect();
    let mut found = Vec::new();
    inst.for_each_use(&mut |value| {
        if !function.ty(value).is_scalar() && seen.insert(value) {
            found.push(value);
        }
    });
    found
}

fn schedule_block(function: &Function, block: &mut Block) {
    for inst in &mut block.insts {
        inst.blocks.iter_mut().for_each(|block| schedule_block(function, block));
    }
    let count = block.insts.len();
    let mut readers: FastMap<Value, Vec<usize>> = FastMap::default();
    for (at, inst) in block.insts.iter().enumerate() {
        reads(function, inst).into_iter().for_each(|value| readers.entry(value).or_default().push(at));
    }
    let mut order = Order {
        function,
        insts: &block.insts,
        order: (0..count).collect(),
        place: (0..count).collect(),
        steps: STEPS * count,
    };
    let mut moved = false;
    for (at, inst) in block.insts.iter().enumerate() {
        for version in taken(function, inst) {
            for &reader in readers.get(&version).into_iter().flatten() {
                if order.place[reader] > order.place[at] {
                    moved |= order.advance(reader, at);
                }
            }
        }
    }
    if moved {
        let order = order.order;
        let mut insts: Vec<Option<Inst>> = core::mem::take(&mut block.insts).into_iter().map(Some).collect();
        block.insts = order.into_iter().filter_map(|at| insts[at].take()).collect();
    }
}

struct Order<'a> {
    function: &'a Function,
    insts: &'a [Inst],
    /// Which instruction is at each place.
    order: Vec<usize>,
    /// The place of each instruction.
    place: Vec<usize>,
    steps: usize,
}

impl Order<'_> {
    /// Moves `reader`, with what it depends on, before `update`, if it can.
    fn advance(&mut self, reader: usize, update: usize) -> bool {
        let (from, to) = (self.place[update], self.place[reader]);
        if to - from > self.steps {
            return false;
        }
        self.steps -= to - from;
        let mut needed = FastSet::default();
        let mut consumed_here = FastSet::default();
        let mut moves = vec![false; to - from + 1];
        for place in (from..=to).rev() {
            let inst = &self.insts[self.order[place]];
            let needs = place == to
                || inst.results.iter().any(|result| needed.contains(result))
                || (!consumed_here.is_empty()
                    && reads(self.function, inst).iter().any(|version| consumed_here.contains(version)));
            if !needs {
                continue;
            }
            if place == from {
                return false;
            }
            moves[place - from] = true;
            inst.for_each_use(&mut |value| {
                needed.insert(value);
            });
            consumed_here.extend(taken(self.function, inst));
        }
        let before: Vec<usize> = self.order[from..=to].to_vec();
        let parts = |wanted: bool| {
            before.iter().zip(&moves).filter(move |(_, moves)| **moves == wanted).map(|(at, _)| *at)
        };
        for (place, at) in (from..=to).zip(parts(true).chain(parts(false))) {
            self.order[place] = at;
            self.place[at] = place;
        }
        true
    }
}
