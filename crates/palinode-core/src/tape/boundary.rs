//! Boundaries inside a recording: what crosses one becomes inputs of what follows.
//!
//! Input: the numbers that a part of a recording hands to the next. Output: the same numbers, each a node of
//! its own that no earlier part and no other number uses. The sweeps over the whole then compute bit for bit
//! what sweeps over one recording per part would.
//!
//! Why nodes of their own: a number that shares its node with another, or with an input of the whole, would
//! add its cotangent there term by term instead of as one sum; and a constant would let what follows be
//! recorded in another form than an input does.

use super::Var;
use super::arena::SINK;
use super::recorder::Recorder;
use super::scope::{Invariant, with_recorder};
use super::stamp::Stamp;
use palinode_num::Scalar;

/// Cuts a recording into parts.
///
/// ```
/// use palinode_core::{Boundary, Tape, Var};
///
/// let mut tape = Tape::new();
/// let mut record = tape.record(&[0.5, 2.0], |x| {
///     let mut boundary = Boundary::new();
///     boundary.begin(x);
///     let mut state = [x[0]];
///     for _ in 0..3 {
///         state[0] = state[0] * x[1];
///         boundary.cross(&mut state);
///     }
///     state[0]
/// })?;
/// assert_eq!(record.reverse(&[1.0])?, [8.0, 6.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Boundary<S> {
    stamp: Stamp,
    /// The last node before the part that is being recorded.
    last: u32,
    /// For each number that crosses, the least node of those after it.
    least_later: Vec<u32>,
    number: Invariant<S>,
}

impl<S: Scalar> Boundary<S> {
    /// For no recording yet.
    pub fn new() -> Self {
        Boundary { stamp: Stamp::NONE, last: 0, least_later: Vec::new(), number: core::marker::PhantomData }
    }

    /// A recording with these inputs has begun, and nothing else is on it.
    ///
    /// # Panics
    /// If they belong to different tapes, or to one that is not open on this thread.
    pub fn begin(&mut self, inputs: &[Var<S>]) {
        self.stamp = joined(Stamp::NONE, inputs);
        self.last = inputs.len() as u32;
    }

    /// The heap bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.least_later.capacity() * size_of::<u32>()
    }

    /// The numbers become inputs of what follows.
    ///
    /// # Panics
    /// If one of them belongs to another recording than the one that has begun (one that was kept from an
    /// earlier recording, say), or that is not open on this thread.
    pub fn cross(&mut self, numbers: &mut [Var<S>]) {
        // Those that have come unchanged from elsewhere have not been looked at yet.
        joined(self.stamp, numbers);
        if self.stamp == Stamp::NONE {
            return;
        }
        let (stamp, last) = (self.stamp, self.last);
        // A number keeps its node if that is new, and no other number has it: which is seen at once where
        // nodes ascend.
        let own_node = |number: &Var<S>| {
            let ([i, j], [p, _]) = (number.parents(), number.partials());
            (i != SINK && j == SINK && (p - S::one()).vanishes()).then_some(i)
        };
        self.least_later.clear();
        let mut least = u32::MAX;
        self.least_later.extend(numbers.iter().rev().map(|number| {
            let later = least;
            least = own_node(number).map_or(least, |node| node.min(least));
            later
        }));
        let least_later = self.least_later.iter().rev();
        self.last = with_recorder(stamp, |recorder: &mut Recorder<S>| {
            let written = recorder.arena.next_node() - 1;
            // Pending forms first, copies after them: so copies are swept before, as seeds are in a recording
            // of one part.
            for number in numbers.iter_mut() {
                if let [i, j] = number.parents()
                    && i != SINK
                    && own_node(number).is_none()
                {
                    let [p, q] = number.partials();
                    let node = if j == SINK {
                        recorder.arena.push([i], [p])
                    } else {
                        recorder.arena.push([i, j], [p, q])
                    };
                    *number = Var::of_node(number.primal(), node, stamp);
                }
            }
            let mut highest = last;
            for (number, &later) in numbers.iter_mut().zip(least_later) {
                let own = own_node(number);
                let is_alone = own.is_some_and(|node| node > highest && node < later);
                highest = own.map_or(highest, |node| node.max(highest));
                let [i, _] = number.parents();
                // What was pending has a node of its own by now.
                let node = if is_alone || own.is_some_and(|node| node > written) {
                    i
                } else if i == SINK {
                    recorder.arena.push([SINK], [S::zero()])
                } else {
                    recorder.arena.push([i], [S::one()])
                };
                *number = Var::of_node(number.primal(), node, stamp);
            }
            recorder.arena.next_node() - 1
        });
    }
}

/// The scope that all of these share, which is open on this thread.
fn joined<S: Scalar>(stamp: Stamp, numbers: &[Var<S>]) -> Stamp {
    let stamp = numbers.iter().fold(stamp, |stamp, number| stamp.join(number.stamp()));
    stamp.check();
    stamp
}

impl<S: Scalar> Default for Boundary<S> {
    fn default() -> Self {
        Boundary::new()
    }
}

impl<S> core::fmt::Debug for Boundary<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Boundary").field("last", &self.last).finish_non_exhaustive()
    }
}
