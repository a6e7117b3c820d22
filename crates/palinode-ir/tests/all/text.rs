//! The text form: what is printed is read back, and no text makes the parser panic.

use palinode_core::{Constant, rules};
use palinode_ir::text::{parse, print};
use palinode_ir::{FuncId, FunctionBuilder, Literal, Op, Program, Rule, Type};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::random::programs::{self, Kind};

/// A rule with a name from people, and blocks that a random program has not.
const MORE: &str = "fn square(x: f64) -> (f64) tangent square\\{27}s\\{20}rule { y = mul x, x yield y }
fn square\\{27}s\\{20}rule(x: f64, dx: f64) -> (f64) { y = mul x, dx z = add y, y yield z }
fn blocks(n: int, a: f64[_], x: f64) -> (f64[_], f64) {
  b = fused (p: f64 = a, q: f64 = x) { e = mul p, q yield e }
  for i in down n () { yield }
  s = sweep snapshots 2 k in n (u: f64 = x) { v = sin u yield v } back j (t: f64) (w: f64 = x) { yield w }
  yield b, s
}
";

/// A program with loops, branches and calls; beside it every operation in a function of its own.
static EVERYTHING: LazyLock<Program> = LazyLock::new(|| {
    let (mut text, mut last) = (print(&programs::program(7, 40, Kind::Any)) + MORE, None);
    crate::facts::each(|op, _, program| {
        if last.replace(op.clone()).as_ref() != Some(op) {
            let alone = print(program);
            let (head, rest) = alone.split_once(" outputs (").unwrap();
            let head = head.replace("entry fn main", &format!("fn f{}", text.len()));
            text += &format!("{head} {}", rest.split_once(") ").unwrap().1);
        }
    });
    read(&text)
});

fn read(text: &str) -> Program {
    parse(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn messages(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

/// Every operation that has no blocks, on all lists of operands that it takes, and every kind of literal.
/// What has blocks is read back by `passes_random`, `sweeps` and `implicit`.
#[test]
fn every_operation_is_read_back() {
    let mut seen = BTreeSet::new();
    crate::facts::each(|op, _, program| {
        seen.insert(op.name());
        assert_eq!(read(&print(program)), *program);
    });
    let missing = Op::all().into_iter().find(|op| op.blocks() == 0 && !seen.contains(op.name()));
    assert_eq!(missing, Some(Op::Call(FuncId(0))), "never written");
    assert_eq!(read(&print(&EVERYTHING)), *EVERYTHING);
    let is_there = |op: &Op| EVERYTHING.count(|inst| inst.op.name() == op.name()) > 0;
    assert_eq!(Op::all().into_iter().find(|op| !is_there(op)), None, "not among everything");
    let mut b = FunctionBuilder::new("main");
    let x = b.param("x", Type::REAL);
    b.map(Rule { row: rules::Row::Powi, parameter: -2 }, &[x]);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for value in [0.0, -0.0, 1.5, 1e300, -1e-300, 1e16, inf, -inf, nan, -nan] {
        b.real(value);
    }
    use Constant::{E, Ln2, Ln10, Pi, TwoOverSqrtPi};
    let names = [Pi, E, Ln2, Ln10, TwoOverSqrtPi].map(Literal::Named);
    let others = [Literal::Int(i64::MIN), Literal::Int(i64::MAX), Literal::Bool(true), Literal::Bool(false)];
    for literal in names.into_iter().chain(others) {
        b.literal(literal);
    }
    let program = b.finish_program(&[x; 4], &["the same, or x.1", "", "the sum", "x.1"]).unwrap();
    assert_eq!(read(&print(&program)), program);
}

#[test]
fn numbers_follow_the_order_of_definition() {
    let mut program = EVERYTHING.clone();
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
        let text = print(&EVERYTHING);
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
