//! Binomial coefficients kept in a table that grows by addition, for those who ask for many costs: no
//! division.

use super::binomial;

/// A table has about so many numbers at most, if that is enough for a few rows.
const NUMBERS: usize = 256;
const FEWEST_ROWS: usize = 4;
const MOST_ROWS: usize = 32;

/// `beta(s, r) = C(s + r, s)` for all `s` up to a width.
#[derive(Clone, Debug)]
pub(super) struct Betas {
    width: usize,
    /// No more rows than these, which have their memory from the start; what needs more is computed by the
    /// closed form.
    most_rows: usize,
    /// `beta(s, r)` at `r * width + s`.
    rows: Vec<u64>,
}

impl Betas {
    /// The heap bytes for so many snapshots, or some more.
    pub(super) fn bytes_for(snapshots: u32) -> usize {
        let width = snapshots as usize + 2;
        (MOST_ROWS * width).min(NUMBERS.max(FEWEST_ROWS * width)) * size_of::<u64>()
    }

    /// The heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<u64>()
    }

    /// For costs with up to `snapshots` snapshots.
    pub(super) fn new(snapshots: u32) -> Betas {
        let width = snapshots as usize + 2;
        let most_rows = (NUMBERS / width).clamp(FEWEST_ROWS, MOST_ROWS);
        let mut rows = Vec::with_capacity(most_rows * width);
        rows.resize(width, 1);
        let mut betas = Betas { width, most_rows, rows };
        betas.grow();
        betas.grow();
        betas
    }

    /// The fewest advances over `steps` steps: `r n - beta(s + 1, r - 1)` with the least `r` for which
    /// `beta(s, r) >= n`. `near` is where to look for that `r`, and where it was found.
    pub(super) fn advances(&mut self, steps: u64, snapshots: u64, near: &mut usize) -> u64 {
        // With one or two snapshots `r` is large, and its closed form is at hand.
        if snapshots <= 2 || steps <= snapshots + 1 {
            return binomial::advances(steps, snapshots);
        }
        let column = snapshots as usize;
        let mut r = (*near).clamp(2, self.rows.len() / self.width - 1);
        while self.rows[r * self.width + column] < steps {
            r += 1;
            if r == self.most_rows {
                *near = 2;
                return binomial::advances(steps, snapshots);
            }
            if r * self.width == self.rows.len() {
                self.grow();
            }
        }
        while self.rows[(r - 1) * self.width + column] >= steps {
            r -= 1;
        }
        *near = r;
        (r as u64).saturating_mul(steps).saturating_sub(self.rows[(r - 1) * self.width + column + 1])
    }

    fn grow(&mut self) {
        let above = self.rows.len() - self.width;
        self.rows.push(1);
        for s in 1..self.width {
            let beta = self.rows[above + s].saturating_add(self.rows[above + self.width + s - 1]);
            self.rows.push(beta);
        }
    }
}
