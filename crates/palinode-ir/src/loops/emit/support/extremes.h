/* The first of the best: NaN only if there is nothing else. */
PAL_FUNCTION double pal_best(const double *x, size_t step, size_t count, double sign) {
    double best = x[0];
    for (size_t i = 0; i < count; i++) {
        const double other = x[i * step];
        best = sign * best < sign * other || best != best ? other : best;
    }
    return best;
}

PAL_FUNCTION void pal_best_of_each(
    const double *x, size_t length, size_t inner, double *results, size_t places, double sign) {
    for (size_t at = 0; at < places; at++)
        results[at] = pal_best(x + at / inner * length * inner + at % inner, inner, length, sign);
}

PAL_FUNCTION double pal_largest(const double *x, size_t count) {
    return pal_best(x, 1, count, 1.0);
}

PAL_FUNCTION double pal_smallest(const double *x, size_t count) {
    return pal_best(x, 1, count, -1.0);
}

PAL_FUNCTION void pal_largest_of_each(
    const double *x, size_t elements, size_t length, size_t inner, double *results, size_t places) {
    (void)elements;
    pal_best_of_each(x, length, inner, results, places, 1.0);
}

PAL_FUNCTION void pal_smallest_of_each(
    const double *x, size_t elements, size_t length, size_t inner, double *results, size_t places) {
    (void)elements;
    pal_best_of_each(x, length, inner, results, places, -1.0);
}
