//! Which registers statements set.

use super::super::form::{DEEPEST, Kept, Reg, Stmt, Taken};

/// Calls `f` with every register that a statement sets, but not with those that are set in its blocks. What a
/// sweep restores may be anything that was there before: it counts as set twice.
pub(super) fn sets(stmt: &Stmt, f: &mut dyn FnMut(Reg)) {
    let mut taken = |to: &Taken| {
        if let Taken::Scalar(reg) = to {
            f(*reg);
        }
    };
    match stmt {
        Stmt::Move { to, .. }
        | Stmt::Map { to, .. }
        | Stmt::Round32 { to, .. }
        | Stmt::Int { to, .. }
        | Stmt::Index { to, .. }
        | Stmt::Compare { to, .. }
        | Stmt::And { to, .. }
        | Stmt::Or { to, .. }
        | Stmt::Not { to, .. }
        | Stmt::Select { to, .. }
        | Stmt::Truncate { to, .. }
        | Stmt::Convert { to, .. }
        | Stmt::Load { to, .. } => f(*to),
        Stmt::For { counter, .. } => f(*counter),
        Stmt::Each { axes, .. } => axes.iter().for_each(|axis| f(axis.0)),
        Stmt::Sweep { counter, state, .. } => {
            f(*counter);
            for kept in state {
                if let Kept::Scalar { reg, .. } = kept {
                    f(*reg);
                    f(*reg);
                }
            }
        }
        Stmt::Kernel { taken: all, .. } => all.iter().for_each(taken),
        Stmt::Reduce { to, .. } | Stmt::Dots { to, .. } => taken(to),
        Stmt::Product { .. } | Stmt::AllFinite { .. } => {}
        Stmt::Store { .. } | Stmt::Finite { .. } | Stmt::Within { .. } | Stmt::Holds { .. } => {}
        Stmt::Stop | Stmt::Step | Stmt::While { .. } | Stmt::If { .. } => {}
        Stmt::Function { .. } | Stmt::Swap { .. } | Stmt::Reserve { .. } => {}
    }
}

/// How often each register is set, by the text. Those that there are not are refused where they stand.
pub(super) fn count(stmts: &[Stmt], depth: usize, found: &mut [u32]) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("the form is nested too deeply".into());
    }
    for stmt in stmts {
        sets(stmt, &mut |reg| {
            if let Some(times) = found.get_mut(reg.index()) {
                *times += 1;
            }
        });
        stmt.blocks().into_iter().try_for_each(|block| count(block, depth + 1, found))?;
    }
    Ok(())
}
