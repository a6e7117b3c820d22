//! Single elements, lengths that change, and assignment.
//!
//! Input: positions and numbers. Output: values; a step on the tape per element if something is active.
//!
//! A read becomes a node at once, because a later write changes what the cell means. A number that is written
//! becomes a node if it is not one yet.

use super::Array;
use super::buffer::{Extent, Write};
use super::elementwise::ArrayOperand;
use crate::number::Operand;
use crate::tape::arrays::{Home, Kind, Linear, Places, Region, Shape, View, check_elements};
use crate::tape::{Recorder, Stamp, Var, with_recorder};
use core::panic::Location;
use palinode_num::Scalar;

/// Where an element is: an index for a vector, an array or a pair of them for more axes.
pub trait Position {
    /// Calls `f` with an index per axis.
    fn with<R>(self, f: impl FnOnce(&[usize]) -> R) -> R;
}

macro_rules! positions {
    ($([$($generics:tt)*] $Position:ty => |$at:ident| $indices:expr;)*) => {$(
        impl<$($generics)*> Position for $Position {
            #[inline]
            fn with<R>(self, f: impl FnOnce(&[usize]) -> R) -> R {
                let $at = self;
                f($indices)
            }
        }
    )*};
}
positions! {
    [] usize => |at| &[at];
    [] (usize, usize) => |at| &[at.0, at.1];
    [] &[usize] => |at| at;
    [const N: usize] [usize; N] => |at| &at;
}

impl<S: Scalar> Array<S> {
    #[track_caller]
    #[inline]
    fn cell(&self, position: impl Position) -> usize {
        let cell = match position.with(|position| self.view.cell(position)) {
            Ok(cell) => cell,
            Err(message) => panic!("{message}"),
        };
        if cell >= self.buffer.len() {
            self.check_length();
        }
        cell
    }

    /// An element. Every call is a step of its own on the tape.
    ///
    /// # Panics
    /// If there is no such element, or the array belongs to a tape that is not open here.
    #[track_caller]
    #[inline]
    pub fn get(&self, position: impl Position) -> Var<S> {
        let cell = self.cell(position);
        let value = self.buffer.values()[cell];
        let stamp = self.stamp();
        let Some(storage) = self.buffer.storage() else {
            stamp.check();
            return Var::lift(value);
        };
        let zero = S::zero();
        let node = with_recorder(stamp, |recorder: &mut Recorder<S>| {
            let node = recorder.push_read(storage, cell, zero);
            if stamp.is_traced() {
                recorder.trace_leaf("get", node, value);
            }
            node
        });
        Var::of_node(value, node, stamp)
    }

    /// The value of an element; nothing is recorded.
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn value(&self, position: impl Position) -> S {
        self.buffer.values()[self.cell(position)]
    }

    /// Overwrites an element.
    ///
    /// # Panics
    /// If there is no such element, the array is a broadcast view, or number and array belong to different
    /// tapes.
    #[track_caller]
    #[inline]
    pub fn set(&mut self, position: impl Position, value: impl Operand<Var<S>>) {
        let cell = self.cell(position);
        self.write_cell(cell, value.operand(), Kind::Set, Location::caller());
    }

    /// Adds to an element.
    ///
    /// # Panics
    /// As [`Array::set`].
    #[track_caller]
    #[inline]
    pub fn add_at(&mut self, position: impl Position, value: impl Operand<Var<S>>) {
        let cell = self.cell(position);
        self.write_cell(cell, value.operand(), Kind::Add, Location::caller());
    }

    /// Exchanges two elements.
    ///
    /// # Panics
    /// If there are no such elements.
    #[track_caller]
    pub fn swap(&mut self, first: impl Position, second: impl Position) {
        let at = Location::caller();
        let (first, second) = (self.cell(first), self.cell(second));
        let cell = |cell| self.seen_at(cell).get([]);
        let (x, y) = (cell(first), cell(second));
        self.write_cell(first, y, Kind::Set, at);
        self.write_cell(second, x, Kind::Set, at);
    }

    /// One cell as an array without axes.
    fn seen_at(&self, cell: usize) -> Array<S> {
        Array { buffer: self.buffer.clone(), view: View::repeated(cell, &[]) }
    }

    #[inline]
    fn write_cell(&self, cell: usize, value: Var<S>, kind: Kind, at: &'static Location<'static>) {
        self.check_writable();
        let stamp = self.stamp().join(value.stamp());
        stamp.check();
        if value.is_active() {
            self.buffer.activate(stamp);
        }
        let by = if kind == Kind::Set { "set" } else { "add_at" };
        self.buffer.prepare_write(Write { by, at });
        {
            let memory = &mut self.buffer.memory()[cell];
            *memory = if kind == Kind::Set { value.primal() } else { *memory + value.primal() };
        }
        self.push_write(cell, value, kind);
    }

    #[inline]
    fn push_write(&self, cell: usize, value: Var<S>, kind: Kind) {
        let Some(storage) = self.buffer.storage() else { return };
        if kind == Kind::Add && !value.is_active() {
            return;
        }
        let node = value.node();
        with_recorder(self.stamp(), |recorder: &mut Recorder<S>| {
            recorder.push_step(kind, storage, cell, node);
        });
    }

    #[track_caller]
    pub(super) fn check_writable(&self) {
        assert!(
            !self.view.repeats(),
            "palinode: PAL0101: a broadcast view of shape {} shows elements more than once and cannot be written to; write to \
             the array itself, or to `.copied()`",
            Shape(self.shape())
        );
    }

    /// Overwrites every element by one number.
    ///
    /// # Panics
    /// If the array is a broadcast view, or number and array belong to different tapes.
    #[track_caller]
    pub fn fill(&mut self, value: impl Operand<Var<S>>) {
        self.assign(ArrayOperand::Number(value.operand()));
    }

    /// Overwrites every element by those of another array, or by one number. The other one is read first, so
    /// the two may overlap.
    ///
    /// # Panics
    /// If the shapes differ, this is a broadcast view, or the two belong to different tapes.
    #[track_caller]
    pub fn assign<'a>(&mut self, other: impl Into<ArrayOperand<'a, S>>) {
        self.check_writable();
        self.check_length();
        let other = other.into();
        let write = Write { by: "assign", at: Location::caller() };
        let stamp = self.stamp().join(other.stamp());
        stamp.check();
        other.check_shape("assign", self.shape());
        let values = other.values(self.len());
        self.begin_write();
        let from = other.region(self.shape());
        if from.is_some() {
            self.buffer.activate(stamp);
        }
        self.replace(values, write);
        if self.is_active() {
            self.record(stamp, Linear::moving("assign", self.output(), true, from));
        }
    }

    /// What comes before the regions of a write to all its cells are asked for: see
    /// [`Buffer::fork_storage`](super::buffer::Buffer::fork_storage).
    pub(super) fn begin_write(&self) {
        if !self.is_whole() {
            self.buffer.fork_storage(Extent::Part);
        }
    }

    /// Puts new values into all its cells; [`Array::begin_write`] came before.
    pub(super) fn replace(&self, values: Vec<S>, write: Write) {
        if self.is_whole() {
            self.buffer.fork_storage(Extent::Whole);
            self.buffer.install(values);
            return;
        }
        self.buffer.prepare_memory(write);
        let memory = &mut *self.buffer.memory();
        for (cell, value) in self.view.walk().zip(values) {
            memory[cell] = value;
        }
    }

    /// Appends an element to a vector.
    ///
    /// # Panics
    /// Unless this is a whole vector: not a view of a part, and with one axis.
    #[track_caller]
    pub fn push(&mut self, value: impl Operand<Var<S>>) {
        self.check_resizable("push");
        let (value, cell) = (value.operand(), self.len());
        check_elements("push", &[cell + 1]);
        let stamp = self.stamp().join(value.stamp());
        stamp.check();
        if value.is_active() {
            self.buffer.activate(stamp);
        }
        self.buffer.prepare_write(Write { by: "push", at: Location::caller() });
        {
            let mut memory = self.buffer.memory();
            memory.truncate(cell);
            memory.push(value.primal());
        }
        self.buffer.set_len(cell + 1);
        self.view.shape[0] = cell + 1;
        // A single element, or none, may have had any stride.
        self.view.strides[0] = 1;
        if let Some(storage) = self.buffer.storage() {
            with_recorder(self.stamp(), |recorder: &mut Recorder<S>| {
                recorder.storage_reaches(storage, cell + 1);
            });
        }
        self.push_write(cell, value, Kind::Set);
    }

    /// Takes the last element of a vector away; `None` if there is none.
    ///
    /// # Panics
    /// As [`Array::push`].
    #[track_caller]
    pub fn pop(&mut self) -> Option<Var<S>> {
        self.check_resizable("pop");
        let last = self.len().checked_sub(1)?;
        let value = self.get(last);
        self.truncate(last);
        Some(value)
    }

    /// Shortens a vector to its first `len` elements; nothing happens if it is no longer than that. Views of
    /// what is cut off panic when they are used.
    ///
    /// # Panics
    /// As [`Array::push`].
    #[track_caller]
    pub fn truncate(&mut self, len: usize) {
        self.check_resizable("truncate");
        if len < self.len() {
            // Nothing is recorded: nobody can read these cells until they are written again.
            self.buffer.set_len(len);
            self.view.shape[0] = len;
        }
    }

    #[track_caller]
    fn check_resizable(&self, what: &str) {
        assert!(
            self.shape().len() == 1 && self.is_whole(),
            "palinode: PAL0101: {what} needs a whole vector; this is a view of a part, or has another number of axes than one \
             (shape {})",
            Shape(self.shape())
        );
    }
}

impl<'a, S: Scalar> ArrayOperand<'a, S> {
    /// Its cells or its node, laid over a shape; none if it is constant.
    pub(super) fn region(&self, shape: &[usize]) -> Option<Region> {
        match self {
            ArrayOperand::Array(array) => array.region(),
            ArrayOperand::Number(x) if x.is_active() => {
                let places = Places::View(View::repeated(x.node() as usize, shape));
                Some(Region { home: Home::Nodes, places })
            }
            ArrayOperand::Number(_) => None,
        }
    }

    pub(super) fn stamp(&self) -> Stamp {
        match self {
            ArrayOperand::Array(array) => array.stamp(),
            ArrayOperand::Number(x) => x.stamp(),
        }
    }

    fn values(&self, len: usize) -> Vec<S> {
        match self {
            ArrayOperand::Array(array) => array.values(),
            ArrayOperand::Number(x) => vec![x.primal(); len],
        }
    }
}
