//! Functions by the name that the tables know them under.

use palinode_num::Scalar;

/// `op(x, y, w)`, where absent arguments are not looked at.
pub(crate) fn apply<S: Scalar>(op: &str, parameter: Option<i32>, arguments: &[S]) -> S {
    let x = arguments[0];
    let y = || arguments[1];
    let w = || arguments[2];
    let n = || parameter.expect("a parameter");
    match op {
        "add" => x + y(),
        "sub" => x - y(),
        "mul" => x * y(),
        "div" => x / y(),
        "rem" => x % y(),
        "neg" => -x,
        "recip" => x.recip(),
        "mul_add" => x.mul_add(y(), w()),
        "strong_mul" => x.strong_mul(y()),
        "abs" => x.abs(),
        "signum" => x.signum(),
        "copysign" => x.copysign(y()),
        "min" => x.min(y()),
        "max" => x.max(y()),
        "clamp" => x.clamp(y(), w()),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round" => x.round(),
        "trunc" => x.trunc(),
        "fract" => x.fract(),
        "powi" => x.powi(n()),
        "powf" => x.powf(y()),
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "hypot" => x.hypot(y()),
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "exp_m1" => x.exp_m1(),
        "ln" => x.ln(),
        "ln_1p" => x.ln_1p(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "atan2" => x.atan2(y()),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "asinh" => x.asinh(),
        "acosh" => x.acosh(),
        "atanh" => x.atanh(),
        "erf" => x.erf(),
        "erfc" => x.erfc(),
        "lgamma" => x.lgamma(),
        "polygamma" => x.polygamma(n().unsigned_abs()),
        "logistic" => x.logistic(),
        "softplus" => x.softplus(),
        "relu" => x.relu(),
        unknown => panic!("the reference has {unknown}, the tests do not: add it to apply.rs"),
    }
}

/// Functions of one argument without a parameter.
pub(crate) const UNARY: &[&str] = &[
    "neg", "recip", "abs", "signum", "floor", "ceil", "round", "trunc", "fract", "sqrt", "cbrt", "exp",
    "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "logistic", "softplus", "relu",
];

/// Functions of two arguments.
pub(crate) const BINARY: &[&str] =
    &["add", "sub", "mul", "div", "rem", "strong_mul", "copysign", "min", "max", "powf", "hypot", "atan2"];

/// Functions of one argument with an integer parameter, and those of three arguments.
pub(crate) const OTHERS: &[&str] = &["powi", "polygamma", "mul_add", "clamp"];
