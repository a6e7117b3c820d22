//! Decimal text to posits and back.
//!
//! Reading is correctly rounded, however many digits there are: the digits are taken as an exact fraction.
//! `NaR` is read in any case of letters; infinities and NaN are not numbers of posits and are refused.
//!
//! Writing: the fewest digits that read back as the same number, the nearest such. With a precision
//! (`{:.20}`) that many digits follow the point, correctly rounded from the exact value. NaR is written
//! `NaR`.

use super::big::Big;
use super::pattern::Unpacked;
use super::{Posit, PositWidth};
use crate::decimal::Decimal;
use core::fmt;
use core::str::FromStr;

/// The text is not a posit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePositError {
    text: String,
}

impl fmt::Display for ParsePositError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PAL0601: {:?} is not a posit: write it like -1.25, 6e-3 or NaR", self.text)
    }
}

impl core::error::Error for ParsePositError {}

/// Further digits only matter by being there: borders between posits of 64 bits end before.
const DIGITS: usize = 400;

/// Powers of ten that are beyond every posit of 64 bits (2^248 has 75 digits).
const BEYOND: i64 = 100;

impl Decimal {
    /// Sign excluded; `None` is zero. The point must lie within [`BEYOND`].
    fn unpacked(&self, negative: bool) -> Option<Unpacked> {
        let kept = &self.digits[..self.digits.len().min(DIGITS)];
        let cut = kept.len() < self.digits.len();
        let mut number = Big::default();
        for &digit in kept {
            number.multiply_add(10, digit.into());
        }
        // The value is number * 10^power = number * 5^power * 2^power.
        let power = self.point as i32 - kept.len() as i32;
        let mut binary = power;
        let mut left_over = cut;
        if power >= 0 {
            number.times_power(5, power.unsigned_abs());
        } else {
            // Enough bits that 64 are left of the quotient: 5 < 2^3.
            let bits = 3 * power.unsigned_abs() + 64;
            number.shift_up(bits);
            binary -= bits as i32;
            left_over |= number.over_power(5, power.unsigned_abs());
        }
        let (top, unit, below) = number.top();
        Unpacked::from_wide(negative, binary + unit + 127, top, below || left_over)
    }

    /// All digits of the magnitude.
    fn of_unpacked(number: Unpacked) -> Self {
        let zeros = number.significand.trailing_zeros();
        let mut big = Big::from(number.significand >> zeros);
        let power = number.scale - 63 + zeros as i32;
        if power >= 0 {
            big.shift_up(power.unsigned_abs());
        } else {
            // m / 2^k = m * 5^k / 10^k.
            big.times_power(5, power.unsigned_abs());
        }
        let digits = big.decimal_digits();
        let point = digits.len() as i64 + i64::from(power.min(0));
        Self { digits, point }.trimmed()
    }
}

impl<W: PositWidth> FromStr for Posit<W> {
    type Err = ParsePositError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParsePositError { text: text.into() };
        if text.eq_ignore_ascii_case("nar") {
            return Ok(Self::NAR);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let negative = text.starts_with('-');
        // The standard library knows what a decimal number looks like; of its words only digits are ours.
        let near: f64 = text.parse().map_err(|_| error())?;
        if !unsigned.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
            return Err(error());
        }
        let signed = |magnitude: Self| if negative { -magnitude } else { magnitude };
        let digits = unsigned.split(['e', 'E']).next().unwrap_or("");
        if near == 0.0 {
            let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            return Ok(if is_zero { Self::ZERO } else { signed(Self::MIN_POSITIVE) });
        }
        if near.is_infinite() {
            return Ok(signed(Self::MAX));
        }
        let decimal = Decimal::parse(unsigned).ok_or_else(error)?;
        Ok(match decimal.point {
            point if point > BEYOND => signed(Self::MAX),
            point if point < -BEYOND => signed(Self::MIN_POSITIVE),
            _ => Self::nearest_or_zero(decimal.unpacked(negative)),
        })
    }
}

impl<W: PositWidth> Posit<W> {
    /// The fewest digits that read back as the same number. Where posits are farther apart on one side than
    /// on the other, the farther one of two decimals may be the only one that does.
    fn short_decimal(number: Unpacked) -> Decimal {
        let magnitude = Unpacked { negative: false, ..number };
        let exact = Decimal::of_unpacked(magnitude);
        (1..exact.digits.len())
            .flat_map(|count| exact.neighbours(count))
            .find(|short| Self::nearest_or_zero(short.unpacked(false)) == Self::nearest(magnitude))
            .unwrap_or(exact)
    }

    fn write(self, f: &mut fmt::Formatter<'_>, scientific: bool) -> fmt::Result {
        let (number, zero) = (self.unpack(), || Decimal { digits: Vec::new(), point: 0 });
        let short = || number.map_or_else(zero, Self::short_decimal);
        let exact = || number.map_or_else(zero, Decimal::of_unpacked);
        let text = match self.is_nar() {
            true => "NaR".into(),
            false => Decimal::text(f.precision(), scientific, short, exact),
        };
        // `pad_integral` would cut nothing and reads no precision, unlike `pad`.
        f.pad_integral(!self.is_negative(), "", &text)
    }
}

impl<W: PositWidth> fmt::Display for Posit<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl<W: PositWidth> fmt::LowerExp for Posit<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}

impl<W: PositWidth> fmt::Debug for Posit<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
