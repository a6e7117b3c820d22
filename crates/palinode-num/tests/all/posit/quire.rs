//! Quires against exact fractions: every sum is exact, and is rounded once.

use super::exact::{Fraction, any_posit, cases, from_bits, is_nearest, value};
use num_bigint::BigInt;
use palinode_num::{
    Accumulate, Accumulator, Compensated, Draws, Naive, Posit, Posit8, Posit16, Posit32, PositWidth, Quire,
    Quire32,
};

/// What a quire holds, from its encoding.
fn held<W: PositWidth>(quire: &Quire<W>) -> Fraction {
    let words = quire.to_words();
    let top = words.len() - 1;
    let n = words.iter().rev().fold(BigInt::ZERO, |n, &word| (n << 64) + word);
    let n = if words[top] >> 63 == 1 { n - (BigInt::from(1) << (64 * words.len())) } else { n };
    Fraction::scaled(n, 16 - 8 * i64::from(W::BITS))
}

fn exact_dot<W: PositWidth>(a: &[Posit<W>], b: &[Posit<W>]) -> Option<Fraction> {
    // As integers in units of the smallest product, so that sums need no common denominators.
    let point = 8 * i64::from(W::BITS) - 16;
    let mut sum = BigInt::ZERO;
    for (&x, &y) in a.iter().zip(b) {
        let term = value(x)?.times(&value(y)?);
        sum += (term.numerator << point) / term.denominator;
    }
    Some(Fraction::scaled(sum, -point))
}

/// A number that is not NaR.
fn number<W: PositWidth>(source: &mut Draws) -> Posit<W> {
    std::iter::repeat_with(|| any_posit(source)).find(|x| !x.is_nar()).expect("there is no end")
}

fn random_dots<W: PositWidth>(count: usize) {
    let mut source = Draws::new(W::BITS.into());
    for _ in 0..count {
        let length = 1 + source.below(16);
        let mut a: Vec<Posit<W>> = (0..length).map(|_| number(&mut source)).collect();
        let mut b: Vec<Posit<W>> = (0..length).map(|_| number(&mut source)).collect();
        // Half of the sums cancel almost: the first terms come again with the other sign.
        if source.below(2) == 0 {
            let again: Vec<Posit<W>> = a.iter().map(|&x| -x).collect();
            a.extend(&again[1..]);
            let others = b.clone();
            b.extend(&others[1..]);
        }
        let exact = exact_dot(&a, &b).expect("numbers");
        let mut quire = Quire::new();
        quire.add_products(&a, &b);
        assert!(held(&quire).compare(&exact).is_eq(), "{a:?} . {b:?}");
        let found = quire.to_posit();
        assert!(is_nearest(Some(&exact), found), "{a:?} . {b:?} is not {found}");
        assert_eq!(Quire::dot(&a, &b), found);
        check_order_and_parts(&a, &b, &quire, &mut source);
    }
}

/// Backwards, in two parts, subtracted from nothing, and taken away again.
fn check_order_and_parts<W: PositWidth>(
    a: &[Posit<W>],
    b: &[Posit<W>],
    whole: &Quire<W>,
    source: &mut Draws,
) {
    let mut backwards = Quire::new();
    a.iter().zip(b).rev().for_each(|(&x, &y)| backwards.add_product(y, x));
    assert_eq!(&backwards, whole);
    let cut = source.below(a.len() + 1);
    let (mut left, mut right) = (Quire::new(), Quire::new());
    left.add_products(&a[..cut], &b[..cut]);
    right.add_products(&a[cut..], &b[cut..]);
    left.merge(&right);
    assert_eq!(&left, whole);
    let mut minus = Quire::new();
    a.iter().zip(b).for_each(|(&x, &y)| minus.sub_product(x, y));
    minus.negate();
    assert_eq!(&minus, whole);
    minus.unmerge(whole);
    assert_eq!(minus, Quire::new());
    assert!(minus.to_posit().is_zero());
}

#[test]
fn random_dot_products_are_exact_and_rounded_once() {
    every_width!(random_dots(cases(4000)));
}

/// `cargo test --release -p palinode-num posit -- --ignored`
#[test]
#[ignore = "a minute; the command is above"]
fn a_hundred_thousand_random_dot_products_per_width() {
    every_width!(random_dots(100_000));
}

#[test]
fn every_product_of_eight_bits() {
    for i in 0..1u64 << 16 {
        let (a, b): (Posit8, Posit8) = (from_bits(i), from_bits(i >> 8));
        let mut quire = Quire::new();
        quire.add_product(a, b);
        assert_eq!(quire.to_posit(), a * b, "{a} * {b}");
        quire += a;
        assert_eq!(quire.to_posit(), a.fused_mul_add(b, a));
        quire -= b;
        let exact = value(a).zip(value(b)).map(|(x, y)| x.times(&y).plus(&x).plus(&y.negated()));
        assert!(is_nearest(exact.as_ref(), quire.to_posit()));
        assert_eq!(quire.is_nar(), a.is_nar() || b.is_nar());
    }
}

#[test]
fn two_to_the_31_products_of_the_largest_are_one_too_many() {
    fn of<W: PositWidth>() {
        let max = Posit::<W>::MAX;
        let most = (1u64 << 31) - 1;
        for sign in [max, -max] {
            let mut quire = Quire::new();
            quire.add_product_times(sign, max, most);
            assert!(!quire.is_nar());
            assert_eq!(quire.to_posit(), sign);
            let full = quire.clone();
            // What is left of the range can still be filled: all but the last unit.
            quire.add_product(sign, max);
            assert!(quire.is_nar() && quire.to_posit().is_nar(), "{quire:?}");
            // NaR stays, whatever is added or merged, until it is cleared.
            quire.add_product(-sign, max);
            quire.negate();
            quire.merge(&full);
            assert!(quire.is_nar());
            let mut other = full.clone();
            other.merge(&quire);
            assert!(other.is_nar());
            quire.clear();
            assert_eq!(quire, Quire::new());

            let mut once = full.clone();
            once.add_product_times(sign, max, 1);
            assert!(once.is_nar());
            let mut twice = full.clone();
            twice.merge(&full);
            assert!(twice.is_nar());
            // Away from the border it goes on, one step at a time.
            let mut back = full.clone();
            back.add_product(-sign, max);
            back.add_product(sign, max);
            assert_eq!(back, full);
            back.unmerge(&full);
            assert_eq!(back, Quire::new());
        }
    }
    every_width!(of());
}

#[test]
fn the_range_ends_at_the_last_unit() {
    // 2^31 - 1 largest products and a sum just below one more: the largest magnitude a quire of 8 bits holds
    // is 2^127 - 1 units.
    let (max, min) = (Posit8::MAX, Posit8::MIN_POSITIVE);
    let mut quire = Quire::new();
    quire.add_product_times(max, max, (1 << 31) - 1);
    quire.add_product_times(max, min, (1 << 48) - 1);
    quire.add_product_times(min, min, (1 << 48) - 1);
    let mut full = quire.clone();
    assert!(!quire.is_nar());
    assert_eq!(quire.to_words(), vec![u64::MAX, u64::MAX >> 1]);
    quire.add_product(min, min);
    assert!(quire.is_nar());
    assert_eq!(quire.to_words(), vec![0, 1 << 63]);
    // The same below zero: -2^127 units is the encoding of NaR.
    full.negate();
    assert_eq!(full.to_words(), vec![1, 1 << 63]);
    full.sub_product(min, min);
    assert!(full.is_nar());
}

#[test]
fn many_at_once_is_one_by_one() {
    fn of<W: PositWidth>() {
        let mut source = Draws::new(5);
        for _ in 0..200 {
            let (a, b): (Posit<W>, Posit<W>) = (any_posit(&mut source), any_posit(&mut source));
            let times = source.below(50);
            let (mut once, mut many) = (Quire::new(), Quire::new());
            once.add_product_times(a, b, times as u64);
            (0..times).for_each(|_| many.add_product(a, b));
            assert_eq!(once, many, "{times} times {a} * {b}");
        }
    }
    every_width!(of());
}

#[test]
fn room_runs_out_and_comes_back() {
    // Close to the end of the range every step is checked, and steps away from it are taken as they come.
    let (max, one) = (Posit32::MAX, Posit32::ONE);
    let mut quire = Quire32::new();
    quire.add_product_times(max, max, (1 << 31) - 3);
    for _ in 0..100 {
        quire.add_product(max, max);
        quire.add_product(one, one);
        quire.sub_product(max, max);
    }
    quire.add_product_times(-max, max, (1 << 31) - 3);
    assert_eq!(quire.to_posit(), 100.0);
    assert_eq!(format!("{:?}", Quire::<i8>::new()), "Quire8(00000000000000000000000000000000: 0)");
}

/// What a quire that looks at every step holds after these products, in units of its last bit: `None` once it
/// has left the range.
fn step_by_step<W: PositWidth>(start: BigInt, a: &[Posit<W>], b: &[Posit<W>]) -> Option<BigInt> {
    let point = 8 * i64::from(W::BITS) - 16;
    let end = BigInt::from(1) << (16 * W::BITS - 1);
    a.iter().zip(b).try_fold(start, |sum, (&x, &y)| {
        let term = value(x)?.times(&value(y)?);
        let sum = sum + (term.numerator << point) / term.denominator;
        (sum.magnitude() < end.magnitude()).then_some(sum)
    })
}

/// Slices that begin with room for few products: it runs out before, in and after blocks, and comes back or
/// does not.
#[test]
fn room_runs_out_inside_a_slice() {
    fn of<W: PositWidth>() {
        let mut source = Draws::new(23);
        let max = Posit::<W>::MAX;
        let unit = value(max).expect("a number");
        let largest = unit.times(&unit).numerator << (8 * W::BITS - 16);
        let (mut left, mut stayed) = (0, 0);
        for case in 0..600 {
            let times = (1 << 31) - 1 - case as u64 % 50;
            let length = 1 + source.below(80);
            let (mut a, mut b): (Vec<Posit<W>>, Vec<Posit<W>>) = (Vec::new(), Vec::new());
            for _ in 0..length {
                // Largest products of both signs, more of those that lead outwards in every other case;
                // numbers, zeros.
                let outwards = source.below(4) < 2 + case % 2;
                let (x, y) = match source.below(8) {
                    0 => (number(&mut source), number(&mut source)),
                    1 => (Posit::ZERO, number(&mut source)),
                    2 => (Posit::MIN_POSITIVE, Posit::MIN_POSITIVE),
                    _ => (if outwards { max } else { -max }, max),
                };
                a.push(x);
                b.push(y);
            }
            let mut by_slice = Quire::new();
            by_slice.add_product_times(max, max, times);
            let mut one_by_one = by_slice.clone();
            by_slice.add_products(&a, &b);
            a.iter().zip(&b).for_each(|(&x, &y)| one_by_one.add_product(x, y));
            assert_eq!(by_slice, one_by_one, "{times} and {a:?} . {b:?}");
            let expected = step_by_step(&largest * times, &a, &b);
            assert_eq!(by_slice.is_nar(), expected.is_none(), "{times} and {a:?} . {b:?}");
            match expected {
                Some(units) => {
                    let exact = Fraction::scaled(units, 16 - 8 * i64::from(W::BITS));
                    assert!(held(&by_slice).compare(&exact).is_eq(), "{times} and {a:?} . {b:?}");
                    stayed += 1;
                }
                None => left += 1,
            }
        }
        assert!(left > 50 && stayed > 50, "{left} left the range, {stayed} stayed");
    }
    every_width!(of());
}

/// NaRs and zeros at every place of blocks and of what is left over after them.
#[test]
fn nars_and_zeros_inside_blocks() {
    fn of<W: PositWidth>() {
        let mut source = Draws::new(29);
        for length in [16, 17, 32, 47] {
            let numbers: [Vec<Posit<W>>; 2] =
                [0, 1].map(|_| (0..length).map(|_| number(&mut source)).collect());
            for place in 0..length {
                for side in [0, 1] {
                    let mut factors = numbers.clone();
                    factors[side][place] = Posit::ZERO;
                    let exact = exact_dot(&factors[0], &factors[1]).expect("numbers");
                    let mut quire = Quire::new();
                    quire.add_products(&factors[0], &factors[1]);
                    assert!(held(&quire).compare(&exact).is_eq(), "zero at {place} of {length}");
                    // Not even a zero takes a NaR away.
                    for other in [Posit::ZERO, numbers[1 - side][place]] {
                        factors[side][place] = Posit::NAR;
                        factors[1 - side][place] = other;
                        let mut quire = Quire::new();
                        quire.add_products(&factors[0], &factors[1]);
                        assert!(quire.is_nar() && quire.to_posit().is_nar(), "NaR at {place} of {length}");
                        assert!(Quire::dot(&factors[0], &factors[1]).is_nar());
                        // It stays, and is forgotten as a whole.
                        quire.add_products(&numbers[0], &numbers[1]);
                        assert!(quire.is_nar());
                        quire.clear();
                        quire.add_products(&numbers[0], &numbers[1]);
                        assert_eq!(quire.to_posit(), Quire::dot(&numbers[0], &numbers[1]));
                    }
                }
            }
        }
    }
    every_width!(of());
}

#[test]
#[should_panic(expected = "quire: the slices have 1 and 2 elements")]
fn slices_of_unequal_length_are_refused() {
    assert_eq!(Quire32::dot(&[], &[]), Posit32::ZERO);
    let _ = Quire32::dot(&[Posit32::ONE], &[Posit32::ONE; 2]);
}

#[test]
fn accumulators_take_posits() {
    let mut source = Draws::new(17);
    let terms: Vec<Posit16> =
        (0..500).map(|_| Posit16::from_f64(source.below(1000) as f64 / 7.0 - 60.0)).collect();
    let exact = exact_dot(&terms, &terms).expect("numbers");
    assert!(is_nearest(Some(&exact), Accumulator::Exact.dot(&terms, &terms)));
    let ones = vec![Posit16::ONE; terms.len()];
    let sum = exact_dot(&terms, &ones).expect("numbers");
    let found = Accumulator::Exact.sum(&terms);
    assert!(is_nearest(Some(&sum), found));
    // Sums of 16 bits, one after the other, go astray; compensated ones hardly do.
    let apart = |x: Posit16| (x.to_f64() - found.to_f64()).abs() / found.to_f64().abs();
    let mut naive = Naive::default();
    naive.add_slice(&terms);
    assert!(apart(naive.total()) > 8.0 * apart(Accumulator::Compensated.sum(&terms)));
    let mut parts = Quire::default();
    terms.chunks(7).for_each(|chunk| {
        let mut part = Quire::<i16>::default();
        part.add_slice(chunk);
        Accumulate::merge(&mut parts, &part);
    });
    assert_eq!(parts.total(), found);
    let mut with_nar = Compensated::default();
    with_nar.add_slice(&[Posit16::ONE, Posit16::NAR]);
    assert!(with_nar.total().is_nar());
}
