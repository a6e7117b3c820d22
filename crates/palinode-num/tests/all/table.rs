//! Reading the reference tables.

use palinode_num::DoubleDouble;

/// One line of a reference table, by column name.
pub(crate) struct Row {
    columns: Vec<(String, String)>,
}

impl Row {
    pub(crate) fn get(&self, column: &str) -> &str {
        let found = self.columns.iter().find(|(name, _)| name == column);
        &found.unwrap_or_else(|| panic!("the table has no column {column}")).1
    }

    /// A hexadecimal float, or `None` for `-`.
    pub(crate) fn float(&self, column: &str) -> Option<f64> {
        let text = self.get(column);
        (text != "-").then(|| hexadecimal(text))
    }

    pub(crate) fn integer(&self, column: &str) -> Option<i32> {
        self.get(column).parse().ok()
    }

    pub(crate) fn decimal(&self, column: &str) -> DoubleDouble {
        self.get(column).parse().unwrap_or_else(|error| panic!("{}: {error}", self.describe()))
    }

    pub(crate) fn describe(&self) -> String {
        let cells: Vec<_> = self.columns.iter().take(7).map(|(_, cell)| cell.as_str()).collect();
        cells.join(" ")
    }
}

pub(crate) fn read(file: &str) -> Vec<Row> {
    let path = format!("{}/../../reference/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("a header line").split('\t').collect();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        assert_eq!(cells.len(), names.len(), "{line}");
        let columns = names.iter().zip(cells).map(|(&name, cell)| (name.into(), cell.into()));
        Row { columns: columns.collect() }
    };
    lines.map(row).collect()
}

/// Python's `float.hex`: `-0x1.8p+1`.
fn hexadecimal(text: &str) -> f64 {
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let digits = magnitude.strip_prefix("0x").unwrap_or_else(|| panic!("{text} is not hexadecimal"));
    let (mantissa, exponent) = digits.split_once('p').expect("an exponent");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let bits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).expect("hexadecimal digits") as f64;
    let power = exponent.parse::<i32>().expect("a power of two") - 4 * fraction.len() as i32;
    // In two steps: one power of two alone may underflow where the product does not.
    sign * bits * f64::from(power / 2).exp2() * f64::from(power - power / 2).exp2()
}

#[test]
fn hexadecimal_floats_are_read_exactly() {
    let cases = [
        ("0x1.8000000000000p+1", 3.0),
        ("-0x1.999999999999ap-4", -0.1),
        ("0x0.0p+0", 0.0),
        ("0x1.56e1fc2f8f359p-997", 1e-300),
        ("0x0.0000000000001p-1022", f64::from_bits(1)),
        ("0x1.fffffffffffffp+1023", f64::MAX),
    ];
    for (text, expected) in cases {
        assert_eq!(hexadecimal(text).to_bits(), f64::to_bits(expected), "{text}");
    }
}
