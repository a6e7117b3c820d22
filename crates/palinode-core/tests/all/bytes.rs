//! Budgets as text: every form that people write, every mistake, and the law that what is printed reads back.

use palinode_core::{Budget, BudgetMistake, Error, IntoBudget};
use proptest::prelude::*;

fn bytes(text: &str) -> usize {
    text.parse::<Budget>().unwrap_or_else(|error| panic!("{error}")).bytes()
}

fn mistake(text: &str) -> BudgetMistake {
    match text.parse::<Budget>() {
        Err(error @ Error::NotABudget { .. }) => {
            assert_eq!(error.code(), "PAL0108");
            let message = error.to_string();
            assert!(message.contains(&format!("`{text}`")) && message.contains("64KiB"), "{message}");
            let Error::NotABudget { why, .. } = error else { unreachable!() };
            why
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn people_write_budgets_in_many_ways() {
    // Plain numbers and units: `parsing_agrees_with_rational_arithmetic`.
    for (text, expected) in [
        ("4096", 4096),
        ("4096B", 4096),
        ("1 byte", 1),
        ("12 bytes", 12),
        ("  64\tkib ", 65_536),
        ("64KIB", 65_536),
        ("500 KB", 500_000),
        ("500kb", 500_000),
        ("2gb", 2_000_000_000),
        ("3 TiB", 3 << 40),
        ("0", 0),
        ("0.0 GiB", 0),
        ("007 B", 7),
        ("0.0009765625KiB", 1),
        ("1.50000000000000000000000000000000000000000 KiB", 1536),
        ("4096.0", 4096),
        ("1.5 B", 1),
        ("0.9999999999999999999999999999999999999999 KiB", 1023),
        ("2.9999999999999999999999999 EiB", (3 << 60) - 1),
        ("unlimited", usize::MAX),
        ("Unlimited", usize::MAX),
    ] {
        assert_eq!(bytes(text), expected, "{text}");
    }
}

#[test]
fn mistakes_are_named() {
    use BudgetMistake::*;
    assert_eq!(mistake(""), Empty);
    assert_eq!(mistake("   "), Empty);
    assert_eq!(mistake("-1"), Negative);
    assert_eq!(mistake("- 64 KiB"), Negative);
    for text in ["KiB", "+5", ".5 KiB", "5. KiB", "1.2.3", "1,000", "1_000", "1 000", "64 %", "64 \u{3bc}B"] {
        assert_eq!(mistake(text), Number, "{text}");
    }
    for (text, unit) in [("64 Kibi", "Kibi"), ("1e9", "e9"), ("64 KiB each", "KiB each"), ("8 bit", "bit")] {
        assert_eq!(mistake(text), Unit { unit: unit.into() });
    }
    assert_eq!(mistake("64k"), HalfUnit { unit: "K".into() });
    assert_eq!(mistake("2 G"), HalfUnit { unit: "G".into() });
    for text in ["0.5", "0.9 B", "0.0009765624 KiB", "0.00000003 MB"] {
        assert_eq!(mistake(text), Fraction, "{text}");
    }
    assert_eq!(
        mistake("0.00000000000000000000000000000000000000000000000000000000000000000001 EiB"),
        Fraction
    );
    for text in ["18446744073709551615", "18446744073709551616", "16 EiB", "99999999999999999999999 kB"] {
        assert_eq!(mistake(text), TooLarge, "{text}");
    }
    assert_eq!(
        "64K".parse::<Budget>().unwrap_err().to_string(),
        "PAL0108: `64K` is not a budget: K alone may mean 1000s or 1024s: say KB or KiB; \
         write bytes as 4096, 64KiB, 1.5 MiB, 2GB or unlimited"
    );
}

#[test]
fn printed_exactly_with_few_digits() {
    for (bytes, text) in [
        (0, "0 B"),
        (1, "1 B"),
        (512, "512 B"),
        (1000, "1 kB"),
        (1001, "1001 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (32_256, "31.5 KiB"),
        (65_536, "64 KiB"),
        (65_537, "65537 B"),
        (500_000, "500 kB"),
        (1_024_000, "1000 KiB"),
        (1_500_000, "1.5 MB"),
        (2 << 30, "2 GiB"),
        (usize::MAX - 1, "18446744073709551614 B"),
        (usize::MAX, "unlimited"),
    ] {
        assert_eq!(Budget::from(bytes).to_string(), text);
    }
    assert_eq!(format!("[{:>8}] {:?}", Budget::from(1024), Budget::from(1024)), "[   1 KiB] Budget(1 KiB)");
}

#[test]
fn rounded_for_people() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1025, "1.0 KiB"),
        (48_201, "47.1 KiB"),
        (65_536, "64 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        ((1 << 20) - 52, "1023.9 KiB"),
        ((1 << 20) - 51, "1.0 MiB"),
        (1 << 20, "1 MiB"),
        (usize::MAX - 1, "16.0 EiB"),
        (usize::MAX, "unlimited"),
    ] {
        assert_eq!(Budget::from(bytes).rounded(), text, "{bytes}");
    }
}

#[test]
fn accounting_is_checked_and_unlimited_stays() {
    let budget = Budget::from(100);
    assert_eq!(budget.checked_sub(30), Some(Budget::from(70)));
    assert_eq!(budget.checked_sub(101), None);
    assert_eq!(budget.checked_add(usize::MAX - 101), Some(Budget::from(usize::MAX - 1)));
    assert_eq!(budget.checked_add(usize::MAX - 100), None, "no sum is unlimited by accident");
    assert_eq!(budget.checked_mul(3), Some(Budget::from(300)));
    assert_eq!(Budget::from(5).checked_mul(usize::MAX / 5), None);
    assert!(budget.allows(100) && !budget.allows(101) && !budget.is_unlimited());
    let unlimited = Budget::UNLIMITED;
    for same in [unlimited.checked_sub(7), unlimited.checked_add(7), unlimited.checked_mul(0)] {
        assert_eq!(same, Some(unlimited));
    }
    assert!(unlimited.allows(usize::MAX) && unlimited > budget);
}

#[test]
fn what_asks_for_a_budget_takes_all_forms() {
    fn within(budget: impl IntoBudget) -> Result<Budget, Error> {
        budget.into_budget()
    }
    let expected = Budget::from(2048);
    assert_eq!(within(2048), Ok(expected));
    assert_eq!(within("2KiB"), Ok(expected));
    let text = "2KiB".to_string();
    assert_eq!(within(&text), Ok(expected));
    assert_eq!(within(text), Ok(expected));
    assert_eq!(within(expected), Ok(expected));
    assert_eq!(Budget::try_from("2KiB"), Ok(expected));
    assert!(within("2 K").is_err());
}

/// Numbers of every size, and those near multiples of units.
fn any_bytes() -> impl Strategy<Value = usize> {
    let unit = prop_oneof![Just(1024_u64), Just(1000)]
        .prop_flat_map(|base| (0..=6_u32).prop_map(move |power| base.pow(power)));
    prop_oneof![
        any::<usize>(),
        (any::<usize>(), 0..64_u32).prop_map(|(bytes, shift)| bytes >> shift),
        (unit, 0..4000_u64, 0..3_u64, 0..1000_u64).prop_map(|(unit, count, few, thousandths)| {
            let bytes = unit.saturating_mul(count).saturating_add(unit / 1000 * thousandths);
            bytes.saturating_add(few) as usize
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(bytes in any_bytes()) {
        let budget = Budget::from(bytes);
        let text = budget.to_string();
        prop_assert_eq!(text.parse::<Budget>(), Ok(budget), "{}", text);
        let squeezed = text.replace(' ', "");
        prop_assert_eq!(squeezed.parse::<Budget>(), Ok(budget));
        prop_assert_eq!(squeezed.to_lowercase().parse::<Budget>(), Ok(budget));
        // `unlimited` has no unit.
        let number = text.split(' ').next().unwrap_or_default();
        prop_assert!(number.len() <= bytes.to_string().len());
    }

    #[test]
    fn rounding_is_off_by_half_a_tenth_at_most(bytes in any_bytes()) {
        prop_assume!(bytes < usize::MAX);
        let text = Budget::from(bytes).rounded();
        let (number, unit) = text.split_once(' ').unwrap();
        // Tenths of a unit, read without floats.
        let tenths: u128 = match number.split_once('.') {
            Some((whole, tenth)) => whole.parse::<u128>().unwrap() * 10 + tenth.parse::<u128>().unwrap(),
            None => number.parse::<u128>().unwrap() * 10,
        };
        let unit = u128::from(bytes as u64).min(1) * Budget::try_from(&*format!("1 {unit}")).unwrap().bytes() as u128;
        prop_assert!((tenths * unit).abs_diff(bytes as u128 * 10) * 2 <= unit, "{bytes}: {text}");
        prop_assert!(tenths < 10_240);
    }

    #[test]
    fn parsing_agrees_with_rational_arithmetic(whole in 0..100_000_u64, decimals in 0..10_u32, digits in any::<u64>(), unit in 0..6_usize) {
        let (name, factor) =
            [("", 1_u128), ("KiB", 1 << 10), ("MiB", 1 << 20), ("kB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000)][unit];
        let scale = 10_u64.pow(decimals);
        let fraction = digits % scale;
        let text = if decimals == 0 { format!("{whole}{name}") } else { format!("{whole}.{fraction:0width$} {name}", width = decimals as usize) };
        let exact = (u128::from(whole) * u128::from(scale) + u128::from(fraction)) * factor;
        match text.parse::<Budget>() {
            Ok(budget) => prop_assert_eq!(budget.bytes() as u128, exact / u128::from(scale), "{}", text),
            Err(error) => {
                let refused = matches!(error, Error::NotABudget { why: BudgetMistake::Fraction, .. });
                prop_assert!(refused && exact > 0 && exact < u128::from(scale), "{}", error);
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,24}") {
        if let Ok(budget) = text.parse::<Budget>() {
            prop_assert_eq!(budget.to_string().parse::<Budget>(), Ok(budget));
        }
    }
}
