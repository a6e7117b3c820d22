//! Chains of elementwise array operations, in one go; and back.
//!
//! [`fuse`]: an elementwise operation takes over the operations that made its operands, if nothing else uses
//! these, and theirs in turn: `Op::Fused` with a block over scalars, so that no array is made in between. An
//! operation is not taken over if an array that it reads is consumed before the place where it would read it
//! then: that would force a copy. Nor is it if one operation would read more than [`MOST_ARRAYS`] arrays
//! then: a sum of many, as cotangents are, would keep all of them until its end.
//!
//! [`unfuse`] turns every `Op::Fused` into elementwise instructions again: transforms know only these.

use super::copy::Copier;
use super::each;
use super::memory::taken;
use super::rewrite::{Rules, Writer, rewrite};
use crate::fast::{FastMap, FastSet};
use crate::op::Op;
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::Type;

/// So many different arrays a fused operation reads at most.
const MOST_ARRAYS: usize = 8;

/// Fuses elementwise chains.
pub fn fuse(program: &Program) -> Program {
    each(program, "fuse", fuse_function)
}

pub(super) fn fuse_function(function: &mut Function) {
    if !function.has_arrays() {
        return;
    }
    let mut uses = vec![0; function.values.len()];
    function.body.for_each_use(&mut |value| uses[value.index()] += 1);
    function.rewrite(|function, body| fuse_block(function, &uses, body));
}

fn is_candidate(function: &Function, inst: &Inst) -> bool {
    let kind = inst.op.is_elementwise() || matches!(inst.op, Op::Fused);
    kind && inst.results.len() == 1 && !function.ty(inst.results[0]).is_scalar()
}

fn fuse_block(function: &mut Function, uses: &[u32], block: &mut Block) {
    for inst in &mut block.insts {
        // The block of a fused operation holds nothing to fuse.
        if !matches!(inst.op, Op::Fused) {
            inst.blocks.iter_mut().for_each(|block| fuse_block(function, uses, block));
        }
    }
    let mut made_at = FastMap::default();
    let mut consumed_at: FastMap<Value, Vec<usize>> = FastMap::default();
    for (at, inst) in block.insts.iter().enumerate() {
        made_at.extend(inst.results.iter().map(|&result| (result, at)));
        taken(function, inst)
            .into_iter()
            .for_each(|version| consumed_at.entry(version).or_default().push(at));
    }
    // For each instruction the root of its group; roots come last.
    let mut root: Vec<usize> = (0..block.insts.len()).collect();
    let arrays = |inst: &Inst| -> Vec<Value> {
        inst.args.iter().copied().filter(|&arg| !function.ty(arg).is_scalar()).collect()
    };
    // What each group reads.
    let mut reads: FastMap<usize, FastSet<Value>> = FastMap::default();
    for user in (0..block.insts.len()).rev() {
        if !is_candidate(function, &block.insts[user]) {
            continue;
        }
        let end = root[user];
        let reads = reads.entry(end).or_insert_with(|| arrays(&block.insts[end]).into_iter().collect());
        for &arg in &block.insts[user].args {
            let Some(&maker) = made_at.get(&arg) else { continue };
            let occurrences = block.insts[user].args.iter().filter(|&&other| other == arg).count();
            let fits =
                is_candidate(function, &block.insts[maker]) && uses[arg.index()] as usize == occurrences;
            let stays_readable = |version: &Value| {
                let moments = consumed_at.get(version).map_or(&[][..], Vec::as_slice);
                !moments.iter().any(|&at| maker < at && at < end)
            };
            if !fits || !block.insts[maker].args.iter().all(stays_readable) {
                continue;
            }
            let others = arrays(&block.insts[maker]);
            let more = others.iter().filter(|other| !reads.contains(other)).count();
            if reads.len() + more <= MOST_ARRAYS + 1 {
                root[maker] = end;
                reads.remove(&arg);
                reads.extend(others);
            }
        }
    }
    let mut groups: FastMap<usize, Vec<Inst>> = FastMap::default();
    let mut out = Vec::with_capacity(block.insts.len());
    for (at, inst) in core::mem::take(&mut block.insts).into_iter().enumerate() {
        if root[at] != at {
            groups.entry(root[at]).or_default().push(inst);
            continue;
        }
        match groups.remove(&at) {
            None => out.push(inst),
            Some(mut members) => {
                members.push(inst);
                out.push(fused(function, members));
            }
        }
    }
    block.insts = out;
}

/// One instruction that does what these do; the last one's result is its result.
fn fused(function: &mut Function, members: Vec<Inst>) -> Inst {
    let mut group =
        Group { function, block: Block::default(), args: Vec::new(), scalars: FastMap::default() };
    for member in &members {
        group.add(member);
    }
    let Group { mut block, args, scalars, .. } = group;
    let last = members.last().expect("a group has members");
    block.results = vec![scalars[&last.results[0]]];
    Inst {
        op: Op::Fused,
        args: args.into(),
        blocks: vec![block],
        results: last.results.clone(),
        span: last.span,
    }
}

struct Group<'a> {
    function: &'a mut Function,
    block: Block,
    /// The operands from outside.
    args: Vec<Value>,
    /// The scalar inside that stands for an element of a value.
    scalars: FastMap<Value, Value>,
}

impl Group<'_> {
    fn scalar(&mut self, value: Value) -> Value {
        if let Some(&scalar) = self.scalars.get(&value) {
            return scalar;
        }
        let info = &self.function.values[value.index()];
        let (ty, name) = (info.ty.with_rank(0), info.name.clone());
        let scalar = self.function.fresh(ty, name);
        self.args.push(value);
        self.block.params.push(scalar);
        self.scalars.insert(value, scalar);
        scalar
    }

    fn add(&mut self, member: &Inst) {
        let args: Vec<Value> = member.args.iter().map(|&arg| self.scalar(arg)).collect();
        let result = member.results[0];
        let scalar = if let [inner] = &member.blocks[..] {
            let map = inner.params.iter().copied().zip(args).collect();
            let mut copier = Copier { into: self.function, from: None, map };
            copier.insts(&inner.insts, &mut self.block.insts);
            copier.value(inner.results[0])
        } else {
            let info = &self.function.values[result.index()];
            let (ty, name) = (info.ty.with_rank(0), info.name.clone());
            let scalar = self.function.fresh(ty, name);
            self.block.insts.push(Inst::new(member.op.clone(), args, vec![scalar], member.span));
            scalar
        };
        self.scalars.insert(result, scalar);
    }
}

/// Takes fused operations apart.
pub fn unfuse(program: &Program) -> Program {
    each(program, "unfuse", unfuse_function)
}

pub(super) fn unfuse_function(function: &mut Function) {
    if function.body.count(|inst| inst.op == Op::Fused) > 0 {
        rewrite(function, &mut Unfuse);
    }
}

struct Unfuse;

impl Rules for Unfuse {
    fn apply(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>> {
        if !matches!(inst.op, Op::Fused) {
            return None;
        }
        let block = &inst.blocks[0];
        let mut whole: FastMap<Value, Value> =
            block.params.iter().copied().zip(inst.args.iter().copied()).collect();
        for inner in &block.insts {
            let args = inner.args.iter().map(|arg| whole[arg]).collect();
            let value = w.emit(inner.op.clone(), args);
            w.name(value, inner.results[0]);
            whole.insert(inner.results[0], value);
        }
        let rank = inst.args.iter().map(|&arg| w.ty(arg).rank).max().unwrap_or(0);
        let like = inst.args.iter().copied().find(|&arg| w.ty(arg).rank == rank);
        let results = block.results.iter().map(|result| spread(w, whole[result], like));
        Some(results.collect())
    }
}

/// What does not depend on the arrays is a scalar outside; the result is an array all the same.
fn spread(w: &mut Writer<'_>, value: Value, like: Option<Value>) -> Value {
    let Some(like) = like else { return value };
    let Type { rank, .. } = w.ty(like);
    if w.ty(value).rank == rank {
        return value;
    }
    let lengths: Vec<Value> = (0..rank).map(|axis| w.emit(Op::Dim(axis), vec![like])).collect();
    w.emit(Op::Broadcast(Vec::new()), [&[value], &lengths[..]].concat())
}
