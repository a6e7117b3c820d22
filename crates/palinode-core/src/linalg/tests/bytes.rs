//! What a node saves is counted.

use super::operations::{ALL, Operation};
use crate::{Tape, Var};

/// The bytes of a recording of one operation of size `n`, less what nodes and edges need.
fn saved(operation: Operation, n: usize) -> usize {
    let x = operation.point((n, n), &vec![0.25; 2 * n * n + n]);
    let mut tape = Tape::new();
    let record = tape.record(&x, |x: &[Var<f64>]| operation.run((n, n), x).unwrap()).unwrap();
    let size = record.size();
    size.bytes - size.nodes * size_of::<f64>() - size.edges * (size_of::<f64>() + size_of::<u32>())
}

#[test]
fn what_is_saved_grows_with_the_factors_and_the_inputs() {
    let n = 4;
    for operation in ALL {
        let (matrix, column) = (n * n * size_of::<f64>(), n * size_of::<f64>());
        let order = n * size_of::<usize>();
        let expected = match operation {
            Operation::Matmul => matrix + 2 * column,
            Operation::Solve => matrix + order + 2 * column,
            Operation::SolveLower | Operation::SolveUpper => matrix + 2 * column,
            Operation::Inverse | Operation::Cholesky | Operation::Determinant => matrix,
            Operation::Exponential | Operation::SquareRoot => matrix,
            Operation::PseudoInverse | Operation::Polar => 2 * matrix,
            Operation::Eigenvalues => matrix + 2 * column,
            Operation::LogDeterminant => matrix + order,
            Operation::Lu => 2 * matrix + order,
            Operation::Qr => 2 * matrix,
            Operation::SymmetricEigen | Operation::SymmetricEigenvalues => matrix + column,
            Operation::Eigenpair => matrix + column + size_of::<f64>(),
            Operation::Svd | Operation::SingularValues => 2 * matrix + column,
        };
        let inputs = match operation {
            Operation::SolveLower | Operation::SolveUpper => n * (n + 1) / 2 + 2 * n,
            _ => operation.inputs((n, n)),
        } * size_of::<u32>();
        let found = saved(operation, n);
        // Besides: the rule itself, its shared header, and which of its matrices are active.
        let rest = found.checked_sub(expected + inputs).unwrap();
        assert!((40..=400).contains(&rest), "{operation:?}: {rest} bytes besides");
    }
}
