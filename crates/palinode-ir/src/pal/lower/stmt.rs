//! Statements without control flow: definitions, assignments, outputs.

use super::body::{Binding, Body, VariableKind};
use super::equation::is_zero;
use super::place::{Base, Place};
use super::value::{Held, Val, VarId, annotated, describe};
use crate::diagnostic::Diagnostic;
use crate::op::{Keep, Op};
use crate::pal::Output;
use crate::pal::names;
use crate::pal::syntax::ast::{Annotation, BinaryOp, Binder, Expr, ExprKind, Length, Name, Stmt, StmtKind};
use crate::types::{Elem, Span, Type};
use std::sync::Arc;

impl Body<'_, '_> {
    pub(super) fn top_level(&mut self, stmts: &[Stmt]) -> Vec<(Output, Val)> {
        self.sequence(stmts, None);
        core::mem::take(&mut self.outputs)
    }

    fn is_top_level(&self) -> bool {
        self.instance.is_none() && self.scopes.len() == 1
    }

    fn only_at_top_level(&mut self, span: Span, what: &str) -> bool {
        let fits = self.is_top_level();
        if !fits {
            let message = format!("`{what}` belongs to the top level of the file");
            self.report(Diagnostic::error("PAL0217", span, message).help("move it out of the block"));
        }
        fits
    }

    pub(super) fn statement(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Argument { is_param, .. } => {
                self.only_at_top_level(span, if *is_param { "param" } else { "input" });
            }
            StmtKind::Const { .. } => {
                self.only_at_top_level(span, "const");
            }
            StmtKind::Function(function) => {
                self.only_at_top_level(function.name.span, "fn");
            }
            StmtKind::Bind { binder, names, annotation, values } => {
                self.bind(*binder, names, annotation.as_ref(), values, span);
            }
            StmtKind::Alias { name, target } => self.alias(name, target),
            StmtKind::Assign { targets, op: None, values } if targets.iter().all(is_zero) => {
                self.equals_zero(targets.len(), values, span)
            }
            StmtKind::Assign { targets, op: None, values } => self.assign_all(targets, values, span),
            StmtKind::Assign { targets, op: Some(op), values } => {
                self.update(&targets[0], *op, &values[0], span)
            }
            StmtKind::Output { is_loss, name, value } => {
                if self.only_at_top_level(span, if *is_loss { "loss" } else { "output" }) {
                    self.output(*is_loss, name, value.as_ref(), span);
                }
            }
            StmtKind::Broken(names) => {
                for name in names {
                    let scope = self.scopes.last_mut().expect("a scope is open");
                    scope.entry(name.text.clone()).or_insert(Binding::Poison(name.span));
                }
            }
            StmtKind::Value(expr) => self.unused_value(expr),
            StmtKind::For { name, over, budget, body } => {
                self.for_loop(name, over, body, budget.map(|budget| Keep::Bytes(budget.bytes)), span);
            }
            StmtKind::While { condition, budget, body } => {
                self.while_loop(condition, body, budget.map(|budget| Keep::Bytes(budget.bytes)), span);
            }
            StmtKind::Equation(equation) => self.equation(equation, span),
            StmtKind::If { arms, otherwise } => self.branches(arms, otherwise.as_ref()),
            StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => self.leave(stmt),
        }
    }

    fn unused_value(&mut self, expr: &Expr) {
        if self.multi(expr).is_none() {
            return;
        }
        let mut problem = Diagnostic::error("PAL0222", expr.span, "the value is not used");
        problem.help = Some(match &expr.kind {
            ExprKind::Name(name) => format!("output it with `output {name}`"),
            ExprKind::Chain(_, rest) if matches!(rest[..], [.., (BinaryOp::Equal, _)]) => {
                "`==` compares; `=` assigns".into()
            }
            ExprKind::Call(..) => {
                "a function changes nothing by itself: use what it returns, `x = f(x)`".into()
            }
            _ => "assign it, `x = ...`, or output it, `output x = ...`".into(),
        });
        self.report(problem);
    }

    /// The values of an assignment to `count` places.
    pub(super) fn values(&mut self, values: &[Expr], count: usize, span: Span) -> Vec<Option<Val>> {
        if values.len() == 1 && count > 1 {
            let found = self.multi(&values[0]);
            return match found {
                Some(found) if found.len() == count => found.into_iter().map(Some).collect(),
                Some(found) => {
                    self.wrong_count(values[0].span, count, found.len());
                    vec![None; count]
                }
                None => vec![None; count],
            };
        }
        let found: Vec<Option<Val>> = values.iter().map(|value| self.expr(value)).collect();
        if found.len() != count {
            self.wrong_count(span, count, found.len());
            return vec![None; count];
        }
        found
    }

    fn wrong_count(&mut self, span: Span, names: usize, values: usize) {
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let message =
            format!("{names} name{} on the left, {values} value{} on the right", s(names), s(values));
        self.report(Diagnostic::error("PAL0213", span, message));
    }

    fn bind(
        &mut self,
        binder: Binder,
        names: &[Name],
        annotation: Option<&Annotation>,
        values: &[Expr],
        span: Span,
    ) {
        let found = self.values(values, names.len(), span);
        for (at, (name, val)) in names.iter().zip(found).enumerate() {
            let source = if values.len() == names.len() { Some(&values[at]) } else { None };
            let place = source.map_or(span, |value| value.span);
            let val = match (val, annotation) {
                (Some(val), Some(annotation)) => self.fit_annotation(&val, annotation, place, &name.text),
                (val, _) => val,
            };
            self.b.at(span);
            match binder {
                Binder::Let => {
                    self.define_variable(name, VariableKind::Let, val);
                }
                Binder::Var => {
                    let declared = annotation.is_some();
                    let promote = self.facts.promoted.contains_key(&name.span);
                    let val = val.map(|val| {
                        let val = if promote { self.realized(&val) } else { val };
                        self.written(&val)
                    });
                    self.define_variable(name, VariableKind::Var { declared }, val);
                }
            }
        }
    }

    /// The value as an SSA value of its own block.
    fn written(&mut self, val: &Val) -> Val {
        let value = self.operand(val);
        Val { value: Some(value), known: None, ..val.clone() }
    }

    fn fit_annotation(&mut self, val: &Val, annotation: &Annotation, span: Span, name: &str) -> Option<Val> {
        let val = self.fit(val, annotated(annotation), span, &format!("`{name}`"))?;
        for (axis, length) in annotation.shape.iter().flatten().enumerate() {
            if let (Length::Known(n, _), Some(found)) = (length, val.lens.get(axis).copied().flatten())
                && *n != found
            {
                let message =
                    format!("`{name}` has length {found} along axis {axis}, the declaration says {n}");
                self.report(Diagnostic::error("PAL0211", span, message));
            }
        }
        Some(val)
    }

    fn alias(&mut self, name: &Name, target: &Expr) {
        let place = self.place(target);
        let binding = match place {
            Some(Place { base: Base::Temporary(_), .. }) => {
                let problem = Diagnostic::error("PAL0209", target.span, "a view needs a variable to look at")
                    .help("write `alias b = a[2..5]`, where `a` is a variable, or `let b = ...` for a copy");
                self.report(problem);
                Binding::Poison(name.span)
            }
            Some(place) => Binding::View(Arc::new(place), name.span),
            None => Binding::Poison(name.span),
        };
        self.define(name, binding);
    }

    fn assign_all(&mut self, targets: &[Expr], values: &[Expr], span: Span) {
        // Places first, as they are written; all values before the first is stored, so that `a, b = b, a`
        // swaps.
        let places: Vec<Option<Place>> = targets.iter().map(|target| self.target(target)).collect();
        let found = self.values(values, targets.len(), span);
        for (at, ((place, val), target)) in places.into_iter().zip(found).zip(targets).enumerate() {
            let source = if values.len() == targets.len() { values[at].span } else { span };
            self.b.at(span);
            match (place, val) {
                (Some(place), Some(val)) => self.store(&place, &val, source, span, is_name(target)),
                (Some(place), None) => self.poison(&place),
                (None, _) => {}
            }
        }
    }

    /// A place that is assigned to; reports what cannot be.
    pub(super) fn target(&mut self, target: &Expr) -> Option<Place> {
        let behind = names::root(target).and_then(|name| self.behind(name));
        if let (Some(name), None) = (names::root(target), behind)
            && self.is_unknown(name)
        {
            let problem = Diagnostic::error("PAL0205", target.span, format!("`{name}` is not defined"))
                .help(format!("`var {name} = ...` defines a variable"));
            let scope = self.scopes.last_mut().expect("a scope is open");
            scope.insert(name.clone(), Binding::Poison(target.span));
            return self.error(problem);
        }
        let used = behind.map(|id| self.variables[id].used);
        let place = self.place(target)?;
        // Being written is not being used.
        if let (Some(id), Some(used)) = (behind, used) {
            self.variables[id].used = used;
        }
        match &place.base {
            Base::Variable(id) => {
                let id = *id;
                self.check_mutable(id, target.span)?;
                Some(place)
            }
            Base::Temporary(_) => {
                let problem = Diagnostic::error("PAL0208", target.span, "this cannot be assigned to")
                    .help("assign to a variable `x`, an element `a[i]` or a part `a[2..5]`");
                self.error(problem)
            }
        }
    }

    fn check_mutable(&mut self, id: VarId, span: Span) -> Option<()> {
        let variable = &self.variables[id];
        let name = variable.name.clone();
        let first = variable.span;
        let (what, help) = match variable.kind {
            VariableKind::Var { .. } | VariableKind::Hidden => return Some(()),
            VariableKind::Let => ("was defined with `let`", format!("define it with `var {name} = ...`")),
            VariableKind::Loop => ("is the variable of a loop", "use a variable of your own".into()),
            VariableKind::Parameter => ("is a parameter", format!("copy it, `var my_{name} = {name}`")),
            VariableKind::Argument => ("is given from outside", format!("copy it, `var my_{name} = {name}`")),
            VariableKind::Length => ("is a length", "use a variable of your own".into()),
            VariableKind::Const => ("is a constant", format!("define it with `var {name} = ...`")),
            VariableKind::Output => ("is a result", "compute it in a variable first".into()),
        };
        let problem = Diagnostic::error("PAL0208", span, format!("`{name}` {what} and cannot be changed"))
            .and(first, "defined here")
            .help(help);
        self.error(problem)
    }

    pub(super) fn poison(&mut self, place: &Place) {
        if let Base::Variable(id) = place.base {
            self.state[id] = Held::Poison;
        }
    }

    /// Puts a value into a place.
    fn store(&mut self, place: &Place, val: &Val, source: Span, span: Span, by_name: bool) {
        let Base::Variable(id) = place.base else { return };
        if place.is_whole() && (by_name || place.rank() == 0) {
            self.assign(id, val, source, span);
            return;
        }
        let Some(ty) = self.variables[id].ty else { return };
        let Some(val) = self.fit_elem(id, ty, val, source) else {
            self.poison(place);
            return;
        };
        self.b.at(span);
        if self.write(place, &val, source, by_name).is_none() {
            self.poison(place);
        }
    }

    /// Replaces a variable.
    pub(super) fn assign(&mut self, id: VarId, val: &Val, source: Span, span: Span) {
        let Some(ty) = self.variables[id].ty else { return };
        let name = self.variables[id].name.clone();
        if val.ty.rank == ty.rank
            && let Some(val) = self.fit_elem(id, ty, val, source)
        {
            self.b.at(span);
            let val = self.written(&val);
            let val = self.as_variable(val, &name);
            self.state[id] = Held::Val(val);
            return;
        }
        if val.ty.rank != ty.rank {
            let first = self.variables[id].span;
            let message = format!("`{name}` is {} and cannot become {}", describe(ty), describe(val.ty));
            let mut problem = Diagnostic::error("PAL0210", source, message).and(first, "defined here");
            if val.ty.rank == 0 {
                problem.help = Some(format!("`{name}[..] = x` sets every element"));
            }
            self.report(problem);
        }
        self.state[id] = Held::Poison;
    }

    /// Fits the kind of element; a variable that starts as an integer turns out to be real.
    fn fit_elem(&mut self, id: VarId, ty: Type, val: &Val, source: Span) -> Option<Val> {
        if val.ty.elem == ty.elem {
            return Some(val.clone());
        }
        if ty.is_real() && val.ty.elem == Elem::Int {
            return Some(self.realized(val));
        }
        let variable = &self.variables[id];
        let (name, first) = (variable.name.clone(), variable.span);
        if ty.elem == Elem::Int && val.ty.is_real() {
            if variable.kind == (VariableKind::Var { declared: false }) {
                self.promoted.entry(first).or_insert(source);
                return None;
            }
            let message = format!("`{name}` holds integers, this is {}", describe(val.ty));
            let problem = Diagnostic::error("PAL0209", source, message).and(first, "declared here").help(
                format!("declare it as `var {name}: real`, or make an integer with `floor` or `round`"),
            );
            return self.error(problem);
        }
        let message = format!("`{name}` holds {}, this is {}", describe(ty), describe(val.ty));
        self.error(Diagnostic::error("PAL0209", source, message).and(first, "defined here"))
    }

    /// `target op= value`.
    fn update(&mut self, target: &Expr, op: BinaryOp, value: &Expr, span: Span) {
        let place = self.target(target);
        let val = self.expr(value);
        let (Some(place), Some(val)) = (place, val) else { return };
        let Base::Variable(id) = place.base else { return };
        let Some(ty) = self.variables[id].ty else { return };
        self.b.at(span);
        let additive = matches!(op, BinaryOp::Add | BinaryOp::Subtract);
        let fits = val.ty.rank == place.rank() || (val.ty.rank == 0 && place.rank() > 0);
        if additive && !place.is_whole() && ty.is_real() && val.ty.elem != Elem::Bool && fits {
            let mut val = self.realized(&val);
            if op == BinaryOp::Subtract {
                val = match val.known {
                    Some(super::value::Known::Real(x)) => Val::real(-x),
                    _ => self.negated(&val),
                };
            }
            if self.add_at(&place, &val, value.span).is_none() {
                self.poison(&place);
            }
            return;
        }
        let old = self.fetch(&place, target.span);
        let Some(old) = old else { return };
        match self.binary(op, &old, &val, (target.span, value.span), span) {
            Some(new) => self.store(&place, &new, span, span, is_name(target)),
            None => self.poison(&place),
        }
    }

    fn negated(&mut self, val: &Val) -> Val {
        let lens = val.lens.clone();
        self.emit(Op::rule(palinode_core::rules::Row::Negate), &[val]).with_lens(lens)
    }

    fn output(&mut self, is_loss: bool, name: &Name, value: Option<&Expr>, span: Span) {
        if let Some((first, _)) = self.outputs.iter().find(|(output, _)| output.name == name.text) {
            let first = first.span;
            let message = format!("`{}` is given out twice", name.text);
            self.report(Diagnostic::error("PAL0207", name.span, message).and(first, "here already"));
            return;
        }
        let val = match value {
            Some(value) => {
                let val = self.expr(value);
                let val = match val {
                    Some(val) => self.fit_output(is_loss, val, value.span),
                    None => None,
                };
                self.b.at(span);
                let id = self.define_variable(name, VariableKind::Output, val.clone());
                self.variables[id].used = true;
                val
            }
            None => {
                let kind = ExprKind::Name(name.text.clone());
                let val = self.expr(&Expr { kind, span: name.span, depth: 1 });
                val.and_then(|val| self.fit_output(is_loss, val, name.span))
            }
        };
        // A place is kept for poison as well, so that the output counts as declared.
        let val = val.unwrap_or_else(|| Val::real(0.0));
        self.b.at(span);
        let val = self.written(&val);
        self.call_it(val.value.expect("it is written"), &name.text);
        let output = Output { name: name.text.clone(), is_loss, ty: val.ty, unit: None, span };
        self.outputs.push((output, val));
    }

    fn fit_output(&mut self, is_loss: bool, val: Val, span: Span) -> Option<Val> {
        if !is_loss {
            return Some(val);
        }
        if val.ty.elem == Elem::Bool {
            let problem = Diagnostic::error("PAL0209", span, "a loss is a real number, not a truth value");
            return self.error(problem);
        }
        if val.ty.rank != 0 {
            let problem = Diagnostic::error(
                "PAL0210",
                span,
                format!("a loss is a single number, not {}", describe(val.ty)),
            )
            .help("add it up, `sum(...)`, or use `output`");
            return self.error(problem);
        }
        self.b.at(span);
        Some(self.realized(&val))
    }
}

fn is_name(target: &Expr) -> bool {
    matches!(target.kind, ExprKind::Name(_))
}
