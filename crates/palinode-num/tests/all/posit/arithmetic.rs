//! Arithmetic, order and whole numbers of posits against exact fractions: 8 bits exhaustively, the others at
//! random.

use super::exact::{Fraction, any_posit, bits_of, cases, from_bits, is_nearest, value};
use num_bigint::BigInt;
use palinode_num::{Draws, Posit, Posit8, Posit16, Posit32, PositWidth, Scalar};
use std::cmp::Ordering;

fn exact_remainder(a: &Fraction, b: &Fraction) -> Fraction {
    let whole = Fraction::scaled(a.over(b).truncated(), 0);
    a.plus(&whole.times(b).negated())
}

/// Every operation of two arguments.
fn check_pair<W: PositWidth>(a: Posit<W>, b: Posit<W>) {
    let both = value(a).zip(value(b));
    let both = both.as_ref();
    let divisible = both.filter(|(_, y)| !y.is_zero());
    let results = [
        ("+", a + b, both.map(|(x, y)| x.plus(y))),
        ("-", a - b, both.map(|(x, y)| x.plus(&y.negated()))),
        ("*", a * b, both.map(|(x, y)| x.times(y))),
        ("/", a / b, divisible.map(|(x, y)| x.over(y))),
        ("%", a % b, divisible.map(|(x, y)| exact_remainder(x, y))),
    ];
    for (name, found, expected) in results {
        assert!(is_nearest(expected.as_ref(), found), "{a} {name} {b} is not {found}");
    }
    let ordered = match both {
        Some((x, y)) => x.compare(y),
        // NaR equals itself and is below everything.
        None => b.is_nar().cmp(&a.is_nar()),
    };
    assert_eq!(a.cmp(&b), ordered, "{a} <=> {b}");
    assert_eq!(a == b, ordered.is_eq());
    assert_eq!(a.partial_cmp(&b), Some(ordered));
    assert_eq!(a.less(b), both.is_some() && ordered.is_lt());
    assert_eq!(a.less_eq(b), both.is_some() && ordered.is_le());
    assert_eq!(a.equal(b), both.is_some() && ordered.is_eq());
    let (smaller, larger) = match (a.is_nar(), b.is_nar()) {
        (false, false) => (Ord::min(a, b), Ord::max(a, b)),
        // A NaR is ignored.
        (true, _) => (b, b),
        (_, true) => (a, a),
    };
    assert_eq!((a.min(b), a.max(b)), (smaller, larger));
    let signed = if b.is_negative() { -a.abs() } else { a.abs() };
    assert_eq!(a.copysign(b), if b.is_nar() { b } else { signed }, "{a} with the sign of {b}");
    let strong = if a.is_zero() || b.is_zero() { Posit::ZERO } else { a * b };
    assert_eq!(a.strong_mul(b), strong);
}

fn check_fused<W: PositWidth>(a: Posit<W>, b: Posit<W>, c: Posit<W>) {
    let exact = value(a).zip(value(b)).zip(value(c)).map(|((x, y), z)| x.times(&y).plus(&z));
    let found = a.mul_add(b, c);
    assert!(is_nearest(exact.as_ref(), found), "{a} * {b} + {c} is not {found}");
}

/// Every operation of one argument that arithmetic can judge.
fn check_one<W: PositWidth>(a: Posit<W>) {
    let exact = value(a);
    let exact = exact.as_ref();
    assert!(is_nearest(exact, a), "{a} must be nearest to itself");
    assert!(is_nearest(exact.map(Fraction::negated).as_ref(), -a));
    assert!(is_nearest(exact.map(Fraction::abs).as_ref(), a.abs()));
    let one = Fraction::scaled(1, 0);
    let inverse = exact.filter(|x| !x.is_zero()).map(|x| one.over(x));
    assert!(is_nearest(inverse.as_ref(), a.recip()), "1 / {a} is not {}", a.recip());
    check_root(a);
    check_whole(a);
    let signum = exact.map(|_| if a < Posit::ZERO { one.negated() } else { one.clone() });
    assert!(is_nearest(signum.as_ref(), a.signum()));
    assert_eq!(a.relu(), if a.is_negative() { Posit::ZERO } else { a });
    assert_eq!(a.powi(2), a * a);
    assert_eq!(a.powi(-1), a.recip());
    let cube = exact.map(|x| x.times(x).times(x));
    // A cube of 64 bits is rounded from 106: see the guarantees in the library.
    if W::BITS <= 32 {
        assert!(is_nearest(cube.as_ref(), a.powi(3)), "{a}^3 is not {}", a.powi(3));
    }
}

/// A root is right if its borders, squared, lie on the right sides; borders are posits of the next width.
fn check_root<W: PositWidth>(a: Posit<W>) {
    let root = a.sqrt();
    if a.is_nar() || a.is_negative() || a.is_zero() {
        return assert_eq!(root, if a.is_zero() { a } else { Posit::NAR });
    }
    let code = bits_of(root);
    let square = |code: u128| {
        let border = super::exact::standard(code, W::BITS + 1).expect("a number");
        border.times(&border)
    };
    let exact = value(a).expect("a number");
    // The root of a posit of n bits is never on a border: its square would have more bits than n.
    assert!(square(2 * code - 1).compare(&exact).is_lt(), "the root of {a} is above {root}");
    assert!(square(2 * code + 1).compare(&exact).is_gt(), "the root of {a} is below {root}");
}

fn check_whole<W: PositWidth>(a: Posit<W>) {
    let Some(exact) = value(a) else {
        return assert!(a.floor().is_nar() && a.ceil().is_nar() && a.round().is_nar() && a.trunc().is_nar());
    };
    let cut = exact.truncated();
    let rest = exact.plus(&Fraction::scaled(-&cut, 0));
    let (positive, negative) = (!a.is_negative() && !rest.is_zero(), a.is_negative() && !rest.is_zero());
    let half = !rest.abs().compare(&Fraction::scaled(1, -1)).is_lt();
    let step = |up: bool, down: bool| &cut + i32::from(up) - i32::from(down);
    let check = |name: &str, found: Posit<W>, expected: BigInt| {
        let expected = Fraction::scaled(expected, 0);
        let found_value = value(found).expect("a number");
        assert!(found_value.compare(&expected).is_eq(), "{name} of {a} is not {found}");
    };
    check("trunc", a.trunc(), cut.clone());
    check("floor", a.floor(), step(false, negative));
    check("ceil", a.ceil(), step(positive, false));
    check("round", a.round(), step(half && positive, half && negative));
    assert_eq!(a.fract(), a - a.trunc());
}

#[test]
fn eight_bits_exhaustively() {
    for i in 0..256 {
        let a: Posit8 = from_bits(i);
        check_one(a);
        for j in 0..256 {
            check_pair(a, from_bits(j));
        }
        for n in -8..=8 {
            check_power(a, n);
        }
    }
}

/// Powers by whole numbers are exact fractions.
fn check_power<W: PositWidth>(a: Posit<W>, n: i32) {
    let one = Fraction::scaled(1, 0);
    let positive = |x: &Fraction| (0..n.abs()).fold(one.clone(), |power, _| power.times(x));
    let exact = match value(a) {
        // Zero to the power of 0 is 1, to that of a negative number a pole.
        Some(x) if x.is_zero() && n < 0 => None,
        x => x.map(|x| if n < 0 { one.over(&positive(&x)) } else { positive(&x) }),
    };
    assert!(is_nearest(exact.as_ref(), a.powi(n)), "{a}^{n} is not {}", a.powi(n));
    let through_posit = a.powf(Posit::from_int(n));
    if n.abs() <= 4 {
        assert!(is_nearest(exact.as_ref(), through_posit), "{a}^{n} is not {through_posit}");
    }
}

/// A checker that accepted a neighbour would accept everything here.
#[test]
fn the_checker_sees_one_ulp() {
    fn of<W: PositWidth>() {
        let mut source = Draws::new(1);
        for _ in 0..300 {
            let (a, b): (Posit<W>, Posit<W>) = (any_posit(&mut source), any_posit(&mut source));
            let (Some(x), Some(y)) = (value(a), value(b)) else { continue };
            let (exact, found) = (x.times(&y), a * b);
            let below = -((-found).next_up());
            assert!(is_nearest(Some(&exact), found), "{a} * {b}");
            assert!(!is_nearest(Some(&exact), found.next_up()), "{a} * {b} is not {}", found.next_up());
            assert!(!is_nearest(Some(&exact), below), "{a} * {b} is not {below}");
            assert!(!is_nearest(Some(&exact), -found) || found.is_zero());
            assert!(!is_nearest(None, found) && !is_nearest(Some(&exact), Posit::<W>::NAR));
        }
    }
    every_width!(of());
}

#[test]
fn every_number_of_sixteen_bits() {
    for i in 0..1 << 16 {
        check_one::<i16>(from_bits(i));
    }
}

fn random<W: PositWidth>(count: usize) {
    let mut source = Draws::new(u64::from(W::BITS));
    for _ in 0..count {
        let (a, b, c) = (any_posit::<W>(&mut source), any_posit(&mut source), any_posit(&mut source));
        check_pair(a, b);
        check_one(a);
        check_fused(a, b, c);
        // Sums that almost cancel, and quotients next to 1.
        let close = (0..source.below(4)).fold(a, |x, _| x.next_up());
        check_pair(a, -close);
        check_pair(a, close);
        check_fused(a, b, -(a * b));
        check_fused(a, b, -(a * b).next_up());
    }
}

#[test]
fn random_and_hard_cases() {
    every_width!(random(cases(10_000)));
}

/// `cargo test --release -p palinode-num posit -- --ignored`: a million cases per width, and every fused
/// product of 8 bits.
#[test]
#[ignore = "minutes; the command is above"]
fn a_million_random_and_hard_cases() {
    random::<i16>(1_000_000);
    random::<i32>(1_000_000);
    random::<i64>(1_000_000);
}

#[test]
#[ignore = "a minute; the command is above"]
fn every_fused_product_of_eight_bits() {
    for i in 0..1 << 24 {
        check_fused::<i8>(from_bits(i), from_bits(i >> 8), from_bits(i >> 16));
    }
}

#[test]
fn the_ends_hold_everything() {
    fn of<W: PositWidth>() {
        let (max, min) = (Posit::<W>::MAX, Posit::<W>::MIN_POSITIVE);
        let (zero, one, nar) = (Posit::<W>::ZERO, Posit::<W>::ONE, Posit::<W>::NAR);
        assert_eq!((max + max, max * max, -max - max), (max, max, -max));
        assert_eq!((min * min, -min * min, min / max), (min, -min, min));
        assert_eq!((min - min, max - max), (zero, zero));
        assert_eq!((one / zero, zero / zero, -zero, -nar), (nar, nar, zero, nar));
        assert_eq!((nar + one, nar * zero, nar - nar, zero / nar, one % zero), (nar, nar, nar, nar, nar));
        assert_eq!((max.sqrt(), (-min).sqrt(), nar.sqrt()), (one / min.sqrt(), nar, nar));
        assert!(nar < -max && nar == nar && max.next_up() == nar && zero.next_up() == min);
        assert_eq!(max * min, one);
    }
    every_width!(of());
}

#[test]
fn literals_take_the_type_of_the_posit() {
    let x = Posit32::from_f64(0.1);
    assert_eq!((x == 0.1, 0.2 > x, x < 0.1, x.partial_cmp(&0.2)), (true, true, false, Some(Ordering::Less)));
    assert_eq!(0.1, x);
    assert_eq!(x * 3.0, x * Posit32::from_f64(3.0));
    assert_eq!(3.0 - x, Posit32::from_f64(3.0) - x);
    let mut y = x;
    y += 1.0;
    y /= x;
    y %= 4.0;
    assert_eq!(y, (x + 1.0) / x % 4.0);
    assert_eq!([x, x, x].iter().sum::<Posit32>(), x + x + x);
    assert_eq!([x, x, x].into_iter().product::<Posit32>(), x * x * x);
    assert!((Posit16::ONE + f64::INFINITY).is_nar());
}

/// No posit is infinite, but an `f64` beside it may be: a search that starts at infinity finds its minimum.
#[test]
fn floats_that_are_no_posits_compare_as_floats_do() {
    fn of<W: PositWidth>() {
        let (max, nar) = (Posit::<W>::MAX, Posit::<W>::NAR);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for x in [-max, Posit::ZERO, Posit::ONE, max] {
            let below = Some(Ordering::Less);
            assert_eq!((x.partial_cmp(&inf), (-inf).partial_cmp(&x)), (below, below), "{x}");
            assert_eq!((inf.partial_cmp(&x), x == inf, inf == x), (Some(Ordering::Greater), false, false));
        }
        for x in [-max, Posit::ONE, max, nar] {
            assert_eq!(
                (x.partial_cmp(&nan), nan.partial_cmp(&x), x == nan, nan == x),
                (None, None, false, false)
            );
        }
        for v in [inf, -inf] {
            assert_eq!(
                (nar.partial_cmp(&v), v.partial_cmp(&nar), nar == v, v == nar),
                (None, None, false, false)
            );
        }
        // With finite ones the order of the standard holds.
        assert_eq!(
            (nar.partial_cmp(&-1e300), (-1e300).partial_cmp(&nar)),
            (Some(Ordering::Less), Some(Ordering::Greater))
        );
    }
    every_width!(of());
}
