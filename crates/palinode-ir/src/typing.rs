//! The type of an operation's results from the types of its operands.
//!
//! Input: an operation without blocks or calls, and operand types. Output: result types, or what is wrong.
//! The builder, the verifier, the text parser and the `.pal` front end all ask here, so a typing rule is
//! written once.

use crate::op::{Axis, Linalg, Literal, Logical, Op};
use crate::types::{Elem, Type};

/// Why operands do not fit an operation; a sentence without a full stop.
pub type Mismatch = String;

fn require(holds: bool, otherwise: impl FnOnce() -> Mismatch) -> Result<(), Mismatch> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn count(op: &Op, args: &[Type], expected: usize) -> Result<(), Mismatch> {
    require(args.len() == expected, || {
        let s = if expected == 1 { "" } else { "s" };
        format!("`{}` takes {expected} operand{s}, not {}", op.name(), args.len())
    })
}

fn at_least(op: &Op, args: &[Type], least: usize) -> Result<(), Mismatch> {
    require(args.len() >= least, || {
        format!("`{}` takes at least {least} operands, not {}", op.name(), args.len())
    })
}

fn ints(op: &Op, args: &[Type], what: &str) -> Result<(), Mismatch> {
    match args.iter().find(|&&ty| ty != Type::INT) {
        None => Ok(()),
        Some(other) => Err(format!("{what} of `{}` must be int, not {other}", op.name())),
    }
}

fn real(op: &Op, ty: Type) -> Result<(), Mismatch> {
    require(ty.is_real(), || format!("`{}` needs real numbers, not {ty}", op.name()))
}

fn rank(op: &Op, ty: Type, expected: u8) -> Result<(), Mismatch> {
    require(ty.rank == expected, || format!("`{}` needs an array of rank {expected}, not {ty}", op.name()))
}

fn array(op: &Op, ty: Type) -> Result<(), Mismatch> {
    require(!ty.is_scalar(), || format!("`{}` needs an array, not {ty}", op.name()))
}

/// The common rank of elementwise operands.
fn spread(op: &Op, args: &[Type]) -> Result<u8, Mismatch> {
    let rank = args.iter().map(|ty| ty.rank).max().unwrap_or(0);
    match args.iter().find(|ty| ty.rank != 0 && ty.rank != rank) {
        None => Ok(rank),
        Some(other) => Err(format!(
            "`{}` works element by element: an operand has rank {rank}, another is {other}",
            op.name()
        )),
    }
}

fn same_elem(op: &Op, args: &[Type]) -> Result<Elem, Mismatch> {
    let first = args[0].elem;
    match args.iter().find(|ty| ty.elem != first) {
        None => Ok(first),
        Some(other) => Err(format!("`{}` mixes {first} and {}; convert one", op.name(), other.elem)),
    }
}

fn ascending(op: &Op, axes: &[u8], rank: usize) -> Result<(), Mismatch> {
    let fits = axes.windows(2).all(|pair| pair[0] < pair[1]) && axes.iter().all(|&a| usize::from(a) < rank);
    require(fits, || format!("the axes {axes:?} of `{}` must ascend and stay below {rank}", op.name()))
}

/// Checks an access and gives the rank of what it reaches.
fn access(op: &Op, base: Type, axes: &[Axis], operands: &[Type]) -> Result<u8, Mismatch> {
    array(op, base)?;
    require(usize::from(base.rank) == axes.len(), || {
        format!("`{}` names {} axes of an array of rank {}", op.name(), axes.len(), base.rank)
    })?;
    let expected = axes.iter().map(|axis| axis.operands()).sum::<usize>();
    require(operands.len() == expected, || {
        format!("the axes of `{}` take {expected} operands, not {}", op.name(), operands.len())
    })?;
    let mut rest = operands;
    for axis in axes {
        let (mine, others) = rest.split_at(axis.operands());
        rest = others;
        match axis {
            Axis::At | Axis::Range | Axis::All => ints(op, mine, "an index")?,
            Axis::List => require(mine[0] == Type::array(Elem::Int, 1), || {
                format!("a list of indices must be int[_], not {}", mine[0])
            })?,
        }
    }
    Ok(axes.iter().filter(|axis| axis.stays()).count() as u8)
}

/// The types of the results of an operation that has no blocks and calls nothing.
///
/// # Errors
/// Why the operands do not fit, or that the operation has blocks.
pub fn result_types(op: &Op, args: &[Type]) -> Result<Vec<Type>, Mismatch> {
    let one = |ty: Type| Ok(vec![ty]);
    match op {
        Op::Const(literal) => {
            count(op, args, 0)?;
            one(match literal {
                Literal::Real(_) | Literal::Named(_) => Type::REAL,
                Literal::Int(_) => Type::INT,
                Literal::Bool(_) => Type::BOOL,
            })
        }
        Op::Map(rule) => {
            count(op, args, rule.row.arity())?;
            args.iter().try_for_each(|&ty| real(op, ty))?;
            one(Type::array(same_elem(op, args)?, spread(op, args)?))
        }
        Op::Int(_) => {
            count(op, args, 2)?;
            let elem = same_elem(op, args)?;
            require(elem == Elem::Int, || format!("`{}` needs integers, not {elem}", op.name()))?;
            one(Type::array(Elem::Int, spread(op, args)?))
        }
        Op::Compare(_) => {
            count(op, args, 2)?;
            let elem = same_elem(op, args)?;
            require(elem != Elem::Bool, || format!("`{}` does not compare truth values", op.name()))?;
            one(Type::array(Elem::Bool, spread(op, args)?))
        }
        Op::Logical(kind) => {
            count(op, args, if *kind == Logical::Not { 1 } else { 2 })?;
            let elem = same_elem(op, args)?;
            require(elem == Elem::Bool, || format!("`{}` needs truth values, not {elem}", op.name()))?;
            one(Type::array(Elem::Bool, spread(op, args)?))
        }
        Op::Select => {
            count(op, args, 3)?;
            require(args[0].elem == Elem::Bool, || {
                format!("the condition of `select` must be bool, not {}", args[0])
            })?;
            one(Type::array(same_elem(op, &args[1..])?, spread(op, args)?))
        }
        Op::Convert(elem) => {
            count(op, args, 1)?;
            let possible = *elem != Elem::Bool && args[0].elem != Elem::Bool;
            require(possible, || format!("{} cannot become {elem}; use `select`", args[0]))?;
            one(args[0].with_elem(*elem))
        }
        Op::StopGradient => {
            count(op, args, 1)?;
            one(args[0])
        }
        Op::Settled(_) => {
            count(op, args, 4)?;
            real(op, args[0])?;
            rank(op, args[0], 1)?;
            require(args[1..] == [Type::REAL, Type::REAL, Type::INT], || {
                format!("`{}` takes a vector, a change, a bound and a number of rounds", op.name())
            })?;
            one(args[0])
        }
        Op::Dim(axis) => {
            count(op, args, 1)?;
            require(*axis < args[0].rank, || format!("{} has no axis {axis}", args[0]))?;
            one(Type::INT)
        }
        Op::Iota => {
            count(op, args, 1)?;
            ints(op, args, "the length")?;
            one(Type::array(Elem::Int, 1))
        }
        Op::Broadcast(axes) => {
            at_least(op, args, 2)?;
            ints(op, &args[1..], "a length")?;
            ascending(op, axes, args.len() - 1)?;
            require(axes.len() == usize::from(args[0].rank), || {
                format!("`broadcast` places {} axes of an operand of rank {}", axes.len(), args[0].rank)
            })?;
            one(args[0].with_rank((args.len() - 1) as u8))
        }
        Op::Reshape => {
            at_least(op, args, 1)?;
            require(args.len() > 1 || !args[0].is_scalar(), || {
                format!("`reshape` of {} to a number does nothing", args[0])
            })?;
            ints(op, &args[1..], "a length")?;
            one(args[0].with_rank((args.len() - 1) as u8))
        }
        Op::Permute(axes) => {
            count(op, args, 1)?;
            array(op, args[0])?;
            rank(op, args[0], axes.len() as u8)?;
            let mut sorted = axes.clone();
            sorted.sort_unstable();
            require(sorted.iter().enumerate().all(|(at, &axis)| usize::from(axis) == at), || {
                format!("{axes:?} is not a permutation of the axes")
            })?;
            one(args[0])
        }
        Op::Concat(axis) => {
            at_least(op, args, 1)?;
            let elem = same_elem(op, args)?;
            args.iter().try_for_each(|&ty| rank(op, ty, args[0].rank))?;
            require(*axis < args[0].rank, || format!("{} has no axis {axis}", args[0]))?;
            one(Type::array(elem, args[0].rank))
        }
        Op::Reduce(_, axes) => {
            count(op, args, 1)?;
            real(op, args[0])?;
            ascending(op, axes, usize::from(args[0].rank))?;
            one(args[0].with_rank(args[0].rank - axes.len() as u8))
        }
        Op::Read(axes) => {
            at_least(op, args, 1)?;
            let rank = access(op, args[0], axes, &args[1..])?;
            one(args[0].with_rank(rank))
        }
        Op::Write(axes) | Op::AddAt(axes) => {
            at_least(op, args, 2)?;
            let rank = access(op, args[0], axes, &args[2..])?;
            same_elem(op, &args[..2])?;
            if matches!(op, Op::AddAt(_)) {
                real(op, args[0])?;
            }
            let fits = args[1].rank == rank || args[1].rank == 0;
            require(fits, || format!("`{}` reaches elements of rank {rank}, not {}", op.name(), args[1]))?;
            one(args[0])
        }
        Op::Push => {
            at_least(op, args, 1)?;
            rank(op, args[0], 1)?;
            same_elem(op, args)?;
            one(args[0])
        }
        Op::Resize => {
            count(op, args, 2)?;
            rank(op, args[0], 1)?;
            ints(op, &args[1..], "the length")?;
            one(args[0])
        }
        Op::Pack(_) => {
            count(op, args, 1)?;
            real(op, args[0])?;
            array(op, args[0])?;
            one(Type::array(Elem::Int, 1))
        }
        Op::Unpack(_) => {
            count(op, args, 2)?;
            require(args[0] == Type::array(Elem::Int, 1), || {
                format!("`{}` needs int[_], not {}", op.name(), args[0])
            })?;
            ints(op, &args[1..], "the length")?;
            one(Type::array(Elem::F64, 1))
        }
        Op::MatMul { a_transposed, b_transposed, .. } => {
            count(op, args, 2)?;
            args.iter().try_for_each(|&ty| real(op, ty))?;
            let elem = same_elem(op, args)?;
            for (ty, transposed) in [(args[0], *a_transposed), (args[1], *b_transposed)] {
                require(matches!(ty.rank, 1 | 2), || format!("`matmul` needs rank 1 or 2, not {ty}"))?;
                require(ty.rank == 2 || !transposed, || "only a matrix can be transposed".into())?;
            }
            one(Type::array(elem, args[0].rank + args[1].rank - 2))
        }
        Op::Outer { .. } => {
            count(op, args, 2)?;
            for &ty in args {
                real(op, ty)?;
                rank(op, ty, 1)?;
            }
            one(Type::array(same_elem(op, args)?, 2))
        }
        Op::AddOuter { .. } => {
            count(op, args, 3)?;
            args.iter().try_for_each(|&ty| real(op, ty))?;
            same_elem(op, args)?;
            rank(op, args[0], 2)?;
            let (x, y) = (args[1], args[2]);
            let fits = matches!(x.rank, 1 | 2) && x.rank == y.rank;
            require(fits, || {
                format!("`{}` adds products of two vectors or two matrices, not of {x} and {y}", op.name())
            })?;
            one(args[0])
        }
        Op::Linalg(kind) => linalg(op, *kind, args),
        Op::For { .. } | Op::While { .. } | Op::Sweep { .. } | Op::If | Op::Call(_) | Op::Fused => {
            Err(format!("the results of `{}` come from its blocks", op.name()))
        }
    }
}

fn linalg(op: &Op, kind: Linalg, args: &[Type]) -> Result<Vec<Type>, Mismatch> {
    let solves =
        matches!(kind, Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. });
    count(op, args, if solves { 2 } else { 1 })?;
    args.iter().try_for_each(|&ty| real(op, ty))?;
    rank(op, args[0], 2)?;
    let elem = same_elem(op, args)?;
    let (scalar, vector, matrix) = (Type::scalar(elem), Type::array(elem, 1), Type::array(elem, 2));
    Ok(match kind {
        Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. } => {
            require(matches!(args[1].rank, 1 | 2), || {
                format!("the right side of `{}` must have rank 1 or 2, not {}", op.name(), args[1])
            })?;
            vec![args[1]]
        }
        Linalg::Inverse | Linalg::Cofactors | Linalg::Cholesky => vec![matrix],
        Linalg::Determinant | Linalg::LogDet => vec![scalar],
        Linalg::Qr => vec![matrix, matrix],
        Linalg::SymmetricEigen => vec![vector, matrix],
        Linalg::Svd => vec![matrix, vector, matrix],
    })
}
