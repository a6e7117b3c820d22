//! The lengths of arrays in the linear half, which has no array to ask until a cotangent arrives.
//!
//! Input: a linear array. Output: integer values that are its lengths, from the first of these that there is: a known array of the
//! same shape (the primal of a tangent), lengths that an instruction names, the lengths of what it was made from.

use crate::op::{Axis, IntOp, Linalg, Op};
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
        let args = &inst.args;
        match &inst.op {
            Op::Read(axes) => self.read_lengths(axes, args),
            Op::Permute(axes) => {
                let from = self.lengths_of(args[0]);
                axes.iter().map(|&axis| from[usize::from(axis)]).collect()
            }
            Op::Concat(axis) => {
                let mut total = self.lengths_of(args[0]);
                for &part in &args[1..] {
                    let more = self.lengths_of(part)[usize::from(*axis)];
                    let place = &mut total[usize::from(*axis)];
                    *place = self.b.integer(IntOp::Add, *place, more);
                }
                total
            }
            Op::Reduce(_, axes) => {
                let from = self.lengths_of(args[0]);
                let staying = (0..from.len()).filter(|&axis| !axes.contains(&(axis as u8)));
                staying.map(|axis| from[axis]).collect()
            }
            Op::MatMul { a_transposed, b_transposed, .. } => {
                let (a, b) = (self.lengths_of(args[0]), self.lengths_of(args[1]));
                let mut lengths = Vec::new();
                if a.len() == 2 {
                    lengths.push(a[usize::from(*a_transposed)]);
                }
                if b.len() == 2 {
                    lengths.push(b[usize::from(!*b_transposed)]);
                }
                lengths
            }
            Op::Outer { .. } => vec![self.lengths_of(args[0])[0], self.lengths_of(args[1])[0]],
            Op::Linalg(
                Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. },
            ) => self.lengths_of(args[1]),
            Op::Push => {
                let mut total = self.lengths_of(args[0])[0];
                for &part in &args[1..] {
                    let one = self.b.int(1);
                    let lengths = self.lengths_of(part);
                    let size =
                        lengths.iter().fold(one, |size, &length| self.b.integer(IntOp::Mul, size, length));
                    total = self.b.integer(IntOp::Add, total, size);
                }
                vec![total]
            }
            Op::Resize | Op::Unpack(_) => vec![args[1]],
            Op::Map(_)
            | Op::Select
            | Op::Convert(_)
            | Op::StopGradient
            | Op::Settled(_)
            | Op::Write(_)
            | Op::AddAt(_)
            | Op::Broadcast(_)
            | Op::Reshape => {
                // Shapes follows these; what it ends at is derived here.
                match self.shapes.root(value) {
                    Root::Lengths(lengths) => lengths,
                    Root::Array(array) if array != value => self.lengths_of(array),
                    Root::Array(_) => self.no_lengths(inst.span, rank),
                }
            }
            Op::For { .. }
            | Op::While { .. }
            | Op::Sweep { .. }
            | Op::If
            | Op::Call(_)
            | Op::Const(_)
            | Op::Int(_)
            | Op::Compare(_)
            | Op::Logical(_)
            | Op::Dim(_)
            | Op::Iota
            | Op::Pack(_)
            | Op::Linalg(_)
            | Op::Fused => self.no_lengths(inst.span, rank),
        }
    }

    fn read_lengths(&mut self, axes: &[Axis], args: &[Value]) -> Vec<Value> {
        let whole = if axes.contains(&Axis::All) { self.lengths_of(args[0]) } else { Vec::new() };
        let mut operands = args[1..].iter().copied();
        let mut lengths = Vec::new();
        for (at, axis) in axes.iter().enumerate() {
            let mine: Vec<Value> = operands.by_ref().take(axis.operands()).collect();
            match axis {
                Axis::At => {}
                Axis::Range => lengths.push(mine[1]),
                Axis::All => lengths.push(whole[at]),
                Axis::List => lengths.push(self.length(mine[0], 0)),
            }
        }
        lengths
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
