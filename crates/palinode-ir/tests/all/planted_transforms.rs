//! The check is checked: reverse mode with a planted bug disagrees on some program.
//!
//! A bug is a rewrite of the program that reverse mode made, the way a mistake in `transform` would have made
//! it. It is applied wherever it fits in one half: the linear half is what depends on the cotangents that go
//! in, the known half is the rest. Each one must be caught by the comparison of derivatives within a few
//! hundred random programs; the values stay right.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agree::{Transforms, check_with};
use crate::random::generate::source;
use crate::random_programs::{compiled, from_environment};
use palinode_core::rules::Row;
use palinode_ir::{
    Axis, Block, Elem, Function, Inst, IntOp, Linalg, Literal, Op, Program, Reduction, Span, Type, Value,
    transform,
};

/// What takes the place of an instruction, or nothing to leave it.
type Rewrite = fn(&mut Function, &Inst) -> Option<Vec<Inst>>;

#[derive(Clone, Copy)]
enum Spoil {
    /// Instructions of the linear half.
    Linear(Rewrite),
    /// Instructions of the known half.
    Known(Rewrite),
    /// Neighbours in a block of the linear half.
    Block(fn(&mut Block) -> bool),
}

/// The values of a function that depend on `seeds` in any way.
fn dependent(block: &Block, seeds: &mut HashSet<Value>) {
    for inst in &block.insts {
        let mut depends = false;
        inst.for_each_use(&mut |value| depends |= seeds.contains(&value));
        if depends {
            seeds.extend(&inst.results);
            for inner in &inst.blocks {
                inner.for_each_definition(&mut |value| {
                    seeds.insert(value);
                });
            }
        }
    }
}

/// The program with the bug, and whether it has it anywhere.
fn spoilt(program: &Program, original_params: usize, spoil: Spoil) -> (Program, bool) {
    let mut program = program.clone();
    let mut changed = false;
    for (at, function) in program.functions.iter_mut().enumerate() {
        let mut linear: HashSet<Value> = match at == program.entry.index() {
            true => function.body.params[original_params..].iter().copied().collect(),
            // Functions that reverse mode made take cotangents; their halves are told apart by the names.
            false => HashSet::new(),
        };
        dependent(&function.body, &mut linear);
        let body = core::mem::take(&mut function.body);
        function.body = spoilt_block(function, body, &linear, spoil, &mut changed);
        function.renumber();
    }
    (program, changed)
}

fn spoilt_block(
    function: &mut Function,
    mut block: Block,
    linear: &HashSet<Value>,
    spoil: Spoil,
    changed: &mut bool,
) -> Block {
    let mut insts = Vec::new();
    for mut inst in core::mem::take(&mut block.insts) {
        inst.blocks = inst
            .blocks
            .into_iter()
            .map(|inner| spoilt_block(function, inner, linear, spoil, changed))
            .collect();
        let is_linear = inst.results.iter().any(|result| linear.contains(result));
        let replacement = match spoil {
            Spoil::Linear(rewrite) if is_linear => rewrite(function, &inst),
            Spoil::Known(rewrite) if !is_linear => rewrite(function, &inst),
            Spoil::Linear(_) | Spoil::Known(_) | Spoil::Block(_) => None,
        };
        *changed |= replacement.is_some();
        insts.extend(replacement.unwrap_or_else(|| vec![inst]));
    }
    block.insts = insts;
    if let Spoil::Block(spoil) = spoil
        && block.insts.iter().any(|inst| inst.results.iter().any(|result| linear.contains(result)))
    {
        *changed |= spoil(&mut block);
    }
    block
}

fn constant(function: &mut Function, literal: Literal) -> (Value, Inst) {
    let ty = match literal {
        Literal::Real(_) | Literal::Named(_) => Type::REAL,
        Literal::Int(_) => Type::INT,
        Literal::Bool(_) => Type::BOOL,
    };
    let value = function.fresh(ty, None);
    (value, Inst::new(Op::Const(literal), Vec::new(), vec![value], Span::NONE))
}

/// The instruction's result is `from` instead.
fn becomes(function: &mut Function, inst: &Inst, from: Value) -> Option<Vec<Inst>> {
    let (one, constant) = constant(function, Literal::Real(1.0));
    Some(vec![constant, Inst { op: Op::rule(Row::Multiply), args: vec![from, one].into(), ..inst.clone() }])
}

fn with_op(inst: &Inst, op: Op) -> Option<Vec<Inst>> {
    Some(vec![Inst { op, ..inst.clone() }])
}

fn is_single(axes: &[Axis]) -> bool {
    axes.iter().all(|axis| *axis == Axis::At)
}

fn is_loop(inst: &Inst) -> bool {
    matches!(inst.op, Op::For { .. })
}

fn reads_log(function: &Function, inst: &Inst) -> bool {
    matches!(&inst.op, Op::Read(axes) if axes[..] == [Axis::At]) && function.name_of(inst.args[0]).is_none()
}

/// The cotangent of an overwritten element is cleared before it is read.
fn cleared_too_early(block: &mut Block) -> bool {
    for at in 0..block.insts.len() {
        let read = block.insts[at].clone();
        let Op::Read(axes) = &read.op else { continue };
        let clears = |inst: &Inst| {
            inst.op == Op::Write(axes.clone())
                && inst.args[0] == read.args[0]
                && inst.args[2..] == read.args[1..]
        };
        if let Some(clear) = block.insts[at..].iter().position(clears) {
            let clear = block.insts.remove(at + clear);
            // What the clearing needs is a literal; it goes along.
            let literal = block.insts.iter().position(|inst| inst.results.first() == Some(&clear.args[1]));
            let cleared = clear.results[0];
            block.insts[at].args[0] = cleared;
            block.insts.insert(at, clear);
            if let Some(literal) = literal.filter(|literal| *literal > at) {
                let literal = block.insts.remove(literal + 1);
                block.insts.insert(at, literal);
            }
            return true;
        }
    }
    false
}

const fn linear(name: &'static str, rewrite: Rewrite) -> (&'static str, Spoil) {
    (name, Spoil::Linear(rewrite))
}

const BUGS: &[(&str, Spoil)] = &[
    linear("an overwritten element's cotangent is not cleared", |f, inst| match &inst.op {
        Op::Write(axes) if is_single(axes) => becomes(f, inst, inst.args[0]),
        _ => None,
    }),
    ("it is cleared before it is read", Spoil::Block(cleared_too_early)),
    linear("the reverse loop runs a round less", |f, inst| {
        if !is_loop(inst) {
            return None;
        }
        let (one, constant) = constant(f, Literal::Int(1));
        let n = f.fresh(Type::INT, None);
        let less = Inst::new(Op::Int(IntOp::Sub), vec![inst.args[0], one], vec![n], inst.span);
        let mut inst = inst.clone();
        inst.args[0] = n;
        Some(vec![constant, less, inst])
    }),
    linear("the reverse loop runs the wrong way round", |_, inst| match inst.op {
        Op::For { descending, keep } => with_op(inst, Op::For { descending: !descending, keep }),
        _ => None,
    }),
    linear("a contribution to an element replaces the others", |_, inst| match &inst.op {
        Op::AddAt(axes) if is_single(axes) => with_op(inst, Op::Write(axes.clone())),
        _ => None,
    }),
    linear("what was accumulated is lost", |f, inst| match &inst.op {
        Op::Map(rule) if rule.row == Row::Add && f.ty(inst.args[1]) == f.ty(inst.results[0]) => {
            becomes(f, inst, inst.args[1])
        }
        _ => None,
    }),
    linear("a further contribution is lost", |f, inst| match &inst.op {
        Op::Map(rule) if rule.row == Row::Add && f.ty(inst.args[0]) == f.ty(inst.results[0]) => {
            becomes(f, inst, inst.args[0])
        }
        _ => None,
    }),
    linear("a sign is forgotten", |f, inst| match &inst.op {
        Op::Map(rule) if rule.row == Row::Negate => becomes(f, inst, inst.args[0]),
        _ => None,
    }),
    linear("a residual is read one place off", |f, inst| {
        if !reads_log(f, inst) {
            return None;
        }
        let (one, first) = constant(f, Literal::Int(1));
        let (none, second) = constant(f, Literal::Int(0));
        let (less, at) = (f.fresh(Type::INT, None), f.fresh(Type::INT, None));
        let sub = Inst::new(Op::Int(IntOp::Sub), vec![inst.args[1], one], vec![less], inst.span);
        let max = Inst::new(Op::Int(IntOp::Max), vec![less, none], vec![at], inst.span);
        Some(vec![first, second, sub, max, Inst { args: vec![inst.args[0], at].into(), ..inst.clone() }])
    }),
    linear("a residual is dropped", |f, inst| {
        let is_real = f.ty(inst.results[0]) == Type::REAL;
        (is_real && reads_log(f, inst)).then(|| {
            vec![Inst::new(Op::Const(Literal::Real(0.0)), Vec::new(), inst.results.clone(), inst.span)]
        })
    }),
    // The known loop keeps the next value of a carried variable instead of the present one.
    (
        "a residual is kept too late",
        Spoil::Known(|f, inst| {
            if !is_loop(inst) {
                return None;
            }
            let mut inst = inst.clone();
            let body = &mut inst.blocks[0];
            let next: HashMap<Value, Value> =
                body.params[1..].iter().copied().zip(body.results.iter().copied()).collect();
            let mut any = false;
            for push in body.insts.iter_mut().filter(|inst| inst.op == Op::Push) {
                if let Some(&later) = next.get(&push.args[1])
                    && f.ty(later) == Type::REAL
                {
                    push.args[1] = later;
                    any = true;
                }
            }
            any.then(|| vec![inst])
        }),
    ),
    linear("the cotangent of a loop's result is lost", |f, inst| {
        if !is_loop(inst) || f.ty(*inst.args.get(1)?) != Type::REAL {
            return None;
        }
        let (zero, constant) = constant(f, Literal::Real(0.0));
        let mut inst = inst.clone();
        inst.args[1] = zero;
        Some(vec![constant, inst])
    }),
    linear("an accumulator forgets the rounds before", |f, inst| {
        let (&last, true) = (inst.args.last()?, is_loop(inst) && inst.args.len() > 2) else {
            return None;
        };
        if f.ty(last) != Type::REAL {
            return None;
        }
        let mut inst = inst.clone();
        let param = *inst.blocks[0].params.last()?;
        inst.blocks[0].substitute(&HashMap::from([(param, last)]));
        Some(vec![inst])
    }),
    linear("the sides of a choice are swapped", |_, inst| {
        let args = || vec![inst.args[0], inst.args[2], inst.args[1]];
        (inst.op == Op::Select).then(|| vec![Inst { args: args().into(), ..inst.clone() }])
    }),
    linear("the branches are swapped", |_, inst| {
        (inst.op == Op::If).then(|| {
            let mut inst = inst.clone();
            inst.blocks.swap(0, 1);
            vec![inst]
        })
    }),
    linear("a sum's cotangent goes to one element", |f, inst| match &inst.op {
        Op::Broadcast(axes) if axes.is_empty() && f.ty(inst.results[0]) == Type::array(Elem::F64, 1) => {
            let (zero, first) = constant(f, Literal::Real(0.0));
            let (at, second) = constant(f, Literal::Int(0));
            let filled = f.fresh(f.ty(inst.results[0]), None);
            let fill =
                Inst { args: vec![zero, inst.args[1]].into(), results: vec![filled].into(), ..inst.clone() };
            let write = Op::Write(vec![Axis::At]);
            let set = Inst::new(write, vec![filled, inst.args[0], at], inst.results.clone(), inst.span);
            Some(vec![first, second, fill, set])
        }
        _ => None,
    }),
    linear("a product is transposed the wrong way", |f, inst| match inst.op {
        Op::MatMul { a_transposed, b_transposed, strong } if f.ty(inst.args[0]).rank == 2 => {
            with_op(inst, Op::MatMul { a_transposed: !a_transposed, b_transposed, strong })
        }
        _ => None,
    }),
    linear("an outer product is swapped", |_, inst| {
        let args = || vec![inst.args[1], inst.args[0]];
        (matches!(inst.op, Op::Outer { .. })).then(|| vec![Inst { args: args().into(), ..inst.clone() }])
    }),
    linear("an outer product that is added is swapped", |_, inst| {
        let args = || vec![inst.args[0], inst.args[2], inst.args[1]];
        (matches!(inst.op, Op::AddOuter { .. })).then(|| vec![Inst { args: args().into(), ..inst.clone() }])
    }),
    linear("a system is solved untransposed", |_, inst| match inst.op {
        Op::Linalg(Linalg::SolveTriangular { lower, transposed: true }) => {
            with_op(inst, Op::Linalg(Linalg::SolveTriangular { lower, transposed: false }))
        }
        _ => None,
    }),
    linear("a partial is squared", |f, inst| match &inst.op {
        Op::Map(rule) if rule.row == Row::StrongMul => {
            let square = f.fresh(f.ty(inst.args[1]), None);
            let args = vec![inst.args[1], inst.args[1]];
            let first = Inst::new(Op::rule(Row::Multiply), args, vec![square], inst.span);
            Some(vec![first, Inst { args: vec![inst.args[0], square].into(), ..inst.clone() }])
        }
        _ => None,
    }),
    linear("a concatenation is cut in the wrong place", |f, inst| match &inst.op {
        Op::Read(axes) if axes[..] == [Axis::Range] => {
            let (none, constant) = constant(f, Literal::Int(0));
            let mut args = inst.args.clone();
            args[1] = none;
            Some(vec![constant, Inst { args, ..inst.clone() }])
        }
        _ => None,
    }),
    linear("a repeated value gets a mean", |f, inst| match &inst.op {
        Op::Reduce(Reduction::Sum, _) => {
            let sum = f.fresh(f.ty(inst.results[0]), None);
            let (third, constant) = constant(f, Literal::Real(1.0 / 3.0));
            let divide = Op::rule(Row::Multiply);
            let scaled = Inst::new(divide, vec![sum, third], inst.results.clone(), inst.span);
            Some(vec![constant, Inst { results: vec![sum].into(), ..inst.clone() }, scaled])
        }
        _ => None,
    }),
];

thread_local! {
    /// The bug that [`spoilt_vjp`] plants, and whether it could.
    static PLANTED: std::cell::Cell<(usize, bool)> = const { std::cell::Cell::new((0, false)) };
}

fn spoilt_vjp(program: &Program, wrt: &[usize]) -> Program {
    let (bug, _) = PLANTED.get();
    let right = transform::vjp(program, wrt).expect("vjp");
    let (wrong, changed) = spoilt(&right, program.main().body.params.len(), BUGS[bug].1);
    PLANTED.set((bug, changed));
    wrong
}

#[test]
fn planted_bugs_are_caught() {
    let most = from_environment("PALINODE_PROGRAMS", 150).max(400);
    let transforms = Transforms { vjp: spoilt_vjp, ..Transforms::default() };
    let mut missed = Vec::new();
    for (number, (bug, _)) in BUGS.iter().enumerate() {
        let (mut planted, mut caught) = (0, None);
        for seed in 0..most {
            let Ok(case) = compiled(&source(seed)) else { continue };
            PLANTED.set((number, false));
            let judged = catch_unwind(AssertUnwindSafe(|| {
                check_with(&transforms, &case.program, &case.inputs, &case.wrt, false)
            }));
            planted += usize::from(PLANTED.get().1);
            match judged {
                Ok(Err(failure)) if PLANTED.get().1 => {
                    assert!(!failure.starts_with("the values"), "{}: the bug spoils the values", bug);
                    caught = Some((seed, failure.lines().next().unwrap_or_default().to_string()));
                    break;
                }
                Ok(_) => {}
                Err(_) => {
                    caught = Some((seed, "a panic".to_string()));
                    break;
                }
            }
        }
        match caught {
            Some((seed, how)) => {
                println!("{}: planted {planted} times, caught in program {seed} ({how})", bug)
            }
            None => missed.push(format!("{} (planted {planted} times)", bug)),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:#?}");
}
