//! Laws of what sides say of a derivative at a point: all parts of it come from one side, and neither powers of the distance, nor curvature, nor sides that cannot tell hide a short cut.
//!
//! Expected slopes are closed forms.

use palinode::{Dual, Error, Jet, Real, Tape, Var, derivatives, grad, jacobian, jvp, sparse_jacobian, vjp};

fn code<T>(found: Result<T, Error>) -> Option<&'static str> {
    found.err().map(|error| error.code())
}

const REFUSED: Option<&str> = Some("PAL0119");

fn larger<R: Real>(a: R, b: R) -> R {
    if a > b { a } else { b }
}

/// If a comparison is of the point, each part by itself may be that of some side; all together they are those of none.
#[test]
fn all_parts_come_from_one_side() {
    macro_rules! guarded {
        () => {
            |x: &[_]| if x[0] == 0.0 && x[1] == 0.0 { x[0] * 0.0 } else { larger(x[0], x[1]) }
        };
    }
    assert_eq!(code(grad(guarded!(), &[0.0, 0.0])), REFUSED);
    assert_eq!(code(vjp(|x: &[Var<f64>]| [guarded!()(x)], &[0.0, 0.0], &[1.0])), REFUSED);
    assert_eq!(code(jacobian(|x: &[Var<f64>]| [x[0], guarded!()(x)], &[0.0, 0.0])), REFUSED);
    assert_eq!(code(sparse_jacobian(|x: &[_]| [x[0], guarded!()(x)], &[0.0, 0.0])), REFUSED);
    assert_eq!(code(Tape::new().record(&[0.0, 0.0], |x| [x[0], guarded!()(x)])), REFUSED);
    let three = |x: &[Var<f64>]| {
        if x.iter().all(|&x| x == 0.0) { x[0] * 0.0 } else { larger(larger(x[0], x[1]), x[2]) }
    };
    assert_eq!(code(grad(three, &[0.0; 3])), REFUSED);
    // One of the sides, or on the way from one to the other, is none of this.
    for weight in [0.0, 0.3, 1.0] {
        let fair = |x: &[Var<f64>]| {
            let is_zero = x[0] == 0.0 && x[1] == 0.0;
            if is_zero { x[0] * weight + x[1] * (1.0 - weight) } else { larger(x[0], x[1]) }
        };
        assert_eq!(grad(fair, &[0.0, 0.0]).unwrap(), [weight, 1.0 - weight]);
    }
    // Outputs are different functions: each has a side of its own.
    let apart = |x: &[Var<f64>]| {
        let is_zero = x[0] == 0.0 && x[1] == 0.0;
        let (first, second) = if is_zero { (x[0], x[1]) } else { (larger(x[0], x[1]), larger(x[1], x[0])) };
        [first, second]
    };
    assert_eq!(jacobian(apart, &[0.0, 0.0]).unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    // Kinks by hand, many of them, beside a guard that is right: each is ordinary along its own input.
    let n = 1500;
    for z in [0.0, 3.0] {
        let beside = |x: &[Var<f64>]| {
            let kinks = x[1..].iter().map(|&x| if x > 0.0 { x } else { x * 0.5 }).sum::<Var<f64>>();
            kinks + if x[0] == 0.0 { x[0] * z } else { x[0] * 3.0 + x[0] * x[0] }
        };
        let found = grad(beside, &vec![0.0; n]);
        if z == 3.0 {
            let found = found.unwrap();
            assert!(found[0] == 3.0 && found[1..].iter().all(|&slope| slope == 0.5));
        } else {
            assert_eq!(code(found), REFUSED);
        }
    }
}

/// Kinks of the rule table and by hand beside a short cut that is right: no side has them all, they are on no way from one to the other, and each is excused, whatever their number.
#[test]
fn many_kinks_are_excused_in_groups() {
    let n = 3001;
    let mut runs = 0;
    let many = |x: &[Var<f64>]| {
        runs += 1;
        let by_hand = |x: Var<f64>| if x > 0.0 { x } else { x * 0.0 };
        let kinks = x[1..].chunks(2).map(|x| x[0].abs() + by_hand(x[x.len() - 1])).sum::<Var<f64>>();
        kinks + if x[0] == 0.0 { x[0] * 3.0 } else { (x[0] * 3.0).sin() }
    };
    let found = grad(many, &vec![0.0; n]).unwrap();
    assert!(found[0] == 3.0 && found[1..].iter().all(|&slope| slope == 0.0), "{:?}", &found[..3]);
    assert!(runs < 40, "{runs}");
}

/// A power of the distance with a large factor.
#[test]
fn powers_hide_no_slope() {
    for factor in [1.0, 100.0, 1e3, 1e5, 1e7] {
        for power in [1.3, 1.5, 1.7] {
            let guarded = |slope: f64| {
                move |x: &[Var<f64>]| {
                    if x[0] == 0.0 { x[0] * slope } else { factor * x[0].abs().powf(power) + 3.0 * x[0] }
                }
            };
            let name = format!("{factor} |x|^{power}");
            assert_eq!(code(grad(guarded(0.0), &[0.0])), REFUSED, "{name}");
            assert_eq!(code(grad(guarded(3.3), &[0.0])), REFUSED, "{name}");
            assert_eq!(grad(guarded(3.0), &[0.0]).unwrap(), [3.0], "{name}");
            // With another power in it.
            let mixed = |slope: f64| {
                move |x: &[Dual<f64>]| {
                    let others = 40.0 * x[0] * x[0] + x[0].sin() * x[1].cos();
                    let y =
                        if x[0] == 0.0 { x[0] * slope } else { factor * x[0].abs().powf(power) + 2.0 * x[0] };
                    [y + others]
                }
            };
            assert_eq!(code(jvp(mixed(0.0), &[0.0, 0.0], &[1.0, 0.5])), REFUSED, "{name}");
            assert_eq!(jvp(mixed(2.0), &[0.0, 0.0], &[1.0, 0.5]).unwrap().1, [3.0], "{name}");
        }
    }
}

/// Curvature is no rounding, beside a part of any size; nor at points of any size.
#[test]
fn curvature_hides_no_slope() {
    for large in [1.0, 1e3, 1e6, 1e9, 1e12] {
        for curvature in [1.0, 1e2, 1e4] {
            macro_rules! beside {
                ($slope:expr) => {
                    |x: &[_]| {
                        let (x, y) = (x[0], x[1]);
                        let curved = (x * 3.0).sin() + (x * x) * curvature;
                        (if x == 0.0 { x * $slope } else { curved }) + y * large
                    }
                };
            }
            let name = format!("{curvature} beside {large:e}");
            assert_eq!(code(grad(beside!(0.0), &[0.0, 1.5])), REFUSED, "{name}");
            assert_eq!(grad(beside!(3.0), &[0.0, 1.5]).unwrap(), [3.0, large], "{name}");
            // A value that is large, and its slope is not.
            let high = |slope: f64| {
                move |x: Jet<f64, 1>| {
                    let curved = (x * 3.0).sin() + (x * x) * curvature;
                    (if x == 0.0 { x * slope } else { curved }) + large
                }
            };
            assert_eq!(code(derivatives(high(0.0), 0.0)), REFUSED, "{name}");
            assert_eq!(derivatives(high(3.0), 0.0).unwrap()[1], 3.0, "{name}");
        }
    }
    for at in [1e-3, 1.0, 1e3, 1e6, 1e9] {
        for curvature in [1.0, 1e3] {
            let guarded = |slope: f64| {
                move |x: &[Var<f64>]| {
                    let d = x[0] - at;
                    if d == 0.0 { d * slope } else { d * 3.0 + d * d * curvature }
                }
            };
            assert_eq!(code(grad(guarded(0.0), &[at])), REFUSED, "{curvature} at {at:e}");
            assert_eq!(grad(guarded(3.0), &[at]).unwrap(), [3.0], "{curvature} at {at:e}");
        }
    }
}

/// Directions along which a comparison cannot be found again say nothing of it.
#[test]
fn directions_that_cannot_tell_say_nothing() {
    // Which comparison is the guard cannot be told where `x[2]` is negative, which it is along some directions on both sides of others.
    let late = |x: &[Var<f64>]| {
        let more = if x[2] > 0.0 { usize::from(x[2] > 0.5) + usize::from(x[2] > 0.7) } else { 0 };
        let guarded = if x[0] == 0.0 && x[1] == 0.0 { x[0] * 0.0 } else { larger(x[0], x[1]) };
        guarded + more as f64
    };
    assert_eq!(code(grad(late, &[0.0, 0.0, 0.0])), REFUSED);
    // One side fails along most directions.
    let half = |x: &[Var<f64>]| {
        assert!(x[0] + x[1] >= 0.0, "(this message is expected: the closure is asked beside its domain)");
        if x[0] == 0.0 && x[1] == 0.0 { x[0] * 0.0 } else { larger(x[0], x[1]) }
    };
    assert_eq!(code(grad(half, &[0.0, 0.0])), REFUSED);
}

/// A value that jumps at the point: its slope must be that of the sides all the same.
#[test]
fn jumps_at_a_point() {
    let jumps = |slope: f64| move |x: &[Var<f64>]| if x[0] == 0.0 { x[0] * slope + 5.0 } else { x[0] };
    assert_eq!(code(grad(jumps(0.0), &[0.0])), REFUSED);
    assert_eq!(grad(jumps(1.0), &[0.0]).unwrap(), [1.0]);
    let lifted = |x: &[Var<f64>]| if x[0] == 0.0 { Var::lift(5.0) } else { x[0] };
    assert_eq!(code(grad(lifted, &[0.0])), REFUSED);
}
