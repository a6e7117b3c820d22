//! GMRES: a linear system that is known by its products only.
//!
//! Input: products with `A`, a right side, a tolerance. Output: a vector and how far its true residual is
//! from zero, never more than was asked for unless the products ran out or led nowhere, which it tells apart;
//! the caller decides whether that is an answer. Follows Saad and Schultz (1986), with Gram-Schmidt twice and
//! restarts.

use palinode_core::dense::{dot, norm};

/// How the solution was reached.
pub(super) struct Reached {
    pub(super) x: Vec<f64>,
    /// `|A x - b| / |b|`, computed from `x` itself.
    pub(super) residual: f64,
    pub(super) products: usize,
    /// The directions that products lead to were all taken, and a residual is left: the matrix is singular,
    /// or as good as.
    pub(super) is_exhausted: bool,
}

/// Solves until the relative residual is at most `tolerance`, with at most so many products and so many
/// directions at a time.
pub(super) fn gmres<E>(
    mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    b: &[f64],
    tolerance: f64,
    directions: usize,
    most_products: usize,
) -> Result<Reached, E> {
    let size = norm(b);
    let mut reached = Reached { x: vec![0.0; b.len()], residual: 0.0, products: 0, is_exhausted: false };
    if size == 0.0 {
        return Ok(reached);
    }
    let mut rest = b.to_vec();
    reached.residual = 1.0;
    while reached.residual > tolerance && reached.products < most_products {
        let most = directions.min(b.len()).min(most_products - reached.products);
        let before = reached.residual;
        let (step, is_exhausted) = cycle(&mut product, &rest, tolerance * size, most, &mut reached.products)?;
        reached.is_exhausted = is_exhausted;
        let x: Vec<f64> = reached.x.iter().zip(&step).map(|(x, step)| x + step).collect();
        let image = product(&x)?;
        reached.products += 1;
        rest = b.iter().zip(&image).map(|(b, image)| b - image).collect();
        let residual = norm(&rest) / size;
        if residual.is_nan() || residual >= before {
            break; // nothing gained: the last one stands
        }
        (reached.x, reached.residual) = (x, residual);
        if residual > 0.99 * before {
            break;
        }
    }
    reached.is_exhausted &= reached.residual > tolerance;
    Ok(reached)
}

/// The best step within the Krylov space of `b`, and whether that space ended: it holds the solution, if
/// there is one.
fn cycle<E>(
    product: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    b: &[f64],
    enough: f64,
    most: usize,
    products: &mut usize,
) -> Result<(Vec<f64>, bool), E> {
    let length = norm(b);
    let mut ends = false;
    let mut basis = vec![b.iter().map(|b| b / length).collect::<Vec<f64>>()];
    let mut upper: Vec<Vec<f64>> = Vec::new(); // columns of R
    let mut rotations: Vec<(f64, f64)> = Vec::new();
    let mut right = vec![length]; // Q^T (|b| e1)
    for k in 0..most {
        let mut next = product(&basis[k])?;
        *products += 1;
        let image = norm(&next);
        let mut column = vec![0.0; k + 2];
        for _ in 0..2 {
            for (direction, coefficient) in basis.iter().zip(&mut column) {
                let part = dot(direction, &next);
                *coefficient += part;
                next.iter_mut().zip(direction).for_each(|(next, direction)| *next -= part * direction);
            }
        }
        let left = norm(&next);
        let is_last = left <= f64::EPSILON * image;
        column[k + 1] = if is_last { 0.0 } else { left };
        for (row, &(c, s)) in rotations.iter().enumerate() {
            (column[row], column[row + 1]) =
                (c * column[row] + s * column[row + 1], c * column[row + 1] - s * column[row]);
        }
        let radius = column[k].hypot(column[k + 1]);
        if radius <= f64::EPSILON * image || !radius.is_finite() {
            ends = true;
            break; // A maps this direction to nothing new: it cannot help
        }
        let (c, s) = (column[k] / radius, column[k + 1] / radius);
        column[k] = radius;
        column.truncate(k + 1);
        rotations.push((c, s));
        upper.push(column);
        right.push(-s * right[k]);
        right[k] *= c;
        ends = is_last || k + 1 == b.len();
        if ends || right[k + 1].abs() <= enough {
            break;
        }
        basis.push(next.iter().map(|next| next / left).collect());
    }
    let count = upper.len();
    for k in (0..count).rev() {
        right[k] /= upper[k][k];
        let coefficient = right[k];
        (0..k).for_each(|row| right[row] -= coefficient * upper[k][row]);
    }
    let mut step = vec![0.0; b.len()];
    for (direction, coefficient) in basis.iter().zip(&right[..count]) {
        step.iter_mut().zip(direction).for_each(|(step, direction)| *step += coefficient * direction);
    }
    Ok((step, ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn times(matrix: &[f64], x: &[f64]) -> Result<Vec<f64>, Infallible> {
        Ok(matrix.chunks(x.len()).map(|row| dot(row, x)).collect())
    }

    proptest! {
        #[test]
        fn the_residual_is_what_it_says(entries in prop::collection::vec(-1.0..1.0f64, 64), b in prop::collection::vec(-1.0..1.0f64, 8), directions in 2..9usize) {
            let mut matrix = entries;
            (0..8).for_each(|k| matrix[9 * k] += 5.0);
            let Ok(reached) = gmres(|x| times(&matrix, x), &b, 1e-12, directions, 500);
            prop_assert!(reached.residual <= 1e-12, "{}", reached.residual);
            let Ok(image) = times(&matrix, &reached.x);
            let rest: Vec<f64> = image.iter().zip(&b).map(|(a, b)| a - b).collect();
            prop_assert!(norm(&rest) <= 1.1e-12 * norm(&b));
        }
    }

    #[test]
    fn a_contradiction_leaves_a_residual() {
        let matrix = [1.0, 0.0, 0.0, 0.0];
        let Ok(reached) = gmres(|x| times(&matrix, x), &[1.0, 1.0], 1e-12, 2, 100);
        assert!((reached.residual - 0.5f64.sqrt()).abs() < 1e-12, "{}", reached.residual);
        assert!(reached.is_exhausted);
        let Ok(reached) = gmres(|_| Ok::<_, Infallible>(vec![0.0; 2]), &[1.0, 1.0], 1e-12, 2, 100);
        assert_eq!((reached.residual, reached.x, reached.is_exhausted), (1.0, vec![0.0; 2], true));
    }

    #[test]
    fn a_shift_needs_every_direction() {
        // The residual does not fall before the last direction: restarts would never see it.
        let shift = |x: &[f64]| Ok::<_, Infallible>((0..6).map(|k| x[(k + 5) % 6]).collect());
        let b = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let Ok(whole) = gmres(shift, &b, 1e-12, 6, 100);
        assert!(whole.residual < 1e-12 && !whole.is_exhausted);
        let Ok(restarted) = gmres(shift, &b, 1e-12, 3, 100);
        assert_eq!((restarted.residual, restarted.is_exhausted), (1.0, false)); // it has not seen that the matrix is regular
    }
}
