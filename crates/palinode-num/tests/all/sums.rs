//! The order of sums and the chain of products against twins that are written from their definition in
//! `palinode_num::sums`, bit by bit; and what the definition does not say, a mistake each, against the same
//! data.

use palinode_num::machine::InstructionSet;
use palinode_num::products::{MatrixView, add_product, outer, times_vector};
use palinode_num::sums::sum_axis;
use palinode_num::{Accumulator, DoubleDouble, Key, Posit16, Posit32, Real, Scalar};

/// A way to add up: the definition, or one with a mistake.
#[derive(Clone, Copy)]
struct Order {
    block: usize,
    lanes: usize,
    /// Lanes and blocks that are missing count as this.
    absent: Option<f64>,
    /// What the lanes are paired with: the partner half of them away, or the neighbour.
    halving: bool,
    pairwise: bool,
    empty: f64,
}

const DEFINITION: Order =
    Order { block: 1024, lanes: 16, absent: None, halving: true, pairwise: true, empty: 0.0 };

impl Order {
    fn sum<S: Scalar>(self, x: &[S]) -> S {
        if x.is_empty() {
            return S::from_f64(self.empty);
        }
        let blocks: Vec<S> = x.chunks(self.block).map(|block| self.block_sum(block)).collect();
        if self.pairwise { tree(&blocks) } else { blocks.into_iter().reduce(|a, b| a + b).unwrap() }
    }

    fn block_sum<S: Scalar>(self, block: &[S]) -> S {
        let lane = |l: usize| {
            let first = self.absent.map(S::from_f64);
            let of_lane = block.iter().copied().skip(l).step_by(self.lanes);
            first.into_iter().chain(of_lane).reduce(|a, b| a + b)
        };
        let mut lanes: Vec<Option<S>> = (0..self.lanes).map(lane).collect();
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            let pair = |l: usize| {
                if self.halving { (lanes[l], lanes[l + half]) } else { (lanes[2 * l], lanes[2 * l + 1]) }
            };
            lanes = (0..half)
                .map(|l| match pair(l) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                })
                .collect();
        }
        lanes[0].unwrap()
    }

    fn dot<S: Scalar>(self, a: &[S], b: &[S]) -> S {
        self.sum(&a.iter().zip(b).map(|(&a, &b)| a * b).collect::<Vec<S>>())
    }
}

fn tree<S: Scalar>(blocks: &[S]) -> S {
    if let [block] = blocks {
        return *block;
    }
    let mut first = 1;
    while 2 * first < blocks.len() {
        first *= 2;
    }
    tree(&blocks[..first]) + tree(&blocks[first..])
}

const MISTAKES: [(&str, Order); 8] = [
    ("half as many lanes", Order { lanes: 8, ..DEFINITION }),
    ("twice as many lanes", Order { lanes: 32, ..DEFINITION }),
    ("smaller blocks", Order { block: 512, ..DEFINITION }),
    ("larger blocks", Order { block: 2048, ..DEFINITION }),
    ("lanes from +0", Order { absent: Some(0.0), ..DEFINITION }),
    ("neighbouring lanes paired", Order { halving: false, ..DEFINITION }),
    ("blocks one after the other", Order { pairwise: false, ..DEFINITION }),
    ("an empty sum of -0", Order { empty: -0.0, ..DEFINITION }),
];

/// The same number with the same bits; one NaN is as good as another.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Numbers of a kind: ordinary ones, cancelling ones, zeros of both signs, and others with infinities and
/// NaN.
fn numbers(kind: u64, count: usize) -> Vec<f64> {
    let key = Key::from_seed(kind).split(count as u64);
    let number = |i: u64| match kind {
        0 => key.gaussian(i),
        1 => {
            let size = 2f64.powi(key.split(1).below(200, i / 2) as i32 - 100);
            if i.is_multiple_of(2) { size } else { -size * (1.0 + key.uniform(i) * 1e-15) }
        }
        2 => [0.0, -0.0, -0.0, 1e-320, -1e-320][key.below(if i < 40 { 3 } else { 5 }, i) as usize],
        3 => -0.0,
        4 => key.gaussian(i) * 1e308,
        5 if key.split(1).below(300, i) == 0 => [f64::INFINITY, f64::NEG_INFINITY][key.below(2, i) as usize],
        6 if key.split(1).below(900, i) == 0 => f64::NAN,
        _ => key.gaussian(i),
    };
    (0..count as u64).map(number).collect()
}
const KINDS: u64 = 7;

fn lengths() -> impl Iterator<Item = usize> {
    let key = Key::from_seed(77);
    (0..1100)
        .chain((1100..3000).step_by(7))
        .chain(2040..2060)
        .chain((0..30).map(move |i| 3000 + key.below(100_000, i) as usize))
        .chain([4096, 8191, 8192, 8193, 65_536, 66_560, 70_000])
}

#[test]
fn sums_and_dot_products_follow_the_definition() {
    let mut caught = [0; MISTAKES.len()];
    for count in lengths() {
        // All kinds at some lengths, two of them at each.
        let kinds = if count < 100 || count.is_multiple_of(97) {
            0..KINDS
        } else {
            count as u64 % (KINDS - 1)..count as u64 % (KINDS - 1) + 2
        };
        for kind in kinds {
            let (a, b) = (numbers(kind, count), numbers((kind + 1) % KINDS, count));
            let (sum, dot) = (f64::sum_of(&a), f64::dot(&a, &b));
            let message = || format!("{count} numbers of kind {kind}");
            assert!(same(sum, DEFINITION.sum(&a)), "{}", message());
            assert!(same(dot, DEFINITION.dot(&a, &b)), "dot of {}", message());
            assert!(same(f64::sum_over(count, |i| a[i]), sum), "{}", message());
            assert!(same(f64::dot_over(count, |i| (a[i], b[i])), dot), "{}", message());
            assert!(same(Accumulator::Naive.sum(&a), sum) && same(Accumulator::Naive.dot(&a, &b), dot));
            let products: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            assert!(same(f64::sum_of(&products), dot), "a law: {}", message());
            for ((_, mistake), caught) in MISTAKES.iter().zip(&mut caught) {
                *caught += usize::from(!same(mistake.sum(&a), sum));
            }
        }
    }
    for ((name, _), caught) in MISTAKES.iter().zip(caught) {
        assert!(caught > 0, "a definition with a mistake gave the same sums: {name}");
    }
}

/// The sums of numbers that have no kernels.
#[test]
fn every_number_is_added_in_the_same_order() {
    fn check<S: Scalar<Bool = bool>>() {
        for count in [0, 1, 2, 5, 15, 16, 17, 40, 1023, 1024, 1025, 3000, 5200] {
            let make = |kind| numbers(kind, count).into_iter().map(S::from_f64).collect::<Vec<S>>();
            let (a, b) = (make(0), make(1));
            let both = [(S::sum_of(&a), DEFINITION.sum(&a)), (S::dot(&a, &b), DEFINITION.dot(&a, &b))];
            for (found, expected) in both {
                assert!(found.equal(expected), "{found:?} is not {expected:?}: {count} numbers");
            }
        }
    }
    check::<f32>();
    check::<Posit16>();
    check::<Posit32>();
    check::<DoubleDouble>();
}

#[test]
fn sums_along_an_axis_are_sums() {
    for length in (0..36).chain([100, 1023, 1024, 1025, 2048, 3000, 5200]) {
        for (outer, inner) in [
            (1, 0),
            (0, 1),
            (1, 1),
            (3, 1),
            (2, 2),
            (1, 7),
            (2, 8),
            (1, 9),
            (1, 31),
            (2, 32),
            (1, 47),
            (1, 70),
        ] {
            let kind = (length + inner) as u64 % KINDS;
            let data = numbers(kind, outer * length * inner);
            let mut sums = vec![f64::NAN; outer * inner];
            sum_axis(&data, [outer, length, inner], &mut sums);
            for (at, &sum) in sums.iter().enumerate() {
                let (o, i) = (at / inner, at % inner);
                let line: Vec<f64> = (0..length).map(|k| data[(o * length + k) * inner + i]).collect();
                assert!(
                    same(sum, f64::sum_of(&line)),
                    "{outer} by {length} by {inner}, kind {kind}, place {at}"
                );
            }
        }
    }
    let data = numbers(0, 30).into_iter().map(Posit32::from_f64).collect::<Vec<_>>();
    let mut sums = [Posit32::from_f64(0.0); 3];
    sum_axis(&data, [1, 10, 3], &mut sums);
    assert_eq!(sums[2], Posit32::sum_over(10, |k| data[3 * k + 2]));
}

/// An entry of a product from its definition. `libm`'s fused multiplication and addition is the software one.
fn chain(start: f64, pairs: impl Iterator<Item = (f64, f64)>, strong: bool) -> f64 {
    let wins = |a: f64, b: f64| a == 0.0 && !b.is_finite();
    pairs.fold(start, |c, (a, b)| if strong && (wins(a, b) || wins(b, a)) { c } else { libm::fma(a, b, c) })
}

/// Every layout of an `m` by `n` matrix, with the same entries.
fn layouts(entries: &[f64], m: usize, n: usize) -> Vec<(&'static str, Vec<f64>, [usize; 2])> {
    let spread = |[row_step, column_step]: [usize; 2]| {
        let size = if m * n == 0 { 0 } else { (m - 1) * row_step + (n - 1) * column_step + 1 };
        let mut data = vec![f64::NAN; size];
        for i in 0..m {
            for j in 0..n {
                data[i * row_step + j * column_step] = entries[i * n + j];
            }
        }
        (data, [row_step, column_step])
    };
    [
        ("rows", [n, 1]),
        ("columns", [1, m]),
        ("part of rows", [n + 3, 1]),
        ("part of columns", [1, m + 2]),
        ("apart", [2 * n, 2]),
    ]
    .map(|(name, steps)| {
        let (data, steps) = spread(steps);
        (name, data, steps)
    })
    .into()
}

fn sizes() -> Vec<[usize; 3]> {
    let mut sizes = vec![
        [0, 3, 4],
        [3, 0, 4],
        [3, 4, 0],
        [1, 1, 1],
        [1, 300, 1],
        [1, 5, 40],
        [40, 5, 1],
        [64, 64, 64],
        [2, 130, 30],
        [17, 129, 25],
        [300, 20, 9],
        [260, 260, 50],
        [5, 400, 70],
        [8, 8, 8],
        [8, 128, 24],
        [12, 256, 48],
    ];
    let key = Key::from_seed(5);
    sizes.extend(
        (0..60).map(|i| {
            [0, 1, 2].map(|axis| 1 + key.split(axis).below(if i < 40 { 20 } else { 90 }, i) as usize)
        }),
    );
    sizes
}

#[test]
fn products_of_matrices_are_chains() {
    let mut differs_from_dots = 0;
    for (case, [m, k, n]) in sizes().into_iter().enumerate() {
        let kind = case as u64 % KINDS;
        let (a, b) = (numbers(kind, m * k), numbers((kind + 2) % KINDS, k * n));
        let start = numbers((kind + 3) % 5, m * n);
        for strong in [false, true] {
            let entry = |start: f64, i: usize, j: usize, places: core::ops::Range<usize>| {
                chain(start, places.map(|l| (a[i * k + l], b[l * n + j])), strong)
            };
            let all = || (0..m).flat_map(|i| (0..n).map(move |j| (i, j)));
            let expected: Vec<f64> = all().map(|(i, j)| entry(start[i * n + j], i, j, 0..k)).collect();
            for (of_a, a, a_steps) in &layouts(&a, m, k) {
                for (of_b, b, b_steps) in &layouts(&b, k, n) {
                    let a = MatrixView::with_steps(a, [m, k], *a_steps);
                    let b = MatrixView::with_steps(b, [k, n], *b_steps);
                    let mut c = start.clone();
                    add_product(&mut c, a, b, strong);
                    let wrong = c.iter().zip(&expected).position(|(&c, &expected)| !same(c, expected));
                    assert_eq!(
                        wrong, None,
                        "{m} {k} {n} by {of_a} and {of_b}, kind {kind}, strong: {strong}"
                    );
                }
            }
            // A chain in two pieces is the same chain.
            let half = k / 2;
            let mut c = start.clone();
            let (first, second) = (MatrixView::by_rows(&a, m, k), MatrixView::by_rows(&b, k, n));
            let left = MatrixView::with_steps(&a, [m, half], [k, 1]);
            let right = MatrixView::with_steps(a.get(half..).unwrap_or(&[]), [m, k - half], [k, 1]);
            add_product(&mut c, left, MatrixView::by_rows(&b[..half * n], half, n), strong);
            add_product(&mut c, right, MatrixView::by_rows(&b[half * n..], k - half, n), strong);
            assert!(c.iter().zip(&expected).all(|(&c, &expected)| same(c, expected)), "in two pieces");
            // Transposed factors, transposed product.
            let mut turned: Vec<f64> =
                (0..n).flat_map(|j| (0..m).map(move |i| (i, j))).map(|(i, j)| start[i * n + j]).collect();
            add_product(&mut turned, second.transposed(), first.transposed(), strong);
            assert!(all().all(|(i, j)| same(turned[j * m + i], expected[i * n + j])), "transposed");
        }
        let naive = Accumulator::Naive.matmul(&a, &b, m, k, n);
        for i in 0..m {
            for j in 0..n {
                let pairs = || (0..k).map(|l| (a[i * k + l], b[l * n + j]));
                assert!(same(naive[i * n + j], chain(0.0, pairs(), false)));
                let (row, column): (Vec<f64>, Vec<f64>) = pairs().unzip();
                assert!(same(naive[i * n + j], f64::chain_over(0.0, k, |l| (row[l], column[l]))));
                differs_from_dots += usize::from(!same(f64::dot(&row, &column), naive[i * n + j]));
            }
        }
    }
    assert!(differs_from_dots > 1000, "chains and dot products are told apart");
}

#[test]
fn products_with_vectors_are_dot_products() {
    for [m, k, _] in sizes() {
        for kind in 0..KINDS {
            let (a, x) = (numbers(kind, m * k), numbers((kind + 1) % KINDS, k));
            for (layout, a, steps) in &layouts(&a, m, k) {
                for strong in [false, true] {
                    let a = MatrixView::with_steps(a, [m, k], *steps);
                    let mut y = vec![f64::NAN; m];
                    times_vector(&mut y, a, &x, strong);
                    for (i, &y) in y.iter().enumerate() {
                        let row: Vec<f64> = (0..k).map(|l| a.at(i, l)).collect();
                        let expected = if strong { strong_dot(&row, &x) } else { DEFINITION.dot(&row, &x) };
                        assert!(same(y, expected), "{m} {k} by {layout}, kind {kind}, strong: {strong}");
                    }
                }
            }
        }
    }
}

#[test]
fn outer_products_are_products() {
    for kind in 0..KINDS {
        let (x, y) = (numbers(kind, 7), numbers((kind + 1) % KINDS, 350));
        for strong in [false, true] {
            let mut c = vec![f64::NAN; 7 * 350];
            outer(&mut c, &x, &y, strong);
            for (at, &c) in c.iter().enumerate() {
                let (x, y) = (x[at / 350], y[at % 350]);
                let expected = if strong && (x == 0.0 || y == 0.0) && (x * y).is_nan() { 0.0 } else { x * y };
                assert!(same(c, expected), "{x} {y}");
            }
        }
    }
    outer::<f64>(&mut [], &[1.0], &[], true);
}

/// Strong products, each in its place.
fn strong_dot(a: &[f64], b: &[f64]) -> f64 {
    let product = |(&a, &b): (&f64, &f64)| {
        if a == 0.0 || b == 0.0 { if (a * b).is_nan() { 0.0 } else { a * b } } else { a * b }
    };
    DEFINITION.sum(&a.iter().zip(b).map(product).collect::<Vec<f64>>())
}

#[test]
fn zeros_win_in_their_places() {
    let key = Key::from_seed(3);
    let mut plain_is_nan = 0;
    for case in 0..400 {
        let count = 1 + key.below(if case < 300 { 40 } else { 3000 }, case) as usize;
        let number = |key: Key, i: usize| match key.below(12, i as u64) {
            0..=2 => [0.0, -0.0][i % 2],
            3 if case % 3 > 0 => f64::NAN,
            4 if case % 3 == 1 => [f64::INFINITY, f64::NEG_INFINITY][i % 2],
            _ => key.gaussian(i as u64),
        };
        let a: Vec<f64> = (0..count).map(|i| number(key.split(case).split(0), i)).collect();
        // Infinities and NaN face zeros, mostly.
        let b: Vec<f64> = (0..count)
            .map(|i| {
                if a[i].is_finite() {
                    number(key.split(case).split(1), i)
                } else {
                    [0.0, -0.0, 1.0][if i % 17 == 0 { 2 } else { i % 2 }]
                }
            })
            .collect();
        let expected = strong_dot(&a, &b);
        assert!(same(f64::strong_dot_with(&a, &b, Accumulator::Naive), expected), "case {case}");
        assert!(same(f64::strong_dot_over(count, |i| (a[i], b[i])), expected), "case {case}");
        let start = [0.0, -0.0, 1.5][case as usize % 3];
        let expected = chain(start, a.iter().copied().zip(b.iter().copied()), true);
        assert!(same(f64::strong_chain_over(start, count, |i| (a[i], b[i])), expected), "case {case}");
        plain_is_nan += usize::from(f64::dot(&a, &b).is_nan() && !strong_dot(&a, &b).is_nan());
    }
    assert!(plain_is_nan > 30, "{plain_is_nan}");
}

#[test]
fn an_affine_combination_is_an_offset_and_a_dot_product() {
    for count in [0, 1, 3, 16, 40, 2000] {
        let (c, x) = (numbers(0, count), numbers(1, count));
        assert!(same(f64::affine(0.3, &c, &x), 0.3 + DEFINITION.dot(&c, &x)), "{count}");
    }
}

/// This computer has more than the instructions of the build, so that kernels were compared with something
/// else.
#[test]
fn kernels_have_been_tested() {
    let best = InstructionSet::best();
    assert!(best.is_available());
    println!("sums and products were tested on {best:?}");
    assert!(Real::is_finite(f64::sum_of(&[1.0])));
}
