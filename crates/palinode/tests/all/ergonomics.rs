//! What people write without thinking about types: literals anywhere, references, formats, generic code.

use palinode::Error;
use palinode::num::DoubleDouble;
use palinode::prelude::*;
use palinode::tape::Outputs;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-14 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// One expression with constants as second and third arguments: plain `f64`s, or lifted ones.
macro_rules! with {
    ($c:expr, $x:expr) => {
        $x.max($c(0.25)) * $x.min($c(1.0))
            + $x.powf($c(2.5)) * $x.atan2($c(1.5))
            + $x.clamp($c(0.0), $c(1.0)) * $x.hypot($c(2.0))
            + $x.copysign($c(-1.0))
            + $x.mul_add($c(3.0), $c(-1.0))
            + $x.clamp($x * 0.5, $c(2.0)).mul_add($x, $c(0.5))
    };
}
macro_rules! with_literals {
    ($x:expr) => {
        with!(f64::from, $x)
    };
}

#[test]
fn literals_are_arguments_of_functions() {
    let (literal, lifted) =
        (grad(|x| with_literals!(x[0]), &[0.7]).unwrap(), grad(|x| with!(Var::lift, x[0]), &[0.7]).unwrap());
    close(literal[0], lifted[0]);
    let x = Dual::new(0.7, 1.0);
    close(with_literals!(x).tangent, literal[0]);
    let [x] = DualN::variables([0.7]);
    close(with_literals!(x).tangents[0], literal[0]);
    let x = Jet::<f64, 2>::variable(0.7);
    let (a, b) = (with_literals!(x).derivatives(), with!(Jet::lift, x).derivatives());
    (0..3).for_each(|k| close(a[k], b[k]));
    close(a[1], literal[0]);
    // Nested, reverse over reverse and forward over reverse.
    close(hessian(|x| with_literals!(x[0]), &[0.7]).unwrap()[0][0], a[2]);
    close(hvp(|x| with_literals!(x[0]), &[0.7], &[1.0]).unwrap().2[0], a[2]);
    // In single precision the literals are still `f64`.
    assert_eq!(grad(|x| x[0].max(0.0) * x[0].powf(2.0), &[3.0f32]).unwrap(), [27.0f32]);
}

#[test]
fn a_function_with_a_literal_records_one_argument() {
    let mut tape = Tape::new();
    let edges =
        |tape: &mut Tape<f64>, f: fn(&[Var<f64>]) -> Var<f64>| tape.record(&[2.0], f).unwrap().size().edges;
    assert_eq!(edges(&mut tape, |x| x[0].powf(2.5)), edges(&mut tape, |x| x[0].sqrt()));
}

#[test]
fn numbers_as_arguments_still_pass_as_paths() {
    let largest = |x: &[Var<f64>]| x.iter().copied().reduce(Var::max).unwrap();
    assert_eq!(grad(largest, &[1.0, 3.0, 2.0]).unwrap(), [0.0, 1.0, 0.0]);
}

#[test]
fn literals_stand_on_the_left_of_comparisons() {
    let g = grad(|x| if 0.0 < x[0] && 2.0 != x[0] && 5.0 >= x[0] { x[0] * x[0] } else { x[0] }, &[2.5]);
    assert_eq!(g.unwrap(), [5.0]);
    let x = Dual::new(Dual::new(1.0, 1.0), Dual::new(0.0, 0.0));
    assert!(0.5 < x && 1.0 == x && 1.5 != x && 1.5 >= x);
    assert!(0.5 < DualN::<f64, 2>::lift(1.0) && 0.5 < Jet::<f32, 2>::lift(1.0));
    assert!(0.5 < DoubleDouble::from(1) && DoubleDouble::from(1) > 0.5 && 1.0 == DoubleDouble::from(1));
    let nan = Dual::new(f64::NAN, 0.0);
    assert!(0.0.partial_cmp(&nan).is_none() && 0.0 != nan);
}

#[test]
#[allow(clippy::op_ref, reason = "the point of the test")]
fn operators_take_references_on_both_sides() {
    let weights = [2.0, 3.0];
    let dot = |x: &[Var<f64>]| weights.iter().zip(x).map(|(w, x)| w * x).sum::<Var<f64>>();
    assert_eq!(grad(dot, &[1.0, 1.0]).unwrap(), weights);
    let (c, x) = (&6.0, Dual::new(4.0, 1.0));
    let all = [c + x, c + &x, c - x, c - &x, c * x, c * &x, c / x, c / &x, c % x, c % &x];
    let expected = [10.0, 10.0, 2.0, 2.0, 24.0, 24.0, 1.5, 1.5, 2.0, 2.0];
    assert_eq!(all.map(|y| y.value), expected);
    let slopes = [1.0, 1.0, -1.0, -1.0, 6.0, 6.0, -0.375, -0.375, -1.0, -1.0];
    assert_eq!(all.map(|y| y.tangent), slopes);
    let mut y = x;
    y += c;
    y *= c;
    y %= &7.0;
    assert_eq!((y.value, y.tangent), (4.0, 6.0));
}

mod with_num_traits {
    use num_traits::{Float, FromPrimitive, One, ToPrimitive, Zero};
    use palinode::prelude::*;

    #[test]
    fn the_prelude_and_num_traits_go_together() {
        let x = Dual::new(0.5, 1.0);
        let (sine, cosine) = x.sin_cos();
        assert_eq!((sine.tangent, cosine.tangent), (0.5f64.cos(), -0.5f64.sin()));
        assert!(x.is_finite() && !x.is_nan() && (x / 0.0).is_infinite());
        assert_eq!(x.to_f64(), Dual::<f64>::from_f64(0.5).value);
        assert_eq!((Dual::<f64>::zero().value, Dual::<f64>::one().value), (0.0, 1.0));
        let f = |x: &[Var<f64>]| {
            if x[0].is_nan() { Var::zero() } else { x[0].sin_cos().0.max(Var::one() * 0.1).powf(2.0).abs() }
        };
        assert_eq!(grad(f, &[0.5]).unwrap(), [2.0 * 0.5f64.sin() * 0.5f64.cos()]);
        let (j, d) = (Jet::<f64, 2>::one(), DualN::<f64, 2>::zero());
        assert!(j.is_finite() && d.is_finite() && j.sin_cos().1.to_f64() < 1.0 && d.to_f64() == 0.0);
        fn imported(_: impl Float + FromPrimitive + One + ToPrimitive + Zero) {}
        imported(x);
    }
}

/// `while`, `%=`, `sum` over references and a format, for any number.
fn f<S: Real>(x: &[S]) -> (S, String) {
    let mut state = x[0];
    while state < 100.0 {
        state = state * x[1] + 1.0;
    }
    let mut rest = state;
    rest %= 7.0;
    rest %= S::from_f64(5.0);
    assert!(state != 1.0);
    let total = x.iter().sum::<S>() * x.iter().product::<S>() + x.iter().copied().sum::<S>();
    (state + rest + total, format!("{rest:.2}"))
}

#[test]
fn generic_code_uses_literals_references_and_formats() {
    let point = [2.0, 3.0];
    // 2, 7, 22, 67, 202; 202 % 7 = 6 and 6 % 5 = 1; 5 * 6 + 5 = 35.
    assert_eq!(f(&point), (238.0, "1.00".into()));
    assert_eq!(f(&point.map(DoubleDouble::from)).0, 238.0);
    // The state and its rest both move by (81, 250); then the sum times the product, and the sum.
    let expected = [2.0 * 81.0 + 6.0 + 15.0 + 1.0, 2.0 * 250.0 + 6.0 + 10.0 + 1.0];
    assert_eq!(grad(|x| f(x).0, &point).unwrap(), expected);
    assert_eq!(grad(|x| f(x).0, &[2.0f32, 3.0]).unwrap(), expected.map(|g| g as f32));
    assert_eq!(jvp(|x| f(x).0, &point, &[1.0, 0.0]).unwrap().1, [expected[0]]);
    assert_eq!(f(&DualN::variables(point)).0.tangents, expected);
    assert_eq!(f(&[Jet::<f64, 2>::variable(2.0), Jet::lift(3.0)]).0.derivatives()[1], expected[0]);
    assert!(hessian(|x| f(x).0, &point).is_ok());
    assert!(hvp(|x| f(x).0, &point, &[1.0, 0.0]).is_ok());
}

#[test]
fn formats_reach_every_part() {
    let third = 1.0 / 3.0;
    assert_eq!(format!("{:.2}", Dual::new(third, -third)), "0.33 + -0.33ε");
    assert_eq!(format!("{:.1}", DualN::new(third, [1.0, third])), "0.3 + 1.0ε1 + 0.3ε2");
    assert_eq!(format!("{:.3}", Jet::new(third, [1.0, third])), "0.333 + 1.000t^1 + 0.333t^2");
    assert_eq!(format!("{:.2}", Var::lift(third)), "0.33");
    assert_eq!(format!("{}", Dual::new(0.5, 1.0)), "0.5 + 1ε");
    assert_eq!(format!("{:.1}", Dual::lift(Dual::new(third, 1.0))), "0.3 + 1.0ε + 0.0 + 0.0εε");
}

#[test]
fn forward_and_reverse_take_the_same_outputs() {
    fn both<A, B>(
        forward: impl FnMut(&[Dual<f64>]) -> A,
        reverse: impl FnMut(&[Var<f64>]) -> B,
    ) -> (Vec<f64>, Vec<f64>)
    where
        A: Outputs<f64, Dual<f64>>,
        B: Outputs<f64>,
    {
        let point = [2.0, 5.0];
        let (values, tangents) = jvp(forward, &point, &[1.0, 0.0]).unwrap();
        let jacobian = jacobian(reverse, &point).unwrap();
        assert_eq!(jacobian.iter().map(|row| row[0]).collect::<Vec<_>>(), tangents);
        (values, tangents)
    }
    macro_rules! both {
        ($f:expr) => {
            both($f, $f)
        };
    }
    assert_eq!(both!(|x| x[0] * x[1]), (vec![10.0], vec![5.0]));
    assert_eq!(both!(|x| [x[0] * x[1], x[1]]), (vec![10.0, 5.0], vec![5.0, 0.0]));
    assert_eq!(both!(|x| vec![x[0] * x[1], x[1]]).1, [5.0, 0.0]);
    assert_eq!(both!(|x| x.to_vec().into_boxed_slice()).1, [1.0, 0.0]);
    assert_eq!(both!(|x| (x[0], [x[1], x[0] * x[0]])).1, [1.0, 0.0, 4.0]);
    assert_eq!(both!(|x| (x[0], vec![x[1]], (x[0], x[0] * 2.0))).1, [1.0, 0.0, 1.0, 2.0]);
    let kept = [Dual::new(1.0, 7.0), Dual::lift(2.0)];
    assert_eq!(jvp(|_| &kept[..], &[0.0], &[1.0]).unwrap(), (vec![1.0, 2.0], vec![7.0, 0.0]));
    assert_eq!(vjp(|x| (x[0], x[1], x[0]), &[2.0, 5.0], &[1.0, 2.0, 3.0]).unwrap().1, [4.0, 2.0]);
}

#[test]
fn products_that_are_not_finite_are_errors() {
    let message = |error: Error, code: &str, start: &str| {
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().starts_with(&format!("{code}: {start}")), "{error}");
    };
    let error = jvp(|x| [x[1], x[0].sqrt()], &[0.0, 1.0], &[1.0, 0.0]).unwrap_err();
    message(error, "PAL0104", "the directional derivative of output 1 is inf");
    let error = vjp(|x| [x[0], x[1].sqrt()], &[1.0, 0.0], &[1.0, 1.0]).unwrap_err();
    message(error, "PAL0104", "the cotangent of input 1 is inf");
    // A direction or a cotangent of zero does not meet the vertical slope.
    assert!(jvp(|x| [x[1], x[0].sqrt()], &[0.0, 1.0], &[0.0, 1.0]).is_ok());
    assert!(vjp(|x| [x[0], x[1].sqrt()], &[1.0, 0.0], &[1.0, 0.0]).is_ok());
    let error = derivatives::<f64, 3>(|x| x.powf(1.5), 0.0).unwrap_err();
    message(error, "PAL0104", "the derivative of order 2 is inf");
    let error = vjp(|x| [x[0], x[0]], &[1.0], &[0.0, f64::NAN]).unwrap_err();
    message(error, "PAL0102", "output cotangent 1 is NaN");
    let error = jvp(|x| x[1], &[1.0, 1.0], &[0.0, f64::NAN]).unwrap_err();
    message(error, "PAL0102", "direction 1 is NaN");
    let error = hvp(|x| x[0], &[1.0], &[f64::INFINITY]).unwrap_err();
    message(error, "PAL0102", "direction 0 is inf");
    let error = jvp(|x| x[0], &[f64::NAN], &[1.0]).unwrap_err();
    assert!(matches!(error, Error::NonFiniteInput { what: "input", position: 0, .. }), "{error}");
}

/// The prelude goes with everything of loops: `Error` is then that of loops, which holds that of tapes.
#[cfg(feature = "time")]
mod with_loops {
    use palinode::prelude::*;
    use palinode::time::*;

    #[step]
    fn grow<S: Real>(x: &mut S, a: &S) {
        *x *= *a;
    }

    fn gradient(budget: &str) -> Result<f64, Error> {
        let tape: Vec<f64> = grad(|x| x[0] * 3.0, &[1.0])?;
        let run = Rollout::new(grow).steps(3).budget(budget).value_and_grad(&tape[0], &2.0, |x| *x)?;
        Ok(run.initial)
    }

    #[test]
    fn errors_of_tapes_and_of_loops_are_one() {
        assert_eq!(gradient("1MiB"), Ok(8.0));
        assert!(matches!(gradient("1 apple"), Err(Error::Core(palinode::Error::NotABudget { .. }))));
        assert!(matches!(gradient("1B"), Err(Error::BudgetTooSmall { .. })));
    }
}
