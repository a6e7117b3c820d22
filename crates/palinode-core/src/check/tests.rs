//! Verdicts about known derivatives and planted mistakes.

use super::*;

/// A function with its path of decisions, and its slope.
struct By<F, D>(F, D);

impl<F: Fn(f64) -> (f64, u64), D: Fn(f64) -> Option<f64>> Line for By<F, D> {
    fn sample(&mut self, distance: f64) -> Option<Sample> {
        let (value, path) = self.0(distance);
        Some(Sample { value, path }).filter(|_| value.is_finite())
    }

    fn slope(&mut self, distance: f64) -> Option<f64> {
        self.1(distance)
    }
}

/// Without decisions, and by differences alone.
fn at(f: impl Fn(f64) -> f64, x: f64, exact: f64) -> Verdict {
    along(|x| (f(x), 0), x, exact).verdict
}

/// With a path of decisions.
fn along(f: impl Fn(f64) -> (f64, u64), x: f64, exact: f64) -> Comparison {
    let reach = if x == 0.0 { 1.0 } else { x.abs() };
    compare(exact, &mut By(|h| f(x + h), |_| None), reach, 0.0)
}

/// A function and its slope on a side of 0.
type Part = (fn(f64) -> f64, fn(f64) -> f64);

/// At 0, where the right side begins and a decision is made.
fn two(left: Part, right: Part, exact: f64) -> Verdict {
    let side = |x: f64| if x < 0.0 { left } else { right };
    let value = |x: f64| (side(x).0(x), u64::from(x < 0.0));
    compare(exact, &mut By(value, |x| Some(side(x).1(x))), 1.0, 0.0).verdict
}

#[test]
fn jumps_and_kinks_at_decisions_are_told_apart() {
    let parabola: Part = (|x| x * x + 3.0 * x, |x| 2.0 * x + 3.0);
    let sine: Part = (f64::sin, f64::cos);
    let higher: Part = (|x| x.sin() + 1.0, f64::cos);
    assert!(
        matches!(two(parabola, higher, 1.0), Verdict::Jump { left, right, has_kink: false } if left.abs() < 1e-9 && (right - 1.0).abs() < 1e-9)
    );
    assert!(
        matches!(two(parabola, sine, 1.0), Verdict::Kink { left, right } if (left - 3.0).abs() < 1e-6 && (right - 1.0).abs() < 1e-6)
    );
    let cubic: Part = (|x| x - x * x * x, |x| 1.0 - 3.0 * x * x);
    assert!(matches!(two(sine, cubic, 1.0), Verdict::Agrees { .. }));
    assert!(matches!(two((|x| x + 1e-7, |_| 1.0), (|x| x, |_| 1.0), 1.0), Verdict::Jump { .. }));
    assert!(matches!(two((|_| 2.0, |_| 0.0), (|_| 5.0, |_| 0.0), 0.0), Verdict::Jump { .. }));
    // The point took the decisions of the right side.
    assert_eq!(two(parabola, higher, 3.0), Verdict::Disagrees);
    assert_eq!(two(parabola, sine, 3.0), Verdict::Disagrees);
    assert_eq!(two(parabola, sine, 5.0), Verdict::Disagrees);
}

/// A function, its slope, and its derivative at 0 by the conventions of the rule table (0 for `relu` and
/// `abs`): with kinks of rules, jumps, and both.
type Bent = (fn(f64) -> (f64, u64), fn(f64) -> f64);

fn relu(x: f64) -> f64 {
    x.max(0.0)
}

fn step_up(x: f64) -> f64 {
    if x > 0.0 { 1.0 } else { 0.0 }
}

/// The sign, 0 at 0.
fn side(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// The path of `x < 0` and of `x > 0`, which is neither at 0.
fn tie(x: f64) -> u64 {
    (side(x) + 1.0) as u64
}

const BENT: &[Bent] = &[
    // Kinks of rules; the slopes on both sides still change.
    (|x| (3.0 * relu(x) + x.cos(), 0), |x| 3.0 * step_up(x) - x.sin()),
    (|x| (3.0 * relu(x) - x.cos() + x, 0), |x| 3.0 * step_up(x) + x.sin() + 1.0),
    (|x| (x.abs() + (2.0 * x).exp(), 0), |x| side(x) + 2.0 * (2.0 * x).exp()),
    // One that is small beside the slope.
    (|x| (1e5 * x + 3.0 * relu(x), 0), |x| 1e5 + 3.0 * step_up(x)),
    // Kinks of rules and a decision elsewhere within reach.
    (|x| (x.abs() + x.exp() + (x + 0.9).floor(), (x + 0.9).floor() as u64), |x| side(x) + x.exp()),
    // A kink and a jump at one point.
    (|x| (relu(x) + x.floor() + x * x, (x.floor() + 9.0) as u64), |x| step_up(x) + 2.0 * x),
    (|x| (x.sin() - 2.0 * relu(x) + x.floor(), (x.floor() + 9.0) as u64), |x| x.cos() - 2.0 * step_up(x)),
    (|x| (x.abs() + 5.0 * step_up(x), tie(x)), side),
    (|x| (x.abs() + step_up(x) * (10.0 * x + 5.0), tie(x)), |x| side(x) + 10.0 * step_up(x)),
    // A slope that vanishes on its side like a cube.
    (
        |x| if x < 0.0 { (2.0 + x, 1) } else { ((x * x).cos(), 2) },
        |x| if x < 0.0 { 1.0 } else { -2.0 * x * (x * x).sin() },
    ),
    // A kink of a rule and one of a decision: 0 lies outside of the slopes 3 and 7, and is right.
    (|x| (10.0 * step_up(x) * x - 3.0 * x.abs(), tie(x)), |x| 10.0 * step_up(x) - 3.0 * side(x)),
];

#[test]
fn at_corners_right_derivatives_are_not_called_wrong_nor_wrong_ones_right() {
    for (at, &(f, slope)) in BENT.iter().enumerate() {
        let exact = slope(0.0);
        let right = compare(exact, &mut By(f, |x| Some(slope(x))), 1.0, 0.0);
        assert!(matches!(right.verdict, Verdict::Kink { .. } | Verdict::Jump { .. }), "{at}: {right:?}");
        for by in [0.01, -0.01, 1.0, -2.0] {
            // A gradient that is off, one of rules that are off by a factor, and one of rules that lack a
            // term.
            let more = by * slope(0.1).abs().max(slope(-0.1).abs());
            let off = compare(exact + more, &mut By(f, |x| Some(slope(x))), 1.0, 0.0);
            let factor = compare((1.0 + by) * exact, &mut By(f, |x| Some((1.0 + by) * slope(x))), 1.0, 0.0);
            let term = compare(exact + more, &mut By(f, |x| Some(more + slope(x))), 1.0, 0.0);
            // A factor of nothing is no mistake at the point.
            let factor = if exact == 0.0 && at == BENT.len() - 2 { off } else { factor };
            let found = [off, factor, term].map(|wrong| wrong.verdict);
            assert_eq!(found, [Verdict::Disagrees; 3], "{at} {by}");
        }
    }
}

#[test]
fn steps_across_decisions_do_not_count() {
    for distance in [0.3, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10] {
        for sign in [1.0, -1.0] {
            let x: f64 = sign * distance;
            let exact = if sign > 0.0 { x.cos() } else { 2.0 * x + 3.0 };
            // The reach is 1, not the distance.
            let f = |t: f64| {
                if x + t < 0.0 { ((x + t) * (x + t + 3.0), 1) } else { ((x + t).sin() + 1.0, 2) }
            };
            let mut g = By(f, |_| None);
            let found = compare(exact, &mut g, 1.0, 0.0);
            assert!(
                matches!(found.verdict, Verdict::Agrees { .. } | Verdict::Within { .. }),
                "{x}: {found:?}"
            );
            let wrong = compare(1.01 * exact, &mut g, 1.0, 0.0);
            assert_eq!(wrong.verdict, Verdict::Disagrees, "{x}: {wrong:?}");
        }
    }
}

#[test]
fn what_holds_only_at_the_point_cannot_be_checked() {
    let f = |x: f64| if x == 0.0 { (0.0, 1) } else { (x.sin(), 2) };
    assert_eq!(along(f, 0.0, 0.0).verdict, Verdict::Crossed);
    assert!(matches!(along(f, 0.0, 1.0).verdict, Verdict::Agrees { .. }));
}

#[test]
fn a_slope_across_decisions_is_reported() {
    // A search by halving: between decisions it is constant, across them it is the square root.
    let halving = |a: f64| {
        let (mut low, mut high, mut path) = (0.0, 4.0, 1_u64);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            let below = middle * middle < a;
            path = 2 * path + u64::from(below);
            if below { low = middle } else { high = middle }
        }
        (low, path)
    };
    let found = along(halving, 2.0, 0.0);
    assert!(!matches!(found.verdict, Verdict::Disagrees), "{found:?}");
    assert!((found.across.unwrap() - 0.5 / 2.0_f64.sqrt()).abs() < 1e-3, "{found:?}");
}

#[test]
fn smooth_functions_agree_to_many_digits() {
    let good = |verdict: Verdict| matches!(verdict, Verdict::Agrees { digits } if digits >= 9);
    assert!(good(at(f64::sin, 0.7, 0.7_f64.cos())));
    assert!(good(at(f64::exp, 3.0, 3.0_f64.exp())));
    assert!(good(at(|x| x.powi(5), 1e3, 5e12)));
    assert!(good(at(|x| 1.0 / x, 1e-3, -1e6)));
    assert!(good(at(|x| (40.0 * x).sin(), 1.0, 40.0 * 40.0_f64.cos())));
    assert!(good(at(|x| x.ln(), 1e-8, 1e8)));
}

#[test]
fn domains_may_end_close_by() {
    assert!(matches!(at(|x| (1.0 - x).sqrt(), 0.999, -0.5 / 0.001_f64.sqrt()), Verdict::Agrees { .. }));
    assert_eq!(at(|x| if x == 1.0 { 1.0 } else { f64::NAN }, 1.0, 0.0), Verdict::Unknown);
    let narrow = |x: f64| if x.abs() < 1e-7 { 3.0 * x } else { f64::NAN };
    assert!(matches!(at(narrow, 0.0, 3.0), Verdict::Agrees { .. }));
    assert!(matches!(at(|x| (1e5 * x).sin(), 0.0, 1e5), Verdict::Agrees { .. }));
}

#[test]
fn chaos_is_looked_at_closely() {
    // -90680.82 by the tangent of the loop in high precision.
    let logistic = |a: f64| (0..50).fold(0.3, |x, _| a * x * (1.0 - x));
    let tangent = |a: f64| {
        (0..50).fold((0.3, 0.0), |(x, d): (f64, f64), _| {
            (a * x * (1.0 - x), x * (1.0 - x) + a * (1.0 - 2.0 * x) * d)
        })
    };
    let exact = tangent(3.7).1;
    assert!((exact + 90_680.82).abs() < 0.1, "{exact}");
    let mut line = By(|h| (logistic(3.7 + h), 0), |h| Some(tangent(3.7 + h).1));
    let right = compare(exact, &mut line, 3.7, 0.0);
    // The rounding of the loop itself looks like a kink of half a per cent.
    assert!(!matches!(right.verdict, Verdict::Disagrees | Verdict::Unknown), "{right:?}");
    assert_eq!(compare(0.99 * exact, &mut line, 3.7, 0.0).verdict, Verdict::Disagrees);
}

#[test]
fn a_wrong_derivative_disagrees() {
    assert_eq!(at(f64::sin, 0.7, -0.7_f64.cos()), Verdict::Disagrees);
    assert_eq!(at(f64::sin, 0.7, 1.000_1 * 0.7_f64.cos()), Verdict::Disagrees);
    assert_eq!(at(|x| x * x, 0.0, 0.01), Verdict::Disagrees);
    assert_eq!(at(|x| x * x + 1e6, 1.0, 2.1), Verdict::Disagrees);
    // By differences alone nobody knows which number several rules choose at a kink.
    assert_eq!(at(f64::abs, 0.0, 1.5), Verdict::Crossed);
    let mut line = By(|h: f64| (h.abs(), 0), |h: f64| Some(if h == 0.0 { 0.0 } else { h.signum() }));
    assert_eq!(compare(1.5, &mut line, 1.0, 0.0).verdict, Verdict::Disagrees);
    assert_eq!(at(f64::sin, 0.7, f64::NAN), Verdict::Disagrees);
}

#[test]
fn zero_derivatives_agree() {
    assert!(matches!(at(|_| 3.0, 2.0, 0.0), Verdict::Within { digits: None }));
    assert!(matches!(at(|x| (x - 2.0).powi(2) + 7.0, 2.0, 0.0), Verdict::Within { digits: None }));
    assert!(matches!(at(|_| 3.0, 2.0, 1e-300), Verdict::Within { digits: None }));
}

#[test]
fn kinks_are_seen() {
    assert!(matches!(at(f64::abs, 0.0, 0.0), Verdict::Kink { .. }), "{:?}", at(f64::abs, 0.0, 0.0));
    assert!(matches!(at(|x| x.max(2.0 * x), 0.0, 1.0), Verdict::Kink { .. }));
    assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.0, 3.0), Verdict::Kink { .. }));
    assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.0, 2.0), Verdict::Kink { .. }));
    assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.01, 3.02), Verdict::Agrees { .. }));
}

/// `x^3`, with a rule that is wrong.
#[derive(Clone, Copy)]
struct WrongCube;

impl crate::rules::Unary for WrongCube {
    const NAME: &'static str = "wrong cube";

    fn value<S: palinode_num::Scalar>(self, x: S) -> S {
        x * x * x
    }

    fn dx<S: palinode_num::Scalar>(self, x: S, _: S) -> S {
        x * x
    }
}

/// The product of two numbers, whose rule forgets the second.
struct HalfProduct(f64);

impl crate::CustomRule<f64> for HalfProduct {
    fn name(&self) -> &'static str {
        "half a product"
    }

    fn reverse(&self, outputs: &[f64], inputs: &mut [f64]) -> Result<(), Error> {
        inputs[0] += outputs[0] * self.0;
        Ok(())
    }
}

#[test]
fn planted_rules_are_found() {
    use crate::Differentiable;
    let wrong = check_gradient(|x| Var::unary(WrongCube, x[0]) + x[1].exp(), &[1.5, 0.3]).unwrap();
    assert_eq!(wrong.disagreement(), Some(0), "{wrong}");
    assert!(matches!(wrong.inputs[1].verdict, Verdict::Agrees { digits: 9.. }), "{wrong}");
    let product = |x: &[Var<f64>]| {
        let [a, b] = [x[0].value(), x[1].value()];
        crate::custom(&[x[0], x[1]], &[a * b], HalfProduct(b))[0]
    };
    let wrong = check_gradient(product, &[2.0, 5.0]).unwrap();
    assert_eq!(wrong.disagreement(), Some(1), "{wrong}");
}

#[test]
fn right_gradients_of_closures_agree() {
    // Decisions close by, a loop that ends by data, a branch at the point, a domain that ends.
    let newton = |x: &[Var<f64>]| {
        let mut r = x[0];
        while (r * r - x[0]).abs() > 1e-12 * x[0] {
            r -= (r * r - x[0]) / (2.0 * r);
        }
        if x[1] < 1.0 + 1e-7 { r * x[1] } else { r + x[2].sqrt() }
    };
    for x in [[2.0, 1.0, 1e-3], [2.0, 1.1, 1e-3], [1e6, 0.5, 1.0]] {
        let found = check_gradient(newton, &x).unwrap();
        let is_good =
            |one: &Comparison| matches!(one.verdict, Verdict::Agrees { .. } | Verdict::Within { .. });
        assert!(found.inputs.iter().all(is_good), "{found}");
    }
    assert_eq!(check_gradient(|x| x[0].sqrt(), &[0.0]).unwrap_err().code(), "PAL0104");
}
