//! Random programs, run by the interpreter and by a plain walk over the instructions that copies everything.
//!
//! Registers are shared, arrays are moved and updated in place: none of that may be seen in the results.

use crate::passes_random::same;
use crate::random::Random;
use crate::random::programs::{Kind, inputs, program};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Axis, Block, Comparison, Elem, FuncId, IntOp, Literal, Logical, Op, Program, Value, text};

#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Real(f64),
    Int(i64),
    Bool(bool),
    Vector(Vec<f64>),
    Ints(Vec<i64>),
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
    fn places(&self) -> Vec<usize> {
        let Plain::Ints(x) = self else { panic!("{self:?} is not a list") };
        x.iter().map(|&at| at as usize).collect()
    }
    fn len(&self) -> usize {
        match self {
            Plain::Ints(x) => x.len(),
            x => x.vector().len(),
        }
    }
    /// An element; a number has as many as asked for.
    fn at(&self, at: usize) -> f64 {
        match self {
            Plain::Vector(x) => x[at],
            other => other.real(),
        }
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
            Op::Map(rule) => {
                let value = |at: usize| {
                    let args: Vec<f64> = args.iter().map(|arg| arg.at(at)).collect();
                    rule.row.value(rule.parameter, &args)
                };
                match args.iter().find(|arg| matches!(arg, Plain::Vector(_))) {
                    Some(array) => Plain::Vector((0..array.vector().len()).map(value).collect()),
                    None => Plain::Real(value(0)),
                }
            }
            Op::Int(op) => {
                let (x, y) = (args[0].int(), args[1].int());
                Plain::Int(match op {
                    IntOp::Add => x + y,
                    IntOp::Sub => x - y,
                    IntOp::Mul => x * y,
                    IntOp::Min => x.min(y),
                    IntOp::Max => x.max(y),
                    IntOp::Rem => x.rem_euclid(y),
                    other => panic!("{other:?} is not written"),
                })
            }
            Op::Compare(comparison) => {
                let order = match &args[0] {
                    Plain::Int(x) => Some(x.cmp(&args[1].int())),
                    _ => args[0].real().partial_cmp(&args[1].real()),
                };
                Plain::Bool(match comparison {
                    Comparison::Less => order.is_some_and(|order| order.is_lt()),
                    Comparison::LessEq => order.is_some_and(|order| order.is_le()),
                    Comparison::Equal => order.is_some_and(|order| order.is_eq()),
                })
            }
            Op::Logical(Logical::Not) => Plain::Bool(!args[0].bool()),
            Op::Logical(Logical::And) => Plain::Bool(args[0].bool() && args[1].bool()),
            Op::Logical(Logical::Or) => Plain::Bool(args[0].bool() || args[1].bool()),
            Op::StopGradient => args[0].clone(),
            Op::Convert(Elem::F64) => match &args[0] {
                Plain::Ints(x) => Plain::Vector(x.iter().map(|&x| x as f64).collect()),
                x => Plain::Real(x.int() as f64),
            },
            Op::Dim(_) => Plain::Int(args[0].len() as i64),
            Op::Iota => Plain::Ints((0..args[0].int()).collect()),
            Op::Broadcast(_) => match args[0] {
                Plain::Int(x) => Plain::Ints(vec![x; args[1].int() as usize]),
                ref x => Plain::Vector(vec![x.real(); args[1].int() as usize]),
            },
            Op::Push => match &args[0] {
                Plain::Ints(log) => {
                    let mut log = log.clone();
                    for pushed in &args[1..] {
                        match pushed {
                            Plain::Ints(x) => log.extend(x),
                            x => log.push(x.int()),
                        }
                    }
                    Plain::Ints(log)
                }
                log => {
                    let mut log = log.vector();
                    for pushed in &args[1..] {
                        match pushed {
                            Plain::Vector(x) => log.extend(x),
                            x => log.push(x.real()),
                        }
                    }
                    Plain::Vector(log)
                }
            },
            Op::Select => args[if args[0].bool() { 1 } else { 2 }].clone(),
            Op::Read(axes) if axes[0] == Axis::List => {
                Plain::Vector(args[1].places().into_iter().map(|at| args[0].at(at)).collect())
            }
            Op::Read(_) => match &args[0] {
                Plain::Ints(x) => Plain::Int(x[args[1].int() as usize]),
                x => Plain::Real(x.at(args[1].int() as usize)),
            },
            Op::Write(axes) => {
                let mut a = args[0].vector();
                let places = match axes[0] {
                    Axis::All => (0..a.len()).collect(),
                    Axis::List => args[2].places(),
                    _ => vec![args[2].int() as usize],
                };
                for (from, at) in places.into_iter().enumerate() {
                    a[at] = args[1].at(from);
                }
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
    let (mut copied, mut ran) = (0, 0);
    for seed in 0..3000 {
        let program = program(seed, 4 + (seed % 40) as usize, Kind::Walked);
        let inputs = inputs(&mut Random::new(seed));
        let limits = Limits { steps: 100_000, ..Limits::default() };
        let Ok((out, stats)) = Code::new(&program).run_with_stats(&inputs, &limits) else { continue };
        (copied, ran) = (copied + stats.elements_copied, ran + 1);
        let plain = inputs.iter().map(|input| match input {
            Datum::Int(n) => Plain::Int(n.data[0]),
            Datum::Bool(c) => Plain::Bool(c.data[0]),
            Datum::Real(x) if x.shape.is_empty() => Plain::Real(x.data[0]),
            Datum::Real(x) => Plain::Vector(x.data.clone()),
        });
        let expected = Walk::call(&program, program.entry, plain.collect());
        let is_as_expected = |(out, expected): (&Datum<f64>, &Plain)| match expected {
            Plain::Real(x) => same(out, &Datum::real(*x), false),
            Plain::Int(x) => out.as_int() == Some(*x),
            Plain::Bool(x) => out.as_bool() == Some(*x),
            Plain::Vector(x) => same(out, &Datum::vector(x.clone()), false),
            Plain::Ints(x) => panic!("{x:?} is no result"),
        };
        let same = out.iter().zip(&expected).all(is_as_expected);
        assert!(same, "seed {seed}: {out:?}\ninstead of {expected:?}\n{}", text::print(&program));
    }
    assert!(copied > 0, "the programs never share an array");
    assert!(ran > 2500, "{ran} programs ran");
}
