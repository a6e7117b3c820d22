//! Random numbers as a pure function: key and counter in, bits out.
//!
//! Input: a [`Key`] and a counter. Output: the same bits for the same pair, on every machine, in any order
//! and on any thread. Nothing is stored, so a draw can be made again wherever it is needed: in a replay, in a
//! reverse sweep, or for every parameter of a random direction.
//!
//! The generator is Philox4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
//! 3", 2011): ten rounds of multiplications, a 128-bit key, a 256-bit counter, four words a block. Its key is
//! wide enough that the keys of even 2^50 children are all different but for a chance of 2^-28. Logarithm,
//! sine and cosine come from `libm`, which is the same code on every platform.
//!
//! Invariants: draws use the blocks whose last counter word is 0; children of a key come from blocks whose
//! last word is not, so no draw tells about a child.
//!
//! Known limits: not for secrets. A stream has 2^64 draws of each kind. Draws of different kinds at one
//! counter are made of the same bits: use a child for each purpose.

use core::f64::consts::TAU;

/// What the last word of a counter says a block is for.
const DRAWS: u64 = 0;
const SPLIT: u64 = 1;
const FOLD: u64 = 2;

/// A stream of random numbers, and the root of further streams.
///
/// ```
/// use palinode_num::Key;
///
/// let key = Key::from_seed(7);
/// let (weights, noise) = (key.split(0), key.split(1)); // independent streams
/// let third = weights.gaussian(3);                      // draw number 3, without the ones before it
/// assert_eq!(third, Key::from_seed(7).split(0).gaussian(3));
/// assert_ne!(third, noise.gaussian(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u64; 2]);

impl Key {
    /// The key of a seed. Different seeds have different keys.
    pub const fn from_seed(seed: u64) -> Self {
        Key([seed, 0])
    }

    /// Its two words, for keeping it.
    pub const fn words(self) -> [u64; 2] {
        self.0
    }

    /// The key that these are the words of; see [`Key::words`].
    pub const fn from_words(words: [u64; 2]) -> Self {
        Key(words)
    }

    /// Child number `i`: a stream of its own.
    #[inline]
    pub fn split(self, i: u64) -> Key {
        self.child(i, SPLIT)
    }

    /// The key of this stream at step, sample or time `i`; other than child number `i`.
    #[inline]
    pub fn fold(self, i: u64) -> Key {
        self.child(i, FOLD)
    }

    fn child(self, i: u64, purpose: u64) -> Key {
        let [a, b, ..] = philox([i, 0, 0, purpose], self.0);
        Key([a, b])
    }

    /// Four words at once: draws `4 i` to `4 i + 3` of [`u64`](Self::u64).
    #[inline]
    pub fn block(self, i: u64) -> [u64; 4] {
        philox([i, 0, 0, DRAWS], self.0)
    }

    /// Uniform over all 64-bit words.
    #[inline]
    pub fn u64(self, counter: u64) -> u64 {
        self.block(counter / 4)[(counter % 4) as usize]
    }

    /// Uniform over `0..n`. The probabilities differ by less than 2^-64.
    ///
    /// # Panics
    /// If `n` is 0.
    #[inline]
    pub fn below(self, n: u64, counter: u64) -> u64 {
        assert!(n > 0, "there is no number below 0");
        ((u128::from(self.u64(counter)) * u128::from(n)) >> 64) as u64
    }

    /// Uniform from 0 (included) to 1 (excluded), a multiple of 2^-53.
    #[inline]
    pub fn uniform(self, counter: u64) -> f64 {
        unit(self.u64(counter))
    }

    /// Standard normal, by the method of Box and Muller; at most 8.58 in size.
    #[inline]
    pub fn gaussian(self, counter: u64) -> f64 {
        self.gaussians(counter / 4)[(counter % 4) as usize]
    }

    /// Four at once: draws `4 i` to `4 i + 3` of [`gaussian`](Self::gaussian).
    pub fn gaussians(self, i: u64) -> [f64; 4] {
        let [a, b, c, d] = self.block(i);
        let ([first, second], [third, fourth]) = (normal_pair(a, b), normal_pair(c, d));
        [first, second, third, fourth]
    }

    /// 1 or -1, each half of the time. A block of the generator gives 256.
    #[inline]
    pub fn rademacher(self, counter: u64) -> f64 {
        let bit = self.u64(counter / 64) >> (counter % 64) & 1;
        1.0 - 2.0 * bit as f64
    }
}

/// The draws of a key, one after another: for tests and made-up data that ask for numbers in order.
///
/// ```
/// use palinode_num::{Draws, Key};
///
/// let mut draws = Draws::new(7);
/// assert_eq!((draws.u64(), draws.uniform()), (Key::from_seed(7).u64(1), Key::from_seed(7).uniform(2)));
/// ```
#[derive(Clone, Debug)]
pub struct Draws {
    key: Key,
    drawn: u64,
}

impl Draws {
    /// Those of the key of a seed, from draw number 1 on.
    pub const fn new(seed: u64) -> Draws {
        Draws { key: Key::from_seed(seed), drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Uniform over all 64-bit words.
    pub fn u64(&mut self) -> u64 {
        self.key.u64(self.next())
    }

    /// Uniform over `0..n`; 0 if that is empty.
    pub fn below(&mut self, n: usize) -> usize {
        self.key.below(n.max(1) as u64, self.next()) as usize
    }

    /// True so many times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these, each as likely as the others.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Uniform from 0 (included) to 1 (excluded).
    pub fn uniform(&mut self) -> f64 {
        self.key.uniform(self.next())
    }

    /// Uniform from -1 (included) to 1 (excluded).
    pub fn signed(&mut self) -> f64 {
        self.uniform() * 2.0 - 1.0
    }

    /// Standard normal.
    pub fn gaussian(&mut self) -> f64 {
        self.key.gaussian(self.next())
    }
}

/// Uniform from 0 (included) to 1 (excluded).
#[inline]
fn unit(word: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    (word >> 11) as f64 * STEP
}

fn normal_pair(a: u64, b: u64) -> [f64; 2] {
    let radius = (-2.0 * libm::log(1.0 - unit(a))).sqrt();
    let (sine, cosine) = libm::sincos(TAU * unit(b));
    [radius * cosine, radius * sine]
}

/// Ten rounds of Philox4x64.
#[inline]
fn philox(mut counter: [u64; 4], mut key: [u64; 2]) -> [u64; 4] {
    const MULTIPLIERS: [u64; 2] = [0xd2e7_470e_e14c_6c93, 0xca5a_8263_9512_1157];
    const WEYL: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbb67_ae85_84ca_a73b];
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let [(high_0, low_0), (high_1, low_1)] =
            [wide_product(MULTIPLIERS[0], counter[0]), wide_product(MULTIPLIERS[1], counter[2])];
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
    }
    counter
}

#[inline(always)]
fn wide_product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::{Key, philox};

    /// The vectors that the authors publish with Random123 (`kat_vectors`, philox4x64 10).
    #[test]
    fn known_answers() {
        let all = u64::MAX;
        let cases = [
            (
                [0; 4],
                [0; 2],
                [0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b],
            ),
            (
                [all; 4],
                [all; 2],
                [0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0],
            ),
            (
                [0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89],
                [0x452821e638d01377, 0xbe5466cf34e90c6c],
                [0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected, "{counter:x?} {key:x?}");
        }
        assert_eq!(Key::from_seed(0).block(0), cases[0].2);
    }

    /// Same key, same bits: a change here changes everybody's runs.
    #[test]
    fn draws_do_not_change() {
        let key = Key::from_seed(1).split(2).fold(3);
        assert_eq!(key.u64(5), key.block(1)[1]);
        assert_eq!(key.uniform(5), (key.u64(5) >> 11) as f64 / 9007199254740992.0);
        assert_eq!(key.gaussian(6), key.gaussians(1)[2]);
    }

    #[test]
    fn children_differ_from_draws_and_from_one_another() {
        let key = Key::from_seed(9);
        let mut keys: Vec<[u64; 2]> = (0..500).flat_map(|i| [key.split(i).0, key.fold(i).0]).collect();
        keys.extend((0..500).map(|i| [key.u64(4 * i), key.u64(4 * i + 1)]));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 1500);
    }

    /// Six standard errors each: a wrong constant is off by hundreds.
    #[test]
    fn moments() {
        let (n, key) = (20_000u64, Key::from_seed(3));
        let moment = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let near = |found: f64, expected: f64, variance: f64| {
            assert!((found - expected).abs() < 6.0 * (variance / n as f64).sqrt(), "{found}, not {expected}");
        };
        near(moment(&|i| key.uniform(i)), 0.5, 1.0 / 12.0);
        near(moment(&|i| key.uniform(i).powi(2)), 1.0 / 3.0, 4.0 / 45.0);
        near(moment(&|i| key.rademacher(i)), 0.0, 1.0);
        near(moment(&|i| key.rademacher(i) * key.rademacher(i + 1)), 0.0, 1.0);
        near(moment(&|i| key.gaussian(i)), 0.0, 1.0);
        near(moment(&|i| key.gaussian(i).powi(2)), 1.0, 2.0);
        near(moment(&|i| key.gaussian(i).powi(4)), 3.0, 96.0);
        near(moment(&|i| key.gaussian(i) * key.gaussian(i + 1)), 0.0, 1.0);
        near(moment(&|i| key.below(10, i) as f64), 4.5, 8.25);
        assert!((0..n).all(|i| key.below(3, i) < 3));
    }
}
