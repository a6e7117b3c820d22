//! Paths that exist only at a point: every driver is right there or refuses (PAL0119), and does not refuse
//! what is right.

use nalgebra::{DMatrix, Matrix2, Matrix3, Quaternion, Rotation3, UnitQuaternion, Vector2, Vector3};
use palinode::drivers::{derivatives, hvp, jvp, sparse_hessian, sparse_jacobian, vjp};
use palinode::forward::Jet;
use palinode::{Dual, Error, Scalar, Tape, Var, decision, grad, hessian, jacobian};

/// The code of an error.
pub(crate) fn code<T>(found: Result<T, Error>) -> Option<&'static str> {
    found.err().map(|error| error.code())
}

pub(crate) const REFUSED: Option<&str> = Some("PAL0119");

/// Whether it is refused; if not, it must be right.
pub(crate) fn refused(name: &str, found: Result<Vec<f64>, Error>, expected: &[f64], tolerance: f64) -> bool {
    match found {
        Err(error) => {
            assert_eq!(error.code(), "PAL0119", "{name}: {error}");
            true
        }
        Ok(found) => {
            let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
            assert!(close && found.len() == expected.len(), "{name}: {found:?}, not {expected:?}");
            false
        }
    }
}

/// One function through every first-order driver; the row-major Jacobian is known. The number of those that
/// refuse.
macro_rules! first_order {
    ($name:literal at $x:tt gives $expected:tt within $tolerance:literal: $f:expr) => {{
        let (x, expected, tolerance): (&[f64], &[f64], f64) = (&$x, &$expected, $tolerance);
        let (n, m) = (x.len(), expected.len() / x.len());
        let mut count = 0;
        let mut ask = |driver: &str, found: Result<Vec<f64>, Error>, expected: &[f64]| {
            count += usize::from(refused(&format!("{} by {driver}", $name), found, expected, tolerance));
        };
        ask("jacobian", jacobian($f, x).map(|rows| rows.concat()), expected);
        ask("sparse_jacobian", sparse_jacobian($f, x).map(|j| j.to_dense().concat()), expected);
        for row in 0..m {
            let u: Vec<f64> = (0..m).map(|i| f64::from(u8::from(i == row))).collect();
            ask("vjp", vjp($f, x, &u).map(|answer| answer.1), &expected[row * n..][..n]);
        }
        let v: Vec<f64> = (0..n).map(|i| 0.3 + i as f64).collect();
        let along: Vec<f64> =
            expected.chunks(n).map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum()).collect();
        ask("jvp", jvp($f, x, &v).map(|answer| answer.1), &along);
        let mut tape = Tape::new();
        ask("record", tape.record(x, $f).and_then(|record| record.forward(&v)), &along);
        count
    }};
}

/// The same, if none refuses.
macro_rules! right {
    ($($case:tt)*) => {
        assert_eq!(first_order!($($case)*), 0)
    };
}

#[test]
fn nalgebras_short_cuts_are_right_or_refused() {
    // The eigenvalues of [[1, 2], [c, 3]] are 2 -+ sqrt(1 + 2 c).
    let expected = [1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0];
    first_order!("eigenvalues of a triangle" at [1.0, 2.0, 0.0, 3.0] gives expected within 1e-12: |x: &[_]| {
        let values = Matrix2::new(x[0], x[1], x[2], x[3]).eigenvalues().unwrap();
        if values[0] < values[1] { [values[0], values[1]] } else { [values[1], values[0]] }
    });

    // d A^-1 = -A^-1 dA A^-1 at diag(2, 1)
    let expected = [
        -0.25, 0.0, 0.0, 0.0, //
        0.0, -0.5, 0.0, 0.0, //
        0.0, 0.0, -0.5, 0.0, //
        0.0, 0.0, 0.0, -1.0,
    ];
    first_order!("pseudo-inverse" at [2.0, 0.0, 0.0, 1.0] gives expected within 1e-12: |x: &[_]| {
        let inverse = Matrix2::new(x[0], x[1], x[2], x[3])
            .pseudo_inverse(num_traits::FromPrimitive::from_f64(1e-9).unwrap())
            .unwrap();
        [inverse[(0, 0)], inverse[(0, 1)], inverse[(1, 0)], inverse[(1, 1)]]
    });

    // x = A^-1 b with b = (1, 3) at diag(2, 1): d x = -A^-1 dA x, x = (1/2, 3)
    let expected = [-0.25, -1.5, 0.0, 0.0, 0.0, 0.0, -0.5, -3.0];
    first_order!("solve by SVD" at [2.0, 0.0, 0.0, 1.0] gives expected within 1e-12: |x: &[_]| {
        let number = |v: f64| num_traits::FromPrimitive::from_f64(v).unwrap();
        let svd = DMatrix::from_row_slice(2, 2, x).svd(true, true);
        let solution = svd.solve(&Vector2::new(number(1.0), number(3.0)), number(1e-9)).unwrap();
        [solution[0], solution[1]]
    });

    // The vector of the eigenvalue 1 of [[3, t], [t, 1]] is (-t/2, 1) to first order, up to its sign; times
    // each other: -t/2.
    let expected = [-0.5, 0.0, 0.0];
    let refusals = first_order!("eigenvector" at [0.0, 3.0, 1.0] gives expected within 1e-12: |x: &[_]| {
        let eigen = Matrix2::new(x[1], x[0], x[0], x[2]).symmetric_eigen();
        let i = usize::from(eigen.eigenvalues[1] < eigen.eigenvalues[0]);
        eigen.eigenvectors[(0, i)] * eigen.eigenvectors[(1, i)]
    });
    assert!(refusals > 0);

    // R(w) a = a + w x a + ...: at w = 0 and a = (1, 2, 3) the derivative by w is -[a]x.
    let expected = [0.0, 3.0, -2.0, -3.0, 0.0, 1.0, 2.0, -1.0, 0.0];
    let refusals = first_order!("rotation by nothing" at [0.0; 3] gives expected within 1e-12: |x: &[_]| {
        let number = |v: f64| num_traits::FromPrimitive::from_f64(v).unwrap();
        let turned = Rotation3::from_scaled_axis(Vector3::new(x[0], x[1], x[2]))
            * Vector3::new(number(1.0), number(2.0), number(3.0));
        [turned[0], turned[1], turned[2]]
    });
    assert_eq!(refusals, 7);

    // The scaled axis of (1, x, y, z) / norm is 2 (x, y, z) to first order.
    let expected = [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0];
    let refusals = first_order!("axis of the identity" at [0.0; 3] gives expected within 1e-12: |x: &[_]| {
        let one = num_traits::FromPrimitive::from_f64(1.0).unwrap();
        let axis = UnitQuaternion::from_quaternion(Quaternion::new(one, x[0], x[1], x[2])).scaled_axis();
        [axis[0], axis[1], axis[2]]
    });
    assert_eq!(refusals, 7);
}

/// Hand-written short cuts, to the letter of the law.
#[test]
fn a_short_cut_is_named() {
    let f = |x: &[Var<f64>]| {
        let size = (x[0] * x[0] + x[1] * x[1]).sqrt();
        if x[1] > -1.0 && size <= 1e-12 { Var::lift(1.0) } else { (size * 2.0).sin() * x[0] / size + 1.0 }
    };
    let error = grad(f, &[0.0, 0.0]).unwrap_err();
    let Error::OfPoint { decision, left, right, part, here, sides } = error else { panic!("{error}") };
    assert_eq!((decision, left, right, part, here), (2, 0.0, 1e-12, 0, 0.0));
    assert!(sides.iter().all(|side| (side - 2.0).abs() < 1e-6), "{sides:?}");
    let text = grad(f, &[0.0, 0.0]).unwrap_err().to_string();
    assert!(
        text.contains("comparison 2") && text.contains("0.0 with 1e-12") && text.contains("accept_points"),
        "{text}"
    );
    // What it proposes: move the point, or accept it.
    let moved = grad(f, &[1e-6, 0.0]).unwrap();
    assert!((moved[0] - 2.0).abs() < 1e-9);
    assert_eq!(decision::accept_points(|| grad(f, &[0.0, 0.0])).unwrap(), [0.0, 0.0]);
    assert!(grad(f, &[0.0, 0.0]).is_err());
}

/// What is right at a tie or an exact zero is not refused, by any driver.
#[test]
fn what_is_right_is_not_refused() {
    // sin(x)/x by hand: the value at 0 and all its odd derivatives there are right; so is the slope.
    right!("sinc" at [0.0] gives [0.0] within 0.0: |x: &[_]| {
        if x[0] == 0.0 { x[0] * 0.0 + 1.0 } else { x[0].sin() / x[0] }
    });

    // Kinks by hand: one of the two slopes, whichever was written.
    macro_rules! kink {
        ($compare:tt) => {
            |x: &[_]| if x[0] $compare 0.0 { x[0] * 2.0 } else { x[0] * 5.0 }
        };
    }
    right!("> 0" at [0.0] gives [5.0] within 0.0: kink!(>));
    right!(">= 0" at [0.0] gives [2.0] within 0.0: kink!(>=));
    right!("< 0" at [0.0] gives [5.0] within 0.0: kink!(<));
    right!("<= 0" at [0.0] gives [2.0] within 0.0: kink!(<=));

    // The largest of equal entries by hand: the first.
    right!("largest" at [1.5; 4] gives [1.0, 0.0, 0.0, 0.0] within 0.0: |x: &[_]| {
        let mut best = x[0];
        for &x in x {
            if x > best {
                best = x;
            }
        }
        best
    });

    // Several kinks at once, of different kinds: each slope is one of two, and their sum is between the
    // sides.
    right!("kinks" at [0.0, 0.0] gives [2.0, 0.0] within 0.0: |x: &[_]| {
        let one = if x[0] > 0.0 { x[0] } else { x[0] * 0.0 };
        let two = if x[0] >= 0.0 { x[0] } else { x[0] * 0.0 };
        one + two + x[1].abs() + if x[1] > x[0] { x[1] } else { x[0] }
    });

    // Sorting equal entries.
    right!("sorted" at [2.0, 2.0, 2.0] gives [1.0, 2.0, 3.0] within 0.0: |x: &[_]| {
        let mut x = x.to_vec();
        x.sort_by(|a, b| a.partial_cmp(b).unwrap());
        x[0] * 1.0 + x[1] * 2.0 + x[2] * 3.0
    });

    // What is compared is a domain: near the point it is refused by the closure itself.
    right!("domain" at [0.0, 1.0] gives [1.0, 2.0] within 0.0: |x: &[_]| {
        assert!(
            x[0] >= 0.0 && x[1] <= 1.0,
            "(this message is expected: the closure is asked beside its domain)"
        );
        x[0] * x[1] + x[1] * x[1]
    });

    // A square root by Newton's method that ends in the exact root.
    right!("root" at [4.0] gives [0.25] within 1e-9: |a: &[_]| {
        let mut x = a[0];
        while (x * x - a[0]).abs() > 1e-12 {
            x = (x + a[0] / x) * 0.5;
        }
        x
    });
    right!("root to the end" at [9.0] gives [1.0 / 6.0] within 1e-12: |a: &[_]| {
        let (mut x, mut change) = (a[0], a[0]);
        while change.abs() > 0.0 {
            let next = x - (x * x - a[0]) / (x * 2.0);
            (change, x) = (next - x, next);
            if change.abs() < 1e-15 {
                break;
            }
        }
        x
    });
}

/// A kink of the rule table in one input, and a short cut for another: the partial derivatives are right.
#[test]
fn kinks_of_rules_beside_short_cuts() {
    let f = |x: &[Var<f64>]| {
        let sinc = if x[1] == 0.0 { Var::lift(1.0) } else { x[1].sin() / x[1] };
        x[0].abs() + sinc * 2.0
    };
    assert_eq!(grad(f, &[0.0, 0.0]).unwrap(), [0.0, 0.0]);
    assert_eq!(jacobian(f, &[0.0, 0.0]).unwrap(), [[0.0, 0.0]]);
    assert_eq!(Tape::new().record(&[0.0, 0.0], f).unwrap().reverse(&[2.0]).unwrap(), [0.0, 0.0]);
    // With a wrong short cut it is that which is refused.
    let g = |x: &[Var<f64>]| if x[1] == 0.0 { x[0].abs() } else { x[0].abs() + x[1] };
    let error = grad(g, &[0.0, 0.0]).unwrap_err();
    assert!(matches!(error, Error::OfPoint { part: 1, .. }), "{error}");
    // A guard at a kink: what it gives is between the slopes of the sides, as what the table gives there.
    let h = |x: &[Var<f64>]| if x[0] == 0.0 { x[0] * 0.0 } else { x[0].abs() };
    assert_eq!(grad(h, &[0.0]).unwrap(), [0.0]);
}

/// A dead zone that somebody wanted is a region, not a point.
#[test]
fn a_dead_zone_is_no_point() {
    let zone = |x: &[Var<f64>]| if x[0].abs() < 1e-3 { Var::lift(0.0) } else { x[0] };
    assert_eq!(grad(zone, &[0.0]).unwrap(), [0.0]);
}

#[test]
fn a_skipped_product_is_refused_by_every_driver_and_order() {
    // x y, by code that skips zeros: at (0, 2) the slope by x is 2, not 0.
    macro_rules! skipped {
        () => {
            |x: &[_]| if x[0] == 0.0 { x[1] * 0.0 } else { x[0] * x[1] }
        };
    }
    assert_eq!(first_order!("skipped" at [0.0, 2.0] gives [2.0, 0.0] within 0.0: skipped!()), 5);
    assert!(grad(skipped!(), &[0.0, 2.0]).is_err());
    assert_eq!(code(hessian(skipped!(), &[0.0, 2.0])), REFUSED);
    assert_eq!(code(sparse_hessian(skipped!(), &[0.0, 2.0])), REFUSED);
    assert_eq!(code(hvp(skipped!(), &[0.0, 2.0], &[1.0, 0.0])), REFUSED);

    // Only the second derivative is wrong: x^2 has the slope 0 at 0.
    macro_rules! square {
        () => {
            |x: &[_]| if x[0] == 0.0 { x[0] * 0.0 } else { x[0] * x[0] }
        };
    }
    right!("square" at [0.0] gives [0.0] within 0.0: square!());
    assert_eq!(code(hessian(square!(), &[0.0])), REFUSED);
    assert_eq!(code(hvp(square!(), &[0.0], &[1.0])), REFUSED);
    let jet = |x: Jet<f64, 3>| if x == 0.0 { x * 0.0 } else { x * x };
    assert_eq!(code(derivatives(jet, 0.0)), REFUSED);
    let slope = |x: Jet<f64, 1>| if x == 0.0 { x * 0.0 } else { x * x };
    assert_eq!(derivatives(slope, 0.0).unwrap(), [0.0, 0.0]);
}

/// The runs on both sides are seen by nobody, and happen only where they are needed.
#[test]
fn runs_to_the_sides_are_apart() {
    let mut runs = 0;
    let (answer, seen) = decision::watch(|| {
        grad(
            |x| {
                runs += 1;
                if x[0] > 0.0 { x[0] } else { -x[0] }
            },
            &[0.0],
        )
    });
    assert_eq!((answer.unwrap(), seen.comparisons, seen.smallest_margin), (vec![-1.0], 1, 0.0));
    assert!(runs > 1, "{runs}");
    runs = 0;
    let close = |x: &[Var<f64>]| if x[0] > 0.25 { x[0] } else { -x[0] };
    for x in [0.25 + 1e-15, 0.25 - 1e-15, 0.5] {
        grad(
            |x| {
                runs += 1;
                close(x)
            },
            &[x],
        )
        .unwrap();
    }
    assert_eq!(runs, 3);

    // What a closure leaves behind is what it left at the point.
    let mut last = f64::NAN;
    let mut tape = Tape::new();
    let mut record = tape
        .record(&[0.0, 3.0], |x| {
            last = x[0].value();
            if x[0] > 0.0 { x[0] * x[1] } else { -x[0] * x[1] }
        })
        .unwrap();
    assert_eq!((record.values()[0], record.reverse(&[1.0]).unwrap()), (0.0, &[-3.0, 0.0][..]));
    assert_eq!(last, 0.0);
    // A recording that is refused is none.
    assert!(tape.record(&[0.0], |x: &[Var<f64>]| if x[0] == 0.0 { Var::lift(0.0) } else { x[0] }).is_err());
    assert!(tape.recorded().is_none());
}

/// An inner driver verifies its own level, the outer one its own; what an inner one looks at is not seen
/// outside.
#[test]
fn nested_drivers_verify_their_own_level() {
    // d/dx [ d/dy (x y |y|) at y = 0 ] by hand-written |y|: 0, and the kink is one on either level.
    let (answer, seen) = decision::watch(|| {
        grad(
            |x| {
                let inner = grad(
                    |y: &[Var<Var<f64>>]| {
                        let size = if y[0] > 0.0 { y[0] } else { -y[0] };
                        Var::lift(x[0]) * y[0] * size
                    },
                    &[Var::lift(0.0)],
                );
                inner.unwrap()[0] * x[0]
            },
            &[2.0],
        )
    });
    assert_eq!((answer.unwrap(), seen.comparisons), (vec![0.0], 1));
    // The short cut is seen by the inner driver, whose error the closure has in its hands.
    let outer = jvp(
        |x| {
            let inner = grad(
                |y: &[Var<Dual<f64>>]| if y[0] == 0.0 { y[0] * 0.0 } else { Var::lift(x[0]) * y[0] },
                &[Dual::lift(0.0)],
            );
            assert_eq!(code(inner), REFUSED);
            x[0]
        },
        &[2.0],
        &[1.0],
    );
    assert_eq!(outer.unwrap().1, [1.0]);
}

/// Other numbers have other precisions.
#[test]
fn other_numbers() {
    use palinode::num::{DoubleDouble, Posit32};
    fn skipped<S: Scalar<Bool = bool> + PartialOrd>(x: &[Var<S>]) -> Var<S> {
        if x[0] == 0.0 { x[1] * 0.0 } else { x[0] * x[1] }
    }
    fn sinc<S: Scalar<Bool = bool> + PartialOrd>(x: &[Var<S>]) -> Var<S> {
        if x[0] == 0.0 { x[0] * 0.0 + 1.0 } else { x[0].sin() / x[0] }
    }
    let (two, zero) = (DoubleDouble::from(2.0), DoubleDouble::from(0.0));
    assert_eq!(code(grad(skipped, &[zero, two])), REFUSED);
    assert_eq!(grad(sinc, &[zero]).unwrap(), [zero]);
    assert_eq!(code(grad(skipped, &[0.0_f32, 2.0])), REFUSED);
    assert_eq!(grad(sinc, &[0.0_f32]).unwrap(), [0.0]);
    let posit = |x: f64| <Posit32 as Scalar>::from_f64(x);
    assert_eq!(code(grad(skipped, &[posit(0.0), posit(2.0)])), REFUSED);
    assert_eq!(grad(sinc, &[posit(0.0)]).unwrap(), [posit(0.0)]);
}

/// Symmetric matrices with zeros, of three rows: nalgebra right or refused, and the trace never refused.
#[test]
fn structured_symmetric_matrices() {
    let mut refusals = 0;
    for x in [
        [1.0, 0.0, 0.0, 2.0, 0.0, 3.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 1.0],
        [2.0, 1.0, 0.0, 2.0, 1.0, 2.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [5.0, 0.0, 1.0, 3.0, 0.0, 5.0],
    ] {
        let matrix = |x: &[Var<f64>]| Matrix3::new(x[0], x[1], x[2], x[1], x[3], x[4], x[2], x[4], x[5]);
        let trace = grad(|x| matrix(x).symmetric_eigenvalues().iter().copied().sum(), &x);
        // The sum of all eigenvalues is the trace, also where they coincide.
        refusals += usize::from(refused("trace", trace, &[1.0, 0.0, 0.0, 1.0, 0.0, 1.0], 1e-12));
    }
    assert!(refusals <= 1, "{refusals}");
}

/// A tie of the outer closure does not switch off what an inner driver refuses.
#[test]
fn inner_refusals_stay_when_the_outer_driver_looks_to_the_sides() {
    let slope = palinode::grad(
        |x| {
            let skips = |y: &[Var<Var<f64>>]| {
                if y[0] == 0.0 { Var::lift(Var::lift(0.0)) } else { y[0] * Var::lift(x[0]) }
            };
            palinode::grad(skips, &[Var::lift(0.0)]).map_or_else(|_| x[0] * x[0], |inner| inner[0])
        },
        &[2.0],
    );
    assert_eq!(slope.unwrap(), [4.0]);
}
