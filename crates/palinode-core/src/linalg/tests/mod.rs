//! Every operation on every number: adjointness, finite differences, closed forms, nesting, degenerate
//! spectra, structured points and what lies near them, mpmath's values, nalgebra's algorithms, refusals,
//! bytes, and other numbers.

/// A matrix by rows: `dmatrix![1.0, 2.0; 3.0, 4.0]`.
macro_rules! dmatrix {
    ($($($entry:expr),+);+) => {{
        let rows = [$([$($entry),+]),+];
        DMatrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
    }};
}

mod against_nalgebra;
mod bytes;
mod closed_forms;
mod degenerate;
mod edges;
mod near;
mod numbers;
mod operations;
mod properties;
mod reference;
mod refusals;
mod rotations;
mod second_order;
mod structured;
