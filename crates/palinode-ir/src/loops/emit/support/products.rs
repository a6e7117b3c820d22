/// Rows and columns of a product that are computed together, and rows of the second factor that are copied at
/// a time.
const ROWS: usize = if cfg!(target_feature = "avx512f") { 8 } else { 4 };
const COLUMNS: usize = if cfg!(target_feature = "avx512f") { 24 } else { 8 };
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
                if height == ROWS && a.steps[1] == 1 {
                    let rows: [&[f64]; ROWS] =
                        core::array::from_fn(|i| &a.data[(top + i) * a.steps[0] + from..][..depth]);
                    chains(&mut tile, |k| rows.map(|row| row[k]), &copies[..depth]);
                } else if height == ROWS && a.steps[0] == 1 {
                    let entries = |k| *part(a.data, (from + k) * a.steps[1] + top);
                    chains(&mut tile, entries, &copies[..depth]);
                } else {
                    let entry = |i, k| if i < height { a.at(top + i, from + k) } else { 0.0 };
                    let entries = |k| core::array::from_fn(|i| entry(i, k));
                    chains(&mut tile, entries, &copies[..depth]);
                }
                for (i, row) in tile[..height].iter().enumerate() {
                    c[(top + i) * columns + left..][..width].copy_from_slice(&row[..width]);
                }
            }
        }
    }
}

/// The same as `product` where there are few columns: so many.
pub(crate) fn narrow_product<const FEW: usize>(c: &mut [f64], a: Matrix, b: Matrix) {
    c.fill(0.0);
    add_narrow_product::<FEW>(c, a, b);
}

/// The same as `add_product` where there are few columns: rows of `c` are tiles where they are, and so are
/// those of `b` if they lie together.
pub(crate) fn add_narrow_product<const FEW: usize>(c: &mut [f64], a: Matrix, b: Matrix) {
    let c = c.as_chunks_mut::<FEW>().0;
    let mut copies = [[0.0; FEW]; DEPTH];
    for from in (0..a.columns).step_by(DEPTH) {
        let depth = DEPTH.min(a.columns - from);
        let b = if b.steps == [FEW, 1] {
            &b.data.as_chunks().0[from..][..depth]
        } else {
            for (k, copy) in copies[..depth].iter_mut().enumerate() {
                *copy = core::array::from_fn(|j| b.at(from + k, j));
            }
            &copies[..depth]
        };
        for (number, rows) in c.chunks_mut(ROWS).enumerate() {
            let (top, height) = (number * ROWS, rows.len());
            // Missing rows repeat the last one, and are not kept.
            let row = |i: usize| top + i.min(height - 1);
            let mut rest = [[0.0; FEW]; ROWS];
            let tile = match rows.first_chunk_mut::<ROWS>() {
                Some(tile) => tile,
                None => {
                    rest[..height].copy_from_slice(rows);
                    &mut rest
                }
            };
            if a.steps[1] == 1 {
                let lines: [&[f64]; ROWS] =
                    core::array::from_fn(|i| &a.data[row(i) * a.steps[0] + from..][..depth]);
                chains(tile, |k| lines.map(|line| line[k]), b);
            } else if a.steps[0] == 1 && height == ROWS {
                chains(tile, |k| *part(a.data, (from + k) * a.steps[1] + top), b);
            } else {
                chains(tile, |k| core::array::from_fn(|i| a.at(row(i), from + k)), b);
            }
            if height < ROWS {
                rows.copy_from_slice(&rest[..height]);
            }
        }
    }
}

/// Continues the chains of a tile. Each row is an array of its own, so that it stays in registers.
#[inline(never)]
fn chains<const WIDTH: usize>(
    tile: &mut [[f64; WIDTH]; ROWS],
    entries: impl Fn(usize) -> [f64; ROWS],
    b: &[[f64; WIDTH]],
) {
    macro_rules! rows {
        ($($number:literal $row:ident),*) => {
            let [$(mut $row),*] = *tile;
            for (k, b) in b.iter().enumerate() {
                let a = entries(k);
                $(for j in 0..WIDTH {
                    $row[j] = mul_add(a[$number], b[j], $row[j]);
                })*
            }
            *tile = [$($row),*];
        };
    }
    #[cfg(target_feature = "avx512f")]
    rows!(0 r0, 1 r1, 2 r2, 3 r3, 4 r4, 5 r5, 6 r6, 7 r7);
    #[cfg(not(target_feature = "avx512f"))]
    rows!(0 r0, 1 r1, 2 r2, 3 r3);
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
