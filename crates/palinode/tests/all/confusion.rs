//! A forward driver inside another one of the same number, whose closure uses a number of the outer one:
//! refused (PAL0120) through every pairing, at one, two and three levels; and nestings that are right give
//! what was worked out by hand.

use palinode::drivers::{derivatives, hvp, jvp};
use palinode::forward::Jet;
use palinode::num::Key;
use palinode::{Dual, Error, Scalar, Tape, Var, decision, grad};

/// The slope of a function of one variable, by each forward driver of the number `S`.
macro_rules! slope {
    (jvp, |$y:ident| $f:expr, $x:expr) => {
        jvp(
            |v: &[Dual<f64>]| {
                let $y = v[0];
                $f
            },
            &[$x],
            &[1.0],
        )
        .map(|(_, tangents)| tangents[0])
    };
    (derivatives, |$y:ident| $f:expr, $x:expr) => {
        derivatives::<f64, 2>(|$y| $f, $x).map(|all| all[1])
    };
    (hvp, |$y:ident| $f:expr, $x:expr) => {
        hvp(
            |v| {
                let $y = v[0];
                $f
            },
            &[$x],
            &[1.0],
        )
        .map(|(_, _, product)| product[0])
    };
}

fn is_refused<T: std::fmt::Debug>(found: Result<T, Error>) {
    let error = found.expect_err("a number of the outer level was captured");
    assert_eq!(error.code(), "PAL0120", "{error}");
    assert!(error.to_string().contains("lift"), "{error}");
}

/// The inner closure uses `x` itself: the answers that came out were 2 for 1 (and 2 for 4 in the last one).
macro_rules! captured {
    ($($driver:ident)*) => {$(
        let outer = slope!($driver, |x| {
            // d/dx [ x * d/dy (x + y) at y = 1 ]
            is_refused(slope!($driver, |y| x + y, 1.0));
            // d/dx [ x * d/dy (x y y) at y = 2 ]
            is_refused(slope!($driver, |y| x * y * y, 2.0));
            // d/dx [ x * d/dy (x y) at y = 0 ]: where y is zero, the captured tangent is too, and the answer
            // only misses a term.
            is_refused(slope!($driver, |y| x * y, 0.0));
            is_refused(slope!($driver, |y| (x * y).sin() + y, 0.0));
            // On one branch only.
            is_refused(slope!($driver, |y| if y > 0.5 { x * y } else { y }, 1.0));
            // As a constant, or to decide, it may be used.
            assert_eq!(slope!($driver, |y| y * y * x.primal(), 2.0).unwrap(), 12.0);
            assert_eq!(slope!($driver, |y| if x > 1.0 { y * y } else { y }, 2.0).unwrap(), 4.0);
            // And what captures nothing is not asked to lift.
            assert_eq!(slope!($driver, |y| y * y, x.primal()).unwrap(), 6.0);
            x
        }, 3.0);
        assert_eq!(outer.unwrap(), 1.0);
    )*};
}

#[test]
fn a_captured_number_is_refused() {
    captured! { jvp derivatives }
}

/// Jets of higher order see what a first derivative does not.
#[test]
fn what_cancels_at_first_order() {
    let outer = derivatives::<f64, 2>(
        |x| {
            is_refused(derivatives::<f64, 2>(|y| (x - 3.0) * (x - 3.0) * y, 1.0));
            x
        },
        3.0,
    );
    assert!(outer.is_ok());
    // Of first order there is nothing to lose: d/dx of 2 (x - 3) y is 0 at 3.
    let inner = |x| derivatives::<f64, 1>(|y| (x - 3.0) * (x - 3.0) * y, 1.0).unwrap()[1];
    assert_eq!(derivatives::<f64, 1>(|x| x + inner(x), 3.0).unwrap(), [3.0, 1.0]);
}

#[test]
fn products_with_hessians() {
    // hvp in jvp, the outer number lifted into the tape but not past the tangent
    let outer = slope!(
        jvp,
        |x| {
            is_refused(slope!(hvp, |y| Var::lift(x) * y * y, 2.0));
            is_refused(slope!(hvp, |y| Var::lift(x) * y, 0.0));
            assert_eq!(slope!(hvp, |y| y * y * x.value, 2.0).unwrap(), 6.0);
            x
        },
        3.0
    );
    assert!(outer.is_ok());
    // jvp in hvp and hvp in hvp: the primal of the outer `Var` is a `Dual` of the outer level.
    let outer = slope!(
        hvp,
        |x| {
            is_refused(slope!(jvp, |y| x.value() * y, 2.0));
            is_refused(slope!(hvp, |y| Var::lift(x.value()) * y * y, 2.0));
            is_refused(slope!(hvp, |y| Var::lift(x.value()) * y * y, 0.0));
            x
        },
        3.0
    );
    assert!(outer.is_ok());
    // d/dx of the second derivative of x y^3 by y at y = x, 6 x y: 12 x
    let lifted = slope!(
        jvp,
        |x| {
            let cubed = |y: &[Var<Dual<Dual<f64>>>]| Var::lift(Dual::lift(x)) * y[0].powi(3);
            hvp(cubed, &[x], &[Dual::lift(1.0)]).unwrap().2[0]
        },
        2.0
    );
    assert_eq!(lifted.unwrap(), 24.0);
}

#[test]
fn two_and_three_levels() {
    let one = Dual::lift(1.0);
    let outer = slope!(
        jvp,
        |x| {
            // Across a tape that is right.
            let across = |z: &[Var<Dual<f64>>]| {
                is_refused(slope!(jvp, |y| x + y, 1.0));
                is_refused(slope!(jvp, |y| z[0].value() + x * y, 1.0));
                z[0]
            };
            grad(across, &[x]).unwrap();
            // Across a nesting that is right: the outermost number, and that of the middle.
            let middle = |z: &[Dual<Dual<f64>>]| {
                is_refused(slope!(jvp, |y| x + y, 1.0));
                is_refused(jvp(|y: &[Dual<Dual<f64>>]| z[0] * y[0], &[one], &[one]));
                is_refused(jvp(|y: &[Dual<Dual<f64>>]| z[0] * y[0], &[Dual::lift(0.0)], &[one]));
                // The outermost one, lifted, is a constant of the innermost: that is right.
                let inner = jvp(|y: &[Dual<Dual<f64>>]| Dual::lift(x) * y[0], &[x], &[one]);
                assert_eq!(inner.unwrap().1[0].value, 3.0);
                z[0] * z[0]
            };
            jvp(middle, &[x], &[one]).unwrap().1[0]
        },
        3.0
    );
    assert_eq!(outer.unwrap(), 2.0);
}

/// Three drivers inside one another on one number, none of which captures: nothing is asked for. And the
/// looking is seen by nobody.
#[test]
fn looking_is_apart() {
    let (answer, seen) = decision::watch(|| {
        jvp(
            |x| {
                let inner =
                    jvp(|y| if y[0] > 1.0 { y[0] * y[0] } else { y[0] }, &[x[0].value], &[1.0]).unwrap();
                x[0] * inner.1[0]
            },
            &[3.0],
            &[1.0],
        )
    });
    assert_eq!((answer.unwrap().1, seen.comparisons), (vec![6.0], 1));
    // After a panic inside, a driver starts at the top again.
    let panicked =
        std::panic::catch_unwind(|| jvp(|_| -> Dual<f64> { panic!("(expected)") }, &[1.0], &[1.0]));
    assert!(panicked.is_err());
    let x = Dual::new(3.0, 1.0);
    assert_eq!(jvp(|y| y[0] * x, &[2.0], &[1.0]).unwrap().1, [5.0]); // by hand, without a driver around: as it ever was
}

/// Recordings inside forward drivers are levels of their own.
#[test]
fn a_tape_inside_a_forward_driver() {
    let found = jvp(
        |x| {
            let mut tape = Tape::new();
            let mut record = tape.record(&[x[0]], |y| y[0] * y[0] * Var::lift(x[0])).unwrap();
            record.reverse(&[Dual::lift(1.0)]).unwrap()[0]
        },
        &[3.0],
        &[1.0],
    );
    assert_eq!(found.unwrap().1, [12.0]);
}

/// A polynomial of two variables: coefficients and exponents.
type Terms = [(f64, u32, u32); 3];

fn polynomial<N: Scalar>(terms: &Terms, x: N, y: N) -> N {
    let power = |x: N, n: u32| (0..n).fold(N::one(), |power, _| power * x);
    terms.iter().fold(N::zero(), |sum, &(c, a, b)| sum + N::from_f64(c) * power(x, a) * power(y, b))
}

/// All coefficients of nested jets: x * d/dy (x y y) at y = x is 2 x^3.
#[test]
fn every_coefficient_of_nested_jets_is_right() {
    let inner = |x| derivatives::<Jet<f64, 2>, 2>(|y| Jet::lift(x) * y * y, x).unwrap()[1];
    assert_eq!(derivatives::<f64, 2>(|x| x * inner(x), 2.0).unwrap(), [16.0, 24.0, 24.0]);
}

/// d/dx [ x * d/dy F(x, y) at y = m or x ] for random polynomials, at zeros, ones and random points: lifted
/// it is right through every pairing of drivers, and captured it is right or refused.
#[test]
fn random_nestings_are_right_or_refused() {
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..1000 {
        let key = Key::from_seed(seed);
        let entry =
            |i: u64| [0.0, 1.0, -1.0, 2.0, 2.0 * key.uniform(100 + i) - 1.0][key.below(5, i) as usize];
        let terms: Terms = std::array::from_fn(|i| {
            let i = 10 + 3 * i as u64;
            (entry(i), key.below(4, i + 1) as u32, key.below(4, i + 2) as u32)
        });
        // At a constant, or at `x` itself.
        let (x, m, is_at_x) = (entry(0), entry(1), seed % 4 == 3);
        let slope = |&(c, a, b): &(f64, u32, u32)| match (b, is_at_x) {
            (0, _) => 0.0,
            (_, true) => c * f64::from(b) * f64::from(a + b) * x.powi((a + b) as i32 - 1),
            (_, false) => c * f64::from(b) * f64::from(a + 1) * x.powi(a as i32) * m.powi(b as i32 - 1),
        };
        let expected: f64 = terms.iter().map(slope).sum();
        let is_right = |found: f64| (found - expected).abs() < 1e-12 * (1.0 + expected.abs());
        let check = |pairing: &str, found: f64| {
            assert!(is_right(found), "{pairing}: {found}, not {expected}, of {terms:?} at {x}, {m}");
        };
        // One driver inside another: d/dx of x times the inner slope.
        macro_rules! check {
            ($($inner:ident in $outer:ident: $Inner:ident over $Outer:ty;)*) => {$(
                let outer = |x: $Outer| {
                    let at = if is_at_x { x } else { <$Outer>::lift(m) };
                    x * slope_at!($inner, |y| polynomial(&terms, $Inner::lift(x), y), at, <$Outer>::lift(1.0))
                };
                check(stringify!($inner in $outer), slope_at!($outer, outer, x, 1.0));
            )*};
        }
        macro_rules! slope_at {
            (jvp, $f:expr, $at:expr, $one:expr) => {{
                let f = $f;
                jvp(|v| f(v[0]), &[$at], &[$one]).unwrap().1[0]
            }};
            (grad, $f:expr, $at:expr, $one:expr) => {{
                let f = $f;
                grad(|v| f(v[0]), &[$at]).unwrap()[0]
            }};
            (derivatives, $f:expr, $at:expr, $one:expr) => {
                derivatives::<_, 2>($f, $at).unwrap()[1]
            };
        }
        check! {
            jvp in jvp: Dual over Dual<f64>;
            grad in jvp: Var over Dual<f64>;
            derivatives in jvp: Jet over Dual<f64>;
            jvp in grad: Dual over Var<f64>;
            grad in grad: Var over Var<f64>;
            jvp in derivatives: Dual over Jet<f64, 2>;
            derivatives in derivatives: Jet over Jet<f64, 2>;
        }
        if is_at_x {
            continue;
        }
        // Captured: whatever comes out must be right.
        let mut judge = |pairing: &str, inner: Result<f64, Error>| match inner {
            // Times x, whose derivative is then all that is left.
            Ok(slope) => {
                accepted += 1;
                check(pairing, slope);
            }
            Err(error) => {
                assert_eq!(error.code(), "PAL0120", "{error}");
                refused += 1;
            }
        };
        let outer = slope!(
            jvp,
            |x| {
                judge("captured by jvp", slope!(jvp, |y| polynomial(&terms, x, y), m));
                x
            },
            x
        );
        assert!(outer.is_ok());
        let outer = derivatives::<f64, 1>(
            |x| {
                let inner = derivatives::<f64, 1>(|y| polynomial(&terms, x, y), m);
                judge("captured by derivatives", inner.map(|found| found[1]));
                x
            },
            x,
        );
        assert!(outer.is_ok());
    }
    assert!(refused > 500 && accepted > 100, "{refused} refused, {accepted} accepted");
}
