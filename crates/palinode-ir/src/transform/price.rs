//! What of a block is kept for its linear half, and what is computed again: a matter of price.
//!
//! Input: the values that the linear half needs, the known instructions of the block, and how much may be
//! computed again. Output: what to keep and which instructions to repeat, so that the sum of all prices is
//! least ([`super::cut`]).
//!
//! **The prices.** Work is counted in additions ([`crate::work`]), and keeping a byte costs
//!
//! | `Recompute` | a byte kept, in additions | what may be repeated |
//! |---|---|---|
//! | `Nothing` | 1 | constants, indices, conditions |
//! | `Cheap` | 1 | sums, products, and what only moves elements |
//! | `Elementwise` | 1,000,000 | every elementwise function, too |
//! | `Anything` | 1,000,000 | whatever can be |
//!
//! A number that is kept is written and read back: 16 bytes moved. A current core moves 10 to 30 bytes in the
//! time of eight dependent additions, and in the interpreter a `push` and a `read` take as long as two to
//! four other instructions. So up to eight additions for eight bytes are about as fast as keeping them, and
//! take no memory. The other two levels are for when memory is short: there every byte counts first, and then
//! the work.
//!
//! Constants, indices and conditions are no work, and keeping an integer or a truth value costs one byte more
//! than its length: a plan can follow a number that is computed into a decision, but not one that was kept.
//!
//! An array has as many elements as its literal lengths say, and a hundred along every axis of which nothing
//! is known: that is enough to tell vectors from matrices and numbers.
//!
//! An array that something overwrites can be kept (the `push` comes before the update) but not looked at
//! again. A variable that the user names to be computed again has a thousand times the price of others.

use crate::fast::{FastMap, FastSet};
use crate::op::{Op, Recompute};
use crate::passes::shape::Len;
use crate::program::{Inst, Value};
use crate::transform::cut::{Fate, Item, cheapest};
use crate::transform::split::Splitter;
use crate::transform::storage::Choice;
use crate::types::Elem;
use crate::work;

/// Along an axis of unknown length.
const UNKNOWN_LENGTH: u64 = 100;
/// No array is taken to have more elements: prices stay far from overflowing.
const MOST_ELEMENTS: u64 = 1 << 32;
/// How many times more a variable costs if the user names it to be computed again.
const UNWANTED: u64 = 1000;

/// What a byte that is kept costs, in additions.
fn price_of_a_byte(recompute: Recompute) -> u64 {
    match recompute {
        Recompute::Nothing | Recompute::Cheap => 1,
        Recompute::Elementwise | Recompute::Anything => 1_000_000,
    }
}

impl Splitter<'_> {
    /// What to keep of the block `id` for `needs`, and which instructions to repeat of `cheap`, those that
    /// may be repeated, in order. The user names `chosen` to be computed again if possible.
    pub(crate) fn kept_or_again(
        &self,
        id: u32,
        counter: Option<Value>,
        needs: &[Value],
        cheap: &[Inst],
        chosen: &FastSet<Value>,
    ) -> (Vec<Value>, Vec<usize>) {
        let is_free = |value: Value| self.owner.get(&value) != Some(&id) || Some(value) == counter;
        let mut wanted: FastSet<Value> = needs.iter().copied().filter(|&need| !is_free(need)).collect();
        let mut roots: Vec<Value> = needs.iter().copied().filter(|&need| !is_free(need)).collect();
        let mut repeatable: Vec<usize> = Vec::new();
        for (at, inst) in cheap.iter().enumerate().rev() {
            if wanted.contains(&inst.results[0]) {
                repeatable.push(at);
                let args = inst.args.iter().copied().filter(|&arg| !is_free(arg));
                roots.extend(args.filter(|&arg| wanted.insert(arg)));
            }
        }
        repeatable.reverse();
        let results: FastSet<Value> = repeatable.iter().map(|&at| cheap[at].results[0]).collect();
        roots.retain(|root| !results.contains(root));

        let mut values = roots;
        let count = values.len();
        values.extend(repeatable.iter().map(|&at| cheap[at].results[0]));
        let places: FastMap<Value, usize> =
            values.iter().enumerate().map(|(at, &value)| (value, at)).collect();
        let item = |(at, &value): (usize, &Value)| {
            let inst = at.checked_sub(count).map(|at| &cheap[repeatable[at]]);
            Item {
                keep: self.price(value) * if chosen.contains(&value) { UNWANTED } else { 1 },
                work: inst.map(|inst| self.work(inst)),
                from: inst
                    .iter()
                    .flat_map(|inst| &inst.args)
                    .filter_map(|arg| places.get(arg).copied())
                    .collect(),
            }
        };
        let items: Vec<Item> = values.iter().enumerate().map(item).collect();
        let needs: Vec<usize> = needs.iter().filter_map(|need| places.get(need).copied()).collect();
        let fates = cheapest(&items, &needs);
        let kept = (0..values.len()).filter(|&at| fates[at] == Fate::Kept).map(|at| values[at]);
        let again = (count..values.len()).filter(|&at| fates[at] == Fate::Again);
        (kept.collect(), again.map(|at| repeatable[at - count]).collect())
    }

    fn elements(&self, value: Value) -> u64 {
        let length = |axis| match self.shapes.len(value, axis) {
            Len::Literal(number) => u64::try_from(number).unwrap_or(0).max(1),
            Len::Value(_) | Len::Axis(..) => UNKNOWN_LENGTH,
        };
        let product = (0..self.b.ty(value).rank).map(length).fold(1, u64::saturating_mul);
        product.min(MOST_ELEMENTS)
    }

    /// What it costs to keep a value.
    fn price(&self, value: Value) -> u64 {
        let bytes = match self.b.ty(value).elem {
            Elem::F64 | Elem::F32 => 8,
            Elem::Int | Elem::Bool => 9,
        };
        let elements = match self.narrow(value) {
            Some(narrow) => self.elements(value).div_ceil(narrow.per_word() as u64),
            None => self.elements(value),
        };
        elements * bytes * price_of_a_byte(self.shared.storage.recompute)
    }

    /// The work of an instruction.
    fn work(&self, inst: &Inst) -> u64 {
        if inst.op.facts().again == Some(Recompute::Nothing) {
            return 0;
        }
        let operands: Vec<u64> = inst.args.iter().map(|&arg| self.elements(arg)).collect();
        work::work(inst, self.elements(inst.results[0]), &operands).min(1e15).ceil() as u64
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

    /// The results of a block's instructions, given in order, that are to be computed again because of a
    /// choice by name: those of the variable, and the unnamed ones that it is made from or that are made from
    /// it, partials for instance.
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

    /// The level at which an instruction may be repeated; `None` if it cannot be.
    fn effort(&self, id: u32, inst: &Inst) -> Option<Recompute> {
        // An array from outside that nothing changes can be looked at again.
        let stays = |array: &Value| {
            self.owner.get(array).is_some_and(|owner| *owner != id) && !self.consumed.contains(array)
        };
        let is_real = inst.results.iter().all(|&result| self.b.ty(result).is_real());
        let effort = match &inst.op {
            Op::Dim(_) if !stays(&inst.args[0]) => None,
            Op::Read(_) if stays(&inst.args[0]) => Some(Recompute::Cheap),
            // A part of an array that is computed again, or of one that is kept. Lengths must be there before
            // these arrays.
            Op::Read(_) if !is_real || self.consumed.contains(&inst.args[0]) => None,
            op => op.facts().again,
        };
        effort.filter(|&effort| is_real || effort <= Recompute::Cheap)
    }
}
