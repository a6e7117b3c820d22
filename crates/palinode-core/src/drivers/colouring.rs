//! Colourings: which columns of a sparse matrix one sweep can compute together.
//!
//! Input: a sparsity pattern. Output: a colour per column (or per row and column, for symmetric matrices)
//! such that every entry can be read off the compressed products.
//!
//! Follows Gebremedhin, Manne and Pothen, *What color is your Jacobian?* (SIAM Review 2005): partial
//! distance-2 colouring for Jacobians, star colouring for Hessians; greedy, vertices of large degree first.

/// A colour for each column or vertex, and their number.
pub(super) struct Colouring {
    pub(super) colour: Vec<usize>,
    pub(super) count: usize,
}

const UNCOLOURED: usize = usize::MAX;

/// The other way round: for each column the rows that it has an entry in.
pub(super) fn transposed(rows: &[Vec<usize>], columns: usize) -> Vec<Vec<usize>> {
    let mut by_column = vec![Vec::new(); columns];
    for (row, entries) in rows.iter().enumerate() {
        for &column in entries {
            by_column[column].push(row);
        }
    }
    by_column
}

/// Colours columns so that two columns with an entry in a common row differ.
pub(super) fn columns(rows: &[Vec<usize>], columns: &[Vec<usize>]) -> Colouring {
    greedy(columns, |column, colour, forbid| {
        for &row in &columns[column] {
            for &other in &rows[row] {
                forbid(colour[other]);
            }
        }
    })
}

/// Colours the vertices of a symmetric pattern so that neighbours differ and no path of four vertices has
/// only two colours; then each entry of the matrix is alone in one of the two compressed places where it
/// appears.
pub(super) fn star(neighbours: &[Vec<usize>]) -> Colouring {
    greedy(neighbours, |v, colour, forbid| {
        for &w in neighbours[v].iter().filter(|&&w| w != v) {
            forbid(colour[w]);
            for &x in neighbours[w].iter().filter(|&&x| x != v && x != w && colour[x] != UNCOLOURED) {
                let closes_a_path =
                    || neighbours[x].iter().any(|&y| y != w && y != x && colour[y] == colour[w]);
                if colour[w] == UNCOLOURED || closes_a_path() {
                    forbid(colour[x]);
                }
            }
        }
    })
}

/// Gives each vertex, those of large degree first, the smallest colour that `forbidden` does not rule out.
fn greedy(degree_of: &[Vec<usize>], forbidden: impl Fn(usize, &[usize], &mut dyn FnMut(usize))) -> Colouring {
    let n = degree_of.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&v| core::cmp::Reverse(degree_of[v].len()));
    let mut colour = vec![UNCOLOURED; n];
    // ruled_out[c] == v: colour c is not for v.
    let mut ruled_out = vec![UNCOLOURED; n + 1];
    let mut count = 0;
    for v in order {
        forbidden(v, &colour, &mut |c| {
            if c != UNCOLOURED {
                ruled_out[c] = v;
            }
        });
        let smallest = (0..n).find(|&c| ruled_out[c] != v).unwrap_or(0);
        colour[v] = smallest;
        count = count.max(smallest + 1);
    }
    Colouring { colour, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(n: usize) -> Vec<Vec<usize>> {
        (0..n).map(|i| (i.saturating_sub(1)..(i + 2).min(n)).collect()).collect()
    }

    /// Vertex 0 is joined to all others.
    fn arrow(n: usize) -> Vec<Vec<usize>> {
        (0..n).map(|i| if i == 0 { (0..n).collect() } else { vec![0, i] }).collect()
    }

    #[test]
    fn a_tridiagonal_matrix_needs_three_colours_however_large() {
        for n in [4, 10, 1000] {
            let pattern = path(n);
            assert_eq!(columns(&pattern, &transposed(&pattern, n)).count, 3);
            assert_eq!(star(&pattern).count, 3);
        }
    }

    #[test]
    fn an_arrow_needs_two_colours_if_symmetry_is_used() {
        let pattern = arrow(100);
        assert_eq!(columns(&pattern, &transposed(&pattern, 100)).count, 100);
        assert_eq!(star(&pattern).count, 2);
    }

    #[test]
    fn star_colourings_are_star_colourings() {
        // A grid: many short cycles.
        let n = 6;
        let at = |i: usize, j: usize| i * n + j;
        let mut grid = vec![Vec::new(); n * n];
        for i in 0..n {
            for j in 0..n {
                let mut near = vec![at(i, j)];
                near.extend((i > 0).then(|| at(i - 1, j)));
                near.extend((i + 1 < n).then(|| at(i + 1, j)));
                near.extend((j > 0).then(|| at(i, j - 1)));
                near.extend((j + 1 < n).then(|| at(i, j + 1)));
                grid[at(i, j)] = near;
            }
        }
        let Colouring { colour, .. } = star(&grid);
        for a in 0..n * n {
            for &b in grid[a].iter().filter(|&&b| b != a) {
                assert_ne!(colour[a], colour[b]);
                for &c in grid[b].iter().filter(|&&c| c != a && c != b) {
                    for &d in grid[c].iter().filter(|&&d| d != a && d != b && d != c) {
                        let two_coloured = colour[a] == colour[c] && colour[b] == colour[d];
                        assert!(!two_coloured, "path {a} {b} {c} {d}");
                    }
                }
            }
        }
    }
}
