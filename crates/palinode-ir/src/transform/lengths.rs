//! The lengths of arrays in the linear half, which has no array to ask until a cotangent arrives.
//!
//! Input: an array, linear or known. Output: integer values that are its lengths, from the first of these
//! that there is: a literal or an integer that it was made with, or the `dim` of the earliest known array
//! with that length ([`crate::passes::shape`]); the length of a known array of the same shape (the primal of
//! a tangent); the lengths of what it was made from. So what never changes is not kept once a round.

use crate::fast::FastMap;
use crate::op::{IntOp, Length, Lengths, Linear, Literal, Op, lengths};
use crate::passes::shape::Len;
use crate::program::{Inst, Value};
use crate::transform::split::Splitter;
use crate::types::{Span, Type};

impl Splitter<'_> {
    /// The length of a known array along an axis.
    pub(crate) fn length(&mut self, array: Value, axis: u8) -> Value {
        match self.shapes.len(array, axis) {
            Len::Literal(number) => self.b.int(number),
            Len::Value(length) => length,
            Len::Axis(earlier, axis) if !self.linear.contains(&earlier) => self.dim(earlier, axis),
            Len::Axis(..) => self.dim(array, axis),
        }
    }

    /// The `dim` of a known array, taken where the array is defined.
    fn dim(&mut self, array: Value, axis: u8) -> Value {
        if let Some(&length) = self.lengths.get(&(array, axis)) {
            return length;
        }
        let (Some(&owner), Some(&depth)) = (self.owner.get(&array), self.depth.get(&array)) else {
            // An accumulator: it belongs to the linear half and is there from the start.
            return self.b.dim(array, axis);
        };
        let length = match self.definitions.get(&array).cloned() {
            Some(Inst { op: Op::Concat(along), args, .. }) if along == axis => {
                let parts: Vec<Value> =
                    args.iter().map(|&part| self.known_length(part, axis, array)).collect();
                let add = |sum: Value, part: Value| {
                    self.measured(Op::Int(IntOp::Add), vec![sum, part], array, owner)
                };
                parts.into_iter().reduce(add).expect("a concatenation has parts")
            }
            _ => {
                let length = self.b.fresh(Type::INT);
                self.owner.insert(length, owner);
                self.depth.insert(length, depth);
                let inst = Inst::new(Op::Dim(axis), vec![array], vec![length], Span::NONE);
                self.after.entry(array).or_default().push(inst);
                length
            }
        };
        self.lengths.insert((array, axis), length);
        length
    }

    /// As [`Self::length`], in the known half, right after the definition of `whole`.
    fn known_length(&mut self, array: Value, axis: u8, whole: Value) -> Value {
        match self.shapes.len(array, axis) {
            Len::Literal(number) => {
                self.measured(Op::Const(Literal::Int(number)), Vec::new(), whole, self.owner[&whole])
            }
            Len::Value(_) | Len::Axis(..) => self.length(array, axis),
        }
    }

    /// An integer that is computed from others right after the definition of `array`. The linear half can do
    /// that, too.
    fn measured(&mut self, op: Op, args: Vec<Value>, array: Value, owner: u32) -> Value {
        let value = self.b.fresh(Type::INT);
        let inst = Inst::new(op, args, vec![value], Span::NONE);
        self.owner.insert(value, owner);
        let depth = self.depth_of_integer(&inst).unwrap_or(self.depth[&array]);
        self.depth.insert(value, depth);
        self.after.entry(array).or_default().push(inst.clone());
        self.measures.insert(value, inst);
        value
    }

    /// The lengths of an array, linear or known.
    pub(crate) fn lengths_of(&mut self, value: Value) -> Vec<Value> {
        let rank = self.b.ty(value).rank;
        let mut made = None;
        (0..rank).map(|axis| self.length_of(value, axis, &mut made)).collect()
    }

    /// The length of an array, linear or known; `made` are the lengths that follow from how it was made, as
    /// far as they were asked for.
    fn length_of(&mut self, value: Value, axis: u8, made: &mut Option<Vec<Value>>) -> Value {
        if !self.linear.contains(&value) {
            return self.length(value, axis);
        }
        if let Some(&twin) = self.twins.get(&value) {
            return self.length(twin, axis);
        }
        match self.shapes.len(value, axis) {
            Len::Literal(number) => self.b.int(number),
            Len::Value(length) => length,
            Len::Axis(earlier, axis) if earlier != value => self.length_of(earlier, axis, &mut None),
            Len::Axis(..) => made.get_or_insert_with(|| self.derived_lengths(value))[usize::from(axis)],
        }
    }

    /// The lengths of a linear array from those of the operands that made it.
    fn derived_lengths(&mut self, value: Value) -> Vec<Value> {
        let rank = usize::from(self.b.ty(value).rank);
        let Some(inst) = self.definitions.get(&value).cloned() else {
            return self.no_lengths(Span::NONE, rank);
        };
        let ranks: Vec<u8> = inst.args.iter().map(|&arg| self.b.ty(arg).rank).collect();
        match lengths(&inst.op, &ranks) {
            Lengths::Each(each) if inst.op.facts().linear != Linear::No => {
                let mut known = FastMap::default();
                each[0].iter().map(|&length| self.derived_length(length, &inst.args, &mut known)).collect()
            }
            Lengths::Each(_) | Lengths::Alike | Lengths::Inside => self.no_lengths(inst.span, rank),
        }
    }

    /// A length of the result of an instruction; `known` are the lengths of its operands, as far as they were
    /// asked for.
    fn derived_length(
        &mut self,
        length: Length,
        args: &[Value],
        known: &mut FastMap<usize, Vec<Value>>,
    ) -> Value {
        let mut of = |this: &mut Self, arg: usize| match known.get(&arg) {
            Some(lengths) => lengths.clone(),
            None => {
                let lengths = this.lengths_of(args[arg]);
                known.insert(arg, lengths.clone());
                lengths
            }
        };
        match length {
            Length::Of(arg, axis) => of(self, arg)[usize::from(axis)],
            Length::Int(arg) => args[arg],
            Length::Sum(axis) => {
                let first = of(self, 0)[usize::from(axis)];
                (1..args.len()).fold(first, |sum, arg| {
                    let more = of(self, arg)[usize::from(axis)];
                    self.b.integer(IntOp::Add, sum, more)
                })
            }
            // Of a log, which operand 0 is.
            Length::Elements => {
                let first = of(self, 0)[0];
                (1..args.len()).fold(first, |total, arg| {
                    let one = self.b.int(1);
                    let lengths = of(self, arg);
                    let size =
                        lengths.iter().fold(one, |size, &length| self.b.integer(IntOp::Mul, size, length));
                    self.b.integer(IntOp::Add, total, size)
                })
            }
            Length::Words(_) | Length::Least => unreachable!("nothing linear has such a length"),
        }
    }

    /// Notes that the lengths of a linear array cannot be known beforehand; tangent code never comes here.
    fn no_lengths(&mut self, span: Span, rank: usize) -> Vec<Value> {
        self.not_linear
            .get_or_insert_with(|| (span, "an array whose length is not known beforehand".to_string()));
        (0..rank).map(|_| self.b.int(0)).collect()
    }

    /// Zeros of the shape of a linear value.
    pub(crate) fn zeros(&mut self, value: Value) -> Value {
        let lengths = self.lengths_of(value);
        let zero = self.zero_like(value);
        self.b.fill(zero, &lengths)
    }
}
