//! Forward gradients take no memory beyond the parameters, however many there are and however long the loss
//! computes.

use crate::counting::measured;
use palinode_core::{Accumulator, DualN, Key, value_and_grad};
use palinode_time::{Directions, ForwardDescent, Perturbed, forward_gradient};

/// The most bytes that were allocated at once during `f`, beyond those before it.
fn extra_bytes(f: impl FnOnce()) -> usize {
    measured(f).1
}

/// A chain of `depth` operations over all parameters.
fn chain<const K: usize>(p: &Perturbed<'_, '_, K>, depth: usize) -> DualN<f64, K> {
    let mut state = p.get(0);
    for i in 0..depth {
        state = (state * p.get(i % p.len())).sin() + 0.1;
    }
    state
}

pub(crate) fn run() {
    let key = Key::from_seed(1);
    let families = [
        Directions::Gaussian,
        Directions::Rademacher,
        Directions::Sphere,
        Directions::Coordinate,
        Directions::CoordinateFrame,
        Directions::HadamardFrame,
    ];
    for (parameters, depth) in [(100, 100), (100, 100_000), (100_000, 100), (100_000, 100_000)] {
        let mut p = vec![0.7; parameters];
        let guess = vec![0.1; parameters];
        for family in families {
            let bytes = extra_bytes(|| {
                let estimate = forward_gradient::<4>(&p, family, key, |p| chain(p, depth)).unwrap();
                let estimate = estimate.with_guess(&guess, Accumulator::Exact).unwrap();
                estimate.add_to(&mut p, -1e-9);
                assert!(estimate.standard_error() >= 0.0);
            });
            assert_eq!(bytes, 0, "{family:?}, {parameters} parameters, depth {depth}");
        }
        let training = extra_bytes(|| {
            ForwardDescent::new(key).rate(1e-9).steps(3).run::<1>(&mut p, |p, _| chain(p, depth)).unwrap();
        });
        assert_eq!(training, 0);
    }

    // The allocator does count: reverse mode needs a gradient, a tape and its cotangents.
    let reverse = |parameters: usize, depth: usize| {
        let p = vec![0.7; parameters];
        extra_bytes(|| {
            let f = |p: &[palinode_core::Var<f64>]| {
                let mut state = p[0];
                for i in 0..depth {
                    state = (state * p[i % p.len()]).sin() + 0.1;
                }
                state
            };
            value_and_grad(f, &p).unwrap();
        })
    };
    let (small, deep, wide) = (reverse(100, 100), reverse(100, 100_000), reverse(100_000, 100));
    assert!(small > 0 && deep > 100 * small && wide > 100 * small, "{small} {deep} {wide}");
}
