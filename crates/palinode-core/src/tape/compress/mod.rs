//! A recording in fewer nodes, edges and bytes.
//!
//! Input: a [`Record`](crate::Record). Output: a [`CompressedRecord`] recording of its own, and a
//! [`CompressionReport`] of each step.
//!
//! ```text
//! Record ──► mark, copy (graph.rs) ──► fuse (fuse.rs, block.rs) ──► number (draft.rs) ──► narrow (partials.rs) ──► CompressedRecord
//!            what matters               fewer rows and edges                             fewer bytes              (sweep.rs)
//! ```
//!
//! Invariants: marking changes no bit of a gradient; fusing changes it by rounding only; custom operations
//! keep their outputs next to each other, as leaves, and their inputs as nodes; what arrays refer to stays.
//! Only safe code.
//!
//! Known limits: the trace of a traced tape is left behind; what a compressed recording holds is not counted
//! by the limits of the tape it came from.

mod block;
mod draft;
mod fuse;
mod graph;
mod partials;
mod report;
mod sweep;

#[cfg(test)]
mod tests;

pub use partials::Partials;
pub use report::{CompressionReport, CompressionStep, Narrowing};

use super::record::{add, zero_filled};
use super::{Record, Size, Tape};
use crate::error::{Error, same_length};
use crate::finite;
use draft::Draft;
use palinode_num::Scalar;
use partials::Store;
use sweep::Sweep;

/// How to compress a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Whether nodes with one use, or one edge, are fused into the nodes that use them.
    pub chains: bool,
    /// Whether stretches through which little flows are fused into their derivatives as a whole: a simulation
    /// with a small state, above all.
    pub blocks: bool,
    /// In how many bytes partials are kept. Anything but [`Partials::Exact`] changes derivatives, by what the
    /// report says.
    pub partials: Partials,
    /// The inputs to differentiate by, from 0; all if none are given. The compressed recording has these
    /// inputs only.
    pub inputs: Option<Vec<usize>>,
}

impl Default for Compression {
    /// Chains and blocks are fused, partials are exact, all inputs are kept.
    fn default() -> Self {
        Compression { chains: true, blocks: true, partials: Partials::Exact, inputs: None }
    }
}

impl<S: Scalar> Record<'_, S> {
    /// The recording without what does not matter, with fewer and, if asked for, narrower partials: a form of
    /// its own, that leaves the tape to the next recording. Its report says what became of nodes, edges and
    /// bytes.
    ///
    /// ```
    /// use palinode_core::{Compression, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let record = tape.record(&[0.5, 1.0, 0.0], |p| {
    ///     (0..1000).fold(p[0], |x, _| x.sin() * p[1] + p[2])
    /// })?;
    /// let mut compressed = record.compress(&Compression::default())?;
    /// assert_eq!(compressed.size().nodes, 4); // three inputs and the output
    /// let gradient = compressed.reverse(&[1.0])?;
    /// assert!(gradient[0] > 0.0 && gradient[2] > 1.0);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    ///
    /// Nodes from which no output can be reached, or that do not depend on the inputs asked for, are left
    /// out: that changes no bit of a gradient. Fusing changes it by rounding.
    ///
    /// Arrays stay as they are, with the nodes they refer to: an operation on whole arrays is one entry
    /// already. Its sweeps add one after the other, also if those of the tape do not ([`Tape::accumulate`]).
    ///
    /// While it runs, about 10 bytes per node and two copies of what matters are held besides the recording.
    pub fn compress(self, how: &Compression) -> Result<CompressedRecord<S>, Error> {
        CompressedRecord::of(self.tape, how)
    }
}

/// A compressed recording; see [`Record::compress`](crate::Record::compress).
///
/// It owns all it needs, so any number can be kept while their tape records on, and it can be sent to another
/// thread.
pub struct CompressedRecord<S> {
    inputs: usize,
    outputs: Vec<u32>,
    values: Vec<S>,
    sweep: Sweep<S>,
    cotangents: Vec<[S; 1]>,
    gradient: Vec<S>,
    report: CompressionReport,
}

impl<S: Scalar> CompressedRecord<S> {
    pub(super) fn of(tape: &mut Tape<S>, how: &Compression) -> Result<Self, Error> {
        let mut draft = Draft::of(tape, how.inputs.as_deref())?;
        if how.chains {
            draft = draft.fused("chains fused", fuse::fuse)?;
        }
        if how.blocks {
            draft = draft.fused("blocks fused", block::fuse_blocks)?;
        }
        draft.finish(how.partials)
    }

    /// Replaces the partials by narrow ones, and measures what that does to derivatives.
    fn narrow(&mut self, how: Partials) -> Result<(), Error> {
        let Store::Exact(exact) = &self.sweep.partials else { return Ok(()) };
        let mut other = Store::narrow(exact, how)?;
        let underflows = other.zeros() - self.sweep.partials.zeros();
        let outputs = self.output_count();
        let each_output = outputs <= MOST_OUTPUTS_EACH;
        let mut narrowing =
            Narrowing { partials: how, absolute: 0.0, relative: 0.0, underflows, each_output };
        for sweep in 0..if each_output { outputs } else { 1 } {
            let seed = (0..outputs).map(|output| S::from_int(i32::from(!each_output || output == sweep)));
            let seed: Vec<S> = seed.collect();
            let exact = self.reverse(&seed)?.to_vec();
            core::mem::swap(&mut self.sweep.partials, &mut other);
            let narrow = self.reverse(&seed)?.to_vec();
            core::mem::swap(&mut self.sweep.partials, &mut other);
            narrowing.see(&exact, &narrow);
        }
        self.sweep.partials = other;
        self.report.narrowing = Some(narrowing);
        Ok(())
    }

    /// What each step did.
    pub fn report(&self) -> &CompressionReport {
        &self.report
    }

    /// The values of the outputs.
    pub fn values(&self) -> &[S] {
        &self.values
    }

    /// The number of inputs: those that were asked for.
    pub fn input_count(&self) -> usize {
        self.inputs
    }

    /// The number of outputs.
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Reverse sweep: the cotangents of the inputs for these cotangents of the outputs.
    ///
    /// # Errors
    /// If there are not as many as outputs (`PAL0101`), or one of them is infinite or NaN (`PAL0102`), as in
    /// every other sweep here.
    pub fn reverse(&mut self, cotangents: &[S]) -> Result<&[S], Error> {
        same_length("the list of output cotangents", self.output_count(), cotangents.len())?;
        finite::given("output cotangent", cotangents)?;
        zero_filled(&mut self.cotangents, self.sweep.cotangents())?;
        for (&node, &cotangent) in self.outputs.iter().zip(cotangents) {
            add(&mut self.cotangents[node as usize], [cotangent]);
        }
        self.sweep.reverse(&mut self.cotangents, self.inputs)?;
        self.gradient.clear();
        self.gradient.extend(self.cotangents[1..=self.inputs].iter().map(|&[cotangent]| cotangent));
        Ok(&self.gradient)
    }

    /// `N` reverse sweeps in one: each output has `N` cotangents, each input gets `N`.
    pub fn reverse_many<const N: usize>(&self, cotangents: &[[S; N]]) -> Result<Vec<[S; N]>, Error> {
        same_length("the list of output cotangents", self.output_count(), cotangents.len())?;
        finite::given_lanes("output cotangent", cotangents)?;
        let mut all = Vec::new();
        zero_filled(&mut all, self.sweep.cotangents())?;
        for (&node, &cotangent) in self.outputs.iter().zip(cotangents) {
            add(&mut all[node as usize], cotangent);
        }
        self.sweep.reverse(&mut all, self.inputs)?;
        Ok(all[1..=self.inputs].to_vec())
    }

    /// Forward sweep: the tangents of the outputs for these tangents of the inputs.
    pub fn forward(&self, tangents: &[S]) -> Result<Vec<S>, Error> {
        let lanes: Vec<[S; 1]> = tangents.iter().map(|&t| [t]).collect();
        Ok(self.forward_many(&lanes)?.into_iter().map(|[t]| t).collect())
    }

    /// `N` forward sweeps in one.
    pub fn forward_many<const N: usize>(&self, tangents: &[[S; N]]) -> Result<Vec<[S; N]>, Error> {
        same_length("the list of input tangents", self.inputs, tangents.len())?;
        finite::given_lanes("direction", tangents)?;
        let mut all = Vec::new();
        zero_filled(&mut all, self.sweep.cotangents())?;
        all[1..=self.inputs].copy_from_slice(tangents);
        self.sweep.forward(&mut all, self.inputs)?;
        Ok(self.outputs.iter().map(|&node| all[node as usize]).collect())
    }

    /// How large it is now; the last step of the report.
    pub fn size(&self) -> Size {
        self.report.steps[self.report.steps.len() - 1].size
    }

    /// The heap bytes that it holds; exact.
    pub fn heap_bytes(&self) -> usize {
        self.outputs.capacity() * size_of::<u32>()
            + (self.values.capacity() + self.gradient.capacity() + self.cotangents.capacity())
                * size_of::<S>()
            + self.report.steps.capacity() * size_of::<CompressionStep>()
            + self.sweep.bytes()
    }
}

/// Up to so many outputs each is swept by itself to measure what narrow partials do.
const MOST_OUTPUTS_EACH: usize = 16;

impl<S> core::fmt::Debug for CompressedRecord<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CompressedRecord").field("report", &self.report).finish_non_exhaustive()
    }
}
