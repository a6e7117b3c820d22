//! Repeatable data.

use palinode::num::Key;

/// The draws of a key, one after another.
pub struct Draws {
    key: Key,
    drawn: u64,
}

impl Draws {
    /// A stream from a seed.
    pub fn new(seed: u64) -> Self {
        Self { key: Key::from_seed(seed), drawn: 0 }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        self.key.u64(self.drawn)
    }

    /// Uniform from 0 (included) to 1 (excluded).
    pub fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        self.key.uniform(self.drawn)
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        self.drawn += 1;
        self.key.gaussian(self.drawn)
    }

    /// `n` normals scaled by `scale`.
    pub fn normals(&mut self, n: usize, scale: f64) -> Vec<f64> {
        (0..n).map(|_| scale * self.normal()).collect()
    }

    /// `n` uniforms from `lo` (included) to `hi` (excluded).
    pub fn uniforms(&mut self, n: usize, lo: f64, hi: f64) -> Vec<f64> {
        (0..n).map(|_| lo + (hi - lo) * self.uniform()).collect()
    }
}
