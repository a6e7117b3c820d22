//! Numbers are checked only where no later check would see them.
//!
//! A number that is not finite makes others that are not: sums, differences, products, quotients of it. If
//! one of those is looked at afterwards in any case, the number itself need not be. So in a chain of sums and
//! products only the last number is looked at, and of what a loop carries, what it ends with.
//!
//! Going backwards over the statements, a register or an element of a buffer is *seen* if the run is sure to
//! look, from here on, at what it holds or at something that is not finite if that is not (`regions` says
//! what is known of elements). Of a `for` what is carried is seen if it is after the loop and each round
//! makes something that is seen of it. A `while` may go on for a long time with numbers that are none, and a
//! sweep goes through its rounds in an order of its own: there every round looks.
//!
//! An array that is given back is looked at as a whole at the end, if then rounds of loops need not look.

mod regions;

use palinode_core::rules::Row;

use crate::fast::FastSet;
use crate::op::Reduction;

use super::super::form::{Buf, Buffer, Kind, LoopForm, Operand, Place, Port, Reg, Role, Stmt, Taken};
use super::touch::Touch;
use regions::Places;
pub(super) use regions::Region;

/// For so many arrays that are given back it is tried to look at them at the end.
const MOST_OUTPUTS: usize = 8;

/// What is seen.
#[derive(Clone, Default)]
struct Seen {
    regs: FastSet<Reg>,
    places: Places,
}

pub(super) fn run(form: &mut LoopForm) {
    let mut at_end: Vec<Buf> = Vec::new();
    let mut best = seeing(form, &at_end);
    for buf in outputs(form) {
        let looks = looks_in_loops(&best, false);
        if looks == 0 {
            break;
        }
        at_end.push(buf);
        let body = seeing(form, &at_end);
        if looks_in_loops(&body, false) < looks {
            best = body;
        } else {
            at_end.pop();
        }
    }
    let whole = |buf: Buf| Place::first(buf, vec![form.buffers[buf.index()].length as usize]);
    best.extend(at_end.into_iter().map(|buf| Stmt::AllFinite { place: whole(buf) }));
    form.body = best;
}

/// Buffers all of which is given back.
fn outputs(form: &LoopForm) -> Vec<Buf> {
    let mut found = Vec::new();
    for port in &form.outputs {
        if let Port::Array(place) = port
            && let buffer = &form.buffers[place.buf.index()]
            && buffer.role == Role::Workspace
            && buffer.kind == Kind::Real
            && place.elements() as u64 == buffer.length
            && !found.contains(&place.buf)
            && found.len() < MOST_OUTPUTS
        {
            found.push(place.buf);
        }
    }
    found
}

/// The body without checks that are not needed if these buffers are looked at in the end.
fn seeing(form: &LoopForm, at_end: &[Buf]) -> Vec<Stmt> {
    let mut seen = Seen::default();
    at_end.iter().for_each(|&buf| seen.places.see_all(buf));
    let mut body = form.body.clone();
    Backwards { buffers: &form.buffers, counters: Vec::new() }.block(&mut body, &mut seen, true);
    body
}

/// How many statements look at numbers in rounds of loops.
fn looks_in_loops(stmts: &[Stmt], inside: bool) -> usize {
    let one = |stmt: &Stmt| match stmt {
        Stmt::Finite { .. } | Stmt::AllFinite { .. } => usize::from(inside),
        Stmt::For { body, .. } => looks_in_loops(body, true),
        _ => stmt.blocks().into_iter().map(|block| looks_in_loops(block, inside)).sum(),
    };
    stmts.iter().map(one).sum()
}

struct Backwards<'f> {
    buffers: &'f [Buffer],
    /// Those of the loop over elements that is gone through.
    counters: Vec<(Reg, i64, i64)>,
}

impl Backwards<'_> {
    /// What is seen before the statements, from what is seen after them; if `removes`, checks that are not
    /// needed are removed.
    fn block(&mut self, stmts: &mut Vec<Stmt>, seen: &mut Seen, removes: bool) {
        let mut kept = Vec::with_capacity(stmts.len());
        for mut stmt in core::mem::take(stmts).into_iter().rev() {
            let is_needed = self.one(&mut stmt, seen, removes);
            if is_needed || !removes {
                kept.push(stmt);
            }
        }
        kept.reverse();
        *stmts = kept;
    }

    /// The same for a statement; returns whether it is needed.
    fn one(&mut self, stmt: &mut Stmt, seen: &mut Seen, removes: bool) -> bool {
        match stmt {
            Stmt::Finite { a: Operand::Reg(reg) } => return seen.regs.insert(*reg),
            Stmt::Finite { a: Operand::Real(value) } => return !value.is_finite(),
            Stmt::AllFinite { place } => {
                let region = Region::of_place(place);
                let is_needed = !seen.places.are_seen(place.buf, region.as_ref());
                seen.places.see(self.buffers, place.buf, region);
                return is_needed;
            }
            Stmt::Move { to, from } => {
                if seen.regs.remove(to) {
                    see(*from, seen);
                }
            }
            Stmt::Round32 { to, a } => {
                if seen.regs.remove(to) {
                    see(*a, seen);
                }
            }
            Stmt::Map { rule, to, args } => {
                if seen.regs.remove(to) {
                    for &arg in args.iter().take(carried_on(rule.row)) {
                        see(arg, seen);
                    }
                }
            }
            Stmt::Load { to, buf, at } => {
                if seen.regs.remove(to) {
                    seen.places.see(self.buffers, *buf, Region::of(at, &self.counters));
                }
            }
            Stmt::Store { buf, at, from } => {
                let region = Region::of(at, &self.counters);
                if seen.places.are_seen(*buf, region.as_ref()) {
                    see(*from, seen);
                }
                seen.places.hide(*buf, region);
            }
            Stmt::Reduce { kind, from, to } => {
                if self.taken(to, seen) && *kind == Reduction::Sum {
                    seen.places.see(self.buffers, from.buf, Region::of_place(from));
                }
            }
            Stmt::Product { strong, a, b, to, adds } => {
                let region = Region::of_place(to);
                let is_seen = seen.places.are_seen(to.buf, region.as_ref());
                if !*adds {
                    seen.places.hide(to.buf, region);
                }
                // Of infinity and zero the product is NaN, but not of a strong zero.
                if is_seen && !*strong {
                    seen.places.see(self.buffers, a.buf, Region::of_matrix(a));
                    seen.places.see(self.buffers, b.buf, Region::of_matrix(b));
                }
            }
            Stmt::Dots { strong, a, x, to } => {
                if self.taken(to, seen) && !*strong {
                    seen.places.see(self.buffers, a.buf, Region::of_matrix(a));
                    seen.places.see(self.buffers, x.buf, Region::of_place(x));
                }
            }
            // A function may make numbers of infinities.
            Stmt::Function { place, .. } => seen.places.hide(place.buf, Region::of_place(place)),
            Stmt::Swap { a, b } => seen.places.swap(*a, *b),
            Stmt::For { counter, body, .. } => {
                seen.regs.remove(counter);
                // The largest set of what is seen at the head of every round, and after the last one:
                // assumptions are dropped until all hold.
                let mut head = seen.clone();
                loop {
                    let mut before = head.clone();
                    self.block(body, &mut before, false);
                    before.regs.retain(|reg| head.regs.contains(reg));
                    before.places.meet(&head.places);
                    if before.regs.len() == head.regs.len() && before.places == head.places {
                        break;
                    }
                    head = before;
                }
                let mut inside = head.clone();
                self.block(body, &mut inside, removes);
                *seen = head;
            }
            Stmt::Each { axes, body } => {
                // It has a round, and what it sets is not read after it.
                self.counters.clone_from(axes);
                self.block(body, seen, removes);
                self.counters.clear();
                for axis in axes {
                    seen.regs.remove(&axis.0);
                }
            }
            Stmt::If { holds: _, then, other } => {
                let mut branches = [seen.clone(), seen.clone()];
                self.block(then, &mut branches[0], removes);
                self.block(other, &mut branches[1], removes);
                let [mut first, second] = branches;
                first.regs.retain(|reg| second.regs.contains(reg));
                first.places.meet(&second.places);
                *seen = first;
            }
            Stmt::While { .. } | Stmt::Sweep { .. } => {
                for inner in stmt.blocks_mut() {
                    self.block(inner, &mut Seen::default(), removes);
                }
                // Only what the loop does not set is seen by what comes after it.
                let touch = Touch::of(stmt);
                seen.regs.retain(|reg| !touch.sets.contains(reg));
                seen.places.retain(|buf| !touch.writes.contains(&buf));
            }
            other => {
                let touch = Touch::of(other);
                touch.sets.iter().for_each(|reg| {
                    seen.regs.remove(reg);
                });
                seen.places.retain(|buf| !touch.writes.contains(&buf));
            }
        }
        true
    }

    /// What takes a result is not seen before it; returns whether it is afterwards.
    fn taken(&self, to: &Taken, seen: &mut Seen) -> bool {
        match to {
            Taken::Scalar(reg) => seen.regs.remove(reg),
            Taken::Array(place) => {
                let region = Region::of_place(place);
                let is_seen = seen.places.are_seen(place.buf, region.as_ref());
                seen.places.hide(place.buf, region);
                is_seen
            }
        }
    }
}

fn see(operand: Operand, seen: &mut Seen) {
    if let Operand::Reg(reg) = operand {
        seen.regs.insert(reg);
    }
}

/// How many of the first arguments of a row make its result infinite or NaN whenever they are.
fn carried_on(row: Row) -> usize {
    match row {
        // Of infinity and zero the product is NaN.
        Row::Add | Row::Subtract | Row::Multiply => 2,
        Row::Divide | Row::Negate | Row::Abs | Row::Sqrt => 1,
        // Every other row may turn infinity or NaN into a number, so nothing is said of it.
        _ => 0,
    }
}
