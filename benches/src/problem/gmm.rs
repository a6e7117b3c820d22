//! Log posterior of a Gaussian mixture with a Wishart prior: GradBench's `gmm` eval in its ADBench form.
//!
//! Parameters, in order: alphas (K), means (K x d), icf (K x d(d+1)/2: d log-diagonals, then the strictly
//! lower triangle by columns). Wishart gamma = 1, m = 0. Later GradBench versions flip the prior's sign and
//! transpose the factor; the operations, and so the cost, are the same.

use super::{Problem, Size};
use crate::num::{Num, log_sum_exp};
use crate::rng::{Draws, normals, uniforms};
use std::f64::consts::{LN_2, PI};

const GAMMA: f64 = 1.0;
const M: f64 = 0.0;

/// The mixture and its data.
pub struct Gmm {
    d: usize,
    k: usize,
    n: usize,
    /// n x d points.
    x: Vec<f64>,
}

impl Gmm {
    fn icf_len(&self) -> usize {
        self.d * (self.d + 1) / 2
    }

    /// The Wishart normaliser of one component.
    fn wishart_constant(&self) -> f64 {
        let p = self.d as f64;
        let n = p + M + 1.0;
        n * p * (GAMMA.ln() - 0.5 * LN_2) - log_gamma_multivariate(0.5 * n, self.d)
    }

    fn log_prior<T: Num>(&self, sum_q: &[T], q_diag: &[T], icf: &[T]) -> T {
        let parts = (0..self.k).map(|c| {
            let diag = &q_diag[c * self.d..][..self.d];
            let lower = &icf[c * self.icf_len()..][self.d..self.icf_len()];
            let frobenius = T::dot(diag.iter().chain(lower).map(|&v| (v, v)));
            frobenius.times(0.5 * GAMMA * GAMMA) - sum_q[c].times(M)
        });
        T::sum(parts).minus(self.k as f64 * self.wishart_constant())
    }
}

impl Problem for Gmm {
    const NAME: &'static str = "gmm";
    const UNIT: &'static str = "point x component";

    fn new(size: Size) -> Self {
        let (d, k, n) = size.pick((10, 25, 1000), (10, 25, 100), (3, 2, 4));
        Self { d, k, n, x: normals(&mut Draws::new(2), n * d, 1.0) }
    }
    fn describe(&self) -> String {
        format!("d {} K {} n {}", self.d, self.k, self.n)
    }
    fn inputs(&self) -> Vec<f64> {
        let mut rng = Draws::new(3);
        let mut p = normals(&mut rng, self.k, 1.0);
        p.extend(uniforms(&mut rng, self.k * self.d, 0.0, 1.0));
        p.extend(normals(&mut rng, self.k * self.icf_len(), 0.3));
        p
    }
    fn iterations(&self) -> usize {
        self.n * self.k
    }
    fn eval<T: Num>(&self, p: &[T]) -> T {
        let (d, k, icf_len) = (self.d, self.k, self.icf_len());
        let (alphas, rest) = p.split_at(k);
        let (means, icf) = rest.split_at(k * d);

        let log_diags = || icf.chunks_exact(icf_len).map(|c| &c[..d]);
        let q_diag: Vec<T> = log_diags().flatten().map(|&q| q.exp()).collect();
        let sum_q: Vec<T> = log_diags().map(|q| T::sum(q.iter().copied())).collect();

        let mut centred = vec![T::cst(0.0); d];
        let mut scaled = vec![T::cst(0.0); d];
        let mut terms = vec![T::cst(0.0); k];
        let likelihood = T::sum(self.x.chunks_exact(d).map(|point| {
            for (c, term) in terms.iter_mut().enumerate() {
                for ((out, &xi), &mi) in centred.iter_mut().zip(point).zip(&means[c * d..][..d]) {
                    *out = mi.sub_from(xi);
                }
                factor_times(&q_diag[c * d..][..d], &icf[c * icf_len..][d..icf_len], &centred, &mut scaled);
                let square = T::dot(scaled.iter().map(|&v| (v, v)));
                *term = alphas[c] + sum_q[c] - square.times(0.5);
            }
            log_sum_exp(&terms)
        }));

        let n = self.n as f64;
        let constant = -n * d as f64 * 0.5 * (2.0 * PI).ln();
        let likelihood = likelihood - log_sum_exp(alphas).times(n);
        likelihood.plus(constant) + self.log_prior(&sum_q, &q_diag, icf)
    }
}

/// `out = Q x` for the lower triangular `Q` with diagonal `diag` and strict lower part `lower` by columns.
#[inline]
fn factor_times<T: Num>(diag: &[T], lower: &[T], x: &[T], out: &mut [T]) {
    let d = diag.len();
    if T::NARY {
        // One node a row. Entry (j, i) of the lower part sits at i*d - i(i+1)/2 + (j - i - 1).
        for j in 0..d {
            let below = (0..j).map(|i| (lower[i * d - i * (i + 1) / 2 + (j - i - 1)], x[i]));
            out[j] = T::dot(std::iter::once((diag[j], x[j])).chain(below));
        }
        return;
    }
    for ((o, &q), &v) in out.iter_mut().zip(diag).zip(x) {
        *o = q * v;
    }
    let mut columns = lower;
    for (i, &xi) in x.iter().enumerate() {
        let (column, rest) = columns.split_at(d - 1 - i);
        for (o, &l) in out[i + 1..].iter_mut().zip(column) {
            *o = *o + l * xi;
        }
        columns = rest;
    }
}

/// Logarithm of the multivariate gamma function of dimension `p`, for `a` a multiple of 1/2.
fn log_gamma_multivariate(a: f64, p: usize) -> f64 {
    let half_log_pi = 0.25 * (p * (p - 1)) as f64 * PI.ln();
    half_log_pi + (1..=p).map(|j| log_gamma_half_integer(a + 0.5 * (1.0 - j as f64))).sum::<f64>()
}

/// ln Gamma at a positive multiple of 1/2, by the recurrence from 1/2 or 1 (std has no stable lgamma).
fn log_gamma_half_integer(a: f64) -> f64 {
    let start = if a.fract() == 0.0 { 1.0 } else { 0.5 };
    let base = if start == 1.0 { 0.0 } else { 0.5 * PI.ln() };
    let factors = (a - start).round() as usize;
    base + (0..factors).map(|i| (start + i as f64).ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_gamma_at_known_points() {
        assert!((log_gamma_half_integer(5.0) - 24f64.ln()).abs() < 1e-14);
        assert!((log_gamma_half_integer(2.5) - (0.75 * PI.sqrt()).ln()).abs() < 1e-14);
    }

    #[test]
    fn factor_is_lower_triangular_by_columns() {
        // Columns (l21 l31) = (7 11) and (l32) = (13).
        let (diag, lower, x) = ([2.0, 3.0, 5.0], [7.0, 11.0, 13.0], [1.0, 10.0, 100.0]);
        let mut out = [0.0; 3];
        factor_times(&diag, &lower, &x, &mut out);
        assert_eq!(out, [2.0, 37.0, 641.0]);
    }
}
