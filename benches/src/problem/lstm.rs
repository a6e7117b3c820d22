//! GradBench's `lstm` eval: an LSTM whose weight matrices are diagonal, 14 characters, trained to predict the
//! next one.
//!
//! Parameters, in order: for each layer 4 x b weights (forget, in, out, change) then 4 x b biases; then the
//! input weights, output weights and output biases (b each). The initial state and the sequence are data.

use super::{Problem, Size};
use crate::num::Num;
use crate::rng::{Draws, uniforms};

/// The network's shape and its data.
pub struct Lstm {
    layers: usize,
    steps: usize,
    b: usize,
    /// layers x (hidden b, cell b).
    state: Vec<f64>,
    /// steps x b.
    sequence: Vec<f64>,
}

impl Problem for Lstm {
    const NAME: &'static str = "lstm";
    const UNIT: &'static str = "step";

    fn new(size: Size) -> Self {
        let (layers, steps, b) = size.pick((2, 1024, 14), (2, 128, 14), (2, 5, 3));
        let mut rng = Draws::new(4);
        let state = uniforms(&mut rng, layers * 2 * b, -0.5, 0.5);
        // ADBench's characters are bits.
        let sequence = (0..steps * b).map(|_| (rng.u64() >> 63) as f64).collect();
        Self { layers, steps, b, state, sequence }
    }
    fn describe(&self) -> String {
        format!("{} layers x {} steps, b {}", self.layers, self.steps, self.b)
    }
    fn inputs(&self) -> Vec<f64> {
        uniforms(&mut Draws::new(5), (8 * self.layers + 3) * self.b, -0.5, 0.5)
    }
    fn iterations(&self) -> usize {
        self.steps
    }
    fn eval<T: Num>(&self, p: &[T]) -> T {
        let b = self.b;
        let (main, extra) = p.split_at(8 * b * self.layers);
        let (in_weight, rest) = extra.split_at(b);
        let (out_weight, out_bias) = rest.split_at(b);

        let mut state: Vec<T> = self.state.iter().map(|&s| T::cst(s)).collect();
        let mut signal = vec![T::cst(0.0); b];
        let loss_of_step = |(input, next): (&[f64], &[f64])| {
            for ((s, &w), &c) in signal.iter_mut().zip(in_weight).zip(input) {
                *s = w.times(c);
            }
            for (params, state) in main.chunks_exact(8 * b).zip(state.chunks_exact_mut(2 * b)) {
                layer(b, params, state, &mut signal);
            }
            for ((s, &w), &bias) in signal.iter_mut().zip(out_weight).zip(out_bias) {
                *s = *s * w + bias;
            }
            // ADBench adds 2 inside the logarithm; kept so that values compare.
            let norm = T::sum(signal.iter().map(|&s| s.exp())).plus(2.0).ln();
            T::dot_const(signal.iter().zip(next).map(|(&s, &gold)| (s - norm, gold)))
        };
        let inputs = self.sequence.chunks_exact(b);
        let total = T::sum(inputs.clone().zip(inputs.skip(1)).map(loss_of_step));
        total.times(-1.0 / ((self.steps - 1) * b) as f64)
    }
}

/// One layer: updates its state and replaces `signal` by the new hidden values.
#[inline]
fn layer<T: Num>(b: usize, params: &[T], state: &mut [T], signal: &mut [T]) {
    let (weight, bias) = params.split_at(4 * b);
    let (hidden, cell) = state.split_at_mut(b);
    // Slices of known equal length let plain f64 drop its bounds checks.
    let [wf, wi, wo, wc] = [0, 1, 2, 3].map(|g| &weight[g * b..][..b]);
    let [bf, bi, bo, bc] = [0, 1, 2, 3].map(|g| &bias[g * b..][..b]);
    let (cell, signal) = (&mut cell[..b], &mut signal[..b]);
    for i in 0..b {
        let forget = sigmoid(signal[i] * wf[i] + bf[i]);
        let ingate = sigmoid(hidden[i] * wi[i] + bi[i]);
        let outgate = sigmoid(signal[i] * wo[i] + bo[i]);
        let change = (hidden[i] * wc[i] + bc[i]).tanh();
        cell[i] = cell[i] * forget + ingate * change;
        hidden[i] = outgate * cell[i].tanh();
        signal[i] = hidden[i];
    }
}

#[inline]
fn sigmoid<T: Num>(x: T) -> T {
    (-x).exp().plus(1.0).recip()
}
