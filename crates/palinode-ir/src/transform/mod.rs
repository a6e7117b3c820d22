//! Differentiation: program -> program.
//!
//! | transform | arguments of the new program | its results |
//! |---|---|---|
//! | [`jvp`] | those of the old one, then a tangent for each in `wrt` | the old ones, then a tangent for each real one |
//! | [`vjp`] | those of the old one, then a cotangent for each real result | the old ones, then a cotangent for each in `wrt` |
//! | [`value_and_grad`] | those of the old one | the first result, then its gradient by each in `wrt` |
//! | [`grad`] | those of the old one | the gradient by each in `wrt` |
//! | [`jacobian`] | those of the old one | for each real result and each in `wrt`, an array of partials |
//! | [`hessian`] | those of the old one | for each pair in `wrt`, an array of second partials |
//!
//! Every transform gives a program again, so they compose. Only `tangent.rs` takes derivatives (from the rule
//! table, through `symbol.rs`, and for dense linear algebra in `linalg.rs`); reverse mode is the transpose of
//! tangent code (`split.rs`, `transpose.rs`). A loop stays one loop, so the size of a program does not depend
//! on how often its loops run.
//!
//! Calls of functions that do not recurse are inlined first, as far as the program does not grow too much by
//! that. Any other function is differentiated as a function; its reverse runs its forward part again at each
//! level, so it takes time proportional to depth times work, and no extra memory.

mod activity;
mod cut;
mod keep;
mod lengths;
mod linalg;
mod linear;
mod margins;
mod matrix;
mod price;
mod residual;
mod rounds;
mod split;
mod split_branches;
mod split_calls;
mod split_loops;
mod split_sweeps;
mod storage;
mod symbol;
mod tangent;
mod transpose;
mod turn;
mod unsweep;

use std::sync::Arc;

use crate::builder::FunctionBuilder;
use crate::op::{FuncId, Narrow, Op};
use crate::passes;

use crate::checked::verified;
use crate::program::{Block, Function, Program, Value};
use crate::types::{Elem, Span, Type};
use split::Splitter;
use split::Versions;
pub(crate) use tangent::Differentiator;
use tangent::Tangents;
use turn::turned;
use unsweep::unsweep;

pub use keep::keeping;
pub use margins::{Margins, with_margins};
pub use matrix::{hessian, jacobian};
pub use rounds::with_rounds;
pub use storage::{Choice, Storage};

pub use crate::interp::Rounds;
pub use crate::op::Recompute;

/// Why a program cannot be transformed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// There is no such argument.
    #[error(
        "PAL0270: the program has no argument number {position}; counted from 0, the last of its {count} is number {}",
        count.saturating_sub(1)
    )]
    NoSuchArgument {
        /// What was asked for, from 0.
        position: usize,
        /// How many there are.
        count: usize,
    },
    /// The argument has no derivative.
    #[error("PAL0271: argument `{name}` is {ty}, which has no derivative; leave it out of `wrt`")]
    NotReal {
        /// Its name.
        name: String,
        /// Its type.
        ty: Type,
    },
    /// An argument was listed twice.
    #[error("PAL0274: argument `{name}` is listed twice; list each argument once")]
    Repeated {
        /// Its name.
        name: String,
    },
    /// A gradient was asked of something that is not a real scalar.
    #[error(
        "PAL0272: a gradient needs a real scalar as the first result, not {found}; put the loss first, or use \
         `vjp` or `jacobian`"
    )]
    NotScalar {
        /// Its type, or "nothing".
        found: String,
    },
    /// The program keeps residuals in fewer bits.
    #[error(
        "PAL0277: the program keeps numbers in fewer bits (`{op}`), which has no derivative; differentiate the program that \
         keeps them exactly, and narrow afterwards"
    )]
    Narrowed {
        /// The operation.
        op: &'static str,
    },
    /// The program is not linear in the arguments that were named.
    #[error(
        "PAL0273: `{op}` is not linear in the arguments that were named, so it cannot be transposed; name fewer \
         arguments, or `linearize` the program first"
    )]
    NotLinear {
        /// The operation.
        op: String,
        /// Where it is in the source.
        span: Span,
    },
}

impl TransformError {
    /// The code under which the book explains it.
    pub fn code(&self) -> &'static str {
        match self {
            TransformError::NoSuchArgument { .. } => "PAL0270",
            TransformError::NotReal { .. } => "PAL0271",
            TransformError::NotScalar { .. } => "PAL0272",
            TransformError::NotLinear { .. } => "PAL0273",
            TransformError::Repeated { .. } => "PAL0274",
            TransformError::Narrowed { .. } => "PAL0277",
        }
    }
}

fn check_wrt(program: &Program, wrt: &[usize]) -> Result<(), TransformError> {
    linear::check_rules(program)?;
    for op in Narrow::ALL.map(Op::Unpack) {
        if program.count(|inst| inst.op == op) > 0 {
            return Err(TransformError::Narrowed { op: op.name() });
        }
    }
    let main = program.main();
    let count = main.body.params.len();
    for (at, &position) in wrt.iter().enumerate() {
        let param =
            *main.body.params.get(position).ok_or(TransformError::NoSuchArgument { position, count })?;
        let ty = main.ty(param);
        let name =
            || main.name_of(param).map_or_else(|| format!("number {position}"), |name| name.to_string());
        if !ty.is_real() {
            return Err(TransformError::NotReal { name: name(), ty });
        }
        if wrt[..at].contains(&position) {
            return Err(TransformError::Repeated { name: name() });
        }
    }
    Ok(())
}

/// The same program with an entry that nothing calls: it gets another signature, which its callers do not
/// expect.
fn apart_from_calls(mut program: Program) -> Program {
    let is_rule = program.functions.iter().any(|function| function.tangent_rule == Some(program.entry));
    if !is_rule && program.count(|inst| inst.op == Op::Call(program.entry)) == 0 {
        return program;
    }
    let called = program.entry;
    let main = program.main().clone();
    let mut builder = FunctionBuilder::new(&main.name);
    let params: Vec<Value> = main
        .body
        .params
        .iter()
        .map(|&param| builder.param(main.name_of(param).map_or("argument", |name| name), main.ty(param)))
        .collect();
    builder.declare(called, main.param_types(), main.result_types());
    let results = builder.emit_all(Op::Call(called), &params);
    let (wrapper, _) = builder.finish(&results);
    let name = program.fresh_name(&format!("{}_itself", main.name));
    program.functions[called.index()].name = name;
    program.entry = FuncId(program.functions.len() as u32);
    program.functions.push(wrapper);
    program
}

/// The program as transforms want it, and its entry apart from it: nothing calls that.
fn prepared(program: Program) -> (Program, Function) {
    let mut program = passes::prepared(apart_from_calls(program));
    let entry = program.entry.index();
    let name = program.functions[entry].name.clone();
    let main = core::mem::replace(&mut program.functions[entry], Function::new(&name));
    (program, main)
}

/// Puts a new entry function in place of the old one.
fn with_entry(mut functions: Vec<Function>, at: FuncId, entry: Function, outputs: Vec<Arc<str>>) -> Program {
    functions[at.index()] = entry;
    functions.iter_mut().for_each(Function::renumber);
    passes::without_dead(Program { functions, entry: at, outputs })
}

/// A zero of the type and shape of `value`.
pub(crate) fn zeros_like(builder: &mut FunctionBuilder, value: Value) -> Value {
    let ty = builder.ty(value);
    let lengths: Vec<Value> = (0..ty.rank).map(|axis| builder.dim(value, axis)).collect();
    let zero = zero(builder, ty.elem);
    builder.fill(zero, &lengths)
}

/// A scalar zero.
pub(crate) fn zero(builder: &mut FunctionBuilder, elem: Elem) -> Value {
    match elem {
        Elem::F64 => builder.real(0.0),
        Elem::F32 => {
            let wide = builder.real(0.0);
            builder.convert(Elem::F32, wide)
        }
        Elem::Int => builder.int(0),
        Elem::Bool => builder.bool(false),
    }
}

/// `d` and the name, for tangents.
fn tangent_name(name: &str) -> Arc<str> {
    format!("d{name}").into()
}

/// A program that also gives directional derivatives: see the module's table. `wrt` lists arguments by
/// position.
///
/// # Errors
/// If an entry of `wrt` is not a real argument.
pub fn jvp(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    check_wrt(program, wrt)?;
    let (program, main) = prepared(program.clone());
    let mut differentiator = Differentiator::new(program.functions);
    let Tangents { function, results, .. } = differentiator.tangents(&main, wrt);
    let mut outputs = program.outputs.clone();
    let mut all = main.body.results.clone();
    let mut builder = FunctionBuilder::resume(function);
    for (at, (&result, tangent)) in main.body.results.iter().zip(results).enumerate() {
        if main.ty(result).is_real() {
            all.push(tangent.unwrap_or_else(|| zeros_like(&mut builder, result)));
            outputs.push(tangent_name(&program.outputs[at]));
        }
    }
    let (function, _) = builder.finish(&all);
    Ok(verified(with_entry(differentiator.functions, program.entry, function, outputs), "jvp"))
}

/// How the cotangents of results are given.
#[derive(Clone, Copy, PartialEq)]
enum Seeds {
    /// As arguments.
    Arguments,
    /// 1 for the first result, nothing for the others.
    FirstIsOne,
}

/// Reverse mode: the original results, or so many of them, and a cotangent for each argument in `wrt`.
fn reverse(
    program: &Program,
    wrt: &[usize],
    how: Seeds,
    storage: &Storage,
    kept: usize,
) -> Result<Program, TransformError> {
    check_wrt(program, wrt)?;
    let (program, mut main) = prepared(unsweep(program));
    let mut differentiator = Differentiator::new(program.functions);
    let Tangents { mut function, params: tangent_params, results: tangents, mut primal } =
        differentiator.tangents(&main, wrt);
    // The tangent code holds them too.
    main.body.insts = Vec::new();
    // The tangent code as a function that is linear in its tangent arguments.
    let count = main.body.results.len();
    let mut linear_results: Vec<Value> = Vec::new();
    let mut seeded: Vec<(usize, Option<Value>)> = Vec::new();
    for (at, (&result, &tangent)) in main.body.results.iter().zip(&tangents).enumerate() {
        if main.ty(result).is_real() {
            seeded.push((at, tangent));
            linear_results.extend(tangent);
        }
    }
    function.body.results = [&main.body.results[..], &linear_results[..]].concat();
    differentiator.share_known(&mut function, &tangent_params, &mut primal);
    let known_results = function.body.results[..count].to_vec();
    let linear: Vec<bool> = function.body.params.iter().map(|param| tangent_params.contains(param)).collect();
    let mut versions = Versions::new(differentiator, storage.clone());
    let mut splitter = Splitter::new(&function, &linear, primal, &mut versions);

    let mut params = main.body.params.clone();
    let mut seeds = Vec::new();
    for &(at, tangent) in &seeded {
        match how {
            Seeds::Arguments => {
                let ty = main.ty(main.body.results[at]);
                let seed = splitter.b.fresh(ty);
                splitter.b.name(seed, &format!("c{}", program.outputs[at]));
                params.push(seed);
                seeds.extend(tangent.map(|tangent| (tangent, seed)));
            }
            Seeds::FirstIsOne if at == 0 => {
                if let Some(tangent) = tangent {
                    let one = splitter.b.real(1.0);
                    let elem = main.ty(main.body.results[at]).elem;
                    let one = if splitter.elem(one) == elem { one } else { splitter.b.convert(elem, one) };
                    seeds.push((tangent, one));
                }
            }
            Seeds::FirstIsOne => {}
        }
    }
    let (insts, found) = splitter.transpose(&function, &seeds, &tangent_params, &[]);
    let problem = splitter.not_linear.take();
    let (mut function, mistakes) = splitter.b.finish(&[]);
    assert!(mistakes.is_empty(), "reverse code is well typed: {mistakes:?}");
    if let Some((span, op)) = problem.or(versions.not_linear.take()) {
        return Err(TransformError::NotLinear { op, span });
    }
    let kept = kept.min(count);
    function.body = Block { params, insts, results: [&known_results[..kept], &found].concat() };
    let mut outputs = program.outputs[..kept].to_vec();
    for &position in wrt {
        let name = main.name_of(main.body.params[position]).map_or("argument", |name| name);
        outputs.push(format!("grad_{name}").into());
    }
    let mut functions = versions.differentiator.functions;
    functions[program.entry.index()] = function;
    functions.iter_mut().for_each(Function::renumber);
    let mut made = Program { functions, entry: program.entry, outputs };
    // Before what is dead goes, loops and their sweeps have the same text.
    if !storage.two_runs {
        turned(&mut made);
    }
    Ok(passes::without_dead(made))
}

/// A program cut in two at a point: what depends on the point only, and what is linear in the tangents.
#[derive(Clone, Debug)]
pub struct Linearized {
    /// The arguments of the original; its results, then residuals.
    pub primal: Program,
    /// The residuals, then a tangent for each argument in `wrt`; a tangent for each real result.
    pub linear: Program,
    /// How many residuals there are.
    pub residuals: usize,
}

/// Cuts a program into a primal part that keeps residuals and a linear part that uses them: see
/// [`Linearized`].
///
/// # Errors
/// If an entry of `wrt` is not a real argument.
pub fn linearize(program: &Program, wrt: &[usize]) -> Result<Linearized, TransformError> {
    check_wrt(program, wrt)?;
    let (program, main) = prepared(unsweep(program));
    let mut differentiator = Differentiator::new(program.functions);
    let Tangents { mut function, params: tangents, results, mut primal } =
        differentiator.tangents(&main, wrt);
    differentiator.share_known(&mut function, &tangents, &mut primal);
    let known = function.body.results.clone();
    let pairs: Vec<(Value, Option<Value>)> =
        known.iter().copied().zip(results).filter(|(result, _)| function.ty(*result).is_real()).collect();
    function.body.results = known.iter().copied().chain(pairs.iter().filter_map(|pair| pair.1)).collect();
    let linear: Vec<bool> = function.body.params.iter().map(|param| tangents.contains(param)).collect();
    let mut versions = Versions::new(differentiator, Storage::default());
    let mut splitter = Splitter::new(&function, &linear, primal, &mut versions);
    let (insts, mut block) = splitter.forward(&function, &pairs);
    block.params = tangents;
    let residuals = block.captures();
    let (function, mistakes) = splitter.b.finish(&[]);
    assert!(mistakes.is_empty(), "linear code is well typed: {mistakes:?}");
    let mut first = function.clone();
    first.body =
        Block { params: main.body.params.clone(), insts, results: [known, residuals.clone()].concat() };
    let mut second = function;
    block.params.splice(0..0, residuals.iter().copied());
    second.body = block;
    let kept = (0..residuals.len()).map(|at| format!("residual_{at}").into());
    let outputs = program.outputs.iter().cloned().chain(kept).collect();
    let functions = versions.differentiator.functions;
    let primal = with_entry(functions.clone(), program.entry, first, outputs);
    let types = main.result_types();
    let real = program.outputs.iter().zip(types).filter(|(_, ty)| ty.is_real());
    let outputs = real.map(|(name, _)| tangent_name(name)).collect();
    let linear = with_entry(functions, program.entry, second, outputs);
    Ok(Linearized {
        primal: verified(primal, "linearize"),
        linear: verified(linear, "linearize"),
        residuals: residuals.len(),
    })
}

/// The transpose of a program that is linear in the arguments at `by`. Its arguments are the other ones, then
/// a cotangent for each result that depends on the linear ones, then for each linear argument a cotangent to
/// add to; its results are these sums.
///
/// # Errors
/// If an entry of `by` is not a real argument, or the program is not linear in them.
pub fn transpose(program: &Program, by: &[usize]) -> Result<Program, TransformError> {
    check_wrt(program, by)?;
    let program = &passes::prepared(apart_from_calls(unsweep(program)));
    let main = program.main();
    let marked: Vec<bool> = (0..main.body.params.len()).map(|at| by.contains(&at)).collect();
    linear::check(&program.functions, main, &marked)?;
    let mut versions = Versions::new(Differentiator::new(program.functions.clone()), Storage::default());
    let id = versions.transposed_version(program.entry, &marked);
    if let Some((span, op)) = versions.not_linear.take() {
        return Err(TransformError::NotLinear { op, span });
    }
    let mut functions = versions.differentiator.functions;
    let mut entry = functions[id.index()].clone();
    functions[id.index()].name = "unused".into();
    entry.name = main.name.clone();
    let name = |at: &usize| main.name_of(main.body.params[*at]).map_or("argument", |name| name);
    let outputs = by.iter().map(|at| format!("grad_{}", name(at)).into()).collect();
    Ok(verified(with_entry(functions, program.entry, entry, outputs), "transpose"))
}

/// A program that pulls cotangents of its results back to its arguments: see the module's table.
///
/// # Errors
/// If an entry of `wrt` is not a real argument.
pub fn vjp(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    let program = reverse(program, wrt, Seeds::Arguments, &Storage::default(), usize::MAX)?;
    Ok(verified(program, "vjp"))
}

fn scalar_result(program: &Program) -> Result<(), TransformError> {
    let found = program.output_types().first().copied();
    match found {
        Some(ty) if ty.is_real() && ty.is_scalar() => Ok(()),
        Some(ty) => Err(TransformError::NotScalar { found: ty.to_string() }),
        None => Err(TransformError::NotScalar { found: "nothing".to_string() }),
    }
}

/// The gradient of the first result, beside all results.
pub(crate) fn results_and_grad(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    scalar_result(program)?;
    let program = reverse(program, wrt, Seeds::FirstIsOne, &Storage::default(), usize::MAX)?;
    Ok(verified(program, "grad"))
}

fn gradient(
    program: &Program,
    wrt: &[usize],
    with_value: bool,
    storage: &Storage,
) -> Result<Program, TransformError> {
    scalar_result(program)?;
    reverse(program, wrt, Seeds::FirstIsOne, storage, usize::from(with_value))
}

/// A program that gives the first result and its gradient: see the module's table.
///
/// # Errors
/// If the first result is not a real scalar, or an entry of `wrt` is not a real argument.
pub fn value_and_grad(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    gradient(program, wrt, true, &Storage::default())
}

/// [`value_and_grad`] with a choice of what is kept and what is computed again.
///
/// # Errors
/// As [`value_and_grad`].
pub fn value_and_grad_stored(
    program: &Program,
    wrt: &[usize],
    storage: &Storage,
) -> Result<Program, TransformError> {
    let made = gradient(program, wrt, true, storage)?;
    // Afterwards, so that all else is as it is without.
    Ok(if storage.rounds.is_empty() { made } else { with_rounds(&made, &storage.rounds) })
}

/// A program that gives the gradient of the first result: see the module's table.
///
/// # Errors
/// If the first result is not a real scalar, or an entry of `wrt` is not a real argument.
pub fn grad(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    gradient(program, wrt, false, &Storage::default())
}
