//! The syntax tree: what was written, with places, before anything is known about types.

use crate::implicit::Form;
use crate::named::named;
use crate::op::Search;
use crate::pal::units::Unit;
use crate::types::Span;
use std::sync::Arc;

/// A name where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: Arc<str>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// How deep the tree below is, so that nothing that walks it can run out of stack.
    pub(crate) depth: u16,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Int(i64),
    Real(f64),
    /// A number with a unit.
    Quantity(f64, Unit),
    Bool(bool),
    Name(Arc<str>),
    List(Vec<Expr>),
    Unary(UnaryOp, Box<Expr>),
    /// `first op a op b ...`, worked off from the left: a sum of any length is one node, so that nothing that
    /// walks a tree goes deeper for longer lines. What binds tighter on the right, or is in brackets, is a
    /// node of its own.
    Chain(Box<Expr>, Vec<(BinaryOp, Expr)>),
    Call(Name, Vec<Expr>),
    Index(Box<Expr>, Vec<Index>),
    Transpose(Box<Expr>),
    /// `if c then a else b`.
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Something that has been reported.
    Error,
}

#[derive(Clone, Debug)]
pub(crate) enum Index {
    At(Expr),
    Range(Range),
}

/// `lo..hi by step`; in an index, either end may be missing.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) lo: Option<Expr>,
    pub(crate) hi: Option<Expr>,
    pub(crate) by: Option<Expr>,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Negate,
    Not,
}

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum BinaryOp {
        Add = "+",
        Subtract = "-",
        Multiply = "*",
        Divide = "/",
        FloorDivide = "//",
        Remainder = "%",
        Power = "^",
        MatMul = "@",
        Less = "<",
        LessEq = "<=",
        Greater = ">",
        GreaterEq = ">=",
        Equal = "==",
        NotEqual = "!=",
        And = "and",
        Or = "or",
    }
}

impl BinaryOp {
    pub(crate) fn is_comparison(self) -> bool {
        use BinaryOp::{Equal, Greater, GreaterEq, Less, LessEq, NotEqual};
        matches!(self, Less | LessEq | Greater | GreaterEq | Equal | NotEqual)
    }
}

/// What follows a colon: the kind of element, the lengths and the unit.
#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    pub(crate) elem: Option<(Scalar, Span)>,
    /// None for a scalar.
    pub(crate) shape: Option<Vec<Length>>,
    pub(crate) unit: Option<Unit>,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Real,
    Int,
    Bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Length {
    Known(i64, Span),
    Named(Name),
    Any,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binder {
    Let,
    Var,
}

#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    /// `param` or `input`.
    Argument {
        is_param: bool,
        name: Name,
        annotation: Option<Annotation>,
        default: Option<Expr>,
    },
    Const {
        name: Name,
        value: Expr,
    },
    Bind {
        binder: Binder,
        names: Vec<Name>,
        annotation: Option<Annotation>,
        values: Vec<Expr>,
    },
    Alias {
        name: Name,
        target: Expr,
    },
    /// `a, b[i] = values`, or `a += value`.
    Assign {
        targets: Vec<Expr>,
        op: Option<BinaryOp>,
        values: Vec<Expr>,
    },
    For {
        name: Name,
        over: Over,
        /// How many bytes the snapshots may take that are kept for the reverse sweep.
        budget: Option<LoopBudget>,
        body: Block,
    },
    While {
        condition: Expr,
        /// As of `For`.
        budget: Option<LoopBudget>,
        body: Block,
    },
    Equation(Box<Equation>),
    If {
        arms: Vec<(Expr, Block)>,
        otherwise: Option<Block>,
    },
    Break,
    Continue,
    Return(Vec<Expr>),
    Function(Arc<Function>),
    Output {
        is_loss: bool,
        name: Name,
        value: Option<Expr>,
    },
    /// A statement that could not be read, and what it would have defined.
    Broken(Vec<Name>),
    /// An expression by itself.
    Value(Expr),
}

/// `budget 64KiB` of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopBudget {
    pub(crate) bytes: u64,
    pub(crate) span: Span,
}

/// `fixed_point x { ... }` or `root x { ... }`.
#[derive(Clone, Debug)]
pub(crate) struct Equation {
    pub(crate) form: Form,
    pub(crate) unknowns: Vec<Name>,
    pub(crate) search: Search,
    pub(crate) tolerance: f64,
    pub(crate) rounds: i64,
    pub(crate) body: Block,
}

#[derive(Clone, Debug)]
pub(crate) enum Over {
    Range { range: Range, reversed: bool },
    Array(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: Name,
    pub(crate) params: Vec<(Name, Option<Annotation>)>,
    pub(crate) returns: Option<Vec<Annotation>>,
    pub(crate) body: Block,
}
