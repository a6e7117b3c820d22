//! Reductions and products in the interpreter have the bits that `palinode_core::sums` defines: the same as
//! arrays on the tape and slices of numbers, on every number, whatever lies together.

use crate::interp::program;
use palinode_core::{Accumulator, Array, Dual, Key, Real, Scalar, Tape};
use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::{Elem, Op, Program, Reduction, Type};

/// Lengths and elements.
type Given<'a> = (&'a [usize], &'a [f64]);

fn bits(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

/// Numbers with zeros of both signs and ties and, if they are `wild`, infinities and NaN.
fn numbers(key: Key, count: usize, wild: bool) -> Vec<f64> {
    let number = |i: u64| match key.split(1).below(10, i) {
        0 => [0.0, -0.0, 1.5][key.below(3, i) as usize],
        1 if wild => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN][key.below(3, i) as usize],
        _ => key.gaussian(i),
    };
    (0..count as u64).map(number).collect()
}

fn datum<R: Real>(shape: &[usize], data: &[f64], make: &impl Fn(f64) -> R) -> Datum<R> {
    Datum::Real(Tensor { shape: shape.to_vec(), data: data.iter().map(|&x| make(x)).collect() })
}

/// The primals of the result of a program.
fn results<R: Real>(program: &Program, inputs: &[Datum<R>], how: Accumulator) -> Vec<u64> {
    let limits = Limits { accumulator: how, ..Limits::default() };
    match &Code::new(program).run(inputs, &limits).unwrap()[..] {
        [Datum::Real(tensor)] => tensor.data.iter().map(|x| bits(x.peek().unwrap())).collect(),
        other => panic!("{other:?}"),
    }
}

/// The same on `f64`, on derivative numbers and on the tape.
#[track_caller]
fn gives(program: &Program, inputs: &[Given<'_>], how: Accumulator, expected: &[u64]) {
    let of = |x: &[Given<'_>]| x.iter().map(|(shape, x)| datum(shape, x, &|x| x)).collect::<Vec<_>>();
    assert_eq!(results(program, &of(inputs), how), expected, "{how:?}");
    let duals: Vec<_> = inputs.iter().map(|(shape, x)| datum(shape, x, &|x| Dual::new(x, 0.25))).collect();
    assert_eq!(results(program, &duals, how), expected, "{how:?}, dual numbers");
    let all: Vec<f64> = inputs.iter().flat_map(|(_, x)| x.iter().copied()).collect();
    let mut tape = Tape::new();
    let record = tape.record(&all, |x| {
        let mut rest = x.iter().copied();
        let inputs: Vec<_> = inputs
            .iter()
            .map(|(shape, data)| {
                let data = rest.by_ref().take(data.len()).collect();
                Datum::Real(Tensor { shape: shape.to_vec(), data })
            })
            .collect();
        let limits = Limits { accumulator: how, ..Limits::default() };
        match &Code::new(program).run(&inputs, &limits).unwrap()[..] {
            [Datum::Real(tensor)] => tensor.data.clone(),
            other => panic!("{other:?}"),
        }
    });
    let values: Vec<u64> = record.unwrap().values().iter().map(|&x| bits(x)).collect();
    assert_eq!(values, expected, "{how:?}, on the tape");
}

/// The lanes that a reduction over these axes has, each in the order in which its elements lie.
fn lanes(shape: &[usize], axes: &[u8], data: &[f64]) -> Vec<Vec<f64>> {
    let kept: Vec<usize> = (0..shape.len()).filter(|&axis| !axes.contains(&(axis as u8))).collect();
    let count = kept.iter().map(|&axis| shape[axis]).product();
    let mut lanes = vec![Vec::new(); count];
    for (at, &x) in data.iter().enumerate() {
        let place = |axis: usize| at / shape[axis + 1..].iter().product::<usize>() % shape[axis];
        lanes[kept.iter().fold(0, |lane, &axis| lane * shape[axis] + place(axis))].push(x);
    }
    lanes
}

#[test]
fn reductions_follow_the_definition_over_any_axes() {
    let shapes: [&[usize]; 7] =
        [&[7], &[3000], &[5, 9], &[40, 33], &[2, 1100, 3], &[3, 4, 5], &[2, 3, 2, 19]];
    for (round, shape) in shapes.into_iter().enumerate() {
        let rank = shape.len() as u8;
        for choice in 1..1_u8 << rank {
            let axes: Vec<u8> = (0..rank).filter(|axis| choice >> axis & 1 == 1).collect();
            for wild in [false, true] {
                let data = numbers(Key::from_seed(round as u64), shape.iter().product(), wild);
                let lanes = lanes(shape, &axes, &data);
                let reduce = |kind| {
                    let op = Op::Reduce(kind, axes.clone());
                    program(&[Type::array(Elem::F64, rank)], |b, v| b.emit_all(op, v))
                };
                for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
                    let sums: Vec<u64> = lanes.iter().map(|lane| bits(f64::sum_with(lane, how))).collect();
                    gives(&reduce(Reduction::Sum), &[(shape, &data)], how, &sums);
                }
                for (kind, is_better) in
                    [(Reduction::Max, f64::gt as fn(&f64, &f64) -> bool), (Reduction::Min, f64::lt)]
                {
                    // One after the other: NaN counts only if there is nothing else, and of equals the first.
                    let best = |lane: &Vec<f64>| {
                        let better = |best: f64, &x: &f64| {
                            if is_better(&x, &best) || best.is_nan() { x } else { best }
                        };
                        bits(lane[1..].iter().fold(lane[0], better))
                    };
                    let expected: Vec<u64> = lanes.iter().map(best).collect();
                    gives(&reduce(kind), &[(shape, &data)], Accumulator::Naive, &expected);
                }
            }
        }
    }
}

/// By arrays on the tape, which `palinode-core` holds to the definition.
fn by_array(shapes: [&[usize]; 2], [a, b]: [&[f64]; 2]) -> Vec<u64> {
    let [a, b] = [(a, shapes[0]), (b, shapes[1])]
        .map(|(x, shape)| Array::<f64>::from_values(x.to_vec()).reshaped(shape));
    let values = match shapes.map(<[usize]>::len) {
        [1, 1] => vec![a.dot(&b).value()],
        _ => a.matmul(&b).values(),
    };
    values.into_iter().map(bits).collect()
}

fn turned(x: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|j| x.iter().copied().skip(j).step_by(columns)).collect()
}

#[test]
fn products_have_the_bits_of_arrays_in_all_ranks_and_transpositions() {
    for (round, [m, k, n]) in
        [[3, 4, 5], [1, 1, 1], [20, 130, 26], [2, 1100, 3], [1, 6, 30]].into_iter().enumerate()
    {
        let key = Key::from_seed(round as u64 + 20);
        let (a, b) = (numbers(key.split(0), m * k, false), numbers(key.split(1), k * n, false));
        let (x, y) = (numbers(key.split(2), k, false), numbers(key.split(3), k, false));
        let (a_turned, b_turned) = (turned(&a, k), turned(&b, n));
        for flags in 0..8 {
            let [a_transposed, b_transposed, strong] = [1, 2, 4].map(|flag| flags & flag != 0);
            let of_a: Given<'_> = if a_transposed { (&[k, m], &a_turned) } else { (&[m, k], &a) };
            let of_b: Given<'_> = if b_transposed { (&[n, k], &b_turned) } else { (&[k, n], &b) };
            let (of_x, of_y): (Given<'_>, Given<'_>) = ((&[k], &x), (&[k], &y));
            let check = |first: Given<'_>, second: Given<'_>, expected: Vec<u64>| {
                let types = [first, second].map(|(shape, _)| Type::array(Elem::F64, shape.len() as u8));
                // Vectors are not transposed.
                let op = Op::MatMul {
                    a_transposed: a_transposed && types[0].rank == 2,
                    b_transposed: b_transposed && types[1].rank == 2,
                    strong,
                };
                let product = program(&types, |b, v| b.emit_all(op, v));
                gives(&product, &[first, second], Accumulator::Naive, &expected);
            };
            check(of_a, of_b, by_array([&[m, k], &[k, n]], [&a, &b]));
            check(of_a, of_x, by_array([&[m, k], &[k]], [&a, &x]));
            check(of_x, of_b, by_array([&[k], &[k, n]], [&x, &b]));
            check(of_x, of_y, by_array([&[k], &[k]], [&x, &y]));
        }
    }
}

/// With an accumulator, and strong with zeros beside infinities and NaN.
#[test]
fn accumulated_and_strong_products_are_what_numbers_say() {
    for (round, [m, k, n]) in [[3, 4, 5], [4, 700, 3], [6, 1, 7]].into_iter().enumerate() {
        for wild in [false, true] {
            let key = Key::from_seed(round as u64 + 40);
            let (a, b) = (numbers(key.split(0), m * k, wild), numbers(key.split(1), k * n, wild));
            let b_turned = turned(&b, n);
            let a_turned = turned(&a, k);
            for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
                for flags in 0..8 {
                    let [a_transposed, b_transposed, strong] = [1, 2, 4].map(|flag| flags & flag != 0);
                    let entry = |i: usize, j: usize| {
                        let (row, column) = (&a[i * k..(i + 1) * k], &b_turned[j * k..(j + 1) * k]);
                        let pair = |l: usize| (row[l], column[l]);
                        bits(match (how, strong) {
                            (Accumulator::Naive, false) => f64::chain_over(0.0, k, pair),
                            (Accumulator::Naive, true) => f64::strong_chain_over(0.0, k, pair),
                            (_, false) => f64::dot_with(row, column, how),
                            (_, true) => f64::strong_dot_with(row, column, how),
                        })
                    };
                    let expected: Vec<u64> =
                        (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect();
                    let matrix = Type::array(Elem::F64, 2);
                    let op = Op::MatMul { a_transposed, b_transposed, strong };
                    let product = program(&[matrix, matrix], |b, v| b.emit_all(op, v));
                    let first: Given<'_> = if a_transposed { (&[k, m], &a_turned) } else { (&[m, k], &a) };
                    let second: Given<'_> = if b_transposed { (&[n, k], &b_turned) } else { (&[k, n], &b) };
                    gives(&product, &[first, second], how, &expected);
                }
            }
        }
    }
}

/// A gradient of a program and one of the same formula in arrays, to the last bit: products, sums, and
/// cotangents of both.
#[test]
fn gradients_have_the_bits_of_arrays() {
    let source = "param a: [20, 130]\nparam b: [130, 9]\nparam x: [9]\nlet h = tanh(matmul(a, b))\nlet r = matmul(h, x)\nloss y = sum(r * r) + dot(x, x)";
    let model = crate::pal::compile(source).program;
    let gradient = palinode_ir::transform::grad(&model, &[0, 1, 2]).unwrap();
    let key = Key::from_seed(70);
    let [a, b, x] = [(0, 20 * 130), (1, 130 * 9), (2, 9)]
        .map(|(seed, count)| (0..count).map(|i| key.split(seed).gaussian(i) * 0.2).collect::<Vec<f64>>());
    let inputs =
        [Datum::matrix(20, 130, a.clone()), Datum::matrix(130, 9, b.clone()), Datum::vector(x.clone())];
    let found: Vec<u64> = palinode_ir::interp::run(&gradient, &inputs)
        .unwrap()
        .iter()
        .flat_map(|datum| match datum {
            Datum::Real(tensor) => tensor.data.clone(),
            other => panic!("{other:?}"),
        })
        .map(bits)
        .collect();
    let by_arrays = palinode_core::grad(
        |v| {
            let (a, rest) = v.split_at(a.len());
            let (b, x) = rest.split_at(b.len());
            let [a, b] =
                [(a, [20, 130]), (b, [130, 9])].map(|(x, shape)| Array::from_vars(x).reshaped(&shape));
            let x = Array::from_vars(x);
            let r = a.matmul(&b).tanh().matmul(&x);
            (&r * &r).sum() + x.dot(&x)
        },
        &[a.clone(), b.clone(), x.clone()].concat(),
    )
    .unwrap();
    assert_eq!(found, by_arrays.into_iter().map(bits).collect::<Vec<_>>());
}
