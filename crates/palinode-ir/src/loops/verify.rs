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
//! Invariants, each with the words of its refusal:
//! - a register is set before it is read (`is read before it is set`), and gets what is of its kind
//!   (`is of another kind`);
//! - functions, reductions, products and kernels stay inside of their buffers (`leaves its buffer`), which do
//!   not grow;
//! - a reduction or product writes to a buffer that it does not read (`reads what it writes`), and as many
//!   reals as it has (`has other lengths`);
//! - the buffers of a sweep hold its snapshots (`leave their buffer`);
//! - inputs are only read (`changes an input`);
//! - an `Each` holds no control, and no round of it reads what another one writes (`depends on other
//! rounds`);
//! - buffers that are exchanged are of the workspace, of one kind and length (`exchanges unlike buffers`).

use std::collections::HashSet;

use super::form::{
    Buf, Given, Index, Kept, Kind, LoopForm, Matrix, Operand, Place, Port, Reg, Role, Stmt, Taken,
};
use crate::op::{IntOp, Reduction};

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
/// The first invariant that does not hold, and where.
pub fn verify(form: &LoopForm) -> Result<Unproven, String> {
    let mut set = vec![0_u32; form.registers.len()];
    for port in &form.inputs {
        if let Port::Scalar(Operand::Reg(reg)) = port {
            *set.get_mut(reg.index()).ok_or("there is no such register")? += 1;
        }
    }
    count_sets(&form.body, &mut set)?;
    let mut verifier = Verifier {
        form,
        once: set.iter().map(|&times| times == 1).collect(),
        ranges: vec![ANY; form.registers.len()],
        known: vec![false; form.registers.len()],
        unproven: Unproven::default(),
    };
    for port in &form.inputs {
        match port {
            Port::Scalar(Operand::Reg(reg)) => verifier.known[reg.index()] = true,
            Port::Scalar(_) => {}
            Port::Array(place) => verifier.place(place, "an input")?,
        }
    }
    verifier.block(&form.body)?;
    for port in &form.outputs {
        match port {
            Port::Scalar(operand) => verifier.read(*operand).map(drop)?,
            Port::Array(place) => verifier.place(place, "an output")?,
        }
    }
    Ok(verifier.unproven)
}

const ANY: (i64, i64) = (i64::MIN, i64::MAX);

struct Verifier<'f> {
    form: &'f LoopForm,
    /// Whether a register is set in one place only.
    once: Vec<bool>,
    ranges: Vec<(i64, i64)>,
    /// Whether it has been set on every path to here.
    known: Vec<bool>,
    unproven: Unproven,
}

impl Verifier<'_> {
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
        self.known[reg.index()] = true;
        self.ranges[reg.index()] = if self.once[reg.index()] { range } else { ANY };
        Ok(())
    }

    fn range(&self, operand: Operand) -> (i64, i64) {
        match operand {
            Operand::Int(n) => (n, n),
            Operand::Reg(reg) => self.ranges[reg.index()],
            Operand::Real(_) | Operand::Bool(_) => ANY,
        }
    }

    /// The least and the largest value of an index, if nothing overflows.
    fn index(&self, index: &Index) -> Result<(i128, i128), String> {
        let (mut least, mut most) = (i128::from(index.constant), i128::from(index.constant));
        for &(reg, factor) in &index.terms {
            self.reads(&[Operand::Reg(reg)], Kind::Int)?;
            let (low, high) = self.ranges[reg.index()];
            let ends = [i128::from(low) * i128::from(factor), i128::from(high) * i128::from(factor)];
            least += ends[0].min(ends[1]);
            most += ends[0].max(ends[1]);
        }
        Ok((least, most))
    }

    fn buffer(&self, buf: Buf) -> Result<&super::form::Buffer, String> {
        self.form.buffers.get(buf.index()).ok_or_else(|| format!("there is no {buf}"))
    }

    /// Notes an access that may be outside.
    fn access(&mut self, stmt: &Stmt, buf: Buf, at: &Index) -> Result<Kind, String> {
        let (least, most) = self.index(at)?;
        let buffer = self.buffer(buf)?;
        let (kind, length) = (buffer.kind, i128::from(buffer.length));
        if buffer.role == Role::Growing || least < 0 || most >= length {
            self.unproven.0.insert(core::ptr::from_ref(stmt));
        }
        Ok(kind)
    }

    fn place(&self, place: &Place, who: &str) -> Result<(), String> {
        let count = place.shape.iter().try_fold(1_i128, |all, &n| all.checked_mul(n as i128));
        let count = count.ok_or_else(|| format!("{who} does not fit into memory"))?;
        self.stretch(place.buf, &place.at, count, who)
    }

    /// So many elements from an index on are in a buffer that does not grow.
    fn stretch(&self, buf: Buf, at: &Index, count: i128, who: &str) -> Result<(), String> {
        let (least, most) = self.index(at)?;
        let buffer = self.buffer(buf)?;
        if buffer.role == Role::Growing || least < 0 || most + count > i128::from(buffer.length) {
            return Err(format!("{who} leaves its buffer: {count} from {buf}[{at}] on"));
        }
        Ok(())
    }

    /// A place of reals.
    fn reals(&self, place: &Place, who: &str) -> Result<(), String> {
        self.place(place, who)?;
        self.are_real(place.buf, who)
    }

    fn are_real(&self, buf: Buf, who: &str) -> Result<(), String> {
        match self.buffer(buf)?.kind {
            Kind::Real => Ok(()),
            Kind::Int | Kind::Bool => Err(format!("{buf} is of another kind than {who} takes")),
        }
    }

    fn matrix(&self, matrix: &Matrix, who: &str) -> Result<(), String> {
        let span = matrix.span().ok_or_else(|| format!("{who} does not fit into memory"))?;
        self.stretch(matrix.buf, &matrix.at, span as i128, who)?;
        self.are_real(matrix.buf, who)
    }

    /// Where so many reals go that are made from these buffers.
    fn result(&mut self, to: &Taken, count: usize, from: &[Buf], who: &str) -> Result<(), String> {
        let place = match to {
            Taken::Scalar(reg) if count == 1 => return self.set(*reg, Kind::Real),
            Taken::Scalar(_) => return Err(format!("{who} has other lengths than {to}")),
            Taken::Array(place) => place,
        };
        self.reals(place, who)?;
        self.changes(place.buf)?;
        if place.shape.iter().try_fold(1_usize, |all, &n| all.checked_mul(n)) != Some(count) {
            return Err(format!("{who} has other lengths than {to}"));
        }
        if from.contains(&place.buf) {
            return Err(format!("{who} reads what it writes: {to}"));
        }
        Ok(())
    }

    fn changes(&self, buf: Buf) -> Result<(), String> {
        match self.buffer(buf)?.role {
            Role::Input(_) => Err(format!("{buf}: the form changes an input")),
            Role::Workspace | Role::Growing => Ok(()),
        }
    }

    /// A part of a state has a buffer that holds its snapshots.
    fn kept(&self, kept: &Kept, room: u64) -> Result<(), String> {
        let (kind, count, snapshots) = match *kept {
            Kept::Scalar { reg, snapshots } => (self.read(Operand::Reg(reg))?, 1, snapshots),
            Kept::Array { buf, count, snapshots } => {
                let buffer = self.buffer(buf)?;
                if buffer.role != Role::Workspace || count as u64 > buffer.length {
                    return Err(format!("a state leaves its buffer: {count} of {buf}"));
                }
                if buf == snapshots {
                    return Err(format!("a sweep reads what it writes: {buf}"));
                }
                (buffer.kind, count as u64, snapshots)
            }
        };
        let home = self.buffer(snapshots)?;
        if home.kind != kind {
            return Err(format!("{snapshots} is of another kind than the state of a sweep"));
        }
        let needed = count.checked_mul(room);
        if home.role != Role::Workspace || needed.is_none_or(|needed| needed > home.length) {
            return Err(format!("the snapshots of a sweep leave their buffer: {room} in {snapshots}"));
        }
        Ok(())
    }

    /// A block that may not run: what it establishes holds only inside of it.
    fn inner(&mut self, stmts: &[Stmt]) -> Result<Vec<bool>, String> {
        let (known, ranges) = (self.known.clone(), self.ranges.clone());
        self.block(stmts)?;
        self.ranges = ranges;
        Ok(core::mem::replace(&mut self.known, known))
    }

    fn block(&mut self, stmts: &[Stmt]) -> Result<(), String> {
        stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        match stmt {
            Stmt::Move { to, from } => {
                let kind = self.read(*from)?;
                self.set_within(*to, kind, self.range(*from))
            }
            Stmt::Map { to, args, .. } => {
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
                    self.ranges[reg.index()] = (least.max(0), most.min(length - 1));
                }
                Ok(())
            }
            Stmt::Holds { a } => self.reads(&[*a], Kind::Bool),
            Stmt::Stop | Stmt::Step => Ok(()),
            Stmt::For { counter, rounds, body, .. } => {
                self.reads(&[*rounds], Kind::Int)?;
                let most = self.range(*rounds).1.saturating_sub(1).max(0);
                // Only the loop may set it.
                let (known, ranges) = (self.known.clone(), self.ranges.clone());
                self.set_within(*counter, Kind::Int, (0, most))?;
                self.block(body)?;
                (self.known, self.ranges) = (known, ranges);
                Ok(())
            }
            Stmt::While { condition, holds, body } => {
                // The condition runs in any case.
                self.block(condition)?;
                self.reads(&[*holds], Kind::Bool)?;
                self.inner(body).map(drop)
            }
            Stmt::Sweep { counter, rounds, room, state, advance, back } => {
                self.reads(&[*rounds], Kind::Int)?;
                state.iter().try_for_each(|kept| self.kept(kept, *room))?;
                let most = self.range(*rounds).1.saturating_sub(1).max(0);
                let (known, ranges) = (self.known.clone(), self.ranges.clone());
                self.set_within(*counter, Kind::Int, (0, most))?;
                self.inner(advance)?;
                self.inner(back)?;
                (self.known, self.ranges) = (known, ranges);
                Ok(())
            }
            Stmt::If { holds, then, other } => {
                self.reads(&[*holds], Kind::Bool)?;
                let (yes, no) = (self.inner(then)?, self.inner(other)?);
                // What both set is set afterwards; neither's range is known.
                for (at, known) in self.known.iter_mut().enumerate() {
                    if !*known && yes[at] && no[at] {
                        (*known, self.ranges[at]) = (true, ANY);
                    }
                }
                Ok(())
            }
            Stmt::Each { axes, body } => {
                let (known, ranges) = (self.known.clone(), self.ranges.clone());
                for &(counter, from, to) in axes {
                    if from >= to {
                        return Err(format!("{counter} runs over nothing"));
                    }
                    self.set_within(counter, Kind::Int, (from, to - 1))?;
                }
                if body.iter().any(|stmt| !is_plain(stmt)) {
                    return Err("an `each` holds control".into());
                }
                independent(axes, body)?;
                self.block(body)?;
                (self.known, self.ranges) = (known, ranges);
                Ok(())
            }
            Stmt::Function { place, .. } => {
                self.place(place, "a function")?;
                self.changes(place.buf)
            }
            Stmt::Kernel { given, taken, .. } => {
                for given in given {
                    match given {
                        Given::Scalar(operand) => self.read(*operand).map(drop)?,
                        Given::Array(place) => self.place(place, "a kernel")?,
                    }
                }
                for taken in taken {
                    match taken {
                        Taken::Scalar(reg) => {
                            let kind = self.kind(*reg)?;
                            self.set(*reg, kind)?;
                        }
                        Taken::Array(place) => {
                            self.place(place, "a kernel")?;
                            self.changes(place.buf)?;
                        }
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

/// Whether a statement is not control, and may stand in an `Each`.
fn is_plain(stmt: &Stmt) -> bool {
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
/// and no two rounds store to one place.
fn independent(axes: &[(Reg, i64, i64)], body: &[Stmt]) -> Result<(), String> {
    for stmt in body {
        let Stmt::Store { buf, at, .. } = stmt else { continue };
        let other = body.iter().any(|stmt| match stmt {
            Stmt::Load { buf: from, at: place, .. } | Stmt::Store { buf: from, at: place, .. } => {
                from == buf && place != at
            }
            _ => false,
        });
        if other || !injective(axes, at) {
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
        reach += factor * rounds;
    }
    true
}

/// How many statements set each register.
fn count_sets(stmts: &[Stmt], found: &mut [u32]) -> Result<(), String> {
    for stmt in stmts {
        let mut set = |reg: Reg| -> Result<(), String> {
            *found.get_mut(reg.index()).ok_or_else(|| format!("there is no {reg}"))? += 1;
            Ok(())
        };
        match stmt {
            Stmt::Move { to, .. }
            | Stmt::Map { to, .. }
            | Stmt::Round32 { to, .. }
            | Stmt::Int { to, .. } => set(*to)?,
            Stmt::Index { to, .. }
            | Stmt::Compare { to, .. }
            | Stmt::And { to, .. }
            | Stmt::Or { to, .. } => set(*to)?,
            Stmt::Not { to, .. } | Stmt::Select { to, .. } | Stmt::Truncate { to, .. } => set(*to)?,
            Stmt::Convert { to, .. } | Stmt::Load { to, .. } => set(*to)?,
            Stmt::For { counter, .. } => set(*counter)?,
            Stmt::Each { axes, .. } => axes.iter().try_for_each(|axis| set(axis.0))?,
            Stmt::Sweep { counter, state, .. } => {
                set(*counter)?;
                // What is restored may be anything that was there before.
                for kept in state {
                    if let Kept::Scalar { reg, .. } = kept {
                        set(*reg)?;
                        set(*reg)?;
                    }
                }
            }
            Stmt::Kernel { taken, .. } => {
                for taken in taken {
                    if let Taken::Scalar(reg) = taken {
                        set(*reg)?;
                    }
                }
            }
            Stmt::Reduce { to, .. } | Stmt::Dots { to, .. } => {
                if let Taken::Scalar(reg) = to {
                    set(*reg)?;
                }
            }
            Stmt::Product { .. } | Stmt::AllFinite { .. } => {}
            Stmt::Store { .. } | Stmt::Finite { .. } | Stmt::Within { .. } | Stmt::Holds { .. } => {}
            Stmt::Stop | Stmt::Step | Stmt::While { .. } | Stmt::If { .. } => {}
            Stmt::Function { .. } | Stmt::Swap { .. } | Stmt::Reserve { .. } => {}
        }
        for block in stmt.blocks() {
            count_sets(block, found)?;
        }
    }
    Ok(())
}
