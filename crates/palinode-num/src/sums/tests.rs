//! Kernels of sums on every instruction set that this processor has, against the reference over any number.

use super::floats::{Chain, Dot, Sum};
use super::lines::Lines;
use crate::machine::InstructionSet;
use crate::scalar::order::sum_over;
use crate::{Key, Scalar};

/// The instruction sets of this processor.
pub(crate) fn sets() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| set.is_available())
}

/// Numbers of many sizes, with zeros of both signs; rarely an infinity.
pub(crate) fn numbers(key: Key, count: usize) -> Vec<f64> {
    let number = |i: u64| match key.split(1).below(200, i) {
        0 => 0.0,
        1..20 => -0.0,
        20 if key.split(3).below(40, i) == 0 => f64::INFINITY,
        _ => key.gaussian(i) * 2f64.powi(key.split(2).below(60, i) as i32),
    };
    (0..count as u64).map(number).collect()
}

/// One NaN is as good as another.
pub(crate) fn bits(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_reference() {
    let key = Key::from_seed(1);
    let mut count = 0;
    while count < 40_000 {
        let (a, b) =
            (numbers(key.split(count), count as usize), numbers(key.split(count + 1), count as usize));
        let n = a.len();
        let start = key.gaussian(count);
        let sum = bits(sum_over(n, |i| a[i]));
        let dot = bits(sum_over(n, |i| a[i] * b[i]));
        let chain = bits((0..n).fold(start, |c, i| libm::fma(a[i], b[i], c)));
        let (a32, b32): (Vec<f32>, Vec<f32>) = a.iter().zip(&b).map(|(&a, &b)| (a as f32, b as f32)).unzip();
        let dot32 = f64::from(sum_over(n, |i| a32[i] * b32[i]));
        for set in sets() {
            assert_eq!(bits(set.run(Sum(&a))), sum, "{set:?}: sum of {n}");
            assert_eq!(bits(set.run(Dot(&a, &b))), dot, "{set:?}: dot product of {n}");
            assert_eq!(bits(f64::from(set.run(Dot(&a32, &b32)))), bits(dot32), "{set:?}: of {n} in f32");
            let pair = |i: usize| (a[i], b[i]);
            assert_eq!(bits(set.run(Chain { start, count: n, pair })), chain, "{set:?}: chain of {n}");
        }
        count += if count < 100 { 1 } else { 1 + count / 9 };
    }
}

#[test]
fn lines_give_the_bits_of_the_reference_on_every_instruction_set() {
    let key = Key::from_seed(2);
    for (case, &count) in [0, 1, 7, 15, 16, 17, 40, 1023, 1024, 1025, 2500].iter().enumerate() {
        for width in [1, 3, 8, 13, 32, 45] {
            for step in [width, width + 4] {
                let data = numbers(key.split(case as u64), count * step);
                let weights = numbers(key.split(9), count);
                for weights in [None, Some(&weights[..])] {
                    let term = |k: usize, j: usize| {
                        let x = data[k * step + j];
                        weights.map_or(x, |weights| x * weights[k])
                    };
                    let expected: Vec<u64> =
                        (0..width).map(|j| bits(f64::sum_over(count, |k| term(k, j)))).collect();
                    for set in sets() {
                        let mut sums = vec![f64::NAN; width];
                        set.run(Lines { data: &data, step, count, weights, sums: &mut sums });
                        let found: Vec<u64> = sums.into_iter().map(bits).collect();
                        assert_eq!(found, expected, "{set:?}: {count} lines of {width}, {step} apart");
                    }
                }
            }
        }
    }
}
