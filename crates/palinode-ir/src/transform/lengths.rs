//! The lengths of arrays in the linear half, which has no array to ask until a cotangent arrives.
//!
//! Input: a linear array. Output: integer values that are its lengths, from the first of these that there is:
//! a known array of the same shape (the primal of a tangent), lengths that an instruction names, the lengths
//! of what it was made from.

use crate::fast::FastMap;
use crate::op::{IntOp, Length, Lengths, Linear, Op, lengths};
use crate::program::{Inst, Value};
use crate::transform::shape::Root;
use crate::transform::split::Splitter;
use crate::types::{Span, Type};

impl Splitter<'_> {
    /// The length of a known array along an axis, computed where the array is defined.
    pub(crate) fn length(&mut self, array: Value, axis: u8) -> Value {
        let array = match self.shapes.root(array) {
            Root::Lengths(lengths) => return lengths[usize::from(axis)],
            Root::Array(array) => array,
        };
        if let Some(&length) = self.lengths.get(&(array, axis)) {
            return length;
        }
        let length = self.b.fresh(Type::INT);
        self.lengths.insert((array, axis), length);
        if let (Some(&owner), Some(&depth)) = (self.owner.get(&array), self.depth.get(&array)) {
            self.owner.insert(length, owner);
            self.depth.insert(length, depth);
            let inst = Inst::new(Op::Dim(axis), vec![array], vec![length], Span::NONE);
            self.after.entry(array).or_default().push(inst);
        } else {
            // An accumulator: it belongs to the linear half and is there from the start.
            self.lengths.remove(&(array, axis));
            return self.b.dim(array, axis);
        }
        length
    }

    /// The lengths of an array, linear or known.
    pub(crate) fn lengths_of(&mut self, value: Value) -> Vec<Value> {
        let rank = self.b.ty(value).rank;
        if rank == 0 {
            return Vec::new();
        }
        match self.twin(value) {
            Some(twin) => (0..rank).map(|axis| self.length(twin, axis)).collect(),
            None => self.derived_lengths(value),
        }
    }

    /// A known array of the shape of a linear one, or one whose lengths are named.
    fn twin(&self, value: Value) -> Option<Value> {
        let known = |value: Value| match self.twins.get(&value) {
            Some(&twin) => Some(twin),
            None => (!self.linear.contains(&value)).then_some(value),
        };
        self.shapes.alike(value, &known)
    }

    /// The lengths of a linear array from those of the operands that made it.
    fn derived_lengths(&mut self, value: Value) -> Vec<Value> {
        let rank = usize::from(self.b.ty(value).rank);
        let Some(inst) = self.definitions.get(&value).cloned() else {
            return self.no_lengths(Span::NONE, rank);
        };
        // An array with the same lengths, or these, if that is known.
        match self.shapes.root(value) {
            Root::Lengths(lengths) => return lengths,
            Root::Array(array) if array != value => return self.lengths_of(array),
            Root::Array(_) => {}
        }
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
