//! The one hook for decisions: comparisons, roundings and conversions of active values, counted with their
//! margins.

use num_traits::{Float, Signed, ToPrimitive, Zero};
use palinode::{Dual, Real, Var, decision, grad};

fn active(value: f64) -> Dual<f64> {
    Dual::new(value, 1.0)
}

#[test]
fn each_kind_is_counted_once() {
    let (_, seen) = decision::watch(|| {
        let x = active(2.25);
        let _ = x < 3.0;
        let _ = x == active(2.5);
        let _ = x.is_zero();
        let _ = Signed::is_negative(&x);
        let _ = x.floor();
        let _ = Float::round(x);
        let _ = Real::to_f64(x);
        let _ = x.to_i32();
        let _ = Float::integer_decode(x);
    });
    assert_eq!((seen.comparisons, seen.roundings, seen.conversions), (4, 2, 3));
    assert_eq!(seen.count(), 9);
    assert_eq!(seen.smallest_margin, 0.25);
}

#[test]
fn constants_and_smooth_functions_decide_nothing() {
    let (_, seen) = decision::watch(|| {
        let c = Dual::lift(2.25);
        let _ = (c < 3.0, c.floor(), Real::to_f64(c), c.is_zero());
        let x = active(2.25);
        let _ = x.sin() * x.exp() + x.abs() + x.max(c) + x.tanh() + x.logistic() + x.lgamma();
    });
    assert_eq!(seen.count(), 0);
    assert_eq!(seen.smallest_margin, f64::INFINITY);
}

#[test]
fn a_tape_decides_like_a_forward_number() {
    // while x < 1 { x = 2 x }: the derivative is 2^k; the closest call is how near a power of two it came.
    fn doubled<S: Real>(mut x: S) -> S {
        while x < S::one() {
            x *= 2.0;
        }
        x
    }
    let (forward, seen_forward) = decision::watch(|| doubled(active(0.3)));
    let (reverse, seen_reverse) = decision::watch(|| grad(|x| doubled(x[0]), &[0.3]).unwrap()[0]);
    assert_eq!((forward.tangent, reverse), (4.0, 4.0));
    assert_eq!(seen_forward, seen_reverse);
    assert_eq!(seen_forward.comparisons, 3);
    assert!((seen_forward.smallest_margin - 0.2).abs() < 1e-15);
}

#[test]
fn watches_nest_and_end() {
    let ((inner, inner_seen), outer_seen) = decision::watch(|| {
        let _ = active(1.0) < 5.0;
        let result = decision::watch(|| active(1.0) < 1.5);
        let _ = active(1.0) < 4.0;
        result
    });
    assert!(inner);
    assert_eq!((inner_seen.comparisons, inner_seen.smallest_margin), (1, 0.5));
    assert_eq!((outer_seen.comparisons, outer_seen.smallest_margin), (3, 0.5));

    // After a panic inside, the next watch starts from nothing.
    let panicked = std::panic::catch_unwind(|| {
        decision::watch(|| {
            let _ = active(1.0) < 1.25;
            panic!("stop");
        })
    });
    assert!(panicked.is_err());
    let (_, seen) = decision::watch(|| ());
    assert_eq!(seen.count(), 0);
}

#[test]
fn nested_numbers_decide_at_the_level_that_moves() {
    // Only the inner level is active: the outer one is a constant of its own.
    let x = Dual::lift(active(1.0));
    let (_, seen) = decision::watch(|| x < Dual::lift(Dual::lift(3.0)));
    assert_eq!((seen.comparisons, seen.smallest_margin), (1, 2.0));
}

#[test]
fn a_zero_that_carries_a_derivative_is_not_skipped() {
    /// Sums products and skips zeros, as sparse code does.
    fn sparse_dot<T: num_traits::Num + Copy>(a: &[T], b: &[T]) -> T {
        a.iter().zip(b).filter(|(a, _)| !a.is_zero()).fold(T::zero(), |sum, (&a, &b)| sum + a * b)
    }
    let gradient = grad(|x| sparse_dot(&x[..2], &x[2..]), &[0.0, 1.0, 5.0, 7.0]).unwrap();
    assert_eq!(gradient, [5.0, 7.0, 0.0, 1.0]);
    let a = [active(0.0), Dual::lift(0.0)];
    assert_eq!(sparse_dot(&a, &[Dual::lift(5.0), Dual::lift(7.0)]).tangent, 5.0);
    // A constant zero is skipped, so an infinity beside it does not matter.
    let gradient =
        grad(|x| sparse_dot(&[Var::lift(0.0), x[0]], &[Var::lift(f64::INFINITY), x[1]]), &[2.0, 3.0])
            .unwrap();
    assert_eq!(gradient, [3.0, 2.0]);
}

/// Text of an active number is a look, whatever makes it; that of a constant is none.
#[test]
fn text_is_a_look() {
    use palinode::Dual;
    use palinode::forward::{DualN, Jet, Passive};
    fn looks<N: std::fmt::Display + std::fmt::LowerExp>(number: N) -> u64 {
        decision::watch(|| (number.to_string(), format!("{number:.2} {number:e}"))).1.looks
    }
    assert_eq!([looks(Dual::new(3.0, 1.0)), looks(Dual::lift(3.0))], [3, 0]);
    assert_eq!([looks(DualN::new(3.0, [0.0, 1.0])), looks(DualN::<f64, 2>::lift(3.0))], [3, 0]);
    assert_eq!([looks(Jet::<f64, 2>::variable(3.0)), looks(Jet::<f64, 2>::lift(3.0))], [3, 0]);
    assert_eq!(looks(Passive::new(3.0)), 3);
    let of_vars = |x: &[Var<f64>]| {
        assert_eq!([looks(x[0] * 2.0), looks(Var::lift(3.0))], [3, 0]);
        x[0]
    };
    let (g, seen) = decision::watch(|| grad(of_vars, &[3.0]));
    assert_eq!((g.unwrap(), seen.looks, seen.count()), (vec![1.0], 3, 0));
}
