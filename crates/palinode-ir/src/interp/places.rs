//! The places that axes name: offsets into the elements of an array, in rows as long as possible.
//!
//! Input: [`Steps`] along each axis, which have been checked. Output: every combination, the last axis
//! running fastest.

use core::ops::Range;

/// The places along one axis, as offsets into the elements.
#[derive(Clone, Debug)]
pub(super) enum Steps<'a> {
    /// `first`, `first + step`, ...
    Even { first: usize, count: usize, step: isize },
    /// Any, by indices that have been checked.
    Listed { indices: &'a [i64], stride: usize },
}

impl Steps<'_> {
    pub(super) fn count(&self) -> usize {
        match self {
            Steps::Even { count, .. } => *count,
            Steps::Listed { indices, .. } => indices.len(),
        }
    }
}

/// The distance between neighbours along each axis.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// From so many neighbours on it is better to do them at once.
const MANY: usize = 4;

/// Places at equal distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) step: isize,
}

impl Row {
    /// Every place.
    pub(super) fn places(self) -> impl Iterator<Item = usize> {
        // Past the last place this may leave the array, even below 0: nothing is there.
        (0..self.count as isize).map(move |at| self.first.wrapping_add_signed(at.wrapping_mul(self.step)))
    }

    /// If they lie one behind the other, and are more than a few.
    pub(super) fn neighbours(self) -> Option<Range<usize>> {
        (self.step == 1 && self.count >= MANY).then(|| self.first..self.first + self.count)
    }
}

/// Calls `f` with the places of every combination, the last axis running fastest: those along it at once, and
/// along those before it, too, if all lie one behind the other.
pub(super) fn walk<F: FnMut(Row)>(axes: &[Steps<'_>], base: usize, f: &mut F) {
    match axes {
        [] => f(Row { first: base, count: 1, step: 1 }),
        [Steps::Even { first, count, step }] => f(Row { first: base + first, count: *count, step: *step }),
        [Steps::Even { first, count, step }, rest @ ..] => {
            if let Some(Row { first: inner, count: length, .. }) = lines(rest)
                && *step == length as isize
            {
                return f(Row { first: base + first + inner, count: count * length, step: 1 });
            }
            Row { first: base + first, count: *count, step: *step }.places().for_each(|at| walk(rest, at, f));
        }
        [Steps::Listed { indices, stride }, rest @ ..] => {
            indices.iter().for_each(|&index| walk(rest, base + index as usize * stride, f));
        }
    }
}

/// The places along all these axes, if they lie one behind the other.
fn lines(axes: &[Steps<'_>]) -> Option<Row> {
    let mut row = Row { first: 0, count: 1, step: 1 };
    for axis in axes.iter().rev() {
        let Steps::Even { first, count, step } = *axis else { return None };
        if count != 1 && step != row.count as isize {
            return None;
        }
        row = Row { first: row.first + first, count: row.count * count, step: 1 };
    }
    Some(row)
}
