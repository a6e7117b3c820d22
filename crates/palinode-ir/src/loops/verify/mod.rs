//! Holds a loop form to its invariants, and finds the accesses that must be checked when it runs.
//!
//! Input: a loop form. Output: what is wrong with it, or the loads and stores that are not proven to stay
//! inside of their buffers; whoever runs the form checks those, and stops if one leaves. Nothing else is
//! needed for memory safety: no claim of whoever made the form is believed.
//!
//! How indices are bounded: a register that is set in one place has the range of what it is set to, a counter
//! that of its loop, and after a [`Stmt::Within`] a register is inside for the rest of its block. Any other
//! integer may be anything.
//!
//! Invariants, each with the words of its refusal (`tests/loops/refused.txt` has a form for each):
//! - registers and buffers are there (`there is no`), the workspace has a number of bytes (`does not fit into
//!   memory`), and blocks are not nested without end (`nested too deeply`);
//! - an input has a buffer for itself, which is as long as it is (`is not what input`) and is only read
//!   (`changes an input`); only what grows from nothing grows (`grows, but not from nothing`, `does not
//!   grow`);
//! - a register is set before it is read (`is read before it is set`), and gets what is of its kind
//!   (`is of another kind`); a rule or kernel has its number of operands and results (`another number of`);
//! - the terms of an index are sorted, and none is 0 (`are not in order`);
//! - only a loop sets its counter (`counts the rounds of a loop around`), and that of an `Each` has rounds
//!   (`runs over nothing`);
//! - functions, reductions, products, kernels and what is given out stay inside of their buffers (`leaves its
//!   buffer`), which do not grow;
//! - a reduction or product writes to a buffer that it does not read (`reads what it writes`), and as many
//!   reals as it has (`has other lengths`);
//! - a sweep has memory for its snapshots (`leave their buffer`, `has no memory for snapshots`), each part of
//!   its state for itself (`reads what it writes`);
//! - an `Each` holds no control (`holds control`), and sets a register once (`is set twice in a round`); no
//!   round of it reads what another one writes, and no register goes from round to round or is read behind
//!   it (`depends on other rounds`);
//! - a kernel is an operation without blocks that nothing else does (`is no kernel`);
//! - buffers that are exchanged are of the workspace, of one kind and length (`exchanges unlike buffers`).

mod each;
mod memory;
mod sets;

use std::collections::HashSet;

use super::form::{Given, Kind, LoopForm, Operand, Port, Reg, Role, Stmt, Taken};
use super::one::kernel_types;
use super::print::first_line;
use crate::op::{IntOp, Reduction};
use each::{independent, is_plain};

/// The loads and stores of a form that are to be checked when it runs, by their address in it.
#[derive(Clone, Debug, Default)]
pub struct Unproven(HashSet<*const Stmt>);

impl Unproven {
    /// Whether a statement of the form is one of them.
    pub fn contains(&self, stmt: &Stmt) -> bool {
        self.0.contains(&core::ptr::from_ref(stmt))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Checks a loop form.
///
/// # Errors
/// The first invariant that does not hold, and the statement.
pub fn verify(form: &LoopForm) -> Result<Unproven, String> {
    let mut set = vec![0_u32; form.registers.len()];
    for port in &form.inputs {
        if let Port::Scalar(Operand::Reg(reg)) = port {
            *set.get_mut(reg.index()).ok_or("there is no such register")? += 1;
        }
    }
    sets::count(&form.body, 0, &mut set)?;
    memory::buffers(form)?;
    let mut verifier = Verifier {
        form,
        once: set.iter().map(|&times| times == 1).collect(),
        ranges: vec![ANY; form.registers.len()],
        known: vec![false; form.registers.len()],
        before: Vec::new(),
        counters: Vec::new(),
        unproven: Unproven::default(),
        wrong: None,
    };
    match verifier.form() {
        Ok(()) => Ok(verifier.unproven),
        Err(error) => Err(match verifier.wrong {
            Some(stmt) => format!("{error}, in `{}`", first_line(stmt)),
            None => error,
        }),
    }
}

const ANY: (i64, i64) = (i64::MIN, i64::MAX);

struct Verifier<'f> {
    form: &'f LoopForm,
    /// Whether a register is set in one place only.
    once: Vec<bool>,
    ranges: Vec<(i64, i64)>,
    /// Whether it has been set on every path to here.
    known: Vec<bool>,
    /// What was known of registers before they were set in the blocks around, in order: there is no copy of
    /// all registers for a block.
    before: Vec<(Reg, bool, (i64, i64))>,
    /// Those of the loops around.
    counters: Vec<Reg>,
    unproven: Unproven,
    /// The statement that is wrong.
    wrong: Option<&'f Stmt>,
}

impl<'f> Verifier<'f> {
    fn form(&mut self) -> Result<(), String> {
        let form = self.form;
        for port in &form.inputs {
            if let Port::Scalar(Operand::Reg(reg)) = port {
                self.known[reg.index()] = true;
            }
        }
        self.block(&form.body)?;
        for port in &form.outputs {
            match port {
                Port::Scalar(operand) => self.read(*operand).map(drop)?,
                Port::Array(place) => self.place(place, "an output")?,
            }
        }
        Ok(())
    }

    fn kind(&self, reg: Reg) -> Result<Kind, String> {
        self.form.registers.get(reg.index()).copied().ok_or_else(|| format!("there is no {reg}"))
    }

    fn read(&self, operand: Operand) -> Result<Kind, String> {
        Ok(match operand {
            Operand::Reg(reg) => {
                let kind = self.kind(reg)?;
                if !self.known[reg.index()] {
                    return Err(format!("{reg} is read before it is set"));
                }
                kind
            }
            Operand::Real(_) => Kind::Real,
            Operand::Int(_) => Kind::Int,
            Operand::Bool(_) => Kind::Bool,
        })
    }

    fn reads(&self, operands: &[Operand], kind: Kind) -> Result<(), String> {
        for &operand in operands {
            if self.read(operand)? != kind {
                return Err(format!("{operand} is of another kind"));
            }
        }
        Ok(())
    }

    fn set(&mut self, reg: Reg, kind: Kind) -> Result<(), String> {
        self.set_within(reg, kind, ANY)
    }

    fn set_within(&mut self, reg: Reg, kind: Kind, range: (i64, i64)) -> Result<(), String> {
        if self.kind(reg)? != kind {
            return Err(format!("{reg} is of another kind"));
        }
        if self.counters.contains(&reg) {
            return Err(format!("{reg} counts the rounds of a loop around"));
        }
        self.learn(reg, if self.once[reg.index()] { range } else { ANY });
        Ok(())
    }

    fn learn(&mut self, reg: Reg, range: (i64, i64)) {
        let (known, old) = (&mut self.known[reg.index()], &mut self.ranges[reg.index()]);
        self.before.push((reg, *known, *old));
        (*known, *old) = (true, range);
    }

    /// Forgets what was learnt since there were so many changes; returns the registers that were not set
    /// before.
    fn forget(&mut self, changes: usize) -> Vec<Reg> {
        let mut new = Vec::new();
        for (reg, known, range) in self.before.drain(changes..).rev() {
            (self.known[reg.index()], self.ranges[reg.index()]) = (known, range);
            if !known {
                new.push(reg);
            }
        }
        new
    }

    /// A counter of what comes next, until it is taken off [`Verifier::counters`].
    fn counts(&mut self, counter: Reg, least: i64, most: i64) -> Result<(), String> {
        self.set_within(counter, Kind::Int, (least, most))?;
        self.counters.push(counter);
        Ok(())
    }

    fn range(&self, operand: Operand) -> (i64, i64) {
        match operand {
            Operand::Int(n) => (n, n),
            Operand::Reg(reg) => self.ranges[reg.index()],
            Operand::Real(_) | Operand::Bool(_) => ANY,
        }
    }

    /// A block that may not run: what it establishes holds only inside of it. Returns the registers that it
    /// sets and that were not set before.
    fn inner(&mut self, stmts: &'f [Stmt]) -> Result<Vec<Reg>, String> {
        let changes = self.before.len();
        self.block(stmts)?;
        Ok(self.forget(changes))
    }

    fn block(&mut self, stmts: &'f [Stmt]) -> Result<(), String> {
        stmts.iter().try_for_each(|stmt| {
            let result = self.stmt(stmt);
            if result.is_err() {
                // The innermost one.
                self.wrong.get_or_insert(stmt);
            }
            result
        })
    }

    fn stmt(&mut self, stmt: &'f Stmt) -> Result<(), String> {
        match stmt {
            Stmt::Move { to, from } => {
                let kind = self.read(*from)?;
                self.set_within(*to, kind, self.range(*from))
            }
            Stmt::Map { rule, to, args } => {
                if args.len() != rule.row.arity() {
                    return Err(format!("`{}` takes another number of operands", rule.row.name()));
                }
                self.reads(args, Kind::Real)?;
                self.set(*to, Kind::Real)
            }
            Stmt::Round32 { to, a } => {
                self.reads(&[*a], Kind::Real)?;
                self.set(*to, Kind::Real)
            }
            Stmt::Int { op, to, a, b } => {
                self.reads(&[*a, *b], Kind::Int)?;
                let range = of_integers(*op, self.range(*a), self.range(*b));
                self.set_within(*to, Kind::Int, range)
            }
            Stmt::Index { to, index } => {
                let (least, most) = self.index(index)?;
                let range = match (i64::try_from(least), i64::try_from(most)) {
                    (Ok(least), Ok(most)) => (least, most),
                    _ => ANY,
                };
                self.set_within(*to, Kind::Int, range)
            }
            Stmt::Compare { to, a, b, .. } => {
                let kind = self.read(*a)?;
                if kind == Kind::Bool {
                    return Err(format!("{a} is of another kind"));
                }
                self.reads(&[*b], kind)?;
                self.set(*to, Kind::Bool)
            }
            Stmt::And { to, a, b } | Stmt::Or { to, a, b } => {
                self.reads(&[*a, *b], Kind::Bool)?;
                self.set(*to, Kind::Bool)
            }
            Stmt::Not { to, a } => {
                self.reads(&[*a], Kind::Bool)?;
                self.set(*to, Kind::Bool)
            }
            Stmt::Select { to, holds, a, b } => {
                self.reads(&[*holds], Kind::Bool)?;
                let kind = self.read(*a)?;
                self.reads(&[*b], kind)?;
                let (x, y) = (self.range(*a), self.range(*b));
                self.set_within(*to, kind, (x.0.min(y.0), x.1.max(y.1)))
            }
            Stmt::Truncate { to, a } => {
                self.reads(&[*a], Kind::Real)?;
                self.set(*to, Kind::Int)
            }
            Stmt::Convert { to, a } => {
                self.reads(&[*a], Kind::Int)?;
                self.set(*to, Kind::Real)
            }
            Stmt::Load { to, buf, at } => {
                let kind = self.access(stmt, *buf, at)?;
                self.set(*to, kind)
            }
            Stmt::Store { buf, at, from } => {
                let kind = self.access(stmt, *buf, at)?;
                self.reads(&[*from], kind)?;
                self.changes(*buf)
            }
            Stmt::Finite { a } => self.reads(&[*a], Kind::Real),
            Stmt::AllFinite { place } => self.reals(place, "a check"),
            Stmt::Reduce { kind, from, to } => {
                self.reals(from, "a reduction")?;
                let [outer, length, inner] = from.shape[..] else {
                    return Err(format!("a reduction has other lengths than {from}"));
                };
                if length == 0 && *kind != Reduction::Sum {
                    return Err(format!("a reduction has other lengths than {from}"));
                }
                let count = outer.checked_mul(inner).ok_or("a reduction does not fit into memory")?;
                self.result(to, count, &[from.buf], "a reduction")
            }
            Stmt::Product { a, b, to, .. } => {
                self.matrix(a, "a product")?;
                self.matrix(b, "a product")?;
                let count = a.sizes[0].checked_mul(b.sizes[1]).ok_or("a product does not fit into memory")?;
                if a.sizes[1] != b.sizes[0] {
                    return Err("a product has other lengths than its factors".into());
                }
                self.result(&Taken::Array(to.clone()), count, &[a.buf, b.buf], "a product")
            }
            Stmt::Dots { a, x, to, .. } => {
                self.matrix(a, "a product")?;
                self.reals(x, "a product")?;
                if x.shape[..] != a.sizes[1..] {
                    return Err("a product has other lengths than its factors".into());
                }
                self.result(to, a.sizes[0], &[a.buf, x.buf], "a product")
            }
            Stmt::Within { a, length } => {
                self.reads(&[*a, *length], Kind::Int)?;
                if let (Operand::Reg(reg), Operand::Int(length)) = (a, length)
                    && self.once[reg.index()]
                {
                    let (least, most) = self.ranges[reg.index()];
                    self.learn(*reg, (least.max(0), most.min(length - 1)));
                }
                Ok(())
            }
            Stmt::Holds { a } => self.reads(&[*a], Kind::Bool),
            Stmt::Stop | Stmt::Step => Ok(()),
            Stmt::For { counter, rounds, body, .. } => {
                self.reads(&[*rounds], Kind::Int)?;
                let most = self.range(*rounds).1.saturating_sub(1).max(0);
                let changes = self.before.len();
                self.counts(*counter, 0, most)?;
                self.block(body)?;
                self.forget(changes);
                self.counters.pop();
                Ok(())
            }
            Stmt::While { condition, holds, body } => {
                // The condition runs in any case.
                self.block(condition)?;
                self.reads(&[*holds], Kind::Bool)?;
                self.inner(body).map(drop)
            }
            Stmt::Sweep { counter, rounds, room, state, advance, turn, back } => {
                self.reads(&[*rounds], Kind::Int)?;
                let steps = self.range(*rounds).1.max(0).saturating_add(i64::from(turn.is_some()));
                self.state(state, *room, steps)?;
                // The turn runs in no round.
                if let Some(turn) = turn {
                    self.inner(turn)?;
                }
                let most = self.range(*rounds).1.saturating_sub(1).max(0);
                let changes = self.before.len();
                self.counts(*counter, 0, most)?;
                self.inner(advance)?;
                self.inner(back)?;
                self.forget(changes);
                self.counters.pop();
                Ok(())
            }
            Stmt::If { holds, then, other } => {
                self.reads(&[*holds], Kind::Bool)?;
                let (yes, no) = (self.inner(then)?, self.inner(other)?);
                // What both set is set afterwards; neither's range is known.
                let no: HashSet<Reg> = no.into_iter().collect();
                yes.into_iter().filter(|reg| no.contains(reg)).for_each(|reg| self.learn(reg, ANY));
                Ok(())
            }
            Stmt::Each { axes, body } => {
                let changes = self.before.len();
                for &(counter, from, to) in axes {
                    if from >= to || to.checked_sub(from).is_none() {
                        return Err(format!("{counter} runs over nothing"));
                    }
                    self.counts(counter, from, to - 1)?;
                }
                if body.iter().any(|stmt| !is_plain(stmt)) {
                    return Err("an `each` holds control".into());
                }
                independent(axes, body, &self.known)?;
                self.block(body)?;
                self.forget(changes);
                self.counters.truncate(self.counters.len() - axes.len());
                Ok(())
            }
            Stmt::Function { rule, place } => {
                if rule.row.arity() != 1 {
                    return Err(format!("`{}` takes another number of operands", rule.row.name()));
                }
                self.reals(place, "a function")?;
                self.changes(place.buf)
            }
            Stmt::Kernel { op, single, given, taken } => {
                let mut kinds = Vec::with_capacity(given.len());
                for given in given {
                    kinds.push(match given {
                        Given::Scalar(operand) => self.read(*operand)?,
                        Given::Array(place) => {
                            self.place(place, "a kernel")?;
                            self.buffer(place.buf)?.kind
                        }
                    });
                }
                let (_, types) = kernel_types(op, *single, given, &kinds)?;
                if types.len() != taken.len() {
                    return Err(format!("`{}` gives another number of results", op.name()));
                }
                for (taken, ty) in taken.iter().zip(types) {
                    let kind = Kind::of(ty.elem);
                    let (found, rank) = match taken {
                        Taken::Scalar(reg) => {
                            self.set(*reg, kind)?;
                            (kind, 0)
                        }
                        Taken::Array(place) => {
                            self.place(place, "a kernel")?;
                            self.changes(place.buf)?;
                            (self.buffer(place.buf)?.kind, place.shape.len())
                        }
                    };
                    if (found, rank) != (kind, usize::from(ty.rank)) {
                        return Err(format!("{taken} is of another kind than `{}` gives", op.name()));
                    }
                }
                Ok(())
            }
            Stmt::Swap { a, b } => {
                let (x, y) = (self.buffer(*a)?, self.buffer(*b)?);
                let alike = x.kind == y.kind && x.length == y.length;
                if !alike || x.role != Role::Workspace || y.role != Role::Workspace {
                    return Err(format!("{a} and {b}: the form exchanges unlike buffers"));
                }
                Ok(())
            }
            Stmt::Reserve { buf, length } => {
                self.index(length)?;
                if self.buffer(*buf)?.role != Role::Growing {
                    return Err(format!("{buf} does not grow"));
                }
                Ok(())
            }
        }
    }
}

/// The range of a result. Where arithmetic may go wrong, what is left may be any number.
fn of_integers(op: IntOp, a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    match op {
        IntOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        IntOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        IntOp::Rem if b.0 > 0 => (0, b.1 - 1),
        // The quotient by a positive number is no further from 0 than the number itself.
        IntOp::Div if b.0 > 0 => (a.0.min(0), a.1.max(0)),
        IntOp::Add | IntOp::Sub | IntOp::Mul | IntOp::Div | IntOp::Rem => ANY,
    }
}
