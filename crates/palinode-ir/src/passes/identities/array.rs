//! Identities of operations on whole arrays.

use crate::op::{Op, Reduction};
use crate::passes::facts::{filling, real, zero_has_no_sign};
use crate::passes::rewrite::Writer;
use crate::program::{Inst, Value};

/// The scalar that fills an array and its lengths.
pub(super) fn fill_of(w: &Writer<'_>, array: Value) -> Option<(Value, Vec<Value>)> {
    let args = w.args_of(array, &Op::Broadcast(Vec::new()))?;
    (args.len() > 1).then(|| (args[0], args[1..].to_vec()))
}

fn fill(w: &mut Writer<'_>, scalar: Value, lengths: &[Value]) -> Value {
    if lengths.is_empty() {
        return scalar;
    }
    w.emit(Op::Broadcast(Vec::new()), [&[scalar], lengths].concat())
}

/// An elementwise operation on fills: a fill of the operation on scalars, or, beside an array that is none,
/// the operation with the scalar itself.
pub(super) fn fills(w: &mut Writer<'_>, inst: &mut Inst) -> Option<Value> {
    let first = inst.args.iter().find_map(|&arg| fill_of(w, arg));
    let (_, lengths) = first?;
    let scalars: Vec<Option<Value>> = inst.args.iter().map(|&arg| filling(w, arg)).collect();
    if let Some(scalars) = scalars.iter().copied().collect::<Option<Vec<Value>>>() {
        let scalar = w.emit(inst.op.clone(), scalars);
        return Some(fill(w, scalar, &lengths));
    }
    inst.args = inst.args.iter().zip(scalars).map(|(&arg, scalar)| scalar.unwrap_or(arg)).collect();
    None
}

/// The same for operands of a fused operation, which take scalars in their place.
pub(super) fn fills_of_fused(w: &Writer<'_>, inst: &mut Inst) {
    let scalars: Vec<Option<Value>> = inst.args.iter().map(|&arg| filling(w, arg)).collect();
    if scalars.iter().any(Option::is_none) {
        inst.args = inst.args.iter().zip(scalars).map(|(&arg, scalar)| scalar.unwrap_or(arg)).collect();
    }
}

pub(super) fn broadcast(w: &Writer<'_>, inst: &mut Inst) -> Option<Value> {
    let Op::Broadcast(axes) = &inst.op else { return None };
    let x = inst.args[0];
    if axes.len() == inst.args.len() - 1 {
        return Some(x);
    }
    let def = w.def(x)?;
    if let (Op::Broadcast(inner), args) = &def {
        let places = inner.iter().map(|&axis| axes[usize::from(axis)]).collect();
        inst.args[0] = args[0];
        inst.op = Op::Broadcast(places);
    }
    None
}

pub(super) fn reshape(w: &mut Writer<'_>, inst: &mut Inst) -> Option<Value> {
    let x = inst.args[0];
    if w.ty(x).is_scalar() && inst.args.len() == 1 {
        return Some(x);
    }
    if let Some((scalar, _)) = fill_of(w, x)
        && inst.args.len() > 1
    {
        return Some(fill(w, scalar, &inst.args[1..]));
    }
    // A reshape takes the memory of its operand; two of one array would need a copy.
    if let Some(inner) = w.args_of(x, &Op::Reshape).filter(|_| w.is_single_use(x)) {
        inst.args[0] = inner[0];
        return reshape(w, inst);
    }
    None
}

pub(super) fn permute(w: &mut Writer<'_>, inst: &mut Inst) -> Option<Value> {
    let Op::Permute(permutation) = &inst.op else { return None };
    let x = inst.args[0];
    if let Some((scalar, lengths)) = fill_of(w, x) {
        let lengths: Vec<Value> = permutation.iter().map(|&axis| lengths[usize::from(axis)]).collect();
        return Some(fill(w, scalar, &lengths));
    }
    let is_identity = |permutation: &[u8]| permutation.windows(2).all(|pair| pair[0] < pair[1]);
    if is_identity(permutation) {
        return Some(x);
    }
    let def = w.def(x)?;
    if let (Op::Permute(inner), args) = &def {
        let both: Vec<u8> = permutation.iter().map(|&axis| inner[usize::from(axis)]).collect();
        if is_identity(&both) {
            return Some(args[0]);
        }
        inst.args[0] = args[0];
        inst.op = Op::Permute(both);
    }
    None
}

pub(super) fn reduce(w: &mut Writer<'_>, kind: Reduction, axes: &[u8], x: Value) -> Option<Value> {
    // A sum starts from 0 and so turns -0 into 0.
    let exact = match kind {
        Reduction::Sum => zero_has_no_sign(w, x),
        Reduction::Max | Reduction::Min => true,
    };
    if axes.is_empty() {
        return exact.then_some(x);
    }
    let (scalar, lengths) = fill_of(w, x)?;
    let kept: Vec<Value> = lengths
        .into_iter()
        .zip(0..)
        .filter(|(_, axis)| !axes.contains(axis))
        .map(|(length, _)| length)
        .collect();
    match kind {
        // Adding zeros is exact; adding anything else so often is not a product.
        Reduction::Sum if real(w, scalar)?.to_bits() != 0 => None,
        Reduction::Sum | Reduction::Max | Reduction::Min => Some(fill(w, scalar, &kept)),
    }
}
