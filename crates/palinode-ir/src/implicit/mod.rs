//! Equations in programs: fixed points `x = f(x, p)` and roots `r(x, p) = 0`.
//!
//! Input: a function of unknowns and of what it reads besides, and how to search. Output: functions of the
//! same program:
//!
//! | function | maps | by |
//! |---|---|---|
//! | the search | start, `p` -> a point that satisfies the equation, or a run error | a `while` loop (`search.rs`), ended by [`Op::Settled`] |
//! | the solution | that point, `p` -> the same point | nothing: it is there for its tangent rule |
//! | the rule | point, `p`, their tangents -> the tangent of the point | `R_x dx = -R_p dp`, solved by [`Linalg::SolveChecked`] |
//!
//! No derivative goes through the search; the rule is the implicit function theorem. It is a program like any
//! other: reverse mode is its transpose (with the transposed system), and second derivatives are derivatives
//! of it. For them the rule takes the point through the solution, so that `R_x` and `R_p` move with it.
//!
//! Invariants: a point that comes out of a search was evaluated and found to satisfy the equation; a tangent
//! or cotangent comes out of a system whose residual was computed from it. Limits: the matrix `R_x` is dense,
//! made of one tangent for each unknown; it is made again in reverse. Run on numbers that carry derivatives,
//! a program differentiates the rounds of the search instead.

mod search;

use crate::builder::FunctionBuilder;
use crate::checked::verified;
use crate::op::{Axis, Comparison, FuncId, IntOp, Linalg, Op, Reduction, Search};
use crate::passes;
use crate::program::{Block, Function, Program, Value};
use crate::transform::Differentiator;
use crate::types::{Span, Type};
use palinode_core::rules::Row;

/// By so much may the partials change over the error of a solution, relative to the largest of its equation,
/// and still give a derivative.
const MOST_CHANGE: f64 = 0.1;

/// What an equation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `x = f(x, p)`.
    FixedPoint,
    /// `r(x, p) = 0`.
    Root,
}

impl Form {
    /// As a word of the language.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::FixedPoint => "fixed_point",
            Form::Root => "root",
        }
    }
}

/// An equation and the functions that stand for it.
#[derive(Clone, Debug)]
pub(crate) struct Equation {
    pub(crate) form: Form,
    pub(crate) search: Search,
    /// Of the residual (Picard, Anderson) or the step (Newton), measured against `1 + max |x|`.
    pub(crate) tolerance: f64,
    /// The most rounds of the search.
    pub(crate) rounds: i64,
    /// How many of the first parameters of the map are unknowns; its results are as many.
    pub(crate) unknowns: usize,
    pub(crate) functions: Functions,
    pub(crate) span: Span,
}

/// The numbers of the functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    /// `f` or `r`, of the unknowns and of what it reads besides.
    pub(crate) map: FuncId,
    pub(crate) search: FuncId,
    pub(crate) solution: FuncId,
    pub(crate) rule: FuncId,
}

impl Equation {
    /// The name of one of its functions; the point keeps it apart from names of the source.
    pub(crate) fn name(&self, part: &str) -> String {
        format!("{}.{}.{part}", self.form.name(), self.functions.map.0)
    }

    /// Search, solution and rule with the types of what [`define`] will make, so that they can be called.
    pub(crate) fn declared(&self, map: &Function) -> [(FuncId, Function); 3] {
        let params = map.param_types();
        let reals: Vec<Type> = params.iter().copied().filter(|ty| ty.is_real()).collect();
        let first = |name: &str, params: &[Type], from: usize| {
            let mut b = FunctionBuilder::new(&self.name(name));
            let params: Vec<Value> = params.iter().map(|&ty| b.param("x", ty)).collect();
            b.finish(&params[from..from + self.unknowns]).0
        };
        let mut solution = first("solution", &params, 0);
        solution.tangent_rule = Some(self.functions.rule);
        let rule = first("rule", &[&params[..], &reals].concat(), params.len());
        let Functions { search, solution: id, rule: rule_id, .. } = self.functions;
        [(search, first("search", &params, 0)), (id, solution), (rule_id, rule)]
    }
}

/// Writes the searches and the rules of a program's equations.
pub(crate) fn define(program: Program, equations: &[Equation]) -> Program {
    if equations.is_empty() {
        return program;
    }
    let mut differentiator = Differentiator::new(passes::unfuse(&program).functions);
    let mut made = Vec::new();
    for equation in equations {
        let before = differentiator.functions.len();
        let map = program.function(equation.functions.map);
        let unknowns: Vec<bool> = (0..map.body.params.len()).map(|at| at < equation.unknowns).collect();
        let read: Vec<bool> = map
            .body
            .params
            .iter()
            .zip(&unknowns)
            .map(|(&p, unknown)| !unknown && map.ty(p).is_real())
            .collect();
        let by_unknowns = differentiator.version(equation.functions.map, &unknowns);
        let by_read = read.contains(&true).then(|| differentiator.version(equation.functions.map, &read));
        for function in &mut differentiator.functions[before..] {
            place(&mut function.body, equation.span);
        }
        made.push((equation.functions.search, search::function(equation, map, by_unknowns)));
        made.push((equation.functions.rule, rule(equation, map, by_unknowns, by_read)));
    }
    let mut program = program;
    let first = program.functions.len();
    program.functions.extend(differentiator.functions.drain(first..));
    for (id, function) in made {
        program.functions[id.index()] = function;
    }
    program.functions.iter_mut().for_each(Function::renumber);
    verified(program, "the definition of equations")
}

/// Gives instructions that have no place in the source that of the equation.
fn place(block: &mut Block, span: Span) {
    for inst in &mut block.insts {
        if inst.span.is_none() {
            inst.span = span;
        }
        inst.blocks.iter_mut().for_each(|block| place(block, span));
    }
}

/// Writes code about an equation, with its unknowns as one vector, or as one number if that is all there is.
struct Writer<'a> {
    b: FunctionBuilder,
    equation: &'a Equation,
    /// The map with tangents by its unknowns.
    by_unknowns: FuncId,
    /// What the map reads besides its unknowns.
    read: Vec<Value>,
    /// The lengths of each unknown, and how many elements that makes.
    shapes: Vec<(Vec<Value>, Value)>,
    /// How many numbers there are in all.
    count: Value,
    /// The only unknown is a number and is not made a vector.
    is_number: bool,
}

impl<'a> Writer<'a> {
    /// Starts a function with the parameters of the map; gives its unknowns as well.
    fn new(
        equation: &'a Equation,
        map: &Function,
        name: &str,
        by_unknowns: FuncId,
    ) -> (Writer<'a>, Vec<Value>) {
        let mut b = FunctionBuilder::new(&equation.name(name));
        b.at(equation.span);
        let (params, results) = (map.param_types(), map.result_types());
        let name_of = |at: usize| map.name_of(map.body.params[at]).map_or("x", |name| name);
        let values: Vec<Value> = (0..params.len()).map(|at| b.param(name_of(at), params[at])).collect();
        let unknown_types = &params[..equation.unknowns];
        b.declare(equation.functions.map, params.clone(), results.clone());
        b.declare(equation.functions.solution, params.clone(), unknown_types.to_vec());
        b.declare(by_unknowns, [&params[..], unknown_types].concat(), [&results[..], &results].concat());
        let (unknowns, read) = values.split_at(equation.unknowns);
        let one = b.int(1);
        let mut shapes = Vec::new();
        for &unknown in unknowns {
            let lengths: Vec<Value> = (0..b.ty(unknown).rank).map(|axis| b.dim(unknown, axis)).collect();
            let size = lengths.iter().copied().reduce(|a, c| b.integer(IntOp::Mul, a, c)).unwrap_or(one);
            shapes.push((lengths, size));
        }
        let sizes: Vec<Value> = shapes.iter().map(|(_, size)| *size).collect();
        let count = sizes.into_iter().reduce(|a, c| b.integer(IntOp::Add, a, c)).unwrap_or(one);
        let is_number = equation.unknowns == 1 && unknown_types[0].is_scalar();
        let (unknowns, read) = (unknowns.to_vec(), read.to_vec());
        (Writer { b, equation, by_unknowns, read, shapes, count, is_number }, unknowns)
    }

    /// One vector of all these numbers and arrays.
    fn flat(&mut self, values: &[Value]) -> Value {
        if self.is_number {
            return values[0];
        }
        let mut parts = Vec::new();
        for (at, &value) in values.iter().enumerate() {
            parts.push(match self.b.ty(value).rank {
                0 => {
                    let one = self.b.int(1);
                    self.b.fill(value, &[one])
                }
                1 => value,
                _ => {
                    let size = self.shapes[at].1;
                    self.b.emit(Op::Reshape, &[value, size])
                }
            });
        }
        if parts.len() == 1 { parts[0] } else { self.b.emit(Op::Concat(0), &parts) }
    }

    /// The numbers and arrays of which [`Writer::flat`] makes this vector.
    fn apart(&mut self, vector: Value) -> Vec<Value> {
        if self.is_number {
            return vec![vector];
        }
        let shapes = self.shapes.clone();
        let mut start = self.b.int(0);
        let step = self.b.int(1);
        let mut values = Vec::new();
        for (lengths, size) in &shapes {
            if lengths.is_empty() {
                values.push(self.b.index(vector, &[start]));
            } else {
                let mut part = vector;
                if shapes.len() > 1 {
                    part = self.b.emit(Op::Read(vec![Axis::Range]), &[vector, start, *size, step]);
                }
                if lengths.len() > 1 {
                    part = self.b.emit(Op::Reshape, &[&[part], &lengths[..]].concat());
                }
                values.push(part);
            }
            start = self.b.integer(IntOp::Add, start, *size);
        }
        values
    }

    /// `f(x) - x` or `r(x)`, and `f(x)` itself (`x - r(x)` for a root): where Picard goes.
    fn residual(&mut self, x: Value) -> (Value, Value) {
        let unknowns = self.apart(x);
        let args = [&unknowns[..], &self.read].concat();
        let values = self.b.emit_all(Op::Call(self.equation.functions.map), &args);
        match self.equation.form {
            Form::FixedPoint => {
                // Before they are made one vector, so that shapes must agree.
                let pairs = values.iter().zip(&unknowns);
                let steps: Vec<Value> = pairs.map(|(&value, &unknown)| self.b.sub(value, unknown)).collect();
                (self.flat(&steps), self.flat(&values))
            }
            Form::Root => {
                let residual = self.flat(&values);
                let next = self.b.sub(x, residual);
                (residual, next)
            }
        }
    }

    /// The tangent of the residual along a direction.
    fn along(&mut self, args: &[Value], direction: Value) -> Value {
        let directions = self.apart(direction);
        let given = self.b.emit_all(Op::Call(self.by_unknowns), &[args, &directions].concat());
        let moved = self.flat(&given[given.len() / 2..]);
        match self.equation.form {
            Form::FixedPoint => self.b.sub(moved, direction),
            Form::Root => moved,
        }
    }

    /// The matrix of the residual's partials by the unknowns, column by column; one partial for one number.
    fn partials(&mut self, x: Value) -> Value {
        let count = self.count;
        let unknowns = self.apart(x);
        let args = [&unknowns[..], &self.read].concat();
        if self.is_number {
            let one = self.b.real(1.0);
            return self.along(&args, one);
        }
        let zero = self.b.real(0.0);
        let start = self.b.fill(zero, &[count, count]);
        let types = [Type::INT, self.b.ty(start)];
        let params = self.b.open(&types);
        let none = self.b.fill(zero, &[count]);
        let one = self.b.real(1.0);
        let unit = self.b.update(none, &[params[0]], one);
        let column = self.along(&args, unit);
        let next = self.b.emit(Op::Write(vec![Axis::All, Axis::At]), &[params[1], column, params[0]]);
        let block = self.b.close(&[next]);
        let op = Op::For { descending: false, keep: None };
        self.b.emit_blocks(op, &[count, start], vec![block], &types[1..])[0]
    }

    /// The matrix, or zeros, which no system can be solved with, where the point is not known well enough for
    /// it: a search stops *near* a fold, where the matrix is regular and the residual small, but the partials
    /// depend on where exactly it stopped. Newton's step from the point is taken as its error.
    fn trusted(&mut self, matrix: Value, x: Value) -> Value {
        let (matrix_here, x) =
            (self.b.emit(Op::StopGradient, &[matrix]), self.b.emit(Op::StopGradient, &[x]));
        let read = self.read.clone();
        for value in &mut self.read {
            if self.b.ty(*value).is_real() {
                *value = self.b.emit(Op::StopGradient, &[*value]);
            }
        }
        let (residual, _) = self.residual(x);
        let step = self.solve(matrix_here, residual, false);
        let moved = self.b.sub(x, step);
        let matrix_there = self.partials(moved);
        self.read = read;
        let change = self.b.sub(matrix_there, matrix_here);
        let (change, size) = (self.largest_in_rows(change), self.largest_in_rows(matrix_here));
        let part = self.b.real(MOST_CHANGE);
        let most = self.b.mul(size, part);
        let excess = self.b.sub(change, most);
        let (one, none) = (self.b.real(1.0), self.b.real(0.0));
        let worst = if self.is_number {
            excess
        } else {
            let count = self.b.int(1);
            // A system of nothing is all right.
            let nothing = self.b.fill(none, &[count]);
            let all = self.b.emit(Op::Concat(0), &[excess, nothing]);
            self.b.emit(Op::Reduce(Reduction::Max, vec![0]), &[all])
        };
        let worst = self.b.emit(Op::StopGradient, &[worst]);
        let is_trusted = self.b.compare(Comparison::LessEq, worst, none);
        let factor = self.b.select(is_trusted, one, none);
        self.b.mul(matrix, factor)
    }

    /// The largest partial of each equation: they need not be of one scale.
    fn largest_in_rows(&mut self, matrix: Value) -> Value {
        let sizes = self.b.map(Row::Abs, &[matrix]);
        if self.is_number { sizes } else { self.b.emit(Op::Reduce(Reduction::Max, vec![1]), &[sizes]) }
    }

    /// The largest absolute value; NaN if one of the numbers is infinite or NaN. It has no derivative: how
    /// long a search takes is no decision of the program.
    fn size(&mut self, vector: Value) -> Value {
        let vector = self.b.emit(Op::StopGradient, &[vector]);
        let sizes = self.b.map(Row::Abs, &[vector]);
        if self.is_number {
            let nothing = self.b.sub(sizes, sizes);
            return self.b.add(sizes, nothing);
        }
        let (zero, one) = (self.b.real(0.0), self.b.int(1));
        // A vector of nothing has size 0.
        let nothing = self.b.fill(zero, &[one]);
        let all = self.b.emit(Op::Concat(0), &[sizes, nothing]);
        let largest = self.b.emit(Op::Reduce(Reduction::Max, vec![0]), &[all]);
        // The largest ignores NaN.
        let total = self.b.sum(sizes);
        let nothing = self.b.sub(total, total);
        self.b.add(largest, nothing)
    }

    /// A system with the matrix of partials.
    fn solve(&mut self, matrix: Value, right: Value, step: bool) -> Value {
        if self.is_number {
            let one = self.b.int(1);
            let (matrix, right) = (self.b.fill(matrix, &[one, one]), self.b.fill(right, &[one]));
            let solved = self.system(matrix, right, step);
            let first = self.b.int(0);
            return self.b.index(solved, &[first]);
        }
        self.system(matrix, right, step)
    }

    fn system(&mut self, matrix: Value, right: Value, step: bool) -> Value {
        self.b.emit(Op::Linalg(Linalg::SolveChecked { transposed: false, step }), &[matrix, right])
    }

    fn finish(self, results: &[Value]) -> Function {
        let (function, mistakes) = self.b.finish(results);
        assert!(mistakes.is_empty(), "the functions of an equation are well typed: {mistakes:?}");
        function
    }
}

/// The tangent of the solution: `R_x dx = -R_p dp`.
fn rule(equation: &Equation, map: &Function, by_unknowns: FuncId, by_read: Option<FuncId>) -> Function {
    let (mut w, unknowns) = Writer::new(equation, map, "rule", by_unknowns);
    let (params, results) = (map.param_types(), map.result_types());
    let mut tangents = Vec::new();
    for (at, &ty) in params.iter().enumerate() {
        if ty.is_real() {
            let tangent = w.b.param("dx", ty);
            // The solution does not depend on the point that it was found at.
            if at >= equation.unknowns {
                tangents.push(tangent);
            }
        }
    }
    let Some(by_read) = by_read else {
        let none: Vec<Value> = unknowns.iter().map(|&x| crate::transform::zeros_like(&mut w.b, x)).collect();
        return w.finish(&none);
    };
    let types: Vec<Type> = tangents.iter().map(|&tangent| w.b.ty(tangent)).collect();
    w.b.declare(by_read, [&params[..], &types].concat(), [&results[..], &results].concat());
    let args = [&unknowns[..], &w.read].concat();
    let here = w.b.emit_all(Op::Call(equation.functions.solution), &args);
    let all = [&here[..], &w.read, &tangents].concat();
    let given = w.b.emit_all(Op::Call(by_read), &all);
    let moved = w.flat(&given[given.len() / 2..]);
    let right = w.b.neg(moved);
    let x = w.flat(&here);
    let matrix = w.partials(x);
    let matrix = w.trusted(matrix, x);
    let solved = w.solve(matrix, right, false);
    let found = w.apart(solved);
    w.finish(&found)
}
