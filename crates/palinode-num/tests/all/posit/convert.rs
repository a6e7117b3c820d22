//! Conversions of posits against exact fractions, and text that reads back.

use super::exact::{Fraction, any_posit, bits_of, cases, from_bits, is_nearest, standard, value};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use palinode_num::{
    DoubleDouble, Draws, Posit, Posit8, Posit16, Posit32, Posit64, PositInteger, PositWidth, Real, Scalar,
};

/// To everything and back.
fn check_from<W: PositWidth>(a: Posit<W>) {
    let exact = value(a);
    let exact = exact.as_ref();
    fn check<V: PositWidth>(exact: Option<&Fraction>, found: Posit<V>) {
        assert!(is_nearest(exact, found), "in {} bits it is not {found}", V::BITS);
    }
    check(exact, a.convert::<i8>());
    check(exact, a.convert::<i16>());
    check(exact, a.convert::<i32>());
    check(exact, a.convert::<i64>());
    if !a.is_nar() {
        // All digits, read by the standard library, which rounds correctly.
        let digits = format!("{a:.320}");
        assert_eq!(a.to_f64(), digits.parse::<f64>().expect("digits"), "{a} as f64");
        assert_eq!(a.to_f32(), digits.parse::<f32>().expect("digits"), "{a} as f32");
        let double = a.to_double_double();
        let sum = Fraction::from_f64(double.hi()).plus(&Fraction::from_f64(double.lo()));
        assert!(sum.compare(exact.expect("a number")).is_eq(), "{a} as double-double");
    } else {
        assert!(a.to_f64().is_nan() && a.to_f32().is_nan() && a.is_nan() && !a.is_finite());
    }
    assert_eq!(Posit::<W>::from_double_double(a.to_double_double()), a);
    if W::BITS <= 32 {
        assert_eq!(Posit::<W>::from_f64(a.to_f64()), a);
    }
    check_integers(a, exact);
}

fn check_integers<W: PositWidth>(a: Posit<W>, exact: Option<&Fraction>) {
    // Twice the number, cut, tells halves; ties go to even.
    let nearest = exact.map(|x| {
        let cut = x.truncated();
        let below = x.compare(&Fraction::scaled(cut.clone(), 0)).is_lt();
        let floor = cut - i32::from(below);
        let from_half = x.plus(&Fraction::scaled(-&floor, 0)).compare(&Fraction::scaled(1, -1));
        let up = from_half.is_gt() || from_half.is_eq() && floor.bit(0);
        floor + i32::from(up)
    });
    macro_rules! check {
        ($($convert:ident)*) => {
            $(assert_eq!(a.to_integer(), nearest.as_ref().and_then(BigInt::$convert), "{a} as an integer");)*
        };
    }
    check!(to_i8 to_u8 to_i16 to_u16 to_i32 to_u32 to_i64 to_u64 to_i128 to_u128 to_isize to_usize);
}

fn check_float<W: PositWidth>(v: f64) {
    let exact = v.is_finite().then(|| Fraction::from_f64(v));
    let found = Posit::<W>::from_f64(v);
    assert!(is_nearest(exact.as_ref(), found), "{v:e} in {} bits is not {found}", W::BITS);
    let single = v as f32;
    let exact = single.is_finite().then(|| Fraction::from_f64(single.into()));
    assert!(is_nearest(exact.as_ref(), Posit::<W>::from_f32(single)));
}

fn check_integer<W: PositWidth, T: PositInteger + Into<BigInt>>(n: T) {
    let found = Posit::<W>::from_integer(n);
    assert!(is_nearest(Some(&Fraction::scaled(n, 0)), found));
}

#[test]
fn eight_and_sixteen_bits_exhaustively() {
    for i in 0..256 {
        check_from::<i8>(from_bits(i));
    }
    // Each conversion is judged by a few multiplications of big integers: every number would take ten
    // seconds.
    for i in (0..1 << 16).step_by(7) {
        check_from::<i16>(from_bits(i));
    }
}

#[test]
fn integers_of_sixteen_bits_exhaustively() {
    for n in i16::MIN..=i16::MAX {
        check_integer::<i8, i16>(n);
        check_integer::<i8, u16>(n as u16);
        check_integer::<i8, i8>(n as i8);
        check_integer::<i8, u8>(n as u8);
        check_integer::<i16, i16>(n);
    }
}

/// Next to every border, where floats are as close to it as floats can be.
fn borders<W: PositWidth>(codes: impl Iterator<Item = u128>) {
    for code in codes {
        let border = standard(2 * code + 1, W::BITS + 1).expect("a number");
        let below: Posit<W> = from_bits(code as u64);
        let wide = below.convert::<i64>().to_double_double();
        // The border is the posit of the next width; take it from its fraction, which an f64 holds.
        let at = border.numerator.to_f64().expect("a float") / border.denominator.to_f64().expect("a float");
        assert!(Fraction::from_f64(at).compare(&border).is_eq() && at > wide.hi());
        for v in [at, at.next_up(), at.next_down()] {
            check_float::<W>(v);
            check_float::<W>(-v);
        }
        // Far finer than an f64: a double-double next to the border.
        let tiny = at * 1e-30;
        assert_eq!(Posit::<W>::from_double_double(DoubleDouble::from_sum(at, -tiny)), below);
        assert_eq!(Posit::<W>::from_double_double(DoubleDouble::from_sum(at, tiny)), below.next_up());
    }
}

#[test]
fn floats_next_to_borders_go_the_right_way() {
    borders::<i8>(1..127);
    borders::<i16>((1..(1 << 15) - 1).step_by(5));
    borders::<i32>((1..1 << 31).step_by(1 << 20));
}

fn random<W: PositWidth>(count: usize) {
    let mut source = Draws::new(7 + u64::from(W::BITS));
    for _ in 0..count {
        check_from(any_posit::<W>(&mut source));
        check_float::<W>(f64::from_bits(source.u64()));
        check_float::<W>(f64::from_bits(source.u64() >> 2 | 1 << 61));
        let (a, b) = (source.u64(), source.u64());
        let shift = source.below(128) as u32;
        let n = ((u128::from(a) << 64) | u128::from(b)) >> shift;
        check_integer::<W, u128>(n);
        check_integer::<W, i128>(n as i128);
        check_integer::<W, i64>(a as i64);
        check_integer::<W, u64>(a);
        check_integer::<W, i32>(a as i32);
        check_integer::<W, u16>(a as u16);
        check_integer::<W, i8>(a as i8);
    }
}

/// `cargo test --release -p palinode-num posit -- --ignored`: a million random and hard numbers per width to
/// and from everything, and every number of 16 bits.
#[test]
#[ignore = "minutes; the command is above"]
fn a_million_conversions() {
    random::<i16>(1_000_000);
    random::<i32>(1_000_000);
    random::<i64>(1_000_000);
    (0..1 << 16).for_each(|i| check_from::<i16>(from_bits(i)));
    borders::<i16>(1..(1 << 15) - 1);
    borders::<i32>((1..1 << 31).step_by(1 << 14));
}

#[test]
fn random_numbers_convert() {
    random::<i8>(cases(300));
    random::<i16>(cases(300));
    random::<i32>(cases(600));
    random::<i64>(cases(600));
    for v in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, 5e-324, f64::MIN_POSITIVE] {
        check_float::<i8>(v);
        check_float::<i64>(v);
    }
}

#[test]
fn widening_is_the_same_number() {
    for i in 0..256 {
        let x: Posit8 = from_bits(i);
        let (y, z, w) = (Posit16::from(x), Posit32::from(x), Posit64::from(x));
        assert!([y.to_f64(), z.to_f64(), w.to_f64()].iter().all(|v| v.to_bits() == x.to_f64().to_bits()));
        assert_eq!((y.convert(), z.convert(), w.convert()), (x, x, x));
    }
}

fn reads_back<W: PositWidth>(a: Posit<W>) {
    assert_eq!(a.to_string().parse(), Ok(a), "{a}");
    assert_eq!(format!("{a:e}").parse(), Ok(a), "{a:e}");
}

/// No decimal with a digit less reads back: of those on either side of the exact value, neither does.
fn is_short<W: PositWidth>(a: Posit<W>) {
    if a.is_nar() || a.is_zero() {
        return;
    }
    let a = a.abs();
    let text = format!("{a:e}");
    let length = text.split('e').next().expect("digits").chars().filter(char::is_ascii_digit).count();
    if length == 1 {
        return;
    }
    let exact = format!("{a:.400e}");
    let (digits, exponent) = exact.split_once('e').expect("an exponent");
    let fewer: String = digits.chars().filter(char::is_ascii_digit).take(length - 1).collect();
    let (below, scale) = (fewer.parse::<i128>().expect("digits"), exponent.parse::<i32>().expect("a power"));
    for near in [below, below + 1] {
        let shorter = format!("{near}e{}", scale - (length as i32 - 2));
        assert_ne!(shorter.parse::<Posit<W>>(), Ok(a), "{text} could be {shorter}");
    }
}

#[test]
fn text_of_eight_and_sixteen_bits_reads_back_and_is_short() {
    for i in 0..256 {
        reads_back::<i8>(from_bits(i));
        is_short::<i8>(from_bits(i));
    }
    for i in 0..1 << 16 {
        reads_back::<i16>(from_bits(i));
    }
    for i in (0..1 << 15).step_by(5).chain(0..2000) {
        is_short::<i16>(from_bits(i));
    }
}

/// Below a power of two, posits are twice as dense as above it, or denser.
#[test]
fn text_of_powers_of_two_is_short() {
    fn of<W: PositWidth>() {
        let largest = 4 * W::BITS as i32 - 8;
        for power in -largest..=largest {
            let a = Posit::<W>::from_f64(f64::from(power).exp2());
            reads_back(a);
            is_short(a);
        }
    }
    every_width!(of());
}

#[test]
fn random_text_reads_back_and_is_short() {
    fn of<W: PositWidth>() {
        let mut source = Draws::new(99);
        for _ in 0..cases(300) {
            let a: Posit<W> = any_posit(&mut source);
            reads_back(a);
            is_short(a);
        }
    }
    of::<i32>();
    of::<i64>();
}

#[test]
fn text_at_a_border_is_decided_by_its_last_digit() {
    // Between 1 and the next posit of 64 bits: 1 + 2^-60, exactly, then a little less and a little more.
    let border = format!("{:.60}", DoubleDouble::from_sum(1.0, 2f64.powi(-60)));
    let next = Posit64::ONE.next_up();
    assert_eq!(border.parse(), Ok(Posit64::ONE));
    let zeros = "0".repeat(500);
    assert_eq!(format!("{border}{zeros}1").parse(), Ok(next));
    let (head, last) = border.split_at(border.len() - 1);
    assert_eq!(last, "5");
    assert_eq!(format!("{head}4{}", "9".repeat(500)).parse(), Ok(Posit64::ONE));
    assert_eq!(bits_of(next), (1 << 62) + 1);
}

#[test]
fn text_forms_and_mistakes() {
    let p = |text: &str| text.parse::<Posit32>();
    assert_eq!(p("NaR"), Ok(Posit32::NAR));
    assert_eq!(p("nar"), Ok(Posit32::NAR));
    assert_eq!(p("-0"), Ok(Posit32::ZERO));
    assert_eq!(p("0e-999999999999999999999"), Ok(Posit32::ZERO));
    assert_eq!(p("1e400"), Ok(Posit32::MAX));
    assert_eq!(p("-1e-400"), Ok(-Posit32::MIN_POSITIVE));
    assert_eq!(p("1e-90"), Ok(Posit32::MIN_POSITIVE));
    assert_eq!(p("-1e90"), Ok(-Posit32::MAX));
    assert_eq!(p("+.5"), Ok(Posit32::from_f64(0.5)));
    for wrong in ["", "inf", "-inf", "NaN", "nan", "1e", "--1", "1.2.3", "x", "-", "NaR1", "infinity"] {
        let error = p(wrong).expect_err(wrong);
        assert!(error.to_string().contains("PAL0601"), "{error}");
    }
    let x = Posit32::from_f64(-1.5);
    assert_eq!(format!("{x} {x:?} {x:.3} {x:e} {x:.2e}"), "-1.5 -1.5 -1.500 -1.5e0 -1.50e0");
    assert_eq!(format!("[{x:6}] [{:>5}] [{:+}]", Posit8::NAR, Posit8::ONE), "[  -1.5] [  NaR] [+1]");
    assert_eq!(
        format!("{} {:.2} {:e} {:.1e}", Posit8::ZERO, Posit8::ZERO, Posit8::ZERO, Posit8::ZERO),
        "0 0.00 0e0 0.0e0"
    );
    assert_eq!(Posit32::from_int(100).to_string(), "100");
}
