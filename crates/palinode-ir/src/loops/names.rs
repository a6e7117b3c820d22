//! The words of the text form: one table for printing and parsing.

use palinode_core::rules::Row;

use super::form::Kind;
use crate::named::named;
use crate::op::{Comparison, IntOp, Reduction};

named! {
    /// How a statement begins that sets neither a register nor elements.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Begins {
        Finite = "finite",
        Within = "within",
        Holds = "holds",
        Stop = "stop",
        Step = "step",
        For = "for",
        While = "while",
        If = "if",
        Sweep = "sweep",
        Each = "each",
        Swap = "swap",
        Reserve = "reserve",
    }
}

named! {
    /// What makes a register, besides rows of the rule table, integer arithmetic and comparisons.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Makes {
        Index = "index",
        Round32 = "round32",
        And = "and",
        Or = "or",
        Not = "not",
        Select = "select",
        Truncate = "truncate",
        Convert = "convert",
    }
}

named! {
    /// What makes whole arrays, besides reductions and rows of the rule table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Wholes {
        Product = "matmul",
        StrongProduct = "strong_matmul",
        Dots = "dots",
        StrongDots = "strong_dots",
        Kernel = "kernel",
    }
}

/// What stands behind `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Makes(Makes),
    Wholes(Wholes),
    Map(Row),
    Int(IntOp),
    Compare(Comparison),
    Reduce(Reduction),
}

impl Named {
    fn all() -> impl Iterator<Item = (&'static str, Named)> {
        let makes = Makes::ALL.into_iter().map(|x| (x.name(), Named::Makes(x)));
        let wholes = Wholes::ALL.into_iter().map(|x| (x.name(), Named::Wholes(x)));
        let rows = Row::ALL.iter().map(|&x| (x.name(), Named::Map(x)));
        let ints = IntOp::ALL.into_iter().map(|x| (x.name(), Named::Int(x)));
        let comparisons = Comparison::ALL.into_iter().map(|x| (x.name(), Named::Compare(x)));
        let reductions = Reduction::ALL.into_iter().map(|x| (x.name(), Named::Reduce(x)));
        makes.chain(wholes).chain(rows).chain(ints).chain(comparisons).chain(reductions)
    }

    /// What is called so.
    pub(super) fn of(name: &str) -> Option<Named> {
        Named::all().find(|(other, _)| *other == name).map(|(_, named)| named)
    }
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Real, Kind::Int, Kind::Bool];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Real => "real",
            Kind::Int => "int",
            Kind::Bool => "bool",
        }
    }
}

#[test]
fn no_two_have_one_name() {
    let mut names: Vec<&str> = Named::all().map(|(name, _)| name).collect();
    names.extend(Begins::ALL.map(Begins::name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
