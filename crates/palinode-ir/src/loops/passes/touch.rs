//! What a statement reads and changes, with everything inside of it.

use crate::fast::FastSet;

use super::super::form::{Buf, Given, Index, Kept, Operand, Reg, Stmt, Taken};

/// Buffers and registers that are read and set. A register that a [`Stmt::Within`] checks counts as set: what
/// uses it must stay after that.
#[derive(Default)]
pub(in super::super) struct Touch {
    pub(in super::super) reads: FastSet<Buf>,
    pub(in super::super) writes: FastSet<Buf>,
    pub(in super::super) uses: FastSet<Reg>,
    pub(in super::super) sets: FastSet<Reg>,
}

impl Touch {
    pub(in super::super) fn of(stmt: &Stmt) -> Touch {
        let mut touch = Touch::default();
        touch.add(stmt);
        touch
    }

    /// Of all statements of a block.
    pub(in super::super) fn join_of(stmts: &[Stmt]) -> Touch {
        let mut touch = Touch::default();
        stmts.iter().for_each(|stmt| touch.add(stmt));
        touch
    }

    /// Whether a later statement must stay after this one.
    pub(super) fn orders(&self, later: &Touch) -> bool {
        meet(&self.writes, &later.reads)
            || meet(&self.writes, &later.writes)
            || meet(&self.reads, &later.writes)
            || meet(&self.sets, &later.uses)
            || meet(&self.sets, &later.sets)
            || meet(&self.uses, &later.sets)
    }

    /// Adds all of another.
    pub(super) fn join(&mut self, other: Touch) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.uses.extend(other.uses);
        self.sets.extend(other.sets);
    }

    fn operand(&mut self, operand: Operand) {
        if let Operand::Reg(reg) = operand {
            self.uses.insert(reg);
        }
    }

    fn index(&mut self, index: &Index) {
        self.uses.extend(index.terms.iter().map(|term| term.0));
    }

    fn from(&mut self, buf: Buf, at: &Index) {
        self.reads.insert(buf);
        self.index(at);
    }

    fn to(&mut self, to: &Taken) {
        match to {
            Taken::Scalar(reg) => {
                self.sets.insert(*reg);
            }
            Taken::Array(place) => {
                self.writes.insert(place.buf);
                self.index(&place.at);
            }
        }
    }

    /// What a statement touches.
    pub(super) fn add(&mut self, stmt: &Stmt) {
        self.add_itself(stmt);
        for block in stmt.blocks() {
            block.iter().for_each(|stmt| self.add(stmt));
        }
    }

    /// The same without what the statements inside of it touch.
    pub(in super::super) fn itself(stmt: &Stmt) -> Touch {
        let mut touch = Touch::default();
        touch.add_itself(stmt);
        touch
    }

    fn add_itself(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Move { to, from: a }
            | Stmt::Round32 { to, a }
            | Stmt::Not { to, a }
            | Stmt::Truncate { to, a }
            | Stmt::Convert { to, a } => {
                self.operand(*a);
                self.sets.insert(*to);
            }
            Stmt::Map { to, args, .. } => {
                args.iter().for_each(|arg| self.operand(*arg));
                self.sets.insert(*to);
            }
            Stmt::Int { to, a, b, .. }
            | Stmt::Compare { to, a, b, .. }
            | Stmt::And { to, a, b }
            | Stmt::Or { to, a, b } => {
                self.operand(*a);
                self.operand(*b);
                self.sets.insert(*to);
            }
            Stmt::Select { to, holds, a, b } => {
                [holds, a, b].into_iter().for_each(|operand| self.operand(*operand));
                self.sets.insert(*to);
            }
            Stmt::Index { to, index } => {
                self.index(index);
                self.sets.insert(*to);
            }
            Stmt::Load { to, buf, at } => {
                self.from(*buf, at);
                self.sets.insert(*to);
            }
            Stmt::Store { buf, at, from } => {
                self.writes.insert(*buf);
                self.index(at);
                self.operand(*from);
            }
            Stmt::Finite { a } | Stmt::Holds { a } => self.operand(*a),
            Stmt::AllFinite { place } => self.from(place.buf, &place.at),
            Stmt::Within { a, length } => {
                self.operand(*a);
                self.operand(*length);
                if let Operand::Reg(reg) = a {
                    self.sets.insert(*reg);
                }
            }
            Stmt::Stop | Stmt::Step => {}
            Stmt::For { counter, rounds, .. } => {
                self.operand(*rounds);
                self.sets.insert(*counter);
            }
            Stmt::Sweep { counter, rounds, state, .. } => {
                self.operand(*rounds);
                self.sets.insert(*counter);
                for kept in state {
                    match *kept {
                        Kept::Scalar { reg, snapshots } => {
                            self.uses.insert(reg);
                            self.sets.insert(reg);
                            self.reads.insert(snapshots);
                            self.writes.insert(snapshots);
                        }
                        Kept::Array { buf, snapshots, .. } => {
                            self.reads.extend([buf, snapshots]);
                            self.writes.extend([buf, snapshots]);
                        }
                    }
                }
            }
            Stmt::While { holds, .. } | Stmt::If { holds, .. } => self.operand(*holds),
            Stmt::Each { axes, .. } => self.sets.extend(axes.iter().map(|axis| axis.0)),
            Stmt::Function { place, .. } => {
                self.from(place.buf, &place.at);
                self.writes.insert(place.buf);
            }
            Stmt::Reduce { from, to, .. } => {
                self.from(from.buf, &from.at);
                self.to(to);
            }
            Stmt::Product { a, b, to, adds, .. } => {
                if *adds {
                    self.reads.insert(to.buf);
                }
                self.from(a.buf, &a.at);
                self.from(b.buf, &b.at);
                self.writes.insert(to.buf);
                self.index(&to.at);
            }
            Stmt::Dots { a, x, to, .. } => {
                self.from(a.buf, &a.at);
                self.from(x.buf, &x.at);
                self.to(to);
            }
            Stmt::Kernel { given, taken, .. } => {
                for given in given {
                    match given {
                        Given::Scalar(operand) => self.operand(*operand),
                        Given::Array(place) => self.from(place.buf, &place.at),
                    }
                }
                taken.iter().for_each(|taken| self.to(taken));
            }
            Stmt::Swap { a, b } => {
                self.reads.extend([*a, *b]);
                self.writes.extend([*a, *b]);
            }
            Stmt::Reserve { buf, length } => {
                self.from(*buf, length);
                self.writes.insert(*buf);
            }
        }
    }
}

fn meet<T: Copy + Eq + core::hash::Hash>(a: &FastSet<T>, b: &FastSet<T>) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    few.iter().any(|x| many.contains(x))
}
