//! The largest convex function below a list of points: lines between some of them, the corners.
//!
//! Input: points from left to right. Output: slopes and values of the lines between corners.

/// Corners, from left to right; a *piece* is a line between two of them and has the number of the first.
pub(super) struct Hull {
    places: Vec<u32>,
    values: Vec<f64>,
}

impl Hull {
    /// For at most so many points.
    pub(super) fn with_capacity(points: usize) -> Hull {
        Hull { places: Vec::with_capacity(points), values: Vec::with_capacity(points) }
    }

    /// The heap bytes of a hull of so many points.
    pub(super) fn bytes_for(points: usize) -> usize {
        points * (size_of::<u32>() + size_of::<f64>())
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.values.clear();
    }

    /// A point to the right of all others.
    pub(super) fn push(&mut self, place: usize, value: f64) {
        while let pieces @ 1.. = self.pieces() {
            let (corner, at) = (self.places[pieces] as usize, self.values[pieces]);
            if self.slope(pieces - 1) * ((place - corner) as f64) < value - at {
                break;
            }
            self.places.pop();
            self.values.pop();
        }
        self.places.push(place as u32);
        self.values.push(value);
    }

    fn pieces(&self) -> usize {
        self.places.len().saturating_sub(1)
    }

    /// Where a piece begins; that of the number of pieces is the last corner.
    pub(super) fn place(&self, corner: usize) -> usize {
        self.places[corner] as usize
    }

    /// The last place, 0 if there is none.
    pub(super) fn end(&self) -> usize {
        self.places.last().map_or(0, |&place| place as usize)
    }

    /// How much a piece rises in one place.
    pub(super) fn slope(&self, piece: usize) -> f64 {
        let long = self.places[piece + 1] - self.places[piece];
        (self.values[piece + 1] - self.values[piece]) / f64::from(long)
    }

    /// The piece that goes on to the right of `place`, which is not the last one; looked for from the piece
    /// `near`.
    pub(super) fn after(&self, place: usize, near: usize) -> usize {
        let mut piece = near.min(self.pieces() - 1);
        while self.place(piece) > place {
            piece -= 1;
        }
        while self.place(piece + 1) <= place {
            piece += 1;
        }
        piece
    }

    /// The piece that ends in `place`, which is not the first one, or goes over it.
    pub(super) fn before(&self, place: usize, near: usize) -> usize {
        self.after(place - 1, near)
    }

    /// The value at a place; looked for from the piece `near`.
    pub(super) fn value(&self, place: usize, near: usize) -> f64 {
        if place == self.end() {
            return self.values[self.pieces()];
        }
        let piece = self.after(place, near);
        self.values[piece] + self.slope(piece) * ((place - self.place(piece)) as f64)
    }
}
