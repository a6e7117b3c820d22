//! Taylor jets: every unary row to order 8, against closed forms, against the function itself and against
//! nesting.

use palinode_core::rules::{Domain, Row};
use palinode_core::{DoubleDouble, Dual, Jet, Scalar, derivatives};

const ORDER: usize = 8;

/// Points inside a domain, well away from its ends and from kinks, so that the Taylor series converges beyond
/// 1/16.
fn points(op: Row) -> &'static [f64] {
    match op.domains()[0] {
        Domain::Reals => &[-1.3, -0.4, 0.3, 0.8, 2.2],
        Domain::Positive | Domain::NonNegative | Domain::GammaFinite => &[0.7, 1.9, 5.3],
        Domain::NonZero => &[-1.7, 0.6, 2.4],
        Domain::UnitClosed | Domain::UnitOpen => &[-0.45, 0.15, 0.55],
        Domain::AtLeastOne => &[1.6, 2.9],
        Domain::AboveMinusOne => &[-0.4, 0.3, 3.2],
    }
}

/// Every unary row with its parameters, at its points.
fn unary_ops() -> impl Iterator<Item = (Row, i32, f64)> {
    let parameters = |op: Row| match op {
        Row::Powi => vec![-2, -1, 0, 1, 2, 3, 7],
        Row::Polygamma => vec![0, 1, 3],
        _ => vec![0],
    };
    let unary = Row::ALL.iter().copied().filter(|op| op.arity() == 1);
    let with_parameters = unary.flat_map(move |op| parameters(op).into_iter().map(move |p| (op, p)));
    with_parameters.flat_map(|(op, p)| points(op).iter().map(move |&x| (op, p, x)))
}

fn coefficients<S: Scalar>(jet: &Jet<S, ORDER>) -> Vec<S> {
    (0..=ORDER).map(|k| jet.coefficient(k)).collect()
}

#[test]
fn the_series_is_the_function() {
    for (op, parameter, x) in unary_ops() {
        let x = DoubleDouble::from(x);
        let series = coefficients(&op.value(parameter, &[Jet::<DoubleDouble, ORDER>::variable(x)]));
        let largest = series.iter().map(|c| c.hi().abs()).fold(0.0, f64::max);
        for h in [2f64.powi(-8), -(2f64.powi(-8))] {
            let step = DoubleDouble::from(h);
            let sum = series.iter().rev().fold(DoubleDouble::from(0), |sum, &c| sum * step + c);
            let rest = (sum - op.value(parameter, &[x + step])).abs().hi();
            // The next term, with a coefficient that the radius of convergence keeps within 32 of the
            // largest.
            let allowed = 32.0 * largest * h.abs().powi(ORDER as i32 + 1) + 1e-30 * largest;
            let name = op.name();
            assert!(
                rest <= allowed,
                "{name}({parameter}) at {x:?}: the series misses {rest:e}, {allowed:e} allowed"
            );
        }
    }
}

#[test]
fn f64_orders_agree_with_double_double() {
    for (op, parameter, x) in unary_ops() {
        let double = coefficients(&op.value(parameter, &[Jet::<f64, ORDER>::variable(x)]));
        let precise = coefficients(&op.value(parameter, &[Jet::<DoubleDouble, ORDER>::variable(x.into())]));
        let largest = precise.iter().map(|c| c.hi().abs()).fold(0.0, f64::max);
        for k in 0..=ORDER {
            // Each order sums k products of the orders below it.
            let allowed = (k as f64 + 1.0) * 64.0 * f64::EPSILON * largest;
            let (a, b) = (double[k], precise[k].hi());
            assert!(
                (a - b).abs() <= allowed,
                "{}({parameter}) at {x}: coefficient {k} is {a:e}, {b:e} expected",
                op.name()
            );
        }
    }
}

#[test]
fn order_three_agrees_with_duals_nested_three_deep() {
    type Three = Dual<Dual<Dual<DoubleDouble>>>;
    for (op, parameter, x) in unary_ops() {
        let one = DoubleDouble::from(1);
        let inner = Dual::new(Dual::new(DoubleDouble::from(x), one), Dual::lift(one));
        let nested: Three = Dual::new(inner, Dual::lift(Dual::lift(one)));
        let third = op.value(parameter, &[nested]).tangent.tangent.tangent;
        let jet = op.value(parameter, &[Jet::<DoubleDouble, 3>::variable(x.into())]).derivatives();
        let size = jet.iter().map(|d| d.hi().abs()).fold(1.0, f64::max);
        let difference = (third - jet[3]).abs().hi();
        assert!(difference <= 1e-28 * size, "{}({parameter}) at {x}: {third:?} and {:?}", op.name(), jet[3]);
    }
}

fn close(name: &str, found: &[f64], expected: impl Fn(usize) -> f64, ulps: f64) {
    for (k, &found) in found.iter().enumerate() {
        let expected = expected(k);
        let allowed = ulps * f64::EPSILON * expected.abs();
        assert!(
            (found - expected).abs() <= allowed,
            "{name}: derivative {k} is {found:e}, {expected:e} expected"
        );
    }
}

fn factorial(k: usize) -> f64 {
    (1..=k).map(|j| j as f64).product()
}

#[test]
fn derivatives_to_order_ten_are_the_closed_forms() {
    const K: usize = 10;
    let x = 0.75_f64;
    let quarter_turns = |k: usize| [x.sin(), x.cos(), -x.sin(), -x.cos()][k % 4];
    close("sin", &derivatives::<f64, K>(|x| x.sin(), x).unwrap(), quarter_turns, 32.0);
    close("cos", &derivatives::<f64, K>(|x| x.cos(), x).unwrap(), |k| quarter_turns(k + 1), 32.0);
    close("exp", &derivatives::<f64, K>(|x| x.exp(), x).unwrap(), |_| x.exp(), 32.0);
    let geometric = |k: usize| factorial(k) / (1.0 - x).powi(k as i32 + 1);
    close("1 / (1 - x)", &derivatives::<f64, K>(|x| 1.0 / (1.0 - x), x).unwrap(), geometric, 32.0);
    let logarithm = |k: usize| if k == 0 { x.ln() } else { -factorial(k - 1) * (-1.0 / x).powi(k as i32) };
    close("ln", &derivatives::<f64, K>(|x| x.ln(), x).unwrap(), logarithm, 32.0);
    let gamma = |k: usize| if k == 0 { Scalar::lgamma(2.5) } else { 2.5.polygamma(k as u32 - 1) };
    close("lgamma", &derivatives::<f64, K>(|x| x.lgamma(), 2.5).unwrap(), gamma, 64.0);
    let power = |k: usize| (0..k).map(|j| 3.5 - j as f64).product::<f64>() * 2f64.powf(3.5 - k as f64);
    close("powf", &derivatives::<f64, K>(|x| x.powf(Jet::lift(3.5)), 2.0).unwrap(), power, 64.0);
    let cube = |k: usize| [8.0, 12.0, 12.0, 6.0].get(k).copied().unwrap_or(0.0);
    close("powi", &derivatives::<f64, K>(|x| x.powi(3), 2.0).unwrap(), cube, 0.0);
    close("x * x * x", &derivatives::<f64, K>(|x| x * x * x, 2.0).unwrap(), cube, 0.0);
}

#[test]
fn jets_of_two_arguments_compose() {
    // x = 1 + t, y = 2 - t: known series of x y, x / y and hypot.
    let curve = |value: f64, slope: f64| Jet::<f64, 4>::new(value, [slope, 0.0, 0.0, 0.0]);
    let (x, y) = (curve(1.0, 1.0), curve(2.0, -1.0));
    let all = |jet: Jet<f64, 4>| -> Vec<f64> { (0..=4).map(|k| jet.coefficient(k)).collect() };
    assert_eq!(all(x * y), [2.0, 1.0, -1.0, 0.0, 0.0]);
    assert_eq!(all(x / y), [0.5, 0.75, 0.375, 0.1875, 0.09375]);
    let squared = all(x.hypot(y) * x.hypot(y));
    for (found, expected) in squared.iter().zip([5.0, -2.0, 2.0, 0.0, 0.0]) {
        assert!((found - expected).abs() <= 32.0 * f64::EPSILON, "{squared:?}");
    }
    let through_logarithm = all(x.powf(y));
    let composed = all((y * x.ln()).exp());
    for (found, expected) in through_logarithm.iter().zip(&composed) {
        assert!((found - expected).abs() <= 32.0 * f64::EPSILON, "{through_logarithm:?} and {composed:?}");
    }
}
