//! Laws of what sides say of a derivative at a point: all parts of it come from one side, and neither powers
//! of the distance, nor curvature, nor sides that cannot tell hide a short cut.
//!
//! Expected slopes are closed forms.

use crate::points::{REFUSED, code};
use palinode::drivers::{derivatives, hvp, jvp, sparse_hessian, sparse_jacobian, vjp};
use palinode::forward::Jet;
use palinode::{Dual, Real, Tape, Var, grad, hessian, jacobian};

fn larger<R: Real>(a: R, b: R) -> R {
    if a > b { a } else { b }
}

/// If a comparison is of the point, each part by itself may be that of some side; all together they are those
/// of none.
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

/// Kinks of the rule table and by hand beside a short cut that is right: no side has them all, they are on no
/// way from one to the other, and each is excused, whatever their number.
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
    // Which comparison is the guard cannot be known where `x[2]` is negative, which it is along some
    // directions on both sides of others.
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

/// A kink before a guard makes the guard's comparison another one in number near the point; it is still of
/// the point.
#[test]
fn a_kink_before_a_guard_hides_it_not() {
    // A kink by hand: which of its sides takes more comparisons, and how many.
    fn kink<R: Real>(x: R, more: usize) -> R {
        if x > 0.0 {
            let passed = (0..more).filter(|&k| x < 0.5 + k as f64).count();
            x * (passed + 1 - more) as f64
        } else {
            x * 0.5
        }
    }
    for more in 0..4 {
        macro_rules! beside {
            ($weight:expr, $kinked:expr, $guard:expr) => {
                |x: &[_]| {
                    let (a, b) = (x[0], x[1]);
                    let kinked = kink(x[$kinked], more);
                    kinked + if $guard(a, b) { a * $weight + b * ($weight * 2.0) } else { larger(a, b) }
                }
            };
        }
        let square = |a: Var<f64>, b: Var<f64>| a * a + b * b == 0.0;
        let both = |a: Var<f64>, b: Var<f64>| b == 0.0 && a == 0.0;
        let tiny = |a: Var<f64>, b: Var<f64>| a.abs() + b.abs() < 1e-12;
        // The kink of another input, and of one that the guard is for.
        for kinked in [2, 0] {
            assert_eq!(code(grad(beside!(0.0, kinked, square), &[0.0; 3])), REFUSED, "{more} {kinked}");
            assert_eq!(code(grad(beside!(0.0, kinked, both), &[0.0; 3])), REFUSED, "{more} {kinked}");
            assert_eq!(code(grad(beside!(0.0, kinked, tiny), &[0.0; 3])), REFUSED, "{more} {kinked}");
        }
        // (1, 2) / 3 is a gradient of the maximum.
        let third = 1.0 / 3.0;
        assert_eq!(grad(beside!(third, 2, square), &[0.0; 3]).unwrap(), [third, 2.0 * third, 0.5], "{more}");
        assert_eq!(grad(beside!(third, 2, both), &[0.0; 3]).unwrap(), [third, 2.0 * third, 0.5], "{more}");
        assert_eq!(grad(beside!(third, 2, tiny), &[0.0; 3]).unwrap(), [third, 2.0 * third, 0.5], "{more}");
        // Many kinks before a guard that is right are excused.
        let many = |slope: f64| {
            move |x: &[Var<f64>]| {
                let kinks = x[1..].iter().map(|&x| kink(x, more) + x.abs()).sum::<Var<f64>>();
                kinks + if x[0] == 0.0 { x[0] * slope } else { (x[0] * 3.0).sin() }
            }
        };
        let found = grad(many(3.0), &[0.0; 200]).unwrap();
        assert!(found[0] == 3.0 && found[1..].iter().all(|&slope| slope == 0.5), "{more}: {:?}", &found[..3]);
        assert_eq!(code(grad(many(0.0), &[0.0; 200])), REFUSED, "{more}");
    }
    // More kinks than are kept.
    let behind = |x: &[Var<f64>]| {
        let kinks = x[2..].iter().map(|&x| kink(x, 0)).sum::<Var<f64>>();
        kinks + if x[0] == 0.0 && x[1] == 0.0 { x[0] * 0.0 } else { larger(x[0], x[1]) }
    };
    assert_eq!(code(grad(behind, &[0.0; 1100])), REFUSED);
    // Inputs that are excused together are so one by one.
    let together = |x: &[Var<f64>]| {
        let nothing = if x[2] > 0.0 { x[2] * 0.0 } else { -x[2] * 0.0 };
        let guarded = if x[1] == 0.0 && x[0] == 0.0 { x[0] * 0.0 } else { larger(x[0], x[1]) };
        x[2].abs() + nothing + guarded
    };
    assert_eq!(code(grad(together, &[0.0; 3])), REFUSED);
}

/// The derivatives of one function come from one side in all orders.
#[test]
fn all_orders_come_from_one_side() {
    // The slopes are 1 and -1, the second derivatives 2 and 6.
    macro_rules! guarded {
        ($slope:expr, $half_second:expr) => {
            |x: &[_]| of!(x[0], $slope, $half_second)
        };
    }
    macro_rules! of {
        ($x:expr, $slope:expr, $half_second:expr) => {{
            let x = $x;
            if x == 0.0 {
                x * $slope + x * x * $half_second
            } else if x > 0.0 {
                x + x * x
            } else {
                x * x * 3.0 - x
            }
        }};
    }
    for (slope, half_second) in [(0.0, 1.0), (1.0, 3.0), (-1.0, 1.0), (0.5, 2.0), (1.0, 2.0)] {
        let name = format!("{slope} {half_second}");
        assert_eq!(code(hessian(guarded!(slope, half_second), &[0.0])), REFUSED, "{name}");
        assert_eq!(code(sparse_hessian(guarded!(slope, half_second), &[0.0])), REFUSED, "{name}");
        assert_eq!(code(hvp(guarded!(slope, half_second), &[0.0], &[2.0])), REFUSED, "{name}");
        assert_eq!(code(derivatives(|x: Jet<f64, 2>| of!(x, slope, half_second), 0.0)), REFUSED, "{name}");
    }
    for (slope, half_second) in [(1.0, 1.0), (-1.0, 3.0), (0.0, 2.0), (0.5, 1.5)] {
        let second = 2.0 * half_second;
        assert_eq!(hessian(guarded!(slope, half_second), &[0.0]).unwrap(), [[second]]);
        assert_eq!(hvp(guarded!(slope, half_second), &[0.0], &[2.0]).unwrap().2, [2.0 * second]);
        let found = derivatives(|x: Jet<f64, 2>| of!(x, slope, half_second), 0.0).unwrap();
        assert_eq!(found, [0.0, slope, second]);
    }
    // Kinks of other inputs, of either order, are excused.
    let kinks = |x: &[Var<Var<f64>>]| {
        let kinks = x[1..].chunks(2).map(|x| x[0].abs() + if x[1] > 0.0 { x[1] * x[1] } else { x[1] * 2.0 });
        kinks.sum::<Var<Var<f64>>>() + if x[0] == 0.0 { x[0] } else { x[0].sin() }
    };
    let found = hessian(kinks, &[0.0; 21]).unwrap();
    assert!(found.concat().iter().all(|&second| second == 0.0));
}

/// Inputs that are ordinary one by one and not together take runs, up to a bound.
#[test]
fn the_runs_for_excuses_are_bounded() {
    let mut runs = 0;
    let mut look = |n: usize, neighbours: bool| {
        runs = 0;
        let pairs = |x: &[Var<f64>]| {
            runs += 1;
            // 0 is between the slopes, and not equally far on the way from one to the other.
            let by_hand = |x: Var<f64>| if x > 0.0 { x } else { x * 0.0 };
            let kink = |(i, &x): (usize, &Var<f64>)| x.abs() * (1 + i % 7) as f64 + by_hand(x);
            let kinks = x.iter().enumerate().map(kink).sum::<Var<f64>>();
            let products = if neighbours {
                x.windows(2).map(|x| x[0] * x[1]).sum::<Var<f64>>()
            } else {
                let sum = x.iter().copied().sum::<Var<f64>>();
                sum * sum - x.iter().map(|&x| x * x).sum::<Var<f64>>()
            };
            kinks + if products == 0.0 { products * 0.0 } else { products }
        };
        let found = grad(pairs, &vec![0.0; n]);
        (found.map(|g| g.iter().all(|&slope| slope == 0.0)), runs)
    };
    let (found, runs) = look(600, true);
    assert!(found == Ok(true) && runs < 50, "{found:?} {runs}");
    let (found, runs) = look(101, false);
    assert!(found == Ok(true) && runs < 500, "{found:?} {runs}");
    let (found, runs) = look(600, false);
    assert!(code(found) == REFUSED && runs < 2200, "{runs}");
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
