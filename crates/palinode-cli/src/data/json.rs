//! JSON: an object gives arguments by name; nested arrays of numbers are arrays.

use std::ops::Range;

use serde_json::Value;

use super::{Found, Reader, Wanted, is_missing, near};
use crate::assign::{Numbers, listed};
use crate::problem::Failed;

/// A step down into a document.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Element(usize),
}

/// Binds the fields of an object. Gives what it found, and the names of all fields.
pub(super) fn by_name(
    reader: &mut Reader<'_>,
    wanted: &[Wanted],
) -> Result<(Vec<Found>, Vec<String>), Failed> {
    let document = parse(reader)?;
    let Value::Object(fields) = &document else {
        let problem = reader.problem("PAL0287", "this is not an object with a field for each input", 0..1);
        let example = wanted.first().map_or("x", |one| &one.name);
        let help = format!("write {{\"{example}\": [1, 2, 3]}}, or `--data {example}={}`", reader.file);
        return Err(problem.help(help).into());
    };
    let mut all = Vec::new();
    for one in wanted {
        if let Some(value) = fields.get(&one.name) {
            let numbers = numbers(reader, value, &mut vec![Step::Key(one.name.clone())])?;
            let origin = format!("field `{}` of {}", one.name, reader.file);
            all.push(Found { name: one.name.clone(), numbers, origin });
        }
    }
    if all.is_empty() {
        let names: Vec<&str> = wanted.iter().map(|one| &*one.name).collect();
        let problem = reader.problem("PAL0287", "no field is named like a param or input of the model", 0..1);
        let own: Vec<&str> = fields.keys().map(String::as_str).collect();
        if let Some(help) = wanted.iter().find_map(|one| near(one, &own, "field")) {
            return Err(problem.help(help).into());
        }
        return Err(problem.help(format!("the model takes {}", listed(&names))).into());
    }
    Ok((all, fields.keys().cloned().collect()))
}

/// The whole document, or its field of that name, is one argument.
pub(super) fn whole(reader: &mut Reader<'_>, one: &Wanted) -> Result<Vec<Found>, Failed> {
    let document = parse(reader)?;
    let (value, mut path) = match &document {
        Value::Object(fields) => match fields.get(&one.name) {
            Some(value) => (value, vec![Step::Key(one.name.clone())]),
            None => {
                let problem = reader.problem("PAL0287", format!("there is no field `{}`", one.name), 0..1);
                let fields: Vec<&str> = fields.keys().map(String::as_str).collect();
                return Err(problem.help(format!("the file has {}", listed(&fields))).into());
            }
        },
        value => (value, Vec::new()),
    };
    let numbers = numbers(reader, value, &mut path)?;
    Ok(vec![Found { name: one.name.clone(), numbers, origin: reader.file.to_string() }])
}

fn parse(reader: &mut Reader<'_>) -> Result<Value, Failed> {
    serde_json::from_str(reader.text).map_err(|error| {
        let before: usize =
            reader.text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = before + error.column().saturating_sub(1);
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        let problem = reader.problem("PAL0287", format!("this is not JSON: {words}"), at..at + 1);
        problem.help("JSON has numbers, and lists in brackets with commas between").into()
    })
}

fn numbers(reader: &mut Reader<'_>, value: &Value, path: &mut Vec<Step>) -> Result<Numbers, Failed> {
    match value {
        Value::Number(number) => {
            let x = number.as_f64().filter(|x| x.is_finite());
            let Some(x) = x else {
                return Err(refuse(reader, path, "PAL0284", format!("{number} is out of range")));
            };
            Ok(Numbers { shape: Vec::new(), data: vec![x] })
        }
        Value::Array(items) => {
            let mut shape: Option<Vec<usize>> = None;
            let mut data = Vec::new();
            for (at, item) in items.iter().enumerate() {
                path.push(Step::Element(at));
                let part = numbers(reader, item, path)?;
                if let Some(first) = &shape
                    && *first != part.shape
                {
                    let (a, b) = (crate::numbers::described(&part.shape), crate::numbers::described(first));
                    return Err(refuse(
                        reader,
                        path,
                        "PAL0286",
                        format!("this is {a}, the ones before it are {b}"),
                    ));
                }
                path.pop();
                shape = Some(part.shape);
                data.extend(part.data);
            }
            let mut shape = shape.unwrap_or_default();
            shape.insert(0, items.len());
            Ok(Numbers { shape, data })
        }
        Value::Null => Err(refuse(reader, path, "PAL0284", "a value is missing".to_string())),
        Value::String(text) if is_missing(text) => {
            Err(refuse(reader, path, "PAL0284", format!("`{text}` is not a value")))
        }
        Value::String(text) => Err(refuse(reader, path, "PAL0285", format!("\"{text}\" is not a number"))),
        Value::Bool(flag) => Err(refuse(reader, path, "PAL0285", format!("{flag} is not a number"))),
        Value::Object(_) => Err(refuse(reader, path, "PAL0285", "an object is not a number".to_string())),
    }
}

fn refuse(reader: &mut Reader<'_>, path: &[Step], code: &'static str, message: String) -> Failed {
    let range = locate(reader.text, path);
    let place: String = path
        .iter()
        .map(|step| match step {
            Step::Key(name) => name.clone(),
            Step::Element(at) => format!("[{at}]"),
        })
        .collect();
    let help = match code {
        "PAL0284" => "remove the entry, or fill the gap in: a gradient through a missing value means nothing",
        "PAL0286" => "give every row the same number of elements",
        _ => "numbers are written without quotes",
    };
    let problem = reader.problem(code, message, range);
    let problem = if place.is_empty() { problem } else { problem.note(format!("it is {place}")) };
    problem.help(help).into()
}

/// The bytes of the value at a path of a document that is known to be well formed.
fn locate(text: &str, path: &[Step]) -> Range<usize> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    for step in path {
        scan.blanks();
        scan.at += 1; // the bracket
        let mut element = 0;
        loop {
            scan.blanks();
            if scan.at >= scan.bytes.len() {
                return 0..1;
            }
            let found = match step {
                Step::Element(wanted) => element == *wanted,
                Step::Key(wanted) => {
                    let start = scan.at;
                    scan.value();
                    let name: Option<String> = serde_json::from_slice(&scan.bytes[start..scan.at]).ok();
                    scan.blanks();
                    scan.at += 1; // the colon
                    scan.blanks();
                    name.as_ref() == Some(wanted)
                }
            };
            if found {
                break;
            }
            scan.value();
            scan.blanks();
            scan.at += 1; // the comma
            element += 1;
        }
    }
    scan.blanks();
    let start = scan.at;
    scan.value();
    start..scan.at.max(start + 1)
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Skips a value: a string, a bracketed thing, or a word.
    fn value(&mut self) {
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => self.string(),
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b']' | b'}' if depth == 0 => return,
                b']' | b'}' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' if depth == 0 => return,
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ if byte.is_ascii_whitespace() => {
                    if depth == 0 {
                        return;
                    }
                    self.at += 1;
                    continue;
                }
                _ => {
                    while self
                        .bytes
                        .get(self.at)
                        .is_some_and(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
                    {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_the_text() {
        let text = r#"{ "a\"b": [1, [2, 3]], "x": {"y": [10, "n,a", null ]} }"#;
        let key = |name: &str| Step::Key(name.to_string());
        let found = |path: &[Step]| &text[locate(text, path)];
        assert_eq!(found(&[key("a\"b"), Step::Element(1), Step::Element(0)]), "2");
        assert_eq!(found(&[key("x"), key("y"), Step::Element(1)]), "\"n,a\"");
        assert_eq!(found(&[key("x"), key("y"), Step::Element(2)]), "null");
        assert_eq!(found(&[key("x"), key("y")]), "[10, \"n,a\", null ]");
    }
}
