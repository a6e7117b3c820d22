//! Reverse sweeps whose cotangents are compensated or exact sums.
//!
//! Input: a finished recording and cotangents of its outputs. Output: those of its inputs, from a sum per
//! node and cell ([`SummedSweep`], which a [`Tape`](super::Tape) holds if it was asked for). A cotangent is
//! the sum of all contributions to it, products of a partial and a cotangent among them, and is rounded when
//! the operation that made the value passes it on. So with exact sums it does not depend on the order in
//! which the value was used.
//!
//! Invariants: the same order and the same strong zeros as the ordinary sweep (`sweep.rs`, `recorder.rs`); no
//! `unsafe`: this is for exactness, not for speed. A sum is made when something arrives and given back when
//! it has been passed on, so that a long computation of few values at a time needs few of them.

use super::arena::{FIRST, SINK};
use super::arrays::Arrays;
use super::recorder::{Recorder, Stop, stops_down};
use super::sums::Sums;
use crate::error::Error;
use palinode_num::{AccumulateProducts, Accumulator, Compensated, Scalar, Summand};

/// How the reverse sweeps of a tape add up, where that is not one after the other. Functions, so that a tape
/// of numbers that have no such sums (duals, say) is the same type.
#[derive(Clone, Copy)]
pub(super) struct SummedSweep<S> {
    run: Run<S>,
    bytes: fn(usize) -> usize,
}

/// [`sweep`], over some kind of sum.
type Run<S> = fn(&Recorder<S>, Ends<'_, S>, &mut [S]) -> Result<(), Error>;

/// Where a sweep starts: the nodes of the outputs and their cotangents.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a, S> {
    pub(super) nodes: &'a [u32],
    pub(super) cotangents: &'a [S],
}

impl<S: Scalar> SummedSweep<S> {
    /// None is the ordinary sweep.
    pub(super) fn of(how: Accumulator) -> Option<Self>
    where
        S: Summand,
    {
        match how {
            Accumulator::Naive => None,
            Accumulator::Compensated => Some(Self::by::<Compensated<S>>()),
            Accumulator::Exact => Some(Self::by::<S::ExactDot>()),
        }
    }

    fn by<A: AccumulateProducts<S>>() -> Self {
        SummedSweep { run: sweep::<S, A>, bytes: Sums::<S, A>::bytes }
    }

    /// The bytes of sums for so many nodes and cells, at most.
    pub(super) fn bytes(&self, places: usize) -> usize {
        (self.bytes)(places)
    }

    /// An error if a sweep needs more bytes than there may be, where so many are held already.
    pub(super) fn afford(&self, recorder: &Recorder<S>, held: usize) -> Result<(), Error> {
        recorder.arena.afford(held + self.bytes(recorder.cotangents()) + recorder.scratch_bytes())
    }

    /// Adds what arrives at the inputs to `inputs`, where so many bytes are held already.
    pub(super) fn run(
        &self,
        recorder: &Recorder<S>,
        ends: Ends<'_, S>,
        inputs: &mut [S],
        held: usize,
    ) -> Result<(), Error> {
        self.afford(recorder, held)?;
        (self.run)(recorder, ends, inputs)
    }
}

fn sweep<S: Scalar, A: AccumulateProducts<S>>(
    recorder: &Recorder<S>,
    ends: Ends<'_, S>,
    inputs: &mut [S],
) -> Result<(), Error> {
    let mut sums = Sums::<S, A>::new(recorder.cotangents())?;
    inputs.iter().enumerate().for_each(|(input, &start)| sums.add(input + 1, start));
    for (&node, &cotangent) in ends.nodes.iter().zip(ends.cotangents) {
        if node != SINK {
            sums.add(node as usize, cotangent);
        }
    }
    recorder.reverse_summed(&mut sums, inputs.len() as u32 + 1)?;
    inputs.iter_mut().enumerate().for_each(|(input, cotangent)| *cotangent = sums.total(input + 1));
    Ok(())
}

impl<S: Scalar> Recorder<S> {
    /// Propagates cotangents from the last node down to node `to`.
    pub(crate) fn reverse_summed<A: AccumulateProducts<S>>(
        &self,
        sums: &mut Sums<S, A>,
        to: u32,
    ) -> Result<(), Error> {
        let mut nodes = self.arena.nodes_down().peekable();
        // What `sweep::Reverse` does, without `unsafe`.
        let mut down_to = |sums: &mut Sums<S, A>, to: u32| {
            while let Some((node, words, partials)) = nodes.next_if(|&(node, ..)| node >= to) {
                let received = sums.total(node as usize);
                sums.clear(node as usize);
                for (word, &partial) in words.iter().zip(partials).rev() {
                    if word & !FIRST != SINK {
                        sums.add_product((word & !FIRST) as usize, partial, received);
                    }
                }
            }
        };
        let arrays = Arrays::new(&self.arrays, self.arena.next_node());
        for stop in stops_down(&self.arrays, &self.custom) {
            down_to(sums, stop.at());
            match stop {
                Stop::Arrays(step) => arrays.reverse_summed(step, sums),
                Stop::Custom(custom) => {
                    let outputs = custom.first_output..custom.end();
                    let outputs: Vec<S> = outputs.map(|node| sums.total(node as usize)).collect();
                    for (&node, contribution) in
                        custom.inputs.iter().zip(custom.contributions(&outputs)?.into_iter().flatten())
                    {
                        if node != SINK {
                            sums.add(node as usize, contribution);
                        }
                    }
                }
            }
        }
        down_to(sums, to);
        Ok(())
    }
}
