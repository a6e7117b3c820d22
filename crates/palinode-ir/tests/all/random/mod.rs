//! Random well-typed programs, of two kinds: `.pal` sources, made as trees, printed and shrunk; and programs
//! built directly.
//!
//! | file | does |
//! |---|---|
//! | `source` | a source as a tree, and its text |
//! | `generate` | a number -> a tree |
//! | `shrink` | a tree that fails -> a small tree that fails |
//! | `variant` | operations in a program that no source spells out |
//! | `coverage` | which operations carried a derivative, in how many programs |
//! | `programs` | a number -> a program, full of what passes look for |

pub(crate) mod coverage;
pub(crate) mod generate;
pub(crate) mod programs;
pub(crate) mod shrink;
pub(crate) mod source;
pub(crate) mod variant;

use palinode_core::Key;

/// A sequence of random choices: the draws of a key, one after another.
pub(crate) struct Random {
    key: Key,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { key: Key::from_seed(seed), drawn: 0 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.key.u64(self.drawn)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        self.key.below(n as u64, self.drawn) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A number in (-1, 1).
    pub(crate) fn signed(&mut self) -> f64 {
        self.drawn += 1;
        self.key.uniform(self.drawn) * 2.0 - 1.0
    }
}
