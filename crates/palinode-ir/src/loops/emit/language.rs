//! What Rust and C write differently.

use super::super::form::Kind;
use super::text::{Level, Text};

/// An array that a fused loop is given.
pub(super) struct Given {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) length: u64,
    pub(super) is_changed: bool,
}

/// A scalar that it is given.
pub(super) struct GivenScalar {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Counters are places.
    pub(super) is_counter: bool,
}

/// A fused loop.
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    /// The line of the source that it computes.
    pub(super) line: Option<u32>,
    pub(super) arrays: &'a [Given],
    pub(super) scalars: &'a [GivenScalar],
    pub(super) may_stop: bool,
    /// Whether it notes how suspicious comparisons are.
    pub(super) suspects: bool,
}

/// The variable in which is noted what is not finite: zero as long as everything is.
pub(super) const NOTES: &str = "bad";

/// The variable in which is noted how suspicious comparisons were, and that of a fused loop.
pub(super) const SUSPICIONS: &str = "suspicions";
pub(super) const SUSPICIONS_HERE: &str = "suspicions_here";

/// A language. Lines come without indentation, and with what ends a statement.
pub(super) trait Language {
    /// A real number.
    fn real(&self, value: f64) -> Text;
    /// An integer.
    fn int(&self, value: i64) -> Text;
    /// A counter as an integer.
    fn of_counter(&self, counter: &str) -> Text;
    /// An integer as a place in an array.
    fn place(&self, integer: &Text) -> String;
    /// `if holds { a } else { b }`
    fn choice(&self, holds: &Text, a: &Text, b: &Text) -> Text;
    /// A function of the support module.
    fn call(&self, name: &str, args: &[String]) -> Text;
    /// Single precision and back.
    fn round32(&self, a: &Text) -> Text;

    /// An array from a place on, as an argument of a fused loop, which says how many elements it wants.
    fn part(&self, array: &str, from: Option<&str>, is_changed: bool) -> String;
    /// So many elements of an array from a place on, or all.
    fn stretch(&self, array: &str, from: Option<&str>, count: usize, is_changed: bool) -> String;
    /// The same as arguments of a function that takes any number of elements.
    fn slice(&self, stretch: String, count: usize) -> Vec<String>;
    /// Where the steps that are left are counted, as an argument.
    fn steps(&self) -> &'static str;

    /// Declares a variable.
    fn declare(&self, name: &str, kind: Kind, value: &str, is_set_again: bool) -> String;
    /// Declares a variable for notes.
    fn declare_notes(&self, name: &str) -> String;
    /// A loop over numbers, from the first up to, without, the second.
    fn rounds(&self, counter: &str, from: &str, to: &str, descending: bool) -> String;
    /// A number of rounds; less than none are none.
    fn count(&self, rounds: &Text) -> String;
    /// A loop that something in it ends.
    fn endless(&self) -> &'static str;
    /// Ends it unless something holds.
    fn leave_unless(&self, holds: &Text) -> String;
    /// A branch.
    fn branch(&self, holds: &Text) -> String;
    /// Calls something that may stop, and stops if it does, at a line if the function knows it.
    fn attempt(&self, call: &str, line: Option<u32>) -> String;
    /// Calls a function of the support module that may stop, for an integer.
    fn attempt_int(&self, to: &Declared<'_>, name: &str, args: &[String], line: Option<u32>) -> Vec<String>;
    /// The function of the support module for a product, which may know one for so few columns.
    fn product(&self, name: &'static str, columns: Option<usize>) -> String;
    /// What keeps the compiler from taking several short rows of a loop over elements at a time.
    fn row_by_row(&self) -> Option<&'static str>;
    /// Exchanges two arrays.
    fn swap(&self, a: &str, b: &str) -> String;
    /// The head of a fused loop.
    fn function(&self, head: &Head<'_>) -> Vec<String>;
    /// The last line of a function that may stop.
    fn end(&self, has_notes: bool) -> String;
}

/// A variable that is set.
pub(super) struct Declared<'a> {
    pub(super) name: &'a str,
    /// Whether it is declared here.
    pub(super) here: bool,
    pub(super) is_set_again: bool,
}

/// A number with its sign as an expression.
pub(super) fn signed(text: String) -> Text {
    let level = if text.starts_with('-') { Level::Sign } else { Level::Atom };
    Text { text, level }
}
