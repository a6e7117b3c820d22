//! How wrong a result may be, in ulp, and why.
//!
//! The unit is `epsilon * size`: half of it is what one correctly rounded operation may lose. Counted per
//! row:
//!
//! - `value`: half for one arithmetic operation, 1 for an elementary function (what `palinode-num` and the
//!   platform promise), their sum for what is composed of several.
//! - `first`: the same count over the formula of the partial.
//! - `second`: `2 * first + 2`. Nesting differentiates that formula: each product of the chain rule has a
//!   factor with the error of the partial and another built from the same evaluations, and one rounding each
//!   for products and sums.
//! - *condition*: an inner rounding that the outer function magnifies is added: `exp(-x^2)` turns half an ulp
//!   of `x^2` into `x^2 / 2` ulp; `x^(y - 1)` turns half an ulp of `y - 1` into `|y - 1| |ln x| / 2`.
//! - *size*: where a derivative is a difference of larger terms (it crosses zero, or nesting differentiates a
//!   quotient), the error is measured against the terms. Each such case is named in [`size_of_terms`].
//! - *taper*: precision of posits falls away from 1, and what an intermediate loses is lost. Their unit is
//!   one ulp at the square of the [`reach`], the largest magnitude or reciprocal of one among arguments and
//!   results: terms of first and second order are products of at most two such. For all other numbers it is
//!   one ulp of 1. Of 8 bits nothing is left of that: they carry their errors along ([`crate::bounded`]), as
//!   16 bits do in a second check.
//! - *floor*: an intermediate as small as an argument or its reciprocal is known to one smallest number
//!   only. This matters next to the ends of the range, and for double-double below 1e-292.

use crate::leaf::Leaf;
use crate::reference::Sample;
use palinode_core::DoubleDouble;

/// What may be lost: `ulp` units of `epsilon * size`, and `floor` absolutely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    pub(crate) ulp: f64,
    pub(crate) size: f64,
    pub(crate) floor: f64,
    /// One ulp, relatively.
    pub(crate) epsilon: f64,
}

/// What a number that knows its own error may be off by: that, and what the double-double of the reference
/// is.
pub(crate) fn known<S: Leaf>(bound: f64, target: f64, counted: Allowed) -> Allowed {
    // The unit cancels. What is far below all numbers of `S` may be a subnormal `f64`, which would not.
    let size = if target == 0.0 { 1.0 } else { target.max(S::SMALLEST) };
    let floor = counted.size.max(size) * (f64::EPSILON * f64::EPSILON) * 1024.0;
    Allowed { ulp: bound * (1.0 + 1e-9) / (size * S::EPSILON), size, floor, epsilon: S::EPSILON }
}

/// Roundings compound: (1 + epsilon)^ulp - 1, which is no more than their sum unless there are few bits.
pub(crate) fn compounded(counted: Allowed) -> Allowed {
    Allowed { ulp: (counted.ulp * counted.epsilon).exp_m1() / counted.epsilon, ..counted }
}

/// (operation, ulp of the value, ulp of the first partials, how they are counted).
pub(crate) const BUDGETS: &[(&str, f64, f64, &str)] = &[
    ("neg", 0.0, 0.0, "exact; partial -1"),
    ("add", 0.5, 0.0, "one rounding; partials 1"),
    ("sub", 0.5, 0.0, "one rounding; partials 1 and -1"),
    ("mul", 0.5, 0.0, "one rounding; partials are the arguments"),
    ("div", 0.5, 1.5, "z and 1/y rounded, then their product"),
    ("rem", 0.5, 0.5, "exact but for DoubleDouble; the whole number of ys is rounded beyond 2^53"),
    ("recip", 0.5, 1.5, "z * z: z twice, one product"),
    ("abs", 0.0, 0.0, "exact; partial a sign"),
    ("signum", 0.0, 0.0, "exact; partial 0"),
    ("floor", 0.0, 0.0, "exact; partial 0"),
    ("ceil", 0.0, 0.0, "exact; partial 0"),
    ("round", 0.0, 0.0, "exact; partial 0"),
    ("trunc", 0.0, 0.0, "exact; partial 0"),
    ("fract", 0.5, 0.0, "one subtraction; partial 1"),
    ("sqrt", 0.5, 1.0, "1/2 / z: z and the quotient"),
    ("cbrt", 1.0, 3.5, "1/3 / z / z: three roundings and z twice"),
    ("exp", 1.0, 1.0, "the value itself"),
    ("exp2", 1.0, 2.0, "z, ln 2 and the product"),
    ("exp_m1", 1.0, 1.0, "exp"),
    ("ln", 1.0, 0.5, "1 / x"),
    ("ln_1p", 1.0, 1.0, "1 + x and the reciprocal"),
    ("log2", 1.0, 1.5, "1 / ln 2 / x: ln 2 and two quotients"),
    ("log10", 1.0, 1.5, "1 / ln 10 / x: ln 10 and two quotients"),
    ("sin", 1.0, 1.0, "cos"),
    ("cos", 1.0, 1.0, "sin"),
    ("tan", 1.0, 3.0, "1 + z * z: z twice, product, sum"),
    ("asin", 1.0, 1.75, "1 - x^2 to 1.5 (halved by the root), root, reciprocal: 0.75 + 0.5 + 0.5"),
    ("acos", 1.0, 1.75, "as asin"),
    ("atan", 1.0, 1.5, "1 + x * x and the reciprocal: three roundings"),
    ("sinh", 1.0, 1.0, "cosh"),
    ("cosh", 1.0, 1.0, "sinh"),
    (
        "tanh",
        1.0,
        4.0,
        "4 e / d^2: e 1, the exponent exact, d twice 1, product and quotient and square 1.5; or 1 - z^2 with z^2 < 1/2",
    ),
    ("asinh", 1.0, 1.5, "1 / hypot"),
    ("acosh", 1.0, 2.5, "two differences to half after their roots, two roots, reciprocal, quotient"),
    ("atanh", 1.0, 2.0, "1 - x^2 to 1.5, reciprocal"),
    ("erf", 1.0, 2.5, "constant, exp, product; condition x^2 / 2"),
    ("erfc", 1.5, 2.5, "as erf; libm's erfc itself scales two exponentials"),
    ("lgamma", 3.0, 8.0, "libm's lgamma; the partial is polygamma of order 0"),
    ("logistic", 2.0, 6.0, "e / (1 + e): 1 + 0.5 + 0.5; z z e^-x: z twice, exp, two products"),
    ("softplus", 2.5, 2.0, "exp, ln_1p, sum; partial is the logistic function"),
    ("relu", 0.0, 0.0, "exact; partial 0 or 1"),
    ("powi", 1.0, 1.5, "n x^(n-1): one power, one product"),
    ("polygamma", 8.0, 8.0, "series, climb and reflection: as palinode-num states"),
    ("copysign", 0.0, 0.0, "exact; partial a sign or 0"),
    ("min", 0.0, 0.0, "exact; partial 0, 1/2 or 1"),
    ("max", 0.0, 0.0, "exact; partial 0, 1/2 or 1"),
    ("powf", 1.0, 2.5, "power, logarithm, product; condition |y - 1| |ln x| / 2"),
    ("hypot", 1.0, 1.5, "x / z: z and the quotient"),
    ("atan2", 1.0, 3.0, "a / r / r: r twice, two quotients"),
    ("strong_mul", 0.5, 0.0, "one rounding; partials are the arguments"),
    ("mul_add", 0.5, 0.0, "one rounding; partials are arguments and 1"),
    ("clamp", 0.0, 0.0, "exact; partial 0 or 1"),
    ("select_nonzero", 0.0, 0.0, "exact; partial 0 or 1"),
];

/// 40 digits against the finest unit, 2^-104, and the rounding of the reference itself to 106 bits.
const REFERENCE: f64 = 0.15;
/// What is exact may differ by what 40 digits leave out.
const EXACT: f64 = 1e-6;

fn counted(op: &str) -> (f64, f64) {
    let row = BUDGETS.iter().find(|(name, ..)| *name == op);
    let &(_, value, first, _) = row.unwrap_or_else(|| panic!("{op} has no line in tests/all/budget.rs"));
    (value, first)
}

/// See *size* in the module's documentation. `order` counts derivatives; `which` are the arguments.
fn size_of_terms(sample: &Sample, which: &[usize]) -> f64 {
    let arg = |k: usize| sample.args[k];
    let first = |k: usize| sample.first[k].map_or(0.0, |d| d.hi().abs());
    match (sample.op.as_str(), which) {
        // Product and addend cancel; double-double rounds the product first.
        ("mul_add", []) => (arg(0) * arg(1)).abs().max(arg(2).abs()),
        // ln|gamma| crosses zero at 1, 2 and between poles among terms of size 1, its slope at 1.46 and
        // between poles.
        ("lgamma", []) => 1.0,
        ("lgamma", [_]) => polygamma_terms(arg(0), 0),
        ("lgamma", [_, _]) => polygamma_terms(arg(0), 1),
        ("polygamma", _) => polygamma_terms(arg(0), sample.parameter + which.len() as i32),
        // 1 - 2z crosses zero at x = 0, where z is one half with its rounding error.
        ("logistic", [_, _]) => first(0),
        // The derivative of x / z is 1/z - x^2/z^3, almost nothing where |x| is much the larger.
        ("hypot", [i, j]) if i == j => 1.0 / sample.value.hi(),
        // 1/r^2 - 2y^2/r^4 crosses zero where |x| = |y|.
        ("atan2", [i, j]) if i != j => {
            let r = arg(0).hypot(arg(1));
            1.0 / r / r
        }
        // x^(y-1) + y x^(y-1) ln x crosses zero.
        ("powf", [i, j]) if i != j => {
            let (x, y) = (arg(0), arg(1));
            x.powf(y - 1.0).abs() * (1.0 + (y * x.ln()).abs())
        }
        _ => 0.0,
    }
}

/// Digamma is a logarithm minus poles; higher orders are sums over poles that cancel between two of them.
fn polygamma_terms(x: f64, order: i32) -> f64 {
    if order == 0 {
        return x.abs().ln_1p().max(1.0);
    }
    if x > 0.0 {
        return 0.0;
    }
    let factorial: f64 = (1..=order).map(f64::from).product();
    2.0 * factorial * 2f64.powi(order + 1)
}

/// See *condition* in the module's documentation; `order` of the derivative.
fn condition(sample: &Sample, order: usize) -> f64 {
    let x = sample.args[0];
    match sample.op.as_str() {
        "erf" | "erfc" if order > 0 => x * x / 2.0,
        "powf" if order > 0 => {
            let y = sample.args[1];
            let exponents = (1..=order).map(|k| (y - k as f64).abs()).sum::<f64>();
            exponents * x.abs().ln().abs() / 2.0
        }
        _ => 0.0,
    }
}

/// See *floor* in the module's documentation. `factor` is what the smallest intermediate is multiplied with.
fn floor<S: Leaf>(sample: &Sample, result: f64, factor: f64) -> f64 {
    let sizes = sample.args.iter().map(|x| x.abs()).filter(|&size| size != 0.0);
    let reach = sizes.fold(0.0, |reach: f64, size| reach.max(size).max(1.0 / size));
    let through_arguments = if result.is_finite() { result.abs() * (reach * S::SMALLEST) } else { 0.0 };
    S::SMALLEST * (1.0 + factor) + through_arguments
}

/// See *taper* in the module's documentation.
pub(crate) fn reach(sample: &Sample) -> f64 {
    let results = [Some(sample.value)].into_iter();
    let results = results.chain(sample.first.iter().copied()).chain(sample.second.iter().flatten().copied());
    let results = results.flatten().map(DoubleDouble::hi);
    let sizes = results.chain(sample.args.iter().copied()).map(f64::abs).filter(|&size| size != 0.0);
    sizes.fold(1.0, |reach: f64, size| reach.max(size).max(1.0 / size))
}

fn epsilon<S: Leaf>(sample: &Sample) -> f64 {
    let reach = reach(sample);
    S::epsilon_at(reach * reach).unwrap_or(f64::INFINITY)
}

/// The budget of the value.
pub(crate) fn value<S: Leaf>(sample: &Sample) -> Allowed {
    let (ulp, _) = counted(&sample.op);
    let ulp = if ulp == 0.0 { EXACT } else { ulp + REFERENCE };
    Allowed { ulp, size: size_of_terms(sample, &[]), floor: S::SMALLEST, epsilon: epsilon::<S>(sample) }
}

/// The budget of the partial by argument `i`.
pub(crate) fn first<S: Leaf>(sample: &Sample, i: usize) -> Allowed {
    let (_, first) = counted(&sample.op);
    let result = sample.first[i].map_or(0.0, |d| d.hi());
    let ulp = if first == 0.0 { EXACT } else { first + condition(sample, 1) + REFERENCE };
    let floor = floor::<S>(sample, result, growth(sample));
    Allowed { ulp, size: size_of_terms(sample, &[i]), floor, epsilon: epsilon::<S>(sample) }
}

/// The budget of the second derivative by arguments `i` and `j`.
pub(crate) fn second<S: Leaf>(sample: &Sample, i: usize, j: usize) -> Allowed {
    let (_, first) = counted(&sample.op);
    let result = sample.second[i][j].map_or(0.0, |d| d.hi());
    let ulp = if first == 0.0 { EXACT } else { 2.0 * first + 2.0 + condition(sample, 2) + REFERENCE };
    let growth = growth(sample);
    let floor = floor::<S>(sample, result, growth * growth);
    Allowed { ulp, size: size_of_terms(sample, &[i, j]), floor, epsilon: epsilon::<S>(sample) }
}

/// What an underflowed power or exponential is multiplied with to give a derivative.
fn growth(sample: &Sample) -> f64 {
    match sample.op.as_str() {
        "powf" => 1.0 + sample.args[1].abs() + sample.args[0].abs().ln().abs(),
        "powi" => 1.0 + f64::from(sample.parameter).abs(),
        "erf" | "erfc" => 1.0 + 2.0 * sample.args[0].abs(),
        "tanh" => 8.0,
        _ => 3.0,
    }
}
