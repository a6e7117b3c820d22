//! `fixed_point` and `root`: the block becomes a function of its unknowns and of what it reads besides; the
//! search and the derivative are written when all functions are there ([`crate::implicit`]).

use super::body::{Body, RootFrame, VariableKind};
use super::place::Base;
use super::value::{Held, VarId, describe};
use crate::diagnostic::Diagnostic;
use crate::implicit::{self, Form, Functions};
use crate::op::Op;
use crate::pal::names;
use crate::pal::syntax::ast::{Block, Equation, Expr, ExprKind, Name, Stmt, StmtKind};
use crate::program::Value;
use crate::types::{Elem, Span, Type};
use std::collections::HashMap;

const CODE: &str = "PAL0224";

/// Whether something is a written zero: the left side of an equation.
pub(super) fn is_zero(expr: &Expr) -> bool {
    match expr.kind {
        ExprKind::Int(value) => value == 0,
        ExprKind::Real(value) => value == 0.0,
        _ => false,
    }
}

/// Where a block first assigns this name.
fn first_assignment(block: &Block, name: &str) -> Option<Span> {
    let mut found = None;
    let mut look = |stmt: &Stmt| {
        if let StmtKind::Assign { targets, .. } = &stmt.kind
            && found.is_none()
            && targets.iter().any(|target| names::root(target).is_some_and(|root| **root == *name))
        {
            found = Some(stmt.span);
        }
    };
    for stmt in &block.stmts {
        look(stmt);
        names::walk_stmt(stmt, &mut |_| {}, &mut look);
    }
    found
}

impl Body<'_, '_> {
    pub(super) fn equation(&mut self, written: &Equation, span: Span) {
        let ids: Vec<Option<VarId>> = written.unknowns.iter().map(|name| self.unknown_of(name)).collect();
        let is_function = self.is_function(written, &ids);
        let ids: Option<Vec<VarId>> = ids.into_iter().collect();
        let Some(ids) = ids.filter(|_| is_function) else {
            return self.no_solution(written);
        };
        let lowered = self.equation_block(written, &ids, span);
        match lowered {
            Some((starts, results)) => self.solution(written, &ids, &starts, results, span),
            None => self.no_solution(written),
        }
    }

    /// What depends on the solution of an equation with mistakes is not looked at.
    fn no_solution(&mut self, written: &Equation) {
        for name in &written.unknowns {
            if let Some(id) = self.behind(&name.text) {
                self.state[id] = Held::Poison;
            }
        }
    }

    /// The variable of an unknown.
    fn unknown_of(&mut self, name: &Name) -> Option<VarId> {
        let expr = Expr { kind: ExprKind::Name(name.text.clone()), span: name.span, depth: 1 };
        let place = self.target(&expr)?;
        let Base::Variable(id) = place.base else { return None };
        if !place.is_whole() {
            let message = format!("`{}` is a view, not a variable to solve for", name.text);
            let problem = Diagnostic::error(CODE, name.span, message);
            return self
                .error(problem.help("solve for a variable of its own and assign the view afterwards"));
        }
        let ty = self.variables[id].ty?;
        if ty.is_real() {
            return self.state[id].val().map(|_| id);
        }
        let first = self.variables[id].span;
        if ty.elem == Elem::Int && self.variables[id].kind == (VariableKind::Var { declared: false }) {
            self.promoted.entry(first).or_insert(name.span);
            return None;
        }
        let message = format!("an unknown is real, `{}` is {}", name.text, describe(ty));
        self.error(Diagnostic::error("PAL0209", name.span, message).and(first, "defined here"))
    }

    /// Whether the block maps its unknowns to something and does nothing else.
    fn is_function(&mut self, written: &Equation, ids: &[Option<VarId>]) -> bool {
        let before = self.problems.len();
        let word = written.form.name();
        for (at, name) in written.unknowns.iter().enumerate() {
            if written.unknowns[..at].iter().any(|other| other.text == name.text) {
                let message = format!("`{}` is listed twice", name.text);
                self.report(Diagnostic::error(CODE, name.span, message).help("list each unknown once"));
            }
        }
        if let Some(stmt) = written.body.stmts.iter().find(|stmt| names::exits_of(stmt).any()) {
            let message = format!("the block of a `{word}` cannot be left");
            let problem = Diagnostic::error(CODE, stmt.span, message);
            let note = "it is evaluated as often as the search needs, and its end says what the unknowns are";
            self.report(problem.note(note).help("choose between values with `if c then a else b`"));
        }
        let assigned = names::assigned(&written.body);
        for name in assigned.keys() {
            let Some(id) = self.behind(name) else { continue };
            let is_unknown =
                written.unknowns.iter().any(|unknown| unknown.text == *name) || ids.contains(&Some(id));
            if written.form == Form::FixedPoint && is_unknown {
                continue;
            }
            let place = first_assignment(&written.body, name).unwrap_or(written.unknowns[0].span);
            let message = format!("the block of a `{word}` cannot change `{name}`");
            let note = "it is evaluated as often as the search needs, so that what it changes would depend on the search";
            let help = match written.form {
                Form::FixedPoint => format!(
                    "use a variable of the block, `let`, or solve for it: `{word} x, {name} {{ ... }}`"
                ),
                Form::Root => {
                    "an equation of a `root` reads `0 = ...`; use `let` for what it needs".to_string()
                }
            };
            self.report(Diagnostic::error(CODE, place, message).note(note).help(help));
        }
        if written.form == Form::FixedPoint {
            for name in written.unknowns.iter().filter(|name| !assigned.contains_key(&name.text)) {
                let message = format!("the block does not say what `{}` equals", name.text);
                let help = format!("assign it: `{} = ...`", name.text);
                self.report(Diagnostic::error(CODE, name.span, message).help(help));
            }
        }
        self.problems.len() == before
    }

    /// Lowers the block; gives the start, and the block with its results.
    fn equation_block(
        &mut self,
        written: &Equation,
        ids: &[VarId],
        span: Span,
    ) -> Option<(Vec<Value>, crate::program::Block)> {
        let (starts, types) = (self.current(ids), self.types_of(ids));
        let given: Vec<Held> = ids.iter().map(|&id| self.state[id].clone()).collect();
        let before = self.state.mark();
        let params = self.b.open(&types);
        self.rebind(ids, &params);
        let loops = core::mem::take(&mut self.loops);
        self.scopes.push(HashMap::new());
        let frame = RootFrame { scopes: self.scopes.len(), equations: Vec::new() };
        let is_root = written.form == Form::Root;
        let outer = core::mem::replace(&mut self.root, is_root.then_some(frame));
        self.deeper(span, |this| {
            this.sequence(&written.body.stmts, None);
            Some(())
        });
        let frame = core::mem::replace(&mut self.root, outer);
        self.scopes.pop();
        self.loops = loops;
        self.b.at(span);
        let results = match frame {
            None => self.next_values(written, ids, &given),
            Some(frame) => self.residuals(written, &types, frame),
        };
        let block = self.b.close(results.as_deref().unwrap_or_default());
        let params = if results.is_some() { starts.clone() } else { Vec::new() };
        self.leave_loop(&ids[..params.len()], before, &params);
        results.map(|_| (starts, block))
    }

    /// What the unknowns of a fixed point are at the end of its block.
    fn next_values(&mut self, written: &Equation, ids: &[VarId], given: &[Held]) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        for ((&id, name), given) in ids.iter().zip(&written.unknowns).zip(given) {
            let next = self.state[id].val()?.clone();
            let start = given.val()?;
            for (axis, (a, b)) in start.lens.iter().zip(&next.lens).enumerate() {
                if let (Some(a), Some(b)) = (a, b)
                    && a != b
                {
                    let message =
                        format!("`{}` has length {a} along axis {axis}, what it is equal to {b}", name.text);
                    let place = first_assignment(&written.body, &name.text).unwrap_or(name.span);
                    return self.error(Diagnostic::error("PAL0211", place, message));
                }
            }
            values.push(next.value?);
        }
        Some(values)
    }

    /// What the equations of a root say is 0.
    fn residuals(&mut self, written: &Equation, types: &[Type], frame: RootFrame) -> Option<Vec<Value>> {
        let (unknowns, found) = (written.unknowns.len(), frame.equations.len());
        if unknowns != found {
            let s = |n: usize| if n == 1 { "" } else { "s" };
            let message = format!("{unknowns} unknown{}, but {found} equation{}", s(unknowns), s(found));
            let place = frame.equations.get(unknowns).map_or(written.unknowns[0].span, |(_, span)| *span);
            let help = "an equation reads `0 = ...` and stands in the block itself, one for each unknown";
            return self.error(Diagnostic::error(CODE, place, message).help(help));
        }
        let mut values = Vec::new();
        for ((val, place), (&ty, name)) in
            frame.equations.into_iter().zip(types.iter().zip(&written.unknowns))
        {
            let val = self.fit(&val?, ty, place, &format!("the equation of `{}`", name.text))?;
            values.push(self.operand(&val));
        }
        Some(values)
    }

    /// `0 = ...`.
    pub(super) fn equals_zero(&mut self, count: usize, values: &[Expr], span: Span) {
        let found = self.values(values, count, span);
        let depth = self.scopes.len();
        match &mut self.root {
            Some(frame) if frame.scopes == depth => {
                frame.equations.extend(found.into_iter().map(|val| (val, span)));
            }
            inside => {
                let help = match inside {
                    Some(_) => "move it out of the inner block; `if c then a else b` is a value",
                    None => "equations are solved by `root x { 0 = ... }`",
                };
                let problem =
                    Diagnostic::error(CODE, span, "an equation stands directly in the block of a `root`");
                self.report(problem.help(help));
            }
        }
    }

    /// Makes the block a function, and calls what will search and what will be differentiated.
    fn solution(
        &mut self,
        written: &Equation,
        ids: &[VarId],
        starts: &[Value],
        block: crate::program::Block,
        span: Span,
    ) {
        let module = &mut *self.module;
        let key = (self.instance, span);
        let known = module.equations.iter().position(|(other, _)| *other == key);
        let functions = match known {
            Some(at) => module.equations[at].1.functions,
            None => {
                let mut id = || module.builder.reserve();
                Functions { map: id(), search: id(), solution: id(), rule: id() }
            }
        };
        let equation = implicit::Equation {
            form: written.form,
            search: written.search,
            tolerance: written.tolerance,
            rounds: written.rounds,
            unknowns: ids.len(),
            functions,
            span,
        };
        let (map, read) = self.b.outlined(&equation.name("map"), block);
        for (id, function) in equation.declared(&map) {
            self.b.declare(id, function.param_types(), function.result_types());
            module.builder.define(id, (function, Vec::new()));
        }
        module.builder.define(functions.map, (map, Vec::new()));
        match known {
            Some(at) => module.equations[at].1 = equation,
            None => module.equations.push((key, equation)),
        }
        self.b.at(span);
        let found = self.b.emit_all(Op::Call(functions.search), &[starts, &read].concat());
        let solved = self.b.emit_all(Op::Call(functions.solution), &[&found[..], &read].concat());
        self.rebind(ids, &solved);
    }
}
