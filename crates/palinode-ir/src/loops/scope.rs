//! After which statement a register is needed no more.
//!
//! Input: a loop form. Output: [`Lasts`]. Whoever compiles registers can use what it has for one again for
//! another, so that a long program does not take as many as it has registers.

use super::form::{LoopForm, Port, Reg, Stmt};
use super::passes::Touch;
use crate::fast::FastMap;

/// Statements, and the registers that nothing behind them uses. Each register ends behind a statement of the
/// innermost block that holds all its uses.
#[derive(Debug, Default)]
pub struct Lasts(FastMap<*const Stmt, Vec<Reg>>);

impl Lasts {
    /// Looks for the last statements of a form, which must stay where it is in memory.
    pub fn of(form: &LoopForm) -> Lasts {
        let mut uses: Vec<Option<Use>> = form.registers.iter().map(|_| None).collect();
        for reg in form.inputs.iter().flat_map(Port::registers) {
            uses[reg.index()] = Some(Use { path: Vec::new(), depth: 0, last: core::ptr::null() });
        }
        walk(&form.body, &mut Vec::new(), &mut uses);
        form.outputs.iter().flat_map(Port::registers).for_each(|reg| uses[reg.index()] = None);
        let mut lasts = Lasts::default();
        for (number, used) in uses.into_iter().enumerate() {
            if let Some(Use { last, .. }) = used {
                lasts.0.entry(last).or_default().push(Reg(number as u32));
            }
        }
        lasts
    }

    /// The registers that end behind a statement.
    pub fn behind(&self, stmt: &Stmt) -> &[Reg] {
        self.0.get(&core::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }
}

/// The registers that a statement reads and does not set.
pub fn given_to(stmt: &Stmt) -> Vec<Reg> {
    let Touch { uses, sets, .. } = Touch::of(stmt);
    let mut given: Vec<Reg> = uses.into_iter().filter(|reg| !sets.contains(reg)).collect();
    given.sort_unstable();
    given
}

/// The uses of a register that were seen.
struct Use {
    /// The statements around the first one, outermost first, and itself; none for an input.
    path: Vec<*const Stmt>,
    /// How many of these are around all of them.
    depth: usize,
    last: *const Stmt,
}

impl Use {
    fn see(&mut self, path: &[*const Stmt]) {
        let common = self.path.iter().zip(path).take_while(|(a, b)| a == b).count();
        self.depth = self.depth.min(common).min(path.len() - 1);
        self.last = path[self.depth];
    }
}

fn walk(stmts: &[Stmt], path: &mut Vec<*const Stmt>, uses: &mut [Option<Use>]) {
    for stmt in stmts {
        path.push(stmt);
        let Touch { uses: used, sets, .. } = Touch::itself(stmt);
        for reg in used.into_iter().chain(sets) {
            match &mut uses[reg.index()] {
                Some(found) => found.see(path),
                new @ None => {
                    let (depth, last) = (path.len() - 1, core::ptr::from_ref(stmt));
                    *new = Some(Use { path: path.clone(), depth, last });
                }
            }
        }
        stmt.blocks().into_iter().for_each(|block| walk(block, path, uses));
        path.pop();
    }
}
