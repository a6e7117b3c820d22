//! Natural numbers of any size, as small as decimal text needs them: times and over small numbers, shifts,
//! digits.

/// Digits in base 2^32, lowest first, without leading zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Big {
    digits: Vec<u32>,
}

impl From<u64> for Big {
    fn from(n: u64) -> Self {
        Self { digits: vec![n as u32, (n >> 32) as u32] }.trimmed()
    }
}

impl Big {
    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        self
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// `self = self * factor + addend`.
    pub(super) fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = addend;
        for digit in &mut self.digits {
            (*digit, carry) = digit.carrying_mul(factor, carry);
        }
        if carry != 0 {
            self.digits.push(carry);
        }
    }

    /// `self = self / divisor`; gives the remainder.
    pub(super) fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for digit in self.digits.iter_mut().rev() {
            let part = rest << 32 | u64::from(*digit);
            *digit = (part / u64::from(divisor)) as u32;
            rest = part % u64::from(divisor);
        }
        *self = core::mem::take(self).trimmed();
        rest as u32
    }

    /// `self = self * base^power`.
    pub(super) fn times_power(&mut self, base: u32, power: u32) {
        for_powers(base, power, |factor| self.multiply_add(factor, 0));
    }

    /// `self = self / base^power`; tells whether anything was left over.
    pub(super) fn over_power(&mut self, base: u32, power: u32) -> bool {
        let mut left_over = false;
        for_powers(base, power, |divisor| left_over |= self.divide(divisor) != 0);
        left_over
    }

    /// `self = self * 2^power`.
    pub(super) fn shift_up(&mut self, power: u32) {
        self.times_power(2, power % 32);
        if !self.is_zero() {
            self.digits.splice(0..0, core::iter::repeat_n(0, (power / 32) as usize));
        }
    }

    /// The highest 128 bits, the power of two of the lowest of them, and whether anything is below.
    pub(super) fn top(&self) -> (u128, i32, bool) {
        let start = self.digits.len().saturating_sub(4);
        let top = self.digits[start..].iter().rev().fold(0, |top, &digit| top << 32 | u128::from(digit));
        (top, 32 * start as i32, self.digits[..start].iter().any(|&digit| digit != 0))
    }

    /// Decimal digits, highest first.
    pub(super) fn decimal_digits(mut self) -> Vec<u8> {
        let mut digits = Vec::new();
        while !self.is_zero() {
            let mut nine = self.divide(1_000_000_000);
            for _ in 0..9 {
                digits.push((nine % 10) as u8);
                nine /= 10;
            }
        }
        digits.reverse();
        digits
    }
}

/// `base^power` in factors that fit 32 bits.
fn for_powers(base: u32, power: u32, mut with: impl FnMut(u32)) {
    let mut left = power;
    while left > 0 {
        let (mut factor, mut taken) = (base, 1);
        while taken < left && factor.checked_mul(base).is_some() {
            factor *= base;
            taken += 1;
        }
        with(factor);
        left -= taken;
    }
}
