//! Where the lengths of arrays come from.
//!
//! Input: a function. Output: for each axis of each array a [`Len`]: two axes with equal `Len`s have equal
//! lengths whenever the program runs without an error. A `Len` names the earliest thing that has the length:
//! a literal, an integer value, or an axis of an array about which nothing more is known; whatever it names
//! is visible wherever the array is.
//!
//! The result of an elementwise operation has the lengths of all its operands: it remembers a few of them, so
//! that a loop which makes the next state from several arrays is seen to keep its lengths. An operation says
//! nothing about other arrays: it may be removed later, and its check with it.
//!
//! A carried array is assumed to keep its lengths; where the loop's body breaks the assumption the analysis
//! is repeated without it. After [`MAX_ROUNDS`] nothing is assumed any more, so the time is linear in the
//! size of the function.

use smallvec::{SmallVec, smallvec};

use crate::fast::FastSet;
use crate::op::{Length, Lengths, Literal, Op, lengths};
use crate::program::{Block, Function, Inst, Value};

const MAX_ROUNDS: usize = 6;
/// How many names of a length are remembered.
const MAX_NAMES: usize = 4;

/// A length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Len {
    /// A literal.
    Literal(i64),
    /// An integer value.
    Value(Value),
    /// That of an axis of an array.
    Axis(Value, u8),
}

/// Names of one length, the earliest first.
type Names = SmallVec<[Len; 1]>;

/// The lengths of a function's arrays.
pub(crate) struct Shapes {
    /// Of each array, for each axis.
    axes: Vec<Vec<Names>>,
    /// What an integer value is as a length.
    ints: Vec<Option<Len>>,
}

impl Shapes {
    /// Analyses a function.
    pub(crate) fn of(function: &Function) -> Shapes {
        let count = function.values.len();
        let mut analysis = Analysis {
            function,
            found: Shapes { axes: vec![Vec::new(); count], ints: vec![None; count] },
            order: vec![0; count],
            now: 0,
            broken: FastSet::default(),
            assume_nothing: false,
        };
        for round in 0.. {
            analysis.assume_nothing = round == MAX_ROUNDS;
            let before = analysis.broken.len();
            analysis.now = 0;
            analysis.block(&function.body);
            if analysis.broken.len() == before || analysis.assume_nothing {
                break;
            }
        }
        analysis.found
    }

    /// The length of an array along an axis. Arrays that were made since have lengths of their own.
    pub(crate) fn len(&self, array: Value, axis: u8) -> Len {
        self.names(array, axis).map_or(Len::Axis(array, axis), |names| names[0])
    }

    fn names(&self, array: Value, axis: u8) -> Option<&Names> {
        self.axes.get(array.index())?.get(usize::from(axis))
    }

    /// An integer value as a length.
    pub(crate) fn int(&self, value: Value) -> Len {
        self.ints.get(value.index()).copied().flatten().unwrap_or(Len::Value(value))
    }
}

struct Analysis<'a> {
    function: &'a Function,
    found: Shapes,
    /// When each value was defined.
    order: Vec<usize>,
    now: usize,
    /// Axes of carried values (named by the loop's result) whose lengths change.
    broken: FastSet<(Value, u8)>,
    assume_nothing: bool,
}

impl Analysis<'_> {
    fn len(&self, array: Value, axis: u8) -> Len {
        self.found.len(array, axis)
    }

    /// When a length was first known.
    fn age(&self, len: Len) -> usize {
        match len {
            Len::Literal(_) => 0,
            Len::Value(value) | Len::Axis(value, _) => 1 + self.order[value.index()],
        }
    }

    fn define_by_names(&mut self, value: Value, axes: Vec<Names>) {
        self.found.axes[value.index()] = axes;
        self.order[value.index()] = self.now;
        self.now += 1;
    }

    fn define(&mut self, value: Value, axes: Vec<Len>) {
        self.define_by_names(value, axes.into_iter().map(|len| smallvec![len]).collect());
    }

    /// A value of which nothing is known.
    fn opaque(&mut self, value: Value) {
        let rank = self.function.ty(value).rank;
        self.define(value, (0..rank).map(|axis| Len::Axis(value, axis)).collect());
    }

    fn block(&mut self, block: &Block) {
        for &param in &block.params {
            self.opaque(param);
        }
        self.insts(&block.insts);
    }

    fn insts(&mut self, insts: &[Inst]) {
        for inst in insts {
            self.inst(inst);
        }
    }

    /// The length of a log to which something was pushed, if it is a literal.
    fn pushed(&self, inst: &Inst) -> Option<Len> {
        let literal = |len: Len| if let Len::Literal(number) = len { Some(number) } else { None };
        let mut total = literal(self.len(inst.args[0], 0))?;
        for &part in &inst.args[1..] {
            let lengths = (0..self.function.ty(part).rank).map(|axis| literal(self.len(part, axis)));
            let size = lengths.into_iter().try_fold(1_i64, |size, length| size.checked_mul(length?))?;
            total = total.checked_add(size)?;
        }
        Some(Len::Literal(total))
    }

    /// The axes of the operands that are arrays of the result's rank.
    fn elementwise(&self, inst: &Inst) -> Vec<Names> {
        let rank = self.function.ty(inst.results[0]).rank;
        let mut arrays = inst.args.iter().filter(|&&arg| self.function.ty(arg).rank == rank);
        let Some(first) = arrays.next().filter(|_| rank > 0) else { return Vec::new() };
        let mut axes = self.found.axes[first.index()].clone();
        for other in arrays {
            for (names, more) in axes.iter_mut().zip(&self.found.axes[other.index()]) {
                for &name in more {
                    if !names.contains(&name) {
                        let at = names.partition_point(|&known| self.age(known) <= self.age(name));
                        names.insert(at, name);
                        names.truncate(MAX_NAMES);
                    }
                }
            }
        }
        axes
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.op {
            Op::For { .. } => return self.carried(inst, 1),
            Op::While { .. } => return self.carried(inst, 0),
            Op::Sweep { .. } => return self.swept(inst),
            Op::If => return self.branch(inst),
            Op::Const(Literal::Int(number)) => {
                self.found.ints[inst.results[0].index()] = Some(Len::Literal(*number));
            }
            Op::Dim(axis) => self.found.ints[inst.results[0].index()] = Some(self.len(inst.args[0], *axis)),
            _ => {}
        }
        let ranks: Vec<u8> = inst.args.iter().map(|&arg| self.function.ty(arg).rank).collect();
        match lengths(&inst.op, &ranks) {
            Lengths::Alike => {
                let axes = self.elementwise(inst);
                inst.results.iter().for_each(|&result| self.define_by_names(result, axes.clone()));
            }
            Lengths::Each(each) if each[..] == [vec![Length::Elements]] => {
                let len = self.pushed(inst).unwrap_or(Len::Axis(inst.results[0], 0));
                self.define(inst.results[0], vec![len]);
            }
            Lengths::Each(each) => {
                // Lengths that have no name yet, and the first axis that has them.
                let mut unnamed: Vec<(Length, Len)> = Vec::new();
                for (&result, each) in inst.results.iter().zip(each) {
                    let axis = |(length, axis): (Length, u8)| match length {
                        Length::Of(arg, axis) => self.len(inst.args[arg], axis),
                        Length::Int(arg) => self.found.int(inst.args[arg]),
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

    fn keeps(&self, part: Value, axis: u8) -> bool {
        !self.assume_nothing && !self.broken.contains(&(part, axis))
    }

    /// Defines what a loop carries or gives and that begins as `init`; `part` stands for it in the list of
    /// broken ones.
    fn define_carried(&mut self, part: Value, value: Value, init: Value) {
        let axis = |axis| if self.keeps(part, axis) { self.len(init, axis) } else { Len::Axis(value, axis) };
        let axes = (0..self.function.ty(init).rank).map(axis).collect();
        self.define(value, axes);
    }

    /// Notes the axes of a part whose lengths a round changes: it begins as `init`, and rounds give `next`.
    fn compare(&mut self, part: Value, init: Value, next: Value) {
        for axis in 0..self.function.ty(init).rank {
            let len = self.len(init, axis);
            if !self.found.axes[next.index()][usize::from(axis)].contains(&len) {
                self.broken.insert((part, axis));
            }
        }
    }

    fn carried(&mut self, inst: &Inst, first: usize) {
        let inits = &inst.args[first..];
        for block in &inst.blocks {
            for (at, &param) in block.params.iter().enumerate() {
                match at.checked_sub(first) {
                    None => self.opaque(param),
                    Some(at) => self.define_carried(inst.results[at], param, inits[at]),
                }
            }
            self.insts(&block.insts);
        }
        let next = &inst.blocks.last().expect("a loop has a body").results;
        for ((&result, &init), &next) in inst.results.iter().zip(inits).zip(next) {
            self.compare(result, init, next);
            self.define_carried(result, result, init);
        }
    }

    /// As [`Self::carried`], for a state that two blocks are given and one makes the next of, and for
    /// cotangents of the second, which begin as operands or as what the turn gives.
    fn swept(&mut self, inst: &Inst) {
        let start = self.now;
        let (advance, back) = (&inst.blocks[0], &inst.blocks[1]);
        let (state, cotangents) = (advance.results.len(), back.results.len());
        let (states, others) = inst.args[1..].split_at(state);
        self.opaque(advance.params[0]);
        for ((&own, &param), &init) in advance.params[1..].iter().zip(&advance.params[1..]).zip(states) {
            self.define_carried(own, param, init);
        }
        self.insts(&advance.insts);
        for ((&own, &init), &next) in advance.params[1..].iter().zip(states).zip(&advance.results) {
            self.compare(own, init, next);
        }
        let mut inits = others;
        if let Some(turn) = inst.blocks.get(2) {
            for ((&own, &param), &init) in advance.params[1..].iter().zip(&turn.params).zip(states) {
                self.define_carried(own, param, init);
            }
            for (&param, &init) in turn.params[state..].iter().zip(others) {
                self.define_by_names(param, self.found.axes[init.index()].clone());
            }
            self.insts(&turn.insts);
            inits = &turn.results;
        }
        self.opaque(back.params[0]);
        let (theirs, turned) = back.params[1..].split_at(state);
        for ((&own, &param), &init) in advance.params[1..].iter().zip(theirs).zip(states) {
            self.define_carried(own, param, init);
        }
        for ((&param, &result), &init) in turned.iter().zip(&inst.results).zip(inits) {
            let keeps = |this: &Self, axis| this.keeps(result, axis);
            self.define_begun(param, init, start, keeps);
        }
        self.insts(&back.insts);
        for (((&param, &result), &init), &next) in
            turned.iter().zip(&inst.results).zip(inits).zip(&back.results)
        {
            for axis in 0..self.function.ty(init).rank {
                let len = self.begins(init, axis, start).unwrap_or(Len::Axis(param, axis));
                if !self.found.axes[next.index()][usize::from(axis)].contains(&len) {
                    self.broken.insert((result, axis));
                }
            }
        }
        for (at, (&result, &init)) in inst.results.iter().zip(inits).enumerate() {
            let keeps = |this: &Self, axis| at >= cotangents || this.keeps(result, axis);
            self.define_begun(result, init, start, keeps);
        }
    }

    /// A length of an array as something that was there at a certain time.
    fn begins(&self, array: Value, axis: u8, start: usize) -> Option<Len> {
        let names = &self.found.axes[array.index()][usize::from(axis)];
        names.iter().copied().find(|&len| self.age(len) <= start)
    }

    /// Defines something that is as long as `init` along the axes that it keeps, if what gives that length
    /// was there at a certain time.
    fn define_begun(&mut self, value: Value, init: Value, start: usize, keeps: impl Fn(&Self, u8) -> bool) {
        let axis = |axis| {
            let begins = self.begins(init, axis, start).filter(|_| keeps(self, axis));
            begins.unwrap_or(Len::Axis(value, axis))
        };
        let axes = (0..self.function.ty(init).rank).map(axis).collect();
        self.define(value, axes);
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
            let pairs = self.found.axes[yes.index()].iter().zip(&self.found.axes[no.index()]).zip(0..);
            let axis = |((yes, no), axis): ((&Names, &Names), u8)| {
                let both = yes.iter().copied().find(|len| no.contains(len) && outside(*len));
                both.unwrap_or(Len::Axis(result, axis))
            };
            let axes = pairs.map(axis).collect();
            self.define(result, axes);
        }
    }
}
