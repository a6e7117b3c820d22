//! The rule table: every operation that Palinode differentiates, one row each.
//!
//! A row reads: the rule's name, the method it belongs to, its arguments with their domains, the name of the
//! result, then one line `d argument = partial;` per argument. `via z` says that the partial looks at the
//! result (otherwise it must not). `together` is a cheaper way to get value and partial at once; a test holds
//! it to the same bits. `jump` is how far the arguments are from where the value jumps, `in` a number that
//! changes across a jump and nowhere else. A `kink` line names a point without a derivative and the partials
//! given there by convention.
//!
//! To add an operation: a method in `Scalar`, a row here, and what the compiler then asks for.
//!
//! Partials are written to be accurate in relative terms everywhere: `1 - x*x` becomes
//! `(1 - x) * (1 + x)` near 1, and saturated functions switch to a form without cancellation.

use super::{Binary, Kink, KinkKind, Ternary, Unary};
use palinode_num::{Constant, Scalar};

/// Hands the whole table to the macro `$then`, after the tokens in `$args`.
#[doc(hidden)]
#[macro_export]
macro_rules! rule_table {
    ($then:ident! $args:tt) => {
        $then! { $args

        operators1 {
            /// `-x`
            Negate: neg(x in Reals) -> z { d x = -S::one(); }
        }

        operators2 {
            /// `x + y`
            Add: add(x in Reals, y in Reals) -> z { d x = S::one(); d y = S::one(); }
            /// `x - y`
            Subtract: sub(x in Reals, y in Reals) -> z { d x = S::one(); d y = -S::one(); }
            /// `x * y`
            Multiply: mul(x in Reals, y in Reals) -> z { d x = y; d y = x; }
            /// `x / y`
            Divide: div(x in Reals, y in NonZero) -> z { d x = y.recip(); d y via z = -(z * y.recip()); }
            /// `x % y`: what is left of `x` after a whole number of `y`s, with the sign of `x`
            Remainder: rem(x in Reals, y in NonZero) -> z {
                d x = S::one();
                // (z - x) / y is a whole number up to rounding; x / y itself may round across one.
                d y via z = ((z - x) / y).round();
                // fmod is exact, x / y is not.
                jump = distance_to_whole(x / y) * y.abs(), in ((x - x % y) / y).round();
                kink Jump at [6.0, 3.0] gives [1.0, -2.0];
            }
        }

        functions1 {
            /// `1 / x`
            Recip: recip(x in NonZero) -> z { d x via z = -(z * z); }
            /// `|x|`
            Abs: abs(x in Reals) -> z {
                d x = S::select(x.equal(S::zero()), S::zero(), x.signum());
                kink Corner at [0.0] gives [0.0];
            }
            /// The sign of `x`, by its sign bit: 1 at 0, -1 at -0
            Signum: signum(x in Reals) -> z { d x = S::zero(); jump = x.abs(), in x.signum(); kink Jump at [0.0] gives [0.0]; }
            /// Round down
            Floor: floor(x in Reals) -> z { d x = S::zero(); jump = distance_to_whole(x), in x.floor(); kink Jump at [2.0] gives [0.0]; }
            /// Round up
            Ceil: ceil(x in Reals) -> z { d x = S::zero(); jump = distance_to_whole(x), in x.ceil(); kink Jump at [2.0] gives [0.0]; }
            /// Round to the nearest
            Round: round(x in Reals) -> z { d x = S::zero(); jump = distance_to_whole(x + 0.5), in x.round(); kink Jump at [2.5] gives [0.0]; }
            /// Round towards zero
            Trunc: trunc(x in Reals) -> z { d x = S::zero(); jump = distance_to_whole_but_zero(x), in x.trunc(); kink Jump at [2.0] gives [0.0]; }
            /// The fractional part
            Fract: fract(x in Reals) -> z { d x = S::one(); jump = distance_to_whole_but_zero(x), in x.trunc(); kink Jump at [2.0] gives [1.0]; }
            /// Square root
            Sqrt: sqrt(x in NonNegative) -> z {
                d x via z = S::half() / z;
                kink Vertical at [0.0] gives [f64::INFINITY];
            }
            /// Cube root
            Cbrt: cbrt(x in Reals) -> z {
                // Two divisions, so that z * z can neither overflow nor underflow.
                d x via z = S::one() / S::from_int(3) / z / z;
                kink Vertical at [0.0] gives [f64::INFINITY];
            }
            /// `e^x`
            Exp: exp(x in Reals) -> z { d x via z = z; }
            /// `2^x`
            Exp2: exp2(x in Reals) -> z { d x via z = z * S::constant(Constant::Ln2); }
            /// `e^x - 1`
            ExpM1: exp_m1(x in Reals) -> z { d x = x.exp(); }
            /// Natural logarithm
            Ln: ln(x in Positive) -> z { d x = x.recip(); }
            /// `ln(1 + x)`
            Ln1p: ln_1p(x in AboveMinusOne) -> z { d x = (S::one() + x).recip(); }
            /// Logarithm to base 2
            Log2: log2(x in Positive) -> z { d x = S::one() / S::constant(Constant::Ln2) / x; }
            /// Logarithm to base 10
            Log10: log10(x in Positive) -> z { d x = S::one() / S::constant(Constant::Ln10) / x; }
            /// Sine
            Sin: sin(x in Reals) -> z { d x = x.cos(); together = x.sin_cos(); }
            /// Cosine
            Cos: cos(x in Reals) -> z { d x = -x.sin(); together = swap_negate(x.sin_cos()); }
            /// Tangent
            Tan: tan(x in Reals) -> z { d x via z = S::one() + z * z; }
            /// Arc sine
            Asin: asin(x in UnitClosed) -> z {
                d x = one_minus_square(x).sqrt().recip();
                kink Vertical at [1.0] gives [f64::INFINITY];
            }
            /// Arc cosine
            Acos: acos(x in UnitClosed) -> z {
                d x = -one_minus_square(x).sqrt().recip();
                kink Vertical at [-1.0] gives [f64::NEG_INFINITY];
            }
            /// Arc tangent
            Atan: atan(x in Reals) -> z { d x = (S::one() + x * x).recip(); }
            /// Hyperbolic sine
            Sinh: sinh(x in Reals) -> z { d x = x.cosh(); }
            /// Hyperbolic cosine
            Cosh: cosh(x in Reals) -> z { d x = x.sinh(); }
            /// Hyperbolic tangent
            Tanh: tanh(x in Reals) -> z {
                // 1 - z^2 cancels once z is near 1; there 4 e^(-2|x|) / (1 + e^(-2|x|))^2 does not.
                d x via z = S::branch(
                    (z * z).less(S::half()),
                    || S::one() - z * z,
                    || {
                        let e = (-(x.abs() + x.abs())).exp();
                        let d = S::one() + e;
                        S::from_int(4) * e / (d * d)
                    },
                );
            }
            /// Inverse hyperbolic sine
            Asinh: asinh(x in Reals) -> z { d x = x.hypot(S::one()).recip(); }
            /// Inverse hyperbolic cosine
            Acosh: acosh(x in AtLeastOne) -> z {
                d x = (x - S::one()).sqrt().recip() / (x + S::one()).sqrt();
                kink Vertical at [1.0] gives [f64::INFINITY];
            }
            /// Inverse hyperbolic tangent
            Atanh: atanh(x in UnitOpen) -> z { d x = one_minus_square(x).recip(); }
            /// The error function
            Erf: erf(x in Reals) -> z { d x = S::constant(Constant::TwoOverSqrtPi) * (-(x * x)).exp(); }
            /// The complementary error function
            Erfc: erfc(x in Reals) -> z { d x = -(S::constant(Constant::TwoOverSqrtPi) * (-(x * x)).exp()); }
            /// `ln |gamma(x)|`
            Lgamma: lgamma(x in GammaFinite) -> z { d x = x.polygamma(0); }
            /// The logistic function
            Logistic: logistic(x in Reals) -> z {
                // z (1 - z) cancels once z is near 1; there z^2 e^-x does not.
                d x via z = S::branch(z.less(S::half()), || z * (S::one() - z), || z * z * (-x).exp());
            }
            /// `ln(1 + e^x)`
            Softplus: softplus(x in Reals) -> z { d x = x.logistic(); }
            /// `max(x, 0)`
            Relu: relu(x in Reals) -> z {
                d x = S::select(S::zero().less(x), S::one(), S::zero());
                kink Corner at [0.0] gives [0.0];
            }
        }

        parametric1 {
            /// `x` to the whole power `n`
            Powi { n: i32 }: powi(x in NonZero) -> z {
                d x = match n {
                    0 => S::zero(),
                    i32::MIN => S::from_int(n) * x.powi(n) / x,
                    _ => S::from_int(n) * x.powi(n - 1),
                };
            }
            /// The polygamma function
            Polygamma { order: u32 }: polygamma(x in GammaFinite) -> z { d x = x.polygamma(order + 1); }
        }

        functions2 {
            /// The magnitude of `x` with the sign of `y`
            Copysign: copysign(x in Reals, y in Reals) -> z {
                d x = S::select(x.equal(S::zero()), S::zero(), x.signum() * y.signum());
                d y = S::zero();
                jump = y.abs(), in y.signum();
                kink Corner at [0.0, 1.0] gives [0.0, 0.0];
                kink Jump at [1.0, 0.0] gives [1.0, 0.0];
            }
            /// The smaller of two
            Min: min(x in Reals, y in Reals) -> z {
                d x via z = picked(x, y, z);
                d y via z = picked(y, x, z);
                kink Corner at [1.0, 1.0] gives [0.5, 0.5];
            }
            /// The larger of two
            Max: max(x in Reals, y in Reals) -> z {
                d x via z = picked(x, y, z);
                d y via z = picked(y, x, z);
                kink Corner at [1.0, 1.0] gives [0.5, 0.5];
            }
            /// `x` to the power `y`
            Powf: powf(x in Positive, y in Reals) -> z {
                d x = y.strong_mul(x.powf(y - S::one()));
                d y via z = z.strong_mul(x.ln());
                kink Corner at [0.0, 1.0] gives [1.0, 0.0];
                kink Vertical at [0.0, 0.5] gives [f64::INFINITY, 0.0];
            }
            /// `sqrt(x^2 + y^2)`
            Hypot: hypot(x in Reals, y in Reals) -> z {
                d x via z = S::select(z.equal(S::zero()), S::zero(), x / z);
                d y via z = S::select(z.equal(S::zero()), S::zero(), y / z);
                kink Corner at [0.0, 0.0] gives [0.0, 0.0];
            }
            /// The angle of the point `(y, x)`: the first argument is the ordinate
            Atan2: atan2(x in Reals, y in Reals) -> z {
                d x = over_square(y, x.hypot(y));
                d y = -over_square(x, x.hypot(y));
                // The angle jumps across the negative half of the axis, and at the origin.
                // No number changes there alone: another one is laid where points are seldom.
                jump = if y < 0.0 { x.abs() } else { f64::INFINITY }, in f64::from(x.is_sign_negative() && y < 2.34 * x);
                kink Jump at [0.0, -1.0] gives [-1.0, -0.0];
                kink Jump at [0.0, 0.0] gives [0.0, -0.0];
            }
        }

        structural2 {
            /// The product in which a zero factor always wins
            StrongMul: strong_mul(x in Reals, y in Reals) -> z { d x = y; d y = x; }
        }

        functions3 {
            /// `x * y + w`
            MulAdd: mul_add(x in Reals, y in Reals, w in Reals) -> z { d x = y; d y = x; d w = S::one(); }
            /// `x` held between `y` and `w`
            Clamp: clamp(x in Reals, y in Reals, w in Reals) -> z {
                d x = one_if::<S>(!x.less(y) & !w.less(x));
                d y = one_if::<S>(x.less(y) & !w.less(y));
                d w = one_if::<S>(w.less(x) | w.less(y));
                kink Corner at [1.0, 1.0, 2.0] gives [1.0, 0.0, 0.0];
                kink Corner at [2.0, 1.0, 2.0] gives [1.0, 0.0, 0.0];
            }
        }

        structural3 {
            /// `y` where `x` is not 0, else `w`: how a choice by a Boolean is differentiated
            Select: select_nonzero(x in NonZero, y in Reals, w in Reals) -> z {
                d x = S::zero();
                d y = one_if::<S>(!x.equal(S::zero()));
                d w = one_if::<S>(x.equal(S::zero()));
                kink Jump at [0.0, 1.0, 2.0] gives [0.0, 0.0, 1.0];
            }
        }
        }
    };
}
pub(crate) use rule_table;

/// The partial of `min` and `max` by the argument `mine`: all if it was picked, half at a tie.
#[inline(always)]
fn picked<S: Scalar>(mine: S, other: S, z: S) -> S {
    S::select(mine.equal(other), S::half(), one_if::<S>(z.equal(mine)))
}

/// `a / r^2`, with 0 at `r = 0`; two divisions, so that `r * r` can neither overflow nor underflow.
#[inline(always)]
fn over_square<S: Scalar>(a: S, r: S) -> S {
    S::select(r.equal(S::zero()), S::zero(), a / r / r)
}

/// `1 - x^2`. Its own derivative cancels if it is written as a product at small `x`, its value if it is not
/// at large `x`.
#[inline(always)]
fn one_minus_square<S: Scalar>(x: S) -> S {
    let square = x * x;
    S::branch(square.less(S::half()), || S::one() - square, || (S::one() - x) * (S::one() + x))
}

#[inline(always)]
fn one_if<S: Scalar>(condition: S::Bool) -> S {
    S::select(condition, S::one(), S::zero())
}

/// How far a number is from the nearest whole one.
fn distance_to_whole(x: f64) -> f64 {
    (x - x.round()).abs()
}

/// The same for functions that do not jump at 0.
fn distance_to_whole_but_zero(x: f64) -> f64 {
    if x.abs() < 1.0 { 1.0 - x.abs() } else { distance_to_whole(x) }
}

/// (sine, cosine) to (cosine, -sine).
#[inline(always)]
fn swap_negate<S: Scalar>((sine, cosine): (S, S)) -> (S, S) {
    (cosine, -sine)
}

/// The value of the row `Select`.
#[inline(always)]
fn select_nonzero<S: Scalar>(x: S, y: S, w: S) -> S {
    S::select(x.equal(S::zero()), w, y)
}

macro_rules! uses_z {
    () => {
        false
    };
    (via $z:ident) => {
        true
    };
}

macro_rules! kinks {
    ($($kind:ident at [$($at:expr),*] gives [$($gives:expr),*];)*) => {
        &[$(Kink { kind: KinkKind::$kind, at: &[$($at),*], gives: &[$($gives),*] }),*]
    };
}

/// Turns the table into one type per row that implements [`Unary`], [`Binary`] or [`Ternary`].
macro_rules! define_rules {
    ({}
     operators1 { $($operators1:tt)* }
     operators2 { $($operators2:tt)* }
     functions1 { $($functions1:tt)* }
     parametric1 { $($parametric1:tt)* }
     functions2 { $($functions2:tt)* }
     structural2 { $($structural2:tt)* }
     functions3 { $($functions3:tt)* }
     structural3 { $($structural3:tt)* }
    ) => {
        define_rules! { @unary $($operators1)* }
        define_rules! { @unary $($functions1)* }
        define_rules! { @unary $($parametric1)* }
        define_rules! { @binary $($operators2)* }
        define_rules! { @binary $($functions2)* }
        define_rules! { @binary $($structural2)* }
        define_rules! { @ternary $($functions3)* }
        define_rules! { @ternary $($structural3)* }
    };

    (@unary $(
        $(#[$doc:meta])*
        $Rule:ident $({ $p:ident : $pt:ty })? : $method:ident($x:ident in $dom:ident) -> $z:ident {
            d $x1:ident $(via $zx:ident)? = $dx:expr;
            $(together = $both:expr;)?
            $(jump = $jump:expr, in $cell:expr;)?
            $(kink $kind:ident at [$($at:expr),*] gives [$($gives:expr),*];)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Rule { $(
            /// The whole-number parameter.
            pub $p: $pt
        )? }
        impl Unary for $Rule {
            const NAME: &'static str = stringify!($method);
            const KINKS: &'static [Kink] = kinks! { $($kind at [$($at),*] gives [$($gives),*];)* };
            const DX_USES_Z: bool = uses_z!($(via $zx)?);
            #[inline(always)]
            fn value<S: Scalar>(self, $x: S) -> S {
                $(let $p = self.$p;)?
                S::$method($x $(, $p)?)
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn dx<S: Scalar>(self, $x: S, $z: S) -> S {
                $(let $p = self.$p;)?
                $dx
            }
            $(#[inline(always)]
            fn value_and_dx<S: Scalar>(self, $x: S) -> (S, S) {
                $both
            })?
            $(const JUMPS: bool = true;
            #[inline(always)]
            fn jump_distance(self, $x: f64) -> f64 {
                $jump
            }
            #[inline(always)]
            fn jump_cell(self, $x: f64) -> f64 {
                $cell
            })?
        }
    )*};

    (@binary $(
        $(#[$doc:meta])*
        $Rule:ident : $method:ident($x:ident in $domx:ident, $y:ident in $domy:ident) -> $z:ident {
            d $x1:ident $(via $zx:ident)? = $dx:expr;
            d $y1:ident $(via $zy:ident)? = $dy:expr;
            $(jump = $jump:expr, in $cell:expr;)?
            $(kink $kind:ident at [$($at:expr),*] gives [$($gives:expr),*];)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Rule {}
        impl Binary for $Rule {
            const NAME: &'static str = stringify!($method);
            const KINKS: &'static [Kink] = kinks! { $($kind at [$($at),*] gives [$($gives),*];)* };
            const DX_USES_Z: bool = uses_z!($(via $zx)?);
            const DY_USES_Z: bool = uses_z!($(via $zy)?);
            #[inline(always)]
            fn value<S: Scalar>(self, $x: S, $y: S) -> S {
                S::$method($x, $y)
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn dx<S: Scalar>(self, $x: S, $y: S, $z: S) -> S {
                $dx
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn dy<S: Scalar>(self, $x: S, $y: S, $z: S) -> S {
                $dy
            }
            $(const JUMPS: bool = true;
            #[inline(always)]
            #[allow(unused_variables)]
            fn jump_distance(self, $x: f64, $y: f64) -> f64 {
                $jump
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn jump_cell(self, $x: f64, $y: f64) -> f64 {
                $cell
            })?
        }
    )*};

    (@ternary $(
        $(#[$doc:meta])*
        $Rule:ident : $method:ident($x:ident in $domx:ident, $y:ident in $domy:ident, $w:ident in $domw:ident) -> $z:ident {
            d $x1:ident = $dx:expr;
            d $y1:ident = $dy:expr;
            d $w1:ident = $dw:expr;
            $(kink $kind:ident at [$($at:expr),*] gives [$($gives:expr),*];)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Rule {}
        impl Ternary for $Rule {
            const NAME: &'static str = stringify!($method);
            const KINKS: &'static [Kink] = kinks! { $($kind at [$($at),*] gives [$($gives),*];)* };
            #[inline(always)]
            fn value<S: Scalar>(self, $x: S, $y: S, $w: S) -> S {
                define_rules!(@value3 $method S $x $y $w)
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn dx<S: Scalar>(self, $x: S, $y: S, $w: S, $z: S) -> S {
                $dx
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn dy<S: Scalar>(self, $x: S, $y: S, $w: S, $z: S) -> S {
                $dy
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn dw<S: Scalar>(self, $x: S, $y: S, $w: S, $z: S) -> S {
                $dw
            }
        }
    )*};

    (@value3 select_nonzero $S:ident $x:ident $y:ident $w:ident) => { select_nonzero($x, $y, $w) };
    (@value3 $method:ident $S:ident $x:ident $y:ident $w:ident) => { $S::$method($x, $y, $w) };
}

rule_table! { define_rules! {} }
