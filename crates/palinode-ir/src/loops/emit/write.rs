//! The walk over a loop form, which both languages share: what becomes a variable, what an expression, what a
//! function of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use palinode_core::rules::Row;

use super::super::form::{Buf, Index, Kind, LoopForm, Operand, Reg, Stmt};
use super::super::passes::touch::Touch;
use super::super::verify::Unproven;
use super::Options;
use super::arithmetic;
use super::frame::Frame;
use super::language::{Declared, Language, NOTES, SUSPICIONS, SUSPICIONS_HERE};
use super::names::Names;
use super::support::Needs;
use super::text::{Level, Text};
use super::uses::{Spot, Uses};
use crate::op::Rule;
use crate::types::Span;

/// So many operators at most are in one expression, besides its own.
const LONG: usize = 5;

/// So many statements at most are between an expression and its use.
const FAR: usize = 30;

/// An expression, and what it is made from.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) text: Text,
    registers: Vec<Reg>,
    buffers: Vec<Buf>,
    operators: usize,
}

/// What is being written.
pub(super) struct Writer<'f> {
    pub(super) form: &'f LoopForm,
    pub(super) unproven: &'f Unproven,
    pub(super) language: &'f dyn Language,
    pub(super) options: &'f Options<'f>,
    /// Whether it is noted how suspicious comparisons of reals are.
    pub(super) watches: bool,
    pub(super) names: Names,
    pub(super) uses: Uses,
    pub(super) needs: Needs,
    /// Expressions that wait for the statement that reads them.
    waiting: HashMap<Reg, Made>,
    /// Counters of one round only.
    pub(super) fixed: HashMap<Reg, i64>,
    /// Registers that count rounds, and are places.
    pub(super) counters: HashSet<Reg>,
    /// The fused loop that is being written, if it is one.
    pub(super) frame: Option<Frame>,
    pub(super) out: Vec<String>,
    pub(super) depth: usize,
    /// How many loops are around.
    pub(super) loops: usize,
    blocks: usize,
    /// What the names of fused loops begin with.
    pub(super) prefix: String,
    /// Fused loops that are done.
    pub(super) functions: Vec<String>,
    /// The line of the source that is being computed.
    pub(super) line: u32,
    /// Whether what is not finite is noted since it was last looked at.
    pub(super) notes: bool,
    /// Whether it is noted anywhere.
    pub(super) has_notes: bool,
    /// Whether suspicions are noted here.
    pub(super) suspects: bool,
}

impl<'f> Writer<'f> {
    pub(super) fn new(
        form: &'f LoopForm,
        unproven: &'f Unproven,
        language: &'f dyn Language,
        options: &'f Options<'f>,
        watches: bool,
        inputs: &[Arc<str>],
    ) -> Writer<'f> {
        Writer {
            form,
            unproven,
            language,
            options,
            watches,
            names: Names::new(form, inputs),
            uses: Uses::of(form),
            needs: Needs::default(),
            waiting: HashMap::new(),
            fixed: HashMap::new(),
            counters: HashSet::new(),
            frame: None,
            out: Vec::new(),
            depth: 1,
            loops: 0,
            blocks: 0,
            prefix: String::new(),
            functions: Vec::new(),
            line: 0,
            notes: false,
            has_notes: false,
            suspects: false,
        }
    }

    pub(super) fn push(&mut self, line: impl AsRef<str>) {
        let (line, pad) = (line.as_ref(), "    ".repeat(self.depth));
        self.out.push(if line.is_empty() { String::new() } else { format!("{pad}{line}") });
    }

    pub(super) fn extend(&mut self, lines: Vec<String>) {
        lines.iter().for_each(|line| self.push(line));
    }

    /// The line to name if something stops here; a fused loop does not know it.
    pub(super) fn here(&self) -> Option<u32> {
        if self.frame.is_some() { None } else { Some(self.line) }
    }

    /// A number for the next block, in the order in which [`Uses`] saw them.
    pub(super) fn next_block(&mut self) -> usize {
        self.blocks += 1;
        self.blocks - 1
    }

    pub(super) fn call(&mut self, name: &'static str, args: &[String]) -> Text {
        self.needs.add(name);
        self.language.call(name, args)
    }

    pub(super) fn row(&mut self, rule: Rule, args: &[Text]) -> Text {
        // A branch is faster from one number to the next, but keeps loops over elements from being
        // vectorised.
        if rule.row == Row::StrongMul && self.frame.is_some() {
            let args: Vec<String> = args.iter().map(|arg| arg.text.clone()).collect();
            return self.call("strong_mul_by_choice", &args);
        }
        arithmetic::row(self.language, rule, args, &mut |name, args| self.call(name, args))
    }

    fn nothing() -> Made {
        Made { text: Text::atom(""), registers: Vec::new(), buffers: Vec::new(), operators: 0 }
    }

    /// An operand as an expression.
    pub(super) fn operand(&mut self, operand: Operand) -> Text {
        let mut made = Self::nothing();
        self.read(operand, &mut made)
    }

    /// An operand as an expression that becomes a part of another one.
    fn read(&mut self, operand: Operand, into: &mut Made) -> Text {
        match operand {
            Operand::Real(value) => self.language.real(value),
            Operand::Int(n) => self.language.int(n),
            Operand::Bool(value) => Text::atom(if value { "true" } else { "false" }),
            Operand::Reg(reg) => {
                if let Some(made) = self.waiting.remove(&reg) {
                    into.registers.extend(made.registers);
                    into.buffers.extend(made.buffers);
                    into.operators += made.operators + 1;
                    return made.text;
                }
                into.registers.push(reg);
                self.register(reg)
            }
        }
    }

    /// What a register holds.
    pub(super) fn register(&mut self, reg: Reg) -> Text {
        if let Some(&n) = self.fixed.get(&reg) {
            return self.language.int(n);
        }
        let name = self.names.register(reg);
        if self.counters.contains(&reg) { self.language.of_counter(&name) } else { Text::atom(name) }
    }

    /// The integer that an index is.
    pub(super) fn integer(&mut self, index: &Index) -> Text {
        let (constant, terms) = self.settled(index);
        let terms: Vec<(i64, Text)> =
            terms.iter().map(|&(reg, factor)| (factor, self.register(reg))).collect();
        self.linear(&terms, constant)
    }

    /// A place in an array.
    pub(super) fn place(&mut self, index: &Index) -> String {
        let (constant, terms) = self.settled(index);
        if terms.iter().all(|term| self.counters.contains(&term.0)) {
            // Places and counters are not negative: what only takes away takes nothing away.
            if constant == 0 && terms.iter().all(|term| term.1 < 0) {
                return "0".into();
            }
            let terms: Vec<(i64, Text)> =
                terms.iter().map(|&(reg, factor)| (factor, Text::atom(self.names.register(reg)))).collect();
            return self.linear(&terms, constant).text;
        }
        let integer = self.integer(index);
        self.language.place(&integer)
    }

    /// An index with the counters that have one round only as numbers.
    fn settled(&self, index: &Index) -> (i64, Vec<(Reg, i64)>) {
        let (mut constant, mut terms) = (index.constant, Vec::new());
        for &(reg, factor) in &index.terms {
            match self.fixed.get(&reg) {
                Some(n) => constant = constant.wrapping_add(n.wrapping_mul(factor)),
                None => terms.push((reg, factor)),
            }
        }
        (constant, terms)
    }

    /// A sum; what is added comes first, so that no part of it is negative if the whole is not.
    fn linear(&mut self, terms: &[(i64, Text)], constant: i64) -> Text {
        let mut sum: Option<Text> = None;
        let added = terms.iter().filter(|term| term.0 > 0);
        let taken = terms.iter().filter(|term| term.0 < 0);
        let mut add = |op: &str, term: Text| {
            sum = Some(match &sum {
                None if op == "-" => Text::prefix("-", &term),
                None => term,
                Some(sum) => Text::binary(op, Level::Sum, sum, &term),
            });
        };
        let multiple = |factor: u64, term: &Text| match factor {
            1 => term.clone(),
            _ => Text::binary("*", Level::Product, &Text::atom(factor.to_string()), term),
        };
        for (factor, term) in added {
            add("+", multiple(factor.unsigned_abs(), term));
        }
        if constant > 0 {
            add("+", Text::atom(constant.to_string()));
        }
        for (factor, term) in taken {
            add("-", multiple(factor.unsigned_abs(), term));
        }
        if constant < 0 {
            add("-", Text::atom(constant.unsigned_abs().to_string()));
        }
        sum.unwrap_or_else(|| self.language.int(constant))
    }

    /// Where the source says what sets a register.
    pub(super) fn goes_to(&mut self, reg: Reg) {
        if let Some(origin) = self.form.origins.get(reg.index())
            && let Some(line) = self.line_of(origin.span)
        {
            self.line = line;
        }
    }

    fn line_of(&self, span: Span) -> Option<u32> {
        if span.is_none() { None } else { (self.options.line_of)(span) }
    }

    /// Sets a register to an expression without effects: now, or where it is read.
    fn value(&mut self, stmts: &[Stmt], spot: Spot, to: Reg, made: Made) {
        let of = &self.uses.of[to.index()];
        if of.reads == 0 {
            return;
        }
        if self.can_wait(stmts, spot, to, &made) {
            self.waiting.insert(to, made);
            return;
        }
        let text = made.text.text;
        self.set(spot, to, &text);
    }

    fn can_wait(&self, stmts: &[Stmt], spot: Spot, to: Reg, made: &Made) -> bool {
        let of = &self.uses.of[to.index()];
        let Some(read_at) = of.read_at else { return false };
        let is_once = of.sets == 1 && of.reads == 1 && read_at.0 == spot.0;
        if !is_once || made.operators >= LONG || read_at.1 <= spot.1 || read_at.1 - spot.1 > FAR {
            return false;
        }
        // A name says more than an expression, unless it is that of the next round's value.
        let is_moved = matches!(stmts.get(read_at.1), Some(Stmt::Move { .. }));
        if self.names.has_own(to) && !is_moved && made.operators > 0 {
            return false;
        }
        stmts[spot.1 + 1..read_at.1].iter().all(|stmt| {
            let touch = Touch::of(stmt);
            !made.registers.iter().any(|reg| touch.sets.contains(reg) && !matches!(stmt, Stmt::Within { .. }))
                && !made.buffers.iter().any(|buf| touch.writes.contains(buf))
        })
    }

    /// Sets a register.
    pub(super) fn set(&mut self, spot: Spot, to: Reg, text: &str) {
        let of = &self.uses.of[to.index()];
        let (declares, again) = (of.is_declared_by_setting() && of.home() == Some(spot), of.sets > 1);
        let name = self.names.register(to);
        let line = match declares {
            true => self.language.declare(&name, self.form.registers[to.index()], text, again),
            false => format!("{name} = {text};"),
        };
        self.push(line);
    }

    /// Sets a register to an integer that something may fail to give.
    fn set_or_stop(&mut self, spot: Spot, to: Reg, name: &'static str, args: &[String]) {
        let of = &self.uses.of[to.index()];
        let (declares, again) = (of.is_declared_by_setting() && of.home() == Some(spot), of.sets > 1);
        let to = self.names.register(to);
        let to = Declared { name: &to, here: declares, is_set_again: again };
        self.attempt_int(&to, name, args);
    }

    pub(super) fn may_stop(&mut self) {
        if let Some(frame) = &mut self.frame {
            frame.may_stop = true;
        }
    }

    fn attempt_int(&mut self, to: &Declared<'_>, name: &'static str, args: &[String]) {
        self.needs.add(name);
        self.may_stop();
        let lines = self.language.attempt_int(to, name, args, self.here());
        self.extend(lines);
    }

    /// Calls what may stop.
    fn attempt(&mut self, name: &'static str, args: &[String]) {
        let call = self.call(name, args).text;
        self.may_stop();
        let line = self.language.attempt(&call, self.here());
        self.push(line);
    }

    /// A block of statements.
    pub(super) fn block(&mut self, stmts: &[Stmt]) {
        let block = self.next_block();
        self.statements(block, stmts);
    }

    /// The same, with its number.
    pub(super) fn statements(&mut self, block: usize, stmts: &[Stmt]) {
        for (at, stmt) in stmts.iter().enumerate() {
            self.declarations((block, at));
            self.stmt(stmts, (block, at), stmt);
            if self.loops == 0 && self.frame.is_none() && !stmt.blocks().is_empty() {
                self.look();
            }
        }
    }

    /// Variables that a statement sets deep inside.
    pub(super) fn declarations(&mut self, spot: Spot) {
        for reg in self.uses.before.remove(&spot).unwrap_or_default() {
            let kind = self.form.registers[reg.index()];
            let zero = match kind {
                Kind::Real => "0.0",
                Kind::Int => "0",
                Kind::Bool => "false",
            };
            let name = self.names.register(reg);
            let line = self.language.declare(&name, kind, zero, true);
            self.push(line);
        }
    }

    /// Notes that bits should be zero.
    fn note(&mut self, bits: &str) {
        (self.notes, self.has_notes) = (true, true);
        self.may_stop();
        self.push(format!("{NOTES} |= {bits};"));
    }

    /// Looks at what was noted.
    pub(super) fn look(&mut self) {
        if self.notes {
            self.notes = false;
            self.attempt("finite", &[NOTES.into()]);
        }
    }

    fn stmt(&mut self, stmts: &[Stmt], spot: Spot, stmt: &Stmt) {
        let mut made = Self::nothing();
        match stmt {
            Stmt::Move { to, from } => {
                made.text = self.read(*from, &mut made);
                self.value(stmts, spot, *to, made);
            }
            Stmt::Map { rule, to, args } => {
                self.goes_to(*to);
                let args: Vec<Text> = args.iter().map(|&arg| self.read(arg, &mut made)).collect();
                made.text = self.row(*rule, &args);
                made.operators += 1;
                self.value(stmts, spot, *to, made);
            }
            Stmt::Round32 { to, a } => {
                let a = self.read(*a, &mut made);
                made.text = self.language.round32(&a);
                made.operators += 1;
                self.value(stmts, spot, *to, made);
            }
            Stmt::Int { op, to, a, b } => {
                self.goes_to(*to);
                let (a, b) = (self.read(*a, &mut made), self.read(*b, &mut made));
                match arithmetic::integer(*op, &a, &b, stmt, &mut |name, args| self.call(name, args)) {
                    arithmetic::Integer::Value(text) => {
                        made.text = text;
                        made.operators += 1;
                        self.value(stmts, spot, *to, made);
                    }
                    arithmetic::Integer::MayStop(name) => {
                        self.set_or_stop(spot, *to, name, &[a.text, b.text])
                    }
                }
            }
            Stmt::Index { to, index } => {
                made.text = self.integer(index);
                made.registers.extend(index.terms.iter().map(|term| term.0));
                made.operators += index.terms.len();
                self.value(stmts, spot, *to, made);
            }
            Stmt::Compare { op, to, a, b } => {
                self.goes_to(*to);
                if self.watches {
                    self.suspect(*a, *b);
                }
                let (a, b) = (self.read(*a, &mut made), self.read(*b, &mut made));
                made.text = arithmetic::comparison(*op, &a, &b);
                made.operators += 1;
                self.value(stmts, spot, *to, made);
            }
            Stmt::And { to, a, b } | Stmt::Or { to, a, b } => {
                let (a, b) = (self.read(*a, &mut made), self.read(*b, &mut made));
                let (op, level) =
                    if matches!(stmt, Stmt::And { .. }) { ("&&", Level::And) } else { ("||", Level::Or) };
                // Compilers ask for parentheses around `and` in `or`.
                let wrapped = |x: Text| {
                    if level == Level::Or && x.level == Level::And {
                        Text::atom(format!("({})", x.text))
                    } else {
                        x
                    }
                };
                made.text = Text::binary(op, level, &wrapped(a), &wrapped(b));
                made.operators += 1;
                self.value(stmts, spot, *to, made);
            }
            Stmt::Not { to, a } => {
                let a = self.read(*a, &mut made);
                made.text = Text::prefix("!", &a);
                made.operators += 1;
                self.value(stmts, spot, *to, made);
            }
            Stmt::Select { to, holds, a, b } => {
                self.goes_to(*to);
                let (holds, a, b) =
                    (self.read(*holds, &mut made), self.read(*a, &mut made), self.read(*b, &mut made));
                made.text = self.language.choice(&holds, &a, &b);
                made.operators += 2;
                self.value(stmts, spot, *to, made);
            }
            Stmt::Truncate { to, a } => {
                self.goes_to(*to);
                let a = self.read(*a, &mut made).text;
                self.set_or_stop(spot, *to, "truncate", &[a]);
            }
            Stmt::Convert { to, a } => {
                let a = self.read(*a, &mut made);
                made.text = self.call("real", &[a.text]);
                made.operators += 1;
                self.value(stmts, spot, *to, made);
            }
            Stmt::Load { to, buf, at } => {
                self.goes_to(*to);
                made.text = self.element(stmt, *buf, at);
                made.registers.extend(at.terms.iter().map(|term| term.0));
                made.buffers.push(*buf);
                self.value(stmts, spot, *to, made);
            }
            Stmt::Store { buf, at, from } => {
                let from = self.operand(*from).text;
                let element = self.element(stmt, *buf, at).text;
                self.push(format!("{element} = {from};"));
            }
            Stmt::Finite { a } => {
                if let Operand::Reg(reg) = a {
                    self.goes_to(*reg);
                }
                let a = self.operand(*a).text;
                let bits = self.call("bits", &[format!("{a} - {a}")]).text;
                self.note(&bits);
            }
            Stmt::AllFinite { place } => {
                let place = self.stretch(place, false);
                self.attempt("all_finite", &place);
            }
            Stmt::Within { a, length } => {
                let (a, length) = (self.operand(*a).text, self.operand(*length).text);
                self.attempt("within", &[a, length]);
            }
            Stmt::Holds { a } => {
                let a = self.operand(*a).text;
                self.attempt("holds", &[a]);
            }
            Stmt::Stop => self.attempt("never", &[]),
            Stmt::Step => self.count("1"),
            Stmt::For { counter, rounds, descending, counts, body } => {
                self.goes_to(*counter);
                let rounds = self.operand(*rounds);
                let count = self.language.count(&rounds);
                if *counts && self.options.counts {
                    self.count(&count.clone());
                }
                let name = self.names.counter(*counter, self.loops);
                self.counters.insert(*counter);
                self.inside(self.language.rounds(&name, "0", &count, *descending), |writer| {
                    writer.block(body)
                });
            }
            Stmt::While { condition, holds, body } => {
                self.inside(self.language.endless().to_string(), |writer| {
                    let block = writer.next_block();
                    writer.statements(block, condition);
                    writer.declarations((block, condition.len()));
                    let holds = writer.operand(*holds);
                    let line = writer.language.leave_unless(&holds);
                    writer.push(line);
                    writer.count("1");
                    writer.block(body);
                });
            }
            Stmt::If { holds, then, other } => {
                let holds = self.operand(*holds);
                let head = self.language.branch(&holds);
                self.push(head);
                self.depth += 1;
                self.block(then);
                self.depth -= 1;
                if other.is_empty() {
                    self.next_block();
                } else {
                    self.push("} else {");
                    self.depth += 1;
                    self.block(other);
                    self.depth -= 1;
                }
                self.push("}");
            }
            Stmt::Each { axes, body } => self.each(axes, body),
            Stmt::Function { rule, place } => {
                self.function_of_all(*rule, place);
            }
            Stmt::Reduce { kind, from, to } => self.reduce(spot, *kind, from, to),
            Stmt::Product { strong, a, b, to, adds } => {
                let mut args = self.stretch(to, true);
                args.extend([self.matrix(a), self.matrix(b)]);
                let columns = b.sizes[1];
                let name = match (adds, strong) {
                    (false, false) => "product",
                    (false, true) => "strong_product",
                    (true, false) => "add_product",
                    (true, true) => "add_strong_product",
                };
                self.needs.add(name);
                let product = self.language.product(name, if *strong { None } else { Some(columns) });
                let call = self.language.call(&product, &args).text;
                self.push(format!("{call};"));
            }
            Stmt::Dots { strong, a, x, to } => self.dots(spot, *strong, a, x, to),
            Stmt::Swap { a, b } => {
                let line = self.language.swap(self.names.buffer(*a), self.names.buffer(*b));
                self.push(line);
            }
            Stmt::Kernel { .. } | Stmt::Sweep { .. } | Stmt::Reserve { .. } => {
                unreachable!("`supported` has refused it")
            }
        }
    }

    /// Something with braces around it, in a loop.
    pub(super) fn inside(&mut self, head: String, body: impl FnOnce(&mut Self)) {
        self.push(head);
        self.depth += 1;
        self.loops += 1;
        body(self);
        self.loops -= 1;
        self.depth -= 1;
        self.push("}");
    }

    /// Counts steps.
    fn count(&mut self, rounds: &str) {
        self.needs.counts = true;
        let steps = self.language.steps().to_string();
        self.attempt("take_steps", &[steps, rounds.to_string()]);
    }

    /// Notes how suspicious a comparison is, if it is one of reals.
    fn suspect(&mut self, a: Operand, b: Operand) {
        if self.form.kind(a) != Kind::Real {
            return;
        }
        let texts = [a, b].map(|operand| {
            self.settle(operand);
            self.operand(operand).text
        });
        let suspicion = self.call("suspicion", &texts).text;
        self.suspects = true;
        let noted = if self.frame.is_some() { SUSPICIONS_HERE } else { SUSPICIONS };
        self.push(format!("{noted} |= {suspicion};"));
    }

    /// Makes a variable of an expression that is to be read more than once.
    fn settle(&mut self, operand: Operand) {
        if let Operand::Reg(reg) = operand
            && let Some(made) = self.waiting.remove(&reg)
        {
            let name = self.names.register(reg);
            let line = self.language.declare(&name, self.form.registers[reg.index()], &made.text.text, false);
            self.push(line);
        }
    }

    /// An element that is read or set; where nothing says that it is inside, that is looked at first.
    fn element(&mut self, stmt: &Stmt, buf: Buf, at: &Index) -> Text {
        if self.unproven.contains(stmt) {
            let integer = self.integer(at).text;
            let length = self.form.buffers[buf.index()].length.to_string();
            let name = self.names.unique("at");
            let to = Declared { name: &name, here: true, is_set_again: false };
            self.attempt_int(&to, "inside", &[integer, length]);
            let array = self.array_of(buf);
            return Text::atom(format!("{array}[{}]", self.language.place(&Text::atom(name))));
        }
        let (array, at) = self.access(buf, at);
        Text::atom(format!("{array}[{at}]"))
    }
}
