//! Random sources, run twice: lowered and interpreted, and by a direct evaluator that mutates real arrays
//! through views. Without dense linear algebra the results are equal bit by bit, up to the sign of zeros.

use super::{compile, flat};
use crate::random::generate::plain_source;
use crate::random::shrink::shrunk;
use crate::random::source::{
    Condition, Function, Index, LENGTH, Matrix, Recursion, Rounds, Scalar, Source, Stmt, Vector, View,
};
use crate::random_programs::from_environment;
use palinode_core::Scalar as _;
use palinode_core::rules::Row;
use palinode_ir::interp::run;
use std::collections::HashMap;

/// What a name holds: an array is some places of a storage, in an order of its own.
#[derive(Clone)]
enum Held {
    Number(f64),
    Count(usize),
    Array(usize, Vec<usize>),
}

enum Flow {
    Next,
    Break,
    Continue,
    Return(f64),
}

struct Machine<'a> {
    functions: &'a [Function],
    storages: Vec<Vec<f64>>,
    names: HashMap<String, Held>,
}

fn row(name: &str, args: &[f64]) -> f64 {
    let row = if name == "digamma" { Row::Polygamma } else { Row::named(name).expect("a row") };
    let value = row.value(0, args);
    // What is rounded becomes an integer, which has one zero.
    if matches!(row, Row::Floor | Row::Ceil | Row::Round | Row::Trunc) { value + 0.0 } else { value }
}

fn binary(op: &str, x: f64, y: f64) -> f64 {
    match op.trim_end_matches('=') {
        "" => y,
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        // The rest has the sign of the divisor.
        "%" => match x % y {
            rest if rest != 0.0 && (rest < 0.0) != (y < 0.0) => rest + y,
            rest => rest,
        },
        other => panic!("`{other}` is no operator"),
    }
}

impl Machine<'_> {
    fn declare(&mut self, name: &str, data: Vec<f64>) {
        self.names.insert(name.to_string(), Held::Array(self.storages.len(), (0..data.len()).collect()));
        self.storages.push(data);
    }

    fn count(&self, name: &str) -> usize {
        let Held::Count(count) = self.names[name] else { panic!("{name} is no counter") };
        count
    }

    fn array(&self, name: &str) -> (usize, &[usize]) {
        let Held::Array(storage, places) = &self.names[name] else { panic!("{name} is no array") };
        (*storage, places)
    }

    fn elements(&self, name: &str) -> Vec<f64> {
        let (storage, places) = self.array(name);
        places.iter().map(|&at| self.storages[storage][at]).collect()
    }

    /// `name[at] op value`.
    fn set(&mut self, name: &str, at: usize, op: &str, value: f64) {
        let (storage, places) = self.array(name);
        let at = places[at];
        let place = &mut self.storages[storage][at];
        *place = binary(op, *place, value);
    }

    fn set_all(&mut self, name: &str, op: &str, values: Vec<f64>) {
        values.into_iter().enumerate().for_each(|(at, value)| self.set(name, at, op, value));
    }

    fn index(&self, index: &Index) -> usize {
        match index {
            Index::Fixed(at) => *at,
            Index::Counter(counter, shift) => (self.count(counter) + shift) % LENGTH,
            Index::Clamped(counter) => self.count(counter).min(LENGTH - 1),
            Index::Halved(counter) => self.count(counter) / 2 % LENGTH,
        }
    }

    fn cell(&self, row: &Index, column: &Index) -> usize {
        self.index(row) * LENGTH + self.index(column)
    }

    fn condition(&mut self, condition: &Condition) -> bool {
        match condition {
            Condition::Compare(op, x, y) => {
                let (x, y) = (self.scalar(x), self.scalar(y));
                match *op {
                    "<" => x < y,
                    "<=" => x <= y,
                    ">" => x > y,
                    _ => x >= y,
                }
            }
            Condition::Divides(counter, by) => self.count(counter).is_multiple_of(*by),
            Condition::Both(a, b) => self.condition(a) && self.condition(b),
            Condition::Either(a, b) => self.condition(a) || self.condition(b),
            Condition::Not(a) => !self.condition(a),
        }
    }

    fn scalars(&mut self, args: &[Scalar]) -> Vec<f64> {
        args.iter().map(|arg| self.scalar(arg)).collect()
    }

    fn scalar(&mut self, x: &Scalar) -> f64 {
        match x {
            Scalar::Literal(value) => *value,
            Scalar::Name(name) => match self.names[name] {
                Held::Number(value) => value,
                _ => panic!("{name} is no number"),
            },
            Scalar::Element(name, at) => self.elements(name)[self.index(at)],
            Scalar::Cell(name, row, column) => self.elements(name)[self.cell(row, column)],
            Scalar::Counter(name) => 0.25 * self.count(name) as f64,
            Scalar::Negate(x) => -self.scalar(x),
            Scalar::Binary(op, x, y) => binary(op, self.scalar(x), self.scalar(y)),
            Scalar::Call(name, args) => {
                let Some(function) = self.functions.iter().find(|function| function.name == *name) else {
                    return row(name, &self.scalars(args));
                };
                let (args, depth) = args.split_at(function.params.len());
                let depth = match depth {
                    [Scalar::Name(depth)] => depth.parse().expect("a number"),
                    _ => 0,
                };
                let args = self.scalars(args);
                self.call(function, args, depth)
            }
            Scalar::Power(x, n) => Row::Powi.value(*n, &[self.scalar(x)]),
            Scalar::Fold(name, args) => {
                let x = self.vector(&args[0]);
                match *name {
                    "sum" => f64::sum_of(&x),
                    "prod" => x.iter().product(),
                    "dot" => f64::dot(&x, &self.vector(&args[1])),
                    name => x.into_iter().reduce(|x, y| row(name, &[x, y])).expect("is not empty"),
                }
            }
            Scalar::OfMatrix(_, a) => f64::sum_of(&self.matrix(a)),
            Scalar::Choice(condition, x, y) => {
                let chosen = if self.condition(condition) { x } else { y };
                self.scalar(chosen)
            }
            Scalar::StopGradient(x) => self.scalar(x),
        }
    }

    fn vector(&mut self, x: &Vector) -> Vec<f64> {
        match x {
            Vector::Name(name) => self.elements(name),
            Vector::List(items) => self.scalars(items),
            Vector::Fill(x) => vec![self.scalar(x); LENGTH],
            Vector::Call(name, args) => {
                let args: Vec<Vec<f64>> = args.iter().map(|arg| self.vector(arg)).collect();
                let one = |at: usize| row(name, &args.iter().map(|arg| arg[at]).collect::<Vec<_>>());
                (0..LENGTH).map(one).collect()
            }
            Vector::Binary(op, x, y) => {
                let (x, y) = (self.vector(x), self.vector(y));
                x.into_iter().zip(y).map(|(x, y)| binary(op, x, y)).collect()
            }
            Vector::Scaled(s, x) => {
                let s = self.scalar(s);
                self.vector(x).into_iter().map(|x| s * x).collect()
            }
            Vector::MatVec(a, x) => {
                let (a, x) = (self.matrix(a), self.vector(x));
                a.chunks(LENGTH).map(|row| f64::dot(row, &x)).collect()
            }
            Vector::Row(name, at) => {
                let at = self.index(at) * LENGTH;
                self.elements(name)[at..at + LENGTH].to_vec()
            }
            Vector::Column(name, at) => {
                let at = self.index(at);
                self.elements(name).into_iter().skip(at).step_by(LENGTH).collect()
            }
            Vector::Gather(name, at) => at.iter().map(|&at| self.elements(name)[at]).collect(),
            Vector::Rotated(name) => {
                let mut x = self.elements(name);
                x.rotate_right(1);
                x
            }
            Vector::Choice(condition, x, y) => {
                let chosen = if self.condition(condition) { x } else { y };
                self.vector(chosen)
            }
            Vector::SumAxis(a, axis) => {
                let a = self.matrix(a);
                let a = if *axis == 0 { transposed(&a) } else { a };
                a.chunks(LENGTH).map(f64::sum_of).collect()
            }
            Vector::Solve(..) | Vector::Between(..) => panic!("is not plain"),
        }
    }

    fn matrix(&mut self, a: &Matrix) -> Vec<f64> {
        match a {
            Matrix::Name(name) => self.elements(name),
            Matrix::Outer(x, y) => {
                let (x, y) = (self.vector(x), self.vector(y));
                x.iter().flat_map(|x| y.iter().map(move |y| x * y)).collect()
            }
            Matrix::Product(a, b) => {
                let (a, b) = (self.matrix(a), transposed(&self.matrix(b)));
                let chain = |x: &[f64], y: &[f64]| x.iter().zip(y).fold(0.0, |c, (&x, &y)| x.mul_add(y, c));
                a.chunks(LENGTH).flat_map(|row| b.chunks(LENGTH).map(move |c| chain(row, c))).collect()
            }
            Matrix::Transposed(a) => transposed(&self.matrix(a)),
            Matrix::Call(name, a) => self.matrix(a).into_iter().map(|x| row(name, &[x])).collect(),
            Matrix::Binary(op, a, b) => {
                let (a, b) = (self.matrix(a), self.matrix(b));
                a.into_iter().zip(b).map(|(x, y)| binary(op, x, y)).collect()
            }
            Matrix::Reshaped(x) => self.vector(x).repeat(LENGTH),
            Matrix::Cholesky(_) | Matrix::Inverse(_) => panic!("is not plain"),
        }
    }

    fn call(&self, function: &Function, args: Vec<f64>, depth: usize) -> f64 {
        if function.recursion != Recursion::No && depth == 0 {
            return args[0];
        }
        let names = function.params.iter().cloned().zip(args.iter().map(|&arg| Held::Number(arg)));
        let mut inner = Machine { functions: self.functions, storages: Vec::new(), names: names.collect() };
        if let Flow::Return(value) = inner.block(&function.body) {
            return value;
        }
        let result = inner.scalar(&function.result);
        let mut next = [&[result], &args[1..]].concat();
        next.rotate_left(usize::from(matches!(function.recursion, Recursion::Rotated | Recursion::Mutual)));
        match function.recursion {
            Recursion::No => result,
            Recursion::Straight | Recursion::Rotated => 0.7 * self.call(function, next, depth - 1),
            Recursion::Mutual => {
                let last = next[next.len() - 1];
                next.rotate_right(1);
                0.7 * (self.call(function, next, depth - 1) + 0.1 * row("sin", &[last]))
            }
        }
    }

    fn view(&self, view: &View) -> Held {
        let (base, chosen): (&str, Vec<usize>) = match view {
            View::From(base, from) => (base, (*from..LENGTH).collect()),
            View::EverySecond(base) => (base, (0..LENGTH).step_by(2).collect()),
            View::Row(base, at) => (base, (at * LENGTH..(at + 1) * LENGTH).collect()),
            View::Column(base, at) | View::OfTranspose(base, at) => {
                (base, (0..LENGTH).map(|row| row * LENGTH + at).collect())
            }
            View::Of(base, from, to) => (base, (*from..*to).collect()),
            View::Two(base, at) => (base, at.to_vec()),
            View::Transposed(base) => {
                (base, (0..LENGTH * LENGTH).map(|at| at % LENGTH * LENGTH + at / LENGTH).collect())
            }
        };
        let (storage, places) = self.array(base);
        Held::Array(storage, chosen.into_iter().map(|at| places[at]).collect())
    }

    fn block(&mut self, stmts: &[Stmt]) -> Flow {
        for stmt in stmts {
            match self.stmt(stmt) {
                Flow::Next => {}
                other => return other,
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        match stmt {
            Stmt::VarScalar(name, value) => {
                let value = Held::Number(self.scalar(value));
                self.names.insert(name.clone(), value);
            }
            Stmt::VarVector(name, value) => {
                let value = self.vector(value);
                self.declare(name, value);
            }
            Stmt::VarMatrix(name, value) => {
                let value = self.matrix(value);
                self.declare(name, value);
            }
            Stmt::VarList(name, value) => {
                let value = vec![self.scalar(value)];
                self.declare(name, value);
            }
            Stmt::Append(name, value) => {
                let longer = [self.elements(name), vec![self.scalar(value)]].concat();
                self.declare(name, longer);
            }
            Stmt::DropFirst(name) => {
                let elements = self.elements(name);
                self.declare(name, elements[usize::from(elements.len() > 1)..].to_vec());
            }
            Stmt::Assign(name, op, value) => {
                let (before, value) = (self.scalar(&Scalar::Name(name.clone())), self.scalar(value));
                self.names.insert(name.clone(), Held::Number(binary(op, before, value)));
            }
            Stmt::AssignVector(name, op, value) => {
                let values = self.vector(value);
                self.set_all(name, op, values);
            }
            Stmt::AssignMatrix(name, value) => {
                let values = self.matrix(value);
                self.set_all(name, "=", values);
            }
            Stmt::SetElement(name, at, op, value) => {
                let value = self.scalar(value);
                self.set(name, self.index(at), op, value);
            }
            Stmt::SetCell(name, row, column, op, value) => {
                let value = self.scalar(value);
                self.set(name, self.cell(row, column), op, value);
            }
            Stmt::SetRow(name, at, value) => {
                let first = self.index(at) * LENGTH;
                let values = self.vector(value);
                values.into_iter().enumerate().for_each(|(at, value)| self.set(name, first + at, "=", value));
            }
            Stmt::SetSlice(name, lo, hi, value) => {
                let value = self.scalar(value);
                (*lo..*hi).for_each(|at| self.set(name, at, "=", value));
            }
            Stmt::SetList(name, places, op, value) => {
                let value = self.scalar(value);
                places.iter().for_each(|&at| self.set(name, at, op, value));
            }
            Stmt::Alias(name, view) => {
                let view = self.view(view);
                self.names.insert(name.clone(), view);
            }
            Stmt::SetAlias(name, at, op, value) => {
                let value = self.scalar(value);
                self.set(name, *at, op, value);
            }
            Stmt::FillAlias(name, value) => {
                let values = vec![self.scalar(value); self.array(name).1.len()];
                self.set_all(name, "=", values);
            }
            Stmt::Copy(to, from) => self.set_all(to, "=", self.elements(from)),
            Stmt::Swap(a, b) => match self.names[a] {
                Held::Array(..) => {
                    let (of_a, of_b) = (self.elements(a), self.elements(b));
                    self.set_all(a, "=", of_b);
                    self.set_all(b, "=", of_a);
                }
                _ => {
                    let [of_a, of_b] = [a, b].map(|name| self.names[name].clone());
                    self.names.extend([(a.clone(), of_b), (b.clone(), of_a)]);
                }
            },
            Stmt::For { counter, from, by, rounds, downwards, body } => {
                let end = match rounds {
                    Rounds::Fixed(n) => from + n,
                    Rounds::Counter(name) => self.count(name),
                    Rounds::Length(name) => self.array(name).1.len(),
                };
                let mut rounds: Vec<usize> = (*from..end).step_by(*by).collect();
                if *downwards {
                    rounds.reverse();
                }
                for round in rounds {
                    self.names.insert(counter.clone(), Held::Count(round));
                    match self.block(body) {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(value) => return Flow::Return(value),
                    }
                }
            }
            Stmt::While { name, bound, most, body, .. } => {
                for _ in 0..*most {
                    let is_below = self.scalar(&Scalar::Name(name.clone())) < *bound;
                    if !is_below {
                        break;
                    }
                    match self.block(body) {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(value) => return Flow::Return(value),
                    }
                }
            }
            Stmt::If(condition, yes, no) => {
                return if self.condition(condition) { self.block(yes) } else { self.block(no) };
            }
            Stmt::Break => return Flow::Break,
            Stmt::Continue => return Flow::Continue,
            Stmt::Return(value) => return Flow::Return(self.scalar(value)),
            Stmt::Factors(..) => panic!("is not plain"),
        }
        Flow::Next
    }
}

fn transposed(a: &[f64]) -> Vec<f64> {
    (0..LENGTH * LENGTH).map(|at| a[at % LENGTH * LENGTH + at / LENGTH]).collect()
}

/// Whether a source runs; an error if it computes something else than the evaluator.
fn agree(source: &Source) -> Result<bool, String> {
    let outputs: Vec<&String> = source
        .body
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::VarScalar(name, _) | Stmt::VarVector(name, _) | Stmt::VarMatrix(name, _) => Some(name),
            Stmt::VarList(name, _) => Some(name),
            _ => None,
        })
        .collect();
    let mut text = source.text();
    outputs.iter().for_each(|name| text += &format!("output {name}\n"));
    let model = compile(&text);
    let Ok(found) = run(&model.program, &super::defaults(&model)) else { return Ok(false) };
    let mut machine = Machine { functions: &source.functions, storages: Vec::new(), names: HashMap::new() };
    for (name, value) in &source.scalars {
        machine.names.insert(name.clone(), Held::Number(*value));
    }
    for (name, values) in &source.vectors {
        machine.declare(name, values.to_vec());
    }
    for (name, values) in &source.matrices {
        machine.declare(name, values.concat());
    }
    let _ = machine.block(&source.body);
    let mut expected = vec![machine.scalar(&source.loss)];
    for name in outputs {
        match machine.names[name] {
            Held::Number(value) => expected.push(value),
            _ => expected.extend(machine.elements(name)),
        }
    }
    let found = flat(&found);
    let same = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
    if same { Ok(true) } else { Err(format!("{text}\nlowered  {found:?}\ndirectly {expected:?}")) }
}

#[test]
fn lowered_and_direct_agree() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 300));
    let mut ran = 0;
    for seed in first..first + count {
        let source = plain_source(seed);
        match agree(&source) {
            Ok(runs) => ran += u64::from(runs),
            Err(_) => {
                let fails = |candidate: &Source| {
                    palinode_ir::pal::compile(&candidate.text()).is_ok() && agree(candidate).is_err()
                };
                panic!("seed {seed}: {}", agree(&shrunk(source, &fails)).unwrap_err());
            }
        }
    }
    assert!(ran * 10 > count * 9, "{ran} of {count} ran");
}
