/* A matrix: entry (i, j) is data[i * down + j * along]. */
typedef struct {
    const double *data;
    size_t rows, columns, down, along;
} pal_matrix_view;

PAL_FUNCTION pal_matrix_view pal_matrix(const double *data, size_t rows, size_t columns, size_t down, size_t along) {
    const pal_matrix_view matrix = {data, rows, columns, down, along};
    return matrix;
}
