//! [`Quire`]: sums of products of posits without any rounding, by the Posit Standard (2022).
//!
//! Input -> output: posits in; their exact sum, difference, or sum of products inside; one rounding out.
//!
//! The standard's quire for posits of `n` bits is a fixed-point number of `16n` bits: a sign, 31 bits for
//! carries, `8n - 16` bits before and `8n - 16` bits after the point. Every product of two posits fits, and
//! so do `2^31 - 1` products of the largest numbers. What would leave this range is NaR, and NaR stays, until
//! [`Quire::clear`].
//!
//! How it is stored: digits of weight `2^32`, each in an `i128` that takes carries later. A product of posits
//! of up to 32 bits is shifted by less than 32 and added to *one* digit: no carry runs, whatever the signs
//! are. `room` says how many more products can be added before the range could be left (2^31 at most, so no
//! digit overflows); only then are carries moved and the range looked at. So the answer is that of a quire
//! which checks every step.
//!
//! Invariants: the value is the exact sum of what was added, and its bits do not depend on the order, as long
//! as no partial sum leaves the range. `room` is 0 if the quire is NaR.

mod accumulate;
mod digits;

use crate::bytes::{self, SumBytesError};
use crate::posit::{Posit, PositWidth, Unpacked};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{AddAssign, SubAssign};
use digits::{DIGIT_BITS, Layout, Long};

/// An exact sum of posits and products of posits; use the names [`Quire8`], [`Quire16`], [`Quire32`] and
/// [`Quire64`].
///
/// ```
/// use palinode_num::{Posit32, Quire32};
///
/// let p = Posit32::from_f64;
/// let (a, b) = ([p(1e10), p(1.0), p(-1e10)], [p(1e10), p(3.0), p(1e10)]);
/// assert_eq!(Quire32::dot(&a, &b), 3.0);
///
/// let mut quire = Quire32::new();
/// quire.add_product(Posit32::MAX, Posit32::MAX);
/// quire += Posit32::MIN_POSITIVE;
/// quire.sub_product(Posit32::MAX, Posit32::MAX);
/// assert_eq!(quire.to_posit(), Posit32::MIN_POSITIVE);
/// ```
#[derive(Clone)]
pub struct Quire<W: PositWidth> {
    digits: W::Digits,
    /// How many products can be added whatever they are.
    room: u32,
    nar: bool,
    width: PhantomData<W>,
}

/// 128 bits, for posits of 8 bits.
pub type Quire8 = Quire<i8>;
/// 256 bits, for posits of 16 bits.
pub type Quire16 = Quire<i16>;
/// 512 bits, for posits of 32 bits.
pub type Quire32 = Quire<i32>;
/// 1024 bits, for posits of 64 bits.
pub type Quire64 = Quire<i64>;

/// The scale and the magnitude, in units of `2^(scale - 30)`, of a posit of up to 32 bits, aligned at the
/// sign bit.
///
/// Without the sign bit, an encoding is a signed integer whose conversion to `f64` finds the end of the
/// regime: a run of ones makes it a small negative number. Exponent and mantissa of the float then are
/// regime, exponent and fraction in one piece, counted down instead of up where regime and sign differ. A
/// magnitude of exactly 2 comes out at a scale of one less, which is the same number. No branch, no shift by
/// a variable: the compiler does several at once.
#[inline(always)]
fn narrow_parts(bits: i32) -> (i64, i64) {
    let body = bits << 1;
    let float = f64::from(body).to_bits() as i64 & i64::MAX;
    let down = i64::from((bits ^ body) >> 31);
    // Regime 0 ends at bit 30 of 31: the exponent of the float is 1023 + 31 for it, and counts 4 scales a
    // step.
    const ZERO: i64 = 4 * (1023 + 31);
    let fraction = float >> 20 & ((1 << 30) - 1);
    let magnitude = (fraction ^ down) - down + (1 << 30) + (down & (1 << 30));
    (((float >> 50) - ZERO) ^ down, magnitude)
}

/// The product of two posits of up to 32 bits, in units of `2^(scale - 60)`, and its scale.
#[inline(always)]
fn narrow_product(a: i32, b: i32) -> (i64, i64) {
    let ((a_scale, a_size), (b_scale, b_size)) = (narrow_parts(a), narrow_parts(b));
    let sign = i64::from((a ^ b) >> 31);
    // Both sizes are at most 2^31, which the compiler need not prove to multiply 32 bits by 32 bits.
    let size = (u64::from(a_size as u32) * u64::from(b_size as u32)) as i64;
    (a_scale + b_scale, (size ^ sign) - sign)
}

/// How many products are made before they are added: enough that making them is done several at once.
const BLOCK: usize = 16;

/// The encoding of a narrow posit, aligned at the sign bit of 32.
#[inline(always)]
fn aligned<W: PositWidth>(x: Posit<W>) -> i32 {
    (x.pattern() >> 32) as i32
}

/// Zero or NaR: nothing is left when the sign is shifted out.
#[inline(always)]
fn is_special<W: PositWidth>(x: Posit<W>) -> bool {
    x.pattern() << 1 == 0
}

impl<W: PositWidth> Quire<W> {
    const LAYOUT: Layout = Layout::of(W::BITS);

    /// A quire that holds zero.
    #[must_use]
    pub const fn new() -> Self {
        Self { digits: W::NO_DIGITS, room: digits::PRODUCTS, nar: false, width: PhantomData }
    }

    /// Back to zero, also from NaR.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Whether something that is not a real was added, or the range was left.
    #[must_use]
    pub fn is_nar(&self) -> bool {
        self.nar
    }

    /// Adds `a * b`, exactly.
    #[inline]
    pub fn add_product(&mut self, a: Posit<W>, b: Posit<W>) {
        self.accumulate(a, b, false);
    }

    /// Subtracts `a * b`, exactly.
    #[inline]
    pub fn sub_product(&mut self, a: Posit<W>, b: Posit<W>) {
        self.accumulate(a, b, true);
    }

    /// Adds `times * a * b`, exactly: what `times` calls of [`add_product`](Self::add_product) do, in one
    /// step.
    ///
    /// ```
    /// use palinode_num::{Posit32, Quire32};
    ///
    /// let mut quire = Quire32::new();
    /// quire.add_product_times(Posit32::MAX, Posit32::MAX, (1 << 31) - 1);
    /// assert!(!quire.is_nar());
    /// quire.add_product(Posit32::MAX, Posit32::MAX);
    /// assert!(quire.is_nar());
    /// ```
    pub fn add_product_times(&mut self, a: Posit<W>, b: Posit<W>, times: u64) {
        self.accumulate_slowly(a, b, false, times);
    }

    /// Adds `a[i] * b[i]` for all `i`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn add_products(&mut self, a: &[Posit<W>], b: &[Posit<W>]) {
        assert_eq!(a.len(), b.len(), "quire: the slices have {} and {} elements", a.len(), b.len());
        let (mut a, mut b) = (a, b);
        while let ([x, ..], [y, ..]) = (a, b) {
            if self.room == 0 {
                self.accumulate_slowly(*x, *y, false, 1);
                (a, b) = (&a[1..], &b[1..]);
                continue;
            }
            // As many as surely fit are added without looking at the room.
            let count = a.len().min(self.room as usize);
            let ((now_a, later_a), (now_b, later_b)) = (a.split_at(count), b.split_at(count));
            self.room -= count as u32;
            let ((blocks_a, ends_a), (blocks_b, ends_b)) = (now_a.as_chunks(), now_b.as_chunks());
            blocks_a.iter().zip(blocks_b).for_each(|(x, y)| self.add_block(x, y));
            ends_a.iter().zip(ends_b).for_each(|(&x, &y)| self.add_one(x, y));
            if self.nar {
                return self.become_nar();
            }
            (a, b) = (later_a, later_b);
        }
    }

    /// The dot product with a single rounding.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn dot(a: &[Posit<W>], b: &[Posit<W>]) -> Posit<W> {
        let mut quire = Self::new();
        quire.add_products(a, b);
        quire.to_posit()
    }

    #[inline(always)]
    fn accumulate(&mut self, a: Posit<W>, b: Posit<W>, subtract: bool) {
        if is_special(a) || is_special(b) {
            self.add_special(a, b);
        } else if self.room == 0 {
            self.accumulate_slowly(a, b, subtract, 1);
        } else {
            self.room -= 1;
            self.add_exactly(a, b, subtract);
        }
    }

    /// Adds a product for which there is room.
    #[inline(always)]
    fn add_one(&mut self, a: Posit<W>, b: Posit<W>) {
        if is_special(a) || is_special(b) {
            self.add_special(a, b);
        } else {
            self.add_exactly(a, b, false);
        }
    }

    /// Adds the products of blocks for which there is room.
    #[inline(always)]
    fn add_block(&mut self, a: &[Posit<W>; BLOCK], b: &[Posit<W>; BLOCK]) {
        let special = a.iter().zip(b).fold(false, |any, (&x, &y)| any | is_special(x) | is_special(y));
        if W::BITS > 32 || special {
            a.iter().zip(b).for_each(|(&x, &y)| self.add_one(x, y));
            return;
        }
        let (mut scales, mut products) = ([0; BLOCK], [0; BLOCK]);
        for index in 0..BLOCK {
            (scales[index], products[index]) = narrow_product(aligned(a[index]), aligned(b[index]));
        }
        for (scale, product) in scales.into_iter().zip(products) {
            self.add_narrow(scale, product);
        }
    }

    #[inline(always)]
    fn add_narrow(&mut self, scale: i64, product: i64) {
        let position = (scale + Self::LAYOUT.point) as usize;
        self.digits.as_mut()[position / DIGIT_BITS] += i128::from(product) << (position % DIGIT_BITS);
    }

    /// Adds or subtracts a product that is neither zero nor NaR, and for which there is room.
    #[inline(always)]
    fn add_exactly(&mut self, a: Posit<W>, b: Posit<W>, subtract: bool) {
        if W::BITS <= 32 {
            let (scale, product) = narrow_product(aligned(a), aligned(b));
            self.add_narrow(scale, if subtract { -product } else { product });
        } else {
            let digits = self.digits.as_mut();
            let (x, y) = (Unpacked::of(a.pattern()), Unpacked::of(b.pattern()));
            let product = u128::from(x.significand >> 4) * u128::from(y.significand >> 4);
            let sign = -i128::from((x.negative != y.negative) != subtract);
            let position = (i64::from(x.scale + y.scale) + Self::LAYOUT.point) as usize;
            let (first, shift) = (position / DIGIT_BITS, position % DIGIT_BITS);
            digits[first] += (i128::from(product as u64) << shift ^ sign) - sign;
            digits[first + 2] += (i128::from((product >> 64) as u64) << shift ^ sign) - sign;
        }
    }

    /// Adds a product with a zero or a NaR.
    #[cold]
    fn add_special(&mut self, a: Posit<W>, b: Posit<W>) {
        if a.is_nar() || b.is_nar() {
            self.become_nar();
        }
    }

    /// Many at once, and what may leave the range.
    #[cold]
    #[inline(never)]
    fn accumulate_slowly(&mut self, a: Posit<W>, b: Posit<W>, subtract: bool, times: u64) {
        if self.nar || times == 0 {
            return;
        }
        if a.is_nar() || b.is_nar() {
            return self.become_nar();
        }
        let (Some(x), Some(y)) = (a.unpack(), b.unpack()) else { return };
        let negative = (x.negative != y.negative) != subtract;
        let mut long = Long::of(self.digits.as_ref());
        long.add_product(&Self::LAYOUT, x, y, negative, times);
        self.set(long);
    }

    fn become_nar(&mut self) {
        *self = Self { nar: true, room: 0, ..Self::new() };
    }

    /// Takes over a value, if it is within the range.
    fn set(&mut self, value: Long) {
        let mut value = value;
        match value.settle(&Self::LAYOUT) {
            Some(room) => {
                value.copy_to(self.digits.as_mut());
                self.room = room;
            }
            None => self.become_nar(),
        }
    }

    /// Adds what another quire holds.
    ///
    /// ```
    /// use palinode_num::{Posit16, Quire16};
    ///
    /// let x: Vec<Posit16> = (1..=100).map(Posit16::from_integer).collect();
    /// let (mut left, mut right) = (Quire16::new(), Quire16::new());
    /// left.add_products(&x[..30], &x[..30]);
    /// right.add_products(&x[30..], &x[30..]);
    /// left.merge(&right);
    /// assert_eq!(left.to_posit(), Quire16::dot(&x, &x));
    /// ```
    pub fn merge(&mut self, other: &Self) {
        self.combine(other, false);
    }

    /// Subtracts what another quire holds.
    pub fn unmerge(&mut self, other: &Self) {
        self.combine(other, true);
    }

    fn combine(&mut self, other: &Self, subtract: bool) {
        if self.nar || other.nar {
            return self.become_nar();
        }
        let mut sum = Long::of(self.digits.as_ref());
        let mut term = Long::of(other.digits.as_ref());
        // Carries first, so that adding digits cannot overflow them.
        sum.carry();
        term.carry();
        sum.add(&term, subtract);
        self.set(sum);
    }

    /// Changes the sign.
    pub fn negate(&mut self) {
        for digit in self.digits.as_mut() {
            *digit = -*digit;
        }
    }

    /// The nearest posit: the only rounding.
    #[must_use]
    pub fn to_posit(&self) -> Posit<W> {
        if self.nar {
            return Posit::NAR;
        }
        let mut long = Long::of(self.digits.as_ref());
        long.carry();
        long.unpacked(&Self::LAYOUT).map_or(Posit::ZERO, Posit::nearest)
    }

    /// The standard's encoding: a two's complement number of `16 * BITS` bits in 64-bit words, lowest first.
    /// NaR is the sign bit alone.
    #[must_use]
    pub fn to_words(&self) -> Vec<u64> {
        let count = W::BITS as usize / 4;
        if self.nar {
            let mut words = vec![0; count];
            words[count - 1] = 1 << 63;
            return words;
        }
        let mut long = Long::of(self.digits.as_ref());
        long.carry();
        long.words(&Self::LAYOUT, count)
    }

    /// The value as bytes, the same however it came about: the frame of
    /// [`ExactSum::to_bytes`](crate::ExactSum::to_bytes), with the bits of a posit for the kind, around
    /// [`to_words`](Self::to_words).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let beyond = if self.nar { 4 } else { 0 };
        bytes::write(W::BITS as u8, beyond, self.to_words().into_iter().flat_map(u64::to_le_bytes))
    }

    /// The quire that was written by [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SumBytesError> {
        let (_, integer) = bytes::read(W::BITS as u8, 2 * W::BITS as usize, bytes)?;
        let words: Vec<u64> = integer.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let mut quire = Self::new();
        quire.set(Long::of_words(&words, &Self::LAYOUT));
        Ok(quire)
    }
}

impl<W: PositWidth> Default for Quire<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: PositWidth> AddAssign<Posit<W>> for Quire<W> {
    #[inline]
    fn add_assign(&mut self, term: Posit<W>) {
        self.add_product(term, Posit::ONE);
    }
}

impl<W: PositWidth> SubAssign<Posit<W>> for Quire<W> {
    #[inline]
    fn sub_assign(&mut self, term: Posit<W>) {
        self.sub_product(term, Posit::ONE);
    }
}

impl<W: PositWidth> PartialEq for Quire<W> {
    /// The same value, or both NaR.
    fn eq(&self, other: &Self) -> bool {
        self.to_words() == other.to_words()
    }
}

impl<W: PositWidth> Eq for Quire<W> {}

impl<W: PositWidth> fmt::Debug for Quire<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quire{}(", W::BITS)?;
        for word in self.to_words().iter().rev() {
            write!(f, "{word:016x}")?;
        }
        write!(f, ": {})", self.to_posit())
    }
}
