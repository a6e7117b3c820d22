//! Sums, dot products and products of matrices of arrays, derivative numbers and dense linear algebra have
//! the bits that `palinode_num::sums` defines (whose own tests hold the definition).

use palinode_core::matrix::{self, Lu, Matrix};
use palinode_core::products::{MatrixView, add_product, times_vector};
use palinode_core::{Accumulator, Array, Dual, DualN, Jet, Key, Passive, Scalar, Tape, Var, value_and_grad};

fn bits(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

fn all_bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|&x| bits(x)).collect()
}

/// Numbers of many sizes; zeros of both signs among them and, if they are `wild`, infinities and NaN.
fn numbers(key: Key, count: usize, wild: bool) -> Vec<f64> {
    let number = |i: u64| match key.split(1).below(12, i) {
        0 => [0.0, -0.0][key.below(2, i) as usize],
        1 if wild => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN][key.below(3, i) as usize],
        _ => key.gaussian(i) * 2f64.powi(key.split(2).below(20, i) as i32),
    };
    (0..count as u64).map(number).collect()
}

/// The sum, the dot product, a chain and their strong kinds, of numbers with these primals.
fn reductions<S: Scalar>(a: &[S], b: &[S], start: S) -> [S; 6] {
    let pair = |i: usize| (a[i], b[i]);
    [
        S::sum_of(a),
        S::dot(a, b),
        S::chain_over(start, a.len(), pair),
        S::strong_dot_with(a, b, Accumulator::Naive),
        S::strong_chain_over(start, a.len(), pair),
        S::affine(start, &[0.1, -3.0, 0.7], &[a[0], b[0], a[a.len() - 1]]),
    ]
}

#[test]
fn primals_have_the_bits_of_plain_numbers() {
    type Nested = Dual<Dual<f64>>;
    for count in [1, 2, 3, 7, 16, 17, 50, 1024, 1025, 2600] {
        for round in 0..6 {
            let key = Key::from_seed(count as u64).split(round);
            let wild = round % 2 == 1;
            let (a, b) = (numbers(key.split(3), count, wild), numbers(key.split(4), count, wild));
            let tangents = numbers(key.split(5), count, false);
            let expected = reductions(&a, &b, -0.3).map(bits);
            fn check<S: Scalar>(
                [a, b, tangents]: [&[f64]; 3],
                expected: [u64; 6],
                make: impl Fn(f64, f64) -> S,
                primal: impl Fn(S) -> f64,
            ) {
                let numbers =
                    |x: &[f64]| x.iter().zip(tangents).map(|(&x, &t)| make(x, t)).collect::<Vec<S>>();
                let found = reductions(&numbers(a), &numbers(b), make(-0.3, 1.0));
                assert_eq!(found.map(|x| bits(primal(x))), expected, "{} numbers", a.len());
            }
            let data = [&a[..], &b, &tangents];
            check(data, expected, Dual::new, |x: Dual<f64>| x.value);
            check(data, expected, |x, t| DualN::new(x, [t, 0.0]), |x: DualN<f64, 2>| x.value);
            check(data, expected, |x, t| Jet::new(x, [t, -t]), |x: Jet<f64, 2>| x.primal());
            check(data, expected, |x, _| Passive::new(x), |x: Passive<f64>| x.primal());
            let nested = |x, t| Dual::new(Dual::new(x, t), Dual::new(0.0, t));
            check(data, expected, nested, |x: Nested| x.value.value);
            let inputs: Vec<f64> = a.iter().chain(&b).copied().chain([-0.3]).collect();
            let mut tape = Tape::new();
            let record = tape
                .record(&inputs, |x| reductions(&x[..count], &x[count..2 * count], x[2 * count]).to_vec());
            assert_eq!(all_bits(record.unwrap().values()), expected, "a tape, {count} numbers");
        }
    }
}

/// The tangents of chains against those of a loop, and one node each on a tape.
#[test]
fn chains_have_the_derivatives_of_loops() {
    let key = Key::from_seed(30);
    let values = |key: Key| (0..40).map(|i| key.gaussian(i)).collect::<Vec<f64>>();
    let (a, b, da, db) =
        (values(key.split(0)), values(key.split(1)), values(key.split(2)), values(key.split(3)));
    let pair = |i: usize| (Dual::new(a[i], da[i]), Dual::new(b[i], db[i]));
    let found = Dual::chain_over(Dual::new(0.5, 2.0), 40, pair).tangent;
    let expected = 2.0 + (0..40).map(|i| da[i] * b[i] + a[i] * db[i]).sum::<f64>();
    assert!((found - expected).abs() < 1e-13 * 40.0, "{found} {expected}");
    let (_, gradient) =
        value_and_grad(|x| Var::chain_over(x[80], 40, |i| (x[i], x[40 + i])), &[&a[..], &b, &[0.5]].concat())
            .unwrap();
    assert_eq!(gradient, [&b[..], &a, &[1.0]].concat());
}

#[test]
fn arrays_follow_the_definition() {
    for (round, shape) in [[3, 4, 5], [1, 1100, 3], [2100, 2, 1], [2, 17, 33], [1, 1, 1]].iter().enumerate() {
        for wild in [false, true] {
            let [outer, length, inner] = *shape;
            let count = outer * length * inner;
            let data = numbers(Key::from_seed(round as u64 + 40), count, wild);
            let array = Array::<f64>::from_values(data.clone()).reshaped(shape);
            assert_eq!(bits(array.sum().value()), bits(f64::sum_of(&data)));
            assert_eq!(bits(array.dot(&array).value()), bits(f64::dot(&data, &data)));
            for axis in 0..3 {
                let before: usize = shape[..axis].iter().product();
                let behind: usize = shape[axis + 1..].iter().product();
                let line = |o: usize, i: usize| -> Vec<f64> {
                    (0..shape[axis]).map(|k| data[(o * shape[axis] + k) * behind + i]).collect()
                };
                let places = (0..before).flat_map(|o| (0..behind).map(move |i| (o, i)));
                let expected: Vec<f64> = places.map(|(o, i)| f64::sum_of(&line(o, i))).collect();
                assert_eq!(all_bits(&array.sum_axis(axis).values()), all_bits(&expected), "axis {axis}");
            }
        }
    }
}

/// `a b` from the definition, for an `m` by `k` and a `k` by `n` matrix.
fn chains([m, k, n]: [usize; 3], a: MatrixView<f64>, b: MatrixView<f64>, strong: bool) -> Vec<f64> {
    assert_eq!((a.rows(), a.columns(), b.columns()), (m, k, n));
    let mut c = vec![0.0; m * n];
    add_product(&mut c, a, b, strong);
    c
}

fn dots(a: MatrixView<f64>, x: &[f64], strong: bool) -> Vec<f64> {
    let mut y = vec![0.0; a.rows()];
    times_vector(&mut y, a, x, strong);
    y
}

/// Values and cotangents of products: those of products with vectors are dot products, too, and products of
/// two numbers.
#[test]
fn products_of_arrays_and_their_cotangents_follow_the_definition() {
    for (round, [m, k, n]) in
        [[3, 4, 5], [1, 1, 1], [2, 300, 7], [20, 17, 1], [40, 33, 26], [1, 9, 12]].into_iter().enumerate()
    {
        for wild in [false, true] {
            let key = Key::from_seed(round as u64 + 60);
            let [a, b, c] = [(0, m * k), (1, k * n), (2, m * n)]
                .map(|(seed, count)| numbers(key.split(seed), count, wild && seed < 2));
            let (of_a, of_b, of_c) =
                (MatrixView::by_rows(&a, m, k), MatrixView::by_rows(&b, k, n), MatrixView::by_rows(&c, m, n));
            let sweep = |shapes: [&[usize]; 2], [a, b, c]: [&[f64]; 3]| {
                let mut tape = Tape::new();
                let inputs = [a, b].concat();
                let mut record = tape
                    .record(&inputs, |x| {
                        let (a, b) = x.split_at(a.len());
                        let (a, b) = (
                            Array::from_vars(a).reshaped(shapes[0]),
                            Array::from_vars(b).reshaped(shapes[1]),
                        );
                        a.matmul(&b).to_vars()
                    })
                    .unwrap();
                let values = all_bits(record.values());
                let cotangents = record.reverse(c).unwrap().to_vec();
                (values, all_bits(&cotangents[..a.len()]), all_bits(&cotangents[a.len()..]))
            };
            // A zero of a cotangent that is received, or sent to a number, has no sign.
            let unsigned = |x: Vec<f64>| {
                all_bits(&x.into_iter().map(|x| if x == 0.0 { 0.0 } else { x }).collect::<Vec<_>>())
            };
            let positive =
                |x: Vec<u64>| x.into_iter().map(|x| if x == bits(-0.0) { 0 } else { x }).collect::<Vec<_>>();
            let (values, a_cotangent, b_cotangent) = sweep([&[m, k], &[k, n]], [&a, &b, &c]);
            assert_eq!(values, all_bits(&chains([m, k, n], of_a, of_b, false)), "{m} {k} {n}");
            let expected = chains([m, n, k], of_c, of_b.transposed(), true);
            assert_eq!(positive(a_cotangent), unsigned(expected), "{m} {k} {n}, wild: {wild}");
            let expected = chains([k, m, n], of_a.transposed(), of_c, true);
            assert_eq!(positive(b_cotangent), unsigned(expected), "{m} {k} {n}, wild: {wild}");
            // A matrix and a vector, a vector and a matrix.
            let (x, y) = (&numbers(key.split(3), k, false)[..], &c[..m]);
            let (values, a_cotangent, x_cotangent) = sweep([&[m, k], &[k]], [&a, x, y]);
            assert_eq!(values, all_bits(&dots(of_a, x, false)));
            assert_eq!(positive(x_cotangent), unsigned(dots(of_a.transposed(), y, true)));
            let outer = |y: &[f64], x: &[f64]| -> Vec<f64> {
                y.iter().flat_map(|&y| x.iter().map(move |&x| y.strong_mul(x))).collect()
            };
            assert_eq!(positive(a_cotangent), unsigned(outer(y, x)));
            let (values, y_cotangent, a_cotangent) = sweep([&[m], &[m, k]], [y, &a, x]);
            assert_eq!(values, all_bits(&dots(of_a.transposed(), y, false)));
            assert_eq!(positive(y_cotangent), unsigned(dots(of_a, x, true)));
            assert_eq!(positive(a_cotangent), unsigned(outer(y, x)));
        }
    }
}

/// The same algorithm on `f64`, by vector instructions, and on a number that has none.
#[test]
fn dense_linear_algebra_has_one_order_on_all_numbers() {
    for (round, n) in [1, 2, 3, 4, 5, 8, 13, 30].into_iter().enumerate() {
        let key = Key::from_seed(round as u64 + 90);
        let data: Vec<f64> = (0..n * n).map(|i| key.gaussian(i as u64)).collect();
        let plain = Matrix { rows: n, columns: n, data };
        let lifted = |m: &Matrix<f64>| Matrix {
            rows: m.rows,
            columns: m.columns,
            data: m.data.iter().map(|&x| Passive::new(x)).collect::<Vec<_>>(),
        };
        let same = |x: &[f64], y: &[Passive<f64>], what: &str| {
            let y: Vec<f64> = y.iter().map(|y| y.primal()).collect();
            assert_eq!(all_bits(x), all_bits(&y), "{what} of {n}");
        };
        let other = lifted(&plain);
        let (lu, other_lu) = (Lu::new(plain.clone()).unwrap(), Lu::new(other.clone()).unwrap());
        same(&lu.factors.data, &other_lu.factors.data, "factors");
        for transposed in [false, true] {
            let (mut x, mut y) = (plain.data.clone(), other.data.clone());
            lu.solve(transposed, &mut x);
            other_lu.solve(transposed, &mut y);
            same(&x, &y, "a solution");
        }
        let product = matrix::product(plain.view().transposed(), plain.view());
        same(&product.data, &matrix::product(other.view().transposed(), other.view()).data, "a product");
        let factor = matrix::cholesky(product.clone()).unwrap();
        same(&factor.data, &matrix::cholesky(lifted(&product)).unwrap().data, "Cholesky's factor");
        let ((q, r), (other_q, other_r)) = (matrix::qr(&plain), matrix::qr(&other));
        same(&q.data, &other_q.data, "Q");
        same(&r.data, &other_r.data, "R");
    }
}

#[cfg(feature = "nalgebra")]
#[test]
fn products_of_nalgebras_matrices_follow_the_definition() {
    use nalgebra::DMatrix;
    use palinode_core::linalg;

    for (round, [m, k, n]) in [[3, 4, 5], [1, 7, 1], [30, 129, 26]].into_iter().enumerate() {
        let key = Key::from_seed(round as u64 + 120);
        let (a, b) = (numbers(key.split(0), m * k, false), numbers(key.split(1), k * n, false));
        let expected =
            chains([m, k, n], MatrixView::by_columns(&a, m, k), MatrixView::by_columns(&b, k, n), false);
        let (a, b) = (DMatrix::from_column_slice(m, k, &a), DMatrix::from_column_slice(k, n, &b));
        let plain = linalg::matmul(&a, &b).unwrap();
        assert_eq!(all_bits(plain.transpose().as_slice()), all_bits(&expected));
        let dual = |m: &DMatrix<f64>| m.map(|x| Dual::new(x, 1.0));
        let lifted = linalg::matmul(&dual(&a), &dual(&b)).unwrap().map(|x| x.value);
        assert_eq!(all_bits(lifted.as_slice()), all_bits(plain.as_slice()));
    }
}
