//! About how much work an operation is, in additions. Plans compare it, and reverse mode weighs it against
//! the memory that it would save; nothing else depends on it.

use palinode_core::rules::Row;

use crate::op::{Kind, Linalg, Op, Rule};
use crate::program::Inst;

/// The work of a round of a loop, besides what it computes: to count, to decide and to hand on.
pub(crate) const ROUND: f64 = 4.0;

/// The work of an operation that makes `made` elements from operands of these numbers of elements. Loops,
/// branches and calls are not work themselves.
pub(crate) fn work(inst: &Inst, made: u64, operands: &[u64]) -> f64 {
    let (made, first) = (made as f64, operands.first().copied().unwrap_or(0) as f64);
    match &inst.op {
        Op::Map(rule) => made * row(*rule),
        // (m k) (k n) / (m n) is k^2.
        Op::MatMul { .. } => {
            let second = operands.get(1).copied().unwrap_or(0) as f64;
            2.0 * made * (first * second / made.max(1.0)).sqrt()
        }
        // (k m) (k n) / (m n) is k^2.
        Op::AddOuter { .. } => {
            let factors: f64 = operands.iter().skip(1).map(|&n| n as f64).product();
            2.0 * made * (factors / made.max(1.0)).sqrt()
        }
        Op::Linalg(kind) => {
            let cube = first.powf(1.5);
            match kind {
                Linalg::Solve { .. } | Linalg::Determinant | Linalg::LogDet | Linalg::Cholesky => cube,
                Linalg::SolveChecked { .. } => 4.0 * cube,
                Linalg::SolveTriangular { .. } => first,
                Linalg::Inverse | Linalg::Cofactors | Linalg::Qr => 3.0 * cube,
                Linalg::SymmetricEigen | Linalg::Svd => 20.0 * cube,
            }
        }
        // Its block is done for each element.
        Op::Fused => made * inst.blocks[0].insts.iter().map(|inner| work(inner, 1, &[1; 3])).sum::<f64>(),
        Op::Reduce(..) | Op::Pack(_) => first,
        Op::Push => operands.iter().skip(1).sum::<u64>() as f64,
        op => match op.facts().kind {
            Kind::Elementwise | Kind::Fuses | Kind::Reads | Kind::Makes => made,
            // What is changed is as long as what is put there.
            Kind::Updates => operands.get(1).map_or(1.0, |&n| n as f64),
            Kind::Literal | Kind::Measures | Kind::Reshapes => 0.0,
            Kind::Repeats(_) | Kind::Branches | Kind::Calls => 0.0,
        },
    }
}

fn row(rule: Rule) -> f64 {
    match rule.row {
        Row::Powi if (0..=4).contains(&rule.parameter) => 2.0,
        Row::Powi if (-4..0).contains(&rule.parameter) => 7.0,
        Row::Add | Row::Subtract | Row::Multiply | Row::Negate | Row::Abs | Row::Min | Row::Max => 1.0,
        Row::StrongMul | Row::Signum | Row::Copysign | Row::Select | Row::Relu | Row::Clamp => 2.0,
        Row::Floor | Row::Ceil | Row::Round | Row::Trunc | Row::Fract | Row::MulAdd => 2.0,
        Row::Divide | Row::Recip | Row::Sqrt => 5.0,
        _ => 20.0,
    }
}
