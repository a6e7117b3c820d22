//! Fixed points and roots in programs: values and derivatives against closed forms, unrolled loops and each
//! other; every refusal.

use crate::agree;
use palinode_core::Dual;
use palinode_ir::interp::{Code, Datum, Limits, RunError, RunErrorKind, Tensor, run};
use palinode_ir::plan::predict_recorded;
use palinode_ir::{Program, pal, passes, text, transform};
use proptest::prelude::*;

fn compiled(source: &str) -> Program {
    crate::pal::compile(source).program
}

fn reals(values: &[f64]) -> Vec<Datum<f64>> {
    values.iter().map(|&value| Datum::real(value)).collect()
}

fn real(datum: &Datum<f64>) -> f64 {
    datum.as_real().expect("a real")
}

fn list(datum: &Datum<f64>) -> Vec<f64> {
    agree::flat(std::slice::from_ref(datum))
}

/// The value and the gradient by all arguments, before and after simplification.
fn gradient(program: &Program, inputs: &[Datum<f64>]) -> Result<Vec<Datum<f64>>, RunError> {
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    let gradient = transform::value_and_grad(program, &wrt).unwrap();
    let found = run(&gradient, inputs)?;
    let simple = run(&passes::simplify(&passes::inline(&gradient)), inputs)?;
    for (a, b) in found.iter().flat_map(list).zip(simple.iter().flat_map(list)) {
        assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{a} {b}");
    }
    Ok(found)
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found}, not {expected}");
}

const SEARCHES: [&str; 3] = ["picard", "anderson", "newton"];

#[test]
fn the_cosine_has_its_slope() {
    for search in SEARCHES {
        let program = compiled(&format!(
            "param p = 0\nvar x = 0.5\nfixed_point x by {search} {{ x = cos(x) + p }}\nloss x"
        ));
        for p in [-0.3, 0.0, 0.4] {
            let found = gradient(&program, &reals(&[p])).unwrap();
            let x = real(&found[0]);
            near(x, x.cos() + p, 1e-11);
            near(real(&found[1]), 1.0 / (1.0 + x.sin()), 1e-11);
            // The second derivative of the solution.
            let hessian = run(&transform::hessian(&program, &[0]).unwrap(), &reals(&[p])).unwrap();
            near(real(&hessian[0]), -x.cos() / (1.0 + x.sin()).powi(3), 1e-10);
        }
    }
}

#[test]
fn square_roots_have_all_derivatives() {
    let program = compiled("param p = 2\nvar x = 1\nroot x { 0 = x^2 - p }\nloss x");
    let first = transform::grad(&program, &[0]).unwrap();
    let second = transform::grad(&first, &[0]).unwrap();
    let third = transform::grad(&second, &[0]).unwrap();
    for p in [0.25, 2.0, 9.0, 1e4] {
        let at = |program: &Program| real(&run(program, &reals(&[p])).unwrap()[0]);
        near(at(&program), f64::sqrt(p), 1e-14);
        near(at(&first), 0.5 * p.powf(-0.5), 1e-13);
        near(at(&second), -0.25 * p.powf(-1.5), 1e-12);
        near(at(&third), 0.375 * p.powf(-2.5), 1e-11);
        let forward = transform::jvp(&program, &[0]).unwrap();
        near(real(&run(&forward, &reals(&[p, 1.0])).unwrap()[1]), 0.5 * p.powf(-0.5), 1e-13);
    }
}

/// An equation that only rounds what it is differentiated by: its rule takes tangents and gives a constant
/// zero. (The known half once kept the call with its tangents, which nothing defined there.)
#[test]
fn an_equation_that_only_rounds_has_no_slope() {
    let cases = [
        ("0.3 * floor(p)", 0.9),
        ("0.3 * real(argmax([q, p, 0.5]))", 0.3),
        ("0.3 * real(count([p, q] > 1.9)) + 0.5 * x", 1.2),
        ("if p > q then 1.0 else 2.0", 1.0),
        ("stop_gradient(0.4 * p)", 1.24),
    ];
    for (equation, solution) in cases {
        for around in ["fixed_point x { x = E }", "for k in 0..2 { if q > k { fixed_point x { x = E } } }"] {
            let source = format!(
                "param p = 3.1\nparam q = 2\nvar x = 0.1\n{}\nloss l = x * q + p * q",
                around.replace('E', equation)
            );
            let program = compiled(&source);
            let found = gradient(&program, &reals(&[3.1, 2.0])).unwrap();
            near(real(&found[0]), 2.0 * solution + 6.2, 1e-11);
            assert_eq!(real(&found[1]), 2.0, "{source}");
            near(real(&found[2]), solution + 3.1, 1e-11);
            let hessian = run(&transform::hessian(&program, &[0, 1]).unwrap(), &reals(&[3.1, 2.0])).unwrap();
            assert_eq!(hessian.iter().flat_map(list).collect::<Vec<_>>(), [0.0, 1.0, 1.0, 0.0], "{source}");
            let split = transform::linearize(&program, &[0, 1]).unwrap();
            let kept = run(&split.primal, &reals(&[3.1, 2.0])).unwrap().split_off(1);
            let forward = run(&split.linear, &[kept, reals(&[1.0, 10.0])].concat()).unwrap();
            near(real(&forward[0]), real(&found[1]) + 10.0 * real(&found[2]), 1e-11);
        }
    }
}

#[test]
fn a_linear_fixed_point_has_the_exact_adjoint() {
    // x = A x + b, loss = c x: w of (I - A^T) w = c is the gradient by b, w x^T that by A.
    let a = [[0.3, -0.2, 0.1], [0.0, 0.4, 0.25], [0.15, 0.1, -0.35]];
    let (b, c) = ([1.0, -2.0, 0.5], [0.7, 0.2, -1.3]);
    let inputs = [
        Datum::Real(Tensor { shape: vec![3, 3], data: a.concat() }),
        Datum::vector(b.to_vec()),
        Datum::vector(c.to_vec()),
    ];
    let solved = |transposed: bool, right: &[f64; 3]| {
        // By the series: nothing of the program is shared.
        let (mut x, mut term) = (*right, *right);
        for _ in 0..400 {
            let old = term;
            for i in 0..3 {
                term[i] = (0..3).map(|j| if transposed { a[j][i] } else { a[i][j] } * old[j]).sum();
                x[i] += term[i];
            }
        }
        x
    };
    let (x, w) = (solved(false, &b), solved(true, &c));
    for search in SEARCHES {
        let program = compiled(&format!(
            "param A: [3, 3]\nparam b: [3]\nparam c: [3]\nvar x = b\nfixed_point x by {search} {{ x = A @ x + b }}\nloss l = dot(c, x)"
        ));
        let found = gradient(&program, &inputs).unwrap();
        near(real(&found[0]), (0..3).map(|i| c[i] * x[i]).sum(), 1e-11);
        let (by_a, by_b, by_c) = (list(&found[1]), list(&found[2]), list(&found[3]));
        for i in 0..3 {
            near(by_b[i], w[i], 1e-11);
            near(by_c[i], x[i], 1e-11);
            (0..3).for_each(|j| near(by_a[3 * i + j], w[i] * x[j], 1e-11));
        }
    }
}

#[test]
fn planted_bugs_are_seen() {
    let program = compiled(
        "param a = 0.5\nparam b = 1\nvar x, y = 0.0, 0.0\nfixed_point x, y { x, y = a * y + b, 0.3 * x }\nloss l = x + 2 * y",
    );
    let (a, b) = (0.5_f64, 1.0);
    // x = b / (1 - 0.3 a), l = 1.6 x.
    let exact = [1.6 * 0.3 * b / (1.0 - 0.3 * a).powi(2), 1.6 / (1.0 - 0.3 * a)];
    let off = |program: &Program| {
        let gradient = transform::grad(program, &[0, 1]).unwrap();
        // An error is not overlooked either.
        let Ok(found) = run(&gradient, &reals(&[a, b])) else { return f64::INFINITY };
        found.iter().zip(exact).map(|(found, exact)| (real(found) - exact).abs()).fold(0.0, f64::max)
    };
    assert!(off(&program) < 1e-11, "{}", off(&program));
    let text = text::print(&program);
    let (before, rule) = text.split_once("fn fixed_point.1.rule(").unwrap();
    // The transposed matrix, the wrong sign, the unit matrix with the wrong sign.
    // (The first system is solved to see whether the point is known well enough.)
    for (right, wrong, times) in [
        ("= solve_checked v", "= solve_checked_t v", 2),
        ("= neg v", "= abs v", 1),
        ("= sub v", "= add v", 1),
    ] {
        assert!(rule.contains(right), "{rule}");
        let spoilt = format!("{before}fn fixed_point.1.rule({}", rule.replacen(right, wrong, times));
        let seen = match text::parse(&spoilt).map(|program| transform::grad(&program, &[0, 1])) {
            // A rule that is not linear is refused.
            Ok(Err(refused)) => refused.code() == "PAL0273",
            Ok(Ok(_)) => off(&text::parse(&spoilt).unwrap()) > 1e-3,
            Err(mistakes) => panic!("{mistakes:?}"),
        };
        assert!(seen, "{right}");
    }
}

/// Several unknowns of several shapes, matrices among them.
const COUPLED: &str = "
param p = 0.3
param q: [2]
var x = 1
var v = q
var m = zeros(2, 2)
fixed_point x, v, m {
    let t = 0.2 * sum(v) + 0.1 * sum(m)
    x = 0.5 * tanh(x) + 0.1 * t + p
    v = 0.2 * v + 0.1 * x * q + 0.1 * m @ v
    m = 0.3 * m' + 0.1 * outer(v, q)
}
loss l = x^2 + sum(v * q) + sum(m * m)";

/// The same as a loop.
const COUPLED_LOOP: &str = "
param p = 0.3
param q: [2]
var x = 1
var v = q
var m = zeros(2, 2)
for i in 0..120 {
    let t = 0.2 * sum(v) + 0.1 * sum(m)
    let x1 = 0.5 * tanh(x) + 0.1 * t + p
    let v1 = 0.2 * v + 0.1 * x * q + 0.1 * m @ v
    let m1 = 0.3 * m' + 0.1 * outer(v, q)
    x, v, m = x1, v1, m1
}
loss l = x^2 + sum(v * q) + sum(m * m)";

#[test]
fn unknowns_of_several_shapes_agree_with_the_loop() {
    let inputs = [Datum::real(0.3), Datum::vector(vec![0.7, -0.4])];
    let expected = gradient(&compiled(COUPLED_LOOP), &inputs).unwrap();
    for search in SEARCHES {
        let source = COUPLED.replace("x, v, m {", &format!("x, v, m by {search} {{"));
        let found = gradient(&compiled(&source), &inputs).unwrap();
        for (a, b) in found.iter().flat_map(list).zip(expected.iter().flat_map(list)) {
            near(a, b, 1e-10);
        }
    }
}

#[test]
fn all_modes_and_orders_agree() {
    // Newton's last step makes the derivative that duals carry through the search as good as the solution.
    let cases: &[(&str, Vec<Datum<f64>>)] = &[
        (
            "param p = 2\nparam q = 1\nvar x = 1\nroot x { 0 = x^3 + q * x - p }\nloss l = x * q",
            reals(&[2.0, 1.5]),
        ),
        (
            "param e = 0.3\nparam M = 1.2\nvar E = M\nroot E { 0 = E - e * sin(E) - M }\nloss l = (cos(E) - e)^2",
            reals(&[0.3, 1.2]),
        ),
        (
            "param p = 1\nparam q = 2\nvar x, y = 1.0, 0.5\nroot x, y {\n let s = x * y\n 0 = x^2 + y^2 - q\n 0 = s - 0.3 * p }\nloss l = x - 2 * y",
            reals(&[1.0, 2.0]),
        ),
    ];
    for (source, inputs) in cases {
        let program = compiled(source);
        let wrt: Vec<usize> = (0..inputs.len()).collect();
        agree::check(&program, inputs, &wrt).unwrap_or_else(|failure| panic!("{failure:?}\n{source}"));
    }
}

#[test]
fn numbers_that_carry_derivatives_differentiate_the_search() {
    for search in SEARCHES {
        let program = compiled(&format!(
            "param p = 0.3\nvar x = 0.5\nfixed_point x by {search} tolerance 1e-15 {{ x = 0.4 * cos(x) + p }}\nloss x"
        ));
        let expected = real(&gradient(&program, &reals(&[0.3])).unwrap()[1]);
        let on_duals = run(&program, &[Datum::real(Dual::new(0.3, 1.0))]).unwrap();
        near(on_duals[0].as_real().unwrap().tangent, expected, 1e-9);
    }
}

#[test]
fn equations_stand_in_loops_branches_functions_and_equations() {
    // Implicit Euler for y' = -k y^3, in a function, in a loop.
    let implicit = compiled(
        "param k = 1.5\nparam y0 = 1
         fn step(y, h) {
             var z = y
             root z { 0 = z - y + h * k * z^3 }
             return z
         }
         var y = y0
         for i in 0..20 { if y > 0 { y = step(y, 0.05) } }
         loss y",
    );
    // Newton by hand, every round differentiated.
    let by_hand = compiled(
        "param k = 1.5\nparam y0 = 1
         var y = y0
         for i in 0..20 {
             var z = y
             for j in 0..8 { z = z - (z - y + 0.05 * k * z^3) / (1 + 0.15 * k * z^2) }
             y = z
         }
         loss y",
    );
    let inputs = reals(&[1.5, 1.0]);
    let (found, expected) = (gradient(&implicit, &inputs).unwrap(), gradient(&by_hand, &inputs).unwrap());
    for (a, b) in found.iter().flat_map(list).zip(expected.iter().flat_map(list)) {
        near(a, b, 1e-12);
    }
    // The unknown is carried by the loop, and found in one branch only.
    let carried = compiled(
        "param k = 1.5\nparam y0 = 1\nvar y = y0
         for i in 0..20 {
             let old = y
             if i >= 0 { root y { 0 = y - old + 0.05 * k * y^3 } } else { y = 0 }
         }
         loss y",
    );
    let found = gradient(&carried, &inputs).unwrap();
    for (a, b) in found.iter().flat_map(list).zip(expected.iter().flat_map(list)) {
        near(a, b, 1e-12);
    }
    // x = cos(y x) / 2 where y^2 = p + x: one equation inside another.
    let nested = compiled(
        "param p = 2
         var x = 0.3
         fixed_point x by newton {
             var y = 1.0
             root y { 0 = y^2 - p - x }
             x = cos(y * x) / 2
         }
         loss x",
    );
    let flat = compiled(
        "param p = 2\nvar x = 0.3\nvar y = 1.0\nroot x, y {\n 0 = cos(y * x) / 2 - x\n 0 = y^2 - p - x\n}\nloss x",
    );
    let (a, b) = (gradient(&nested, &reals(&[2.0])).unwrap(), gradient(&flat, &reals(&[2.0])).unwrap());
    near(real(&a[0]), real(&b[0]), 1e-12);
    near(real(&a[1]), real(&b[1]), 1e-12);
    let second = |program: &Program| {
        real(&run(&transform::hessian(program, &[0]).unwrap(), &reals(&[2.0])).unwrap()[0])
    };
    near(second(&nested), second(&flat), 1e-10);
}

#[test]
fn solutions_of_large_systems_stay_within_their_matrix() {
    // A rod with a source, 60 unknowns: x'' = exp(-x) p, as a root.
    let program = compiled(
        "param p = 1\nconst n = 60
         var x = zeros(n)
         root x {
             var r = 2 * x
             r[1..n] -= x[0..n - 1]
             r[0..n - 1] -= x[1..n]
             0 = r - p * exp(-x) / (n + 1)^2
         }
         loss m = sum(x) / n",
    );
    let found = gradient(&program, &reals(&[1.0])).unwrap();
    let at = |p: f64| real(&run(&program, &reals(&[p])).unwrap()[0]);
    near(real(&found[1]), (at(1.0 + 1e-4) - at(1.0 - 1e-4)) / 2e-4, 1e-7);
}

fn refusal(source: &str, inputs: &[f64]) -> RunError {
    let program = compiled(source);
    run(&program, &reals(inputs)).unwrap_err()
}

fn refused_derivative(source: &str, inputs: &[f64]) -> Vec<RunError> {
    let program = compiled(source);
    run(&program, &reals(inputs)).expect("it has a value");
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    let forward = transform::jvp(&program, &wrt).unwrap();
    let twice: Vec<f64> = inputs.iter().copied().chain(inputs.iter().map(|_| 1.0)).collect();
    let reverse = transform::value_and_grad(&program, &wrt).unwrap();
    vec![run(&forward, &reals(&twice)).unwrap_err(), run(&reverse, &reals(inputs)).unwrap_err()]
}

#[test]
fn what_fails_is_an_error_and_never_a_number() {
    let swing = "param p = 2\nvar x = 0.5\nfixed_point x { x = p - x }\nloss x";
    let error = refusal(swing, &[2.0]);
    assert_eq!(error.code(), "PAL0540");
    assert!(matches!(error.kind, RunErrorKind::NotSettled { method: "picard", rounds: 1000, .. }), "{error}");
    assert_eq!(&swing[error.span.range()], "fixed_point x { x = p - x }");
    assert!(error.to_string().contains("by anderson"), "{error}");
    for search in ["anderson", "newton"] {
        let source = swing.replace("x {", &format!("x by {search} {{"));
        near(real(&run(&compiled(&source), &reals(&[2.0])).unwrap()[0]), 1.0, 1e-12);
    }
    let few = refusal("param p = 0\nvar x = 0.5\nfixed_point x rounds 7 { x = cos(x) + p }\nloss x", &[0.0]);
    assert!(matches!(few.kind, RunErrorKind::NotSettled { rounds: 7, .. }), "{few}");
    // It grows beyond all numbers; it leaves the domain of a function.
    let wild = refusal("param p = 3\nvar x = 2\nfixed_point x { x = x^2 + p }\nloss x", &[3.0]);
    assert!(matches!(wild.kind, RunErrorKind::SearchDiverged { .. }), "{wild}");
    let outside = refusal("param p = 3\nvar x = 2\nfixed_point x { x = sqrt(x) - p }\nloss x", &[3.0]);
    assert_eq!(outside.code(), "PAL0541");
    // No root: Newton stops in the valley. Flat at the start: no step.
    let valley = refusal("param p = 1\nvar x = 0.6\nroot x { 0 = x^2 + p }\nloss x", &[1.0]);
    assert!(["PAL0540", "PAL0543"].contains(&valley.code()), "{valley}");
    let flat = refusal("param p = 1\nvar x = 0\nroot x { 0 = x^2 - p }\nloss x", &[1.0]);
    assert_eq!(flat.code(), "PAL0543");
    // Two equations that say the same.
    let twice = refusal(
        "param p = 1\nvar x, y = 0.0, 0.0\nroot x, y {\n 0 = x + y - p\n 0 = 2 * (x + y) - p\n}\nloss x",
        &[1.0],
    );
    assert_eq!(twice.code(), "PAL0543");
    assert!(twice.to_string().contains("condition number"), "{twice}");
    // Two that nearly do: the condition number is named. In the 1-norm it is 4 / 2^-51, the last bit of 2.
    let nearly = refusal(
        "param p = 1\nvar x, y = 0.0, 0.0\nroot x, y {\n 0 = x + y - p\n 0 = x + (1 + 4e-16) * y - 2 * p\n}\nloss x",
        &[1.0],
    );
    let text = nearly.to_string();
    let number =
        text.split("condition number ").nth(1).and_then(|rest| rest.split(')').next()).expect("it is named");
    assert!((number.parse::<f64>().expect("a number") / 9e15 - 1.0).abs() < 0.2, "{text}");
    let shapes = "param p: [_]\nvar x = p\nfixed_point x { x = x[0..len(x) - 1] }\nloss l = sum(x)";
    let error = run(&compiled(shapes), &[Datum::vector(vec![1.0; 3])]).unwrap_err();
    assert_eq!(error.code(), "PAL0252");
}

#[test]
fn solutions_without_a_derivative_say_so() {
    // A fold: the root has a vertical slope.
    let fold = "param p = 0\nvar x = 0\nroot x { 0 = x^2 - p }\nloss x";
    // Any x is a fixed point.
    let free = "param p = 1\nvar x = 1\nfixed_point x { x = x + 0 * p }\nloss x";
    for source in [fold, free] {
        for error in refused_derivative(source, &[f64::from(u8::from(source == free))]) {
            assert!(matches!(error.kind, RunErrorKind::NoDerivative { .. }), "{error}");
            assert_eq!(error.code(), "PAL0542");
            assert_ne!(error.span, palinode_ir::Span::NONE);
        }
    }
    let steep = "param p = 0\nvar x = 0\nroot x { 0 = cbrt(x) - p }\nloss x";
    for error in refused_derivative(steep, &[0.0]) {
        assert_eq!(error.code(), "PAL0546", "{error}");
    }
}

#[test]
fn the_text_keeps_equations_and_their_rules() {
    let program = compiled(COUPLED);
    let printed = text::print(&program);
    let parsed = text::parse(&printed).unwrap_or_else(|errors| panic!("{errors:?}\n{printed}"));
    assert_eq!(text::print(&parsed), printed);
    let inputs = [Datum::real(0.3), Datum::vector(vec![0.7, -0.4])];
    let (a, b) = (gradient(&program, &inputs).unwrap(), gradient(&parsed, &inputs).unwrap());
    assert_eq!(a, b);
    let gradient = passes::simplify(&transform::value_and_grad(&program, &[0, 1]).unwrap());
    let printed = text::print(&gradient);
    assert_eq!(text::print(&text::parse(&printed).unwrap()), printed);
}

#[test]
fn the_layout_of_an_equation() {
    let tidy = pal::format("root x , y by newton tolerance 1e-9 rounds 50{\nlet r=x\n0=r-y[ 1 ]\n}").unwrap();
    assert_eq!(tidy, "root x, y by newton tolerance 1e-9 rounds 50 {\n    let r = x\n    0 = r - y[1]\n}\n");
}

#[test]
fn the_words_of_equations_stay_names() {
    let program = compiled(
        "param root = 2\nfn fixed_point(x) { return x * root }\nlet rounds = fixed_point(root)\nloss l = rounds + root",
    );
    assert_eq!(real(&run(&program, &reals(&[2.0])).unwrap()[0]), 6.0);
}

#[test]
fn the_search_keeps_nothing_for_the_reverse_sweep() {
    // A thousand rounds of Picard, and three: the reverse takes the same memory.
    let source = |factor: f64| {
        format!(
            "param p = 1\nvar x = zeros(50)\nfixed_point x rounds 100000 {{ x = {factor} * x + p }}\nloss l = sum(x)"
        )
    };
    let peak = |factor: f64| {
        let gradient = transform::value_and_grad(&compiled(&source(factor)), &[0]).unwrap();
        let code = Code::new(&passes::simplify(&gradient));
        let (_, stats) = code.run_with_stats(&reals(&[1.0]), &Limits::default()).unwrap();
        stats.peak_bytes
    };
    assert_eq!(peak(0.97), peak(0.1));
}

#[test]
fn predictions_hold_for_equations() {
    let program = compiled(COUPLED);
    let gradient = passes::simplify(&transform::value_and_grad(&program, &[0, 1]).unwrap());
    let inputs = [Datum::real(0.3), Datum::vector(vec![0.7, -0.4])];
    let (_, stats, events) = Code::new(&gradient).run_recorded(&inputs, &Limits::default()).unwrap();
    let predicted = predict_recorded(&gradient, &inputs, 8, &events).unwrap();
    assert_eq!(predicted.peak, stats.peak_bytes as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Random contractions of three numbers against the loop that runs them, by all parameters.
    #[test]
    fn contractions_agree_with_the_unrolled_loop(
        entries in prop::collection::vec(-1.0..1.0f64, 9),
        b in prop::collection::vec(-2.0..2.0f64, 3),
        factor in 0.05..0.25f64,
        search in 0..3usize,
    ) {
        let body = "tanh(A @ x) + 0.3 * sin(b * x) * k + b";
        let implicit = compiled(&format!(
            "param A: [3, 3]\nparam b: [3]\nparam k = 1\nvar x = zeros(3)\nfixed_point x by {} {{ x = {body} }}\nloss l = sum(x * x)",
            SEARCHES[search]
        ));
        let unrolled = compiled(&format!(
            "param A: [3, 3]\nparam b: [3]\nparam k = 1\nvar x = zeros(3)\nvar change = 1.0\nwhile change > 1e-15 {{\n let next = {body}\n change = max(abs(next - x)) / (1 + max(abs(x)))\n x = next\n}}\nfor i in 0..60 {{ x = {body} }}\nloss l = sum(x * x)"
        ));
        let inputs = [
            Datum::Real(Tensor { shape: vec![3, 3], data: entries.iter().map(|a| a * factor).collect() }),
            Datum::vector(b),
            Datum::real(factor),
        ];
        let (found, expected) = (gradient(&implicit, &inputs).unwrap(), gradient(&unrolled, &inputs).unwrap());
        for (a, b) in found.iter().flat_map(list).zip(expected.iter().flat_map(list)) {
            prop_assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{a}, not {b}");
        }
    }
}

/// Near a fold every residual is small and no matrix singular, but the slope is that of wherever the search
/// stopped.
#[test]
fn a_search_that_stops_near_a_fold_has_no_derivative() {
    let of = |source: &str, p: f64| {
        let program = compiled(source);
        let gradient = transform::grad(&program, &[0]).expect("a gradient");
        run(&gradient, &reals(&[p])).map(|found| real(&found[0])).map_err(|error| error.code())
    };
    let square = "param p = 0\nvar x = 1\nroot x { 0 = x * x + p }\nloss x";
    let fourth = "param p = 0\nvar x = 1\nroot x rounds 1000 { 0 = x^4 + p }\nloss x";
    let pair = "param p = 0\nvar x, y = 1, 2\nroot x, y { 0 = x * x + p; 0 = y - x - 1 }\nloss y";
    let creeping =
        "param p = 0\nvar x = 0.5\nfixed_point x tolerance 1e-6 rounds 100000 { x = x - x * x - p }\nloss x";
    for source in [square, fourth, pair, creeping] {
        assert_eq!(of(source, 0.0), Err("PAL0542"), "{source}");
    }
    // A little away from it there is one, however steep.
    for p in [-1e-20, -1e-6, -2.0_f64] {
        for source in [square, pair] {
            let slope = of(source, p).expect("a derivative");
            assert!((slope * 2.0 * (-p).sqrt() + 1.0).abs() < 1e-4, "{source}: {slope}");
        }
    }
}
