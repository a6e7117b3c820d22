//! A long form in pieces: runs of statements that are compiled as functions of their own.
//!
//! Input: a loop form. Output: [`Pieces`]: which statements are a piece, and a word of memory for each
//! register that is used in several of them. What a compiler does takes longer than in proportion to the
//! length of a function, and registers that live long take much of its stack; both have a limit this way.
//! A short form is one piece, and none of its registers is in memory.

use super::form::{Buf, LoopForm, Operand, Port, Reg, Stmt};
use super::passes::Touch;
use super::scope::Lasts;
use crate::fast::{FastMap, FastSet};

/// The pieces of a form, which must stay where it is in memory.
#[derive(Debug, Default)]
pub struct Pieces<'f> {
    /// In the order of the form; none if it is short.
    pub pieces: Vec<Piece<'f>>,
    /// How many words of memory there are.
    pub words: usize,
    /// By the first statement.
    begin: FastMap<*const Stmt, usize>,
    homes: Vec<Option<usize>>,
}

/// Statements one after another that are a function.
#[derive(Debug)]
pub struct Piece<'f> {
    /// The statements.
    pub stmts: &'f [Stmt],
    /// For each statement, what is in memory before it and after it.
    pub around: Vec<Around>,
    /// The buffers that it uses.
    pub buffers: Vec<Buf>,
}

/// What a statement of a piece takes from memory, and leaves there for others.
#[derive(Debug, Default)]
pub struct Around {
    /// Registers that this is the first statement of its piece to use.
    pub needs: Vec<Reg>,
    /// Registers that it sets.
    pub leaves: Vec<Reg>,
    /// Buffers that it exchanges.
    pub exchanges: Vec<Buf>,
}

impl<'f> Pieces<'f> {
    /// Cuts a form that has more than so many statements into pieces of at most so many. Loops over elements
    /// stay whole.
    pub fn of(form: &'f LoopForm, most: u64) -> Pieces<'f> {
        let mut pieces = Pieces::default();
        if form.statements() <= most {
            pieces.homes = vec![None; form.registers.len()];
            return pieces;
        }
        // Fewer statements between long loops stay where they are.
        let mut cuts = Cuts { most, few: most / 32, ..Cuts::default() };
        cut(&form.body, &mut cuts);
        let Cuts { begin, lengths, .. } = cuts;
        pieces.begin = begin;
        let mut owners = Owners(vec![None; form.registers.len()]);
        for reg in form.inputs.iter().chain(&form.outputs).flat_map(Port::registers) {
            owners.see(reg, None);
        }
        let mut runs = Vec::new();
        pieces.own(&form.body, &lengths, &mut owners, &mut runs);
        let shared: Vec<bool> = owners.0.iter().map(|owner| *owner == Some(Owner::Several)).collect();
        pieces.settle(form, &shared);
        pieces.pieces = runs.into_iter().map(|run| Piece::of(run, &shared)).collect();
        pieces
    }

    /// The piece that begins with a statement.
    pub fn beginning(&self, stmt: &Stmt) -> Option<usize> {
        self.begin.get(&core::ptr::from_ref(stmt)).copied()
    }

    /// The word of memory of a register that several functions use.
    pub fn home(&self, reg: Reg) -> Option<usize> {
        self.homes[reg.index()]
    }

    /// Which function uses a register; statements outside of pieces are one.
    fn own(&self, stmts: &'f [Stmt], lengths: &[usize], owners: &mut Owners, runs: &mut Vec<&'f [Stmt]>) {
        let mut at = 0;
        while let Some(stmt) = stmts.get(at) {
            if let Some(piece) = self.beginning(stmt) {
                let run = &stmts[at..at + lengths[piece]];
                let Touch { uses, sets, .. } = Touch::join_of(run);
                uses.into_iter().chain(sets).for_each(|reg| owners.see(reg, Some(piece)));
                runs.push(run);
                at += run.len();
                continue;
            }
            let Touch { uses, sets, .. } = Touch::itself(stmt);
            uses.into_iter().chain(sets).for_each(|reg| owners.see(reg, None));
            stmt.blocks().into_iter().for_each(|block| self.own(block, lengths, owners, runs));
            at += 1;
        }
    }

    /// Gives shared registers their words; those that are needed no more leave theirs to others.
    fn settle(&mut self, form: &LoopForm, shared: &[bool]) {
        self.homes = vec![None; form.registers.len()];
        let (lasts, mut free) = (Lasts::of(form), Vec::new());
        for port in &form.inputs {
            if let Port::Scalar(Operand::Reg(reg)) = port {
                self.settle_one(*reg, shared, &mut free);
            }
        }
        self.settle_all(&form.body, shared, &lasts, &mut free);
    }

    fn settle_one(&mut self, reg: Reg, shared: &[bool], free: &mut Vec<usize>) {
        if shared[reg.index()] && self.homes[reg.index()].is_none() {
            self.homes[reg.index()] = Some(free.pop().unwrap_or(self.words));
            self.words = self.words.max(self.homes[reg.index()].map_or(0, |home| home + 1));
        }
    }

    fn settle_all(&mut self, stmts: &[Stmt], shared: &[bool], lasts: &Lasts, free: &mut Vec<usize>) {
        for stmt in stmts {
            let Touch { uses, sets, .. } = Touch::itself(stmt);
            let mut touched: Vec<Reg> = uses.into_iter().chain(sets).collect();
            touched.sort_unstable();
            touched.into_iter().for_each(|reg| self.settle_one(reg, shared, free));
            stmt.blocks().into_iter().for_each(|block| self.settle_all(block, shared, lasts, free));
            free.extend(lasts.behind(stmt).iter().filter_map(|reg| self.homes[reg.index()]));
        }
    }
}

impl<'f> Piece<'f> {
    fn of(stmts: &'f [Stmt], shared: &[bool]) -> Piece<'f> {
        let mut known = FastSet::default();
        let mut around = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            let Touch { uses, sets, .. } = Touch::of(stmt);
            let is_shared = |reg: &Reg| shared[reg.index()];
            let mut leaves: Vec<Reg> = sets.into_iter().filter(is_shared).collect();
            let mut needs: Vec<Reg> = uses.into_iter().filter(is_shared).collect();
            // What is set inside of a block may not be set.
            if !stmt.blocks().is_empty() {
                needs.extend(&leaves);
            }
            leaves.sort_unstable();
            needs.sort_unstable();
            needs.dedup();
            needs.retain(|reg| known.insert(*reg));
            known.extend(leaves.iter().copied());
            let mut exchanges = Vec::new();
            exchanged(stmt, &mut exchanges);
            around.push(Around { needs, leaves, exchanges });
        }
        let Touch { reads, writes, .. } = Touch::join_of(stmts);
        let mut buffers: Vec<Buf> = reads.into_iter().chain(writes).collect();
        buffers.sort_unstable();
        buffers.dedup();
        Piece { stmts, around, buffers }
    }
}

fn exchanged(stmt: &Stmt, found: &mut Vec<Buf>) {
    if let Stmt::Swap { a, b } = stmt {
        found.extend([*a, *b]);
    }
    stmt.blocks().into_iter().flatten().for_each(|stmt| exchanged(stmt, found));
}

#[derive(Clone, Copy, PartialEq)]
enum Owner {
    One(Option<usize>),
    Several,
}

/// By register.
struct Owners(Vec<Option<Owner>>);

impl Owners {
    fn see(&mut self, reg: Reg, owner: Option<usize>) {
        let found = &mut self.0[reg.index()];
        *found = match *found {
            None => Some(Owner::One(owner)),
            Some(Owner::One(before)) if before == owner => *found,
            Some(_) => Some(Owner::Several),
        };
    }
}

fn weight(stmt: &Stmt) -> u64 {
    1 + stmt.blocks().into_iter().flatten().map(weight).sum::<u64>()
}

/// Cuts statements into pieces, and loops that are too long for one.
fn cut(stmts: &[Stmt], cuts: &mut Cuts) {
    let (mut from, mut total) = (0, 0);
    for (at, stmt) in stmts.iter().enumerate() {
        let of_stmt = weight(stmt);
        // A loop over elements stays in one piece.
        let is_cut = of_stmt > cuts.most && !matches!(stmt, Stmt::Each { .. });
        if is_cut || total + of_stmt > cuts.most {
            cuts.add(&stmts[from..at], total);
            (from, total) = (at, 0);
        }
        if is_cut {
            stmt.blocks().into_iter().for_each(|block| cut(block, cuts));
            from = at + 1;
        } else {
            total += of_stmt;
        }
    }
    cuts.add(&stmts[from..], total);
}

/// The pieces that were cut: where each begins, and how long it is.
#[derive(Default)]
struct Cuts {
    most: u64,
    few: u64,
    begin: FastMap<*const Stmt, usize>,
    lengths: Vec<usize>,
}

impl Cuts {
    fn add(&mut self, run: &[Stmt], weight: u64) {
        if weight > self.few {
            self.begin.insert(run.as_ptr(), self.lengths.len());
            self.lengths.push(run.len());
        }
    }
}
