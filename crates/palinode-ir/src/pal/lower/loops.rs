//! Loops. A variable that is assigned in a loop is carried by it. A `for` that can be left early becomes a
//! `while` with a counter and flags.

use super::body::{Binding, Body, LoopFrame, VariableKind};
use super::control::needs_flag;
use super::expr::may_fail;
use super::place::Base;
use super::state::Mark;
use super::value::{Held, Known, Val, VarId, describe};
use crate::diagnostic::Diagnostic;
use crate::op::{Axis, IntOp, Keep, Logical, Op};
use crate::pal::names;
use crate::pal::syntax::ast::{Block, Expr, ExprKind, Name, Over, Range};
use crate::program::Value;
use crate::types::{Span, Type};
use std::collections::HashMap;

/// The condition of a loop.
struct Condition<'c, B> {
    may_fail: bool,
    lower: &'c mut dyn FnMut(&mut B) -> Option<Val>,
}

impl Body<'_, '_> {
    /// The variables that a loop must carry, in order of definition.
    fn carried(&mut self, body: &Block, more: &[VarId]) -> Vec<VarId> {
        let mut ids: Vec<VarId> = more.to_vec();
        for (name, is_whole) in names::assigned(body) {
            let binding = self.scopes.iter().rev().find_map(|scope| scope.get(&name));
            let id = match binding {
                Some(Binding::Variable(id)) => *id,
                Some(Binding::View(place, _)) => match place.base {
                    Base::Variable(id) => id,
                    Base::Temporary(_) => continue,
                },
                Some(Binding::Poison(_)) | None => continue,
            };
            if is_whole && let Held::Val(val) = &mut self.state[id] {
                *val = val.clone().forgotten();
            }
            ids.push(id);
        }
        ids.sort_unstable();
        ids.dedup();
        // Poison stays poison; what is not a variable has been or will be reported.
        ids.retain(|&id| {
            let mutable = matches!(self.variables[id].kind, VariableKind::Var { .. } | VariableKind::Hidden);
            mutable && matches!(&self.state[id], Held::Val(val) if val.value.is_some())
        });
        ids
    }

    pub(super) fn current(&self, ids: &[VarId]) -> Vec<Value> {
        let value = |&id: &VarId| self.state[id].val().and_then(|val| val.value);
        ids.iter().filter_map(value).collect()
    }

    pub(super) fn types_of(&self, ids: &[VarId]) -> Vec<Type> {
        ids.iter().filter_map(|&id| self.state[id].val().map(|val| val.ty)).collect()
    }

    /// Makes block parameters or results the current values.
    pub(super) fn rebind(&mut self, ids: &[VarId], values: &[Value]) {
        for (&id, &value) in ids.iter().zip(values) {
            self.call_it(value, &self.variables[id].name.clone());
            if let Held::Val(val) = &mut self.state[id] {
                val.value = Some(value);
                val.known = None;
                val.offset = None;
            }
        }
    }

    /// What the body of a loop yields. A variable that became poison there keeps its old value: there is an
    /// error anyway.
    fn yielded(&mut self, ids: &[VarId], params: &[Value]) -> Vec<Value> {
        let mut values = Vec::new();
        for (&id, &param) in ids.iter().zip(params) {
            values.push(self.state[id].val().and_then(|val| val.value).unwrap_or(param));
        }
        values
    }

    /// After a loop: the results, and poison where the body made some.
    pub(super) fn leave_loop(&mut self, ids: &[VarId], before: Mark, results: &[Value]) {
        for (id, held) in self.state.rewind(before) {
            if matches!(held, Held::Poison) {
                self.state[id] = Held::Poison;
            }
        }
        self.rebind(ids, results);
    }

    pub(super) fn while_loop(&mut self, condition: &Expr, body: &Block, keep: Option<Keep>, span: Span) {
        let may_fail = may_fail(condition);
        let test = &mut |this: &mut Self, _: &[Val]| this.condition(condition);
        self.open_ended(body, (span, keep), &[], may_fail, test, &mut |_, _| {});
    }

    /// A loop that runs while a condition holds and it is not left. `counters` start it off, `enter` sees
    /// them in each round.
    fn open_ended(
        &mut self,
        body: &Block,
        (span, keep): (Span, Option<Keep>),
        counters: &[(Val, Val)],
        may_fail: bool,
        condition: &mut dyn FnMut(&mut Self, &[Val]) -> Option<Val>,
        enter: &mut dyn FnMut(&mut Self, &[Val]),
    ) {
        let exits = names::exits(&body.stmts);
        let broke = exits.breaks.then(|| self.hidden("broke", span, Val::bool(false)));
        let mut more: Vec<VarId> = broke.into_iter().collect();
        if exits.returns {
            more.extend(self.returned);
            more.extend(self.results.iter().copied());
        }
        let flags: Vec<VarId> = broke.into_iter().chain(self.returned.filter(|_| exits.returns)).collect();
        let ids = self.carried(body, &more);
        self.b.at(span);
        let starts: Vec<Value> = counters.iter().map(|(start, _)| self.operand(start)).collect();
        let initial = [&starts[..], &self.current(&ids)].concat();
        let types: Vec<Type> =
            counters.iter().map(|(start, _)| start.ty).chain(self.types_of(&ids)).collect();
        let before = self.state.mark();

        let split = counters.len();
        let vals = |params: &[Value]| -> Vec<Val> {
            params[..split].iter().map(|&value| Val::new(value, Type::INT)).collect()
        };
        let params = self.b.open(&types);
        self.rebind(&ids, &params[split..]);
        let lower = &mut |this: &mut Self| condition(this, &vals(&params));
        let holds = self.goes_on(&flags, span, &mut Condition { may_fail, lower });
        self.b.at(span);
        let holds = self.operand(&holds);
        let test = self.b.close(&[holds]);
        self.state.rewind(before);

        let before = self.state.mark();
        let params = self.b.open(&types);
        self.rebind(&ids, &params[split..]);
        self.round(body, span, broke, &mut |this| enter(this, &vals(&params)));
        self.b.at(span);
        let mut next = Vec::new();
        for ((_, step), &param) in counters.iter().zip(&params) {
            let now = Val::new(param, Type::INT);
            let step = self.emit(Op::Int(IntOp::Add), &[&now, step]);
            next.push(self.operand(&step));
        }
        next.extend(self.yielded(&ids, &params[split..]));
        let block = self.b.close(&next);
        self.b.at(span);
        let results = self.b.emit_blocks(Op::While { keep }, &initial, vec![test, block], &types);
        self.leave_loop(&ids, before, &results[split..]);
    }

    /// The condition, or false if a flag is set. A condition that cannot fail is evaluated anyway.
    fn goes_on(&mut self, flags: &[VarId], span: Span, condition: &mut Condition<'_, Self>) -> Val {
        let Some(stopped) = self.any_flag(flags, span) else {
            return (condition.lower)(self).unwrap_or_else(|| Val::bool(false));
        };
        self.b.at(span);
        if !condition.may_fail {
            let goes_on = self.emit(Op::Logical(Logical::Not), &[&stopped]);
            let holds = (condition.lower)(self).unwrap_or_else(|| Val::bool(false));
            self.b.at(span);
            return match holds.known {
                Some(Known::Bool(true)) => goes_on,
                _ => self.emit(Op::Logical(Logical::And), &[&goes_on, &holds]),
            };
        }
        let stopped = self.operand(&stopped);
        self.b.open(&[]);
        let no = self.b.bool(false);
        let left = self.b.close(&[no]);
        self.b.open(&[]);
        let holds = (condition.lower)(self).unwrap_or_else(|| Val::bool(false));
        let holds = self.operand(&holds);
        let right = self.b.close(&[holds]);
        self.b.at(span);
        let result = self.b.emit_blocks(Op::If, &[stopped], vec![left, right], &[Type::BOOL]);
        Val::new(result[0], Type::BOOL)
    }

    /// One round of a loop, in a scope of its own.
    fn round(&mut self, body: &Block, span: Span, broke: Option<VarId>, enter: &mut dyn FnMut(&mut Self)) {
        let exits = names::exits(&body.stmts);
        let skipped = (exits.continues && needs_flag(&body.stmts))
            .then(|| self.hidden("skipped", span, Val::bool(false)));
        self.loops.push(LoopFrame { broke, skipped });
        self.scopes.push(HashMap::new());
        enter(self);
        self.scopes.push(HashMap::new());
        self.deeper(span, |this| {
            this.sequence(&body.stmts, None);
            Some(())
        });
        self.scopes.truncate(self.scopes.len() - 2);
        self.loops.pop();
    }

    pub(super) fn for_loop(
        &mut self,
        name: &Name,
        over: &Over,
        body: &Block,
        keep: Option<Keep>,
        span: Span,
    ) {
        match over {
            Over::Array(array) => self.for_array(name, array, body, (span, keep)),
            Over::Range { range, reversed } => self.for_range(name, range, *reversed, body, (span, keep)),
        }
    }

    fn int_expr(&mut self, expr: &Expr, what: &str) -> Option<Val> {
        let val = self.expr(expr)?;
        self.fit(&val, Type::INT, expr.span, what)
    }

    fn for_range(
        &mut self,
        name: &Name,
        range: &Range,
        reversed: bool,
        body: &Block,
        place: (Span, Option<Keep>),
    ) {
        let bound = |this: &mut Self, expr: Option<&Expr>, what: &str| {
            expr.map_or(Some(Val::int(0)), |expr| this.int_expr(expr, what))
        };
        let lo = bound(self, range.lo.as_ref(), "the start of a range");
        let hi = bound(self, range.hi.as_ref(), "the end of a range");
        let by = range.by.as_ref().map_or(Some(Val::int(1)), |by| self.int_expr(by, "the step of a range"));
        let ok = lo.is_some() && hi.is_some() && by.is_some();
        let (lo, hi) = (lo.unwrap_or_else(|| Val::int(0)), hi.unwrap_or_else(|| Val::int(0)));
        let mut by = by.unwrap_or_else(|| Val::int(1));
        if by.known_int() == Some(0) {
            let place = range.by.as_ref().map_or(range.span, |by| by.span);
            self.report(
                Diagnostic::error("PAL0221", place, "a step of 0 never arrives")
                    .help("use 1 or more, or a negative step"),
            );
            by = Val::int(1);
        }
        self.b.at(range.span);
        let n = self.steps(&lo, &hi, &by);
        let mut enter = |this: &mut Self, k: &Val| {
            this.b.at(name.span);
            let scaled = this.int(IntOp::Mul, k, &by);
            let at = this.int(IntOp::Add, &lo, &scaled);
            let id = this.define_variable(name, VariableKind::Loop, ok.then_some(at));
            this.variables[id].used = true;
        };
        self.counted(body, place, &n, reversed, &mut enter);
    }

    fn for_array(&mut self, name: &Name, array: &Expr, body: &Block, place: (Span, Option<Keep>)) {
        let array_val = self.expr(array);
        let array_val = match array_val {
            Some(val) if val.ty.rank > 0 => Some(val),
            Some(val) => {
                let mut problem = Diagnostic::error(
                    "PAL0210",
                    array.span,
                    format!("a loop runs over a range or an array, not {}", describe(val.ty)),
                );
                let text = match &array.kind {
                    ExprKind::Name(name) => name.to_string(),
                    ExprKind::Int(n) => n.to_string(),
                    _ => "n".into(),
                };
                problem.help = Some(format!("`for {} in 0..{text}` counts", name.text));
                self.error(problem)
            }
            None => None,
        };
        self.b.at(array.span);
        let n = match &array_val {
            Some(val) => {
                let value = self.operand(val);
                let dim = self.b.dim(value, 0);
                Val { known: None, ..Val::new(dim, Type::INT) }
            }
            None => Val::int(0),
        };
        let mut enter = |this: &mut Self, k: &Val| {
            this.b.at(array.span);
            let element = array_val.as_ref().map(|array| {
                let mut axes = vec![Axis::At];
                axes.resize(usize::from(array.ty.rank), Axis::All);
                let lens = array.lens[1..].to_vec();
                this.emit(Op::Read(axes), &[array, k]).with_lens(lens)
            });
            let id = this.define_variable(name, VariableKind::Loop, element);
            this.variables[id].used = true;
        };
        self.counted(body, place, &n, false, &mut enter);
    }

    /// How many of `lo, lo + by, ...` come before `hi`; not more than 0 if none do.
    pub(super) fn steps(&mut self, lo: &Val, hi: &Val, by: &Val) -> Val {
        if by.known_int() == Some(1) {
            return self.int(IntOp::Sub, hi, lo);
        }
        let back = self.int(IntOp::Sub, lo, hi);
        let rounded = self.int(IntOp::Div, &back, by);
        self.int(IntOp::Sub, &Val::int(0), &rounded)
    }

    /// A loop of `n` rounds; `enter` is given the number of the round.
    fn counted(
        &mut self,
        body: &Block,
        (span, keep): (Span, Option<Keep>),
        n: &Val,
        reversed: bool,
        enter: &mut dyn FnMut(&mut Self, &Val),
    ) {
        let exits = names::exits(&body.stmts);
        if exits.breaks || exits.returns {
            self.b.at(span);
            let last = if reversed { self.int(IntOp::Sub, n, &Val::int(1)) } else { n.clone() };
            return self.open_ended(
                body,
                (span, keep),
                &[(Val::int(0), Val::int(1))],
                false,
                &mut |this, counters| {
                    Some(this.emit(Op::Compare(crate::op::Comparison::Less), &[&counters[0], n]))
                },
                &mut |this, counters| {
                    if reversed {
                        let k = this.int(IntOp::Sub, &last, &counters[0]);
                        enter(this, &k);
                    } else {
                        enter(this, &counters[0]);
                    }
                },
            );
        }
        let ids = self.carried(body, &[]);
        self.b.at(span);
        let count = self.operand(n);
        let initial = [&[count], &self.current(&ids)[..]].concat();
        let types = self.types_of(&ids);
        let before = self.state.mark();
        let params = self.b.open(&[&[Type::INT], &types[..]].concat());
        self.rebind(&ids, &params[1..]);
        let k = Val::new(params[0], Type::INT);
        self.round(body, span, None, &mut |this| enter(this, &k));
        self.b.at(span);
        let next = self.yielded(&ids, &params[1..]);
        let block = self.b.close(&next);
        self.b.at(span);
        let results =
            self.b.emit_blocks(Op::For { descending: reversed, keep }, &initial, vec![block], &types);
        self.leave_loop(&ids, before, &results);
    }
}
