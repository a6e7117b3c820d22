//! About how much work a run of a loop form is.
//!
//! Input: a loop form, and how many rounds loops have that end by data. Output: about how many statements it
//! executes, elements of kernels included, and how many steps that are. It is for weighing whether machine
//! code pays, and nothing else depends on it.

use super::form::{LoopForm, Operand, Stmt, Taken};

impl LoopForm {
    /// How many statements a run executes, about, if every loop that ends by data has so many rounds; at most
    /// `u64::MAX`.
    pub fn work(&self, rounds: u64) -> u64 {
        block(&self.body, rounds)
    }

    /// How many steps that are, about.
    pub fn steps(&self, rounds: u64) -> u64 {
        steps(&self.body, rounds)
    }

    /// How many statements it has.
    pub fn statements(&self) -> u64 {
        fn count(stmts: &[Stmt]) -> u64 {
            stmts
                .iter()
                .map(|stmt| 1 + stmt.blocks().into_iter().map(|block| count(block)).sum::<u64>())
                .sum()
        }
        count(&self.body)
    }
}

fn block(stmts: &[Stmt], rounds: u64) -> u64 {
    stmts.iter().fold(0, |sum, stmt| sum.saturating_add(one(stmt, rounds)))
}

/// The rounds of a loop.
fn known(of: &Operand, otherwise: u64) -> u64 {
    match of {
        Operand::Int(rounds) => (*rounds).max(0) as u64,
        _ => otherwise,
    }
}

fn steps(stmts: &[Stmt], rounds: u64) -> u64 {
    let one = |stmt: &Stmt| {
        let inside =
            stmt.blocks().into_iter().fold(0, |sum: u64, inner| sum.saturating_add(steps(inner, rounds)));
        match stmt {
            Stmt::For { rounds: of, .. } => known(of, rounds).saturating_mul(inside.saturating_add(1)),
            Stmt::Sweep { rounds: of, turn, .. } => {
                let once = turn.as_ref().map_or(0, |turn| steps(turn, rounds));
                let again = inside.saturating_sub(once).saturating_add(1);
                known(of, rounds).saturating_mul(again).saturating_add(once)
            }
            Stmt::While { .. } => rounds.saturating_mul(inside.saturating_add(1)),
            Stmt::Step => 1,
            _ => inside,
        }
    };
    stmts.iter().fold(0, |sum, stmt| sum.saturating_add(one(stmt)))
}

fn one(stmt: &Stmt, rounds: u64) -> u64 {
    let inside =
        || stmt.blocks().into_iter().fold(1, |sum: u64, inner| sum.saturating_add(block(inner, rounds)));
    let product = |numbers: &[usize]| numbers.iter().fold(1, |all: u64, &n| all.saturating_mul(n as u64));
    match stmt {
        Stmt::For { rounds: of, .. } => inside().saturating_mul(known(of, rounds)),
        Stmt::Sweep { rounds: of, turn, .. } => {
            let once = turn.as_ref().map_or(0, |turn| block(turn, rounds));
            let again = inside().saturating_sub(once);
            again.saturating_mul(known(of, rounds)).saturating_add(once)
        }
        Stmt::While { .. } => inside().saturating_mul(rounds),
        Stmt::If { .. } => inside(),
        Stmt::Each { axes, .. } => {
            let lengths = axes.iter().map(|&(_, from, to)| to.abs_diff(from));
            lengths.fold(inside(), u64::saturating_mul)
        }
        Stmt::Function { place, .. } => 8 * product(&place.shape),
        Stmt::AllFinite { place } | Stmt::Reduce { from: place, .. } => product(&place.shape),
        Stmt::Product { a, b, .. } => product(&[a.sizes[0], a.sizes[1], b.sizes[1]]),
        Stmt::Dots { a, .. } => product(&a.sizes),
        Stmt::Kernel { taken, .. } => {
            let made = taken.iter().map(|taken| match taken {
                Taken::Scalar(_) => 1,
                Taken::Array(place) => product(&place.shape),
            });
            100 + 10 * made.sum::<u64>()
        }
        Stmt::Move { .. }
        | Stmt::Map { .. }
        | Stmt::Round32 { .. }
        | Stmt::Int { .. }
        | Stmt::Index { .. }
        | Stmt::Compare { .. }
        | Stmt::And { .. }
        | Stmt::Or { .. }
        | Stmt::Not { .. }
        | Stmt::Select { .. }
        | Stmt::Truncate { .. }
        | Stmt::Convert { .. }
        | Stmt::Load { .. }
        | Stmt::Store { .. }
        | Stmt::Finite { .. }
        | Stmt::Within { .. }
        | Stmt::Holds { .. }
        | Stmt::Stop
        | Stmt::Swap { .. }
        | Stmt::Reserve { .. }
        | Stmt::Step => 1,
    }
}
