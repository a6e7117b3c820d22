//! Numbers are checked only where no later check would see them.
//!
//! A number that is not finite makes others that are not: sums, differences, products, quotients of it. If
//! one of those is looked at afterwards in any case, the number itself need not be. So in a chain of sums and
//! products only the last number is looked at, and of what a loop carries, what it ends with.
//!
//! Going backwards over the statements, a register is *seen* if the run is sure to look, from here on, at
//! what it holds or at something that is not finite if that is not. Of a `for` a carried register is seen if
//! it is after the loop and each round makes something that is seen of it. A `while` may go on for a long
//! time with numbers that are none, and a sweep goes through its rounds in an order of its own: there every
//! round looks.

use palinode_core::rules::Row;

use crate::fast::FastSet;

use super::super::form::{LoopForm, Operand, Reg, Stmt};
use super::touch::Touch;

type Seen = FastSet<Reg>;

pub(super) fn run(form: &mut LoopForm) {
    let mut seen = Seen::default();
    block(&mut form.body, &mut seen, true);
}

/// What is seen before the statements, from what is seen after them; if `removes`, checks that are not needed
/// are removed.
fn block(stmts: &mut Vec<Stmt>, seen: &mut Seen, removes: bool) {
    let mut kept = Vec::with_capacity(stmts.len());
    for mut stmt in core::mem::take(stmts).into_iter().rev() {
        let is_needed = one(&mut stmt, seen, removes);
        if is_needed || !removes {
            kept.push(stmt);
        }
    }
    kept.reverse();
    *stmts = kept;
}

/// The same for a statement; returns whether it is needed.
fn one(stmt: &mut Stmt, seen: &mut Seen, removes: bool) -> bool {
    match stmt {
        Stmt::Finite { a: Operand::Reg(reg) } => return seen.insert(*reg),
        Stmt::Finite { a: Operand::Real(value) } => return !value.is_finite(),
        Stmt::Move { to, from } => {
            if seen.remove(to) {
                see(*from, seen);
            }
        }
        Stmt::Round32 { to, a } => {
            if seen.remove(to) {
                see(*a, seen);
            }
        }
        Stmt::Map { rule, to, args } => {
            if seen.remove(to) {
                for &arg in args.iter().take(carried_on(rule.row)) {
                    see(arg, seen);
                }
            }
        }
        Stmt::For { counter, body, .. } => {
            seen.remove(counter);
            // The largest set of what is seen at the head of every round, and after the last one: assumptions
            // are dropped until all hold.
            let mut head = seen.clone();
            loop {
                let mut before = head.clone();
                block(body, &mut before, false);
                before.retain(|reg| head.contains(reg));
                if before.len() == head.len() {
                    break;
                }
                head = before;
            }
            let mut inside = head.clone();
            block(body, &mut inside, removes);
            *seen = head;
        }
        Stmt::Each { axes, body } => {
            // It has a round, and what it sets is not read after it.
            block(body, seen, removes);
            for axis in axes {
                seen.remove(&axis.0);
            }
        }
        Stmt::If { holds: _, then, other } => {
            let mut branches = [seen.clone(), seen.clone()];
            block(then, &mut branches[0], removes);
            block(other, &mut branches[1], removes);
            let [mut first, second] = branches;
            first.retain(|reg| second.contains(reg));
            *seen = first;
        }
        Stmt::While { .. } | Stmt::Sweep { .. } => {
            for inner in stmt.blocks_mut() {
                block(inner, &mut Seen::default(), removes);
            }
            // Only what the loop does not set is seen by what comes after it.
            let touch = Touch::of(stmt);
            seen.retain(|reg| !touch.sets.contains(reg));
        }
        other => Touch::of(other).sets.iter().for_each(|reg| {
            seen.remove(reg);
        }),
    }
    true
}

fn see(operand: Operand, seen: &mut Seen) {
    if let Operand::Reg(reg) = operand {
        seen.insert(reg);
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
