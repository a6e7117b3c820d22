//! How long a round of a loop takes, printed. Run it with
//! `cargo test -p palinode-ir --release -- --ignored --nocapture speed`.

use std::time::Instant;

use super::program;
use palinode_core::{Dual, grad};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Axis, Comparison, Elem, FunctionBuilder, IntOp, Op, Program, ProgramBuilder, Type, Value};

const ROUNDS: i64 = 1_000_000;

/// The best of five, in nanoseconds per round.
fn per_round(what: &str, mut run: impl FnMut()) -> f64 {
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    let nanoseconds = best * 1e9 / ROUNDS as f64;
    println!("{what:<58} {nanoseconds:>8.1} ns per round");
    nanoseconds
}

/// `x = r x (1 - x)`.
fn logistic() -> Program {
    program(&[Type::REAL, Type::REAL, Type::INT], |b, v| {
        b.for_loop(v[2], &[v[1]], |b, _, s| {
            let one = b.real(1.0);
            let rest = b.sub(one, s[0]);
            let scaled = b.mul(v[0], s[0]);
            vec![b.mul(scaled, rest)]
        })
    })
}

/// What reverse mode makes of it: a forward loop that logs `x`, and a loop back that reads the log.
fn logistic_gradient() -> Program {
    program(&[Type::REAL, Type::REAL, Type::INT], |b, v| {
        let (r, n) = (v[0], v[2]);
        let (zero, one) = (b.real(0.0), b.real(1.0));
        let none = b.int(0);
        let log = b.fill(zero, &[none]);
        let end = b.for_loop(n, &[v[1], log], |b, _, s| {
            let rest = b.sub(one, s[0]);
            let scaled = b.mul(r, s[0]);
            let log = b.emit(Op::Push, &[s[1], s[0]]);
            vec![b.mul(scaled, rest), log]
        });
        let back = descending(b, n, &[one, zero], |b, k, s| {
            let x = b.index(end[1], &[k]);
            let rest = b.sub(one, x);
            let scaled = b.mul(r, x);
            let c_scaled = b.map(palinode_core::rules::Row::StrongMul, &[s[0], rest]);
            let c_rest = b.map(palinode_core::rules::Row::StrongMul, &[s[0], scaled]);
            let c_r = b.map(palinode_core::rules::Row::StrongMul, &[c_scaled, x]);
            let by_scaled = b.map(palinode_core::rules::Row::StrongMul, &[c_scaled, r]);
            let c_x = b.sub(by_scaled, c_rest);
            vec![c_x, b.add(s[1], c_r)]
        });
        vec![end[0], back[1], back[0]]
    })
}

fn descending(
    b: &mut FunctionBuilder,
    n: Value,
    initial: &[Value],
    body: impl FnOnce(&mut FunctionBuilder, Value, &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let types: Vec<Type> = initial.iter().map(|&value| b.ty(value)).collect();
    let params = b.open(&[&[Type::INT], &types[..]].concat());
    let next = body(b, params[0], &params[1..]);
    let block = b.close(&next);
    b.emit_blocks(Op::For { descending: true, keep: None }, &[&[n], initial].concat(), vec![block], &types)
}

#[test]
#[ignore = "prints times; run it in release"]
fn speed() {
    // A cycle of two: the derivatives stay finite.
    let (r, x) = (3.2, 0.3);
    let limits = Limits::default();
    let code = Code::new(&logistic());
    let inputs = [Datum::real(r), Datum::real(x), Datum::int(ROUNDS)];
    per_round("logistic map, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
    let dual = [Datum::real(Dual::new(r, 1.0)), Datum::real(Dual::new(x, 0.0)), Datum::int(ROUNDS)];
    per_round("logistic map, Dual<f64>", || {
        code.run(&dual, &limits).unwrap();
    });
    per_round("logistic map, Var<f64>, with the sweep back", || {
        let f = |v: &[palinode_core::Var<f64>]| {
            let inputs = [Datum::real(v[0]), Datum::real(v[1]), Datum::int(ROUNDS)];
            code.run(&inputs, &limits).unwrap()[0].as_real().unwrap()
        };
        grad(f, &[r, x]).unwrap();
    });
    let code = Code::new(&logistic_gradient());
    per_round("logistic map, forward and reverse by hand, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
    let code = Code::new(&palinode_ir::transform::value_and_grad(&logistic(), &[0, 1]).unwrap());
    per_round("logistic map, value and gradient by transformation, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
    let vector = Type::array(Elem::F64, 1);
    let code = Code::new(&program(&[vector, Type::INT], |b, v| {
        let (size, two) = (b.dim(v[0], 0), b.real(2.0));
        b.for_loop(v[1], &[v[0]], |b, k, s| {
            let at = b.integer(IntOp::Rem, k, size);
            let x = b.index(s[0], &[at]);
            let big = b.compare(Comparison::Less, two, x);
            b.if_else(
                big,
                |b| vec![b.update(s[0], &[at], two)],
                |b| {
                    let one = b.real(1.0);
                    vec![b.emit(Op::AddAt(vec![Axis::At]), &[s[0], one, at])]
                },
            )
        })
    }));
    let inputs = [Datum::vector(vec![0.0; 1000]), Datum::int(ROUNDS)];
    per_round("array: read, compare, branch, update, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
    let code = Code::new(&program(&[vector, vector, Type::INT], |b, v| {
        b.for_loop(v[2], &[v[0]], |b, _, s| {
            let sum = b.add(s[0], v[1]);
            vec![b.mul(sum, v[1])]
        })
    }));
    let inputs = [Datum::vector(vec![0.0; 4]), Datum::vector(vec![0.5; 4]), Datum::int(ROUNDS)];
    per_round("two elementwise operations over 4 elements, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
    let matrix = Type::array(Elem::F64, 2);
    let code = Code::new(&program(&[matrix, Type::INT], |b, v| {
        let size = b.dim(v[0], 0);
        b.for_loop(v[1], &[v[0]], |b, k, s| {
            let at = b.integer(IntOp::Rem, k, size);
            let row = b.emit(Op::Read(vec![Axis::At, Axis::All]), &[s[0], at]);
            vec![b.emit(Op::Write(vec![Axis::At, Axis::All]), &[s[0], row, at])]
        })
    }));
    let inputs = [Datum::matrix(100, 4, vec![0.0; 400]), Datum::int(ROUNDS)];
    per_round("read and write a row of 4 elements, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
    let code = Code::new(&calls());
    let inputs = [Datum::real(0.5), Datum::int(ROUNDS)];
    per_round("a call of a small function, f64", || {
        code.run(&inputs, &limits).unwrap();
    });
}

/// `x = half(x)` in a loop.
fn calls() -> Program {
    let mut p = ProgramBuilder::new();
    let (half, main) = (p.reserve(), p.reserve());
    let mut b = FunctionBuilder::new("half");
    let x = b.param("x", Type::REAL);
    let factor = b.real(0.5);
    let y = b.mul(x, factor);
    p.define(half, b.finish(&[y]));
    let mut b = FunctionBuilder::new("main");
    b.declare(half, vec![Type::REAL], vec![Type::REAL]);
    let (x, n) = (b.param("x", Type::REAL), b.param("n", Type::INT));
    let out = b.for_loop(n, &[x], |b, _, s| b.emit_all(Op::Call(half), s));
    p.define(main, b.finish(&out));
    p.finish(main, &["x"]).unwrap()
}
