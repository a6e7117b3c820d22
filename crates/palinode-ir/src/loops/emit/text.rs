//! Expressions as text, with as few parentheses as Rust and C both need.

/// How tightly the outermost operator of an expression binds; loosely first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Choice,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Sign,
    Atom,
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) level: Level,
}

impl Text {
    /// A name, a call, an element.
    pub(super) fn atom(text: impl Into<String>) -> Text {
        Text { text: text.into(), level: Level::Atom }
    }

    pub(super) fn new(text: impl Into<String>, level: Level) -> Text {
        Text { text: text.into(), level }
    }

    /// In parentheses, unless it binds at least as tightly.
    pub(super) fn at_least(&self, level: Level) -> String {
        if self.level >= level { self.text.clone() } else { format!("({})", self.text) }
    }

    /// In parentheses, unless it binds more tightly.
    pub(super) fn above(&self, level: Level) -> String {
        if self.level > level { self.text.clone() } else { format!("({})", self.text) }
    }

    /// `a op b`; the order of evaluation is that of the text, so only the left operand may be of the same
    /// level.
    pub(super) fn binary(op: &str, level: Level, a: &Text, b: &Text) -> Text {
        let left = if level == Level::Comparison { a.above(level) } else { a.at_least(level) };
        Text::new(format!("{left} {op} {}", b.above(level)), level)
    }

    /// `-a`, `!a`
    pub(super) fn prefix(op: &str, a: &Text) -> Text {
        Text::new(format!("{op}{}", a.above(Level::Sign)), Level::Sign)
    }
}
