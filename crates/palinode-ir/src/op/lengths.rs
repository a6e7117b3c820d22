//! The lengths of an operation's results, from its operands: stated once for passes, transforms and plans,
//! which know lengths by name, as values or as numbers.

use super::{Axis, Linalg, Narrow, Op};

/// A length of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// That of an operand along an axis.
    Of(usize, u8),
    /// The integer that an operand is.
    Int(usize),
    /// The sum of those of all operands along an axis.
    Sum(u8),
    /// The number of elements of all operands.
    Elements,
    /// The number of words for all elements of operand 0.
    Words(Narrow),
    /// The smaller one of those of operand 0, a matrix.
    Least,
}

/// The lengths of all results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// Those of every operand that has the rank of the results.
    Alike,
    /// Of each result, one for each axis.
    Each(Vec<Vec<Length>>),
    /// What blocks or a function give.
    Inside,
}

/// The lengths of the results of an operation on operands of these ranks, if it does not fail.
pub(crate) fn lengths(op: &Op, ranks: &[u8]) -> Lengths {
    use Length::{Elements, Int, Of, Sum, Words};
    let whole = |at: usize| (0..ranks[at]).map(|axis| Of(at, axis)).collect();
    let named = |from: usize| (from..ranks.len()).map(Int).collect();
    let one = match op {
        Op::Map(_)
        | Op::Int(_)
        | Op::Compare(_)
        | Op::Logical(_)
        | Op::Select
        | Op::Convert(_)
        | Op::StopGradient
        | Op::Settled(_)
        | Op::Fused => return Lengths::Alike,
        Op::Const(_) | Op::Dim(_) => Vec::new(),
        Op::Iota => named(0),
        Op::Broadcast(_) | Op::Reshape | Op::Resize | Op::Unpack(_) => named(1),
        Op::Permute(axes) => axes.iter().map(|&axis| Of(0, axis)).collect(),
        Op::Concat(along) if ranks.len() > 1 => {
            (0..ranks[0]).map(|axis| if axis == *along { Sum(axis) } else { Of(0, axis) }).collect()
        }
        Op::Reduce(_, gone) => {
            (0..ranks[0]).filter(|axis| !gone.contains(axis)).map(|axis| Of(0, axis)).collect()
        }
        Op::Read(places) => reached(places, 1),
        Op::Concat(_) | Op::Write(_) | Op::AddAt(_) | Op::AddOuter { .. } => whole(0),
        Op::Push => vec![Elements],
        Op::Pack(narrow) => vec![Words(*narrow)],
        Op::MatMul { a_transposed, b_transposed, .. } => {
            let rows = (ranks[0] == 2).then_some(Of(0, u8::from(*a_transposed)));
            let columns = (ranks[1] == 2).then_some(Of(1, u8::from(!*b_transposed)));
            rows.into_iter().chain(columns).collect()
        }
        Op::Outer { .. } => vec![Of(0, 0), Of(1, 0)],
        Op::Linalg(kind) => return Lengths::Each(linalg(*kind, ranks)),
        Op::For { .. } | Op::While { .. } | Op::Sweep { .. } | Op::If | Op::Call(_) => {
            return Lengths::Inside;
        }
    };
    Lengths::Each(vec![one])
}

/// The lengths of what an access reaches of operand 0; the operands of its places begin with number `first`.
pub(crate) fn reached(places: &[Axis], first: usize) -> Vec<Length> {
    let (mut found, mut operand) = (Vec::new(), first);
    for (place, axis) in places.iter().zip(0..) {
        match place {
            Axis::At => {}
            Axis::Range => found.push(Length::Int(operand + 1)),
            Axis::All => found.push(Length::Of(0, axis)),
            Axis::List => found.push(Length::Of(operand, 0)),
        }
        operand += place.operands();
    }
    found
}

fn linalg(kind: Linalg, ranks: &[u8]) -> Vec<Vec<Length>> {
    let (rows, columns) = (Length::Of(0, 0), Length::Of(0, 1));
    match kind {
        Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. } => {
            vec![(0..ranks[1]).map(|axis| Length::Of(1, axis)).collect()]
        }
        Linalg::Inverse | Linalg::Cofactors | Linalg::Cholesky => vec![vec![rows, columns]],
        Linalg::Determinant | Linalg::LogDet => vec![Vec::new()],
        Linalg::Qr => vec![vec![rows, columns], vec![columns, columns]],
        Linalg::SymmetricEigen => vec![vec![rows], vec![rows, columns]],
        Linalg::Svd => {
            vec![vec![rows, Length::Least], vec![Length::Least], vec![columns, Length::Least]]
        }
    }
}
