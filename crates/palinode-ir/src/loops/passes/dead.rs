//! What nothing reads is not stored, and what is computed for nothing is not computed.
//!
//! A buffer that is never read, and neither given to anyone nor exchanged with one that is, needs no stores.
//! In a loop over elements and in the body, registers that nobody reads are not set, unless setting them may
//! stop the run: what a list names may be outside of its array, whoever wants it.

use crate::fast::FastSet;
use crate::op::IntOp;

use super::super::form::{Buf, Index, LoopForm, Port, Reg, Role, Stmt};
use super::super::verify::{Unproven, verify};
use super::rewrite::target;
use super::touch::Touch;

pub(super) fn run(form: &mut LoopForm) {
    let may_stop = unproven(form);
    loop {
        let mut reads = vec![false; form.buffers.len()];
        let mut exchanged = Vec::new();
        find_reads(&form.body, &mut reads, &mut exchanged);
        let mut uses = FastSet::default();
        for port in &form.outputs {
            uses.extend(port.registers());
            if let Port::Array(place) = port {
                reads[place.buf.index()] = true;
            }
        }
        // Until every buffer that is exchanged with one that is read counts as read, too.
        while let Some(&(a, b)) = exchanged.iter().find(|&&(a, b)| reads[a] != reads[b]) {
            (reads[a], reads[b]) = (true, true);
        }
        let is_dead = |buf: Buf| form.buffers[buf.index()].role == Role::Workspace && !reads[buf.index()];
        let mut removed = remove_stores(&mut form.body, &is_dead);
        find_uses(&form.body, &mut uses);
        removed |= remove_unused(&mut form.body, &uses, &may_stop);
        if !removed {
            return;
        }
    }
}

/// Buffers that something reads, and those that are exchanged with each other.
fn find_reads(stmts: &[Stmt], reads: &mut [bool], exchanged: &mut Vec<(usize, usize)>) {
    for stmt in stmts {
        match stmt {
            Stmt::Swap { a, b } => exchanged.push((a.index(), b.index())),
            _ => Touch::itself(stmt).reads.iter().for_each(|buf| reads[buf.index()] = true),
        }
        stmt.blocks().into_iter().for_each(|block| find_reads(block, reads, exchanged));
    }
}

/// What loads are of of which nobody knows that they are inside.
fn unproven(form: &LoopForm) -> FastSet<(Buf, Index)> {
    fn find(stmts: &[Stmt], unproven: &Unproven, found: &mut FastSet<(Buf, Index)>) {
        for stmt in stmts {
            if let Stmt::Load { buf, at, .. } = stmt
                && unproven.contains(stmt)
            {
                found.insert((*buf, at.clone()));
            }
            stmt.blocks().into_iter().for_each(|block| find(block, unproven, found));
        }
    }
    let mut found = FastSet::default();
    if let Ok(unproven) = verify(form)
        && !unproven.is_empty()
    {
        find(&form.body, &unproven, &mut found);
    }
    found
}

fn find_uses(stmts: &[Stmt], uses: &mut FastSet<Reg>) {
    for stmt in stmts {
        uses.extend(Touch::of(stmt).uses);
    }
}

/// Removes stores to dead buffers, and their exchanges; whether there were any.
fn remove_stores(stmts: &mut Vec<Stmt>, is_dead: &dyn Fn(Buf) -> bool) -> bool {
    let before = stmts.len();
    stmts.retain(|stmt| match stmt {
        Stmt::Store { buf, .. } | Stmt::Swap { a: buf, .. } => !is_dead(*buf),
        _ => true,
    });
    let mut removed = stmts.len() != before;
    for stmt in stmts.iter_mut() {
        for block in stmt.blocks_mut() {
            removed |= remove_stores(block, is_dead);
        }
    }
    removed
}

/// Whether setting a register does nothing else.
fn is_pure(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Int { op: IntOp::Min | IntOp::Max, .. } => true,
        // They may overflow, or divide by zero.
        Stmt::Int { .. } | Stmt::Truncate { .. } => false,
        // The hook for decisions may see it.
        Stmt::Compare { .. } => false,
        Stmt::Move { .. } | Stmt::Map { .. } | Stmt::Round32 { .. } | Stmt::Index { .. } => true,
        Stmt::And { .. } | Stmt::Or { .. } | Stmt::Not { .. } | Stmt::Select { .. } => true,
        Stmt::Convert { .. } => true,
        // It may be outside of its buffer.
        Stmt::Load { .. } => false,
        _ => false,
    }
}

fn remove_unused(stmts: &mut Vec<Stmt>, uses: &FastSet<Reg>, may_stop: &FastSet<(Buf, Index)>) -> bool {
    let before = stmts.len();
    stmts.retain(|stmt| {
        let is_empty = matches!(stmt, Stmt::Each { body, .. } if body.is_empty());
        let is_unused = is_pure(stmt) && target(stmt).is_some_and(|to| !uses.contains(&to));
        !is_empty && !is_unused
    });
    let mut removed = stmts.len() != before;
    for stmt in stmts.iter_mut() {
        let is_each = matches!(stmt, Stmt::Each { .. });
        for block in stmt.blocks_mut() {
            if is_each {
                let count = block.len();
                block.retain(|stmt| match stmt {
                    Stmt::Load { to, buf, at } => uses.contains(to) || may_stop.contains(&(*buf, at.clone())),
                    _ => true,
                });
                removed |= block.len() != count;
            }
            removed |= remove_unused(block, uses, may_stop);
        }
    }
    removed
}
