//! `name=value` on the command line: `a=1.5`, `w=[1,2,3]`, `m=[[1,2],[3,4]]`, `w=1,2,3`, `a=1,b=2`.
//!
//! Input: the words after `--set` or `--direction`. Output: names with numbers, and where they were written.

use std::ops::Range;

use palinode_ir::interp::Tensor;

use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::sources::FileId;

/// Numbers of a shape; no lengths for a single one.
pub(crate) type Numbers = Tensor<f64>;

/// One `name=value`.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Numbers,
    pub(crate) file: FileId,
    pub(crate) name_range: Range<usize>,
    pub(crate) value_range: Range<usize>,
}

/// Reads what followed each `option`; `names` are what may be assigned, for suggestions. Infinities and NaN
/// are refused unless `nonfinite` allows them.
pub(crate) fn parse(
    session: &mut Session,
    option: &str,
    words: &[String],
    names: &[&str],
    nonfinite: bool,
) -> Result<Vec<Assignment>, Failed> {
    let mut all: Vec<Assignment> = Vec::new();
    let mut problems = Vec::new();
    for word in words {
        let text = format!("{option} {word}");
        let file = session.sources.add("command line", text.clone());
        let mut parser = Parser { text: &text, at: option.len() + 1, file, option, names, nonfinite };
        match parser.assignments() {
            Ok(found) => all.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    for (at, one) in all.iter().enumerate() {
        if let Some(first) = all[..at].iter().find(|first| first.name == one.name) {
            problems.push(twice(
                option,
                &one.name,
                (first.file, &first.name_range),
                (one.file, &one.name_range),
            ));
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(Failed(problems)) }
}

/// One name has two values: whichever was taken, the other would be lost.
pub(crate) fn twice(
    option: &str,
    name: &str,
    first: (FileId, &Range<usize>),
    second: (FileId, &Range<usize>),
) -> Problem {
    let problem = Problem::new("PAL0290", Exit::Usage, format!("{option} names `{name}` twice"));
    let problem = problem.at(second.0, second.1.clone(), "");
    let problem = problem.at(first.0, first.1.clone(), "the first is here");
    problem.help(format!("give `{name}` one value"))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    file: FileId,
    option: &'a str,
    names: &'a [&'a str],
    nonfinite: bool,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, mark: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    fn problem(&self, range: Range<usize>, message: impl Into<String>) -> Problem {
        Problem::new("PAL0290", Exit::Usage, message).at(self.file, range, "")
    }

    fn example(&self) -> String {
        let name = self.names.first().copied().unwrap_or("a");
        format!("write `{} {name}=1.5`, or `{name}=[1,2,3]` for an array", self.option)
    }

    /// Whether what follows is `word =`.
    fn at_assignment(&self) -> bool {
        let rest = self.rest().trim_start();
        let word = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        word.len() < rest.len()
            && word.trim_start().starts_with('=')
            && !rest.starts_with(|c: char| c.is_ascii_digit())
    }

    fn assignments(&mut self) -> Result<Vec<Assignment>, Problem> {
        let mut all = Vec::new();
        loop {
            all.push(self.assignment()?);
            if self.rest().trim().is_empty() {
                return Ok(all);
            }
        }
    }

    fn assignment(&mut self) -> Result<Assignment, Problem> {
        self.skip_blanks();
        let start = self.at;
        let name_len = self.rest().find([',', '=', '[']).unwrap_or(self.rest().len());
        let name = self.rest()[..name_len].trim().to_string();
        let name_range = start..start + name.len().max(1).min(self.rest().len());
        self.at += name_len;
        if name.is_empty() || !self.rest().starts_with('=') {
            let message = if name.is_empty() {
                "a name is missing before `=`".to_string()
            } else {
                format!("`{name}` is not of the form name=value")
            };
            return Err(self.problem(name_range, message).help(self.example()));
        }
        self.at += 1;
        self.skip_blanks();
        let value_start = self.at;
        let value = if self.rest().starts_with('[') { self.list(0)? } else { self.numbers(&name)? };
        let value_range = value_start..self.at;
        self.skip_blanks();
        if !self.rest().is_empty() && !self.eat(',') {
            let range = self.at..self.text.len();
            let message = format!("`{}` is left over after the value of `{name}`", self.rest());
            return Err(self.problem(range, message).help(self.example()));
        }
        Ok(Assignment { name, value, file: self.file, name_range, value_range })
    }

    /// `1.5`, or `1,2,3`.
    fn numbers(&mut self, name: &str) -> Result<Numbers, Problem> {
        let mut data = vec![self.number(name)?];
        loop {
            let before = self.at;
            if !self.eat(',') {
                break;
            }
            if self.at_assignment() || self.rest().trim().is_empty() {
                self.at = before;
                break;
            }
            data.push(self.number(name)?);
        }
        let shape = if data.len() == 1 { Vec::new() } else { vec![data.len()] };
        Ok(Numbers { shape, data })
    }

    fn number(&mut self, name: &str) -> Result<f64, Problem> {
        self.skip_blanks();
        let start = self.at;
        let len = self.rest().find([',', ']']).unwrap_or(self.rest().len());
        let word = self.rest()[..len].trim_end().to_string();
        if word.is_empty() {
            let message = format!("`{name}=` has no value");
            let known = self.names.contains(&name);
            let suggestion = if known { None } else { closest(name, self.names) };
            let help = match suggestion {
                Some(other) => format!("did you mean `{other}=1.5`?"),
                None => format!("write a number after it, `{name}=1.5`"),
            };
            return Err(self.problem(start.saturating_sub(1)..start, message).help(help));
        }
        self.at += word.len();
        let range = start..self.at;
        match word.replace('_', "").parse::<f64>() {
            Ok(x) if !x.is_finite() && !self.nonfinite => {
                let message = if x.is_nan() {
                    format!("`{name}` cannot be NaN")
                } else if word.contains(|c: char| c.is_ascii_digit()) {
                    format!("`{word}` is too large for a number of 64 bits")
                } else {
                    format!("`{name}` cannot be infinite")
                };
                let help = "give it a finite number, or allow it with --allow-nonfinite";
                Err(self.problem(range, message).help(help))
            }
            Ok(x) if vanished(&word, x) => {
                let message = format!("`{word}` is too small for a number of 64 bits: it would become 0");
                Err(self.problem(range, message).help("write 0 if you mean it"))
            }
            Ok(x) if is_rounded(&word.replace('_', ""), x) => {
                let message = format!("`{word}` is {}", ROUNDED);
                Err(self.problem(range, message).help(WRITE_ROUNDED))
            }
            Ok(x) => Ok(x),
            Err(_) => {
                let mut problem = self.problem(range, format!("`{word}` is not a number"));
                let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
                if !digits.is_empty() && digits.len() < word.len() && digits.parse::<f64>().is_ok() {
                    problem = problem.note("values are in the unit that the model declares");
                    return Err(problem.help(format!("leave the unit out: `{name}={digits}`")));
                }
                Err(problem.help(self.example()))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Numbers, Problem> {
        let start = self.at;
        if depth >= 16 {
            return Err(self.problem(start..start + 1, "lists are nested too deep"));
        }
        self.eat('[');
        let mut items: Vec<Numbers> = Vec::new();
        if !self.eat(']') {
            loop {
                self.skip_blanks();
                let from = self.at;
                let item = if self.rest().starts_with('[') {
                    self.list(depth + 1)?
                } else {
                    Numbers { shape: Vec::new(), data: vec![self.number("element")?] }
                };
                if items.first().is_some_and(|first| first.shape != item.shape) {
                    let problem = self.problem(from..self.at, "this row has another length than the first");
                    return Err(problem.help("give every row the same number of elements"));
                }
                items.push(item);
                if self.eat(']') {
                    break;
                }
                if !self.eat(',') {
                    let problem = self.problem(start..start + 1, "this bracket is not closed");
                    return Err(problem.help("close it with `]`; quote the value if the shell eats brackets"));
                }
            }
        }
        let mut shape = items.first().map(|first| first.shape.clone()).unwrap_or_default();
        shape.insert(0, items.len());
        Ok(Numbers { shape, data: items.into_iter().flat_map(|item| item.data).collect() })
    }
}

/// Whole numbers below this are told apart: from 2^53 on an `f64` skips some.
pub(crate) const WHOLE: f64 = 9_007_199_254_740_992.0;

/// What is wrong with [`is_rounded`].
pub(crate) const ROUNDED: &str = "an integer beyond 9007199254740991 (2^53 - 1): its digits would be rounded";

/// What to do about it.
pub(crate) const WRITE_ROUNDED: &str = "if a real input may be rounded, write it with an exponent or a point, `1.2e19`; integers do not go further";

/// Whether a whole number was read as another one. One with a point or an exponent is a measurement, which
/// may be.
pub(crate) fn is_rounded(text: &str, x: f64) -> bool {
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && x.is_finite() && x.abs() >= WHOLE && format!("{:.0}", x.abs()) != digits
}

/// Whether a text that was read as 0 says something else.
pub(crate) fn vanished(text: &str, x: f64) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or("");
    x == 0.0 && digits.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0')
}

/// The name most like `name`, if one is alike enough.
pub(crate) fn closest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let score = |other: &str| {
        if other.eq_ignore_ascii_case(name) { 0 } else { strsim::damerau_levenshtein(name, other) }
    };
    let allowed = match name.chars().count() {
        0 | 1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let best = names.iter().copied().filter(|other| *other != name).min_by_key(|other| score(other))?;
    (score(best) <= allowed).then_some(best)
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_string(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// What to say about a name that the model does not have.
pub(crate) fn unknown(name: &str, what: &str, names: &[&str]) -> Problem {
    let problem = Problem::new("PAL0289", Exit::Usage, format!("the model has no {what} `{name}`"));
    match closest(name, names) {
        Some(other) => problem.help(format!("did you mean `{other}`?")),
        None if names.is_empty() => problem.note(format!("it has no {what} at all")),
        None => problem.help(format!("it has {}", listed(names))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> Result<Vec<(String, Numbers)>, String> {
        let mut session = Session::new("test", false);
        match parse(&mut session, "--set", &[word.to_string()], &["gain", "w"], false) {
            Ok(all) => Ok(all.into_iter().map(|one| (one.name, one.value)).collect()),
            Err(Failed(problems)) => {
                Err(format!("{} / {}", problems[0].message, problems[0].help.clone().unwrap_or_default()))
            }
        }
    }

    fn of(shape: &[usize], data: &[f64]) -> Numbers {
        Numbers { shape: shape.to_vec(), data: data.to_vec() }
    }

    #[test]
    fn numbers_and_arrays() {
        assert_eq!(read("a=1.5").unwrap(), [("a".to_string(), of(&[], &[1.5]))]);
        assert_eq!(read("a = -1e-3 ").unwrap(), [("a".to_string(), of(&[], &[-1e-3]))]);
        let two = read("a=1,b=2").unwrap();
        assert_eq!((two.len(), &two[1]), (2, &("b".to_string(), of(&[], &[2.0]))));
        assert_eq!(read("w=1,2,3").unwrap()[0].1, of(&[3], &[1.0, 2.0, 3.0]));
        let mixed = read("w=[1, 2],e1=3,m=[[1,2],[3,4],[5,6]]").unwrap();
        assert_eq!(mixed[0].1, of(&[2], &[1.0, 2.0]));
        assert_eq!(mixed[1], ("e1".to_string(), of(&[], &[3.0])));
        assert_eq!(mixed[2].1.shape, [3, 2]);
        assert_eq!(read("w=[]").unwrap()[0].1, of(&[0], &[]));
    }

    #[test]
    fn mistakes_are_named() {
        for (word, message) in [
            ("a", "`a` is not of the form name=value / write `--set gain=1.5`"),
            ("=3", "a name is missing before `=`"),
            ("a=", "`a=` has no value / write a number after it"),
            ("gian=", "`gian=` has no value / did you mean `gain=1.5`?"),
            ("a=abc", "`abc` is not a number"),
            ("a=20km", "`20km` is not a number / leave the unit out: `a=20`"),
            ("a=nan", "`a` cannot be NaN"),
            ("a=-inf", "`a` cannot be infinite"),
            ("w=[1,1e400]", "`1e400` is too large"),
            ("a=1e-400", "`1e-400` is too small"),
            ("w=[1,2", "this bracket is not closed"),
            ("w=[[1,2],[3]]", "this row has another length than the first"),
            ("w=[1]x", "`x` is left over"),
            ("a=1,,2", "`a=` has no value"),
            ("a=2,µ", "`µ` is not a number"),
            ("", "a name is missing"),
            ("a=1,a=2", "--set names `a` twice / give `a` one value"),
            ("a=9007199254740993", "`9007199254740993` is an integer beyond 9007199254740991"),
        ] {
            let found = read(word).unwrap_err();
            assert!(found.contains(message), "{word}: {found}");
        }
    }

    #[test]
    fn no_word_panics() {
        let pieces = ["a", "=", "[", "]", ",", "1", "é", " ", "-", "e", "."];
        let key = palinode_core::Key::from_seed(1);
        for case in 0..20_000 {
            let mut word = String::new();
            let mut bits = key.u64(case);
            for _ in 0..8 {
                word.push_str(pieces[(bits % 11) as usize]);
                bits /= 11;
            }
            let _ = read(&word);
        }
    }

    #[test]
    fn names_that_are_alike() {
        assert_eq!(closest("gian", &["gain", "w"]), Some("gain"));
        assert_eq!(closest("W", &["gain", "w"]), Some("w"));
        assert_eq!(closest("zzz", &["gain", "w"]), None);
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
