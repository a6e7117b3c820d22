//! Decimal digits, exactly: what reading and writing numbers is done with.
//!
//! Input -> output: text that `f64` is able to read in, digits out; sums, differences and roundings of them;
//! text in positional or scientific form out.

/// A decimal number that is not negative: `0.d1 d2 d3 ... * 10^point`.
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    pub(crate) digits: Vec<u8>,
    pub(crate) point: i64,
}

impl Decimal {
    /// From text without a sign that `f64` was able to read.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        Some(Self { digits, point: whole.len() as i64 + exponent }.trimmed())
    }

    /// All digits of the magnitude of a finite `f64`.
    pub(crate) fn exactly(v: f64) -> Self {
        /// The smallest subnormal ends at this digit after the point.
        const LAST_DIGIT: usize = 1074;
        Self::parse(&format!("{:.LAST_DIGIT$}", v.abs())).expect("f64 writes plain decimals")
    }

    pub(crate) fn trimmed(mut self) -> Self {
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
    pub(crate) fn digit(&self, place: i64) -> u8 {
        usize::try_from(place + self.point - 1)
            .ok()
            .and_then(|index| self.digits.get(index))
            .copied()
            .unwrap_or(0)
    }

    pub(crate) fn last_place(&self) -> i64 {
        self.digits.len() as i64 - self.point
    }

    pub(crate) fn is_below(&self, other: &Self) -> bool {
        if self.digits.is_empty() || other.digits.is_empty() {
            return !other.digits.is_empty();
        }
        (self.point, &self.digits) < (other.point, &other.digits)
    }

    /// `self + sign * other`, where a difference must not be negative.
    pub(crate) fn combine(&self, other: &Self, sign: i8) -> Self {
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

    /// The decimals of `count` digits on either side, the nearer one first; it has more digits than that.
    pub(crate) fn neighbours(&self, count: usize) -> [Self; 2] {
        let below = Self { digits: self.digits[..count].to_vec(), point: self.point };
        let unit = Self { digits: vec![1], point: self.point - count as i64 + 1 };
        let above = below.combine(&unit, 1);
        let is_up = self.digits[count] > 5 || self.digits[count] == 5 && self.digits.len() > count + 1;
        if is_up { [above, below.trimmed()] } else { [below.trimmed(), above] }
    }

    /// Rounded to this many digits, ties to even.
    pub(crate) fn rounded(mut self, count: i64) -> Self {
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

    /// As text in the form asked for: all of the short digits, or as many of the exact ones as a precision
    /// says.
    pub(crate) fn text(
        precision: Option<usize>,
        scientific: bool,
        short: impl FnOnce() -> Self,
        exact: impl FnOnce() -> Self,
    ) -> String {
        let Some(decimals) = precision else {
            return if scientific { short().scientific() } else { short().positional(0) };
        };
        let exact = exact();
        if !scientific {
            let count = exact.point + decimals as i64;
            return exact.rounded(count).positional(decimals as i64);
        }
        let is_zero = exact.digits.is_empty();
        let mut rounded = exact.rounded(decimals as i64 + 1);
        // The digits asked for are written even where they are 0.
        rounded.digits.resize(decimals + 1, 0);
        rounded.point = if is_zero { 1 } else { rounded.point };
        rounded.scientific()
    }

    /// In scientific form; the form that `f64` reads.
    pub(crate) fn scientific(&self) -> String {
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
    pub(crate) fn positional(&self, decimals: i64) -> String {
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
