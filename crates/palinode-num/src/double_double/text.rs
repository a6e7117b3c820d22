//! Decimal text to double-double and back.
//!
//! Reading: `hi` is the `f64` nearest to the text, `lo` the `f64` nearest to what is left; both are correctly
//! rounded, because the difference is taken on decimal digits and each `f64` has finitely many of them.
//!
//! Writing: all digits if there are at most 40, else the fewest digits from 30 on that read back as the same
//! number, else all. With a precision (`{:.20}`) that many digits follow the point, correctly rounded.
//!
//! Known limits: a number whose low part is zero or very small needs all its digits to be read back, and a
//! few hundred digits are possible. `{:e}` writes the same digits with an exponent.

use super::DoubleDouble;
use core::fmt;
use core::str::FromStr;

/// The text is not a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseDoubleDoubleError {
    text: String,
}

impl fmt::Display for ParseDoubleDoubleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a decimal number: write it like -1.25, 6e-3, inf or NaN", self.text)
    }
}

impl core::error::Error for ParseDoubleDoubleError {}

/// A decimal number that is not negative: `0.d1 d2 d3 ... * 10^point`.
#[derive(Clone, Debug)]
struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// From text without a sign that `f64` was able to read.
    fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        Some(Self { digits, point: whole.len() as i64 + exponent }.trimmed())
    }

    /// All digits of the magnitude of a finite `f64`.
    fn exactly(v: f64) -> Self {
        /// The smallest subnormal ends at this digit after the point.
        const LAST_DIGIT: usize = 1074;
        Self::parse(&format!("{:.LAST_DIGIT$}", v.abs())).expect("f64 writes plain decimals")
    }

    fn trimmed(mut self) -> Self {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..leading);
        self.point -= leading as i64;
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
        self
    }

    /// The digit of weight `10^-place` (place 0 is the units).
    fn digit(&self, place: i64) -> u8 {
        usize::try_from(place + self.point - 1)
            .ok()
            .and_then(|index| self.digits.get(index))
            .copied()
            .unwrap_or(0)
    }

    fn last_place(&self) -> i64 {
        self.digits.len() as i64 - self.point
    }

    fn is_below(&self, other: &Self) -> bool {
        if self.digits.is_empty() || other.digits.is_empty() {
            return !other.digits.is_empty();
        }
        (self.point, &self.digits) < (other.point, &other.digits)
    }

    /// `self + sign * other`, where a difference must not be negative.
    fn combine(&self, other: &Self, sign: i8) -> Self {
        let first = -self.point.max(other.point);
        let last = self.last_place().max(other.last_place());
        let mut carry = 0;
        let mut digits: Vec<u8> = (first..=last)
            .rev()
            .map(|place| {
                let total = self.digit(place) as i8 + sign * other.digit(place) as i8 + carry;
                carry = total.div_euclid(10);
                total.rem_euclid(10) as u8
            })
            .collect();
        digits.reverse();
        Self { digits, point: 1 - first }.trimmed()
    }

    /// Rounded to this many digits, ties to even.
    fn rounded(mut self, count: i64) -> Self {
        let Ok(count) = usize::try_from(count) else { return Self { digits: Vec::new(), point: 0 } };
        if count >= self.digits.len() {
            return self;
        }
        let rest = self.digits.split_off(count);
        let odd = self.digits.last().is_some_and(|digit| digit % 2 == 1);
        if rest[0] > 5 || rest[0] == 5 && (rest.len() > 1 || odd) {
            let unit = Self { digits: vec![1], point: self.point - count as i64 + 1 };
            return self.combine(&unit, 1);
        }
        self.trimmed()
    }

    /// In scientific form; the form that `f64` reads.
    fn scientific(&self) -> String {
        if self.digits.is_empty() {
            return "0e0".into();
        }
        let mut text: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        if text.len() > 1 {
            text.insert(1, '.');
        }
        format!("{text}e{}", self.point - 1)
    }

    /// In positional form, with at least this many digits after the point.
    fn positional(&self, decimals: i64) -> String {
        let mut text = String::new();
        for place in (1 - self.point).min(0)..=self.last_place().max(decimals) {
            if place == 1 {
                text.push('.');
            }
            text.push(char::from(b'0' + self.digit(place)));
        }
        text
    }
}

impl FromStr for DoubleDouble {
    type Err = ParseDoubleDoubleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDoubleDoubleError { text: text.into() };
        let hi: f64 = text.parse().map_err(|_| error())?;
        // An underflowed number has no low part either, but perhaps a billion digits.
        if !hi.is_finite() || hi == 0.0 {
            return Ok(hi.into());
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let whole = Decimal::parse(unsigned).ok_or_else(error)?;
        let near = Decimal::exactly(hi);
        let (rest, sign) = if whole.is_below(&near) {
            (near.combine(&whole, -1), -hi.signum())
        } else {
            (whole.combine(&near, -1), hi.signum())
        };
        let rest: f64 = rest.scientific().parse().map_err(|_| error())?;
        Ok(Self::normalised(hi, sign * rest))
    }
}

impl DoubleDouble {
    /// All digits of the magnitude; finite numbers only.
    fn decimal(self) -> Decimal {
        let (high, low) = (Decimal::exactly(self.hi), Decimal::exactly(self.lo));
        let sign = if self.hi.is_sign_negative() == self.lo.is_sign_negative() { 1 } else { -1 };
        high.combine(&low, sign)
    }

    /// Few digits that read back as the same number.
    fn short_decimal(self) -> Decimal {
        const ALL_DIGITS_UP_TO: usize = 40;
        const FEWEST: i64 = 30;
        let exact = self.decimal();
        if exact.digits.len() <= ALL_DIGITS_UP_TO {
            return exact;
        }
        let magnitude = if self.hi < 0.0 { -self } else { self };
        (FEWEST..=ALL_DIGITS_UP_TO as i64)
            .map(|count| exact.clone().rounded(count))
            .find(|short| short.scientific().parse() == Ok(magnitude))
            .unwrap_or(exact)
    }

    fn write(self, f: &mut fmt::Formatter<'_>, finite: impl FnOnce(Self) -> String) -> fmt::Result {
        if !self.hi.is_finite() {
            return fmt::Display::fmt(&self.hi, f);
        }
        let text = finite(self);
        // `pad_integral` would cut nothing and reads no precision, unlike `pad`.
        f.pad_integral(self.hi.is_sign_positive(), "", &text)
    }
}

impl fmt::Display for DoubleDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision();
        self.write(f, |number| match precision {
            None => number.short_decimal().positional(0),
            Some(decimals) => {
                let exact = number.decimal();
                let count = exact.point + decimals as i64;
                exact.rounded(count).positional(decimals as i64)
            }
        })
    }
}

impl fmt::LowerExp for DoubleDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision();
        self.write(f, |number| match precision {
            None => number.short_decimal().scientific(),
            Some(decimals) => {
                let mut rounded = number.decimal().rounded(decimals as i64 + 1);
                // The digits asked for are written even where they are 0.
                rounded.digits.resize(decimals + 1, 0);
                rounded.point = if number.hi == 0.0 { 1 } else { rounded.point };
                rounded.scientific()
            }
        })
    }
}
