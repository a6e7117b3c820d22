//! Values while a program becomes a loop form: registers, integers as indices, arrays that are stored or yet
//! to be computed.
//!
//! Invariant: a [`Handle`] stands for a buffer that something still needs; whoever has the only one may
//! change what is in it.

use std::rc::Rc;

use super::super::form::{Buf, Index, Kind, Operand};
use crate::op::Op;
use crate::types::{Elem, Type};

/// An integer: an index, and what is known of its range. If it is more than one register and a factor, it
/// does not overflow for any numbers in the registers' ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) index: Index,
    pub(super) least: i64,
    pub(super) most: i64,
}

impl Whole {
    pub(super) fn known(n: i64) -> Whole {
        Whole { index: Index::constant(n), least: n, most: n }
    }
}

/// A scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Single {
    Real(Operand),
    Whole(Whole),
    Truth(Operand),
}

impl Single {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Single::Real(_) => Kind::Real,
            Single::Whole(_) => Kind::Int,
            Single::Truth(_) => Kind::Bool,
        }
    }

    /// What stands for a value that is never looked at.
    pub(super) fn nothing(kind: Kind) -> Single {
        match kind {
            Kind::Real => Single::Real(Operand::Real(0.0)),
            Kind::Int => Single::Whole(Whole::known(0)),
            Kind::Bool => Single::Truth(Operand::Bool(false)),
        }
    }
}

/// A value of the program.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Single(Single),
    Array(Arr),
    Log(Log),
}

/// An array of known lengths.
#[derive(Clone, Debug)]
pub(super) struct Arr {
    pub(super) elem: Elem,
    pub(super) shape: Rc<[usize]>,
    pub(super) def: Def,
}

/// Where the elements of an array come from.
#[derive(Clone, Debug)]
pub(super) enum Def {
    /// Memory: the element at the indices `i` is at `first + sum of strides[j] * i[j]`.
    Stored { handle: Rc<Handle>, first: Index, strides: Rc<[i64]> },
    /// All the same.
    Filled(Single),
    /// `0, 1, 2, ...`
    Iota,
    /// An elementwise operation; scalars count for every element.
    Map(Rc<Map>),
    /// Another array with other indices: along each of its axes, `start + step *` the index along an axis.
    Moved { source: Rc<Arr>, axes: Rc<[Along]> },
    /// Arrays one after another along an axis.
    Concat { axis: usize, parts: Rc<[Arr]> },
}

/// An index along an axis of a source, from the indices of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Along {
    pub(super) start: Index,
    /// The axis of the result, and the step.
    pub(super) by: Option<(usize, i64)>,
}

/// An elementwise operation yet to be done.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) op: Op,
    pub(super) ty: Type,
    pub(super) args: Vec<Val>,
    /// About how many additions an element costs.
    pub(super) cost: u32,
}

/// A vector that is pushed to: its elements so far, and memory that is long enough.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) elem: Elem,
    pub(super) handle: Rc<Handle>,
    pub(super) length: Whole,
    /// How much longer it may have become in this round of the innermost loop that carries it.
    pub(super) grown: i64,
    /// Whether a loop around carries it: then its length is not bounded yet.
    pub(super) is_carried: bool,
}

/// A buffer in use.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) buf: Buf,
}

/// The distances between neighbours along each axis of an array in row-major order.
pub(super) fn row_major(shape: &[usize]) -> Rc<[i64]> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as i64;
    }
    strides.into()
}

impl Val {
    /// An array of this shape filled with a scalar; the scalar itself if there are no axes.
    pub(super) fn filled(single: Single, shape: &[usize]) -> Val {
        if shape.is_empty() {
            return Val::Single(single);
        }
        let elem = match single.kind() {
            Kind::Real => Elem::F64,
            Kind::Int => Elem::Int,
            Kind::Bool => Elem::Bool,
        };
        Val::Array(Arr { elem, shape: shape.into(), def: Def::Filled(single) })
    }
}

impl Arr {
    /// All elements of a buffer, in row-major order.
    pub(super) fn whole(elem: Elem, shape: Rc<[usize]>, handle: Rc<Handle>) -> Arr {
        let strides = row_major(&shape);
        Arr { elem, shape, def: Def::Stored { handle, first: Index::constant(0), strides } }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of(self.elem)
    }

    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The handle and the first element, if the elements are in memory one after another in row-major order.
    pub(super) fn contiguous(&self) -> Option<(&Rc<Handle>, &Index)> {
        let Def::Stored { handle, first, strides } = &self.def else { return None };
        let wanted = row_major(&self.shape);
        let mut axes = self.shape.iter().zip(strides.iter().zip(wanted.iter()));
        // The stride along an axis of one element means nothing.
        let in_order = axes.all(|(&length, (a, b))| a == b || length == 1);
        (in_order || self.elements() == 0).then_some((handle, first))
    }

    /// Whether an element is computed, not only found.
    pub(super) fn is_computed(&self) -> bool {
        match &self.def {
            Def::Map(_) => true,
            Def::Stored { .. } | Def::Filled(_) | Def::Iota => false,
            Def::Moved { source, .. } => source.is_computed(),
            Def::Concat { parts, .. } => parts.iter().any(Arr::is_computed),
        }
    }

    /// Whether anything of it is in this buffer.
    pub(super) fn reads(&self, buf: Buf) -> bool {
        match &self.def {
            Def::Stored { handle, .. } => handle.buf == buf,
            Def::Filled(_) | Def::Iota => false,
            Def::Map(map) => map.args.iter().any(|arg| matches!(arg, Val::Array(array) if array.reads(buf))),
            Def::Moved { source, .. } => source.reads(buf),
            Def::Concat { parts, .. } => parts.iter().any(|part| part.reads(buf)),
        }
    }

    /// About how many additions an element costs.
    pub(super) fn cost(&self) -> u32 {
        match &self.def {
            Def::Map(map) => map.cost,
            Def::Stored { .. } | Def::Filled(_) | Def::Iota => 0,
            Def::Moved { source, .. } => source.cost(),
            Def::Concat { parts, .. } => parts.iter().map(Arr::cost).max().unwrap_or(0),
        }
    }
}
