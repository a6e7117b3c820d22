//! Random choices of unit tests: the draws of a key, one after another.

use palinode_num::Key;

#[derive(Clone)]
pub(crate) struct Random {
    key: Key,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { key: Key::from_seed(seed), drawn: 0 }
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        self.key.below(n.max(1) as u64, self.drawn) as usize
    }

    /// From 0 (included) to 1 (excluded).
    pub(crate) fn unit(&mut self) -> f64 {
        self.drawn += 1;
        self.key.uniform(self.drawn)
    }

    /// From -1 (included) to 1 (excluded).
    pub(crate) fn signed(&mut self) -> f64 {
        self.unit() * 2.0 - 1.0
    }
}
