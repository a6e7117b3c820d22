//! Tables keyed by values and other small numbers of our own: [`Marks`] and [`Table`] where most values of a
//! function are in them, [`FastSet`] and [`FastMap`] where few are.
//!
//! The hash is a multiplication per word: nobody crafts these keys, so the protection that the standard hash
//! pays for (five times as long) protects nothing. Whatever is written in the order of such a table must be
//! sorted first, as with any other; then programs do not depend on it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::types::Value;

/// A set of values: a mark for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Vec<bool>);

impl Marks {
    pub(crate) fn contains(&self, value: &Value) -> bool {
        self.0.get(value.index()).is_some_and(|marked| *marked)
    }

    /// Whether it was not there.
    pub(crate) fn insert(&mut self, value: Value) -> bool {
        if value.index() >= self.0.len() {
            self.0.resize(value.index() + 1, false);
        }
        !core::mem::replace(&mut self.0[value.index()], true)
    }
}

impl FromIterator<Value> for Marks {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Marks {
        let mut marks = Marks::default();
        values.into_iter().for_each(|value| {
            marks.insert(value);
        });
        marks
    }
}

/// Something small for each value, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Table<T>(Vec<Option<T>>);

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(Vec::new())
    }
}

impl<T: Clone> Table<T> {
    pub(crate) fn get(&self, value: &Value) -> Option<&T> {
        self.0.get(value.index())?.as_ref()
    }

    pub(crate) fn contains_key(&self, value: &Value) -> bool {
        self.get(value).is_some()
    }

    pub(crate) fn insert(&mut self, value: Value, entry: T) {
        if value.index() >= self.0.len() {
            self.0.resize(value.index() + 1, None);
        }
        self.0[value.index()] = Some(entry);
    }
}

impl<T: Clone> core::ops::Index<&Value> for Table<T> {
    type Output = T;
    fn index(&self, value: &Value) -> &T {
        self.get(value).expect("there is an entry")
    }
}

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
