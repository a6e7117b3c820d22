//! The table of `reference/linalg.py`: values and derivatives to second order at random and at structured
//! matrices (zero, identity, diagonal, triangular, singular, defective, equal entries), on every number; and
//! double-doubles to 28 digits.

use super::operations::{distance, dot};
use crate::linalg::{self, LinearAlgebra};
use crate::{DoubleDouble, Dual, DualN, Error, Scalar, Tape, Var};
use nalgebra::{DMatrix, Vector3};

struct Row {
    operation: &'static str,
    shape: (usize, usize),
    /// Matrix, two directions, value, first and second derivative; by rows.
    fields: Vec<Vec<&'static str>>,
}

fn table() -> Vec<Row> {
    let rows = include_str!("../../../../../reference/linalg.tsv").lines().map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let size = |k: usize| fields[k].parse().unwrap();
        Row {
            operation: fields[0],
            shape: (size(1), size(2)),
            fields: fields[3..].iter().map(|field| field.split(' ').collect()).collect(),
        }
    });
    rows.collect()
}

impl Row {
    fn numbers(&self, field: usize) -> Vec<f64> {
        self.fields[field].iter().map(|x| x.parse().unwrap()).collect()
    }

    /// By rows, as the table has it.
    fn run<T: LinearAlgebra>(&self, x: &[T]) -> Result<Vec<T>, Error> {
        let a = || DMatrix::from_row_slice(self.shape.0, self.shape.1, x);
        let by_rows = |m: DMatrix<T>| m.transpose().as_slice().to_vec();
        let vector = || Vector3::new(x[0], x[1], x[2]);
        Ok(match self.operation {
            "exponential" => by_rows(linalg::exponential(&a())?),
            "square_root" => by_rows(linalg::square_root(&a())?),
            "determinant" => vec![linalg::determinant(&a())?],
            "pseudo_inverse" => by_rows(linalg::pseudo_inverse(&a())?),
            "polar" => {
                let polar = linalg::polar(&a())?;
                [by_rows(polar.q), by_rows(polar.p)].concat()
            }
            "eigenvalues" => {
                let w = linalg::eigenvalues(&a())?;
                [w.re.as_slice(), w.im.as_slice()].concat()
            }
            "rotation" => {
                linalg::rotation_from_scaled_axis(&vector())?.matrix().transpose().as_slice().to_vec()
            }
            "quaternion" => {
                let q = linalg::quaternion_from_scaled_axis(&vector())?;
                let [i, j, k, w] = [0, 1, 2, 3].map(|part| q.as_ref().coords[part]);
                vec![w, i, j, k]
            }
            name => panic!("{name} is not known"),
        })
    }

    /// What rounding of the matrix itself may change: near a defective matrix an eigenvalue moves by more
    /// than it does elsewhere.
    fn allowed(&self) -> f64 {
        match self.operation {
            "eigenvalues" => 2e-12,
            "square_root" | "polar" | "pseudo_inverse" => 1e-11,
            _ => 1e-13,
        }
    }
}

#[test]
fn values_and_derivatives_are_those_of_mpmath() {
    for (line, row) in table().iter().enumerate() {
        let [x, e, f, value, first, second] = [0, 1, 2, 3, 4, 5].map(|field| row.numbers(field));
        let place = |what: &str| format!("line {}, {} {:?}: {what}", line + 1, row.operation, row.shape);
        let near = |found: &[f64], exact: &[f64], what: &str| {
            let error = distance(found, exact);
            assert!(error < row.allowed(), "{}: {error:e}\n{found:?}\n{exact:?}", place(what));
        };
        near(&row.run(&x).unwrap(), &value, "value");

        let twice: Vec<Dual<Dual<f64>>> =
            (0..x.len()).map(|k| Dual::new(Dual::new(x[k], e[k]), Dual::new(f[k], 0.0))).collect();
        let twice = row.run(&twice).unwrap();
        near(&twice.iter().map(|y| y.value.tangent).collect::<Vec<_>>(), &first, "Dual");
        near(&twice.iter().map(|y| y.tangent.tangent).collect::<Vec<_>>(), &second, "Dual<Dual>");
        let lanes: Vec<DualN<f64, 2>> = (0..x.len()).map(|k| DualN::new(x[k], [f[k], e[k]])).collect();
        let lanes = row.run(&lanes).unwrap();
        near(&lanes.iter().map(|y| y.tangents[1]).collect::<Vec<_>>(), &first, "DualN");

        // Backwards: the sum of products of cotangents and tangents is the same, and so is its derivative.
        let u: Vec<f64> = (0..value.len()).map(|k| ((3 * k + 1) as f64).sin()).collect();
        let mut tape = Tape::new();
        let mut record = tape.record(&x, |x: &[Var<f64>]| row.run(x).unwrap()).unwrap();
        near(&record.forward(&e).unwrap(), &first, "forward over the tape");
        near(&[dot(record.reverse(&u).unwrap(), &e)], &[dot(&u, &first)], "reverse");
        let mut tape = Tape::new();
        let moved: Vec<Dual<f64>> = (0..x.len()).map(|k| Dual::new(x[k], f[k])).collect();
        let mut record = tape.record(&moved, |x: &[Var<Dual<f64>>]| row.run(x).unwrap()).unwrap();
        let u: Vec<Dual<f64>> = u.iter().map(|&u| Dual::lift(u)).collect();
        let back: Vec<f64> = record.reverse(&u).unwrap().iter().map(|x| x.tangent).collect();
        let weights: Vec<f64> = u.iter().map(|u| u.value).collect();
        near(&[dot(&back, &e)], &[dot(&weights, &second)], "forward over reverse");
        // Reverse over reverse.
        let objective = |x: &[Var<Var<f64>>]| -> Var<Var<f64>> {
            let y = row.run(x).unwrap();
            y.iter().zip(&weights).map(|(&y, &u)| y * u).sum()
        };
        let hessian = crate::hessian(objective, &x).unwrap();
        let along: Vec<f64> = hessian.iter().map(|row| dot(row, &f)).collect();
        near(&[dot(&along, &e)], &[dot(&weights, &second)], "reverse over reverse");
    }
}

#[test]
fn double_doubles_have_twice_the_digits() {
    for (line, row) in table().iter().enumerate() {
        let numbers = |field: usize| -> Vec<DoubleDouble> {
            row.fields[field].iter().map(|x| x.parse().unwrap()).collect()
        };
        let [x, e, value, first] = [0, 1, 3, 4].map(numbers);
        let seeded: Vec<Dual<DoubleDouble>> = x.iter().zip(&e).map(|(&x, &e)| Dual::new(x, e)).collect();
        let found = row.run(&seeded).unwrap();
        for (k, y) in found.iter().enumerate() {
            for (found, exact) in [(y.value, value[k]), (y.tangent, first[k])] {
                let size = 1.0 + exact.glance().unwrap().abs();
                let error = (found - exact).glance().unwrap().abs() / size;
                let allowed = row.allowed() * 1e-15;
                assert!(error < allowed, "line {}, {}: {found} {exact} {error:e}", line + 1, row.operation);
            }
        }
    }
}
