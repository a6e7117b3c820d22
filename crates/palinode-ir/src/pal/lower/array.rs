//! Functions that make, measure, move and combine arrays, and dense linear algebra.

use super::body::Body;
use super::value::{Val, describe, describe_rank};
use crate::diagnostic::Diagnostic;
use crate::op::{Axis, Comparison, IntOp, Linalg, Logical, Op, Reduction};
use crate::pal::syntax::MAX_RANK;
use crate::types::{Elem, Span, Type};
use palinode_core::rules;

impl Body<'_, '_> {
    pub(super) fn array_function(
        &mut self,
        name: &str,
        vals: &[Val],
        spans: &[Span],
        span: Span,
    ) -> Option<Vec<Val>> {
        let one = &vals[0];
        let single = match name {
            "zeros" => self.filled(&Val::real(0.0), vals, spans, span),
            "ones" => self.filled(&Val::real(1.0), vals, spans, span),
            "fill" => {
                if one.ty.rank != 0 {
                    return self.needs(name, "a single number first", one, spans[0]);
                }
                self.filled(one, &vals[1..], &spans[1..], span)
            }
            "eye" => self.eye(one, spans[0], span),
            "range" | "iota" => self.range(vals, spans, span),
            "linspace" => self.linspace(vals, spans, span),
            "len" => {
                let axis = match vals.get(1) {
                    Some(axis) => self.axis(axis, one.ty.rank, spans[1])?,
                    None => 0,
                };
                self.need_array(name, one, spans[0])?;
                Some(self.length(one, axis))
            }
            "shape" => {
                self.need_array(name, one, spans[0])?;
                return Some((0..one.ty.rank).map(|axis| self.length(one, axis)).collect());
            }
            "sum" | "mean" | "min" | "max" | "min_axis" | "max_axis" => {
                self.reduction(name, vals, spans, span)
            }
            "prod" | "cumsum" | "argmin" | "argmax" => self.scan(name, one, spans[0], span),
            "any" | "all" | "count" => self.truths(name, one, spans[0], span),
            "logsumexp" => self.logsumexp(one, spans[0], span),
            "softmax" => {
                let log = self.logsumexp(one, spans[0], span)?;
                let shifted = self.rule(rules::Row::Subtract, &[one, &log]);
                Some(self.rule(rules::Row::Exp, &[&shifted]))
            }
            "dot" => {
                for (val, place) in vals.iter().zip(spans) {
                    if val.ty.rank != 1 {
                        return self.needs(name, "two vectors", val, *place);
                    }
                }
                self.matmul(one, &vals[1], (spans[0], spans[1]), span)
            }
            "matmul" => self.matmul(one, &vals[1], (spans[0], spans[1]), span),
            "norm" => {
                self.need_numbers(name, one, spans[0])?;
                if one.ty.rank == 0 {
                    return Some(vec![self.rule(rules::Row::Abs, &[one])]);
                }
                let squares = self.rule(rules::Row::Multiply, &[one, one]);
                let sum = self.reduce_all(Reduction::Sum, &squares);
                Some(self.rule(rules::Row::Sqrt, &[&sum]))
            }
            "outer" => {
                for (val, place) in vals.iter().zip(spans) {
                    if val.ty.rank != 1 || val.ty.elem == Elem::Bool {
                        return self.needs(name, "two vectors of numbers", val, *place);
                    }
                }
                let (a, b) = (self.realized(one), self.realized(&vals[1]));
                let lens = vec![a.lens[0], b.lens[0]];
                Some(self.emit(Op::Outer { strong: false }, &[&a, &b]).with_lens(lens))
            }
            "transpose" => {
                if one.ty.rank != 2 {
                    return self.needs(name, "a matrix", one, spans[0]);
                }
                let lens = vec![one.lens[1], one.lens[0]];
                Some(self.emit(Op::Permute(vec![1, 0]), &[one]).with_lens(lens))
            }
            "reshape" => {
                self.need_array(name, one, spans[0])?;
                let lengths = self.lengths_of(&vals[1..], &spans[1..])?;
                self.reshaped(one, &lengths, span)
            }
            "flatten" => {
                self.need_array(name, one, spans[0])?;
                Some(self.flat(one))
            }
            "reverse" => {
                self.need_array(name, one, spans[0])?;
                Some(self.reversed(one))
            }
            "concat" | "vcat" => self.concat(0, vals, spans, span),
            "hcat" => self.concat(1, vals, spans, span),
            "append" => self.append(vals, spans),
            "broadcast" => self.broadcast(vals, spans),
            "repeat_rows" | "repeat_columns" => self.repeat(name, vals, spans),
            "diag" => self.diag(one, spans[0], span),
            "trace" => {
                if one.ty.rank != 2 {
                    return self.needs(name, "a matrix", one, spans[0]);
                }
                let diagonal = self.diag(one, spans[0], span)?;
                let diagonal = self.realized(&diagonal);
                Some(self.reduce_all(Reduction::Sum, &diagonal))
            }
            _ => return self.linalg(name, vals, spans, span),
        };
        single.map(|val| vec![val])
    }

    fn needs<T>(&mut self, name: &str, what: &str, val: &Val, span: Span) -> Option<T> {
        let message = format!("`{name}` needs {what}, not {}", describe(val.ty));
        self.error(Diagnostic::error("PAL0210", span, message))
    }

    fn need_array(&mut self, name: &str, val: &Val, span: Span) -> Option<()> {
        if val.ty.rank == 0 { self.needs(name, "an array", val, span) } else { Some(()) }
    }

    fn need_numbers(&mut self, name: &str, val: &Val, span: Span) -> Option<()> {
        if val.ty.elem != Elem::Bool {
            return Some(());
        }
        let message = format!("`{name}` needs numbers, not {}", describe(val.ty));
        self.error(Diagnostic::error("PAL0209", span, message).help("`count(c)` counts how many hold"))
    }

    fn lengths_of(&mut self, vals: &[Val], spans: &[Span]) -> Option<Vec<Val>> {
        let mut lengths = Vec::new();
        for (val, &span) in vals.iter().zip(spans) {
            let val = self.fit(val, Type::INT, span, "a length")?;
            if val.known_int().is_some_and(|n| n < 0) {
                return self.error(Diagnostic::error("PAL0211", span, "a length is not negative"));
            }
            lengths.push(val);
        }
        if lengths.len() > usize::from(MAX_RANK) {
            let message = format!("an array has at most {MAX_RANK} axes");
            return self.error(Diagnostic::error("PAL0210", spans[0], message));
        }
        Some(lengths)
    }

    fn filled(&mut self, x: &Val, lengths: &[Val], spans: &[Span], span: Span) -> Option<Val> {
        let lengths = self.lengths_of(lengths, spans)?;
        self.b.at(span);
        Some(self.fill(x, &lengths))
    }

    fn fill(&mut self, x: &Val, lengths: &[Val]) -> Val {
        let lens = lengths.iter().map(Val::known_int).collect();
        let args: Vec<&Val> = core::iter::once(x).chain(lengths).collect();
        self.emit(Op::Broadcast(Vec::new()), &args).with_lens(lens)
    }

    /// How many elements there are.
    fn size(&mut self, val: &Val) -> Val {
        let mut size = Val::int(1);
        for axis in 0..val.ty.rank {
            let length = self.length(val, axis);
            size = self.int(IntOp::Mul, &size, &length);
        }
        size
    }

    fn flat(&mut self, val: &Val) -> Val {
        if val.ty.rank == 1 {
            return val.clone();
        }
        let size = self.size(val);
        let lens = vec![size.known_int()];
        self.emit(Op::Reshape, &[val, &size]).with_lens(lens)
    }

    fn reshaped(&mut self, val: &Val, lengths: &[Val], span: Span) -> Option<Val> {
        let lens: Vec<Option<i64>> = lengths.iter().map(Val::known_int).collect();
        let product = |lens: &[Option<i64>]| lens.iter().try_fold(1_i64, |n, len| n.checked_mul((*len)?));
        if let (Some(old), Some(new)) = (product(&val.lens), product(&lens))
            && old != new
        {
            let message = format!("{old} elements cannot be arranged as {new}");
            return self.error(Diagnostic::error("PAL0211", span, message));
        }
        let args: Vec<&Val> = core::iter::once(val).chain(lengths).collect();
        Some(self.emit(Op::Reshape, &args).with_lens(lens))
    }

    fn range(&mut self, vals: &[Val], spans: &[Span], span: Span) -> Option<Val> {
        let mut bounds = Vec::new();
        for (val, &place) in vals.iter().zip(spans) {
            bounds.push(self.fit(val, Type::INT, place, "a bound of `range`")?);
        }
        self.b.at(span);
        let (start, n) = match &bounds[..] {
            [n] => (Val::int(0), n.clone()),
            [lo, hi, ..] => (lo.clone(), self.int(IntOp::Sub, hi, lo)),
            [] => return None,
        };
        let n = self.int(IntOp::Max, &n, &Val::int(0));
        let lens = vec![n.known_int()];
        let count = self.emit(Op::Iota, &[&n]).with_lens(lens);
        Some(self.int(IntOp::Add, &count, &start))
    }

    fn linspace(&mut self, vals: &[Val], spans: &[Span], span: Span) -> Option<Val> {
        for at in 0..2 {
            if vals[at].ty.rank != 0 || vals[at].ty.elem == Elem::Bool {
                return self.needs("linspace", "two numbers and a length", &vals[at], spans[at]);
            }
        }
        let n = self.lengths_of(&vals[2..], &spans[2..])?.remove(0);
        self.b.at(span);
        let before = self.int(IntOp::Sub, &n, &Val::int(1));
        let before = self.int(IntOp::Max, &before, &Val::int(1));
        let width = self.rule(rules::Row::Subtract, &[&vals[1], &vals[0]]);
        let step = self.rule(rules::Row::Divide, &[&width, &before]);
        let lens = vec![n.known_int()];
        let count = self.emit(Op::Iota, &[&n]).with_lens(lens);
        let offset = self.rule(rules::Row::Multiply, &[&count, &step]);
        Some(self.rule(rules::Row::Add, &[&vals[0], &offset]))
    }

    fn reduce_all(&mut self, kind: Reduction, val: &Val) -> Val {
        self.emit(Op::Reduce(kind, (0..val.ty.rank).collect()), &[val])
    }

    fn reduction(&mut self, name: &str, vals: &[Val], spans: &[Span], span: Span) -> Option<Val> {
        let val = &vals[0];
        if val.ty.rank == 0 {
            let help = if matches!(name, "min" | "max") {
                Some(format!("`{name}(a, b)` compares two numbers"))
            } else {
                None
            };
            let message = format!("`{name}` of one argument needs an array, not {}", describe(val.ty));
            let mut problem = Diagnostic::error("PAL0210", spans[0], message);
            problem.help = help;
            return self.error(problem);
        }
        self.need_numbers(name, val, spans[0])?;
        let kind = match name {
            "min" | "min_axis" => Reduction::Min,
            "max" | "max_axis" => Reduction::Max,
            _ => Reduction::Sum,
        };
        let axis = match vals.get(1) {
            Some(axis) => Some(self.axis(axis, val.ty.rank, spans[1])?),
            None => None,
        };
        self.b.at(span);
        if val.ty.elem == Elem::Int && axis.is_none() && name != "mean" {
            return Some(self.integer_reduction(kind, val));
        }
        let real = self.realized(val);
        let (axes, lens, count) = match axis {
            None => ((0..val.ty.rank).collect(), Vec::new(), None),
            Some(axis) => {
                let mut lens = val.lens.clone();
                lens.remove(usize::from(axis));
                (vec![axis], lens, Some(axis))
            }
        };
        let result = self.emit(Op::Reduce(kind, axes), &[&real]).with_lens(lens);
        if name != "mean" {
            return Some(result);
        }
        let n = match count {
            None => self.size(val),
            Some(axis) => self.length(val, axis),
        };
        Some(self.rule(rules::Row::Divide, &[&result, &n]))
    }

    /// Integers are not rounded on the way.
    fn integer_reduction(&mut self, kind: Reduction, val: &Val) -> Val {
        let flat = self.flat(val);
        let n = self.length(&flat, 0);
        let start = match kind {
            Reduction::Sum => Val::int(0),
            Reduction::Max | Reduction::Min => self.emit(Op::Read(vec![Axis::At]), &[&flat, &Val::int(0)]),
        };
        let op = match kind {
            Reduction::Sum => IntOp::Add,
            Reduction::Max => IntOp::Max,
            Reduction::Min => IntOp::Min,
        };
        let (flat, n, start) = (self.operand(&flat), self.operand(&n), self.operand(&start));
        let result = self.b.for_loop(n, &[start], |b, k, state| {
            let element = b.index(flat, &[k]);
            vec![b.integer(op, state[0], element)]
        });
        Val::new(result[0], Type::INT)
    }

    fn scan(&mut self, name: &str, val: &Val, place: Span, span: Span) -> Option<Val> {
        self.need_array(name, val, place)?;
        self.need_numbers(name, val, place)?;
        if name != "prod" && val.ty.rank != 1 {
            return self.needs(name, "a vector", val, place);
        }
        self.b.at(span);
        let lens = val.lens.clone();
        let real = self.realized(val);
        let flat = self.flat(&real);
        let n = self.length(&flat, 0);
        let (a, n) = (self.operand(&flat), self.operand(&n));
        Some(match name {
            "prod" => {
                let start = self.b.real(1.0);
                let result = self.b.for_loop(n, &[start], |b, k, state| {
                    let element = b.index(a, &[k]);
                    vec![b.mul(state[0], element)]
                });
                Val::new(result[0], Type::REAL)
            }
            "cumsum" => {
                let zero = self.b.real(0.0);
                let out = self.b.fill(zero, &[n]);
                let result = self.b.for_loop(n, &[zero, out], |b, k, state| {
                    let element = b.index(a, &[k]);
                    let sum = b.add(state[0], element);
                    vec![sum, b.update(state[1], &[k], sum)]
                });
                Val::new(result[1], Type::array(Elem::F64, 1)).with_lens(lens)
            }
            _ => {
                let start = self.b.int(0);
                let largest = name == "argmax";
                let result = self.b.for_loop(n, &[start], |b, k, state| {
                    let (best, here) = (b.index(a, &[state[0]]), b.index(a, &[k]));
                    let (x, y) = if largest { (best, here) } else { (here, best) };
                    let better = b.compare(Comparison::Less, x, y);
                    vec![b.select(better, k, state[0])]
                });
                Val::new(result[0], Type::INT)
            }
        })
    }

    fn truths(&mut self, name: &str, val: &Val, place: Span, span: Span) -> Option<Val> {
        if val.ty.elem != Elem::Bool || val.ty.rank == 0 {
            return self.needs(name, "an array of truth values", val, place);
        }
        self.b.at(span);
        let hits = match name {
            "all" => self.emit(Op::Select, &[val, &Val::real(0.0), &Val::real(1.0)]),
            _ => self.emit(Op::Select, &[val, &Val::real(1.0), &Val::real(0.0)]),
        };
        let sum = self.reduce_all(Reduction::Sum, &hits);
        Some(match name {
            "count" => self.emit(Op::Convert(Elem::Int), &[&sum]),
            "any" => self.emit(Op::Compare(Comparison::Less), &[&Val::real(0.0), &sum]),
            _ => {
                let some = self.emit(Op::Compare(Comparison::Less), &[&Val::real(0.0), &sum]);
                self.emit(Op::Logical(Logical::Not), &[&some])
            }
        })
    }

    /// Shifted by the largest, so that nothing overflows.
    fn logsumexp(&mut self, val: &Val, place: Span, span: Span) -> Option<Val> {
        self.need_array("logsumexp", val, place)?;
        self.need_numbers("logsumexp", val, place)?;
        self.b.at(span);
        let val = self.realized(val);
        let largest = self.reduce_all(Reduction::Max, &val);
        let largest = self.emit(Op::StopGradient, &[&largest]);
        let shifted = self.rule(rules::Row::Subtract, &[&val, &largest]);
        let powers = self.rule(rules::Row::Exp, &[&shifted]);
        let sum = self.reduce_all(Reduction::Sum, &powers);
        let log = self.rule(rules::Row::Ln, &[&sum]);
        Some(self.rule(rules::Row::Add, &[&log, &largest]))
    }

    fn reversed(&mut self, val: &Val) -> Val {
        let n = self.length(val, 0);
        let last = self.int(IntOp::Sub, &n, &Val::int(1));
        let count = self.emit(Op::Iota, &[&n]);
        let list = self.emit(Op::Int(IntOp::Sub), &[&last, &count]);
        let mut axes = vec![Axis::List];
        axes.resize(usize::from(val.ty.rank), Axis::All);
        self.emit(Op::Read(axes), &[val, &list]).with_lens(val.lens.clone())
    }

    fn concat(&mut self, axis: u8, vals: &[Val], spans: &[Span], span: Span) -> Option<Val> {
        let rank = vals[0].ty.rank;
        if rank <= axis {
            let help = "`append(a, x)` adds a number to a vector; `[x, y]` makes a vector";
            let message = format!("{} has no axis {axis} to join along", describe_rank(rank));
            return self.error(Diagnostic::error("PAL0210", spans[0], message).help(help));
        }
        let mut lens = vals[0].lens.clone();
        for (val, &place) in vals.iter().zip(spans) {
            if val.ty.rank != rank {
                let message =
                    format!("{} cannot be joined to {}", describe_rank(val.ty.rank), describe_rank(rank));
                let mut problem =
                    Diagnostic::error("PAL0210", place, message).and(spans[0], describe(vals[0].ty));
                if val.ty.rank == 0 {
                    problem.help = Some("`append(a, x)` adds a number to a vector".into());
                }
                return self.error(problem);
            }
        }
        let total = vals.iter().map(|val| val.lens[usize::from(axis)]).sum();
        lens[usize::from(axis)] = total;
        let vals = self.one_kind(vals, span)?;
        Some(self.emit(Op::Concat(axis), &vals.iter().collect::<Vec<_>>()).with_lens(lens))
    }

    /// All real if one is.
    fn one_kind(&mut self, vals: &[Val], span: Span) -> Option<Vec<Val>> {
        let elem = vals[0].ty.elem;
        if vals.iter().all(|val| val.ty.elem == elem) {
            return Some(vals.to_vec());
        }
        if vals.iter().any(|val| val.ty.elem == Elem::Bool) {
            let problem = Diagnostic::error("PAL0209", span, "numbers and truth values do not go together");
            return self.error(problem);
        }
        self.b.at(span);
        Some(vals.iter().map(|val| self.realized(val)).collect())
    }

    fn append(&mut self, vals: &[Val], spans: &[Span]) -> Option<Val> {
        if vals[0].ty.rank != 1 {
            return self.needs("append", "a vector first", &vals[0], spans[0]);
        }
        let vals = self.one_kind(vals, spans[0])?;
        Some(self.emit(Op::Push, &vals.iter().collect::<Vec<_>>()))
    }

    fn broadcast(&mut self, vals: &[Val], spans: &[Span]) -> Option<Val> {
        let lengths = self.lengths_of(&vals[1..], &spans[1..])?;
        let (rank, to) = (vals[0].ty.rank, lengths.len() as u8);
        if rank > to {
            let message = format!("{} cannot be spread over {to} axes", describe_rank(rank));
            return self.error(Diagnostic::error("PAL0210", spans[0], message));
        }
        let lens = lengths.iter().map(Val::known_int).collect();
        let args: Vec<&Val> = core::iter::once(&vals[0]).chain(&lengths).collect();
        Some(self.emit(Op::Broadcast((to - rank..to).collect()), &args).with_lens(lens))
    }

    fn repeat(&mut self, name: &str, vals: &[Val], spans: &[Span]) -> Option<Val> {
        let val = &vals[0];
        if val.ty.rank != 1 {
            return self.needs(name, "a vector", val, spans[0]);
        }
        let count = self.lengths_of(&vals[1..], &spans[1..])?.remove(0);
        let own = self.length(val, 0);
        let (axes, lengths) =
            if name == "repeat_rows" { (vec![1], [count, own]) } else { (vec![0], [own, count]) };
        let lens = lengths.iter().map(Val::known_int).collect();
        Some(self.emit(Op::Broadcast(axes), &[val, &lengths[0], &lengths[1]]).with_lens(lens))
    }

    fn eye(&mut self, n: &Val, place: Span, span: Span) -> Option<Val> {
        let n = self.lengths_of(core::slice::from_ref(n), &[place])?.remove(0);
        self.b.at(span);
        Some(self.diagonal_matrix(&Val::real(1.0), &n))
    }

    fn diagonal_matrix(&mut self, x: &Val, n: &Val) -> Val {
        let size = self.int(IntOp::Mul, n, n);
        let step = self.int(IntOp::Add, n, &Val::int(1));
        let zero = if x.ty.elem == Elem::Int { Val::int(0) } else { Val::real(0.0) };
        let zeros = self.fill(&zero, &[size]);
        let flat = self.emit(Op::Write(vec![Axis::Range]), &[&zeros, x, &Val::int(0), n, &step]);
        let lens = vec![n.known_int(); 2];
        self.emit(Op::Reshape, &[&flat, n, n]).with_lens(lens)
    }

    /// The diagonal of a matrix, or the matrix with a diagonal.
    fn diag(&mut self, val: &Val, place: Span, span: Span) -> Option<Val> {
        if val.ty.elem == Elem::Bool || !matches!(val.ty.rank, 1 | 2) {
            return self.needs("diag", "a matrix or a vector of numbers", val, place);
        }
        self.b.at(span);
        let n = self.length(val, 0);
        if val.ty.rank == 1 {
            return Some(self.diagonal_matrix(val, &n));
        }
        let m = self.length(val, 1);
        let flat = self.flat(val);
        let count = self.int(IntOp::Min, &n, &m);
        let step = self.int(IntOp::Add, &m, &Val::int(1));
        let lens = vec![count.known_int()];
        Some(self.emit(Op::Read(vec![Axis::Range]), &[&flat, &Val::int(0), &count, &step]).with_lens(lens))
    }

    fn linalg(&mut self, name: &str, vals: &[Val], spans: &[Span], span: Span) -> Option<Vec<Val>> {
        let op = match name {
            "solve" => Linalg::Solve { transposed: false },
            "solve_lower" => Linalg::SolveTriangular { lower: true, transposed: false },
            "solve_upper" => Linalg::SolveTriangular { lower: false, transposed: false },
            "inv" => Linalg::Inverse,
            "det" => Linalg::Determinant,
            "logdet" => Linalg::LogDet,
            "cholesky" => Linalg::Cholesky,
            "qr" => Linalg::Qr,
            "eigh" => Linalg::SymmetricEigen,
            "svd" => Linalg::Svd,
            _ => return None,
        };
        for (at, (val, &place)) in vals.iter().zip(spans).enumerate() {
            self.need_numbers(name, val, place)?;
            if at == 0 && val.ty.rank != 2 {
                return self.needs(name, "a matrix", val, place);
            }
            if at == 1 && !matches!(val.ty.rank, 1 | 2) {
                return self.needs(name, "a vector or a matrix on the right side", val, place);
            }
        }
        if let (Some(Some(n)), Some(Some(m))) =
            (vals[0].lens.first(), vals.get(1).and_then(|b| b.lens.first()))
            && n != m
        {
            let problem =
                Diagnostic::error("PAL0211", span, format!("the matrix has {n} rows, the right side {m}"));
            return self.error(problem);
        }
        let square = !matches!(op, Linalg::Qr | Linalg::Svd);
        if let (true, [Some(n), Some(m)]) = (square, &vals[0].lens[..])
            && n != m
        {
            let message = format!("`{name}` needs a square matrix, not {n} by {m}");
            return self.error(Diagnostic::error("PAL0211", spans[0], message));
        }
        let reals: Vec<Val> = vals.iter().map(|val| self.realized(val)).collect();
        self.checked(Op::Linalg(op), &reals.iter().collect::<Vec<_>>(), span)
    }
}
