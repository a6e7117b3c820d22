//! Text -> loop form: what [`print`](super::print) writes, and what tests write by hand.
//!
//! Each statement has a line, and `//` starts a comment. The form is as the text says, right or wrong:
//! [`verify`](super::verify()) is asked afterwards. Invariants: `parse(form.to_string()) == form`, but for
//! names and places in the source, which are not part of the text; no text makes it panic.
//!
//! Limits: blocks nest at most [`DEEPEST`] deep, and there are at most [`REGISTERS`] registers.

use std::sync::Arc;

use super::cursor::{Cursor, Parsed};
use super::form::{
    Buf, Buffer, DEEPEST, Given, Index, Kept, Kind, LoopForm, Matrix, Operand, Place, Port, Reg, Role, Stmt,
    Taken,
};
use super::names::{Begins, Makes, Named, Wholes};
use crate::op::{Literal, Rule};
use crate::text::{ParseError, decode, literal, plain_operation};

/// So many registers at most: a short text must not take much memory.
const REGISTERS: usize = 1 << 24;

/// The loop form that a text is.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str) -> Result<LoopForm, ParseError> {
    let code = |line: &'_ str| line.find("//").map_or(line.len(), |at| at);
    let lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| Cursor::new(&line[..code(line)], number + 1))
        .filter(|line| !line.is_at_end())
        .collect();
    Lines { lines, at: 0, last: text.lines().count() }.form()
}

struct Lines<'t> {
    /// Those that hold something.
    lines: Vec<Cursor<'t>>,
    at: usize,
    /// How many there are in all.
    last: usize,
}

impl<'t> Lines<'t> {
    fn next(&mut self) -> Parsed<Cursor<'t>> {
        let line = self.lines.get(self.at).copied();
        self.at += 1;
        line.ok_or_else(|| Cursor::new("", self.last.max(1)).mistake("the text ends too early"))
    }

    fn form(mut self) -> Parsed<LoopForm> {
        let mut head = self.next()?;
        head.expect("loops")?;
        let name = head.name()?;
        let inputs = head.list("(", ")", Cursor::port)?;
        head.expect("->")?;
        let outputs = head.list("(", ")", Cursor::port)?;
        let traps = head.eat_word("traps");
        head.expect("{")?;
        head.end()?;
        let registers = self.registers()?;
        let buffers = self.buffers()?;
        let (body, end) = self.block(0)?;
        end.end()?;
        if let Some(more) = self.lines.get(self.at) {
            return Err(more.mistake("something follows the end"));
        }
        let name = Arc::from(name);
        Ok(LoopForm {
            name,
            inputs,
            outputs,
            registers,
            buffers,
            body,
            traps,
            origins: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// Lines like `real: r0-r3 r7`.
    fn registers(&mut self) -> Parsed<Vec<Kind>> {
        let mut found: Vec<Option<Kind>> = Vec::new();
        let mut last = None;
        while let Some(&(mut line)) = self.lines.get(self.at) {
            let Some(kind) = Kind::ALL.into_iter().find(|kind| line.eat_word(kind.name())) else { break };
            line.expect(":")?;
            while !line.is_at_end() {
                let first = line.reg()?;
                let end = if line.eat("-") { line.reg()? } else { first };
                if end.index() >= REGISTERS || end < first {
                    return Err(line.mistake(format!("{first}-{end} are no registers")));
                }
                found.resize(found.len().max(end.index() + 1), None);
                for (own, number) in found[first.index()..=end.index()].iter_mut().zip(first.0..) {
                    if own.replace(kind).is_some() {
                        return Err(line.mistake(format!("{} is declared twice", Reg(number))));
                    }
                }
            }
            last = Some(line);
            self.at += 1;
        }
        match (found.iter().position(Option::is_none), last) {
            (Some(missing), Some(line)) => Err(line.mistake(format!("r{missing} is not declared"))),
            _ => Ok(found.into_iter().flatten().collect()),
        }
    }

    /// Lines like `b0: real[100] input 0 (x)`.
    fn buffers(&mut self) -> Parsed<Vec<Buffer>> {
        let mut buffers = Vec::new();
        while let Some(&(mut line)) = self.lines.get(self.at) {
            let Ok(buf) = line.buf() else { break };
            if !line.eat(":") {
                break;
            }
            if buf.index() != buffers.len() {
                return Err(line.mistake(format!("{buf} is out of order")));
            }
            let Some(kind) = Kind::ALL.into_iter().find(|kind| line.eat_word(kind.name())) else {
                return Err(line.mistake("expected `real`, `int` or `bool`"));
            };
            line.expect("[")?;
            let length = line.number()?;
            line.expect("]")?;
            let role = if line.eat_word("input") {
                Role::Input(line.number()?)
            } else if line.eat_word("workspace") {
                Role::Workspace
            } else if line.eat_word("growing") {
                Role::Growing
            } else {
                return Err(line.mistake("expected `input 0`, `workspace` or `growing`"));
            };
            let mut name = None;
            if line.eat("(") {
                name = Some(Arc::from(line.name()?));
                line.expect(")")?;
            }
            line.end()?;
            buffers.push(Buffer { kind, length, role, name });
            self.at += 1;
        }
        Ok(buffers)
    }

    /// Statements up to a line that begins with `}`, and what stands behind that.
    fn block(&mut self, depth: usize) -> Parsed<(Vec<Stmt>, Cursor<'t>)> {
        let mut stmts = Vec::new();
        loop {
            let mut line = self.next()?;
            if line.eat("}") {
                return Ok((stmts, line));
            }
            if depth > DEEPEST {
                return Err(line.mistake(format!("blocks nest more than {DEEPEST} deep")));
            }
            stmts.push(self.stmt(line, depth)?);
        }
    }

    /// The block that a line ends with, and what stands behind it.
    fn opened(&mut self, mut line: Cursor<'t>, depth: usize) -> Parsed<(Vec<Stmt>, Cursor<'t>)> {
        line.expect("{")?;
        line.end()?;
        self.block(depth + 1)
    }

    /// The same where nothing may stand behind it.
    fn last(&mut self, line: Cursor<'t>, depth: usize) -> Parsed<Vec<Stmt>> {
        let (stmts, end) = self.opened(line, depth)?;
        end.end()?;
        Ok(stmts)
    }

    fn stmt(&mut self, mut line: Cursor<'t>, depth: usize) -> Parsed<Stmt> {
        let Some(begins) = Begins::ALL.into_iter().find(|begins| line.eat_word(begins.name())) else {
            let stmt = line.assignment()?;
            line.end()?;
            return Ok(stmt);
        };
        let stmt = match begins {
            Begins::Finite if line.is_at_buffer() => Stmt::AllFinite { place: line.place()? },
            Begins::Finite => Stmt::Finite { a: line.operand()? },
            Begins::Within => {
                let [a, length] = line.operands()?;
                Stmt::Within { a, length }
            }
            Begins::Holds => Stmt::Holds { a: line.operand()? },
            Begins::Stop => Stmt::Stop,
            Begins::Step => Stmt::Step,
            Begins::Swap => {
                let a = line.buf()?;
                line.expect(",")?;
                Stmt::Swap { a, b: line.buf()? }
            }
            Begins::Reserve => {
                let buf = line.buf()?;
                line.expect(",")?;
                Stmt::Reserve { buf, length: line.index()? }
            }
            Begins::For => {
                let counter = line.reg()?;
                line.expect("in")?;
                let descending = line.eat_word("down");
                let rounds = line.operand()?;
                let counts = line.eat_word("steps");
                let body = self.last(line, depth)?;
                return Ok(Stmt::For { counter, rounds, descending, counts, body });
            }
            Begins::While => {
                let (condition, mut line) = self.opened(line, depth)?;
                let holds = line.operand()?;
                return Ok(Stmt::While { condition, holds, body: self.last(line, depth)? });
            }
            Begins::If => {
                let holds = line.operand()?;
                let (then, mut end) = self.opened(line, depth)?;
                let other = match end.eat_word("else") {
                    true => self.last(end, depth)?,
                    false => end.end().map(|()| Vec::new())?,
                };
                return Ok(Stmt::If { holds, then, other });
            }
            Begins::Sweep => {
                let counter = line.reg()?;
                line.expect("in")?;
                let rounds = line.operand()?;
                line.expect("snapshots")?;
                let room = line.number()?;
                let state = line.list("(", ")", Cursor::kept)?;
                let (advance, mut line) = self.opened(line, depth)?;
                let mut turn = None;
                if line.eat_word("turn") {
                    (turn, line) = self.opened(line, depth).map(|(turn, line)| (Some(turn), line))?;
                }
                line.expect("back")?;
                let back = self.last(line, depth)?;
                return Ok(Stmt::Sweep { counter, rounds, room, state, advance, turn, back });
            }
            Begins::Each => {
                let axes = line.separated("{", Cursor::axis)?;
                return Ok(Stmt::Each { axes, body: self.last(line, depth)? });
            }
        };
        line.end()?;
        Ok(stmt)
    }
}

/// What is set.
enum Target {
    Reg(Reg),
    /// An element.
    At(Buf, Index),
    Place(Place),
}

impl Cursor<'_> {
    /// A line with `=` or `+=`.
    fn assignment(&mut self) -> Parsed<Stmt> {
        let mut targets = Vec::new();
        while !self.is_at("=") && !self.is_at("+=") {
            if !targets.is_empty() {
                self.expect(",")?;
            }
            targets.push(self.target()?);
        }
        let adds = self.eat("+=");
        if !adds {
            self.expect("=")?;
        }
        if self.eat_word(Wholes::Kernel.name()) {
            return self.kernel(targets);
        }
        let target = match (targets.pop(), targets.is_empty()) {
            (Some(target), true) => target,
            _ => return Err(self.mistake("only a kernel sets several")),
        };
        if adds {
            return match (target, self.named()?) {
                (Target::Place(to), Named::Wholes(Wholes::Product)) => self.product(to, false, true),
                (Target::Place(to), Named::Wholes(Wholes::StrongProduct)) => self.product(to, true, true),
                _ => Err(self.mistake("only a product of matrices adds")),
            };
        }
        match target {
            Target::At(buf, at) => Ok(Stmt::Store { buf, at, from: self.operand()? }),
            Target::Reg(to) => self.register_is(to),
            Target::Place(to) => self.place_is(to),
        }
    }

    fn target(&mut self) -> Parsed<Target> {
        if !self.is_at_buffer() {
            return Ok(Target::Reg(self.reg().map_err(|_| self.mistake("this is no statement"))?));
        }
        let (buf, at) = self.element()?;
        Ok(match self.is_at("[") {
            true => Target::Place(Place { buf, at, shape: self.shape()? }),
            false => Target::At(buf, at),
        })
    }

    fn register_is(&mut self, to: Reg) -> Parsed<Stmt> {
        if self.is_at_buffer() {
            let (buf, at) = self.element()?;
            return Ok(Stmt::Load { to, buf, at });
        }
        if self.is_at_literal() || self.is_at_register() {
            return Ok(Stmt::Move { to, from: self.operand()? });
        }
        Ok(match self.named()? {
            Named::Makes(Makes::Index) => Stmt::Index { to, index: self.index()? },
            Named::Makes(Makes::Round32) => Stmt::Round32 { to, a: self.operand()? },
            Named::Makes(Makes::Not) => Stmt::Not { to, a: self.operand()? },
            Named::Makes(Makes::Truncate) => Stmt::Truncate { to, a: self.operand()? },
            Named::Makes(Makes::Convert) => Stmt::Convert { to, a: self.operand()? },
            Named::Makes(Makes::And) => {
                let [a, b] = self.operands()?;
                Stmt::And { to, a, b }
            }
            Named::Makes(Makes::Or) => {
                let [a, b] = self.operands()?;
                Stmt::Or { to, a, b }
            }
            Named::Makes(Makes::Select) => {
                let [holds, a, b] = self.operands()?;
                Stmt::Select { to, holds, a, b }
            }
            Named::Int(op) => {
                let [a, b] = self.operands()?;
                Stmt::Int { op, to, a, b }
            }
            Named::Compare(op) => {
                let [a, b] = self.operands()?;
                Stmt::Compare { op, to, a, b }
            }
            Named::Map(row) => {
                let rule = Rule { row, parameter: self.parameter(row.into())? };
                Stmt::Map { rule, to, args: self.separated("", Cursor::operand)? }
            }
            Named::Reduce(kind) => Stmt::Reduce { kind, from: self.place()?, to: Taken::Scalar(to) },
            Named::Wholes(Wholes::Dots) => self.dots(Taken::Scalar(to), false)?,
            Named::Wholes(Wholes::StrongDots) => self.dots(Taken::Scalar(to), true)?,
            Named::Wholes(Wholes::Product | Wholes::StrongProduct | Wholes::Kernel) => {
                return Err(self.mistake("a register takes no array"));
            }
        })
    }

    fn place_is(&mut self, to: Place) -> Parsed<Stmt> {
        Ok(match self.named()? {
            Named::Reduce(kind) => Stmt::Reduce { kind, from: self.place()?, to: Taken::Array(to) },
            Named::Wholes(Wholes::Product) => self.product(to, false, false)?,
            Named::Wholes(Wholes::StrongProduct) => self.product(to, true, false)?,
            Named::Wholes(Wholes::Dots) => self.dots(Taken::Array(to), false)?,
            Named::Wholes(Wholes::StrongDots) => self.dots(Taken::Array(to), true)?,
            Named::Map(row) => {
                let rule = Rule { row, parameter: self.parameter(row.into())? };
                self.expect("itself")?;
                Stmt::Function { rule, place: to }
            }
            Named::Makes(_) | Named::Int(_) | Named::Compare(_) | Named::Wholes(Wholes::Kernel) => {
                return Err(self.mistake("this makes no array"));
            }
        })
    }

    fn product(&mut self, to: Place, strong: bool, adds: bool) -> Parsed<Stmt> {
        let a = self.matrix()?;
        self.expect(",")?;
        Ok(Stmt::Product { strong, a, b: self.matrix()?, to, adds })
    }

    fn dots(&mut self, to: Taken, strong: bool) -> Parsed<Stmt> {
        let a = self.matrix()?;
        self.expect(",")?;
        Ok(Stmt::Dots { strong, a, x: self.place()?, to })
    }

    fn kernel(&mut self, targets: Vec<Target>) -> Parsed<Stmt> {
        let taken = targets
            .into_iter()
            .map(|target| match target {
                Target::Reg(reg) => Ok(Taken::Scalar(reg)),
                Target::Place(place) => Ok(Taken::Array(place)),
                Target::At(..) => Err(self.mistake("a kernel sets registers and arrays")),
            })
            .collect::<Parsed<_>>()?;
        let single = self.eat_word("f32");
        let name = self.word();
        let Some(op) = plain_operation(name) else {
            return Err(self.mistake(format!("there is no kernel `{name}`")));
        };
        Ok(Stmt::Kernel { op, single, given: self.separated("", Cursor::given)?, taken })
    }

    fn named(&mut self) -> Parsed<Named> {
        let name = self.word();
        Named::of(name).ok_or_else(|| self.mistake(format!("there is no operation `{name}`")))
    }

    /// `<3>`, where a rule has that.
    fn parameter(&mut self, rule: Rule) -> Parsed<i32> {
        if !rule.is_parametric() {
            return Ok(0);
        }
        self.expect("<")?;
        let is_negative = self.eat("-");
        let number: i64 = self.number()?;
        self.expect(">")?;
        let signed = if is_negative { -number } else { number };
        i32::try_from(signed).map_err(|_| self.mistake("the number is too large"))
    }

    fn name(&mut self) -> Parsed<String> {
        let word = self.word();
        let name = if word.is_empty() { None } else { decode(word) };
        name.ok_or_else(|| self.mistake("expected a name"))
    }

    fn reg(&mut self) -> Parsed<Reg> {
        self.numbered('r').map(Reg).ok_or_else(|| self.mistake("expected a register"))
    }

    fn buf(&mut self) -> Parsed<Buf> {
        self.numbered('b').map(Buf).ok_or_else(|| self.mistake("expected a buffer"))
    }

    fn is_at_buffer(&self) -> bool {
        self.clone().numbered('b').is_some()
    }

    fn is_at_register(&self) -> bool {
        self.clone().numbered('r').is_some()
    }

    fn is_at_literal(&self) -> bool {
        let word = self.clone().number_word();
        // Even if it is none: no operation begins like this.
        word.starts_with(|c: char| c.is_ascii_digit() || c == '-') || literal(word).is_ok()
    }

    fn operand(&mut self) -> Parsed<Operand> {
        if let Some(reg) = self.numbered('r') {
            return Ok(Operand::Reg(Reg(reg)));
        }
        let here = *self;
        match literal(self.number_word()) {
            Ok(Literal::Real(value)) => Ok(Operand::Real(value)),
            Ok(Literal::Int(n)) => Ok(Operand::Int(n)),
            Ok(Literal::Bool(value)) => Ok(Operand::Bool(value)),
            Ok(Literal::Named(_)) | Err(_) => {
                Err(here.mistake("expected a register or a literal: `r1`, `2.5`, `3i`, `true`"))
            }
        }
    }

    fn operands<const N: usize>(&mut self) -> Parsed<[Operand; N]> {
        let operands = self.separated("", Cursor::operand)?;
        let count = operands.len();
        operands.try_into().map_err(|_| self.mistake(format!("expected {N} operands, found {count}")))
    }

    /// `2*r1 + r2 - 3`.
    fn index(&mut self) -> Parsed<Index> {
        let mut index = Index::default();
        let mut is_negative = self.eat("-");
        loop {
            let mut factor = 1_i128;
            let is_register = match self.is_at_register() {
                true => true,
                false => {
                    factor = self.number()?;
                    self.eat("*")
                }
            };
            if is_negative {
                factor = -factor;
            }
            let too_large = |_| self.mistake("the number is too large");
            let factor = i64::try_from(factor).map_err(too_large)?;
            if !is_register {
                index.constant = factor;
                return Ok(index);
            }
            index.terms.push((self.reg()?, factor));
            is_negative = match (self.eat("+"), self.eat("-")) {
                (false, false) => return Ok(index),
                (_, is_negative) => is_negative,
            };
        }
    }

    /// `b1[r2 + 3]`.
    fn element(&mut self) -> Parsed<(Buf, Index)> {
        let buf = self.buf()?;
        self.expect("[")?;
        let at = self.index()?;
        self.expect("]")?;
        Ok((buf, at))
    }

    /// `[3, 4]`.
    fn shape(&mut self) -> Parsed<Vec<usize>> {
        self.list("[", "]", Cursor::number)
    }

    fn place(&mut self) -> Parsed<Place> {
        let (buf, at) = self.element()?;
        Ok(Place { buf, at, shape: self.shape()? })
    }

    /// `b1[0][3 by 1, 4 by 3]`.
    fn matrix(&mut self) -> Parsed<Matrix> {
        let (buf, at) = self.element()?;
        let axis = |line: &mut Self| -> Parsed<(usize, usize)> {
            let size = line.number()?;
            line.expect("by")?;
            Ok((size, line.number()?))
        };
        self.expect("[")?;
        let (rows, down) = axis(self)?;
        self.expect(",")?;
        let (columns, along) = axis(self)?;
        self.expect("]")?;
        Ok(Matrix { buf, at, sizes: [rows, columns], steps: [down, along] })
    }

    fn port(&mut self) -> Parsed<Port> {
        Ok(match self.is_at_buffer() {
            true => Port::Array(self.place()?),
            false => Port::Scalar(self.operand()?),
        })
    }

    fn given(&mut self) -> Parsed<Given> {
        Ok(match self.is_at_buffer() {
            true => Given::Array(self.place()?),
            false => Given::Scalar(self.operand()?),
        })
    }

    /// `r1 in b2`, `b1[10] in b2`.
    fn kept(&mut self) -> Parsed<Kept> {
        if let Some(reg) = self.numbered('r') {
            self.expect("in")?;
            return Ok(Kept::Scalar { reg: Reg(reg), snapshots: self.buf()? });
        }
        let buf = self.buf()?;
        self.expect("[")?;
        let count = self.number()?;
        self.expect("]")?;
        self.expect("in")?;
        Ok(Kept::Array { buf, count, snapshots: self.buf()? })
    }

    /// `r1 in -2..30`.
    fn axis(&mut self) -> Parsed<(Reg, i64, i64)> {
        let reg = self.reg()?;
        self.expect("in")?;
        let end = |line: &mut Self| -> Parsed<i64> {
            let is_negative = line.eat("-");
            let number: i128 = line.number()?;
            let signed = if is_negative { -number } else { number };
            i64::try_from(signed).map_err(|_| line.mistake("the number is too large"))
        };
        let from = end(self)?;
        self.expect("..")?;
        Ok((reg, from, end(self)?))
    }
}
