//! The tangents of dense linear algebra, as instructions.
//!
//! Input: operands, their tangents, results. Output: the results' tangents, linear in the operands'. The reverse rules
//! follow by transposition. Formulas: M. Giles, "Collected matrix derivative results for forward and reverse mode" (2008);
//! for QR and the singular value decomposition the differentials of `A = QR` and `A = U S V'`.
//!
//! Limits: equal eigenvalues or singular values divide by 0 in the vectors' tangents (infinite or NaN, never silently 0);
//! the second derivative of a determinant at singular matrices of more than [`EXPANDED`] rows is refused.

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
    let mut w = Matrices { b };
    let a = args[0];
    match kind {
        Linalg::Solve { transposed } | Linalg::SolveChecked { transposed, .. } => {
            let moved = tangents[0].map(|da| w.product(da, transposed, results[0], false));
            vec![w.solved(kind, args, tangents[1], moved)]
        }
        Linalg::SolveTriangular { lower, transposed } => {
            let moved = tangents[0].map(|da| {
                let part = w.triangle(da, a, lower, Diagonal::Whole);
                w.product(part, transposed, results[0], false)
            });
            vec![w.solved(kind, args, tangents[1], moved)]
        }
        Linalg::Inverse | Linalg::Determinant | Linalg::Cofactors | Linalg::LogDet | Linalg::Cholesky => {
            let da = tangents[0].expect("the operand has a tangent");
            vec![match kind {
                Linalg::Inverse => {
                    let x = results[0];
                    let left = w.product(x, false, da, false);
                    let both = w.product(left, false, x, false);
                    w.b.neg(both)
                }
                Linalg::Determinant => {
                    let cofactors = w.b.emit(Op::Linalg(Linalg::Cofactors), &[a]);
                    let products = w.scale(da, cofactors);
                    w.b.sum(products)
                }
                Linalg::Cofactors => w.cofactors(a, da, results[0]),
                Linalg::LogDet => w.log_det(a, da),
                _ => w.cholesky(da, results[0]),
            }]
        }
        Linalg::Qr => w.qr(tangents[0].expect("the operand has a tangent"), results[0], results[1]),
        Linalg::SymmetricEigen => {
            w.eigen(tangents[0].expect("the operand has a tangent"), results[0], results[1])
        }
        Linalg::Svd => w.svd(tangents[0].expect("the operand has a tangent"), results),
    }
}

/// Up to so many rows sums of products in place of divisions lose few digits.
const EXPANDED: i64 = 16;

#[derive(Clone, Copy, PartialEq)]
enum Diagonal {
    Whole,
    Half,
    None,
}

struct Matrices<'a> {
    b: &'a mut FunctionBuilder,
}

impl Matrices<'_> {
    fn product(&mut self, a: Value, a_transposed: bool, b: Value, b_transposed: bool) -> Value {
        self.b.emit(Op::MatMul { a_transposed, b_transposed, strong: true }, &[a, b])
    }

    fn transposed(&mut self, a: Value) -> Value {
        self.b.emit(Op::Permute(vec![1, 0]), &[a])
    }

    /// `tangent * by`, element by element.
    fn scale(&mut self, tangent: Value, by: Value) -> Value {
        self.b.map(Row::StrongMul, &[tangent, by])
    }

    fn literal(&mut self, value: f64, elem: Elem) -> Value {
        let literal = self.b.real(value);
        if elem == Elem::F32 { self.b.convert(Elem::F32, literal) } else { literal }
    }

    /// `x` of `A x = db - dA x`.
    fn solved(&mut self, kind: Linalg, args: &[Value], db: Option<Value>, moved: Option<Value>) -> Value {
        let right = match (db, moved) {
            (Some(db), Some(moved)) => self.b.sub(db, moved),
            (Some(db), None) => db,
            (None, Some(moved)) => self.b.neg(moved),
            (None, None) => unreachable!("one operand has a tangent"),
        };
        self.b.emit(Op::Linalg(kind), &[args[0], right])
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

    /// The lengths of a known matrix.
    fn size(&mut self, known: Value) -> (Value, Value) {
        (self.b.dim(known, 0), self.b.dim(known, 1))
    }

    /// One triangle of a tangent of the shape of `like`; the rest is 0.
    fn triangle(&mut self, a: Value, like: Value, lower: bool, diagonal: Diagonal) -> Value {
        let elem = self.b.ty(a).elem;
        let size = self.size(like);
        let (rows, columns) = self.positions(size);
        let (small, large) = if lower { (columns, rows) } else { (rows, columns) };
        let inside = self.b.compare(Comparison::Less, small, large);
        let (one, none) = (self.literal(1.0, elem), zero(self.b, elem));
        let on_diagonal = match diagonal {
            Diagonal::Whole => one,
            Diagonal::Half => self.literal(0.5, elem),
            Diagonal::None => none,
        };
        let on = self.b.compare(Comparison::Equal, rows, columns);
        let rest = self.b.select(on, on_diagonal, none);
        let mask = self.b.select(inside, one, rest);
        self.scale(a, mask)
    }

    /// `(a + a') / 2`: what operations on symmetric matrices read of a tangent.
    fn symmetric(&mut self, a: Value) -> Value {
        let elem = self.b.ty(a).elem;
        let mirrored = self.transposed(a);
        let twice = self.b.add(a, mirrored);
        let half = self.literal(0.5, elem);
        self.scale(twice, half)
    }

    fn log_det(&mut self, a: Value, da: Value) -> Value {
        let inverse = self.b.emit(Op::Linalg(Linalg::Inverse), &[a]);
        let by = self.transposed(inverse);
        let products = self.scale(da, by);
        self.b.sum(products)
    }

    /// The tangent of cofactors `C`: of a small matrix without a division, of a large one `<A^-T, dA> C - A^-T dA' C`.
    fn cofactors(&mut self, a: Value, da: Value, c: Value) -> Value {
        let n = self.b.dim(a, 0);
        let most = self.b.int(EXPANDED);
        let is_large = self.b.compare(Comparison::Less, most, n);
        let by_inverse = |b: &mut FunctionBuilder| {
            let mut w = Matrices { b };
            let inverse = w.b.emit(Op::Linalg(Linalg::Inverse), &[a]);
            let by = w.transposed(inverse);
            let products = w.scale(da, by);
            let trace = w.b.sum(products);
            let trace = w.b.fill(trace, &[n, n]);
            let scaled = w.scale(trace, c);
            let turned = w.product(da, true, c, false);
            let turned = w.product(inverse, true, turned, false);
            vec![w.b.sub(scaled, turned)]
        };
        let by_expansion = |b: &mut FunctionBuilder| vec![Matrices { b }.expanded_cofactors(a, da, n)];
        self.b.if_else(is_large, by_inverse, by_expansion)[0]
    }

    /// The tangent of Faddeev's and LeVerrier's scheme: `M <- A M - tr(A M) / k`, `n - 1` times from the identity on, is the transposed matrix of cofactors but for its sign.
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
            let product = w.product(a, false, state[0], false);
            let of_a = w.product(da, false, state[0], false);
            let of_state = w.product(a, false, state[1], false);
            let tangent = w.b.add(of_a, of_state);
            [product, tangent]
                .map(|m| {
                    let kept = w.scale(m, identity);
                    let trace = w.b.sum(kept);
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
        let turned = self.transposed(done[1]);
        self.scale(turned, sign)
    }

    fn cholesky(&mut self, da: Value, l: Value) -> Value {
        let solve = Op::Linalg(Linalg::SolveTriangular { lower: true, transposed: false });
        let da = self.symmetric(da);
        let left = self.b.emit(solve.clone(), &[l, da]);
        let left = self.transposed(left);
        let both = self.b.emit(solve, &[l, left]);
        let half = self.triangle(both, l, true, Diagonal::Half);
        self.product(l, false, half, false)
    }

    /// `a R^-1`.
    fn over_upper(&mut self, a: Value, r: Value) -> Value {
        let a = self.transposed(a);
        let solve = Linalg::SolveTriangular { lower: false, transposed: true };
        let x = self.b.emit(Op::Linalg(solve), &[r, a]);
        self.transposed(x)
    }

    fn qr(&mut self, da: Value, q: Value, r: Value) -> Vec<Value> {
        let da_over_r = self.over_upper(da, r);
        let c = self.product(q, true, da_over_r, false);
        let below = self.triangle(c, r, true, Diagonal::None);
        let above = self.transposed(below);
        let turn = self.b.sub(below, above);
        let stretch = self.b.sub(c, turn);
        let dr = self.product(stretch, false, r, false);
        let dr = self.triangle(dr, r, false, Diagonal::Whole);
        let inside = self.product(q, false, stretch, false);
        let dq = self.b.sub(da_over_r, inside);
        vec![dq, dr]
    }

    /// The diagonal of a square tangent with `n` rows.
    fn diagonal(&mut self, a: Value, n: Value) -> Value {
        let elem = self.b.ty(a).elem;
        let (rows, columns) = self.positions((n, n));
        let on = self.b.compare(Comparison::Equal, rows, columns);
        let (one, none) = (self.literal(1.0, elem), zero(self.b, elem));
        let mask = self.b.select(on, one, none);
        let kept = self.scale(a, mask);
        self.b.emit(Op::Reduce(Reduction::Sum, vec![1]), &[kept])
    }

    /// `1 / (v_j - v_i)`, with 0 on the diagonal.
    fn gaps(&mut self, v: Value) -> Value {
        let elem = self.b.ty(v).elem;
        let n = self.b.dim(v, 0);
        let (rows, columns) = self.positions((n, n));
        let vi = self.b.emit(Op::Broadcast(vec![0]), &[v, n, n]);
        let vj = self.b.emit(Op::Broadcast(vec![1]), &[v, n, n]);
        let difference = self.b.sub(vj, vi);
        let inverse = self.b.map(Row::Recip, &[difference]);
        let on = self.b.compare(Comparison::Equal, rows, columns);
        let none = zero(self.b, elem);
        self.b.select(on, none, inverse)
    }

    fn eigen(&mut self, da: Value, values: Value, vectors: Value) -> Vec<Value> {
        let da = self.symmetric(da);
        let left = self.product(vectors, true, da, false);
        let m = self.product(left, false, vectors, false);
        let n = self.b.dim(values, 0);
        let dvalues = self.diagonal(m, n);
        let gaps = self.gaps(values);
        let mixing = self.scale(m, gaps);
        vec![dvalues, self.product(vectors, false, mixing, false)]
    }

    fn svd(&mut self, da: Value, results: &[Value]) -> Vec<Value> {
        let &[u, s, v] = results else { unreachable!("three results") };
        let left = self.product(u, true, da, false);
        let p = self.product(left, false, v, false);
        let k = self.b.dim(s, 0);
        let ds = self.diagonal(p, k);
        let squares = self.b.mul(s, s);
        let gaps = self.gaps(squares);
        let by_row = self.b.emit(Op::Broadcast(vec![0]), &[s, k, k]);
        let by_column = self.b.emit(Op::Broadcast(vec![1]), &[s, k, k]);
        let p_transposed = self.transposed(p);
        // F o (P S + S P') and F o (S P + P' S)
        let mix = |this: &mut Self, first: Value, second: Value| {
            let a = this.scale(first, by_column);
            let b = this.scale(second, by_row);
            let sum = this.b.add(a, b);
            this.scale(sum, gaps)
        };
        let turn_u = mix(self, p, p_transposed);
        let turn_v = mix(self, p_transposed, p);
        let du = self.turned(u, turn_u, da, false, v, s);
        let dv = self.turned(v, turn_v, da, true, u, s);
        vec![du, ds, dv]
    }

    /// `x turn + (I - x x') dA y / s`.
    fn turned(&mut self, x: Value, turn: Value, da: Value, transposed: bool, y: Value, s: Value) -> Value {
        let inside = self.product(x, false, turn, false);
        let image = self.product(da, transposed, y, false);
        let within = self.product(x, true, image, false);
        let within = self.product(x, false, within, false);
        let outside = self.b.sub(image, within);
        let (rows, columns) = (self.b.dim(x, 0), self.b.dim(s, 0));
        let inverse = self.b.map(Row::Recip, &[s]);
        let inverse = self.b.emit(Op::Broadcast(vec![1]), &[inverse, rows, columns]);
        let outside = self.scale(outside, inverse);
        self.b.add(inside, outside)
    }
}
