//! Writing repetitions into a block: all choices of a step in one pass, however many they are.
//!
//! Choices go from the last place to the first, as if each were written before the next one is looked at.
//! What a choice replaces, it replaces from its place on, in what was there and in what choices before it
//! repeat; so a name is followed from choice to choice.

use std::collections::HashMap;

use super::Choice;
use crate::program::{Block, Function, Inst, Value};

/// What is replaced, by which choice, and from which instruction on.
struct Replacement {
    rank: usize,
    from: usize,
    by: Value,
}

/// What is repeated before an instruction, by which choice.
struct Group {
    rank: usize,
    before: usize,
    insts: Vec<Inst>,
}

struct Replacements(HashMap<Value, Replacement>);

impl Replacements {
    /// What stands for a value in the instruction at a place of the old block, after the choices before
    /// `rank`.
    fn stands_for(&self, mut value: Value, at: usize, mut rank: usize) -> Value {
        while let Some(found) = self.0.get(&value).filter(|found| found.rank >= rank && found.from <= at) {
            value = found.by;
            rank = found.rank + 1;
        }
        value
    }

    fn write_into(&self, inst: &mut Inst, at: usize, rank: usize) {
        let stands_for = |value| self.stands_for(value, at, rank);
        inst.args.iter_mut().for_each(|arg| *arg = stands_for(*arg));
        // What is defined inside is replaced by nothing.
        inst.blocks.iter_mut().for_each(|inner| inner.rename(&stands_for));
    }
}

/// Computes the values of these choices, of which no two are the same, again where they are needed. `origins`
/// tells of each value that was made again which one it equals.
pub(super) fn repeat(
    function: &mut Function,
    block: &mut Block,
    mut choices: Vec<&Choice>,
    origins: &mut HashMap<Value, Value>,
) {
    choices.sort_by_key(|choice| core::cmp::Reverse(choice.before));
    let mut twins = Twins::of(block, origins);
    let mut replacements = Replacements(HashMap::new());
    let mut groups = Vec::new();
    for (rank, choice) in choices.into_iter().enumerate() {
        let from = choice.before;
        let mut renamed = choice.instead.clone();
        let mut insts = Vec::new();
        let mut fresh_twins = Vec::new();
        for &at in &choice.repeat {
            let mut inst = block.insts[at].clone();
            inst.args.iter_mut().for_each(|arg| *arg = *renamed.get(arg).unwrap_or(arg));
            for inner in &mut inst.blocks {
                renew(function, inner, &mut renamed);
            }
            for result in &mut inst.results {
                let fresh = function.fresh(function.ty(*result), function.name_of(*result).cloned());
                let origin = *origins.get(result).unwrap_or(result);
                // Twins of the chain that were made later are not needed any more.
                if *result != choice.value {
                    for twin in twins.take_made_from(origin, from) {
                        replacements.0.insert(twin, Replacement { rank, from, by: fresh });
                    }
                }
                origins.insert(fresh, origin);
                fresh_twins.push((origin, fresh));
                renamed.insert(*result, fresh);
                *result = fresh;
            }
            insts.push(inst);
        }
        fresh_twins.into_iter().for_each(|(origin, fresh)| twins.add(origin, fresh, from));
        replacements.0.insert(choice.value, Replacement { rank, from, by: renamed[&choice.value] });
        groups.push(Group { rank, before: from, insts });
    }
    write(block, groups, &replacements);
}

/// The block with what is repeated and without what that replaces.
fn write(block: &mut Block, mut groups: Vec<Group>, replacements: &Replacements) {
    let old = core::mem::take(&mut block.insts);
    let is_replaced = |inst: &Inst, rank: usize, at: usize| {
        let later = |result| replacements.0.get(result).is_some_and(|by| by.rank >= rank && by.from <= at);
        !inst.results.is_empty() && inst.results.iter().all(later)
    };
    for (at, mut inst) in old.into_iter().enumerate() {
        // Of groups at one place, the one that was written last comes first.
        while let Some(Group { rank, insts, .. }) = groups.pop_if(|group| group.before == at) {
            for mut inst in insts {
                if !is_replaced(&inst, rank + 1, at) {
                    replacements.write_into(&mut inst, at, rank + 1);
                    block.insts.push(inst);
                }
            }
        }
        if !is_replaced(&inst, 0, at) {
            replacements.write_into(&mut inst, at, 0);
            block.insts.push(inst);
        }
    }
    assert!(groups.is_empty(), "what is repeated has a place before an instruction");
}

/// Values that were made again in this block, by what they equal, with where they are made.
struct Twins(HashMap<Value, Vec<(Value, usize)>>);

impl Twins {
    fn of(block: &Block, origins: &HashMap<Value, Value>) -> Twins {
        let mut twins = Twins(HashMap::new());
        for (at, inst) in block.insts.iter().enumerate() {
            for &result in &inst.results {
                if let Some(&origin) = origins.get(&result) {
                    twins.add(origin, result, at);
                }
            }
        }
        twins
    }

    fn add(&mut self, origin: Value, twin: Value, at: usize) {
        self.0.entry(origin).or_default().push((twin, at));
    }

    /// Those made at a place or later, which are replaced and forgotten.
    fn take_made_from(&mut self, origin: Value, place: usize) -> Vec<Value> {
        let Some(all) = self.0.get_mut(&origin) else { return Vec::new() };
        all.extract_if(.., |(_, at)| *at >= place).map(|(twin, _)| twin).collect()
    }
}

/// Gives the values that a copied block defines new numbers.
fn renew(function: &mut Function, block: &mut Block, renamed: &mut HashMap<Value, Value>) {
    let mut defined = Vec::new();
    block.for_each_definition(&mut |value| defined.push(value));
    for value in defined {
        let fresh = function.fresh(function.ty(value), function.name_of(value).cloned());
        renamed.insert(value, fresh);
    }
    block.rename(&|value| *renamed.get(&value).unwrap_or(&value));
}
