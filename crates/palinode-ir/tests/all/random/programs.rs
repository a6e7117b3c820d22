//! Random well-typed programs for the passes and the interpreter: small, full of what passes look for (zeros,
//! ones, repeated and unused values, loop invariants, loops after loops), and mostly without run errors.
//!
//! Every rank-1 array has the length of the input `a` and every matrix has it twice, so that shapes fit.

use super::Random;
use palinode_core::rules::Row;
use palinode_ir::interp::Datum;
use palinode_ir::{
    Axis, Comparison, Elem, FuncId, FunctionBuilder, IntOp, Logical, Op, Program, ProgramBuilder, Reduction,
    Rule, Type, Value,
};

const VECTOR: Type = Type::array(Elem::F64, 1);
const MATRIX: Type = Type::array(Elem::F64, 2);
const INTS: Type = Type::array(Elem::Int, 1);
const SINGLE: Type = Type::scalar(Elem::F32);

/// The inputs of generated programs: `x`, `y`, `n`, `c`, `a`, `m`.
pub(crate) fn inputs(random: &mut Random) -> Vec<Datum<f64>> {
    let length = 1 + random.below(4);
    let mut real = || *random.pick(&[0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.25, 1e-3, 7.0, 1e200, f64::INFINITY]);
    let (x, y) = (real(), real());
    let a: Vec<f64> = (0..length).map(|_| real()).collect();
    let m: Vec<f64> = (0..length * length).map(|_| real()).collect();
    let n = random.below(4) as i64;
    let c = random.chance(50);
    vec![
        Datum::real(x),
        Datum::real(y),
        Datum::int(n),
        Datum::bool(c),
        Datum::vector(a),
        Datum::matrix(length, length, m),
    ]
}

/// Which programs are made.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Any,
    /// With strong products, and without what tells 0 from -0.
    Strong,
    /// Of what a plain walk over instructions knows: no matrices, no reductions.
    Walked,
}

/// A program from a seed, with about `size` statements.
pub(crate) fn program(seed: u64, size: usize, kind: Kind) -> Program {
    let mut programs = ProgramBuilder::new();
    let (main, helper, recursive) = (programs.reserve(), programs.reserve(), programs.reserve());
    let mut random = Random::new(seed);

    let mut b = FunctionBuilder::new("halve");
    b.declare(recursive, vec![Type::REAL, Type::INT], vec![Type::REAL]);
    let (x, n) = (b.param("x", Type::REAL), b.param("n", Type::INT));
    let zero = b.int(0);
    let more = b.compare(Comparison::Less, zero, n);
    let result = b.if_else(
        more,
        |b| {
            let (half, one) = (b.real(0.5), b.int(1));
            let (x, n) = (b.mul(x, half), b.integer(IntOp::Sub, n, one));
            vec![b.emit(Op::Call(recursive), &[x, n])]
        },
        |_| vec![x],
    );
    programs.define(recursive, b.finish(&result));

    let signature = (vec![Type::REAL, VECTOR, Type::INT], vec![Type::REAL, VECTOR]);
    let mut b = FunctionBuilder::new("helper");
    let params = vec![b.param("x", Type::REAL), b.param("a", VECTOR), b.param("n", Type::INT)];
    let length = b.dim(params[1], 0);
    let mut maker =
        Maker { random: Random::new(random.u64()), kind, open: params, length, depth: 1, calls: None, b };
    maker.statements(size / 3);
    let results = [maker.pick(Type::REAL), maker.pick(VECTOR)];
    programs.define(helper, maker.b.finish(&results));

    let mut b = FunctionBuilder::new("main");
    b.declare(helper, signature.0, signature.1);
    b.declare(recursive, vec![Type::REAL, Type::INT], vec![Type::REAL]);
    let mut params = vec![
        b.param("x", Type::REAL),
        b.param("y", Type::REAL),
        b.param("n", Type::INT),
        b.param("c", Type::BOOL),
        b.param("a", VECTOR),
        b.param("m", MATRIX),
    ];
    params.truncate(if kind == Kind::Walked { 5 } else { 6 });
    let length = b.dim(params[4], 0);
    let calls = Some((helper, recursive));
    let mut maker = Maker { random, kind, open: params, length, depth: 0, calls, b };
    maker.statements(size);
    let types: Vec<Type> = (0..2 + size / 2).map(|_| maker.ty()).collect();
    let results = maker.pick_all(&types);
    programs.define(main, maker.b.finish(&results));
    let names = vec!["r"; results.len()];
    programs.finish(main, &names).unwrap_or_else(|invalid| panic!("seed {seed}: {invalid}"))
}

struct Maker {
    random: Random,
    kind: Kind,
    b: FunctionBuilder,
    /// The values in scope.
    open: Vec<Value>,
    length: Value,
    depth: usize,
    calls: Option<(FuncId, FuncId)>,
}

impl Maker {
    /// A value of this type, new if there is none or for a change.
    fn pick(&mut self, ty: Type) -> Value {
        let known: Vec<Value> = self.open.iter().copied().filter(|&value| self.b.ty(value) == ty).collect();
        if !known.is_empty() && !self.random.chance(15) {
            // Recent values more often.
            let back = self.random.below(known.len()).min(self.random.below(known.len()));
            return known[known.len() - 1 - back];
        }
        let value = match (ty.elem, ty.rank) {
            (Elem::F64, 0) => {
                let number = *self.random.pick(&[0.0, -0.0, 1.0, -1.0, 2.0, 0.5]);
                self.b.real(number)
            }
            (Elem::F32, 0) => {
                let x = self.pick(Type::REAL);
                self.b.convert(Elem::F32, x)
            }
            (Elem::Int, 0) => {
                let number = *self.random.pick(&[0, 1, 2, 3, -1]);
                self.b.int(number)
            }
            (Elem::Bool, 0) => {
                let holds = self.random.chance(50);
                self.b.bool(holds)
            }
            (Elem::Int, 1) => self.b.emit(Op::Iota, &[self.length]),
            (_, rank) => {
                let x = self.pick(ty.with_rank(0));
                let length = self.dim();
                self.b.fill(x, &vec![length; usize::from(rank)])
            }
        };
        self.open.push(value);
        value
    }

    /// An operation on values of these types, and on others.
    fn emit(&mut self, op: Op, types: &[Type], others: &[Value]) -> Value {
        let picked = self.pick_all(types);
        self.b.emit(op, &[&picked[..], others].concat())
    }

    fn dim(&mut self) -> Value {
        if self.random.chance(50) {
            return self.length;
        }
        let ty = self.array();
        let arrays: Vec<Value> = self.open.iter().copied().filter(|&value| self.b.ty(value) == ty).collect();
        if arrays.is_empty() {
            return self.length;
        }
        let array = arrays[self.random.below(arrays.len())];
        let axis = self.random.below(usize::from(ty.rank)) as u8;
        self.b.dim(array, axis)
    }

    /// An index that is in range.
    fn index(&mut self) -> Value {
        let length = self.dim();
        self.emit(Op::Int(IntOp::Rem), &[Type::INT], &[length])
    }

    fn statements(&mut self, count: usize) {
        for _ in 0..count {
            let made = self.statement();
            self.open.extend(made);
        }
    }

    /// A type of arrays.
    fn array(&mut self) -> Type {
        if self.kind == Kind::Walked { VECTOR } else { *self.random.pick(&[VECTOR, VECTOR, MATRIX]) }
    }

    /// A type of what branches and loops give.
    fn ty(&mut self) -> Type {
        let array = self.array();
        *self.random.pick(&[Type::REAL, Type::REAL, Type::INT, Type::BOOL, array, array])
    }

    fn statement(&mut self) -> Vec<Value> {
        match self.random.below(100) {
            60..79 if self.kind == Kind::Walked => vec![self.access()],
            0..16 => vec![self.real()],
            16..24 => vec![self.int()],
            24..30 => vec![self.truth()],
            30..44 => vec![self.elementwise()],
            44..60 => vec![self.access()],
            60..72 => vec![self.whole()],
            72..76 => vec![self.matrix()],
            76..79 => vec![self.single()],
            79..82 => self.call(),
            82..87 if self.depth < 3 => self.branch(),
            87..93 if self.depth < 3 => self.for_loop(),
            93..95 if self.depth < 3 => self.while_loop(),
            95..98 if self.depth < 3 => self.two_loops(),
            98..100 if self.depth < 3 => self.logging_loop(),
            _ => vec![self.real()],
        }
    }

    fn row(&mut self) -> (Rule, usize) {
        use Row::*;
        let rows: &[Row] = match self.kind {
            // Only what does not tell 0 from -0.
            Kind::Strong => &[Add, Subtract, Negate, StrongMul, StrongMul, Sin, Abs],
            Kind::Any | Kind::Walked => &[
                Add, Add, Subtract, Multiply, Multiply, Divide, Negate, Negate, Abs, Sin, Exp, Sqrt, Min,
                MulAdd, Select, Powi,
            ],
        };
        let row = *self.random.pick(rows);
        let parameter = if row == Row::Powi { self.random.below(4) as i32 } else { 0 };
        (Rule { row, parameter }, row.arity())
    }

    fn real(&mut self) -> Value {
        match self.random.below(10) {
            0 => self.emit(Op::Convert(Elem::F64), &[Type::INT], &[]),
            1 => self.emit(Op::StopGradient, &[Type::REAL], &[]),
            _ => {
                let (rule, arity) = self.row();
                self.emit(Op::Map(rule), &vec![Type::REAL; arity], &[])
            }
        }
    }

    fn single(&mut self) -> Value {
        let (rule, arity) = self.row();
        let z = self.emit(Op::Map(rule), &vec![SINGLE; arity], &[]);
        self.open.push(z);
        self.b.convert(Elem::F64, z)
    }

    fn int(&mut self) -> Value {
        if self.random.chance(25) {
            return self.dim();
        }
        if self.random.chance(10) {
            let i = self.index();
            return self.emit(Op::Read(vec![Axis::At]), &[INTS], &[i]);
        }
        use IntOp::{Add, Max, Min, Mul, Sub};
        let op = *self.random.pick(&[Add, Add, Sub, Sub, Mul, Min, Max]);
        self.emit(Op::Int(op), &[Type::INT; 2], &[])
    }

    /// A truth value, or a choice by one.
    fn truth(&mut self) -> Value {
        match self.random.below(5) {
            0 => self.emit(Op::Logical(Logical::Not), &[Type::BOOL], &[]),
            1 => {
                let op = *self.random.pick(&[Logical::And, Logical::Or]);
                self.emit(Op::Logical(op), &[Type::BOOL; 2], &[])
            }
            2 => {
                let ty = self.ty();
                self.emit(Op::Select, &[Type::BOOL, ty, ty], &[])
            }
            which => {
                let ty = if which == 3 { Type::INT } else { Type::REAL };
                let op = *self.random.pick(&Comparison::ALL);
                self.emit(Op::Compare(op), &[ty; 2], &[])
            }
        }
    }

    fn elementwise(&mut self) -> Value {
        let array = self.array();
        if self.kind != Kind::Walked && self.random.chance(20) {
            let (a, b) = (self.pick(array), self.pick(array));
            let x = self.pick(Type::REAL);
            let c = self.b.compare(Comparison::Less, a, x);
            return self.b.select(c, a, b);
        }
        if self.random.chance(10) {
            return self.emit(Op::Convert(Elem::F64), &[INTS], &[]);
        }
        let (rule, arity) = self.row();
        let mut args: Vec<Value> = (0..arity)
            .map(|_| {
                let ty = if self.random.chance(30) { Type::REAL } else { array };
                self.pick(ty)
            })
            .collect();
        args[0] = self.pick(array);
        self.b.map(rule, &args)
    }

    /// Reads and writes of elements and rows.
    fn access(&mut self) -> Value {
        let (i, j) = (self.index(), self.index());
        let j = if self.random.chance(30) { i } else { j };
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let length = self.length;
        let kinds: &[usize] = match self.kind {
            Kind::Walked => &[0, 1, 3, 4, 5, 9, 10, 11],
            Kind::Any | Kind::Strong => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        };
        use Axis::{All, At, List, Range};
        match *self.random.pick(kinds) {
            0 | 1 => self.emit(Op::Read(vec![At]), &[VECTOR], &[i]),
            2 => self.emit(Op::Read(vec![At, At]), &[MATRIX], &[i, j]),
            3 | 4 => {
                let (a, x) = (self.pick(VECTOR), self.pick(Type::REAL));
                let a = self.b.update(a, &[i], x);
                self.open.push(a);
                // Often read or written again at once.
                match self.random.below(3) {
                    0 => self.b.index(a, &[j]),
                    1 => self.b.update(a, &[j], x),
                    _ => a,
                }
            }
            5 => self.emit(Op::AddAt(vec![At]), &[VECTOR, Type::REAL], &[i]),
            6 => {
                let places = *self.random.pick(&[[At, All], [All, At]]);
                self.emit(Op::Read(places.to_vec()), &[MATRIX], &[i])
            }
            7 => {
                let op = *self.random.pick(&[Op::Write, Op::AddAt]);
                self.emit(op(vec![At, All]), &[MATRIX, VECTOR], &[i])
            }
            8 => self.emit(Op::Read(vec![Range]), &[VECTOR], &[zero, length, one]),
            9 => self.emit(Op::Read(vec![List]), &[VECTOR, INTS], &[]),
            10 => {
                let list = self.b.emit(Op::Iota, &[length]);
                self.emit(Op::Write(vec![List]), &[VECTOR; 2], &[list])
            }
            // All of one array into another, possibly itself.
            _ => self.emit(Op::Write(vec![All]), &[VECTOR; 2], &[]),
        }
    }

    /// Operations on whole arrays.
    fn whole(&mut self) -> Value {
        let length = self.length;
        match self.random.below(10) {
            0 => {
                let (axis, n, m) = (self.random.below(2) as u8, self.dim(), self.dim());
                self.emit(Op::Broadcast(vec![axis]), &[VECTOR], &[n, m])
            }
            1 => self.emit(Op::Permute(vec![1, 0]), &[MATRIX], &[]),
            2 => {
                let size = self.b.integer(IntOp::Mul, length, length);
                let flat = self.emit(Op::Reshape, &[MATRIX], &[size]);
                self.b.emit(Op::Reshape, &[flat, length, length])
            }
            3 => {
                let both = self.emit(Op::Concat(0), &[VECTOR; 2], &[]);
                let size = self.b.dim(both, 0);
                self.open.push(size);
                let (start, one) = (self.b.int(0), self.b.int(1));
                self.b.emit(Op::Read(vec![Axis::Range]), &[both, start, length, one])
            }
            which @ 4..7 => {
                let kind = *self.random.pick(&Reduction::ALL);
                let (ty, axis) = if which == 4 { (MATRIX, self.random.below(2) as u8) } else { (VECTOR, 0) };
                self.emit(Op::Reduce(kind, vec![axis]), &[ty], &[])
            }
            7 => {
                let longer = self.emit(Op::Push, &[VECTOR, Type::REAL], &[]);
                let n = self.dim();
                self.b.emit(Op::Resize, &[longer, n])
            }
            8 => {
                let n = self.dim();
                self.emit(Op::Reshape, &[VECTOR], &[n])
            }
            _ => self.emit(Op::Concat(0), &[VECTOR], &[]),
        }
    }

    fn matrix(&mut self) -> Value {
        let [a_transposed, b_transposed] = [self.random.chance(50), self.random.chance(50)];
        let product = |a_transposed, b_transposed| Op::MatMul { a_transposed, b_transposed, strong: false };
        match self.random.below(4) {
            0 => self.emit(Op::Outer { strong: false }, &[VECTOR; 2], &[]),
            2 => {
                let factor = if self.random.chance(50) { VECTOR } else { MATRIX };
                self.emit(Op::AddOuter { strong: false }, &[MATRIX, factor, factor], &[])
            }
            1 => self.emit(product(a_transposed, false), &[MATRIX, VECTOR], &[]),
            _ => self.emit(product(false, b_transposed), &[MATRIX; 2], &[]),
        }
    }

    fn call(&mut self) -> Vec<Value> {
        let Some((helper, recursive)) = self.calls else { return vec![self.real()] };
        let x = self.pick(Type::REAL);
        if self.random.chance(50) {
            let three = self.b.int(3);
            return vec![self.b.emit(Op::Call(recursive), &[x, three])];
        }
        let (a, n) = (self.pick(VECTOR), self.pick(Type::INT));
        self.b.emit_all(Op::Call(helper), &[x, a, n])
    }

    /// Statements in a block of their own; then `f`.
    fn inside<T>(&mut self, params: &[Value], count: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.open.len();
        self.open.extend(params);
        self.depth += 1;
        self.statements(count);
        let result = f(self);
        self.depth -= 1;
        self.open.truncate(before);
        result
    }

    fn types(&mut self) -> Vec<Type> {
        (0..1 + self.random.below(3)).map(|_| self.ty()).collect()
    }

    fn pick_all(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|&ty| self.pick(ty)).collect()
    }

    fn branch(&mut self) -> Vec<Value> {
        let types = self.types();
        let condition = self.pick(Type::BOOL);
        let mut side = || {
            self.b.open(&[]);
            let count = self.random.below(4);
            let results = self.inside(&[], count, |this| this.pick_all(&types));
            self.b.close(&results)
        };
        let blocks = vec![side(), side()];
        self.b.emit_blocks(Op::If, &[condition], blocks, &types)
    }

    fn for_loop(&mut self) -> Vec<Value> {
        let types = self.types();
        let initial = self.pick_all(&types);
        let n = match self.random.below(4) {
            0 => self.length,
            1 => {
                let n = self.pick(Type::INT);
                let three = self.b.int(3);
                self.b.integer(IntOp::Min, n, three)
            }
            _ => {
                let n = self.random.below(4) as i64;
                self.b.int(n)
            }
        };
        let params = self.b.open(&[&[Type::INT], &types[..]].concat());
        let count = 1 + self.random.below(5);
        let results = self.inside(&params, count, |this| this.next(&types, &params[1..], &initial));
        let block = self.b.close(&results);
        let descending = self.random.chance(30);
        self.b.emit_blocks(
            Op::For { descending, keep: None },
            &[&[n], &initial[..]].concat(),
            vec![block],
            &types,
        )
    }

    /// What a loop carries on: something new, the old value, or the initial one.
    fn next(&mut self, types: &[Type], params: &[Value], initial: &[Value]) -> Vec<Value> {
        let mut next = Vec::new();
        for at in 0..types.len() {
            next.push(match self.random.below(10) {
                0 => params[at],
                1 => initial[at],
                _ => self.pick(types[at]),
            });
        }
        next
    }

    fn while_loop(&mut self) -> Vec<Value> {
        let types = [&[Type::INT], &self.types()[..]].concat();
        let mut initial = self.pick_all(&types);
        initial[0] = self.b.int(0);
        let rounds = self.random.below(4) as i64;
        let params = self.b.open(&types);
        let count = self.random.below(2);
        let holds = self.inside(&params, count, |this| {
            let rounds = this.b.int(rounds);
            this.b.compare(Comparison::Less, params[0], rounds)
        });
        let head = self.b.close(&[holds]);
        let params = self.b.open(&types);
        let count = 1 + self.random.below(4);
        let results = self.inside(&params, count, |this| {
            let mut next = this.next(&types, &params, &initial);
            let one = this.b.int(1);
            next[0] = this.b.integer(IntOp::Add, params[0], one);
            next
        });
        let body = self.b.close(&results);
        self.b.emit_blocks(Op::While { keep: None }, &initial, vec![head, body], &types)
    }

    /// `y[k] = f(a[k])` and then `z[k] = g(y[k])`, or something that only looks like it.
    fn two_loops(&mut self) -> Vec<Value> {
        let a = self.pick(VECTOR);
        let descending = self.random.chance(20);
        let first = self.array_loop(a, descending);
        if self.random.chance(30) {
            let made = self.statement();
            self.open.extend(made);
        }
        let descending = if self.random.chance(10) { !descending } else { descending };
        let second = self.array_loop(first, descending);
        vec![first, second]
    }

    /// A loop that keeps a log: of its counter, of something that it does not change, or of anything; in an
    /// inner loop or not. Then its length and an entry. Integers are carried along that count something.
    fn logging_loop(&mut self) -> Vec<Value> {
        let of_reals = self.random.chance(40);
        let ty = if of_reals { VECTOR } else { INTS };
        let (none, one) = (self.b.int(0), self.b.int(1));
        let zero = if of_reals { self.b.real(0.0) } else { none };
        let start = if self.random.chance(20) { self.pick(ty) } else { self.b.fill(zero, &[none]) };
        let rounds =
            if self.random.chance(50) { self.length } else { self.b.int(1 + self.random.below(3) as i64) };
        let carried = [ty, Type::INT];
        let [outer, inner] = [self.random.chance(30), self.random.chance(30)];
        let params = self.b.open(&[&[Type::INT], &carried[..]].concat());
        // The log has a length of its own: nothing else may find it.
        let results = self.inside(&[params[0], params[2]], 1, |this| {
            let before = this.b.dim(params[1], 0);
            this.open.push(before);
            let mut log = params[1];
            let mut count = params[2];
            if this.random.chance(40) {
                let more = this.b.int(1 + this.random.below(3) as i64);
                let inside = this.b.open(&[&[Type::INT], &carried[..]].concat());
                let results = this.inside(&[inside[0], inside[2]], 0, |this| {
                    let at = this.b.dim(inside[1], 0);
                    this.open.push(at);
                    let entry = this.entry(of_reals, inside[0]);
                    let log = this.b.emit(Op::Push, &[inside[1], entry]);
                    vec![log, this.b.integer(IntOp::Add, inside[2], at)]
                });
                let block = this.b.close(&results);
                let op = Op::For { descending: inner, keep: None };
                let given = this.b.emit_blocks(op, &[more, log, count], vec![block], &carried);
                (log, count) = (given[0], given[1]);
            }
            let entry = this.entry(of_reals, params[0]);
            let mut pushed = vec![log, entry];
            if this.random.chance(20) {
                pushed.push(this.pick(ty));
            }
            let step = if this.random.chance(50) { one } else { this.pick(Type::INT) };
            let op = if this.random.chance(20) { IntOp::Sub } else { IntOp::Add };
            vec![this.b.emit(Op::Push, &pushed), this.b.integer(op, count, step)]
        });
        let block = self.b.close(&results);
        let op = Op::For { descending: outer, keep: None };
        let first = if self.random.chance(50) { none } else { self.pick(Type::INT) };
        let given = self.b.emit_blocks(op, &[rounds, start, first], vec![block], &carried);
        let size = self.b.dim(given[0], 0);
        let at = self.emit(Op::Int(IntOp::Rem), &[Type::INT], &[size]);
        let entry = self.b.index(given[0], &[at]);
        vec![entry, size, given[1]]
    }

    /// What is pushed to a log.
    fn entry(&mut self, of_reals: bool, counter: Value) -> Value {
        match (self.random.below(3), of_reals) {
            (0, true) => self.b.convert(Elem::F64, counter),
            (0, false) => counter,
            (_, true) => self.pick(Type::REAL),
            (_, false) => self.pick(Type::INT),
        }
    }

    fn array_loop(&mut self, from: Value, descending: bool) -> Value {
        let start = if self.random.chance(10) { from } else { self.pick(VECTOR) };
        let params = self.b.open(&[Type::INT, VECTOR]);
        let result = self.inside(&params, 0, |this| {
            let k = if this.random.chance(10) { this.index() } else { params[0] };
            let element = this.b.index(from, &[k]);
            this.open.push(element);
            this.statements(1);
            let x = this.pick(Type::REAL);
            let k = if this.random.chance(10) { this.index() } else { params[0] };
            if this.random.chance(30) {
                this.b.emit(Op::AddAt(vec![Axis::At]), &[params[1], x, k])
            } else {
                this.b.update(params[1], &[k], x)
            }
        });
        let block = self.b.close(&[result]);
        self.b.emit_blocks(Op::For { descending, keep: None }, &[self.length, start], vec![block], &[VECTOR])
            [0]
    }
}
