/// Rows and columns of a product that are computed together, and rows of the second factor that are copied at
/// a time.
const ROWS: usize = 4;
const COLUMNS: usize = 16;
const DEPTH: usize = 128;

/// `c = a b`: every entry is a chain of fused multiplications and additions.
pub(crate) fn product(c: &mut [f64], a: Matrix, b: Matrix) {
    c.fill(0.0);
    add_product(c, a, b);
}

/// `c += a b`: the chains continue what is in `c`.
pub(crate) fn add_product(c: &mut [f64], a: Matrix, b: Matrix) {
    let (inner, columns) = (a.columns, b.columns);
    let mut copies = [[0.0; COLUMNS]; DEPTH];
    let mut entries = [[0.0; ROWS]; DEPTH];
    for from in (0..inner).step_by(DEPTH) {
        let depth = DEPTH.min(inner - from);
        for left in (0..columns).step_by(COLUMNS) {
            let width = COLUMNS.min(columns - left);
            for (k, copy) in copies[..depth].iter_mut().enumerate() {
                if b.steps[1] == 1 {
                    copy[..width].copy_from_slice(&b.data[(from + k) * b.steps[0] + left..][..width]);
                } else {
                    for (j, copy) in copy[..width].iter_mut().enumerate() {
                        *copy = b.at(from + k, left + j);
                    }
                }
            }
            for top in (0..a.rows).step_by(ROWS) {
                let height = ROWS.min(a.rows - top);
                let mut tile = [[0.0; COLUMNS]; ROWS];
                for (i, row) in tile[..height].iter_mut().enumerate() {
                    row[..width].copy_from_slice(&c[(top + i) * columns + left..][..width]);
                }
                for i in 0..height {
                    let start = (top + i) * a.steps[0] + from * a.steps[1];
                    for (k, entries) in entries[..depth].iter_mut().enumerate() {
                        entries[i] = a.data[start + k * a.steps[1]];
                    }
                }
                chains(&mut tile, &entries[..depth], &copies[..depth]);
                for (i, row) in tile[..height].iter().enumerate() {
                    c[(top + i) * columns + left..][..width].copy_from_slice(&row[..width]);
                }
            }
        }
    }
}

/// Continues the chains of a tile. Each row is an array of its own, so that it stays in registers.
#[inline(never)]
fn chains(tile: &mut [[f64; COLUMNS]; ROWS], a: &[[f64; ROWS]], b: &[[f64; COLUMNS]]) {
    let [mut r0, mut r1, mut r2, mut r3] = *tile;
    for (a, b) in a.iter().zip(b) {
        for j in 0..COLUMNS {
            r0[j] = mul_add(a[0], b[j], r0[j]);
        }
        for j in 0..COLUMNS {
            r1[j] = mul_add(a[1], b[j], r1[j]);
        }
        for j in 0..COLUMNS {
            r2[j] = mul_add(a[2], b[j], r2[j]);
        }
        for j in 0..COLUMNS {
            r3[j] = mul_add(a[3], b[j], r3[j]);
        }
    }
    *tile = [r0, r1, r2, r3];
}

/// The same as `product`, but a zero wins over infinity and NaN.
pub(crate) fn strong_product(c: &mut [f64], a: Matrix, b: Matrix) {
    c.fill(0.0);
    add_strong_product(c, a, b);
}

/// The same as `add_product`, but a zero wins over infinity and NaN.
pub(crate) fn add_strong_product(c: &mut [f64], a: Matrix, b: Matrix) {
    if all_finite(a.data).is_ok() && all_finite(b.data).is_ok() {
        return add_product(c, a, b);
    }
    for (at, c) in c.iter_mut().enumerate() {
        let (row, column) = (at / b.columns, at % b.columns);
        for k in 0..a.columns {
            let (x, y) = (a.at(row, k), b.at(k, column));
            let zero_wins = x == 0.0 && !y.is_finite() || y == 0.0 && !x.is_finite();
            if !zero_wins {
                *c = mul_add(x, y, *c);
            }
        }
    }
}
