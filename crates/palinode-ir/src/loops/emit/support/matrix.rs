/// A matrix: entry `(i, j)` is `data[i * steps[0] + j * steps[1]]`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f64],
    rows: usize,
    columns: usize,
    steps: [usize; 2],
}

/// A matrix with so many rows and columns, and the distances from one to the next.
#[inline(always)]
pub(crate) fn matrix(data: &[f64], rows: usize, columns: usize, down: usize, along: usize) -> Matrix<'_> {
    Matrix { data, rows, columns, steps: [down, along] }
}

impl Matrix<'_> {
    #[inline(always)]
    fn at(&self, row: usize, column: usize) -> f64 {
        self.data[row * self.steps[0] + column * self.steps[1]]
    }
}
