"""linalg.tsv: dense operations with first and second derivatives in directions, by mpmath.

A line: operation, rows, columns, the matrix A, two directions E and F, then f(A), d f(A + t E) / dt and d2 f(A + t E + s F) / dt ds at 0; entries row by row, separated by spaces.
The exponential and the square root are differentiated by functions of block matrices, everything else by differences at 120 digits.
"""
from mpmath import mp, mpf, matrix, eye, expm, sqrtm, inverse, det, eig, cos, sin, sqrt, zeros, svd_r

mp.dps = 120
STEP = mpf(10) ** -25


def noise(seed, m, n):
    """Entries between -1 and 1 with few digits, so that an f64 holds them."""
    out = matrix(m, n)
    for i in range(m):
        for j in range(n):
            seed = (seed * 1103515245 + 12345) % 2**31
            out[i, j] = mpf(seed // 2**11 % 1024 - 512) / 512
    return out


def by_blocks(f, a, e, g):
    """f(A), L(A, E) and L2(A, E, G) as blocks of f of a matrix four times as large."""
    n = a.rows
    big = zeros(4 * n, 4 * n)
    for k in range(4):
        big[k * n:(k + 1) * n, k * n:(k + 1) * n] = a
    big[0:n, n:2 * n] = e
    big[2 * n:3 * n, 3 * n:4 * n] = e
    big[0:n, 2 * n:3 * n] = g
    big[n:2 * n, 3 * n:4 * n] = g
    value = f(big)
    return value[0:n, 0:n], value[0:n, n:2 * n], value[0:n, 3 * n:4 * n]


def by_differences(f, a, e, g):
    # Fourth order in the step, so about 1e-100 off for what is smooth.
    w = {1: mpf(2) / 3, -1: -mpf(2) / 3, 2: -mpf(1) / 12, -2: mpf(1) / 12}
    first = [sum(w[k] * y for k, y in zip(w, ys)) / STEP for ys in zip(*(f(a + e * (k * STEP)) for k in w))]
    grid = [(k, l) for k in w for l in w]
    second = [sum(w[k] * w[l] * y for (k, l), y in zip(grid, ys)) / STEP**2
              for ys in zip(*(f(a + e * (k * STEP) + g * (l * STEP)) for k, l in grid))]
    return f(a), first, second


def flat(m):
    return [m[i, j] for i in range(m.rows) for j in range(m.cols)]


def eigenvalues(a):
    values, _ = eig(a)
    values = [(w.real, w.imag if abs(w.imag) > mpf(10) ** -40 else mpf(0)) for w in map(mp.mpmathify, values)]
    # Ascending real parts; equal ones by the size of the imaginary part, the positive one first.
    rounded = lambda x: mp.nint(x * mpf(10) ** 15)
    values.sort(key=lambda w: (rounded(w[0]), rounded(abs(w[1])), -w[1]))
    return [w[0] for w in values] + [w[1] for w in values]


def polar(a):
    p = sqrtm(a.T * a)
    return flat(a * inverse(p)) + flat(p)


def pseudo_inverse(a):
    if a.rows >= a.cols:
        return flat(inverse(a.T * a) * a.T)
    return flat(a.T * inverse(a * a.T))


def determinant(a):
    """By expansion: right for singular matrices too."""
    def expand(rows, cols):
        if not rows:
            return mpf(1)
        return sum((-1) ** k * a[rows[0], c] * expand(rows[1:], cols[:k] + cols[k + 1:]) for k, c in enumerate(cols))
    return [expand(list(range(a.rows)), list(range(a.cols)))]


def rotation(v):
    """Rodrigues's formula, by the exponential of the cross product."""
    k = matrix([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return flat(expm(k))


def quaternion(v):
    """w, i, j, k."""
    angle = sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    ratio = mpf(1) / 2 if angle == 0 else sin(angle / 2) / angle
    return [cos(angle / 2), ratio * v[0], ratio * v[1], ratio * v[2]]


def diagonal(*entries):
    out = zeros(len(entries), len(entries))
    for i, x in enumerate(entries):
        out[i, i] = mpf(x)
    return out


def square_points(count):
    """Random matrices and structured ones."""
    for seed in range(count):
        n = 1 + seed % 4
        yield noise(seed + 1, n, n) + eye(n) / 2
    yield zeros(3, 3)
    yield eye(3)
    yield diagonal(1, 2, 4)
    yield diagonal(2, 2, 1)
    yield matrix([[1, 1, 0], [0, 1, 1], [0, 0, 1]])          # defective
    yield matrix([[1, 2, 3], [0, 4, 5], [0, 0, 6]])          # triangular
    yield matrix([[1, 0, 0], [2, 4, 0], [3, 5, 6]])
    yield matrix([[1, 1, 1], [1, 1, 1], [1, 1, 1]])          # equal entries, rank 1
    yield matrix([[0, 1, 0], [0, 0, 1], [0, 0, 0]])          # nilpotent
    yield matrix([[0, -1, 0], [1, 0, 0], [0, 0, 2]])         # a rotation
    yield matrix([[1, 2], [2, 4]])                           # singular
    yield matrix([[0, 1], [1, 0]])
    yield zeros(1, 1)
    yield matrix([[0, -3, 0, 0], [3, 0, 0, 0], [0, 0, 0, -1], [0, 0, 1, 0]])  # skew-symmetric
    yield diagonal(1, 0, 0, 0)
    yield diagonal(3, -2, 0, 5)
    yield matrix([[3, 0], [0, 1]])
    yield matrix([[1, mpf(2) ** -30], [0, 1]])               # nearly defective


def smallest_gap(a):
    values, _ = eig(a)
    return min([abs(x - y) for i, x in enumerate(values) for y in values[:i]] + [mpf(1)])


def has_root(a):
    values, _ = eig(a)
    return all(abs(w) > mpf(10) ** -6 and (mp.re(w) > 0 or abs(mp.im(w)) > mpf(1) / 10) for w in values)


def smallest_singular(a):
    return min(svd_r(a, compute_uv=False))


def cases():
    for k, a in enumerate(square_points(12)):
        n = a.rows
        e, g = noise(100 + k, n, n), noise(200 + k, n, n)
        yield "exponential", a, e, g, tuple(map(flat, by_blocks(expm, a, e, g)))
        yield "determinant", a, e, g, by_differences(determinant, a, e, g)
        if smallest_gap(a) > mpf(1) / 50:
            yield "eigenvalues", a, e, g, by_differences(eigenvalues, a, e, g)
        if has_root(a):
            yield "square_root", a, e, g, tuple(map(flat, by_blocks(sqrtm, a, e, g)))
        if smallest_singular(a) > mpf(1) / 50:
            yield "polar", a, e, g, by_differences(polar, a, e, g)
            yield "pseudo_inverse", a, e, g, by_differences(pseudo_inverse, a, e, g)
    for seed, (m, n) in enumerate([(3, 2), (4, 2), (2, 3), (3, 1), (4, 3)]):
        a, e, g = noise(300 + seed, m, n), noise(400 + seed, m, n), noise(500 + seed, m, n)
        yield "pseudo_inverse", a, e, g, by_differences(pseudo_inverse, a, e, g)
        if m >= n:
            yield "polar", a, e, g, by_differences(polar, a, e, g)
    tall = matrix([[1, 0], [0, 1], [0, 0]])
    yield "polar", tall, noise(600, 3, 2), noise(601, 3, 2), by_differences(polar, tall, noise(600, 3, 2), noise(601, 3, 2))
    tiny, near = mpf(2) ** -40, mpf("3.140625")
    for k, v in enumerate([(0, 0, 0), (tiny, 0, 0), (tiny, -tiny, tiny), (mpf(1) / 8, 0, mpf(1) / 16), (1, 0, 0), (0, mpf(3) / 4, mpf(3) / 4),
                           (mpf(1) / 2, -2, mpf(1) / 4), (0, near, 0), (near, 0, 0), (0, 0, near), (1, 2, -mpf("2.125")), (3, -4, 5)]):
        v, e, g = matrix(v), noise(700 + k, 3, 1), noise(800 + k, 3, 1)
        yield "rotation", v, e, g, by_differences(rotation, v, e, g)
        yield "quaternion", v, e, g, by_differences(quaternion, v, e, g)


if __name__ == "__main__":
    text = lambda entries: " ".join(mp.nstr(x, 36) for x in entries)
    with open("linalg.tsv", "w") as out:
        for name, a, e, g, (value, first, second) in cases():
            fields = [name, str(a.rows), str(a.cols), text(flat(a)), text(flat(e)), text(flat(g)), text(value), text(first), text(second)]
            out.write("\t".join(fields) + "\n")
