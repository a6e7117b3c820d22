//! C99.

use super::super::form::Kind;
use super::language::{Declared, Head, Language, NOTES, signed};
use super::rust::wrapped;
use super::text::{Level, Text};

pub(super) struct C;

/// The type of a scalar.
pub(super) fn scalar(kind: Kind) -> &'static str {
    match kind {
        Kind::Real => "double",
        Kind::Int => "int64_t",
        Kind::Bool => "bool",
    }
}

/// Functions that the standard library has, exact or rounded once.
const STANDARD: &[(&str, &str)] = &[
    ("abs", "fabs"),
    ("sqrt", "sqrt"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("trunc", "trunc"),
    ("round", "round"),
    ("copysign", "copysign"),
    ("mul_add", "fma"),
    ("rem", "fmod"),
];

/// The name of a function of the support module.
pub(super) fn function(name: &str) -> String {
    match STANDARD.iter().find(|pair| pair.0 == name) {
        Some((_, own)) => (*own).into(),
        None => format!("pal_{name}"),
    }
}

impl Language for C {
    fn real(&self, value: f64) -> Text {
        if value.is_nan() {
            Text::atom("NAN")
        } else if value == f64::INFINITY {
            Text::atom("INFINITY")
        } else if value == f64::NEG_INFINITY {
            Text::new("-INFINITY", Level::Sign)
        } else {
            signed(format!("{value:?}"))
        }
    }

    fn int(&self, value: i64) -> Text {
        match value {
            i64::MIN => Text::atom("INT64_MIN"),
            _ if i32::try_from(value).is_ok() => signed(value.to_string()),
            _ if value < 0 => Text::new(format!("-INT64_C({})", value.unsigned_abs()), Level::Sign),
            _ => Text::atom(format!("INT64_C({value})")),
        }
    }

    fn of_counter(&self, counter: &str) -> Text {
        Text::atom(counter)
    }

    fn place(&self, integer: &Text) -> String {
        integer.text.clone()
    }

    fn choice(&self, holds: &Text, a: &Text, b: &Text) -> Text {
        let text = format!(
            "{} ? {} : {}",
            holds.above(Level::Choice),
            a.above(Level::Choice),
            b.above(Level::Choice)
        );
        Text::new(text, Level::Choice)
    }

    fn call(&self, name: &str, args: &[String]) -> Text {
        Text::atom(format!("{}({})", function(name), args.join(", ")))
    }

    fn round32(&self, a: &Text) -> Text {
        self.call("round32", core::slice::from_ref(&a.text))
    }

    fn part(&self, array: &str, from: Option<&str>, _: bool) -> String {
        match from {
            None => array.into(),
            Some(from) => format!("{array} + {from}"),
        }
    }

    fn stretch(&self, array: &str, from: Option<&str>, _: usize, is_changed: bool) -> String {
        self.part(array, from, is_changed)
    }

    fn slice(&self, stretch: String, count: usize) -> Vec<String> {
        vec![stretch, count.to_string()]
    }

    fn steps(&self) -> &'static str {
        "&steps"
    }

    fn declare(&self, name: &str, kind: Kind, value: &str, is_set_again: bool) -> String {
        let constant = if is_set_again { "" } else { "const " };
        format!("{constant}{} {name} = {value};", scalar(kind))
    }

    fn declare_notes(&self, name: &str) -> String {
        format!("uint64_t {name} = 0;")
    }

    fn rounds(&self, counter: &str, from: &str, to: &str, descending: bool) -> String {
        match descending {
            true => format!("for (int64_t {counter} = {to}; {counter}-- > {from};) {{"),
            false => format!("for (int64_t {counter} = {from}; {counter} < {to}; {counter}++) {{"),
        }
    }

    fn count(&self, rounds: &Text) -> String {
        rounds.at_least(Level::Atom)
    }

    fn endless(&self) -> &'static str {
        "for (;;) {"
    }

    fn leave_unless(&self, holds: &Text) -> String {
        format!("if ({}) break;", Text::prefix("!", holds).text)
    }

    fn branch(&self, holds: &Text) -> String {
        format!("if ({}) {{", holds.text)
    }

    fn attempt(&self, call: &str, line: Option<u32>) -> String {
        match line {
            Some(line) => format!("PAL_TRY({line}, {call});"),
            None => format!("PAL_PASS({call});"),
        }
    }

    fn attempt_int(&self, to: &Declared<'_>, name: &str, args: &[String], line: Option<u32>) -> Vec<String> {
        let mut args = args.to_vec();
        args.push(format!("&{}", to.name));
        let call = self.attempt(&self.call(name, &args).text, line);
        match to.here {
            true => vec![self.declare(to.name, Kind::Int, "0", true), call],
            false => vec![call],
        }
    }

    fn product(&self, name: &'static str, _: Option<usize>) -> String {
        name.into()
    }

    fn row_by_row(&self) -> Option<&'static str> {
        None
    }

    fn swap(&self, a: &str, b: &str) -> String {
        format!("{{ void *const other = {a}; {a} = {b}; {b} = other; }}")
    }

    fn function(&self, head: &Head<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(line) = head.line {
            lines.push(format!("/* Line {line}. */"));
        }
        let mut params = Vec::new();
        for array in head.arrays {
            let by = if array.is_changed { "" } else { "const " };
            params.push(format!("{by}{} *restrict {}", scalar(array.kind), array.name));
        }
        for given in head.scalars {
            params.push(format!("{} {}", scalar(given.kind), given.name));
        }
        let result = if head.may_stop { "pal_stop" } else { "void" };
        if params.is_empty() {
            params.push("void".into());
        }
        lines.extend(wrapped(&format!("static {result} {}(", head.name), &params, ") {"));
        lines
    }

    fn end(&self, has_notes: bool) -> String {
        if has_notes { format!("return pal_finite({NOTES});") } else { "return PAL_DONE;".into() }
    }
}
