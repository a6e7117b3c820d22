//! A value while a body is lowered: an SSA value, or a number that is known already, with what is known of
//! its lengths.

use crate::pal::syntax::ast::{Annotation, Scalar};
use crate::program::Value;
use crate::types::{Elem, Type};

pub(super) type VarId = usize;

/// A number that is known before the program runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Known {
    Int(i64),
    Real(f64),
    Bool(bool),
}

#[derive(Clone, Debug)]
pub(crate) struct Val {
    /// The SSA value; a literal gets one when an operation needs it.
    pub(crate) value: Option<Value>,
    pub(crate) known: Option<Known>,
    pub(crate) ty: Type,
    /// The length along each axis, where it is known.
    pub(crate) lens: Vec<Option<i64>>,
    /// For an integer: another one and what was added to it, so that `(i + 2) - i` is known.
    pub(crate) offset: Option<(Value, i64)>,
}

impl Val {
    pub(crate) fn new(value: Value, ty: Type) -> Val {
        Val { value: Some(value), known: None, ty, lens: vec![None; usize::from(ty.rank)], offset: None }
    }

    pub(crate) fn with_lens(mut self, lens: Vec<Option<i64>>) -> Val {
        if lens.len() == usize::from(self.ty.rank) {
            self.lens = lens;
        }
        self
    }

    fn literal(known: Known, ty: Type) -> Val {
        Val { value: None, known: Some(known), ty, lens: Vec::new(), offset: None }
    }

    pub(crate) fn int(value: i64) -> Val {
        Val::literal(Known::Int(value), Type::INT)
    }

    pub(crate) fn real(value: f64) -> Val {
        Val::literal(Known::Real(value), Type::REAL)
    }

    pub(crate) fn bool(value: bool) -> Val {
        Val::literal(Known::Bool(value), Type::BOOL)
    }

    pub(crate) fn known_int(&self) -> Option<i64> {
        match self.known {
            Some(Known::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// An integer as another one plus a number.
    pub(crate) fn as_offset(&self) -> Option<(Value, i64)> {
        if self.ty != Type::INT {
            return None;
        }
        self.offset.or_else(|| self.value.map(|value| (value, 0)))
    }

    /// The same value, of which only the type is known.
    pub(crate) fn forgotten(mut self) -> Val {
        if self.value.is_some() {
            self.known = None;
        }
        self.lens.iter_mut().for_each(|len| *len = None);
        self
    }
}

/// What a variable holds at a point of the program.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// Nothing yet.
    Unset,
    /// Something that could not be lowered; the reason has been reported, or another attempt will be made.
    Poison,
    Val(Val),
}

impl Held {
    pub(crate) fn val(&self) -> Option<&Val> {
        match self {
            Held::Val(val) => Some(val),
            Held::Unset | Held::Poison => None,
        }
    }
}

impl From<Option<Val>> for Held {
    fn from(val: Option<Val>) -> Held {
        val.map_or(Held::Poison, Held::Val)
    }
}

/// A type as people say it.
pub(crate) fn describe(ty: Type) -> String {
    let one = match ty.elem {
        Elem::F64 | Elem::F32 => "real number",
        Elem::Int => "integer",
        Elem::Bool => "truth value",
    };
    let article = if one == "integer" { "an" } else { "a" };
    match ty.rank {
        0 => format!("{article} {one}"),
        1 => format!("a vector of {one}s"),
        2 => format!("a matrix of {one}s"),
        rank => format!("an array of {one}s with {rank} axes"),
    }
}

/// A rank as people say it.
pub(crate) fn describe_rank(rank: u8) -> String {
    match rank {
        0 => "a single number".into(),
        1 => "a vector".into(),
        2 => "a matrix".into(),
        rank => format!("an array with {rank} axes"),
    }
}

/// The type that an annotation says.
pub(crate) fn annotated(annotation: &Annotation) -> Type {
    let elem = match annotation.elem {
        Some((Scalar::Int, _)) => Elem::Int,
        Some((Scalar::Bool, _)) => Elem::Bool,
        Some((Scalar::Real, _)) | None => Elem::F64,
    };
    Type::array(elem, annotation.shape.as_ref().map_or(0, Vec::len) as u8)
}
