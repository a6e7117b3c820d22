//! Nested differentiation: perturbations of different levels are never confused, whatever the modes.
//!
//! Each case is worked out by hand and run through every pairing of forward (`Dual`) and reverse (`Var`).

use palinode::drivers::hvp;
use palinode::{Dual, Scalar, Var, grad, hessian};

/// `d f / d x` by forward mode.
fn forward<S: Scalar>(mut f: impl FnMut(Dual<S>) -> Dual<S>, x: S) -> S {
    f(Dual::new(x, S::one())).tangent
}

/// `d f / d x` by reverse mode. Inside another level the point may be a tape's own number.
fn reverse<S: Scalar<Bool = bool>>(mut f: impl FnMut(Var<S>) -> Var<S>, x: S) -> S {
    grad(|x| f(x[0]), &[x]).unwrap()[0]
}

/// Runs `$body` for each pairing: `$outer` and `$inner` stand for [`forward`] or [`reverse`].
macro_rules! every_pairing {
    ($outer:ident, $inner:ident => $body:expr, gives $expected:expr) => {{
        every_pairing!(@ forward forward $outer $inner $body, $expected);
        every_pairing!(@ forward reverse $outer $inner $body, $expected);
        every_pairing!(@ reverse forward $outer $inner $body, $expected);
        every_pairing!(@ reverse reverse $outer $inner $body, $expected);
    }};
    (@ $o:ident $i:ident $outer:ident $inner:ident $body:expr, $expected:expr) => {{
        macro_rules! $outer { ($f:expr, $x:expr) => { $o($f, $x) }; }
        macro_rules! $inner { ($f:expr, $x:expr) => { $i($f, $x) }; }
        let (found, expected): (f64, f64) = ($body, $expected);
        let error = (found - expected).abs();
        assert!(error <= 4.0 * f64::EPSILON * expected.abs(), "{} over {}: {found}, expected {expected}", stringify!($o), stringify!($i));
    }};
}

#[test]
fn the_perturbation_confusion_example() {
    // d/dx [ x * d/dy (x + y) at y = 1 ] = d/dx x = 1
    every_pairing!(outer, inner => outer!(|x| x * inner!(|y| y + at(x, y), one(x)), 1.0), gives 1.0);
}

/// The captured outer number as a constant of the level of `_level`.
fn at<S, Inner: Lifts<S>>(x: S, _level: Inner) -> Inner {
    Inner::lifted(x)
}

/// `lift`, whatever the number.
trait Lifts<S> {
    fn lifted(x: S) -> Self;
}

impl<S: Scalar> Lifts<S> for Dual<S> {
    fn lifted(x: S) -> Self {
        Dual::lift(x)
    }
}

impl<S: Scalar<Bool = bool>> Lifts<S> for Var<S> {
    fn lifted(x: S) -> Self {
        Var::lift(x)
    }
}

/// One, at the level of `x`.
fn one<S: Scalar>(_: S) -> S {
    S::one()
}

#[test]
fn an_inner_gradient_that_captures_the_outer_variable() {
    // d/dy (x y y) = 2 x y, at y = x: 2 x^2; times x: 2 x^3; its derivative: 6 x^2
    every_pairing!(outer, inner => outer!(|x| x * inner!(|y| at(x, y) * y * y, x), 2.0), gives 24.0);
}

#[test]
fn an_inner_function_that_ignores_its_variable() {
    // d/dy (x x) = 0, so x * 0 has the derivative 0
    every_pairing!(outer, inner => outer!(|x| x * inner!(|y| at(x * x, y) + y * 0.0, x), 3.0), gives 0.0);
}

#[test]
fn functions_of_both_levels() {
    // d/dy e^(x y) = x e^(x y), at y = x^2: x e^(x^3); its derivative: (1 + 3 x^3) e^(x^3)
    let x: f64 = 0.7;
    let cube = x.powi(3);
    let expected = (1.0 + 3.0 * cube) * cube.exp();
    every_pairing!(outer, inner => outer!(|x| inner!(|y| (y * at(x, y)).exp(), x * x), x), gives expected);

    // d/dy sin(y) at y = x gives cos(x), and then -sin(x): plain second derivatives
    every_pairing!(outer, inner => outer!(|x| inner!(|y| y.sin(), x), x), gives -x.sin());
}

#[test]
fn a_decision_by_the_outer_variable_inside_the_inner_function() {
    // On x > 1: d/dy (x y^2) = 2 x y, at y = 3: 6 x; its derivative: 6
    every_pairing!(outer, inner => outer!(|x| {
        inner!(|y| if x > 1.0 { at(x, y) * y * y } else { y }, one(x) * 3.0)
    }, 2.0), gives 6.0);
}

/// Three levels: all eight triples.
#[test]
fn three_levels() {
    // d/dz (x y z) = x y, times y: x y^2; d/dy: 2 x y, at y = x: 2 x^2, times x: 2 x^3; d/dx: 6 x^2
    macro_rules! triple {
        ($($a:ident $b:ident $c:ident),*) => {$(
            let found = $a(|x| {
                x * $b(|y| y * $c(|z| z * at(y * at(x, y), z), y), x)
            }, 2.0);
            assert_eq!(found, 24.0, "{} {} {}", stringify!($a), stringify!($b), stringify!($c));
        )*};
    }
    triple! {
        forward forward forward, forward forward reverse, forward reverse forward, forward reverse reverse,
        reverse forward forward, reverse forward reverse, reverse reverse forward, reverse reverse reverse
    }
}

#[test]
fn second_order_drivers_agree() {
    // f = x^2 y + sin(x y)
    let (x, y): (f64, f64) = (0.8, -1.3);
    let (s, c) = (x * y).sin_cos();
    let expected = [[2.0 * y - y * y * s, 2.0 * x + c - x * y * s], [2.0 * x + c - x * y * s, -x * x * s]];
    let rows = hessian(|v| v[0] * v[0] * v[1] + (v[0] * v[1]).sin(), &[x, y]).unwrap();
    let column = hvp(|v| v[0] * v[0] * v[1] + (v[0] * v[1]).sin(), &[x, y], &[0.0, 1.0]).unwrap().2;
    for i in 0..2 {
        for j in 0..2 {
            assert!((rows[i][j] - expected[i][j]).abs() < 4.0 * f64::EPSILON);
        }
        assert!((column[i] - expected[i][1]).abs() < 4.0 * f64::EPSILON);
    }
}
