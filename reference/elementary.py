"""Writes the constants of the elementary functions. Needs mpmath; run from anywhere: python3 elementary.py

Input: nothing. Output: crates/palinode-num/src/elementary/constants.rs.

Polynomials are minimax (Remez's exchange algorithm) in high precision, then each coefficient is rounded; the
error that is left, with rounded coefficients and exact arithmetic, is measured on a fine grid and stated beside
the coefficients. Constants that take part in exact steps are split into parts of so many bits that their
products with the integers or the halves of numbers that the code multiplies them with are exact.
"""

import struct
from pathlib import Path

from mpmath import mp, mpf

mp.prec = 240
TARGET = Path(__file__).resolve().parent.parent / "crates" / "palinode-num" / "src" / "elementary" / "constants.rs"
# Beside the interval that arguments are reduced to, for those that rounding carries out of it.
SLACK = 1 + mpf(2) ** -30


def remez(function, low, high, count, power):
    """The `count` coefficients of the polynomial whose largest error, times `z^power`, is smallest."""
    low, high = mpf(low), mpf(high)
    if power > 0:
        # At 0 the weight vanishes.
        low = high / 100000
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * j / count) for j in range(count + 1)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * j / (24 * count)) for j in range(24 * count + 1)]
    values = [function(z) for z in grid]
    for _ in range(30):
        rows = [[z**i for i in range(count)] + [mpf(-1) ** j / z**power] for j, z in enumerate(points)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([function(z) for z in points]))
        coefficients, level = list(solution[:count]), abs(solution[count])
        errors = [(value - horner(coefficients, z)) * z**power for value, z in zip(values, grid)]
        # In each stretch of one sign the largest error is a point of the next round.
        stretches = [[0]]
        for j in range(1, len(grid)):
            if errors[j] * errors[j - 1] > 0:
                stretches[-1].append(j)
            else:
                stretches.append([j])
        peaks = [max(stretch, key=lambda j: abs(errors[j])) for stretch in stretches]
        while len(peaks) > count + 1:
            peaks.remove(min((peaks[0], peaks[-1]), key=lambda j: abs(errors[j])))
        assert len(peaks) == count + 1, (len(peaks), count)
        points = [grid[j] for j in peaks]
        if max(abs(error) for error in errors) < level * mpf("1.01"):
            return coefficients
    raise ArithmeticError("no convergence")


def horner(coefficients, z):
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * z + coefficient
    return total


def polynomial(name, doc, function, low, high, count, power=0):
    """`function` must be accurate wherever it is evaluated; the interval is in the polynomial's own variable.
    `power` says how the error counts: times `z^power`."""
    low, high = mpf(low), mpf(high) * SLACK
    coefficients = [float(c) for c in remez(function, low, high, count, power)]
    steps = 500
    grid = [low + (high - low) * j / steps for j in range(steps + 1)]
    error = max(abs(function(z) - horner([mpf(c) for c in coefficients], z)) * z**power for z in grid)
    times = {0: "", 1: " / z", 2: " / z^2"}[power]
    doc = f"{doc} Error: 2^{mp.nstr(mp.log(error, 2), 3)}{times}."
    lines = comment(doc) + [f"pub(super) const {name}: [f64; {count}] = ["]
    lines += [f"    {literal(c)}," for c in coefficients]
    print(name, doc)
    return "\n".join(lines + ["];"])


def series(ratio, first, z):
    """`sum of a_k z^k` with `a_0 = first` and `a_(k+1) = ratio(k) a_k`."""
    total, term, k = mpf(0), mpf(first), 0
    while abs(term) > mpf(2) ** (-mp.prec - 10):
        total += term
        term *= ratio(k) * z
        k += 1
    return total


def literal(number):
    return repr(float(number))


def comment(text):
    lines, line = [], "///"
    for word in text.split():
        if len(line) + 1 + len(word) > 110:
            lines.append(line)
            line = "///"
        line += " " + word
    return lines + [line]


def truncated(value, bits):
    """The first `bits` bits of a value."""
    mantissa, exponent = mp.frexp(abs(mpf(value)))
    return mp.sign(value) * mp.ldexp(mp.floor(mp.ldexp(mantissa, bits)), exponent - bits)


def parts(value, *bits):
    """The value as a sum: parts of so many bits, then the nearest f64 to what they leave over."""
    rest, found = mpf(value), []
    for size in bits:
        part = truncated(rest, size)
        assert mpf(float(part)) == part
        found.append(float(part))
        rest -= part
    return found + [float(rest)]


def number(name, doc, value):
    return "\n".join(comment(doc) + [f"pub(super) const {name}: f64 = {literal(value)};"])


def table(name, doc, values):
    values = [literal(value) for value in values]
    lines = comment(doc) + [f"pub(super) const {name}: [f64; {len(values)}] = ["]
    lines += ["    " + " ".join(f"{value}," for value in values[i : i + 4]) for i in range(0, len(values), 4)]
    return "\n".join(lines + ["];"])


def split(names, docs, values):
    assert len(names) == len(docs) == len(values)
    return [number(*item) for item in zip(names, docs, values)]


# Exponentials: by 64ths of powers of two; and cosh and sinh of |r| <= ln(2) / 2, z = r^2.
HALF_LN_2_SQUARED = (mp.ln2 / 2) ** 2
ITEMS = [
    number("LOG2_E", "`1 / ln 2`, to find the nearest power of two.", 1 / mp.ln2),
    *split(
        ["LN_2_HIGH", "LN_2_LOW"],
        [
            "`ln 2` to 42 bits: its product with an exponent is exact.",
            "`ln 2 - LN_2_HIGH`.",
        ],
        parts(mp.ln2, 42),
    ),
    number("STEPS_OF_E", "`64 / ln 2`, to find the nearest 64th of a power of two.", 64 / mp.ln2),
    *split(
        ["STEP_HIGH", "STEP_LOW"],
        [
            "`ln(2) / 64` to 36 bits: its product with a number of steps up to 2^17 is exact.",
            "`ln(2) / 64 - STEP_HIGH`.",
        ],
        parts(mp.ln2 / 64, 36),
    ),
    number("LN_2", "`ln 2`.", mp.ln2),
    table("POWERS", "`2^(i / 64)`.", [mpf(2) ** (mpf(i) / 64) for i in range(64)]),
    table(
        "POWERS_REST",
        "What `POWERS` lacks, divided by it.",
        [(mpf(2) ** (mpf(i) / 64)) / mpf(float(mpf(2) ** (mpf(i) / 64))) - 1 for i in range(64)],
    ),
    polynomial(
        "EXP",
        "`(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 128`.",
        lambda r: series(lambda k: mpf(1) / (k + 3), mpf(1) / 2, r),
        -mp.ln2 / 128,
        mp.ln2 / 128,
        4,
    ),
    polynomial(
        "COSH",
        "`(cosh(r) - 1 - z / 2) / z^2` for `|r| <= ln(2) / 2`, in `z = r^2`.",
        lambda z: series(lambda k: mpf(1) / ((2 * k + 5) * (2 * k + 6)), mpf(1) / 24, z),
        0,
        HALF_LN_2_SQUARED,
        5,
        2,
    ),
    polynomial(
        "SINH",
        "`(sinh(r) - r) / (r z)` for `|r| <= ln(2) / 2`, in `z = r^2`.",
        lambda z: series(lambda k: mpf(1) / ((2 * k + 4) * (2 * k + 5)), mpf(1) / 6, z),
        0,
        HALF_LN_2_SQUARED,
        5,
        1,
    ),
]

# Logarithms: of fractions from LEAST_FRACTION to its double, in 64 pieces of as many numbers each. A fraction z
# of a piece is (1 + r) / c with |r| < R, so that ln z = ln(1 + r) - ln c. The factor c has 26 bits, so that z c is
# exact in two products, and of those next to 1 / z the one whose logarithm is nearest to a double, so that its
# error does not count. The piece of 1 has c = 1, and 1 in its middle, so that logarithms of numbers next to 1 have
# small relative errors. Powers use the pieces; logarithms themselves, atanh(s) for s = f / (2 + f) with z = 1 + f.
PIECES = 64
PIECE = 2**46


def bits_of(number):
    return struct.unpack("<Q", struct.pack("<d", number))[0]


def from_bits(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


# Places of numbers below 1 are half as wide: two thirds of its places are below 1.
LEAST_FRACTION = bits_of(1.0) - 37 * PIECE - 2 * PIECE // 3


def factor_of(low, high):
    """The factor of the fractions from low to high, and the logarithm of its inverse."""
    if low <= 1 <= high:
        return mpf(1), mpf(0)
    scale = 2**26 if low > 1 else 2**25
    centre = int(mp.nint(2 * scale / (mpf(low) + mpf(high))))
    # -ln(centre + j) + ln(scale), in units of 2^-PLACES.
    places = 160
    start = int(mp.nint(mp.ldexp(mp.log(mpf(scale) / centre), places)))
    best = None
    for j in range(-(2**15), 2**15):
        x = (j << places) // centre
        logarithm = sum(((-1) ** k * x**k >> (places * (k - 1))) // k for k in range(1, 8)) + start
        # How far from the nearest number of 53 bits.
        unit = 1 << (abs(logarithm).bit_length() - 53)
        distance = abs((logarithm + unit // 2) % unit - unit // 2) / unit
        if best is None or distance < best[0]:
            best = (distance, mpf(centre + j) / scale)
    return best[1], -mp.log(best[1])


def pieces():
    factors, logarithms, largest, error = [], [], mpf(0), mpf(0)
    for i in range(PIECES):
        low, high = (from_bits(LEAST_FRACTION + j * PIECE - k) for j, k in [(i, 0), (i + 1, 1)])
        factor, logarithm = factor_of(low, high)
        factors.append(factor)
        logarithms.append(logarithm)
        largest = max(largest, abs(low * factor - 1), abs(high * factor - 1))
        if logarithm:
            error = max(error, abs(mpf(float(logarithm)) / logarithm - 1))
    return factors, logarithms, largest, mp.nstr(mp.log(error, 2), 3)


FACTORS, LOGARITHMS, R, ERROR = pieces()


def atanh_tail(z, skip):
    """The series of `2 atanh(s) / s` in `z = s^2` without its first terms, divided by `z^skip`."""
    total, k, power = mpf(0), skip, mpf(1)
    while abs(power) > mpf(2) ** (-mp.prec - 10):
        total += 2 * power / (2 * k + 1)
        power *= z
        k += 1
    return total


# Of fractions x, the largest (x - 1) / (x + 1).
LARGEST_S = max(abs(x - 1) / (x + 1) for x in (mpf(from_bits(LEAST_FRACTION)), 2 * mpf(from_bits(LEAST_FRACTION))))


def ln_1p_tail(r):
    return series(lambda k: -mpf(k + 3) / (k + 4), mpf(1) / 3, r)


ITEMS += [
    number("LEAST_FRACTION", "Where fractions begin.", from_bits(LEAST_FRACTION)),
    table("FACTORS", "Of the 64 pieces of fractions, of 26 bits each.", FACTORS),
    table("LN_OF_FACTORS", f"Minus their logarithms. Relative error: 2^{ERROR}.", LOGARITHMS),
    polynomial(
        "LN",
        "`(2 atanh(s) / s - 2) / z` for `s = f / (2 + f)` and fractions `1 + f`, in `z = s^2`.",
        lambda z: atanh_tail(z, 1),
        0,
        LARGEST_S**2,
        7,
        1,
    ),
    polynomial(
        "LN_OF_POWER",
        f"`(ln(1 + r) - r + r^2 / 2) / r^3` for `|r| <= {mp.nstr(R, 3)}`.",
        ln_1p_tail,
        -R * SLACK,
        R,
        7,
    ),
    *split(
        ["LOG2_E_HALF", "LOG2_E_REST"],
        ["`1 / ln 2` to 26 bits.", "`1 / ln 2 - LOG2_E_HALF`."],
        parts(1 / mp.ln2, 26),
    ),
    *split(
        ["LOG10_E_HALF", "LOG10_E_REST"],
        ["`1 / ln 10` to 26 bits.", "`1 / ln 10 - LOG10_E_HALF`."],
        parts(1 / mp.ln10, 26),
    ),
    *split(
        ["LOG10_2_HIGH", "LOG10_2_LOW"],
        ["`ln(2) / ln(10)` to 42 bits.", "`ln(2) / ln(10) - LOG10_2_HIGH`."],
        parts(mp.ln2 / mp.ln10, 42),
    ),
]

# Sine and cosine of |r| <= pi / 4, z = r^2.
QUARTER_PI_SQUARED = (mp.pi / 4) ** 2
ITEMS += [
    number("TWO_OVER_PI", "`2 / pi`, to find the nearest quarter of a turn.", 2 / mp.pi),
    *split(
        ["HALF_PI_1", "HALF_PI_2", "HALF_PI_3", "HALF_PI_4"],
        [
            "`pi / 2` to 34 bits: its product with a number of quarter turns up to 2^19 is exact.",
            "The next 34 bits.",
            "The next 34 bits.",
            "`pi / 2 - HALF_PI_1 - HALF_PI_2 - HALF_PI_3`.",
        ],
        parts(mp.pi / 2, 34, 34, 34),
    ),
    polynomial(
        "SIN",
        "`(sin(r) - r) / (r z)` for `|r| <= pi / 4`, in `z = r^2`.",
        lambda z: series(lambda k: -mpf(1) / ((2 * k + 4) * (2 * k + 5)), -mpf(1) / 6, z),
        0,
        QUARTER_PI_SQUARED,
        6,
        1,
    ),
    polynomial(
        "COS",
        "`(cos(r) - 1 + z / 2) / z^2` for `|r| <= pi / 4`, in `z = r^2`.",
        lambda z: series(lambda k: -mpf(1) / ((2 * k + 5) * (2 * k + 6)), mpf(1) / 24, z),
        0,
        QUARTER_PI_SQUARED,
        6,
        2,
    ),
]

# Digits of 2 / pi for arguments of any size: chunk j holds the bits 24 j + 1 to 24 j + 24 after the point.
# The largest exponent, 1023, needs the first 49 chunks; 64 make every index of 6 bits one of the table.
CHUNK, CHUNKS = 24, 64


def chunks_of_two_over_pi():
    count = CHUNKS
    with mp.workprec(CHUNK * count + 100):
        bits = int(mp.floor(mp.ldexp(2 / +mp.pi, CHUNK * count)))
    found = [(bits >> (CHUNK * (count - 1 - j))) & (2**CHUNK - 1) for j in range(count)]
    return table("TWO_OVER_PI_DIGITS", "The binary digits of `2 / pi` after the point, 24 in each number.", found)


ITEMS += [chunks_of_two_over_pi()]

# Inverse functions of angles.
TAN_EIGHTH = mp.sqrt(2) - 1
ITEMS += [
    *split(
        ["QUARTER_PI_HIGH", "QUARTER_PI_LOW"],
        ["`pi / 4` to 50 bits: four times as much is exact.", "`pi / 4 - QUARTER_PI_HIGH`."],
        parts(mp.pi / 4, 50),
    ),
    *split(
        ["HALF_PI_HALF", "HALF_PI_REST"],
        ["`pi / 2` to 26 bits.", "`pi / 2 - HALF_PI_HALF`."],
        parts(mp.pi / 2, 26),
    ),
    number("TAN_EIGHTH", "The tangent of `pi / 8`.", TAN_EIGHTH),
    number("TAN_THREE_EIGHTHS", "The tangent of `3 pi / 8`.", 1 / TAN_EIGHTH),
    polynomial(
        "ATAN",
        "`(atan(t) - t) / (t z)` for `|t| <= tan(pi / 8)`, in `z = t^2`.",
        lambda z: series(lambda k: -mpf(2 * k + 3) / (2 * k + 5), -mpf(1) / 3, z),
        0,
        TAN_EIGHTH**2,
        12,
        1,
    ),
    polynomial(
        "ASIN",
        "`(asin(w) - w) / (w z)` for `|w| <= 1/2`, in `z = w^2`.",
        lambda z: series(
            lambda k: mpf((2 * k + 3) ** 2) / ((2 * k + 4) * (2 * k + 5)), mpf(1) / 6, z
        ),
        0,
        mpf(1) / 4,
        13,
        1,
    ),
]

# The error function.
ERFC_MIDDLE = mpf("3.75")
ERFC_BEGIN, ERFC_END = mpf(3) / 4, mpf(28)


def erfcx(t):
    x = ERFC_MIDDLE * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erf_over_x(z):
    return series(lambda k: -mpf(2 * k + 1) / ((k + 1) * (2 * k + 3)), 2 / mp.sqrt(mp.pi), z)


ERFC_CENTRE = mpf("1.203125")
ITEMS += [
    polynomial(
        "ERF",
        "`erf(x) / x - 1` for `|x| <= 3/4`, in `z = x^2`.",
        lambda z: erf_over_x(z) - 1,
        0,
        ERFC_BEGIN**2,
        12,
    ),
    number("ERFC_MIDDLE", "What `t = (x - ERFC_MIDDLE) / (x + ERFC_MIDDLE)` centres.", ERFC_MIDDLE),
    number("ERFC_CENTRE", "About the mean of `(1 + 2x) e^(x^2) erfc(x)`, in few bits.", ERFC_CENTRE),
    polynomial(
        "ERFC",
        "`(1 + 2x) e^(x^2) erfc(x) - ERFC_CENTRE` for `3/4 <= x <= 28`, in `t`.",
        lambda t: erfcx(t) - ERFC_CENTRE,
        (ERFC_BEGIN - ERFC_MIDDLE) / (ERFC_BEGIN + ERFC_MIDDLE),
        (ERFC_END - ERFC_MIDDLE) / (ERFC_END + ERFC_MIDDLE),
        22,
    ),
]

# Cube roots.
ITEMS += [
    polynomial(
        "INVERSE_CBRT",
        "`m^(-1/3)` of fractions, a first guess.",
        lambda m: m ** (-mpf(1) / 3),
        from_bits(LEAST_FRACTION),
        2 * from_bits(LEAST_FRACTION),
        5,
    ),
    number("CBRT_2", "The cube root of 2.", mp.root(2, 3)),
    number("INVERSE_CBRT_2", "`2^(-1/3)`.", mp.root(mpf(1) / 2, 3)),
]

HEADER = """//! Constants and polynomials of the elementary functions.
//!
//! Written by `reference/elementary.py`: change that file, not this one."""

TARGET.parent.mkdir(parents=True, exist_ok=True)
TARGET.write_text("\n\n".join([HEADER] + ITEMS) + "\n")
print(TARGET)
