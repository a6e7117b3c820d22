//! How numbers, amounts and arrays are shown to people. `--json` does not go through here.

use palinode_ir::interp::Datum;

use crate::answer::Text;

/// How many digits, and how much of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Significant digits.
    pub(crate) digits: usize,
    /// Every element of an array.
    pub(crate) full: bool,
}

/// How many elements of an array are shown otherwise.
const FIRST: usize = 4;

/// A number with so many significant digits, without zeros at the end.
pub(crate) fn short(x: f64, digits: usize) -> String {
    let digits = digits.clamp(1, 17);
    if !x.is_finite() {
        return plain(x);
    }
    if x == 0.0 {
        return "0".to_string();
    }
    let scientific = format!("{:.*e}", digits - 1, x);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if (-5..digits.max(9) as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        return trim(&format!("{x:.decimals$}")).to_string();
    }
    format!("{}e{exponent}", trim(mantissa))
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// The shortest text that is read back as the same number.
pub(crate) fn plain(x: f64) -> String {
    if x.is_nan() {
        "nan".to_string()
    } else if x.is_infinite() {
        if x > 0.0 { "inf" } else { "-inf" }.to_string()
    } else if x != 0.0 && !(1e-5..1e16).contains(&x.abs()) {
        format!("{x:e}")
    } else {
        format!("{x}")
    }
}

/// A whole number in groups of three.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 step`, `2,000 steps`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `47.1 KiB`.
pub(crate) fn bytes(n: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let decimals = if size < 10.0 { 2 } else { usize::from(size < 100.0) };
    format!("{size:.decimals$} {}", UNITS[unit])
}

/// `31.5 KiB`.
pub(crate) fn size(n: u64) -> String {
    bytes(usize::try_from(n).unwrap_or(usize::MAX))
}

/// `0.41 ms`.
pub(crate) fn time(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let decimals = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    format!("{scaled:.decimals$} {unit}")
}

/// `[3, 4]`.
pub(crate) fn shape(lengths: &[usize]) -> String {
    let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
    format!("[{}]", lengths.join(", "))
}

/// `a number`, `an array of shape [3, 4]`.
pub(crate) fn described(lengths: &[usize]) -> String {
    if lengths.is_empty() {
        "a single number".to_string()
    } else {
        format!("an array of shape {}", shape(lengths))
    }
}

/// A number, or an array in brackets: `[1, 2, 3, 4, ... 1000 in all]`.
pub(crate) fn datum(datum: &Datum<f64>, look: Look) -> Text<'_> {
    match datum {
        Datum::Real(tensor) => reals(&tensor.shape, &tensor.data, look),
        Datum::Int(tensor) => {
            elements(&tensor.shape, tensor.data.len(), look, |at| tensor.data[at].to_string())
        }
        Datum::Bool(tensor) => {
            elements(&tensor.shape, tensor.data.len(), look, |at| tensor.data[at].to_string())
        }
    }
}

/// Reals of a shape.
pub(crate) fn reals<'a>(lengths: &'a [usize], data: &'a [f64], look: Look) -> Text<'a> {
    elements(lengths, data.len(), look, move |at| short(data[at], look.digits))
}

/// Arrays longer than this are not copied to be shown, and no column is as wide as they are.
const STREAMED: usize = 64;

fn elements<'a>(
    lengths: &'a [usize],
    len: usize,
    look: Look,
    show: impl Fn(usize) -> String + 'a,
) -> Text<'a> {
    if lengths.is_empty() {
        return if len == 1 { show(0).into() } else { "?".into() };
    }
    if look.full || len <= 2 * FIRST {
        let all = Text::array(lengths, show);
        return if len > STREAMED { all } else { all.into_words().into() };
    }
    let first: Vec<String> = (0..FIRST).map(show).collect();
    let what =
        if lengths.len() == 1 { format!("{len} in all") } else { format!("{} in all", shape(lengths)) };
    format!("[{}, ... {what}]", first.join(", ")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let seven = |x| short(x, 7);
        assert_eq!(seven(143.202_123_4), "143.2021");
        assert_eq!(seven(0.5), "0.5");
        assert_eq!(seven(-0.0), "0");
        assert_eq!(seven(1e-9), "1e-9");
        assert_eq!(seven(123_456_789.0), "123456789");
        assert_eq!(seven(9.999_999_99), "10");
        assert_eq!(seven(1.5e12), "1.5e12");
        assert_eq!(seven(f64::NAN), "nan");
        assert_eq!(seven(f64::NEG_INFINITY), "-inf");
        assert_eq!(short(0.1, 17), "0.10000000000000001");
    }

    #[test]
    fn amounts_are_readable() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(48_230), "47.1 KiB");
        assert_eq!(bytes(12), "12 B");
        assert_eq!(time(0.000_41), "410 µs");
        assert_eq!(time(2.5), "2.50 s");
    }

    #[test]
    fn arrays_are_cut_unless_all_is_asked_for() {
        let look = Look { digits: 7, full: false };
        let data: Vec<f64> = (0..10).map(f64::from).collect();
        let reals = |lengths: &[usize], data: &[f64], look| reals(lengths, data, look).into_words();
        assert_eq!(reals(&[10], &data, look), "[0, 1, 2, 3, ... 10 in all]");
        assert_eq!(reals(&[2, 5], &data, look), "[0, 1, 2, 3, ... [2, 5] in all]");
        assert_eq!(reals(&[2, 2], &data[..4], look), "[[0, 1], [2, 3]]");
        assert_eq!(reals(&[0], &[], look), "[]");
        let full = Look { full: true, ..look };
        assert_eq!(reals(&[2, 5], &data, full), "[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]");
    }
}
