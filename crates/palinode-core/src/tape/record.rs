//! A finished recording: sweeps, table, size, and which output depends on which input.

use super::arena::{FIRST, SINK};
use super::arrays::{self, ArrayCounts};
use super::recorder::Source;
use super::summed::{Ends, SummedSweep};
use super::table::Table;
use super::{Tape, Var, reserve};
use crate::budget::Budget;
use crate::dual::Dual;
use crate::error::{Error, same_length};
use crate::finite;
use crate::points;
use palinode_num::Scalar;

/// What a differentiated closure may return: any number of numbers `N` (a `Var`, or a `Dual` for `jvp`) in a
/// fixed order.
pub trait Outputs<S, N = Var<S>> {
    /// Shows each output in order.
    fn for_each(&self, see: &mut dyn FnMut(N));
}

impl<S: Copy> Outputs<S> for Var<S> {
    fn for_each(&self, see: &mut dyn FnMut(Var<S>)) {
        see(*self);
    }
}

impl<S: Copy> Outputs<S, Dual<S>> for Dual<S> {
    fn for_each(&self, see: &mut dyn FnMut(Dual<S>)) {
        see(*self);
    }
}

impl<S, N, T: Outputs<S, N>> Outputs<S, N> for [T] {
    fn for_each(&self, see: &mut dyn FnMut(N)) {
        self.iter().for_each(|item| item.for_each(see));
    }
}

macro_rules! outputs {
    ($([$($generics:tt)*] $Outputs:ty => |$all:ident| $($part:expr),*;)*) => {$(
        impl<S, N, $($generics)*> Outputs<S, N> for $Outputs {
            fn for_each(&self, see: &mut dyn FnMut(N)) {
                let $all = self;
                $($part.for_each(see);)*
            }
        }
    )*};
}
outputs! {
    [T: Outputs<S, N>] Vec<T> => |list| list.as_slice();
    [T: Outputs<S, N>, const L: usize] [T; L] => |list| list.as_slice();
    [T: Outputs<S, N> + ?Sized] &T => |shared| (**shared);
    [T: Outputs<S, N> + ?Sized] Box<T> => |boxed| (**boxed);
    [A: Outputs<S, N>, B: Outputs<S, N>] (A, B) => |all| all.0, all.1;
    [A: Outputs<S, N>, B: Outputs<S, N>, C: Outputs<S, N>] (A, B, C) => |all| all.0, all.1, all.2;
}

/// How large a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes, inputs included.
    pub nodes: usize,
    /// Edges: partials saved for the reverse sweep.
    pub edges: usize,
    /// Bytes that these nodes and edges need, with a cotangent for each node (a sum, if the tape was asked
    /// for sums: [`Tape::accumulate`]), and what custom operations and arrays need.
    pub bytes: usize,
}

/// A finished recording on a [`Tape`]; dropping it leaves the memory to the next one.
pub struct Record<'t, S> {
    pub(super) tape: &'t mut Tape<S>,
}

impl<S: Scalar> Record<'_, S> {
    /// The values of the outputs.
    pub fn values(&self) -> &[S] {
        &self.tape.values
    }

    /// The number of inputs.
    pub fn input_count(&self) -> usize {
        self.tape.inputs.len()
    }

    /// The number of outputs.
    pub fn output_count(&self) -> usize {
        self.tape.outputs.len()
    }

    /// Reverse sweep: the cotangents of the inputs for these cotangents of the outputs, added up as
    /// [`Tape::accumulate`] says.
    ///
    /// # Errors
    /// If there are not as many as outputs (`PAL0101`), or one of them is infinite or NaN (`PAL0102`), as in
    /// every other sweep here.
    pub fn reverse(&mut self, cotangents: &[S]) -> Result<&[S], Error> {
        self.check_cotangents(cotangents.as_chunks::<1>().0)?;
        let (inputs, cotangents_in_all) = (self.input_count(), self.tape.recorder.cotangents());
        let held = self.heap_bytes();
        let tape = &mut *self.tape;
        if let Some(sweep) = tape.summed {
            tape.gradient.clear();
            tape.gradient.resize(inputs, S::zero());
            let ends = Ends { nodes: &tape.outputs, cotangents };
            sweep.run(&tape.recorder, ends, &mut tape.gradient, held)?;
            return Ok(&tape.gradient);
        }
        zero_filled(&mut tape.cotangents, cotangents_in_all)?;
        for (&node, &cotangent) in tape.outputs.iter().zip(cotangents) {
            add(&mut tape.cotangents[node as usize], [cotangent]);
        }
        tape.recorder.reverse(&mut tape.cotangents, inputs as u32 + 1)?;
        tape.gradient.clear();
        tape.gradient.extend(tape.cotangents[1..=inputs].iter().map(|&[cotangent]| cotangent));
        Ok(&tape.gradient)
    }

    /// What `points` compares of a recording: the gradients of its outputs, or of weighted sums of groups of
    /// them.
    #[doc(hidden)]
    pub fn add_parts(&mut self, parts: Option<&mut Vec<f64>>) {
        let Some(parts) = parts else { return };
        let rows = self.output_count();
        for weights in points::weights_of_groups(rows, points::group_count(rows)) {
            // What has no gradient here may still have what it was recorded for.
            if let Ok(sums) = self.reverse(&weights) {
                points::add_parts(Some(&mut *parts), sums);
            }
        }
    }

    /// Reverse sweep that goes on where others stopped: the cotangents of the inputs start from what is in
    /// `inputs`, and end there.
    ///
    /// This is how the cotangents of parameters that many recordings share are summed: one after the other,
    /// in the order in which a single recording of all of them would. With sums ([`Tape::accumulate`]) each
    /// call rounds once: what is in `inputs` is a term of the sum, and the cotangents that many calls add up
    /// have been rounded as often.
    pub fn reverse_onto(&mut self, outputs: &[S], inputs: &mut [S]) -> Result<(), Error> {
        self.check_cotangents(outputs.as_chunks::<1>().0)?;
        finite::given("input cotangent", inputs)?;
        self.go_on_onto(outputs, inputs)
    }

    /// [`Record::reverse_onto`] for cotangents that a sweep has given: where they are not finite, whoever
    /// began says so at the end.
    #[doc(hidden)]
    pub fn go_on_onto(&mut self, outputs: &[S], inputs: &mut [S]) -> Result<(), Error> {
        same_length("the list of output cotangents", self.output_count(), outputs.len())?;
        same_length("the list of input cotangents", self.input_count(), inputs.len())?;
        let (count, cotangents_in_all) = (inputs.len(), self.tape.recorder.cotangents());
        let held = self.heap_bytes();
        let tape = &mut *self.tape;
        if let Some(sweep) = tape.summed {
            let ends = Ends { nodes: &tape.outputs, cotangents: outputs };
            return sweep.run(&tape.recorder, ends, inputs, held);
        }
        zero_filled(&mut tape.cotangents, cotangents_in_all)?;
        for (cotangent, &start) in tape.cotangents[1..=count].iter_mut().zip(&*inputs) {
            *cotangent = [start];
        }
        // From the last, as the nodes after them would be swept.
        for (&node, &cotangent) in tape.outputs.iter().zip(outputs).rev() {
            add(&mut tape.cotangents[node as usize], [cotangent]);
        }
        tape.recorder.reverse(&mut tape.cotangents, count as u32 + 1)?;
        for (input, &[cotangent]) in inputs.iter_mut().zip(&tape.cotangents[1..=count]) {
            *input = cotangent;
        }
        Ok(())
    }

    /// `N` reverse sweeps in one: each output has `N` cotangents, each input gets `N`.
    pub fn reverse_many<const N: usize>(&self, cotangents: &[[S; N]]) -> Result<Vec<[S; N]>, Error> {
        self.check_cotangents(cotangents)?;
        let inputs = self.input_count();
        if let Some(sweep) = self.tape.summed {
            return self.reverse_lanes(sweep, cotangents);
        }
        let mut all = self.lanes::<N>()?;
        for (&node, &cotangent) in self.tape.outputs.iter().zip(cotangents) {
            add(&mut all[node as usize], cotangent);
        }
        self.tape.recorder.reverse(&mut all, inputs as u32 + 1)?;
        Ok(all[1..=inputs].to_vec())
    }

    /// [`reverse_many`](Self::reverse_many) over sums, a lane after the other: sums of several lanes would
    /// share nothing.
    fn reverse_lanes<const N: usize>(
        &self,
        sweep: SummedSweep<S>,
        cotangents: &[[S; N]],
    ) -> Result<Vec<[S; N]>, Error> {
        // What is found, and the inputs and outputs of a lane.
        let lists = ((N + 1) * self.input_count() + self.output_count()) * size_of::<S>();
        let held = self.heap_bytes() + lists;
        sweep.afford(&self.tape.recorder, held)?;
        let mut found = vec![[S::zero(); N]; self.input_count()];
        let mut inputs = vec![S::zero(); self.input_count()];
        let mut of_lane = vec![S::zero(); self.output_count()];
        for lane in 0..N {
            of_lane.iter_mut().zip(cotangents).for_each(|(cotangent, lanes)| *cotangent = lanes[lane]);
            inputs.fill(S::zero());
            let ends = Ends { nodes: &self.tape.outputs, cotangents: &of_lane };
            sweep.run(&self.tape.recorder, ends, &mut inputs, held)?;
            found.iter_mut().zip(&inputs).for_each(|(lanes, &cotangent)| lanes[lane] = cotangent);
        }
        Ok(found)
    }

    /// Forward sweep: the tangents of the outputs for these tangents of the inputs.
    pub fn forward(&self, tangents: &[S]) -> Result<Vec<S>, Error> {
        let lanes: Vec<[S; 1]> = tangents.iter().map(|&t| [t]).collect();
        Ok(self.forward_many(&lanes)?.into_iter().map(|[t]| t).collect())
    }

    /// `N` forward sweeps in one.
    pub fn forward_many<const N: usize>(&self, tangents: &[[S; N]]) -> Result<Vec<[S; N]>, Error> {
        let inputs = self.input_count();
        same_length("the list of input tangents", inputs, tangents.len())?;
        finite::given_lanes("direction", tangents)?;
        let mut all = self.lanes::<N>()?;
        all[1..=inputs].copy_from_slice(tangents);
        self.tape.recorder.forward(&mut all)?;
        Ok(self.tape.outputs.iter().map(|&node| all[node as usize]).collect())
    }

    /// For each output the inputs that it depends on, in ascending order, found from the recording alone. It
    /// may name an input whose derivative happens to be zero here, and never misses one.
    pub fn pattern(&self) -> Vec<Vec<usize>> {
        let parents = Parents::of(self.tape);
        if !self.tape.recorder.arrays.is_empty() {
            return self.tape.outputs.iter().map(|&output| self.inputs_of(output, &parents)).collect();
        }
        let inputs = self.input_count() as u32;
        let mut seen_for = vec![u32::MAX; self.node_count()];
        let mut stack = Vec::new();
        let mut rows = Vec::with_capacity(self.output_count());
        for (row, &output) in self.tape.outputs.iter().enumerate() {
            let mut found = Vec::new();
            stack.push(output);
            while let Some(node) = stack.pop() {
                if node == SINK || core::mem::replace(&mut seen_for[node as usize], row as u32) == row as u32
                {
                    continue;
                }
                if node <= inputs {
                    found.push(node as usize - 1);
                } else {
                    stack.extend_from_slice(parents.of_node(node));
                }
            }
            found.sort_unstable();
            rows.push(found);
        }
        rows
    }

    /// The inputs that a node depends on, found by one reverse sweep over everything: cells of arrays mean
    /// something else at different times.
    fn inputs_of(&self, output: u32, parents: &Parents) -> Vec<usize> {
        let recorder = &self.tape.recorder;
        let nodes = self.node_count();
        let mut marks = vec![false; recorder.cotangents()];
        marks[output as usize] = true;
        let mut steps = recorder.arrays.steps().rev().peekable();
        for node in (1..nodes).rev() {
            while let Some(step) = steps.next_if(|step| step.at as usize > node) {
                arrays::mark(&recorder.arrays, nodes, step, &mut marks);
            }
            if marks[node] {
                parents.of_node(node as u32).iter().for_each(|&parent| marks[parent as usize] = true);
            }
        }
        (0..self.input_count()).filter(|input| marks[input + 1]).collect()
    }

    /// The recording as a table; see [`Tape::traced`].
    pub fn table(&self) -> Table {
        Table::of(&self.tape.recorder)
    }

    /// How large the recording is. What the tape holds in all is [`Tape::heap_bytes`].
    pub fn size(&self) -> Size {
        let (nodes, edges) = (self.node_count() - 1, self.tape.recorder.arena.edges());
        let saved: usize = self.tape.recorder.custom.iter().map(|custom| custom.bytes()).sum();
        // Arrays count a number for the cotangent of each cell.
        let of_cotangent = self.tape.recorder.arena.cotangent_bytes();
        let cells = self.tape.recorder.arrays.cells * (of_cotangent - size_of::<S>());
        let arrays = self.tape.recorder.arrays.needed_bytes() + cells;
        let bytes = edges * (size_of::<S>() + size_of::<u32>()) + nodes * of_cotangent + saved + arrays;
        Size { nodes, edges, bytes }
    }

    /// How many arrays there are on the recording, and how often one was copied.
    pub fn array_counts(&self) -> ArrayCounts {
        self.tape.recorder.arrays.counts
    }

    /// A budget within which this can be recorded, on a new tape, and swept in reverse. For a large recording
    /// that is what it needs, [`Record::size`], and less than a per cent for the ends of chunks; for a small
    /// one up to twice as much. Where cotangents are sums ([`Tape::accumulate`]) that is one for every number
    /// at once. Several sweeps in one ([`Record::reverse_many`], Jacobians) need more.
    pub fn budget(&self) -> Budget {
        let arena = &self.tape.recorder.arena;
        let lists = self.input_count() * (size_of::<Var<S>>() + size_of::<S>())
            + self.output_count() * (size_of::<u32>() + size_of::<S>());
        let beside = self.tape.recorder.bytes() - arena.bytes();
        let cotangents = self.tape.recorder.cotangents() * arena.cotangent_bytes();
        let passing = self.tape.recorder.arrays.list_bytes() + self.tape.recorder.scratch_bytes();
        Budget::from(arena.enough_bytes() + cotangents + lists + beside + passing)
    }

    /// The heap bytes that the tape holds, used or kept for the next recording; exact.
    pub fn heap_bytes(&self) -> usize {
        self.tape.heap_bytes()
    }

    fn check_cotangents<const N: usize>(&self, cotangents: &[[S; N]]) -> Result<(), Error> {
        same_length("the list of output cotangents", self.output_count(), cotangents.len())?;
        finite::given_lanes("output cotangent", cotangents)
    }

    /// `N` zeros per node and cell of an array, if there may be so many bytes.
    fn lanes<const N: usize>(&self) -> Result<Vec<[S; N]>, Error> {
        let count = self.tape.recorder.cotangents();
        let bytes = count * size_of::<[S; N]>() + N * self.tape.recorder.scratch_bytes();
        self.tape.recorder.arena.afford(self.heap_bytes() + bytes)?;
        let mut lanes = Vec::new();
        zero_filled(&mut lanes, count)?;
        Ok(lanes)
    }

    /// Whether cotangents are sums, which forward sweeps do not know; see [`Tape::accumulate`].
    pub(crate) fn adds_up_by_sums(&self) -> bool {
        self.tape.summed.is_some()
    }

    /// The nodes and the sink.
    pub(crate) fn node_count(&self) -> usize {
        self.tape.recorder.arena.next_node() as usize
    }

    /// The node of each output.
    pub(crate) fn output_nodes(&self) -> &[u32] {
        &self.tape.outputs
    }

    /// Whether there are custom operations or arrays, whose dependences are not edges.
    pub(crate) fn has_more_than_edges(&self) -> bool {
        !self.tape.recorder.custom.is_empty() || !self.tape.recorder.arrays.is_empty()
    }

    /// Shows every node in order, with its parents, while the answer is true.
    pub(crate) fn for_each_parents(
        &self,
        see: impl FnMut(u32, &mut dyn Iterator<Item = u32>) -> bool,
    ) -> bool {
        self.tape.recorder.arena.for_each_parents(see)
    }
}

impl<S> core::fmt::Debug for Record<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Record").field("tape", &self.tape).finish()
    }
}

pub(super) fn add<S: Scalar, const N: usize>(target: &mut [S; N], contribution: [S; N]) {
    *target = S::strong_add(*target, S::one(), contribution);
}

pub(super) fn zero_filled<S: Scalar, const N: usize>(
    lanes: &mut Vec<[S; N]>,
    len: usize,
) -> Result<(), Error> {
    lanes.clear();
    reserve(lanes, len).map_err(|_| Error::OutOfMemory { bytes: len * size_of::<[S; N]>() })?;
    lanes.resize(len, [S::zero(); N]);
    Ok(())
}

/// Each node's parents, to walk the recording by node; the arena itself can only be walked in order.
struct Parents {
    start: Vec<usize>,
    nodes: Vec<u32>,
}

impl Parents {
    fn of<S: Scalar>(tape: &Tape<S>) -> Parents {
        let recorder = &tape.recorder;
        // Node 0, the sink, has none.
        let mut parents = Parents { start: vec![0, 0], nodes: Vec::new() };
        for (_, source) in recorder.nodes() {
            let words = match source {
                Source::Custom(custom) => &custom.inputs,
                Source::Edges(words, _) => words,
            };
            parents.nodes.extend(words.iter().map(|word| word & !FIRST));
            parents.start.push(parents.nodes.len());
        }
        parents
    }

    fn of_node(&self, node: u32) -> &[u32] {
        &self.nodes[self.start[node as usize]..self.start[node as usize + 1]]
    }
}
