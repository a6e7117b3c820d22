//! Products on every instruction set that this processor has, against chains that are computed one by one.

use super::{MatrixView, floats};
use crate::Key;
use crate::scalar::order::all_finite;
use crate::sums::tests::{bits, numbers, sets};

#[test]
fn products_have_the_same_bits_on_every_instruction_set() {
    let key = Key::from_seed(4);
    for case in 0..70 {
        let size = |axis: u64| match case {
            0..50 => 1 + key.split(axis).below(if case < 30 { 18 } else { 70 }, case) as usize,
            _ => [1, 5, 130, 24, 257, 300, 48, 9]
                [(case as usize * (2 * axis as usize + 1) + axis as usize) % 8],
        };
        let [m, k, n] = [0, 1, 2].map(size);
        let (a, b) = (numbers(key.split(2 * case), m * k), numbers(key.split(2 * case + 1), k * n));
        let start = numbers(key.split(case + 500), m * n);
        let expected: Vec<u64> = (0..m * n)
            .map(|at| {
                let (i, j) = (at / n, at % n);
                bits((0..k).fold(start[at], |c, l| libm::fma(a[i * k + l], b[l * n + j], c)))
            })
            .collect();
        let turned = |x: &[f64], columns: usize| -> Vec<f64> {
            (0..columns).flat_map(|j| x.iter().copied().skip(j).step_by(columns)).collect()
        };
        let (a_turned, b_turned) = (turned(&a, k), turned(&b, n));
        for set in sets() {
            for of_a in [MatrixView::by_rows(&a, m, k), MatrixView::by_columns(&a_turned, m, k)] {
                for of_b in [MatrixView::by_rows(&b, k, n), MatrixView::by_columns(&b_turned, k, n)] {
                    let mut c = start.clone();
                    floats::add_product(set, &mut c, of_a, of_b);
                    let found: Vec<u64> = c.into_iter().map(bits).collect();
                    assert!(found == expected, "{set:?}: {m} by {k} by {n}, {of_a:?}, {of_b:?}");
                }
            }
        }
    }
}

#[test]
fn in_f32_too() {
    let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let key = Key::from_seed(6);
    for [m, k, n] in [[1, 1, 1], [9, 20, 30], [40, 140, 50]] {
        let a = narrow(&numbers(key.split(0), m * k));
        let b = narrow(&numbers(key.split(1), k * n));
        let chain = |i: usize, j: usize| (0..k).fold(0.0, |c, l| libm::fmaf(a[i * k + l], b[l * n + j], c));
        for set in sets() {
            let mut c = vec![0.0; m * n];
            floats::add_product(set, &mut c, MatrixView::by_rows(&a, m, k), MatrixView::by_rows(&b, k, n));
            for (at, &c) in c.iter().enumerate() {
                let expected = chain(at / n, at % n);
                assert!(c.to_bits() == expected.to_bits() || c.is_nan() && expected.is_nan(), "{set:?}");
            }
        }
    }
}

#[test]
fn what_is_not_finite_is_found_wherever_it_is() {
    for count in [1, 5, 512, 513, 1500] {
        let mut x = vec![f64::MAX; count];
        assert!(all_finite(&x));
        for at in [0, count / 2, count - 1] {
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let before = core::mem::replace(&mut x[at], bad);
                assert!(!all_finite(&x), "{bad} at {at} of {count}");
                x[at] = before;
            }
        }
    }
}
