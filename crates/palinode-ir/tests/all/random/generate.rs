//! A number -> a random program.
//!
//! Values stay moderate, so that numerical noise does not drown a wrong derivative: arguments of functions
//! are brought into the function's domain by a bounded function first, loops are short.

use palinode_core::rules::{Domain, Row};

use super::Random;
use super::source::{
    Condition, Function, Index, LENGTH, Matrix, Recursion, Rounds, Scalar, Source, Stmt, Vector, View,
};

/// The names in scope.
#[derive(Clone, Default)]
struct Scope {
    scalars: Vec<String>,
    /// Those that may be assigned to.
    variables: Vec<String>,
    vectors: Vec<String>,
    vector_variables: Vec<String>,
    matrices: Vec<String>,
    matrix_variables: Vec<String>,
    counters: Vec<String>,
    /// Aliases with the number of their elements.
    aliases: Vec<(String, usize)>,
    /// Arrays that grow and shrink.
    lists: Vec<String>,
    functions: Vec<(String, usize, Recursion)>,
    /// Whether a loop is around, and a function.
    in_loop: bool,
    in_function: bool,
}

struct Generator {
    random: Random,
    names: usize,
    /// Only what is easily computed bit by bit: no dense linear algebra.
    is_plain: bool,
}

/// The program that belongs to a number.
pub(crate) fn source(seed: u64) -> Source {
    Generator { random: Random::new(seed), names: 0, is_plain: false }.source()
}

/// The program that belongs to a number, without dense linear algebra.
pub(crate) fn plain_source(seed: u64) -> Source {
    Generator { random: Random::new(seed), names: 0, is_plain: true }.source()
}

impl Generator {
    fn fresh(&mut self, base: &str) -> String {
        self.names += 1;
        format!("{base}{}", self.names)
    }

    /// A number in (-1.5, 1.5) with few digits.
    fn number(&mut self) -> f64 {
        (self.random.below(297) as f64 - 148.0) / 100.0 + 0.005
    }

    fn source(&mut self) -> Source {
        let mut scope = Scope::default();
        let scalars: Vec<(String, f64)> =
            (0..1 + self.random.below(2)).map(|at| (format!("p{at}"), self.number())).collect();
        let vectors: Vec<(String, [f64; LENGTH])> = (0..1 + self.random.below(2))
            .map(|at| (format!("x{at}"), [(); LENGTH].map(|()| self.number())))
            .collect();
        let matrices: Vec<(String, [[f64; LENGTH]; LENGTH])> = (0..self.random.below(2))
            .map(|at| (format!("m{at}"), [(); LENGTH].map(|()| [(); LENGTH].map(|()| self.number()))))
            .collect();
        scope.scalars.extend(scalars.iter().map(|(name, _)| name.clone()));
        scope.vectors.extend(vectors.iter().map(|(name, _)| name.clone()));
        scope.matrices.extend(matrices.iter().map(|(name, _)| name.clone()));
        let functions: Vec<Function> = (0..self.random.below(3)).map(|_| self.function(&scope)).collect();
        for function in &functions {
            scope.functions.push((function.name.clone(), function.params.len(), function.recursion));
        }
        // A few variables, so that there is something to change.
        let mut body = Vec::new();
        for _ in 0..2 {
            body.push(self.declare_scalar(&mut scope));
        }
        body.push(self.declare_vector(&mut scope));
        if self.random.chance(40) {
            body.push(self.declare_matrix(&mut scope));
        }
        if self.random.chance(20) {
            body.push(self.declare_list(&mut scope));
        }
        let count = 3 + self.random.below(6);
        body.extend(self.block(&mut scope, count, 3));
        let mut loss = self.scalar(&scope, 2);
        for name in scope.variables.clone() {
            loss = binary("+", loss, Scalar::Name(name));
        }
        for name in scope.vector_variables.clone() {
            let squares =
                Vector::Binary("*", Box::new(Vector::Name(name.clone())), Box::new(Vector::Name(name)));
            loss = binary("+", loss, Scalar::Fold("sum", vec![squares]));
        }
        for name in scope.matrix_variables.clone() {
            loss = binary("+", loss, Scalar::OfMatrix("sum", Box::new(Matrix::Name(name))));
        }
        for name in scope.lists.clone() {
            loss = binary("+", loss, Scalar::Fold("sum", vec![Vector::Name(name)]));
        }
        Source { scalars, vectors, matrices, functions, body, loss }
    }

    fn function(&mut self, outer: &Scope) -> Function {
        let params: Vec<String> = (0..1 + self.random.below(2)).map(|_| self.fresh("a")).collect();
        let mut scope = Scope { functions: outer.functions.clone(), in_function: true, ..Scope::default() };
        scope.scalars.extend(params.iter().cloned());
        let mut body = vec![self.declare_scalar(&mut scope)];
        let count = self.random.below(3);
        body.extend(self.block(&mut scope, count, 2));
        if self.random.chance(30) {
            let inner = Scope { scalars: params.clone(), ..Scope::default() };
            let (condition, value) = (self.condition(&inner, 1), self.scalar(&inner, 2));
            body.insert(0, Stmt::If(condition, vec![Stmt::Return(value)], Vec::new()));
        }
        let result = self.scalar(&scope, 2);
        let recursion = match self.random.below(20) {
            0..=2 => Recursion::Straight,
            3 | 4 => Recursion::Rotated,
            5 | 6 => Recursion::Mutual,
            _ => Recursion::No,
        };
        Function { name: self.fresh("f"), params, body, result, recursion }
    }

    fn declare_scalar(&mut self, scope: &mut Scope) -> Stmt {
        let value = self.scalar(scope, 2);
        let name = self.fresh("s");
        scope.scalars.push(name.clone());
        scope.variables.push(name.clone());
        Stmt::VarScalar(name, value)
    }

    fn declare_vector(&mut self, scope: &mut Scope) -> Stmt {
        let value = self.vector(scope, 2);
        let name = self.fresh("v");
        scope.vectors.push(name.clone());
        scope.vector_variables.push(name.clone());
        Stmt::VarVector(name, value)
    }

    fn declare_matrix(&mut self, scope: &mut Scope) -> Stmt {
        let value = self.matrix(scope, 2);
        let name = self.fresh("w");
        scope.matrices.push(name.clone());
        scope.matrix_variables.push(name.clone());
        Stmt::VarMatrix(name, value)
    }

    fn declare_list(&mut self, scope: &mut Scope) -> Stmt {
        let name = self.fresh("l");
        scope.lists.push(name.clone());
        Stmt::VarList(name, self.bounded(scope, 1))
    }

    fn factors(&mut self, scope: &mut Scope) -> Stmt {
        let a = self.matrix(scope, 1);
        let (q, r, s) = (self.fresh("q"), self.fresh("r"), self.fresh("e"));
        let (name, parts) = match self.random.below(3) {
            0 => ("qr", vec![q.clone(), r.clone()]),
            1 => ("eigh", vec![s.clone(), q.clone()]),
            _ => ("svd", vec![q.clone(), s.clone(), r.clone()]),
        };
        scope.matrices.push(q);
        if name != "eigh" {
            scope.matrices.push(r);
        }
        if name != "qr" {
            scope.vectors.push(s);
        }
        Stmt::Factors(name, parts, a)
    }

    /// Statements in a scope of their own, unless it is the outermost one.
    fn block(&mut self, scope: &mut Scope, count: usize, depth: usize) -> Vec<Stmt> {
        (0..count).map(|_| self.stmt(scope, depth)).collect()
    }

    fn inner_block(&mut self, scope: &Scope, depth: usize, counter: Option<&str>) -> Vec<Stmt> {
        let mut inner = scope.clone();
        inner.counters.extend(counter.map(String::from));
        let count = 1 + self.random.below(3);
        self.block(&mut inner, count, depth - 1)
    }

    fn stmt(&mut self, scope: &mut Scope, depth: usize) -> Stmt {
        let nested = depth > 0;
        loop {
            match self.random.below(30) {
                0 => return self.declare_scalar(scope),
                24 if !scope.matrices.is_empty() && !self.is_plain => return self.factors(scope),
                25 | 26 if !scope.lists.is_empty() => {
                    let name = self.random.pick(&scope.lists).clone();
                    return match self.random.below(3) {
                        0 => Stmt::DropFirst(name),
                        _ => Stmt::Append(name, self.bounded(scope, 1)),
                    };
                }
                1 => return self.declare_vector(scope),
                2 if self.random.chance(30) => return self.declare_matrix(scope),
                3..=6 if !scope.variables.is_empty() => {
                    let name = self.random.pick(&scope.variables).clone();
                    let op = *self.random.pick(&["=", "=", "+=", "*=", "-="]);
                    let value = self.bounded(scope, 2);
                    return Stmt::Assign(name, op, value);
                }
                7 | 8 if !scope.vector_variables.is_empty() => {
                    let name = self.random.pick(&scope.vector_variables).clone();
                    let op = *self.random.pick(&["=", "+=", "*="]);
                    let value = Vector::Call("sin".into(), vec![self.vector(scope, 1)]);
                    return Stmt::AssignVector(name, op, value);
                }
                9..=12 if !scope.vector_variables.is_empty() => {
                    let name = self.random.pick(&scope.vector_variables).clone();
                    let op = *self.random.pick(&["=", "+=", "*="]);
                    let at = self.index(scope);
                    return Stmt::SetElement(name, at, op, self.bounded(scope, 2));
                }
                13 if !scope.matrix_variables.is_empty() => {
                    let name = self.random.pick(&scope.matrix_variables).clone();
                    let (row, column) = (self.index(scope), self.index(scope));
                    let op = *self.random.pick(&["=", "+="]);
                    return match self.random.below(3) {
                        0 => Stmt::SetCell(name, row, column, op, self.bounded(scope, 2)),
                        1 => {
                            Stmt::SetRow(name, row, Vector::Call("tanh".into(), vec![self.vector(scope, 1)]))
                        }
                        _ => Stmt::AssignMatrix(
                            name,
                            Matrix::Call("sin".into(), Box::new(self.matrix(scope, 1))),
                        ),
                    };
                }
                14 if !scope.vector_variables.is_empty() => {
                    let name = self.random.pick(&scope.vector_variables).clone();
                    if self.random.chance(30) {
                        let first = self.random.below(LENGTH);
                        let places = vec![first, (first + 1 + self.random.below(LENGTH - 1)) % LENGTH];
                        let op = *self.random.pick(&["=", "+="]);
                        return Stmt::SetList(name, places, op, self.bounded(scope, 1));
                    }
                    let lo = self.random.below(LENGTH);
                    let hi = lo + self.random.below(LENGTH - lo + 1);
                    return Stmt::SetSlice(name, lo, hi, self.bounded(scope, 1));
                }
                15 if scope.aliases.len() < 3 => {
                    let Some((view, length)) = self.view(scope) else { continue };
                    let name = self.fresh("b");
                    scope.aliases.push((name.clone(), length));
                    return Stmt::Alias(name, view);
                }
                16 if !scope.aliases.is_empty() => {
                    let (name, length) = self.random.pick(&scope.aliases).clone();
                    let op = *self.random.pick(&["=", "+=", "*="]);
                    return Stmt::SetAlias(name, self.random.below(length), op, self.bounded(scope, 1));
                }
                27 if !scope.aliases.is_empty() => {
                    let (name, length) = self.random.pick(&scope.aliases).clone();
                    let alike = |other: &&(String, usize)| other.1 == length && other.0 != name;
                    return match scope.aliases.iter().find(alike) {
                        Some((other, _)) if self.random.chance(60) => Stmt::Copy(name, other.clone()),
                        _ => Stmt::FillAlias(name, self.bounded(scope, 1)),
                    };
                }
                28 if self.random.chance(50) => {
                    let arrays = scope.vector_variables.len() > 1 && self.random.chance(50);
                    let names = if arrays { &scope.vector_variables } else { &scope.variables };
                    if names.len() < 2 {
                        continue;
                    }
                    let at = self.random.below(names.len());
                    return Stmt::Swap(names[at].clone(), names[(at + 1) % names.len()].clone());
                }
                29 if !scope.matrix_variables.is_empty() && self.random.chance(30) => {
                    let base = self.random.pick(&scope.matrix_variables).clone();
                    let name = self.fresh("t");
                    scope.matrices.push(name.clone());
                    scope.matrix_variables.push(name.clone());
                    return Stmt::Alias(name, View::Transposed(base));
                }
                17..=19 if nested => {
                    let counter = self.fresh("i");
                    let rounds = match self.random.below(6) {
                        0 if !scope.counters.is_empty() => {
                            Rounds::Counter(self.random.pick(&scope.counters).clone())
                        }
                        1 if !scope.vectors.is_empty() => {
                            Rounds::Length(self.random.pick(&scope.vectors).clone())
                        }
                        _ => Rounds::Fixed(self.random.below(5)),
                    };
                    let mut scope = scope.clone();
                    scope.in_loop = true;
                    let mut body = self.inner_block(&scope, depth, Some(&counter));
                    if self.random.chance(12) {
                        let at = self.random.below(body.len() + 1);
                        let leaves = self.random.pick(&[Stmt::Break, Stmt::Break, Stmt::Continue]).clone();
                        let condition = self.condition(&scope, 1);
                        body.insert(at, Stmt::If(condition, vec![leaves], Vec::new()));
                    }
                    let downwards = self.random.chance(20);
                    let (from, by) = match rounds {
                        Rounds::Fixed(_) if self.random.chance(30) => {
                            (self.random.below(3), 1 + self.random.below(2))
                        }
                        _ => (0, 1),
                    };
                    return Stmt::For { counter, from, by, rounds, downwards, body };
                }
                20 if nested && !scope.variables.is_empty() => {
                    let name = self.random.pick(&scope.variables).clone();
                    let mut scope = scope.clone();
                    scope.in_loop = true;
                    let mut body = self.inner_block(&scope, depth, None);
                    body.push(Stmt::Assign(name.clone(), "+=", Scalar::Literal(0.4)));
                    let count = self.fresh("n");
                    return Stmt::While { name, count, bound: 1.1, most: 4, body };
                }
                21..=23 if nested => {
                    let condition = self.condition(scope, 2);
                    let mut yes = self.inner_block(scope, depth, None);
                    if scope.in_loop && self.random.chance(8) {
                        yes.push(self.random.pick(&[Stmt::Break, Stmt::Continue]).clone());
                    } else if scope.in_function && self.random.chance(15) {
                        yes.push(Stmt::Return(self.bounded(scope, 1)));
                    }
                    let no = if self.random.chance(60) {
                        self.inner_block(scope, depth, None)
                    } else {
                        Vec::new()
                    };
                    return Stmt::If(condition, yes, no);
                }
                _ => {}
            }
        }
    }

    /// A view and how many elements it has.
    fn view(&mut self, scope: &Scope) -> Option<(View, usize)> {
        let at = self.random.below(LENGTH);
        let kind = self.random.below(6);
        if let (3.., Some((base, length))) = (kind, scope.aliases.last().cloned())
            && self.random.chance(40)
        {
            let from = self.random.below(length);
            return Some((View::Of(base, from, length), length - from));
        }
        if kind < 3 && !scope.matrix_variables.is_empty() {
            let base = self.random.pick(&scope.matrix_variables).clone();
            let view = match kind {
                0 => View::Row(base, at),
                1 => View::Column(base, at),
                _ => View::OfTranspose(base, at),
            };
            return Some((view, LENGTH));
        }
        if scope.vector_variables.is_empty() {
            return None;
        }
        let base = self.random.pick(&scope.vector_variables).clone();
        Some(match kind {
            0 | 1 => (View::EverySecond(base), LENGTH.div_ceil(2)),
            2 => (View::Two(base, [at, (at + 2) % LENGTH]), 2),
            _ => (View::From(base, at.min(LENGTH - 2)), LENGTH - at.min(LENGTH - 2)),
        })
    }

    fn index(&mut self, scope: &Scope) -> Index {
        if !scope.counters.is_empty() && self.random.chance(60) {
            let counter = self.random.pick(&scope.counters).clone();
            match self.random.below(10) {
                0 => Index::Clamped(counter),
                1 => Index::Halved(counter),
                _ => Index::Counter(counter, self.random.below(LENGTH)),
            }
        } else {
            Index::Fixed(self.random.below(LENGTH))
        }
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> Condition {
        match self.random.below(8) {
            0 if !scope.counters.is_empty() => {
                Condition::Divides(self.random.pick(&scope.counters).clone(), 2 + self.random.below(2))
            }
            1 if depth > 0 => {
                let (a, b) = (self.condition(scope, depth - 1), self.condition(scope, depth - 1));
                let join = self.random.pick(&[Condition::Both, Condition::Either]);
                join(Box::new(a), Box::new(b))
            }
            2 if depth > 0 => Condition::Not(Box::new(self.condition(scope, depth - 1))),
            _ => {
                let op = *self.random.pick(&["<", "<=", ">", ">="]);
                let (x, y) = (self.scalar(scope, 1), self.scalar(scope, 1));
                Condition::Compare(op, Box::new(x), Box::new(y))
            }
        }
    }

    /// An expression whose value stays between -2 and 2.
    fn bounded(&mut self, scope: &Scope, depth: usize) -> Scalar {
        let x = self.scalar(scope, depth);
        let name = *self.random.pick(&["sin", "tanh", "cos", "atan"]);
        call(name, vec![x])
    }

    fn leaf(&mut self, scope: &Scope) -> Scalar {
        match self.random.below(8) {
            0 => Scalar::Literal(self.number()),
            1 if !scope.counters.is_empty() => Scalar::Counter(self.random.pick(&scope.counters).clone()),
            2 | 3 if !scope.vectors.is_empty() => {
                let name = self.random.pick(&scope.vectors).clone();
                Scalar::Element(name, self.index(scope))
            }
            4 if !scope.matrices.is_empty() => {
                let name = self.random.pick(&scope.matrices).clone();
                Scalar::Cell(name, self.index(scope), self.index(scope))
            }
            5 if !scope.aliases.is_empty() => {
                let (name, length) = self.random.pick(&scope.aliases).clone();
                Scalar::Element(name, Index::Fixed(self.random.below(length)))
            }
            _ if !scope.scalars.is_empty() => Scalar::Name(self.random.pick(&scope.scalars).clone()),
            _ => Scalar::Literal(self.number()),
        }
    }

    fn scalar(&mut self, scope: &Scope, depth: usize) -> Scalar {
        if depth == 0 {
            return self.leaf(scope);
        }
        match self.random.below(20) {
            0..=2 => self.leaf(scope),
            3..=7 => {
                let op = *self.random.pick(&["+", "-", "*"]);
                binary(op, self.scalar(scope, depth - 1), self.scalar(scope, depth - 1))
            }
            8 => {
                let divisor = self.within(scope, Domain::Positive, depth - 1);
                binary("/", self.scalar(scope, depth - 1), divisor)
            }
            9 => Scalar::Negate(Box::new(self.scalar(scope, depth - 1))),
            10..=13 => self.row(scope, depth),
            14 => {
                let powers = [-2, -1, 2, 3, 4];
                let power = *self.random.pick(&powers);
                Scalar::Power(Box::new(self.within(scope, Domain::Positive, depth - 1)), power)
            }
            15 | 16 if !scope.vectors.is_empty() => {
                let names = ["sum", "max", "min", "dot", "prod", "mean", "norm"];
                let name = *self.random.pick(&names[..if self.is_plain { 5 } else { 7 }]);
                let count = if name == "dot" { 2 } else { 1 };
                let mut args: Vec<Vector> = (0..count).map(|_| self.vector(scope, depth - 1)).collect();
                if name == "norm" {
                    args = vec![Vector::Binary(
                        "+",
                        Box::new(args.remove(0)),
                        Box::new(Vector::Fill(Box::new(Scalar::Literal(2.0)))),
                    )];
                }
                Scalar::Fold(name, args)
            }
            17 if !scope.matrices.is_empty() => {
                let name = *self.random.pick(&["sum", "det", "logdet"][..if self.is_plain { 1 } else { 3 }]);
                let inner = self.matrix(scope, depth - 1);
                if name == "sum" {
                    Scalar::OfMatrix(name, Box::new(inner))
                } else {
                    // The inverse of a well-behaved matrix is well behaved.
                    Scalar::OfMatrix(name, Box::new(Matrix::Inverse(Box::new(inner))))
                }
            }
            18 => {
                let condition = Box::new(self.condition(scope, 1));
                let (x, y) = (self.scalar(scope, depth - 1), self.scalar(scope, depth - 1));
                Scalar::Choice(condition, Box::new(x), Box::new(y))
            }
            19 if !scope.functions.is_empty() => {
                let (name, params, recursion) = self.random.pick(&scope.functions).clone();
                let mut args: Vec<Scalar> = (0..params).map(|_| self.bounded(scope, depth - 1)).collect();
                if recursion != Recursion::No {
                    args.push(Scalar::Name(self.random.below(4).to_string()));
                }
                call(&name, args)
            }
            _ if self.random.chance(15) => Scalar::StopGradient(Box::new(self.scalar(scope, depth - 1))),
            _ => self.leaf(scope),
        }
    }

    /// A row of the rule table, with arguments from its domain.
    fn row(&mut self, scope: &Scope, depth: usize) -> Scalar {
        loop {
            let row = *self.random.pick(Row::ALL);
            let name = match row {
                // Operators, and what has a notation or a purpose of its own.
                Row::Negate | Row::Add | Row::Subtract | Row::Multiply | Row::Divide => continue,
                Row::Powi | Row::StrongMul | Row::Select => continue,
                Row::Polygamma => {
                    let x = self.within(scope, Domain::GammaFinite, depth - 1);
                    return call("digamma", vec![x]);
                }
                Row::Remainder => {
                    let divisor = self.within(scope, Domain::Positive, depth - 1);
                    return binary("%", self.scalar(scope, depth - 1), divisor);
                }
                row => row.name(),
            };
            // At a vertical slope reverse mode may meet inf - inf where duals see 0: away from kinks.
            let domains = if row == Row::Cbrt { &[Domain::Positive][..] } else { row.domains() };
            let args = domains.iter().map(|&domain| self.within(scope, domain, depth - 1)).collect();
            let applied = call(name, args);
            return match row {
                // These give integers in the language.
                Row::Floor | Row::Ceil | Row::Round | Row::Trunc => {
                    binary("*", Scalar::Literal(1.0), applied)
                }
                _ => applied,
            };
        }
    }

    /// An expression whose value is well inside the domain and moderate.
    fn within(&mut self, scope: &Scope, domain: Domain, depth: usize) -> Scalar {
        let x = self.bounded(scope, depth);
        let squared = |x: Scalar| Scalar::Power(Box::new(x), 2);
        match domain {
            Domain::Reals => x,
            Domain::Positive | Domain::NonNegative | Domain::NonZero | Domain::GammaFinite => {
                binary("+", Scalar::Literal(0.6), squared(x))
            }
            Domain::UnitClosed | Domain::UnitOpen | Domain::AboveMinusOne => {
                binary("*", Scalar::Literal(0.5), x)
            }
            Domain::AtLeastOne => binary("+", Scalar::Literal(1.3), squared(x)),
        }
    }

    fn vector(&mut self, scope: &Scope, depth: usize) -> Vector {
        if depth == 0 || self.random.chance(20) {
            return match scope.vectors.is_empty() {
                false => Vector::Name(self.random.pick(&scope.vectors).clone()),
                true => Vector::List((0..LENGTH).map(|_| self.leaf(scope)).collect()),
            };
        }
        match self.random.below(17) {
            16 if !self.is_plain => Vector::Between(Box::new(self.leaf(scope)), Box::new(self.leaf(scope))),
            0 => Vector::List((0..LENGTH).map(|_| self.scalar(scope, depth - 1)).collect()),
            1 => Vector::Fill(Box::new(self.scalar(scope, depth - 1))),
            2 | 3 => {
                let name =
                    *self.random.pick(&["sin", "cos", "tanh", "atan", "logistic", "softplus", "relu", "abs"]);
                Vector::Call(name.into(), vec![self.vector(scope, depth - 1)])
            }
            4..=6 => {
                let op = *self.random.pick(&["+", "-", "*"]);
                let (x, y) = (self.vector(scope, depth - 1), self.vector(scope, depth - 1));
                Vector::Binary(op, Box::new(x), Box::new(y))
            }
            7 => Vector::Scaled(
                Box::new(self.scalar(scope, depth - 1)),
                Box::new(self.vector(scope, depth - 1)),
            ),
            8 if !scope.matrices.is_empty() => Vector::MatVec(
                Box::new(self.matrix(scope, depth - 1)),
                Box::new(self.vector(scope, depth - 1)),
            ),
            9 if !scope.matrices.is_empty() => {
                let name = self.random.pick(&scope.matrices).clone();
                let at = self.index(scope);
                if self.random.chance(50) { Vector::Row(name, at) } else { Vector::Column(name, at) }
            }
            10 if !scope.vectors.is_empty() => {
                let name = self.random.pick(&scope.vectors).clone();
                Vector::Gather(name, [(); LENGTH].map(|()| self.random.below(LENGTH)))
            }
            11 if !scope.vectors.is_empty() => Vector::Rotated(self.random.pick(&scope.vectors).clone()),
            12 => {
                let condition = Box::new(self.condition(scope, 1));
                let (x, y) = (self.vector(scope, depth - 1), self.vector(scope, depth - 1));
                Vector::Choice(condition, Box::new(x), Box::new(y))
            }
            13 if !scope.matrices.is_empty() && !self.is_plain => {
                let name = *self.random.pick(&["solve", "solve_lower", "solve_upper"]);
                let (a, x) = (self.matrix(scope, depth - 1), self.vector(scope, depth - 1));
                Vector::Solve(name, Box::new(a), Box::new(x))
            }
            14 if !scope.matrices.is_empty() => {
                Vector::SumAxis(Box::new(self.matrix(scope, depth - 1)), self.random.below(2))
            }
            15 => {
                let name = *self.random.pick(&["max", "min", "hypot"]);
                Vector::Call(name.into(), vec![self.vector(scope, depth - 1), self.vector(scope, depth - 1)])
            }
            _ => self.vector(scope, 0),
        }
    }

    fn matrix(&mut self, scope: &Scope, depth: usize) -> Matrix {
        let name =
            (!scope.matrices.is_empty()).then(|| Matrix::Name(self.random.pick(&scope.matrices).clone()));
        if let Some(name) = name.clone()
            && (depth == 0 || self.random.chance(30))
        {
            return name;
        }
        let below = depth.saturating_sub(1);
        match self.random.below(8) {
            1 if name.is_some() => {
                Matrix::Product(Box::new(self.matrix(scope, below)), Box::new(self.matrix(scope, below)))
            }
            2 if name.is_some() => Matrix::Transposed(Box::new(self.matrix(scope, below))),
            3 if name.is_some() => Matrix::Call("sin".into(), Box::new(self.matrix(scope, below))),
            4 if name.is_some() => {
                Matrix::Binary("*", Box::new(self.matrix(scope, below)), Box::new(self.matrix(scope, below)))
            }
            5 => Matrix::Reshaped(Box::new(self.vector(scope, below))),
            6 if name.is_some() && !self.is_plain => Matrix::Cholesky(Box::new(self.matrix(scope, below))),
            7 if name.is_some() && !self.is_plain => Matrix::Inverse(Box::new(self.matrix(scope, below))),
            _ => Matrix::Outer(Box::new(self.vector(scope, below)), Box::new(self.vector(scope, below))),
        }
    }
}

fn binary(op: &'static str, x: Scalar, y: Scalar) -> Scalar {
    Scalar::Binary(op, Box::new(x), Box::new(y))
}

fn call(name: &str, args: Vec<Scalar>) -> Scalar {
    Scalar::Call(name.to_string(), args)
}
