//! Sums, dot products and products of matrices by naive, compensated and exact accumulation, on every number
//! and on the tape.

use palinode_core::{
    Accumulator, Array, DoubleDouble, Dual, DualN, Jet, Key, Passive, Posit16, Posit32, Scalar, Tape, Var,
    custom, custom_rule, decision::watch, grad, value_and_grad,
};
use std::collections::BTreeSet;

const ALL: [Accumulator; 3] = [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact];

/// Numbers of very different sizes that mostly cancel.
fn hard(seed: u64, n: usize) -> Vec<f64> {
    let key = Key::from_seed(seed);
    let size = |i: usize| key.split(1).below(60, i as u64) as i32 - 30;
    let mut numbers: Vec<f64> = (0..n).map(|i| key.gaussian(i as u64) * 2f64.powi(size(i))).collect();
    let back: Vec<f64> = numbers.iter().map(|x| -x * (1.0 + f64::EPSILON)).collect();
    numbers.extend(back);
    numbers
}

/// A permutation, from a stride that is coprime to the length.
fn shuffled<T: Copy>(items: &[T], stride: usize) -> Vec<T> {
    (0..items.len()).map(|i| items[i * stride % items.len()]).collect()
}

fn exact(a: &[f64], b: &[f64]) -> f64 {
    Accumulator::Exact.dot(a, b)
}

#[test]
fn naive_sums_are_the_ones_without_a_choice() {
    fn of<S: Scalar>(lift: impl Fn(f64, f64) -> S, bits: impl Fn(S) -> [u64; 2]) {
        let (x, y) = (hard(1, 40), hard(2, 40));
        let a: Vec<S> = x.iter().zip(&y).map(|(&x, &y)| lift(x, y)).collect();
        let b: Vec<S> = y.iter().zip(&x).map(|(&x, &y)| lift(x, y)).collect();
        assert_eq!(bits(S::sum_with(&a, Accumulator::Naive)), bits(S::sum_of(&a)));
        assert_eq!(bits(S::dot_with(&a, &b, Accumulator::Naive)), bits(S::dot(&a, &b)));
    }
    of(|x, _| x, |x: f64| [x.to_bits(), 0]);
    of(|x, _| x as f32, |x: f32| [x.to_bits().into(), 0]);
    of(|x, _| Posit32::from_f64(x), |x| [x.to_f64().to_bits(), 0]);
    of(DoubleDouble::from_sum, |x| [x.hi().to_bits(), x.lo().to_bits()]);
    of(Dual::new, |x: Dual<f64>| [x.value.to_bits(), x.tangent.to_bits()]);
    of(|x, y| DualN::new(x, [y]), |x: DualN<f64, 1>| [x.value.to_bits(), x.tangents[0].to_bits()]);
    of(|x, y| Jet::new(x, [y]), |x: Jet<f64, 1>| [x.primal().to_bits(), x.coefficient(1).to_bits()]);
    of(|x, _| Passive::new(x), |x| [x.primal().to_bits(), 0]);
}

/// Values and tangents are each what an exact sum of plain numbers is.
#[test]
fn every_part_of_a_number_is_rounded_once() {
    let [a, mut b, da, db] = [1, 2, 3, 4].map(|seed| hard(seed, 100));
    // So that products cancel, too.
    b.iter_mut().for_each(|x| *x = x.abs());
    let value = exact(&a, &b);
    let tangent = exact(&[da.clone(), a.clone()].concat(), &[b.clone(), db.clone()].concat());
    let naive_value = f64::dot(&a, &b);
    assert_ne!(naive_value, value, "the numbers are not hard enough");

    fn numbers<N>(x: &[f64], dx: &[f64], make: impl Fn(f64, f64) -> N) -> Vec<N> {
        x.iter().zip(dx).map(|(&x, &dx)| make(x, dx)).collect()
    }
    /// The exact dot product of numbers made from both.
    fn dot<N: Scalar>(a: [&[f64]; 2], b: [&[f64]; 2], make: impl Fn(f64, f64) -> N) -> N {
        N::dot_with(&numbers(a[0], a[1], &make), &numbers(b[0], b[1], &make), Accumulator::Exact)
    }
    let (with_a, with_b) = ([&a[..], &da], [&b[..], &db]);

    let found = dot(with_a, with_b, Dual::new);
    assert_eq!((found.value, found.tangent), (value, tangent));
    let sum = Dual::sum_with(&numbers(&a, &da, Dual::new), Accumulator::Exact);
    assert_eq!((sum.value, sum.tangent), (Accumulator::Exact.sum(&a), Accumulator::Exact.sum(&da)));
    let found = dot(with_a, with_b, |x, dx| DualN::new(x, [0.0, dx]));
    assert_eq!((found.value, found.tangents.0), (value, [0.0, tangent]));
    // Second order: 2 a'b' beside what multiplies second coefficients, which are zero here.
    let found = dot(with_a, with_b, |x, dx| Jet::new(x, [dx, 0.0]));
    assert_eq!([0, 1, 2].map(|k| found.coefficient(k)), [value, tangent, exact(&da, &db)]);
    assert_eq!(dot(with_a, with_b, |x, _| Passive::new(x)).primal(), value);
    // Nested: the innermost number decides.
    let found = dot(with_a, with_a, |x, dx| Dual::new(Dual::new(x, dx), Dual::new(x, dx)));
    let twice = [a.clone(), a.clone()].concat();
    assert_eq!(found.tangent.value, exact(&twice, &twice));
}

#[test]
fn double_doubles_are_rounded_to_both_parts() {
    let parts = [hard(5, 50), hard(6, 50)].concat();
    let terms: Vec<DoubleDouble> = parts.iter().map(|&x| DoubleDouble::from_sum(x, x * 1e-20)).collect();
    let mut all = palinode_core::ExactSum::new();
    terms.iter().for_each(|x| all.add_slice(&[x.hi(), x.lo()]));
    // The nearest number to the sum, and the nearest to what that leaves.
    let hi = all.to_f64();
    all.add(-hi);
    let found = DoubleDouble::sum_with(&terms, Accumulator::Exact);
    assert_eq!((found.hi(), found.lo()), (hi, all.to_f64()));
    assert_ne!(found.lo(), 0.0, "the numbers are not hard enough");
    let infinite = [DoubleDouble::from(f64::INFINITY), DoubleDouble::from(1.0)];
    assert_eq!(DoubleDouble::sum_with(&infinite, Accumulator::Exact).hi(), f64::INFINITY);
    assert_eq!(
        DoubleDouble::dot_with(&infinite, &[DoubleDouble::from(2.0); 2], Accumulator::Exact).hi(),
        f64::INFINITY
    );
    let (a, b) = (terms[..30].to_vec(), terms[30..60].to_vec());
    let found = DoubleDouble::dot_with(&a, &b, Accumulator::Exact);
    let backwards = |x: &[DoubleDouble]| x.iter().rev().copied().collect::<Vec<_>>();
    let other = DoubleDouble::dot_with(&backwards(&a), &backwards(&b), Accumulator::Exact);
    assert_eq!((found.hi(), found.lo()), (other.hi(), other.lo()));
}

#[test]
fn posits_on_the_tape_are_added_up_by_quires() {
    let p = |x: f64| Posit16::from_f64(x);
    let terms = [0.3, 1e4, -1e4, 0.3].map(p);
    let f = |how| {
        value_and_grad(
            |x| Array::from_vars(x).dot_with(&Array::from_values(terms.map(|_| p(1.0))), how),
            &terms,
        )
    };
    assert_eq!(f(Accumulator::Exact).unwrap(), (p(0.3) + p(0.3), vec![p(1.0); 4]));
    assert_ne!(f(Accumulator::Naive).unwrap().0, p(0.3) + p(0.3));
}

/// How many different numbers, bit by bit, come of 120 samples of very different sizes in six orders.
fn patterns(of_samples: impl Fn(&[[f64; 4]]) -> Vec<f64>) -> usize {
    let sized = |i: u64| Key::from_seed(9).gaussians(i).map(|x| x * 2f64.powi((i % 13) as i32 * 4 - 24));
    let samples: Vec<[f64; 4]> = (0..120).map(sized).collect();
    let bits = |stride| -> Vec<u64> {
        of_samples(&shuffled(&samples, stride)).iter().map(|x| x.to_bits()).collect()
    };
    [1, 7, 11, 13, 17, 19].map(bits).into_iter().collect::<BTreeSet<_>>().len()
}

/// Samples as the rows of a matrix: the loss and the gradient of weights must not depend on their order.
fn patterns_in_a_matrix(how: Accumulator) -> usize {
    patterns(|rows| {
        let inputs: Vec<f64> = rows.iter().flat_map(|row| row[..3].to_vec()).collect();
        let inputs = Array::from_values(inputs).reshaped(&[rows.len(), 3]);
        let targets = Array::from_values(rows.iter().map(|row| row[3]).collect::<Vec<_>>());
        let loss = |w: &[Var<f64>]| {
            let misses = inputs.matmul_with(&Array::from_vars(w), how) - &targets;
            misses.dot_with(&misses, how) + misses.sum_with(how) * 0.1
        };
        let (loss, gradient) = value_and_grad(loss, &[0.3, -0.2, 0.7]).unwrap();
        [gradient, vec![loss]].concat()
    })
}

#[test]
fn the_order_of_samples_in_a_matrix_does_not_matter_if_products_are_exact() {
    assert_eq!(patterns_in_a_matrix(Accumulator::Exact), 1);
    assert!(patterns_in_a_matrix(Accumulator::Naive) > 1, "the check could not fail");
}

#[test]
fn arrays_and_numbers_agree_in_every_way_of_adding_up() {
    let numbers = hard(11, 12);
    for how in ALL {
        let (by_array, gradient) = value_and_grad(
            |x| {
                Array::from_vars(x)
                    .reshaped(&[4, 6])
                    .sum_axis_with(1, how)
                    .dot_with(&Array::from_values([1.0, 2.0, 3.0, 4.0]), how)
            },
            &numbers,
        )
        .unwrap();
        let sums: Vec<f64> = numbers.chunks(6).map(|line| f64::sum_with(line, how)).collect();
        assert_eq!(by_array.to_bits(), f64::dot_with(&sums, &[1.0, 2.0, 3.0, 4.0], how).to_bits(), "{how:?}");
        assert_eq!(gradient, (0..24).map(|i| f64::from(i / 6 + 1)).collect::<Vec<_>>());
        // The other axis, and numbers of the tape without an array.
        let by_axis = Array::from_values(numbers.clone()).reshaped(&[4, 6]).sum_axis_with(0, how).values();
        let column = |j: usize| -> Vec<f64> { numbers.iter().skip(j).step_by(6).copied().collect() };
        assert_eq!(by_axis, (0..6).map(|j| f64::sum_with(&column(j), how)).collect::<Vec<_>>());
        let means = Array::from_values(numbers.clone()).reshaped(&[4, 6]).mean_axis_with(1, how).values();
        assert_eq!(means, sums.iter().map(|sum| sum / 6.0).collect::<Vec<_>>(), "{how:?}");
        let mean = grad(|x| Array::from_vars(x).mean_with(how), &numbers).unwrap();
        assert_eq!(mean, vec![1.0 / 24.0; 24]);
        let (by_vars, gradient) = value_and_grad(|x| Var::dot_with(x, x, how), &numbers).unwrap();
        assert_eq!(by_vars.to_bits(), f64::dot_with(&numbers, &numbers, how).to_bits());
        assert!(gradient.iter().zip(&numbers).all(|(g, x)| *g == 2.0 * x), "{how:?}");
        let (by_vars, gradient) = value_and_grad(|x| Var::sum_with(x, how), &numbers).unwrap();
        assert_eq!((by_vars, gradient), (f64::sum_with(&numbers, how), vec![1.0; 24]));
    }
}

/// Forward and reverse sweeps over an exact product, with tangents and cotangents that cancel, give the exact
/// sums.
#[test]
fn sweeps_over_exact_products_are_exact() {
    let (m, k, n) = (2, 12, 3);
    let [a, da] = [21, 22].map(|seed| hard(seed, m * k / 2));
    let [b, db] = [23, 24].map(|seed| hard(seed, k * n / 2));
    let mut tape = Tape::new();
    let point = [a.clone(), b.clone()].concat();
    let mut record = tape
        .record(&point, |x| {
            let left = Array::from_vars(&x[..m * k]).reshaped(&[m, k]);
            let right = Array::from_vars(&x[m * k..]).reshaped(&[k, n]);
            left.matmul_with(&right, Accumulator::Exact).to_vars()
        })
        .unwrap();
    let row = |x: &[f64], i: usize| x[i * k..(i + 1) * k].to_vec();
    let column = |x: &[f64], j: usize| -> Vec<f64> { x.iter().skip(j).step_by(n).copied().collect() };
    let tangents = record.forward(&[da.clone(), db.clone()].concat()).unwrap();
    for i in 0..m {
        for j in 0..n {
            assert_eq!(record.values()[i * n + j], exact(&row(&a, i), &column(&b, j)));
            let tangent =
                exact(&[row(&da, i), row(&a, i)].concat(), &[column(&b, j), column(&db, j)].concat());
            assert_eq!(tangents[i * n + j], tangent, "{i} {j}");
        }
    }
    let c = [1e20, 1.0, -1e20, 3.0, 1e-5, 7.0];
    let gradient = record.reverse(&c).unwrap().to_vec();
    for i in 0..m {
        for l in 0..k {
            assert_eq!(gradient[i * k + l], exact(&c[i * n..(i + 1) * n], &b[l * n..(l + 1) * n]));
        }
    }
    for l in 0..k {
        for j in 0..n {
            let entry = exact(&[a[l], a[k + l]], &[c[j], c[n + j]]);
            assert_eq!(gradient[m * k + l * n + j], entry);
        }
    }
}

/// A cotangent of zero wins over an infinite factor in exact products, too.
#[test]
fn zeros_win_in_sweeps_of_every_kind() {
    for how in ALL {
        let infinite = Array::from_values([f64::INFINITY, 2.0, 1.0, f64::NAN]).reshaped(&[2, 2]);
        let mut tape = Tape::new();
        let mut record = tape
            .record(&[1.0, 1.0], |x| {
                let y = infinite.matmul_with(&Array::from_vars(x), how);
                [y.get(0), y.get(1)]
            })
            .unwrap();
        assert_eq!(record.reverse(&[0.0, 0.0]).unwrap(), [0.0, 0.0], "{how:?}");
        let gradient = record.reverse(&[0.0, 3.0]).unwrap().to_vec();
        assert_eq!(gradient[0], 3.0, "{how:?}");
        assert!(gradient[1].is_nan(), "{how:?}");
    }
}

/// Infinite values and tangents that are left when zeros have won count as the accumulator says, in
/// derivative numbers, too.
#[test]
fn infinities_in_strong_products_are_accumulated_as_asked_for() {
    let (a, b) = ([f64::INFINITY, 1e200, 1e200, 0.0], [1.0, 1e200, -1e200, f64::NAN]);
    let dual = |x: &[f64]| -> Vec<Dual<f64>> { x.iter().map(|&x| Dual::new(x, 0.0)).collect() };
    assert_eq!(Dual::strong_dot_with(&dual(&a), &dual(&b), Accumulator::Exact).value, f64::INFINITY);
    assert!(Dual::strong_dot_with(&dual(&a), &dual(&b), Accumulator::Naive).value.is_nan());
    // A zero that moves wins over the value beside it; its tangent times that value counts. The rest is still
    // one sum.
    let (moving, infinite) = (Dual::new(0.0, 1.0), Dual::new(f64::INFINITY, 0.0));
    let found = Dual::strong_dot_with(
        &[dual(&[1e200, 1.0]), vec![moving], dual(&[-1e200])].concat(),
        &[dual(&[1e200, 3.0]), vec![infinite], dual(&[1e200])].concat(),
        Accumulator::Exact,
    );
    assert_eq!((found.value, found.tangent), (3.0, f64::INFINITY));
    // The cotangent of a factor of a product of matrices.
    let sweep = |how| {
        let rows = Array::from_values(b[..3].to_vec()).reshaped(&[3, 1]);
        let mut tape = Tape::new();
        let mut record =
            tape.record(&[1.0], |x| rows.matmul_with(&Array::from_vars(x), how).to_vars()).unwrap();
        // Not as a sweep that is asked for, which refuses infinite cotangents: as one that goes on with what
        // another has given.
        let mut found = [0.0];
        record.go_on_onto(&a[..3], &mut found).unwrap();
        found[0]
    };
    assert_eq!(sweep(Accumulator::Exact), f64::INFINITY);
    assert!(sweep(Accumulator::Naive).is_nan());
}

/// The dot product of one pair is their strong product, in every part of every number and by every
/// accumulator.
#[test]
fn strong_dot_products_are_made_of_strong_products() {
    fn agree<S: Scalar>(numbers: &[S], parts: impl Fn(S) -> Vec<f64>) {
        for (&x, &y) in numbers.iter().flat_map(|x| numbers.iter().map(move |y| (x, y))) {
            let expected = parts(x.strong_mul(y));
            for how in ALL {
                let found = parts(S::strong_dot_with(&[x], &[y], how));
                let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
                assert!(
                    found.iter().zip(&expected).all(same),
                    "{how:?}: {:?} and {:?} give {found:?}, not {expected:?}",
                    parts(x),
                    parts(y)
                );
            }
        }
    }
    let plain = [0.0, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let duals: Vec<Dual<f64>> =
        plain.iter().flat_map(|&x| plain.iter().map(move |&dx| Dual::new(x, dx))).collect();
    agree(&plain, |x| vec![x]);
    agree(&duals, |x| vec![x.value, x.tangent]);
    let lanes: Vec<DualN<f64, 2>> = duals.iter().map(|x| DualN::new(x.value, [0.0, x.tangent])).collect();
    agree(&lanes, |x| vec![x.value, x.tangents[0], x.tangents[1]]);
    let jets: Vec<Jet<f64, 2>> = duals.iter().map(|x| Jet::new(x.value, [x.tangent, 1.0])).collect();
    agree(&jets, |x| (0..=2).map(|k| x.coefficient(k)).collect());
    let nested: Vec<Dual<Dual<f64>>> = duals
        .iter()
        .flat_map(|&x| [duals[0], duals[1], duals[7], duals[21]].map(|dx| Dual::new(x, dx)))
        .collect();
    agree(&nested, |x| vec![x.value.value, x.value.tangent, x.tangent.value, x.tangent.tangent]);
    // Nothing is decided by it.
    let (_, seen) = watch(|| ALL.map(|how| Dual::strong_dot_with(&nested, &nested, how).value.value));
    assert_eq!((seen.looks, seen.comparisons), (0, 0));
}

/// Samples on one tape: parameters as numbers, or as an array that is read, multiplied, written to and
/// summed.
fn patterns_of_sweeps(how: Accumulator, arrays: bool) -> usize {
    patterns(|samples| {
        let loss = |w: &[Var<f64>]| {
            let weights = Array::from_vars(w);
            let of_sample = |x: &[f64; 4]| {
                if !arrays {
                    return ((w[0] * x[0] + w[1] * x[1] + w[2] * x[2] - x[3]) * 1e-8).tanh();
                }
                let mut terms = &weights * &Array::from_values([x[0], x[1], x[2]]);
                terms.set(0, terms.get(0) + weights.get(1).sin() * x[3]);
                (terms.sum() * 1e-8).tanh()
            };
            Var::sum_of(&samples.iter().map(of_sample).collect::<Vec<_>>())
        };
        Tape::new().accumulate(how).value_and_grad(loss, &[0.3, -0.2, 0.7]).unwrap().1
    })
}

#[test]
fn exact_sweeps_do_not_depend_on_the_order_in_which_numbers_were_used() {
    for arrays in [false, true] {
        assert_eq!(patterns_of_sweeps(Accumulator::Exact, arrays), 1, "arrays: {arrays}");
        assert!(patterns_of_sweeps(Accumulator::Naive, arrays) > 1, "the check could not fail");
    }
}

#[test]
fn sweeps_add_up_custom_operations_products_and_posits() {
    let f = |x: &[Var<f64>]| {
        let twice = custom_rule("twice", |outputs: &[f64], inputs| inputs[0] += 2.0 * outputs[0]);
        let doubled = custom(&[x[0]], &[2.0 * x[0].value()], twice)[0];
        let row = Array::from_vars(&[x[0], x[0], doubled]).reshaped(&[1, 3]);
        let product = row.matmul(&Array::from_values([1.0, 1e60, 5e59]).reshaped(&[3, 1]));
        product.get([0, 0]) - x[0] * 1e60 - doubled * 5e59
    };
    let mut tape = Tape::new().accumulate(Accumulator::Exact);
    let mut record = tape.record(&[3.0], f).unwrap();
    // 1 + 1e60 + 2 * 5e59 - 1e60 - 2 * 5e59.
    assert_eq!(record.reverse(&[1.0]).unwrap(), [1.0]);
    assert_eq!(record.reverse(&[0.0]).unwrap(), [0.0]);
    assert!(record.reverse(&[1.0, 2.0]).is_err());
    assert_ne!(Tape::new().record(&[3.0], f).unwrap().reverse(&[1.0]).unwrap(), [1.0]);

    let p = Posit16::from_f64;
    let f = |x: &[Var<Posit16>]| {
        let w = Array::from_vars(x);
        w.get(0) * 1e4 + w.get(0) * 0.25 - w.get(0) * 1e4
    };
    assert_ne!(Tape::new().record(&[p(1.0)], f).unwrap().reverse(&[p(1.0)]).unwrap(), [p(0.25)]);
    let mut tape = Tape::new().accumulate(Accumulator::Exact);
    assert_eq!(tape.record(&[p(1.0)], f).unwrap().reverse(&[p(1.0)]).unwrap(), [p(0.25)]);
}

/// Every sweep of a tape adds up as the tape does: gradients, Jacobians, and sweeps that go on where others
/// stopped.
#[test]
fn all_sweeps_of_a_tape_add_up_as_it_was_asked_to() {
    // x[0] is broadcast over two arrays whose cotangents cancel but for 3 and 5.
    let f = |x: &[Var<f64>]| {
        let spread = Array::from_vars(&x[..1]).broadcast(&[3]);
        let weighted = |w: [f64; 3]| spread.dot(&Array::from_values(w)) * x[1];
        [weighted([1e100, 3.0, -1e100]), weighted([-1e90, 5.0, 1e90])]
    };
    let point = [2.0, 1.0];
    let sums = |how| {
        let mut tape = Tape::new().accumulate(how);
        let gradient = tape.value_and_grad(|x| f(x)[0], &point).unwrap().1;
        let mut record = tape.record(&point, f).unwrap();
        let both = record.reverse(&[1.0, 1.0]).unwrap().to_vec();
        let jacobian = record.jacobian().unwrap();
        let lanes = record.reverse_many(&[[1.0, 0.0], [0.0, 1.0]]).unwrap();
        assert_eq!(lanes[0], [jacobian[0][0], jacobian[1][0]]);
        let mut onto = [4.0, 0.0];
        record.reverse_onto(&[1.0, 0.0], &mut onto).unwrap();
        (gradient[0], both[0], [jacobian[0][0], jacobian[1][0]], onto[0])
    };
    // More outputs than inputs, where the ordinary Jacobian would sweep forward.
    let tall = |how| {
        let columns = [[1e100, 3.0, -1e100], [-1e90, 5.0, 1e90], [1e80, -1e80, 7.0]];
        let mut tape = Tape::new().accumulate(how);
        let record = tape
            .record(&[2.0], |x| {
                let spread = Array::from_vars(x).broadcast(&[3]);
                columns.map(|column| spread.dot(&Array::from_values(column)))
            })
            .unwrap();
        let dense = record.jacobian().unwrap();
        assert_eq!(record.sparse_jacobian().unwrap().to_dense(), dense);
        dense.concat()
    };
    assert_eq!(tall(Accumulator::Naive), [0.0, 0.0, 7.0]);
    assert_eq!(tall(Accumulator::Compensated), [3.0, 5.0, 7.0]);
    assert_eq!(tall(Accumulator::Exact), [3.0, 5.0, 7.0]);
    let naive = sums(Accumulator::Naive);
    assert_eq!((naive.0, naive.1, naive.2), (0.0, 0.0, [0.0, 0.0]));
    assert_eq!(sums(Accumulator::Exact), (3.0, 8.0, [3.0, 5.0], 7.0));
    // The choice can be taken back.
    let mut tape = Tape::new().accumulate(Accumulator::Exact).accumulate(Accumulator::Naive);
    assert_eq!(tape.value_and_grad(|x| f(x)[0], &point).unwrap().1[0], 0.0);
}

#[test]
fn a_sweep_that_does_not_fit_is_refused() {
    let chain = |x: &[Var<f64>]| (0..100).fold(x[0], |s, _| s.sin() * x[1] + x[0]);
    let budget_for = |how| Tape::new().accumulate(how).record(&[1.0, 2.0], chain).unwrap().budget();
    for how in ALL {
        let enough = Tape::with_budget(budget_for(how)).accumulate(how).value_and_grad(chain, &[1.0, 2.0]);
        assert!(enough.is_ok(), "{how:?}");
    }
    let mut tape = Tape::with_budget(budget_for(Accumulator::Naive)).accumulate(Accumulator::Exact);
    assert_eq!(tape.value_and_grad(chain, &[1.0, 2.0]).unwrap_err().code(), "PAL0107");
}

/// The size of a recording counts the sums that its sweep may hold, and what ordinary sweeps left behind is
/// given back.
#[test]
fn sizes_count_sums() {
    let f = |x: &[Var<f64>]| {
        let a = Array::from_vars(x);
        (0..10_000).fold(a.get(0), |s, _| s.sin() * x[1] + x[0]) + (&a * &a).sum()
    };
    let point = [1.0, 2.0];
    let sized = |how| {
        let mut tape = Tape::new().accumulate(how);
        let record = tape.record(&point, f).unwrap();
        (record.size(), record.budget().bytes())
    };
    let ((naive, _), (exact, budget)) = (sized(Accumulator::Naive), sized(Accumulator::Exact));
    assert_eq!((naive.nodes, naive.edges), (exact.nodes, exact.edges));
    // A pointer and a sum of 1088 bytes in place of a number, for nodes and for the slots of two arrays.
    assert_eq!(exact.bytes - naive.bytes, (exact.nodes + 4) * (8 + 1088 - 8));
    assert!((exact.bytes..exact.bytes / 100 * 101).contains(&budget), "{budget} bytes for {exact:?}");

    let mut tape = Tape::new();
    tape.value_and_grad(f, &point).unwrap();
    let with_cotangents = tape.heap_bytes();
    tape.set_accumulator(Accumulator::Exact);
    // The sink, nodes and slots.
    assert_eq!(with_cotangents - tape.heap_bytes(), (1 + naive.nodes + 4) * size_of::<f64>());
}

#[test]
#[should_panic(expected = "dot: the slices have 2 and 3 elements")]
fn lengths_must_agree() {
    value_and_grad(|x| Var::dot_with(&x[..2], x, Accumulator::Exact), &[1.0, 2.0, 3.0]).unwrap();
}

#[cfg(feature = "nalgebra")]
mod dense {
    use super::*;
    use nalgebra::DMatrix;
    use palinode_core::linalg::{matmul, matmul_with};

    /// The product of nalgebra's matrices and that of arrays are the same sums.
    #[test]
    fn matrices_are_multiplied_as_asked_for() {
        let (a, b) = (hard(31, 12), hard(32, 12));
        let (left, right) = (DMatrix::from_row_slice(2, 12, &a), DMatrix::from_row_slice(12, 2, &b));
        let found = matmul_with(&left, &right, Accumulator::Exact).unwrap();
        let expected = Accumulator::Exact.matmul(&a, &b, 2, 12, 2);
        assert_eq!(found.transpose().as_slice(), expected);
        assert_eq!(matmul_with(&left, &right, Accumulator::Naive).unwrap(), matmul(&left, &right).unwrap());
        assert_ne!(matmul(&left, &right).unwrap(), found, "the numbers are not hard enough");

        // Gradients by both factors, and tangents, against arrays.
        let point = [a.clone(), b.clone()].concat();
        let weights = [1e10, 1.0, -1e10, 2.0];
        let by_arrays = grad(
            |x| {
                let left = Array::from_vars(&x[..24]).reshaped(&[2, 12]);
                let product =
                    left.matmul_with(&Array::from_vars(&x[24..]).reshaped(&[12, 2]), Accumulator::Exact);
                product.reshaped(&[4]).dot(&Array::from_values(weights))
            },
            &point,
        );
        let by_matrices = grad(
            |x| {
                let left = DMatrix::from_row_slice(2, 12, &x[..24]);
                let right = DMatrix::from_row_slice(12, 2, &x[24..]);
                let product = matmul_with(&left, &right, Accumulator::Exact).unwrap();
                product.transpose().iter().zip(weights).map(|(&c, w)| c * w).sum()
            },
            &point,
        );
        assert_eq!(by_arrays.unwrap(), by_matrices.unwrap());
        let dual = |x: &[f64], dx: &[f64]| -> Vec<Dual<f64>> {
            x.iter().zip(dx).map(|(&x, &dx)| Dual::new(x, dx)).collect()
        };
        let (left, right) =
            (DMatrix::from_row_slice(2, 12, &dual(&a, &b)), DMatrix::from_row_slice(12, 2, &dual(&b, &a)));
        let found = matmul_with(&left, &right, Accumulator::Exact).unwrap();
        let column: Vec<Dual<f64>> = right.column(1).iter().copied().collect();
        let row: Vec<Dual<f64>> = left.row(0).iter().copied().collect();
        let expected = Dual::dot_with(&row, &column, Accumulator::Exact);
        assert_eq!((found[(0, 1)].value, found[(0, 1)].tangent), (expected.value, expected.tangent));
    }
}
