//! Results are stored over an operand that nothing needs afterwards.
//!
//! A round that makes a new version of an array stores it to a second buffer and exchanges the two at its
//! end. Where the loop that makes it reads the old version at the same place only, and nothing reads that
//! afterwards, the new version is stored over the old one, and nothing is exchanged: half the memory goes
//! through the cache.

use super::super::form::{Buf, LoopForm, Stmt};
use super::touch::Touch;

pub(super) fn run(form: &mut LoopForm) {
    let mut mentions = vec![0_u32; form.buffers.len()];
    count(&form.body, &mut mentions);
    for port in form.outputs.iter().chain(&form.inputs) {
        if let super::super::form::Port::Array(place) = port {
            mentions[place.buf.index()] += 1;
        }
    }
    block(&mut form.body, &mentions);
}

/// How many statements touch each buffer.
fn count(stmts: &[Stmt], mentions: &mut [u32]) {
    for stmt in stmts {
        let is_each = matches!(stmt, Stmt::Each { .. });
        let touch = if is_each { Touch::of(stmt) } else { Touch::itself(stmt) };
        for buf in touch.reads.union(&touch.writes) {
            mentions[buf.index()] += 1;
        }
        if !is_each {
            stmt.blocks().into_iter().for_each(|block| count(block, mentions));
        }
    }
}

fn block(stmts: &mut Vec<Stmt>, mentions: &[u32]) {
    for stmt in stmts.iter_mut() {
        if !matches!(stmt, Stmt::Each { .. }) {
            stmt.blocks_mut().into_iter().for_each(|inner| block(inner, mentions));
        }
    }
    let swaps: Vec<(usize, Buf, Buf)> = stmts
        .iter()
        .enumerate()
        .filter_map(|(at, stmt)| match stmt {
            Stmt::Swap { a, b } => Some((at, *a, *b)),
            _ => None,
        })
        .collect();
    let mut gone = Vec::new();
    for (at, home, fresh) in swaps {
        if let Some(maker) = goes_over(stmts, at, home, fresh, mentions) {
            load_first(&mut stmts[maker], home, fresh);
            rename(stmts, fresh, home);
            gone.push(at);
        }
    }
    for at in gone.into_iter().rev() {
        stmts.remove(at);
    }
}

/// The loop that makes the version in `fresh` that the statement at `swap` exchanges, if it can be made in
/// `home`.
fn goes_over(stmts: &[Stmt], swap: usize, home: Buf, fresh: Buf, mentions: &[u32]) -> Option<usize> {
    let touches: Vec<Touch> = stmts.iter().map(Touch::of).collect();
    let touched = |at: usize, buf: Buf| touches[at].reads.contains(&buf) || touches[at].writes.contains(&buf);
    // The second buffer is touched in this block only, and by plain statements.
    let own: Vec<usize> = (0..stmts.len()).filter(|&at| touched(at, fresh)).collect();
    if own.len() as u32 != mentions[fresh.index()] || own.last() != Some(&swap) {
        return None;
    }
    let first = own[0];
    // The loop that makes it does nothing else with the old version than read it at the same place, and
    // nobody else does anything with that between them. The exchange is the only one of both.
    let Stmt::Each { body, .. } = &stmts[first] else { return None };
    if touches[first].writes.contains(&home) {
        return None;
    }
    let mut stored = body.iter().filter_map(|stmt| match stmt {
        Stmt::Store { buf, at, .. } if *buf == fresh => Some(at),
        _ => None,
    });
    let place = stored.next()?;
    let is_elsewhere = |stmt: &Stmt| matches!(stmt, Stmt::Load { buf, at, .. } if (*buf == home || *buf == fresh) && at != place);
    // A load of the new buffer before it is stored to would be of the old version.
    let is_before = |stmt: &Stmt| matches!(stmt, Stmt::Load { buf, .. } if *buf == fresh);
    if stored.any(|at| at != place) || body.iter().any(|stmt| is_elsewhere(stmt) || is_before(stmt)) {
        return None;
    }
    let swaps = |at: usize| matches!(stmts[at], Stmt::Swap { .. });
    let is_alone = (first + 1..stmts.len()).all(|at| at == swap || !touched(at, home))
        && own[1..].iter().all(|&at| at == swap || !swaps(at));
    is_alone.then_some(first)
}

/// What the loop loads of the old version it loads before it stores the new one, which is at the same place.
fn load_first(maker: &mut Stmt, home: Buf, fresh: Buf) {
    let Stmt::Each { body, .. } = maker else { unreachable!("a loop makes it") };
    let stored = body.iter().position(|stmt| matches!(stmt, Stmt::Store { buf, .. } if *buf == fresh));
    let mut to = stored.expect("it is stored to");
    for at in to + 1..body.len() {
        if matches!(&body[at], Stmt::Load { buf, .. } if *buf == home) {
            let load = body.remove(at);
            body.insert(to, load);
            to += 1;
        }
    }
}

/// One buffer in the place of another.
fn rename(stmts: &mut [Stmt], from: Buf, to: Buf) {
    for stmt in stmts {
        stmt.for_each_buffer(&mut |buf| {
            if *buf == from {
                *buf = to;
            }
        });
        stmt.blocks_mut().into_iter().for_each(|block| rename(block, from, to));
    }
}
