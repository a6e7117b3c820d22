//! Answers as text and as JSON, written as they are read: an array is not copied to be written, so that
//! showing it takes no memory.
//!
//! Objects and lists of objects are indented; arrays of numbers are on one line.

use std::io::{self, Write};

use serde_json::Value;

/// Text whose long arrays stay where they are.
#[derive(Default)]
pub(crate) struct Text<'a>(Vec<Piece<'a>>);

enum Piece<'a> {
    Words(String),
    /// An array of this shape in brackets; the elements are asked for one by one, in row-major order.
    Array {
        shape: &'a [usize],
        element: Box<dyn Fn(usize) -> String + 'a>,
    },
}

impl From<&str> for Text<'_> {
    fn from(words: &str) -> Self {
        Text(vec![Piece::Words(words.to_string())])
    }
}

impl From<String> for Text<'_> {
    fn from(words: String) -> Self {
        Text(vec![Piece::Words(words)])
    }
}

impl<'a> Text<'a> {
    pub(crate) fn array(shape: &'a [usize], element: impl Fn(usize) -> String + 'a) -> Text<'a> {
        Text(vec![Piece::Array { shape, element: Box::new(element) }])
    }

    /// One after the other.
    #[must_use]
    pub(crate) fn then(mut self, more: impl Into<Text<'a>>) -> Text<'a> {
        for piece in more.into().0 {
            match (self.0.last_mut(), piece) {
                (Some(Piece::Words(words)), Piece::Words(more)) => words.push_str(&more),
                (_, piece) => self.0.push(piece),
            }
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Words(words) if words.is_empty()))
    }

    /// How many characters it has; none if that is not known before it is written.
    pub(crate) fn width(&self) -> Option<usize> {
        let width = |piece: &Piece<'_>| match piece {
            Piece::Words(words) => Some(words.chars().count()),
            Piece::Array { .. } => None,
        };
        self.0.iter().map(width).sum()
    }

    /// The same in one string.
    pub(crate) fn into_words(self) -> String {
        let mut out = Vec::new();
        self.write(&mut out).expect("a list takes everything");
        String::from_utf8_lossy(&out).into_owned()
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for piece in &self.0 {
            match piece {
                Piece::Words(words) => out.write_all(words.as_bytes())?,
                Piece::Array { shape, element } => {
                    nested(out, shape, &mut 0, ", ", &mut |out, at| out.write_all(element(at).as_bytes()))?;
                }
            }
        }
        Ok(())
    }
}

/// JSON whose arrays stay where they are.
pub(crate) enum Json<'a> {
    /// A number, a text, or a small array of these.
    Value(Value),
    /// An array of this shape; the elements are asked for one by one, in row-major order.
    Array {
        shape: &'a [usize],
        element: Box<dyn Fn(usize) -> Value + 'a>,
    },
    Object(Vec<(String, Json<'a>)>),
    List(Vec<Json<'a>>),
}

impl From<Value> for Json<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) if !is_flat(&items) => {
                Json::List(items.into_iter().map(Json::from).collect())
            }
            Value::Object(fields) => {
                Json::Object(fields.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
            value => Json::Value(value),
        }
    }
}

impl<'a> Json<'a> {
    /// An object of these fields.
    pub(crate) fn fields<const N: usize>(fields: [(&str, Json<'a>); N]) -> Json<'a> {
        Json::Object(fields.into_iter().map(|(name, field)| (name.to_string(), field)).collect())
    }

    /// The fields of two objects in one.
    pub(crate) fn and(self, rest: Json<'a>) -> Json<'a> {
        let mut all = self.into_fields();
        all.extend(rest.into_fields());
        Json::Object(all)
    }

    fn into_fields(self) -> Vec<(String, Json<'a>)> {
        match self {
            Json::Object(fields) => fields,
            Json::Value(_) | Json::Array { .. } | Json::List(_) => Vec::new(),
        }
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.put(out, 0)
    }

    fn put(&self, out: &mut dyn Write, depth: usize) -> io::Result<()> {
        match self {
            Json::Value(value) => write!(out, "{value}"),
            Json::Array { shape, element } => {
                nested(out, shape, &mut 0, ",", &mut |out, at| write!(out, "{}", element(at)))
            }
            Json::List(items) => lines(out, depth, "[]", items, |out, item| item.put(out, depth + 1)),
            Json::Object(fields) => lines(out, depth, "{}", fields, |out, (name, item)| {
                write!(out, "{}: ", Value::from(name.as_str()))?;
                item.put(out, depth + 1)
            }),
        }
    }
}

/// Whether there is no object inside.
fn is_flat(items: &[Value]) -> bool {
    items.iter().all(|item| match item {
        Value::Array(items) => is_flat(items),
        Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    })
}

/// Items on lines of their own, between brackets.
fn lines<T>(
    out: &mut dyn Write,
    depth: usize,
    brackets: &str,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    let (open, close) = brackets.split_at(1);
    out.write_all(open.as_bytes())?;
    let mut is_first = true;
    for item in items {
        out.write_all(if is_first { b"\n" } else { b",\n" })?;
        is_first = false;
        out.write_all("  ".repeat(depth + 1).as_bytes())?;
        put(out, item)?;
    }
    if !is_first {
        write!(out, "\n{}", "  ".repeat(depth))?;
    }
    out.write_all(close.as_bytes())
}

/// An array in brackets, from the element `at` on.
fn nested(
    out: &mut dyn Write,
    shape: &[usize],
    at: &mut usize,
    comma: &str,
    put: &mut dyn FnMut(&mut dyn Write, usize) -> io::Result<()>,
) -> io::Result<()> {
    let Some((&length, rest)) = shape.split_first() else {
        *at += 1;
        return put(out, *at - 1);
    };
    out.write_all(b"[")?;
    for k in 0..length {
        if k > 0 {
            out.write_all(comma.as_bytes())?;
        }
        nested(out, rest, at, comma, put)?;
    }
    out.write_all(b"]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(json: &Json<'_>) -> String {
        let mut out = Vec::new();
        json.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_keeps_numbers_together() {
        let value = json!({"a": [[1.0, 2.0], [3.0, 4.0]], "b": [{"c": null}], "d": {}, "e": []});
        let found = text(&value.clone().into());
        assert_eq!(
            found,
            "{\n  \"a\": [[1.0,2.0],[3.0,4.0]],\n  \"b\": [\n    {\n      \"c\": null\n    }\n  ],\n  \"d\": {},\n  \"e\": []\n}"
        );
        assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), value);
    }

    #[test]
    fn arrays_that_stay_where_they_are_read_the_same() {
        let data = [1.0, 0.1, 2.5, -3.0, 4.0, 1e300];
        let array = |shape: &'static [usize]| Json::Array { shape, element: Box::new(|at| json!(data[at])) };
        let found = text(&Json::fields([
            ("a", array(&[2, 3])),
            ("b", array(&[])),
            ("c", array(&[0])),
            ("d", array(&[2, 0])),
            ("e", Json::List(vec![json!({"x": 1}).into(), json!(2).into()])),
            ("f", Json::List(Vec::new())),
        ]));
        let expected = json!({"a": [[1.0, 0.1, 2.5], [-3.0, 4.0, 1e300]], "b": 1.0, "c": [], "d": [[], []], "e": [{"x": 1}, 2], "f": []});
        assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), expected, "{found}");
        let mut same = Vec::new();
        Json::from(expected).write(&mut same).unwrap();
        assert_eq!(found.as_bytes(), same);
    }
}
