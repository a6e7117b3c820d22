//! The functions of [`Scalar`](palinode_core::Scalar) as applications of rows of the rule table, for numbers that write down what is done
//! with them: symbols and traced numbers.
//!
//! Such a number has `apply(row, parameter, arguments)`; [`functions_by_row`] makes the methods of its `impl Scalar` from it.

/// The methods of `Scalar` that are rows of the table, by `Self::apply`.
macro_rules! functions_by_row {
    () => {
        fn powi(self, n: i32) -> Self {
            Self::apply(palinode_core::rules::Row::Powi, n, &[self])
        }
        fn polygamma(self, order: u32) -> Self {
            let order = i32::try_from(order).unwrap_or(i32::MAX);
            Self::apply(palinode_core::rules::Row::Polygamma, order, &[self])
        }
        crate::rows::functions_by_row! {
            strong_mul(other) = StrongMul;
            mul_add(factor, addend) = MulAdd;
            recip() = Recip;
            abs() = Abs;
            signum() = Signum;
            copysign(sign) = Copysign;
            min(other) = Min;
            max(other) = Max;
            clamp(low, high) = Clamp;
            floor() = Floor;
            ceil() = Ceil;
            round() = Round;
            trunc() = Trunc;
            fract() = Fract;
            powf(exponent) = Powf;
            sqrt() = Sqrt;
            cbrt() = Cbrt;
            hypot(other) = Hypot;
            exp() = Exp;
            exp2() = Exp2;
            exp_m1() = ExpM1;
            ln() = Ln;
            ln_1p() = Ln1p;
            log2() = Log2;
            log10() = Log10;
            sin() = Sin;
            cos() = Cos;
            tan() = Tan;
            asin() = Asin;
            acos() = Acos;
            atan() = Atan;
            atan2(x) = Atan2;
            sinh() = Sinh;
            cosh() = Cosh;
            tanh() = Tanh;
            asinh() = Asinh;
            acosh() = Acosh;
            atanh() = Atanh;
            erf() = Erf;
            erfc() = Erfc;
            lgamma() = Lgamma;
            logistic() = Logistic;
            softplus() = Softplus;
            relu() = Relu;
        }
    };
    ($($method:ident($($other:ident),*) = $row:ident;)*) => {$(
        fn $method(self $(, $other: Self)*) -> Self {
            Self::apply(palinode_core::rules::Row::$row, 0, &[self $(, $other)*])
        }
    )*};
}
pub(crate) use functions_by_row;
