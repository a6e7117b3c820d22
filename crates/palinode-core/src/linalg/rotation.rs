//! Rotations of space from and to scaled axes: a vector along the axis, as long as the angle.
//!
//! Input: vectors, rotation matrices, unit quaternions of nalgebra. Output: the same of the same number. The
//! formulas are smooth where the functions are, so there is no rule: derivatives of every order are those of
//! the formulas. With `s = |v|^2`, the matrix is `I + c_1(s) K + c_2(s) K^2` and the quaternion
//! `(c_0(s / 4), c_1(s / 4) v / 2)`, where `K x = v x x` and `c_k(s) = sum_j (-s)^j / (2j + k)!` (Stumpff's
//! functions: `cos`, `sin(x) / x`, `(1 - cos x) / x^2` of the root). Near zero they are summed; a library
//! that asks whether the angle is zero and then answers with a constant loses the derivative there. Back:
//! `v = 2 atan2(|u|, w) u / |u|` of a quaternion `(w, u)` of any length with `w >= 0`, near zero by the
//! series of the arc tangent; a matrix gives a quaternion from its largest entry (Shepperd 1978), which keeps
//! all digits up to half a turn.
//!
//! A half turn has two scaled axes and no derivative: an error for active numbers. Known limit: by single
//! entries of a matrix that may leave the rotations, the derivatives back are those of the formula that was
//! taken; along rotations all agree.

use super::dense::value_of;
use super::kernel::Kernel;
use super::{LinearAlgebra, check};
use crate::error::Error;
use nalgebra::{Matrix3, Quaternion, Rotation3, UnitQuaternion, Vector3};
use palinode_num::Scalar;

/// The rotation about `v` by the angle `|v|`, as a matrix.
///
/// ```
/// use nalgebra::Vector3;
/// use palinode_core::{grad, linalg};
///
/// // At no rotation at all: d R_10 / d v = (0, 0, 1).
/// let g = grad(|v| {
///     linalg::rotation_from_scaled_axis(&Vector3::new(v[0], v[1], v[2])).unwrap()[(1, 0)]
/// }, &[0.0; 3])?;
/// assert_eq!(g, [0.0, 0.0, 1.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn rotation_from_scaled_axis<T: LinearAlgebra>(v: &Vector3<T>) -> Result<Rotation3<T>, Error> {
    check::finite("rotation_from_scaled_axis' vector", v)?;
    let [x, y, z] = [v[0], v[1], v[2]];
    let s = square_of(v);
    let (along, twice) = (stumpff(1, s), stumpff(2, s));
    let one = <T as Scalar>::one();
    // K^2 = v v^T - s I.
    let diagonal = |x: T| one + twice * (x * x - s);
    let (xy, yz, zx) = (twice * x * y, twice * y * z, twice * z * x);
    let (x, y, z, dx, dy, dz) = (along * x, along * y, along * z, diagonal(x), diagonal(y), diagonal(z));
    let columns = [[dx, xy + z, zx - y], [xy - z, dy, yz + x], [zx + y, yz - x, dz]];
    Ok(Rotation3::from_matrix_unchecked(Matrix3::from(columns)))
}

/// The rotation about `v` by the angle `|v|`, as a quaternion.
pub fn quaternion_from_scaled_axis<T: LinearAlgebra>(v: &Vector3<T>) -> Result<UnitQuaternion<T>, Error> {
    check::finite("quaternion_from_scaled_axis' vector", v)?;
    let half = <T as Scalar>::half();
    let s = square_of(v) * half * half;
    let along = stumpff(1, s) * half;
    let quaternion = Quaternion::new(stumpff(0, s), along * v[0], along * v[1], along * v[2]);
    Ok(UnitQuaternion::new_unchecked(quaternion))
}

/// The scaled axis of a rotation matrix; its length, the angle, is at most half a turn.
///
/// An error if the matrix is no rotation as far as can be expected of its digits, or if it is a half turn and
/// active: there are two axes then, and no derivative.
///
/// ```
/// use nalgebra::Vector3;
/// use palinode_core::linalg;
///
/// let v = Vector3::new(0.1, -2.0, 0.3);
/// let back = linalg::scaled_axis_of_rotation(&linalg::rotation_from_scaled_axis(&v)?)?;
/// assert!((back - v).amax() < 1e-15);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn scaled_axis_of_rotation<T: LinearAlgebra>(rotation: &Rotation3<T>) -> Result<Vector3<T>, Error> {
    let r = rotation.matrix();
    check::finite("scaled_axis_of_rotation's matrix", r)?;
    refuse_no_rotation(r)?;
    let one = <T as Scalar>::one();
    // Four times a component squared on one place, four times products with it on the others: a quaternion of
    // some length.
    let trace = r[(0, 0)] + r[(1, 1)] + r[(2, 2)];
    let sizes = [trace, r[(0, 0)], r[(1, 1)], r[(2, 2)]].map(value_of);
    let difference = |i: usize, j: usize| r[(i, j)] - r[(j, i)];
    let sum = |i: usize, j: usize| r[(i, j)] + r[(j, i)];
    let square = |i: usize| one + r[(i, i)] + r[(i, i)] - trace;
    let largest = (1..4).fold(0, |best, k| if sizes[k] > sizes[best] { k } else { best });
    let (w, u) = match largest {
        0 => (one + trace, [difference(2, 1), difference(0, 2), difference(1, 0)]),
        1 => (difference(2, 1), [square(0), sum(0, 1), sum(0, 2)]),
        2 => (difference(0, 2), [sum(0, 1), square(1), sum(1, 2)]),
        _ => (difference(1, 0), [sum(0, 2), sum(1, 2), square(2)]),
    };
    scaled_axis_of(w, Vector3::from(u))
}

/// The scaled axis of a unit quaternion; its length, the angle, is at most half a turn. A quaternion and its
/// negative are the same rotation.
///
/// An error if it is a half turn and active: there are two axes then, and no derivative.
pub fn scaled_axis_of_quaternion<T: LinearAlgebra>(
    rotation: &UnitQuaternion<T>,
) -> Result<Vector3<T>, Error> {
    let parts = &rotation.as_ref().coords;
    check::finite("scaled_axis_of_quaternion's quaternion", parts)?;
    let square: f64 = parts.iter().map(|&x| value_of(x).powi(2)).sum();
    if (square - 1.0).abs() > loose::<T>() {
        return Err(Error::NotARotation { what: "the square of the quaternion's length", value: square });
    }
    scaled_axis_of(parts[3], Vector3::new(parts[0], parts[1], parts[2]))
}

/// The scaled axis of a quaternion of any length.
fn scaled_axis_of<T: LinearAlgebra>(w: T, u: Vector3<T>) -> Result<Vector3<T>, Error> {
    let (w, u) = if value_of(w) < 0.0 { (-w, -u) } else { (w, u) };
    let square = square_of(&u);
    let length = value_of(square).sqrt();
    let active = !(w.carries_nothing() && u.iter().all(|x| x.carries_nothing()));
    if active && value_of(w) <= 8.0 * T::epsilon() * length {
        return Err(Error::HalfTurn { cosine: value_of(w) / length.hypot(value_of(w)) });
    }
    let two = <T as Scalar>::from_int(2);
    let factor = if length <= 0.125 * value_of(w) {
        two * arc_tangent_over(square / (w * w)) / w
    } else {
        let length = square.sqrt();
        two * length.atan2(w) / length
    };
    Ok(u.map(|x| x * factor))
}

/// `c_k(s)` for `k` up to 2.
fn stumpff<T: LinearAlgebra>(k: i32, s: T) -> T {
    let one = <T as Scalar>::one();
    if value_of(s) > 1.0 {
        let angle = s.sqrt();
        return match k {
            0 => angle.cos(),
            1 => angle.sin() / angle,
            _ => (one - angle.cos()) / s,
        };
    }
    let terms = if T::epsilon() > 1e-17 { 12 } else { 22 };
    let sum = (1..=terms)
        .rev()
        .fold(one, |rest, j| one - s * rest / <T as Scalar>::from_int((k + 2 * j - 1) * (k + 2 * j)));
    if k == 2 { sum * <T as Scalar>::half() } else { sum }
}

/// `atan(x) / x` of a small `t = x^2`.
fn arc_tangent_over<T: LinearAlgebra>(t: T) -> T {
    let terms = if T::epsilon() > 1e-17 { 14 } else { 26 };
    let int = <T as Scalar>::from_int;
    (0..terms).rev().fold(<T as Scalar>::zero(), |rest, j| int(2 * j + 1).recip() - t * rest)
}

fn square_of<T: LinearAlgebra>(v: &Vector3<T>) -> T {
    <T as Scalar>::dot(v.as_slice(), v.as_slice())
}

/// How far from a rotation a product of many may have gone.
fn loose<T: Kernel>() -> f64 {
    16.0 * T::epsilon().sqrt()
}

fn refuse_no_rotation<T: LinearAlgebra>(r: &Matrix3<T>) -> Result<(), Error> {
    let plain = r.map(value_of);
    let off = (plain.transpose() * plain - Matrix3::identity()).amax();
    if off > loose::<T>() {
        return Err(Error::NotARotation { what: "the largest entry of R'R - I", value: off });
    }
    match plain.determinant() {
        determinant if determinant < 0.0 => {
            Err(Error::NotARotation { what: "the determinant", value: determinant })
        }
        _ => Ok(()),
    }
}
