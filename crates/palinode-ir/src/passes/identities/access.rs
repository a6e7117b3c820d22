//! Identities of reads and writes.

use super::array::fill_of;
use crate::op::{Axis, Op};
use crate::passes::rewrite::Writer;
use crate::program::{Inst, Value};

/// The operands of each place.
fn operands<'a>(places: &[Axis], mut operands: &'a [Value]) -> Vec<&'a [Value]> {
    let one = |place: &Axis| {
        let (mine, rest) = operands.split_at(place.operands());
        operands = rest;
        mine
    };
    places.iter().map(one).collect()
}

pub(super) fn read(w: &mut Writer<'_>, places: &[Axis], args: &[Value]) -> Option<Value> {
    let array = args[0];
    if places.iter().all(|place| *place == Axis::All) {
        return Some(array);
    }
    let def = w.def(array)?;
    let (op, from) = &def;
    match op {
        // The same places were just written, with something of their own rank.
        Op::Write(written) if written == places && from[2..] == args[1..] => {
            let rank = places.iter().filter(|place| place.stays()).count();
            (usize::from(w.ty(from[1]).rank) == rank).then_some(from[1])
        }
        Op::Iota if places == [Axis::At] => Some(args[1]),
        Op::Broadcast(axes) if axes.is_empty() => {
            let (scalar, lengths) = fill_of(w, array)?;
            read_of_fill(w, scalar, &lengths, places, &args[1..])
        }
        Op::Broadcast(axes) if w.is_single_use(array) => {
            read_of_repeated(w, axes, from[0], places, &args[1..])
        }
        _ => None,
    }
}

fn read_of_fill(
    w: &mut Writer<'_>,
    scalar: Value,
    lengths: &[Value],
    places: &[Axis],
    args: &[Value],
) -> Option<Value> {
    let mut kept = vec![scalar];
    for ((place, operands), &length) in places.iter().zip(operands(places, args)).zip(lengths) {
        match place {
            Axis::At => {}
            Axis::Range => kept.push(operands[1]),
            Axis::All => kept.push(length),
            Axis::List => kept.push(w.emit(Op::Dim(0), vec![operands[0]])),
        }
    }
    if kept.len() == 1 {
        return Some(scalar);
    }
    Some(w.emit(Op::Broadcast(Vec::new()), kept))
}

/// An element or a part of an array that was repeated along axes of which only one place each is read.
fn read_of_repeated(
    w: &mut Writer<'_>,
    axes: &[u8],
    x: Value,
    places: &[Axis],
    args: &[Value],
) -> Option<Value> {
    let (mut kept, mut values) = (Vec::new(), vec![x]);
    for ((place, operands), axis) in places.iter().zip(operands(places, args)).zip(0..) {
        if axes.contains(&axis) {
            kept.push(*place);
            values.extend(operands);
        } else if place.stays() {
            return None;
        }
    }
    Some(w.emit(Op::Read(kept), values))
}

pub(super) fn write(w: &Writer<'_>, inst: &mut Inst) -> Option<Value> {
    let Op::Write(places) = &inst.op else { return None };
    let (array, x) = (inst.args[0], inst.args[1]);
    // What is there is written again.
    if let Some(from) = w.args_of(x, &Op::Read(places.clone()))
        && from[0] == array
        && from[1..] == inst.args[2..]
    {
        return Some(array);
    }
    // Everything is written.
    if places.iter().all(|place| *place == Axis::All) && w.ty(x) == w.ty(array) {
        return Some(x);
    }
    // What was just written is written over. If something else needs the version in between, both would
    // consume the same one.
    if let Some(before) = w.args_of(array, &inst.op)
        && before[2..] == inst.args[2..]
        && w.is_single_use(array)
    {
        inst.args[0] = before[0];
    }
    None
}
