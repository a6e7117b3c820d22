//! Loops over elements: that they hold no control, and that their rounds may run in any order.

use std::collections::HashSet;

use super::super::form::{Index, Reg, Stmt};
use super::sets::sets;

/// Whether a statement is not control, and may stand in an `Each`.
pub(super) fn is_plain(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Move { .. } | Stmt::Map { .. } | Stmt::Round32 { .. } | Stmt::Int { .. } => true,
        Stmt::Index { .. } | Stmt::Compare { .. } | Stmt::And { .. } | Stmt::Or { .. } => true,
        Stmt::Not { .. } | Stmt::Select { .. } | Stmt::Truncate { .. } | Stmt::Convert { .. } => true,
        Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Finite { .. } => true,
        Stmt::AllFinite { .. } | Stmt::Reduce { .. } | Stmt::Product { .. } | Stmt::Dots { .. } => false,
        Stmt::Within { .. } | Stmt::Holds { .. } | Stmt::Stop | Stmt::Step => false,
        Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. } | Stmt::Each { .. } => false,
        Stmt::Sweep { .. } => false,
        Stmt::Function { .. } | Stmt::Kernel { .. } | Stmt::Swap { .. } | Stmt::Reserve { .. } => false,
    }
}

/// Whether the rounds of an `Each` may run in any order: what is stored to is loaded at the same index only,
/// no two rounds store to one place, and no register goes from round to round or out of the loop.
pub(super) fn independent(axes: &[(Reg, i64, i64)], body: &[Stmt], known: &[bool]) -> Result<(), String> {
    let (mut own, mut twice) = (HashSet::new(), None);
    for stmt in body {
        sets(stmt, &mut |reg| {
            if !own.insert(reg) {
                twice.get_or_insert(reg);
            }
        });
    }
    // Passes take what stands in a register for one value.
    if let Some(reg) = twice {
        return Err(format!("{reg} is set twice in a round"));
    }
    // A counter that the body sets is found there.
    let is_known =
        |reg: &Reg| known.get(reg.index()) == Some(&true) && axes.iter().all(|axis| axis.0 != *reg);
    if let Some(reg) = own.iter().copied().filter(is_known).min() {
        return Err(format!("{reg} depends on other rounds"));
    }
    for stmt in body {
        let Stmt::Store { buf, at, .. } = stmt else { continue };
        let other = body.iter().any(|stmt| match stmt {
            Stmt::Load { buf: from, at: place, .. } | Stmt::Store { buf: from, at: place, .. } => {
                from == buf && place != at
            }
            _ => false,
        });
        let moves = at.terms.iter().any(|term| own.contains(&term.0));
        if other || moves || !injective(axes, at) {
            return Err(format!("{buf}[{at}] depends on other rounds"));
        }
    }
    Ok(())
}

/// Whether different rounds have different indices: sorted by size, each factor is larger than all that the
/// smaller ones reach.
fn injective(axes: &[(Reg, i64, i64)], at: &Index) -> bool {
    let mut factors: Vec<(u128, u128)> = Vec::new();
    for &(counter, from, to) in axes {
        if to - from == 1 {
            continue;
        }
        match at.terms.iter().find(|term| term.0 == counter) {
            Some(&(_, factor)) => {
                factors.push((
                    u128::from(factor.unsigned_abs()),
                    (i128::from(to) - i128::from(from) - 1) as u128,
                ));
            }
            None => return false,
        }
    }
    factors.sort_unstable();
    let mut reach = 0_u128;
    for (factor, rounds) in factors {
        if factor <= reach {
            return false;
        }
        reach = reach.saturating_add(factor.saturating_mul(rounds));
    }
    true
}
