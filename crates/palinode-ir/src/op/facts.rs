//! The table of operations: the name of each, samples of it, and what everybody else asks about it.
//!
//! Input: an operation. Output: [`Facts`]. Passes, plans and transforms ask for facts instead of listing
//! operations, so that a new operation is a row here, and a case where something is done for each: lengths,
//! typing, text, tangent, transpose, interpreter. The facts are held to runs by `tests/all/facts.rs`.

use palinode_core::rules::Row;

use super::{Comparison, FuncId, IntOp, Keep, Linalg, Literal, Logical, Narrow, Op, Reduction, Rule, Search};
use crate::types::Elem;

/// What an operation does with its operands, as far as memory and control go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is written in the program.
    Literal,
    /// It treats every element alike and by itself.
    Elementwise,
    /// It looks at nothing but the shape of its operand.
    Measures,
    /// It takes elements out of operand 0.
    Reads,
    /// It makes something new of whole operands.
    Makes,
    /// It gives the elements of operand 0 another shape, in the same memory if nothing else needs them.
    Reshapes,
    /// It *consumes* operand 0: the result is a changed version of it, in the same memory if nothing else
    /// needs it.
    Updates,
    /// It does what its one block does with scalars, elementwise.
    Fuses,
    /// It runs so many blocks any number of times.
    Repeats(usize),
    /// It runs one of its two blocks.
    Branches,
    /// It calls a function.
    Calls,
}

/// What an operation is linear in, up to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linear {
    /// Nothing, or the question is for its blocks.
    No,
    /// The operands from the first number up to, without, the second, all together, whatever the others are.
    Jointly(usize, usize),
    /// Each of its two operands, if the other one is fixed.
    Each {
        /// A zero times anything is zero.
        strong: bool,
    },
    /// Operand 0 and one of the two others together, if the third one is fixed.
    WithEach {
        /// A zero times anything is zero.
        strong: bool,
    },
}

/// What the reverse of a loop computes again instead of keeping it from the forward sweep, from least to
/// most. What is not computed again is kept in logs, an entry a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recompute {
    /// Nothing but constants, indices and conditions: most memory, least work.
    Nothing,
    /// What costs about as little as keeping it and reading it back: sums, products, elements and parts of
    /// arrays that nothing changes.
    #[default]
    Cheap,
    /// Every elementwise function too.
    Elementwise,
    /// Whatever does not change an array or contain a loop: products of matrices, reductions, decompositions.
    /// Least memory.
    Anything,
}

impl Recompute {
    /// Every choice, from most memory to least.
    pub const ALL: [Recompute; 4] =
        [Recompute::Nothing, Recompute::Cheap, Recompute::Elementwise, Recompute::Anything];
}

/// What is known of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What it does with its operands.
    pub kind: Kind,
    /// What it is linear in.
    pub linear: Linear,
    /// `f(a, b)` is `f(b, a)`, bit by bit.
    pub commutes: bool,
    /// It can stop a run, though its operands fit: it overflows, divides by zero, refuses a value, or makes
    /// an infinity where those are trapped.
    pub may_fail: bool,
    /// It makes real numbers that were not there: they are rounded if their kind is `f32`, and looked at if
    /// infinities are trapped.
    pub computes: bool,
    /// No derivative goes through it, though its operands and results may be real.
    pub cuts: bool,
    /// Its kernel takes memory besides operands and results.
    pub works_apart: bool,
    /// What must be allowed for reverse mode to compute it again; nothing if it cannot be.
    pub again: Option<Recompute>,
}

/// An operation that may fail and of which else nothing can be said.
const fn plain(kind: Kind) -> Facts {
    Facts {
        kind,
        linear: Linear::No,
        commutes: false,
        may_fail: true,
        computes: false,
        cuts: false,
        works_apart: false,
        again: None,
    }
}

impl Facts {
    const fn linear(self, from: usize, to: usize) -> Facts {
        Facts { linear: Linear::Jointly(from, to), ..self }
    }

    const fn product(self, strong: bool) -> Facts {
        Facts { linear: Linear::Each { strong }, ..self }
    }

    const fn product_added(self, strong: bool) -> Facts {
        Facts { linear: Linear::WithEach { strong }, ..self }
    }

    const fn commutes(self, commutes: bool) -> Facts {
        Facts { commutes, ..self }
    }

    const fn safe(self) -> Facts {
        Facts { may_fail: false, ..self }
    }

    const fn computes(self) -> Facts {
        Facts { computes: true, ..self }
    }

    const fn cuts(self) -> Facts {
        Facts { cuts: true, ..self }
    }

    const fn works_apart(self) -> Facts {
        Facts { works_apart: true, ..self }
    }

    const fn again(self, effort: Recompute) -> Facts {
        Facts { again: Some(effort), ..self }
    }
}

/// All operands.
const ALL: usize = usize::MAX;

/// A row is: which operations, their name, samples with attributes that mean nothing, facts.
macro_rules! operations {
    ($($op:pat => $name:expr, $samples:expr, $facts:expr;)*) => {
        impl Op {
            /// How the text form calls it.
            #[allow(unused_variables)]
            pub fn name(&self) -> &'static str {
                match self { $($op => $name,)* }
            }

            /// What is known of it.
            #[allow(unused_variables)]
            #[inline]
            pub fn facts(&self) -> Facts {
                match self { $($op => $facts,)* }
            }

            /// One of each name.
            pub fn all() -> Vec<Op> {
                let mut all = Vec::new();
                $(all.extend($samples);)*
                all
            }
        }
    };
}

operations! {
    Op::Const(_) => "const", [Op::Const(Literal::Int(0))], plain(Kind::Literal).safe().again(Recompute::Nothing);
    Op::Map(rule) => rule.row.name(), Row::ALL.iter().map(|&row| Op::rule(row)), row(*rule);
    Op::Int(op) => op.name(), IntOp::ALL.map(Op::Int), plain(Kind::Elementwise)
        .commutes(matches!(op, IntOp::Add | IntOp::Mul | IntOp::Min | IntOp::Max))
        .again(Recompute::Nothing);
    Op::Compare(op) => op.name(), Comparison::ALL.map(Op::Compare), plain(Kind::Elementwise)
        .commutes(matches!(op, Comparison::Equal)).safe().again(Recompute::Nothing);
    Op::Logical(op) => op.name(), Logical::ALL.map(Op::Logical), plain(Kind::Elementwise)
        .commutes(matches!(op, Logical::And | Logical::Or)).safe().again(Recompute::Nothing);
    Op::Select => "select", [Op::Select],
        plain(Kind::Elementwise).linear(1, 3).safe().again(Recompute::Cheap);
    Op::Convert(Elem::F64 | Elem::F32) => "convert", [Op::Convert(Elem::F64)],
        plain(Kind::Elementwise).linear(0, 1).safe().computes().again(Recompute::Nothing);
    Op::Convert(Elem::Int | Elem::Bool) => "convert", [],
        plain(Kind::Elementwise).computes().again(Recompute::Nothing);
    Op::StopGradient => "stop_gradient", [Op::StopGradient],
        plain(Kind::Elementwise).safe().cuts().again(Recompute::Cheap);
    Op::Settled(search) => match search {
        Search::Picard => "settled_picard",
        Search::Anderson => "settled_anderson",
        Search::Newton => "settled_newton",
    }, Search::ALL.map(Op::Settled), plain(Kind::Makes).cuts();
    Op::Dim(_) => "dim", [Op::Dim(0)], plain(Kind::Measures).safe().again(Recompute::Nothing);
    Op::Iota => "iota", [Op::Iota], plain(Kind::Makes).again(Recompute::Nothing);
    Op::Broadcast(_) => "broadcast", [Op::Broadcast(Vec::new())],
        plain(Kind::Makes).linear(0, 1).again(Recompute::Nothing);
    Op::Reshape => "reshape", [Op::Reshape],
        plain(Kind::Reshapes).linear(0, 1).again(Recompute::Cheap);
    Op::Permute(_) => "permute", [Op::Permute(Vec::new())],
        plain(Kind::Makes).linear(0, 1).safe().again(Recompute::Cheap);
    Op::Concat(_) => "concat", [Op::Concat(0)],
        plain(Kind::Makes).linear(0, ALL).again(Recompute::Cheap);
    Op::Reduce(Reduction::Sum, _) => Reduction::Sum.name(), [Op::Reduce(Reduction::Sum, Vec::new())],
        plain(Kind::Makes).linear(0, 1).computes().again(Recompute::Anything);
    Op::Reduce(kind @ (Reduction::Max | Reduction::Min), _) => kind.name(),
        [Reduction::Max, Reduction::Min].map(|kind| Op::Reduce(kind, Vec::new())),
        plain(Kind::Makes).computes().again(Recompute::Anything);
    Op::Read(_) => "read", [Op::Read(Vec::new())],
        plain(Kind::Reads).linear(0, 1).again(Recompute::Cheap);
    Op::Write(_) => "write", [Op::Write(Vec::new())], plain(Kind::Updates).linear(0, 2).works_apart();
    Op::AddAt(_) => "add_at", [Op::AddAt(Vec::new())], plain(Kind::Updates).linear(0, 2).computes();
    Op::Push => "push", [Op::Push], plain(Kind::Updates).linear(0, ALL);
    Op::Resize => "resize", [Op::Resize], plain(Kind::Updates).linear(0, 1);
    Op::Pack(narrow) => match narrow {
        Narrow::F32 => "pack_f32",
        Narrow::Bf16 => "pack_bf16",
    }, Narrow::ALL.map(Op::Pack), plain(Kind::Makes);
    Op::Unpack(narrow) => match narrow {
        Narrow::F32 => "unpack_f32",
        Narrow::Bf16 => "unpack_bf16",
    }, Narrow::ALL.map(Op::Unpack), plain(Kind::Makes);
    Op::MatMul { strong, .. } => if *strong { "strong_matmul" } else { "matmul" },
        [false, true].map(|strong| Op::MatMul { a_transposed: false, b_transposed: false, strong }),
        plain(Kind::Makes).product(*strong).computes().again(Recompute::Anything);
    Op::Outer { strong } => if *strong { "strong_outer" } else { "outer" },
        [false, true].map(|strong| Op::Outer { strong }),
        plain(Kind::Makes).product(*strong).computes().again(Recompute::Elementwise);
    Op::AddOuter { strong } => if *strong { "add_strong_outer" } else { "add_outer" },
        [false, true].map(|strong| Op::AddOuter { strong }),
        plain(Kind::Updates).product_added(*strong).computes();
    Op::Linalg(kind) => kind.name(), Linalg::ALL.map(Op::Linalg), linalg(*kind);
    Op::For { .. } => "for", [Op::For { descending: false, keep: None }], plain(Kind::Repeats(1));
    Op::While { .. } => "while", [Op::While { keep: None }], plain(Kind::Repeats(2));
    Op::Sweep { turns, .. } => "sweep",
        [Op::Sweep { keep: Keep::Snapshots(1), turns: false }],
        plain(Kind::Repeats(if *turns { 3 } else { 2 }));
    Op::If => "if", [Op::If], plain(Kind::Branches);
    Op::Call(_) => "call", [Op::Call(FuncId(0))], plain(Kind::Calls);
    Op::Fused => "fused", [Op::Fused], plain(Kind::Fuses);
}

/// A row of the rule table. (`_`: of most rows no more can be said.)
fn row(rule: Rule) -> Facts {
    let facts = plain(Kind::Elementwise).computes();
    let cheap = facts.again(Recompute::Cheap);
    match rule.row {
        Row::Add => cheap.linear(0, 2).commutes(true),
        Row::Subtract => cheap.linear(0, 2),
        Row::Negate | Row::Divide => cheap.linear(0, 1),
        Row::Multiply => cheap.product(false).commutes(true),
        Row::StrongMul => cheap.product(true).commutes(true),
        Row::Abs | Row::Min | Row::Max | Row::Recip => cheap,
        // A few products.
        Row::Powi if rule.parameter.unsigned_abs() <= 4 => cheap,
        _ => facts.again(Recompute::Elementwise),
    }
}

fn linalg(kind: Linalg) -> Facts {
    let facts = plain(Kind::Makes).computes().works_apart();
    let again = facts.again(Recompute::Anything);
    match kind {
        Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. } => {
            again.linear(1, 2)
        }
        Linalg::Inverse | Linalg::Determinant | Linalg::Cofactors | Linalg::LogDet | Linalg::Cholesky => {
            again
        }
        // They have several results.
        Linalg::Qr | Linalg::SymmetricEigen | Linalg::Svd => facts,
    }
}

impl Op {
    /// Whether it treats every element alike and by itself.
    pub fn is_elementwise(&self) -> bool {
        matches!(self.facts().kind, Kind::Literal | Kind::Elementwise)
    }

    /// The operand that is *consumed*, see [`Kind::Updates`].
    pub fn consumes(&self) -> Option<usize> {
        (self.facts().kind == Kind::Updates).then_some(0)
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> usize {
        match self.facts().kind {
            Kind::Repeats(blocks) => blocks,
            Kind::Branches => 2,
            Kind::Fuses => 1,
            Kind::Literal | Kind::Elementwise | Kind::Measures | Kind::Reads | Kind::Makes => 0,
            Kind::Reshapes | Kind::Updates | Kind::Calls => 0,
        }
    }

    /// Whether its blocks run any number of times.
    pub fn repeats(&self) -> bool {
        matches!(self.facts().kind, Kind::Repeats(_))
    }
}
