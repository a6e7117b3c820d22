//! The arbitrary-precision reference (`reference/rules.tsv`, made with mpmath), by operation.
//!
//! Input: the table's text. Output: one [`Sample`] per line. Structural rows that mpmath cannot measure are
//! written here, because their derivatives are 0 and 1 by definition.

use palinode_core::DoubleDouble;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One point of one operation with everything known about it.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) op: String,
    pub(crate) region: String,
    pub(crate) parameter: i32,
    /// Whether `f32` holds the arguments exactly and the results as normal numbers.
    pub(crate) fits_f32: bool,
    pub(crate) args: Vec<f64>,
    pub(crate) value: DoubleDouble,
    /// By argument; `None` where there is no derivative.
    pub(crate) first: Vec<Option<DoubleDouble>>,
    /// By pairs of arguments, `[i][j]` and `[j][i]` alike.
    pub(crate) second: Vec<Vec<Option<DoubleDouble>>>,
}

impl Sample {
    /// `tanh [saturated+] (20.5)`.
    pub(crate) fn describe(&self) -> String {
        let parameter =
            if self.parameter == NO_PARAMETER { String::new() } else { format!("; {}", self.parameter) };
        let args: Vec<String> = self.args.iter().map(|x| format!("{x:e}")).collect();
        format!("{} [{}] ({}{parameter})", self.op, self.region, args.join(", "))
    }
}

/// What rows without a whole-number parameter have as one; they ignore it.
pub(crate) const NO_PARAMETER: i32 = 0;

static SAMPLES: LazyLock<BTreeMap<String, Vec<Sample>>> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reference/rules.tsv");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut by_op = BTreeMap::<String, Vec<Sample>>::new();
    for line in text.lines().skip(1) {
        let sample = parse(line);
        by_op.entry(sample.op.clone()).or_default().push(sample);
    }
    by_op.entry("select_nonzero".into()).or_insert_with(select_samples);
    by_op
});

/// The samples of the operation with this name; empty if the reference does not know it.
pub(crate) fn samples(op: &str) -> &'static [Sample] {
    SAMPLES.get(op).map_or(&[], Vec::as_slice)
}

/// The names that the reference knows.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SAMPLES.keys().map(String::as_str)
}

fn parse(line: &str) -> Sample {
    let cells: Vec<&str> = line.split('\t').collect();
    assert_eq!(cells.len(), 17, "reference/rules.tsv: {line}");
    let args: Vec<f64> =
        cells[4..7].iter().filter(|cell| **cell != "-").map(|cell| hexadecimal(cell)).collect();
    let number = |cell: &str| match cell {
        "nan" => None,
        digits => Some(digits.parse().unwrap_or_else(|error| panic!("{digits}: {error}"))),
    };
    let n = args.len();
    let second_cell = |i: usize, j: usize| 11 + [[0, 1, 2], [1, 3, 4], [2, 4, 5]][i][j];
    Sample {
        op: cells[0].into(),
        region: cells[1].into(),
        parameter: cells[2].parse().unwrap_or(NO_PARAMETER),
        fits_f32: cells[3] == "f32",
        value: number(cells[7]).expect("a value"),
        first: (0..n).map(|i| number(cells[8 + i])).collect(),
        second: (0..n).map(|i| (0..n).map(|j| number(cells[second_cell(i, j)])).collect()).collect(),
        args,
    }
}

fn select_samples() -> Vec<Sample> {
    let number = |v: f64| Some(DoubleDouble::from(v));
    let points: [(&str, f64); 6] = [
        ("tiny+", 1e-30),
        ("tiny-", -1e-30),
        ("true+", 1.0),
        ("true-", -1.0),
        ("false+", 0.0),
        ("false-", -0.0),
    ];
    let pairs = [(1.5, -2.25), (-3.0, 4.5), (1e30, 1e-30), (0.0, 7.0)];
    let all = points.iter().flat_map(|&(region, x)| pairs.map(|(y, w)| (region, x, y, w)));
    let sample = |(region, x, y, w): (&str, f64, f64, f64)| {
        let taken = x != 0.0;
        Sample {
            op: "select_nonzero".into(),
            region: region.into(),
            parameter: NO_PARAMETER,
            // Powers of ten above are not exact in f32; the other pairs are.
            fits_f32: [x, y, w].iter().all(|&v| f64::from(v as f32) == v),
            args: vec![x, y, w],
            value: DoubleDouble::from(if taken { y } else { w }),
            first: vec![number(0.0), number(f64::from(u8::from(taken))), number(f64::from(u8::from(!taken)))],
            second: vec![vec![number(0.0); 3]; 3],
        }
    };
    all.map(sample).collect()
}

/// Python's `float.hex`: `-0x1.8p+1`.
fn hexadecimal(text: &str) -> f64 {
    let (sign, magnitude) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let digits = magnitude.strip_prefix("0x").unwrap_or_else(|| panic!("{text} is not hexadecimal"));
    let (mantissa, exponent) = digits.split_once('p').expect("an exponent");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let bits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).expect("hexadecimal digits") as f64;
    let power = exponent.parse::<i32>().expect("a power of two") - 4 * fraction.len() as i32;
    // In two steps: one power of two alone may underflow where the product does not.
    sign * bits * f64::from(power / 2).exp2() * f64::from(power - power / 2).exp2()
}
