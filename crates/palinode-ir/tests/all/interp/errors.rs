//! The interpreter: every way in which a run can fail, and what it says.

use super::ops::{BOOLS, INTS, MATRIX, VECTOR, one};
use super::{factorial, program};
use palinode_core::rules;
use palinode_ir::interp::{Code, Datum, Limits, RunError, RunErrorKind, Shape, Tensor, run};
use palinode_ir::{
    Axis, Comparison, Elem, FunctionBuilder, IntOp, Linalg, Op, Program, Reduction, Rule, Span, Type,
};

fn fails(p: &Program, inputs: &[Datum<f64>]) -> RunErrorKind {
    run(p, inputs).unwrap_err().kind
}

fn vector(values: &[f64]) -> Datum<f64> {
    Datum::vector(values.to_vec())
}

#[test]
fn inputs_that_do_not_fit() {
    let p = one(Op::add(), &[Type::REAL, VECTOR], &[]);
    assert_eq!(fails(&p, &[]), RunErrorKind::InputCount { expected: 2, given: 0 });
    let wrong = fails(&p, &[Datum::real(1.0), Datum::real(2.0)]);
    let expected =
        RunErrorKind::InputType { index: 1, name: "p1".into(), expected: VECTOR, given: Type::REAL };
    assert_eq!(wrong, expected);
    assert_eq!(fails(&p, &[Datum::int(1), vector(&[])]).code(), "PAL0251");
    let torn = Datum::Real(Tensor { shape: vec![3], data: vec![1.0] });
    let wrong = fails(&p, &[Datum::real(1.0), torn]);
    assert_eq!(wrong, RunErrorKind::InputData { index: 1, shape: Shape(vec![3]), elements: 1 });
}

#[test]
fn lengths_that_do_not_fit() {
    let p = one(Op::add(), &[VECTOR, VECTOR], &[]);
    let wrong = fails(&p, &[vector(&[1.0, 2.0]), vector(&[1.0, 2.0, 3.0])]);
    let expected = RunErrorKind::ShapeMismatch { op: "add", left: Shape(vec![2]), right: Shape(vec![3]) };
    assert_eq!(wrong, expected);
    let others = [
        (
            one(Op::Select, &[BOOLS, VECTOR, VECTOR], &[]),
            vec![Datum::bools(vec![true]), vector(&[1.0]), vector(&[])],
        ),
        (one(Op::Int(IntOp::Add), &[INTS, INTS], &[]), vec![Datum::ints(vec![1]), Datum::ints(vec![])]),
        (
            one(Op::Compare(Comparison::Less), &[INTS, INTS], &[]),
            vec![Datum::ints(vec![1]), Datum::ints(vec![])],
        ),
        (one(Op::Broadcast(vec![0]), &[VECTOR], &[2, 3]), vec![vector(&[1.0])]),
        (
            one(Op::Concat(0), &[MATRIX, MATRIX], &[]),
            vec![Datum::matrix(1, 1, vec![1.0]), Datum::matrix(1, 0, vec![])],
        ),
        (one(Op::Write(vec![Axis::All]), &[VECTOR, VECTOR], &[]), vec![vector(&[1.0]), vector(&[])]),
        (one(Op::AddAt(vec![Axis::All]), &[VECTOR, VECTOR], &[]), vec![vector(&[1.0]), vector(&[])]),
        (
            one(
                Op::MatMul { a_transposed: false, b_transposed: false, strong: false },
                &[VECTOR, VECTOR],
                &[],
            ),
            vec![vector(&[1.0]), vector(&[])],
        ),
    ];
    for (p, inputs) in others {
        assert_eq!(fails(&p, &inputs).code(), "PAL0252", "{p:?}");
    }
}

#[test]
fn places_outside_an_array() {
    let m = Datum::matrix(2, 3, vec![0.0; 6]);
    let read = one(Op::Read(vec![Axis::At, Axis::At]), &[MATRIX], &[0, 3]);
    let expected = RunErrorKind::IndexOutOfRange { index: 3, axis: 1, length: 3 };
    assert_eq!(fails(&read, std::slice::from_ref(&m)), expected);
    let read = one(Op::Read(vec![Axis::At, Axis::All]), &[MATRIX], &[-1]);
    assert_eq!(
        fails(&read, std::slice::from_ref(&m)),
        RunErrorKind::IndexOutOfRange { index: -1, axis: 0, length: 2 }
    );
    for op in [Op::Write(vec![Axis::At, Axis::At]), Op::AddAt(vec![Axis::At, Axis::At])] {
        let p = one(op, &[MATRIX, Type::REAL], &[-1, 0]);
        assert_eq!(fails(&p, &[m.clone(), Datum::real(1.0)]).code(), "PAL0253");
    }
    for op in [Op::Write(vec![Axis::At]), Op::AddAt(vec![Axis::At])] {
        let p = one(op, &[VECTOR, Type::REAL], &[0]);
        assert_eq!(fails(&p, &[vector(&[]), Datum::real(1.0)]).code(), "PAL0253");
    }
    let list = program(&[VECTOR, INTS], |b, v| vec![b.emit(Op::Read(vec![Axis::List]), v)]);
    assert_eq!(fails(&list, &[vector(&[1.0]), Datum::ints(vec![0, 1])]).code(), "PAL0253");
    let range = |ints: &[i64]| one(Op::Read(vec![Axis::Range]), &[VECTOR], ints);
    let wrong = fails(&range(&[1, 2, 2]), &[vector(&[1.0, 2.0, 3.0])]);
    assert_eq!(wrong, RunErrorKind::RangeOutOfBounds { start: 1, count: 2, step: 2, axis: 0, length: 3 });
    for ints in [[-1, 1, 1], [0, 2, -1], [0, i64::MAX, i64::MAX], [3, 1, 1]] {
        assert_eq!(fails(&range(&ints), &[vector(&[1.0, 2.0, 3.0])]).code(), "PAL0256");
    }
    assert_eq!(
        fails(&range(&[0, -1, 1]), &[vector(&[1.0])]),
        RunErrorKind::NegativeLength { op: "read", length: -1 }
    );
}

#[test]
fn the_same_place_twice() {
    let write = program(&[VECTOR, VECTOR, INTS], |b, v| vec![b.emit(Op::Write(vec![Axis::List]), v)]);
    let wrong = fails(&write, &[vector(&[0.0; 3]), vector(&[1.0, 2.0]), Datum::ints(vec![1, 1])]);
    assert_eq!(wrong, RunErrorKind::DuplicateIndex { index: 1, axis: 0 });
    let write = one(Op::Write(vec![Axis::Range]), &[VECTOR, Type::REAL], &[1, 2, 0]);
    assert_eq!(fails(&write, &[vector(&[0.0; 3]), Datum::real(1.0)]).code(), "PAL0257");
}

#[test]
fn lengths_that_cannot_be() {
    assert_eq!(
        fails(&one(Op::Iota, &[], &[-2]), &[]),
        RunErrorKind::NegativeLength { op: "iota", length: -2 }
    );
    let fill = |lengths: &[i64]| one(Op::Broadcast(vec![]), &[Type::REAL], lengths);
    assert_eq!(fails(&fill(&[2, -1]), &[Datum::real(0.0)]).code(), "PAL0254");
    assert_eq!(fails(&fill(&[i64::MAX, i64::MAX]), &[Datum::real(0.0)]).code(), "PAL0268");
    assert_eq!(fails(&fill(&[i64::MAX / 8]), &[Datum::real(0.0)]).code(), "PAL0268");
    // No elements, and strides that nobody can count.
    assert_eq!(fails(&fill(&[0, i64::MAX, i64::MAX]), &[Datum::real(0.0)]).code(), "PAL0268");
    assert_eq!(fails(&fill(&[i64::MAX, i64::MAX, 0]), &[Datum::real(0.0)]).code(), "PAL0268");
    assert_eq!(fails(&one(Op::Resize, &[VECTOR], &[-1]), &[vector(&[])]).code(), "PAL0254");
    assert_eq!(fails(&one(Op::Resize, &[VECTOR], &[i64::MAX]), &[vector(&[])]).code(), "PAL0268");
    let wrong = fails(&one(Op::Reshape, &[VECTOR], &[2, 2]), &[vector(&[1.0])]);
    assert_eq!(wrong, RunErrorKind::BadReshape { from: Shape(vec![1]), to: Shape(vec![2, 2]) });
    assert_eq!(fails(&one(Op::Reshape, &[VECTOR], &[]), &[vector(&[])]).code(), "PAL0255");
    let max = one(Op::Reduce(Reduction::Max, vec![0]), &[VECTOR], &[]);
    assert_eq!(fails(&max, &[vector(&[])]), RunErrorKind::EmptyReduction { op: "reduce_max" });
}

#[test]
fn integers_out_of_range() {
    let of = |op: IntOp, a: i64, b: i64| {
        let scalars = one(Op::Int(op), &[Type::INT, Type::INT], &[]);
        let arrays = one(Op::Int(op), &[INTS, INTS], &[]);
        let kind = fails(&scalars, &[Datum::int(a), Datum::int(b)]);
        assert_eq!(fails(&arrays, &[Datum::ints(vec![a]), Datum::ints(vec![b])]), kind);
        kind
    };
    let expected = RunErrorKind::IntegerOverflow { op: "iadd", left: i64::MAX, right: 1 };
    assert_eq!(of(IntOp::Add, i64::MAX, 1), expected);
    assert_eq!(of(IntOp::Sub, i64::MIN, 1).code(), "PAL0258");
    assert_eq!(of(IntOp::Mul, i64::MAX, 2).code(), "PAL0258");
    assert_eq!(of(IntOp::Div, i64::MIN, -1).code(), "PAL0258");
    assert_eq!(of(IntOp::Div, 1, 0), RunErrorKind::IntegerDivisionByZero { op: "idiv", left: 1 });
    assert_eq!(of(IntOp::Rem, 1, 0).code(), "PAL0259");
    let rem = one(Op::Int(IntOp::Rem), &[Type::INT, Type::INT], &[]);
    assert_eq!(run::<f64>(&rem, &[Datum::int(i64::MIN), Datum::int(-1)]).unwrap()[0].as_int(), Some(0));
    let to_int = one(Op::Convert(Elem::Int), &[Type::REAL], &[]);
    for x in [1e19, -1e19, f64::INFINITY, 9_223_372_036_854_775_808.0] {
        assert_eq!(fails(&to_int, &[Datum::real(x)]), RunErrorKind::NotAnInteger { value: x });
    }
    assert_eq!(fails(&to_int, &[Datum::real(f64::NAN)]).code(), "PAL0266");
    let least = run(&to_int, &[Datum::real(-9_223_372_036_854_775_808.0)]).unwrap();
    assert_eq!(least[0].as_int(), Some(i64::MIN));
}

#[test]
fn limits_are_kept() {
    let forever = program(&[], |b, _| {
        let x = b.real(0.0);
        b.while_loop(&[x], |b, _| b.bool(true), |_, s| s.to_vec())
    });
    let limits = Limits { steps: 100_000, ..Limits::default() };
    let mut seen = Vec::new();
    let code = Code::new(&forever);
    let stopped = code.run_observed::<f64>(&[], &limits, &mut |steps| seen.push(steps)).unwrap_err();
    assert_eq!(stopped.kind, RunErrorKind::StepLimit { limit: 100_000 });
    assert_eq!(seen, [65_536, 100_000]);
    let exact = program(&[], |b, _| {
        let (n, x) = (b.int(1000), b.real(0.0));
        b.for_loop(n, &[x], |_, _, s| s.to_vec())
    });
    let at = |steps| Code::new(&exact).run::<f64>(&[], &Limits { steps, ..Limits::default() });
    assert!(at(1000).is_ok());
    assert_eq!(at(999).unwrap_err().code(), "PAL0262");
    assert_eq!(at(0).unwrap_err().code(), "PAL0262");
    let (_, stats) = Code::new(&exact).run_with_stats::<f64>(&[], &Limits::default()).unwrap();
    assert_eq!(stats.steps, 1000);
    let deep = Code::new(&factorial());
    let at = |depth| deep.run(&[Datum::real(50.5)], &Limits { depth, ..Limits::default() });
    assert!(at(51).is_ok());
    assert_eq!(at(50).unwrap_err().kind, RunErrorKind::DepthLimit { limit: 50 });
}

fn trapped(p: &Program, inputs: &[Datum<f64>]) -> Option<String> {
    assert!(run(p, inputs).is_ok(), "infinities are not errors unless asked for");
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    match Code::new(p).run(inputs, &limits) {
        Err(RunError { kind: RunErrorKind::NonFinite { operation, .. }, .. }) => Some(operation),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

#[test]
fn infinities_are_found_where_they_arise() {
    let at = |rule: Rule, args: &[f64]| {
        let scalars = one(Op::Map(rule), &vec![Type::REAL; args.len()], &[]);
        let inputs: Vec<Datum<f64>> = args.iter().map(|&x| Datum::real(x)).collect();
        let found = trapped(&scalars, &inputs);
        let arrays = one(Op::Map(rule), &vec![VECTOR; args.len()], &[]);
        let inputs: Vec<Datum<f64>> = args.iter().map(|&x| vector(&[x])).collect();
        assert_eq!(trapped(&arrays, &inputs), found);
        found
    };
    assert_eq!(at(rules::Row::Divide.into(), &[3.0, 0.0]).as_deref(), Some("division by zero"));
    assert_eq!(at(rules::Row::Recip.into(), &[0.0]).as_deref(), Some("division by zero"));
    assert_eq!(at(rules::Row::Ln.into(), &[-1.0]).as_deref(), Some("ln of -1"));
    assert_eq!(at(rules::Row::Exp.into(), &[1000.0]).as_deref(), Some("exp of 1000"));
    assert_eq!(
        at(rules::Row::Multiply.into(), &[1e200, 1e200]).as_deref(),
        Some("the product of 1e200 and 1e200")
    );
    assert_eq!(
        at(rules::Row::StrongMul.into(), &[1e200, 1e200]).as_deref(),
        Some("the product of 1e200 and 1e200")
    );
    assert_eq!(at(rules::Row::Divide.into(), &[f64::INFINITY, 0.0]), None);
    assert_eq!(at(rules::Row::Ln.into(), &[2.0]), None);
    let sum = one(Op::Reduce(Reduction::Sum, vec![0]), &[VECTOR], &[]);
    assert!(trapped(&sum, &[vector(&[1e308, 1e308])]).is_some());
    let add = one(Op::AddAt(vec![Axis::At]), &[VECTOR, Type::REAL], &[0]);
    assert!(trapped(&add, &[vector(&[1e308]), Datum::real(1e308)]).is_some());
    let add = one(Op::AddAt(vec![Axis::All]), &[VECTOR, Type::REAL], &[]);
    assert!(trapped(&add, &[vector(&[1e308]), Datum::real(1e308)]).is_some());
    let narrow = one(Op::Convert(Elem::F32), &[Type::REAL], &[]);
    assert!(trapped(&narrow, &[Datum::real(1e300)]).is_some());
    let narrow = one(Op::Convert(Elem::F32), &[VECTOR], &[]);
    assert!(trapped(&narrow, &[vector(&[1e300])]).is_some());
    let det = one(Op::Linalg(Linalg::Determinant), &[MATRIX], &[]);
    assert!(trapped(&det, &[Datum::matrix(2, 2, vec![1e200, 0.0, 0.0, 1e200])]).is_some());
}

#[test]
fn an_error_says_where() {
    let mut b = FunctionBuilder::new("main");
    let (a, i) = (b.param("a", VECTOR), b.param("i", Type::INT));
    b.at(Span::new(10, 14));
    let x = b.index(a, &[i]);
    let p = b.finish_program(&[x], &["x"]).unwrap();
    let error = run(&p, &[vector(&[1.0]), Datum::int(7)]).unwrap_err();
    assert_eq!((error.span, &*error.function, error.code()), (Span::new(10, 14), "main", "PAL0253"));
    assert_eq!(
        error.to_string(),
        "PAL0253: index 7 is out of range for axis 0 of length 1; indices go from 0 to the length minus 1"
    );
}
