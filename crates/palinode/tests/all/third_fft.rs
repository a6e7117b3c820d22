//! rustfft, differentiated unmodified: its mixed-radix, Good-Thomas, Rader and Bluestein algorithms.
//!
//! They are put together by hand. `FftPlanner` instantiates hundreds of unrolled butterflies for a new
//! number: that works on `Dual` (half a minute to compile), but on `Var`, whose every operation is inlined,
//! the compiler needs more than 8 GB.
//!
//! `L = sum w_k |X_k|^2` has the gradient `2 N-point sums of w_k X_k e^(+2 pi i k n / N)`, computed by the
//! definition. Tolerance: sums of at most 64 terms of size 1, good to 64 * 1.1e-16 * a few.

use crate::check::{Function, Number, assert_gradient, constant, function, scattered};
use rustfft::algorithm::butterflies::{Butterfly3, Butterfly4, Butterfly5};
use rustfft::algorithm::{BluesteinsAlgorithm, Dft, GoodThomasAlgorithm, MixedRadix, RadersAlgorithm};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection::Forward};
use std::sync::Arc;

/// A transform of this length, out of smaller ones.
fn transform<T: Number>(n: usize) -> Arc<dyn Fft<T>> {
    let four = || Arc::new(Butterfly4::new(Forward)) as Arc<dyn Fft<T>>;
    match n {
        7 => Arc::new(BluesteinsAlgorithm::new(7, transform(16))),
        15 => Arc::new(GoodThomasAlgorithm::new(
            Arc::new(Butterfly3::new(Forward)),
            Arc::new(Butterfly5::new(Forward)),
        )),
        16 => Arc::new(MixedRadix::new(four(), four())),
        17 => Arc::new(RadersAlgorithm::new(transform(16))),
        60 => Arc::new(MixedRadix::new(four(), transform(15))),
        n => Arc::new(Dft::new(n, Forward)),
    }
}

fn weight(k: usize) -> f64 {
    1.0 + (k % 5) as f64
}

function!(WeightedPower: |x: &[T]| {
    let mut buffer: Vec<Complex<T>> = x.iter().map(|&re| Complex::new(re, constant(0.0))).collect();
    transform(x.len()).process(&mut buffer);
    let powers =
        buffer.iter().enumerate().map(|(k, z)| (z.re * z.re + z.im * z.im) * constant::<T>(weight(k)));
    powers.fold(constant(0.0), |sum, power| sum + power)
});

fn expected(x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let turn = |k: usize, j: usize| std::f64::consts::TAU * ((k * j) % n) as f64 / n as f64;
    let spectrum: Vec<(f64, f64)> = (0..n)
        .map(|k| {
            (0..n)
                .fold((0.0, 0.0), |(re, im), j| (re + x[j] * turn(k, j).cos(), im - x[j] * turn(k, j).sin()))
        })
        .collect();
    let term = |k: usize, j: usize| spectrum[k].0 * turn(k, j).cos() - spectrum[k].1 * turn(k, j).sin();
    (0..n).map(|j| (0..n).map(|k| 2.0 * weight(k) * term(k, j)).sum()).collect()
}

#[test]
fn weighted_power_by_every_algorithm() {
    for n in [6, 7, 15, 16, 17, 60] {
        let x = scattered(n);
        assert_gradient(&format!("fft of {n}"), &WeightedPower, &x, &expected(&x), 1e-13);
    }
}
