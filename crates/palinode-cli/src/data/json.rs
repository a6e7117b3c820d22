//! JSON: an object gives arguments by name; nested arrays of numbers are arrays.
//!
//! Invariant: nothing is lost in silence. A field that is there twice, more after the end, rows that are not
//! alike and numbers that a 64-bit one cannot hold are errors with their line and column. That is why the
//! text is read here and not by `serde_json`, which takes the last of two fields and turns 1e-400 into 0
//! ([0032](../../../../docs/adr/0032-strict-data.md)).

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Found, Reader, Stated, Wanted, is_missing, number};
use crate::assign::{Numbers, listed};
use crate::problem::{Failed, Problem};

/// How deep lists and objects may be nested.
const DEPTH: usize = 128;

/// What is wrong, and where.
#[derive(Clone, Debug)]
struct Mistake {
    code: &'static str,
    message: String,
    help: &'static str,
    range: Range<usize>,
}

impl Mistake {
    /// A text that is not JSON.
    fn syntax(words: &str, range: Range<usize>) -> Mistake {
        let message = format!("this is not JSON: {words}");
        Mistake {
            code: "PAL0287",
            message,
            help: "JSON has numbers, and lists in brackets with commas between",
            range,
        }
    }

    fn missing(message: String, range: Range<usize>) -> Mistake {
        let help = "remove the entry, or fill in the gap: a gradient through a missing value means nothing";
        Mistake { code: "PAL0284", message, help, range }
    }

    fn no_number(message: String, range: Range<usize>) -> Mistake {
        Mistake { code: "PAL0285", message, help: "numbers are written without quotes", range }
    }

    fn reported(self, reader: &mut Reader<'_>) -> Problem {
        reader.problem(self.code, self.message, self.range).help(self.help)
    }
}

/// Binds the fields of an object. Gives what it found, and the names of all fields.
pub(super) fn by_name(
    reader: &mut Reader<'_>,
    wanted: &[Wanted],
) -> Result<(Vec<Found>, Vec<String>), Failed> {
    let fields = fields(reader)?;
    let Some(fields) = fields else {
        let problem = reader.problem("PAL0287", "this is not an object with a field for each input", 0..1);
        let example = wanted.first().map_or("x", |one| &one.name);
        let help = format!("write {{\"{example}\": [1, 2, 3]}}, or `--data {example}={}`", reader.file);
        return Err(problem.help(help).into());
    };
    let mut all = Vec::new();
    for one in wanted {
        if let Some((_, range)) = fields.iter().find(|(name, _)| *name == one.name) {
            let numbers = read(reader, one, range.start)?;
            let origin = format!("field `{}` of {}", one.name, reader.file);
            all.push(Found { name: one.name.clone(), numbers, origin });
        }
    }
    if all.is_empty() {
        let own: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
        return Err(reader.nothing_wanted("field", &own, 0..1, wanted));
    }
    Ok((all, fields.into_iter().map(|(name, _)| name).collect()))
}

/// The fields that are named like a length of the model: each must be that length.
pub(super) fn lengths(reader: &mut Reader<'_>, names: &[&str]) -> Result<Vec<Stated>, Failed> {
    let mut all = Vec::new();
    for (name, range) in fields(reader)?.unwrap_or_default() {
        if !names.contains(&&*name) {
            continue;
        }
        let one = Wanted { name: name.clone(), rank: 0, is_whole: true };
        let Numbers { shape, data } = read(reader, &one, range.start)?;
        let problem = reader.problem(
            "PAL0288",
            format!("`{name}` is a length of the model, and a length is one number"),
            range,
        );
        match (problem.labels.first(), shape.as_slice()) {
            (Some(place), []) => {
                let (file, range) = (place.file, place.range.clone());
                all.push(Stated { name, length: data[0], file, range });
            }
            _ => {
                return Err(problem
                    .help("rename or remove the field: the length follows from the arrays")
                    .into());
            }
        }
    }
    Ok(all)
}

/// The whole document, or its field of that name, is one argument. Gives what it found, and the names of the
/// fields that were not read.
pub(super) fn whole(reader: &mut Reader<'_>, one: &Wanted) -> Result<(Vec<Found>, Vec<String>), Failed> {
    let (start, unread) = match fields(reader)? {
        None => (0, Vec::new()),
        Some(fields) => match fields.iter().find(|(name, _)| *name == one.name) {
            Some((_, range)) => {
                let others = fields.iter().map(|(name, _)| name).filter(|name| **name != one.name);
                (range.start, others.cloned().collect())
            }
            None => {
                let problem = reader.problem("PAL0287", format!("there is no field `{}`", one.name), 0..1);
                let fields: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
                return Err(problem.help(format!("the file has {}", listed(&fields))).into());
            }
        },
    };
    let numbers = read(reader, one, start)?;
    Ok((vec![Found { name: one.name.clone(), numbers, origin: reader.file.to_string() }], unread))
}

/// Names, and the bytes of their values.
type Fields = Vec<(String, Range<usize>)>;

/// Reads the document through. The fields of an object, in their order, and the bytes of their values;
/// nothing if it is none.
fn fields(reader: &mut Reader<'_>) -> Result<Option<Fields>, Failed> {
    let mut scan = Scan { text: reader.text, at: 0 };
    scan.blanks();
    let read = if scan.byte() == Some(b'{') { scan.object(0).map(Some) } else { scan.value(0).map(|_| None) };
    let read = read.and_then(|fields| {
        scan.blanks();
        match scan.byte() {
            None => Ok(fields),
            Some(_) => Err(scan.wrong("there is more after the end")),
        }
    });
    read.map_err(|mistake| mistake.reported(reader).into())
}

/// The numbers of the value that begins at a byte of a document that was read through.
fn read(reader: &mut Reader<'_>, one: &Wanted, start: usize) -> Result<Numbers, Failed> {
    let mut scan = Scan { text: reader.text, at: start };
    let mut data = Vec::new();
    let mut path = Vec::new();
    match scan.numbers(one, &mut path, &mut data) {
        Ok(shape) => Ok(Numbers { shape, data }),
        Err(mistake) => {
            let place: String = path.iter().map(|at| format!("[{at}]")).collect();
            Err(mistake.reported(reader).note(format!("it is {}{place}", one.name)).into())
        }
    }
}

/// A text that is being read.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.byte().is_some_and(|byte| b" \t\n\r".contains(&byte)) {
            self.at += 1;
        }
    }

    /// What is wrong here.
    fn wrong(&self, words: &str) -> Mistake {
        let end = self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8());
        let words = if self.at >= self.text.len() { "it ends in the middle" } else { words };
        Mistake::syntax(words, self.at..end)
    }

    fn eat(&mut self, mark: u8, words: &str) -> Result<(), Mistake> {
        self.blanks();
        if self.byte() != Some(mark) {
            return Err(self.wrong(words));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a value through; gives its bytes.
    fn value(&mut self, depth: usize) -> Result<Range<usize>, Mistake> {
        self.blanks();
        let start = self.at;
        if depth > DEPTH {
            return Err(self.wrong("it is nested too deep"));
        }
        match self.byte() {
            Some(b'{') => drop(self.object(depth)?),
            Some(b'[') => self.items(']', |scan| scan.value(depth + 1).map(drop))?,
            Some(b'"') => drop(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        }
        Ok(start..self.at)
    }

    /// A bracket, items with commas between, and the bracket that closes it.
    fn items(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), Mistake>,
    ) -> Result<(), Mistake> {
        self.at += 1;
        let mut is_first = true;
        loop {
            self.blanks();
            if self.byte() == Some(close as u8) && is_first {
                break;
            }
            item(self)?;
            is_first = false;
            self.blanks();
            if self.byte() == Some(close as u8) {
                break;
            }
            self.eat(b',', &format!("a comma or `{close}` should be here"))?;
        }
        self.at += 1;
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<Fields, Mistake> {
        let mut fields = Fields::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        self.items('}', |scan| {
            if scan.byte() != Some(b'"') {
                return Err(scan.wrong("the name of a field, in quotes, should be here"));
            }
            let start = scan.at;
            let name = scan.string()?;
            if !seen.insert(name.clone()) {
                return Err(Mistake {
                    code: "PAL0287",
                    message: format!("the field `{name}` is there twice"),
                    help: "rename or remove one of them",
                    range: start..scan.at,
                });
            }
            scan.eat(b':', "a colon should be here")?;
            fields.push((name, scan.value(depth + 1)?));
            Ok(())
        })?;
        Ok(fields)
    }

    /// A string, without its quotes.
    fn string(&mut self) -> Result<String, Mistake> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                return Err(Mistake::syntax("this quote is not closed", start..start + 1));
            };
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.wrong("a line end or control character is in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Mistake> {
        let mistake = self.wrong("no character is written like this");
        let code = self.text.as_bytes().get(self.at + 1).copied();
        self.at += 2;
        Ok(match code {
            Some(plain @ (b'"' | b'\\' | b'/')) => plain as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.four().ok_or_else(|| mistake.clone())?;
                if !(0xd800..0xe000).contains(&first) {
                    return char::from_u32(first).ok_or(mistake);
                }
                // Two halves make a character.
                let is_pair = first < 0xdc00 && self.text[self.at..].starts_with("\\u");
                self.at += if is_pair { 2 } else { 0 };
                let second = if is_pair { self.four() } else { None };
                let second = second
                    .filter(|second| (0xdc00..0xe000).contains(second))
                    .ok_or_else(|| mistake.clone())?;
                char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(mistake)?
            }
            _ => return Err(mistake),
        })
    }

    /// Four hexadecimal digits.
    fn four(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.at += 4;
        is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) -> Result<(), Mistake> {
        let digits = |scan: &mut Self| {
            let start = scan.at;
            while scan.byte().is_some_and(|byte| byte.is_ascii_digit()) {
                scan.at += 1;
            }
            scan.at - start
        };
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let is_zero = self.byte() == Some(b'0');
        let whole = digits(self);
        let mut is_number = whole == 1 || (whole > 1 && !is_zero);
        if self.byte() == Some(b'.') {
            self.at += 1;
            is_number &= digits(self) > 0;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            is_number &= digits(self) > 0;
        }
        if is_number { Ok(()) } else { Err(Mistake::syntax("this is no number", start..self.at)) }
    }

    /// `null`, `true`, `false`.
    fn word(&mut self) -> Result<(), Mistake> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (start, word) = (self.at, &rest[..length]);
        match word {
            "" => return Err(self.wrong("a value should be here")),
            "null" | "true" | "false" => {}
            // Python writes these.
            "NaN" | "Infinity" => {
                return Err(Mistake::missing(format!("`{word}` is not a value"), start..start + length));
            }
            _ => return Err(Mistake::syntax(&format!("`{word}` is no value"), start..start + length)),
        }
        self.at += length;
        Ok(())
    }

    /// The numbers of a value, in a text that was read through; gives their shape. On a mistake, `path` says
    /// in which element.
    fn numbers(
        &mut self,
        one: &Wanted,
        path: &mut Vec<usize>,
        data: &mut Vec<f64>,
    ) -> Result<Vec<usize>, Mistake> {
        self.blanks();
        let start = self.at;
        if self.byte() == Some(b'[') {
            let mut shape: Option<Vec<usize>> = None;
            let mut count = 0;
            self.items(']', |scan| {
                let start = scan.at;
                path.push(count);
                let part = scan.numbers(one, path, data)?;
                if let Some(first) = shape.as_ref().filter(|first| **first != part) {
                    let (a, b) = (crate::numbers::described(&part), crate::numbers::described(first));
                    return Err(Mistake {
                        code: "PAL0286",
                        message: format!("this is {a}, the ones before it are {b}"),
                        help: "give every row the same number of elements",
                        range: start..scan.at,
                    });
                }
                path.pop();
                shape = Some(part);
                count += 1;
                Ok(())
            })?;
            let mut shape = shape.unwrap_or_default();
            shape.insert(0, count);
            return Ok(shape);
        }
        let range = self.value(0)?;
        let text = &self.text[range.clone()];
        match self.text.as_bytes()[start] {
            b'{' => Err(Mistake::no_number("an object is not a number".to_string(), range)),
            b'"' if is_missing(text.trim_matches('"')) => {
                Err(Mistake::missing(format!("`{}` is not a value", text.trim_matches('"')), range))
            }
            b'"' | b't' | b'f' => Err(Mistake::no_number(format!("{text} is not a number"), range)),
            b'n' => Err(Mistake::missing("a value is missing".to_string(), range)),
            _ => match number(text, one.is_whole) {
                Ok(x) => {
                    data.push(x);
                    Ok(Vec::new())
                }
                Err(bad) => {
                    let message = format!("{text} is {}", bad.words());
                    Err(Mistake { code: bad.code(), message, help: bad.help(), range })
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scan = Scan { text, at: 0 };
        let read = scan.value(0);
        scan.blanks();
        read.is_ok() && scan.at == text.len()
    }

    /// What is JSON here is JSON for another reader, but for numbers beyond 64 bits and names that are there
    /// twice.
    #[test]
    fn the_same_texts_are_json() {
        let pieces = "{|}|[|]|,|:|\"a\"|\"b\"|\"|\\|u00e9|\\ud83d\\ude00|\\ud800|1|0|-|.5|e3|E+|1.5|null|true|fals| |\n|\t|é|\u{1}|[1,2]|{\"a\":1}|,\"b\":";
        let pieces: Vec<&str> = pieces.split('|').collect();
        let mut draws = crate::data::fuzz::Draws::new(7);
        let mut next = |n: usize| draws.below(n);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..20_000 {
            let length = 1 + next(7);
            let text: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            let is_twice = text.matches("\"a\"").count() > 1 || text.matches("\"b\"").count() > 1;
            match theirs {
                Ok(_) if !is_twice => {
                    assert!(accepts(&text), "{text}");
                    good += 1;
                }
                Ok(_) => drop(accepts(&text)),
                Err(error) if error.to_string().contains("out of range") => drop(accepts(&text)),
                Err(_) => {
                    assert!(!accepts(&text), "{text}");
                    bad += 1;
                }
            }
        }
        assert!(good > 500 && bad > 5_000, "{good} {bad}");
    }
}
