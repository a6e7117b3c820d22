//! Strong zero: a zero tangent or cotangent times any partial is zero, in every mode and in every sweep.

use crate::check::Finding;
use crate::leaf::Leaf;
use palinode_core::rules::Select;
use palinode_core::{Differentiable, DoubleDouble, Dual, DualN, Jet, Scalar, Tape};

/// A function with an infinite or undefined partial on a path that contributes nothing.
struct Case {
    name: &'static str,
    at: &'static [f64],
    gradient: &'static [f64],
}

macro_rules! cases {
    (|$x:ident, $constant:ident| $($name:literal at $at:tt gives $gradient:tt: $value:expr;)*) => {
        const CASES: &[Case] = &[$(Case { name: $name, at: &$at, gradient: &$gradient }),*];

        fn run<D: Differentiable<Bool = bool>>(name: &str, $x: &[D]) -> D {
            let $constant = D::from_int;
            match name {
                $($name => $value,)*
                other => unreachable!("no such case: {other}"),
            }
        }
    };
}
cases! { |x, constant|
    "sqrt(relu(x))" at [-1.0] gives [0.0]: x[0].relu().sqrt();
    "ln(relu(x))" at [-1.0] gives [0.0]: x[0].relu().ln();
    "sqrt(abs(x))" at [0.0] gives [0.0]: x[0].abs().sqrt();
    "powf(x, y)" at [0.0, 2.0] gives [0.0, 0.0]: x[0].powf(x[1]);
    "powf(x, 0) + x" at [0.0] gives [1.0]: x[0].powf(constant(0)) + x[0];
    "min(x, sqrt(y))" at [-1.0, 0.0] gives [1.0, 0.0]: x[0].min(x[1].sqrt());
    "rule select(1, x, sqrt(y))" at [3.0, 0.0] gives [1.0, 0.0]: D::ternary(Select {}, constant(1), x[0], x[1].sqrt());
    "rule select(0, sqrt(y), x)" at [3.0, 0.0] gives [1.0, 0.0]: D::ternary(Select {}, constant(0), x[1].sqrt(), x[0]);
    "select(false, ln(x), 2 x)" at [-2.0] gives [2.0]: D::select(false, x[0].ln(), constant(2) * x[0]);
    "clamp(1/x, -1, 1)" at [0.0] gives [0.0]: x[0].recip().clamp(constant(-1), constant(1));
    "strong_mul(relu(x), 1/x) at 0-" at [-0.0] gives [0.0]: x[0].relu().strong_mul(x[0].abs().recip()) * constant(0);
}

/// Runs every case in every mode on leaves of type `S`; forward and reverse must both give the gradient.
pub(crate) fn findings<S: Leaf>() -> Vec<Finding> {
    let mut found = Vec::new();
    let mut note = |place: &str, mode: &'static str, what: String, got: S, expected: f64| {
        if got.peek() != Some(expected) {
            let note = "a zero factor must win over inf and NaN";
            let numbers = [expected, got.wide().hi()];
            found.push(Finding::of::<S>("strong zero", place.into(), mode, what, numbers, note.into()));
        }
    };
    let [zero, inf, nan] = [0.0, f64::INFINITY, f64::NAN].map(S::from_f64);
    for (name, a, b) in [("0 * inf", zero, inf), ("NaN * 0", nan, zero), ("-0 * NaN", -zero, nan)] {
        note(name, "strong_mul", "product".into(), a.strong_mul(b), 0.0);
        note(name, "strong_scale", "lane 1".into(), S::strong_scale(a, [S::one(), b])[1], 0.0);
        note(name, "strong_add", "lane 1".into(), S::strong_add([S::one(); 2], a, [S::one(), b])[1], 1.0);
        let combined = S::strong_combine(a, [S::one(), b], S::one(), [S::one(); 2]);
        note(name, "strong_combine", "lane 1".into(), combined[1], 1.0);
        let of_product = S::strong_combine_of_product(a, a, [S::one(), b], S::one(), [S::one(); 2]);
        note(name, "strong_combine_of_product", "lane 1".into(), of_product[1], 1.0);
        note(name, "strong_add_to", "sum".into(), a.strong_add_to(b, S::one()), 1.0);
    }
    for &Case { name, at, gradient } in CASES {
        let args: Vec<S> = at.iter().map(|&v| S::from_f64(v)).collect();
        let n = args.len();
        let seed = |k: usize, i: usize| if k == i { S::one() } else { S::zero() };
        let lanes = |k: usize| [seed(k, 0), seed(k, 1)];
        let dual_n: Vec<DualN<S, 2>> = (0..n).map(|k| DualN::new(args[k], lanes(k))).collect();
        let dual_n = run(name, &dual_n);

        let mut tape = Tape::new();
        let mut record = tape.record(&args, |x| run(name, x)).expect("it fits");
        let reverse = record.reverse(&[S::one()]).expect("lengths").to_vec();
        let many = record.reverse_many(&[[S::zero(), S::one(), S::zero()]]).expect("lengths");
        let lane_seeds: Vec<[S; 2]> = (0..n).map(lanes).collect();
        let forward_many = record.forward_many(&lane_seeds).expect("lengths");
        let mut traced = Tape::traced();
        let mut traced = traced.record(&args, |x| run(name, x)).expect("it fits");
        let traced_reverse = traced.reverse(&[S::one()]).expect("lengths").to_vec();
        // A second output that is not asked for must not leak its infinite partials into the first.
        let mut pair = Tape::traced();
        let mut pair = pair.record(&args, |x| [x[0] + x[0], x[0].sqrt(), x[0].abs().ln()]).expect("it fits");
        let unasked = pair.reverse(&[S::one(), S::zero(), S::zero()]).expect("lengths")[0];
        note(name, "unasked outputs", "dx".into(), unasked, 2.0);
        let lanes_of_pair = pair
            .reverse_many(&[[S::one(), S::one()], [S::zero(), S::zero()], [S::zero(), S::zero()]])
            .expect("lengths");
        note(name, "unasked outputs, lanes", "dx".into(), lanes_of_pair[0][1], 2.0);

        for i in 0..n {
            let what = || format!("d{i}");
            let dual: Vec<Dual<S>> = (0..n).map(|k| Dual::new(args[k], seed(k, i))).collect();
            note(name, "dual", what(), run(name, &dual).tangent, gradient[i]);
            note(name, "dual_n", what(), dual_n.tangents[i], gradient[i]);
            let jet: Vec<Jet<S, 2>> = (0..n).map(|k| Jet::new(args[k], [seed(k, i), S::zero()])).collect();
            note(name, "jet", what(), run(name, &jet).coefficient(1), gradient[i]);
            note(name, "reverse", what(), reverse[i], gradient[i]);
            note(name, "reverse_many", what(), many[i][1], gradient[i]);
            note(name, "reverse_many, idle lane", what(), many[i][0], 0.0);
            note(name, "traced reverse", what(), traced_reverse[i], gradient[i]);
            note(name, "forward_many", what(), forward_many[0][i], gradient[i]);
            let direction: Vec<S> = (0..n).map(|k| seed(k, i)).collect();
            note(name, "forward", what(), record.forward(&direction).expect("lengths")[0], gradient[i]);
            note(
                name,
                "traced forward",
                what(),
                traced.forward(&direction).expect("lengths")[0],
                gradient[i],
            );
        }
        let idle = vec![S::zero(); n];
        note(name, "forward along 0", "tangent".into(), traced.forward(&idle).expect("lengths")[0], 0.0);
        let idle_reverse = traced.reverse(&[S::zero()]).expect("lengths")[0];
        note(name, "reverse of 0", "cotangent".into(), idle_reverse, 0.0);
    }
    found
}

#[track_caller]
fn none(found: &[Finding]) {
    let shown: Vec<String> = found.iter().map(Finding::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn a_zero_wins_everywhere() {
    none(&findings::<f32>());
    none(&findings::<f64>());
    none(&findings::<DoubleDouble>());
}

#[test]
fn a_zero_wins_in_nested_numbers() {
    let mut tape = Tape::new();
    let mut record = tape.record(&[Dual::new(-1.0_f64, 1.0)], |x| x[0].relu().sqrt()).expect("it fits");
    let g = record.reverse(&[Dual::one()]).expect("lengths")[0];
    assert_eq!((g.value, g.tangent), (0.0, 0.0));
    let x = Dual::new(Dual::new(-1.0_f64, 1.0), Dual::new(1.0, 0.0));
    let z = x.relu().sqrt();
    assert_eq!((z.tangent.value, z.tangent.tangent), (0.0, 0.0));
    let hessian = palinode_core::hessian(|x| x[0].relu().sqrt() + x[0] * x[0], &[-1.0]).expect("finite");
    assert_eq!(hessian, [[2.0]]);
}

/// `DualN` tests the product to know about both factors; `Dual` tests each product of the rule. Powers of
/// two, so that a fused sum of products has the bits of a plain one; none whose product overflows, where a
/// fused sum knows better.
#[test]
fn a_product_of_lanes_is_the_product_of_duals_for_every_kind_of_factor() {
    let kinds = [0.0, -0.0, 1.0, -2.0, 2f64.powi(500), 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for p in kinds {
        for q in kinds {
            for a in kinds {
                let lanes = (DualN::new(p, [a; 9]) * DualN::new(q, kinds)).tangents;
                for (lane, b) in lanes.into_iter().zip(kinds) {
                    let expected = p.strong_mul(b) + q.strong_mul(a);
                    let same = lane == expected || (lane.is_nan() && expected.is_nan());
                    assert!(same, "({p:e}, {a:e}) * ({q:e}, {b:e}): {lane:e} instead of {expected:e}");
                }
            }
        }
    }
}
