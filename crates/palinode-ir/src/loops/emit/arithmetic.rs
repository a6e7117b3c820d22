//! Rows of the rule table, comparisons and integers as expressions.

use palinode_core::elementary::{Function, FunctionOfTwo};
use palinode_core::rules::Row;

use super::super::form::{Operand, Stmt};
use super::language::Language;
use super::text::{Level, Text};
use crate::op::{Comparison, IntOp, Rule};

/// Calls a function of the support module.
pub(super) type Call<'a> = &'a mut dyn FnMut(&'static str, &[String]) -> Text;

/// Whether there is text for a row.
pub(super) fn is_known(rule: Rule) -> bool {
    !matches!(rule.row, Row::Lgamma | Row::Polygamma)
}

/// A row of the rule table.
pub(super) fn row(language: &dyn Language, rule: Rule, args: &[Text], call: Call<'_>) -> Text {
    let operator = |op: &str, level: Level| Text::binary(op, level, &args[0], &args[1]);
    match rule.row {
        Row::Add => return operator("+", Level::Sum),
        Row::Subtract => return operator("-", Level::Sum),
        Row::Multiply => return operator("*", Level::Product),
        Row::Divide => return operator("/", Level::Product),
        Row::Negate => return Text::prefix("-", &args[0]),
        Row::Recip => {
            let one = language.real(1.0);
            return Text::binary("/", Level::Product, &one, &args[0]);
        }
        _ => {}
    }
    let texts: Vec<String> = args.iter().map(|arg| arg.text.clone()).collect();
    match (rule.row, rule.parameter) {
        (Row::Powi, 1) => args[0].clone(),
        (Row::Powi, 2) => call("square", &texts),
        (Row::Powi, 3) => call("cube", &texts),
        (Row::Powi, -1) => {
            let one = language.real(1.0);
            Text::binary("/", Level::Product, &one, &args[0])
        }
        (Row::Powi, power) => {
            let power = language.real(f64::from(power));
            call("powf", &[texts[0].clone(), power.text])
        }
        (row, _) => {
            debug_assert!(is_known(rule));
            call(row.name(), &texts)
        }
    }
}

/// A comparison.
pub(super) fn comparison(op: Comparison, a: &Text, b: &Text) -> Text {
    let op = match op {
        Comparison::Less => "<",
        Comparison::LessEq => "<=",
        Comparison::Equal => "==",
    };
    Text::binary(op, Level::Comparison, a, b)
}

/// How an operation on integers is done.
pub(super) enum Integer {
    /// An expression.
    Value(Text),
    /// A function that may stop.
    MayStop(&'static str),
}

/// An operation on integers; the statement says what is known of its operands.
pub(super) fn integer(op: IntOp, a: &Text, b: &Text, stmt: &Stmt, call: Call<'_>) -> Integer {
    let by_positive = matches!(stmt, Stmt::Int { b: Operand::Int(1..), .. });
    let args = [a.text.clone(), b.text.clone()];
    let name = match op {
        IntOp::Add => return Integer::MayStop("added"),
        IntOp::Sub => return Integer::MayStop("subtracted"),
        IntOp::Mul => return Integer::MayStop("multiplied"),
        IntOp::Div if !by_positive => return Integer::MayStop("quotient"),
        IntOp::Rem if !by_positive => return Integer::MayStop("rest"),
        IntOp::Div => "quotient_by",
        IntOp::Rem => "rest_by",
        IntOp::Min => "least",
        IntOp::Max => "most",
    };
    Integer::Value(call(name, &args))
}

/// The elementary function of one number with a name.
pub(super) fn elementary(name: &str) -> Option<Function> {
    Function::ALL.iter().copied().find(|function| function.name() == name)
}

/// The elementary function of two numbers with a name.
pub(super) fn elementary_of_two(name: &str) -> Option<FunctionOfTwo> {
    FunctionOfTwo::ALL.iter().copied().find(|function| function.name() == name)
}
