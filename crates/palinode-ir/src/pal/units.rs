//! Units: names, prefixes and what they are worth in SI.
//!
//! Only the scale is known here; that lengths and times do not add up is for dimension inference. A scale is
//! a quotient, so that `7 [ms]` is the number nearest to 0.007 and not a product of two rounded ones. Units
//! with an offset (degrees Celsius) are left out.

use std::sync::Arc;

/// A unit as it was written, and its worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// As written, `m/s^2`.
    pub text: Arc<str>,
    numerator: f64,
    denominator: f64,
}

impl Unit {
    pub(crate) fn new(text: &str, (numerator, denominator): (f64, f64)) -> Unit {
        Unit { text: text.into(), numerator, denominator }
    }

    /// How many SI units it is: 0.001 for `ms`.
    pub fn scale(&self) -> f64 {
        self.numerator / self.denominator
    }

    /// A number in this unit -> in SI.
    pub fn to_si(&self, value: f64) -> f64 {
        value * self.numerator / self.denominator
    }

    /// A number in SI -> in this unit.
    pub fn from_si(&self, value: f64) -> f64 {
        value * self.denominator / self.numerator
    }
}

/// A name, its worth as a quotient, and whether it takes prefixes.
type Entry = (&'static str, f64, f64, bool);

const UNITS: &[Entry] = &[
    ("m", 1.0, 1.0, true),
    ("g", 1.0, 1e3, true),
    ("s", 1.0, 1.0, true),
    ("A", 1.0, 1.0, true),
    ("K", 1.0, 1.0, true),
    ("mol", 1.0, 1.0, true),
    ("cd", 1.0, 1.0, true),
    ("N", 1.0, 1.0, true),
    ("J", 1.0, 1.0, true),
    ("W", 1.0, 1.0, true),
    ("Pa", 1.0, 1.0, true),
    ("Hz", 1.0, 1.0, true),
    ("V", 1.0, 1.0, true),
    ("C", 1.0, 1.0, true),
    ("F", 1.0, 1.0, true),
    ("T", 1.0, 1.0, true),
    ("H", 1.0, 1.0, true),
    ("Wb", 1.0, 1.0, true),
    ("S", 1.0, 1.0, true),
    ("Ohm", 1.0, 1.0, true),
    ("ohm", 1.0, 1.0, true),
    ("Ω", 1.0, 1.0, true),
    ("lm", 1.0, 1.0, true),
    ("lx", 1.0, 1.0, true),
    ("Bq", 1.0, 1.0, true),
    ("Gy", 1.0, 1.0, true),
    ("Sv", 1.0, 1.0, true),
    ("kat", 1.0, 1.0, true),
    ("rad", 1.0, 1.0, true),
    ("sr", 1.0, 1.0, true),
    ("deg", core::f64::consts::PI, 180.0, false),
    ("°", core::f64::consts::PI, 180.0, false),
    ("rev", core::f64::consts::TAU, 1.0, false),
    ("rpm", core::f64::consts::TAU, 60.0, false),
    ("min", 60.0, 1.0, false),
    ("h", 3600.0, 1.0, false),
    ("hour", 3600.0, 1.0, false),
    ("d", 86400.0, 1.0, false),
    ("day", 86400.0, 1.0, false),
    ("days", 86400.0, 1.0, false),
    ("week", 604_800.0, 1.0, false),
    ("yr", 31_557_600.0, 1.0, false),
    ("year", 31_557_600.0, 1.0, false),
    ("years", 31_557_600.0, 1.0, false),
    ("bar", 1e5, 1.0, true),
    ("atm", 101_325.0, 1.0, false),
    ("psi", 6_894.757_293_168, 1.0, false),
    ("L", 1.0, 1e3, true),
    ("l", 1.0, 1e3, true),
    ("t", 1e3, 1.0, true),
    ("ha", 1e4, 1.0, false),
    ("eV", 1.602_176_634e-19, 1.0, true),
    ("u", 1.660_539_068_92e-27, 1.0, false),
    ("cal", 4.184, 1.0, true),
    ("Wh", 3600.0, 1.0, true),
    ("Ah", 3600.0, 1.0, true),
    ("Å", 1.0, 1e10, false),
    ("au", 149_597_870_700.0, 1.0, false),
    ("pc", 3.085_677_581_491_367e16, 1.0, true),
    ("inch", 0.0254, 1.0, false),
    ("ft", 0.3048, 1.0, false),
    ("mile", 1609.344, 1.0, false),
    ("mph", 0.44704, 1.0, false),
    ("knot", 1852.0, 3600.0, false),
    ("lb", 0.453_592_37, 1.0, false),
    ("percent", 1.0, 100.0, false),
    ("permille", 1.0, 1e3, false),
    ("ppm", 1.0, 1e6, false),
    ("dB", 1.0, 1.0, false),
];

const PREFIXES: &[(&str, f64, f64)] = &[
    ("da", 1e1, 1.0),
    ("Q", 1e30, 1.0),
    ("R", 1e27, 1.0),
    ("Y", 1e24, 1.0),
    ("Z", 1e21, 1.0),
    ("E", 1e18, 1.0),
    ("P", 1e15, 1.0),
    ("T", 1e12, 1.0),
    ("G", 1e9, 1.0),
    ("M", 1e6, 1.0),
    ("k", 1e3, 1.0),
    ("h", 1e2, 1.0),
    ("d", 1.0, 1e1),
    ("c", 1.0, 1e2),
    ("m", 1.0, 1e3),
    ("u", 1.0, 1e6),
    ("µ", 1.0, 1e6),
    ("μ", 1.0, 1e6),
    ("n", 1.0, 1e9),
    ("p", 1.0, 1e12),
    ("f", 1.0, 1e15),
    ("a", 1.0, 1e18),
    ("z", 1.0, 1e21),
    ("y", 1.0, 1e24),
];

/// The worth of a unit's name as a quotient.
pub(crate) fn lookup(name: &str) -> Option<(f64, f64)> {
    if let Some(&(_, n, d, _)) = UNITS.iter().find(|entry| entry.0 == name) {
        return Some((n, d));
    }
    PREFIXES.iter().find_map(|&(prefix, pn, pd)| {
        let rest = name.strip_prefix(prefix)?;
        let &(_, n, d, _) = UNITS.iter().find(|entry| entry.3 && entry.0 == rest)?;
        Some((pn * n, pd * d))
    })
}

/// A quotient to a whole power.
pub(crate) fn power((n, d): (f64, f64), exponent: i32) -> (f64, f64) {
    let size = exponent.unsigned_abs().min(1000) as i32;
    let (n, d) = (n.powi(size), d.powi(size));
    if exponent < 0 { (d, n) } else { (n, d) }
}

/// What may have been meant by an unknown name.
pub(crate) fn suggestion(name: &str) -> Option<String> {
    let everyday = match name.to_lowercase().as_str() {
        "meter" | "metre" | "meters" | "metres" => "m",
        "second" | "seconds" | "sec" => "s",
        "minute" | "minutes" | "mins" => "min",
        "hours" | "hr" | "hrs" => "h",
        "kilogram" | "kilograms" | "kilo" | "kgs" => "kg",
        "gram" | "grams" => "g",
        "newton" | "newtons" => "N",
        "joule" | "joules" => "J",
        "watt" | "watts" => "W",
        "volt" | "volts" => "V",
        "ampere" | "amp" | "amps" => "A",
        "kelvin" => "K",
        "pascal" => "Pa",
        "hertz" => "Hz",
        "degree" | "degrees" => "deg",
        "radian" | "radians" => "rad",
        "mile" | "miles" | "mi" => "mile",
        "in" | "inches" => "inch",
        "foot" | "feet" => "ft",
        "litre" | "liter" => "L",
        "pct" => "percent",
        "kmh" | "kph" => "km/h",
        "mps" => "m/s",
        "weeks" => "week",
        "msec" | "millisecond" | "milliseconds" => "ms",
        "ev" => "eV",
        _ => "",
    };
    if !everyday.is_empty() {
        return Some(everyday.into());
    }
    let other_case =
        UNITS.iter().find(|entry| entry.0.eq_ignore_ascii_case(name)).map(|entry| entry.0.to_string());
    other_case.or_else(|| super::spelling::closest(name, UNITS.iter().map(|entry| entry.0)))
}
