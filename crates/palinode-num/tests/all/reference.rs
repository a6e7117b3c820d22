//! Every function of every leaf number against arbitrary-precision references.

use crate::apply::{BINARY, OTHERS, UNARY, apply};
use crate::table::{Row, read};
use palinode_num::{DoubleDouble, Scalar};
use std::collections::BTreeMap;

/// The distance between 1 and the next number, and the smallest positive number.
struct Format {
    epsilon: f64,
    smallest: f64,
}

const F32: Format = Format { epsilon: f32::EPSILON as f64, smallest: 1.401298464324817e-45 };
const F64: Format = Format { epsilon: f64::EPSILON, smallest: 5e-324 };
/// 2^-104: two bits of the 106 are left for rounding.
const DOUBLE_DOUBLE: Format = Format { epsilon: f64::EPSILON * f64::EPSILON, smallest: 5e-324 };

/// 40 digits, in units of the finest epsilon, with a margin.
const REFERENCE_ERROR: f64 = 1e-6;

/// The worst error per function, in units of the format's epsilon relative to `size`.
#[derive(Default)]
struct Worst(BTreeMap<String, (f64, String)>);

impl Worst {
    fn note(&mut self, op: &str, row: &Row, found: DoubleDouble, size: f64, format: &Format) {
        let expected = row.decimal("value");
        let error = (found - expected).abs().hi();
        assert!(!error.is_nan(), "{}: {found:?} instead of {expected:?}", row.describe());
        // Half the smallest number is lost wherever a result is rounded to the subnormal grid.
        let ulps = if error <= format.smallest { 0.0 } else { error / (format.epsilon * size) };
        let worst = self.0.entry(op.into()).or_insert((0.0, String::new()));
        if ulps >= worst.0 {
            *worst = (ulps, format!("{}: {found:?} instead of {expected:?}", row.describe()));
        }
    }

    fn check(&self, name: &str, allowed: impl Fn(&str) -> f64) {
        let mut excess = String::new();
        for (op, (ulps, place)) in &self.0 {
            println!("{name} {op}: {ulps:.3} ulp at {place}");
            if *ulps > allowed(op) {
                excess += &format!("\n{op}: {ulps:.3} ulp, {} allowed, at {place}", allowed(op));
            }
        }
        assert!(excess.is_empty(), "{name}:{excess}");
    }
}

/// What the error is measured against: the value, or the terms that cancel in it.
fn size<S: Scalar>(op: &str, row: &Row, arguments: &[S]) -> f64 {
    let value = row.decimal("value").hi().abs();
    let argument = |index: usize| arguments[index].peek().expect("a number");
    match op {
        "mul_add" => value.max((argument(0) * argument(1)).abs()).max(argument(2).abs()),
        // ln|Gamma| and digamma cross zero between terms of about this size.
        "lgamma" if argument(0) < 0.0 => value.max(1.0),
        "polygamma" if row.integer("param") == Some(0) => value.max(argument(0).abs().ln_1p().max(1.0)),
        // Higher orders cross zero between poles, where the poles on both sides cancel.
        "polygamma" if argument(0) < 0.0 => {
            let order = row.integer("param").expect("an order");
            let factorial: f64 = (1..=order).map(f64::from).product();
            value.max(2.0 * factorial * 2f64.powi(order + 1))
        }
        _ => value,
    }
}

fn arguments<S: Scalar>(row: &Row) -> Vec<S> {
    ["x", "y", "w"].iter().filter_map(|column| row.float(column)).map(S::from_f64).collect()
}

fn measure<S: Scalar>(
    format: &Format,
    fits: impl Fn(&Row) -> bool,
    widen: impl Fn(S) -> DoubleDouble,
) -> Worst {
    let mut worst = Worst::default();
    for row in read("rules.tsv").iter().filter(|row| fits(row)) {
        let op = row.get("op");
        let arguments = arguments::<S>(row);
        let found = widen(apply(op, row.integer("param"), &arguments));
        worst.note(op, row, found, size(op, row, &arguments), format);
    }
    worst
}

/// Results that are a number of the format, found without rounding.
fn is_exact(op: &str) -> bool {
    const EXACT: &[&str] = &[
        "neg", "abs", "signum", "copysign", "min", "max", "clamp", "floor", "ceil", "round", "trunc", "relu",
    ];
    EXACT.contains(&op)
}

/// One operation, correctly rounded.
fn is_correctly_rounded(op: &str) -> bool {
    const ROUNDED: &[&str] =
        &["add", "sub", "mul", "div", "rem", "recip", "mul_add", "strong_mul", "fract", "sqrt"];
    ROUNDED.contains(&op)
}

#[test]
fn f64_values() {
    let worst = measure::<f64>(&F64, |_| true, DoubleDouble::from);
    worst.check("f64", |op| match op {
        op if is_exact(op) => REFERENCE_ERROR,
        op if is_correctly_rounded(op) => 0.5 + REFERENCE_ERROR,
        "polygamma" => 8.0,
        "lgamma" => 3.0,
        // Elementary functions; longer tests are in `elementary.rs`.
        _ => 1.0,
    });
}

#[test]
fn f32_values() {
    let worst = measure::<f32>(&F32, |row| row.get("fits") == "f32", |v| DoubleDouble::from(f64::from(v)));
    worst.check("f32", |op| match op {
        op if is_exact(op) => REFERENCE_ERROR,
        op if is_correctly_rounded(op) => 0.5 + REFERENCE_ERROR,
        // Through `f64`, and rounded once more.
        _ => 0.5 + 1e-6,
    });
}

#[test]
fn double_double_values() {
    let worst = measure::<DoubleDouble>(&DOUBLE_DOUBLE, |_| true, |v| v);
    worst.check("double-double", double_double_tolerance);
}

/// In units of 2^-104. The reference itself, rounded to 106 bits, takes up to 1/8 of one.
fn double_double_tolerance(op: &str) -> f64 {
    match op {
        op if is_exact(op) => REFERENCE_ERROR,
        "polygamma" => 4.0,
        "add" | "sub" | "mul" | "div" | "recip" | "mul_add" | "strong_mul" | "sqrt" | "logistic"
        | "softplus" => 1.0,
        _ => 0.26,
    }
}

#[test]
fn double_double_values_at_arguments_of_106_bits() {
    let mut worst = Worst::default();
    for row in &read("double_double.tsv") {
        let op = row.get("op");
        let part = |hi: &str, lo: &str| Some(DoubleDouble::from_sum(row.float(hi)?, row.float(lo)?));
        let arguments: Vec<_> = [part("x_hi", "x_lo"), part("y_hi", "y_lo")].into_iter().flatten().collect();
        let found = apply(op, row.integer("param"), &arguments);
        worst.note(op, row, found, size(op, row, &arguments), &DOUBLE_DOUBLE);
    }
    worst.check("double-double", double_double_tolerance);
}

#[test]
fn the_reference_covers_every_function_and_both_sides() {
    let rows = read("rules.tsv");
    for op in [UNARY, BINARY, OTHERS].concat() {
        let of_op = || rows.iter().filter(|row| row.get("op") == op);
        assert!(of_op().count() >= 25, "{op} has {} rows", of_op().count());
        let has =
            |sign: bool| of_op().any(|row| row.float("x").is_some_and(|x| x.is_sign_negative() == sign));
        let only_positive = ["sqrt", "ln", "log2", "log10", "acosh"].contains(&op);
        assert!(has(false), "{op} lacks positive arguments");
        assert!(has(true) != only_positive, "{op}: negative arguments");
    }
}
