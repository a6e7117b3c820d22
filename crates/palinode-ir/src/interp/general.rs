//! From an operation to the kernel that does it.

use palinode_core::Real;

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::store_rule::reuses;
use super::value::{Array, Val, primal};
use super::{Limits, access, array_ops, elementwise, linalg, narrowed, products, reduce, settled, trap};
use crate::op::{Kind, Op};
use crate::types::Elem;

/// Applies an operation that is not done by an instruction of its own. Operands may be taken out of `args`.
#[inline(never)]
pub(super) fn apply<R: Real>(
    op: &Op,
    single: bool,
    args: &mut [Val<R>],
    out: &mut Vec<Val<R>>,
    limits: &Limits,
    memory: &mut Memory,
) -> Result<(), RunErrorKind> {
    out.clear();
    let (traps, how) = (limits.trap_nonfinite, limits.accumulator);
    let facts = op.facts();
    // Elementwise operations and updates may give the memory of operands to the result, and look themselves;
    // what those do not see is a result that overflows when it is rounded.
    let looks_itself = matches!(facts.kind, Kind::Updates | Kind::Elementwise);
    let rounds_finite = traps && single && facts.kind == Kind::Elementwise && all_finite(args);
    // Elementwise operations have at most three operands.
    let over = |args: &[Val<R>], result: Elem| {
        let mut free = [None; 3];
        free.iter_mut().zip(args).for_each(|(free, arg)| *free = arg.free());
        reuses(op, result, &free[..args.len()])
    };
    match op {
        Op::Map(rule) => out.push(elementwise::map(*rule, over(args, Elem::F64), args, traps, memory)?),
        Op::Int(op) => out.push(elementwise::int(*op, over(args, Elem::Int), args, memory)?),
        Op::Compare(op) => out.push(elementwise::compare(*op, args, memory)?),
        Op::Logical(op) => out.push(elementwise::logical(*op, over(args, Elem::Bool), args, memory)?),
        Op::Select => out.push(elementwise::select(over(args, args[1].elem()), args, memory)?),
        Op::Convert(elem) => out.push(elementwise::convert(*elem, over(args, *elem), args, memory)?),
        Op::StopGradient => out.push(elementwise::stop_gradient(over(args, args[0].elem()), args, memory)?),
        Op::Settled(search) => {
            let over = reuses(op, Elem::F64, &[args[0].free()]);
            out.push(settled::settled(*search, args, over.is_some(), memory)?);
        }
        Op::Iota => out.push(array_ops::iota(args, memory)?),
        Op::Broadcast(axes) => out.push(array_ops::broadcast(axes, args, memory)?),
        Op::Reshape => out.push(array_ops::reshape(args, memory)?),
        Op::Permute(axes) => out.push(array_ops::permute(axes, args, memory)?),
        Op::Concat(axis) => out.push(array_ops::concat(*axis, args, memory)?),
        Op::Reduce(kind, axes) => out.push(reduce::reduce(*kind, axes, args, how, memory)?),
        Op::Read(axes) => out.push(access::read(axes, args, memory)?),
        Op::Write(axes) => out.push(access::write(axes, args, memory)?),
        Op::AddAt(axes) => {
            out.push(access::add_at(axes, args, single, traps, memory)?);
            return Ok(());
        }
        Op::Push => out.push(array_ops::push_all(args, memory)?),
        Op::Resize => out.push(array_ops::resize(args, memory)?),
        Op::Pack(narrow) => out.push(narrowed::pack(*narrow, args, memory)?),
        Op::Unpack(narrow) => out.push(narrowed::unpack(*narrow, args, memory)?),
        Op::MatMul { a_transposed, b_transposed, strong } => {
            let transposed = [*a_transposed, *b_transposed];
            out.push(products::matmul(transposed, *strong, args, how, memory)?);
        }
        Op::Outer { strong } => out.push(products::outer(*strong, args, memory)?),
        Op::AddOuter { strong } => out.push(products::add_outer(*strong, args, traps, memory)?),
        Op::Linalg(kind) => linalg::apply(*kind, args, out, memory)?,
        Op::Const(_)
        | Op::Dim(_)
        | Op::For { .. }
        | Op::While { .. }
        | Op::Sweep { .. }
        | Op::If
        | Op::Call(_)
        | Op::Fused => {
            unreachable!("`{}` has instructions of its own", op.name())
        }
    }
    if single {
        out.iter_mut().try_for_each(|value| value.round32(op.name(), memory))?;
    }
    let is_checked = rounds_finite || (traps && facts.computes && !looks_itself);
    if is_checked
        && let Some(result) = out.iter().find_map(first_nonfinite)
        && (rounds_finite || all_finite(args))
    {
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
        Val::Array(Array::Real(store)) => {
            let chunk = store.chunks().find(|chunk| !trap::all_finite(chunk))?;
            chunk.iter().find_map(|&x| of(x))
        }
        Val::Int(_) | Val::Bool(_) | Val::Array(_) => None,
    }
}

fn all_finite<R: Real>(args: &[Val<R>]) -> bool {
    args.iter().all(|arg| first_nonfinite(arg).is_none())
}
