//! The loop form: what a program becomes before it is machine code.
//!
//! Scalars are in registers, arrays in buffers of known lengths. Statements read and write elements; loops
//! are loops, and [`Stmt::Each`] is a loop whose rounds may run in any order. There is no error value: where
//! a program could go wrong, the form *stops* ([`Stmt::Within`], [`Stmt::Holds`], [`Stmt::Stop`], a sticky
//! [`Stmt::Finite`] or an overflow), and the interpreter runs the program again and says what happened.
//!
//! Invariants, checked by [`super::verify()`], whose header lists all of them:
//! - a register is set before it is read, on every path, and holds values of one kind;
//! - every index of a load or store lies in its buffer: by the ranges of the counters in it, or because a
//!   [`Stmt::Within`] before it says so;
//! - a buffer's memory is its own: no two overlap, so an `Each` may store to one and load from others in any
//!   order; where it loads from the buffer that it stores to, both are at the same index;
//! - [`Stmt::Swap`] exchanges the memory of two workspace buffers of one type and length.

use std::sync::Arc;

use palinode_core::rules::Row;

use crate::op::{Comparison, IntOp, Op, Reduction, Rule};
use crate::types::{Elem, Span};

/// How deep blocks may nest: whatever walks a form must not run out of stack.
pub(super) const DEEPEST: usize = 256;

/// What a register or an element of a buffer is. Single precision is kept as a rounded double.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A double.
    Real,
    /// A 64-bit integer.
    Int,
    /// A truth value; a byte in a buffer.
    Bool,
}

impl Kind {
    /// The kind of values of an element type.
    pub fn of(elem: Elem) -> Kind {
        match elem {
            Elem::F64 | Elem::F32 => Kind::Real,
            Elem::Int => Kind::Int,
            Elem::Bool => Kind::Bool,
        }
    }

    /// The bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Kind::Real | Kind::Int => 8,
            Kind::Bool => 1,
        }
    }
}

/// A register. It may be set any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

impl Reg {
    /// As an index into [`LoopForm::registers`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Buf(pub u32);

impl Buf {
    /// As an index into [`LoopForm::buffers`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an operation is applied to. Reals are equal if their bits are.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    /// What is in a register.
    Reg(Reg),
    /// A real literal.
    Real(f64),
    /// An integer literal.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl PartialEq for Operand {
    fn eq(&self, other: &Operand) -> bool {
        match (self, other) {
            (Operand::Reg(a), Operand::Reg(b)) => a == b,
            (Operand::Real(a), Operand::Real(b)) => a.to_bits() == b.to_bits(),
            (Operand::Int(a), Operand::Int(b)) => a == b,
            (Operand::Bool(a), Operand::Bool(b)) => a == b,
            (Operand::Reg(_) | Operand::Real(_) | Operand::Int(_) | Operand::Bool(_), _) => false,
        }
    }
}

/// An integer `constant + sum of factor * register`, which does not overflow: a place in a buffer, or a
/// number of rounds. Terms are sorted by register, and no factor is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Index {
    /// What does not depend on registers.
    pub constant: i64,
    /// Registers and their factors.
    pub terms: Vec<(Reg, i64)>,
}

impl Index {
    /// A number.
    pub fn constant(constant: i64) -> Index {
        Index { constant, terms: Vec::new() }
    }

    /// What a register holds.
    pub fn reg(reg: Reg) -> Index {
        Index { constant: 0, terms: vec![(reg, 1)] }
    }

    /// The number, if it depends on no register.
    pub fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The sum with `factor` times another; `None` on overflow.
    pub fn plus(&self, other: &Index, factor: i64) -> Option<Index> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for &(reg, own) in &other.terms {
            let own = own.checked_mul(factor)?;
            match sum.terms.binary_search_by_key(&reg, |term| term.0) {
                Ok(at) => sum.terms[at].1 = sum.terms[at].1.checked_add(own)?,
                Err(at) => sum.terms.insert(at, (reg, own)),
            }
        }
        sum.terms.retain(|term| term.1 != 0);
        Some(sum)
    }

    /// The sum with a number.
    pub fn offset(&self, by: i64) -> Option<Index> {
        self.plus(&Index::constant(by), 1)
    }

    /// A multiple.
    pub fn times(&self, factor: i64) -> Option<Index> {
        Index::default().plus(self, factor)
    }
}

/// Where a buffer's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// An array that is given, by its number among the inputs; only read.
    Input(usize),
    /// The workspace.
    Workspace,
    /// Memory of its own that [`Stmt::Reserve`] makes longer: how much it needs is known only at run time.
    Growing,
}

/// Memory for elements of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What the elements are.
    pub kind: Kind,
    /// How many there are; 0 for a growing one, as long as nothing is reserved.
    pub length: u64,
    /// Where its memory comes from.
    pub role: Role,
    /// The source's name for what was in it first.
    pub name: Option<Arc<str>>,
}

/// Elements of a buffer one after another, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buf: Buf,
    /// The first element.
    pub at: Index,
    /// The lengths of the axes.
    pub shape: Vec<usize>,
}

impl Place {
    /// The first elements of a buffer.
    pub fn first(buf: Buf, shape: Vec<usize>) -> Place {
        Place { buf, at: Index::constant(0), shape }
    }

    /// How many elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A matrix in a buffer: entry `(i, j)` is at `at + i * steps[0] + j * steps[1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The buffer.
    pub buf: Buf,
    /// The first entry.
    pub at: Index,
    /// How many rows and columns.
    pub sizes: [usize; 2],
    /// The distances from row to row and from column to column.
    pub steps: [usize; 2],
}

impl Matrix {
    /// The distance from the first entry to just past the last.
    pub fn span(&self) -> Option<usize> {
        let [rows, columns] = self.sizes;
        if rows == 0 || columns == 0 {
            return Some(0);
        }
        let down = (rows - 1).checked_mul(self.steps[0])?;
        let along = (columns - 1).checked_mul(self.steps[1])?;
        down.checked_add(along)?.checked_add(1)
    }
}

/// What a kernel is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A scalar.
    Scalar(Operand),
    /// An array.
    Array(Place),
}

/// Where a kernel's result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A scalar.
    Scalar(Reg),
    /// An array.
    Array(Place),
}

/// A part of the state of a sweep, and the buffer with its snapshots, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A number or truth value.
    Scalar {
        /// Its register.
        reg: Reg,
        /// Its snapshots.
        snapshots: Buf,
    },
    /// The first elements of a buffer.
    Array {
        /// The buffer.
        buf: Buf,
        /// How many elements.
        count: usize,
        /// Their snapshots.
        snapshots: Buf,
    },
}

impl Kept {
    /// The buffer with its snapshots.
    pub fn snapshots(self) -> Buf {
        match self {
            Kept::Scalar { snapshots, .. } | Kept::Array { snapshots, .. } => snapshots,
        }
    }
}

/// A statement. `to` is the register that it sets; `a`, `b`, `from`, `args` are what it reads.
#[allow(missing_docs)] // the fields that the lines above and each variant's own line name
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `to = from`
    Move { to: Reg, from: Operand },
    /// A row of the rule table on reals.
    Map { rule: Rule, to: Reg, args: Vec<Operand> },
    /// The real, rounded to single precision.
    Round32 { to: Reg, a: Operand },
    /// Integer arithmetic; an overflow or a division by zero stops.
    Int { op: IntOp, to: Reg, a: Operand, b: Operand },
    /// The integer that an index is.
    Index { to: Reg, index: Index },
    /// A comparison of two reals (which the hook for decisions sees) or of two integers.
    Compare { op: Comparison, to: Reg, a: Operand, b: Operand },
    /// Both, at least one.
    And { to: Reg, a: Operand, b: Operand },
    /// At least one.
    Or { to: Reg, a: Operand, b: Operand },
    /// The opposite.
    Not { to: Reg, a: Operand },
    /// `if holds { a } else { b }`
    Select { to: Reg, holds: Operand, a: Operand, b: Operand },
    /// The integer part of a real; stops if it is no 64-bit integer.
    Truncate { to: Reg, a: Operand },
    /// The real of an integer.
    Convert { to: Reg, a: Operand },
    /// An element.
    Load { to: Reg, buf: Buf, at: Index },
    /// Sets an element.
    Store { buf: Buf, at: Index, from: Operand },
    /// Notes that a real should be finite: otherwise the run stops, at the latest at its end.
    Finite { a: Operand },
    /// The same for all reals of a place.
    AllFinite { place: Place },
    /// Stops unless `0 <= a < length`.
    Within { a: Operand, length: Operand },
    /// Stops unless it holds.
    Holds { a: Operand },
    /// Stops.
    Stop,
    /// Runs the body for `counter` in `0..rounds`, or from the last down to 0. A negative number of rounds
    /// counts as none.
    For {
        /// The counter.
        counter: Reg,
        /// How many rounds.
        rounds: Operand,
        /// From the last round to the first.
        descending: bool,
        /// Whether its rounds are steps of the program.
        counts: bool,
        /// What a round does.
        body: Vec<Stmt>,
    },
    /// While the condition gives true, the body; its rounds are steps of the program.
    While {
        /// Computes the condition.
        condition: Vec<Stmt>,
        /// What it gives.
        holds: Operand,
        /// What a round does.
        body: Vec<Stmt>,
    },
    /// Reverses a loop: runs `back` for the rounds from the last to the first, each with the state before
    /// that round. `advance` makes a state from the one before it; some states are kept as snapshots,
    /// restored and advanced as a schedule says. With a `turn`, the rounds are first run to the last state,
    /// with which it runs. `back` and `turn` may overwrite the state. Each round of either way is a step, and
    /// so is the turn.
    Sweep {
        /// The counter of both blocks.
        counter: Reg,
        /// How many rounds.
        rounds: Operand,
        /// How many snapshots there is memory for. If 0, there is at most one round or turn, or no state.
        room: u64,
        /// What changes from round to round.
        state: Vec<Kept>,
        /// Makes the next state.
        advance: Vec<Stmt>,
        /// What is done once between the two ways, with the last state.
        turn: Option<Vec<Stmt>>,
        /// Goes through a round backwards.
        back: Vec<Stmt>,
    },
    /// One of two.
    If {
        /// Which.
        holds: Operand,
        /// If it holds.
        then: Vec<Stmt>,
        /// If not.
        other: Vec<Stmt>,
    },
    /// Runs the body for every element of a box, in any order: counters, each from a number up to another.
    /// The last one runs fastest.
    Each {
        /// The counters and their ranges.
        axes: Vec<(Reg, i64, i64)>,
        /// What is done for an element; no control.
        body: Vec<Stmt>,
    },
    /// Applies a function of reals to elements one after another, in place.
    Function { rule: Rule, place: Place },
    /// Sums along the middle one of three axes, in the order of [`palinode_core::sums`], or the largest or
    /// smallest element there, as the interpreter finds it; then the axis is not empty.
    Reduce { kind: Reduction, from: Place, to: Taken },
    /// The product of two matrices: chains, as [`palinode_core::sums`] defines them, which start from 0 or,
    /// if it adds, from what is in `to`.
    Product { strong: bool, a: Matrix, b: Matrix, to: Place, adds: bool },
    /// The dot product of every row of a matrix and a vector, into as many places, or of its only row into a
    /// register.
    Dots { strong: bool, a: Matrix, x: Place, to: Taken },
    /// An operation of programs by a kernel; stops if it fails.
    Kernel { op: Op, single: bool, given: Vec<Given>, taken: Vec<Taken> },
    /// Exchanges the memory of two buffers.
    Swap { a: Buf, b: Buf },
    /// Makes a growing buffer long enough for so many elements; what is in it stays.
    Reserve { buf: Buf, length: Index },
    /// Counts a step: a call.
    Step,
}

/// What a program is given or gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Port {
    /// A scalar in a register; an input is rounded to single precision if the program says so.
    Scalar(Operand),
    /// An array.
    Array(Place),
}

impl Port {
    /// The registers that it reads, or sets: a scalar, or what the place of an array depends on.
    pub fn registers(&self) -> impl Iterator<Item = Reg> {
        let (scalar, terms) = match self {
            Port::Scalar(Operand::Reg(reg)) => (Some(*reg), &[][..]),
            Port::Scalar(_) => (None, &[][..]),
            Port::Array(place) => (None, &place.at.terms[..]),
        };
        scalar.into_iter().chain(terms.iter().map(|term| term.0))
    }
}

/// Where what is in a register comes from, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// How the source calls it.
    pub name: Option<Arc<str>>,
    /// What sets it.
    pub span: Span,
}

/// A program as loops over buffers, for inputs of certain shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopForm {
    /// The name of the program's entry.
    pub name: Arc<str>,
    /// What each input is: its register, or its buffer. Integer scalars are known when the form is made, and
    /// stand in it as numbers.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
    /// The registers.
    pub registers: Vec<Kind>,
    /// Where they come from, of the first ones; those that passes add have no origin.
    pub origins: Vec<Origin>,
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// What it does.
    pub body: Vec<Stmt>,
    /// Whether infinities and NaN stop it.
    pub traps: bool,
    /// The loops of the source: the counter of each, and where it stands. A loop may stand in several places,
    /// forwards and backwards.
    pub spans: Vec<(Reg, Span)>,
}

impl LoopForm {
    /// What an operand is.
    ///
    /// # Panics
    /// If there is no such register.
    pub fn kind(&self, operand: Operand) -> Kind {
        match operand {
            Operand::Reg(reg) => self.registers[reg.index()],
            Operand::Real(_) => Kind::Real,
            Operand::Int(_) => Kind::Int,
            Operand::Bool(_) => Kind::Bool,
        }
    }
}

/// Why a program has no loop form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What has no loop form.
    pub what: String,
    /// Where.
    pub span: Span,
}

/// How a row of the rule table is computed: by arithmetic that every machine has, or by a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A few instructions.
    Arithmetic,
    /// A call.
    Function,
}

impl Way {
    /// How this row is computed.
    pub fn of(rule: Rule) -> Way {
        match rule.row {
            Row::Add | Row::Subtract | Row::Multiply | Row::StrongMul | Row::Divide | Row::Negate => {
                Way::Arithmetic
            }
            Row::Recip | Row::Abs | Row::Sqrt | Row::Relu => Way::Arithmetic,
            Row::Powi if matches!(rule.parameter, -1..=3) => Way::Arithmetic,
            // Every other row is a function, which is always right.
            _ => Way::Function,
        }
    }
}

/// The blocks inside of a statement.
macro_rules! blocks {
    ($stmt:expr) => {
        match $stmt {
            Stmt::For { body, .. } | Stmt::Each { body, .. } => vec![body],
            Stmt::While { condition, body, .. } => vec![condition, body],
            Stmt::If { then, other, .. } => vec![then, other],
            Stmt::Sweep { advance, turn, back, .. } => {
                let (mut blocks, turn) = (vec![advance], turn.into_iter());
                blocks.extend(turn);
                blocks.push(back);
                blocks
            }
            _ => Vec::new(),
        }
    };
}

impl Stmt {
    /// The blocks inside.
    pub fn blocks(&self) -> Vec<&Vec<Stmt>> {
        blocks!(self)
    }

    /// The blocks inside, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        blocks!(self)
    }

    /// Calls `f` with every buffer of this statement and the index at which it is used, but not with those in
    /// its blocks; without an index where all of the buffer is meant.
    fn for_each_access(&mut self, f: &mut dyn FnMut(&mut Buf, Option<&mut Index>)) {
        match self {
            Stmt::Load { buf, at, .. } | Stmt::Store { buf, at, .. } => f(buf, Some(at)),
            Stmt::Reserve { buf, length } => f(buf, Some(length)),
            Stmt::Function { place, .. } | Stmt::AllFinite { place } => {
                f(&mut place.buf, Some(&mut place.at))
            }
            Stmt::Swap { a, b } => {
                f(a, None);
                f(b, None);
            }
            Stmt::Reduce { from, to, .. } => {
                f(&mut from.buf, Some(&mut from.at));
                to.for_access(f);
            }
            Stmt::Product { a, b, to, .. } => {
                f(&mut a.buf, Some(&mut a.at));
                f(&mut b.buf, Some(&mut b.at));
                f(&mut to.buf, Some(&mut to.at));
            }
            Stmt::Dots { a, x, to, .. } => {
                f(&mut a.buf, Some(&mut a.at));
                f(&mut x.buf, Some(&mut x.at));
                to.for_access(f);
            }
            Stmt::Sweep { state, .. } => {
                for kept in state {
                    match kept {
                        Kept::Scalar { snapshots, .. } => f(snapshots, None),
                        Kept::Array { buf, snapshots, .. } => {
                            f(buf, None);
                            f(snapshots, None);
                        }
                    }
                }
            }
            Stmt::Kernel { given, taken, .. } => {
                for given in given {
                    if let Given::Array(place) = given {
                        f(&mut place.buf, Some(&mut place.at));
                    }
                }
                taken.iter_mut().for_each(|taken| taken.for_access(f));
            }
            Stmt::Move { .. } | Stmt::Map { .. } | Stmt::Round32 { .. } | Stmt::Int { .. } => {}
            Stmt::Index { .. } | Stmt::Compare { .. } | Stmt::And { .. } | Stmt::Or { .. } => {}
            Stmt::Not { .. } | Stmt::Select { .. } | Stmt::Truncate { .. } | Stmt::Convert { .. } => {}
            Stmt::Finite { .. } | Stmt::Within { .. } | Stmt::Holds { .. } | Stmt::Stop => {}
            Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. } | Stmt::Each { .. } | Stmt::Step => {}
        }
    }

    /// Calls `f` with every buffer of this statement, but not of those in its blocks.
    pub fn for_each_buffer(&mut self, f: &mut dyn FnMut(&mut Buf)) {
        self.for_each_access(&mut |buf, _| f(buf));
    }

    /// Calls `f` with every buffer of this statement at an index, and that, but not with those in its blocks.
    pub(super) fn for_each_place(&mut self, f: &mut dyn FnMut(&mut Buf, &mut Index)) {
        self.for_each_access(&mut |buf, index| index.into_iter().for_each(|index| f(buf, index)));
    }

    /// Calls `f` with every index of this statement, but not of those in its blocks.
    pub fn for_each_index(&mut self, f: &mut dyn FnMut(&mut Index)) {
        if let Stmt::Index { index, .. } = self {
            f(index);
        }
        self.for_each_access(&mut |_, index| index.into_iter().for_each(&mut *f));
    }
}

impl Taken {
    fn for_access(&mut self, f: &mut dyn FnMut(&mut Buf, Option<&mut Index>)) {
        if let Taken::Array(place) = self {
            f(&mut place.buf, Some(&mut place.at));
        }
    }
}
