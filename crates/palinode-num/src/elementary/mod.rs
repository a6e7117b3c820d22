//! The elementary functions of `f64`: ours, so that they give the same bits on every machine.
//!
//! Input -> output: numbers in, the function's values out, with an error below one unit in the last place
//! (the tests measure each; ADR 0048 has the table). Each function is written once, as straight-line text
//! over [`Double`]: `f64` runs it number by number, loops over slices are vectorised by the
//! compiler for the instructions that the processor has ([`crate::machine`]), and symbols can print it.
//!
//! Invariants: the text uses `+ - * /`, square roots, comparisons and operations on bits, all of which IEEE
//! 754 defines to the bit; no fused multiply-add, no library. So a function has the same bits as a scalar and
//! anywhere in a slice, on every instruction set and platform. (The bits of a NaN are not specified.)
//! Where a few arguments need another text (angles from 2^18 on, powers of negative numbers), there are two:
//! a fast one for all arguments, with a flag, then a slow one for the rare arguments. Where many arguments
//! need less (angles below a quarter turn, exponentials that are normal numbers), single numbers take a short
//! cut that gives the same bits.
//!
//! The map: `double.rs` the vocabulary, `pair.rs` numbers of more bits, `exponential.rs`, `hyperbolic.rs`,
//! `logarithm.rs`, `power.rs`, `circular.rs`, `angle.rs` and `error_function.rs` the functions, `slices.rs`
//! slices. `constants.rs` is written by `reference/elementary.py`.

mod angle;
mod circular;
#[rustfmt::skip] // as the script writes it
#[allow(clippy::approx_constant)] // the script writes all constants in one way
mod constants;
pub mod double;
mod error_function;
mod exponential;
mod hyperbolic;
mod logarithm;
mod pair;
mod power;
mod slices;

use crate::machine::InstructionSet;
use double::Double;
pub use slices::Operand;

/// The text of a function of one argument.
trait OfOne {
    /// Its value, if the argument is not rare.
    fn fast<D: Double>(x: D) -> D;
    /// Whether the argument is rare; never, by default.
    #[inline(always)]
    fn is_rare<D: Double>(x: D) -> D::Mask {
        x.less(x)
    }
    /// Its value, if the argument is rare.
    #[inline(always)]
    fn slow<D: Double>(x: D) -> D {
        x
    }
    /// Whether [`near`](Self::near) holds: of numbers one by one, which can take a branch.
    #[inline(always)]
    fn is_near(_: f64) -> bool {
        false
    }
    /// Its value with the same bits, by fewer operations, if the argument is near.
    #[inline(always)]
    fn near(x: f64) -> f64 {
        x
    }
}

/// The text of a function of two arguments, likewise.
trait OfTwo {
    fn fast<D: Double>(x: D, y: D) -> D;
    #[inline(always)]
    fn is_rare<D: Double>(x: D, _: D) -> D::Mask {
        x.less(x)
    }
    #[inline(always)]
    fn slow<D: Double>(x: D, _: D) -> D {
        x
    }
}

/// The value for one number.
#[inline(always)]
fn scalar<F: OfOne>(x: f64) -> f64 {
    if F::is_near(x) {
        F::near(x)
    } else if F::is_rare(x) {
        rare::<F>(x)
    } else {
        F::fast(x)
    }
}

#[cold]
#[inline(never)]
extern "C" fn rare<F: OfOne>(x: f64) -> f64 {
    F::slow(x)
}

/// The value for two numbers.
#[inline(always)]
fn scalar_of_two<F: OfTwo>(x: f64, y: f64) -> f64 {
    if F::is_rare(x, y) { rare_of_two::<F>(x, y) } else { F::fast(x, y) }
}

#[cold]
#[inline(never)]
extern "C" fn rare_of_two<F: OfTwo>(x: f64, y: f64) -> f64 {
    F::slow(x, y)
}

macro_rules! functions {
    (
        one {
            $($(#[$doc:meta])* $Name:ident $name:ident = $fast:path
                $(, near $is_near:path => $near:path)? $(, rare $is_rare:path => $slow:path)?;)*
        }
        two {
            $($(#[$doc2:meta])* $Name2:ident $name2:ident = $fast2:path $(, rare $is_rare2:path => $slow2:path)?;)*
        }
    ) => {
        /// An elementary function of one argument.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Function {
            $($(#[$doc])* $Name,)*
        }

        /// An elementary function of two arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FunctionOfTwo {
            $($(#[$doc2])* $Name2,)*
        }

        impl Function {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$Name),*];

            /// Its name, that of the method of [`Scalar`](crate::Scalar).
            pub fn name(self) -> &'static str {
                match self { $(Self::$Name => stringify!($name),)* }
            }
            /// Its value.
            #[inline]
            pub fn of(self, x: f64) -> f64 {
                match self { $(Self::$Name => $name(x),)* }
            }
            /// Its text for arguments that are not rare.
            pub fn fast<D: Double>(self, x: D) -> D {
                match self { $(Self::$Name => <text::$Name as OfOne>::fast(x),)* }
            }
            /// Which arguments are rare.
            pub fn is_rare<D: Double>(self, x: D) -> D::Mask {
                match self { $(Self::$Name => <text::$Name as OfOne>::is_rare(x),)* }
            }
            /// Its text for arguments that are rare.
            pub fn slow<D: Double>(self, x: D) -> D {
                match self { $(Self::$Name => <text::$Name as OfOne>::slow(x),)* }
            }
            /// Its values for all numbers of a slice: the same bits as [`of`](Self::of).
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn of_slice(self, x: &[f64], values: &mut [f64]) {
                match self { $(Self::$Name => slices::of_slice::<text::$Name>(x, values),)* }
            }
            /// [`of_slice`](Self::of_slice) by one instruction set, for tests that compare.
            #[doc(hidden)]
            pub fn of_slice_on(self, set: InstructionSet, x: &[f64], values: &mut [f64]) {
                match self { $(Self::$Name => set.run(slices::OfSlice::<text::$Name>::new(x, values)),)* }
            }
            /// The numbers of a slice replaced by its values.
            pub fn in_place(self, numbers: &mut [f64]) {
                match self { $(Self::$Name => slices::in_place::<text::$Name>(numbers),)* }
            }
        }

        impl FunctionOfTwo {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$Name2),*];

            /// Its name, that of the method of [`Scalar`](crate::Scalar).
            pub fn name(self) -> &'static str {
                match self { $(Self::$Name2 => stringify!($name2),)* }
            }
            /// Its value.
            #[inline]
            pub fn of(self, x: f64, y: f64) -> f64 {
                match self { $(Self::$Name2 => $name2(x, y),)* }
            }
            /// Its text for arguments that are not rare.
            pub fn fast<D: Double>(self, x: D, y: D) -> D {
                match self { $(Self::$Name2 => <text::$Name2 as OfTwo>::fast(x, y),)* }
            }
            /// Which arguments are rare.
            pub fn is_rare<D: Double>(self, x: D, y: D) -> D::Mask {
                match self { $(Self::$Name2 => <text::$Name2 as OfTwo>::is_rare(x, y),)* }
            }
            /// Its text for arguments that are rare.
            pub fn slow<D: Double>(self, x: D, y: D) -> D {
                match self { $(Self::$Name2 => <text::$Name2 as OfTwo>::slow(x, y),)* }
            }
            /// Its values for all numbers of slices, or of slices and one number: the same bits as
            /// [`of`](Self::of).
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn of_slices(self, x: Operand, y: Operand, values: &mut [f64]) {
                match self { $(Self::$Name2 => slices::of_slices::<text::$Name2>(x, y, values),)* }
            }
            /// [`of_slices`](Self::of_slices) by one instruction set, for tests that compare.
            #[doc(hidden)]
            pub fn of_slices_on(self, set: InstructionSet, x: Operand, y: Operand, values: &mut [f64]) {
                match self { $(Self::$Name2 => set.run(slices::OfSlices::<text::$Name2>::new(x, y, values)),)* }
            }
        }

        mod text {
            use super::*;
            $(pub(super) struct $Name;
            impl OfOne for $Name {
                #[inline(always)]
                fn fast<D: Double>(x: D) -> D {
                    $fast(x)
                }
                $(#[inline(always)]
                fn is_near(x: f64) -> bool {
                    $is_near(x)
                }
                #[inline(always)]
                fn near(x: f64) -> f64 {
                    $near(x)
                })?
                $(#[inline(always)]
                fn is_rare<D: Double>(x: D) -> D::Mask {
                    $is_rare(x)
                }
                #[inline(always)]
                fn slow<D: Double>(x: D) -> D {
                    $slow(x)
                })?
            })*
            $(pub(super) struct $Name2;
            impl OfTwo for $Name2 {
                #[inline(always)]
                fn fast<D: Double>(x: D, y: D) -> D {
                    $fast2(x, y)
                }
                $(#[inline(always)]
                fn is_rare<D: Double>(x: D, y: D) -> D::Mask {
                    $is_rare2(x, y)
                }
                #[inline(always)]
                fn slow<D: Double>(x: D, y: D) -> D {
                    $slow2(x, y)
                })?
            })*
        }

        $($(#[$doc])*
        #[inline]
        pub fn $name(x: f64) -> f64 {
            scalar::<text::$Name>(x)
        })*
        $($(#[$doc2])*
        #[inline]
        pub fn $name2(x: f64, y: f64) -> f64 {
            scalar_of_two::<text::$Name2>(x, y)
        })*
    };
}

functions! {
    one {
        /// `e^x`.
        Exp exp = exponential::exp, near exponential::is_moderate => exponential::exp_of_moderate;
        /// `2^x`.
        Exp2 exp2 = exponential::exp2, near exponential::is_moderate => exponential::exp2_of_moderate;
        /// `e^x - 1`.
        ExpM1 exp_m1 = hyperbolic::exp_m1;
        /// Natural logarithm.
        Ln ln = logarithm::ln;
        /// `ln(1 + x)`.
        Ln1p ln_1p = logarithm::ln_1p;
        /// Logarithm to base 2.
        Log2 log2 = logarithm::log2;
        /// Logarithm to base 10.
        Log10 log10 = logarithm::log10;
        /// Sine.
        Sin sin = circular::sin, near circular::is_near => circular::sin_near, rare circular::is_far => circular::sin_far;
        /// Cosine.
        Cos cos = circular::cos, near circular::is_near => circular::cos_near, rare circular::is_far => circular::cos_far;
        /// Tangent.
        Tan tan = circular::tan, rare circular::is_far => circular::tan_far;
        /// Arc sine.
        Asin asin = angle::asin;
        /// Arc cosine.
        Acos acos = angle::acos;
        /// Arc tangent.
        Atan atan = angle::atan;
        /// Hyperbolic sine.
        Sinh sinh = hyperbolic::sinh;
        /// Hyperbolic cosine.
        Cosh cosh = hyperbolic::cosh;
        /// Hyperbolic tangent.
        Tanh tanh = hyperbolic::tanh;
        /// Inverse hyperbolic sine.
        Asinh asinh = logarithm::asinh;
        /// Inverse hyperbolic cosine.
        Acosh acosh = logarithm::acosh;
        /// Inverse hyperbolic tangent.
        Atanh atanh = logarithm::atanh;
        /// Cube root.
        Cbrt cbrt = power::cbrt;
        /// The error function.
        Erf erf = error_function::erf;
        /// `1 - erf(x)`.
        Erfc erfc = error_function::erfc;
        /// `1 / (1 + e^-x)`.
        Logistic logistic = exponential::logistic;
        /// `ln(1 + e^x)`.
        Softplus softplus = logarithm::softplus;
    }
    two {
        /// `x^y`.
        Powf powf = power::powf, rare power::is_no_plain_power => power::powf_of_any;
        /// `sqrt(x^2 + y^2)`.
        Hypot hypot = power::hypot;
        /// The angle of the point `(y, x)`: the first argument is the ordinate.
        Atan2 atan2 = angle::atan2;
    }
}

/// Sine and cosine, with the bits of [`sin`] and [`cos`].
#[inline]
pub fn sin_cos(x: f64) -> (f64, f64) {
    circular::sin_cos(x)
}
