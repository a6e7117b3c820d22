//! Gradients of batches: the same bits on any number of threads and in any order, if sums are exact.

use palinode_core::{
    Accumulator, Array, DualN, Key, Posit16, Posit32, Posit64, Real, Summand, Var, value_and_grad,
};
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
    let samples: Vec<(f64, Vec<f64>)> =
        (0..500).map(|sample| value_and_grad(|p| of_vars(p, sample), &POINT).unwrap()).collect();
    let column = |i: usize| samples.iter().map(|(_, gradient)| gradient[i]).collect::<Vec<_>>();
    let values: Vec<f64> = samples.iter().map(|&(value, _)| value).collect();
    // Samples come one by one, so a naive sum adds them one by one.
    let sum_of = |how: Accumulator, terms: &[f64]| match how {
        Accumulator::Naive => terms.iter().sum(),
        _ => how.sum(terms),
    };
    for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
        let sum = Batch::new(500).accumulate(how).value_and_grad(&POINT, of_vars).unwrap();
        assert_eq!(sum.value, sum_of(how, &values), "{how:?}");
        assert_eq!(sum.gradient, [0, 1, 2, 3].map(|i| sum_of(how, &column(i))), "{how:?}");
        assert_eq!(sum.clone().mean().gradient[0], sum.gradient[0] / 500.0);
    }
    assert_eq!(
        Batch::new(500).value_and_grad(&POINT, of_vars).unwrap().gradient[0],
        Accumulator::Exact.sum(&column(0))
    );
    let empty = Batch::new(0).value_and_grad(&POINT, of_vars).unwrap();
    assert_eq!((empty.value, empty.gradient), (0.0, vec![0.0; 4]));
}

/// Within a sample, cotangents are added up as asked for; by default one after the other.
#[test]
fn cotangents_of_a_sample_are_added_up_as_asked_for() {
    let weights = [1e30, 1.0, -1e30];
    let loss = |p: &[Var<f64>], sample: usize| {
        let spread = Array::from_vars(&p[..1]).broadcast(&[3]);
        spread.dot(&Array::from_values(weights)) * (sample as f64) + p[1]
    };
    let gradient =
        |how| Batch::new(5).accumulate_within(how).value_and_grad(&[0.0, 0.0], loss).unwrap().gradient;
    assert_eq!(gradient(Accumulator::Naive), [0.0, 5.0]);
    assert_eq!(gradient(Accumulator::Compensated), [10.0, 5.0]);
    assert_eq!(gradient(Accumulator::Exact), [10.0, 5.0]);
    let default = Batch::new(5).value_and_grad(&[0.0, 0.0], loss).unwrap();
    assert_eq!(default.gradient, [0.0, 5.0]);
}

/// Sums that are not finite are errors in every way of adding up and in both modes, as samples that are not
/// finite are.
#[test]
fn sums_that_overflow_are_errors() {
    let data = [1e308, 1e308, -1e308, -1e308];
    let by_vars = |p: &[Var<f64>], i: usize| p[0] * data[i] + p[1];
    let by_slopes = |p: &Perturbed<'_, '_, 2>, i: usize| p.get(0) * data[i] + p.get(1);
    let key = Key::from_seed(1);
    for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
        let two = Batch::new(2).accumulate(how);
        let errors = [
            two.value_and_grad(&[1.0, 0.0], by_vars).unwrap_err(),
            two.forward_gradient::<2>(&[1.0, 0.0], Directions::CoordinateFrame, key, by_slopes).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.code(), "PAL0608", "{how:?}");
            let found = error.to_string();
            assert!(
                found.starts_with("PAL0608: summed over the 2 samples of the batch, the value is inf"),
                "{found}"
            );
        }
        // Values that vanish: only derivatives overflow.
        let error = two.value_and_grad(&[0.0, 0.0], by_vars).unwrap_err().to_string();
        assert!(error.contains("the derivative by parameter 0 is inf"), "{error}");
        let forward = two.forward_gradient::<2>(&[0.0, 0.0], Directions::CoordinateFrame, key, by_slopes);
        let error = forward.unwrap_err().to_string();
        assert!(error.contains("the derivative in direction "), "{error}");
        // All four cancel. Partial sums overflow, but for exact ones.
        let four = Batch::new(4).accumulate(how);
        let reverse = four.value_and_grad(&[1.0, 0.0], by_vars);
        let forward = four.forward_gradient::<2>(&[1.0, 0.0], Directions::CoordinateFrame, key, by_slopes);
        if how == Accumulator::Exact {
            assert_eq!(reverse.unwrap().gradient, [0.0, 4.0]);
            assert_eq!(forward.unwrap().value(), 0.0);
        } else {
            assert_eq!(reverse.unwrap_err().code(), "PAL0608", "{how:?}");
            assert_eq!(forward.unwrap_err().code(), "PAL0608", "{how:?}");
        }
    }
    // In single precision, where the exact sum is a number for f64.
    let error = Batch::new(2).value_and_grad(&[1.0_f32], |p, _| p[0] * 3e38).unwrap_err();
    assert_eq!(error.code(), "PAL0608");
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

/// Samples, parameters and frames of small whole numbers and halves, for which nothing is ever rounded: every
/// answer must be the same.
fn whole(sample: usize) -> [f64; 4] {
    Key::from_seed(78).gaussians(sample as u64).map(|x| (4.0 * x).round())
}

const WHOLE_POINT: [f64; 4] = [0.5, -1.0, 2.0, 1.5];

fn whole_squared<S: Summand<Bool = bool>>(p: &[Var<S>], sample: usize) -> Var<S> {
    let [a, b, c, y] = whole(sample);
    let miss = p[0] * a + p[1] * b + p[2] * c + p[3] - y;
    miss * miss
}

fn whole_slopes<S: Summand>(p: &Perturbed<'_, '_, 4, S>, sample: usize) -> DualN<S, 4> {
    let [a, b, c, y] = whole(sample);
    let miss = p.get(0) * a + p.get(1) * b + p.get(2) * c + p.get(3) - y;
    miss * miss
}

/// As many orthonormal directions as parameters: the forward gradient is the gradient.
#[test]
fn forward_gradients_of_batches_are_those_of_the_sum() {
    fn of<S: Summand<Bool = bool> + PartialEq>() {
        let point = WHOLE_POINT.map(S::from_f64);
        let forward = Batch::new(300)
            .forward_gradient_in::<4, S>(&point, Directions::HadamardFrame, Key::from_seed(2), whole_slopes)
            .unwrap();
        let reverse = Batch::new(300).value_and_grad(&point, whole_squared::<S>).unwrap();
        assert_eq!(forward.value(), reverse.value);
        assert_eq!(forward.gradient(), reverse.gradient);
    }
    of::<f64>();
    of::<f32>();
    of::<Posit32>();
    of::<Posit64>();
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

/// The exact sum of numbers that a narrow number holds is the rounded sum of a wide one, which holds all of
/// it.
#[test]
fn sums_and_means_of_other_numbers_are_those_of_f64() {
    fn of<S: Summand<Bool = bool> + PartialEq>() {
        let sum = Batch::new(500).value_and_grad(&WHOLE_POINT.map(S::from_f64), whole_squared::<S>).unwrap();
        let wide = Batch::new(500).value_and_grad(&WHOLE_POINT, whole_squared::<f64>).unwrap();
        assert_eq!(sum.value, S::from_f64(wide.value));
        let expected: Vec<S> = wide.gradient.iter().map(|&g| S::from_f64(g)).collect();
        assert_eq!(sum.gradient, expected);
        let means: Vec<S> = expected.iter().map(|&g| g / S::from_f64(500.0)).collect();
        assert_eq!(sum.mean().gradient, means);
    }
    of::<f32>();
    of::<Posit32>();
    of::<Posit64>();
}

#[cfg(feature = "rayon")]
mod threads {
    use super::*;

    fn on_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
    }

    /// How many results there are over numbers of threads.
    fn results<T: Ord + Send>(most: usize, run: impl Fn() -> T + Sync) -> BTreeSet<T> {
        (1..=most).map(|threads| on_threads(threads, &run)).collect()
    }

    /// The bit patterns of a batch's gradient over runs and numbers of threads.
    fn patterns(how: Accumulator, samples: usize, runs: usize) -> usize {
        let batch = Batch::new(samples).accumulate(how);
        let run = |batch: Batch| bits(&batch.value_and_grad(&POINT, of_vars).unwrap());
        let mut seen: BTreeSet<_> = (0..runs).flat_map(|_| results(8, || run(batch.parallel()))).collect();
        seen.insert(run(batch));
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
            let batch = Batch::new(5000).accumulate(how).parallel();
            let loss = |p: &Perturbed<'_, '_, 2>, sample: usize| loss(|i| p.get(i), sample);
            let slopes =
                || batch.forward_gradient::<2>(&POINT, Directions::Sphere, key, loss).unwrap().slopes();
            results(8, || slopes().map(f64::to_bits)).len()
        };
        assert_eq!(run(Accumulator::Exact), 1);
        assert!(run(Accumulator::Naive) > 1, "the check could not fail");
    }

    #[test]
    fn exact_posits_have_one_bit_pattern() {
        let point = POINT.map(Posit32::from_f64);
        let run = |how| {
            let batch = Batch::new(3000).accumulate(how).parallel();
            let gradient = || batch.value_and_grad(&point, squared::<Posit32>).unwrap().gradient;
            results(5, || gradient().iter().map(|g| g.to_bits()).collect::<Vec<_>>()).len()
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
