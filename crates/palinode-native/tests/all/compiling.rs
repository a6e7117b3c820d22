//! How long it takes to make machine code: every example, and programs of very many statements.
//!
//! The bars are those of an optimised compiler:
//!
//! ```sh
//! cargo test --release -p palinode-native --test all compiling -- --test-threads 1
//! ```
//!
//! Tests build other people's packages without optimisation and with all checks of Cranelift, which takes
//! some hundred times as long: programs are smaller there, and bars lower. Where the system tells it, the
//! time is that of this thread alone, whatever else the machine does.

use std::time::{Duration, Instant};

use palinode_core::rules::Row;
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{FunctionBuilder, Program, Rule, Value, loops, passes, transform};
use palinode_native::Native;

use crate::support::{bits, each_example};

const IS_SLOW: bool = cfg!(debug_assertions);
const OF_EXAMPLE: Duration = Duration::from_millis(if IS_SLOW { 15_000 } else { 50 });
const OF_LARGE: Duration = Duration::from_secs(if IS_SLOW { 60 } else { 5 });
/// How many statements a large program has.
const LARGE: usize = if IS_SLOW { 5_000 } else { 100_000 };

/// The time that this thread has had.
fn clock() -> Duration {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let began = BEGAN.get_or_init(Instant::now);
    let of_thread = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = of_thread.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| began.elapsed(), Duration::from_nanos)
}

/// The machine code of a program, and how long each part of making it took.
fn compiled(program: &Program, inputs: &[Datum<f64>]) -> Option<(Native, u64, [Duration; 2])> {
    let start = clock();
    let form = loops::lower(program, inputs, true).ok()?;
    let (lowered, statements) = (clock() - start, form.statements());
    let native = Native::new(form).expect("it compiles");
    Some((native, statements, [lowered, clock() - start - lowered]))
}

#[test]
fn examples_are_compiled_at_once() {
    let mut slowest = (Duration::ZERO, String::new());
    each_example(|name, model, inputs, wrt| {
        let simplified = |derived: Program| passes::simplify(&derived);
        let mut programs: Vec<(&str, Program)> = Vec::new();
        programs
            .extend(transform::value_and_grad(&model.program, wrt).ok().map(|p| ("gradient", simplified(p))));
        if !IS_SLOW {
            programs.push(("value", simplified(passes::inline(&model.program))));
            programs.extend(transform::hessian(&model.program, wrt).ok().map(|p| ("hessian", simplified(p))));
        }
        for (what, program) in programs {
            // The shortest of some: other tests run beside this one.
            let times = (0..if IS_SLOW { 1 } else { 3 })
                .filter_map(|_| compiled(&program, inputs))
                .map(|(_, _, [a, b])| a + b);
            let Some(time) = times.min() else { continue };
            if time > slowest.0 {
                slowest = (time, format!("{name}, {what}"));
            }
        }
    });
    println!("the slowest: {slowest:?}");
    assert!(slowest.0 < OF_EXAMPLE, "{slowest:?}");
}

/// So many statements, one after the other: numbers that depend on each other near and far.
fn chain(statements: usize) -> Program {
    let mut b = FunctionBuilder::new("main");
    let x = b.param("x", palinode_ir::Type::REAL);
    let half = b.real(0.5);
    let mut values = vec![x, half];
    while values.len() < statements {
        let (last, far) = (values[values.len() - 1], values[values.len() * 7 / 8]);
        let row = [Row::Multiply, Row::Add, Row::Subtract][values.len() % 3];
        let next = b.map(Rule::from(row), &[last, far]);
        values.push(if values.len() % 64 == 0 { b.map(Rule::from(Row::Sin), &[next]) } else { next });
    }
    let last = *values.last().expect("the last");
    b.finish_program(&[last], &["y"]).expect("a program")
}

/// So many loops after each other, each with a few statements.
fn loops_in_a_row(loops: usize) -> Program {
    let mut b = FunctionBuilder::new("main");
    let x = b.param("x", palinode_ir::Type::REAL);
    let mut s: Value = x;
    for _ in 0..loops {
        let rounds = b.int(3);
        s = b.for_loop(rounds, &[s], |b, _, s| {
            let half = b.real(0.5);
            let shrunk = b.map(Rule::from(Row::Multiply), &[s[0], half]);
            let sum = b.map(Rule::from(Row::Add), &[shrunk, x]);
            vec![b.map(Rule::from(Row::Sin), &[sum])]
        })[0];
    }
    b.finish_program(&[s], &["y"]).expect("a program")
}

#[test]
fn large_programs_are_compiled_in_seconds() {
    let inputs = [Datum::real(0.7)];
    for (what, program) in [("a chain", chain(LARGE)), ("loops", loops_in_a_row(LARGE / 5))] {
        let (native, statements, [lowering, compiling]) = compiled(&program, &inputs).expect("a loop form");
        println!("{what}: {statements} statements, {lowering:?} to lower, {compiling:?} to compile");
        assert!(statements >= LARGE as u64 * 4 / 5, "{what}: {statements}");
        assert!(lowering + compiling < OF_LARGE, "{what}: {lowering:?} and {compiling:?}");
        let limits = Limits { trap_nonfinite: true, ..Limits::default() };
        let expected = Code::new(&program).run(&inputs, &limits).unwrap();
        let (found, _) = native.run(&inputs, &limits).expect("it runs");
        assert_eq!(found.iter().map(bits).collect::<Vec<_>>(), expected.iter().map(bits).collect::<Vec<_>>());
    }
}
