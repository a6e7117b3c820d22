//! `Budget`: how many bytes something may take.
//!
//! Input: a number of bytes, or text such as `64KiB`. Output: bytes, and text that reads back as the same
//! bytes.
//!
//! Text is a decimal number, spaces or none, and a unit or none: `KiB`, `MiB`, `GiB`, `TiB`, `PiB`, `EiB` are
//! powers of 1024; `kB`, `MB`, `GB`, `TB`, `PB`, `EB` are powers of 1000; `B` and nothing are bytes. Upper
//! and lower case mean the same, because nobody gives a budget in bits. What is left of a byte is left out:
//! `1.2MiB` is 1258291 bytes. `K`, `M` and the like are refused: they mean 1000 to some and 1024 to others.
//!
//! Invariants: the number is read and printed in decimal, exactly, never by way of a float;
//! `Budget::UNLIMITED` stays unlimited under arithmetic, and no sum becomes unlimited by accident.

use core::fmt;
use thiserror::Error;

/// How many bytes something may take: snapshots, live state, residuals, cotangents, a tape.
///
/// ```
/// use palinode_core::Budget;
///
/// let budget: Budget = "64 KiB".parse()?;
/// assert_eq!(budget.bytes(), 65536);
/// assert_eq!(Budget::from(32256).to_string(), "31.5 KiB"); // exact: it reads back as the same bytes
/// assert_eq!(Budget::from(48201).rounded(), "47.1 KiB"); // for people
/// let error = "64K".parse::<Budget>().unwrap_err();
/// assert_eq!(error.code(), "PAL0108");
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget(usize);

/// Binary units, from the largest; bytes are among them so that they win a tie against decimal units.
const BINARY: [(&str, u64); 7] = [
    ("EiB", 1 << 60),
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

const DECIMAL: [(&str, u64); 6] = [
    ("EB", 1_000_000_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
];

impl Budget {
    /// No limit; reads and prints as `unlimited`.
    pub const UNLIMITED: Budget = Budget(usize::MAX);

    /// The number of bytes; `usize::MAX` if there is no limit.
    pub const fn bytes(self) -> usize {
        self.0
    }

    /// Whether there is no limit.
    pub const fn is_unlimited(self) -> bool {
        self.0 == usize::MAX
    }

    /// Whether so many bytes are within the budget.
    pub const fn allows(self, bytes: usize) -> bool {
        bytes <= self.0
    }

    /// What is left after so many bytes; `None` if they are more than the budget. Unlimited stays unlimited.
    #[must_use]
    pub const fn checked_sub(self, bytes: usize) -> Option<Budget> {
        if self.is_unlimited() {
            return Some(self);
        }
        match self.0.checked_sub(bytes) {
            Some(left) => Some(Budget(left)),
            None => None,
        }
    }

    /// With so many bytes more; `None` if no limit is that large. Unlimited stays unlimited.
    #[must_use]
    pub const fn checked_add(self, bytes: usize) -> Option<Budget> {
        if self.is_unlimited() {
            return Some(self);
        }
        Budget::limited(self.0.checked_add(bytes))
    }

    /// So many times as much; `None` if no limit is that large. Unlimited stays unlimited.
    #[must_use]
    pub const fn checked_mul(self, times: usize) -> Option<Budget> {
        if self.is_unlimited() {
            return Some(self);
        }
        Budget::limited(self.0.checked_mul(times))
    }

    const fn limited(bytes: Option<usize>) -> Option<Budget> {
        match bytes {
            Some(bytes) if bytes < usize::MAX => Some(Budget(bytes)),
            Some(_) | None => None,
        }
    }

    /// The amount to one decimal in the largest binary unit that fits, such as `47.1 KiB`. A whole number of
    /// units is printed without a decimal.
    pub fn rounded(self) -> String {
        if self.is_unlimited() {
            return self.to_string();
        }
        let bytes = self.0 as u128;
        let tenths = |unit: u64| (bytes * 20 + u128::from(unit)) / (2 * u128::from(unit));
        // The smallest unit of which it is, rounded, less than the next.
        let fitting = BINARY.iter().rev().find(|&&(_, unit)| tenths(unit) < 10_240);
        let &(name, unit) = fitting.unwrap_or(&BINARY[0]);
        if bytes.is_multiple_of(u128::from(unit)) {
            return format!("{} {name}", bytes / u128::from(unit));
        }
        format!("{}.{} {name}", tenths(unit) / 10, tenths(unit) % 10)
    }

    /// The amount in this unit, in decimal and exactly; `None` if it needs more digits than a number of bytes
    /// has.
    fn in_unit(self, unit: u64) -> Option<String> {
        let (bytes, unit) = (self.0 as u128, u128::from(unit));
        let mut text = (bytes / unit).to_string();
        let mut rest = bytes % unit;
        if rest > 0 {
            text.push('.');
        }
        while rest > 0 {
            rest *= 10;
            text.push(char::from(b'0' + (rest / unit) as u8));
            rest %= unit;
            if text.len() > 21 {
                return None;
            }
        }
        Some(text)
    }
}

/// As few digits as possible, exactly, at least 1 of a unit: `64 KiB`, `31.5 KiB`, `500 kB`, `4097 B`.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.pad("unlimited");
        }
        let fitting = BINARY.iter().chain(&DECIMAL).filter(|&&(_, unit)| unit == 1 || self.0 as u64 >= unit);
        let shortest = fitting
            .filter_map(|&(name, unit)| Some((self.in_unit(unit)?, name)))
            .min_by_key(|(number, _)| (number.len(), number.contains('.')));
        match shortest {
            Some((number, name)) => f.pad(&format!("{number} {name}")),
            None => f.pad(&format!("{} B", self.0)),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budget({self})")
    }
}

impl From<usize> for Budget {
    /// So many bytes; `usize::MAX` is [`Budget::UNLIMITED`].
    fn from(bytes: usize) -> Self {
        Budget(bytes)
    }
}

/// The bytes that a text without spaces around it stands for.
pub(crate) fn parse(text: &str) -> Result<usize, BudgetMistake> {
    if text.is_empty() {
        return Err(BudgetMistake::Empty);
    }
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(usize::MAX);
    }
    if text.starts_with(['-', '\u{2212}']) {
        return Err(BudgetMistake::Negative);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction_missing = number.contains('.') && fraction.is_empty();
    if whole.is_empty() || fraction_missing || fraction.contains('.') {
        return Err(BudgetMistake::Number);
    }
    let unit = unit_bytes(unit)?;
    let fraction = fraction.trim_end_matches('0');
    let whole: u64 = whole.parse().map_err(|_| BudgetMistake::TooLarge)?;
    let bytes = u128::from(whole) * u128::from(unit) + u128::from(fraction_bytes(fraction, unit));
    if bytes == 0 && !fraction.is_empty() {
        return Err(BudgetMistake::Fraction);
    }
    // `usize::MAX` itself is what `UNLIMITED` is made of.
    usize::try_from(bytes).ok().filter(|&bytes| bytes < usize::MAX).ok_or(BudgetMistake::TooLarge)
}

/// The whole bytes in `0.fraction` of a unit: decimal multiplication as on paper, from the last digit. What
/// each digit leaves of a byte never adds up to one, so that it is exact for any number of digits.
fn fraction_bytes(fraction: &str, unit: u64) -> u64 {
    // At most 10 units, and ten of the largest unit are below 2^64.
    fraction.bytes().rev().fold(0, |carry: u64, digit| (u64::from(digit - b'0') * unit + carry) / 10)
}

fn unit_bytes(unit: &str) -> Result<u64, BudgetMistake> {
    if unit.is_empty() || unit.eq_ignore_ascii_case("byte") || unit.eq_ignore_ascii_case("bytes") {
        return Ok(1);
    }
    let known = BINARY.iter().chain(&DECIMAL).find(|(name, _)| name.eq_ignore_ascii_case(unit));
    match known {
        Some(&(_, bytes)) => Ok(bytes),
        None if unit.len() == 1 && "kmgtpe".contains(&unit.to_ascii_lowercase()) => {
            Err(BudgetMistake::HalfUnit { unit: unit.to_ascii_uppercase() })
        }
        None if unit.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Err(BudgetMistake::Unit { unit: unit.into() })
        }
        None => Err(BudgetMistake::Number),
    }
}

/// What is wrong with the text of a [`Budget`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetMistake {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// Less than nothing.
    #[error("it is negative")]
    Negative,
    /// It does not begin with a plain decimal number.
    #[error("it does not begin with a plain number")]
    Number,
    /// The unit is none of bytes.
    #[error("{unit} is not a unit of bytes")]
    Unit {
        /// What stands in place of a unit.
        unit: String,
    },
    /// A prefix without a unit.
    #[error("{unit} alone may mean 1000s or 1024s: say {unit}B or {unit}iB")]
    HalfUnit {
        /// The prefix, in upper case.
        unit: String,
    },
    /// It is above 0, but below one byte.
    #[error("it is less than one byte")]
    Fraction,
    /// No address is that large.
    #[error("it is more than this machine can address")]
    TooLarge,
}
