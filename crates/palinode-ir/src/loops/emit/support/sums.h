#define PAL_BLOCK 1024
#define PAL_LANES 16

/* As many terms as the largest power of two of blocks below all of them has. */
PAL_FUNCTION size_t pal_first_blocks(size_t count) {
    size_t first = PAL_BLOCK;
    while (2 * first < count) first *= 2;
    return first;
}

/* The sum of lanes, by halving. */
PAL_FUNCTION double pal_combined(double *lanes) {
    for (size_t half = PAL_LANES / 2; half > 0; half /= 2)
        for (size_t lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

/* The sum of terms, in blocks of 1024 with 16 lanes each; of products if there are second factors. */
PAL_FUNCTION double pal_tree(const double *x, size_t step, const double *y, bool strong, size_t count) {
    if (count > PAL_BLOCK) {
        const size_t first = pal_first_blocks(count);
        const double sum = pal_tree(x, step, y, strong, first);
        return sum + pal_tree(x + first * step, step, y ? y + first : y, strong, count - first);
    }
    double lanes[PAL_LANES];
    /* Negative zeros change no sum. */
    for (size_t lane = 0; lane < PAL_LANES; lane++) lanes[lane] = -0.0;
    for (size_t from = 0; from < count; from += PAL_LANES) {
        const size_t present = count - from < PAL_LANES ? count - from : PAL_LANES;
        for (size_t lane = 0; lane < present; lane++) {
            const double a = x[(from + lane) * step];
            lanes[lane] += !y ? a : strong ? pal_strong_mul(a, y[from + lane]) : a * y[from + lane];
        }
    }
    return pal_combined(lanes);
}

PAL_FUNCTION double pal_sum(const double *x, size_t count) {
    return count == 0 ? 0.0 : pal_tree(x, 1, NULL, false, count);
}

/* The sums of `length` lines of `inner` numbers each, place by place, in every group of lines. */
PAL_FUNCTION void pal_sums(const double *x, size_t elements, size_t length, size_t inner, double *sums, size_t places) {
    (void)elements;
    for (size_t at = 0; at < places; at++)
        sums[at] = length == 0 ? 0.0 : pal_tree(x + at / inner * length * inner + at % inner, inner, NULL, false, length);
}

PAL_FUNCTION void pal_dots_by(pal_matrix_view a, const double *x, size_t length, double *results, size_t places, bool strong) {
    for (size_t row = 0; row < places; row++)
        results[row] = length == 0 ? 0.0 : pal_tree(a.data + row * a.down, a.along, x, strong, length);
}

/* The dot product of every row of a matrix and a vector. */
PAL_FUNCTION void pal_dots(pal_matrix_view a, const double *x, size_t length, double *results, size_t places) {
    pal_dots_by(a, x, length, results, places, false);
}

PAL_FUNCTION void pal_strong_dots(pal_matrix_view a, const double *x, size_t length, double *results, size_t places) {
    pal_dots_by(a, x, length, results, places, true);
}

PAL_FUNCTION double pal_dot(pal_matrix_view a, const double *x, size_t length) {
    double result = 0.0;
    pal_dots(a, x, length, &result, 1);
    return result;
}

PAL_FUNCTION double pal_strong_dot(pal_matrix_view a, const double *x, size_t length) {
    double result = 0.0;
    pal_strong_dots(a, x, length, &result, 1);
    return result;
}
