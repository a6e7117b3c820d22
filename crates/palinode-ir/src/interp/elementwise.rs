//! Elementwise operations over arrays. Scalars count for every element; arrays must have the same lengths.
//!
//! A result is written into new memory or over an operand (the operand number `over`, which
//! [`super::store_rule::reuses`] names); each element of an operand is read before the element of the result
//! is written, so it makes no difference.

use core::ops::Range;
use std::rc::Rc;

use palinode_core::{Real, rules};
use smallvec::SmallVec;

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::rows::RUN;
use super::scalar_ops::{compare_reals, integer};
use super::store::{Store, elements_of};
use super::value::{Array, Source, Val, from_int, known, mismatch, stop, to_int};
use super::{rows, trap};
use crate::op::{Comparison, IntOp, Logical, Rule};
use crate::types::Elem;

/// The lengths that all array operands share.
fn common_lengths<'a, R: Real>(op: &'static str, args: &'a [Val<R>]) -> Result<&'a [usize], RunErrorKind> {
    let mut shapes = args.iter().filter_map(Val::lengths);
    let first = shapes.next().unwrap_or_default();
    match shapes.find(|&other| other != first) {
        None => Ok(first),
        Some(other) => Err(mismatch(op, first, other)),
    }
}

/// Checks the lengths and counts the elements of the result; gives its lengths if it needs new memory.
fn begin<R: Real>(
    op: &'static str,
    args: &[Val<R>],
    over: Option<usize>,
    memory: &mut Memory,
) -> Result<Vec<usize>, RunErrorKind> {
    let shape = common_lengths(op, args)?;
    memory.stats.elements_filled += elements_of(op, shape)? as u64;
    Ok(if over.is_none() { shape.to_vec() } else { Vec::new() })
}

/// The elements of an operand.
#[derive(Clone, Copy)]
enum Term<'a, T> {
    One(T),
    Many(&'a [T]),
    /// Those in the memory of the result, before it is written.
    Own,
}

impl<T: Copy> Term<'_, T> {
    #[inline(always)]
    fn get(&self, at: usize, own: T) -> T {
        match self {
            Term::One(value) => *value,
            Term::Many(values) => values[at],
            Term::Own => own,
        }
    }
}

impl<'a, T: Copy> Term<'a, T> {
    /// Those of a run of places; `own` are those in the memory of the result.
    fn run<'b>(&self, places: Range<usize>, own: &'b [T]) -> Source<'b, T>
    where
        'a: 'b,
    {
        match *self {
            Term::One(value) => Source::One(value),
            Term::Many(values) => Source::Many(&values[places]),
            Term::Own => Source::Many(own),
        }
    }
}

impl<'a, T> From<Source<'a, T>> for Term<'a, T> {
    fn from(source: Source<'a, T>) -> Term<'a, T> {
        match source {
            Source::One(value) => Term::One(value),
            Source::Many(values) => Term::Many(values),
        }
    }
}

/// What is left of an operand whose memory the result has.
fn is_own<R>(arg: &Val<R>) -> bool {
    matches!(arg, Val::Array(Array::Empty))
}

fn reals<R: Real>(arg: &Val<R>) -> Term<'_, R> {
    if is_own(arg) { Term::Own } else { arg.reals().into() }
}

fn ints<R: Real>(arg: &Val<R>) -> Term<'_, i64> {
    if is_own(arg) { Term::Own } else { arg.ints().into() }
}

fn bools<R: Real>(arg: &Val<R>) -> Term<'_, bool> {
    if is_own(arg) { Term::Own } else { arg.bools().into() }
}

/// The memory of a result: of an operand, or new.
macro_rules! target {
    ($kind:ident, $op:expr, $zero:expr, $shape:expr, $args:expr, $over:expr, $memory:expr) => {
        match $over {
            None => Rc::new(Store::filled($op, $shape, $zero, $memory)?),
            Some(at) => match $args[at].take_array() {
                Array::$kind(store) => store,
                _ => unreachable!("an operand of the kind of the result"),
            },
        }
    };
}

/// The elements of a target.
fn elements<T: Copy>(target: &mut Rc<Store<T>>) -> &mut [T] {
    Rc::get_mut(target).expect("a target is free").data_mut()
}

/// Every element of the result from its number and what was in its place, until one fails.
fn each<T: Copy>(
    data: &mut [T],
    mut f: impl FnMut(usize, T) -> Result<T, RunErrorKind>,
) -> Result<(), RunErrorKind> {
    data.iter_mut().enumerate().try_for_each(|(at, slot)| {
        *slot = f(at, *slot)?;
        Ok(())
    })
}

/// A new array of other elements than the operands have.
fn collect<T: Copy>(
    op: &'static str,
    shape: Vec<usize>,
    memory: &Memory,
    mut element: impl FnMut(usize) -> Result<T, RunErrorKind>,
) -> Result<Store<T>, RunErrorKind> {
    let mut made = Store::with_capacity(op, shape, memory)?;
    let buffer = made.buffer();
    for at in 0..buffer.left() {
        buffer.push(element(at)?);
    }
    Ok(made)
}

pub(super) fn map<R: Real>(
    rule: Rule,
    over: Option<usize>,
    args: &mut [Val<R>],
    trap: bool,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let Rule { row, parameter } = rule;
    let name = row.name();
    let filled = memory.stats.elements_filled;
    let shape = begin(name, args, over, memory)?;
    if row == rules::Row::Add && args.iter().all(|arg| matches!(arg, Val::Array(_))) {
        memory.stats.elements_added += memory.stats.elements_filled - filled;
    }
    let mut target = target!(Real, name, R::zero(), shape, args, over, memory);
    if let Some(plain) = known::<_, Rc<Store<f64>>>(&mut target) {
        map_plain(rule, args, elements(plain), trap)?;
    } else {
        let terms: SmallVec<[Term<'_, R>; 3]> = args.iter().map(reals).collect();
        each(elements(&mut target), |at, own| {
            let operands: SmallVec<[R; 3]> = terms.iter().map(|term| term.get(at, own)).collect();
            let result = row.value(parameter, &operands);
            if trap {
                trap::check_row(row, &operands, result)?;
            }
            Ok(result)
        })?;
    }
    Ok(Val::Array(Array::Real(target)))
}

/// The same of plain numbers, by runs.
fn map_plain<R: Real>(
    rule: Rule,
    args: &mut [Val<R>],
    data: &mut [f64],
    trap: bool,
) -> Result<(), RunErrorKind> {
    let plain = |arg| reals(known::<_, Val<f64>>(arg).expect("operands are of the numbers of the result"));
    let terms: SmallVec<[Term<'_, f64>; 3]> = args.iter_mut().map(plain).collect();
    let has_own = terms.iter().any(|term| matches!(term, Term::Own));
    let mut room = has_own.then_some([0.0; RUN]);
    for (number, run) in data.chunks_mut(RUN).enumerate() {
        let places = number * RUN..number * RUN + run.len();
        let own: &[f64] = match &mut room {
            None => &[],
            Some(room) => {
                room[..run.len()].copy_from_slice(run);
                &room[..run.len()]
            }
        };
        let operands: SmallVec<[Source<'_, f64>; 3]> =
            terms.iter().map(|term| term.run(places.clone(), own)).collect();
        rows::values(rule, &operands, run);
        if trap {
            trap::check_run(rule.row, &operands, run)?;
        }
    }
    Ok(())
}

pub(super) fn int<R: Real>(
    op: IntOp,
    over: Option<usize>,
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let shape = begin(op.name(), args, over, memory)?;
    let mut target = target!(Int, op.name(), 0, shape, args, over, memory);
    let (a, b) = (ints(&args[0]), ints(&args[1]));
    each(elements(&mut target), |at, own| integer(op, a.get(at, own), b.get(at, own)))?;
    Ok(Val::Array(Array::Int(target)))
}

pub(super) fn compare<R: Real>(
    op: Comparison,
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let shape = begin(op.name(), args, None, memory)?;
    let are_reals = matches!(&args[0], Val::Real(_) | Val::Array(Array::Real(_)));
    let made = if are_reals {
        let (a, b) = (args[0].reals(), args[1].reals());
        collect(op.name(), shape, memory, |at| Ok(compare_reals(op, a.get(at), b.get(at))))?
    } else {
        let (a, b) = (args[0].ints(), args[1].ints());
        collect(op.name(), shape, memory, |at| Ok(op.holds(a.get(at), b.get(at))))?
    };
    Ok(Val::from_bools(made))
}

pub(super) fn logical<R: Real>(
    op: Logical,
    over: Option<usize>,
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let shape = begin(op.name(), args, over, memory)?;
    let mut target = target!(Bool, op.name(), false, shape, args, over, memory);
    let (a, b) = (bools(&args[0]), bools(args.last().expect("one operand or two")));
    each(elements(&mut target), |at, own| {
        let (a, b) = (a.get(at, own), b.get(at, own));
        Ok(match op {
            Logical::And => a & b,
            Logical::Or => a | b,
            Logical::Not => !a,
        })
    })?;
    Ok(Val::Array(Array::Bool(target)))
}

pub(super) fn select<R: Real>(
    over: Option<usize>,
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "select";
    common_lengths(OP, args)?;
    if let (Val::Bool(condition), Some(at)) = (&args[0], over)
        && at == if *condition { 1 } else { 2 }
    {
        return Ok(Val::Array(args[at].take_array()));
    }
    let shape = begin(OP, args, over, memory)?;
    macro_rules! chosen {
        ($kind:ident, $terms:ident, $zero:expr) => {{
            let mut target = target!($kind, OP, $zero, shape, args, over, memory);
            let (condition, a, b) = (args[0].bools(), $terms(&args[1]), $terms(&args[2]));
            each(elements(&mut target), |at, own| {
                Ok(if condition.get(at) { a.get(at, own) } else { b.get(at, own) })
            })?;
            Ok(Val::Array(Array::$kind(target)))
        }};
    }
    match args[1].elem() {
        Elem::F64 | Elem::F32 => chosen!(Real, reals, R::zero()),
        Elem::Int => chosen!(Int, ints, 0),
        // The condition may be one of the two: then it is not free.
        Elem::Bool => chosen!(Bool, bools, false),
    }
}

/// Conversion between kinds; rounding to single precision is left to the caller.
pub(super) fn convert<R: Real>(
    to: Elem,
    over: Option<usize>,
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "convert";
    if let Some(at) = over {
        return Ok(Val::Array(args[at].take_array()));
    }
    let shape = begin(OP, args, None, memory)?;
    Ok(match (args[0].elem().is_real(), to.is_real()) {
        (true, true) => {
            Val::from_reals(Store::from_slice(OP, shape, args[0].array().reals().data(), memory)?)
        }
        (false, false) => {
            Val::from_ints(Store::from_slice(OP, shape, args[0].array().ints().data(), memory)?)
        }
        (true, false) => {
            let a = args[0].reals();
            Val::from_ints(collect(OP, shape, memory, |at| to_int(a.get(at)))?)
        }
        (false, true) => {
            let a = args[0].ints();
            Val::from_reals(collect(OP, shape, memory, |at| Ok(from_int(a.get(at))))?)
        }
    })
}

pub(super) fn stop_gradient<R: Real>(
    over: Option<usize>,
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "stop_gradient";
    macro_rules! stopped {
        ($kind:ident, $terms:ident, $zero:expr, $stop:expr) => {{
            let shape = begin(OP, args, over, memory)?;
            let mut target = target!($kind, OP, $zero, shape, args, over, memory);
            let a = $terms(&args[0]);
            each(elements(&mut target), |at, own| Ok($stop(a.get(at, own))))?;
            Ok(Val::Array(Array::$kind(target)))
        }};
    }
    match args[0].elem() {
        _ if R::DEPTH == 0 && over.is_some() => Ok(Val::Array(args[0].take_array())),
        Elem::F64 | Elem::F32 => stopped!(Real, reals, R::zero(), stop),
        Elem::Int => stopped!(Int, ints, 0, |x| x),
        Elem::Bool => stopped!(Bool, bools, false, |x| x),
    }
}
