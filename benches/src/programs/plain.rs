//! The values of the models, as one writes them in plain Rust for speed: what every gradient is compared
//! with.

use std::hint::black_box;

use palinode_ir::interp::{Datum, Tensor};

use crate::loops::burgers;

/// The inputs of a model by their places.
pub(super) struct Inputs<'a>(pub(super) &'a [Datum<f64>]);

impl<'a> Inputs<'a> {
    pub(super) fn array(&self, at: usize) -> &'a Tensor<f64> {
        let Datum::Real(tensor) = &self.0[at] else { unreachable!("the models take real numbers") };
        tensor
    }
    pub(super) fn data(&self, at: usize) -> &'a [f64] {
        &self.array(at).data
    }
    pub(super) fn number(&self, at: usize) -> f64 {
        self.data(at)[0]
    }
}

pub(super) const BURGERS_STEPS: usize = 1000;
pub(super) const BURGERS_LONG_STEPS: usize = 10_000;

pub(super) fn burgers_start(disturbance: &[f64]) -> Vec<f64> {
    burgers::start(disturbance.len()).iter().zip(disturbance).map(|(u, d)| u + d).collect()
}

fn burgers_for(inputs: &Inputs<'_>, steps: usize) -> f64 {
    let mut u = burgers_start(inputs.data(0));
    let mut next = u.clone();
    burgers::plain(&mut u, &mut next, steps as u64)
}

pub(super) fn burgers(inputs: &Inputs<'_>) -> f64 {
    burgers_for(inputs, BURGERS_STEPS)
}

pub(super) fn burgers_long(inputs: &Inputs<'_>) -> f64 {
    burgers_for(inputs, BURGERS_LONG_STEPS)
}

pub(super) const HEAT_STEPS: usize = 200;

/// One step; the edge of both buffers is the same and stays.
#[inline(always)]
pub(super) fn heat_step(n: usize, r: f64, u: &[f64], next: &mut [f64]) {
    for row in 1..n - 1 {
        let at = |row: usize| &u[row * n..(row + 1) * n];
        let (above, here, below) = (at(row - 1), at(row), at(row + 1));
        let new = &mut next[row * n..(row + 1) * n];
        for i in 1..n - 1 {
            new[i] = here[i] + r * ((here[i - 1] + here[i + 1]) + (above[i] + below[i]) - 4.0 * here[i]);
        }
    }
}

#[inline(never)]
pub(super) fn heat2d(inputs: &Inputs<'_>) -> f64 {
    let (n, r) = (inputs.array(0).shape[0], inputs.number(1));
    let mut u = inputs.data(0).to_vec();
    let mut next = u.clone();
    for _ in 0..HEAT_STEPS {
        heat_step(n, r, &u, &mut next);
        std::mem::swap(&mut u, &mut next);
    }
    u.iter().map(|u| (u - 0.5) * (u - 0.5)).sum()
}

pub(super) const LORENZ_STEPS: usize = 400;
pub(super) const LORENZ_DT: f64 = 0.001;

#[inline(never)]
pub(super) fn lorenz(inputs: &Inputs<'_>) -> f64 {
    let [mut x, mut y, mut z, sigma, rho, beta] = [0, 1, 2, 3, 4, 5].map(|at| inputs.number(at));
    for _ in 0..LORENZ_STEPS {
        let (dx, dy, dz) = (sigma * (y - x), x * (rho - z) - y, x * y - beta * z);
        x += LORENZ_DT * dx;
        y += LORENZ_DT * dy;
        z += LORENZ_DT * dz;
    }
    x * x + y * y + z * z
}

#[inline(never)]
pub(super) fn nchain(inputs: &Inputs<'_>) -> f64 {
    let [mut x, a, b] = [0, 1, 2].map(|at| inputs.number(at));
    for _ in 0..10_000 {
        x = x.sin() * a + b;
    }
    x
}

#[inline(never)]
pub(super) fn logistic(inputs: &Inputs<'_>) -> f64 {
    let [r, mut x] = [0, 1].map(|at| inputs.number(at));
    for _ in 0..100_000 {
        x = r * x * (1.0 - x);
    }
    x
}

/// Eight sums side by side: what the compiler makes vectors of.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for k in 0..8 {
            lanes[k] += a[k] * b[k];
        }
    }
    let rest = a.len() / 8 * 8;
    let rest: f64 = a[rest..].iter().zip(&b[rest..]).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f64>() + rest
}

#[inline(never)]
pub(super) fn lstm(inputs: &Inputs<'_>) -> f64 {
    let [w, u, b, v, series] = [0, 1, 2, 3, 4].map(|at| inputs.data(at));
    let (gates, width) = (b.len(), inputs.array(0).shape[1]);
    let h = gates / 4;
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (mut hidden, mut cell, mut z) = (vec![0.0; h], vec![0.0; h], vec![0.0; gates]);
    let mut error = 0.0;
    let rounds = series.len() / width - 1;
    for t in 0..rounds {
        let x = &series[t * width..(t + 1) * width];
        for (k, z) in z.iter_mut().enumerate() {
            *z = dot(&w[k * width..(k + 1) * width], x) + dot(&u[k * h..(k + 1) * h], &hidden) + b[k];
        }
        for k in 0..h {
            let change = z[3 * h + k].tanh();
            cell[k] = cell[k] * sigmoid(z[k]) + sigmoid(z[h + k]) * change;
            hidden[k] = sigmoid(z[2 * h + k]) * cell[k].tanh();
        }
        let next = &series[(t + 1) * width..(t + 2) * width];
        for (k, next) in next.iter().enumerate() {
            let miss = dot(&v[k * h..(k + 1) * h], &hidden) - next;
            error += miss * miss;
        }
    }
    error / rounds as f64
}

/// So many points at a time, which is what stays in the nearest cache.
const POINTS: usize = 128;

#[inline(never)]
pub(super) fn gmm(inputs: &Inputs<'_>) -> f64 {
    let [alphas, means, icf, x] = [0, 1, 2, 3].map(|at| inputs.data(at));
    let (components, d) = (alphas.len(), inputs.array(1).shape[1]);
    let (n, q) = (x.len() / d, icf.len() / components);
    let (mut squares, mut total) = (0.0, 0.0);
    let factors: Vec<(Vec<f64>, f64)> = (0..components)
        .map(|k| {
            let icf = &icf[k * q..(k + 1) * q];
            let mut factor = vec![0.0; d * d];
            let mut lower = icf[d..].iter();
            for i in 0..d {
                factor[i * d + i] = icf[i].exp();
                for j in i + 1..d {
                    factor[j * d + i] = *lower.next().expect("an entry below the diagonal");
                }
            }
            squares += factor.iter().map(|x| x * x).sum::<f64>();
            (factor, alphas[k] + icf[..d].iter().sum::<f64>())
        })
        .collect();
    let mut centred = vec![0.0; d * POINTS];
    let mut terms = vec![0.0; components * POINTS];
    for first in (0..n).step_by(POINTS) {
        let count = POINTS.min(n - first);
        for (k, (factor, shift)) in factors.iter().enumerate() {
            for (i, row) in centred.chunks_exact_mut(POINTS).enumerate() {
                for (at, centred) in row[..count].iter_mut().enumerate() {
                    *centred = x[(first + at) * d + i] - means[k * d + i];
                }
            }
            let terms = &mut terms[k * POINTS..(k + 1) * POINTS];
            terms.fill(*shift);
            for j in 0..d {
                let mut scaled = [0.0; POINTS];
                for i in 0..=j {
                    let entry = factor[j * d + i];
                    let row = &centred[i * POINTS..(i + 1) * POINTS];
                    scaled.iter_mut().zip(row).for_each(|(scaled, x)| *scaled += entry * x);
                }
                terms.iter_mut().zip(&scaled).for_each(|(term, x)| *term -= 0.5 * x * x);
            }
        }
        for at in 0..count {
            let of = |k: usize| terms[k * POINTS + at];
            let highest = (0..components).map(of).fold(f64::NEG_INFINITY, f64::max);
            total += highest + (0..components).map(|k| (of(k) - highest).exp()).sum::<f64>().ln();
        }
    }
    let highest = alphas.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let all = highest + alphas.iter().map(|a| (a - highest).exp()).sum::<f64>().ln();
    total - n as f64 * all + 0.5 * squares
}

/// The product of matrices, row by row, by the crate that nalgebra uses, too.
fn product(a: &[f64], b: &[f64], rows: usize, inner: usize, columns: usize, start: &[f64]) -> Vec<f64> {
    let mut c: Vec<f64> = start.iter().copied().cycle().take(rows * columns).collect();
    let a = nalgebra::DMatrixView::from_slice(a, inner, rows);
    let b = nalgebra::DMatrixView::from_slice(b, columns, inner);
    // Columns there are rows here: (b' a')' is a b.
    let mut c_view = nalgebra::DMatrixViewMut::from_slice(&mut c, columns, rows);
    c_view.gemm(1.0, &b, &a, 1.0);
    c
}

#[inline(never)]
pub(super) fn mlp(inputs: &Inputs<'_>) -> f64 {
    let [w1, b1, w2, b2, w3, b3, x] = [0, 1, 2, 3, 4, 5, 6].map(|at| inputs.data(at));
    let (batch, width) = (inputs.array(6).shape[0], inputs.array(6).shape[1]);
    let (hidden, classes) = (b1.len(), b3.len());
    let relu = |mut h: Vec<f64>| {
        h.iter_mut().for_each(|x| *x = x.max(0.0));
        h
    };
    let h1 = relu(product(x, w1, batch, width, hidden, b1));
    let h2 = relu(product(&h1, w2, batch, hidden, hidden, b2));
    let logits = product(&h2, w3, batch, hidden, classes, b3);
    let of = |(at, row): (usize, &[f64])| {
        let highest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        highest + row.iter().map(|x| (x - highest).exp()).sum::<f64>().ln() - row[at % classes]
    };
    logits.chunks_exact(classes).enumerate().map(of).sum::<f64>() / batch as f64
}

/// By loops over points, components and entries, with one array for what the loop over entries makes.
#[inline(never)]
pub(super) fn gmm_loops(inputs: &Inputs<'_>) -> f64 {
    let [alphas, means, icf, x] = [0, 1, 2, 3].map(|at| inputs.data(at));
    let (components, d) = (alphas.len(), inputs.array(1).shape[1]);
    let (n, q) = (x.len() / d, icf.len() / components);
    let (mut diagonal, mut shift, mut squares) = (vec![0.0; components * d], vec![0.0; components], 0.0);
    for k in 0..components {
        let icf = &icf[k * q..(k + 1) * q];
        for j in 0..d {
            diagonal[k * d + j] = icf[j].exp();
            shift[k] += icf[j];
            squares += diagonal[k * d + j] * diagonal[k * d + j];
        }
        squares += icf[d..].iter().map(|x| x * x).sum::<f64>();
    }
    let log_sum_exp = |terms: &[f64]| {
        let highest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        highest + terms.iter().map(|x| (x - highest).exp()).sum::<f64>().ln()
    };
    let (mut terms, mut centred, mut scaled) = (vec![0.0; components], vec![0.0; d], vec![0.0; d]);
    let mut total = 0.0;
    for point in x.chunks_exact(d) {
        for k in 0..components {
            let (means, diagonal) = (&means[k * d..(k + 1) * d], &diagonal[k * d..(k + 1) * d]);
            for j in 0..d {
                centred[j] = point[j] - means[j];
                scaled[j] = diagonal[j] * centred[j];
            }
            let mut columns = &icf[k * q + d..(k + 1) * q];
            for i in 0..d {
                let (column, rest) = columns.split_at(d - 1 - i);
                scaled[i + 1..].iter_mut().zip(column).for_each(|(to, entry)| *to += entry * centred[i]);
                columns = rest;
            }
            let square: f64 = scaled.iter().map(|x| x * x).sum();
            terms[k] = alphas[k] + shift[k] - 0.5 * square;
        }
        total += log_sum_exp(&terms);
    }
    total - n as f64 * log_sum_exp(alphas) + 0.5 * squares
}

#[inline(never)]
pub(super) fn lstm_gradbench(inputs: &Inputs<'_>) -> f64 {
    let [main, in_weight, out_weight, out_bias, start, sequence] =
        [0, 1, 2, 3, 4, 5].map(|at| inputs.data(at));
    let b = in_weight.len();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (mut hidden, mut cell, mut signal) = (start.to_vec(), start.to_vec(), vec![0.0; b]);
    let (steps, mut total) = (sequence.len() / b, 0.0);
    for t in 0..steps - 1 {
        let [now, next] = [t, t + 1].map(|t| &sequence[t * b..(t + 1) * b]);
        for i in 0..b {
            signal[i] = in_weight[i] * now[i];
        }
        let states = hidden.chunks_exact_mut(b).zip(cell.chunks_exact_mut(b));
        for (of_layer, (hidden, cell)) in main.chunks_exact(8 * b).zip(states) {
            // Slices of known equal length drop the checks of their bounds.
            let [wf, wi, wo, wc, bf, bi, bo, bc] =
                [0, 1, 2, 3, 4, 5, 6, 7].map(|row| &of_layer[row * b..][..b]);
            let (hidden, cell, signal) = (&mut hidden[..b], &mut cell[..b], &mut signal[..b]);
            for i in 0..b {
                let forget = sigmoid(signal[i] * wf[i] + bf[i]);
                let taken = sigmoid(hidden[i] * wi[i] + bi[i]);
                let given = sigmoid(signal[i] * wo[i] + bo[i]);
                let change = (hidden[i] * wc[i] + bc[i]).tanh();
                cell[i] = cell[i] * forget + taken * change;
                hidden[i] = given * cell[i].tanh();
                signal[i] = hidden[i];
            }
        }
        for i in 0..b {
            signal[i] = signal[i] * out_weight[i] + out_bias[i];
        }
        let norm = (signal.iter().map(|x| x.exp()).sum::<f64>() + 2.0).ln();
        total += signal.iter().zip(next).map(|(guess, next)| (guess - norm) * next).sum::<f64>();
    }
    -total / ((steps - 1) * b) as f64
}

#[inline(never)]
pub(super) fn inplace(inputs: &Inputs<'_>) -> f64 {
    let mut a = inputs.data(0).to_vec();
    let mut drawn = 1_u64;
    let mut draw = || {
        drawn = drawn * 48271 % 2_147_483_647;
        drawn as usize % inputs.data(0).len()
    };
    for _ in 0..100_000 {
        let (i, j) = (draw(), draw());
        a[i] = a[i].sin() * a[j].cos() + a[i] / 2.0;
    }
    a.iter().sum()
}

#[inline(never)]
pub(super) fn chain(inputs: &Inputs<'_>) -> f64 {
    let of = |x: f64| {
        let wave = (-x * x / 2.0).exp() * (3.0 * x).sin();
        let slope = x.tanh() * (1.0 + x * x).ln();
        let y = wave + slope - (x * x + 1.0).sqrt() / (2.0 + x.cos());
        y * y
    };
    inputs.data(0).iter().map(|&x| of(x)).sum()
}

/// All entries, row by row.
#[inline(never)]
pub(super) fn products(inputs: &Inputs<'_>) -> Vec<f64> {
    let [rows, inner, columns] =
        [inputs.array(0).shape[0], inputs.array(1).shape[0], inputs.array(1).shape[1]];
    product(inputs.data(0), inputs.data(1), rows, inner, columns, &[0.0])
}

pub(super) fn product_of_two(inputs: &Inputs<'_>) -> f64 {
    black_box(products(inputs))[0]
}
