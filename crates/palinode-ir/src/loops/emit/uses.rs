//! Where registers are set and read: where their variables are declared, and which of them are not needed
//! because they are read once, right where they are set.
//!
//! Blocks are numbered in the order in which they stand in the form: a block before those inside of it.

use std::collections::HashMap;

use super::super::form::{Given, Index, Kept, LoopForm, Operand, Port, Reg, Stmt, Taken};

/// A statement: the number of its block, and its place there.
pub(super) type Spot = (usize, usize);

/// What is known of a register.
#[derive(Clone, Debug, Default)]
pub(super) struct Use {
    pub(super) sets: usize,
    pub(super) reads: usize,
    /// Where it is read, if that is by an operand of the statement, which then may be an expression.
    pub(super) read_at: Option<Spot>,
    /// The statements around the first occurrence, outermost first, as far as all others are inside, too; the
    /// last is where it is declared.
    path: Vec<Spot>,
    depth: usize,
    /// Whether the first occurrence is a statement that sets it, and where.
    set_first: Option<Spot>,
}

impl Use {
    /// Before which statement it is declared, or by which one.
    pub(super) fn home(&self) -> Option<Spot> {
        self.path.get(self.depth.checked_sub(1)?).copied()
    }

    /// Whether the statement that sets it first declares it.
    pub(super) fn is_declared_by_setting(&self) -> bool {
        self.set_first.is_some() && self.set_first == self.home()
    }
}

/// What is known of all registers.
pub(super) struct Uses {
    pub(super) of: Vec<Use>,
    /// Registers that are declared before a statement.
    pub(super) before: HashMap<Spot, Vec<Reg>>,
}

impl Uses {
    pub(super) fn of(form: &LoopForm) -> Uses {
        let mut walk = Walk {
            uses: vec![Use::default(); form.registers.len()],
            path: Vec::new(),
            blocks: 0,
            counters: vec![false; form.registers.len()],
        };
        for port in &form.inputs {
            if let Port::Scalar(Operand::Reg(reg)) = port {
                walk.counters[reg.index()] = true;
            }
        }
        walk.block(&form.body, None);
        walk.path.push((0, usize::MAX));
        for port in &form.outputs {
            match port {
                Port::Scalar(operand) => walk.read(*operand),
                Port::Array(place) => walk.index(&place.at),
            }
        }
        let mut before: HashMap<Spot, Vec<Reg>> = HashMap::new();
        for (at, of) in walk.uses.iter().enumerate() {
            if let Some(home) = of.home()
                && !of.is_declared_by_setting()
                && !walk.counters[at]
            {
                before.entry(home).or_default().push(Reg(at as u32));
            }
        }
        Uses { of: walk.uses, before }
    }
}

struct Walk {
    uses: Vec<Use>,
    path: Vec<Spot>,
    blocks: usize,
    /// Registers that loops declare, or the function.
    counters: Vec<bool>,
}

impl Walk {
    /// A block, and what is read at its end.
    fn block(&mut self, stmts: &[Stmt], at_its_end: Option<Operand>) {
        let number = self.blocks;
        self.blocks += 1;
        for (at, stmt) in stmts.iter().enumerate() {
            self.path.push((number, at));
            self.stmt(stmt);
            self.path.pop();
        }
        if let Some(operand) = at_its_end {
            self.path.push((number, stmts.len()));
            self.operand(operand);
            self.path.pop();
        }
    }

    fn occurs(&mut self, reg: Reg, sets: bool) {
        let of = &mut self.uses[reg.index()];
        if of.path.is_empty() {
            of.path.clone_from(&self.path);
            of.depth = self.path.len();
            of.set_first = if sets { self.path.last().copied() } else { None };
            return;
        }
        let common = of.path.iter().zip(&self.path).take_while(|(a, b)| a.0 == b.0).count();
        of.depth = of.depth.min(common);
    }

    fn set(&mut self, reg: Reg) {
        self.uses[reg.index()].sets += 1;
        self.occurs(reg, true);
    }

    /// By an operand that is written once.
    fn operand(&mut self, operand: Operand) {
        if let Operand::Reg(reg) = operand {
            self.uses[reg.index()].reads += 1;
            self.uses[reg.index()].read_at = self.path.last().copied();
            self.occurs(reg, false);
        }
    }

    /// In another way.
    fn read(&mut self, operand: Operand) {
        self.operand(operand);
        if let Operand::Reg(reg) = operand {
            self.uses[reg.index()].read_at = None;
        }
    }

    fn index(&mut self, index: &Index) {
        for &(reg, _) in &index.terms {
            self.read(Operand::Reg(reg));
        }
    }

    fn taken(&mut self, taken: &Taken) {
        match taken {
            Taken::Scalar(reg) => self.set(*reg),
            Taken::Array(place) => self.index(&place.at),
        }
    }

    fn counter(&mut self, reg: Reg) {
        self.counters[reg.index()] = true;
        self.set(reg);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Move { to, from } => {
                self.operand(*from);
                self.set(*to);
            }
            Stmt::Map { to, args, .. } => {
                args.iter().for_each(|&arg| self.operand(arg));
                self.set(*to);
            }
            Stmt::Round32 { to, a }
            | Stmt::Not { to, a }
            | Stmt::Truncate { to, a }
            | Stmt::Convert { to, a } => {
                self.operand(*a);
                self.set(*to);
            }
            Stmt::Int { to, a, b, .. }
            | Stmt::Compare { to, a, b, .. }
            | Stmt::And { to, a, b }
            | Stmt::Or { to, a, b } => {
                self.operand(*a);
                self.operand(*b);
                self.set(*to);
            }
            Stmt::Index { to, index } => {
                self.index(index);
                self.set(*to);
            }
            Stmt::Select { to, holds, a, b } => {
                [holds, a, b].into_iter().for_each(|&operand| self.operand(operand));
                self.set(*to);
            }
            Stmt::Load { to, at, .. } => {
                self.index(at);
                self.set(*to);
            }
            Stmt::Store { at, from, .. } => {
                self.index(at);
                self.operand(*from);
            }
            Stmt::Finite { a } => self.read(*a),
            Stmt::AllFinite { place } | Stmt::Function { place, .. } => self.index(&place.at),
            Stmt::Within { a, length } => {
                self.operand(*a);
                self.operand(*length);
            }
            Stmt::Holds { a } => self.operand(*a),
            Stmt::Stop | Stmt::Step | Stmt::Swap { .. } => {}
            Stmt::For { counter, rounds, .. } => {
                self.operand(*rounds);
                self.counter(*counter);
            }
            Stmt::While { condition, holds, body } => {
                self.block(condition, Some(*holds));
                self.block(body, None);
                return;
            }
            Stmt::Sweep { counter, rounds, state, .. } => {
                self.read(*rounds);
                self.counter(*counter);
                for kept in state {
                    if let Kept::Scalar { reg, .. } = kept {
                        self.read(Operand::Reg(*reg));
                        // It may be restored.
                        self.uses[reg.index()].sets += 2;
                    }
                }
            }
            Stmt::If { holds, .. } => self.operand(*holds),
            Stmt::Each { axes, .. } => axes.iter().for_each(|axis| self.counter(axis.0)),
            Stmt::Reduce { from, to, .. } => {
                self.index(&from.at);
                self.taken(to);
            }
            Stmt::Product { a, b, to, .. } => {
                [&a.at, &b.at, &to.at].into_iter().for_each(|at| self.index(at));
            }
            Stmt::Dots { a, x, to, .. } => {
                self.index(&a.at);
                self.index(&x.at);
                self.taken(to);
            }
            Stmt::Kernel { given, taken, .. } => {
                for given in given {
                    match given {
                        Given::Scalar(operand) => self.operand(*operand),
                        Given::Array(place) => self.index(&place.at),
                    }
                }
                taken.iter().for_each(|taken| self.taken(taken));
            }
            Stmt::Reserve { length, .. } => self.index(length),
        }
        for block in stmt.blocks() {
            self.block(block, None);
        }
    }
}
