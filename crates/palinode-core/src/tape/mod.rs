//! The dynamic tape: records any Rust control flow, recursion and mutation, then sweeps.
//!
//! Input: inputs and a closure over [`Var`]s. Output: a [`Record`], which can be swept in reverse and
//! forward as often as wanted, printed and measured.
//!
//! ```text
//! Tape::record ──► Scope (scope.rs, stamp.rs) ──► closure over Var (var.rs, nary.rs, custom.rs) and Array (../array/)
//!                                            │ pushes
//!                                            ▼
//!                  Recorder (recorder.rs): Arena of edges (arena.rs) + custom operations (custom.rs) + steps of arrays (arrays/) + trace
//!                                            │
//!                  Record (record.rs) ◄──────┘  reverse, forward, table (table.rs), size
//!                    └──► CompressedRecord (compress/): what matters of it, fused, in fewer bytes
//! ```
//!
//! Invariants: a tape is recorded inside a scope and nowhere else, so there is no global tape; memory
//! is kept from one recording to the next, so a repeated recording of the same size allocates nothing.

mod arena;
pub(crate) mod arrays;
mod boundary;
mod carry;
mod compress;
mod custom;
mod nary;
mod record;
mod recorder;
mod scope;
mod stamp;
mod summed;
mod sums;
mod sweep;
mod table;
mod var;

#[cfg(test)]
pub(crate) mod hostile;
#[cfg(test)]
mod tests;

pub use arena::MAX_NODES;
pub(crate) use arena::SINK;
pub use boundary::Boundary;
pub use compress::{CompressedRecord, Compression, CompressionReport, CompressionStep, Narrowing, Partials};
pub use custom::{CustomRule, custom_rule};
pub use nary::custom;
pub use record::{Outputs, Record, Size};
pub use table::{Table, TableRow};
pub use var::Var;

pub(crate) use recorder::Recorder;
pub(crate) use scope::with_recorder;
pub(crate) use stamp::Stamp;
pub(crate) use sums::Sums;

use crate::budget::Budget;
use crate::error::Error;
use crate::points::{self, Parts};
use arrays::WhenOverwritten;
use palinode_num::{Accumulator, Scalar, Summand};
use scope::Scope;
use std::collections::TryReserveError;
use summed::SummedSweep;

/// Memory for recordings, used again by each.
///
/// ```
/// use palinode_core::Tape;
///
/// let mut tape = Tape::new();
/// let mut record = tape.record(&[2.0, 3.0], |x| [x[0] * x[1], x[0] + x[1]])?;
/// assert_eq!(record.values(), [6.0, 5.0]);
/// assert_eq!(record.reverse(&[1.0, 0.0])?, [3.0, 2.0]); // gradient of the product
/// assert_eq!(record.reverse(&[0.0, 1.0])?, [1.0, 1.0]); // and of the sum: one recording, many sweeps
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub struct Tape<S> {
    recorder: Recorder<S>,
    traced: bool,
    /// How sweeps add up, if not one after the other.
    summed: Option<SummedSweep<S>>,
    /// Whether it holds a finished recording.
    complete: bool,
    inputs: Vec<Var<S>>,
    outputs: Vec<u32>,
    values: Vec<S>,
    cotangents: Vec<[S; 1]>,
    gradient: Vec<S>,
}

impl<S: Scalar> Default for Tape<S> {
    fn default() -> Self {
        Tape::new()
    }
}

impl<S: Scalar> Tape<S> {
    /// An empty tape; it allocates when something is recorded.
    pub fn new() -> Self {
        Tape::with_limits(MAX_NODES, usize::MAX)
    }

    /// A tape that stays within a budget: edges, cotangents and lists. Recording or sweeping gives an error
    /// before the first byte too many. What custom operations save is counted when the recording ends.
    ///
    /// ```
    /// use palinode_core::{Tape, Var};
    ///
    /// let chain = |x: &[Var<f64>]| (0..1000).fold(x[0], |s, _| s.sin() * x[1] + x[2]);
    /// let error = Tape::with_budget("16 KiB".parse()?).record(&[1.0, 2.0, 3.0], chain).unwrap_err();
    /// assert_eq!(error.code(), "PAL0107"); // and it names the node, and how many bytes it would take to go on
    /// // What is enough is known from a recording.
    /// let enough = Tape::new().record(&[1.0, 2.0, 3.0], chain)?.budget();
    /// assert_eq!(enough.rounded(), "44.9 KiB");
    /// assert!(Tape::with_budget(enough).record(&[1.0, 2.0, 3.0], chain)?.reverse(&[1.0]).is_ok());
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    pub fn with_budget(budget: Budget) -> Self {
        Tape::with_limits(MAX_NODES, budget.bytes())
    }

    /// [`Tape::with_budget`] for so many bytes, which also refuses more than so many nodes.
    pub fn with_limits(nodes: u32, bytes: usize) -> Self {
        Tape {
            recorder: Recorder::new(nodes, bytes),
            traced: false,
            summed: None,
            complete: false,
            inputs: Vec::new(),
            outputs: Vec::new(),
            values: Vec::new(),
            cotangents: Vec::new(),
            gradient: Vec::new(),
        }
    }

    /// Allows so many bytes from now on; see [`Tape::with_budget`]. What is held already stays.
    pub fn set_budget(&mut self, budget: Budget) {
        self.recorder.arena.set_byte_limit(budget.bytes());
    }

    /// A tape that records every operation with its name and value, for [`Record::table`]. Slower and larger.
    pub fn traced() -> Self {
        Tape { traced: true, ..Tape::new() }
    }

    /// How the reverse sweeps of this tape's recordings add up cotangents, and with them
    /// [`value_and_grad`](Tape::value_and_grad) and Jacobians. With [`Accumulator::Exact`] each cotangent is
    /// the sum of all that arrives at a number of the recording, products of partials and cotangents among
    /// them, rounded once. It then does not depend on the order in which that number was used, as that of a
    /// parameter in many samples, or of a number that is broadcast over an array. What the recording
    /// multiplied out is rounded before: an expression of one or two numbers is recorded with its derivative,
    /// whose terms [`Var`] adds one after the other, such as `x * 1e100 + x * 3.0 - x * 1e100` below.
    /// [`Tape::set_accumulator`] changes it on a tape that is there already.
    ///
    /// ```
    /// use palinode_core::{Accumulator, Array, Tape, Var};
    ///
    /// let f = |x: &[Var<f64>]| Array::from_vars(x).broadcast(&[3]).dot(&Array::from_values([1e100, 3.0, -1e100]));
    /// assert_eq!(Tape::new().value_and_grad(f, &[2.0])?.1, [0.0]);
    /// assert_eq!(Tape::new().accumulate(Accumulator::Exact).value_and_grad(f, &[2.0])?.1, [3.0]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    ///
    /// A traced tape multiplies nothing out, at the price of a number for every operation:
    ///
    /// ```
    /// use palinode_core::{Accumulator, Tape, Var};
    ///
    /// let f = |x: &[Var<f64>]| x[0] * 1e100 + x[0] * 3.0 - x[0] * 1e100;
    /// assert_eq!(Tape::new().accumulate(Accumulator::Exact).value_and_grad(f, &[0.0])?.1, [0.0]); // not 3
    /// assert_eq!(Tape::traced().accumulate(Accumulator::Exact).value_and_grad(f, &[0.0])?.1, [3.0]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    ///
    /// Values are added up as their operations were asked to (`sum_with`, `matmul_with`, ...), and so are
    /// forward sweeps; Jacobians are swept in reverse, whatever their shape. [`Record::reverse_onto`] rounds
    /// once per call.
    ///
    /// An exact sum takes 1088 bytes (`f64`), for as long as its number waits to be swept; a tape with a
    /// budget refuses to record what needs more than fits if all of them are there at once. Such sweeps
    /// allocate, and are much slower.
    #[must_use]
    pub fn accumulate(mut self, how: Accumulator) -> Self
    where
        S: Summand,
    {
        self.set_accumulator(how);
        self
    }

    /// Adds up so from now on, also in sweeps of what is recorded already; see [`Tape::accumulate`].
    ///
    /// ```
    /// use palinode_core::{Accumulator, Array, Tape, Var};
    ///
    /// let f = |x: &[Var<f64>]| Array::from_vars(x).broadcast(&[3]).dot(&Array::from_values([1e100, 3.0, -1e100]));
    /// let mut tape = Tape::new();
    /// assert_eq!(tape.value_and_grad(f, &[2.0])?.1, [0.0]);
    /// tape.set_accumulator(Accumulator::Exact);
    /// assert_eq!(tape.recorded().expect("it went well").reverse(&[1.0])?, [3.0]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    pub fn set_accumulator(&mut self, how: Accumulator)
    where
        S: Summand,
    {
        self.summed = SummedSweep::of(how);
        if self.summed.is_some() {
            // Sums are made anew in each sweep.
            self.cotangents = Vec::new();
        }
        let bytes = self.summed.map_or(size_of::<S>(), |sweep| sweep.bytes(1));
        self.recorder.arena.set_cotangent_bytes(bytes);
    }

    /// What to do when an array is overwritten while a reverse rule still needs it, in recordings from now
    /// on.
    pub fn set_when_overwritten(&mut self, policy: WhenOverwritten) {
        self.recorder.arrays.policy = policy;
    }

    /// Records what the closure does with these inputs. The previous recording is forgotten, its memory used
    /// again.
    ///
    /// The closure may return a `Var`, or an array, a `Vec` or a tuple of them. Where it compares an active
    /// number and an exact tie, or an exact zero, decides, it runs again near the point: a derivative that
    /// exists only at the point is an error (PAL0119).
    pub fn record<O: Outputs<S>>(
        &mut self,
        inputs: &[S],
        mut f: impl FnMut(&[Var<S>]) -> O,
    ) -> Result<Record<'_, S>, Error> {
        let verified = points::verified(inputs, (Parts::ByInput, 1), |inputs, parts| {
            let mut record = self.record_once(inputs, &mut f)?;
            points::note(|| {
                let mut found = Vec::new();
                points::add_parts(Some(&mut found), record.values());
                record.add_parts(Some(&mut found));
                found.iter().all(|number| number.is_finite())
            });
            record.add_parts(parts);
            Ok(())
        });
        self.complete &= verified.is_ok();
        verified.map(|()| Record { tape: self })
    }

    /// [`Tape::record`] of this point, whatever is decided there.
    #[doc(hidden)]
    pub fn record_once<O: Outputs<S>>(
        &mut self,
        inputs: &[S],
        f: impl FnOnce(&[Var<S>]) -> O,
    ) -> Result<Record<'_, S>, Error> {
        self.complete = false;
        self.recorder.clear();
        self.outputs.clear();
        self.values.clear();
        self.make_lists(inputs.len())?;
        let scope = Scope::open(&mut self.recorder, self.traced);
        let stamp = scope.stamp();
        add_inputs(&mut self.inputs, inputs, stamp);
        let outputs = f(&self.inputs);
        add_outputs(&outputs, &mut self.outputs, &mut self.values, stamp)?;
        drop(scope);
        self.finish()?;
        Ok(Record { tape: self })
    }

    /// The recording is over: makes sure that the sweep back is within the budget.
    fn finish(&mut self) -> Result<(), Error> {
        if let Some(error) = self.recorder.arena.failure() {
            return Err(error.clone());
        }
        self.recorder.arrays.finish();
        let cotangents = self.recorder.cotangents();
        if self.cotangents.capacity() > cotangents && self.recorder.arena.afford(self.heap_bytes()).is_err() {
            self.cotangents = Vec::new();
        }
        let more = match self.summed {
            Some(sweep) => sweep.bytes(cotangents),
            None => cotangents.saturating_sub(self.cotangents.capacity()) * size_of::<S>(),
        };
        let more = more + self.recorder.scratch_bytes();
        self.recorder.arena.afford(self.heap_bytes() + more)?;
        self.complete = true;
        Ok(())
    }

    /// The last recording, if it went well and nothing has been recorded since.
    pub fn recorded(&mut self) -> Option<Record<'_, S>> {
        self.complete.then_some(Record { tape: self })
    }

    /// Empties the lists whose length is the number of inputs, and sets the bytes of all lists aside.
    fn make_lists(&mut self, inputs: usize) -> Result<(), Error> {
        self.inputs.clear();
        self.gradient.clear();
        let new_inputs = inputs.saturating_sub(self.inputs.capacity()) * size_of::<Var<S>>();
        let new_gradient = inputs.saturating_sub(self.gradient.capacity()) * size_of::<S>();
        if self.recorder.arena.afford(self.heap_bytes() + new_inputs + new_gradient).is_err() {
            // What earlier recordings left behind may be what is too much.
            self.recorder.release();
            self.cotangents = Vec::new();
            self.recorder.arena.afford(self.heap_bytes() + new_inputs + new_gradient)?;
        }
        let no_memory = |_| Error::OutOfMemory { bytes: new_inputs + new_gradient };
        reserve(&mut self.inputs, inputs).map_err(no_memory)?;
        reserve(&mut self.gradient, inputs).map_err(no_memory)?;
        let lists = self.heap_bytes() - self.recorder.bytes() - self.cotangents.capacity() * size_of::<S>();
        self.recorder.arena.set_aside(lists);
        Ok(())
    }

    /// The heap bytes that this tape holds, used or kept for the next recording; exact.
    pub fn heap_bytes(&self) -> usize {
        self.recorder.bytes()
            + self.inputs.capacity() * size_of::<Var<S>>()
            + self.outputs.capacity() * size_of::<u32>()
            + (self.values.capacity() + self.gradient.capacity()) * size_of::<S>()
            + self.cotangents.capacity() * size_of::<[S; 1]>()
    }
}

// Functions of the number alone, so that there is one copy for all closures.

/// Reserves memory for so many in an empty list. The old one goes first: nothing in it is needed, and both
/// would be held while it is moved.
fn reserve<T>(list: &mut Vec<T>, count: usize) -> Result<(), TryReserveError> {
    debug_assert!(list.is_empty());
    if list.capacity() < count {
        *list = Vec::new();
    }
    list.try_reserve_exact(count)
}

/// A list of so many of one value.
fn filled<T: Clone>(count: usize, value: T) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes: count * size_of::<T>() })?;
    list.resize(count, value);
    Ok(list)
}

/// A node for each input.
fn add_inputs<S: Scalar>(list: &mut Vec<Var<S>>, inputs: &[S], stamp: Stamp) {
    with_recorder(stamp, |recorder: &mut Recorder<S>| {
        list.extend(inputs.iter().map(|&value| {
            Var::of_node(value, recorder.push_leaf("input", value, S::zero(), stamp.is_traced()), stamp)
        }));
    });
}

/// The nodes and values of the outputs.
fn add_outputs<S: Scalar>(
    outputs: &dyn Outputs<S>,
    nodes: &mut Vec<u32>,
    values: &mut Vec<S>,
    stamp: Stamp,
) -> Result<(), Error> {
    let mut count = 0;
    outputs.for_each(&mut |_| count += 1);
    let affordable = with_recorder(stamp, |recorder: &mut Recorder<S>| {
        let new_nodes = count - nodes.capacity().min(count);
        let new_values = count - values.capacity().min(count);
        recorder.arena.set_aside(new_nodes * size_of::<u32>() + new_values * size_of::<S>());
        recorder.arena.check_limits()
    });
    affordable?;
    let no_memory = |_| Error::OutOfMemory { bytes: count * (size_of::<u32>() + size_of::<S>()) };
    reserve(nodes, count).map_err(no_memory)?;
    reserve(values, count).map_err(no_memory)?;
    outputs.for_each(&mut |output: Var<S>| {
        stamp.join(output.stamp()).check();
        nodes.push(output.node());
        values.push(output.primal());
    });
    assert_eq!(nodes.len(), count, "Outputs::for_each must show the same outputs each time");
    Ok(())
}

impl<S> core::fmt::Debug for Tape<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tape").field("traced", &self.traced).finish_non_exhaustive()
    }
}
