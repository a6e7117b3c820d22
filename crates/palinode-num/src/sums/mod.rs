//! The one order of sums and the one chain of products.
//!
//! Input: numbers, in slices or by index. Output: their sum, dot product, or a product of matrices.
//! All engines (tape, arrays, interpreter, generated code) follow this text, so that their bits agree, on
//! every machine.
//!
//! - **Sum** of `x[0..n]`. Blocks of [`BLOCK`] elements. In a block, lane `l` of [`LANES`] adds the block's
//!   elements `l`, `l + 16`, `l + 32`, ... one after the other. A lane starts with its first element; without
//!   one it is absent. Lanes are combined by halving: lane `l` with lane `l + 8`, then `l + 4`, `l + 2`, `l +
//!   1`; an absent partner changes nothing. Block sums are combined by a pairwise tree: the tree of `n`
//!   blocks adds the tree of the first ones, as many as the largest power of two below `n`, and the tree of
//!   the rest. The sum of nothing is +0.
//! - **Dot product** of `a` and `b`: the sum of the rounded products `a[i] * b[i]`. In a *strong* one each
//!   product is a strong product (0 where a zero wins over infinity or NaN) in its place.
//! - **Product of matrices**, if the result is a matrix: every entry is one chain of fused multiplications
//!   and additions over `k` in ascending order, `c = fma(a[i, k], b[k, j], c)`, from +0 or from what is
//!   given. In a *strong* one a product in which a zero wins over infinity or NaN is skipped. If the result
//!   is a vector or a number, its entries are dot products.
//!
//! Vectors and threads keep these bits: lanes and blocks are independent of each other, and so are entries.
//! The starting value of a lane may be -0, which is the same as absent, since -0 + x is x. A chain that is
//! left and continued is the same chain. Sums that a program writes as a loop, and those of iterators, are
//! added one term after another, as written.
//!
//! The reference over any number is in `scalar/order.rs`; `floats.rs` has the same for slices of floats by
//! vector instructions, `lines.rs` for many sums side by side, [`crate::products`] products of matrices.
//!
//! Error: each of `n` terms takes part in at most `64 + 4 + log2(n / 1024)` roundings, not `n`.
//!
//! Known limits: the bits of a NaN (its sign and payload) are not defined. Numbers that round products before
//! they add (double-doubles) do so in chains, too.

pub(crate) mod floats;
pub(crate) mod lines;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::scalar::order::{BLOCK, LANES};
pub use lines::sum_axis;

/// Block sums on the way into their tree: like the digits of a binary counter, at most one for each power of
/// two.
pub(crate) struct Tree<T> {
    /// The sums of most blocks come first.
    sums: [T; 64],
    held: usize,
    /// How many blocks there have been.
    blocks: usize,
}

impl<T: Copy> Tree<T> {
    #[inline(always)]
    pub(crate) fn new(nothing: T) -> Self {
        Tree { sums: [nothing; 64], held: 0, blocks: 0 }
    }

    /// Takes the sum of the next `blocks` blocks, a power of two that divides how many there have been.
    #[inline(always)]
    pub(crate) fn push(&mut self, blocks: usize, mut sum: T, add: impl Fn(T, T) -> T) {
        let mut size = blocks;
        while self.blocks & size != 0 {
            self.held -= 1;
            sum = add(self.sums[self.held], sum);
            size *= 2;
        }
        self.sums[self.held] = sum;
        self.held += 1;
        self.blocks += blocks;
    }

    /// The sum of all; there must be a block.
    #[inline(always)]
    pub(crate) fn total(&self, add: impl Fn(T, T) -> T) -> T {
        let mut total = self.sums[self.held - 1];
        for &sum in self.sums[..self.held - 1].iter().rev() {
            total = add(sum, total);
        }
        total
    }
}
