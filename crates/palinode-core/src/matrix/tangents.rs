//! The tangents of dense operations, each formula once, for whatever computes with matrices: plain and
//! derivative numbers (`linalg`, feature `nalgebra`) and symbols, which write the tangents of programs
//! (`palinode-ir`). Reverse mode of programs is the transpose of these; that of `linalg` has formulas of its
//! own beside each operation, whose tests hold the two to be adjoint.
//!
//! Input: an [`Algebra`], tangents of operands, known operands and results. Output: tangents of the results,
//! linear in those of the operands.
//!
//! Formulas: M. Giles, *Collected matrix derivative results for forward and reverse mode* (2008); for QR and
//! singular values the differentials of `A = Q R` and `A = U S V'`, see `linalg/factors.rs` and
//! `linalg/svd.rs`. Dividing by gaps between eigenvalues is the caller's, who may know that values coincide.

/// One part of a square matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// On and below the diagonal.
    Lower,
    /// The same with half of the diagonal.
    LowerHalf,
    /// Below the diagonal.
    StrictlyLower,
    /// On and above the diagonal.
    Upper,
}

/// What the formulas need. The first of two factors and terms may be a tangent or known, and so may the
/// second, but not both factors a tangent.
pub trait Algebra {
    /// A matrix, or what stands for one.
    type Matrix: Clone;
    /// Why there is no result.
    type Error;
    /// `a b`, each transposed or not.
    fn product(
        &mut self,
        a: &Self::Matrix,
        a_transposed: bool,
        b: &Self::Matrix,
        b_transposed: bool,
    ) -> Result<Self::Matrix, Self::Error>;
    /// `x` of `op(t) x = b`, where `op` transposes or does nothing, with one triangle of the known `t`.
    fn solve_triangular(
        &mut self,
        t: &Self::Matrix,
        lower: bool,
        transposed: bool,
        b: &Self::Matrix,
    ) -> Result<Self::Matrix, Self::Error>;
    /// Rows as columns.
    fn transposed(&mut self, a: &Self::Matrix) -> Self::Matrix;
    /// `a + b`.
    fn sum(&mut self, a: &Self::Matrix, b: &Self::Matrix) -> Self::Matrix;
    /// `a - b`.
    fn difference(&mut self, a: &Self::Matrix, b: &Self::Matrix) -> Self::Matrix;
    /// `-a`.
    fn negated(&mut self, a: &Self::Matrix) -> Self::Matrix;
    /// `(a + a') / 2`.
    fn symmetric(&mut self, a: &Self::Matrix) -> Self::Matrix;
    /// `(a - a') / 2`.
    fn antisymmetric(&mut self, a: &Self::Matrix) -> Self::Matrix;
    /// That part of a tangent which has the shape of the known `like`, zero elsewhere.
    fn part(&mut self, a: &Self::Matrix, part: Part, like: &Self::Matrix) -> Self::Matrix;
    /// Whether it is known that these orthonormal columns span everything, so that nothing lies outside.
    fn spans_all(&self, basis: &Self::Matrix) -> bool;
}

/// `a - basis inside`: what of `a` lies outside of the space of these orthonormal columns, `inside` being
/// `basis' a`.
fn outside<A: Algebra>(w: &mut A, a: &A::Matrix, basis: &A::Matrix, inside: &A::Matrix) -> Found<A> {
    let inside = w.product(basis, false, inside, false)?;
    Ok(w.difference(a, &inside))
}

type Found<A> = Result<<A as Algebra>::Matrix, <A as Algebra>::Error>;
type Two<A> = Result<[<A as Algebra>::Matrix; 2], <A as Algebra>::Error>;

/// Of `X = op(A)^-1 B`: `op(A)^-1 (dB - op(dA) X)`; there is at least one of the two.
pub fn solve<A: Algebra>(
    w: &mut A,
    (da, db): (Option<&A::Matrix>, Option<&A::Matrix>),
    transposed: bool,
    x: &A::Matrix,
    solve: impl FnOnce(&mut A, &A::Matrix) -> Found<A>,
) -> Found<A> {
    let moved = da.map(|da| w.product(da, transposed, x, false)).transpose()?;
    let right = match (db, moved) {
        (Some(db), Some(moved)) => w.difference(db, &moved),
        (Some(db), None) => db.clone(),
        (None, Some(moved)) => w.negated(&moved),
        (None, None) => unreachable!("one operand has a tangent"),
    };
    solve(w, &right)
}

/// Of `X = A^-1`: `-X dA X`.
pub fn inverse<A: Algebra>(w: &mut A, da: &A::Matrix, x: &A::Matrix) -> Found<A> {
    let left = w.product(x, false, da, false)?;
    let both = w.product(&left, false, x, false)?;
    Ok(w.negated(&both))
}

/// Of `A = L L'`: `L F(L^-1 dA L^-T)` where `F` takes the lower triangle with half the diagonal.
pub fn cholesky<A: Algebra>(w: &mut A, da: &A::Matrix, l: &A::Matrix) -> Found<A> {
    let da = w.symmetric(da);
    let left = w.solve_triangular(l, true, false, &da)?;
    let left = w.transposed(&left);
    let both = w.solve_triangular(l, true, false, &left)?;
    let half = w.part(&both, Part::LowerHalf, l);
    w.product(l, false, &half, false)
}

/// Of `A = Q R`: with `C = dA R^-1`, `X = Q' C` and `W = lower(X) - lower(X)'`, `dQ = Q W + (C - Q X)` and
/// `dR = upper(Q' dA - W R)`.
pub fn qr<A: Algebra>(w: &mut A, da: &A::Matrix, q: &A::Matrix, r: &A::Matrix) -> Two<A> {
    let turned = w.transposed(da);
    let c = w.solve_triangular(r, false, true, &turned)?;
    let c = w.transposed(&c);
    let x = w.product(q, true, &c, false)?;
    let lower = w.part(&x, Part::StrictlyLower, r);
    let upper = w.transposed(&lower);
    let turn = w.difference(&lower, &upper);
    let inside = w.product(q, true, da, false)?;
    let stretched = w.product(&turn, false, r, false)?;
    let dr = w.difference(&inside, &stretched);
    let dr = w.part(&dr, Part::Upper, r);
    let mut dq = w.product(q, false, &turn, false)?;
    if !w.spans_all(q) {
        let outside = outside(w, &c, q, &x)?;
        dq = w.sum(&dq, &outside);
    }
    Ok([dq, dr])
}

/// Of `A = V diag(w) V'`: how `A` moves in the basis of its vectors, `P = V' dA V`, whose diagonal is how the
/// eigenvalues move.
pub fn symmetric_eigen<A: Algebra>(w: &mut A, da: &A::Matrix, v: &A::Matrix) -> Found<A> {
    let da = w.symmetric(da);
    let right = w.product(&da, false, v, false)?;
    w.product(v, true, &right, false)
}

/// How the vectors move: `V (F o P)`, with what `over_gaps` makes of `P`: `F_ij = 1 / (w_j - w_i)`.
pub fn eigenvectors<A: Algebra>(
    w: &mut A,
    v: &A::Matrix,
    p: &A::Matrix,
    over_gaps: impl FnOnce(&mut A, &A::Matrix) -> A::Matrix,
) -> Found<A> {
    let turn = over_gaps(w, p);
    w.product(v, false, &turn, false)
}

/// Of `A = U diag(s) V'`: `dA V`, and `P = U' dA V`, whose diagonal is how the singular values move.
pub fn svd<A: Algebra>(w: &mut A, da: &A::Matrix, u: &A::Matrix, v: &A::Matrix) -> Two<A> {
    let image = w.product(da, false, v, false)?;
    let p = w.product(u, true, &image, false)?;
    Ok([image, p])
}

/// What the tangents of singular vectors are divided by.
pub trait Divisors<A: Algebra> {
    /// `m_ij / (s_j - s_i)`, zero on the diagonal.
    fn over_gaps(&self, w: &mut A, m: &A::Matrix) -> A::Matrix;
    /// `m_ij / (s_j + s_i)`, zero on the diagonal.
    fn over_sums(&self, w: &mut A, m: &A::Matrix) -> A::Matrix;
    /// `m_ij / s_j`, of a matrix of the shape of `like`.
    fn over_values(&self, w: &mut A, m: &A::Matrix, like: &A::Matrix) -> A::Matrix;
}

/// How the vectors move, given what [`svd`] found: with the symmetric part `Y` of `P` and its antisymmetric
/// part `Z`, inside the space of the vectors `Y_ij / (s_j - s_i) + Z_ij / (s_j + s_i)` on the left and the
/// difference on the right; outside of it `(I - U U') dA V S^-1` and `(I - V V') dA' U S^-1`.
pub fn singular_vectors<A: Algebra>(
    w: &mut A,
    da: &A::Matrix,
    (u, v): (&A::Matrix, &A::Matrix),
    [image, p]: &[A::Matrix; 2],
    by: &impl Divisors<A>,
) -> Two<A> {
    let (stretch, turn) = (w.symmetric(p), w.antisymmetric(p));
    let (stretch, turn) = (by.over_gaps(w, &stretch), by.over_sums(w, &turn));
    let (of_u, of_v) = (w.sum(&stretch, &turn), w.difference(&stretch, &turn));
    let (mut du, mut dv) = (w.product(u, false, &of_u, false)?, w.product(v, false, &of_v, false)?);
    if !w.spans_all(u) {
        let outside = outside(w, image, u, p)?;
        let outside = by.over_values(w, &outside, u);
        du = w.sum(&du, &outside);
    }
    if !w.spans_all(v) {
        let (image, p) = (w.product(da, true, u, false)?, w.transposed(p));
        let outside = outside(w, &image, v, &p)?;
        let outside = by.over_values(w, &outside, v);
        dv = w.sum(&dv, &outside);
    }
    Ok([du, dv])
}
