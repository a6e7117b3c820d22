//! A program that fails -> a small program that fails: statements are removed, blocks take the place of their
//! loops and branches, expressions that of the expressions around them, as long as the failure stays.

use super::source::{Condition, Function, Matrix, Scalar, Source, Stmt, Vector};

/// The smallest program found for which `fails` holds.
pub(crate) fn shrunk(source: Source, fails: &dyn Fn(&Source) -> bool) -> Source {
    let mut best = source;
    let mut progress = true;
    while progress {
        progress = false;
        for edit in [remove_function, edit_block, edit_scalar, edit_vector, edit_matrix] {
            let mut at = 0;
            while let Some(candidate) = edit(&best, at) {
                if candidate.text().len() < best.text().len() && fails(&candidate) {
                    best = candidate;
                    progress = true;
                } else {
                    at += 1;
                }
            }
        }
    }
    best
}

fn remove_function(source: &Source, at: usize) -> Option<Source> {
    let mut source = source.clone();
    (at < source.functions.len()).then(|| {
        source.functions.remove(at);
        source
    })
}

/// Calls `f` with every list of statements.
fn for_each_block(source: &mut Source, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
    fn inside(block: &mut Vec<Stmt>, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
        for stmt in block.iter_mut() {
            match stmt {
                Stmt::For { body, .. } | Stmt::While { body, .. } => inside(body, f),
                Stmt::If(_, yes, no) => {
                    inside(yes, f);
                    inside(no, f);
                }
                _ => {}
            }
        }
        f(block);
    }
    for function in &mut source.functions {
        inside(&mut function.body, f);
    }
    inside(&mut source.body, f);
}

/// Edit number `at`: a statement removed, or replaced by what is inside it.
fn edit_block(source: &Source, at: usize) -> Option<Source> {
    let mut source = source.clone();
    let (mut number, mut done) = (0, false);
    for_each_block(&mut source, &mut |block| {
        for position in 0..block.len() {
            if done {
                return;
            }
            if number == at {
                block.remove(position);
                done = true;
                return;
            }
            number += 1;
            let inside = match &block[position] {
                Stmt::For { body, .. } | Stmt::While { body, .. } => vec![body.clone()],
                Stmt::If(_, yes, no) => vec![yes.clone(), no.clone()],
                _ => Vec::new(),
            };
            for replacement in inside {
                if number == at {
                    block.splice(position..=position, replacement);
                    done = true;
                    return;
                }
                number += 1;
            }
        }
    });
    done.then_some(source)
}

macro_rules! all {
    ($self:ident: $($kind:ident $part:expr),+) => {{
        $($self.$kind($part);)+
    }};
}

/// Visits every expression, outer ones first.
struct Visitor<'a> {
    scalar: &'a mut dyn FnMut(&mut Scalar),
    vector: &'a mut dyn FnMut(&mut Vector),
    matrix: &'a mut dyn FnMut(&mut Matrix),
}

impl Visitor<'_> {
    fn source(&mut self, source: &mut Source) {
        for Function { body, result, .. } in &mut source.functions {
            self.block(body);
            self.scalar(result);
        }
        self.block(&mut source.body);
        self.scalar(&mut source.loss);
    }

    fn block(&mut self, block: &mut [Stmt]) {
        for stmt in block {
            match stmt {
                Stmt::VarScalar(_, x)
                | Stmt::VarList(_, x)
                | Stmt::Append(_, x)
                | Stmt::Assign(_, _, x)
                | Stmt::SetElement(_, _, _, x)
                | Stmt::SetCell(_, _, _, _, x)
                | Stmt::SetSlice(_, _, _, x)
                | Stmt::SetList(_, _, _, x)
                | Stmt::SetAlias(_, _, _, x)
                | Stmt::FillAlias(_, x)
                | Stmt::Return(x) => self.scalar(x),
                Stmt::VarVector(_, x) | Stmt::AssignVector(_, _, x) | Stmt::SetRow(_, _, x) => self.vector(x),
                Stmt::VarMatrix(_, x) | Stmt::AssignMatrix(_, x) | Stmt::Factors(_, _, x) => self.matrix(x),
                Stmt::Alias(..) | Stmt::DropFirst(_) | Stmt::Copy(..) | Stmt::Swap(..) => {}
                Stmt::Break | Stmt::Continue => {}
                Stmt::For { body, .. } | Stmt::While { body, .. } => self.block(body),
                Stmt::If(condition, yes, no) => {
                    self.condition(condition);
                    self.block(yes);
                    self.block(no);
                }
            }
        }
    }

    fn condition(&mut self, condition: &mut Condition) {
        match condition {
            Condition::Compare(_, x, y) => all!(self: scalar x, scalar y),
            Condition::Divides(..) => {}
            Condition::Both(a, b) | Condition::Either(a, b) => all!(self: condition a, condition b),
            Condition::Not(a) => self.condition(a),
        }
    }

    fn scalar(&mut self, x: &mut Scalar) {
        (self.scalar)(x);
        match x {
            Scalar::Literal(_)
            | Scalar::Name(_)
            | Scalar::Element(..)
            | Scalar::Cell(..)
            | Scalar::Counter(_) => {}
            Scalar::Negate(x) | Scalar::Power(x, _) | Scalar::StopGradient(x) => self.scalar(x),
            Scalar::Binary(_, x, y) => all!(self: scalar x, scalar y),
            Scalar::Call(_, args) => args.iter_mut().for_each(|arg| self.scalar(arg)),
            Scalar::Fold(_, args) => args.iter_mut().for_each(|arg| self.vector(arg)),
            Scalar::OfMatrix(_, a) => self.matrix(a),
            Scalar::Choice(condition, x, y) => all!(self: condition condition, scalar x, scalar y),
        }
    }

    fn vector(&mut self, x: &mut Vector) {
        (self.vector)(x);
        match x {
            Vector::Name(_)
            | Vector::Row(..)
            | Vector::Column(..)
            | Vector::Gather(..)
            | Vector::Rotated(_) => {}
            Vector::List(items) => items.iter_mut().for_each(|item| self.scalar(item)),
            Vector::Fill(x) => self.scalar(x),
            Vector::Call(_, args) => args.iter_mut().for_each(|arg| self.vector(arg)),
            Vector::Binary(_, x, y) => all!(self: vector x, vector y),
            Vector::Between(x, y) => all!(self: scalar x, scalar y),
            Vector::Scaled(s, x) => all!(self: scalar s, vector x),
            Vector::MatVec(a, x) | Vector::Solve(_, a, x) => all!(self: matrix a, vector x),
            Vector::Choice(condition, x, y) => all!(self: condition condition, vector x, vector y),
            Vector::SumAxis(a, _) => self.matrix(a),
        }
    }

    fn matrix(&mut self, a: &mut Matrix) {
        (self.matrix)(a);
        match a {
            Matrix::Name(_) => {}
            Matrix::Outer(x, y) => all!(self: vector x, vector y),
            Matrix::Product(a, b) | Matrix::Binary(_, a, b) => all!(self: matrix a, matrix b),
            Matrix::Transposed(a) | Matrix::Call(_, a) | Matrix::Cholesky(a) | Matrix::Inverse(a) => {
                self.matrix(a)
            }
            Matrix::Reshaped(x) => self.vector(x),
        }
    }
}

/// What an expression may be replaced by: an expression of the same kind inside it, or something plain.
fn smaller_scalars(x: &Scalar) -> Vec<Scalar> {
    let mut found = match x {
        Scalar::Negate(x) | Scalar::Power(x, _) | Scalar::StopGradient(x) => vec![(**x).clone()],
        Scalar::Binary(_, x, y) | Scalar::Choice(_, x, y) => vec![(**x).clone(), (**y).clone()],
        Scalar::Call(_, args) => args.clone(),
        _ => Vec::new(),
    };
    found.push(Scalar::Literal(0.5));
    found
}

fn smaller_vectors(x: &Vector) -> Vec<Vector> {
    let mut found = match x {
        Vector::Call(_, args) => args.clone(),
        Vector::Binary(_, x, y) | Vector::Choice(_, x, y) => vec![(**x).clone(), (**y).clone()],
        Vector::Scaled(_, x) | Vector::MatVec(_, x) | Vector::Solve(_, _, x) => vec![(**x).clone()],
        _ => Vec::new(),
    };
    found.push(Vector::Name("x0".into()));
    found
}

fn smaller_matrices(a: &Matrix) -> Vec<Matrix> {
    match a {
        Matrix::Product(a, b) | Matrix::Binary(_, a, b) => vec![(**a).clone(), (**b).clone()],
        Matrix::Transposed(a) | Matrix::Call(_, a) | Matrix::Cholesky(a) | Matrix::Inverse(a) => {
            vec![(**a).clone()]
        }
        _ => vec![Matrix::Name("m0".into())],
    }
}

/// Replaces what the counter `at` points to among all candidates of all places.
fn replace<T: Clone>(number: &mut usize, at: usize, place: &mut T, candidates: Vec<T>, done: &mut bool) {
    if *done {
        return;
    }
    if at - *number < candidates.len() {
        *place = candidates[at - *number].clone();
        *done = true;
    } else {
        *number += candidates.len();
    }
}

macro_rules! edit_expression {
    ($name:ident, $kind:ident, $smaller:ident) => {
        /// Edit number `at`: an expression replaced by a smaller one.
        fn $name(source: &Source, at: usize) -> Option<Source> {
            let mut source = source.clone();
            let (mut number, mut done) = (0, false);
            let mut chosen = |place: &mut _| {
                let candidates = $smaller(place);
                replace(&mut number, at, place, candidates, &mut done);
            };
            let mut visitor = Visitor { scalar: &mut |_| {}, vector: &mut |_| {}, matrix: &mut |_| {} };
            visitor.$kind = &mut chosen;
            visitor.source(&mut source);
            done.then_some(source)
        }
    };
}
edit_expression!(edit_scalar, scalar, smaller_scalars);
edit_expression!(edit_vector, vector, smaller_vectors);
edit_expression!(edit_matrix, matrix, smaller_matrices);
