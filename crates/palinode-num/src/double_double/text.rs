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
use crate::decimal::Decimal;
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

    fn write(self, f: &mut fmt::Formatter<'_>, scientific: bool) -> fmt::Result {
        if !self.hi.is_finite() {
            return fmt::Display::fmt(&self.hi, f);
        }
        let text = Decimal::text(f.precision(), scientific, || self.short_decimal(), || self.decimal());
        // `pad_integral` would cut nothing and reads no precision, unlike `pad`.
        f.pad_integral(self.hi.is_sign_positive(), "", &text)
    }
}

impl fmt::Display for DoubleDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl fmt::LowerExp for DoubleDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}
