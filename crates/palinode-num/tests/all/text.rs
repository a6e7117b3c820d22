//! Decimal text.

use crate::arithmetic::number;
use palinode_num::DoubleDouble;
use proptest::prelude::*;

fn parse(text: &str) -> DoubleDouble {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn text_is_read_correctly_rounded() {
    let power = |n: i32| f64::from(n).exp2();
    let cases = [
        ("0.5", 0.5, 0.0),
        ("-2.25e3", -2250.0, 0.0),
        ("+7", 7.0, 0.0),
        (".125", 0.125, 0.0),
        ("1e22", 1e22, 0.0),
        // 10^23 lies between two f64s and is exact as a pair.
        ("1e23", 1e23, 8388608.0),
        ("9007199254740993", 9007199254740992.0, 1.0),
        // 1 + 2^-80 and 1 - 2^-80, with all their digits.
        (
            "1.00000000000000000000000082718061255302767487140869206996285356581211090087890625",
            1.0,
            power(-80),
        ),
        (
            "0.99999999999999999999999917281938744697232512859130793003714643418788909912109375",
            1.0,
            -power(-80),
        ),
        // The nearest f64 to 1/10 is too large by 5.55...e-18.
        ("0.1", 0.1, -5.551115123125783e-18),
        ("-0.1", -0.1, 5.551115123125783e-18),
        ("5e-324", 5e-324, 0.0),
        ("0.0", 0.0, 0.0),
        ("1e-999999999", 0.0, 0.0),
        ("0e999999999", 0.0, 0.0),
    ];
    for (text, hi, lo) in cases {
        let number = parse(text);
        assert_eq!((number.hi(), number.lo()), (hi, lo), "{text}");
    }
    assert!(parse("-0").hi().is_sign_negative());
    assert_eq!(parse("1e400").hi(), f64::INFINITY);
    assert_eq!(parse("-inf").hi(), f64::NEG_INFINITY);
    assert!(parse("NaN").hi().is_nan());
}

#[test]
fn what_is_not_a_number_is_refused_by_name() {
    for text in ["", "abc", "1.2.3", "1e", "--1", "0x10", "1 2", "e5"] {
        let error = text.parse::<DoubleDouble>().expect_err(text);
        assert!(error.to_string().contains(&format!("{text:?} is not a decimal number")), "{error}");
    }
}

#[test]
fn numbers_are_written_like_f64s_are() {
    for v in [0.0, -0.0, 1.0, -2.5, 1500.0, 0.015625, 1e20, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let number = DoubleDouble::from(v);
        assert_eq!(format!("{number}"), format!("{v}"));
        assert_eq!(format!("{number:10}|{number:<+10}|{number:010}"), format!("{v:10}|{v:<+10}|{v:010}"));
        assert_eq!(format!("{number:.0} {number:.1} {number:.5}"), format!("{v:.0} {v:.1} {v:.5}"));
        assert_eq!(format!("{number:e} {number:.3e}"), format!("{v:e} {v:.3e}"));
    }
    for v in [0.96, 9.96, 99.96, 0.04, 0.06, 1e-5] {
        assert_eq!(format!("{:.1}", DoubleDouble::from(v)), format!("{v:.1}"));
        assert_eq!(format!("{:.1e}", DoubleDouble::from(v)), format!("{v:.1e}"));
    }
}

#[test]
fn few_digits_are_written_where_few_suffice() {
    assert_eq!(format!("{:.31}", parse("0.1")), "0.1000000000000000000000000000000");
    let third = DoubleDouble::from(1) / 3.0;
    let text = third.to_string();
    assert!(text.starts_with("0.33333333333333333333333333333333"), "{text}");
    assert!(text.len() <= 42, "{text}");
}

proptest! {
    #[test]
    fn writing_and_reading_returns_the_same_number(number in number(300)) {
        prop_assert_eq!(parse(&number.to_string()), number);
        prop_assert_eq!(parse(&format!("{number:e}")), number);
    }

    #[test]
    fn numbers_with_one_part_return_too(v in any::<f64>()) {
        let number = DoubleDouble::from(v);
        let read = parse(&number.to_string());
        prop_assert!(read == number || v.is_nan() && read.hi().is_nan());
    }

    #[test]
    fn short_decimals_are_read_like_the_quotient_of_integers(n in -999_999_999_999i64..1_000_000_000_000, digits in 0..15i32) {
        // Both integers are exact and division is accurate to a few units.
        let text = format!("{n}e-{digits}");
        let quotient = DoubleDouble::from(n as f64) / DoubleDouble::from(10f64.powi(digits));
        let difference = (parse(&text) - quotient).hi().abs();
        prop_assert!(difference <= 4.0 * crate::arithmetic::UNIT * quotient.hi().abs());
    }
}
