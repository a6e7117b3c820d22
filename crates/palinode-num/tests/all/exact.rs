//! Exact sums and dot products against big integers, and the laws of accumulators.

use num_bigint::BigInt;
use palinode_num::{
    Accumulate, AccumulateProducts, Accumulator, Compensated, ExactDot, ExactSum, Key, Naive, Posit32,
    Quire32, Scalar, SumBytesError,
};

/// `x` as an integer number of 2^-1074.
fn integer(x: f64) -> BigInt {
    assert!(x.is_finite());
    let (bits, sign) = (x.abs().to_bits(), if x < 0.0 { -1 } else { 1 });
    let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
    let size = if exponent == 0 {
        BigInt::from(fraction)
    } else {
        BigInt::from(fraction | 1 << 52) << (exponent - 1)
    };
    size * sign
}

/// The number nearest to `n * 2^unit` with `precision` bits and exponents from `lowest` to below `highest`,
/// by long division: shares nothing with the code under test.
fn nearest(n: &BigInt, unit: i32, precision: i32, lowest: i32, highest: i32) -> f64 {
    let size = BigInt::from(n.magnitude().clone());
    let mut last = (size.bits() as i32 - precision + unit).max(lowest);
    // Shifted left, so that the last bit of the result is never below a bit of the integer.
    let shifted: BigInt = size << 4096;
    let divisor = BigInt::from(1) << (last - unit + 4096);
    let (mut quotient, remainder) = (&shifted / &divisor, &shifted % &divisor);
    let twice: BigInt = remainder * 2;
    let odd = quotient.bit(0);
    if twice > divisor || (twice == divisor && odd) {
        quotient += 1;
    }
    if quotient.bits() as i32 > precision {
        quotient >>= 1;
        last += 1;
    }
    let sign = if n.sign() == num_bigint::Sign::Minus { -1.0 } else { 1.0 };
    if quotient.bits() as i32 + last > highest {
        return sign * f64::INFINITY;
    }
    let significand: u64 = quotient.try_into().expect("at most 53 bits");
    let power = |p: i32| f64::from_bits(((p + 1023) as u64) << 52);
    sign * (significand as f64 * power(last / 2)) * power(last - last / 2)
}

fn nearest_f64(n: &BigInt, unit: i32) -> f64 {
    nearest(n, unit, 53, -1074, 1024)
}

fn nearest_f32(n: &BigInt, unit: i32) -> f32 {
    nearest(n, unit, 24, -149, 128) as f32
}

fn integer_sum(terms: &[f64]) -> BigInt {
    terms.iter().map(|&x| integer(x)).sum()
}

fn integer_dot(a: &[f64], b: &[f64]) -> BigInt {
    a.iter().zip(b).map(|(&a, &b)| integer(a) * integer(b)).sum()
}

/// Kinds of numbers that sums get wrong.
const KINDS: u64 = 9;

/// Number `i` of a list of one kind.
fn nasty(kind: u64, key: Key, i: u64) -> f64 {
    let bits = key.u64(i);
    let within = |low: u64, count: u64| {
        let exponent = low + key.split(1).below(count, i);
        f64::from_bits(bits & (1 << 63 | ((1 << 52) - 1)) | exponent << 52)
    };
    match kind {
        // One binade, a few, more than the fast path takes, all of them.
        0 => within(1023, 1),
        1 => within(1000, 30),
        2 => within(900, 200),
        3 => within(0, 2047),
        // Subnormals and their neighbours; next to overflow.
        4 => within(0, 60),
        5 => within(1990, 57),
        // Powers of two: ties.
        6 => f64::from_bits(within(980, 110).to_bits() & !((1 << 52) - 1)),
        // Everything cancels but a little.
        7 if i.is_multiple_of(16) => within(900, 10),
        7 => nasty(3, key, i / 2 * 2).copysign(if i.is_multiple_of(2) { 1.0 } else { -1.0 }),
        // Mostly zeros.
        8 if !i.is_multiple_of(5) => [0.0, -0.0][(i % 2) as usize],
        _ => key.gaussian(i),
    }
}

/// Lists of every kind and many lengths, with a name for messages.
fn lists(repeats: u64) -> impl Iterator<Item = (String, Vec<f64>)> {
    (0..KINDS * repeats).map(move |case| {
        let (kind, round) = (case % KINDS, case / KINDS);
        let key = Key::from_seed(case);
        // Short, around the length of a block, and several blocks.
        let length = match round % 4 {
            0 => key.split(9).below(6, 0),
            1 => key.split(9).below(200, 0),
            2 => 500 + key.split(9).below(30, 0),
            _ => key.split(9).below(2000, 0),
        };
        (format!("kind {kind}, seed {case}"), (0..length).map(|i| nasty(kind, key, i)).collect())
    })
}

/// A random order of a list.
fn shuffled(mut list: Vec<f64>, key: Key) -> Vec<f64> {
    for i in (1..list.len()).rev() {
        list.swap(i, key.below(i as u64 + 1, i as u64) as usize);
    }
    list
}

/// The same bits, those of zeros included: a sum below zero that rounds to zero is -0.
fn same(found: f64, expected: f64) -> bool {
    found.to_bits() == expected.to_bits()
}

#[test]
fn sums_are_the_nearest_number() {
    for (name, list) in lists(120) {
        let exact = integer_sum(&list);
        let mut sum = ExactSum::new();
        sum.add_slice(&list);
        assert!(same(sum.to_f64(), nearest_f64(&exact, -1074)), "{name}: {list:?}");
        assert_eq!(sum.to_f32().to_bits(), nearest_f32(&exact, -1074).to_bits(), "{name}: {list:?}");
        let one_by_one: ExactSum = list.iter().copied().collect();
        assert_eq!(one_by_one, sum, "{name}: {list:?}");
        assert_eq!(Accumulator::Exact.sum(&list).to_bits(), sum.to_f64().to_bits());
        sum.negate();
        assert!(same(sum.to_f64(), nearest_f64(&-exact, -1074)), "{name}, negated");
    }
}

#[test]
fn dot_products_are_the_nearest_number() {
    for ((name, a), (other, b)) in lists(80).zip(lists(80).skip(4)) {
        // Factors of different kinds and of the same.
        for b in [&b, &a] {
            let n = a.len().min(b.len());
            let (a, b) = (&a[..n], &b[..n]);
            let expected = nearest_f64(&integer_dot(a, b), -2148);
            let mut dot = ExactDot::new();
            dot.add_products(a, b);
            assert!(same(dot.to_f64(), expected), "{name} x {other}: {} not {expected}", dot.to_f64());
            let mut one_by_one = ExactDot::new();
            a.iter().zip(b).for_each(|(&a, &b)| one_by_one.add_product(a, b));
            assert!(dot == one_by_one, "{name} x {other}");
            let narrow = nearest_f32(&integer_dot(a, b), -2148);
            assert_eq!(dot.to_f32().to_bits(), narrow.to_bits(), "{name} x {other}");
            // A sum and the square of a list in one accumulator.
            dot.add_slice(a);
            let both = integer_dot(a, b) + (integer_sum(a) << 1074);
            assert!(same(dot.to_f64(), nearest_f64(&both, -2148)), "{name} x {other}, and the numbers");
        }
    }
}

/// A sum of some terms is the same and has one form in bytes, whatever the order, the grouping and the stops
/// on the way; so has one of products, whatever the order of factors.
#[test]
fn order_grouping_and_stops_do_not_matter() {
    for (case, (name, mut list)) in lists(24).enumerate() {
        let key = Key::from_seed(case as u64);
        if case % 5 == 0 {
            list.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN][..case % 4].iter());
        }
        let twin = shuffled(list.clone(), Key::from_seed(1));
        let (mut whole, mut products) = (ExactSum::new(), ExactDot::new());
        whole.add_slice(&list);
        products.add_products(&list, &twin);
        // In another order, in pieces that are sent, received and merged, either one with the other.
        let other = shuffled(list.clone(), key);
        for pieces in [1, 2, 3, 7] {
            let mut sum = ExactSum::new();
            for (at, piece) in other.chunks(other.len().div_ceil(pieces).max(1)).enumerate() {
                let mut part = ExactSum::new();
                part.add_slice(piece);
                let mut received = ExactSum::from_bytes(&sum.to_bytes()).unwrap();
                if at % 2 == 0 {
                    part.merge(&received);
                    sum = part;
                } else {
                    received.merge(&part);
                    sum = received;
                }
            }
            assert_eq!(sum.to_f64().to_bits(), whole.to_f64().to_bits(), "{name} in {pieces} pieces");
            assert_eq!(sum.to_bytes(), whole.to_bytes(), "{name} in {pieces} pieces");
            assert!(sum == whole, "{name} in {pieces} pieces");
        }
        let mut dot = ExactDot::new();
        for (a, b) in list.chunks(1 + case % 300).zip(twin.chunks(1 + case % 300)).rev() {
            dot = ExactDot::from_bytes(&dot.to_bytes()).unwrap();
            let mut part = ExactDot::new();
            part.add_products(b, a);
            dot.merge(&part);
        }
        assert_eq!(dot.to_bytes(), products.to_bytes(), "{name}");
        assert_eq!((whole.to_bytes().len(), dot.to_bytes().len()), (283, 547));
        assert!(dot == products, "{name}");
        assert_eq!(ExactSum::from_bytes(&whole.to_bytes()), Ok(whole), "{name}");
        let mut quire = Quire32::new();
        other.iter().for_each(|&x| quire += Posit32::from_f64(x));
        assert_eq!(Quire32::from_bytes(&quire.to_bytes()), Ok(quire), "{name}");
    }
}

/// Otherwise the test above could not fail.
#[test]
fn naive_sums_do_depend_on_order() {
    let list: Vec<f64> = (0..1000).map(|i| nasty(1, Key::from_seed(5), i)).collect();
    let sum = |key| Accumulator::Naive.sum(&shuffled(list.clone(), Key::from_seed(key)));
    assert!((0..20).any(|key| sum(key) != sum(20)));
}

#[test]
fn rounding_at_the_edges() {
    let sum = |terms: &[f64]| terms.iter().copied().collect::<ExactSum>().to_f64();
    let ulp = f64::MAX - f64::MAX.next_down();
    // Half a unit above the largest number is a tie, which goes to the even neighbour: infinity.
    assert_eq!(sum(&[f64::MAX, ulp / 2.0]), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX, (ulp / 2.0).next_down()]), f64::MAX);
    assert_eq!(sum(&[f64::MAX, ulp / 2.0, -5e-324]), f64::MAX);
    assert_eq!(sum(&[-f64::MAX, -ulp / 2.0]), f64::NEG_INFINITY);
    assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    // Ties to even, and a speck that breaks them.
    let half = f64::EPSILON / 2.0;
    assert_eq!(sum(&[1.0, half]), 1.0);
    assert_eq!(sum(&[1.0, half, 5e-324]), 1.0 + f64::EPSILON);
    assert_eq!(sum(&[1.0, half, -5e-324]), 1.0);
    assert_eq!(sum(&[1.0 + f64::EPSILON, half]), 1.0 + 2.0 * f64::EPSILON);
    assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::MIN_POSITIVE.next_down());
    // Products below the smallest subnormal: half of it is a tie, a bit more is not.
    let product = |terms: &[(f64, f64)]| {
        let mut dot = ExactDot::new();
        terms.iter().for_each(|&(a, b)| dot.add_product(a, b));
        dot.to_f64()
    };
    assert_eq!(product(&[(5e-324, 0.5)]), 0.0);
    assert_eq!(product(&[(5e-324, 0.5), (5e-324, 5e-324)]), 5e-324);
    assert_eq!(product(&[(5e-324, 0.5), (5e-324, 0.5)]), 5e-324);
    assert_eq!(product(&[(-5e-324, 0.5), (5e-324, -1.0)]), -1e-323);
    assert_eq!(product(&[(f64::MAX, f64::MAX), (-f64::MAX, f64::MAX), (3.0, 5.0)]), 15.0);
    assert_eq!(product(&[(f64::MAX, f64::MAX)]), f64::INFINITY);
    assert_eq!(Accumulator::Exact.sum(&[f32::MAX, f32::MAX, -f32::MAX, 1.0]), f32::MAX);
    assert_eq!(Accumulator::Exact.dot(&[f32::MAX, 1.0], &[f32::MAX, 1.0]), f32::INFINITY);
}

#[test]
fn infinities_nan_and_zeros_follow_the_rule() {
    let (up, down, nan) = (f64::INFINITY, f64::NEG_INFINITY, f64::NAN);
    let filler: Vec<f64> = (0..600).map(|i| nasty(0, Key::from_seed(2), i)).collect();
    for place in [0, 1, 300, 599] {
        // The special terms among others, so that the fast path meets them.
        let sum = |special: &[f64]| {
            let mut list = filler.clone();
            list.splice(place..place, special.iter().copied());
            let mut sum = ExactSum::new();
            sum.add_slice(&list);
            let mut dot = ExactDot::new();
            dot.add_products(&list, &vec![1.0; list.len()]);
            assert_eq!(sum.to_f64().to_bits(), dot.to_f64().to_bits(), "{special:?}");
            assert_eq!(sum.to_f32().is_nan(), sum.to_f64().is_nan());
            sum.to_f64()
        };
        assert_eq!(sum(&[up]), up);
        assert_eq!(sum(&[down, down]), down);
        assert_eq!(sum(&[up, -f64::MAX, -f64::MAX]), up);
        assert!(sum(&[up, down]).is_nan());
        assert!(sum(&[nan]).is_nan());
        assert!(sum(&[nan, up]).is_nan());
        let (mut a, mut b) = (filler.clone(), vec![1.0; 600]);
        (a[place], b[place]) = (up, 0.0);
        assert!(Accumulator::Exact.dot(&a, &b).is_nan(), "0 * inf");
        b[place] = -2.0;
        assert_eq!(Accumulator::Exact.dot(&a, &b), down);
        // Factors that overflow the splitting of the fast path, beside a small and a zero one.
        (a[place], b[place]) = (f64::MAX, 1e-300);
        let expected = nearest_f64(&integer_dot(&a, &b), -2148);
        assert_eq!(Accumulator::Exact.dot(&a, &b), expected);
        (a[place], b[place]) = (f64::MAX, 0.0);
        let expected = nearest_f64(&integer_dot(&a, &b), -2148);
        assert_eq!(Accumulator::Exact.dot(&a, &b), expected);
    }
    for zeros in [&[][..], &[-0.0], &[-0.0, -0.0], &[1.0, -1.0], &[0.0; 100]] {
        assert_eq!(Accumulator::Exact.sum::<f64>(zeros).to_bits(), 0, "{zeros:?}");
    }
    // Merged and negated, nothing is forgotten.
    for [first, second] in
        [[up, down], [down, up], [down, 1.0], [1.0, down], [up, 1.0], [nan, 1.0], [1.0, nan]]
    {
        let (mut sum, mut other): (ExactSum, ExactSum) =
            ([first].into_iter().collect(), [second].into_iter().collect());
        let (mut dot, mut other_dot) = (ExactDot::new(), ExactDot::new());
        dot.add(first);
        other_dot.add_product(-1.0, -second);
        sum.merge(&other);
        dot.merge(&other_dot);
        let expected = first + second;
        assert_eq!(sum.to_f64().to_bits() << 1, expected.to_bits() << 1, "{first} and {second}");
        assert!(sum.to_f64() == expected || expected.is_nan(), "{first} and {second}");
        assert_eq!(dot.to_f64().to_bits(), sum.to_f64().to_bits(), "{first} and {second}");
        other.merge(&sum);
        for (negated, kept) in [(&mut sum, expected), (&mut other, expected + second)] {
            negated.negate();
            assert!(negated.to_f64() == -kept || kept.is_nan(), "{first} and {second}, negated");
        }
        dot.negate();
        assert!(dot.to_f64() == -expected || expected.is_nan());
    }
}

#[test]
fn f32_sums_and_products_are_the_nearest_f32() {
    for (name, list) in lists(40) {
        let list: Vec<f32> = list.iter().map(|&x| x as f32).filter(|x| x.is_finite()).collect();
        let wide: Vec<f64> = list.iter().map(|&x| f64::from(x)).collect();
        let expected = nearest_f32(&integer_sum(&wide), -1074);
        assert_eq!(Accumulator::Exact.sum(&list).to_bits(), expected.to_bits(), "{name}");
        let expected = nearest_f32(&integer_dot(&wide, &wide), -2148);
        assert_eq!(Accumulator::Exact.dot(&list, &list).to_bits(), expected.to_bits(), "{name}");
    }
}

/// Carries move in time: many additions to one digit, of both signs.
#[test]
fn many_equal_terms() {
    for x in [1.0 + f64::EPSILON, -f64::MAX, 5e-324, f64::from_bits(0x7fe0_0000_0000_0001)] {
        let n = 100_000;
        let (mut one_by_one, mut by_merging) = (ExactSum::new(), ExactSum::new());
        by_merging.add(x);
        let single = by_merging.clone();
        for i in 0..n {
            one_by_one.add(x);
            if i > 0 {
                by_merging.merge(&single);
            }
        }
        assert_eq!(one_by_one, by_merging);
        assert_eq!(one_by_one.to_f64(), nearest_f64(&(integer(x) * n), -1074));
        let mut dot = ExactDot::new();
        (0..n).for_each(|_| dot.add_product(x, x));
        assert_eq!(dot.to_f64(), nearest_f64(&(integer(x) * integer(x) * n), -2148));
    }
}

/// How far a sum may be off: by `own` roundings of itself, and by a power of what a chain of k roundings does
/// to the sum of sizes: it multiplies by 1 + e with |e| <= k u / (1 - k u) (Higham, lemma 3.1).
struct Bound {
    own: u32,
    roundings: usize,
    power: u32,
}

impl Bound {
    /// Whether `|found - exact| <= own u |exact| + (k u / (1 - k u))^power sizes`, in integers: with u =
    /// 2^-53 the fraction is k / (2^53 - k).
    fn holds(&self, found: &BigInt, exact: &BigInt, sizes: &BigInt) -> bool {
        let absolute = |n: &BigInt| BigInt::from(n.magnitude().clone());
        let one: BigInt = BigInt::from(1) << 53;
        let chain = (&one - self.roundings).pow(self.power);
        let grown = BigInt::from(self.roundings).pow(self.power) * &one * sizes;
        absolute(&(found - exact)) * &one * &chain <= absolute(exact) * self.own * chain + grown
    }
}

/// The bounds of Ogita, Rump and Oishi (propositions 4.5 and 5.5) for compensated sums, and the usual ones
/// for naive sums, without slack.
#[test]
fn compensated_and_naive_sums_keep_their_bounds() {
    let mut missed = 0;
    for seed in 0..60 {
        let key = Key::from_seed(seed);
        let n = 100 + 30 * seed as usize;
        let list = |key: Key| (0..n as u64).map(|i| nasty(1 + seed % 2, key, i)).collect::<Vec<_>>();
        let (a, b) = (list(key), list(key.split(3)));
        let sizes = |list: &[f64]| list.iter().map(|x| x.abs()).collect::<Vec<_>>();
        let (sum, sum_of_sizes) = (integer_sum(&a), integer_sum(&sizes(&a)));
        let (dot, dot_of_sizes) = (integer_dot(&a, &b), integer_dot(&sizes(&a), &sizes(&b)));
        // In units of 2^-2148, as products are.
        let squared = |x: f64| integer(x) << 1074;
        // The first addition is to zero and exact. A term of a dot product is rounded once more.
        let naive = |roundings| Bound { own: 0, roundings, power: 1 };
        let compensated = |roundings| Bound { own: 1, roundings, power: 2 };
        let (way, found) = (Accumulator::Naive, Accumulator::Naive.sum(&a));
        assert!(naive(n - 1).holds(&integer(found), &sum, &sum_of_sizes), "{way:?} {seed}");
        assert!(naive(n).holds(&squared(way.dot(&a, &b)), &dot, &dot_of_sizes), "{way:?} {seed}");
        let (way, found) = (Accumulator::Compensated, Accumulator::Compensated.sum(&a));
        assert!(compensated(n - 1).holds(&integer(found), &sum, &sum_of_sizes), "{way:?} {seed}");
        assert!(compensated(n).holds(&squared(way.dot(&a, &b)), &dot, &dot_of_sizes), "{way:?} {seed}");
        // Merged in two halves it has one addition more.
        let mut halves = [Compensated::default(), Compensated::default()];
        halves[0].add_slice(&a[..n / 2]);
        halves[1].add_slice(&a[n / 2..]);
        let [mut first, second] = halves;
        first.merge(&second);
        assert!(compensated(n).holds(&integer(first.total()), &sum, &sum_of_sizes), "merged {seed}");
        let by_naive = integer(Accumulator::Naive.sum(&a));
        missed += u32::from(!compensated(n).holds(&by_naive, &sum, &sum_of_sizes));
        let mut one_by_one = Naive::default();
        one_by_one.add_products(&a, &b);
        assert!(naive(n).holds(&squared(one_by_one.total()), &dot, &dot_of_sizes), "one by one {seed}");
    }
    assert!(
        missed > 30,
        "the check could not fail: naive sums missed the bound of compensated ones {missed} times"
    );
    assert_eq!(Accumulator::Compensated.sum(&[1.0, f64::INFINITY, 2.0]), f64::INFINITY);
    assert_eq!(Accumulator::Compensated.dot(&[3e-4f32, 1e8, -1e8], &[1.0, 1.0, 1.0]), 3e-4f32);
}

#[test]
fn matrix_products_are_dot_products() {
    let key = Key::from_seed(8);
    let (rows, inner, columns) = (3, 130, 4);
    let entries = |key: Key, n: usize| (0..n as u64).map(|i| nasty(3, key, i)).collect::<Vec<_>>();
    let (a, b) = (entries(key.split(0), rows * inner), entries(key.split(1), inner * columns));
    let product = Accumulator::Exact.matmul(&a, &b, rows, inner, columns);
    for i in 0..rows {
        for j in 0..columns {
            let column: Vec<f64> = (0..inner).map(|l| b[l * columns + j]).collect();
            let expected = nearest_f64(&integer_dot(&a[i * inner..(i + 1) * inner], &column), -2148);
            assert_eq!(product[i * columns + j], expected);
        }
    }
}

/// A million terms of each kind: `cargo test --release -p palinode-num -- --ignored million_terms`.
#[test]
#[ignore = "half a minute in release"]
fn million_terms() {
    for kind in 0..KINDS {
        let key = Key::from_seed(kind);
        let list: Vec<f64> = (0..1_000_000).map(|i| nasty(kind, key, i)).collect();
        let other: Vec<f64> =
            (0..1_000_000).map(|i| nasty((kind * 5 + 3) % KINDS, key.split(4), i)).collect();
        let sum = Accumulator::Exact.sum(&list);
        assert!(same(sum, nearest_f64(&integer_sum(&list), -1074)), "kind {kind}");
        let dot = Accumulator::Exact.dot(&list, &other);
        assert!(same(dot, nearest_f64(&integer_dot(&list, &other), -2148)), "kind {kind}");
        assert_eq!(Accumulator::Exact.sum(&shuffled(list, key)).to_bits(), sum.to_bits());
    }
}

/// What the documentation says of memory.
#[test]
fn accumulators_have_the_size_that_is_stated() {
    assert_eq!((size_of::<ExactSum>(), size_of::<ExactDot>()), (560, 1088));
}

#[test]
fn accumulators_show_themselves_under_their_names() {
    assert!(format!("{:?}", ExactSum::new()).starts_with("ExactSum {"));
    assert!(format!("{:?}", ExactDot::new()).starts_with("ExactDot {"));
}

#[test]
fn zeros_win_in_strong_dot_products_only() {
    let (a, b) = ([0.0, 1e100, -1e100, 1.0, f64::NAN], [f64::INFINITY, 1.0, 1.0, 1.0, 0.0]);
    for (how, expected) in
        [(Accumulator::Naive, 0.0), (Accumulator::Compensated, 1.0), (Accumulator::Exact, 1.0)]
    {
        assert!(f64::dot_with(&a, &b, how).is_nan());
        assert_eq!(f64::strong_dot_with(&a, &b, how), expected, "{how:?}");
        assert_eq!(f64::strong_dot_with(&[2.0, 0.0], &[f64::INFINITY, f64::NAN], how), f64::INFINITY);
        assert!(f64::strong_dot_with(&[2.0, 1.0], &[f64::INFINITY, f64::NEG_INFINITY], how).is_nan());
        let posits = |x: &[f64]| x.iter().map(|&x| Posit32::from_f64(x)).collect::<Vec<_>>();
        // A NaR does not become a number, unless the other factor is zero.
        assert!(Posit32::dot_with(&posits(&a), &posits(&b), how).is_nar());
        assert!(!Posit32::strong_dot_with(&posits(&a), &posits(&b), how).is_nar());
    }
}

/// Infinities that are not beside a zero count as the accumulator says: what overflows on the way is no
/// infinity for an exact sum.
#[test]
fn strong_dot_products_of_infinities_are_accumulated_as_asked_for() {
    let (a, b) = ([f64::INFINITY, 1e200, 1e200], [1.0, 1e200, -1e200]);
    assert!(f64::strong_dot_with(&a, &b, Accumulator::Naive).is_nan());
    assert_eq!(f64::strong_dot_with(&a, &b, Accumulator::Exact), f64::INFINITY);
    // Beside zeros that win, in any order, and in other numbers.
    let (with_zeros, others) =
        ([1e200, 0.0, f64::NAN, 1e200, f64::INFINITY], [-1e200, f64::NAN, 0.0, 1e200, 1.0]);
    assert_eq!(f64::strong_dot_with(&with_zeros, &others, Accumulator::Exact), f64::INFINITY);
    let (a, b) = ([f32::NEG_INFINITY, 1e30, 1e30], [1.0, 1e30, -1e30]);
    assert!(f32::strong_dot_with(&a, &b, Accumulator::Naive).is_nan());
    assert_eq!(f32::strong_dot_with(&a, &b, Accumulator::Exact), f32::NEG_INFINITY);
    // A NaN that no zero takes away stays.
    assert!(f64::strong_dot_with(&[f64::NAN, 0.0], &[1.0, 1.0], Accumulator::Exact).is_nan());
}

#[test]
fn damaged_bytes_are_no_sum() {
    let bytes = [1e300, -0.1, 5e-324].into_iter().collect::<ExactSum>().to_bytes();
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(ExactSum::from_bytes(&damaged).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(ExactSum::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    let found = |bytes: &[u8]| ExactDot::from_bytes(bytes).unwrap_err();
    assert_eq!(found(&bytes), SumBytesError::Kind { expected: 2, found: 1 });
    assert_eq!(found(&[]), SumBytesError::Length { expected: 547, found: 0 });
    assert_eq!(found(&[2]), SumBytesError::Version { found: 2 });
    assert!(found(&bytes).to_string().starts_with("PAL0602"));
}
