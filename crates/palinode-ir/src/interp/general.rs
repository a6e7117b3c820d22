//! From an operation to the kernel that does it.

use palinode_core::Real;

use super::Stats;
use super::error::RunErrorKind;
use super::value::{Array, Val, primal};
use super::{access, array_ops, elementwise, linalg};
use crate::op::Op;

/// Applies an operation that is not done by an instruction of its own. Operands may be taken out of `args`.
#[inline(never)]
pub(super) fn apply<R: Real>(
    op: &Op,
    single: bool,
    args: &mut [Val<R>],
    out: &mut Vec<Val<R>>,
    trap: bool,
    stats: &mut Stats,
) -> Result<(), RunErrorKind> {
    out.clear();
    let computes = matches!(
        op,
        Op::Map(_) | Op::Convert(_) | Op::Reduce(..) | Op::MatMul { .. } | Op::Outer { .. } | Op::Linalg(_)
    );
    let finite = trap && computes && all_finite(args);
    match op {
        Op::Map(rule) => out.push(elementwise::map(*rule, args, trap, stats)?),
        Op::Int(op) => out.push(elementwise::int(*op, args, stats)?),
        Op::Compare(op) => out.push(elementwise::compare(*op, args, stats)?),
        Op::Logical(op) => out.push(elementwise::logical(*op, args, stats)?),
        Op::Select => out.push(elementwise::select(args, stats)?),
        Op::Convert(elem) => out.push(elementwise::convert(*elem, args, stats)?),
        Op::StopGradient => out.push(elementwise::stop_gradient(args, stats)?),
        Op::Iota => out.push(array_ops::iota(args, stats)?),
        Op::Broadcast(axes) => out.push(array_ops::broadcast(axes, args, stats)?),
        Op::Reshape => out.push(array_ops::reshape(args, stats)?),
        Op::Permute(axes) => out.push(array_ops::permute(axes, args, stats)?),
        Op::Concat(axis) => out.push(array_ops::concat(*axis, args, stats)?),
        Op::Reduce(kind, axes) => out.push(array_ops::reduce(*kind, axes, args, stats)?),
        Op::Read(axes) => out.push(access::read(axes, args, stats)?),
        Op::Write(axes) => out.push(access::write(axes, args, stats)?),
        Op::AddAt(axes) => {
            out.push(access::add_at(axes, args, single, trap, stats)?);
            return Ok(());
        }
        Op::Push => out.push(array_ops::push_all(args, stats)?),
        Op::Resize => out.push(array_ops::resize(args, stats)?),
        Op::MatMul { a_transposed, b_transposed, strong } => {
            out.push(array_ops::matmul(*a_transposed, *b_transposed, *strong, args, stats)?);
        }
        Op::Outer { strong } => out.push(array_ops::outer(*strong, args, stats)?),
        Op::Linalg(kind) => linalg::apply(*kind, args, out, stats)?,
        Op::Const(_) | Op::Dim(_) | Op::For { .. } | Op::While | Op::If | Op::Call(_) | Op::Fused => {
            unreachable!("`{}` has instructions of its own", op.name())
        }
    }
    if single {
        out.iter_mut().for_each(|value| value.round32(stats));
    }
    if finite && let Some(result) = out.iter().find_map(first_nonfinite) {
        return Err(RunErrorKind::NonFinite {
            operation: format!("{} of finite elements", op.name()),
            result,
        });
    }
    Ok(())
}

fn first_nonfinite<R: Real>(value: &Val<R>) -> Option<f64> {
    let of = |x: R| (!x.is_finite()).then(|| primal(x));
    match value {
        Val::Real(x) => of(*x),
        Val::Array(Array::Real(tensor)) => tensor.data.iter().find_map(|&x| of(x)),
        Val::Int(_) | Val::Bool(_) | Val::Array(_) => None,
    }
}

fn all_finite<R: Real>(args: &[Val<R>]) -> bool {
    args.iter().all(|arg| first_nonfinite(arg).is_none())
}
