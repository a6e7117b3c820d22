//! Tables keyed by values and other small numbers of our own.
//!
//! The hash is a multiplication per word: nobody crafts these keys, so the protection that the standard hash pays for (five times as long) protects nothing. Whatever is
//! written in the order of such a table must be sorted first, as with any other; then programs do not depend on it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with a cheap hash.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Numbers>>;
/// A set with a cheap hash.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<Numbers>>;

/// Words, multiplied together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Numbers(u64);

impl Numbers {
    fn add(&mut self, word: u64) {
        // An odd number without pattern: 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        // Tables take the place from the low bits, which a product mixes least.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.add(n as u64);
    }
}
