//! Loops over the same elements become one.
//!
//! An `Each` joins an earlier one of its block if both run over the same box (or one over its elements, row
//! by row), nothing between them orders them, and no round of one needs what another round of the other one
//! does: buffers that one of them writes are at the same index in both. What the first loop has loaded or
//! stored the second one does not load, and what both compute is computed once.

use crate::fast::FastMap;

use super::super::form::{Buf, Index, LoopForm, Operand, Reg, Stmt};
use super::rewrite::{Instead, is_operand, target_mut};
use super::touch::Touch;

/// At most so many statements are in a joined loop: more would not fit into registers.
const LARGEST: usize = 96;

/// How many statements back a partner is looked for.
const WINDOW: usize = 48;

pub(super) fn run(form: &mut LoopForm) {
    block(&mut form.body);
}

fn block(stmts: &mut Vec<Stmt>) {
    let mut done: Vec<(Stmt, Touch)> = Vec::with_capacity(stmts.len());
    for mut stmt in core::mem::take(stmts) {
        if !matches!(stmt, Stmt::Each { .. }) {
            stmt.blocks_mut().into_iter().for_each(block);
            let touch = Touch::of(&stmt);
            done.push((stmt, touch));
            continue;
        }
        let touch = Touch::of(&stmt);
        let mut partner = None;
        for at in (0..done.len()).rev().take(WINDOW) {
            if let Some(both) = joined(&done[at].0, &stmt) {
                partner = Some((at, both));
                break;
            }
            if done[at].1.orders(&touch) {
                break;
            }
        }
        match partner {
            Some((at, both)) => {
                done[at].0 = both;
                done[at].1.join(touch);
            }
            None => done.push((stmt, touch)),
        }
    }
    stmts.extend(done.into_iter().map(|(stmt, _)| stmt));
}

type Axes = Vec<(Reg, i64, i64)>;

/// Both loops as one, if they can be.
fn joined(first: &Stmt, second: &Stmt) -> Option<Stmt> {
    let (Stmt::Each { axes: first_axes, body: first }, Stmt::Each { axes, body: second }) = (first, second)
    else {
        return None;
    };
    if first.len() + second.len() > LARGEST {
        return None;
    }
    let (axes, first, second) = aligned(first_axes, first, axes, second)?;
    // What one writes is at one place in both.
    let places = |body: &[Stmt]| -> Vec<(Buf, Index, bool)> {
        body.iter()
            .filter_map(|stmt| match stmt {
                Stmt::Load { buf, at, .. } => Some((*buf, at.clone(), false)),
                Stmt::Store { buf, at, .. } => Some((*buf, at.clone(), true)),
                _ => None,
            })
            .collect()
    };
    let (earlier, later) = (places(&first), places(&second));
    for (buf, at, is_stored) in &earlier {
        let conflicts = |(other, place, stored): &(Buf, Index, bool)| {
            other == buf && (*stored || *is_stored) && place != at
        };
        if later.iter().any(conflicts) {
            return None;
        }
    }
    Some(Stmt::Each { axes, body: forwarded(first, second)? })
}

/// The bodies with the same counters.
fn aligned(
    first_axes: &Axes,
    first: &[Stmt],
    second_axes: &Axes,
    second: &[Stmt],
) -> Option<(Axes, Vec<Stmt>, Vec<Stmt>)> {
    let ranges = |axes: &Axes| axes.iter().map(|&(_, from, to)| (from, to)).collect::<Vec<_>>();
    let with = |body: &[Stmt], instead: &Instead| {
        body.iter().map(|stmt| instead.stmt(stmt)).collect::<Option<Vec<Stmt>>>()
    };
    if ranges(first_axes) == ranges(second_axes) {
        let mut instead = Instead::default();
        for (own, other) in second_axes.iter().zip(first_axes) {
            instead.operands.insert(own.0, Operand::Reg(other.0));
        }
        return Some((first_axes.clone(), first.to_vec(), with(second, &instead)?));
    }
    // One counts the elements of the other's box row by row.
    let by_rows = |flat: &Axes, body: &[Stmt], axes: &Axes| {
        let [(counter, 0, count)] = flat[..] else { return None };
        if axes.iter().any(|axis| axis.1 != 0) || is_operand(body, counter) {
            return None;
        }
        let (mut index, mut step) = (Index::default(), 1_i64);
        for &(reg, _, to) in axes.iter().rev() {
            index = index.plus(&Index::reg(reg), step)?;
            step = step.checked_mul(to)?;
        }
        if step != count {
            return None;
        }
        let mut instead = Instead::default();
        instead.indices.insert(counter, index);
        with(body, &instead)
    };
    if let Some(second) = by_rows(second_axes, second, first_axes) {
        return Some((first_axes.clone(), first.to_vec(), second));
    }
    let first = by_rows(first_axes, first, second_axes)?;
    Some((second_axes.clone(), first, second.to_vec()))
}

/// One body after the other, without loads of what is known and without computing anything twice.
pub(super) fn forwarded(first: Vec<Stmt>, second: Vec<Stmt>) -> Option<Vec<Stmt>> {
    let mut known: FastMap<(Buf, Index), Operand> = FastMap::default();
    let mut body: Vec<Stmt> = Vec::with_capacity(first.len() + second.len());
    let mut instead = Instead::default();
    for stmt in first.iter().chain(&second) {
        let stmt = instead.stmt(stmt)?;
        match &stmt {
            Stmt::Load { to, buf, at } => {
                if let Some(&operand) = known.get(&(*buf, at.clone())) {
                    instead.operands.insert(*to, operand);
                    continue;
                }
                known.insert((*buf, at.clone()), Operand::Reg(*to));
            }
            Stmt::Store { buf, at, from } => {
                // In one round a buffer that is stored to is at one place only.
                known.insert((*buf, at.clone()), *from);
                body.retain(|earlier| {
                    !matches!(earlier, Stmt::Store { buf: other, at: place, .. } if other == buf && place == at)
                });
            }
            Stmt::Move { to, from } => {
                instead.operands.insert(*to, *from);
                continue;
            }
            _ => {
                if let Some(same) = body.iter().find(|other| are_same(other, &stmt)) {
                    let mut same = same.clone();
                    let mut stmt = stmt;
                    if let (Some(known), Some(to)) = (target_mut(&mut same), target_mut(&mut stmt)) {
                        instead.operands.insert(*to, Operand::Reg(*known));
                    }
                    continue;
                }
            }
        }
        body.push(stmt);
    }
    Some(body)
}

/// Whether both compute the same from the same.
fn are_same(a: &Stmt, b: &Stmt) -> bool {
    if core::mem::discriminant(a) != core::mem::discriminant(b)
        || matches!(a, Stmt::Load { .. } | Stmt::Store { .. })
    {
        return false;
    }
    let (mut a, mut b) = (a.clone(), b.clone());
    for stmt in [&mut a, &mut b] {
        if let Some(to) = target_mut(stmt) {
            *to = Reg(u32::MAX);
        }
    }
    a == b
}
