//! Outer products that every round of a loop adds to a matrix are added after the loop, as one product.
//!
//! The reverse of a product of a matrix and a vector in a loop adds an outer product to the matrix's
//! cotangent in every round: it loads and stores the whole matrix for one multiply-add per entry. Here the
//! rounds only write their two vectors down, one after another, and after the loop the matrix of all first
//! vectors is multiplied with that of all second ones. As a product goes on from what is in its result, and
//! adds in the order of the rounds, no bit changes.
//!
//! It is done where the number of rounds is known, nothing else in the loop touches the matrix, and the
//! vectors of a round are much shorter than the matrix is large. What is written down takes memory: at most
//! [`MOST`].

use super::super::form::{Buf, Buffer, Index, Kind, LoopForm, Matrix, Operand, Place, Reg, Role, Stmt};
use super::rewrite::fresh;
use super::touch::Touch;

/// A matrix is worth it if it has more than so many times as many entries as the vectors of a round.
const WORTH: usize = 4;

/// At most so many numbers are written down: 16 MiB.
const MOST: usize = 1 << 21;

pub(super) fn run(form: &mut LoopForm) {
    let LoopForm { body, registers, buffers, .. } = form;
    block(body, registers, buffers);
}

fn block(stmts: &mut Vec<Stmt>, registers: &mut Vec<Kind>, buffers: &mut Vec<Buffer>) {
    let mut at = 0;
    while at < stmts.len() {
        if !matches!(stmts[at], Stmt::Each { .. }) {
            stmts[at].blocks_mut().into_iter().for_each(|inner| block(inner, registers, buffers));
        }
        if let Stmt::For { counter, rounds: Operand::Int(rounds), descending, body, .. } = &mut stmts[at]
            && let Ok(rounds) = usize::try_from(*rounds)
        {
            let of = Loop { counter: *counter, rounds, descending: *descending };
            let after = of.deferred(body, registers, buffers);
            let next = at + 1;
            at += after.len();
            stmts.splice(next..next, after);
        }
        at += 1;
    }
}

struct Loop {
    counter: Reg,
    rounds: usize,
    descending: bool,
}

impl Loop {
    /// Takes products out of the body; returns what is to be done after the loop.
    fn deferred(
        &self,
        body: &mut Vec<Stmt>,
        registers: &mut Vec<Kind>,
        buffers: &mut Vec<Buffer>,
    ) -> Vec<Stmt> {
        let mut after = Vec::new();
        let mut at = 0;
        while at < body.len() {
            let Some((stmts, product)) = self.written_down(body, at, registers, buffers) else {
                at += 1;
                continue;
            };
            let Stmt::Product { to, .. } = &product else { unreachable!("a product stays one") };
            // What every round checks is checked once.
            let looks = |stmt: &Stmt| matches!(stmt, Stmt::AllFinite { place } if place == to);
            let look = body.iter().find(|stmt| looks(stmt)).cloned();
            let count = stmts.len();
            body.splice(at..=at, stmts);
            body.retain(|stmt| !looks(stmt));
            at += count;
            after.push(product);
            after.extend(look);
        }
        after
    }

    /// Instead of the product at a place of the body: what writes its factors down, and the product of all.
    fn written_down(
        &self,
        body: &[Stmt],
        at: usize,
        registers: &mut Vec<Kind>,
        buffers: &mut Vec<Buffer>,
    ) -> Option<(Vec<Stmt>, Stmt)> {
        let Stmt::Product { strong, a, b, to, adds: true } = &body[at] else { return None };
        let ([m, inner], [_, n]) = (a.sizes, b.sizes);
        let all = self.rounds.checked_mul(inner)?;
        let is_worth = self.rounds > 1 && m.checked_mul(n)? > WORTH * (m + n) * inner;
        if !is_worth || all.checked_mul(m + n)? > MOST || !self.is_alone(body, at, to) {
            return None;
        }
        let (columns, first) = self.log(a, 0, registers, buffers)?;
        let (rows, second) = self.log(b, 1, registers, buffers)?;
        let zero = Index::constant(0);
        let a = Matrix { buf: columns, at: zero.clone(), sizes: [m, all], steps: [1, m] };
        let b = Matrix { buf: rows, at: zero, sizes: [all, n], steps: [n, 1] };
        let product = Stmt::Product { strong: *strong, a, b, to: to.clone(), adds: true };
        Some((vec![first, second], product))
    }

    /// Whether nothing else in the body touches the matrix, and it is the same one in every round.
    fn is_alone(&self, body: &[Stmt], product: usize, to: &Place) -> bool {
        let is_other = |at: usize, stmt: &Stmt| {
            let is_look = matches!(stmt, Stmt::AllFinite { place } if place == to);
            at != product && !is_look
        };
        let touches = |touch: &Touch| touch.reads.contains(&to.buf) || touch.writes.contains(&to.buf);
        to.at.known().is_some()
            && body.iter().enumerate().all(|(at, stmt)| !is_other(at, stmt) || !touches(&Touch::of(stmt)))
    }

    /// A buffer for the factor of every round, vector after vector, and the statement that writes one down.
    /// `axis` is the one along which a vector lies: 0 in a left factor, whose vectors are columns, 1 in a
    /// right one, whose vectors are rows.
    fn log(
        &self,
        factor: &Matrix,
        axis: usize,
        registers: &mut Vec<Kind>,
        buffers: &mut Vec<Buffer>,
    ) -> Option<(Buf, Stmt)> {
        let (length, count) = (factor.sizes[axis], factor.sizes[1 - axis]);
        let (step, over) = (factor.steps[axis], factor.steps[1 - axis]);
        let elements = self.rounds.checked_mul(length)?.checked_mul(count)?;
        let buf = Buf(u32::try_from(buffers.len()).ok()?);
        buffers.push(Buffer { kind: Kind::Real, length: elements as u64, role: Role::Workspace, name: None });
        let round = match self.descending {
            true => Index::constant(self.rounds as i64 - 1).plus(&Index::reg(self.counter), -1)?,
            false => Index::reg(self.counter),
        };
        let mut axes = Vec::new();
        let (mut from, mut to) = (factor.at.clone(), round.times((length * count) as i64)?);
        for (n, step, place) in [(count, over, length), (length, step, 1)] {
            if n > 1 {
                let counter = fresh(Kind::Int, registers);
                axes.push((counter, 0, n as i64));
                from = from.plus(&Index::reg(counter), step as i64)?;
                to = to.plus(&Index::reg(counter), place as i64)?;
            }
        }
        let x = fresh(Kind::Real, registers);
        let body = vec![
            Stmt::Load { to: x, buf: factor.buf, at: from },
            Stmt::Store { buf, at: to, from: Operand::Reg(x) },
        ];
        Some((buf, Stmt::Each { axes, body }))
    }
}
