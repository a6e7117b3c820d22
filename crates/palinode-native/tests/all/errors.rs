//! Every way in which a run can fail, planted: all engines give the same error, with its code, its place and
//! its words. The value and the gradient of each program are run, as they are and simplified, and several
//! times, because machine code that stops too often is left. (By rustc only the one that is to fail, because
//! compiling takes long.)

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use palinode_core::{Budget, Dual};
use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits, RunError, Tensor};
use palinode_ir::{Program, pal, passes, text, transform};
use palinode_native::{When, by_rustc_in, machine_code};

use crate::support::{bits, defaults};

/// Where the error is to come from.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Value,
    Gradient,
}
use Of::{Gradient, Value};

struct Row {
    what: &'static str,
    code: &'static str,
    of: Of,
    limits: fn(Limits) -> Limits,
    source: &'static str,
}

const fn row(what: &'static str, code: &'static str, source: &'static str) -> Row {
    Row { what, code, of: Value, limits: |limits| limits, source }
}

const fn within(
    what: &'static str,
    code: &'static str,
    limits: fn(Limits) -> Limits,
    source: &'static str,
) -> Row {
    Row { limits, ..row(what, code, source) }
}

const fn in_gradient(what: &'static str, code: &'static str, source: &'static str) -> Row {
    Row { of: Gradient, ..row(what, code, source) }
}

const ROWS: &[Row] = &[
    // Indices.
    row("a read outside", "PAL0253", "param a: [3] = [1, 2, 3]\nparam x = 3\nloss y = a[int(x)]"),
    row("a read before the first", "PAL0253", "param a: [3] = [1, 2, 3]\nparam x = 3\nloss y = a[int(-x)]"),
    row(
        "a write outside",
        "PAL0253",
        "param a: [3] = [1, 2, 3]\nparam x = 3\nvar b = a\nb[int(x)] = x\nloss y = sum(b)",
    ),
    row(
        "an update outside",
        "PAL0253",
        "param a: [3] = [1, 2, 3]\nparam x = 3\nvar b = a\nb[int(x)] += x\nloss y = sum(b)",
    ),
    row(
        "a second index outside",
        "PAL0253",
        "param m: [2, 3] = [[1, 2, 3], [4, 5, 6]]\nparam x = 3\nloss y = m[1, int(x)]",
    ),
    row(
        "a row outside",
        "PAL0253",
        "param m: [2, 3] = [[1, 2, 3], [4, 5, 6]]\nparam x = 2\nloss y = sum(m[int(x), ..])",
    ),
    row(
        "a list that names what is not there",
        "PAL0253",
        "param a: [3] = [1, 2, 3]\ninput l: int [2] = [0, 3]\nloss y = sum(a[l])",
    ),
    row(
        "a write by such a list",
        "PAL0253",
        "param a: [3] = [1, 2, 3]\ninput l: int [2] = [0, 3]\nvar b = a\nb[l] += a[0]\nloss y = sum(b)",
    ),
    row(
        "a loop that goes too far",
        "PAL0253",
        "param a: [5] = [1, 2, 3, 4, 5]\nvar s = 0.0\nfor i in 0..6 { s = sin(s + a[i]) }\nloss y = s",
    ),
    row(
        "a stencil that goes too far",
        "PAL0253",
        "param a: [9] = fill(1, 9)\nvar b = a\nfor t in 0..3 { for i in 1..9 { b[i] = 0.5 * (b[i - 1] + b[i + 1]) } }\n\
         loss y = sum(b)",
    ),
    row(
        "an index that data makes",
        "PAL0253",
        "param a: [5] = [1, 2, 3, 4, 5]\nvar s = 0.0\nvar k = 0\nwhile s < 100 { s += a[k]\nk += 1 }\nloss y = s",
    ),
    row(
        "outside in one branch",
        "PAL0253",
        "param a: [5] = [1, 2, 3, 4, 5]\nvar s = 0.0\nfor i in 0..9 { if i > 6 { s += a[i] } else { s += i * a[0] } }\n\
         loss y = s",
    ),
    row(
        "outside of a view, inside of its array",
        "PAL0253",
        "param a: [6] = [1, 2, 3, 4, 5, 6]\nparam x = 3\nvar b = a\nalias tail = b[1..4]\ntail[int(x)] = 0\n\
         loss y = sum(b)",
    ),
    row("an element of nothing", "PAL0253", "param a: [n] = []\nparam x = 0\nloss y = x + a[int(x)]"),
    // Ranges.
    row(
        "a range that ends outside",
        "PAL0256",
        "param a: [3] = [1, 2, 3]\ninput n: int = 4\nloss y = sum(a[0..n])",
    ),
    row(
        "a range that begins outside",
        "PAL0256",
        "param a: [3] = [1, 2, 3]\ninput n: int = -1\nloss y = sum(a[n..n + 2])",
    ),
    row(
        "a range that wanders outside",
        "PAL0256",
        "param a: [8] = fill(1, 8)\nvar s = 0.0\nfor i in 0..8 { s += sum(a[i..i + 2]) }\nloss y = s",
    ),
    row(
        "a range at a place that data makes",
        "PAL0256",
        "param a: [8] = fill(1, 8)\nparam x = 7\nlet k = int(x)\nloss y = sum(a[k..k + 2])",
    ),
    row(
        "a write to a range outside",
        "PAL0256",
        "param a: [8] = fill(1, 8)\nparam x = 7\nvar b = a\nlet k = int(x)\nb[k..k + 2] = 0\nloss y = sum(b)",
    ),
    row(
        "the same place twice",
        "PAL0257",
        "param a: [3] = [1, 2, 3]\ninput l: int [2] = [1, 1]\nvar b = a\nb[l] = a[0..2]\nloss y = sum(b)",
    ),
    // Lengths.
    row(
        "lengths that do not fit",
        "PAL0252",
        "param a: [n] = [1, 2, 3]\nparam b: [m] = [1, 2]\nloss y = sum(a * b)",
    ),
    row(
        "lengths that do not fit, in a loop",
        "PAL0252",
        "param a: [n] = [1, 2, 3]\nparam b: [m] = [1, 2]\nvar s = 0.0\nfor i in 0..3 { s += sum(sin(a) * b) }\nloss y = s",
    ),
    row(
        "a product of lengths that do not fit",
        "PAL0252",
        "param a: [n] = [1, 2, 3]\nparam m: [2, k] = [[1, 2], [3, 4]]\nloss y = sum(m @ a)",
    ),
    row(
        "a write of another length",
        "PAL0252",
        "param a: [n] = [1, 2, 3]\nparam b: [m] = [1, 2]\nvar c = a\nc[0..3] = b\nloss y = sum(c)",
    ),
    row("a length below zero", "PAL0254", "param x = 1\ninput n: int = -2\nloss y = x + sum(zeros(n))"),
    row("a length below zero that data makes", "PAL0254", "param x = -2\nloss y = x + sum(zeros(int(x)))"),
    row(
        "a reshape that loses elements",
        "PAL0255",
        "param a: [n] = [1, 2, 3]\ninput k: int = 2\nloss y = sum(reshape(a, k, k))",
    ),
    row(
        "an array beyond all memory",
        "PAL0268",
        "param x = 1\ninput n: int = 2305843009213693952\nloss y = x + sum(zeros(n))",
    ),
    row("the largest of nothing", "PAL0261", "param a: [n] = []\nparam x = 1\nloss y = x + max(a)"),
    row(
        "the largest of nothing, in a loop",
        "PAL0261",
        "param a: [4] = [1, 2, 3, 4]\nvar s = 0.0\nfor i in 0..4 { s += max(a[i + 1..4]) }\nloss y = s",
    ),
    // Integers.
    row("a sum of integers", "PAL0258", "param x = 9e18\nloss y = real(int(x) + int(x))"),
    row("a difference of integers", "PAL0258", "param x = 9e18\nloss y = real(-int(x) - int(x))"),
    row("a product of integers", "PAL0258", "param x = 9e9\nloss y = real(int(x) * int(x))"),
    row(
        "powers of two in a loop",
        "PAL0258",
        "param x = 1\nvar n: int = 1\nfor i in 0..70 { n = n * 2 }\nloss y = x * n",
    ),
    row(
        "integers of arrays",
        "PAL0258",
        "param x = 1\ninput k: int [2] = [4611686018427387904, 4611686018427387904]\nlet s = k + k\nloss y = x * s[1]",
    ),
    row("a quotient by zero", "PAL0259", "param x = 0\nloss y = x + 7 // int(x)"),
    row("a remainder by zero", "PAL0259", "param x = 0\nloss y = x + 7 % int(x)"),
    row(
        "a quotient by zero in the last round",
        "PAL0259",
        "param x = 1\nvar n: int = 0\nfor i in 0..9 { n += 100 // (8 - i) }\nloss y = x * n",
    ),
    row("a real that is no integer", "PAL0266", "param x = 1e19\nloss y = real(int(x))"),
    row(
        "a real that is no integer, in a loop",
        "PAL0266",
        "param x = 10\nvar s = x\nvar k: int = 0\nfor i in 0..6 { s = s * s\nk = int(s) }\nloss y = s + k",
    ),
    // Infinities.
    row("a division by zero", "PAL0260", "param x = 0\nloss y = 1 / x"),
    row("a logarithm", "PAL0260", "param x = -1\nloss y = log(x)"),
    row("an exponential", "PAL0260", "param x = 1000\nloss y = exp(x)"),
    row("a product beyond all numbers", "PAL0260", "param x = 1e200\nloss y = x * x"),
    row("an infinity that does not come out", "PAL0260", "param x = 1000\nloss y = 1 / exp(x)"),
    row(
        "an infinity that nobody uses in full",
        "PAL0260",
        "param a: [3] = [1, 1000, 2]\nlet b = exp(a)\nloss y = b[0]",
    ),
    row("an infinity behind a choice", "PAL0260", "param x = 0\nlet z = 1 / x\nloss y = select(x > 1, z, x)"),
    row(
        "an infinity in an array",
        "PAL0260",
        "param a: [9] = [1, 2, 3, 4, 0, 6, 7, 8, 9]\nloss y = sum(1 / a)",
    ),
    row(
        "an infinity in the tail of an array",
        "PAL0260",
        "param a: [9] = [1, 2, 3, 4, 5, 6, 7, 8, 0]\nloss y = sum(1 / a)",
    ),
    row("a sum beyond all numbers", "PAL0260", "param a: [4] = fill(1e308, 4)\nloss y = sum(a)"),
    row(
        "a product of matrices beyond all numbers",
        "PAL0260",
        "param m: [2, 2] = fill(1e200, 2, 2)\nloss y = sum(m @ m)",
    ),
    row(
        "an update beyond all numbers",
        "PAL0260",
        "param x = 1e308\nvar b = fill(x, 3)\nb[1] += x\nloss y = b[1]",
    ),
    row(
        "an infinity in a loop",
        "PAL0260",
        "param x = 3\nvar s = x\nfor i in 0..100 { s = s * s }\nloss y = s",
    ),
    row(
        "an infinity in one round, gone in the next",
        "PAL0260",
        "param x = 3\nvar s = x\nfor i in 0..9 { s = 1 / (real(i) - 4) }\nloss y = s + x",
    ),
    row(
        "an infinity of a stencil",
        "PAL0260",
        "param a: [20] = fill(1e300, 20)\nvar b = a\nfor t in 0..20 { b[1..19] = b[1..19] + 3 * (b[2..20] + b[0..18]) }\nloss y = sum(b)",
    ),
    row(
        "an infinity in a function of a loop",
        "PAL0260",
        "param a: [30] = fill(1, 30)\nvar b = a\nfor t in 0..8 { b = exp(b) }\nloss y = sum(b)",
    ),
    row("an infinity in a while", "PAL0260", "param x = 2\nvar s = x\nwhile s > 1 { s = s * s }\nloss y = s"),
    row(
        "a determinant beyond all numbers",
        "PAL0260",
        "param m: [2, 2] = [[1e200, 0], [0, 1e200]]\nloss y = det(m)",
    ),
    in_gradient("a slope of a root", "PAL0260", "param x = 0\nloss y = sqrt(x)"),
    in_gradient("slopes of roots", "PAL0260", "param a: [5] = [1, 2, 0, 3, 4]\nloss y = sum(sqrt(a))"),
    in_gradient(
        "a slope in a loop",
        "PAL0260",
        "param x = 3\nvar s = 0.0\nfor i in 0..5 { s += sqrt(x - i) * select(i < 3, 1.0, 0.0) }\nloss y = s",
    ),
    in_gradient("a slope that overflows", "PAL0260", "param x = 1e-160\nparam z = 1\nloss y = z / x"),
    in_gradient(
        "a slope that grows in the reverse sweep",
        "PAL0260",
        "param x = 0.5\nvar s = 0 * x\nfor i in 0..400 { s = 10 * (s - 0.1 * s + 0 * x) }\nloss y = s",
    ),
    // Limits.
    row(
        "an endless loop",
        "PAL0262",
        "param x = 1\nvar s = x\nwhile s > 0 { s = 0.5 + 0.5 * s }\nloss y = s",
    ),
    within(
        "one round too many",
        "PAL0262",
        |limits| Limits { steps: 99, ..limits },
        "param x = 1\nvar s = x\nfor i in 0..100 { s = sin(s) }\nloss y = s",
    ),
    within(
        "one round of an inner loop too many",
        "PAL0262",
        |limits| Limits { steps: 109, ..limits },
        "param x = 1\nvar s = x\nfor i in 0..10 { for k in 0..10 { s = sin(s) } }\nloss y = s",
    ),
    within(
        "no round at all",
        "PAL0262",
        |limits| Limits { steps: 0, ..limits },
        "param x = 1\nvar s = x\nfor i in 0..2 { s = sin(s) }\nloss y = s",
    ),
    within(
        "a limit and an infinity: the limit first",
        "PAL0262",
        |limits| Limits { steps: 5, ..limits },
        "param x = 3\nvar s = x\nfor i in 0..10 { s = s * s }\nloss y = s",
    ),
    within(
        "an infinity and a limit: the infinity first",
        "PAL0260",
        |limits| Limits { steps: 60, ..limits },
        "param x = 3\nvar s = x\nwhile s > 1 { s = s * s }\nloss y = s",
    ),
    within(
        "calls that do not end",
        "PAL0263",
        |limits| Limits { depth: 50, ..limits },
        "param x = 1\nfn f(x) -> real { if x > 1e9 { return x }\nreturn f(x + 1) }\nloss y = f(x)",
    ),
    within(
        "a budget of nothing",
        "PAL0275",
        |limits| Limits { budget: Budget::from(1), ..limits },
        "param a: [100] = fill(1, 100)\nloss y = sum(sin(a) * cos(a) + a)",
    ),
    within(
        "a budget that a loop uses up",
        "PAL0275",
        |limits| Limits { budget: Budget::from(4_000), ..limits },
        "param x = 1\nvar l = [x]\nvar s = x\nwhile s < 1000 { s += 1\nl = append(l, s) }\nloss y = sum(l)",
    ),
    Row {
        of: Gradient,
        ..within(
            "a budget that a log uses up",
            "PAL0275",
            |limits| Limits { budget: Budget::from(4_000), ..limits },
            "param x = 1\nvar s = x\nwhile s < 1000 { s += sin(s) + 1.5 }\nloss y = s",
        )
    },
    in_gradient(
        "a loop's budget below one state",
        "PAL0278",
        "param a: [100] = fill(1, 100)\nvar u = a\nfor t in 0..50 budget 500B { u = 0.9 * sin(u) }\nloss y = sum(u)",
    ),
    // Matrices.
    row(
        "an inverse of a singular matrix",
        "PAL0264",
        "param m: [2, 2] = [[1, 2], [2, 4]]\nloss y = sum(inv(m))",
    ),
    row(
        "a system with a singular matrix",
        "PAL0264",
        "param m: [2, 2] = [[1, 2], [2, 4]]\nloss y = sum(solve(m, [1.0, 2.0]))",
    ),
    row(
        "a matrix that becomes singular",
        "PAL0264",
        "param m: [2, 2] = [[1, 2], [2, 5]]\nvar s = 0.0\nfor i in 0..4 { var a = m\na[1, 1] -= i\ns += sum(inv(a)) }\nloss y = s",
    ),
    row("no Cholesky factor", "PAL0265", "param m: [2, 2] = [[1, 2], [2, 1]]\nloss y = sum(cholesky(m))"),
    row("not symmetric", "PAL0301", "param m: [2, 2] = [[4, 0], [2, 5]]\nloss y = sum(cholesky(m))"),
    row("not square", "PAL0267", "param m: [n, k] = [[4, 0, 1], [2, 5, 1]]\nloss y = det(m)"),
    within(
        "a decomposition of infinities",
        "PAL0269",
        |limits| Limits { trap_nonfinite: false, ..limits },
        "param m: [2, 2] = [[1, 0], [0, 1]]\nparam x = 0\nlet u, s, v = svd(m / x)\nloss y = sum(s)",
    ),
    // Equations.
    row(
        "a fixed point that is not found",
        "PAL0540",
        "param p = 1\nvar x = p\nfixed_point x rounds 5 { x = cos(x) + p }\nloss y = x",
    ),
    row(
        "a search that diverges",
        "PAL0541",
        "param p = 3\nvar x = p\nfixed_point x { x = x * x }\nloss y = x",
    ),
    in_gradient(
        "a solution without a derivative",
        "PAL0542",
        "param p = 0\nvar x = 1.0\nroot x { 0 = x * x - 1 + 0 * p }\nvar z = 0.5\nfixed_point z { z = z + 0 * p }\nloss y = x + z",
    ),
    row(
        "a step that cannot be divided by",
        "PAL0543",
        "param p = 1\nvar x = 0.0\nroot x { 0 = x * x + p }\nloss y = x",
    ),
    in_gradient(
        "an equation that is not smooth",
        "PAL0546",
        "param p = 0\nvar x = 0\nroot x { 0 = cbrt(x) - p }\nloss y = x",
    ),
];

/// A program that keeps numbers in fewer bits.
const NARROW: &str = "entry fn main(x: f64[_]) -> (f64[_]) outputs (y) {
  n = dim<0> x
  words = pack_f32 x
  y = unpack_f32 words, n
  yield y
}";

/// What is wrong with inputs, not with a program: planted by a test of its own.
const OF_INPUTS: [&str; 3] = ["PAL0250", "PAL0251", "PAL0276"];

/// What has no loop form, so that no machine code is made. Others are lowered, run and stop there.
const REFUSED: &[&str] = &[
    "a budget that a loop uses up: a whole vector whose length is not known has no loop form",
    "a length below zero that data makes: an array whose length depends on numbers has no loop form",
    "a length below zero: an operation on arrays that always fails has no loop form",
    "a loop's budget below one state: a sweep with a budget below one state has no loop form",
    "a product of lengths that do not fit: an operation on arrays that always fails has no loop form",
    "a range that begins outside: an operation on arrays that always fails has no loop form",
    "a range that ends outside: an operation on arrays that always fails has no loop form",
    "a reshape that loses elements: an operation on arrays that always fails has no loop form",
    "a write of another length: an operation on arrays that always fails has no loop form",
    "an array beyond all memory: an operation on arrays that always fails has no loop form",
    "calls that do not end: a deep nest of calls has no loop form",
    "the largest of nothing, in a loop: a range whose length or step depends on numbers has no loop form",
];

#[test]
fn every_code_is_planted() {
    let errors = include_str!("../../../palinode-ir/src/interp/error.rs");
    let codes: BTreeSet<&str> = errors.split("=> \"PAL").skip(1).filter_map(|rest| rest.get(..4)).collect();
    let planted = ROWS.iter().map(|row| row.code).chain(OF_INPUTS);
    let planted: BTreeSet<&str> = planted.map(|code| code.trim_start_matches("PAL")).collect();
    assert_eq!(codes, planted);
}

/// All that an error says.
fn words(error: &RunError) -> String {
    format!("{error} at {:?} of {}", error.span, error.function)
}

/// What came out, or what was said.
fn outcome(ran: Result<Vec<Datum<f64>>, RunError>) -> Result<Vec<Vec<u64>>, String> {
    match ran {
        Ok(outputs) => Ok(outputs.iter().map(bits).collect()),
        Err(error) => Err(words(&error)),
    }
}

fn engines() -> [(&'static str, Engine); 2] {
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustc").join("errors");
    [("Cranelift", machine_code(When::Possible)), ("rustc", by_rustc_in(Some(folder)))]
}

/// The programs of a row: whose error it is to be, the others.
fn family(program: &Program, wrt: &[usize]) -> Vec<(Of, &'static str, Program)> {
    let simplified = passes::simplify(&passes::inline(program));
    let mut all = vec![(Value, "value", simplified), (Value, "value as it is", program.clone())];
    if let Ok(gradient) = transform::value_and_grad(program, wrt) {
        all.push((Gradient, "gradient", passes::simplify(&gradient)));
        all.push((Gradient, "gradient as it is", gradient));
    }
    all
}

#[test]
fn planted_errors_are_the_same_by_rustc() {
    let [_, (_, engine)] = engines();
    let (mut by_rustc, mut wrong) = (0, Vec::new());
    for row in ROWS {
        let model = pal::compile(row.source).unwrap_or_else(|found| panic!("{}: {found:?}", row.what));
        let inputs = defaults(&model).expect("every argument has a default");
        let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
        let (_, name, program) =
            family(&model.program, &wrt).into_iter().find(|member| member.0 == row.of).expect("one of these");
        let limits = Limits { steps: 100_000, trap_nonfinite: true, ..Limits::default() };
        let limits = (row.limits)(limits);
        let expected = outcome(Code::new(&program).run(&inputs, &limits));
        let code = Code::on(&engine, &program);
        let chosen = code.prepare(&inputs, &limits);
        by_rustc += usize::from(matches!(chosen, Chosen::Machine { name: "machine code of rustc", .. }));
        for turn in 0..5 {
            let found = outcome(code.run(&inputs, &limits));
            if found != expected {
                wrong.push(format!("{}, {name}, turn {turn}:\n  {expected:?}\n  {found:?}", row.what));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{by_rustc} of {} by rustc", ROWS.len());
    assert!(by_rustc > ROWS.len() / 2 || std::process::Command::new("rustc").arg("-vV").output().is_err());
}

/// Also by machines that are ready for inputs that do fit.
#[test]
fn wrong_inputs_are_refused_alike() {
    let model = pal::compile("param a: [n] = [1, 2, 3]\nparam x = 2\nloss y = sum(x * a)").unwrap();
    let (a, x) = (Datum::vector(vec![1.0, 2.0, 3.0]), Datum::real(2.0));
    let matrix = Datum::Real(Tensor { shape: vec![1, 3], data: vec![1.0, 2.0, 3.0] });
    let empty = Datum::Real(Tensor { shape: vec![3], data: vec![1.0, 2.0] });
    let rows: [(&str, &str, Vec<Datum<f64>>); 6] = [
        ("too few", "PAL0250", vec![a.clone()]),
        ("too many", "PAL0250", vec![a.clone(), x.clone(), x.clone()]),
        ("another kind", "PAL0251", vec![a.clone(), Datum::int(2)]),
        ("another rank", "PAL0251", vec![matrix, x.clone()]),
        ("in another order", "PAL0251", vec![x.clone(), a.clone()]),
        ("too few elements", "PAL0251", vec![empty, x.clone()]),
    ];
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    // Derivatives would be lost by numbers that are kept in fewer bits.
    let packing = text::parse(NARROW).unwrap_or_else(|found| panic!("{found:?}"));
    let duals = Datum::Real(Tensor { shape: vec![2], data: vec![Dual::new(1.0, 1.0), Dual::new(2.0, 0.0)] });
    let lost = Code::new(&packing).run(core::slice::from_ref(&duals), &limits).unwrap_err();
    assert_eq!(lost.code(), "PAL0276");
    for (name, engine) in engines() {
        for is_ready in [false, true] {
            let code = Code::on(&engine, &model.program);
            let packs = Code::on(&engine, &packing);
            if is_ready {
                assert!(code.run_with_stats(&[a.clone(), x.clone()], &limits).unwrap().1.by_machine);
                packs.run(&[Datum::vector(vec![1.0, 2.0])], &limits).unwrap();
            }
            for (what, expected, inputs) in &rows {
                let of_interpreter = Code::new(&model.program).run(inputs, &limits).unwrap_err();
                assert_eq!(&of_interpreter.code(), expected, "{what}");
                let found = code.run(inputs, &limits).unwrap_err();
                assert_eq!(words(&found), words(&of_interpreter), "{what}, by {name}");
            }
            let found = packs.run(core::slice::from_ref(&duals), &limits).unwrap_err();
            assert_eq!(words(&found), words(&lost), "{name}");
        }
    }
}

#[test]
fn planted_errors_are_the_same() {
    let engine = machine_code(When::Possible);
    let (mut wrong, mut interpreted) = (Vec::new(), BTreeSet::new());
    for row in ROWS {
        let model = pal::compile(row.source).unwrap_or_else(|found| panic!("{}: {found:?}", row.what));
        let inputs = defaults(&model).expect("every argument has a default");
        let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
        let mut is_planted = false;
        for (of, name, program) in family(&model.program, &wrt) {
            for traps in [true, false] {
                let limits = Limits { steps: 100_000, trap_nonfinite: traps, ..Limits::default() };
                let limits = (row.limits)(limits);
                let expected = Code::new(&program).run(&inputs, &limits);
                is_planted |= of == row.of && expected.as_ref().is_err_and(|error| error.code() == row.code);
                let expected = outcome(expected);
                let code = Code::on(&engine, &program);
                if let Chosen::InterpreterBecause(why) = code.prepare(&inputs, &limits)
                    && of == row.of
                    && expected.is_err()
                {
                    // How many bytes machine code takes is no matter of this test.
                    if !why.starts_with("machine code takes") {
                        interpreted.insert(format!("{}: {why}", row.what));
                    }
                }
                for turn in 0..5 {
                    let found = outcome(code.run(&inputs, &limits));
                    if found != expected {
                        wrong.push(format!(
                            "{}, {name}, traps {traps}, turn {turn}:\n  {expected:?}\n  {found:?}",
                            row.what
                        ));
                        break;
                    }
                }
            }
        }
        if !is_planted {
            wrong.push(format!("{}: no {} is planted", row.what, row.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let interpreted: Vec<&str> = interpreted.iter().map(String::as_str).collect();
    assert_eq!(interpreted, REFUSED, "what machine code does not even begin");
}
