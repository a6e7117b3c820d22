//! What kernels take besides their operands and results while they run.
//!
//! Writes to listed places allocate exactly this much. Linear algebra works in memory of its own; what is
//! charged for it is an upper bound. Reductions and products take nothing.

use crate::op::{Axis, Linalg, Op};

/// Lists up to this length are checked for repeated places without further memory.
pub(super) const SHORT_LIST: usize = 8;

/// The bytes of workspace of an operation on operands with these lengths (none for scalars); `real` is the
/// size of a real number.
///
/// That of a `write` is given back before the array is copied, if it must be; the others last until the
/// results are there. Wrong lengths are allowed: the operation refuses them itself.
pub(crate) fn workspace(op: &Op, shapes: &[&[usize]], real: usize) -> usize {
    match op {
        // Lists are checked one after the other.
        Op::Write(axes) => {
            let mut at = 2;
            let mut longest = 0;
            for axis in axes {
                if *axis == Axis::List {
                    longest = longest.max(shapes[at][0]);
                }
                at += axis.operands();
            }
            if longest > SHORT_LIST { longest * size_of::<i64>() } else { 0 }
        }
        Op::Linalg(kind) => linalg(*kind, shapes) * real,
        op if op.facts().works_apart => {
            unreachable!("the workspace of `{}` is stated here", op.name())
        }
        _ => 0,
    }
}

fn product(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// An upper bound for the elements that a decomposition or solver holds at once, results included where they
/// are made outside the account first.
fn linalg(kind: Linalg, shapes: &[&[usize]]) -> usize {
    let (rows, columns) = (shapes[0][0], shapes[0][1]);
    let (matrix, wide, narrow) = (rows * columns, rows.max(columns), rows.min(columns));
    let sides = shapes.get(1).map_or(0, |shape| product(shape));
    // Vectors for a column, pivots, values and the like.
    let vectors = 6 * wide;
    vectors
        + match kind {
            // The matrix, its transpose, the right sides by columns and back.
            Linalg::Solve { .. } | Linalg::SolveTriangular { .. } => 2 * matrix + 3 * sides,
            // The same, and plain copies of the matrix, its factors and its inverse, with the scales and sums
            // of rows.
            Linalg::SolveChecked { .. } => 5 * matrix + 4 * sides + 8 * wide,
            Linalg::Inverse => 3 * matrix,
            Linalg::Determinant => 4 * matrix,
            // The factors, theirs by rows and by columns, the result; of the rest three.
            Linalg::Cofactors => 8 * matrix,
            Linalg::LogDet => matrix,
            Linalg::Cholesky => 2 * matrix,
            Linalg::Qr => 5 * matrix + narrow * narrow,
            Linalg::SymmetricEigen => 5 * matrix,
            Linalg::Svd => 4 * matrix + 3 * narrow * narrow,
        }
}
