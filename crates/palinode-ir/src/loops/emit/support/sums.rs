/// The elements of a block of a sum, and its lanes.
const BLOCK: usize = 1024;
const LANES: usize = 16;

/// The sum of blocks by a pairwise tree; `block` gives that of so many elements from a place on.
fn tree(from: usize, count: usize, block: &mut dyn FnMut(usize, usize) -> f64) -> f64 {
    if count <= BLOCK {
        return block(from, count);
    }
    let first = BLOCK * (count.div_ceil(BLOCK).next_power_of_two() / 2);
    tree(from, first, block) + tree(from + first, count - first, block)
}

/// The sum of lanes, by halving.
#[inline(always)]
fn combined(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The sum of the terms of a block, lane by lane. (Negative zeros change no sum.)
#[inline(always)]
fn block(x: &[f64], y: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [-0.0; LANES];
    let ((x_rows, x), (y_rows, y)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x_rows.iter().zip(y_rows) {
        for lane in 0..LANES {
            lanes[lane] += term(x[lane], y[lane]);
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
        *lane += term(x, y);
    }
    combined(lanes)
}

/// The sum of the terms of corresponding elements.
fn reduced(x: &[f64], y: &[f64], term: impl Fn(f64, f64) -> f64 + Copy) -> f64 {
    if x.is_empty() {
        return 0.0;
    }
    if x.len() <= BLOCK {
        return block(x, y, term);
    }
    tree(0, x.len(), &mut |from, count| block(&x[from..][..count], &y[from..][..count], term))
}

/// The sum, in blocks of 1024 elements with 16 lanes each.
pub(crate) fn sum(x: &[f64]) -> f64 {
    reduced(x, x, |x, _| x)
}

/// The sums of `length` lines of `inner` numbers each, place by place; of as many groups of lines as there
/// are sums for.
pub(crate) fn sums(x: &[f64], length: usize, inner: usize, sums: &mut [f64]) {
    if length == 0 || inner == 0 {
        return sums.fill(0.0);
    }
    for (x, sums) in x.chunks_exact(length * inner).zip(sums.chunks_exact_mut(inner)) {
        if let [total] = sums {
            *total = sum(x);
            continue;
        }
        sums_of_lines(x, length, inner, sums, |x, _| x);
    }
}

/// The sums of `count` lines, place by place; line `k` begins at `k * step`, and a term is made of an element
/// and the number of its line.
#[inline(always)]
fn sums_of_lines(
    x: &[f64],
    count: usize,
    step: usize,
    sums: &mut [f64],
    term: impl Fn(f64, usize) -> f64 + Copy,
) {
    let (tiles, rest) = sums.as_chunks_mut::<16>();
    for (number, tile) in tiles.iter_mut().enumerate() {
        *tile = tile_of_lines(&x[16 * number..], 0, count, step, term);
    }
    let done = 16 * tiles.len();
    let (tiles, rest) = rest.as_chunks_mut::<4>();
    for (number, tile) in tiles.iter_mut().enumerate() {
        *tile = tile_of_lines(&x[done + 4 * number..], 0, count, step, term);
    }
    let done = done + 4 * tiles.len();
    for (number, sum) in rest.iter_mut().enumerate() {
        [*sum] = tile_of_lines(&x[done + number..], 0, count, step, term);
    }
}

/// The same at some places.
fn tile_of_lines<const WIDTH: usize>(
    x: &[f64],
    from: usize,
    count: usize,
    step: usize,
    term: impl Fn(f64, usize) -> f64 + Copy,
) -> [f64; WIDTH] {
    if count > BLOCK {
        let first = BLOCK * (count.div_ceil(BLOCK).next_power_of_two() / 2);
        let a: [f64; WIDTH] = tile_of_lines(x, from, first, step, term);
        let b: [f64; WIDTH] = tile_of_lines(x, from + first, count - first, step, term);
        return core::array::from_fn(|place| a[place] + b[place]);
    }
    let mut lanes = [[-0.0; WIDTH]; LANES];
    let end = from + count;
    for start in (from..end).step_by(LANES) {
        for (lane, line) in lanes.iter_mut().zip(start..end) {
            let terms: &[f64; WIDTH] = part(x, line * step);
            for place in 0..WIDTH {
                lane[place] += term(terms[place], line);
            }
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            for place in 0..WIDTH {
                lanes[lane][place] += lanes[lane + half][place];
            }
        }
        half /= 2;
    }
    lanes[0]
}

/// The dot products of the rows of a matrix and a vector.
#[inline(always)]
fn dots_by(a: Matrix, x: &[f64], results: &mut [f64], term: impl Fn(f64, f64) -> f64 + Copy) {
    if x.is_empty() {
        return results.fill(0.0);
    }
    if a.steps[1] != 1 {
        // Rows that lie as columns do: many sums side by side, or one after the other.
        let width = if a.steps[0] == 1 { results.len() } else { 1 };
        for (number, results) in results.chunks_mut(width).enumerate() {
            let data = &a.data[number * width * a.steps[0]..];
            sums_of_lines(data, x.len(), a.steps[1], results, |a, line| term(a, x[line]));
        }
        return;
    }
    for (row, result) in results.iter_mut().enumerate() {
        *result = reduced(&a.data[row * a.steps[0]..][..x.len()], x, term);
    }
}

/// The dot product of every row of a matrix and a vector.
pub(crate) fn dots(a: Matrix, x: &[f64], results: &mut [f64]) {
    dots_by(a, x, results, |a, x| a * x);
}

/// The same with strong products.
pub(crate) fn strong_dots(a: Matrix, x: &[f64], results: &mut [f64]) {
    dots_by(a, x, results, strong_mul);
}

/// The dot product of the only row of a matrix and a vector.
pub(crate) fn dot(a: Matrix, x: &[f64]) -> f64 {
    let mut result = [0.0];
    dots(a, x, &mut result);
    result[0]
}

/// The same with strong products.
pub(crate) fn strong_dot(a: Matrix, x: &[f64]) -> f64 {
    let mut result = [0.0];
    strong_dots(a, x, &mut result);
    result[0]
}
