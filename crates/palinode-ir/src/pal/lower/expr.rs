//! Expressions.

use super::body::{Binding, Body};
use super::place::Base;
use super::value::{Val, describe, describe_rank};
use crate::diagnostic::Diagnostic;
use crate::op::{Literal, Op};
use crate::pal::names;
use crate::pal::syntax::ast::{BinaryOp, Expr, ExprKind};
use crate::types::{Elem, Span, Type};
use palinode_core::Constant;

impl Body<'_, '_> {
    /// One value; nothing if it is wrong, which has been reported.
    pub(super) fn expr(&mut self, expr: &Expr) -> Option<Val> {
        let mut found = self.multi(expr)?;
        if found.len() == 1 {
            return found.pop();
        }
        let message = format!("this gives {} values where one is needed", found.len());
        let help = "take them apart first, `let a, b = ...`";
        self.error(Diagnostic::error("PAL0213", expr.span, message).help(help))
    }

    /// One value or several.
    pub(super) fn multi(&mut self, expr: &Expr) -> Option<Vec<Val>> {
        self.deeper(expr.span, |this| this.multi_inner(expr))
    }

    fn multi_inner(&mut self, expr: &Expr) -> Option<Vec<Val>> {
        let span = expr.span;
        let val = match &expr.kind {
            &ExprKind::Int(n) => Val::int(n),
            &ExprKind::Real(x) => Val::real(x),
            ExprKind::Quantity(x, unit) => Val::real(unit.to_si(*x)),
            &ExprKind::Bool(value) => Val::bool(value),
            ExprKind::Name(name) => self.name(name, span)?,
            ExprKind::List(items) => self.list(items, span)?,
            ExprKind::Unary(op, inner) => {
                let val = self.expr(inner)?;
                self.unary(*op, &val, inner.span, span)?
            }
            ExprKind::Chain(first, rest) => self.chain(first, rest)?,
            ExprKind::Call(name, args) => return self.call(name, args, span),
            ExprKind::Index(..) | ExprKind::Transpose(_) => {
                let place = self.place(expr)?;
                self.fetch(&place, span)?
            }
            ExprKind::Choice(condition, yes, no) => self.choice(condition, yes, no, span)?,
            ExprKind::Error => return None,
        };
        Some(vec![val])
    }

    fn name(&mut self, name: &str, span: Span) -> Option<Val> {
        let visible = self.scopes.iter().any(|scope| scope.contains_key(name))
            || self.module.global_of.contains_key(name);
        if !visible {
            self.b.at(span);
            match name {
                "pi" => {
                    let value = self.b.literal(Literal::Named(Constant::Pi));
                    return Some(Val::new(value, Type::REAL));
                }
                "inf" => return Some(Val::real(f64::INFINITY)),
                _ => {}
            }
        }
        match self.lookup(name, span)? {
            Binding::Variable(id) => self.state[id].val().cloned(),
            Binding::View(place, _) => {
                if let Base::Variable(id) = place.base {
                    self.variables[id].used = true;
                }
                self.fetch(&place, span)
            }
            Binding::Poison(_) => None,
        }
    }

    fn chain(&mut self, first: &Expr, rest: &[(BinaryOp, Expr)]) -> Option<Val> {
        let (mut left, mut place) = (self.expr(first), first.span);
        for (op, operand) in rest {
            let whole = first.span.to(operand.span);
            // After a mistake the other operands are looked at all the same.
            left = self.link(*op, left, place, operand, whole);
            place = whole;
        }
        left
    }

    fn link(&mut self, op: BinaryOp, left: Option<Val>, place: Span, b: &Expr, whole: Span) -> Option<Val> {
        let lazy = matches!(op, BinaryOp::And | BinaryOp::Or) && may_fail(b);
        if let (Some(left), true) = (&left, lazy)
            && left.ty == Type::BOOL
        {
            return self.lazy(op, left, b, whole);
        }
        let right = self.expr(b);
        let (left, right) = (left?, right?);
        self.binary(op, &left, &right, (place, b.span), whole)
    }

    /// `and` and `or` whose right side must not be evaluated if the left side decides.
    fn lazy(&mut self, op: BinaryOp, left: &Val, b: &Expr, span: Span) -> Option<Val> {
        self.b.at(span);
        let condition = self.operand(left);
        self.b.open(&[]);
        let right = self.condition(b);
        let ok = right.is_some();
        let right = right.unwrap_or_else(|| Val::bool(false));
        self.b.at(span);
        let right = self.operand(&right);
        let right = self.b.close(&[right]);
        self.b.open(&[]);
        let decided = self.b.bool(op == BinaryOp::Or);
        let decided = self.b.close(&[decided]);
        let blocks = if op == BinaryOp::And { vec![right, decided] } else { vec![decided, right] };
        let result = self.b.emit_blocks(Op::If, &[condition], blocks, &[Type::BOOL]);
        ok.then(|| Val::new(result[0], Type::BOOL))
    }

    fn choice(&mut self, condition: &Expr, yes: &Expr, no: &Expr, span: Span) -> Option<Val> {
        let holds = self.condition(condition);
        self.b.at(span);
        let value = self.operand(&holds.clone().unwrap_or_else(|| Val::bool(false)));
        self.b.open(&[]);
        let a = self.expr(yes);
        let mut a_block = self.b.close(&[]);
        self.b.open(&[]);
        let b = self.expr(no);
        let mut b_block = self.b.close(&[]);
        holds?;
        let (a, b) = (a?, b?);
        if a.ty.rank != b.ty.rank || (a.ty.elem == Elem::Bool) != (b.ty.elem == Elem::Bool) {
            let message = "the two sides of the choice are not alike";
            let problem = Diagnostic::error("PAL0209", yes.span, message)
                .saying(describe(a.ty))
                .and(no.span, describe(b.ty));
            return self.error(problem);
        }
        let elem = if a.ty.elem == b.ty.elem { a.ty.elem } else { Elem::F64 };
        let ty = a.ty.with_elem(elem);
        for (val, block) in [(&a, &mut a_block), (&b, &mut b_block)] {
            // The last words of the block: a conversion or a literal, if one is needed.
            let reopened = self.reopen(core::mem::take(block));
            let val = if val.ty.elem == elem { val.clone() } else { self.realized(val) };
            let result = self.operand(&val);
            *block = self.b.close(&[result]);
            block.insts.splice(0..0, reopened);
        }
        self.b.at(span);
        let lens = a.lens.iter().zip(&b.lens).map(|(a, b)| if a == b { *a } else { None }).collect();
        let result = self.b.emit_blocks(Op::If, &[value], vec![a_block, b_block], &[ty]);
        Some(Val::new(result[0], ty).with_lens(lens))
    }

    /// Opens a new block for what follows the instructions of a closed one, which come back.
    fn reopen(&mut self, block: crate::program::Block) -> Vec<crate::program::Inst> {
        self.b.open(&[]);
        block.insts
    }

    /// `[a, b, c]`: numbers make a vector, arrays are stacked along a new first axis.
    fn list(&mut self, items: &[Expr], span: Span) -> Option<Val> {
        let found: Vec<Option<Val>> = items.iter().map(|item| self.expr(item)).collect();
        let vals = found.into_iter().collect::<Option<Vec<Val>>>()?;
        self.b.at(span);
        self.stack(&vals, items, span)
    }

    fn stack(&mut self, vals: &[Val], items: &[Expr], span: Span) -> Option<Val> {
        let rank = vals.first().map_or(0, |val| val.ty.rank);
        for (val, item) in vals.iter().zip(items) {
            if val.ty.rank != rank {
                let message = format!("{} among {}", describe_rank(val.ty.rank), plural(rank));
                return self
                    .error(Diagnostic::error("PAL0210", item.span, message).and(span, "in this list"));
            }
            for (a, b) in val.lens.iter().zip(&vals[0].lens) {
                if let (Some(a), Some(b)) = (a, b)
                    && a != b
                {
                    let message = format!("a row of length {a} among rows of length {b}");
                    return self
                        .error(Diagnostic::error("PAL0211", item.span, message).and(span, "in this list"));
                }
            }
        }
        if rank >= crate::pal::syntax::MAX_RANK {
            let message = format!("an array has at most {rank} axes");
            return self.error(Diagnostic::error("PAL0210", span, message));
        }
        let elem = match vals.iter().map(|val| val.ty.elem).collect::<Vec<_>>() {
            elems if elems.iter().all(|elem| *elem == Elem::Bool) && !elems.is_empty() => Elem::Bool,
            elems if elems.contains(&Elem::Bool) => {
                let problem =
                    Diagnostic::error("PAL0209", span, "a list holds numbers or truth values, not both");
                return self.error(problem);
            }
            elems if elems.iter().all(|elem| *elem == Elem::Int) && !elems.is_empty() => Elem::Int,
            _ => Elem::F64,
        };
        let vals: Vec<Val> =
            vals.iter().map(|val| if elem == Elem::F64 { self.realized(val) } else { val.clone() }).collect();
        let mut lens = vec![Some(vals.len() as i64)];
        lens.extend(vals.first().map(|val| val.lens.clone()).unwrap_or_default());
        if rank == 0 {
            let zero = match elem {
                Elem::Int => Val::int(0),
                Elem::Bool => Val::bool(false),
                Elem::F64 | Elem::F32 => Val::real(0.0),
            };
            let empty = self.emit(Op::Broadcast(Vec::new()), &[&zero, &Val::int(0)]);
            if vals.is_empty() {
                return Some(empty.with_lens(lens));
            }
            let args: Vec<&Val> = core::iter::once(&empty).chain(&vals).collect();
            return Some(self.emit(Op::Push, &args).with_lens(lens));
        }
        let mut rows = Vec::new();
        for val in &vals {
            let mut args = vec![val.clone(), Val::int(1)];
            for axis in 0..rank {
                args.push(self.length(val, axis));
            }
            rows.push(self.emit(Op::Reshape, &args.iter().collect::<Vec<_>>()));
        }
        Some(self.emit(Op::Concat(0), &rows.iter().collect::<Vec<_>>()).with_lens(lens))
    }

    /// The length of a value along an axis.
    pub(super) fn length(&mut self, val: &Val, axis: u8) -> Val {
        match val.lens[usize::from(axis)] {
            Some(n) => Val::int(n),
            None => self.emit(Op::Dim(axis), &[val]),
        }
    }
}

fn plural(rank: u8) -> String {
    match rank {
        0 => "single numbers".into(),
        1 => "vectors".into(),
        2 => "matrices".into(),
        rank => format!("arrays with {rank} axes"),
    }
}

/// Whether evaluating it can fail or take long, so that `and` and `or` must not do it for nothing.
pub(super) fn may_fail(expr: &Expr) -> bool {
    let mut found = false;
    let divides = |op: BinaryOp| {
        matches!(op, BinaryOp::FloorDivide | BinaryOp::Remainder | BinaryOp::MatMul | BinaryOp::Divide)
    };
    names::walk(expr, &mut |expr| {
        found |= match &expr.kind {
            ExprKind::Call(..) | ExprKind::Index(..) | ExprKind::Choice(..) => true,
            ExprKind::Chain(_, rest) => rest.iter().any(|(op, _)| divides(*op)),
            _ => false,
        };
    });
    found
}
