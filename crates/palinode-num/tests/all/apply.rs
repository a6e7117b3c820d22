//! Functions by the name that the tables know them under.

use palinode_num::Scalar;

macro_rules! functions {
    (one: $($one:ident)*; two: $($two:ident)*; three: $($three:ident)*; integer: $($integer:ident)*) => {
        /// `op(x, y, w)`, where absent arguments are not looked at.
        pub(crate) fn apply<S: Scalar>(op: &str, parameter: Option<i32>, arguments: &[S]) -> S {
            let x = arguments[0];
            match op {
                $(stringify!($one) => x.$one(),)*
                $(stringify!($two) => x.$two(arguments[1]),)*
                $(stringify!($three) => x.$three(arguments[1], arguments[2]),)*
                $(stringify!($integer) => {
                    x.$integer(parameter.expect("a parameter").try_into().expect("a parameter of its kind"))
                })*
                unknown => panic!("the reference has {unknown}, the tests do not: add it to apply.rs"),
            }
        }

        /// Functions of one argument without a parameter.
        pub(crate) const UNARY: &[&str] = &[$(stringify!($one)),*];
        /// Functions of two arguments.
        pub(crate) const BINARY: &[&str] = &[$(stringify!($two)),*];
        /// Functions of three arguments, and those of one with an integer parameter.
        pub(crate) const OTHERS: &[&str] = &[$(stringify!($three),)* $(stringify!($integer)),*];
    };
}
functions! {
    one: neg recip abs signum floor ceil round trunc fract sqrt cbrt exp exp2 exp_m1 ln ln_1p log2 log10
        sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma logistic softplus relu;
    two: add sub mul div rem strong_mul copysign min max powf hypot atan2;
    three: mul_add clamp;
    integer: powi polygamma
}
