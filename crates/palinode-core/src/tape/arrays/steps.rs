//! What a recording keeps of arrays: steps on single elements, and operations on whole arrays, in order.
//!
//! Input: pushes from [`Array`](crate::Array)s, by way of `recorder/arrays.rs`. Output: the same steps, for
//! the sweeps in `sweep.rs`.
//!
//! A *storage* is a run of cotangents, one per cell. All versions of an array share one: a sweep meets the
//! versions strictly one after the other, and a write, met backwards, takes its cells' cotangents away. So a
//! write to one element costs one step, whatever the length of the array.
//!
//! Invariants: a step's `at` is the number of the next node when it was recorded, so it runs between two
//! nodes; `at` never falls. Cells come after the nodes in a sweep's memory, storage after storage. Steps lie
//! in chunks that are used again.

use super::formula::Formula;
use super::layout::{Layout, Region};
use super::policy::WhenOverwritten;
use super::product::Product;
use super::residual::{Residual, formula_bytes};
use palinode_num::Scalar;
use std::collections::HashSet;
use std::sync::Arc;

/// What a step does, forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `node = cell`.
    Get,
    /// `cell = node`; a constant if the node is the sink.
    Set,
    /// `cell += node`.
    Add,
    /// The next operation on whole arrays.
    Whole,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) at: u32,
    pub(crate) storage: u32,
    pub(crate) cell: u32,
    pub(crate) node: u32,
    pub(crate) kind: Kind,
}

/// The partial by one argument.
pub(crate) enum Partial<S> {
    One,
    Constant(S),
    /// An argument, or the result, as it is.
    Operand(usize),
    /// Computed by the rule, for this argument.
    Computed(usize),
    /// Computed when it was recorded.
    Saved(Vec<S>),
}

/// An argument of an operation on whole arrays: element `k` of the result has this partial by its element
/// `k`.
pub(crate) struct Argument<S> {
    pub(crate) region: Region,
    pub(crate) partial: Partial<S>,
}

/// What the partials of an operation need.
pub(crate) struct Operands<S> {
    pub(crate) formula: Arc<dyn Formula<S>>,
    /// The arguments, then the result.
    pub(crate) values: Vec<Residual<S>>,
}

/// `output[k] (=, or +=) sum of partial[k] * argument[k]`. Elementwise operations, sums, copies, gathers and
/// scatters are all of this form: what differs is which cells or nodes `output[k]` and `argument[k]` are.
pub(crate) struct Linear<S> {
    pub(crate) name: &'static str,
    pub(crate) output: Region,
    /// Whether what the output's cells held before is gone; they are added to otherwise.
    pub(crate) replaces: bool,
    pub(crate) arguments: Vec<Argument<S>>,
    pub(crate) operands: Option<Box<Operands<S>>>,
}

/// An operation on whole arrays.
pub(crate) enum Whole<S> {
    Linear(Linear<S>),
    Product(Box<Product<S>>),
}

impl<S: Scalar> Linear<S> {
    /// An operation that only moves numbers.
    pub(crate) fn moving(name: &'static str, output: Region, replaces: bool, from: Option<Region>) -> Self {
        let arguments = from.map(|region| Argument { region, partial: Partial::One }).into_iter().collect();
        Linear { name, output, replaces, arguments, operands: None }
    }

    fn bytes(&self, mut seen: Option<&mut HashSet<*const ()>>) -> usize {
        let of_argument = |argument: &Argument<S>| {
            let saved = match &argument.partial {
                Partial::Saved(values) => values.capacity() * size_of::<S>(),
                Partial::One | Partial::Constant(_) | Partial::Operand(_) | Partial::Computed(_) => 0,
            };
            argument.region.places.bytes() + saved
        };
        let operands = self.operands.as_ref().map_or(0, |operands| {
            let residuals = operands.values.iter().map(|residual| match &mut seen {
                Some(seen) => residual.bytes(seen),
                None => residual.own_bytes(),
            });
            size_of::<Operands<S>>()
                + operands.values.capacity() * size_of::<Residual<S>>()
                + residuals.sum::<usize>()
                + formula_bytes(&operands.formula, seen.unwrap_or(&mut HashSet::new()))
        });
        self.output.places.bytes()
            + self.arguments.capacity() * size_of::<Argument<S>>()
            + self.arguments.iter().map(of_argument).sum::<usize>()
            + operands
    }
}

impl<S: Scalar> Whole<S> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Whole::Linear(linear) => linear.name,
            Whole::Product(_) => "matmul",
        }
    }

    /// Where its results are, and whether what was there before is gone.
    pub(crate) fn output(&self) -> (&Region, bool) {
        match self {
            Whole::Linear(linear) => (&linear.output, linear.replaces),
            Whole::Product(product) => (&product.output, true),
        }
    }

    /// What its results depend on.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Region> {
        let (of_linear, of_product) = match self {
            Whole::Linear(linear) => (&linear.arguments[..], &[][..]),
            Whole::Product(product) => (&[][..], &product.regions[..]),
        };
        of_linear.iter().map(|argument| &argument.region).chain(of_product.iter().flatten())
    }

    /// Changes where its results and arguments are.
    pub(super) fn for_each_region_mut(&mut self, mut change: impl FnMut(&mut Region)) {
        match self {
            Whole::Linear(linear) => {
                change(&mut linear.output);
                linear.arguments.iter_mut().for_each(|argument| change(&mut argument.region));
            }
            Whole::Product(product) => {
                change(&mut product.output);
                product.regions.iter_mut().flatten().for_each(change);
            }
        }
    }

    /// How many numbers it needs for a while when it is swept.
    pub(in crate::tape) fn scratch(&self) -> usize {
        match self {
            Whole::Linear(linear) => {
                let computes = linear.arguments.iter().any(|a| matches!(a.partial, Partial::Computed(_)));
                linear.output.places.len() * if computes { 2 } else { 1 }
            }
            Whole::Product(product) => product.scratch(),
        }
    }

    /// Heap bytes that have not been seen yet; without those of shared memory if nothing is to be seen.
    pub(crate) fn bytes(&self, seen: Option<&mut HashSet<*const ()>>) -> usize {
        match self {
            Whole::Linear(linear) => linear.bytes(seen),
            Whole::Product(product) => size_of::<Product<S>>() + product.bytes(seen),
        }
    }
}

/// How many arrays a recording has, and what was done with them besides arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayCounts {
    /// Reads and writes of single elements.
    pub elements: usize,
    /// Operations on whole arrays.
    pub operations: usize,
    /// Cotangents of array elements in a sweep.
    pub cotangents: usize,
    /// Arrays copied before a write, because a rule or a copy of the array still needed the old values.
    pub copies: usize,
    /// The elements of these.
    pub copied: usize,
    /// Elements saved by operations on part of an array, or on what they overwrite themselves.
    pub saved: usize,
    /// Arrays whose old values are computed again in the reverse sweep.
    pub recomputed: usize,
    /// Cotangents that a reverse sweep adds up for operations on whole arrays.
    pub added: usize,
    /// Cotangents that a reverse sweep takes away where whole arrays are overwritten.
    pub filled: usize,
}

/// A list in chunks: what is written stays where it is, and memory is kept when it is cleared.
pub(in crate::tape) struct Chunks<T> {
    pub(in crate::tape) chunks: Vec<Vec<T>>,
    current: usize,
}

const FIRST_CHUNK: usize = 256;
const LARGEST_CHUNK: usize = 1 << 14;

impl<T> Chunks<T> {
    /// Whether the next push asks for memory, and how many bytes.
    #[inline]
    pub(in crate::tape) fn needs(&self) -> Option<usize> {
        match self.chunks.get(self.current) {
            Some(chunk) if chunk.len() < chunk.capacity() => None,
            _ if self.current + 1 < self.chunks.len() => None,
            _ => Some(self.next_size() * size_of::<T>()),
        }
    }

    fn next_size(&self) -> usize {
        (FIRST_CHUNK << self.chunks.len().min(16)).min(LARGEST_CHUNK)
    }

    #[inline]
    pub(in crate::tape) fn push(&mut self, item: T) {
        if let Some(chunk) = self.chunks.get_mut(self.current)
            && chunk.len() < chunk.capacity()
        {
            chunk.push(item);
            return;
        }
        self.push_in_next(item);
    }

    #[cold]
    fn push_in_next(&mut self, item: T) {
        if !self.chunks.is_empty() {
            self.current += 1;
        }
        if self.current == self.chunks.len() {
            let size = self.next_size();
            self.chunks.reserve_exact(1);
            self.chunks.push(Vec::with_capacity(size));
        }
        self.chunks[self.current].push(item);
    }

    fn clear(&mut self) {
        self.chunks.iter_mut().for_each(Vec::clear);
        self.current = 0;
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        self.chunks.iter().flatten()
    }

    fn bytes(&self) -> usize {
        let items: usize = self.chunks.iter().map(Vec::capacity).sum();
        items * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

/// The arrays of one recording.
pub(crate) struct ArrayTape<S> {
    pub(in crate::tape) steps: Chunks<Step>,
    pub(crate) whole: Vec<Whole<S>>,
    /// Where each storage begins among the cells, once the recording is finished; its length before.
    pub(in crate::tape) storages: Vec<usize>,
    /// How many cotangents a sweep needs besides those of the nodes.
    pub(in crate::tape) cells: usize,
    /// The bytes that the largest operation needs while it is swept, besides cotangents. What is computed
    /// again is not known.
    pub(in crate::tape) scratch: usize,
    pub(crate) policy: WhenOverwritten,
    pub(crate) counts: ArrayCounts,
}

impl<S: Scalar> ArrayTape<S> {
    pub(crate) fn new() -> Self {
        ArrayTape {
            steps: Chunks { chunks: Vec::new(), current: 0 },
            whole: Vec::new(),
            storages: Vec::new(),
            cells: 0,
            scratch: 0,
            policy: WhenOverwritten::default(),
            counts: ArrayCounts::default(),
        }
    }

    /// Forgets the recording and keeps the memory of steps.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.whole.clear();
        self.storages.clear();
        self.cells = 0;
        self.scratch = 0;
        self.counts = ArrayCounts::default();
    }

    /// Gives all memory back.
    pub(crate) fn release(&mut self) {
        self.take();
    }

    /// Takes the arrays of a finished recording away from their tape, which keeps its policy.
    pub(crate) fn take(&mut self) -> Self {
        let policy = self.policy;
        core::mem::replace(self, ArrayTape { policy, ..ArrayTape::new() })
    }

    /// Lays the storages out one after the other; the recording is finished.
    pub(crate) fn finish(&mut self) {
        let mut next = 0;
        for storage in &mut self.storages {
            next += core::mem::replace(storage, next);
        }
        self.counts.cotangents = self.cells;
    }

    /// Where the cells lie after so many nodes, once the recording is finished.
    #[inline]
    pub(super) fn layout(&self, nodes: usize) -> Layout<'_> {
        Layout { storages: &self.storages, nodes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.chunks.first().is_none_or(Vec::is_empty)
    }

    pub(crate) fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> + Clone {
        self.steps.iter()
    }

    pub(super) fn for_each_step_mut(&mut self, change: impl FnMut(&mut Step)) {
        self.steps.chunks.iter_mut().flatten().for_each(change);
    }

    /// The heap bytes that operations hold; steps and lists not included.
    pub(crate) fn residual_bytes(&self) -> usize {
        let mut seen = HashSet::new();
        self.whole.iter().map(|whole| whole.bytes(Some(&mut seen))).sum()
    }

    /// The heap bytes that the recording needs: steps, operations, residuals and cotangents.
    pub(crate) fn needed_bytes(&self) -> usize {
        let steps: usize = self.steps.chunks.iter().map(Vec::len).sum();
        steps * size_of::<Step>()
            + self.whole.len() * size_of::<Whole<S>>()
            + self.storages.len() * size_of::<usize>()
            + self.residual_bytes()
            + self.cells * size_of::<S>()
            + self.scratch
    }

    /// The heap bytes held, used or kept for the next recording.
    pub(crate) fn bytes(&self) -> usize {
        self.list_bytes() + self.residual_bytes()
    }

    /// Lists that grow keep their memory, so what they hold is not more than this when they are empty.
    pub(crate) fn list_bytes(&self) -> usize {
        self.steps.bytes()
            + self.whole.capacity() * size_of::<Whole<S>>()
            + self.storages.capacity() * size_of::<usize>()
    }
}
