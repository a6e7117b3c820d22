//! Views: other names for elements of an array. Reads and writes go through to the array.
//!
//! Input: an array. Output: another [`Array`] on the same buffer. Nothing is recorded and nothing is copied:
//! the tape sees cells of one storage, so gradients of overlapping views need no special care.

use super::Array;
use crate::tape::arrays::View;
use core::ops::{Bound, RangeBounds};
use palinode_num::Scalar;
use std::rc::Rc;

fn ends(range: &impl RangeBounds<usize>, length: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        // The largest number is no end of any axis, so that a range up to it is refused.
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => length,
    };
    (start, end)
}

/// A range as it was given.
#[cold]
fn text_of(range: &impl RangeBounds<usize>) -> String {
    let (start, end) = (range.start_bound(), range.end_bound());
    let to_end = match end {
        Bound::Included(last) => format!("..={last}"),
        Bound::Excluded(end) => format!("..{end}"),
        Bound::Unbounded => "..".into(),
    };
    match start {
        Bound::Included(start) => format!("{start}{to_end}"),
        Bound::Excluded(_) => format!("{:?}", (start, end)),
        Bound::Unbounded => to_end,
    }
}

impl<S: Scalar> Array<S> {
    fn seen_as(&self, view: View) -> Array<S> {
        Array { buffer: Rc::clone(&self.buffer), view }
    }

    /// Another name for the whole array.
    pub fn view(&self) -> Array<S> {
        self.seen_as(self.view.clone())
    }

    /// Positions `range` of the first axis.
    ///
    /// ```
    /// use palinode_core::{Array, grad};
    ///
    /// let g = grad(|x| {
    ///     let mut a = Array::from_vars(x);
    ///     let mut tail = a.slice(1..);
    ///     tail *= 2.0;                  // a[1] and a[2] change
    ///     a.add_at(1, tail.get(0));     // and back: a[1] = 4 x[1]
    ///     tail.get(0) * a.get(0)
    /// }, &[3.0, 1.0, 1.0])?;
    /// assert_eq!(g, [4.0, 12.0, 0.0]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the range is not inside.
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Array<S> {
        self.slice_axis(0, range)
    }

    /// Positions `range` of an axis.
    ///
    /// # Panics
    /// If there is no such axis, or the range is not inside.
    #[track_caller]
    pub fn slice_axis(&self, axis: usize, range: impl RangeBounds<usize>) -> Array<S> {
        self.view.check_axis("slice", axis);
        let length = self.shape()[axis];
        let (start, end) = ends(&range, length);
        assert!(
            start <= end && end <= length,
            "palinode: PAL0101: slice {} of axis {axis}, which has {length} elements",
            text_of(&range)
        );
        self.seen_as(self.view.slice(axis, start, end, 1))
    }

    /// Every `step`th position of an axis, from the first.
    ///
    /// # Panics
    /// If there is no such axis, or the step is 0.
    #[track_caller]
    pub fn every(&self, axis: usize, step: usize) -> Array<S> {
        let length = self.shape().get(axis).copied().unwrap_or(0);
        self.seen_as(self.view.slice(axis, 0, length, step))
    }

    /// One position of an axis; the axis disappears.
    ///
    /// # Panics
    /// If there is no such axis or position.
    #[track_caller]
    pub fn at(&self, axis: usize, position: usize) -> Array<S> {
        self.seen_as(self.view.at(axis, position))
    }

    /// Row `i` of a matrix: [`Array::at`] of axis 0.
    #[track_caller]
    pub fn row(&self, i: usize) -> Array<S> {
        self.at(0, i)
    }

    /// Column `j` of a matrix: [`Array::at`] of axis 1.
    #[track_caller]
    pub fn column(&self, j: usize) -> Array<S> {
        self.at(1, j)
    }

    /// The diagonal of a matrix.
    ///
    /// # Panics
    /// If it has another number of axes than two.
    #[track_caller]
    pub fn diagonal(&self) -> Array<S> {
        self.seen_as(self.view.diagonal())
    }

    /// The axes in reverse order.
    pub fn transposed(&self) -> Array<S> {
        self.seen_as(self.view.transposed())
    }

    /// An axis from its end to its start.
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn reversed(&self, axis: usize) -> Array<S> {
        self.seen_as(self.view.reversed(axis))
    }

    /// The same elements in another shape.
    ///
    /// # Panics
    /// If the shape has another number of elements, or the elements do not lie in order (a transposed or
    /// strided view): take [`Array::copied`] first. So a reshaped array is always a view and never sometimes
    /// a copy.
    #[track_caller]
    pub fn reshaped(&self, shape: &[usize]) -> Array<S> {
        self.seen_as(self.view.reshaped(shape))
    }

    /// Repeated along new axes in front and along axes of length 1, to fit this shape. Such a view is read
    /// only.
    ///
    /// # Panics
    /// If the shape does not fit, or has more than 2^32 - 1 elements.
    #[track_caller]
    pub fn broadcast(&self, shape: &[usize]) -> Array<S> {
        self.seen_as(self.view.broadcast(shape))
    }
}
