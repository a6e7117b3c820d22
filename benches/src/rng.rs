//! Repeatable data.

pub use palinode::num::Draws;

/// `n` normals scaled by `scale`.
pub fn normals(draws: &mut Draws, n: usize, scale: f64) -> Vec<f64> {
    (0..n).map(|_| scale * draws.gaussian()).collect()
}

/// `n` uniforms from `lo` (included) to `hi` (excluded).
pub fn uniforms(draws: &mut Draws, n: usize, lo: f64, hi: f64) -> Vec<f64> {
    (0..n).map(|_| lo + (hi - lo) * draws.uniform()).collect()
}
