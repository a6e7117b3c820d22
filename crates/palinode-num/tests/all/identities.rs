//! Identities between functions of random double-doubles.

use crate::arithmetic::{near, number, positive};
use palinode_num::{Constant, DoubleDouble, Scalar};
use proptest::prelude::*;

fn one() -> DoubleDouble {
    DoubleDouble::from(1)
}

fn between(low: f64, high: f64) -> impl Strategy<Value = DoubleDouble> {
    (low..high, -1.0..1.0f64).prop_map(|(hi, lo)| DoubleDouble::from_sum(hi, lo * hi * f64::EPSILON / 4.0))
}

proptest! {
    #[test]
    fn exponential_and_logarithm_are_inverse(x in positive(900), y in between(-600.0, 600.0)) {
        // The exponential magnifies a relative error of its argument by the argument.
        let condition = x.ln().hi().abs().max(1.0);
        prop_assert!(near(x.ln().exp(), x, 2.0 * condition, x.hi()));
        prop_assert!(near(y.exp().ln(), y, 4.0, y.hi().abs().max(1.0)));
        prop_assert!(near(x.log2().exp2(), x, 2.0 * condition, x.hi()));
        prop_assert!(near(x.log10() * DoubleDouble::constant(Constant::Ln10), x.ln(), 4.0, x.ln().hi()));
    }

    #[test]
    fn exponential_turns_sums_into_products(x in between(-300.0, 300.0), y in between(-300.0, 300.0)) {
        // x + y is rounded before it is exponentiated.
        let product = x.exp() * y.exp();
        prop_assert!(near((x + y).exp(), product, 8.0 + 3.0 * (x + y).hi().abs(), product.hi()));
    }

    #[test]
    fn small_exponentials_and_logarithms(x in number(300).prop_map(|x| x * f64::from(-303).exp2())) {
        prop_assert!(near(x.exp_m1().ln_1p(), x, 4.0, x.hi()));
        prop_assert!(near(x.exp_m1() + 1.0, x.exp(), 3.0, 1.0));
        prop_assert!(near(x.tanh().atanh(), x, 4.0, x.hi()));
        prop_assert!(near(x.sinh().asinh(), x, 4.0, x.hi()));
        prop_assert!(near(x.sin().asin(), x, 4.0, x.hi()));
        prop_assert!(near(x.tan().atan(), x, 4.0, x.hi()));
    }

    #[test]
    fn sine_and_cosine(x in number(1000)) {
        let (sin, cos) = x.sin_cos();
        prop_assert_eq!((sin, cos), (x.sin(), x.cos()));
        prop_assert!(near(sin * sin + cos * cos, one(), 4.0, 1.0));
        prop_assert!(near(sin / cos, x.tan(), 6.0, x.tan().hi()));
        // Doubling is exact, so this also checks the reduction of large angles against itself.
        let double = x * 2.0;
        prop_assert!(near(double.sin(), sin * cos * 2.0, 4.0, 1.0));
        prop_assert!(near(double.cos(), one() - sin * sin * 2.0, 6.0, 1.0));
        prop_assert_eq!(((-x).sin(), (-x).cos()), (-sin, cos));
    }

    #[test]
    fn angles(x in number(30), y in number(30)) {
        let (angle, radius) = (y.atan2(x), x.hypot(y));
        prop_assert!(near(radius * angle.cos(), x, 8.0, radius.hi()));
        prop_assert!(near(radius * angle.sin(), y, 8.0, radius.hi()));
        prop_assert!(near(radius * radius, x * x + y * y, 8.0, radius.hi() * radius.hi()));
        let right = DoubleDouble::constant(Constant::Pi) * 0.5;
        prop_assert!(near(x.atan() + x.recip().atan(), right.copysign(x), 4.0, 2.0));
    }

    #[test]
    fn inverse_sine_and_cosine(x in between(-1.0, 1.0)) {
        let right = DoubleDouble::constant(Constant::Pi) * 0.5;
        prop_assert!(near(x.asin() + x.acos(), right, 4.0, 2.0));
        prop_assert!(near(x.asin().sin(), x, 4.0, 1.0));
        prop_assert!(near(x.acos().cos(), x, 8.0, 1.0));
    }

    #[test]
    fn hyperbolic_functions(x in between(-300.0, 300.0)) {
        let (sinh, cosh) = (x.sinh(), x.cosh());
        prop_assert!(near(sinh + cosh, x.exp(), 4.0, cosh.hi()));
        prop_assert!(near(x.tanh(), sinh / cosh, 4.0, x.tanh().hi()));
        // Next to 1 the inverse magnifies the rounding of the cosine.
        prop_assert!(near(cosh.acosh(), x.abs(), 4.0, x.hi().abs().max(1.0 / x.hi().tanh().abs())));
        prop_assert!(near(x.logistic(), ((x * 0.5).tanh() + 1.0) * 0.5, 4.0, 1.0));
        prop_assert!(near(x.softplus() - (-x).softplus(), x, 8.0, x.hi().abs().max(1.0)));
    }

    #[test]
    fn powers(x in positive(20), y in between(-20.0, 20.0), n in -30..30i32) {
        let power = x.powi(n);
        prop_assert!(near(power, x.powf(DoubleDouble::from(n)), 2.0, power.hi()));
        let by_hand = (0..n.abs()).fold(one(), |product, _| product * x);
        let by_hand = if n < 0 { by_hand.recip() } else { by_hand };
        prop_assert!(near(power, by_hand, 4.0 * f64::from(n.abs() + 1), power.hi()));
        prop_assert!(near(x.powf(y) * x.powf(-y), one(), 4.0, 1.0));
        prop_assert!(near(x.powf(DoubleDouble::half()), x.sqrt(), 4.0, x.sqrt().hi()));
        prop_assert_eq!((-x).powi(n), if n % 2 == 0 { power } else { -power });
    }

    #[test]
    fn error_functions(x in between(-8.0, 8.0)) {
        prop_assert!(near(x.erf() + x.erfc(), one(), 4.0, 2.0));
        prop_assert_eq!((-x).erf(), -x.erf());
        prop_assert!(near(x.erfc() + (-x).erfc(), DoubleDouble::from(2), 4.0, 2.0));
    }

    #[test]
    fn gamma_functions(x in between(0.01, 60.0), order in 1..6u32) {
        let size = (x + 1.0).lgamma().hi().abs() + x.ln().hi().abs() + 1.0;
        prop_assert!(near((x + 1.0).lgamma() - x.lgamma(), x.ln(), 16.0, size));
        prop_assert!(near((x + 1.0).polygamma(0) - x.polygamma(0), x.recip(), 64.0, 8.0 + 1.0 / x.hi()));
        // psi_m(x + 1) - psi_m(x) = (-1)^m m! / x^(m+1)
        let factorial: i32 = (1..=order as i32).product();
        let step = DoubleDouble::from(factorial) / x.powi(order as i32 + 1);
        let step = if order % 2 == 0 { step } else { -step };
        let size = x.polygamma(order).hi();
        prop_assert!(near((x + 1.0).polygamma(order) - x.polygamma(order), step, 64.0, size));
        // Gamma(x) Gamma(1 - x) sin(pi x) = pi
        let fraction = x.fract();
        prop_assume!(fraction.hi() > 1e-3 && fraction.hi() < 0.999);
        let pi = DoubleDouble::constant(Constant::Pi);
        let sum = x.lgamma() + (one() - x).lgamma() + (pi * fraction).sin().ln();
        prop_assert!(near(sum, pi.ln(), 32.0 * 1e3, x.lgamma().hi().abs() + 1.0));
    }
}

#[test]
fn constants_satisfy_their_definitions() {
    let of = DoubleDouble::constant;
    assert_eq!(of(Constant::E), one().exp());
    assert_eq!(of(Constant::Ln2), DoubleDouble::from(2).ln());
    assert_eq!(of(Constant::Ln10), DoubleDouble::from(10).ln());
    assert_eq!(of(Constant::Pi), one().atan() * 4.0);
    assert!(near(of(Constant::TwoOverSqrtPi), DoubleDouble::from(2) / of(Constant::Pi).sqrt(), 2.0, 1.0));
}
