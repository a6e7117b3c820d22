//! Gradients by hand, where one would write them: every round is kept (or some, of many), cotangents of
//! stencils are gathered.

use super::plain::{
    BURGERS_LONG_STEPS, BURGERS_STEPS, HEAT_STEPS, Inputs, LORENZ_DT, LORENZ_STEPS, burgers_start, heat_step,
};
use crate::loops::burgers::{advance, gather};

/// The memory of a gradient, which later calls use again.
#[derive(Default)]
pub(super) struct Kept(Vec<f64>);

impl Kept {
    fn rows(&mut self, count: usize, width: usize) -> &mut [f64] {
        self.0.resize(count * width, 0.0);
        &mut self.0
    }
}

#[inline(never)]
pub(super) fn burgers(inputs: &Inputs<'_>, kept: &mut Kept) -> Vec<f64> {
    let start = burgers_start(inputs.data(0));
    let n = start.len();
    let rows = kept.rows(BURGERS_STEPS + 1, n);
    rows[..n].copy_from_slice(&start);
    burgers_forth(rows, n);
    let mut c: Vec<f64> = rows[BURGERS_STEPS * n..].iter().map(|u| 2.0 * u).collect();
    burgers_back_through(rows, n, &mut c);
    c
}

/// Keeps every hundredth state and, of a hundred steps at a time, every state: what is used at a time stays
/// in the second cache.
#[inline(never)]
pub(super) fn burgers_long(inputs: &Inputs<'_>, kept: &mut Kept) -> Vec<f64> {
    const STEPS: usize = 100;
    let start = burgers_start(inputs.data(0));
    let n = start.len();
    let blocks = BURGERS_LONG_STEPS / STEPS;
    let (snapshots, rows) = kept.rows(blocks + STEPS + 1, n).split_at_mut(blocks * n);
    rows[..n].copy_from_slice(&start);
    for snapshot in snapshots.chunks_exact_mut(n) {
        snapshot.copy_from_slice(&rows[..n]);
        // Two rows take turns.
        let (mut here, mut next) = rows[..2 * n].split_at_mut(n);
        for _ in 0..STEPS {
            advance(here, next);
            std::mem::swap(&mut here, &mut next);
        }
    }
    let mut c: Vec<f64> = rows[..n].iter().map(|u| 2.0 * u).collect();
    for snapshot in snapshots.chunks_exact(n).rev() {
        rows[..n].copy_from_slice(snapshot);
        burgers_forth(rows, n);
        burgers_back_through(rows, n, &mut c);
    }
    c
}

/// Fills all rows but the first.
#[inline(always)]
fn burgers_forth(rows: &mut [f64], n: usize) {
    for step in 1..rows.len() / n {
        let (before, after) = rows.split_at_mut(step * n);
        advance(&before[(step - 1) * n..], &mut after[..n]);
    }
}

#[inline(always)]
fn burgers_back_through(rows: &[f64], n: usize, c: &mut Vec<f64>) {
    let mut next = c.clone();
    for row in rows.chunks_exact(n).rev().skip(1) {
        burgers_back(row, c, &mut next);
        std::mem::swap(c, &mut next);
    }
}

#[inline(always)]
fn burgers_back(u: &[f64], c: &[f64], next: &mut [f64]) {
    let n = u.len();
    next[0] = gather([u[n - 1], u[1]], [c[n - 1], c[0], c[1]]);
    for ((new, u), c) in next[1..n - 1].iter_mut().zip(u.windows(3)).zip(c.windows(3)) {
        *new = gather([u[0], u[2]], [c[0], c[1], c[2]]);
    }
    next[n - 1] = gather([u[n - 2], u[0]], [c[n - 2], c[n - 1], c[0]]);
}

/// Of the start, then of the conductivity.
#[inline(never)]
pub(super) fn heat2d(inputs: &Inputs<'_>, kept: &mut Kept) -> Vec<f64> {
    let (n, r) = (inputs.array(0).shape[0], inputs.number(1));
    let rows = kept.rows(HEAT_STEPS + 1, n * n);
    for row in rows.chunks_exact_mut(n * n) {
        row.copy_from_slice(inputs.data(0));
    }
    for step in 0..HEAT_STEPS {
        let (before, after) = rows.split_at_mut((step + 1) * n * n);
        heat_step(n, r, &before[step * n * n..], &mut after[..n * n]);
    }
    let mut c: Vec<f64> = rows[HEAT_STEPS * n * n..].iter().map(|u| 2.0 * (u - 0.5)).collect();
    let mut next = c.clone();
    let mut by_r = 0.0;
    for step in (0..HEAT_STEPS).rev() {
        by_r += heat_back(n, r, &rows[step * n * n..(step + 1) * n * n], &mut c, &mut next);
        std::mem::swap(&mut c, &mut next);
    }
    c.push(by_r);
    c
}

/// The cotangents of inner points go to their neighbours, those of the edge stay where they are.
#[inline(always)]
fn heat_back(n: usize, r: f64, u: &[f64], c: &mut [f64], next: &mut [f64]) -> f64 {
    // The edge gives nothing to its neighbours: it is put aside, and zero meanwhile.
    for row in 0..n {
        for i in if row == 0 || row == n - 1 { 0..n } else { 0..1 } {
            next[row * n + i] = std::mem::take(&mut c[row * n + i]);
        }
        if row != 0 && row != n - 1 {
            next[row * n + n - 1] = std::mem::take(&mut c[row * n + n - 1]);
        }
    }
    let mut lanes = [0.0; 8];
    for row in 1..n - 1 {
        let (a, b) = (row * n, (row + 1) * n);
        let (here, above, below) = (&u[a..b], &u[a - n..b - n], &u[a + n..b + n]);
        let (c_here, c_above, c_below) = (&c[a..b], &c[a - n..b - n], &c[a + n..b + n]);
        let new = &mut next[a..b];
        for i in 1..n - 1 {
            let flow = (here[i - 1] + here[i + 1]) + (above[i] + below[i]) - 4.0 * here[i];
            lanes[i % 8] += c_here[i] * flow;
            new[i] =
                c_here[i] * (1.0 - 4.0 * r) + r * (c_here[i - 1] + c_here[i + 1] + c_above[i] + c_below[i]);
        }
    }
    // The edge takes from its inner neighbours.
    for i in 1..n - 1 {
        for (edge, inner) in [
            (i, n + i),
            ((n - 1) * n + i, (n - 2) * n + i),
            (i * n, i * n + 1),
            (i * n + n - 1, i * n + n - 2),
        ] {
            next[edge] += r * c[inner];
        }
    }
    lanes.iter().sum()
}

#[inline(never)]
pub(super) fn lorenz(inputs: &Inputs<'_>, kept: &mut Kept) -> Vec<f64> {
    let [mut x, mut y, mut z, sigma, rho, beta] = [0, 1, 2, 3, 4, 5].map(|at| inputs.number(at));
    let rows = kept.rows(LORENZ_STEPS, 3);
    for row in rows.chunks_exact_mut(3) {
        row.copy_from_slice(&[x, y, z]);
        let (dx, dy, dz) = (sigma * (y - x), x * (rho - z) - y, x * y - beta * z);
        x += LORENZ_DT * dx;
        y += LORENZ_DT * dy;
        z += LORENZ_DT * dz;
    }
    let [mut cx, mut cy, mut cz] = [2.0 * x, 2.0 * y, 2.0 * z];
    let [mut by_sigma, mut by_rho, mut by_beta] = [0.0; 3];
    for row in rows.chunks_exact(3).rev() {
        let (x, y, z) = (row[0], row[1], row[2]);
        let (dx, dy, dz) = (LORENZ_DT * cx, LORENZ_DT * cy, LORENZ_DT * cz);
        by_sigma += dx * (y - x);
        by_rho += dy * x;
        by_beta -= dz * z;
        cx += dy * (rho - z) + dz * y - dx * sigma;
        cy += dx * sigma - dy + dz * x;
        cz += -dy * x - dz * beta;
    }
    vec![cx, cy, cz, by_sigma, by_rho, by_beta]
}
