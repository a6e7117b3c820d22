//! Where the lengths of arrays come from.
//!
//! Input: a function. Output: for each axis of each array a [`Len`]: two axes with equal `Len`s have equal
//! lengths whenever the program runs without an error. A `Len` names the earliest thing that has the length:
//! a literal, an integer value, or an axis of an array about which nothing more is known; whatever it names
//! is visible wherever the array is.
//!
//! A carried array is assumed to keep its lengths; where the loop's body breaks the assumption the analysis
//! is repeated without it. After [`MAX_ROUNDS`] nothing is assumed any more, so the time is linear in the
//! size of the function.

use crate::fast::FastSet;
use crate::op::{Length, Lengths, Literal, Op, lengths};
use crate::program::{Block, Function, Inst, Value};

const MAX_ROUNDS: usize = 6;

/// A length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Len {
    /// A literal.
    Literal(i64),
    /// An integer value.
    Value(Value),
    /// That of an axis of an array.
    Axis(Value, u8),
}

/// The lengths of a function's arrays.
pub(super) struct Shapes<'a> {
    function: &'a Function,
    /// Of each array, one for each axis.
    axes: Vec<Vec<Len>>,
    /// What an integer value is as a length.
    ints: Vec<Option<Len>>,
    /// When each value was defined.
    order: Vec<usize>,
    now: usize,
    /// Axes of carried values (named by the loop's result) whose lengths change.
    broken: FastSet<(Value, u8)>,
    assume_nothing: bool,
}

impl<'a> Shapes<'a> {
    /// Analyses a function.
    pub(super) fn of(function: &'a Function) -> Shapes<'a> {
        let count = function.values.len();
        let mut shapes = Shapes {
            function,
            axes: vec![Vec::new(); count],
            ints: vec![None; count],
            order: vec![0; count],
            now: 0,
            broken: FastSet::default(),
            assume_nothing: false,
        };
        for round in 0.. {
            shapes.assume_nothing = round == MAX_ROUNDS;
            let before = shapes.broken.len();
            shapes.block(&function.body);
            if shapes.broken.len() == before || shapes.assume_nothing {
                break;
            }
        }
        shapes
    }

    /// The length of an array along an axis.
    pub(super) fn len(&self, array: Value, axis: u8) -> Len {
        self.axes[array.index()].get(usize::from(axis)).copied().unwrap_or(Len::Axis(array, axis))
    }

    /// An integer value as a length.
    pub(super) fn int(&self, value: Value) -> Len {
        self.ints[value.index()].unwrap_or(Len::Value(value))
    }

    fn define(&mut self, value: Value, axes: Vec<Len>) {
        self.axes[value.index()] = axes;
        self.order[value.index()] = self.now;
        self.now += 1;
    }

    /// A value of which nothing is known.
    fn opaque(&mut self, value: Value) {
        let rank = self.function.ty(value).rank;
        self.define(value, (0..rank).map(|axis| Len::Axis(value, axis)).collect());
    }

    fn block(&mut self, block: &Block) {
        for &param in &block.params {
            // The parameters of loops are defined with the loop.
            if self.axes[param.index()].is_empty() {
                self.opaque(param);
            }
        }
        self.insts(&block.insts);
    }

    fn insts(&mut self, insts: &[Inst]) {
        for inst in insts {
            self.inst(inst);
        }
    }

    /// The axes of the first operand that is an array of the result's rank.
    fn elementwise(&self, inst: &Inst) -> Vec<Len> {
        let rank = self.function.ty(inst.results[0]).rank;
        let array = inst.args.iter().find(|&&arg| rank > 0 && self.function.ty(arg).rank == rank);
        array.map_or(Vec::new(), |array| self.axes[array.index()].clone())
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.op {
            Op::For { .. } => return self.carried(inst, 1),
            Op::While { .. } => return self.carried(inst, 0),
            Op::Sweep { .. } => return self.swept(inst),
            Op::If => return self.branch(inst),
            Op::Const(Literal::Int(number)) => {
                self.ints[inst.results[0].index()] = Some(Len::Literal(*number));
            }
            Op::Dim(axis) => self.ints[inst.results[0].index()] = Some(self.len(inst.args[0], *axis)),
            _ => {}
        }
        let ranks: Vec<u8> = inst.args.iter().map(|&arg| self.function.ty(arg).rank).collect();
        match lengths(&inst.op, &ranks) {
            Lengths::Alike => {
                let axes = self.elementwise(inst);
                inst.results.iter().for_each(|&result| self.define(result, axes.clone()));
            }
            Lengths::Each(each) => {
                // Lengths that have no name yet, and the first axis that has them.
                let mut unnamed: Vec<(Length, Len)> = Vec::new();
                for (&result, each) in inst.results.iter().zip(each) {
                    let axis = |(length, axis): (Length, u8)| match length {
                        Length::Of(arg, axis) => self.len(inst.args[arg], axis),
                        Length::Int(arg) => self.int(inst.args[arg]),
                        Length::Sum(_) | Length::Elements | Length::Words(_) | Length::Least => {
                            match unnamed.iter().find(|(other, _)| *other == length) {
                                Some((_, len)) => *len,
                                None => {
                                    unnamed.push((length, Len::Axis(result, axis)));
                                    Len::Axis(result, axis)
                                }
                            }
                        }
                    };
                    let axes = each.into_iter().zip(0..).map(axis).collect();
                    self.define(result, axes);
                }
            }
            Lengths::Inside => inst.results.iter().for_each(|&result| self.opaque(result)),
        }
    }

    fn keeps(&self, result: Value, axis: u8) -> bool {
        !self.assume_nothing && !self.broken.contains(&(result, axis))
    }

    fn carried(&mut self, inst: &Inst, first: usize) {
        let inits = &inst.args[first..];
        for block in &inst.blocks {
            for (at, &param) in block.params.iter().enumerate() {
                let Some((&result, &init)) = at.checked_sub(first).map(|at| (&inst.results[at], &inits[at]))
                else {
                    self.opaque(param);
                    continue;
                };
                let axis = |(&len, axis): (&Len, u8)| {
                    if self.keeps(result, axis) { len } else { Len::Axis(param, axis) }
                };
                let axes = self.axes[init.index()].iter().zip(0..).map(axis).collect();
                self.define(param, axes);
            }
            self.insts(&block.insts);
        }
        let next = &inst.blocks.last().expect("a loop has a body").results;
        for ((&result, &init), &next) in inst.results.iter().zip(inits).zip(next) {
            let mut axes = self.axes[init.index()].clone();
            for (at, axis) in (0..axes.len()).zip(0..) {
                if !self.keeps(result, axis) || self.len(next, axis) != axes[at] {
                    self.broken.insert((result, axis));
                    axes[at] = Len::Axis(result, axis);
                }
            }
            self.define(result, axes);
        }
    }

    /// As [`Self::carried`], for a state that two blocks are given and one makes the next of, and for
    /// cotangents of the second.
    fn swept(&mut self, inst: &Inst) {
        let (advance, back) = (&inst.blocks[0], &inst.blocks[1]);
        let state = advance.results.len();
        for block in &inst.blocks {
            self.opaque(block.params[0]);
            for (at, &param) in block.params[1..].iter().enumerate() {
                // What stands for the part in the list of broken ones.
                let part = if at < state { advance.params[1 + at] } else { inst.results[at - state] };
                let axis = |(&len, axis): (&Len, u8)| {
                    if self.keeps(part, axis) { len } else { Len::Axis(param, axis) }
                };
                let axes = self.axes[inst.args[1 + at].index()].iter().zip(0..).map(axis).collect();
                self.define(param, axes);
            }
            self.insts(&block.insts);
        }
        let parts = advance.params[1..].iter().chain(&inst.results);
        let next = advance.results.iter().chain(&back.results);
        for ((&part, &init), &next) in parts.zip(&inst.args[1..]).zip(next) {
            let mut axes = self.axes[init.index()].clone();
            for (at, axis) in (0..axes.len()).zip(0..) {
                if !self.keeps(part, axis) || self.len(next, axis) != axes[at] {
                    self.broken.insert((part, axis));
                    axes[at] = Len::Axis(part, axis);
                }
            }
            if inst.results.contains(&part) {
                self.define(part, axes);
            }
        }
    }

    fn branch(&mut self, inst: &Inst) {
        let start = self.now;
        for block in &inst.blocks {
            self.insts(&block.insts);
        }
        let (yes, no) = (&inst.blocks[0].results, &inst.blocks[1].results);
        for ((&result, &yes), &no) in inst.results.iter().zip(yes).zip(no) {
            let outside = |len: Len| match len {
                Len::Literal(_) => true,
                Len::Value(value) | Len::Axis(value, _) => self.order[value.index()] < start,
            };
            let axis = |axis: u8| {
                let len = self.len(yes, axis);
                let both = len == self.len(no, axis) && outside(len);
                if both { len } else { Len::Axis(result, axis) }
            };
            let axes = (0..self.function.ty(result).rank).map(axis).collect();
            self.define(result, axes);
        }
    }
}
