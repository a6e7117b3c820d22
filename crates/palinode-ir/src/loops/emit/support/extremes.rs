/// The first of the best: NaN only if there is nothing else.
#[inline(always)]
fn best(x: &[f64], is_better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = x[0];
    for &x in x {
        best = if is_better(x, best) | best.is_nan() { x } else { best };
    }
    best
}

/// The same for `length` lines of `inner` numbers each, place by place.
#[inline(always)]
fn best_of_each(
    x: &[f64],
    length: usize,
    inner: usize,
    results: &mut [f64],
    is_better: impl Fn(f64, f64) -> bool + Copy,
) {
    if inner == 0 {
        return;
    }
    for (x, results) in x.chunks_exact(length * inner).zip(results.chunks_exact_mut(inner)) {
        if let [result] = results {
            *result = best(x, is_better);
            continue;
        }
        let (first, rest) = x.split_at(inner);
        results.copy_from_slice(first);
        for line in rest.chunks_exact(inner) {
            for (best, &x) in results.iter_mut().zip(line) {
                *best = if is_better(x, *best) | best.is_nan() { x } else { *best };
            }
        }
    }
}

/// The largest number.
pub(crate) fn largest(x: &[f64]) -> f64 {
    best(x, |x, best| best < x)
}

/// The smallest number.
pub(crate) fn smallest(x: &[f64]) -> f64 {
    best(x, |x, best| x < best)
}

/// The largest of each group of lines, place by place.
pub(crate) fn largest_of_each(x: &[f64], length: usize, inner: usize, results: &mut [f64]) {
    best_of_each(x, length, inner, results, |x, best| best < x);
}

/// The smallest of each group of lines, place by place.
pub(crate) fn smallest_of_each(x: &[f64], length: usize, inner: usize, results: &mut [f64]) {
    best_of_each(x, length, inner, results, |x, best| x < best);
}
