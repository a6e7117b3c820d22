//! Values of a program: what they can be, and where in a source they came from.

use core::fmt;

use crate::named::named;

named! {
    /// The kind of a single element.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Elem {
        /// A real number: `f64`, or whatever number the program is run on.
        F64 = "f64",
        /// A real number that is rounded to single precision after every operation.
        F32 = "f32",
        /// A 64-bit integer: lengths, indices, counters.
        Int = "int",
        /// A truth value.
        Bool = "bool",
    }
}

impl Elem {
    /// Whether it can carry a derivative.
    pub fn is_real(self) -> bool {
        match self {
            Elem::F64 | Elem::F32 => true,
            Elem::Int | Elem::Bool => false,
        }
    }

    /// The bytes of one element in a run on real numbers of this size, single precision included.
    pub fn bytes(self, real: usize) -> usize {
        match self {
            Elem::F64 | Elem::F32 => real,
            Elem::Int => 8,
            Elem::Bool => 1,
        }
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value: a scalar (rank 0) or a dense array. How long an array is along each axis is known
/// when the program runs, not before: lengths are integer values of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type {
    /// What the elements are.
    pub elem: Elem,
    /// How many axes there are.
    pub rank: u8,
}

impl Type {
    /// A real scalar.
    pub const REAL: Type = Type::scalar(Elem::F64);
    /// An integer.
    pub const INT: Type = Type::scalar(Elem::Int);
    /// A truth value.
    pub const BOOL: Type = Type::scalar(Elem::Bool);

    /// A scalar of this kind.
    pub const fn scalar(elem: Elem) -> Type {
        Type { elem, rank: 0 }
    }

    /// An array of this kind with `rank` axes.
    pub const fn array(elem: Elem, rank: u8) -> Type {
        Type { elem, rank }
    }

    /// Whether it has no axes.
    pub fn is_scalar(self) -> bool {
        self.rank == 0
    }

    /// Whether it can carry a derivative.
    pub fn is_real(self) -> bool {
        self.elem.is_real()
    }

    /// The same kind of element with another rank.
    pub fn with_rank(self, rank: u8) -> Type {
        Type { rank, ..self }
    }

    /// The same rank with another kind of element.
    pub fn with_elem(self, elem: Elem) -> Type {
        Type { elem, ..self }
    }
}

impl fmt::Display for Type {
    /// `f64`, `f64[_]`, `int[_,_]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.elem.name())?;
        if self.rank > 0 {
            f.write_str("[_")?;
            for _ in 1..self.rank {
                f.write_str(",_")?;
            }
            f.write_str("]")?;
        }
        Ok(())
    }
}

/// A value of a function, assigned exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

impl Value {
    /// As an index into [`crate::Function::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A range of bytes of a source text; `0..0` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// No place in a source.
    pub const NONE: Span = Span { start: 0, end: 0 };

    /// From `start` up to, without, `end`.
    pub fn new(start: usize, end: usize) -> Span {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: narrow(start), end: narrow(end) }
    }

    /// Whether it says nothing.
    pub fn is_none(self) -> bool {
        self == Span::NONE
    }

    /// From the start of this to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// As a range of indices.
    pub fn range(self) -> core::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}
