//! From a rule to every derivative number: the operation runs on the inner number, then its rule is applied.
//!
//! Input: matrices of a derivative number, the values of the results, and a [`Rule`] with what it saved.
//! Output: matrices of that number. `Dual` and `DualN` push tangents through the rule at once; `Var` records
//! one custom operation for all results, which sweeps later push cotangents or tangents through.
//!
//! Invariants: a rule sees whole matrices of the inner number, zero where the number is structurally constant
//! (the other triangle); a matrix without an active entry is no input of the node. There is no formula in
//! this file.

use super::dense;
use super::kernel::Kernel;
use super::results::Factored;
use crate::error::Error;
use crate::tape::{CustomRule, Var, custom};
use crate::{Dual, DualN, Passive};
use nalgebra::DMatrix;

/// Which entries of a matrix an operation reads or makes; the others are constants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    Full,
    Lower,
    StrictlyLower,
    Upper,
}

/// The shape of one matrix that goes into an operation or comes out of it.
#[derive(Clone, Copy, Debug)]
struct Block {
    rows: usize,
    columns: usize,
    layout: Layout,
}

impl Block {
    fn of<T>(matrix: &DMatrix<T>, layout: Layout) -> Block {
        Block { rows: matrix.nrows(), columns: matrix.ncols(), layout }
    }

    /// The entries, column by column.
    fn entries(self) -> impl Iterator<Item = (usize, usize)> {
        let held = move |&(i, j): &(usize, usize)| match self.layout {
            Layout::Full => true,
            Layout::Lower => i >= j,
            Layout::StrictlyLower => i > j,
            Layout::Upper => i <= j,
        };
        (0..self.columns).flat_map(move |j| (0..self.rows).map(move |i| (i, j))).filter(held)
    }

    /// The matrix with zeros wherever this block has no entry.
    fn masked<T: Kernel>(self, matrix: DMatrix<T>) -> DMatrix<T> {
        match self.layout {
            Layout::Full => matrix,
            _ => self.unpack(self.entries().map(|entry| matrix[entry])),
        }
    }

    /// Entries in order as a matrix, zero elsewhere.
    fn unpack<T: Kernel>(self, entries: impl Iterator<Item = T>) -> DMatrix<T> {
        let mut matrix = DMatrix::repeat(self.rows, self.columns, T::zero());
        self.entries().zip(entries).for_each(|(entry, x)| matrix[entry] = x);
        matrix
    }
}

/// The derivative of one evaluation of an operation, as two linear maps that are each other's adjoint.
pub(super) trait Rule<S: Kernel>: Send + 'static {
    /// How tables call the operation.
    const NAME: &'static str;
    /// Which entries of its results it makes; those that are not listed, all.
    const OUTPUTS: &'static [Layout] = &[];
    /// Which entries of its first matrix it reads; of others all.
    fn first_input(&self) -> Layout {
        Layout::Full
    }
    /// Tangents of the inputs to tangents of the outputs.
    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error>;
    /// Cotangents of the outputs to cotangents of the inputs; those that are not wanted may be left out.
    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error>;
    /// The heap bytes saved.
    fn saved_bytes(&self) -> usize;
}

/// A number made of an inner number and its derivative.
pub(super) trait Lifted: Kernel<Factored = Factored<Self, <Self::Inner as Kernel>::Factored>> {
    type Inner: Kernel;
    /// Whether it carries one direction, so that derivatives which exist only direction by direction make
    /// sense.
    const ONE_DIRECTION: bool;

    fn inner(self) -> Self::Inner;
    fn constant_of(inner: Self::Inner) -> Self;
    fn is_constant(self) -> bool;
    /// The results with these values and the derivative that the rule gives them.
    fn apply<const N: usize, R: Rule<Self::Inner>>(
        inputs: &[&DMatrix<Self>],
        values: [DMatrix<Self::Inner>; N],
        rule: R,
    ) -> Result<[DMatrix<Self>; N], Error>;
}

/// What goes into an evaluation of an operation and comes out of it.
struct Blocks {
    inputs: Vec<Block>,
    outputs: Vec<Block>,
}

impl Blocks {
    fn of<T: Lifted, R: Rule<T::Inner>>(
        rule: &R,
        inputs: &[&DMatrix<T>],
        values: &[DMatrix<T::Inner>],
    ) -> Blocks {
        let output = |k: usize| R::OUTPUTS.get(k).copied().unwrap_or(Layout::Full);
        let input = |k: usize| if k == 0 { rule.first_input() } else { Layout::Full };
        Blocks {
            inputs: inputs.iter().enumerate().map(|(k, matrix)| Block::of(matrix, input(k))).collect(),
            outputs: values.iter().enumerate().map(|(k, matrix)| Block::of(matrix, output(k))).collect(),
        }
    }
}

/// The primals of a matrix.
pub(super) fn inner_of<T: Lifted>(matrix: &DMatrix<T>) -> DMatrix<T::Inner> {
    matrix.map(T::inner)
}

/// Tangents of the results for tangents of the inputs; zero tangents give zero tangents, whatever the rule.
fn push_tangents<S: Kernel, R: Rule<S>>(
    rule: &R,
    blocks: &Blocks,
    tangents: impl Iterator<Item = DMatrix<S>>,
) -> Result<Vec<DMatrix<S>>, Error> {
    let tangents: Vec<_> =
        blocks.inputs.iter().zip(tangents).map(|(block, tangent)| block.masked(tangent)).collect();
    if tangents.iter().all(dense::vanishes) {
        let zeros = |block: &Block| DMatrix::repeat(block.rows, block.columns, S::zero());
        return Ok(blocks.outputs.iter().map(zeros).collect());
    }
    rule.tangent(&tangents)
}

impl<S: Kernel> Lifted for Dual<S> {
    type Inner = S;
    const ONE_DIRECTION: bool = true;

    fn inner(self) -> S {
        self.value
    }
    fn constant_of(inner: S) -> Self {
        Dual::lift(inner)
    }
    fn is_constant(self) -> bool {
        !self.is_active()
    }
    fn apply<const K: usize, R: Rule<S>>(
        inputs: &[&DMatrix<Self>],
        values: [DMatrix<S>; K],
        rule: R,
    ) -> Result<[DMatrix<Self>; K], Error> {
        let blocks = Blocks::of(&rule, inputs, &values);
        let tangents = push_tangents(&rule, &blocks, inputs.iter().map(|input| input.map(|x| x.tangent)))?;
        let mut tangents = tangents.iter();
        Ok(values.map(|value| value.zip_map(tangents.next().expect("one for each value"), Dual::new)))
    }
}

impl<S: Kernel, const N: usize> Lifted for DualN<S, N> {
    type Inner = S;
    const ONE_DIRECTION: bool = false;

    fn inner(self) -> S {
        self.value
    }
    fn constant_of(inner: S) -> Self {
        DualN::lift(inner)
    }
    fn is_constant(self) -> bool {
        !self.is_active()
    }
    fn apply<const K: usize, R: Rule<S>>(
        inputs: &[&DMatrix<Self>],
        values: [DMatrix<S>; K],
        rule: R,
    ) -> Result<[DMatrix<Self>; K], Error> {
        let blocks = Blocks::of(&rule, inputs, &values);
        let mut results = values.map(|value| value.map(DualN::lift));
        for lane in 0..N {
            let of_lane = inputs.iter().map(|input| input.map(|x| x.tangents[lane]));
            let tangents = push_tangents(&rule, &blocks, of_lane)?;
            for (result, tangent) in results.iter_mut().zip(&tangents) {
                result.zip_apply(tangent, |x, tangent| x.tangents[lane] = tangent);
            }
        }
        Ok(results)
    }
}

impl<S: Kernel> Lifted for Passive<S> {
    type Inner = S;
    const ONE_DIRECTION: bool = false;

    fn inner(self) -> S {
        self.primal()
    }
    fn constant_of(inner: S) -> Self {
        Passive::lift(inner)
    }
    fn is_constant(self) -> bool {
        true
    }
    fn apply<const K: usize, R: Rule<S>>(
        _inputs: &[&DMatrix<Self>],
        values: [DMatrix<S>; K],
        _rule: R,
    ) -> Result<[DMatrix<Self>; K], Error> {
        Ok(values.map(|value| value.map(Passive::lift)))
    }
}

impl<S: Kernel> Lifted for Var<S> {
    type Inner = S;
    const ONE_DIRECTION: bool = false;

    fn inner(self) -> S {
        self.primal()
    }
    fn constant_of(inner: S) -> Self {
        Var::lift(inner)
    }
    fn is_constant(self) -> bool {
        !self.is_active()
    }
    fn apply<const K: usize, R: Rule<S>>(
        inputs: &[&DMatrix<Self>],
        values: [DMatrix<S>; K],
        rule: R,
    ) -> Result<[DMatrix<Self>; K], Error> {
        let mut active = Vec::with_capacity(inputs.len());
        let mut arguments = Vec::new();
        let blocks = Blocks::of(&rule, inputs, &values);
        for (block, input) in blocks.inputs.iter().zip(inputs) {
            active.push(block.entries().any(|entry| input[entry].is_active()));
            if active.last() == Some(&true) {
                arguments.extend(block.entries().map(|entry| input[entry]));
            }
        }
        let outputs = blocks.outputs.clone();
        let numbers: Vec<S> = outputs
            .iter()
            .zip(&values)
            .flat_map(|(block, value)| block.entries().map(move |entry| value[entry]))
            .collect();
        let mut recorded = custom(&arguments, &numbers, Node { rule, active, blocks }).into_iter();
        let mut results = values.map(|value| value.map(Var::lift));
        for (block, result) in outputs.iter().zip(&mut results) {
            block.entries().zip(&mut recorded).for_each(|(entry, x)| result[entry] = x);
        }
        Ok(results)
    }
}

/// A rule on a tape, with which of its matrices are active.
struct Node<R> {
    rule: R,
    active: Vec<bool>,
    blocks: Blocks,
}

impl<S: Kernel, R: Rule<S>> CustomRule<S> for Node<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn reverse(&self, outputs: &[S], inputs: &mut [S]) -> Result<(), Error> {
        let mut numbers = outputs.iter().copied();
        let outputs: Vec<_> = self.blocks.outputs.iter().map(|block| block.unpack(&mut numbers)).collect();
        let cotangents = self.rule.cotangent(&outputs, &self.active)?;
        let mut targets = inputs.iter_mut();
        for ((block, cotangent), &active) in self.blocks.inputs.iter().zip(cotangents).zip(&self.active) {
            if let (true, Some(cotangent)) = (active, cotangent) {
                for (entry, target) in block.entries().zip(&mut targets) {
                    *target = *target + cotangent[entry];
                }
            }
        }
        Ok(())
    }

    fn forward(&self, inputs: &[S], outputs: &mut [S]) -> Result<(), Error> {
        let mut numbers = inputs.iter().copied();
        let blocks = self.blocks.inputs.iter().zip(&self.active);
        let tangents = blocks.map(|(block, &active)| match active {
            true => block.unpack(&mut numbers),
            false => block.unpack(core::iter::empty()),
        });
        let results = push_tangents(&self.rule, &self.blocks, tangents)?;
        let mut targets = outputs.iter_mut();
        for (block, result) in self.blocks.outputs.iter().zip(results) {
            block.entries().zip(&mut targets).for_each(|(entry, target)| *target = result[entry]);
        }
        Ok(())
    }

    fn saved_bytes(&self) -> usize {
        let blocks = self.blocks.inputs.capacity() + self.blocks.outputs.capacity();
        self.active.capacity() + blocks * size_of::<Block>() + self.rule.saved_bytes()
    }
}
