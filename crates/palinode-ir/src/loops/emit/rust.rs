//! Rust.

use super::super::form::Kind;
use super::language::{Declared, Head, Language, NOTES, SUSPICIONS, signed};
use super::text::{Level, Text};

pub(super) struct Rust;

/// As many columns of a product are computed together, whatever the processor: its registers hold four rows
/// of them.
const FEW: usize = 12;

/// The type of a scalar.
pub(super) fn scalar(kind: Kind) -> &'static str {
    match kind {
        Kind::Real => "f64",
        Kind::Int => "i64",
        Kind::Bool => "bool",
    }
}

fn mutable(is_set_again: bool) -> &'static str {
    if is_set_again { "mut " } else { "" }
}

fn end_of(line: Option<u32>) -> String {
    match line {
        Some(line) => format!(".line({line})?"),
        None => "?".into(),
    }
}

impl Language for Rust {
    fn real(&self, value: f64) -> Text {
        if value.is_nan() {
            Text::atom("f64::NAN")
        } else if value == f64::INFINITY {
            Text::atom("f64::INFINITY")
        } else if value == f64::NEG_INFINITY {
            Text::atom("f64::NEG_INFINITY")
        } else {
            signed(format!("{value:?}"))
        }
    }

    fn int(&self, value: i64) -> Text {
        if value == i64::MIN { Text::atom("i64::MIN") } else { signed(value.to_string()) }
    }

    fn of_counter(&self, counter: &str) -> Text {
        Text::atom(format!("int({counter})"))
    }

    fn place(&self, integer: &Text) -> String {
        format!("{} as usize", integer.at_least(Level::Atom))
    }

    fn choice(&self, holds: &Text, a: &Text, b: &Text) -> Text {
        Text::new(format!("if {} {{ {} }} else {{ {} }}", holds.text, a.text, b.text), Level::Choice)
    }

    fn call(&self, name: &str, args: &[String]) -> Text {
        Text::atom(format!("{name}({})", args.join(", ")))
    }

    fn round32(&self, a: &Text) -> Text {
        self.call("round32", core::slice::from_ref(&a.text))
    }

    fn part(&self, array: &str, from: Option<&str>, is_changed: bool) -> String {
        match from {
            None => array.into(),
            Some(from) if is_changed => format!("part_mut({array}, {from})"),
            Some(from) => format!("part({array}, {from})"),
        }
    }

    fn stretch(&self, array: &str, from: Option<&str>, count: usize, is_changed: bool) -> String {
        let by = if is_changed { "&mut " } else { "&" };
        match from {
            None => format!("{by}{array}[..]"),
            Some(from) => format!("{by}{array}[{from}..][..{count}]"),
        }
    }

    fn slice(&self, stretch: String, _: usize) -> Vec<String> {
        vec![stretch]
    }

    fn steps(&self) -> &'static str {
        "&mut steps"
    }

    fn declare(&self, name: &str, kind: Kind, value: &str, is_set_again: bool) -> String {
        // The compiler finds the type of what is set once; what is set again may begin with a bare number.
        match is_set_again {
            true => format!("let mut {name}: {} = {value};", scalar(kind)),
            false => format!("let {name} = {value};"),
        }
    }

    fn declare_notes(&self, name: &str) -> String {
        format!("let mut {name} = 0;")
    }

    fn rounds(&self, counter: &str, from: &str, to: &str, descending: bool) -> String {
        match descending {
            true => format!("for {counter} in ({from}..{to}).rev() {{"),
            false => format!("for {counter} in {from}..{to} {{"),
        }
    }

    fn count(&self, rounds: &Text) -> String {
        if rounds.text.parse::<u64>().is_ok() {
            rounds.text.clone()
        } else {
            format!("rounds({})", rounds.text)
        }
    }

    fn endless(&self) -> &'static str {
        "loop {"
    }

    fn leave_unless(&self, holds: &Text) -> String {
        format!("if {} {{ break; }}", Text::prefix("!", holds).text)
    }

    fn branch(&self, holds: &Text) -> String {
        format!("if {} {{", holds.text)
    }

    fn attempt(&self, call: &str, line: Option<u32>) -> String {
        format!("{call}{};", end_of(line))
    }

    fn attempt_int(&self, to: &Declared<'_>, name: &str, args: &[String], line: Option<u32>) -> Vec<String> {
        let declares = match to.here {
            true => format!("let {}", mutable(to.is_set_again)),
            false => String::new(),
        };
        vec![format!("{declares}{} = {}{};", to.name, self.call(name, args).text, end_of(line))]
    }

    fn product(&self, name: &'static str, columns: Option<usize>) -> String {
        match (name, columns) {
            ("product", Some(few @ 1..=FEW)) => format!("narrow_product::<{few}>"),
            ("add_product", Some(few @ 1..=FEW)) => format!("add_narrow_product::<{few}>"),
            _ => name.into(),
        }
    }

    fn row_by_row(&self) -> Option<&'static str> {
        Some("row_by_row")
    }

    fn swap(&self, a: &str, b: &str) -> String {
        format!("core::mem::swap(&mut {a}, &mut {b});")
    }

    fn function(&self, head: &Head<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(line) = head.line {
            lines.push(format!("/// Line {line}."));
        }
        let mut params = Vec::new();
        for array in head.arrays {
            let by = if array.is_changed { "&mut " } else { "&" };
            params.push(format!("{}: {by}[{}; {}]", array.name, scalar(array.kind), array.length));
        }
        for given in head.scalars {
            let of = if given.is_counter { "usize" } else { scalar(given.kind) };
            params.push(format!("{}: {of}", given.name));
        }
        if head.suspects {
            params.push(format!("{SUSPICIONS}: &mut u64"));
        }
        let result = if head.may_stop { " -> Result<(), Stop>" } else { "" };
        lines.push("#[inline(never)]".into());
        lines.extend(wrapped(&format!("fn {}(", head.name), &params, &format!("){result} {{")));
        lines
    }

    fn end(&self, has_notes: bool) -> String {
        if has_notes { format!("finite({NOTES})") } else { "Ok(())".into() }
    }
}

/// The longest lines.
const WIDTH: usize = 100;

/// A list on one line, or one for each if it is too long.
pub(super) fn wrapped(before: &str, items: &[String], after: &str) -> Vec<String> {
    let line = format!("{before}{}{after}", items.join(", "));
    if line.len() <= WIDTH {
        return vec![line];
    }
    let indent = " ".repeat(before.len() - before.trim_start().len());
    let mut lines = vec![before.trim_end().to_string()];
    for (at, item) in items.iter().enumerate() {
        // C knows no comma at the end.
        let comma = if at + 1 < items.len() { "," } else { "" };
        lines.push(format!("{indent}    {item}{comma}"));
    }
    lines.push(format!("{indent}{}", after.trim_start()));
    lines
}
