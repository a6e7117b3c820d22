//! Scaled axes there and back: right at no rotation, near it, and up to half a turn; at half a turn refused.

use super::operations::distance;
use crate::linalg::{self, LinearAlgebra};
use crate::{DoubleDouble, Dual, Scalar, Var, grad, hessian};
use nalgebra::{Quaternion, Rotation3, UnitQuaternion, Vector3};

const AXES: [[f64; 3]; 10] = [
    [0.0, 0.0, 0.0],
    [1e-200, 0.0, 0.0],
    [1e-9, -2e-9, 1e-9],
    [0.01, 0.02, -0.03],
    [0.2, 0.1, -0.05],
    [1.0, 0.0, 0.0],
    [0.0, -1.5, 2.0],
    [std::f64::consts::PI - 3e-6, 0.0, 0.0],
    [0.0, 0.0, 5e-8 - std::f64::consts::PI],
    [1.8, -1.8, 1.8],
];

fn there_and_back<T: LinearAlgebra>(v: &[T], by_matrix: bool) -> Vec<T> {
    let v = Vector3::new(v[0], v[1], v[2]);
    let back = match by_matrix {
        true => linalg::scaled_axis_of_rotation(&linalg::rotation_from_scaled_axis(&v).unwrap()),
        false => linalg::scaled_axis_of_quaternion(&linalg::quaternion_from_scaled_axis(&v).unwrap()),
    };
    back.unwrap().as_slice().to_vec()
}

/// The whole way is the identity: its Jacobian is the identity, its second derivatives are zero.
#[test]
fn there_and_back_is_the_identity_to_second_order() {
    for v in AXES {
        for by_matrix in [true, false] {
            assert!(distance(&there_and_back(&v, by_matrix), &v) < 1e-14, "{v:?}");
            // Near half a turn a matrix tells its angle by what is left to it.
            let left = std::f64::consts::PI - Vector3::from(v).norm();
            let allowed = 1e-13 / left.min(1.0);
            for k in 0..3 {
                let one = grad(|x| there_and_back(x, by_matrix)[k], &v).unwrap();
                let mut unit = [0.0; 3];
                unit[k] = 1.0;
                assert!(distance(&one, &unit) < allowed, "{v:?} {by_matrix}: {one:?}");
                let two = hessian(|x| there_and_back(x, by_matrix)[k], &v).unwrap().concat();
                assert!(distance(&two, &[0.0; 9]) < allowed / left.min(1.0), "{v:?} {by_matrix}: {two:?}");
            }
        }
    }
}

#[test]
fn values_are_those_of_nalgebra() {
    for v in AXES {
        let v = Vector3::from(v);
        let (matrix, quaternion) = (Rotation3::from_scaled_axis(v), UnitQuaternion::from_scaled_axis(v));
        assert!((linalg::rotation_from_scaled_axis(&v).unwrap().matrix() - matrix.matrix()).amax() < 1e-14);
        let ours = linalg::quaternion_from_scaled_axis(&v).unwrap();
        assert!((ours.coords - quaternion.coords).amax() < 1e-14);
        let negative = UnitQuaternion::new_unchecked(Quaternion::from(-ours.coords));
        assert!(
            (linalg::scaled_axis_of_quaternion(&negative).unwrap() - quaternion.scaled_axis()).amax() < 1e-14
        );
    }
}

#[test]
fn a_half_turn_is_refused_where_a_derivative_is_wanted() {
    for axis in [Vector3::new(1.0, 0.0, 0.0), Vector3::new(0.6, 0.0, -0.8), Vector3::new(2.0, 1.0, 2.0) / 3.0]
    {
        let half = axis * std::f64::consts::PI;
        let matrix = linalg::rotation_from_scaled_axis(&half).unwrap();
        assert!((linalg::scaled_axis_of_rotation(&matrix).unwrap().norm() - half.norm()).abs() < 1e-12);
        let active = matrix.matrix().map(|x| Dual::new(x, 0.5));
        let error = linalg::scaled_axis_of_rotation(&Rotation3::from_matrix_unchecked(active)).unwrap_err();
        assert_eq!(error.code(), "PAL0126", "{error}");
        let q = Quaternion::new(0.0, axis.x, axis.y, axis.z);
        let active = UnitQuaternion::new_unchecked(Quaternion::from(q.coords.map(|x| Dual::new(x, 0.5))));
        assert_eq!(linalg::scaled_axis_of_quaternion(&active).unwrap_err().code(), "PAL0126");
        // The other way there is nothing special about it.
        let g = grad(
            |v| linalg::rotation_from_scaled_axis(&Vector3::new(v[0], v[1], v[2])).unwrap()[(0, 1)],
            half.as_slice(),
        );
        assert!(g.is_ok());
    }
}

#[test]
fn what_is_no_rotation_is_refused() {
    let stretched = Rotation3::from_matrix_unchecked(nalgebra::Matrix3::identity() * 1.5);
    let mirrored = Rotation3::from_matrix_unchecked(-nalgebra::Matrix3::<f64>::identity());
    for matrix in [stretched, mirrored] {
        assert_eq!(linalg::scaled_axis_of_rotation(&matrix).unwrap_err().code(), "PAL0126");
    }
    let long = UnitQuaternion::new_unchecked(Quaternion::new(2.0, 0.0, 0.0, 0.0));
    assert_eq!(linalg::scaled_axis_of_quaternion(&long).unwrap_err().code(), "PAL0126");
    let bad = Vector3::new(0.0, f64::NAN, 0.0);
    assert_eq!(linalg::rotation_from_scaled_axis(&bad).unwrap_err().code(), "PAL0114");
}

#[test]
fn double_doubles_keep_their_digits() {
    for v in AXES {
        let v = v.map(DoubleDouble::from_f64);
        let left = std::f64::consts::PI - v.iter().map(|x| x.glance().unwrap().powi(2)).sum::<f64>().sqrt();
        for by_matrix in [true, false] {
            for (found, v) in there_and_back(&v, by_matrix).iter().zip(&v) {
                assert!((*found - *v).glance().unwrap().abs() < 1e-28 / left.min(1.0), "{v} {found}");
            }
        }
    }
    // It compiles for recorded numbers of this precision, too.
    let _ = there_and_back::<Var<DoubleDouble>>;
}
