//! Register code: what the interpreter runs.
//!
//! A frame has four register files: real scalars, integers, truth values and arrays; an instruction names
//! slots of the file that its kind implies. Slots start with the parameters, then the constants. Control is
//! flat: loops and branches are jumps. Every instruction is small and plain data; what does not fit is in a
//! table of its own ([`General`], [`CallSite`], [`FusedSite`], lists of slots).

use std::sync::Arc;

use palinode_core::rules;
use smallvec::SmallVec;

use super::bookkeeping::Registers;
use crate::op::{IntOp, Keep, Literal, Op};
use crate::types::{Elem, Span, Type};

/// The number of a register in its file.
pub(super) type Slot = u32;
/// The number of an instruction in its function.
pub(super) type Target = u32;

/// Which register file a value lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Real,
    Int,
    Bool,
    Array,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Real, Kind::Int, Kind::Bool, Kind::Array];

    pub(super) fn of(ty: Type) -> Kind {
        match ty.elem {
            _ if ty.rank > 0 => Kind::Array,
            Elem::F64 | Elem::F32 => Kind::Real,
            Elem::Int => Kind::Int,
            Elem::Bool => Kind::Bool,
        }
    }
}

/// A register of some file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) slot: Slot,
}

/// An operand; an array is taken out of its register at its last use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) place: Place,
    pub(super) take: bool,
}

/// Instructions that have the same fields stand together.
macro_rules! instructions {
    ($($($name:ident)+: $fields:tt;)*) => {
        /// One instruction. `d` is where the result goes; `a`, `b`, `c` are operands, `i`, `j`, `k` integers,
        /// `x` an element.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Ins {
            $($($name $fields,)+)*
            Return,
        }
    };
}

instructions! {
    Add Sub Mul Div StrongMul: { d: Slot, a: Slot, b: Slot };
    Neg Round32 Stop: { d: Slot, a: Slot };
    Map1: { row: rules::Row, d: Slot, a: Slot, parameter: i32 };
    Map2: { row: rules::Row, d: Slot, a: Slot, b: Slot };
    Map3: { row: rules::Row, d: Slot, a: Slot, b: Slot, c: Slot };
    SelectReal SelectInt SelectBool: { d: Slot, c: Slot, a: Slot, b: Slot };
    LessReal LessEqReal EqualReal LessInt LessEqInt EqualInt: { d: Slot, a: Slot, b: Slot };
    IntAdd IntSub IntMul And Or: { d: Slot, a: Slot, b: Slot };
    IntOther: { op: IntOp, d: Slot, a: Slot, b: Slot };
    Not RealToInt IntToReal MoveReal MoveInt MoveBool: { d: Slot, a: Slot };
    // The array leaves `a`.
    TakeArray: { d: Slot, a: Slot };
    // The array is in both afterwards.
    ShareArray: { d: Slot, a: Slot };
    Release: { a: Slot };

    Jump: { to: Target };
    JumpIfNot: { c: Slot, to: Target };
    // Ends a round of a `while` and counts a step.
    JumpBack: { to: Target };
    ForUp ForDown: { k: Slot, n: Slot, end: Target };
    NextUp: { k: Slot, n: Slot, body: Target };
    NextDown: { k: Slot, body: Target };

    ReadReal1 ReadInt1 ReadBool1: { d: Slot, a: Slot, i: Slot };
    ReadReal2 ReadInt2: { d: Slot, a: Slot, i: Slot, j: Slot };
    WriteReal1 WriteInt1 WriteBool1 AddAt1: { a: Slot, i: Slot, x: Slot };
    WriteReal2 WriteInt2 AddAt2: { a: Slot, i: Slot, j: Slot, x: Slot };
    PushReal PushInt PushBool: { a: Slot, x: Slot };
    // Pushes the registers that the function lists from `list` on.
    PushReals: { a: Slot, list: u32, count: u32 };
    Dim: { d: Slot, a: Slot, axis: u32 };

    // Checks lengths, makes the result arrays, counts elements with `k` below `n`.
    Fused: { site: u32, k: Slot, n: Slot, end: Target };
    NextElement: { k: Slot, n: Slot, body: Target };
    LoadReal LoadInt LoadBool: { d: Slot, a: Slot, k: Slot };
    StoreReal StoreInt StoreBool: { a: Slot, k: Slot, x: Slot };

    // Begins the reverse sweep through a loop that kept nothing.
    SweepStart: { site: u32 };
    // Takes snapshots and restores them until a block is to run, and jumps there.
    SweepNext: { site: u32 };
    General Call: { site: u32 };
}

/// An operation that is done by a kernel over whole arrays.
#[derive(Clone, Debug)]
pub(super) struct General {
    pub(super) op: Op,
    pub(super) operands: Vec<Operand>,
    pub(super) results: Vec<Place>,
    /// Whether the results are rounded to single precision.
    pub(super) single: bool,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub(super) struct CallSite {
    pub(super) callee: u32,
    pub(super) operands: Vec<Operand>,
    pub(super) results: Vec<Place>,
}

/// A sweep: where its state and cotangents are, and its blocks.
#[derive(Clone, Debug)]
pub(super) struct SweepSite {
    pub(super) keep: Keep,
    pub(super) rounds: Slot,
    pub(super) counter: Slot,
    pub(super) state: Vec<Place>,
    /// With their names.
    pub(super) cotangents: Vec<(Place, Option<Arc<str>>)>,
    pub(super) span: Span,
    pub(super) advance: Target,
    pub(super) back: Target,
    pub(super) turn: Option<Target>,
    pub(super) end: Target,
}

/// The arrays of a fused operation.
#[derive(Clone, Debug)]
pub(super) struct FusedSite {
    pub(super) operands: Vec<Slot>,
    pub(super) results: Vec<FusedResult>,
    /// How many additions of an element to an element there are for each place.
    pub(super) additions: u64,
    /// How many instructions there are for each place.
    pub(super) instructions: u64,
    /// What they do, to be done by runs of places.
    pub(super) stages: Stages,
}

/// What a fused operation does with each place: elementwise operations, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Stages {
    pub(super) list: Vec<Stage>,
    /// How many strips of reals, integers and truth values there are.
    pub(super) strips: [u32; 3],
    /// The strip of each result.
    pub(super) results: Vec<u32>,
    /// Whether a stage compares real numbers.
    pub(super) compares_reals: bool,
}

/// An elementwise operation on strips: runs of elements that stay in the cache.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) op: Op,
    pub(super) args: SmallVec<[Term; 3]>,
    /// The kind of the last operand, and of the result.
    pub(super) from: Kind,
    pub(super) to: Kind,
    /// The strip of the result; no operand is in it.
    pub(super) strip: u32,
    /// Whether the result is rounded to single precision.
    pub(super) rounds: bool,
}

/// An operand of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Term {
    /// The elements of an array operand of the fused operation, by its number.
    Operand(u32),
    /// The same for all places, from a register.
    Same(Slot),
    /// What an earlier stage made.
    Strip(u32),
}

/// A result of a fused operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct FusedResult {
    pub(super) slot: Slot,
    pub(super) elem: Elem,
    /// An operand that dies is in the register: the result goes over it.
    pub(super) over_operand: bool,
}

/// A function as the interpreter runs it.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionCode {
    pub(super) name: Arc<str>,
    pub(super) code: Vec<Ins>,
    /// Where each instruction comes from.
    pub(super) spans: Vec<Span>,
    /// How many registers of each file, in the order of [`Kind::ALL`].
    pub(super) sizes: [usize; 4],
    /// What is charged for them.
    pub(super) registers: Registers,
    pub(super) params: Vec<Place>,
    pub(super) param_types: Vec<Type>,
    pub(super) param_names: Vec<Arc<str>>,
    pub(super) results: Vec<Operand>,
    /// The first register of the constants of each file, and the constants.
    pub(super) first_constants: [usize; 3],
    pub(super) real_constants: Vec<Literal>,
    pub(super) int_constants: Vec<i64>,
    pub(super) bool_constants: Vec<bool>,
    pub(super) generals: Vec<General>,
    pub(super) calls: Vec<CallSite>,
    pub(super) fused: Vec<FusedSite>,
    pub(super) sweeps: Vec<SweepSite>,
    pub(super) lists: Vec<Slot>,
    /// The instructions at which a `while` goes on or ends, and the loop.
    pub(super) whiles: Vec<(usize, Span)>,
}
