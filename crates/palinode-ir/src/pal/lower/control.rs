//! Branches and early exits, as structured control without jumps.
//!
//! A variable that is assigned in a branch becomes a result of the `if`. After a branch that may leave by
//! `break`, `continue` or `return`, the statements that follow move into the arm that goes on; only where
//! several arms go on, flags are set and tested.

use std::collections::BTreeSet;

use super::body::{Body, VariableKind};
use super::value::{Held, Val, VarId, describe};
use crate::diagnostic::Diagnostic;
use crate::op::{Logical, Op};
use crate::pal::names;
use crate::pal::syntax::ast::{Block, Expr, Stmt, StmtKind};
use crate::types::{Elem, Span, Type};
use std::collections::HashMap;

/// The statements to go on with after a block.
pub(super) struct Rest<'r> {
    stmts: &'r [Stmt],
    /// How many scopes are open there.
    scopes: usize,
    next: Option<&'r Rest<'r>>,
}

/// The last character of a statement.
fn end_of(stmt: &Stmt) -> Span {
    Span { start: stmt.span.end.saturating_sub(1), ..stmt.span }
}

/// How many arms of a branch can reach its end.
fn arms_that_go_on(arms: &[(Expr, Block)], otherwise: Option<&Block>) -> usize {
    let falls = |block: &Block| usize::from(!names::always_exits(&block.stmts));
    arms.iter().map(|(_, block)| falls(block)).sum::<usize>() + otherwise.map_or(1, falls)
}

/// Whether leaving these statements early takes a flag.
pub(super) fn needs_flag(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::If { arms, otherwise } if names::exits_of(stmt).any() => {
            arms_that_go_on(arms, otherwise.as_ref()) > 1
                || arms.iter().map(|(_, block)| block).chain(otherwise).any(|block| needs_flag(&block.stmts))
        }
        StmtKind::For { .. } | StmtKind::While { .. } => names::exits_of(stmt).returns,
        _ => false,
    })
}

impl Body<'_, '_> {
    /// Lowers statements one after another, then the rest.
    pub(super) fn sequence(&mut self, stmts: &[Stmt], rest: Option<&Rest<'_>>) {
        for (at, stmt) in stmts.iter().enumerate() {
            let after = &stmts[at + 1..];
            let exits = names::exits_of(stmt);
            match &stmt.kind {
                StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {
                    self.leave(stmt);
                    let misplaced = match stmt.kind {
                        StmtKind::Return(_) => self.instance.is_none(),
                        _ => self.loops.is_empty(),
                    };
                    if misplaced {
                        continue;
                    }
                    self.warn_unreachable(after);
                    return;
                }
                StmtKind::If { arms, otherwise } if exits.any() => {
                    self.leaving_branches(stmt, arms, otherwise.as_ref(), after, rest);
                    return;
                }
                StmtKind::For { .. } | StmtKind::While { .. } if exits.returns => {
                    self.statement(stmt);
                    let flags: Vec<VarId> = self.returned.into_iter().collect();
                    self.unless(&flags, end_of(stmt), after, rest);
                    return;
                }
                _ => self.statement(stmt),
            }
        }
        let Some(rest) = rest else { return };
        let inner = self.scopes.split_off(rest.scopes);
        self.sequence(rest.stmts, rest.next);
        self.scopes.extend(inner);
    }

    fn warn_unreachable(&mut self, after: &[Stmt]) {
        if let Some(first) = after.first() {
            let problem = Diagnostic::warning("PAL0231", first.span, "this is never reached");
            self.report(problem);
        }
    }

    fn leaving_branches(
        &mut self,
        stmt: &Stmt,
        arms: &[(Expr, Block)],
        otherwise: Option<&Block>,
        after: &[Stmt],
        rest: Option<&Rest<'_>>,
    ) {
        let go_on = arms_that_go_on(arms, otherwise);
        if go_on > 1 {
            self.arms(arms, otherwise, None);
            let exits = names::exits_of(stmt);
            let frame = self.loops.last();
            let broke = frame.and_then(|frame| frame.broke).filter(|_| exits.breaks);
            let skipped = frame.and_then(|frame| frame.skipped).filter(|_| exits.continues);
            let returned = self.returned.filter(|_| exits.returns);
            let flags: Vec<VarId> = [broke, skipped, returned].into_iter().flatten().collect();
            self.unless(&flags, end_of(stmt), after, rest);
            return;
        }
        if go_on == 0 {
            self.warn_unreachable(after);
            self.arms(arms, otherwise, None);
            return;
        }
        let rest = Rest { stmts: after, scopes: self.scopes.len(), next: rest };
        self.arms(arms, otherwise, Some(&rest));
    }

    /// The statements and the rest, unless a flag is set.
    fn unless(&mut self, flags: &[VarId], span: Span, stmts: &[Stmt], rest: Option<&Rest<'_>>) {
        let last = rest.is_none_or(|rest| rest.stmts.is_empty() && rest.next.is_none());
        if stmts.is_empty() && last {
            return;
        }
        let Some(set) = self.any_flag(flags, span) else {
            return self.sequence(stmts, rest);
        };
        self.branch(&set, span, &mut |_| {}, &mut |this| this.sequence(stmts, rest));
    }

    pub(super) fn any_flag(&mut self, flags: &[VarId], span: Span) -> Option<Val> {
        self.b.at(span);
        let mut set: Option<Val> = None;
        for &flag in flags {
            let Some(flag) = self.state[flag].val().cloned() else { continue };
            set = Some(match set {
                None => flag,
                Some(before) => self.emit(Op::Logical(Logical::Or), &[&before, &flag]),
            });
        }
        set
    }

    pub(super) fn branches(&mut self, arms: &[(Expr, Block)], otherwise: Option<&Block>) {
        self.arms(arms, otherwise, None);
    }

    /// `if`, `else if`, `else`. The arm that goes on goes on with the rest.
    fn arms(&mut self, arms: &[(Expr, Block)], otherwise: Option<&Block>, rest: Option<&Rest<'_>>) {
        let Some(((condition, block), others)) = arms.split_first() else {
            let stmts = otherwise.map_or(&[][..], |block| &block.stmts);
            return self.arm(stmts, rest);
        };
        let holds = self.condition(condition).unwrap_or_else(|| Val::bool(false));
        self.branch(&holds, condition.span, &mut |this| this.arm(&block.stmts, rest), &mut |this| {
            this.arms(others, otherwise, rest)
        });
    }

    fn arm(&mut self, stmts: &[Stmt], rest: Option<&Rest<'_>>) {
        self.scopes.push(HashMap::new());
        let goes_on = !names::always_exits(stmts);
        self.sequence(stmts, rest.filter(|_| goes_on));
        self.scopes.pop();
    }

    /// A condition: a single truth value.
    pub(super) fn condition(&mut self, expr: &Expr) -> Option<Val> {
        let val = self.expr(expr)?;
        if val.ty == Type::BOOL {
            return Some(val);
        }
        let message = format!("a condition is a truth value, not {}", describe(val.ty));
        let mut problem = Diagnostic::error("PAL0209", expr.span, message);
        problem.help = Some(match val.ty.elem {
            Elem::Bool => {
                "`any(c)` and `all(c)` make one of many, `select(c, a, b)` chooses element by element".into()
            }
            _ => "compare it, for example `x != 0`".into(),
        });
        self.error(problem)
    }

    /// Lowers two blocks and joins what they did to the variables.
    pub(super) fn branch(
        &mut self,
        condition: &Val,
        span: Span,
        yes: &mut dyn FnMut(&mut Self),
        no: &mut dyn FnMut(&mut Self),
    ) {
        self.b.at(span);
        let condition = self.operand(condition);
        let variables = self.variables.len();
        let mut blocks = Vec::new();
        let mut after = Vec::new();
        for first in [true, false] {
            let go: &mut dyn FnMut(&mut Self) = if first { &mut *yes } else { &mut *no };
            self.b.open(&[]);
            let before = self.state.mark();
            self.deeper(span, |this| {
                go(this);
                Some(())
            });
            blocks.push(self.b.close(&[]));
            after.push(self.state.rewind(before));
        }
        // Variables that a block defined for itself are gone.
        let changed: BTreeSet<VarId> =
            after.iter().flat_map(|held| held.keys().copied()).filter(|id| *id < variables).collect();
        let mut joined: Vec<(VarId, Type, Vec<Option<i64>>)> = Vec::new();
        for id in changed {
            let old = self.state[id].clone();
            let [yes, no] = [0, 1].map(|arm: usize| after[arm].get(&id).unwrap_or(&old));
            match (&old, yes, no) {
                (old, Held::Val(a), Held::Val(b)) => {
                    let unchanged = old.val().is_some_and(|old| old.value == a.value && old.value == b.value);
                    if unchanged {
                        continue;
                    }
                    let (Some(x), Some(y)) = (a.value, b.value) else { continue };
                    blocks[0].results.push(x);
                    blocks[1].results.push(y);
                    let lens =
                        a.lens.iter().zip(&b.lens).map(|(a, b)| if a == b { *a } else { None }).collect();
                    joined.push((id, a.ty, lens));
                }
                (_, Held::Unset, Held::Unset) => {}
                _ => self.state[id] = Held::Poison,
            }
        }
        self.b.at(span);
        let types: Vec<Type> = joined.iter().map(|(_, ty, _)| *ty).collect();
        let results = self.b.emit_blocks(Op::If, &[condition], blocks, &types);
        for ((id, ty, lens), value) in joined.into_iter().zip(results) {
            self.call_it(value, &self.variables[id].name.clone());
            self.state[id] = Held::Val(Val::new(value, ty).with_lens(lens));
        }
    }

    /// A hidden variable.
    pub(super) fn hidden(&mut self, name: &str, span: Span, val: Val) -> VarId {
        self.b.at(span);
        let value = self.operand(&val);
        let val = Val { value: Some(value), known: None, ..val };
        self.new_variable(name.into(), span, VariableKind::Hidden, Some(val))
    }

    fn set(&mut self, id: VarId, span: Span, value: bool) {
        self.b.at(span);
        let value = self.b.bool(value);
        self.state[id] = Held::Val(Val::new(value, Type::BOOL));
    }

    /// `break`, `continue`, `return`.
    pub(super) fn leave(&mut self, stmt: &Stmt) {
        let (word, flag) = match &stmt.kind {
            StmtKind::Return(values) => return self.return_values(values, stmt.span),
            StmtKind::Continue => ("continue", self.loops.last().map(|frame| frame.skipped)),
            _ => ("break", self.loops.last().map(|frame| frame.broke)),
        };
        match flag {
            None => {
                let message = format!("`{word}` stands outside a loop");
                self.report(
                    Diagnostic::error("PAL0217", stmt.span, message).help("remove it, or put it into a loop"),
                );
            }
            Some(None) => {}
            Some(Some(flag)) => self.set(flag, stmt.span, true),
        }
    }
}
