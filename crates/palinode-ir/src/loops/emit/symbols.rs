//! The elementary functions as text: what `palinode-num` computes is noted, operation by operation, and
//! printed. So emitted code has the very operations of the interpreter, in their order.
//!
//! Input: a function's name. Output: its text in Rust or C, and the tables that it reads.

use core::cell::RefCell;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use palinode_core::elementary::double::{Double, Mask, Word};

use super::arithmetic;
use super::language::Language;
use super::text::{Level, Text};

/// An operation that was noted, with the numbers of its operands.
#[derive(Clone, Copy, Debug)]
enum Note {
    Argument(&'static str),
    Real(f64),
    Bits(u64),
    /// An operator.
    Binary(&'static str, usize, usize),
    Negative(usize),
    /// The opposite.
    Opposite(usize),
    /// A function of the support module.
    Call(&'static str, usize),
    /// Bits moved up or down.
    Moved(&'static str, usize, u32),
    Choice(usize, usize, usize),
    /// An element of a table, by the low bits of a word.
    Element(usize, usize),
}

#[derive(Default)]
struct Notes {
    all: Vec<Note>,
    tables: Vec<&'static [f64; 64]>,
}

thread_local! {
    static NOTES: RefCell<Notes> = RefCell::default();
}

fn note(note: Note) -> usize {
    NOTES.with_borrow_mut(|notes| {
        notes.all.push(note);
        notes.all.len() - 1
    })
}

/// A number, a word or a truth value that is not known: the number of what gives it.
#[derive(Clone, Copy)]
struct Symbol(usize);

#[derive(Clone, Copy)]
struct Bits(usize);

#[derive(Clone, Copy)]
struct Truth(usize);

macro_rules! operators {
    ($($of:ident $trait:ident $method:ident $op:literal;)*) => {
        $(impl $trait for $of {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(note(Note::Binary($op, self.0, other.0)))
            }
        })*
    };
}
operators! {
    Symbol Add add "+";
    Symbol Sub sub "-";
    Symbol Mul mul "*";
    Symbol Div div "/";
    // Of words, sums and differences wrap around.
    Bits Add add "w+";
    Bits Sub sub "w-";
    Bits BitAnd bitand "&";
    Bits BitOr bitor "|";
    Bits BitXor bitxor "^";
    Truth BitAnd bitand "&&";
    Truth BitOr bitor "||";
}

macro_rules! operators_with_numbers {
    ($($trait:ident $method:ident;)*) => {
        $(impl $trait<f64> for Symbol {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                $trait::$method(self, Self::of(other))
            }
        })*
    };
}
operators_with_numbers! { Add add; Sub sub; Mul mul; }

impl Neg for Symbol {
    type Output = Self;
    fn neg(self) -> Self {
        Self(note(Note::Negative(self.0)))
    }
}

impl Not for Truth {
    type Output = Self;
    fn not(self) -> Self {
        Self(note(Note::Opposite(self.0)))
    }
}

impl Mask for Truth {}

impl Word for Bits {
    fn of(bits: u64) -> Self {
        Self(note(Note::Bits(bits)))
    }
    fn up(self, places: u32) -> Self {
        Self(note(Note::Moved("<<", self.0, places)))
    }
    fn down(self, places: u32) -> Self {
        Self(note(Note::Moved(">>", self.0, places)))
    }
}

impl Double for Symbol {
    type Word = Bits;
    type Mask = Truth;

    fn of(number: f64) -> Self {
        Self(note(Note::Real(number)))
    }
    fn to_word(self) -> Bits {
        Bits(note(Note::Call("bits", self.0)))
    }
    fn from_word(word: Bits) -> Self {
        Self(note(Note::Call("of_bits", word.0)))
    }
    fn sqrt(self) -> Self {
        Self(note(Note::Call("sqrt", self.0)))
    }
    fn abs(self) -> Self {
        Self(note(Note::Call("abs", self.0)))
    }
    fn less(self, other: Self) -> Truth {
        Truth(note(Note::Binary("<", self.0, other.0)))
    }
    fn less_eq(self, other: Self) -> Truth {
        Truth(note(Note::Binary("<=", self.0, other.0)))
    }
    fn equal(self, other: Self) -> Truth {
        Truth(note(Note::Binary("==", self.0, other.0)))
    }
    fn select(mask: Truth, if_true: Self, if_false: Self) -> Self {
        Self(note(Note::Choice(mask.0, if_true.0, if_false.0)))
    }
    fn element(table: &'static [f64; 64], index: Bits) -> Self {
        let number = NOTES.with_borrow_mut(|notes| {
            let is_same =
                |other: &&[f64; 64]| other.iter().zip(table).all(|(a, b)| a.to_bits() == b.to_bits());
            notes.tables.iter().position(is_same).unwrap_or_else(|| {
                notes.tables.push(table);
                notes.tables.len() - 1
            })
        });
        Self(note(Note::Element(number, index.0)))
    }
}

/// How a language writes what only elementary functions have.
pub(super) struct Words {
    /// The type of words, and that of truth values.
    pub(super) word: &'static str,
    pub(super) truth: &'static str,
    /// Whether sums of words need a method.
    pub(super) wrap: bool,
    /// Before and after a declaration: name and type, or type and name.
    pub(super) names_first: bool,
}

/// The tables of elementary functions, in the order of their first use.
#[derive(Default)]
pub(super) struct Tables(pub(super) Vec<&'static [f64; 64]>);

impl Tables {
    fn number(&mut self, table: &'static [f64; 64]) -> usize {
        let is_same = |other: &&[f64; 64]| other.iter().zip(table).all(|(a, b)| a.to_bits() == b.to_bits());
        self.0.iter().position(is_same).unwrap_or_else(|| {
            self.0.push(table);
            self.0.len() - 1
        })
    }
}

/// One of the texts of a function: its lines, without a head, and what it gives.
pub(super) struct Body {
    pub(super) lines: Vec<String>,
    pub(super) result: String,
}

/// The texts of a function.
pub(super) struct Texts {
    pub(super) args: &'static [&'static str],
    pub(super) fast: Body,
    /// When another text is used, and that.
    pub(super) rare: Option<(Body, Body)>,
}

/// The text of an elementary function.
pub(super) fn texts(
    name: &str,
    language: &dyn Language,
    words: &Words,
    tables: &mut Tables,
) -> Option<Texts> {
    let mut print = |args: &'static [&'static str], f: &dyn Fn(&[Symbol]) -> usize| {
        let arguments: Vec<Symbol> = {
            NOTES.with_borrow_mut(|notes| *notes = Notes::default());
            args.iter().map(|name| Symbol(note(Note::Argument(name)))).collect()
        };
        let result = f(&arguments);
        let notes = NOTES.take();
        let is_never = matches!(notes.all[result], Note::Binary("<", a, b) if a == b);
        let numbers: Vec<usize> = notes.tables.iter().map(|table| tables.number(table)).collect();
        let printer = Printer { notes: &notes.all, tables: &numbers, language, words };
        (printer.body(result), is_never)
    };
    if let Some(function) = arithmetic::elementary(name) {
        let args: &[&str] = &["x"];
        let (is_rare, never) = print(args, &|x| function.is_rare(x[0]).0);
        let (fast, _) = print(args, &|x| function.fast(x[0]).0);
        let rare = (!never).then(|| (is_rare, print(args, &|x| function.slow(x[0]).0).0));
        return Some(Texts { args, fast, rare });
    }
    let function = arithmetic::elementary_of_two(name)?;
    let args: &[&str] = &["x", "y"];
    let (is_rare, never) = print(args, &|x| function.is_rare(x[0], x[1]).0);
    let (fast, _) = print(args, &|x| function.fast(x[0], x[1]).0);
    let rare = (!never).then(|| (is_rare, print(args, &|x| function.slow(x[0], x[1]).0).0));
    Some(Texts { args, fast, rare })
}

struct Printer<'a> {
    notes: &'a [Note],
    tables: &'a [usize],
    language: &'a dyn Language,
    words: &'a Words,
}

/// What an operation gives.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Real,
    Word,
    Truth,
}

/// So many operators at most are in one expression.
const LONG: usize = 6;

impl Printer<'_> {
    fn operands(&self, at: usize) -> Vec<usize> {
        match self.notes[at] {
            Note::Argument(_) | Note::Real(_) | Note::Bits(_) => Vec::new(),
            Note::Binary(_, a, b) => vec![a, b],
            Note::Negative(a) | Note::Opposite(a) | Note::Call(_, a) => vec![a],
            Note::Moved(_, a, _) | Note::Element(_, a) => vec![a],
            Note::Choice(holds, a, b) => vec![holds, a, b],
        }
    }

    fn of(&self, at: usize) -> Of {
        match self.notes[at] {
            Note::Bits(_) | Note::Moved(..) | Note::Call("bits", _) => Of::Word,
            Note::Binary("w+" | "w-" | "&" | "|" | "^", ..) => Of::Word,
            Note::Binary("<" | "<=" | "==" | "&&" | "||", ..) | Note::Opposite(_) => Of::Truth,
            Note::Choice(_, a, _) => self.of(a),
            Note::Argument(_) | Note::Real(_) | Note::Call(..) | Note::Element(..) => Of::Real,
            Note::Binary(..) | Note::Negative(_) => Of::Real,
        }
    }

    fn body(&self, result: usize) -> Body {
        let mut reads = vec![0_usize; self.notes.len()];
        reads[result] = 1;
        for at in (0..self.notes.len()).rev() {
            if reads[at] > 0 {
                self.operands(at).into_iter().for_each(|operand| reads[operand] += 1);
            }
        }
        let mut texts: Vec<Option<(Text, usize)>> = vec![None; self.notes.len()];
        let (mut lines, mut variables) = (Vec::new(), 0);
        for at in 0..self.notes.len() {
            if reads[at] == 0 {
                continue;
            }
            let operators = 1 + self
                .operands(at)
                .iter()
                .map(|&at| texts[at].as_ref().map_or(0, |text| text.1))
                .sum::<usize>();
            let text = self.text(at, &texts);
            let is_plain = matches!(self.notes[at], Note::Argument(_) | Note::Real(_) | Note::Bits(_));
            if is_plain {
                texts[at] = Some((text, 0));
            } else if reads[at] == 1 && operators <= LONG || at == result {
                texts[at] = Some((text, operators));
            } else {
                variables += 1;
                let name = format!("t{variables}");
                let ty = match self.of(at) {
                    Of::Real => {
                        if self.words.names_first {
                            "f64"
                        } else {
                            "double"
                        }
                    }
                    Of::Word => self.words.word,
                    Of::Truth => self.words.truth,
                };
                lines.push(match self.words.names_first {
                    true => format!("let {name}: {ty} = {};", text.text),
                    false => format!("const {ty} {name} = {};", text.text),
                });
                texts[at] = Some((Text::atom(name), 0));
            }
        }
        let result = texts[result].take().map(|text| text.0.text).unwrap_or_default();
        Body { lines, result }
    }

    fn text(&self, at: usize, texts: &[Option<(Text, usize)>]) -> Text {
        let of = |at: usize| texts[at].as_ref().map_or_else(|| Text::atom("?"), |text| text.0.clone());
        let atom = |at: usize| of(at).at_least(Level::Atom);
        match self.notes[at] {
            Note::Argument(name) => Text::atom(name),
            Note::Real(number) => self.language.real(number),
            Note::Bits(bits) if self.words.names_first => Text::atom(format!("{bits:#x}")),
            Note::Bits(bits) => Text::atom(format!("UINT64_C({bits:#x})")),
            Note::Binary(op @ ("w+" | "w-"), a, b) if self.words.wrap => {
                let method = if op == "w+" { "wrapping_add" } else { "wrapping_sub" };
                let left = match self.notes[a] {
                    Note::Bits(bits) => format!("{bits:#x}_u64"),
                    _ => atom(a),
                };
                Text::atom(format!("{left}.{method}({})", of(b).text))
            }
            Note::Binary(op @ ("w+" | "w-"), a, b) => {
                Text::new(format!("{} {} {}", atom(a), &op[1..], atom(b)), Level::Choice)
            }
            Note::Binary(op @ ("+" | "-"), a, b) => Text::binary(op, Level::Sum, &of(a), &of(b)),
            Note::Binary(op @ ("*" | "/"), a, b) => Text::binary(op, Level::Product, &of(a), &of(b)),
            Note::Binary(op @ ("<" | "<=" | "=="), a, b) => {
                Text::binary(op, Level::Comparison, &of(a), &of(b))
            }
            // How these bind differs between the languages.
            Note::Binary(op, a, b) => Text::new(format!("{} {op} {}", atom(a), atom(b)), Level::Choice),
            Note::Negative(a) => Text::prefix("-", &of(a)),
            Note::Opposite(a) => Text::prefix("!", &of(a)),
            Note::Call(name, a) => self.language.call(name, &[of(a).text]),
            Note::Moved(op, a, places) => Text::new(format!("{} {op} {places}", atom(a)), Level::Choice),
            Note::Choice(holds, a, b) => self.language.choice(&of(holds), &of(a), &of(b)),
            Note::Element(table, index) => {
                let table = self.tables[table] + 1;
                let index = format!("{} & 63", atom(index));
                match self.words.names_first {
                    true => Text::atom(format!("TABLE_{table}[({index}) as usize]")),
                    false => Text::atom(format!("pal_table_{table}[{index}]")),
                }
            }
        }
    }
}
