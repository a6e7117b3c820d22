//! `fixed_point x by anderson tolerance 1e-10 rounds 500 { ... }` and `root x { ... }`.
//!
//! The words are no keywords: only a name after them makes an equation, so that variables and functions may
//! have these names.

use super::ast::{Equation, StmtKind};
use super::lexer::Kind;
use super::parser::{Parsed, Parser};
use crate::implicit::Form;
use crate::op::Search;
use crate::pal::spelling;

/// The words that say how to search.
const WORDS: &[&str] = &["by", "tolerance", "rounds"];

/// The tolerance where none is written.
const TOLERANCE: f64 = 1e-12;

/// The form that a statement starting with this word has.
fn form(word: &str) -> Option<Form> {
    [Form::FixedPoint, Form::Root].into_iter().find(|form| form.name() == word)
}

impl Parser<'_> {
    /// The form of the equation that starts here, if one does.
    pub(super) fn equation_ahead(&self) -> Option<Form> {
        let &[word, name, ..] = self.ahead() else { return None };
        if word.kind == Kind::Word && name.kind == Kind::Word { form(self.text(word)) } else { None }
    }

    pub(super) fn equation(&mut self, form: Form) -> Parsed<StmtKind> {
        self.advance();
        let mut unknowns = vec![self.name("the name of an unknown")?];
        while self.eat_mark(",") {
            unknowns.push(self.name("the name of an unknown")?);
        }
        let mut equation = Equation {
            form,
            unknowns,
            search: if form == Form::Root { Search::Newton } else { Search::Picard },
            tolerance: TOLERANCE,
            rounds: if form == Form::Root { 100 } else { 1000 },
            body: super::ast::Block { stmts: Vec::new() },
        };
        loop {
            if self.eat_word("by") {
                equation.search = self.search()?;
            } else if self.eat_word("tolerance") {
                equation.tolerance = self.tolerance()?;
            } else if self.eat_word("rounds") {
                equation.rounds = self.rounds()?;
            } else if self.peek().kind == Kind::Word {
                let help = self.wrong_in_equation();
                return self.unexpected("`{`", Some(&help));
            } else {
                break;
            }
        }
        equation.body = self.block()?;
        Ok(StmtKind::Equation(Box::new(equation)))
    }

    /// What to do about a word between an equation's unknowns and its block.
    fn wrong_in_equation(&mut self) -> String {
        let token = self.peek();
        let text = self.text(token);
        if text == "budget" {
            return "leave it out: the rounds of the search keep nothing for the reverse sweep".into();
        }
        let short =
            WORDS.iter().find(|word| text.len() > 2 && word.starts_with(text)).map(ToString::to_string);
        short.or_else(|| spelling::closest(text, WORDS.iter().copied())).map_or(
            "an equation reads `fixed_point x by anderson tolerance 1e-10 rounds 500 { ... }`".into(),
            |word| format!("did you mean `{word}`?"),
        )
    }

    fn search(&mut self) -> Parsed<Search> {
        let token = self.peek();
        match Search::ALL.into_iter().find(|search| search.name() == self.text(token)) {
            Some(search) => {
                self.advance();
                Ok(search)
            }
            None => {
                let ways = "there are `by picard`, `by anderson` and `by newton`";
                let meant = spelling::closest(self.text(token), Search::ALL.map(Search::name));
                let help = meant.map_or(ways.into(), |way| format!("did you mean `{way}`? {ways}"));
                self.unexpected("a way to search", Some(&help))
            }
        }
    }

    fn tolerance(&mut self) -> Parsed<f64> {
        let value = match self.peek().kind {
            Kind::Real(value) => value,
            Kind::Int(value) => value as f64,
            _ => f64::NAN,
        };
        if value > 0.0 && value < 1.0 {
            self.advance();
            return Ok(value);
        }
        self.unexpected(
            "a number between 0 and 1",
            Some("a tolerance is written as a number, `tolerance 1e-10`"),
        )
    }

    fn rounds(&mut self) -> Parsed<i64> {
        match self.peek().kind {
            Kind::Int(rounds) if rounds > 0 => {
                self.advance();
                Ok(rounds)
            }
            _ => self.unexpected("a whole number above 0", Some("rounds are counted, `rounds 500`")),
        }
    }
}
