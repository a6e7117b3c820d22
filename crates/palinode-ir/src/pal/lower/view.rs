//! Reading and writing places.
//!
//! Reading a place is one read of the base, writing it one update of the base, however many views lie
//! between; so an alias is explicit in the program and an element of a view costs what an element costs. What
//! lies outside a view but inside its base is refused: such an index becomes -1, which no array has.

use super::body::{Binding, Body};
use super::place::{Along, Base, Place};
use super::value::{Held, Val, describe, describe_rank};
use crate::diagnostic::Diagnostic;
use crate::op::{Axis, Comparison, IntOp, Logical, Op};
use crate::pal::syntax::ast::{Expr, ExprKind, Index, Range};
use crate::types::{Elem, Span, Type};

impl Body<'_, '_> {
    /// The place that an expression means.
    pub(super) fn place(&mut self, expr: &Expr) -> Option<Place> {
        match &expr.kind {
            ExprKind::Name(name) if self.names_a_variable(name) => match self.lookup(name, expr.span)? {
                Binding::Variable(id) => {
                    let ty = self.variables[id].ty?;
                    Some(Place::whole(Base::Variable(id), ty.rank))
                }
                Binding::View(place, _) => {
                    if let Base::Variable(id) = place.base {
                        self.variables[id].used = true;
                    }
                    Some((*place).clone())
                }
                Binding::Poison(_) => None,
            },
            ExprKind::Index(inner, indices) => {
                let place = self.deeper(expr.span, |this| this.place(inner));
                self.index(place, indices, expr.span)
            }
            ExprKind::Transpose(inner) => self.transposed_place(inner, expr.span),
            ExprKind::Call(name, args) if &*name.text == "transpose" && args.len() == 1 => {
                self.transposed_place(&args[0], expr.span)
            }
            _ => {
                let val = self.expr(expr)?;
                let rank = val.ty.rank;
                Some(Place::whole(Base::Temporary(val), rank))
            }
        }
    }

    fn names_a_variable(&self, name: &str) -> bool {
        let known = self.scopes.iter().any(|scope| scope.contains_key(name))
            || self.module.global_of.contains_key(name);
        known || !matches!(name, "pi" | "inf")
    }

    fn transposed_place(&mut self, inner: &Expr, span: Span) -> Option<Place> {
        let mut place = self.deeper(span, |this| this.place(inner))?;
        if place.rank() != 2 {
            let message = format!("only a matrix can be transposed, not {}", describe_rank(place.rank()));
            return self.error(Diagnostic::error("PAL0210", span, message));
        }
        place.order.swap(0, 1);
        Some(place)
    }

    fn base_val(&self, base: &Base) -> Option<Val> {
        match base {
            Base::Variable(id) => self.state[*id].val().cloned(),
            Base::Temporary(val) => Some(val.clone()),
        }
    }

    /// The length of an axis of the base of a place.
    fn length_along(&mut self, place: &Place, axis: usize) -> Option<Val> {
        match &place.along[axis] {
            Along::At(_) => None,
            Along::Range { len, .. } => Some(len.clone()),
            Along::All => {
                let base = self.base_val(&place.base)?;
                match base.lens[axis] {
                    Some(n) => Some(Val::int(n)),
                    None => Some(self.emit(Op::Dim(axis as u8), &[&base])),
                }
            }
            Along::List(list) => match list.lens[0] {
                Some(n) => Some(Val::int(n)),
                None => Some(self.emit(Op::Dim(0), &[&list.clone()])),
            },
        }
    }

    /// The length of a place along one of its own axes.
    pub(super) fn place_length(&mut self, place: &Place, axis: usize) -> Option<Val> {
        let axis = place.base_axis(axis);
        self.length_along(place, axis)
    }

    fn index(&mut self, place: Option<Place>, indices: &[Index], span: Span) -> Option<Place> {
        let Some(mut place) = place else {
            // The indices may have mistakes of their own.
            for index in indices {
                match index {
                    Index::At(expr) => drop(self.expr(expr)),
                    Index::Range(range) => {
                        [&range.lo, &range.hi, &range.by]
                            .into_iter()
                            .flatten()
                            .for_each(|expr| drop(self.expr(expr)));
                    }
                }
            }
            return None;
        };
        let rank = usize::from(place.rank());
        if rank != indices.len() {
            return self.wrong_indices(&place, indices, span);
        }
        let axes: Vec<usize> = (0..rank).map(|j| place.base_axis(j)).collect();
        let mut failed = false;
        for (&axis, index) in axes.iter().zip(indices) {
            match self.index_axis(&place, axis, index) {
                Some(along) => place.along[axis] = along,
                None => failed = true,
            }
        }
        if failed {
            return None;
        }
        // Number the axes that still stay anew, in the order of the place.
        let stays: Vec<usize> = (0..place.along.len()).filter(|&axis| place.along[axis].stays()).collect();
        let number = |axis: &usize| stays.iter().position(|at| at == axis).map(|at| at as u8);
        place.order = axes.iter().filter_map(number).collect();
        Some(place)
    }

    fn wrong_indices(&mut self, place: &Place, indices: &[Index], span: Span) -> Option<Place> {
        let rank = place.rank();
        if rank == 0 {
            let problem = Diagnostic::error("PAL0210", span, "a single number has no elements");
            return self.error(problem);
        }
        let s = if indices.len() == 1 { "index" } else { "indices" };
        let message = format!("{} {s} for {}", indices.len(), describe_rank(rank));
        let mut problem = Diagnostic::error("PAL0210", span, message);
        if indices.len() < usize::from(rank) {
            let all = vec![".."; usize::from(rank) - indices.len()].join(", ");
            problem.help = Some(format!("a whole axis is `..`, for example `a[i, {all}]`"));
        }
        self.error(problem)
    }

    fn index_axis(&mut self, place: &Place, axis: usize, index: &Index) -> Option<Along> {
        match index {
            Index::At(expr) => {
                let val = self.expr(expr)?;
                self.b.at(expr.span);
                if val.ty == Type::INT {
                    return self.element_of(place, axis, &val, expr.span);
                }
                if val.ty == Type::array(Elem::Int, 1) {
                    return self.list_of(place, axis, val);
                }
                let message =
                    format!("an index is an integer or a vector of integers, not {}", describe(val.ty));
                let mut problem = Diagnostic::error("PAL0209", expr.span, message);
                if val.ty.is_real() {
                    problem.help = Some("`floor(x)`, `round(x)` and `int(x)` make integers".into());
                }
                problem.labels.extend(self.became_real(expr));
                self.error(problem)
            }
            Index::Range(range) => self.range_of(place, axis, range),
        }
    }

    /// Where a variable that started as an integer became real.
    pub(super) fn became_real(&self, expr: &Expr) -> Option<(Span, String)> {
        let ExprKind::Name(name) = &expr.kind else { return None };
        let binding = self.scopes.iter().rev().find_map(|scope| scope.get(name))?;
        let Binding::Variable(id) = binding else { return None };
        let place = self.facts.promoted.get(&self.variables[*id].span)?;
        Some((*place, format!("`{name}` is real because of this")))
    }

    /// One element: `val` counts from the start of the place.
    fn element_of(&mut self, place: &Place, axis: usize, val: &Val, span: Span) -> Option<Along> {
        let len = self.known_length(place, axis);
        if let Some(at) = val.known_int() {
            if at < 0 {
                let problem = Diagnostic::error("PAL0221", span, "an index is not negative")
                    .help("indices start at 0; the last element is `a[len(a) - 1]`");
                return self.error(problem);
            }
            if let Some(len) = len
                && at >= len
            {
                let message = format!("index {at} is outside an axis of length {len}");
                let mut problem = Diagnostic::error("PAL0221", span, message);
                if at == len && len > 0 {
                    problem.help = Some(format!("indices start at 0: the last is {}", len - 1));
                }
                return self.error(problem);
            }
        }
        Some(Along::At(match &place.along[axis] {
            Along::All | Along::At(_) => val.clone(),
            Along::Range { start, len, step } => {
                let (start, len, step) = (start.clone(), len.clone(), step.clone());
                let scaled = self.int(IntOp::Mul, val, &step);
                let at = self.int(IntOp::Add, &start, &scaled);
                self.inside(&at, val, val, &len)
            }
            Along::List(list) => {
                let list = list.clone();
                self.emit(Op::Read(vec![Axis::At]), &[&list, val])
            }
        }))
    }

    /// `at`, or -1 unless `0 <= first` and `last < len`.
    fn inside(&mut self, at: &Val, first: &Val, last: &Val, len: &Val) -> Val {
        let low = match first.known_int() {
            Some(first) if first >= 0 => None,
            _ => Some(self.emit(Op::Compare(Comparison::LessEq), &[&Val::int(0), first])),
        };
        let high = match (last.known_int(), len.known_int()) {
            (Some(last), Some(len)) if last < len => None,
            _ => Some(self.emit(Op::Compare(Comparison::Less), &[last, len])),
        };
        let fits = match (low, high) {
            (None, None) => return at.clone(),
            (Some(fits), None) | (None, Some(fits)) => fits,
            (Some(low), Some(high)) => self.emit(Op::Logical(Logical::And), &[&low, &high]),
        };
        self.emit(Op::Select, &[&fits, at, &Val::int(-1)])
    }

    fn list_of(&mut self, place: &Place, axis: usize, list: Val) -> Option<Along> {
        Some(Along::List(match &place.along[axis] {
            Along::All | Along::At(_) => list,
            Along::List(outer) => {
                let outer = outer.clone();
                self.emit(Op::Read(vec![Axis::List]), &[&outer, &list])
            }
            Along::Range { start, len, step } => {
                // Through a table of the part's own indices, so that what is outside it is refused.
                let (start, len, step) = (start.clone(), len.clone(), step.clone());
                let count = self.emit(Op::Iota, &[&len]);
                let scaled = self.emit(Op::Int(IntOp::Mul), &[&count, &step]);
                let table = self.emit(Op::Int(IntOp::Add), &[&scaled, &start]);
                self.emit(Op::Read(vec![Axis::List]), &[&table, &list])
            }
        }))
    }

    fn range_of(&mut self, place: &Place, axis: usize, range: &Range) -> Option<Along> {
        if range.lo.is_none() && range.hi.is_none() && range.by.is_none() {
            return Some(place.along[axis].clone());
        }
        let mut bound = |expr: &Option<Expr>, what: &str| match expr {
            None => Some(None),
            Some(expr) => {
                let val = self.expr(expr)?;
                self.fit(&val, Type::INT, expr.span, what).map(Some)
            }
        };
        let lo = bound(&range.lo, "the start of a range");
        let hi = bound(&range.hi, "the end of a range");
        let by = bound(&range.by, "the step of a range");
        let (lo, hi, by) = (lo?, hi?, by?);
        self.b.at(range.span);
        let total = self.known_length(place, axis);
        let lo = lo.unwrap_or_else(|| Val::int(0));
        let hi = match hi {
            Some(hi) => hi,
            None => self.length_along(place, axis)?,
        };
        let by = by.unwrap_or_else(|| Val::int(1));
        self.check_range(range, &lo, &hi, &by, total)?;
        let count = self.steps(&lo, &hi, &by);
        let len = self.int(IntOp::Max, &count, &Val::int(0));
        Some(match &place.along[axis] {
            Along::All | Along::At(_) => Along::Range { start: lo, len, step: by },
            Along::Range { start, len: outer, step } => {
                let (start, outer, step) = (start.clone(), outer.clone(), step.clone());
                let scaled = self.int(IntOp::Mul, &lo, &step);
                let first = self.int(IntOp::Add, &start, &scaled);
                let before_last = self.int(IntOp::Sub, &len, &Val::int(1));
                let span = self.int(IntOp::Mul, &before_last, &by);
                let last = self.int(IntOp::Add, &lo, &span);
                let first = self.inside(&first, &lo, &last, &outer);
                Along::Range { start: first, len, step: self.int(IntOp::Mul, &step, &by) }
            }
            Along::List(list) => {
                let list = list.clone();
                Along::List(self.emit(Op::Read(vec![Axis::Range]), &[&list, &lo, &len, &by]))
            }
        })
    }

    fn check_range(&mut self, range: &Range, lo: &Val, hi: &Val, by: &Val, total: Option<i64>) -> Option<()> {
        if by.known_int().is_some_and(|by| by < 1) {
            let span = range.by.as_ref().map_or(range.span, |by| by.span);
            let problem = Diagnostic::error("PAL0221", span, "the step of a part is at least 1")
                .help("`reverse(a)` turns an array around");
            return self.error(problem);
        }
        let (lo, hi) = (lo.known_int(), hi.known_int());
        let negative = lo.is_some_and(|lo| lo < 0) || hi.is_some_and(|hi| hi < 0);
        if negative {
            let problem = Diagnostic::error("PAL0221", range.span, "an index is not negative")
                .help("indices start at 0; count from the end with `len(a) - 1`");
            return self.error(problem);
        }
        if let (Some(hi), Some(total)) = (hi, total)
            && hi > total
            && lo.is_none_or(|lo| lo < hi)
        {
            let message = format!("the range ends at {hi}, the axis has length {total}");
            return self.error(Diagnostic::error("PAL0221", range.span, message));
        }
        Some(())
    }

    /// The length along an axis of the base of a place, if it is known.
    fn known_length(&self, place: &Place, axis: usize) -> Option<i64> {
        match &place.along[axis] {
            Along::At(_) => None,
            Along::All => self.base_val(&place.base).and_then(|base| base.lens[axis]),
            Along::Range { len, .. } => len.known_int(),
            Along::List(list) => list.lens[0],
        }
    }

    /// The lengths of a place, where they are known.
    fn place_lens(&self, place: &Place) -> Vec<Option<i64>> {
        (0..place.order.len()).map(|j| self.known_length(place, place.base_axis(j))).collect()
    }

    /// Reads a place.
    pub(super) fn fetch(&mut self, place: &Place, span: Span) -> Option<Val> {
        let base = self.base_val(&place.base)?;
        let lens = self.place_lens(place);
        self.b.at(span);
        let mut val = base;
        if place.along.iter().any(|along| !matches!(along, Along::All)) {
            let (axes, operands) = place.access();
            let args: Vec<&Val> = core::iter::once(&val).chain(operands).collect();
            val = self.emit(Op::Read(axes), &args);
        }
        if !place.in_order() {
            val = self.emit(Op::Permute(place.order.clone()), &[&val]);
        }
        Some(val.with_lens(lens))
    }

    /// What a value must look like to go into a place.
    fn fit_place(&mut self, place: &Place, val: &Val, source: Span, same_rank: bool) -> Option<Val> {
        let rank = place.rank();
        if val.ty.rank != rank && (val.ty.rank != 0 || same_rank) {
            let message = format!("{} goes into {}", describe_rank(val.ty.rank), describe_rank(rank));
            let mut problem = Diagnostic::error("PAL0210", source, message);
            if val.ty.rank == 0 {
                problem.help = Some("`a[..] = x` sets every element".into());
            }
            return self.error(problem);
        }
        let lens = self.place_lens(place);
        for (axis, pair) in lens.iter().zip(&val.lens).enumerate() {
            if let (Some(a), Some(b)) = pair
                && a != b
            {
                let message = format!("{b} elements go into {a} along axis {axis}");
                return self.error(Diagnostic::error("PAL0211", source, message));
            }
        }
        if val.ty.rank == 0 || place.in_order() {
            return Some(val.clone());
        }
        let mut back = vec![0; place.order.len()];
        for (at, &axis) in place.order.iter().enumerate() {
            back[usize::from(axis)] = at as u8;
        }
        Some(self.emit(Op::Permute(back), &[val]))
    }

    /// Replaces what is in a place of a variable.
    pub(super) fn write(&mut self, place: &Place, val: &Val, source: Span, same_rank: bool) -> Option<()> {
        let val = self.fit_place(place, val, source, same_rank)?;
        self.change(place, Op::Write, &val)
    }

    /// Adds to what is in a place of a variable.
    pub(super) fn add_at(&mut self, place: &Place, val: &Val, source: Span) -> Option<()> {
        let val = self.fit_place(place, val, source, false)?;
        self.change(place, Op::AddAt, &val)
    }

    fn change(&mut self, place: &Place, op: fn(Vec<Axis>) -> Op, val: &Val) -> Option<()> {
        let Base::Variable(id) = place.base else { return None };
        let base = self.state[id].val().cloned()?;
        let (axes, operands) = place.access();
        let args: Vec<&Val> = [&base, val].into_iter().chain(operands).collect();
        let new = self.emit(op(axes), &args).with_lens(base.lens.clone());
        self.call_it(new.value.expect("it is computed"), &self.variables[id].name.clone());
        self.state[id] = Held::Val(new);
        Some(())
    }
}
