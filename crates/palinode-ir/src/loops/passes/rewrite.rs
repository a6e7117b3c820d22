//! Operands and indices in the place of registers, in statements that may stand in an `Each`.

use crate::fast::FastMap;

use super::super::form::{Index, Kind, Operand, Reg, Stmt};

/// What stands for registers.
#[derive(Default)]
pub(super) struct Instead {
    /// What is computed already.
    pub(super) operands: FastMap<Reg, Operand>,
    /// Counters of another loop.
    pub(super) indices: FastMap<Reg, Index>,
}

/// The register that a statement sets.
macro_rules! target {
    ($stmt:expr) => {
        match $stmt {
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
            | Stmt::Load { to, .. } => Some(to),
            Stmt::Store { .. } | Stmt::Finite { .. } => None,
            other => unreachable!("{other:?} does not stand in an `each`"),
        }
    };
}

/// The register that a statement sets.
pub(super) fn target(stmt: &Stmt) -> Option<Reg> {
    target!(stmt).copied()
}

/// The same, to be changed.
pub(super) fn target_mut(stmt: &mut Stmt) -> Option<&mut Reg> {
    target!(stmt)
}

/// The operands that a statement reads.
pub(super) fn operands_mut(stmt: &mut Stmt) -> Vec<&mut Operand> {
    match stmt {
        Stmt::Move { from: a, .. }
        | Stmt::Round32 { a, .. }
        | Stmt::Not { a, .. }
        | Stmt::Truncate { a, .. }
        | Stmt::Convert { a, .. }
        | Stmt::Store { from: a, .. }
        | Stmt::Finite { a } => vec![a],
        Stmt::Map { args, .. } => args.iter_mut().collect(),
        Stmt::Int { a, b, .. }
        | Stmt::Compare { a, b, .. }
        | Stmt::And { a, b, .. }
        | Stmt::Or { a, b, .. } => vec![a, b],
        Stmt::Select { holds, a, b, .. } => vec![holds, a, b],
        Stmt::Index { .. } | Stmt::Load { .. } => Vec::new(),
        other => unreachable!("{other:?} does not stand in an `each`"),
    }
}

/// Whether a register is read other than in the index of a load or store.
pub(super) fn is_operand(body: &[Stmt], reg: Reg) -> bool {
    body.iter().any(|stmt| {
        let in_index =
            matches!(stmt, Stmt::Index { index, .. } if index.terms.iter().any(|term| term.0 == reg));
        in_index || operands_mut(&mut stmt.clone()).into_iter().any(|operand| *operand == Operand::Reg(reg))
    })
}

impl Instead {
    /// An index without the registers that something else stands for; none if a number overflows.
    pub(super) fn index(&self, index: &Index) -> Option<Index> {
        let mut sum = Index::constant(index.constant);
        for &(reg, factor) in &index.terms {
            let term = match (self.indices.get(&reg), self.operands.get(&reg)) {
                (Some(index), _) => index.clone(),
                (None, Some(Operand::Reg(other))) => Index::reg(*other),
                (None, Some(Operand::Int(n))) => Index::constant(*n),
                (None, _) => Index::reg(reg),
            };
            sum = sum.plus(&term, factor)?;
        }
        Some(sum)
    }

    /// A statement without them. Counters that are read as operands must have been moved to registers before.
    pub(super) fn stmt(&self, stmt: &Stmt) -> Option<Stmt> {
        let mut stmt = stmt.clone();
        for operand in operands_mut(&mut stmt) {
            if let Operand::Reg(reg) = operand
                && let Some(other) = self.operands.get(reg)
            {
                *operand = *other;
            }
        }
        if let Stmt::Index { index, .. } | Stmt::Load { at: index, .. } | Stmt::Store { at: index, .. } =
            &mut stmt
        {
            *index = self.index(index)?;
        }
        Some(stmt)
    }
}

/// A new register.
pub(super) fn fresh(kind: Kind, registers: &mut Vec<Kind>) -> Reg {
    registers.push(kind);
    Reg(u32::try_from(registers.len() - 1).expect("fewer than 2^32 registers"))
}

/// The statements with registers of their own, for another loop. `counters` stand for those of the loop.
pub(super) fn copied(
    body: &[Stmt],
    counters: FastMap<Reg, Index>,
    registers: &mut Vec<Kind>,
) -> Option<Vec<Stmt>> {
    let mut instead = Instead { operands: FastMap::default(), indices: counters };
    let mut made = Vec::with_capacity(body.len());
    let mut counters: Vec<(Reg, Index)> =
        instead.indices.iter().map(|(&reg, index)| (reg, index.clone())).collect();
    counters.sort_by_key(|counter| counter.0);
    for (counter, index) in counters {
        if is_operand(body, counter) {
            let to = fresh(Kind::Int, registers);
            made.push(Stmt::Index { to, index });
            instead.operands.insert(counter, Operand::Reg(to));
        }
    }
    for stmt in body {
        let mut stmt = instead.stmt(stmt)?;
        if let Some(to) = target_mut(&mut stmt) {
            let own = fresh(registers[to.index()], registers);
            instead.operands.insert(*to, Operand::Reg(own));
            *to = own;
        }
        made.push(stmt);
    }
    Some(made)
}
