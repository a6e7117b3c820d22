//! Arrays on the dynamic tape: eager, of any rank, written in place, with views that alias.
//!
//! Input: ordinary array code: elementwise operations, products, reductions, slices, writes. Output: values
//! at once, and entries of the tape with the granularity of the operation: one for a product of two matrices,
//! one for an element written.
//!
//! ```text
//! Array (mod.rs): a View of a Buffer (buffer.rs)
//!    │ views.rs  elements.rs  elementwise.rs  operators.rs  reduce.rs  select.rs  matmul.rs
//!    ▼ push
//! ../tape/arrays/: the steps that a recording keeps of arrays, residuals, sweeps
//! ```
//!
//! Three kinds of sharing, none of which changes a gradient
//! ([0015](../../../../docs/adr/0015-arrays-on-the-tape.md)):
//! - a *view* ([`Array::slice`], [`Array::row`], ...) is another name for the same elements: writes through
//!   one are seen by all;
//! - a *copy* ([`Array::clone`]) is another array; it shares memory until one of the two is written to;
//! - a *residual* is what a reverse rule needs; it shares memory until the program overwrites it, then the
//!   tape's [`WhenOverwritten`] decides.
//!
//! Invariants: a write of one element costs one step forwards and one backwards, whatever the length; what is
//! copied for residuals is never more than what the operations that need them went through; gradients do not
//! depend on the policy. No derivative formula is written here.
//!
//! Known limits: an array has at most 2^32 - 1 elements (and no axes whose lengths other than 0 would make
//! more). Second order by a tape in a tape records single numbers on the outer one. A shape that does not fit
//! panics with what, where and why; the error type is for what depends on data.

mod buffer;
mod elements;
mod elementwise;
mod matmul;
mod operators;
mod reduce;
mod select;
mod views;

#[cfg(test)]
pub(crate) mod tests;

pub use elements::Position;
pub use elementwise::ArrayOperand;

use crate::tape::arrays::{
    Home, Kept, Linear, Need, Places, Region, Residual, Shape, View, Whole, check_elements,
};
use crate::tape::{Recorder, Stamp, Var, with_recorder};
use buffer::Buffer;
use core::panic::Location;
use palinode_num::Scalar;
use std::rc::Rc;
use std::sync::Arc;

/// An array whose operations are recorded on a [`Tape`](crate::Tape), as single entries.
///
/// It holds the numbers that a `Var<S>` holds, in any shape, and mixes with `Var`s: [`Array::get`] gives one,
/// [`Array::set`] takes one. It can be written in place; where the reverse sweep needs what is overwritten,
/// it is kept.
///
/// ```
/// use palinode_core::{Array, value_and_grad};
///
/// let (y, g) = value_and_grad(|x| {
///     let mut a = Array::from_vars(x);
///     let squares = &a * &a;            // needs the old a in reverse
///     a *= 10.0;                        // overwrites it
///     a.set(0, squares.get(1));         // one element
///     (&a + &squares).sum()
/// }, &[1.0, 2.0, 3.0])?;
/// assert_eq!((y, g), (68.0, vec![2.0, 18.0, 16.0]));
/// # Ok::<(), palinode_core::Error>(())
/// ```
///
/// A clone is a copy: writing to one does not change the other. A view is not: see [`Array::slice`].
/// An array belongs to its thread, and to the closure that records its tape once something active is in it.
pub struct Array<S> {
    buffer: Rc<Buffer<S>>,
    view: View,
}

impl<S: Scalar> Array<S> {
    /// The numbers of a list, on the tape that they are on; constants if none of them is active.
    #[track_caller]
    pub fn from_vars(vars: &[Var<S>]) -> Array<S> {
        let stamp = vars.iter().fold(Stamp::NONE, |stamp, var| stamp.join(var.stamp()));
        stamp.check();
        let values = vars.iter().map(|var| var.primal()).collect();
        if !vars.iter().any(|var| var.is_active()) {
            return Array::constant_of(values, &[vars.len()]);
        }
        let nodes: Vec<u32> = vars.iter().map(|var| var.node()).collect();
        let result = Array::active_of(values, &[vars.len()], stamp);
        let places = match nodes.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            true => Places::View(View { offset: nodes[0] as usize, ..View::whole(&[nodes.len()]) }),
            false => Places::List(nodes),
        };
        let from = Region { home: Home::Nodes, places };
        result.record(stamp, Linear::moving("from_vars", result.output(), true, Some(from)));
        result
    }

    /// A new array whose elements are those of a region, moved; constants if it is none.
    fn moved(
        name: &'static str,
        values: Vec<S>,
        shape: &[usize],
        stamp: Stamp,
        from: Option<Region>,
    ) -> Array<S> {
        let Some(from) = from else { return Array::constant_of(values, shape) };
        let result = Array::active_of(values, shape, stamp);
        result.record(stamp, Linear::moving(name, result.output(), true, Some(from)));
        result
    }

    /// Constants, as a vector.
    #[track_caller]
    pub fn from_values(values: impl Into<Vec<S>>) -> Array<S> {
        let values = values.into();
        let shape = [check_elements("from_values", &[values.len()])];
        Array::constant_of(values, &shape)
    }

    /// The same constant everywhere.
    ///
    /// # Panics
    /// If there would be more than 2^32 - 1 elements, or more than there is memory for.
    #[track_caller]
    pub fn filled(shape: &[usize], value: S) -> Array<S> {
        let count = check_elements("filled", shape);
        let mut values = reserved(count);
        values.resize(count, value);
        Array::constant_of(values, shape)
    }

    /// Zeros.
    ///
    /// # Panics
    /// As [`Array::filled`].
    #[track_caller]
    pub fn zeros(shape: &[usize]) -> Array<S> {
        Array::filled(shape, S::zero())
    }

    /// How long each axis is; empty for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it depends on an input of its tape, as far as the tape knows: something active has been
    /// written to it.
    pub fn is_active(&self) -> bool {
        self.buffer.storage().is_some()
    }

    /// The values, in row-major order.
    #[track_caller]
    pub fn values(&self) -> Vec<S> {
        self.check_length();
        let values = self.buffer.values();
        let mut found = reserved(self.len());
        match self.view.is_run() {
            true => found.extend_from_slice(&values[self.view.offset..self.view.offset + self.len()]),
            false => found.extend(self.view.walk().map(|cell| values[cell])),
        }
        found
    }

    /// An array of its own with the same elements, in order: a copy that no later write reaches.
    #[track_caller]
    pub fn copied(&self) -> Array<S> {
        self.stamp().check();
        Array::moved("copy", self.values(), self.shape(), self.stamp(), self.region())
    }

    /// The elements as numbers of the tape, in row-major order; recorded as one entry.
    #[track_caller]
    pub fn to_vars(&self) -> Vec<Var<S>> {
        let stamp = self.stamp();
        stamp.check();
        let values = self.values();
        let Some(from) = self.region() else { return values.into_iter().map(Var::lift).collect() };
        let zero = S::zero();
        let first = with_recorder(stamp, |recorder: &mut Recorder<S>| {
            let first = recorder.arena.next_node();
            for &value in &values {
                recorder.push_leaf("to_vars", value, zero, stamp.is_traced());
            }
            first
        });
        let places = Places::View(View { offset: first as usize, ..View::whole(self.shape()) });
        let output = Region { home: Home::Nodes, places };
        self.record(stamp, Linear::moving("to_vars", output, true, Some(from)));
        (first..).zip(values).map(|(node, value)| Var::of_node(value, node, stamp)).collect()
    }

    fn constant_of(values: Vec<S>, shape: &[usize]) -> Array<S> {
        Array { buffer: Rc::new(Buffer::new(values)), view: View::whole(shape) }
    }

    fn active_of(values: Vec<S>, shape: &[usize], stamp: Stamp) -> Array<S> {
        let array = Array::constant_of(values, shape);
        array.buffer.activate(stamp);
        array
    }

    fn stamp(&self) -> Stamp {
        self.buffer.stamp()
    }

    /// Panics if the array has become shorter than this view of it.
    #[track_caller]
    fn check_length(&self) {
        let (end, len) = (self.view.end(), self.buffer.len());
        assert!(
            end <= len,
            "palinode: PAL0101: a view reaches to element {end} of an array that has been shortened to {len}; take views \
             again after truncate"
        );
    }

    /// Its cells, if it is active.
    fn region(&self) -> Option<Region> {
        let home = Home::Storage(self.buffer.storage()?);
        Some(Region { home, places: Places::View(self.view.clone()) })
    }

    /// Its cells; it is active.
    fn output(&self) -> Region {
        self.region().expect("a result that is recorded is active")
    }

    /// Whether it is all of its buffer, in order.
    fn is_whole(&self) -> bool {
        self.view.covers(self.buffer.len())
    }

    fn record(&self, stamp: Stamp, linear: Linear<S>) {
        with_recorder(stamp, |recorder: &mut Recorder<S>| recorder.push_whole(Whole::Linear(linear)));
    }

    /// Its values for a rule to keep: the memory itself if that is all of it, else a copy of the elements.
    /// The copy costs no more than the operation; keeping the memory could make a later write copy all of it.
    fn keep(&self, need: Need) -> Residual<S> {
        if self.is_whole() {
            return Residual::Values { kept: self.buffer.keep(need), view: View::whole(self.shape()) };
        }
        count_saved::<S>(need.stamp, self.len());
        owned(self.values(), self.shape(), need)
    }

    /// The same of a factor, for a rule that needs it if the other one is active.
    fn keep_if(&self, needed: bool, need: Need) -> Residual<S> {
        if needed { self.keep(need) } else { Residual::Absent }
    }
}

/// An empty list with the capacity for so many numbers. Broadcast views show elements that nobody has
/// allocated, so there may be none.
#[track_caller]
fn reserved<S>(elements: usize) -> Vec<S> {
    let mut list = Vec::new();
    if list.try_reserve_exact(elements).is_err() {
        let bytes = elements.saturating_mul(size_of::<S>());
        panic!(
            "palinode: PAL0106: no memory for {bytes} bytes of an array of {elements} elements; use smaller arrays"
        )
    }
    list
}

/// The operation that is about to keep values.
fn need_at<S: Scalar>(by: &'static str, at: &'static Location<'static>, stamp: Stamp) -> Need {
    let policy = with_recorder(stamp, |recorder: &mut Recorder<S>| recorder.arrays.policy);
    Need { by, at, policy, stamp }
}

/// Numbers for a rule to keep that are nobody else's.
fn owned<S: Scalar>(values: Vec<S>, shape: &[usize], need: Need) -> Residual<S> {
    let kept = Kept::new(Arc::new(values), None);
    charge::<S>(need, kept.needed_by(need));
    Residual::Values { kept, view: View::whole(shape) }
}

/// Counts bytes that a rule keeps towards the limit of its tape.
fn charge<S: Scalar>(need: Need, bytes: usize) {
    if bytes > 0 {
        with_recorder(need.stamp, |recorder: &mut Recorder<S>| recorder.charge(bytes));
    }
}

fn count_saved<S: Scalar>(stamp: Stamp, elements: usize) {
    with_recorder(stamp, |recorder: &mut Recorder<S>| recorder.arrays.counts.saved += elements);
}

impl<S: Scalar> Clone for Array<S> {
    /// A copy. Of a whole array it costs nothing until one of the two is written to; of a part, its elements.
    #[track_caller]
    fn clone(&self) -> Array<S> {
        if !self.is_whole() {
            return self.copied();
        }
        self.stamp().check();
        Array { buffer: Rc::new(self.buffer.fork_later()), view: self.view.clone() }
    }
}

impl<S: Scalar> core::fmt::Debug for Array<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Array({}, {:?})", Shape(self.shape()), self.values())
    }
}
