//! Samples in lanes have the answers of one by one, bit by bit: under every driver, where they decide alike
//! and where they do not, and where something is refused.

use palinode_core::rules::Row;
use palinode_core::{
    Array, Differentiable, Dual, DualN, Error, Jet, Lanes, Passive, Real, Samples, Scalar, Var, decision,
    derivatives, grad, hessian, hvp, in_lanes, jacobian, jvp, sparse_hessian, value_and_grad,
    value_and_grad_batch, vjp,
};
use std::cell::Cell;

/// An answer to be compared: numbers by their bits (which NaN a NaN is, is not said), errors by their words.
fn shown(answer: Result<Vec<f64>, Error>) -> Result<Vec<u64>, String> {
    let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    answer.map(|numbers| numbers.into_iter().map(bits).collect()).map_err(|error| error.to_string())
}

fn ones<S: Scalar>(x: &[S]) -> Vec<S> {
    (0..x.len()).map(|i| S::from_int(1 - (i % 3) as i32)).collect()
}

fn flat<S>(rows: Vec<Vec<S>>) -> Vec<S> {
    rows.into_iter().flatten().collect()
}

/// The functions: one of them by its name, so that drivers are compiled once for all of them.
macro_rules! functions {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug)]
        #[expect(non_camel_case_types, reason = "they are names of functions")]
        enum Function {
            $($name,)*
        }

        impl Function {
            fn of<S: Real>(self, x: &[S]) -> S {
                match self {
                    $(Self::$name => $name(x),)*
                }
            }

            const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

functions! { smooth kinks branches halving least lookup short_cuts kinds sums zeros }

/// Compares a driver, as an answer at `x`, in lanes with one by one, and notes the runs that it took.
macro_rules! driver {
    ($runs:ident, $points:ident, $function:ident, $name:literal, $x:ident => $answer:expr) => {
        let expected: Vec<_> = $points.iter().map(|$x: &Vec<f64>| shown($answer)).collect();
        let runs = Cell::new(0);
        let found = in_lanes($points.len(), |samples: &Samples<4>| {
            runs.set(runs.get() + 1);
            let $x = &samples.points(&$points);
            $answer
        });
        for ((point, expected), found) in $points.iter().zip(expected).zip(found) {
            assert_eq!(shown(found), expected, "{} of {:?} at {point:?}", $name, $function);
        }
        assert!(runs.get() <= 2 * $points.len(), "{}: {} runs", $name, runs.get());
        $runs.push(($name, runs.get()));
    };
}

/// Compares every driver, and gives the runs that each took.
fn compare(f: Function, points: Vec<Vec<f64>>) -> Vec<(&'static str, usize)> {
    let mut runs = Vec::new();
    driver!(runs, points, f, "grad", x => value_and_grad(|x| f.of(x), x).map(|(value, all)| [all, vec![value]].concat()));
    driver!(runs, points, f, "jvp", x => jvp(|x| [f.of(x)], x, &ones(x)).map(|(values, all)| [values, all].concat()));
    driver!(runs, points, f, "vjp", x => vjp(|x| [f.of(x), x[0]], x, &ones(&x.repeat(2))[..2]).map(|(values, all)| [values, all].concat()));
    driver!(runs, points, f, "jacobian", x => jacobian(|x| [f.of(x), f.of(x) * x[0]], x).map(flat));
    driver!(runs, points, f, "hvp", x => hvp(|x| f.of(x), x, &ones(x)).map(|(value, all, product)| [vec![value], all, product].concat()));
    driver!(runs, points, f, "hessian", x => hessian(|x| f.of(x), x).map(flat));
    driver!(runs, points, f, "sparse_hessian", x => sparse_hessian(|x| f.of(x), x).map(|sparse| flat(sparse.to_dense())));
    driver!(runs, points, f, "derivatives", x => derivatives::<_, 3>(|t| f.of(&vec![t; x.len()]), x[0]));
    driver!(runs, points, f, "grad of grad", x => {
        grad(|x| grad(|x| f.of(x), x).map_or(x[0], |inner| inner.iter().copied().sum()), x)
    });
    runs
}

fn grid(values: &[f64]) -> Vec<Vec<f64>> {
    values.iter().flat_map(|&x| values.iter().map(move |&y| vec![x, y])).collect()
}

const STRUCTURED: &[f64] = &[0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 1e-9, 5e-324, 1e308];

fn smooth<S: Real>(x: &[S]) -> S {
    (x[0] * x[1]).sin() * 0.5 + (x[0] - x[1]).tanh() + (x[0] * x[0] + 1.0).ln()
}

fn kinks<S: Real>(x: &[S]) -> S {
    x[0].relu() * x[1]
        + (x[0] - x[1]).abs()
        + x[0].max(x[1]) * x[0].min(S::from_f64(0.5))
        + x[1].relu().relu()
}

fn branches<S: Real>(x: &[S]) -> S {
    if x[0] > 0.75 { if x[1] < x[0] { x[0] * x[1] } else { x[1].exp() } } else { (x[0] - 2.0) * x[1].cos() }
}

/// Different numbers of rounds.
fn halving<S: Real>(x: &[S]) -> S {
    let (mut at, mut sum) = (x[0] * x[0] + x[1].abs() * 3.0 + 1.5, x[1]);
    let mut rounds = 0;
    while at > 1.0 && rounds < 60 {
        sum += at.sin() * x[0];
        at *= 0.5;
        rounds += 1;
    }
    sum * at
}

/// The least of some, beginning with infinity.
fn least<S: Real>(x: &[S]) -> S {
    let mut best = S::from_f64(f64::INFINITY);
    for candidate in [x[0] * x[0], x[1] + 1.0, x[0] * x[1], (x[0] + x[1]) * 0.3] {
        if candidate < best {
            best = candidate;
        }
    }
    best * x[0]
}

/// A table that is looked up.
fn lookup<S: Real>(x: &[S]) -> S {
    let table = [1.0, 2.5, -3.0, 0.25];
    let at = (x[0].abs() * 1.7).floor().to_f64();
    if at.is_finite() { x[1] * table[at as usize % 4] + x[0] } else { x[1] }
}

/// Short cuts that exist only at a point.
fn short_cuts<S: Real>(x: &[S]) -> S {
    if x[0] == 0.0 {
        return x[1] * 0.0;
    }
    (x[0] * 2.0).sin() / x[0] + x[1].sqrt()
}

/// Looks at what kind of numbers they are.
fn kinds<S: Real>(x: &[S]) -> S {
    let ratio = x[0] / x[1];
    if ratio.is_nan() || !ratio.is_finite() { x[0] + x[1] } else { ratio }
}

/// Sums, dot products and powers.
fn sums<S: Real>(x: &[S]) -> S {
    let many: Vec<S> = (0..40).map(|i| x[i % 2] * (0.1 * i as f64) + x[(i + 1) % 2]).collect();
    let total: S = many.iter().map(|&m| m * x[0]).sum();
    S::sum_of(&many) + S::dot(&many, &many) * 1e-3 + total + x[0].powi(5) + x[1].powi(-3)
}

/// Tangents and partials that are zero in some samples only, with infinities and NaN beside them.
fn zeros<S: Real>(x: &[S]) -> S {
    let still = x[0].relu() * 0.0 + x[1].relu();
    let steep = S::select(x[0].less(S::zero()), x[1], (x[0] + 1.0).sqrt());
    still * steep + still.sqrt().relu() * x[0].relu() - still.signum() * x[1]
}

#[test]
fn every_driver_has_the_bits_of_one_by_one() {
    let runs = compare(Function::smooth, grid(&[0.3, -1.0, 2.0, 0.7, 1.1, -0.4]));
    assert!(runs.iter().all(|&(_, runs)| runs == 9), "36 samples, 4 at a time: {runs:?}");
    // Ten values are twice as many points: with `--cfg long`.
    let values = if cfg!(long) { STRUCTURED } else { &[0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308] };
    for &function in Function::ALL {
        compare(function, grid(values));
    }
}

#[test]
fn functions_with_kinks_do_not_split_lanes() {
    let points = grid(&[0.3, -1.0, 2.0, 0.7, 1.1, -0.4]);
    let relus = |x: &[Var<Lanes<4>>]| {
        (x[0] * x[1]).relu() + (x[0] - 0.5).relu() * (x[1] + 0.25).abs() + x[0].max(x[1] * 3.0)
    };
    let alone = |x: &[Var<f64>]| {
        (x[0] * x[1]).relu() + (x[0] - 0.5).relu() * (x[1] + 0.25).abs() + x[0].max(x[1] * 3.0)
    };
    let runs = Cell::new(0);
    let answers = value_and_grad_batch(
        |x| {
            runs.set(runs.get() + 1);
            relus(x)
        },
        &points,
    );
    assert_eq!(runs.get(), 9);
    for (point, answer) in points.iter().zip(answers) {
        assert_eq!(answer, value_and_grad(alone, point));
    }
}

/// Every row of the rule table at structured points: values, first and second derivatives.
#[test]
fn every_row_has_the_bits_of_one_by_one() {
    for &row in Row::ALL {
        let parameters: &[i32] = if row.name() == "powi" { &[0, 1, 2, 3, -2, 5] } else { &[0, 1] };
        for &parameter in parameters {
            row_agrees(row, parameter);
        }
    }
}

fn row_agrees(row: Row, parameter: i32) {
    let arity = row.arity();
    let values: Vec<f64> = match arity {
        3 => vec![0.0, -0.0, 1.0, -2.0, 0.5, 3.0],
        _ => STRUCTURED.iter().copied().chain([3.0, 6.0, -0.3, 700.0]).collect(),
    };
    let count = values.len();
    let points: Vec<Vec<f64>> = (0..count.pow(arity as u32))
        .map(|i| (0..arity).map(|k| values[i / count.pow(k as u32) % count]).collect())
        .collect();
    struct Apply<'a, D>(&'a [D]);
    impl<D: Differentiable> palinode_core::rules::RuleVisitor for Apply<'_, D> {
        type Output = D;
        fn visit<R: palinode_core::rules::Rule>(self, rule: R) -> D {
            rule.apply(self.0)
        }
    }
    // Duals and jets show what drivers refuse, such as NaN; the tape's and second derivatives by drivers.
    macro_rules! all {
        ($S:ty, $x:expr) => {{
            let x: &[$S] = $x;
            let duals: Vec<Dual<$S>> = x.iter().map(|&x| Dual::new(x, <$S>::from_f64(1.5))).collect();
            let still: Vec<Dual<$S>> = x.iter().map(|&x| Dual::new(x, x * <$S>::zero())).collect();
            let many: Vec<DualN<$S, 2>> = x.iter().map(|&x| DualN::new(x, [<$S>::one(), x])).collect();
            let jets: Vec<Jet<$S, 3>> =
                x.iter().map(|&x| Jet::new(x, [<$S>::one(), x, <$S>::zero()])).collect();
            let nested: Vec<Dual<Dual<$S>>> =
                duals.iter().map(|&x| Dual::new(x, Dual::lift(<$S>::one()))).collect();
            let apply = |x: &[Dual<$S>]| {
                let z = row.visit(parameter, Apply(x));
                vec![z.value, z.tangent]
            };
            let nested = row.visit(parameter, Apply(&nested[..]));
            let passive: Vec<Passive<$S>> = x.iter().map(|&x| Passive::new(x)).collect();
            vec![
                apply(&duals),
                apply(&still),
                row.visit(parameter, Apply(&many[..])).tangents.0.to_vec(),
                row.visit(parameter, Apply(&jets[..])).derivatives(),
                vec![nested.tangent.value, nested.tangent.tangent],
                vec![row.visit(parameter, Apply(&passive[..])).primal()],
            ]
        }};
    }
    let found = in_lanes(points.len(), |samples: &Samples<8>| all!(Lanes<8>, &samples.points(&points)));
    for (point, found) in points.iter().zip(found) {
        let expected: Vec<Vec<f64>> = all!(f64, point);
        for (kind, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            let zeros = ["min", "max"].contains(&row.name()) && point[0] == 0.0 && point[1] == 0.0;
            assert!(
                zeros || shown(Ok(found.clone())) == shown(Ok(expected.clone())),
                "{} {parameter} at {point:?}, {kind}: {found:?}, not {expected:?}",
                row.name()
            );
        }
    }
    let first = in_lanes(points.len(), |samples: &Samples<8>| {
        grad(|x| row.visit(parameter, Apply(x)), &samples.points(&points))
    });
    let second = in_lanes(points.len(), |samples: &Samples<8>| {
        hessian(|x| row.visit(parameter, Apply(x)), &samples.points(&points)).map(flat)
    });
    for ((point, first), second) in points.iter().zip(first).zip(second) {
        let name = row.name();
        if ["min", "max"].contains(&name) && point[0] == 0.0 && point[1] == 0.0 {
            continue;
        }
        let one: Result<Vec<f64>, Error> = grad(|x| row.visit(parameter, Apply(x)), point);
        assert_eq!(shown(first), shown(one), "grad of {name} {parameter} at {point:?}");
        let one = hessian(|x| row.visit(parameter, Apply(x)), point).map(flat);
        assert_eq!(shown(second), shown(one), "hessian of {name} {parameter} at {point:?}");
    }
}

#[test]
fn random_programs_have_the_bits_of_one_by_one() {
    use proptest::prelude::*;
    proptest!(ProptestConfig::with_cases(64), |(program in crate::programs::program())| {
        let points: Vec<Vec<f64>> = (0..11)
            .map(|i| program.point.iter().map(|x| x * (1.0 + 0.07 * f64::from(i))).collect())
            .collect();
        let together = value_and_grad_batch(|x: &[Var<Lanes<4>>]| program.first(x), &points);
        for (point, found) in points.iter().zip(together) {
            let one = value_and_grad(|x| program.first(x), point);
            let flat = |answer: Result<(f64, Vec<f64>), Error>| shown(answer.map(|(y, mut g)| { g.push(y); g }));
            prop_assert_eq!(flat(found), flat(one));
        }
    });
}

#[test]
fn arrays_have_the_bits_of_one_by_one() {
    fn layer<S: Scalar>(x: &[Var<S>]) -> Var<S> {
        let factor = |i: usize| Var::lift(S::from_int(i as i32 - 5));
        let w: Vec<Var<S>> = (0..12).map(|i| x[i % 2] * factor(i)).collect();
        let w = Array::from_vars(&w).reshaped(&[3, 4]);
        let h = w.matmul(&w.transposed()).relu();
        let total: Var<S> = h.sum();
        total * x[0] + h.tanh().dot(&h)
    }
    let points = grid(&[0.3, -1.0, 2.0, 0.0, 1.1, -0.4]);
    let runs = Cell::new(0);
    let answers = value_and_grad_batch(
        |x: &[Var<Lanes<4>>]| {
            runs.set(runs.get() + 1);
            layer(x)
        },
        &points,
    );
    for (point, found) in points.iter().zip(answers) {
        assert_eq!(found, value_and_grad(layer, point), "{point:?}");
    }
    assert!(runs.get() < points.len(), "{}", runs.get());
}

#[test]
fn samples_that_went_the_same_way_run_together_again() {
    // Every eighth sample takes another branch; with the others of its kind it fills a group.
    let points: Vec<[f64; 1]> =
        (0..64).map(|i| [if i % 8 == 3 { -2.0 - f64::from(i) } else { f64::from(i) + 1.0 }]).collect();
    let runs = Cell::new(0);
    let f = |x: &[Var<Lanes<8>>]| {
        runs.set(runs.get() + 1);
        if x[0] < 0.0 { x[0] * x[0] } else { x[0] }
    };
    let answers = value_and_grad_batch(f, &points);
    assert_eq!(runs.get(), 9);
    assert_eq!(answers[3], Ok((25.0, vec![-10.0])));
    assert_eq!(answers[4], Ok((5.0, vec![1.0])));
}

#[test]
fn a_panic_is_of_its_sample_and_errors_are_per_sample() {
    let f = |x: &[Var<Lanes<4>>]| {
        assert!(x[0] < 10.0, "too large");
        x[0].ln()
    };
    let points = [[1.0], [2.0], [-1.0], [f64::NAN], [4.0]];
    let answers = value_and_grad_batch(f, &points);
    assert!(answers[0].is_ok() && answers[1].is_ok() && answers[4].is_ok());
    assert_eq!(answers[2].as_ref().unwrap_err().code(), "PAL0103");
    assert_eq!(answers[3].as_ref().unwrap_err().code(), "PAL0102");
    let panicked = std::panic::catch_unwind(|| value_and_grad_batch(f, &[[1.0], [11.0]]));
    assert!(panicked.is_err());
    // Afterwards everything is as before.
    assert!(value_and_grad_batch(f, &[[1.0], [3.0]]).iter().all(Result::is_ok));
    let lengths = value_and_grad_batch(|x: &[Var<Lanes<4>>]| x[0], &[vec![1.0], vec![1.0, 2.0], vec![3.0]]);
    assert_eq!(lengths[1].as_ref().unwrap_err().code(), "PAL0101");
    assert_eq!(lengths[2], Ok((3.0, vec![1.0])));
}

#[test]
fn decisions_are_counted_as_one_by_one() {
    let points: Vec<[f64; 1]> = (0..6).map(|i| [f64::from(i) - 2.5]).collect();
    let (_, together) = decision::watch(|| {
        value_and_grad_batch(|x: &[Var<Lanes<4>>]| if x[0] < 0.0 { -x[0] } else { x[0] }, &points)
    });
    let (_, alone) = decision::watch(|| {
        points.iter().for_each(|x| drop(grad(|x| if x[0] < 0.0 { -x[0] } else { x[0] }, x)));
    });
    assert_eq!((together.comparisons, together.smallest_margin), (alone.comparisons, alone.smallest_margin));
}

#[test]
fn a_driver_by_itself_refuses_lanes_that_it_cannot_split() {
    let f = |x: &[Var<Lanes<2>>]| if x[0] < 0.0 { -x[0] } else { x[0] };
    assert_eq!(grad(f, &[Lanes([1.0, 2.0])]).unwrap()[0].0, [1.0, 1.0]);
    assert_eq!(grad(f, &[Lanes([1.0, -2.0])]).unwrap_err().code(), "PAL0127");
}
