//! Functions of posits against mpmath: every argument of 8 and 16 bits and random ones of 32 and 64
//! (`reference/posits.tsv`), hard ones of these (`reference/posits_hard.tsv`), and as many as you like: a
//! million of 32 and a million of 64 bits, random and hard, are
//!
//! ```text
//! python3 reference/posits_long.py 35000 > table.tsv
//! PALINODE_POSIT_TABLE=$PWD/table.tsv cargo test --release -p palinode-num posit::functions -- --ignored --nocapture
//! ```

use super::exact::{Fraction, any_posit, bits_of, cases, from_bits, is_nearest, standard};
use crate::table::read;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use palinode_num::{Constant, DoubleDouble, Draws, Posit, Posit16, Posit32, Posit64, PositWidth, Scalar};

fn apply<S: Scalar>(op: &str, x: S, y: Option<S>) -> S {
    crate::apply::apply(op, None, &[x, y.unwrap_or(x)])
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text} is not hexadecimal"))
}

/// FNV-1a.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A function of one or two arguments, or a polygamma function of this order, from encodings to an encoding.
fn encoded<W: PositWidth>(op: &str, order: Option<i32>, x: u64, y: Option<u64>) -> u64 {
    bits_of(crate::apply::apply(op, order, &[x, y.unwrap_or(x)].map(from_bits::<W>))) as u64
}

/// The hash of a function of two arguments over many pairs of encodings: see `reference/posits.py`.
fn hash_of_pairs<W: PositWidth>(op: &str, pairs: impl Iterator<Item = (u64, u64)>) -> u64 {
    let results = pairs.map(|(x, y)| encoded::<W>(op, None, x, Some(y)));
    hash(results.flat_map(|bits| (0..W::BITS / 8).map(move |byte| (bits >> (8 * byte)) as u8)))
}

/// Every argument of 8 and of 16 bits (every 8th for polygamma functions), random ones of 32 and 64.
#[test]
fn functions_are_correctly_rounded() {
    let (mut all, mut pairs_of, mut wide, mut polygammas) = (0, 0, 0, 0);
    for row in read("posits.tsv") {
        let (op, y, result) = (row.get("op"), row.get("y"), row.get("result"));
        let order: Option<i32> = (op == "polygamma").then(|| y.parse().expect("an order"));
        polygammas += usize::from(order.is_some());
        match row.get("width") {
            "8" if y == "all" => {
                let pairs = (0..256).flat_map(|x| (0..256).map(move |y| (x, y)));
                let found = hash_of_pairs::<i8>(op, pairs);
                assert_eq!(found, hexadecimal(result), "{op} of some pair of 8 bits");
                pairs_of += 1;
            }
            "16" if y == "all" => {
                // The pairs of `reference/posits.py`, drawn as it draws them.
                let word = |at: u64| {
                    let z = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(16);
                    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                    z ^ z >> 31
                };
                let pairs = (0..1 << 15).map(word).map(|word| (word & 0xffff, word >> 16 & 0xffff));
                let found = hash_of_pairs::<i16>(op, pairs);
                assert_eq!(found, hexadecimal(result), "{op} of some pair of 16 bits");
                pairs_of += 1;
            }
            "8" => {
                for i in 0..256 {
                    let expected = hexadecimal(&result[2 * i..2 * i + 2]);
                    assert_eq!(
                        encoded::<i8>(op, order, i as u64, None),
                        expected,
                        "{op} {order:?} of {i:02x}"
                    );
                }
                all += 1;
            }
            "16" => {
                let step = if order.is_some() { 8 } else { 1 };
                let results = (0..1 << 16).step_by(step).map(|i| encoded::<i16>(op, order, i, None) as u16);
                let found = hash(results.flat_map(u16::to_le_bytes));
                assert_eq!(found, hexadecimal(result), "{op} {order:?} of some number of 16 bits");
                all += 1;
            }
            width => {
                let encoded = if width == "32" { encoded::<i32> } else { encoded::<i64> };
                let second = (order.is_none() && y != "-").then(|| hexadecimal(y));
                let x = hexadecimal(row.get("x"));
                let found = encoded(op, order, x, second);
                assert_eq!(found, hexadecimal(result), "{op} of {x:x} and {y} in {width} bits");
                wide += 1;
            }
        }
    }
    let found = (all, pairs_of, wide, polygammas);
    assert!(
        all >= 52 && pairs_of == 6 && wide >= 2000 && polygammas >= 400,
        "reference/posits.tsv: {found:?}"
    );
}

/// The quick way (through `f64`) must agree with the sure way (through double-double), which it stands in
/// for.
#[test]
fn the_quick_way_agrees_with_the_sure_way() {
    const UNARY: [&str; 24] = [
        "cbrt", "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "logistic", "softplus",
    ];
    const OF_TWO: [&str; 3] = ["hypot", "atan2", "powf"];
    let mut source = Draws::new(3);
    let mut powers = 0;
    for _ in 0..cases(100) {
        let (x, y): (Posit32, Posit32) = (any_posit(&mut source), any_posit(&mut source));
        if x.is_nar() || y.is_nar() {
            continue;
        }
        // Powers of numbers next to one by moderate exponents, which are neither ends of the range nor 1.
        let near_one = Posit32::ONE + Posit32::from_f64((source.below(2001) as f64 - 1000.0) / 1024.0);
        let moderate = Posit32::from_f64(source.below(1 << 20) as f64 / 65536.0 - 8.0);
        for (op, x, y) in UNARY
            .into_iter()
            .map(|op| (op, x, None))
            .chain(OF_TWO.map(|op| (op, x, Some(y))))
            .chain([("powf", near_one, Some(moderate)), ("powf", near_one, Some(y))])
        {
            let slope = y.map_or(0.0, |y| (x.to_f64() / y.to_f64()).abs());
            if op == "atan2" && slope < 2f64.powi(-40) {
                continue; // double-double does not tell it from its slope: see the next test
            }
            let precise = apply(op, x.to_double_double(), y.map(Posit32::to_double_double));
            let found = apply(op, x, y);
            if precise.hi().is_finite() && (precise.hi() != 0.0 || found.is_zero()) {
                assert_eq!(found, Posit::from_double_double(precise), "{op} of {x:e} and {y:?}");
                powers += usize::from(op == "powf" && !found.is_zero() && found.abs() != Posit32::ONE);
            }
        }
    }
    assert!(powers >= cases(100), "only {powers} powers were compared");
}

/// Where `y / x` is exactly on a border and so small that `atan2` differs from it beyond all digits, it is
/// rounded down all the same.
#[test]
fn tiny_angles_next_to_borders_are_rounded_towards_zero() {
    fn of<W: PositWidth>(codes: impl Iterator<Item = u64>) {
        for code in codes {
            let below: Posit<W> = from_bits(code);
            let border = standard(2 * u128::from(code) + 1, W::BITS + 1).expect("a number");
            // The border as a quotient: powers of two times its odd numerator.
            let shift = Posit::<W>::MAX.sqrt().sqrt();
            let size =
                border.numerator.to_f64().expect("a float") / border.denominator.to_f64().expect("a float");
            let (y, x) = (Posit::<W>::from_f64(size * shift.to_f64()), shift);
            if y.to_f64() != size * shift.to_f64() {
                continue; // it has too many bits
            }
            assert_eq!(y.atan2(x), below, "{y:e} / {x:e}");
            assert_eq!((-y).atan2(x), -below);
        }
    }
    of::<i16>(1..64);
    of::<i32>((1..4096).chain((1..1 << 20).step_by(997)));
}

#[test]
fn powers_are_those_of_exact_integers() {
    for base in 1..40i32 {
        for n in -6..=6 {
            let exact = DoubleDouble::from(base).powi(n);
            assert_eq!(Posit64::from_int(-base).powi(n).abs(), Posit64::from_double_double(exact));
            assert_eq!(
                Posit32::from_int(base).powf(Posit32::from_int(n)),
                Posit32::from_double_double(exact)
            );
            let sign = Posit16::from_int(if n % 2 == 0 { 1 } else { -1 });
            let expected = Posit16::from_double_double(exact) * sign;
            assert_eq!(Posit16::from_int(-base).powi(n), expected);
            assert_eq!(Posit16::from_int(-base).powf(Posit16::from_int(n)), expected);
        }
    }
}

#[test]
fn poles_and_domains_are_nar_and_limits_are_the_ends() {
    fn of<W: PositWidth>() {
        let p = Posit::<W>::from_f64;
        let (zero, one, max, min) =
            (Posit::<W>::ZERO, Posit::<W>::ONE, Posit::<W>::MAX, Posit::<W>::MIN_POSITIVE);
        let nar = Posit::<W>::NAR;
        let of_logarithms =
            [zero.ln(), zero.log2(), zero.log10(), p(-1.0).ln(), p(-1.0).ln_1p(), p(-2.0).ln_1p()];
        let of_inverses = [p(2.0).asin(), p(-2.0).acos(), p(0.5).acosh(), one.atanh(), p(-1.0).atanh()];
        let of_gammas = [zero.lgamma(), p(-3.0).lgamma(), zero.polygamma(0), p(-2.0).polygamma(1)];
        let of_powers =
            [zero.powi(-3), zero.powf(p(-0.5)), p(-2.0).powf(p(0.5)), p(-2.0).sqrt(), zero.recip()];
        let of_nars = [nar.powi(0), nar.powf(zero), zero.powf(nar)];
        let nars = [&of_logarithms[..], &of_inverses, &of_gammas, &of_powers, &of_nars].concat();
        assert!(nars.iter().all(|x| x.is_nar()), "{nars:?}");
        for op in ["exp", "sin", "cos", "erf", "lgamma", "softplus", "logistic", "cbrt", "atan"] {
            assert!(apply(op, Posit::<W>::NAR, None).is_nar(), "{op}");
        }
        assert!(
            max.hypot(Posit::NAR).is_nar()
                && Posit::NAR.atan2(one).is_nar()
                && Posit::<W>::NAR.polygamma(2).is_nar()
        );
        assert!(Posit::<W>::NAR.relu().is_nar() && Posit::<W>::NAR.clamp(zero, one).is_nar());
        assert_eq!((max.exp(), (-max).exp(), max.exp2(), (-max).exp2()), (max, min, max, min));
        assert_eq!((max.sinh(), (-max).sinh(), max.cosh(), (-max).exp_m1()), (max, -max, max, -one));
        assert_eq!((max.erfc(), (-max).erfc(), max.erf(), max.tanh()), (min, p(2.0), one, one));
        assert_eq!(
            ((-max).logistic(), max.logistic(), (-max).softplus(), max.softplus()),
            (min, one, min, max)
        );
        assert_eq!((max.powi(3), (-max).powi(3), max.powi(-3), (-max).powi(-3)), (max, -max, min, -min));
        assert_eq!((max.powf(max), min.powf(max), max.powf(-max)), (max, min, min));
        assert_eq!((min.polygamma(0), min.polygamma(1), max.polygamma(1)), (-max, max, min));
        assert_eq!((max.polygamma(9), max.polygamma(8)), (min, -min));
        assert_eq!((zero.powi(0), zero.powi(3), zero.powf(one), one.powf(max)), (one, zero, zero, one));
        assert_eq!(
            (zero.sin(), zero.exp_m1(), zero.sinh(), zero.erf(), one.ln()),
            (zero, zero, zero, zero, zero)
        );
        assert_eq!((one.acos(), one.acosh(), one.lgamma(), p(2.0).lgamma()), (zero, zero, zero, zero));
        let pi = Posit::<W>::constant(Constant::Pi);
        assert_eq!((zero.atan2(-one), zero.atan2(one), zero.atan2(zero)), (pi, zero, zero));
        assert_eq!((one.atan2(zero), (-one).atan2(zero)), (pi * 0.5, pi * -0.5));
        assert_eq!((zero.signum(), one.copysign(zero), one.copysign(-max)), (one, one, -one));
    }
    every_width!(of());
}

#[test]
fn constants_are_rounded_once() {
    fn is_rounded<W: PositWidth>(digits: &str, name: Constant) {
        assert_eq!(digits.parse(), Ok(Posit::<W>::constant(name)));
    }
    let text = [
        (Constant::Pi, "3.14159265358979323846264338327950288"),
        (Constant::E, "2.71828182845904523536028747135266250"),
        (Constant::Ln2, "0.693147180559945309417232121458176568"),
        (Constant::Ln10, "2.30258509299404568401799145468436421"),
        (Constant::TwoOverSqrtPi, "1.12837916709551257389615890312154517"),
    ];
    for (name, digits) in text {
        every_width!(is_rounded(digits, name));
    }
}

/// A row of `reference/posits_long.py`, whose result is not rounded: whether ours is what it rounds to.
fn is_right<W: PositWidth>(op: &str, x: &str, y: &str, exact: &Fraction) -> bool {
    let posit = |text: &str| from_bits::<W>(hexadecimal(text));
    is_nearest(Some(exact), apply(op, posit(x), (y != "-").then(|| posit(y))))
}

/// How many rows there are of 32 and of 64 bits. All are rounded correctly: also those of 64 bits, of which
/// only half an ulp and 2^-40 is promised, because none of the reference lies so close to a border.
fn check_table(lines: impl Iterator<Item = String>) -> [usize; 2] {
    let (mut counts, mut wrong) = ([0, 0], Vec::new());
    for line in lines.skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[op, width, x, y, m, e] = &cells[..] else { panic!("{line} has not six cells") };
        let m: BigInt = m.parse().unwrap_or_else(|_| panic!("{line}"));
        let exact = Fraction::scaled(m, e.parse().unwrap_or_else(|_| panic!("{line}")));
        let wide = width == "64";
        counts[usize::from(wide)] += 1;
        if !(if wide { is_right::<i64> } else { is_right::<i32> })(op, x, y, &exact) {
            wrong.push(line);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {counts:?} are wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    counts
}

#[test]
fn random_and_hard_cases_of_32_and_64_bits() {
    let text = include_str!("../../../../../reference/posits_hard.tsv");
    let [narrow, wide] = check_table(text.lines().map(String::from));
    assert!(narrow >= 1000 && wide >= 1000, "{narrow} {wide}");
}

#[test]
#[ignore = "needs a table of a million rows; the command is at the top of the file"]
fn a_million_random_and_hard_cases_of_functions() {
    let Ok(path) = std::env::var("PALINODE_POSIT_TABLE") else {
        return println!("skipped: PALINODE_POSIT_TABLE names no table; see tests/all/posit/functions.rs");
    };
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = std::io::BufRead::lines(std::io::BufReader::new(file));
    let [narrow, wide] = check_table(lines.map(|line| line.expect("text")));
    println!("{narrow} functions of 32 bits and {wide} of 64 are rounded correctly");
    assert!(narrow > 0 && wide > 0);
}
