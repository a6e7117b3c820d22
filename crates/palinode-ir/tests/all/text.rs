//! The text form: what is printed is read back, and no text makes the parser panic.

use palinode_core::{Constant, rules};
use palinode_ir::text::{parse, print};
use palinode_ir::{
    Axis, Comparison, Elem, FunctionBuilder, IntOp, Linalg, Literal, Logical, Op, Program, ProgramBuilder,
    Reduction, Rule, Search, Span, Type,
};
use proptest::prelude::*;

/// A function with every operation, kind of literal, axis and block.
fn everything() -> Program {
    let mut programs = ProgramBuilder::new();
    let (main, square, rule) = (programs.reserve(), programs.reserve(), programs.reserve());

    let mut b = FunctionBuilder::new("square");
    let x = b.param("x", Type::REAL);
    let y = b.mul(x, x);
    let (mut function, mistakes) = b.finish(&[y]);
    function.tangent_rule = Some(rule);
    programs.define(square, (function, mistakes));

    let mut b = FunctionBuilder::new("square's rule");
    let x = b.param("x", Type::REAL);
    let dx = b.param("x", Type::REAL);
    let t = b.mul(x, dx);
    let t = b.add(t, t);
    programs.define(rule, b.finish(&[t]));

    let mut b = FunctionBuilder::new("main");
    b.declare(square, vec![Type::REAL], vec![Type::REAL]);
    let x = b.param("x", Type::REAL);
    let a = b.param("a", Type::array(Elem::F64, 1));
    let m = b.param("m", Type::array(Elem::F64, 2));
    let n = b.param("n", Type::INT);
    let list = b.param("list", Type::array(Elem::Int, 1));
    for value in [0.0, -0.0, 1.5, 1e300, -1e-300, 1e16, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN]
    {
        b.real(value);
    }
    for literal in [
        Literal::Named(Constant::Pi),
        Literal::Named(Constant::E),
        Literal::Named(Constant::Ln2),
        Literal::Named(Constant::Ln10),
        Literal::Named(Constant::TwoOverSqrtPi),
        Literal::Int(i64::MIN),
        Literal::Int(i64::MAX),
        Literal::Bool(true),
        Literal::Bool(false),
    ] {
        b.literal(literal);
    }
    let zero = b.int(0);
    let one = b.int(1);
    for &row in rules::Row::ALL {
        let parameter = if Rule::from(row).is_parametric() { 3 } else { 0 };
        b.map(Rule { row, parameter }, &vec![x; row.arity()]);
    }
    b.map(Rule { row: rules::Row::Powi, parameter: -2 }, &[x]);
    let _ = IntOp::ALL.map(|op| b.integer(op, n, one));
    let holds = Comparison::ALL.map(|op| b.compare(op, n, one))[0];
    b.emit(Op::Logical(Logical::And), &[holds, holds]);
    b.emit(Op::Logical(Logical::Or), &[holds, holds]);
    b.emit(Op::Logical(Logical::Not), &[holds]);
    b.select(holds, x, x);
    b.convert(Elem::F32, x);
    b.emit(Op::StopGradient, &[x]);
    let _ = Search::ALL.map(|search| b.emit(Op::Settled(search), &[a, x, x, n]));
    b.dim(m, 1);
    b.emit(Op::Iota, &[n]);
    b.fill(x, &[n, n]);
    b.emit(Op::Broadcast(vec![1]), &[a, n, n]);
    b.emit(Op::Reshape, &[m, n]);
    b.emit(Op::Permute(vec![1, 0]), &[m]);
    b.emit(Op::Concat(1), &[m, m]);
    let _ = Reduction::ALL.map(|kind| b.emit(Op::Reduce(kind, vec![0, 1]), &[m]));
    b.emit(Op::Read(vec![Axis::At, Axis::All]), &[m, zero]);
    b.emit(Op::Read(vec![Axis::Range, Axis::List]), &[m, zero, n, one, list]);
    b.emit(Op::Write(vec![Axis::At]), &[a, x, zero]);
    b.emit(Op::AddAt(vec![Axis::List]), &[a, x, list]);
    b.emit(Op::Push, &[a, x, a]);
    b.emit(Op::Resize, &[a, n]);
    b.emit(Op::MatMul { a_transposed: true, b_transposed: false, strong: false }, &[m, a]);
    b.emit(Op::MatMul { a_transposed: false, b_transposed: true, strong: false }, &[m, m]);
    b.emit(Op::Outer { strong: false }, &[a, a]);
    for kind in Linalg::ALL {
        let solves = matches!(
            kind,
            Linalg::Solve { .. } | Linalg::SolveChecked { .. } | Linalg::SolveTriangular { .. }
        );
        b.emit_all(Op::Linalg(kind), &[m, a][..if solves { 2 } else { 1 }]);
    }
    let called = b.emit(Op::Call(square), &[x]);
    let sums = b.for_loop(n, &[x, a], |b, k, state| {
        let element = b.index(state[1], &[k]);
        let sum = b.add(state[0], element);
        vec![sum, state[1]]
    });
    b.name(sums[0], "sum");
    let params = b.open(&[Type::INT]);
    let _ = params;
    let block = b.close(&[]);
    b.emit_blocks(Op::For { descending: true, keep: None }, &[n], vec![block], &[]);
    let halved = b.while_loop(
        &[x],
        |b, state| {
            let one = b.real(1.0);
            b.compare(Comparison::Less, one, state[0])
        },
        |b, state| {
            let half = b.real(0.5);
            vec![b.mul(state[0], half)]
        },
    );
    let chosen = b.if_else(holds, |b| vec![b.neg(x)], |_| vec![x]);
    let params = b.open(&[Type::REAL, Type::REAL]);
    let inside = b.mul(params[0], params[1]);
    let block = b.close(&[inside, inside]);
    b.emit_blocks(Op::Fused, &[a, x], vec![block], &[Type::array(Elem::F64, 1); 2]);
    programs.define(main, b.finish(&[called, sums[0], halved[0], chosen[0]]));
    programs.finish(main, &["called", "the sum", "", "x.1"]).unwrap()
}

fn without_spans(mut program: Program) -> Program {
    fn strip(block: &mut palinode_ir::Block) {
        for inst in &mut block.insts {
            inst.span = Span::NONE;
            inst.blocks.iter_mut().for_each(strip);
        }
    }
    program.functions.iter_mut().for_each(|function| strip(&mut function.body));
    program
}

fn read(text: &str) -> Program {
    parse(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn messages(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn every_operation_is_read_back() {
    let program = everything();
    let text = print(&program);
    let again = read(&text);
    assert_eq!(print(&again), text);
    assert_eq!(again, without_spans(program));
}

#[test]
fn numbers_follow_the_order_of_definition() {
    let mut program = everything();
    let text = print(&program);
    // The same program with other ids.
    for function in &mut program.functions {
        let last = function.values.len() as u32 - 1;
        function.values.reverse();
        function.body.rename(&|value| palinode_ir::Value(last - value.0));
    }
    palinode_ir::verify(&program).unwrap();
    assert_eq!(print(&program), text);
}

#[test]
fn names_from_people_are_read_back() {
    let names = [
        "", " ", "v1", "x.1", "1", ".", "\\", "\\{41}", "a b", "a'", "größe", "yield", "x,y", "\u{0}", "😀",
        "-1",
    ];
    let mut b = FunctionBuilder::new("f(x)");
    let params: Vec<_> = names.iter().map(|name| b.param(name, Type::REAL)).collect();
    let program = b.finish_program(&params, &names).unwrap();
    let text = print(&program);
    assert_eq!(read(&text), program);
    assert!(text.contains("größe.10: f64"), "{text}");
}

#[test]
fn text_by_hand_needs_no_numbers() {
    let program = read(
        "// the square of a sum
         entry fn main(x: f64, y: f64) -> (f64) outputs (z) {
           s = add x, y   v2 = mul s, s yield v2 }",
    );
    let expected = "entry fn main(x.0: f64, y.1: f64) -> (f64) outputs (z) {\n  s.2 = add x.0, y.1\n  v3 = mul s.2, s.2\n  yield v3\n}\n";
    assert_eq!(print(&program), expected);
}

#[test]
fn mistakes_have_a_place_and_several_are_reported() {
    let text = "entry fn main(x: f64) -> (f64) outputs (y) {
  y = sinn x
  yield y
}
fn second(x: f64) -> (f64) {
  y = add x, z
  yield y
}
fn third(x: f64) -> (int) {
  yield x
}
fn fourth(n: int) -> (f64) {
  y = sin n
  yield y
}
fn fifth() -> () {
  y = const 3
  yield
}";
    assert_eq!(
        messages(text),
        [
            "2:7: there is no operation `sinn`",
            "6:14: `z` is not defined before this use",
            "10:3: `third` does not yield the types it announces",
            "13:7: `sin` needs real numbers, not int",
            "17:13: `3` is not a literal: `2.5` is real, `3i` an integer, `true` a truth value",
        ]
    );
    assert_eq!(messages(""), ["no function is marked `entry fn`"]);
    assert_eq!(
        messages("entry fn f() -> () outputs () { yield } entry fn f() -> () outputs () { yield }"),
        ["two functions are marked `entry fn`"]
    );
    assert_eq!(
        messages("entry fn f() -> () outputs () { yield } fn f() -> () { yield }"),
        ["the name `f` of a function is empty or used twice"]
    );
    assert_eq!(
        messages("entry fn f() -> () outputs () { call g() yield }"),
        ["1:38: there is no function `g`"]
    );
    assert_eq!(
        messages("entry fn f() -> () outputs () { a = a yield }"),
        ["1:37: there is no operation `a`"]
    );
    assert_eq!(
        messages("entry fn f() -> () outputs () { a, b = const 1i yield }"),
        ["1:40: `const` gives 1 results, 2 are named"]
    );
    assert_eq!(
        messages("ß § fn"),
        [
            "1:1: expected `fn`, found `ß`",
            "1:3: '§' has no place here",
            "1:7: expected the name of a function, found the end"
        ]
    );
}

#[test]
fn deep_nesting_is_a_mistake() {
    let nested = |depth: usize| {
        let open = "if c { ".repeat(depth);
        let close = "yield } else { yield } ".repeat(depth);
        format!("entry fn f(c: bool) -> () outputs () {{ {open} {close} yield }}")
    };
    read(&nested(128));
    assert!(messages(&nested(129))[0].contains("nest more than 128"));
    assert!(messages(&nested(100_000))[0].contains("nest more than 128"));
    assert!(!messages(&format!("entry fn f() -> (f64[{}]) outputs () {{", "_,".repeat(300))).is_empty());
}

/// Words and marks of the language, put together at random.
fn soup() -> impl Strategy<Value = String> {
    let words = "entry fn main ( ) -> outputs tangent { } yield v0 v1 x.2 x : f64 int bool [ _ ] , = < > 0 \
        1 + @ ' const 1.5 3i nan true pi add powi broadcast reduce_sum permute read write push \
        matmul call for in down while do if else fused svd concat dim convert \\{20} \\ - //";
    let pieces: Vec<&str> = words.split(' ').chain(["\n"]).collect();
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_is_survived(text in ".{0,100}") {
        let _ = parse(&text);
    }

    #[test]
    fn token_soup_is_survived(soup in soup(), inside in soup()) {
        let _ = parse(&soup);
        let body = format!("entry fn main(x: f64, v0: int, v1: f64[_]) -> () outputs () {{ {inside} yield }}");
        if let Ok(program) = parse(&body) {
            prop_assert_eq!(parse(&print(&program)), Ok(program));
        }
    }

    #[test]
    fn mutated_prints_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8), 1..6),
    ) {
        let text = print(&everything());
        // Words and what is between them are exchanged, dropped, doubled and cut.
        let mut words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '.').collect();
        for (from, to, how) in changes {
            let (from, to) = (from.index(words.len()), to.index(words.len()));
            match how {
                0 => words.swap(from, to),
                1 => drop(words.remove(from)),
                2 => words.insert(to, words[from]),
                _ => words[to] = words[from],
            }
        }
        if let Ok(program) = parse(&words.concat()) {
            prop_assert_eq!(parse(&print(&program)), Ok(program));
        }
    }
}
