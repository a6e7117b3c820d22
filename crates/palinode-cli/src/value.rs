//! Values as JSON: numbers as the shortest text that is read back the same, infinities and NaN as strings,
//! arrays nested.

use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::pal::{Argument, Output, Role, Unit};
use serde_json::{Value, json};

use crate::answer::Json;

/// A number; JSON has no infinities.
pub(crate) fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(crate::numbers::plain(x)) }
}

/// A tensor of reals.
pub(crate) fn reals(tensor: &Tensor<f64>) -> Json<'_> {
    Json::Array { shape: &tensor.shape, element: Box::new(|at| number(tensor.data[at])) }
}

/// Any value, in a unit.
pub(crate) fn datum<'a>(datum: &'a Datum<f64>, unit: Option<&'a Unit>) -> Json<'a> {
    let element: Box<dyn Fn(usize) -> Value + 'a> = match datum {
        Datum::Real(tensor) => {
            Box::new(move |at| number(unit.map_or(tensor.data[at], |unit| unit.from_si(tensor.data[at]))))
        }
        Datum::Int(tensor) => Box::new(|at| json!(tensor.data[at])),
        Datum::Bool(tensor) => Box::new(|at| json!(tensor.data[at])),
    };
    Json::Array { shape: datum.shape(), element }
}

/// What an argument is declared as.
pub(crate) fn role(argument: &Argument) -> &'static str {
    if argument.role == Role::Param { "param" } else { "input" }
}

/// A unit's text, or null.
pub(crate) fn unit(unit: Option<&Unit>) -> Value {
    unit.map_or(Value::Null, |unit| json!(&*unit.text))
}

/// An output and its value, in its unit.
pub(crate) fn output(output: &Output, value: f64) -> Value {
    json!({ "name": &*output.name, "value": number(value), "unit": unit(output.unit.as_ref()) })
}

/// A value in SI -> in this unit.
pub(crate) fn in_unit(datum: Datum<f64>, unit: Option<&Unit>) -> Datum<f64> {
    match (unit, datum) {
        (Some(unit), Datum::Real(mut tensor)) => {
            tensor.data.iter_mut().for_each(|x| *x = unit.from_si(*x));
            Datum::Real(tensor)
        }
        (_, datum) => datum,
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
