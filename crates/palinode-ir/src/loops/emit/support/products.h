/* c += a b: every entry is a chain of fused multiplications and additions, which continues what is in c. */
PAL_FUNCTION void pal_add_product(double *c, size_t entries, pal_matrix_view a, pal_matrix_view b) {
    (void)entries;
    for (size_t i = 0; i < a.rows; i++)
        for (size_t k = 0; k < a.columns; k++) {
            const double factor = a.data[i * a.down + k * a.along];
            double *const row = c + i * b.columns;
            const double *const other = b.data + k * b.down;
            for (size_t j = 0; j < b.columns; j++) row[j] = fma(factor, other[j * b.along], row[j]);
        }
}

PAL_FUNCTION void pal_product(double *c, size_t entries, pal_matrix_view a, pal_matrix_view b) {
    for (size_t i = 0; i < entries; i++) c[i] = 0.0;
    pal_add_product(c, entries, a, b);
}

/* The same, but a zero wins over infinity and NaN. */
PAL_FUNCTION void pal_add_strong_product(double *c, size_t entries, pal_matrix_view a, pal_matrix_view b) {
    for (size_t at = 0; at < entries; at++)
        for (size_t k = 0; k < a.columns; k++) {
            const double x = a.data[at / b.columns * a.down + k * a.along];
            const double y = b.data[k * b.down + at % b.columns * b.along];
            const bool zero_wins = (x == 0.0 && !isfinite(y)) || (y == 0.0 && !isfinite(x));
            if (!zero_wins) c[at] = fma(x, y, c[at]);
        }
}

PAL_FUNCTION void pal_strong_product(double *c, size_t entries, pal_matrix_view a, pal_matrix_view b) {
    for (size_t i = 0; i < entries; i++) c[i] = 0.0;
    pal_add_strong_product(c, entries, a, b);
}
