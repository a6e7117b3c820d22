//! The transposes of linear operations, one by one.
//!
//! Input: an instruction that is linear in some operands, and the cotangent of its result. Output:
//! instructions that add to the cotangents of these operands. Reading an element of an array adds to one
//! element of the array's cotangent; an update reads one element of it and sets it to 0: neither looks at the
//! rest of the array.
//!
//! There is no derivative here: partials were taken when the tangent code was written.

use palinode_core::rules::Row;

use crate::op::{Axis, IntOp, Linalg, Op, Reduction, Rule};
use crate::program::{Inst, Value};
use crate::transform::split::{Cotangents, Splitter};
use crate::types::Elem;

impl Splitter<'_> {
    fn scaled(&mut self, cotangent: Value, by: Value) -> Value {
        self.b.map(Row::StrongMul, &[cotangent, by])
    }

    /// Transposes an instruction without blocks.
    pub(crate) fn transpose_plain(&mut self, inst: &Inst, cotangents: &mut Cotangents) {
        let result = inst.results[0];
        let c = cotangents.remove(&result).expect("its cotangent is there");
        let args = &inst.args;
        match &inst.op {
            Op::Map(rule) => self.transpose_map(*rule, inst, c, cotangents),
            Op::Select => {
                let none = self.zero_like(result);
                if self.flows(args[1]) {
                    let part = self.b.select(args[0], c, none);
                    self.contribute(cotangents, args[1], part);
                }
                if self.flows(args[2]) {
                    let part = self.b.select(args[0], none, c);
                    self.contribute(cotangents, args[2], part);
                }
            }
            Op::Convert(_) => {
                let elem: Elem = self.elem(args[0]);
                let part = self.b.convert(elem, c);
                self.contribute(cotangents, args[0], part);
            }
            Op::Broadcast(axes) => {
                let rank = self.b.ty(result).rank;
                let repeated = (0..rank).filter(|axis| !axes.contains(axis)).collect();
                let part = self.b.emit(Op::Reduce(Reduction::Sum, repeated), &[c]);
                self.contribute(cotangents, args[0], part);
            }
            Op::Reshape => {
                let lengths = self.lengths_of(args[0]);
                let part = self.b.emit(Op::Reshape, &[&[c], &lengths[..]].concat());
                self.contribute(cotangents, args[0], part);
            }
            Op::Permute(axes) => {
                let mut back = vec![0; axes.len()];
                for (to, &from) in axes.iter().enumerate() {
                    back[usize::from(from)] = to as u8;
                }
                let part = self.b.emit(Op::Permute(back), &[c]);
                self.contribute(cotangents, args[0], part);
            }
            Op::Concat(axis) => self.transpose_concat(*axis, args, c, cotangents),
            Op::Reduce(Reduction::Sum, axes) => {
                let lengths = self.lengths_of(args[0]);
                let staying = (0..lengths.len() as u8).filter(|axis| !axes.contains(axis)).collect();
                let part = self.b.emit(Op::Broadcast(staying), &[&[c], &lengths[..]].concat());
                self.contribute(cotangents, args[0], part);
            }
            Op::Read(axes) => {
                let total = cotangents.remove(&args[0]).unwrap_or_else(|| self.zeros(args[0]));
                let total = self.b.emit(Op::AddAt(axes.clone()), &[&[total, c], &args[1..]].concat());
                cotangents.insert(args[0], total);
            }
            Op::Write(axes) => {
                if self.flows(args[1]) {
                    let part = self.b.emit(Op::Read(axes.clone()), &[&[c], &args[2..]].concat());
                    self.contribute(cotangents, args[1], part);
                }
                if self.flows(args[0]) {
                    let none = self.zero_like(result);
                    let rest = self.b.emit(Op::Write(axes.clone()), &[&[c, none], &args[2..]].concat());
                    self.contribute(cotangents, args[0], rest);
                }
            }
            Op::AddAt(axes) => {
                if self.flows(args[1]) {
                    let part = self.b.emit(Op::Read(axes.clone()), &[&[c], &args[2..]].concat());
                    self.contribute(cotangents, args[1], part);
                }
                self.contribute(cotangents, args[0], c);
            }
            Op::Push => self.transpose_push(args, c, cotangents),
            Op::Resize => {
                let lengths = self.lengths_of(args[0]);
                let part = self.b.emit(Op::Resize, &[c, lengths[0]]);
                self.contribute(cotangents, args[0], part);
            }
            Op::MatMul { a_transposed, b_transposed, .. } => {
                self.transpose_product(args[0], *a_transposed, args[1], *b_transposed, c, cotangents);
            }
            Op::Outer { .. } => {
                if self.flows(args[0]) {
                    let part = self.product(c, false, args[1], false);
                    self.contribute(cotangents, args[0], part);
                }
                if self.flows(args[1]) {
                    let part = self.product(c, true, args[0], false);
                    self.contribute(cotangents, args[1], part);
                }
            }
            Op::AddOuter { .. } => {
                // Of vectors, or of the rows of matrices.
                let rows = self.b.ty(args[1]).rank == 2;
                if self.flows(args[1]) {
                    let part = match rows {
                        true => self.product(args[2], false, c, true),
                        false => self.product(c, false, args[2], false),
                    };
                    self.contribute(cotangents, args[1], part);
                }
                if self.flows(args[2]) {
                    let part = match rows {
                        true => self.product(args[1], false, c, false),
                        false => self.product(c, true, args[1], false),
                    };
                    self.contribute(cotangents, args[2], part);
                }
                self.contribute(cotangents, args[0], c);
            }
            Op::Linalg(Linalg::Solve { transposed }) if !self.linear.contains(&args[0]) => {
                let back = Linalg::Solve { transposed: !transposed };
                let part = self.b.emit(Op::Linalg(back), &[args[0], c]);
                self.contribute(cotangents, args[1], part);
            }
            Op::Linalg(Linalg::SolveChecked { transposed, step }) if !self.linear.contains(&args[0]) => {
                let back = Linalg::SolveChecked { transposed: !transposed, step: *step };
                let part = self.b.emit(Op::Linalg(back), &[args[0], c]);
                self.contribute(cotangents, args[1], part);
            }
            Op::Linalg(Linalg::SolveTriangular { lower, transposed }) if !self.linear.contains(&args[0]) => {
                let back = Linalg::SolveTriangular { lower: *lower, transposed: !transposed };
                let part = self.b.emit(Op::Linalg(back), &[args[0], c]);
                self.contribute(cotangents, args[1], part);
            }
            Op::Reduce(Reduction::Max | Reduction::Min, _) | Op::Linalg(_) => self.refuse(inst),
            Op::Const(_)
            | Op::Int(_)
            | Op::Compare(_)
            | Op::Logical(_)
            | Op::StopGradient
            | Op::Settled(_)
            | Op::Dim(_)
            | Op::Iota
            | Op::Pack(_)
            | Op::Unpack(_)
            | Op::For { .. }
            | Op::While { .. }
            | Op::Sweep { .. }
            | Op::If
            | Op::Call(_)
            | Op::Fused => unreachable!("`{}` has no cotangent of this kind", inst.op.name()),
        }
    }

    /// Notes that the instruction is not linear.
    fn refuse(&mut self, inst: &Inst) {
        self.not_linear.get_or_insert_with(|| (inst.span, inst.op.name().to_string()));
    }

    fn transpose_map(&mut self, rule: Rule, inst: &Inst, c: Value, cotangents: &mut Cotangents) {
        let args = &inst.args;
        let is_linear = |this: &Self, at: usize| this.linear.contains(&args[at]);
        match rule.row {
            Row::Add => {
                self.contribute(cotangents, args[0], c);
                self.contribute(cotangents, args[1], c);
            }
            Row::Subtract => {
                self.contribute(cotangents, args[0], c);
                if self.flows(args[1]) {
                    let part = self.b.neg(c);
                    self.contribute(cotangents, args[1], part);
                }
            }
            Row::Negate => {
                let part = self.b.neg(c);
                self.contribute(cotangents, args[0], part);
            }
            Row::Multiply | Row::StrongMul if is_linear(self, 0) != is_linear(self, 1) => {
                let (target, by) = if is_linear(self, 0) { (args[0], args[1]) } else { (args[1], args[0]) };
                let part = self.scaled(c, by);
                self.contribute(cotangents, target, part);
            }
            Row::Divide if !is_linear(self, 1) => {
                let by = self.b.map(Row::Recip, &[args[1]]);
                let part = self.scaled(c, by);
                self.contribute(cotangents, args[0], part);
            }
            _ => self.refuse(inst),
        }
    }

    fn transpose_concat(&mut self, axis: u8, args: &[Value], c: Value, cotangents: &mut Cotangents) {
        let rank = usize::from(self.b.ty(c).rank);
        let mut axes = vec![Axis::All; rank];
        axes[usize::from(axis)] = Axis::Range;
        let mut start = self.b.int(0);
        let step = self.b.int(1);
        for &part in args {
            let length = self.lengths_of(part)[usize::from(axis)];
            if self.flows(part) {
                let piece = self.b.emit(Op::Read(axes.clone()), &[c, start, length, step]);
                self.contribute(cotangents, part, piece);
            }
            start = self.b.integer(IntOp::Add, start, length);
        }
    }

    fn transpose_push(&mut self, args: &[Value], c: Value, cotangents: &mut Cotangents) {
        let mut end = self.b.dim(c, 0);
        let step = self.b.int(1);
        for &part in args[1..].iter().rev() {
            let lengths = self.lengths_of(part);
            let size = lengths.iter().fold(step, |size, &length| self.b.integer(IntOp::Mul, size, length));
            let start = self.b.integer(IntOp::Sub, end, size);
            if self.flows(part) {
                let mut piece = if lengths.is_empty() {
                    self.b.index(c, &[start])
                } else {
                    self.b.emit(Op::Read(vec![Axis::Range]), &[c, start, size, step])
                };
                if lengths.len() > 1 {
                    piece = self.b.emit(Op::Reshape, &[&[piece], &lengths[..]].concat());
                }
                self.contribute(cotangents, part, piece);
            }
            end = start;
        }
        if self.flows(args[0]) {
            let rest = self.b.emit(Op::Resize, &[c, end]);
            self.contribute(cotangents, args[0], rest);
        }
    }

    fn product(&mut self, a: Value, a_transposed: bool, b: Value, b_transposed: bool) -> Value {
        self.b.emit(Op::MatMul { a_transposed, b_transposed, strong: true }, &[a, b])
    }

    fn transpose_product(
        &mut self,
        a: Value,
        a_transposed: bool,
        b: Value,
        b_transposed: bool,
        c: Value,
        cotangents: &mut Cotangents,
    ) {
        let ranks = (self.b.ty(a).rank, self.b.ty(b).rank);
        if self.flows(a) {
            let part = match (ranks, a_transposed) {
                ((2, 2), false) => Part::Made(self.product(c, false, b, !b_transposed)),
                ((2, 2), true) => Part::Made(self.product(b, b_transposed, c, true)),
                ((2, 1), false) => Part::Outer(c, b),
                ((2, 1), true) => Part::Outer(b, c),
                ((1, 2), _) => Part::Made(self.product(b, b_transposed, c, false)),
                _ => Part::Made(self.scaled(c, b)),
            };
            self.contribute_part(cotangents, a, part);
        }
        if self.flows(b) {
            let part = match (ranks, b_transposed) {
                ((2, 2), false) => Part::Made(self.product(a, !a_transposed, c, false)),
                ((2, 2), true) => Part::Made(self.product(c, true, a, a_transposed)),
                ((2, 1), _) => Part::Made(self.product(a, !a_transposed, c, false)),
                ((1, 2), false) => Part::Outer(a, c),
                ((1, 2), true) => Part::Outer(c, a),
                _ => Part::Made(self.scaled(c, a)),
            };
            self.contribute_part(cotangents, b, part);
        }
    }

    /// Adds to a cotangent. An outer product goes on from what is there: in a loop this is the update that
    /// `passes::defer` can do for all rounds at once.
    fn contribute_part(&mut self, cotangents: &mut Cotangents, value: Value, part: Part) {
        let (x, y) = match part {
            Part::Made(part) => return self.contribute(cotangents, value, part),
            Part::Outer(x, y) => (x, y),
        };
        let total = match cotangents.get(&value) {
            None => self.b.emit(Op::Outer { strong: true }, &[x, y]),
            Some(&so_far) => self.b.emit(Op::AddOuter { strong: true }, &[so_far, x, y]),
        };
        cotangents.insert(value, total);
    }
}

/// What is added to the cotangent of a factor.
enum Part {
    Made(Value),
    /// The outer product of two vectors.
    Outer(Value, Value),
}
