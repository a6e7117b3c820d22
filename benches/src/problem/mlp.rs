//! A small perceptron on scalars: relu hidden layer, softmax cross-entropy, gradient with respect to all
//! weights.
//!
//! Parameters, in order: hidden weights (inputs x hidden), hidden biases, output weights (hidden x outputs),
//! output biases. Weights are stored by input, so that the column form runs along contiguous rows.

use super::{Problem, Size};
use crate::num::{Num, log_sum_exp};
use crate::rng::{Draws, normals, uniforms};

/// The network's shape and its batch.
pub struct Mlp {
    inputs: usize,
    hidden: usize,
    outputs: usize,
    /// batch x inputs.
    images: Vec<f64>,
    labels: Vec<usize>,
}

impl Problem for Mlp {
    const NAME: &'static str = "mlp";
    const UNIT: &'static str = "multiply-add";

    fn new(size: Size) -> Self {
        let (inputs, hidden, outputs, batch) = size.pick((64, 32, 10, 8), (64, 32, 10, 2), (4, 3, 3, 2));
        let mut rng = Draws::new(6);
        let images = uniforms(&mut rng, batch * inputs, 0.0, 1.0);
        let labels = (0..batch).map(|_| rng.u64() as usize % outputs).collect();
        Self { inputs, hidden, outputs, images, labels }
    }
    fn describe(&self) -> String {
        format!("{}-{}-{}, batch {}", self.inputs, self.hidden, self.outputs, self.labels.len())
    }
    fn inputs(&self) -> Vec<f64> {
        let mut rng = Draws::new(7);
        let mut p = normals(&mut rng, self.inputs * self.hidden, (2.0 / self.inputs as f64).sqrt());
        p.extend(normals(&mut rng, self.hidden, 0.1));
        p.extend(normals(&mut rng, self.hidden * self.outputs, (2.0 / self.hidden as f64).sqrt()));
        p.extend(normals(&mut rng, self.outputs, 0.1));
        p
    }
    fn iterations(&self) -> usize {
        self.labels.len() * (self.inputs * self.hidden + self.hidden * self.outputs)
    }
    fn eval<T: Num>(&self, p: &[T]) -> T {
        let (w1, rest) = p.split_at(self.inputs * self.hidden);
        let (b1, rest) = rest.split_at(self.hidden);
        let (w2, b2) = rest.split_at(self.hidden * self.outputs);

        let mut hidden = vec![T::cst(0.0); self.hidden];
        let mut logits = vec![T::cst(0.0); self.outputs];
        let images = self.images.chunks_exact(self.inputs).zip(&self.labels);
        let total = T::sum(images.map(|(image, &label)| {
            let unit = |j| T::dot_const(column(w1, self.hidden, j).zip(image.iter().copied()));
            dense(w1, b1, image, &mut hidden, |w, c| w.times(c), unit);
            for h in &mut hidden {
                *h = h.relu();
            }
            let unit = |j| T::dot(column(w2, self.outputs, j).zip(hidden.iter().copied()));
            dense(w2, b2, &hidden, &mut logits, |w, h| w * h, unit);
            log_sum_exp(&logits) - logits[label]
        }));
        total.times(1.0 / self.labels.len() as f64)
    }
}

/// The weights into unit `j` of a layer of `width` units.
fn column<T: Num>(w: &[T], width: usize, j: usize) -> impl Iterator<Item = T> {
    w[j..].iter().step_by(width).copied()
}

/// `out = w' x + bias`; `x` is data in the first layer and active after it, hence `mul` (column form) and
/// `unit` (the n-ary form: unit `j` without its bias) from the caller.
#[inline]
fn dense<T: Num, X: Copy>(
    w: &[T],
    bias: &[T],
    x: &[X],
    out: &mut [T],
    mul: impl Fn(T, X) -> T,
    unit: impl Fn(usize) -> T,
) {
    if T::NARY {
        for (j, (o, &b)) in out.iter_mut().zip(bias).enumerate() {
            *o = unit(j) + b;
        }
        return;
    }
    out.copy_from_slice(bias);
    // Four inputs a pass keep plain f64's partial sums in registers, instead of storing and reloading them
    // for each input (which also made its time depend on how `out` happened to be aligned). The order of each
    // sum is unchanged.
    const PASS: usize = 4;
    let width = out.len();
    for (rows, xs) in w.chunks(PASS * width).zip(x.chunks(PASS)) {
        if let &[x0, x1, x2, x3] = xs {
            let (r0, rest) = rows.split_at(width);
            let (r1, rest) = rest.split_at(width);
            let (r2, r3) = rest.split_at(width);
            for ((((o, &w0), &w1), &w2), &w3) in out.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
                *o = *o + mul(w0, x0) + mul(w1, x1) + mul(w2, x2) + mul(w3, x3);
            }
        } else {
            for (row, &x) in rows.chunks_exact(width).zip(xs) {
                for (o, &w) in out.iter_mut().zip(row) {
                    *o = *o + mul(w, x);
                }
            }
        }
    }
}
