//! Laws of paths that exist only at a point, each found broken by somebody outside: right or refused, and
//! what is right is not refused.
//!
//! Expected slopes are closed forms.

use crate::points::{REFUSED, code, refused};
use nalgebra::{Quaternion, Rotation3, Unit, UnitQuaternion, Vector3};
use num_traits::{Float, ToPrimitive};
use palinode::drivers::{derivatives, hvp, jvp, sparse_jacobian, vjp};
use palinode::forward::Jet;
use palinode::num::Key;
use palinode::{Dual, Error, Tape, Var, grad, hessian, jacobian};

/// Rotations by next to nothing: cosines are 1 there, and thresholds are compared with.
#[test]
fn small_rotations_are_right_or_refused() {
    let mut refusals = 0;
    let mut asked = 0;
    for size in [1e-7, 1e-8, 1e-9, 1e-10, 1e-13, 1e-17, 1e-200] {
        let x = [size, 0.0, 0.0];
        let mut ask = |name: &str, found: Result<Vec<f64>, Error>, expected: &[f64]| {
            // Arc cosines next to 1 lose digits, whoever differentiates them; a short cut gives 0.
            refusals += usize::from(refused(&format!("{name} at {size:e}"), found, expected, 0.05));
            asked += 1;
        };
        macro_rules! rotated {
            ($rotation:expr) => {
                |x: &[_]| {
                    let number = |v: f64| num_traits::FromPrimitive::from_f64(v).unwrap();
                    let w = Vector3::new(x[0], x[1], x[2]);
                    let turned = $rotation(w) * Vector3::new(number(1.0), number(2.0), number(3.0));
                    [turned[0], turned[1], turned[2]]
                }
            };
        }
        // R(t w) a = a + t w x a + ...: the derivative by w is -t [a]x with a = (1, 2, 3).
        let by = |t: f64| [0.0, 3.0, -2.0, -3.0, 0.0, 1.0, 2.0, -1.0, 0.0].map(|entry: f64| t * entry);
        let half = |v: f64| Var::lift(v);
        let slerp = rotated!(|w: Vector3<Var<f64>>| UnitQuaternion::identity()
            .slerp(&UnitQuaternion::from_scaled_axis(w), half(0.5)));
        ask("slerp", jacobian(slerp, &x).map(|rows| rows.concat()), &by(0.5));
        let power = rotated!(|w: Vector3<Var<f64>>| UnitQuaternion::from_scaled_axis(w).powf(half(0.5)));
        ask("powf", jacobian(power, &x).map(|rows| rows.concat()), &by(0.5));
        let power = rotated!(|w: Vector3<Var<f64>>| Rotation3::from_scaled_axis(w).powf(half(0.5)));
        ask("powf of a matrix", jacobian(power, &x).map(|rows| rows.concat()), &by(0.5));
        let scaled = rotated!(|w: Vector3<Var<f64>>| Rotation3::from_scaled_axis(w));
        ask("from_scaled_axis", jacobian(scaled, &x).map(|rows| rows.concat()), &by(1.0));
        // From e1 to e1 + w, w across e1: a turn about e1 x w; the third axis is moved by -w3 e1.
        let between = |x: &[Var<f64>]| {
            let e1 = Vector3::new(half(1.0), half(0.0), half(0.0));
            let e3 = Vector3::new(half(0.0), half(0.0), half(1.0));
            let turn = UnitQuaternion::rotation_between(&e1, &(e1 + Vector3::new(x[1], x[2], x[0])));
            (turn.unwrap() * e3)[0]
        };
        ask("rotation_between", grad(between, &x), &[-1.0, 0.0, 0.0]);
        let axis = |x: &[Var<f64>]| {
            let q = UnitQuaternion::from_quaternion(Quaternion::new(half(1.0), x[0], x[1], x[2]));
            q.scaled_axis().iter().copied().collect::<Vec<_>>()
        };
        let twice = [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0];
        ask("scaled_axis", jacobian(axis, &x).map(|rows| rows.concat()), &twice);
        let about = |x: &[Var<f64>]| {
            let axis = Unit::new_normalize(Vector3::new(half(0.0), half(0.0), half(1.0)));
            let turned =
                UnitQuaternion::from_axis_angle(&axis, x[0]) * Vector3::new(half(1.0), half(0.0), half(0.0));
            turned[1]
        };
        ask("from_axis_angle", grad(about, &[size]), &[1.0]);
    }
    println!("{refusals} of {asked} refused");
    assert!(refusals > 0 && refusals < asked / 2, "{refusals} of {asked}");
}

/// A short cut for what is small, at a small point that is not zero.
#[test]
fn a_small_point_within_a_threshold_is_refused() {
    for size in [0.0, 1e-9, -1e-12, 1e-30] {
        let short =
            |x: &[Var<f64>]| if x[0].abs() <= 1e-8 { Var::lift(1.0) } else { (2.0 * x[0]).sin() + 1.0 };
        assert_eq!(code(grad(short, &[size])), REFUSED, "{size}");
        assert_eq!(code(grad(short, &[size, 1.0])), REFUSED, "{size}");
        let squared = |x: &[Var<f64>]| if x[0] * x[0] <= 1e-24 { x[0] } else { (2.0 * x[0]).sin() };
        assert_eq!(code(grad(squared, &[size * 1e-4])), REFUSED, "{size}");
        // Right within the threshold.
        let series = |x: &[Var<f64>]| if x[0].abs() <= 1e-8 { 2.0 * x[0] } else { (2.0 * x[0]).sin() };
        assert_eq!(grad(series, &[size]).unwrap(), [2.0], "{size}");
    }
    // What is as small as its threshold may be in its own scale: wavelengths.
    let visible = |x: &[Var<f64>]| if x[0] > 380e-9 && x[0] < 750e-9 { 3.0 * x[0] } else { Var::lift(0.0) };
    assert_eq!(grad(visible, &[500e-9]).unwrap(), [3.0]);
    let kink = |x: &[Var<f64>]| if x[0] > 2e-9 { x[0] * 1e9 } else { x[0] * 5e9 };
    assert_eq!(grad(kink, &[2e-9]).unwrap(), [5e9]);
}

/// Guards by what kind of number a value is.
#[test]
#[allow(clippy::manual_range_contains, reason = "this is how people write it")]
fn guards_against_not_a_number_are_decisions() {
    macro_rules! guarded {
        ($guard:expr) => {
            |x: &[_]| {
                let q = (x[0] * 2.0).sin() / x[0];
                if $guard(q) { x[0] * 0.0 } else { q * x[0] }
            }
        };
    }
    // sin(2 x) has the slope 2.
    macro_rules! guards {
        ($($guard:expr),*) => {$(
            assert_eq!(code(grad(guarded!($guard), &[0.0])), REFUSED, "{}", stringify!($guard));
            assert_eq!(code(jvp(guarded!($guard), &[0.0], &[1.0])), REFUSED, "{}", stringify!($guard));
            assert!((grad(guarded!($guard), &[0.3]).unwrap()[0] - 2.0 * 0.6_f64.cos()).abs() < 1e-12);
        )*};
    }
    guards!(
        palinode::Real::is_nan,
        |q| !palinode::Real::is_finite(q),
        Float::is_nan,
        |q| !Float::is_normal(q),
        |q| Float::classify(q) == std::num::FpCategory::Nan,
        |q| palinode::Real::to_f64(q).is_nan(),
        |q| ToPrimitive::to_f64(&q).is_some_and(f64::is_nan),
        |q| q != q,
        |q| !(q >= -5.0 && q <= 5.0)
    );
    let plain_zero = |x: &[Var<f64>]| if x[0].to_f64() == 0.0 { x[0] * 0.0 } else { x[0] * 3.0 };
    assert_eq!(code(grad(plain_zero, &[0.0])), REFUSED);
    let infinite = |x: &[Var<f64>]| if (1.0 / x[0]) > 1e300 { x[0] * 0.0 } else { x[0] * 3.0 };
    assert_eq!(code(grad(infinite, &[0.0])), REFUSED);
    // sin(x)/x: the slope at 0 is 0, the second derivative -1/3.
    macro_rules! sinc {
        () => {
            |x: &[_]| {
                let q = x[0].sin() / x[0];
                if q.is_nan() { x[0] * 0.0 + 1.0 } else { q }
            }
        };
    }
    assert_eq!(grad(sinc!(), &[0.0]).unwrap(), [0.0]);
    for found in [hessian(sinc!(), &[0.0]).map(|h| h.concat()), hvp(sinc!(), &[0.0], &[1.0]).map(|a| a.2)] {
        assert!(refused("sinc", found, &[-1.0 / 3.0], 1e-6));
    }
    let text = grad(guarded!(|q: Var<f64>| q.is_nan()), &[0.0]).unwrap_err().to_string();
    assert!(text.contains("a look at NaN by itself") && text.contains("accept_points"), "{text}");
    // What begins with an infinite constant is no guard.
    let mut runs = 0;
    let least = |x: &[Var<f64>]| {
        runs += 1;
        x.iter().fold(Var::lift(f64::INFINITY), |least, &x| if x < least { x } else { least })
    };
    assert_eq!(grad(least, &[2.0, 1.0, 3.0]).unwrap(), [0.0, 1.0, 0.0]);
    assert_eq!(runs, 1);
}

/// A wrong part is seen beside a part of any size, in every row and order.
#[test]
fn small_parts_are_seen_beside_large_ones() {
    for large in [1.0, 1e6, 1e9, 1e12] {
        macro_rules! hidden {
            () => {
                |x: &[_]| (if x[0] == 0.0 { x[0] * 0.0 } else { x[0] * 3.0 }) + x[1] * large
            };
        }
        macro_rules! rows {
            () => {
                |x: &[_]| {
                    [x[1] * large, if x[0] == 0.0 { x[0] * 0.0 } else { x[0] * 3.0 }, x[1].sin() * large]
                }
            };
        }
        let x = [0.0, 1.5];
        assert_eq!(code(grad(hidden!(), &x)), REFUSED, "{large}");
        assert_eq!(code(hessian(hidden!(), &x)), REFUSED, "{large}");
        assert_eq!(code(jacobian(rows!(), &x)), REFUSED, "{large}");
        assert_eq!(code(sparse_jacobian(rows!(), &x)), REFUSED, "{large}");
        assert_eq!(code(vjp(rows!(), &x, &[0.0, 1.0, 0.0])), REFUSED, "{large}");
        assert_eq!(code(jvp(rows!(), &x, &[1.0, 0.5])), REFUSED, "{large}");
        assert_eq!(code(Tape::new().record(&x, rows!())), REFUSED, "{large}");
        // The second derivative is wrong, beside a large gradient.
        let square =
            |x: &[Var<Var<f64>>]| (if x[0] == 0.0 { x[0] * 0.0 } else { x[0] * x[0] }) + x[1] * large;
        assert_eq!(code(hessian(square, &x)), REFUSED, "{large}");
        let square =
            |x: &[Var<Dual<f64>>]| (if x[0] == 0.0 { x[0] * 0.0 } else { x[0] * x[0] }) + x[1] * large;
        assert_eq!(code(hvp(square, &x, &[1.0, 0.0])), REFUSED, "{large}");
        if large > 1e10 {
            continue;
        }
        // A curvature is no error of the slope.
        let jet = |x: Jet<f64, 3>| (if x == 0.0 { x * 0.0 } else { x * 3.0 }) + (x * x) * large;
        assert_eq!(code(derivatives(jet, 0.0)), REFUSED, "{large}");
        let curved =
            |x: &[Var<f64>]| (if x[0] == 0.0 { x[0] * 0.0 } else { x[0] * 3.0 }) + (x[0] * x[0]) * large;
        assert_eq!(code(grad(curved, &[0.0])), REFUSED, "{large}");
    }
}

/// Each order has its own precision.
#[test]
fn many_derivatives_are_verified() {
    fn skipped<const K: usize>() -> Option<&'static str> {
        code(derivatives::<f64, K>(|x| if x == 0.0 { x * 0.0 } else { x * 3.0 }, 0.0))
    }
    assert_eq!(
        [skipped::<1>(), skipped::<4>(), skipped::<8>(), skipped::<16>(), skipped::<24>()],
        [REFUSED; 5]
    );
    fn square<const K: usize>() -> Option<&'static str> {
        code(derivatives::<f64, K>(|x| if x == 0.0 { x * 0.0 } else { x * x }, 0.0))
    }
    assert_eq!([square::<2>(), square::<4>(), square::<16>(), square::<24>()], [REFUSED; 4]);
    // sin(x) to all orders, with a tie that changes nothing.
    let sine = derivatives::<f64, 20>(|x| if x > 0.0 { x.sin() } else { -(-x).sin() }, 0.0).unwrap();
    assert!(
        sine.iter().enumerate().all(|(k, d)| (d - [0.0, 1.0, 0.0, -1.0][k % 4]).abs() < 1e-12),
        "{sine:?}"
    );
}

/// A short cut inside an inner driver is found also where only the outer derivative is wrong.
#[test]
fn nested_short_cuts_are_found() {
    // d/dy (x y) at 0 is x; the short cut says 3, which is right at x = 3 only.
    let reverse = grad(
        |x| {
            let three = |y: &[Var<Var<f64>>]| if y[0] == 0.0 { y[0] * 3.0 } else { y[0] * Var::lift(x[0]) };
            grad(three, &[Var::lift(0.0)]).map_or(Var::lift(f64::NAN), |slope| slope[0])
        },
        &[3.0],
    );
    assert_eq!(code(reverse), REFUSED);
    let forward = jvp(
        |x| {
            let three =
                |y: &[Dual<Dual<f64>>]| if y[0] == 0.0 { y[0] * 3.0 } else { y[0] * Dual::lift(x[0]) };
            let slope = jvp(three, &[Dual::lift(0.0)], &[Dual::lift(1.0)]);
            slope.map_or(Dual::lift(0.0), |answer| answer.1[0])
        },
        &[3.0],
        &[1.0],
    );
    assert_eq!(code(forward), REFUSED);
    // Three levels, the short cut in the innermost one.
    let deep = jvp(
        |x| {
            let middle = |y: &[Dual<Dual<f64>>]| {
                let inner = |z: &[Var<Dual<Dual<f64>>>]| {
                    if z[0] == 0.0 { z[0] * 0.0 } else { z[0] * Var::lift(y[0] * Dual::lift(x[0])) }
                };
                grad(inner, &[Dual::lift(Dual::lift(0.0))]).map_or(Dual::lift(Dual::lift(f64::NAN)), |g| g[0])
            };
            jvp(middle, &[Dual::lift(1.0)], &[Dual::lift(1.0)])
                .map_or(Dual::lift(f64::NAN), |answer| answer.1[0])
        },
        &[2.0],
        &[1.0],
    );
    assert!(deep.is_err());
}

/// Where the closure fails on a side, the other side speaks, or a smaller distance does; if nothing does,
/// that is refused.
#[test]
fn sides_that_fail_say_so() {
    let message = "(this message is expected: the closure is asked beside its domain)";
    // The only side that there is has the slope 2.
    let half = |x: &[Var<f64>]| {
        assert!(x[0] >= 0.0, "{message}");
        if x[0] > 0.0 { x[0] * 2.0 } else { x[0] * 0.0 }
    };
    assert_eq!(code(grad(half, &[0.0])), REFUSED);
    // A corner of a domain, of any signs.
    for signs in 0..8_u32 {
        let sign = |i: usize| if signs >> i & 1 == 0 { 1.0 } else { -1.0 };
        let corner = |short: f64| {
            move |x: &[Var<f64>]| {
                assert!((0..3).all(|i| x[i] * sign(i) >= 0.0), "{message}");
                if x[0] == 0.0 { x[0] * short } else { x[0].sin() * 2.0 + x[1] * x[2] }
            }
        };
        assert_eq!(code(grad(corner(0.0), &[0.0; 3])), REFUSED, "{signs}");
        assert_eq!(grad(corner(2.0), &[0.0; 3]).unwrap(), [2.0, 0.0, 0.0], "{signs}");
    }
    // A constraint that the point fulfils up to rounding.
    let narrow = |x: &[Var<f64>]| {
        assert!((x[0] * x[0] + x[1] * x[1] - 1.0).abs() < 1e-9, "{message}");
        x[0] * 3.0 + x[1] * x[1]
    };
    assert_eq!(grad(narrow, &[1.0, 0.0]).unwrap(), [3.0, 0.0]);
    let alone = |x: &[Var<f64>]| {
        assert!(x[0] == 0.0, "{message}");
        x[0] * 3.0
    };
    let error = grad(alone, &[0.0]).unwrap_err();
    assert!(matches!(error, Error::OfPointAlone { decision: 1, .. }) && error.code() == "PAL0119", "{error}");
    assert_eq!(palinode::decision::accept_points(|| grad(alone, &[0.0])).unwrap(), [3.0]);
}

fn sort(x: &mut [Var<f64>]) {
    for end in (1..x.len()).rev() {
        for i in 0..end {
            if x[i] > x[i + 1] {
                x.swap(i, i + 1);
            }
        }
    }
}

/// The largest, least and middle of equal entries by hand, in either way of writing, and sorting.
#[test]
fn equal_entries_are_not_refused() {
    let largest = |x: &[Var<f64>]| x[1..].iter().fold(x[0], |best, &x| if x > best { x } else { best });
    let last_largest = |x: &[Var<f64>]| x[1..].iter().fold(x[0], |best, &x| if x >= best { x } else { best });
    let least = |x: &[Var<f64>]| x[1..].iter().fold(x[0], |best, &x| if x < best { x } else { best });
    let middle = |x: &[Var<f64>]| {
        let mut x = x.to_vec();
        sort(&mut x);
        x[x.len() / 2]
    };
    let by_std = |x: &[Var<f64>]| {
        let mut x = x.to_vec();
        x.sort_by(|a, b| b.partial_cmp(a).unwrap());
        x.iter().enumerate().map(|(i, &x)| x * (i as f64 + 0.5)).sum::<Var<f64>>()
    };
    assert_eq!(grad(largest, &[1.0, 3.0, 3.0, 3.0, 2.0]).unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(grad(last_largest, &[1.0, 3.0, 3.0, 3.0, 2.0]).unwrap(), [0.0, 0.0, 0.0, 1.0, 0.0]);
    let key = Key::from_seed(11);
    for case in 0..60 {
        let n = 2 + key.below(8, 100 * case) as usize;
        let x: Vec<f64> = (0..n).map(|i| key.below(3, 100 * case + 1 + i as u64) as f64).collect();
        let is_one = |g: Vec<f64>, best: f64| {
            let of: Vec<usize> = (0..n).filter(|&i| g[i] != 0.0).collect();
            of.len() == 1 && g[of[0]] == 1.0 && x[of[0]] == best
        };
        let mut sorted = x.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(is_one(grad(largest, &x).unwrap(), sorted[n - 1]), "{x:?}");
        assert!(is_one(grad(last_largest, &x).unwrap(), sorted[n - 1]), "{x:?}");
        assert!(is_one(grad(least, &x).unwrap(), sorted[0]), "{x:?}");
        assert!(is_one(grad(middle, &x).unwrap(), sorted[n / 2]), "{x:?}");
        let slopes = grad(by_std, &x).unwrap();
        assert_eq!(slopes.iter().sum::<f64>(), (n * n) as f64 / 2.0, "{x:?}");
        let v: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let forward = |x: &[Dual<f64>]| x[1..].iter().fold(x[0], |best, &x| if x > best { x } else { best });
        assert!(v.contains(&jvp(forward, &x, &v).unwrap().1[0]), "{x:?}");
    }
}

/// A derivative of exactly zero beside rounding, and what is guarded at a kink.
#[test]
fn rounding_and_guarded_kinks_are_not_refused() {
    let key = Key::from_seed(12);
    for case in 0..40 {
        let c = key.uniform(case) + 0.5;
        // 1, up to rounding: its slope beside 0 is of the size of rounding over distance.
        let one = |x: &[Var<f64>]| {
            if x[0] == 0.0 {
                x[0] * 0.0 + c
            } else {
                ((x[0] * x[0]).exp() * c).ln().exp() / (x[0] * x[0]).exp()
            }
        };
        assert_eq!(grad(one, &[0.0]).unwrap(), [0.0], "{case}");
        let ratio = |x: &[Var<f64>]| if x[0] == 0.0 { x[0] * 0.0 + c } else { (x[0] * c) / x[0] };
        assert_eq!(grad(ratio, &[0.0]).unwrap(), [0.0], "{case}");
        assert_eq!(
            jvp(
                |x: &[Dual<f64>]| if x[0] == 0.0 { x[0] * 0.0 + c } else { (x[0] * c) / x[0] },
                &[0.0],
                &[1.0]
            )
            .unwrap()
            .1,
            [0.0]
        );
    }
    // A norm that is guarded where it has a kink: 0 is between the slopes of its sides, as for `abs` and
    // `hypot` of the table.
    macro_rules! norm {
        ($guard:tt) => {
            |x: &[_]| {
                let square = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
                if square $guard 0.0 { square * 0.0 } else { square.sqrt() }
            }
        };
    }
    assert_eq!(grad(norm!(==), &[0.0; 3]).unwrap(), [0.0; 3]);
    assert_eq!(grad(norm!(<=), &[0.0; 3]).unwrap(), [0.0; 3]);
    assert_eq!(jvp(norm!(==), &[0.0; 3], &[1.0, 2.0, 3.0]).unwrap().1, [0.0]);
    // Its second derivatives have no end there.
    assert_eq!(code(hessian(norm!(==), &[0.0; 3])), REFUSED);
    // What is not between the sides is refused; and so is what is between them one by one, but not on the way
    // from one to the other.
    let tilted = |x: &[Var<f64>]| {
        if x[0] == 0.0 && x[1] == 0.0 { x[0] * 0.0 } else { (x[0] - x[1]).abs() + 2.0 * x[1] }
    };
    assert_eq!(code(grad(tilted, &[0.0, 0.0])), REFUSED);
    let steep = |x: &[Var<f64>]| if x[0] == 0.0 { x[0] * 0.0 } else { x[0].abs() + 3.0 * x[0] };
    assert_eq!(code(grad(steep, &[0.0])), REFUSED);
}

/// A captured number shows on one side of a kink only.
#[test]
fn captured_numbers_are_found_on_either_side() {
    for point in [0.0, 1e-9] {
        for side in [1.0, -1.0] {
            let outer = jvp(
                |x| {
                    let inner = jvp(|y: &[Dual<f64>]| x[0] * (y[0] * side).min(0.0), &[point], &[1.0]);
                    assert_eq!(code(inner), Some("PAL0120"));
                    x[0]
                },
                &[2.0],
                &[1.0],
            );
            assert!(outer.is_ok());
        }
    }
}

/// A tie behind more small comparisons than are kept, and one beside a part that is infinite.
#[test]
fn ties_are_found_behind_many_comparisons_and_beside_infinite_parts() {
    let behind = |x: &[Var<f64>]| {
        let small = (0..1100).filter(|_| (x[1] - 1.0 + 1e-12) < 1e-9).count();
        assert!(small == 0 || small == 1100);
        if x[0] == 0.0 { x[0] * 0.0 } else { 3.0 * x[0] }
    };
    assert_eq!(code(grad(behind, &[0.0, 1.0])), REFUSED);
    let beside = |x: &[Var<f64>]| [x[0].sqrt(), if x[1] == 0.0 { x[1] * 0.0 } else { 3.0 * x[1] }];
    let mut tape = palinode::Tape::new();
    assert_eq!(tape.record(&[0.0, 0.0], beside).map(drop).map_err(|error| error.code()), Err("PAL0119"));
}
