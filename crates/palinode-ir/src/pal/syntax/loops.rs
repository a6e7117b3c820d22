//! `for i in 0..n by 2 reversed budget 64KiB { ... }`, and the `budget` of a `while`.
//!
//! `by`, `reversed` and `budget` are no keywords, so that variables may have these names. A word of the
//! header that is none of them is most likely one of them, misspelt.

use palinode_core::{Budget, BudgetMistake, Error};

use super::ast::{LoopBudget, Over, Range, StmtKind};
use super::lexer::{Kind, Token};
use super::parser::{Failed, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::pal::spelling;
use crate::types::Span;

/// The words of a header over a range, in their order.
const WORDS: &[&str] = &["by", "reversed", "budget"];
const READS: &str = "a loop reads `for i in 0..n by 2 reversed budget 64KiB { ... }`";
const WITHOUT: &str = "leave it out: without a budget, a loop keeps what it needs from every round";
const UNITS: &str = "units are B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of 1000)";

impl Parser<'_> {
    pub(super) fn for_loop(&mut self) -> Parsed<StmtKind> {
        if self.is_mark("(") {
            return self
                .unexpected("the name of the loop variable", Some("a loop reads `for i in 0..n { ... }`"));
        }
        let name = self.name("the name of the loop variable")?;
        if !self.eat_word("in") {
            return self.unexpected("`in`", Some("a loop reads `for i in 0..n { ... }`"));
        }
        let over = self.over()?;
        if matches!(over, Over::Array(_)) && (self.is_word("by") || self.is_word("reversed")) {
            let help = "only a range can: `for i in 0..len(a) by 2 reversed { ... }`";
            return self.unexpected("`{`", Some(help));
        }
        let words = match &over {
            Over::Range { range: Range { by: None, .. }, reversed: false } => &WORDS[..2],
            Over::Range { reversed: false, .. } => &WORDS[1..2],
            Over::Range { .. } | Over::Array(_) => &[],
        };
        let budget = self.loop_budget(words)?;
        Ok(StmtKind::For { name, over, budget, body: self.block()? })
    }

    /// `budget 64KiB`, if it is there, up to the block; `words` could have stood before it.
    pub(super) fn loop_budget(&mut self, words: &[&str]) -> Parsed<Option<LoopBudget>> {
        let budget = if self.is_word("budget") { Some(self.budget()?) } else { None };
        let token = self.peek();
        if !matches!(token.kind, Kind::Word | Kind::Glued { .. }) {
            return Ok(budget);
        }
        let help = self.wrong_in_header(token, words, budget);
        self.unexpected("`{`", Some(&help))
    }

    /// What to do about a word between the header of a loop and its block.
    fn wrong_in_header(&self, token: Token, words: &[&str], budget: Option<LoopBudget>) -> String {
        let text = self.text(token);
        if matches!(token.kind, Kind::Glued { .. }) {
            return match (budget, text.parse::<Budget>()) {
                (None, Ok(_)) => format!("did you mean `budget {text}`?"),
                _ => "a block stands in braces, `{ ... }`".into(),
            };
        }
        match text {
            "budget" => return "a loop has one budget".into(),
            "by" | "reversed" if budget.is_some() => {
                return format!("`{text}` comes before `budget`: {READS}");
            }
            "by" | "reversed" => return READS.into(),
            _ => {}
        }
        let candidates = words.iter().copied().chain(budget.is_none().then_some("budget"));
        let amount = self.ahead().get(1).filter(|next| matches!(next.kind, Kind::Glued { .. }));
        let is_budget = amount.is_some_and(|&next| self.text(next).parse::<Budget>().is_ok());
        let meant = match text {
            _ if is_budget && budget.is_none() => Some("budget".to_string()),
            "step" | "steps" | "stride" if words.contains(&"by") => Some("by".to_string()),
            _ => spelling::closest(text, candidates),
        };
        meant.map_or(READS.into(), |word| format!("did you mean `{word}`?"))
    }

    /// The number of bytes after the word `budget`.
    fn budget(&mut self) -> Parsed<LoopBudget> {
        let word = self.advance().span;
        let token = self.peek();
        let next = self.ahead().get(1).copied().filter(|next| next.span.start == token.span.end);
        match token.kind {
            Kind::Glued { digits } => {
                self.advance();
                let bytes = self.bytes(token.span, digits as usize)?;
                Ok(LoopBudget { bytes, span: word.to(token.span) })
            }
            Kind::Mark("-") => {
                let end = next.filter(|next| is_number(*next)).map_or(token.span, |next| next.span);
                self.no_budget(
                    token.span.to(end),
                    "it is negative",
                    "a budget is a number of bytes above 0, such as `budget 64KiB`",
                )
            }
            Kind::Int(_) | Kind::Real(_) => {
                let number = self.text(token).to_string();
                let unit = self.ahead().get(1).copied().filter(|unit| unit.kind == Kind::Word);
                let joined = unit.map(|unit| (unit, format!("{number}{}", self.text(unit))));
                match joined.filter(|(_, joined)| joined.parse::<Budget>().is_ok()) {
                    Some((unit, joined)) => {
                        let help = format!("write `budget {joined}`");
                        self.no_budget(token.span.to(unit.span), "there is a space before the unit", &help)
                    }
                    None => {
                        let help = format!("write `budget {number}B` or `budget {number}KiB`; {UNITS}");
                        self.no_budget(token.span, "it has no unit", &help)
                    }
                }
            }
            Kind::Word if self.text(token) == "unlimited" => {
                self.no_budget(token.span, "a loop's budget is a number of bytes", WITHOUT)
            }
            Kind::Mark("=" | ":" | "(") => {
                self.unexpected("a number of bytes", Some("it follows the word: `budget 64KiB`"))
            }
            _ => {
                let help = "a loop's budget is written as a number of bytes with its unit: `budget 64KiB`";
                self.unexpected("a number of bytes", Some(help))
            }
        }
    }

    /// What `64KiB` says, if that is something a loop can keep to.
    fn bytes(&mut self, span: Span, digits: usize) -> Parsed<u64> {
        let text = &self.source[span.range()];
        let (number, unit) = text.split_at(digits);
        if number.contains(['e', 'E']) {
            return self.no_budget(
                span,
                "it has an exponent",
                "write the number out, such as `budget 1000KiB`",
            );
        }
        match text.replace('_', "").parse::<Budget>() {
            Ok(budget) if budget.bytes() > 0 => Ok(budget.bytes() as u64),
            Ok(_) => {
                let help = "allow one snapshot or more (`palinode loop` shows how many bytes that is); without a budget, a loop keeps what it needs from every round";
                self.no_budget(span, "not even one snapshot fits", help)
            }
            Err(Error::NotABudget { why, .. }) => {
                let help = match (&why, meant(unit)) {
                    (BudgetMistake::TooLarge, _) => WITHOUT.to_string(),
                    (BudgetMistake::Unit { .. }, Some(unit)) => {
                        format!("did you mean `{number}{unit}`? {UNITS}")
                    }
                    _ => UNITS.to_string(),
                };
                self.no_budget(span, &why.to_string(), &help)
            }
            Err(other) => self.no_budget(span, &other.to_string(), UNITS),
        }
    }

    fn no_budget<T>(&mut self, span: Span, why: &str, help: &str) -> Parsed<T> {
        let message = format!("`{}` is not a budget: {why}", &self.source[span.range()]);
        self.report(Diagnostic::error("PAL0108", span, message).help(help));
        Err(Failed)
    }

    /// `lo..hi`, `(lo..hi)`, `lo..hi by s`, `lo..hi reversed`, or an array.
    fn over(&mut self) -> Parsed<Over> {
        let start = self.peek().span;
        let mut range = if self.is_mark("(") && self.parenthesis_holds_range() {
            let open = self.advance();
            self.brackets += 1;
            let lo = self.expr()?;
            self.expect("..", None)?;
            let hi = self.expr()?;
            let by = if self.eat_word("by") { Some(self.expr()?) } else { None };
            let end = self.close(")", open)?.span;
            self.brackets -= 1;
            Range { lo: Some(lo), hi: Some(hi), by, span: start.to(end) }
        } else {
            let lo = self.expr()?;
            if !self.eat_mark("..") {
                return Ok(Over::Array(lo));
            }
            let hi = self.expr()?;
            let span = start.to(hi.span);
            Range { lo: Some(lo), hi: Some(hi), by: None, span }
        };
        if self.eat_word("by") {
            let by = self.expr()?;
            range.span = range.span.to(by.span);
            range.by = Some(by);
        }
        Ok(Over::Range { range, reversed: self.eat_word("reversed") })
    }

    /// Whether the bracket that comes next holds `..` at its own level.
    fn parenthesis_holds_range(&self) -> bool {
        let mut level = 0_usize;
        for token in &self.tokens[self.at..] {
            match token.kind {
                Kind::Mark("(" | "[") => level += 1,
                Kind::Mark(")" | "]") => {
                    level = level.saturating_sub(1);
                    if level == 0 {
                        return false;
                    }
                }
                Kind::Mark("..") if level == 1 => return true,
                Kind::Mark("{" | "}") | Kind::End => return false,
                _ => {}
            }
        }
        false
    }
}

fn is_number(token: Token) -> bool {
    matches!(token.kind, Kind::Int(_) | Kind::Real(_) | Kind::Glued { .. })
}

/// The unit of bytes that a word with the same prefix may mean.
fn meant(unit: &str) -> Option<String> {
    match unit.chars().next()?.to_ascii_uppercase() {
        'B' => Some("B".into()),
        prefix @ ('K' | 'M' | 'G' | 'T') => Some(format!("{prefix}iB")),
        _ => None,
    }
}
