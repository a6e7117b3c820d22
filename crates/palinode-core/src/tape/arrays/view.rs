//! Which cells of a buffer an array means: shape, offset and strides, or a plain list.
//!
//! Input: shapes and positions as the user gives them. Output: cell numbers, in row-major order of the shape.
//!
//! Invariants: a view made here stays inside the view that it was made from; `strides` has an entry per axis.
//! Only [`View::broadcast`] makes a view that meets a cell twice. Nothing here knows values or tapes.

use core::fmt;

/// A shape laid over a buffer: element `[i, j]` is cell `offset + i * strides[0] + j * strides[1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) offset: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl View {
    /// All cells from 0 on, in order.
    pub(crate) fn whole(shape: &[usize]) -> View {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as isize;
        }
        View { offset: 0, shape: shape.to_vec(), strides }
    }

    /// The same cell for every element of the shape.
    pub(crate) fn repeated(cell: usize, shape: &[usize]) -> View {
        View { offset: cell, shape: shape.to_vec(), strides: vec![0; shape.len()] }
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements, in order, are cells in order without a gap.
    pub(crate) fn is_run(&self) -> bool {
        let mut expected = 1;
        for (&length, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if length != 1 && stride != expected {
                return self.len() == 0;
            }
            expected *= length as isize;
        }
        true
    }

    /// Whether it means exactly the first `len` cells, in order.
    pub(crate) fn covers(&self, len: usize) -> bool {
        self.offset == 0 && self.len() == len && self.is_run()
    }

    /// Whether some cell is met twice; exact, because strides of length above 1 are zero only in broadcasts.
    pub(crate) fn repeats(&self) -> bool {
        self.len() > 0
            && self.shape.iter().zip(&self.strides).any(|(&length, &stride)| length > 1 && stride == 0)
    }

    /// One more than the largest cell; 0 if there is none.
    pub(crate) fn end(&self) -> usize {
        if self.len() == 0 {
            return 0;
        }
        let reach = self.shape.iter().zip(&self.strides).map(|(&n, &s)| (n as isize - 1) * s.max(0));
        self.offset + reach.sum::<isize>() as usize + 1
    }

    /// The cell of an element, or what is wrong with the position.
    #[inline]
    pub(crate) fn cell(&self, position: &[usize]) -> Result<usize, String> {
        if position.len() != self.shape.len()
            || position.iter().zip(&self.shape).any(|(at, length)| at >= length)
        {
            return Err(outside(position, &self.shape));
        }
        let steps = position.iter().zip(&self.strides).map(|(&at, &stride)| at as isize * stride);
        Ok((self.offset as isize + steps.sum::<isize>()) as usize)
    }

    /// Every `step`th element from `start` to before `end` along an axis.
    #[track_caller]
    pub(crate) fn slice(&self, axis: usize, start: usize, end: usize, step: usize) -> View {
        self.check_axis("slice", axis);
        let length = self.shape[axis];
        assert!(
            start <= end && end <= length,
            "palinode: PAL0101: slice {start}..{end} of axis {axis}, which has {length} elements"
        );
        assert!(step > 0, "palinode: PAL0101: a slice takes steps of at least 1");
        let mut view = self.clone();
        view.shape[axis] = (end - start).div_ceil(step);
        view.offset = (self.offset as isize + start as isize * self.strides[axis]) as usize;
        // A step beyond the end is never taken, however long it is.
        if view.shape[axis] > 1 {
            view.strides[axis] *= step as isize;
        }
        view.settled()
    }

    /// One position along an axis, which disappears.
    #[track_caller]
    pub(crate) fn at(&self, axis: usize, position: usize) -> View {
        self.check_axis("at", axis);
        let length = self.shape[axis];
        assert!(
            position < length,
            "palinode: PAL0101: position {position} of axis {axis}, which has {length} elements"
        );
        let mut view = self.slice(axis, position, position + 1, 1);
        view.shape.remove(axis);
        view.strides.remove(axis);
        view
    }

    /// The axes in reverse order.
    pub(crate) fn transposed(&self) -> View {
        let mut view = self.clone();
        view.shape.reverse();
        view.strides.reverse();
        view
    }

    /// An axis from its end to its start.
    #[track_caller]
    pub(crate) fn reversed(&self, axis: usize) -> View {
        self.check_axis("reversed", axis);
        let mut view = self.clone();
        if self.shape[axis] > 0 {
            view.offset =
                (self.offset as isize + (self.shape[axis] as isize - 1) * self.strides[axis]) as usize;
            view.strides[axis] = -self.strides[axis];
        }
        view.settled()
    }

    /// The diagonal of a matrix.
    #[track_caller]
    pub(crate) fn diagonal(&self) -> View {
        let [rows, columns] = self.shape[..] else {
            panic!("palinode: PAL0101: only a matrix has a diagonal, not shape {}", Shape(&self.shape))
        };
        let strides = vec![self.strides.iter().sum()];
        View { offset: self.offset, shape: vec![rows.min(columns)], strides }
    }

    /// The same elements in another shape; only where they lie in order.
    #[track_caller]
    pub(crate) fn reshaped(&self, shape: &[usize]) -> View {
        let (now, then) = (self.len(), check_elements("reshaped", shape));
        assert!(
            now == then,
            "palinode: PAL0101: {} elements of shape {} cannot take the shape {}, which has {then}",
            now,
            Shape(&self.shape),
            Shape(shape)
        );
        assert!(
            self.is_run(),
            "palinode: PAL0101: a strided view cannot be reshaped in place; take a copy first: `.copied().reshaped(..)`"
        );
        View { offset: self.offset, ..View::whole(shape) }
    }

    /// Repeats axes of length 1, and puts new ones in front, until the shape fits.
    #[track_caller]
    pub(crate) fn broadcast(&self, shape: &[usize]) -> View {
        let new = shape.len().checked_sub(self.shape.len());
        let fits = new.is_some_and(|new| {
            self.shape.iter().zip(&shape[new..]).all(|(&mine, &wanted)| mine == wanted || mine == 1)
        });
        let (true, Some(new)) = (fits, new) else {
            panic!(
                "palinode: PAL0101: shape {} cannot be repeated to {}; axes are matched from the last, and each must be \
                 equal or 1",
                Shape(&self.shape),
                Shape(shape)
            )
        };
        check_elements("broadcast", shape);
        let mut strides = vec![0; new];
        let kept = self.shape.iter().zip(&shape[new..]).zip(&self.strides);
        strides.extend(kept.map(|((&mine, &wanted), &stride)| if mine == wanted { stride } else { 0 }));
        View { offset: self.offset, shape: shape.to_vec(), strides }
    }

    /// Laid over a shape with one more axis, along which it repeats: how a reduction's result meets its
    /// argument.
    pub(crate) fn spread_along(&self, axis: usize, length: usize) -> View {
        let mut view = self.clone();
        view.shape.insert(axis, length);
        view.strides.insert(axis, 0);
        view
    }

    /// A view of nothing begins at 0, so that its offset is always inside.
    fn settled(mut self) -> View {
        if self.len() == 0 {
            self.offset = 0;
        }
        self
    }

    #[track_caller]
    pub(crate) fn check_axis(&self, what: &str, axis: usize) {
        let rank = self.shape.len();
        assert!(axis < rank, "palinode: PAL0101: {what}: there is no axis {axis} among {rank}, from 0");
    }

    /// The cells, in order.
    pub(crate) fn walk(&self) -> Walk<'_> {
        let len = self.len();
        if self.is_run() {
            return Walk::Run(self.offset..self.offset + len);
        }
        Walk::Strided(Odometer {
            view: self,
            position: vec![0; self.shape.len()],
            cell: self.offset as isize,
            left: len,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shape.capacity() * size_of::<usize>() + self.strides.capacity() * size_of::<isize>()
    }
}

#[cold]
#[inline(never)]
fn outside(position: &[usize], shape: &[usize]) -> String {
    let (position, shape) = (Shape(position), Shape(shape));
    format!("palinode: PAL0101: element {position} of an array of shape {shape}: there is none")
}

/// How many elements there are in a shape.
///
/// # Panics
/// If they are more than an array may have. Axes of length 0 do not count for that, so that no stride of any
/// view can overflow.
#[track_caller]
pub(crate) fn check_elements(what: &str, shape: &[usize]) -> usize {
    let most = u32::MAX as usize;
    let full = shape.iter().filter(|&&length| length != 0);
    let product = full.copied().try_fold(1_usize, |product, length| product.checked_mul(length));
    match product.filter(|&product| product <= most) {
        Some(product) => {
            if shape.contains(&0) {
                0
            } else {
                product
            }
        }
        None => panic!(
            "palinode: PAL0101: {what} to shape {}: an array has at most {most} elements; use smaller arrays",
            Shape(shape)
        ),
    }
}

/// A shape for messages.
pub(crate) struct Shape<'a>(pub(crate) &'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(f, "[{}]", parts.join(", "))
    }
}

/// Cells in an order: those of a view, or any.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    View(View),
    List(Vec<u32>),
}

impl Places {
    pub(crate) fn len(&self) -> usize {
        match self {
            Places::View(view) => view.len(),
            Places::List(cells) => cells.len(),
        }
    }

    pub(crate) fn walk(&self) -> Walk<'_> {
        match self {
            Places::View(view) => view.walk(),
            Places::List(cells) => Walk::List(cells.iter()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Places::View(view) => view.bytes(),
            Places::List(cells) => cells.capacity() * size_of::<u32>(),
        }
    }
}

/// An iterator over cells.
pub(crate) enum Walk<'a> {
    Run(core::ops::Range<usize>),
    Strided(Odometer<'a>),
    List(core::slice::Iter<'a, u32>),
}

impl Iterator for Walk<'_> {
    type Item = usize;
    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self {
            Walk::Run(range) => range.next(),
            Walk::Strided(odometer) => odometer.next(),
            Walk::List(cells) => cells.next().map(|&cell| cell as usize),
        }
    }
}

/// Counts through the positions of a strided view.
pub(crate) struct Odometer<'a> {
    view: &'a View,
    position: Vec<usize>,
    cell: isize,
    left: usize,
}

impl Odometer<'_> {
    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let cell = self.cell as usize;
        for axis in (0..self.position.len()).rev() {
            self.position[axis] += 1;
            self.cell += self.view.strides[axis];
            if self.position[axis] < self.view.shape[axis] {
                break;
            }
            self.cell -= self.view.strides[axis] * self.view.shape[axis] as isize;
            self.position[axis] = 0;
        }
        Some(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::View;

    fn cells(view: &View) -> Vec<usize> {
        view.walk().collect()
    }

    #[test]
    fn views_of_views() {
        let matrix = View::whole(&[3, 4]);
        assert_eq!(cells(&matrix), (0..12).collect::<Vec<_>>());
        assert_eq!(cells(&matrix.at(1, 2)), [2, 6, 10]);
        assert_eq!(cells(&matrix.transposed().at(0, 2)), [2, 6, 10]);
        assert_eq!(cells(&matrix.diagonal()), [0, 5, 10]);
        assert_eq!(cells(&matrix.slice(1, 1, 4, 2).slice(0, 1, 3, 1)), [5, 7, 9, 11]);
        assert_eq!(cells(&matrix.reversed(1).at(0, 0)), [3, 2, 1, 0]);
        assert_eq!(cells(&matrix.reversed(1).reversed(1)), cells(&matrix));
        assert_eq!(cells(&matrix.at(0, 1).broadcast(&[2, 4])), [4, 5, 6, 7, 4, 5, 6, 7]);
        assert_eq!(cells(&matrix.slice(0, 1, 3, 1).reshaped(&[8])), (4..12).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_view_says_of_itself() {
        let matrix = View::whole(&[3, 4]);
        for view in [
            matrix.clone(),
            matrix.transposed(),
            matrix.at(0, 1),
            matrix.at(1, 3),
            matrix.reversed(0),
            matrix.slice(1, 2, 2, 1),
            matrix.slice(1, 4, 4, 1).slice(0, 3, 3, 1).reversed(0),
            matrix.slice(0, 1, 2, 1),
            View::whole(&[]),
            View::whole(&[0, 3]),
            View::whole(&[2, 0]),
        ] {
            let found = cells(&view);
            assert_eq!(found.len(), view.len(), "{view:?}");
            assert!(view.offset < 12, "{view:?}");
            assert_eq!(view.end(), found.iter().max().map_or(0, |last| last + 1), "{view:?}");
            let run = found.windows(2).all(|pair| pair[1] == pair[0] + 1);
            assert_eq!(view.is_run(), run, "{view:?}");
            assert_eq!(view.covers(12), found == (0..12).collect::<Vec<_>>(), "{view:?}");
            let mut once = found.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(view.repeats(), once.len() != found.len(), "{view:?}");
        }
        assert!(matrix.at(0, 1).broadcast(&[2, 4]).repeats());
    }
}
