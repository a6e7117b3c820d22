//! Transforms on programs written by hand, one feature each, against duals, the tape and closed forms.

use crate::agree::{check, flat, run_on};
use crate::pal::{compile, defaults};
use palinode_ir::interp::Datum;
use palinode_ir::{Program, text, transform};

fn parsed(source: &str) -> Program {
    text::parse(source).unwrap_or_else(|errors| panic!("{errors:?}\n{source}"))
}

fn agrees(program: &Program, source: &str, inputs: &[Datum<f64>], wrt: &[usize]) {
    match check(program, inputs, wrt) {
        Ok(covered) => assert!(covered.second_order, "numbers were too large to compare"),
        Err(failure) => {
            let reverse = transform::vjp(program, wrt).map(|program| text::print(&program));
            panic!("{failure}\n{source}\n{}", reverse.unwrap_or_default());
        }
    }
}

fn real(x: f64) -> Datum<f64> {
    Datum::real(x)
}

fn vector(x: &[f64]) -> Datum<f64> {
    Datum::vector(x.to_vec())
}

/// The numbers that a program gives.
fn numbers(program: &Program, inputs: &[Datum<f64>]) -> Vec<f64> {
    flat(&run_on(program, inputs, "the program").unwrap())
}

/// A feature each; what is written as `N` takes several values.
const FEATURES: &[&str] = &[
    "# a loop\nparam x = 0.3\nparam r = 3.1\ninput n: int = N\nvar y = x\nfor k in 0..n { y = r * y * (1 - y) }\nloss y",
    "# nested loops that write an array\nparam a: [3] = [0.3, 0.7, 1.1]\ninput n: int = 4\ninput m: int = N\nvar q = a\nfor i in 0..n { for j in 0..m { q[j % 3] = sin(q[j % 3]) * q[j % 3] } }\nloss y = sum(q * q)",
    "# triangular loops, which keep offsets\nparam x = 0.7\ninput n: int = 5\nvar s = x\nfor i in 0..n { for j in 0..i {\n let q = s\n s = sin(q)\n for l in 0..j { s = cos(s) * q }\n} }\nloss s",
    "# branches in a while\nparam x = 0.9\nvar s = x\nwhile s < 40 {\n s *= 1.7\n if s < 3 { s = (sin(s) + s)^2 } else { s = sqrt(s) * x + s }\n}\nloss s",
    "# a loop in a branch in a loop\nparam x = 0.3\ninput n: int = 7\nvar s = x\nfor i in 0..n { if i % 2 == 0 { for j in 0..i { s = sin(s) + s } } else { s = cos(exp(s)) } }\nloss s",
    "# arrays as residuals\nparam w: [2, 2] = [[0.3, -0.8], [0.5, 0.9]]\nparam b: [2] = [0.2, -0.4]\ninput n: int = 4\nvar h = b\nfor i in 0..n { h = tanh(w @ h + b) }\nloss y = dot(h, h)",
    "# arrays that change their length\nparam a: [2] = [0.2, -0.4]\ninput n: int = 3\nvar h = a\nfor i in 0..n {\n let g = concat(h, sin(h))\n h = g * g\n}\nloss y = sum(h)",
    "# a parallel move\nparam a = 1.1\nparam b = 0.9\ninput n: int = 5\nvar p, q = a, b\nfor i in 0..n { p, q = q, p * q }\noutput x = p\noutput y = q",
    "# captured and carried at once\nparam a: [3] = [0.5, 0.7, 1.3]\ninput n: int = 3\nvar s = a\nfor i in 0..n { s[i] += a[i] * s[i] }\nloss y = sum(s)",
    "# recursion\nparam x = 1.3\ninput n: int = 4\nfn power(x, n: int) -> real { if n <= 0 { return 1.0 }; return sin(power(x, n - 1)) * x }\nloss y = power(x, n)^2",
    // Which results depend on what must be found for all functions together: an answer that was found while
    // another function was still taken to depend on nothing is not final.
    "# functions that call each other\nparam x = 0.7\nfn f(a: real, n: int) -> real { if n == 0 { return sin(a) }; return g(a, n - 1) }\nfn g(a: real, n: int) -> real { if n == 0 { return 3.0 }; return f(a, n - 1) }\nloss l = f(x, 2) * 2 + g(x, 3)",
    "# arguments that change places\nparam x = 0.7\nfn f(a: real, b: real, n: int) -> real { if n == 0 { return sin(a) }; return f(b, a, n - 1) }\nloss l = f(x, 2, 4) + f(2, x, 3)",
    "# every way of access\nparam a: [3, 3] = [[0.3, -0.8, 0.5], [0.9, 0.1, -0.2], [0.7, 0.4, 0.25]]\nparam x: [3] = [0.2, -0.4, 0.6]\nlet l = [2, 0]\nvar m = a\nm[.., 2] = x\nlet part = m[0..2, l]\nm[0..3 by 2, l] += sin(part)\nm[2, ..] = sum(a[1, ..] * a[1, ..])\nlet t = max_axis(m, 1)\noutput y = sum(m * m) + dot(t, t)\noutput b = m'",
];

#[test]
fn features_agree() {
    for feature in FEATURES {
        for n in [0, 1, 2, 10] {
            let source = feature.replace('N', &n.to_string());
            let model = compile(&source);
            let inputs = defaults(&model);
            let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| inputs[at].ty().is_real()).collect();
            agrees(&model.program, &source, &inputs, &wrt);
            if !feature.contains('N') {
                break;
            }
        }
    }
}

/// A program that calls `f`, which has a tangent rule.
fn ruled(from: &str, to: &str, f: &str, rule: &str, main: &str) -> Program {
    parsed(&format!(
        "fn f(x: {from}) -> ({to}) tangent df {{ {f} }}\nfn df(x: {from}, dx: {from}) -> ({to}) {{ {rule} }}\n\
         entry fn main(x: {from}) -> (f64) outputs (y) {{ y = call f(x) {main} }}"
    ))
}

#[test]
fn a_rule_given_by_hand_is_used() {
    // The rule says 10 x instead of 2 x, so it shows.
    let rule = "ten = const 10.0 w = mul x, ten t = mul dx, w yield t";
    let gradient =
        transform::grad(&ruled("f64", "f64", "y = mul x, x yield y", rule, "yield y"), &[0]).unwrap();
    assert_eq!(numbers(&gradient, &[real(3.0)]), [30.0]);
    let second = transform::grad(&gradient, &[0]).unwrap();
    assert_eq!(numbers(&second, &[real(3.0)]), [10.0]);
}

#[test]
fn dense_linear_algebra() {
    let general = Datum::matrix(3, 3, vec![2.0, 0.3, -0.4, 0.1, 1.5, 0.2, -0.3, 0.4, 3.0]);
    // Of a symmetric matrix itself: duals in single entries, which leave the symmetric ones, are the oracle.
    let symmetric = Datum::matrix(3, 3, vec![2.0, 0.3, -0.4, 0.3, 1.5, 0.2, -0.4, 0.2, 3.0]);
    for (a, op) in [
        (&general, "z = solve a, b"),
        (&general, "z = solve_t a, b"),
        (&general, "z = solve_lower a, b"),
        (&general, "z = solve_upper_t a, b"),
        (&general, "i = inverse a z = matmul i, b"),
        (&general, "d = det a z = mul b, d"),
        (&general, "d = logdet a z = mul b, d"),
        (&general, "p = matmul a, a' l = cholesky p z = matmul l, b"),
        (&general, "q, r = qr a s = matmul q, b t = matmul r, b z = mul s, t"),
        (&general, "p = matmul a, a' w, v = eigh p s = matmul v, b z = mul w, s"),
        (&general, "u, s, v = svd a p = matmul u, b q = matmul v, b t = mul p, q z = mul s, t"),
        (&symmetric, "l = cholesky a z = matmul l, b"),
        (&symmetric, "w, v = eigh a s = matmul v, b z = mul w, s"),
    ] {
        let source = format!(
            "entry fn main(a: f64[_,_], b: f64[_]) -> (f64) outputs (y) {{ {op} zz = mul z, z y = reduce_sum<0> zz yield y }}"
        );
        agrees(&parsed(&source), &source, &[a.clone(), vector(&[0.4, -0.7, 1.1])], &[0, 1]);
    }
}

#[test]
fn closed_forms_of_loops() {
    // Repeated squaring: 2^n x^(2^n - 1), and its derivatives by doing it again.
    let source = "param x\ninput n: int\nvar y = x\nfor k in 0..n { y = y * y }\nloss y";
    let mut program = compile(source).program;
    let x = 1.1_f64;
    for expected in [8.0 * x.powi(7), 56.0 * x.powi(6), 336.0 * x.powi(5)] {
        program = transform::grad(&program, &[0]).unwrap();
        let found = numbers(&program, &[real(x), Datum::int(3)])[0];
        assert!((found - expected).abs() < 1e-14 * expected, "{found}");
    }
}

#[test]
fn a_program_does_not_grow_with_its_loops() {
    let [few, many] = [10, 1_000_000].map(|n| {
        let source = format!("param x\nvar y = x\nfor k in 0..{n} {{ y = 3.1 * y * (1 - y) }}\nloss y");
        transform::grad(&compile(&source).program, &[0]).unwrap().size()
    });
    assert_eq!(few, many);
}

#[test]
fn jacobian_and_hessian() {
    let z = "output z = sum(x * x * s) * s";
    let inputs = [vector(&[1.0, 2.0]), real(3.0)];
    let compiled = |outputs: &str| compile(&format!("param x: [2]\nparam s\n{outputs}")).program;
    let jacobian = transform::jacobian(&compiled(&format!("output y = x * x * s\n{z}")), &[0, 1]).unwrap();
    let hessian = transform::hessian(&compiled(z), &[0, 1]).unwrap();
    for (matrix, expected) in [
        (jacobian, [6.0, 0.0, 0.0, 12.0, 1.0, 4.0, 18.0, 36.0, 30.0]),
        (hessian, [18.0, 0.0, 0.0, 18.0, 12.0, 24.0, 12.0, 24.0, 10.0]),
    ] {
        let found = run_on(&matrix, &inputs, "the matrix").unwrap();
        let shapes: Vec<&[usize]> = found.iter().map(|datum| datum.shape()).collect();
        assert_eq!(shapes, [&[2, 2][..], &[2], &[2], &[]]);
        assert_eq!(flat(&found), expected);
    }
}

#[test]
fn a_rule_may_have_slopes_where_the_body_has_none() {
    let straight_through = ruled("f64", "f64", "y = round x yield y", "yield dx", "z = mul y, y yield z");
    assert_eq!(numbers(&transform::grad(&straight_through, &[0]).unwrap(), &[real(2.6)]), [6.0]);
}

/// Writes of single elements cost O(1), forwards, backwards and in the second derivative: nothing is copied,
/// and what is filled grows with the array, not with the product of writes and elements.
#[test]
fn single_writes_cost_the_same_backwards() {
    let source = "param a: [n]\nparam s\nvar q = a\nfor k in 0..n - 1 {\n let t = sin(q[k] * q[k + 1]) * s\n q[k + 1] = t\n q[k] += t\n}\nloss y = q[n - 1]";
    use palinode_ir::interp::{Code, Limits};
    let n = 2000;
    let a: Vec<f64> = (0..n).map(|k| 1.0 + f64::from(k % 7) * 0.1).collect();
    let program = compile(source).program;
    let gradient = transform::grad(&program, &[0, 1]).unwrap();
    let second = transform::vjp(&gradient, &[0, 1]).unwrap();
    let inputs = [vector(&a), real(0.9)];
    let seeds = [vector(&a), real(0.5)];
    let cases =
        [(&program, inputs.to_vec()), (&gradient, inputs.to_vec()), (&second, [inputs, seeds].concat())];
    for (program, inputs) in cases {
        let (_, stats) = Code::new(program).run_with_stats(&inputs, &Limits::default()).unwrap();
        // The argument itself is copied once, because the caller keeps it.
        assert!(stats.elements_copied <= 4 * n as u64, "{stats:?}\n{}", text::print(program));
        assert!(stats.elements_filled <= 40 * n as u64, "{stats:?}\n{}", text::print(program));
    }
}

#[test]
fn what_cannot_be_transposed_is_refused() {
    let with = |body: &str| {
        let source = format!(
            "entry fn main(t.0: f64, w.1: f64) -> (f64) outputs (y) {{\n zero.2 = const 0.0\n three.3 = const 3.0\n {body}\n yield v9\n}}"
        );
        transform::transpose(&parsed(&source), &[0]).map_err(|error| error.code())
    };
    assert!(with("v9 = mul t.0, w.1").is_ok());
    assert!(with("v9 = add t.0, zero.2").is_ok());
    for body in [
        "v9 = add t.0, three.3",
        "v9 = mul t.0, t.0",
        "v9 = sin t.0",
        "v8 = less t.0, w.1\n v9 = select v8, t.0, zero.2",
        "v8 = less t.0, w.1\n v9 = if v8 {\n yield t.0\n } else {\n yield zero.2\n }",
        "v8 = stop_gradient t.0\n v9 = add t.0, v8",
        "v8 = convert<int> t.0\n v9 = for k.10 in v8 (s.11: f64 = t.0) {\n yield s.11\n }",
        "v9 = while (s.10: f64 = t.0) {\n v11 = less s.10, w.1\n yield v11\n } do (s.12: f64) {\n v13 = add s.12, s.12\n yield v13\n }",
    ] {
        assert_eq!(with(body).unwrap_err(), "PAL0273", "{body}");
    }
}

#[test]
fn an_argument_listed_twice_is_refused() {
    let program = compile("param x\nparam r\ninput n: int\nloss y = x * r * n").program;
    for found in [
        transform::grad(&program, &[0, 0]),
        transform::jvp(&program, &[1, 1]),
        transform::hessian(&program, &[0, 0]),
    ] {
        assert_eq!(found.unwrap_err().code(), "PAL0274");
    }
    assert_eq!(transform::grad(&program, &[7]).unwrap_err().code(), "PAL0270");
    assert_eq!(transform::grad(&program, &[2]).unwrap_err().code(), "PAL0271");
}

#[test]
fn a_tangent_rule_must_be_linear() {
    let program = ruled("f64", "f64", "y = mul x, x yield y", "t = mul dx, dx yield t", "yield y");
    assert_eq!(transform::grad(&program, &[0]).unwrap_err().code(), "PAL0273");
    assert_eq!(transform::linearize(&program, &[0]).unwrap_err().code(), "PAL0273");
    assert_eq!(transform::jvp(&program, &[0]).unwrap_err().code(), "PAL0273");
}

#[test]
fn an_entry_that_calls_itself() {
    let source = "entry fn main(x: f64, n: int) -> (f64) outputs (y) {
      zero = const 0i
      one = const 1i
      c = less_eq n, zero
      r = if c {
        s = sin x
        yield s
      } else {
        m = isub n, one
        k = const 2.0
        t = call main(k, m)
        u = call main(x, m)
        v = mul t, u
        yield v
      }
      yield r
    }";
    agrees(&parsed(source), source, &[real(0.5), Datum::int(3)], &[0]);
}

#[test]
fn a_rule_that_was_fused_is_still_a_rule() {
    let rule = "two = const 2.0 half = const 0.5 w = mul dx, two u = mul w, half t = mul u, two yield t";
    let main = "z = mul y, y s = reduce_sum<0> z yield s";
    let program = ruled("f64[_]", "f64[_]", "y = add x, x yield y", rule, main);
    let gradient = transform::grad(&palinode_ir::passes::simplify(&program), &[0]).unwrap();
    assert_eq!(numbers(&gradient, &[vector(&[1.0, 2.0])]), [8.0, 16.0]);
}

/// `<u, J v> = <J' u, v>` for linear programs that nobody generated, so that lengths must be found from the
/// operations.
#[test]
fn linear_programs_by_hand_are_transposed() {
    let matrix = || Datum::matrix(2, 3, vec![0.3, -0.8, 0.5, 0.9, 0.1, -0.2]);
    // Parameters, body, what is known, and where the program is linear.
    type Case = (&'static str, &'static str, Vec<Datum<f64>>, Datum<f64>);
    let cases: Vec<Case> = vec![
        (
            "w: f64, n: int, a: f64[_]",
            "one = const 1i\n v = read a[one:+n:one]\n s = reduce_sum<0> v\n y = mul s, w",
            vec![real(0.7), Datum::int(2)],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64, a: f64[_]",
            "v = concat<0> a, a\n u = mul v, w\n y = reduce_sum<0> u",
            vec![real(0.7)],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "m: f64[_,_], a: f64[_]",
            "v = matmul m, a\n y = reduce_sum<0> v",
            vec![matrix()],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64[_], m: f64[_,_]",
            "p = permute<1,0> m\n q = reduce_sum<1> p\n y = matmul q, w",
            vec![vector(&[0.2, 0.3, -0.9])],
            matrix(),
        ),
        (
            "n: int, m: f64[_,_]",
            "z = const 0.0\n y = for i in n (s: f64 = z) {\n v = read m[i, :]\n u = reduce_sum<0> v\n t = add s, u\n yield t\n }",
            vec![Datum::int(2)],
            matrix(),
        ),
        (
            "c: bool, a: f64[_]",
            "v = if c {\n yield a\n } else {\n b = add a, a\n yield b\n }\n y = reduce_sum<0> v",
            vec![Datum::bool(false)],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "l: int[_], a: f64[_]",
            "v = read a[@l]\n y = reduce_sum<0> v",
            vec![Datum::ints(vec![2, 0, 2, 1])],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64[_], a: f64[_]",
            "v = strong_outer a, w\n u = permute<1,0> v\n s = reduce_sum<0> u\n y = reduce_sum<0> s",
            vec![vector(&[0.2, 0.3])],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64[_], n: int, a: f64[_]",
            "v = for k in n (s: f64[_] = a) {\n u = mul s, w\n t = add u, a\n yield t\n }\n y = reduce_sum<0> v",
            vec![vector(&[0.5, 2.0]), Datum::int(3)],
            vector(&[1.5, -0.25]),
        ),
    ];
    for (params, body, known, v) in cases {
        let source = format!("entry fn main({params}) -> (f64) outputs (y) {{\n {body}\n yield y\n}}");
        let program = parsed(&source);
        let transposed = transform::transpose(&program, &[known.len()])
            .unwrap_or_else(|error| panic!("{error}\n{source}"));
        let y = numbers(&program, &[&known[..], std::slice::from_ref(&v)].concat())[0];
        let back = numbers(&transposed, &[&known[..], &[real(2.0), v.map(|_| 0.0)]].concat());
        let inner: f64 = back.iter().zip(v.as_vector().unwrap()).map(|(c, v)| c * v).sum();
        assert!((inner - 2.0 * y).abs() < 1e-12, "<u, J v> = {} but <J' u, v> = {inner}\n{source}", 2.0 * y);
    }
    // A length that grows in the loop is not known beforehand: refused, not guessed.
    let source = "entry fn main(n: int, a: f64[_]) -> (f64) outputs (y) {
      v = for i in n (s: f64[_] = a) {
        t = push s, s
        yield t
      }
      y = reduce_sum<0> v
      yield y
    }";
    assert_eq!(transform::transpose(&parsed(source), &[1]).unwrap_err().code(), "PAL0273");
}

#[test]
fn a_rule_that_reads_a_part_of_its_tangent() {
    let part = |of: &str| {
        format!(
            "one = const 1i none = const 0i two = const 2i v = read {of}[none:+two:one] s = reduce_sum<0> v yield s"
        )
    };
    let program = ruled("f64[_]", "f64", &part("x"), &part("dx"), "z = sin y yield z");
    agrees(&program, &text::print(&program), &[vector(&[0.3, 0.5, 0.9])], &[0]);
}

#[test]
fn elements_that_tie_share_the_derivative() {
    let (a, m) = (vector(&[0.2, 0.1, 0.2, 0.2]), Datum::matrix(2, 3, vec![0.5, 0.5, 0.7, 0.3, 0.3, 0.3]));
    let source = "param a: [4]\nparam m: [2, 3]\noutput y = max(a)\noutput z = min_axis(m, 1)";
    agrees(&compile(source).program, source, &[a.clone(), m], &[0, 1]);
    let gradient = transform::grad(&compile("param a: [4]\nloss y = max(a)").program, &[0]).unwrap();
    assert_eq!(numbers(&gradient, &[a]), [1.0 / 3.0, 0.0, 1.0 / 3.0, 1.0 / 3.0]);
}
