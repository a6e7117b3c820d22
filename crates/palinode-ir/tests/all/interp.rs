//! The interpreter: scalars, control flow, calls.

mod errors;
mod linalg;
mod ops;
mod random;
mod speed;
mod strips;

use palinode_core::{Constant, DoubleDouble, Dual, Scalar, Var, rules};
use palinode_ir::interp::{Code, Datum, Limits, run};
use palinode_ir::{
    Comparison, Elem, FunctionBuilder, IntOp, Linalg, Literal, Op, Program, Rule, Type, Value,
};

use crate::pal::compile;

/// A program of one function whose results are what `body` gives.
pub(crate) fn program(
    params: &[Type],
    body: impl FnOnce(&mut FunctionBuilder, &[Value]) -> Vec<Value>,
) -> Program {
    let mut b = FunctionBuilder::new("main");
    let params: Vec<Value> =
        params.iter().enumerate().map(|(at, &ty)| b.param(&format!("p{at}"), ty)).collect();
    let results = body(&mut b, &params);
    let names: Vec<String> = (0..results.len()).map(|at| format!("y{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    b.finish_program(&results, &names).unwrap()
}

pub(crate) fn reals(values: &[f64]) -> Vec<Datum<f64>> {
    values.iter().map(|&value| Datum::real(value)).collect()
}

#[test]
fn every_row_of_the_rule_table() {
    for &row in rules::Row::ALL {
        let rule = Rule { row, parameter: 3 };
        let p = program(&vec![Type::REAL; row.arity()], |b, v| vec![b.map(rule, v)]);
        let sample = |(at, domain): (usize, &rules::Domain)| match domain {
            rules::Domain::UnitClosed | rules::Domain::UnitOpen => 0.25,
            _ => [1.25, 0.5, 2.0][at],
        };
        let args: &[f64] = &row.domains().iter().enumerate().map(sample).collect::<Vec<_>>();
        let out = run(&p, &reals(args)).unwrap()[0].as_real().unwrap();
        let expected: f64 = row.value(3, args);
        assert_eq!(out.to_bits(), expected.to_bits(), "{}", row.name());
        for which in 0..row.arity() {
            let active: Vec<Datum<Dual<f64>>> = args
                .iter()
                .enumerate()
                .map(|(at, &x)| Datum::real(Dual::new(x, if at == which { 1.0 } else { 0.0 })))
                .collect();
            let tangent = run(&p, &active).unwrap()[0].as_real().unwrap().tangent;
            let partial: f64 = row.partial(3, which, args, expected);
            assert_eq!(tangent, partial, "{} by {which}", row.name());
        }
        // The same over arrays.
        let vector = Type::array(Elem::F64, 1);
        let p = program(&vec![vector; row.arity()], |b, v| vec![b.map(rule, v)]);
        let inputs: Vec<Datum<f64>> = args.iter().map(|&x| Datum::vector(vec![x, x])).collect();
        let out = run(&p, &inputs).unwrap();
        let bits: Vec<u64> = out[0].as_vector().unwrap().iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [expected.to_bits(); 2], "{}", row.name());
    }
}

#[test]
fn integers() {
    let p = program(&[Type::INT, Type::INT], |b, v| {
        IntOp::ALL.iter().map(|&op| b.integer(op, v[0], v[1])).collect()
    });
    let at = |a, b| -> Vec<i64> {
        let out = run::<f64>(&p, &[Datum::int(a), Datum::int(b)]).unwrap();
        out.iter().map(|d| d.as_int().unwrap()).collect()
    };
    assert_eq!(at(7, 2), [9, 5, 14, 3, 1, 2, 7]);
    assert_eq!(at(-7, 2), [-5, -9, -14, -4, 1, -7, 2]);
    assert_eq!(at(7, -2), [5, 9, -14, -4, -1, -2, 7]);
    assert_eq!(at(-7, -2), [-9, -5, 14, 3, -1, -7, -2]);
}

#[test]
fn conversions_and_constants() {
    let p = program(&[Type::REAL, Type::INT], |b, v| {
        let pi = b.literal(Literal::Named(Constant::Pi));
        let third = b.convert(Elem::F32, v[0]);
        let sum = b.add(third, third);
        vec![
            b.convert(Elem::Int, v[0]),
            b.convert(Elem::F64, v[1]),
            b.convert(Elem::F64, third),
            b.convert(Elem::F32, v[1]),
            b.emit(Op::StopGradient, &[v[0]]),
            pi,
            sum,
        ]
    });
    let out = run(&p, &[Datum::real(-7.0 / 3.0), Datum::int(16_777_217)]).unwrap();
    assert_eq!(out[0].as_int(), Some(-2));
    assert_eq!(out[1].as_real(), Some(16_777_217.0));
    assert_eq!(out[2].as_real(), Some(f64::from((-7.0f64 / 3.0) as f32)));
    assert_eq!(out[3].as_real(), Some(16_777_216.0));
    assert_eq!(out[4].as_real(), Some(-7.0 / 3.0));
    assert_eq!(out[5].as_real(), Some(std::f64::consts::PI));
    assert_eq!(out[6].as_real(), Some(f64::from(2.0 * (-7.0f64 / 3.0) as f32)));
    let out = run(&p, &[Datum::real(Dual::new(-7.0 / 3.0, 1.0)), Datum::int(3)]).unwrap();
    assert_eq!(out[2].as_real().unwrap().tangent, 1.0);
    assert_eq!(out[2].as_real().unwrap().peek(), Some(f64::from((-7.0f64 / 3.0) as f32)));
    assert_eq!(out[4].as_real().unwrap().tangent, 0.0);
}

pub(crate) fn factorial() -> Program {
    compile("param n\nfn fact(n: real) -> real { if n < 1 { return 1.0 }; return n * fact(n - 1) }\noutput y = fact(n)")
        .program
}

#[test]
fn recursion() {
    let p = factorial();
    assert_eq!(run(&p, &reals(&[10.0])).unwrap()[0].as_real(), Some(3_628_800.0));
    let d = run(&p, &[Datum::real(Dual::new(3.0, 1.0))]).unwrap()[0].as_real().unwrap();
    // x (x - 1) (x - 2) at 3: 11.
    assert_eq!((d.primal(), d.tangent), (6.0, 11.0));
    // Deep, but not on the native stack.
    let deep = Limits { depth: 200_000, ..Limits::default() };
    let out = Code::new(&p).run(&reals(&[150_000.0]), &deep).unwrap();
    assert_eq!(out[0].as_real(), Some(f64::INFINITY));
}

#[test]
fn loops_of_less_than_no_rounds_give_what_they_begin_with() {
    let p = program(&[Type::INT], |b, v| {
        let (one, two) = (b.int(1), b.int(2));
        b.for_loop(v[0], &[one, two], |b, _, s| vec![s[1], b.integer(IntOp::Add, s[0], s[1])])
    });
    for (n, expected) in [(-3, [1, 2]), (0, [1, 2]), (3, [5, 8])] {
        assert_eq!(run::<f64>(&p, &[Datum::int(n)]).unwrap(), expected.map(Datum::int));
    }
}

#[test]
fn a_tape_is_recorded() {
    let source = "param r\nparam x0\ninput n: int\nvar x = x0\nfor k in 0..n { x = r * x * (1 - x) }\nloss x";
    let p = compile(source).program;
    let f = |x: &[Var<f64>]| {
        let inputs = [Datum::real(x[0]), Datum::real(x[1]), Datum::int(5)];
        run(&p, &inputs).unwrap()[0].as_real().unwrap()
    };
    let by_tape = palinode_core::grad(f, &[3.5, 0.3]).unwrap();
    for (which, by_tape) in by_tape.into_iter().enumerate() {
        let seed = |at: usize, x: f64| Datum::real(Dual::new(x, if at == which { 1.0 } else { 0.0 }));
        let d = run(&p, &[seed(0, 3.5), seed(1, 0.3), Datum::int(5)]).unwrap()[0].as_real().unwrap();
        assert!((d.tangent - by_tape).abs() < 1e-12 * by_tape.abs());
    }
}

#[test]
fn decisions_of_the_program_are_counted_and_ours_are_not() {
    let matrix = Type::array(Elem::F64, 2);
    let p = program(&[Type::REAL, matrix], |b, v| {
        let one = b.real(1.0);
        let less = b.compare(Comparison::Less, v[0], one);
        let whole = b.convert(Elem::Int, v[0]);
        let chosen = b.select(less, v[0], one);
        let mut out = vec![chosen, whole];
        for kind in [
            Linalg::Inverse,
            Linalg::Determinant,
            Linalg::Cholesky,
            Linalg::Qr,
            Linalg::SymmetricEigen,
            Linalg::Svd,
        ] {
            out.extend(b.emit_all(Op::Linalg(kind), &[v[1]]));
        }
        out
    });
    let active = |x: f64| Dual::new(x, 1.0);
    let m = [2.0, 0.5, 0.5, 3.0].map(active).to_vec();
    let inputs = [Datum::real(active(0.25)), Datum::matrix(2, 2, m)];
    let (out, seen) = palinode_core::decision::watch(|| run(&p, &inputs));
    assert_eq!(out.unwrap()[1].as_int(), Some(0));
    assert_eq!((seen.comparisons, seen.conversions, seen.roundings), (1, 1, 0));
}

#[test]
fn other_numbers() {
    let p = program(&[Type::REAL], |b, v| {
        let three = b.real(3.0);
        let third = b.div(v[0], three);
        let pi = b.literal(Literal::Named(Constant::Pi));
        vec![b.mul(third, three), pi, b.emit(Op::StopGradient, &[third])]
    });
    let out = run(&p, &[Datum::real(DoubleDouble::from_f64(1.0))]).unwrap();
    let third = DoubleDouble::from_f64(1.0) / DoubleDouble::from_f64(3.0);
    assert_eq!(out[1].as_real(), Some(DoubleDouble::constant(Constant::Pi)));
    assert_eq!(out[2].as_real(), Some(third));
}
