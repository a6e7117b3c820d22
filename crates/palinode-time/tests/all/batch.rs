//! Gradients of batches: the same bits on any number of threads and in any order, if sums are exact.

use palinode_core::{Accumulator, ExactSum, Key, Posit16, Posit32, Posit64, Real, Summand, Var, grad};
use palinode_time::{Batch, BatchGradient, Directions, Perturbed};
use std::collections::BTreeSet;

/// Logistic regression on generated data.
fn loss<S: Real>(p: impl Fn(usize) -> S, sample: usize) -> S {
    let key = Key::from_seed(77);
    let [a, b, c, label] = key.gaussians(sample as u64);
    let score = p(0) * a + p(1) * b + p(2) * c + p(3);
    let side = if a - 0.5 * b + 0.3 * label > 0.0 { 1.0 } else { -1.0 };
    (-(score * side)).softplus()
}

fn of_vars(p: &[Var<f64>], sample: usize) -> Var<f64> {
    loss(|i| p[i], sample)
}

const POINT: [f64; 4] = [0.3, -0.2, 0.1, 0.05];

fn bits(sum: &BatchGradient) -> Vec<u64> {
    sum.gradient.iter().chain([&sum.value]).map(|x| x.to_bits()).collect()
}

#[test]
fn a_batch_is_the_sum_of_its_samples() {
    let sum = Batch::new(500).value_and_grad(&POINT, of_vars).unwrap();
    let mut expected = vec![ExactSum::new(); 4];
    for sample in 0..500 {
        let gradient = grad(|p| of_vars(p, sample), &POINT).unwrap();
        expected.iter_mut().zip(gradient).for_each(|(sum, g)| sum.add(g));
    }
    let expected: Vec<f64> = expected.iter().map(ExactSum::to_f64).collect();
    assert_eq!(sum.gradient, expected);
    assert_eq!(sum.clone().mean().gradient[0], expected[0] / 500.0);
    for how in [Accumulator::Naive, Accumulator::Compensated] {
        let other = Batch::new(500).accumulate(how).value_and_grad(&POINT, of_vars).unwrap();
        assert!(other.gradient.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    let empty = Batch::new(0).value_and_grad(&POINT, of_vars).unwrap();
    assert_eq!((empty.value, empty.gradient), (0.0, vec![0.0; 4]));
}

#[test]
fn the_order_of_a_batch_does_not_matter_if_it_is_exact() {
    let n = 2000;
    let [exact, naive] = [Accumulator::Exact, Accumulator::Naive].map(|how| {
        let patterns: BTreeSet<_> = (0..5)
            .map(|step| {
                // 7, 11, ... are coprime to 2000: a permutation of the samples.
                let stride = [1, 7, 11, 13, 17][step];
                let order = |p: &[Var<f64>], i: usize| of_vars(p, i * stride % n);
                bits(&Batch::new(n).accumulate(how).value_and_grad(&POINT, order).unwrap())
            })
            .collect();
        patterns.len()
    });
    assert_eq!(exact, 1);
    assert!(naive > 1, "the check could not fail");
}

#[test]
fn forward_gradients_of_batches_are_those_of_the_sum() {
    let key = Key::from_seed(2);
    let per_sample = |p: &Perturbed<'_, '_, 4>, sample: usize| loss(|i| p.get(i), sample);
    let forward =
        Batch::new(300).forward_gradient::<4>(&POINT, Directions::HadamardFrame, key, per_sample).unwrap();
    let reverse = Batch::new(300).value_and_grad(&POINT, of_vars).unwrap();
    assert_eq!(forward.value(), reverse.value);
    for (found, expected) in forward.gradient().iter().zip(&reverse.gradient) {
        assert!((found - expected).abs() < 1e-10, "{found} {expected}");
    }
}

/// The loss of a sample in a number that has no operators with `f64`, and of any precision.
fn squared<S: Summand<Bool = bool>>(p: &[Var<S>], sample: usize) -> Var<S> {
    let [a, b, c, y] = Key::from_seed(78).gaussians(sample as u64);
    let miss = p[0] * a + p[1] * b + p[2] * c + p[3] - y * 100.0;
    miss * miss
}

/// Gradients of a batch in some number: how many there are over several orders of the samples.
fn patterns_in<S: Summand<Bool = bool>>(how: Accumulator) -> usize {
    let point: Vec<S> = POINT.iter().map(|&x| S::from_f64(x)).collect();
    let n = 500;
    let of_order = |stride: usize| {
        let order = |p: &[Var<S>], i: usize| squared(p, i * stride % n);
        let sum = Batch::new(n).accumulate(how).value_and_grad(&point, order).unwrap();
        let numbers = sum.gradient.into_iter().chain([sum.value]);
        numbers.map(|x| x.peek().unwrap().to_bits()).collect::<Vec<_>>()
    };
    [1, 3, 7, 9, 11].map(of_order).into_iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn batches_of_other_numbers_do_not_depend_on_the_order_if_they_are_exact() {
    fn of<S: Summand<Bool = bool>>() {
        assert_eq!(patterns_in::<S>(Accumulator::Exact), 1);
        assert!(patterns_in::<S>(Accumulator::Naive) > 1, "the check could not fail");
        assert!(patterns_in::<S>(Accumulator::Compensated) >= 1);
    }
    of::<f32>();
    of::<Posit16>();
    of::<Posit32>();
    of::<Posit64>();
}

#[test]
fn means_of_other_numbers_are_those_of_f64() {
    let point = POINT.map(|x| x as f32);
    let sum = Batch::new(500).value_and_grad(&point, squared::<f32>).unwrap();
    let wide = Batch::new(500).value_and_grad(&POINT, squared::<f64>).unwrap();
    for (found, expected) in sum.mean().gradient.iter().zip(wide.mean().gradient) {
        assert!((f64::from(*found) - expected).abs() < 1e-4 * expected.abs().max(1.0), "{found} {expected}");
    }
    // Forward gradients in posits: as many orthonormal directions as parameters.
    let point = POINT.map(Posit32::from_f64);
    let loss = |p: &Perturbed<'_, '_, 4, Posit32>, sample: usize| {
        let [a, b, c, y] = Key::from_seed(78).gaussians(sample as u64);
        let miss = p.get(0) * a + p.get(1) * b + p.get(2) * c + p.get(3) - y * 100.0;
        miss * miss
    };
    let key = Key::from_seed(2);
    let forward = Batch::new(300)
        .forward_gradient_in::<4, Posit32>(&point, Directions::HadamardFrame, key, loss)
        .unwrap();
    let reverse = Batch::new(300).value_and_grad(&point, squared::<Posit32>).unwrap();
    assert_eq!(forward.value(), reverse.value);
    let size = reverse.gradient.iter().map(|g| g.to_f64().abs()).fold(0.0, f64::max);
    for (found, expected) in forward.gradient().iter().zip(&reverse.gradient) {
        assert!((found.to_f64() - expected.to_f64()).abs() < 1e-6 * size, "{found} {expected}");
    }
}

#[cfg(feature = "rayon")]
mod threads {
    use super::*;

    fn on_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
    }

    /// The bit patterns of a batch's gradient over runs and numbers of threads.
    fn patterns(how: Accumulator, samples: usize, runs: usize) -> usize {
        let mut seen = BTreeSet::new();
        for threads in 1..=8 {
            on_threads(threads, || {
                for _ in 0..runs {
                    let batch = Batch::new(samples).accumulate(how).parallel();
                    seen.insert(bits(&batch.value_and_grad(&POINT, of_vars).unwrap()));
                }
            });
        }
        let sequential = Batch::new(samples).accumulate(how).value_and_grad(&POINT, of_vars).unwrap();
        seen.insert(bits(&sequential));
        seen.len()
    }

    #[test]
    fn exact_gradients_have_one_bit_pattern() {
        assert_eq!(patterns(Accumulator::Exact, 20_000, 2), 1);
        assert!(patterns(Accumulator::Naive, 20_000, 2) > 1, "the check could not fail");
    }

    /// `cargo test --release -p palinode-time --features rayon -- --ignored million_samples --nocapture`
    #[test]
    #[ignore = "400 gradients of a million samples each: minutes in release"]
    fn million_samples() {
        let naive = patterns(Accumulator::Naive, 1_000_000, 3);
        println!("naive: {naive} patterns in 3 runs x 8 numbers of threads");
        assert!(naive > 1);
        let exact = patterns(Accumulator::Exact, 1_000_000, 50);
        println!("exact: {exact} pattern in 50 runs x 8 numbers of threads");
        assert_eq!(exact, 1);
    }

    #[test]
    fn exact_slopes_have_one_bit_pattern() {
        let key = Key::from_seed(5);
        let run = |how| {
            let mut seen = BTreeSet::new();
            for threads in 1..=8 {
                let estimate = on_threads(threads, || {
                    Batch::new(5000).accumulate(how).parallel().forward_gradient::<2>(
                        &POINT,
                        Directions::Sphere,
                        key,
                        |p, sample| loss(|i| p.get(i), sample),
                    )
                });
                seen.insert(estimate.unwrap().slopes().map(f64::to_bits));
            }
            seen.len()
        };
        assert_eq!(run(Accumulator::Exact), 1);
        assert!(run(Accumulator::Naive) > 1, "the check could not fail");
    }

    #[test]
    fn exact_posits_have_one_bit_pattern() {
        let point = POINT.map(Posit32::from_f64);
        let run = |how| {
            let mut seen = BTreeSet::new();
            for threads in 1..=5 {
                let batch = Batch::new(3000).accumulate(how).parallel();
                let sum = on_threads(threads, || batch.value_and_grad(&point, squared::<Posit32>)).unwrap();
                seen.insert(sum.gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>());
            }
            seen.len()
        };
        assert_eq!(run(Accumulator::Exact), 1);
        assert!(run(Accumulator::Naive) > 1, "the check could not fail");
    }

    #[test]
    fn the_first_sample_that_fails_is_named_whatever_the_threads_do() {
        let failing = |p: &[Var<f64>], sample: usize| {
            if sample >= 700 { (p[0] * 0.0 - sample as f64).ln() } else { p[0] }
        };
        for threads in 1..=4 {
            let batch = Batch::new(3000).parallel();
            let error = on_threads(threads, || batch.value_and_grad(&POINT, failing)).unwrap_err();
            assert_eq!(error.code(), "PAL0606");
            assert!(error.to_string().starts_with("PAL0606: sample 700 of the batch: PAL0103"), "{error}");
        }
        let error = Batch::new(3000).value_and_grad(&POINT, failing).unwrap_err();
        assert!(error.to_string().starts_with("PAL0606: sample 700 "), "{error}");
    }
}
