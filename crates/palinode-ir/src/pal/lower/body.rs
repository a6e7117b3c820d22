//! One attempt at a body: its variables, scopes and open blocks.

use super::declare::GlobalKind;
use super::place::Place;
use super::state::State;
use super::value::{Known, Val, VarId, describe, describe_rank};
use super::{Facts, MAX_LEVELS, Module, defined_twice};
use crate::builder::FunctionBuilder;
use crate::diagnostic::Diagnostic;
use crate::op::{Literal, Op};
use crate::pal::syntax::ast::Name;
use crate::pal::{LengthSpec, Output};
use crate::program::{Function, Value};
use crate::types::{Elem, Span, Type};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The block of a `root` that is being lowered.
pub(super) struct RootFrame {
    /// How many scopes are open where its equations stand.
    pub(super) scopes: usize,
    /// What is 0, and where that is written.
    pub(super) equations: Vec<(Option<Val>, Span)>,
}

/// A variable of the body, whatever declared it.
pub(super) struct Variable {
    pub(super) name: Arc<str>,
    pub(super) span: Span,
    /// None once it is poison.
    pub(super) ty: Option<Type>,
    pub(super) kind: VariableKind,
    pub(super) used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableKind {
    Let,
    /// `declared`: its kind is written down. Otherwise a variable that starts as an integer may turn out to
    /// be real.
    Var {
        declared: bool,
    },
    Loop,
    Parameter,
    /// A param or an input of the file.
    Argument,
    /// The length of one.
    Length,
    Const,
    Output,
    /// Made by the lowering: flags and results.
    Hidden,
}

#[derive(Clone)]
pub(super) enum Binding {
    Variable(VarId),
    View(Arc<Place>, Span),
    Poison(Span),
}

/// A loop that is being lowered.
pub(super) struct LoopFrame {
    /// Set when it is left by `break`.
    pub(super) broke: Option<VarId>,
    /// Set when the rest of a round is skipped.
    pub(super) skipped: Option<VarId>,
}

pub(super) struct Body<'m, 'a> {
    pub(super) module: &'m mut Module<'a>,
    pub(super) b: FunctionBuilder,
    pub(super) variables: Vec<Variable>,
    pub(super) state: State,
    pub(super) scopes: Vec<HashMap<Arc<str>, Binding>>,
    pub(super) problems: Vec<Diagnostic>,
    /// The instance; none for the top level.
    pub(super) instance: Option<usize>,
    pub(super) facts: Facts,
    /// Whether the source says what the function returns.
    pub(super) returns_declared: bool,
    /// Found in this attempt.
    pub(super) promoted: HashMap<Span, Span>,
    pub(super) found_results: Option<Vec<Type>>,
    /// The lowest body of the stack whose results this attempt would have needed.
    pub(super) waits_for: Option<usize>,
    pub(super) loops: Vec<LoopFrame>,
    /// The innermost `root` whose block is being lowered, unless a `fixed_point` is inside it.
    pub(super) root: Option<RootFrame>,
    pub(super) returned: Option<VarId>,
    pub(super) results: Vec<VarId>,
    /// What is given out, in order.
    pub(super) outputs: Vec<(Output, Val)>,
    /// What the only `return`, at the end of a body, gives.
    pub(super) direct: Option<Vec<Val>>,
    /// The values that a variable has given its name to; kept only where copies are shown.
    named: HashSet<Value>,
    /// Only constants before this one can be seen.
    pub(super) const_limit: Option<usize>,
}

/// An attempt that is over.
pub(super) struct Attempt {
    pub(super) function: (Function, Vec<String>),
    pub(super) problems: Vec<Diagnostic>,
    /// What makes another attempt necessary.
    pub(super) again: Option<HashMap<Span, Span>>,
    pub(super) found_results: Option<Vec<Type>>,
    pub(super) waits_for: Option<usize>,
}

impl<'m, 'a> Body<'m, 'a> {
    pub(super) fn new(
        module: &'m mut Module<'a>,
        name: &str,
        instance: Option<usize>,
        facts: Facts,
    ) -> Body<'m, 'a> {
        Body {
            module,
            b: FunctionBuilder::new(name),
            variables: Vec::new(),
            state: State::default(),
            scopes: vec![HashMap::new()],
            problems: Vec::new(),
            instance,
            facts,
            returns_declared: false,
            promoted: HashMap::new(),
            found_results: None,
            waits_for: None,
            loops: Vec::new(),
            root: None,
            returned: None,
            results: Vec::new(),
            outputs: Vec::new(),
            direct: None,
            named: HashSet::new(),
            const_limit: None,
        }
    }

    /// Makes the arguments, lengths and constants of the file visible.
    pub(super) fn enter_main(&mut self) {
        for index in 0..self.module.arguments.len() {
            let argument = &self.module.arguments[index];
            let (name, ty) = (argument.name.clone(), argument.ty);
            let at = self.module.global_of.get(&name);
            let span = at.map_or(argument.span, |&at| self.module.globals[at].span);
            let known = |length: &LengthSpec| match length {
                LengthSpec::Known(n) => i64::try_from(*n).ok(),
                LengthSpec::Named(_) | LengthSpec::Any => None,
            };
            let lens = argument.lengths.iter().map(known).collect();
            let value = self.b.param(&name, ty);
            self.call_it(value, &name);
            let val = Val::new(value, ty).with_lens(lens);
            self.define_global(&name, span, VariableKind::Argument, Some(val));
        }
        for at in 0..self.module.globals.len() {
            let (name, span) = (self.module.globals[at].name.clone(), self.module.globals[at].span);
            match self.module.globals[at].kind {
                GlobalKind::Argument(_) => {}
                GlobalKind::Length { argument, axis } => {
                    let array = self.module.arguments[argument].name.clone();
                    let Some(array) = self.variable(&array).and_then(|id| self.state[id].val().cloned())
                    else {
                        continue;
                    };
                    self.b.at(span);
                    let array = self.operand(&array);
                    let dim = self.b.dim(array, axis);
                    self.call_it(dim, &name);
                    self.define_global(&name, span, VariableKind::Length, Some(Val::new(dim, Type::INT)));
                }
                GlobalKind::Const(_) => {
                    self.constant(at);
                }
            }
        }
    }

    /// Lowers the constant `at` and makes it visible.
    pub(super) fn constant(&mut self, at: usize) -> Option<VarId> {
        let global = &self.module.globals[at];
        let (name, span, kind) = (global.name.clone(), global.span, global.kind);
        if let Some(Binding::Variable(id)) = self.scopes[0].get(&name) {
            return Some(*id);
        }
        let GlobalKind::Const(expr) = kind else { return None };
        let limit = self.const_limit.replace(at);
        let val = self.expr(expr);
        self.const_limit = limit;
        self.b.at(span);
        let val = val.map(|val| self.as_variable(val, &name));
        Some(self.define_global(&name, span, VariableKind::Const, val))
    }

    pub(super) fn define_global(
        &mut self,
        name: &Arc<str>,
        span: Span,
        kind: VariableKind,
        val: Option<Val>,
    ) -> VarId {
        let id = self.new_variable(name.clone(), span, kind, val);
        self.scopes[0].insert(name.clone(), Binding::Variable(id));
        id
    }

    fn variable(&self, name: &str) -> Option<VarId> {
        match self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            Some(Binding::Variable(id)) => Some(*id),
            _ => None,
        }
    }

    pub(super) fn new_variable(
        &mut self,
        name: Arc<str>,
        span: Span,
        kind: VariableKind,
        val: Option<Val>,
    ) -> VarId {
        self.variables.push(Variable { name, span, ty: val.as_ref().map(|val| val.ty), kind, used: false });
        self.state.push(val.into());
        self.variables.len() - 1
    }

    /// A new name in the innermost scope. A name means one thing in a body.
    pub(super) fn define(&mut self, name: &Name, binding: Binding) {
        if let Some(first) = self.defined_at(&name.text) {
            self.problems.push(defined_twice(&name.text, name.span, first));
        }
        self.scopes.last_mut().expect("a scope is open").insert(name.text.clone(), binding);
    }

    /// Names a value.
    pub(super) fn call_it(&mut self, value: Value, name: &str) {
        self.b.name(value, name);
        if self.module.copies {
            self.named.insert(value);
        }
    }

    /// The value as a variable of this name has it. Where copies are shown, it gets a value of its own.
    pub(super) fn as_variable(&mut self, val: Val, name: &str) -> Val {
        let mut val = val;
        if self.module.copies {
            let value = self.operand(&val);
            val.value = Some(if self.named.contains(&value) { self.copy(value) } else { value });
        }
        if let Some(value) = val.value {
            self.call_it(value, name);
        }
        val
    }

    fn copy(&mut self, value: Value) -> Value {
        let ty = self.b.ty(value);
        let element = self.b.open(&[ty.with_rank(0)]);
        let block = self.b.close(&element);
        self.b.emit_blocks(Op::Fused, &[value], vec![block], &[ty])[0]
    }

    pub(super) fn define_variable(&mut self, name: &Name, kind: VariableKind, val: Option<Val>) -> VarId {
        let val = val.map(|val| self.as_variable(val, &name.text));
        let id = self.new_variable(name.text.clone(), name.span, kind, val);
        self.define(name, Binding::Variable(id));
        id
    }

    fn defined_at(&self, name: &str) -> Option<Span> {
        // What a function sees of the file may be hidden by its own names.
        let first = usize::from(self.instance.is_some());
        let binding = self.scopes[first..].iter().rev().find_map(|scope| scope.get(name))?;
        Some(match binding {
            Binding::Variable(id) => self.variables[*id].span,
            Binding::View(_, span) | Binding::Poison(span) => *span,
        })
    }

    /// What a name means here; reports it if it means nothing.
    pub(super) fn lookup(&mut self, name: &str, span: Span) -> Option<Binding> {
        if let Some(limit) = self.const_limit {
            return self.lookup_in_constant(name, span, limit);
        }
        if let Some(binding) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            let binding = binding.clone();
            if let Binding::Variable(id) = &binding {
                self.variables[*id].used = true;
                let name = self.variables[*id].name.clone();
                self.module.use_global(&name);
            }
            return Some(binding);
        }
        if let Some(&at) = self.module.global_of.get(name)
            && let Some(id) = self.constant(at)
        {
            return Some(Binding::Variable(id));
        }
        if !self.module.broken.contains(name) {
            self.unknown(name, span);
        }
        None
    }

    fn lookup_in_constant(&mut self, name: &str, span: Span, limit: usize) -> Option<Binding> {
        match self.module.global_of.get(name).copied() {
            Some(at) if at < limit && matches!(self.module.globals[at].kind, GlobalKind::Const(_)) => {
                self.constant(at).map(Binding::Variable)
            }
            Some(at) => {
                let first = self.module.globals[at].span;
                let message = format!("a constant cannot depend on `{name}`");
                let problem = Diagnostic::error("PAL0220", span, message)
                    .and(first, "defined here")
                    .note("constants are built from numbers and from constants before them");
                self.report(problem.help("use `let` instead of `const`"));
                None
            }
            None => {
                self.unknown(name, span);
                None
            }
        }
    }

    /// The variable behind a name, also through a view.
    pub(super) fn behind(&self, name: &str) -> Option<VarId> {
        match self.scopes.iter().rev().find_map(|scope| scope.get(name))? {
            Binding::Variable(id) => Some(*id),
            Binding::View(place, _) => place.variable(),
            Binding::Poison(_) => None,
        }
    }

    /// Whether nothing defines a name.
    pub(super) fn is_unknown(&self, name: &str) -> bool {
        let defined = self.scopes.iter().any(|scope| scope.contains_key(name));
        !defined && !self.module.global_of.contains_key(name) && !self.module.broken.contains(name)
    }

    pub(super) fn report(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    pub(super) fn error<T>(&mut self, problem: Diagnostic) -> Option<T> {
        self.problems.push(problem);
        None
    }

    /// Goes one level down, unless that is too deep.
    pub(super) fn deeper<T>(&mut self, span: Span, go: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.module.levels >= MAX_LEVELS {
            let problem =
                Diagnostic::error("PAL0204", span, "too many blocks, calls or operators inside each other")
                    .help("give parts of it names with `let`, or use fewer functions that call each other");
            return self.error(problem);
        }
        self.module.levels += 1;
        let result = go(self);
        self.module.levels -= 1;
        result
    }

    /// The SSA value; a literal is written into the program here.
    pub(super) fn operand(&mut self, val: &Val) -> Value {
        if let Some(value) = val.value {
            return value;
        }
        let literal = match val.known.expect("a value is known or computed") {
            Known::Int(value) => Literal::Int(value),
            Known::Real(value) => Literal::Real(value),
            Known::Bool(value) => Literal::Bool(value),
        };
        self.b.literal(literal)
    }

    pub(super) fn operands(&mut self, vals: &[&Val]) -> Vec<Value> {
        vals.iter().map(|val| self.operand(val)).collect()
    }

    /// Applies an operation with one result.
    pub(super) fn emit(&mut self, op: Op, args: &[&Val]) -> Val {
        let args = self.operands(args);
        let value = self.b.emit(op, &args);
        Val::new(value, self.b.ty(value))
    }

    /// As a real number or array of them.
    pub(super) fn realized(&mut self, val: &Val) -> Val {
        if val.ty.is_real() {
            return val.clone();
        }
        match val.known {
            Some(Known::Int(value)) => Val::real(value as f64),
            _ => self.emit(Op::Convert(Elem::F64), &[val]).with_lens(val.lens.clone()),
        }
    }

    /// Fits a value to a type: integers become real where reals are wanted.
    pub(super) fn fit(&mut self, val: &Val, ty: Type, span: Span, what: &str) -> Option<Val> {
        if val.ty.rank != ty.rank {
            let message = format!("{what} is {}, not {}", describe_rank(ty.rank), describe_rank(val.ty.rank));
            return self.error(Diagnostic::error("PAL0210", span, message).saying(describe(val.ty)));
        }
        if val.ty.elem == ty.elem {
            return Some(val.clone());
        }
        if ty.is_real() && val.ty.elem == Elem::Int {
            return Some(self.realized(val));
        }
        let message = format!("{what} is {}, not {}", describe(ty), describe(val.ty));
        let mut problem = Diagnostic::error("PAL0209", span, message).saying(describe(val.ty));
        if ty.elem == Elem::Int && val.ty.is_real() {
            problem.help = Some("`floor(x)`, `round(x)` and `int(x)` make integers".into());
        }
        self.error(problem)
    }

    pub(super) fn finish_main(mut self, outputs: &[(Output, Val)]) -> Attempt {
        let results: Vec<Value> = outputs.iter().map(|(_, val)| self.operand(val)).collect();
        self.warn_unused();
        self.finish(&results)
    }

    pub(super) fn finish(self, results: &[Value]) -> Attempt {
        Attempt {
            function: self.b.finish(results),
            problems: self.problems,
            again: (!self.promoted.is_empty()).then_some(self.promoted),
            found_results: self.found_results,
            waits_for: self.waits_for,
        }
    }

    pub(super) fn warn_unused(&mut self) {
        let mut problems = Vec::new();
        for variable in &self.variables {
            let what = match variable.kind {
                VariableKind::Let | VariableKind::Var { .. } if !variable.used => "is never used",
                VariableKind::Argument
                    if self.instance.is_none() && !self.module.used_names.contains(&variable.name) =>
                {
                    "is declared but never used"
                }
                _ => continue,
            };
            if variable.name.starts_with('_') {
                continue;
            }
            problems.push(Diagnostic::warning(
                "PAL0230",
                variable.span,
                format!("`{}` {what}", variable.name),
            ));
        }
        self.problems.extend(problems);
    }
}
