//! Random programs, run by the interpreter and by a plain walk over the instructions that copies everything.
//!
//! Registers are shared, arrays are moved and updated in place: none of that may be seen in the results.

use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{
    Axis, Block, Comparison, Elem, FuncId, Function, FunctionBuilder, IntOp, Literal, Op, Program,
    ProgramBuilder, Type, Value, text,
};

const VECTOR: Type = Type::array(Elem::F64, 1);
const LENGTH: i64 = 4;
const KINDS: [Type; 4] = [Type::REAL, Type::INT, Type::BOOL, VECTOR];

/// A generator of small numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

struct Author<'a> {
    dice: &'a mut Dice,
    /// What may be called, with its types.
    callees: &'a [(FuncId, Vec<Type>, Vec<Type>)],
}

impl Author<'_> {
    /// A visible value of this type; the later ones are likelier, so that chains of updates form.
    fn value(&mut self, b: &FunctionBuilder, visible: &[Value], ty: Type) -> Value {
        let fitting: Vec<Value> = visible.iter().copied().filter(|&value| b.ty(value) == ty).collect();
        let at = self.dice.below(fitting.len()).max(self.dice.below(fitting.len()));
        fitting[at]
    }

    fn values(&mut self, b: &FunctionBuilder, visible: &[Value], types: &[Type]) -> Vec<Value> {
        types.iter().map(|&ty| self.value(b, visible, ty)).collect()
    }

    fn types(&mut self) -> Vec<Type> {
        (0..self.dice.below(4))
            .map(|_| self.dice.pick(&[VECTOR, Type::REAL, VECTOR, Type::INT, Type::BOOL]))
            .collect()
    }

    fn small(&mut self, b: &mut FunctionBuilder, value: Value) -> Value {
        let length = b.int(LENGTH);
        b.integer(IntOp::Rem, value, length)
    }

    /// Appends instructions; what they define becomes visible.
    fn block(&mut self, b: &mut FunctionBuilder, visible: &mut Vec<Value>, depth: usize) {
        for _ in 0..1 + self.dice.below(7) {
            let made = self.inst(b, visible, depth);
            visible.extend(made);
        }
    }

    fn inst(&mut self, b: &mut FunctionBuilder, visible: &[Value], depth: usize) -> Vec<Value> {
        let kinds = if depth > 0 { 16 } else { 12 };
        match self.dice.below(kinds) {
            0 => {
                let (x, y) = (self.value(b, visible, Type::REAL), self.value(b, visible, Type::REAL));
                let half = b.real(0.5);
                let sum = b.add(x, y);
                vec![b.mul(sum, half)]
            }
            1 => {
                let (x, y) = (self.value(b, visible, Type::REAL), self.value(b, visible, Type::REAL));
                vec![b.sub(x, y)]
            }
            2 => {
                let (x, y) = (self.value(b, visible, Type::INT), self.value(b, visible, Type::INT));
                let sum = b.integer(IntOp::Add, x, y);
                vec![self.small(b, sum)]
            }
            3 => {
                let ty = self.dice.pick(&[Type::REAL, Type::INT]);
                let (x, y) = (self.value(b, visible, ty), self.value(b, visible, ty));
                vec![b.compare(Comparison::Less, x, y)]
            }
            4 => {
                let ty = self.dice.pick(&KINDS);
                let c = self.value(b, visible, Type::BOOL);
                let (x, y) = (self.value(b, visible, ty), self.value(b, visible, ty));
                vec![b.select(c, x, y)]
            }
            5 => {
                let (a, i) = (self.value(b, visible, VECTOR), self.value(b, visible, Type::INT));
                vec![b.index(a, &[i])]
            }
            6..=8 => {
                let (a, i) = (self.value(b, visible, VECTOR), self.value(b, visible, Type::INT));
                let x = self.value(b, visible, Type::REAL);
                let op = if self.dice.below(2) == 0 {
                    Op::Write(vec![Axis::At])
                } else {
                    Op::AddAt(vec![Axis::At])
                };
                vec![b.emit(op, &[a, x, i])]
            }
            9 => {
                let (x, y) = (self.value(b, visible, VECTOR), self.value(b, visible, VECTOR));
                vec![b.sub(x, y)]
            }
            10 => {
                // All of one array into another, possibly itself.
                let (x, y) = (self.value(b, visible, VECTOR), self.value(b, visible, VECTOR));
                vec![b.emit(Op::Write(vec![Axis::All]), &[x, y])]
            }
            11 => match self.callees.len() {
                0 => vec![b.real(1.5)],
                n => {
                    let (callee, params, _) = &self.callees[self.dice.below(n)];
                    let args = self.values(b, visible, params);
                    b.emit_all(Op::Call(*callee), &args)
                }
            },
            12 | 13 => {
                let condition = self.value(b, visible, Type::BOOL);
                let types = self.types();
                let branch = |author: &mut Self, b: &mut FunctionBuilder| -> Block {
                    b.open(&[]);
                    let mut inner = visible.to_vec();
                    author.block(b, &mut inner, depth - 1);
                    let results = author.values(b, &inner, &types);
                    b.close(&results)
                };
                let blocks = vec![branch(self, b), branch(self, b)];
                b.emit_blocks(Op::If, &[condition], blocks, &types)
            }
            14 => {
                let n = self.value(b, visible, Type::INT);
                let types = self.types();
                let args = [vec![n], self.values(b, visible, &types)].concat();
                let params = b.open(&[&[Type::INT], &types[..]].concat());
                let mut inner = [visible, &params].concat();
                self.block(b, &mut inner, depth - 1);
                let results = self.values(b, &inner, &types);
                let block = b.close(&results);
                let descending = self.dice.below(2) == 0;
                b.emit_blocks(Op::For { descending, room: None }, &args, vec![block], &types)
            }
            _ => {
                // The first carried value counts to 3.
                let types = [vec![Type::INT], self.types()].concat();
                let args = self.values(b, visible, &types);
                let params = b.open(&types);
                let three = b.int(3);
                let mut inner = [visible, &params].concat();
                self.block(b, &mut inner, 0);
                let more = b.compare(Comparison::Less, params[0], three);
                let head = b.close(&[more]);
                let params = b.open(&types);
                let mut inner = [visible, &params].concat();
                self.block(b, &mut inner, depth - 1);
                let one = b.int(1);
                let next = b.integer(IntOp::Add, params[0], one);
                let results = [vec![next], self.values(b, &inner, &types[1..])].concat();
                let body = b.close(&results);
                let made = b.emit_blocks(Op::While { room: None }, &args, vec![head, body], &types);
                // The count may be 3, which is still an index.
                made
            }
        }
    }

    fn function(
        &mut self,
        name: &str,
        params: &[Type],
        results: &[Type],
        depth: usize,
    ) -> (Function, Vec<String>) {
        let mut b = FunctionBuilder::new(name);
        for (callee, params, results) in self.callees {
            b.declare(*callee, params.clone(), results.clone());
        }
        let mut visible: Vec<Value> = params.iter().map(|&ty| b.param("p", ty)).collect();
        // Something of every kind.
        visible.extend([b.real(0.25), b.int(2), b.bool(true)]);
        self.block(&mut b, &mut visible, depth);
        self.block(&mut b, &mut visible, depth);
        let results = self.values(&b, &visible, results);
        b.finish(&results)
    }
}

fn random_program(seed: u64) -> Program {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut builder = ProgramBuilder::new();
    let (inner, main) = (builder.reserve(), builder.reserve());
    let (params, results) = (vec![VECTOR, Type::REAL, VECTOR], vec![Type::REAL, VECTOR, VECTOR]);
    let function = Author { dice: &mut dice, callees: &[] }.function("inner", &params, &results, 1);
    builder.define(inner, function);
    let callees = [(inner, params, results)];
    let inputs = [VECTOR, VECTOR, Type::REAL, Type::INT];
    let outputs = [VECTOR, VECTOR, VECTOR, Type::REAL, Type::REAL, Type::INT, Type::BOOL];
    let function = Author { dice: &mut dice, callees: &callees }.function("main", &inputs, &outputs, 3);
    builder.define(main, function);
    builder.finish(main, &["a", "b", "c", "x", "y", "n", "t"]).unwrap()
}

#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Real(f64),
    Int(i64),
    Bool(bool),
    Vector(Vec<f64>),
}

impl Plain {
    fn real(&self) -> f64 {
        let Plain::Real(x) = self else { panic!("{self:?} is not real") };
        *x
    }
    fn int(&self) -> i64 {
        let Plain::Int(x) = self else { panic!("{self:?} is not an integer") };
        *x
    }
    fn bool(&self) -> bool {
        let Plain::Bool(x) = self else { panic!("{self:?} is not a truth value") };
        *x
    }
    fn vector(&self) -> Vec<f64> {
        let Plain::Vector(x) = self else { panic!("{self:?} is not an array") };
        x.clone()
    }
}

/// A walk over the instructions: every value in a table of its own, everything copied.
struct Walk<'a> {
    program: &'a Program,
    values: Vec<Option<Plain>>,
}

impl Walk<'_> {
    fn call(program: &Program, function: FuncId, args: Vec<Plain>) -> Vec<Plain> {
        let function = program.function(function);
        let mut walk = Walk { program, values: vec![None; function.values.len()] };
        walk.block(&function.body, args)
    }

    fn get(&self, value: Value) -> Plain {
        self.values[value.index()].clone().expect("defined before")
    }

    fn block(&mut self, block: &Block, args: Vec<Plain>) -> Vec<Plain> {
        for (&param, arg) in block.params.iter().zip(args) {
            self.values[param.index()] = Some(arg);
        }
        for inst in &block.insts {
            let args: Vec<Plain> = inst.args.iter().map(|&arg| self.get(arg)).collect();
            let results = self.inst(&inst.op, &args, &inst.blocks);
            for (&result, value) in inst.results.iter().zip(results) {
                self.values[result.index()] = Some(value);
            }
        }
        block.results.iter().map(|&result| self.get(result)).collect()
    }

    fn inst(&mut self, op: &Op, args: &[Plain], blocks: &[Block]) -> Vec<Plain> {
        vec![match op {
            Op::Const(Literal::Real(x)) => Plain::Real(*x),
            Op::Const(Literal::Int(x)) => Plain::Int(*x),
            Op::Const(Literal::Bool(x)) => Plain::Bool(*x),
            Op::Map(rule) => match (&args[0], &args[1]) {
                (Plain::Vector(x), Plain::Vector(y)) => {
                    Plain::Vector(x.iter().zip(y).map(|(&x, &y)| rule.row.value(0, &[x, y])).collect())
                }
                _ => Plain::Real(rule.row.value(0, &[args[0].real(), args[1].real()])),
            },
            Op::Int(IntOp::Add) => Plain::Int(args[0].int() + args[1].int()),
            Op::Int(IntOp::Rem) => Plain::Int(args[0].int().rem_euclid(args[1].int())),
            Op::Compare(Comparison::Less) => match &args[0] {
                Plain::Int(x) => Plain::Bool(*x < args[1].int()),
                _ => Plain::Bool(args[0].real() < args[1].real()),
            },
            Op::Select => args[if args[0].bool() { 1 } else { 2 }].clone(),
            Op::Read(_) => Plain::Real(args[0].vector()[args[1].int() as usize]),
            Op::Write(axes) if axes[0] == Axis::All => args[1].clone(),
            Op::Write(_) => {
                let mut a = args[0].vector();
                a[args[2].int() as usize] = args[1].real();
                Plain::Vector(a)
            }
            Op::AddAt(_) => {
                let mut a = args[0].vector();
                a[args[2].int() as usize] += args[1].real();
                Plain::Vector(a)
            }
            Op::Call(callee) => return Walk::call(self.program, *callee, args.to_vec()),
            Op::If => return self.block(&blocks[if args[0].bool() { 0 } else { 1 }], Vec::new()),
            Op::For { descending, .. } => {
                let n = args[0].int().max(0);
                let mut state = args[1..].to_vec();
                for k in 0..n {
                    let k = if *descending { n - 1 - k } else { k };
                    state = self.block(&blocks[0], [vec![Plain::Int(k)], state].concat());
                }
                return state;
            }
            Op::While { .. } => {
                let mut state = args.to_vec();
                while self.block(&blocks[0], state.clone())[0].bool() {
                    state = self.block(&blocks[1], state);
                }
                return state;
            }
            other => panic!("`{}` is not written by the author", other.name()),
        }]
    }
}

#[test]
fn random_programs_mean_what_they_say() {
    let (a, b) = (vec![1.0, 2.0, 3.0, 4.0], vec![-0.5, 0.0, 0.5, 8.0]);
    let mut copied = 0;
    for seed in 0..3000 {
        let program = random_program(seed);
        let plain = [Plain::Vector(a.clone()), Plain::Vector(b.clone()), Plain::Real(0.75), Plain::Int(3)];
        let expected = Walk::call(&program, program.entry, plain.to_vec());
        let inputs = [Datum::vector(a.clone()), Datum::vector(b.clone()), Datum::real(0.75), Datum::int(3)];
        let (out, stats) = Code::new(&program).run_with_stats(&inputs, &Limits::default()).unwrap();
        copied += stats.elements_copied;
        let same = out.iter().zip(&expected).all(|(got, expected)| match expected {
            Plain::Real(x) => got.as_real().unwrap().to_bits() == x.to_bits(),
            Plain::Int(x) => got.as_int() == Some(*x),
            Plain::Bool(x) => got.as_bool() == Some(*x),
            Plain::Vector(x) => {
                got.as_vector().unwrap().iter().zip(x).all(|(a, b)| a.to_bits() == b.to_bits())
            }
        });
        assert!(same, "seed {seed}: {out:?}\ninstead of {expected:?}\n{}", text::print(&program));
    }
    assert!(copied > 0, "the programs never share an array");
}
