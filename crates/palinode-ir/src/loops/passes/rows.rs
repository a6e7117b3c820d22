//! What a round makes and then copies into its row of a log is made in the log.
//!
//! Input: loops whose rounds make an array in a buffer that nobody else needs, and copy all of it to a place
//! of another buffer. Output: the same without the copy: whatever touched the first buffer touches the place.

use super::super::form::{Buf, Index, LoopForm, Operand, Place, Port, Reg, Role, Stmt, Taken};
use super::finite::Region;
use super::touch::Touch;

pub(super) fn run(form: &mut LoopForm) {
    let mut home = Homes { mentions: vec![0; form.buffers.len()], form };
    let LoopForm { body, inputs, outputs, .. } = &*home.form;
    count(body, &mut home.mentions);
    for port in outputs.iter().chain(inputs) {
        if let Port::Array(place) = port {
            home.mentions[place.buf.index()] += 1;
        }
    }
    let mut body = core::mem::take(&mut home.form.body);
    home.blocks(&mut body);
    home.form.body = body;
}

/// How many statements mention each buffer.
fn count(stmts: &[Stmt], mentions: &mut [u32]) {
    for stmt in stmts {
        let touch = Touch::itself(stmt);
        touch.reads.union(&touch.writes).for_each(|buf| mentions[buf.index()] += 1);
        stmt.blocks().into_iter().for_each(|block| count(block, mentions));
    }
}

struct Homes<'f> {
    form: &'f mut LoopForm,
    mentions: Vec<u32>,
}

/// A buffer that is copied: to which one, and how far its elements are moved there.
struct Copy {
    from: Buf,
    to: Buf,
    by: Index,
}

impl Homes<'_> {
    fn blocks(&mut self, stmts: &mut [Stmt]) {
        for stmt in stmts {
            if let Stmt::For { body, .. } = stmt {
                self.block(body);
            }
            if !matches!(stmt, Stmt::Each { .. }) {
                stmt.blocks_mut().into_iter().for_each(|block| self.blocks(block));
            }
        }
    }

    fn block(&mut self, stmts: &mut [Stmt]) {
        for at in 0..stmts.len() {
            while let Some(copy) = self.copy(stmts, at) {
                stmts.iter_mut().for_each(|stmt| moved(stmt, &copy));
                let Stmt::Each { body, .. } = &mut stmts[at] else { unreachable!("a loop copies") };
                remove_copies(body, copy.to);
                self.mentions[copy.to.index()] += self.mentions[copy.from.index()];
                self.mentions[copy.from.index()] = 0;
            }
        }
    }

    /// A copy that a statement makes, if what it copies can be made where it goes.
    fn copy(&self, stmts: &[Stmt], at: usize) -> Option<Copy> {
        let Stmt::Each { axes, body } = &stmts[at] else { return None };
        let sets = Touch::join_of(stmts).sets;
        body.iter().find_map(|stmt| {
            let Stmt::Store { buf: to, at: place, from: Operand::Reg(reg) } = stmt else { return None };
            let (from, index) = body.iter().find_map(|stmt| match stmt {
                Stmt::Load { to, buf, at } if to == reg => Some((*buf, at)),
                _ => None,
            })?;
            let by = place.plus(index, -1)?;
            let [source, target] = [from, *to].map(|buf| &self.form.buffers[buf.index()]);
            let fits = source.role == Role::Workspace
                && target.role == Role::Workspace
                && source.kind == target.kind
                && from != *to
                && by.terms.iter().all(|term| !sets.contains(&term.0))
                && self.is_all(index, axes, from);
            let copy = Copy { from, to: *to, by };
            (fits && self.is_free(stmts, at, &copy)).then_some(copy)
        })
    }

    fn is_all(&self, index: &Index, axes: &[(Reg, i64, i64)], buf: Buf) -> bool {
        Region::of(index, axes).is_some_and(|region| region.is_all_of(self.form.buffers[buf.index()].length))
    }

    /// Whether nothing but these statements touches the first buffer, the first one that does makes all of it
    /// anew, none changes it once it is copied, and nothing but the copy touches the other buffer here.
    fn is_free(&self, stmts: &[Stmt], at: usize, copy: &Copy) -> bool {
        let mut inside = vec![0; self.form.buffers.len()];
        count(stmts, &mut inside);
        let touches = |stmt: &Stmt, buf: Buf| {
            let touch = Touch::of(stmt);
            touch.reads.contains(&buf) || touch.writes.contains(&buf)
        };
        let is_exchanged = |buf: Buf| stmts.iter().any(|stmt| exchanges(stmt, buf));
        let Some(first) = stmts.iter().position(|stmt| touches(stmt, copy.from)) else { return false };
        inside[copy.from.index()] == self.mentions[copy.from.index()]
            && inside[copy.to.index()] == 1
            && !is_exchanged(copy.from)
            && first < at
            && stmts[at..].iter().all(|stmt| !Touch::of(stmt).writes.contains(&copy.from))
            && !Touch::of(&stmts[first]).reads.contains(&copy.from)
            && self.makes_all(&stmts[first], copy.from)
    }

    /// Whether a statement sets every element of a buffer.
    fn makes_all(&self, stmt: &Stmt, buf: Buf) -> bool {
        let length = self.form.buffers[buf.index()].length;
        let is_all = |place: &Place| {
            place.buf == buf && place.at.known() == Some(0) && place.elements() as u64 == length
        };
        match stmt {
            Stmt::Each { axes, body } => body.iter().any(|stmt| match stmt {
                Stmt::Store { buf: stored, at, .. } => *stored == buf && self.is_all(at, axes, buf),
                _ => false,
            }),
            Stmt::Product { to, adds: false, .. } => is_all(to),
            Stmt::Reduce { to, .. } | Stmt::Dots { to, .. } => {
                matches!(to, Taken::Array(place) if is_all(place))
            }
            _ => false,
        }
    }
}

/// Whether all of a buffer is meant somewhere, not elements of it.
fn exchanges(stmt: &Stmt, buf: Buf) -> bool {
    let is_meant = match stmt {
        Stmt::Swap { a, b } => *a == buf || *b == buf,
        Stmt::Sweep { .. } => {
            let touch = Touch::itself(stmt);
            touch.reads.contains(&buf) || touch.writes.contains(&buf)
        }
        _ => false,
    };
    is_meant || stmt.blocks().into_iter().flatten().any(|stmt| exchanges(stmt, buf))
}

/// The statement with the place of the copy instead of what is copied.
fn moved(stmt: &mut Stmt, copy: &Copy) {
    stmt.for_each_place(&mut |buf, at| {
        if *buf == copy.from {
            *buf = copy.to;
            *at = at.plus(&copy.by, 1).expect("the copy goes there");
        }
    });
    stmt.blocks_mut().into_iter().flatten().for_each(|stmt| moved(stmt, copy));
}

/// Removes what stores to where it was loaded from.
fn remove_copies(body: &mut Vec<Stmt>, buf: Buf) {
    let loads: Vec<(Reg, Index)> = body
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Load { to, buf: from, at } if *from == buf => Some((*to, at.clone())),
            _ => None,
        })
        .collect();
    body.retain(|stmt| match stmt {
        Stmt::Store { buf: to, at, from: Operand::Reg(reg) } => {
            *to != buf || !loads.iter().any(|load| load.0 == *reg && load.1 == *at)
        }
        _ => true,
    });
}
