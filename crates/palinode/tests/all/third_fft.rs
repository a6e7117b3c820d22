//! rustfft, differentiated unmodified: the planner chooses its scalar algorithms for any number but `f32` and `f64`.
//!
//! `L = sum w_k |X_k|^2` has the gradient `2 N-point sums of w_k X_k e^(+2 pi i k n / N)`, computed by the definition.
//! Tolerance: sums of at most 64 terms of size 1, good to 64 * 1.1e-16 * a few.

use crate::check::{Function, Number, assert_gradient, constant, scattered};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

fn weight(k: usize) -> f64 {
    1.0 + (k % 5) as f64
}

struct WeightedPower;
impl Function for WeightedPower {
    fn call<T: Number>(&self, x: &[T]) -> T {
        let mut buffer: Vec<Complex<T>> = x.iter().map(|&re| Complex::new(re, constant(0.0))).collect();
        FftPlanner::new().plan_fft_forward(x.len()).process(&mut buffer);
        let powers = buffer.iter().enumerate().map(|(k, z)| (z.re * z.re + z.im * z.im) * constant::<T>(weight(k)));
        powers.fold(constant(0.0), |sum, power| sum + power)
    }
}

fn expected(x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let turn = |k: usize, j: usize| std::f64::consts::TAU * ((k * j) % n) as f64 / n as f64;
    let spectrum: Vec<(f64, f64)> = (0..n)
        .map(|k| (0..n).fold((0.0, 0.0), |(re, im), j| (re + x[j] * turn(k, j).cos(), im - x[j] * turn(k, j).sin())))
        .collect();
    let term = |k: usize, j: usize| spectrum[k].0 * turn(k, j).cos() - spectrum[k].1 * turn(k, j).sin();
    (0..n).map(|j| (0..n).map(|k| 2.0 * weight(k) * term(k, j)).sum()).collect()
}

#[test]
fn power_of_two_mixed_and_prime_lengths() {
    for n in [8, 60, 17, 64] {
        let x = scattered(n);
        assert_gradient(&format!("fft of {n}"), &WeightedPower, &x, &expected(&x), 1e-13);
    }
}
