//! Random sources with loops, branches, early exits, views and functions, run twice: lowered and interpreted, and by a direct
//! evaluator that mutates real arrays. Only additions, products and choices of numbers are used, so the results are equal bit by bit.

use super::{compile, flat};
use palinode_ir::interp::run;
use proptest::prelude::*;
use std::fmt::Write;

/// Numbers of a kind that makes no two programs alike.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// What is assigned: scalars, elements of the base array through one of its names, elements of the matrix through one of its names.
#[derive(Clone, Debug)]
enum Target {
    Scalar(usize),
    Array(usize, Box<Index>),
    Matrix(usize, Box<Index>, Box<Index>),
}

/// An integer, taken modulo a length.
#[derive(Clone, Debug)]
enum Index {
    Fixed(i64),
    Loop(usize, i64),
}

#[derive(Clone, Debug)]
enum Expr {
    Number(f64),
    Read(Target),
    Loop(usize),
    Binary(char, Box<Expr>, Box<Expr>),
    Choice(Box<Test>, Box<Expr>, Box<Expr>),
    Call(usize, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug)]
enum Test {
    Less(Expr, Expr),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Parity(usize, i64),
}

#[derive(Clone, Debug)]
enum Stmt {
    Assign(Target, Expr),
    Update(Target, char, Expr),
    Swap(usize, usize),
    /// All elements of a name of the array.
    Fill(usize, Expr),
    /// One name of the array from another of the same length.
    Copy(usize, usize),
    If(Test, Vec<Stmt>, Vec<Stmt>),
    For {
        variable: usize,
        lo: i64,
        hi: i64,
        by: i64,
        reversed: bool,
        body: Vec<Stmt>,
    },
    While {
        counter: usize,
        rounds: i64,
        test: Test,
        body: Vec<Stmt>,
    },
    Break,
    Continue,
    Return(Expr),
}

/// The names of the array `a` of length 6: which elements they mean.
const VIEWS: &[(&str, &str, &[usize])] = &[
    ("a", "", &[0, 1, 2, 3, 4, 5]),
    ("b", "a[1..5]", &[1, 2, 3, 4]),
    ("c", "b[1..3]", &[2, 3]),
    ("d", "a[0..6 by 2]", &[0, 2, 4]),
    ("e", "d[1..]", &[2, 4]),
    ("g", "a[picked]", &[5, 0, 3]),
    ("h", "g[1..3]", &[0, 3]),
];

type Shape = (&'static str, &'static str, bool, &'static [usize], &'static [usize]);

/// The names of the matrix `m` of 2 rows and 3 columns: `(row, column)` swapped or not, and which rows and columns.
const SHAPES: &[Shape] = &[
    ("m", "", false, &[0, 1], &[0, 1, 2]),
    ("t", "m'", true, &[0, 1, 2], &[0, 1]),
    ("u", "m[.., 1..3]", false, &[0, 1], &[1, 2]),
    ("w", "t[1.., ..]", true, &[1, 2], &[0, 1]),
];

const SCALARS: usize = 3;
const FUNCTIONS: usize = 2;

struct Maker {
    dice: Dice,
    fuel: i64,
    loops: Vec<usize>,
    next_loop: usize,
    in_function: Option<usize>,
}

impl Maker {
    fn index(&mut self) -> Box<Index> {
        let offset = self.dice.below(6) as i64;
        if !self.loops.is_empty() && self.dice.below(3) > 0 {
            let which = self.dice.below(self.loops.len() as u64) as usize;
            return Box::new(Index::Loop(self.loops[which], offset));
        }
        Box::new(Index::Fixed(offset))
    }

    fn target(&mut self) -> Target {
        match self.dice.below(if self.in_function.is_some() { 2 } else { 6 }) {
            0 | 1 => Target::Scalar(self.dice.below(SCALARS as u64) as usize),
            2..=4 => Target::Array(self.dice.below(VIEWS.len() as u64) as usize, self.index()),
            _ => {
                let name = self.dice.below(SHAPES.len() as u64) as usize;
                Target::Matrix(name, self.index(), self.index())
            }
        }
    }

    fn expr(&mut self, depth: u32) -> Expr {
        self.fuel -= 1;
        let leaf = depth == 0 || self.fuel <= 0;
        match self.dice.below(if leaf { 4 } else { 9 }) {
            0 => Expr::Number(self.dice.below(7) as f64 * 0.5 - 1.5),
            1 | 2 => Expr::Read(self.target()),
            3 if !self.loops.is_empty() => {
                let which = self.dice.below(self.loops.len() as u64) as usize;
                Expr::Loop(self.loops[which])
            }
            3 => Expr::Read(self.target()),
            4..=6 => {
                let op = ['+', '-', '*', 'x', 'n'][self.dice.below(5) as usize];
                Expr::Binary(op, Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1)))
            }
            7 => Expr::Choice(
                Box::new(self.test(1)),
                Box::new(self.expr(depth - 1)),
                Box::new(self.expr(depth - 1)),
            ),
            _ => {
                // Functions call only those after them.
                let first = self.in_function.map_or(0, |at| at + 1);
                if first >= FUNCTIONS {
                    return Expr::Number(0.25);
                }
                let which = first + self.dice.below((FUNCTIONS - first) as u64) as usize;
                Expr::Call(which, Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1)))
            }
        }
    }

    fn test(&mut self, depth: u32) -> Test {
        match self.dice.below(if depth == 0 { 2 } else { 5 }) {
            0 if !self.loops.is_empty() => {
                let which = self.dice.below(self.loops.len() as u64) as usize;
                Test::Parity(self.loops[which], 2 + self.dice.below(2) as i64)
            }
            0 | 1 => Test::Less(self.expr(1), self.expr(1)),
            2 => Test::Not(Box::new(self.test(depth - 1))),
            3 => Test::And(Box::new(self.test(depth - 1)), Box::new(self.test(depth - 1))),
            _ => Test::Or(Box::new(self.test(depth - 1)), Box::new(self.test(depth - 1))),
        }
    }

    fn block(&mut self, depth: u32) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        for _ in 0..1 + self.dice.below(4) {
            let stmt = self.stmt(depth);
            let leaves = matches!(stmt, Stmt::Break | Stmt::Continue | Stmt::Return(_));
            stmts.push(stmt);
            if leaves {
                break;
            }
        }
        stmts
    }

    fn stmt(&mut self, depth: u32) -> Stmt {
        self.fuel -= 1;
        let small = depth == 0 || self.fuel <= 0;
        match self.dice.below(if small { 8 } else { 15 }) {
            0 | 1 => Stmt::Assign(self.target(), self.expr(2)),
            2 | 3 => {
                let op = ['+', '-', '*'][self.dice.below(3) as usize];
                Stmt::Update(self.target(), op, self.expr(2))
            }
            4 => {
                Stmt::Swap(self.dice.below(SCALARS as u64) as usize, self.dice.below(SCALARS as u64) as usize)
            }
            5 if self.in_function.is_none() => {
                Stmt::Fill(self.dice.below(VIEWS.len() as u64) as usize, self.expr(1))
            }
            5 | 6 if !self.loops.is_empty() => {
                if self.dice.below(2) == 0 {
                    Stmt::Break
                } else {
                    Stmt::Continue
                }
            }
            6 if self.in_function.is_none() => {
                let from = self.dice.below(VIEWS.len() as u64) as usize;
                let to = (0..VIEWS.len()).rfind(|&to| to != from && VIEWS[to].2.len() == VIEWS[from].2.len());
                to.map_or(Stmt::Swap(0, 1), |to| Stmt::Copy(to, from))
            }
            7 if self.in_function.is_some() => Stmt::Return(self.expr(2)),
            5..=7 => Stmt::Assign(self.target(), self.expr(1)),
            8..=11 => {
                let test = self.test(1);
                let yes = self.block(depth - 1);
                let no = if self.dice.below(2) == 0 { self.block(depth - 1) } else { Vec::new() };
                Stmt::If(test, yes, no)
            }
            12 | 13 => {
                let variable = self.next_loop;
                self.next_loop += 1;
                self.loops.push(variable);
                let body = self.block(depth - 1);
                self.loops.pop();
                let lo = self.dice.below(3) as i64;
                let hi = lo + self.dice.below(4) as i64;
                let reversed = self.dice.below(3) == 0;
                let by = 1 + self.dice.below(2) as i64;
                Stmt::For { variable, lo, hi, by, reversed, body }
            }
            _ => {
                let counter = self.next_loop;
                self.next_loop += 1;
                let test = self.test(1);
                self.loops.push(counter);
                let body = self.block(depth - 1);
                self.loops.pop();
                Stmt::While { counter, rounds: self.dice.below(4) as i64, test, body }
            }
        }
    }
}

// ---- As source

fn index_text(index: &Index, length: usize) -> String {
    match index {
        Index::Fixed(at) => (at % length as i64).to_string(),
        Index::Loop(variable, offset) => format!("(i{variable} + {offset}) % {length}"),
    }
}

fn target_text(target: &Target) -> String {
    match target {
        Target::Scalar(at) => format!("s{at}"),
        Target::Array(name, index) => {
            let (name, _, elements) = VIEWS[*name];
            format!("{name}[{}]", index_text(index, elements.len()))
        }
        Target::Matrix(name, i, j) => {
            let (name, _, _, rows, columns) = SHAPES[*name];
            format!("{name}[{}, {}]", index_text(i, rows.len()), index_text(j, columns.len()))
        }
    }
}

fn expr_text(expr: &Expr) -> String {
    match expr {
        Expr::Number(x) => format!("({x:?})"),
        Expr::Read(target) => target_text(target),
        Expr::Loop(variable) => format!("i{variable}"),
        Expr::Binary('x', a, b) => format!("max({}, {})", expr_text(a), expr_text(b)),
        Expr::Binary('n', a, b) => format!("min({}, {})", expr_text(a), expr_text(b)),
        Expr::Binary(op, a, b) => format!("({} {op} {})", expr_text(a), expr_text(b)),
        Expr::Choice(c, a, b) => format!("(if {} then {} else {})", test_text(c), expr_text(a), expr_text(b)),
        Expr::Call(which, a, b) => format!("f{which}({}, {})", expr_text(a), expr_text(b)),
    }
}

fn test_text(test: &Test) -> String {
    match test {
        Test::Less(a, b) => format!("{} < {}", expr_text(a), expr_text(b)),
        Test::Not(inner) => format!("not ({})", test_text(inner)),
        Test::And(a, b) => format!("(({}) and ({}))", test_text(a), test_text(b)),
        Test::Or(a, b) => format!("(({}) or ({}))", test_text(a), test_text(b)),
        Test::Parity(variable, by) => format!("i{variable} % {by} == 0"),
    }
}

fn block_text(out: &mut String, stmts: &[Stmt], depth: usize) {
    let indent = "    ".repeat(depth);
    for stmt in stmts {
        let _ = match stmt {
            Stmt::Assign(target, value) => {
                writeln!(out, "{indent}{} = {}", target_text(target), expr_text(value))
            }
            Stmt::Update(target, op, value) => {
                writeln!(out, "{indent}{} {op}= {}", target_text(target), expr_text(value))
            }
            Stmt::Swap(a, b) => writeln!(out, "{indent}s{a}, s{b} = s{b}, s{a}"),
            Stmt::Fill(name, value) => writeln!(out, "{indent}{}[..] = {}", VIEWS[*name].0, expr_text(value)),
            Stmt::Copy(to, from) => writeln!(out, "{indent}{} = {}", VIEWS[*to].0, VIEWS[*from].0),
            Stmt::If(test, yes, no) => {
                let _ = writeln!(out, "{indent}if {} {{", test_text(test));
                block_text(out, yes, depth + 1);
                if !no.is_empty() {
                    let _ = writeln!(out, "{indent}}} else {{");
                    block_text(out, no, depth + 1);
                }
                writeln!(out, "{indent}}}")
            }
            Stmt::For { variable, lo, hi, by, reversed, body } => {
                let order = if *reversed { " reversed" } else { "" };
                let _ = writeln!(out, "{indent}for i{variable} in {lo}..{hi} by {by}{order} {{");
                block_text(out, body, depth + 1);
                writeln!(out, "{indent}}}")
            }
            Stmt::While { counter, rounds, test, body } => {
                let _ = writeln!(out, "{indent}var k{counter} = 0");
                let _ = writeln!(out, "{indent}while k{counter} < {rounds} and {} {{", test_text(test));
                let _ = writeln!(out, "{indent}    let i{counter} = k{counter}\n{indent}    k{counter} += 1");
                block_text(out, body, depth + 1);
                writeln!(out, "{indent}}}")
            }
            Stmt::Break => writeln!(out, "{indent}break"),
            Stmt::Continue => writeln!(out, "{indent}continue"),
            Stmt::Return(value) => writeln!(out, "{indent}return {}", expr_text(value)),
        };
    }
}

fn source_of(main: &[Stmt], functions: &[Vec<Stmt>]) -> String {
    let mut out = String::from("param p = 0.75\nparam q = -1.25\nlet picked = [5, 0, 3]\n");
    out.push_str(
        "var s0 = p\nvar s1 = q\nvar s2 = 1\nvar a = [1, 2, 3, 4, 5, p]\nvar m = [[1, 2, q], [p, 5, 6]]\n",
    );
    for (name, view, _) in &VIEWS[1..] {
        let _ = writeln!(out, "alias {name} = {view}");
    }
    for (name, view, ..) in &SHAPES[1..] {
        let _ = writeln!(out, "alias {name} = {view}");
    }
    block_text(&mut out, main, 0);
    for (at, body) in functions.iter().enumerate() {
        let _ = writeln!(out, "fn f{at}(x, y) {{\n    var s0 = x\n    var s1 = y\n    var s2 = 0.5");
        block_text(&mut out, body, 1);
        out.push_str("    return s0 + s1 * s2\n}\n");
    }
    out.push_str("output s0\noutput s1\noutput s2\noutput a\noutput m\n");
    out
}

// ---- Directly

enum Flow {
    Next,
    Break,
    Continue,
    Return(f64),
}

struct Machine<'a> {
    functions: &'a [Vec<Stmt>],
    scalars: [f64; SCALARS],
    array: [f64; 6],
    matrix: [[f64; 3]; 2],
    loops: Vec<(usize, i64)>,
}

impl Machine<'_> {
    fn loop_value(&self, variable: usize) -> i64 {
        self.loops.iter().rev().find(|(name, _)| *name == variable).expect("the loop runs").1
    }

    fn at(&self, index: &Index, length: usize) -> usize {
        match index {
            Index::Fixed(at) => (at % length as i64) as usize,
            Index::Loop(variable, offset) => ((self.loop_value(*variable) + offset) % length as i64) as usize,
        }
    }

    fn place(&mut self, target: &Target) -> &mut f64 {
        match target {
            Target::Scalar(at) => &mut self.scalars[*at],
            Target::Array(name, index) => {
                let elements = VIEWS[*name].2;
                let at = self.at(index, elements.len());
                &mut self.array[elements[at]]
            }
            Target::Matrix(name, i, j) => {
                let (_, _, swapped, rows, columns) = SHAPES[*name];
                let (i, j) = (rows[self.at(i, rows.len())], columns[self.at(j, columns.len())]);
                if swapped { &mut self.matrix[j][i] } else { &mut self.matrix[i][j] }
            }
        }
    }

    fn expr(&mut self, expr: &Expr) -> f64 {
        match expr {
            Expr::Number(x) => *x,
            Expr::Read(target) => *self.place(target),
            Expr::Loop(variable) => self.loop_value(*variable) as f64,
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    'x' => a.max(b),
                    _ => a.min(b),
                }
            }
            Expr::Choice(c, a, b) => {
                if self.test(c) {
                    self.expr(a)
                } else {
                    self.expr(b)
                }
            }
            Expr::Call(which, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let mut inner = Machine {
                    functions: self.functions,
                    scalars: [a, b, 0.5],
                    array: [0.0; 6],
                    matrix: [[0.0; 3]; 2],
                    loops: Vec::new(),
                };
                match inner.block(&self.functions[*which]) {
                    Flow::Return(value) => value,
                    _ => inner.scalars[0] + inner.scalars[1] * inner.scalars[2],
                }
            }
        }
    }

    fn test(&mut self, test: &Test) -> bool {
        match test {
            Test::Less(a, b) => self.expr(a) < self.expr(b),
            Test::Not(inner) => !self.test(inner),
            Test::And(a, b) => self.test(a) && self.test(b),
            Test::Or(a, b) => self.test(a) || self.test(b),
            Test::Parity(variable, by) => self.loop_value(*variable) % by == 0,
        }
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

    /// A round of a loop: what ends the loop comes back.
    fn round(&mut self, variable: usize, value: i64, body: &[Stmt]) -> Option<Flow> {
        self.loops.push((variable, value));
        let flow = self.block(body);
        self.loops.pop();
        match flow {
            Flow::Next | Flow::Continue => None,
            Flow::Break => Some(Flow::Next),
            Flow::Return(value) => Some(Flow::Return(value)),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        match stmt {
            Stmt::Assign(target, value) => {
                let value = self.expr(value);
                *self.place(target) = value;
            }
            Stmt::Update(target, op, value) => {
                let value = self.expr(value);
                let place = self.place(target);
                match op {
                    '+' => *place += value,
                    '-' => *place -= value,
                    _ => *place *= value,
                }
            }
            Stmt::Swap(a, b) => self.scalars.swap(*a, *b),
            Stmt::Fill(name, value) => {
                let value = self.expr(value);
                VIEWS[*name].2.iter().for_each(|&at| self.array[at] = value);
            }
            Stmt::Copy(to, from) => {
                let values: Vec<f64> = VIEWS[*from].2.iter().map(|&at| self.array[at]).collect();
                VIEWS[*to].2.iter().zip(values).for_each(|(&at, value)| self.array[at] = value);
            }
            Stmt::If(test, yes, no) => return if self.test(test) { self.block(yes) } else { self.block(no) },
            Stmt::For { variable, lo, hi, by, reversed, body } => {
                let mut values: Vec<i64> = (*lo..*hi).step_by(*by as usize).collect();
                if *reversed {
                    values.reverse();
                }
                for value in values {
                    if let Some(flow) = self.round(*variable, value, body) {
                        return flow;
                    }
                }
            }
            Stmt::While { counter, rounds, test, body } => {
                let mut k = 0;
                while k < *rounds && self.test(test) {
                    k += 1;
                    if let Some(flow) = self.round(*counter, k - 1, body) {
                        return flow;
                    }
                }
            }
            Stmt::Break => return Flow::Break,
            Stmt::Continue => return Flow::Continue,
            Stmt::Return(value) => return Flow::Return(self.expr(value)),
        }
        Flow::Next
    }
}

fn agree(seed: u64, fuel: i64) {
    let mut maker = Maker { dice: Dice(seed | 1), fuel, loops: Vec::new(), next_loop: 0, in_function: None };
    let main: Vec<Stmt> = (0..6).map(|_| maker.stmt(3)).collect();
    let functions: Vec<Vec<Stmt>> = (0..FUNCTIONS)
        .map(|at| {
            maker.in_function = Some(at);
            maker.fuel = fuel / 3;
            let body = (0..3).map(|_| maker.stmt(3)).collect::<Vec<_>>();
            // A `return` at the end of the list makes the rest unreachable, which is only a warning.
            body
        })
        .collect();
    let source = source_of(&main, &functions);
    let (p, q) = (0.75, -1.25);
    let mut machine = Machine {
        functions: &functions,
        scalars: [p, q, 1.0],
        array: [1.0, 2.0, 3.0, 4.0, 5.0, p],
        matrix: [[1.0, 2.0, q], [p, 5.0, 6.0]],
        loops: Vec::new(),
    };
    let _ = machine.block(&main);
    let expected: Vec<f64> = machine
        .scalars
        .into_iter()
        .chain(machine.array)
        .chain(machine.matrix.into_iter().flatten())
        .collect();
    let model = compile(&source);
    let found = flat(
        &run(&model.program, &super::defaults(&model)).unwrap_or_else(|error| panic!("{error}\n{source}")),
    );
    let same = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
    assert!(same, "seed {seed}\n{source}\nlowered  {found:?}\ndirectly {expected:?}");
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn lowered_and_direct_agree(seed in any::<u64>(), fuel in 5..120_i64) {
        agree(seed, fuel);
    }
}
