//! The tangents of dense linear algebra, as instructions: the formulas of
//! [`palinode_core::matrix::tangents`], on symbols.
//!
//! Input: operands, their tangents, results. Output: the results' tangents, linear in the operands'. The
//! reverse rules follow by transposition.
//!
//! Limits: equal eigenvalues or singular values divide by 0 in the vectors' tangents (infinite or NaN, never
//! silently 0); the second derivative of a determinant at singular matrices of more than [`EXPANDED`] rows is
//! refused.

use core::convert::Infallible;

use palinode_core::matrix::tangents::{self, Algebra, Divisors, Part};
use palinode_core::rules::Row;

use crate::builder::FunctionBuilder;
use crate::op::{Comparison, IntOp, Linalg, Op, Reduction};
use crate::program::Value;
use crate::transform::zero;
use crate::types::Elem;

pub(crate) fn tangents(
    b: &mut FunctionBuilder,
    kind: Linalg,
    args: &[Value],
    tangents: &[Option<Value>],
    results: &[Value],
) -> Vec<Value> {
    let Ok(found) = of(&mut Matrices { b }, kind, args[0], tangents, results);
    found
}

fn of(
    w: &mut Matrices<'_>,
    kind: Linalg,
    a: Value,
    given: &[Option<Value>],
    results: &[Value],
) -> Result<Vec<Value>, Infallible> {
    let da = || given[0].expect("the operand has a tangent");
    let solved = |w: &mut Matrices<'_>, da: Option<Value>, transposed: bool| {
        let solve = |w: &mut Matrices<'_>, right: &Value| Ok(w.b.emit(Op::Linalg(kind), &[a, *right]));
        tangents::solve(w, (da.as_ref(), given[1].as_ref()), transposed, &results[0], solve)
    };
    Ok(match kind {
        Linalg::Solve { transposed } | Linalg::SolveChecked { transposed, .. } => {
            vec![solved(w, given[0], transposed)?]
        }
        Linalg::SolveTriangular { lower, transposed } => {
            let part = if lower { Part::Lower } else { Part::Upper };
            let da = given[0].map(|da| w.part(&da, part, &a));
            vec![solved(w, da, transposed)?]
        }
        Linalg::Inverse => vec![tangents::inverse(w, &da(), &results[0])?],
        Linalg::Determinant => {
            let cofactors = w.b.emit(Op::Linalg(Linalg::Cofactors), &[a]);
            vec![w.inner(da(), cofactors)]
        }
        Linalg::Cofactors => vec![w.cofactors(a, da(), results[0])],
        Linalg::LogDet => {
            let inverse = w.b.emit(Op::Linalg(Linalg::Inverse), &[a]);
            let by = w.transposed(&inverse);
            vec![w.inner(da(), by)]
        }
        Linalg::Cholesky => vec![tangents::cholesky(w, &da(), &results[0])?],
        Linalg::Qr => tangents::qr(w, &da(), &results[0], &results[1])?.into(),
        Linalg::SymmetricEigen => {
            let values = Spectrum(results[0]);
            let p = tangents::symmetric_eigen(w, &da(), &results[1])?;
            let over_gaps = |w: &mut Matrices<'_>, p: &Value| values.over_gaps(w, p);
            vec![values.diagonal(w, p), tangents::eigenvectors(w, &results[1], &p, over_gaps)?]
        }
        Linalg::Svd => {
            let (u, values, v) = (&results[0], Spectrum(results[1]), &results[2]);
            let found = tangents::svd(w, &da(), u, v)?;
            let moved = values.diagonal(w, found[1]);
            let [du, dv] = tangents::singular_vectors(w, &da(), (u, v), &found, &values)?;
            vec![du, moved, dv]
        }
    })
}

/// Up to so many rows sums of products in place of divisions lose few digits.
const EXPANDED: i64 = 16;

struct Matrices<'a> {
    b: &'a mut FunctionBuilder,
}

impl Algebra for Matrices<'_> {
    type Matrix = Value;
    type Error = Infallible;

    fn product(
        &mut self,
        a: &Value,
        a_transposed: bool,
        b: &Value,
        b_transposed: bool,
    ) -> Result<Value, Infallible> {
        Ok(self.b.emit(Op::MatMul { a_transposed, b_transposed, strong: true }, &[*a, *b]))
    }
    fn solve_triangular(
        &mut self,
        t: &Value,
        lower: bool,
        transposed: bool,
        b: &Value,
    ) -> Result<Value, Infallible> {
        Ok(self.b.emit(Op::Linalg(Linalg::SolveTriangular { lower, transposed }), &[*t, *b]))
    }
    fn transposed(&mut self, a: &Value) -> Value {
        self.b.emit(Op::Permute(vec![1, 0]), &[*a])
    }
    fn sum(&mut self, a: &Value, b: &Value) -> Value {
        self.b.add(*a, *b)
    }
    fn difference(&mut self, a: &Value, b: &Value) -> Value {
        self.b.sub(*a, *b)
    }
    fn negated(&mut self, a: &Value) -> Value {
        self.b.neg(*a)
    }
    fn symmetric(&mut self, a: &Value) -> Value {
        let mirrored = self.transposed(a);
        let twice = self.b.add(*a, mirrored);
        self.halved(twice)
    }
    fn antisymmetric(&mut self, a: &Value) -> Value {
        let mirrored = self.transposed(a);
        let twice = self.b.sub(*a, mirrored);
        self.halved(twice)
    }
    fn part(&mut self, a: &Value, part: Part, like: &Value) -> Value {
        let elem = self.b.ty(*a).elem;
        let size = (self.b.dim(*like, 0), self.b.dim(*like, 1));
        let (rows, columns) = self.positions(size);
        let (small, large) = if part == Part::Upper { (rows, columns) } else { (columns, rows) };
        let inside = self.b.compare(Comparison::Less, small, large);
        let (one, none) = (self.literal(1.0, elem), zero(self.b, elem));
        let on_diagonal = match part {
            Part::Lower | Part::Upper => one,
            Part::LowerHalf => self.literal(0.5, elem),
            Part::StrictlyLower => none,
        };
        let on = self.b.compare(Comparison::Equal, rows, columns);
        let rest = self.b.select(on, on_diagonal, none);
        let mask = self.b.select(inside, one, rest);
        self.scale(*a, mask)
    }
    /// Lengths are not known.
    fn spans_all(&self, _basis: &Value) -> bool {
        false
    }
}

/// Eigenvalues or singular values.
struct Spectrum(Value);

impl Spectrum {
    /// Where the rows and columns of a square matrix with as many are the same.
    fn on_diagonal(&self, w: &mut Matrices<'_>) -> Value {
        let n = w.b.dim(self.0, 0);
        let (rows, columns) = w.positions((n, n));
        w.b.compare(Comparison::Equal, rows, columns)
    }

    /// The diagonal of a tangent.
    fn diagonal(&self, w: &mut Matrices<'_>, a: Value) -> Value {
        let elem = w.b.ty(a).elem;
        let on = self.on_diagonal(w);
        let (one, none) = (w.literal(1.0, elem), zero(w.b, elem));
        let mask = w.b.select(on, one, none);
        let kept = w.scale(a, mask);
        w.b.emit(Op::Reduce(Reduction::Sum, vec![1]), &[kept])
    }

    /// `m` over what `join` makes of the values of column and row, zero on the diagonal.
    fn over(
        &self,
        w: &mut Matrices<'_>,
        m: Value,
        join: fn(&mut FunctionBuilder, Value, Value) -> Value,
    ) -> Value {
        let n = w.b.dim(self.0, 0);
        let of_row = w.b.emit(Op::Broadcast(vec![0]), &[self.0, n, n]);
        let of_column = w.b.emit(Op::Broadcast(vec![1]), &[self.0, n, n]);
        let joined = join(w.b, of_column, of_row);
        let inverse = w.b.map(Row::Recip, &[joined]);
        let on = self.on_diagonal(w);
        let none = zero(w.b, w.b.ty(self.0).elem);
        let by = w.b.select(on, none, inverse);
        w.scale(m, by)
    }
}

impl<'a> Divisors<Matrices<'a>> for Spectrum {
    fn over_gaps(&self, w: &mut Matrices<'a>, m: &Value) -> Value {
        self.over(w, *m, FunctionBuilder::sub)
    }
    fn over_sums(&self, w: &mut Matrices<'a>, m: &Value) -> Value {
        self.over(w, *m, FunctionBuilder::add)
    }
    fn over_values(&self, w: &mut Matrices<'a>, m: &Value, like: &Value) -> Value {
        let (rows, columns) = (w.b.dim(*like, 0), w.b.dim(self.0, 0));
        let inverse = w.b.map(Row::Recip, &[self.0]);
        let inverse = w.b.emit(Op::Broadcast(vec![1]), &[inverse, rows, columns]);
        w.scale(*m, inverse)
    }
}

impl Matrices<'_> {
    /// `tangent * by`, element by element.
    fn scale(&mut self, tangent: Value, by: Value) -> Value {
        self.b.map(Row::StrongMul, &[tangent, by])
    }

    /// The sum of the products of elements.
    fn inner(&mut self, tangent: Value, by: Value) -> Value {
        let products = self.scale(tangent, by);
        self.b.sum(products)
    }

    fn halved(&mut self, a: Value) -> Value {
        let half = self.literal(0.5, self.b.ty(a).elem);
        self.scale(a, half)
    }

    fn literal(&mut self, value: f64, elem: Elem) -> Value {
        let literal = self.b.real(value);
        if elem == Elem::F32 { self.b.convert(Elem::F32, literal) } else { literal }
    }

    /// The row and column numbers of a matrix, as integer matrices.
    ///
    /// `n` and `m` must be lengths of known arrays: a tangent is not there when the known half runs.
    fn positions(&mut self, (n, m): (Value, Value)) -> (Value, Value) {
        let (rows, columns) = (self.b.emit(Op::Iota, &[n]), self.b.emit(Op::Iota, &[m]));
        let rows = self.b.emit(Op::Broadcast(vec![0]), &[rows, n, m]);
        let columns = self.b.emit(Op::Broadcast(vec![1]), &[columns, n, m]);
        (rows, columns)
    }

    /// The tangent of cofactors `C`: of a small matrix without a division, of a large one `<A^-T, dA> C -
    /// A^-T dA' C`.
    fn cofactors(&mut self, a: Value, da: Value, c: Value) -> Value {
        let n = self.b.dim(a, 0);
        let most = self.b.int(EXPANDED);
        let is_large = self.b.compare(Comparison::Less, most, n);
        let by_inverse = |b: &mut FunctionBuilder| {
            let mut w = Matrices { b };
            let inverse = w.b.emit(Op::Linalg(Linalg::Inverse), &[a]);
            let by = w.transposed(&inverse);
            let trace = w.inner(da, by);
            let trace = w.b.fill(trace, &[n, n]);
            let scaled = w.scale(trace, c);
            let Ok(turned) = w.product(&da, true, &c, false);
            let Ok(turned) = w.product(&inverse, true, &turned, false);
            vec![w.b.sub(scaled, turned)]
        };
        let by_expansion = |b: &mut FunctionBuilder| vec![Matrices { b }.expanded_cofactors(a, da, n)];
        self.b.if_else(is_large, by_inverse, by_expansion)[0]
    }

    /// The tangent of Faddeev's and LeVerrier's scheme: `M <- A M - tr(A M) / k`, `n - 1` times from the
    /// identity on, is the transposed matrix of cofactors but for its sign.
    fn expanded_cofactors(&mut self, a: Value, da: Value, n: Value) -> Value {
        let elem = self.b.ty(a).elem;
        let (rows, columns) = self.positions((n, n));
        let on = self.b.compare(Comparison::Equal, rows, columns);
        let (one, none) = (self.literal(1.0, elem), zero(self.b, elem));
        let identity = self.b.select(on, one, none);
        let start = self.b.fill(none, &[n, n]);
        let count = self.b.int(1);
        let rounds = self.b.integer(IntOp::Sub, n, count);
        let done = self.b.for_loop(rounds, &[identity, start], |b, k, state| {
            let mut w = Matrices { b };
            let next = w.b.integer(IntOp::Add, k, count);
            let next = w.b.convert(elem, next);
            let part = w.b.map(Row::Recip, &[next]);
            let Ok(product) = w.product(&a, false, &state[0], false);
            let Ok(of_a) = w.product(&da, false, &state[0], false);
            let Ok(of_state) = w.product(&a, false, &state[1], false);
            let tangent = w.b.add(of_a, of_state);
            [product, tangent]
                .map(|m| {
                    let trace = w.inner(m, identity);
                    let trace = w.scale(trace, part);
                    let trace = w.b.fill(trace, &[n, n]);
                    let trace = w.scale(trace, identity);
                    w.b.sub(m, trace)
                })
                .to_vec()
        });
        let two = self.b.int(2);
        let odd = self.b.integer(IntOp::Rem, rounds, two);
        let odd = self.b.convert(elem, odd);
        let twice = self.b.add(odd, odd);
        let sign = self.b.sub(one, twice);
        let sign = self.b.fill(sign, &[n, n]);
        let turned = self.transposed(&done[1]);
        self.scale(turned, sign)
    }
}
