//! Functions that make, measure, move and combine arrays, and dense linear algebra.

use super::body::Body;
use super::builtin::Call;
use super::value::{Val, describe, describe_rank};
use crate::diagnostic::Diagnostic;
use crate::op::{Axis, Comparison, IntOp, Linalg, Logical, Op, Reduction};
use crate::pal::syntax::MAX_RANK;
use crate::program::Value;
use crate::types::{Elem, Span, Type};
use palinode_core::rules;

impl Body<'_, '_> {
    pub(super) fn filled_with(&mut self, call: &Call<'_>) -> Option<Val> {
        if call.vals[0].ty.rank != 0 {
            return self.needs(call.name, "a single number first", &call.vals[0], call.spans[0]);
        }
        self.filled(&call.vals[0], &call.vals[1..], &call.spans[1..], call.span)
    }

    pub(super) fn len(&mut self, call: &Call<'_>) -> Option<Val> {
        let one = &call.vals[0];
        let axis = match call.vals.get(1) {
            Some(axis) => self.axis(axis, one.ty.rank, call.spans[1])?,
            None => 0,
        };
        self.need_array(call)?;
        Some(self.length(one, axis))
    }

    pub(super) fn shape(&mut self, call: &Call<'_>) -> Option<Vec<Val>> {
        self.need_array(call)?;
        Some((0..call.vals[0].ty.rank).map(|axis| self.length(&call.vals[0], axis)).collect())
    }

    pub(super) fn softmax(&mut self, call: &Call<'_>) -> Option<Val> {
        let log = self.logsumexp(call)?;
        let shifted = self.rule(rules::Row::Subtract, &[&call.vals[0], &log]);
        Some(self.rule(rules::Row::Exp, &[&shifted]))
    }

    pub(super) fn dot(&mut self, call: &Call<'_>) -> Option<Val> {
        for (val, place) in call.vals.iter().zip(call.spans) {
            if val.ty.rank != 1 {
                return self.needs(call.name, "two vectors", val, *place);
            }
        }
        self.matmul(&call.vals[0], &call.vals[1], (call.spans[0], call.spans[1]), call.span)
    }

    pub(super) fn norm(&mut self, call: &Call<'_>) -> Option<Val> {
        let one = &call.vals[0];
        self.need_numbers(call.name, one, call.spans[0])?;
        if one.ty.rank == 0 {
            return Some(self.rule(rules::Row::Abs, &[one]));
        }
        let squares = self.rule(rules::Row::Multiply, &[one, one]);
        let sum = self.reduce_all(Reduction::Sum, &squares);
        Some(self.rule(rules::Row::Sqrt, &[&sum]))
    }

    pub(super) fn outer(&mut self, call: &Call<'_>) -> Option<Val> {
        for (val, place) in call.vals.iter().zip(call.spans) {
            if val.ty.rank != 1 || val.ty.elem == Elem::Bool {
                return self.needs(call.name, "two vectors of numbers", val, *place);
            }
        }
        let (a, b) = (self.realized(&call.vals[0]), self.realized(&call.vals[1]));
        let lens = vec![a.lens[0], b.lens[0]];
        Some(self.emit(Op::Outer { strong: false }, &[&a, &b]).with_lens(lens))
    }

    pub(super) fn transposed(&mut self, call: &Call<'_>) -> Option<Val> {
        let one = self.need_matrix(call)?;
        let lens = vec![one.lens[1], one.lens[0]];
        Some(self.emit(Op::Permute(vec![1, 0]), &[one]).with_lens(lens))
    }

    pub(super) fn flattened(&mut self, call: &Call<'_>) -> Option<Val> {
        self.need_array(call)?;
        Some(self.flat(&call.vals[0]))
    }

    pub(super) fn trace(&mut self, call: &Call<'_>) -> Option<Val> {
        self.need_matrix(call)?;
        let diagonal = self.diag(call)?;
        let diagonal = self.realized(&diagonal);
        Some(self.reduce_all(Reduction::Sum, &diagonal))
    }

    fn needs<T>(&mut self, name: &str, what: &str, val: &Val, span: Span) -> Option<T> {
        let message = format!("`{name}` needs {what}, not {}", describe(val.ty));
        self.error(Diagnostic::error("PAL0210", span, message))
    }

    fn need_array(&mut self, call: &Call<'_>) -> Option<()> {
        let val = &call.vals[0];
        if val.ty.rank == 0 { self.needs(call.name, "an array", val, call.spans[0]) } else { Some(()) }
    }

    fn need_matrix<'c>(&mut self, call: &Call<'c>) -> Option<&'c Val> {
        let val = &call.vals[0];
        if val.ty.rank == 2 { Some(val) } else { self.needs(call.name, "a matrix", val, call.spans[0]) }
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

    pub(super) fn filled(&mut self, x: &Val, lengths: &[Val], spans: &[Span], span: Span) -> Option<Val> {
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

    pub(super) fn reshaped(&mut self, call: &Call<'_>) -> Option<Val> {
        self.need_array(call)?;
        let val = &call.vals[0];
        let lengths = self.lengths_of(&call.vals[1..], &call.spans[1..])?;
        let lens: Vec<Option<i64>> = lengths.iter().map(Val::known_int).collect();
        let product = |lens: &[Option<i64>]| lens.iter().try_fold(1_i64, |n, len| n.checked_mul((*len)?));
        if let (Some(old), Some(new)) = (product(&val.lens), product(&lens))
            && old != new
        {
            let message = format!("{old} elements cannot be arranged as {new}");
            return self.error(Diagnostic::error("PAL0211", call.span, message));
        }
        let args: Vec<&Val> = core::iter::once(val).chain(&lengths).collect();
        Some(self.emit(Op::Reshape, &args).with_lens(lens))
    }

    pub(super) fn range(&mut self, call: &Call<'_>) -> Option<Val> {
        let mut bounds = Vec::new();
        for (val, &place) in call.vals.iter().zip(call.spans) {
            bounds.push(self.fit(val, Type::INT, place, "a bound of `range`")?);
        }
        self.b.at(call.span);
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

    pub(super) fn linspace(&mut self, call: &Call<'_>) -> Option<Val> {
        let Call { vals, spans, span, .. } = *call;
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

    pub(super) fn mean(&mut self, call: &Call<'_>) -> Option<Val> {
        let sum = self.reduction_of(Reduction::Sum, call, false)?;
        let val = &call.vals[0];
        let n = match call.vals.get(1) {
            None => self.size(val),
            Some(axis) => {
                let axis = self.axis(axis, val.ty.rank, call.spans[1])?;
                self.length(val, axis)
            }
        };
        Some(self.rule(rules::Row::Divide, &[&sum, &n]))
    }

    pub(super) fn reduction(&mut self, kind: Reduction, call: &Call<'_>) -> Option<Val> {
        self.reduction_of(kind, call, true)
    }

    /// A reduction; of integers it is one, if that is wanted.
    fn reduction_of(&mut self, kind: Reduction, call: &Call<'_>, integers: bool) -> Option<Val> {
        let Call { name, vals, spans, span } = *call;
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
        let axis = match vals.get(1) {
            Some(axis) => Some(self.axis(axis, val.ty.rank, spans[1])?),
            None => None,
        };
        self.b.at(span);
        if val.ty.elem == Elem::Int && axis.is_none() && integers {
            return Some(self.integer_reduction(kind, val));
        }
        let real = self.realized(val);
        let (axes, lens) = match axis {
            None => ((0..val.ty.rank).collect(), Vec::new()),
            Some(axis) => {
                let mut lens = val.lens.clone();
                lens.remove(usize::from(axis));
                (vec![axis], lens)
            }
        };
        Some(self.emit(Op::Reduce(kind, axes), &[&real]).with_lens(lens))
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

    /// The elements of an array of numbers in order, and how many there are, to go through.
    fn elements(&mut self, call: &Call<'_>, vector: bool) -> Option<(Value, Value)> {
        let val = &call.vals[0];
        self.need_array(call)?;
        self.need_numbers(call.name, val, call.spans[0])?;
        if vector && val.ty.rank != 1 {
            return self.needs(call.name, "a vector", val, call.spans[0]);
        }
        self.b.at(call.span);
        let real = self.realized(val);
        let flat = self.flat(&real);
        let n = self.length(&flat, 0);
        Some((self.operand(&flat), self.operand(&n)))
    }

    pub(super) fn product_of_all(&mut self, call: &Call<'_>) -> Option<Val> {
        let (a, n) = self.elements(call, false)?;
        let start = self.b.real(1.0);
        let result = self.b.for_loop(n, &[start], |b, k, state| {
            let element = b.index(a, &[k]);
            vec![b.mul(state[0], element)]
        });
        Some(Val::new(result[0], Type::REAL))
    }

    pub(super) fn running_sum(&mut self, call: &Call<'_>) -> Option<Val> {
        let (a, n) = self.elements(call, true)?;
        let zero = self.b.real(0.0);
        let out = self.b.fill(zero, &[n]);
        let result = self.b.for_loop(n, &[zero, out], |b, k, state| {
            let element = b.index(a, &[k]);
            let sum = b.add(state[0], element);
            vec![sum, b.update(state[1], &[k], sum)]
        });
        Some(Val::new(result[1], Type::array(Elem::F64, 1)).with_lens(call.vals[0].lens.clone()))
    }

    /// The index of the first that is smallest or largest.
    pub(super) fn place_of(&mut self, kind: Reduction, call: &Call<'_>) -> Option<Val> {
        let (a, n) = self.elements(call, true)?;
        let start = self.b.int(0);
        let result = self.b.for_loop(n, &[start], |b, k, state| {
            let (best, here) = (b.index(a, &[state[0]]), b.index(a, &[k]));
            let (x, y) = if kind == Reduction::Max { (best, here) } else { (here, best) };
            let better = b.compare(Comparison::Less, x, y);
            vec![b.select(better, k, state[0])]
        });
        Some(Val::new(result[0], Type::INT))
    }

    /// How many of an array of truth values are this, as a real number.
    fn hits(&mut self, call: &Call<'_>, wanted: bool) -> Option<Val> {
        let val = &call.vals[0];
        if val.ty.elem != Elem::Bool || val.ty.rank == 0 {
            return self.needs(call.name, "an array of truth values", val, call.spans[0]);
        }
        self.b.at(call.span);
        let [yes, no] = [wanted, !wanted].map(|counts| Val::real(if counts { 1.0 } else { 0.0 }));
        let hits = self.emit(Op::Select, &[val, &yes, &no]);
        Some(self.reduce_all(Reduction::Sum, &hits))
    }

    pub(super) fn count(&mut self, call: &Call<'_>) -> Option<Val> {
        let sum = self.hits(call, true)?;
        Some(self.emit(Op::Convert(Elem::Int), &[&sum]))
    }

    /// Whether one of them is this.
    pub(super) fn any(&mut self, call: &Call<'_>, wanted: bool) -> Option<Val> {
        let sum = self.hits(call, wanted)?;
        Some(self.emit(Op::Compare(Comparison::Less), &[&Val::real(0.0), &sum]))
    }

    pub(super) fn all(&mut self, call: &Call<'_>) -> Option<Val> {
        let some = self.any(call, false)?;
        Some(self.emit(Op::Logical(Logical::Not), &[&some]))
    }

    /// Shifted by the largest, so that nothing overflows.
    pub(super) fn logsumexp(&mut self, call: &Call<'_>) -> Option<Val> {
        // `softmax` is made of it.
        let call = Call { name: "logsumexp", ..*call };
        self.need_array(&call)?;
        self.need_numbers(call.name, &call.vals[0], call.spans[0])?;
        self.b.at(call.span);
        let val = self.realized(&call.vals[0]);
        let largest = self.reduce_all(Reduction::Max, &val);
        let largest = self.emit(Op::StopGradient, &[&largest]);
        let shifted = self.rule(rules::Row::Subtract, &[&val, &largest]);
        let powers = self.rule(rules::Row::Exp, &[&shifted]);
        let sum = self.reduce_all(Reduction::Sum, &powers);
        let log = self.rule(rules::Row::Ln, &[&sum]);
        Some(self.rule(rules::Row::Add, &[&log, &largest]))
    }

    pub(super) fn reversed(&mut self, call: &Call<'_>) -> Option<Val> {
        self.need_array(call)?;
        let val = &call.vals[0];
        let n = self.length(val, 0);
        let last = self.int(IntOp::Sub, &n, &Val::int(1));
        let count = self.emit(Op::Iota, &[&n]);
        let list = self.emit(Op::Int(IntOp::Sub), &[&last, &count]);
        let mut axes = vec![Axis::List];
        axes.resize(usize::from(val.ty.rank), Axis::All);
        Some(self.emit(Op::Read(axes), &[val, &list]).with_lens(val.lens.clone()))
    }

    pub(super) fn concat(&mut self, axis: u8, call: &Call<'_>) -> Option<Val> {
        let Call { vals, spans, span, .. } = *call;
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

    pub(super) fn append(&mut self, call: &Call<'_>) -> Option<Val> {
        if call.vals[0].ty.rank != 1 {
            return self.needs(call.name, "a vector first", &call.vals[0], call.spans[0]);
        }
        let vals = self.one_kind(call.vals, call.spans[0])?;
        Some(self.emit(Op::Push, &vals.iter().collect::<Vec<_>>()))
    }

    pub(super) fn broadcast(&mut self, call: &Call<'_>) -> Option<Val> {
        let Call { vals, spans, .. } = *call;
        let lengths = self.lengths_of(&vals[1..], &spans[1..])?;
        let (rank, to) = (vals[0].ty.rank, lengths.len() as u8);
        if rank > to {
            let message = format!("{} cannot be broadcast over {to} axes", describe_rank(rank));
            return self.error(Diagnostic::error("PAL0210", spans[0], message));
        }
        let lens = lengths.iter().map(Val::known_int).collect();
        let args: Vec<&Val> = core::iter::once(&vals[0]).chain(&lengths).collect();
        Some(self.emit(Op::Broadcast((to - rank..to).collect()), &args).with_lens(lens))
    }

    /// A vector, as axis `axis` of a matrix that repeats it.
    pub(super) fn repeat(&mut self, axis: u8, call: &Call<'_>) -> Option<Val> {
        let Call { name, vals, spans, .. } = *call;
        let val = &vals[0];
        if val.ty.rank != 1 {
            return self.needs(name, "a vector", val, spans[0]);
        }
        let count = self.lengths_of(&vals[1..], &spans[1..])?.remove(0);
        let own = self.length(val, 0);
        let lengths = if axis == 1 { [count, own] } else { [own, count] };
        let lens = lengths.iter().map(Val::known_int).collect();
        Some(self.emit(Op::Broadcast(vec![axis]), &[val, &lengths[0], &lengths[1]]).with_lens(lens))
    }

    pub(super) fn eye(&mut self, call: &Call<'_>) -> Option<Val> {
        let n = self.lengths_of(call.vals, call.spans)?.remove(0);
        self.b.at(call.span);
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
    pub(super) fn diag(&mut self, call: &Call<'_>) -> Option<Val> {
        let val = &call.vals[0];
        if val.ty.elem == Elem::Bool || !matches!(val.ty.rank, 1 | 2) {
            return self.needs("diag", "a matrix or a vector of numbers", val, call.spans[0]);
        }
        self.b.at(call.span);
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

    pub(super) fn linalg(&mut self, op: Linalg, call: &Call<'_>) -> Option<Vec<Val>> {
        let Call { name, vals, spans, span } = *call;
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
