//! Steps to count the memory of.

use palinode_core::{Real, Var};
use palinode_macros::step;
use palinode_time::{PlainInput, ReversibleStep, StepRule};

/// A chain of coupled oscillators, updated in place.
#[step(Chain)]
pub(crate) fn chain<S: Real>((x, v): &mut (Vec<S>, Vec<S>), [k, damping]: &[S; 2], push: &S) {
    for i in 0..x.len() {
        let left = if i == 0 { S::zero() } else { x[i - 1] };
        let right = if i + 1 == x.len() { S::zero() } else { x[i + 1] };
        v[i] = v[i] + (*k * (left - x[i] * 2.0 + right) - *damping * v[i]) * 0.01;
    }
    v[0] += *push;
    x.iter_mut().zip(v.iter()).for_each(|(x, v)| *x += *v * 0.01);
}

impl StepRule for Chain {
    fn reverse<S: Real>(
        &self,
        (x, v): &(Vec<S>, Vec<S>),
        [k, damping]: &[S; 2],
        _: &S,
        (of_x, of_v): &mut (Vec<S>, Vec<S>),
        [of_k, of_damping]: &mut [S; 2],
        of_push: &mut S,
    ) {
        let n = x.len();
        of_v.iter_mut().zip(of_x.iter()).for_each(|(v, x)| *v += *x * 0.01);
        *of_push += of_v[0];
        for i in (0..n).rev() {
            let c = of_v[i] * 0.01;
            let left = if i == 0 { S::zero() } else { x[i - 1] };
            let right = if i + 1 == n { S::zero() } else { x[i + 1] };
            *of_k += c * (left - x[i] * 2.0 + right);
            *of_damping -= c * v[i];
            if i > 0 {
                of_x[i - 1] += c * *k;
            }
            if i + 1 < n {
                of_x[i + 1] += c * *k;
            }
            of_x[i] -= c * *k * 2.0;
            of_v[i] -= c * *damping;
        }
    }
}

/// Every part of a step is a shear, so it can be undone.
impl ReversibleStep for Chain {
    fn step_back<S: Real>(&self, (x, v): &mut (Vec<S>, Vec<S>), [k, damping]: &[S; 2], push: &S) {
        x.iter_mut().zip(v.iter()).for_each(|(x, v)| *x -= *v * 0.01);
        v[0] -= *push;
        for i in 0..x.len() {
            let left = if i == 0 { S::zero() } else { x[i - 1] };
            let right = if i + 1 == x.len() { S::zero() } else { x[i + 1] };
            v[i] = (v[i] - *k * (left - x[i] * 2.0 + right) * 0.01) / (-*damping * 0.01 + 1.0);
        }
    }
}

/// A loss.
pub(crate) fn energy((x, v): &(Vec<Var<f64>>, Vec<Var<f64>>)) -> Var<f64> {
    x.iter().chain(v).map(|&u| u * u).sum()
}

/// Where it starts.
pub(crate) fn start(n: usize) -> (Vec<f64>, Vec<f64>) {
    ((0..n).map(|i| (i as f64).sin()).collect(), vec![0.0; n])
}

/// A state that grows after a hundred steps.
#[step(Late)]
pub(crate) fn late<S: Real>((x, taken): &mut (Vec<S>, PlainInput<u64>), a: &S) {
    let last = x.len() - 1;
    x[last] = (x[last] * *a).sin();
    if taken.0 > 100 {
        x.push(x[last] + *a);
    }
    taken.0 += 1;
}
