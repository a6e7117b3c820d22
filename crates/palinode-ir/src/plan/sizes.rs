//! The lengths of an operation's results, from the lengths of its operands.
//!
//! Input: an operation and what is known of its operands. Output: the shape of each result; a length that depends on data is `None`, or the most that it
//! can be.
//! Mistakes of the program (lengths that do not fit) are not looked for here: the run reports them.

use crate::op::{Axis, Linalg, Op};
use crate::plan::buffers::Ledger;
use crate::plan::walk::Thing;

/// Lengths, as far as they are known.
pub(super) type Shape = Vec<Option<u64>>;

/// The shapes of the results of an instruction that makes new arrays. A scalar result has shape `[]`.
pub(super) fn result_shapes(op: &Op, args: &[Thing], results: usize, ledger: &Ledger) -> Vec<Shape> {
    let shape = |at: usize| args[at].shape(ledger);
    let length = |at: usize| args[at].most().map(|n| u64::try_from(n).unwrap_or(0));
    let axis = |shape: &Shape, at: usize| shape.get(at).copied().flatten();
    let one = match op {
        Op::Map(_)
        | Op::Int(_)
        | Op::Compare(_)
        | Op::Logical(_)
        | Op::Select
        | Op::Convert(_)
        | Op::StopGradient
        | Op::Settled(_)
        | Op::Fused => {
            let shapes = args.iter().map(|arg| arg.shape(ledger)).filter(|shape| !shape.is_empty());
            let common = shapes.reduce(known_of_both).unwrap_or_default();
            return vec![common; results];
        }
        Op::Iota => vec![length(0)],
        Op::Broadcast(_) | Op::Reshape => (1..args.len()).map(length).collect(),
        Op::Permute(permutation) => {
            let from = shape(0);
            permutation.iter().map(|&at| axis(&from, usize::from(at))).collect()
        }
        Op::Concat(along) => {
            let mut all = (0..args.len()).map(shape);
            let first = all.next().unwrap_or_default();
            all.fold(first, |mut sum, part| {
                let at = usize::from(*along);
                sum[at] = sum[at].zip(axis(&part, at)).map(|(a, b)| a + b);
                sum
            })
        }
        Op::Reduce(_, axes) => {
            let from = shape(0);
            let stays = |at: &usize| !axes.iter().any(|&axis| usize::from(axis) == *at);
            (0..from.len()).filter(stays).map(|at| from[at]).collect()
        }
        Op::Read(axes) => read_shape(axes, &shape(0), &args[1..], ledger),
        Op::Write(_) | Op::AddAt(_) => shape(0),
        Op::Push => {
            let more = args[1..].iter().map(|arg| super::buffers::elements(&arg.shape(ledger)));
            let length = more.fold(axis(&shape(0), 0), |sum, more| sum.zip(more).map(|(a, b)| a + b));
            vec![length]
        }
        Op::Resize | Op::Unpack(_) => vec![length(1)],
        Op::Pack(narrow) => {
            let count = super::buffers::elements(&shape(0));
            vec![count.map(|count| count.div_ceil(narrow.per_word() as u64))]
        }
        Op::MatMul { a_transposed, b_transposed, .. } => {
            let (a, b) = (shape(0), shape(1));
            let rows = (a.len() == 2).then(|| a[usize::from(*a_transposed)]);
            let columns = (b.len() == 2).then(|| b[usize::from(!*b_transposed)]);
            rows.into_iter().chain(columns).collect()
        }
        Op::Outer { .. } => vec![axis(&shape(0), 0), axis(&shape(1), 0)],
        Op::Linalg(kind) => return linalg_shapes(*kind, args, ledger),
        Op::Const(_) | Op::Dim(_) => Vec::new(),
        Op::For { .. } | Op::While { .. } | Op::Sweep { .. } | Op::If | Op::Call(_) => {
            unreachable!("`{}` is walked through, not measured", op.name())
        }
    };
    vec![one]
}

/// Lengths that either operand knows; operands of elementwise operations have the same.
fn known_of_both(a: Shape, b: Shape) -> Shape {
    a.into_iter().zip(b).map(|(a, b)| a.or(b)).collect()
}

fn read_shape(axes: &[Axis], from: &Shape, operands: &[Thing], ledger: &Ledger) -> Shape {
    let mut found = Vec::new();
    let mut at = 0;
    for (axis, &length) in axes.iter().zip(from) {
        match axis {
            Axis::At => {}
            Axis::Range => found.push(operands[at + 1].most().map(|n| u64::try_from(n).unwrap_or(0))),
            Axis::All => found.push(length),
            Axis::List => found.push(operands[at].shape(ledger).first().copied().flatten()),
        }
        at += axis.operands();
    }
    found
}

fn linalg_shapes(kind: Linalg, args: &[Thing], ledger: &Ledger) -> Vec<Shape> {
    let a = args[0].shape(ledger);
    let (rows, columns) = (a[0], a[1]);
    let least = rows.zip(columns).map(|(m, n)| m.min(n));
    match kind {
        Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. } => {
            vec![args[1].shape(ledger)]
        }
        Linalg::Inverse | Linalg::Cofactors | Linalg::Cholesky => vec![a],
        Linalg::Determinant | Linalg::LogDet => vec![Vec::new()],
        Linalg::Qr => vec![vec![rows, columns], vec![columns, columns]],
        Linalg::SymmetricEigen => vec![vec![rows], vec![rows, rows]],
        Linalg::Svd => vec![vec![rows, least], vec![least], vec![columns, least]],
    }
}
