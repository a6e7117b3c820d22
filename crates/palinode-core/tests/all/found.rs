//! What reviewers found, kept found.

use num_traits::Zero;
use palinode_core::{
    Dual, Error, Jet, Scalar, Tape, Var, custom, custom_rule, decision, grad, jacobian, jvp, value_and_grad,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[test]
fn outputs_count_towards_the_byte_limit_and_a_refusal_keeps_nothing() {
    let mut tape = Tape::with_limits(u32::MAX, 10_000);
    let refused = tape.record(&[1.0], |x| vec![x[0]; 1_000_000]).map(|_| ());
    assert!(matches!(refused, Err(Error::ByteLimit { limit: 10_000, .. })), "{refused:?}");
    assert!(tape.heap_bytes() <= 10_000);
    assert_eq!(tape.value_and_grad(|x| x[0] * x[0], &[3.0]), Ok((9.0, vec![6.0])));
}

#[test]
fn memory_of_earlier_recordings_does_not_stand_in_the_way() {
    let many = vec![1.0; 500];
    let mut tape = Tape::with_limits(u32::MAX, 60_000);
    tape.value_and_grad(|x| (0..700).fold(x[0], |y, _| y * x[1] + x[2]), &[1.0, 0.5, 0.25]).unwrap();
    assert!(tape.value_and_grad(|x| x.iter().sum(), &many).is_ok());
}

#[test]
fn zero_tests_after_a_limit_lead_to_the_typed_error() {
    let run = |x: &[Var<f64>]| {
        let mut y = x[0];
        for _ in 0..5_000 {
            let zero = (y - y) * x[1] + (x[2] - x[2]) * y;
            y = if zero.is_zero() { y } else { y * x[1] + x[2] };
        }
        y
    };
    let refused = Tape::with_limits(1000, usize::MAX).record(&[1.0, 0.5, 0.25], run).map(|_| ());
    assert_eq!(refused, Err(Error::TapeFull { limit: 1000 }));
}

#[test]
fn whole_powers_of_jets_cost_no_more_than_real_ones() {
    // It was exponential in the order: 24 took a second and a half.
    let x = Jet::<f64, 32>::variable(1.25);
    let (a, b) = (x.powi(7), x.powf(7.0));
    for k in 0..=32 {
        assert!((a.coefficient(k) - b.coefficient(k)).abs() <= 1e-12 * (1.0 + a.coefficient(k).abs()));
    }
}

#[test]
fn margins_are_distances_to_the_jump() {
    let margin = |f: fn(Dual<f64>, Dual<f64>) -> Dual<f64>, x: f64, y: f64| {
        let run = || jvp(|v| vec![f(v[0], v[1])], &[x, y], &[1.0, 1.0]);
        decision::watch(run).1.smallest_margin
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert_eq!(margin(|x, y| x.atan2(y), 1.0, 5.0), f64::INFINITY);
    assert!(near(margin(|x, y| x.atan2(y), 0.125, -5.0), 0.125));
    assert!(near(margin(|x, _| x.signum(), 3.0, 0.0), 3.0));
    assert!(near(margin(|x, _| x.floor(), 2.5, 0.0), 0.5));
    assert!(near(margin(|x, _| x.round(), 2.0, 0.0), 0.5));
    assert!(near(margin(|x, _| x.trunc(), 0.25, 0.0), 0.75));
    assert!(near(margin(|x, y| x.copysign(y), 1.25, 1e-9), 1e-9));
    assert!(near(margin(|x, y| x % y, 0.3000000001, 0.1), 1e-10));
}

#[test]
fn forward_sweeps_leave_idle_lanes_alone() {
    let asked = Arc::new(AtomicUsize::new(0));
    let f = |x: &[Var<f64>]| {
        let asked = asked.clone();
        let counted = custom_rule("counted", move |outputs: &[f64], inputs| {
            asked.fetch_add(1, Relaxed);
            inputs[0] += outputs[0] + 2.0 * outputs[1] + 3.0 * outputs[2];
        });
        custom(x, &[1.0, 2.0, 3.0], counted)
    };
    let j = jacobian(f, &[1.0]).unwrap();
    assert_eq!((j, asked.load(Relaxed)), (vec![vec![1.0], vec![2.0], vec![3.0]], 3));
}

#[test]
fn a_sum_keeps_the_sign_of_zero() {
    let (y, _) = value_and_grad(|x| x.iter().sum(), &[-0.0_f64]).unwrap();
    assert!(y.is_sign_negative());
    assert_eq!(grad(|x| x.iter().map(|v| v * v).sum(), &[3.0]).unwrap(), [6.0]);
}

#[test]
fn a_comparison_of_nested_numbers_counts_once() {
    let f = |x: &[Var<Var<f64>>]| if x[0] > 1.0 { x[0] * x[0] } else { x[0] };
    let (h, seen) = decision::watch(|| palinode_core::hessian(f, &[1.5]));
    assert_eq!((h.unwrap(), seen.comparisons, seen.smallest_margin), (vec![vec![2.0]], 1, 0.5));
}

/// An infinite `f64` is above every number, also beside posits, which have no infinity: for the posit, for
/// numbers with derivatives over it that are active and that are not, and for those of floats.
#[test]
fn infinities_compare_alike_in_every_number() {
    use palinode_core::{DualN, Posit16, Real};
    fn finite<R: Real>(x: R) {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(x < inf && x > -inf, "{x}");
        assert_eq!((x == inf, x == -inf), (false, false), "{x}");
        assert_eq!((x.partial_cmp(&nan), x == nan), (None, false), "{x}");
    }
    let one = Posit16::ONE;
    finite(1.0);
    finite(one);
    finite(Dual::lift(one));
    finite(Dual::new(one, one));
    finite(Dual::new(Dual::new(one, one), Dual::one()));
    finite(DualN::<Posit16, 2>::variables([one, one])[0]);
    finite(Dual::new(1.0, 1.0));
    let mut tape = Tape::new();
    let record = tape.record(&[one], |x: &[Var<Posit16>]| {
        finite(x[0]);
        finite(Var::lift(one));
        // The mirror images, and a search that starts at infinity.
        assert!(f64::INFINITY > x[0] && f64::NEG_INFINITY < x[0]);
        let mut best = f64::INFINITY;
        for y in [x[0], x[0] * 0.5] {
            if y < best {
                best = y.to_f64();
            }
        }
        assert_eq!(best, 0.5);
        x[0]
    });
    assert_eq!(record.unwrap().values(), [one]);
    // It is still a decision of the program, and NaR is still no number.
    let f = |x: &[Var<Posit16>]| if x[0] < f64::INFINITY { x[0] } else { -x[0] };
    let (slope, seen) = decision::watch(|| grad(f, &[one]));
    assert_eq!((slope.unwrap(), seen.comparisons), (vec![one], 1));
    assert_eq!(Posit16::NAR.partial_cmp(&f64::INFINITY), None);
    assert_eq!(Dual::new(Posit16::NAR, one).partial_cmp(&f64::INFINITY), None);
    assert_eq!(Dual::new(f64::INFINITY, 1.0), f64::INFINITY);
}

/// Where something differentiable is below the outermost level, too.
#[test]
fn looks_and_comparisons_count_at_every_level() {
    let moving_inside = Dual::lift(Dual::new(2.0, 1.0));
    let still = Dual::lift(Dual::lift(2.0));
    let seen = |look: &dyn Fn(Dual<Dual<f64>>) -> bool, x| decision::watch(|| look(x)).1;
    let looks: [&dyn Fn(Dual<Dual<f64>>) -> bool; 3] =
        [&|x| x.peek() == Some(2.0), &|x| x.is_nan(), &|x| x.is_finite()];
    for look in looks {
        assert_eq!((seen(look, moving_inside).looks, seen(look, still).looks), (1, 0));
        assert_eq!(seen(look, moving_inside).count(), 0);
    }
    for bound in [f64::INFINITY, f64::NAN, 3.0] {
        let below = |x: Dual<Dual<f64>>| x < bound;
        let (moved, stood) = (seen(&below, moving_inside), seen(&below, still));
        assert_eq!((moved.comparisons, stood.comparisons, stood.looks), (1, 0, 0), "{bound}");
        assert_eq!(moved.undefined, u64::from(bound.is_nan()));
    }
}
