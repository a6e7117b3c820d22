//! Values as JSON: numbers as the shortest text that is read back the same, infinities and NaN as strings, arrays nested.

use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::pal::Unit;
use serde_json::{Value, json};

/// A number; JSON has no infinities.
pub(crate) fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(crate::numbers::plain(x)) }
}

/// A tensor of reals.
pub(crate) fn reals(tensor: &Tensor<f64>) -> Value {
    nested(&tensor.shape, &mut tensor.data.iter().map(|&x| number(x)))
}

/// Any value.
pub(crate) fn datum(datum: &Datum<f64>) -> Value {
    match datum {
        Datum::Real(tensor) => reals(tensor),
        Datum::Int(tensor) => nested(&tensor.shape, &mut tensor.data.iter().map(|&n| json!(n))),
        Datum::Bool(tensor) => nested(&tensor.shape, &mut tensor.data.iter().map(|&flag| json!(flag))),
    }
}

fn nested(shape: &[usize], elements: &mut dyn Iterator<Item = Value>) -> Value {
    match shape.split_first() {
        None => elements.next().unwrap_or(Value::Null),
        Some((&length, rest)) => Value::Array((0..length).map(|_| nested(rest, elements)).collect()),
    }
}

/// A unit's text, or null.
pub(crate) fn unit(unit: Option<&Unit>) -> Value {
    unit.map_or(Value::Null, |unit| json!(&*unit.text))
}

/// A value in SI -> in this unit.
pub(crate) fn in_unit(datum: Datum<f64>, unit: Option<&Unit>) -> Datum<f64> {
    match unit {
        Some(unit) => datum.map(|x| unit.from_si(x)),
        None => datum,
    }
}

/// What a derivative in SI is worth per unit of the argument, in units of the result.
pub(crate) fn derivative_scale(of: Option<&Unit>, by: Option<&Unit>) -> f64 {
    let scale = by.map_or(1.0, Unit::scale);
    of.map_or(scale, |of| of.from_si(scale))
}

/// `m per s`, `per s`, or nothing.
pub(crate) fn derivative_unit(of: Option<&Unit>, by: Option<&Unit>) -> String {
    match (of, by) {
        (None, None) => String::new(),
        (Some(of), None) => of.text.to_string(),
        (None, Some(by)) => format!("per {}", by.text),
        (Some(of), Some(by)) => format!("{} per {}", of.text, by.text),
    }
}
