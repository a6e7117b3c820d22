"""Writes double_double.tsv: values of functions at arguments that need more than 53 bits.

Needs mpmath; run from anywhere: python3 double_double.py

Input: functions.py and the points below. Output: op, param, the parts of x and y as hexadecimal floats ('-' if
absent), and the value to 40 digits. The points sit where a low part matters: next to zeros, poles and edges,
at large angles, and spread at random (with a fixed seed) over each function's domain.
"""

import random
from pathlib import Path

from mpmath import mp, mpf

from functions import EXACT, SMOOTH

mp.prec = 4000
RANDOM_POINTS = 8


def pair(value):
    """The nearest double-double."""
    hi = float(value)
    return hi, float(mpf(value) - mpf(hi))


def spread(generator, low, high):
    """A random number with all 106 bits in use."""
    return pair(mpf(generator.uniform(low, high)) * (1 + mpf(generator.uniform(-1, 1)) / 2**54))


def next_to(center):
    return [(center, sign * distance) for distance in (3e-17, 1e-30, 1e-60, 1e-200) for sign in (1, -1)]


def below_one():
    return [p for p in next_to(1.0) if p[1] < 0] + [p for p in next_to(-1.0) if p[1] > 0]


QUARTER_TURNS = [pair(k * mp.pi / 2) for k in (1, 2, 3, 4, 7, 1000, 12345, 10**15, -5)]
LARGE_ANGLES = [pair(mpf(10) ** k / 3) for k in (3, 5, 22, 100, 307)]

# op: (lowest, highest random argument, special arguments)
UNARY = {
    "sqrt": (0, 1e6, next_to(1.0)),
    "cbrt": (-1e6, 1e6, next_to(-1.0)),
    "exp": (-700, 700, next_to(1.0) + [(1e-20, 3e-37)]),
    "exp2": (-1000, 1000, next_to(3.0)),
    "exp_m1": (-50, 50, [(1e-20, 3e-37), (-1e-300, 0.0)]),
    "ln": (0, 100, next_to(1.0) + [pair(mpf(10) ** 250 / 7)]),
    "ln_1p": (-1, 3, [p for p in next_to(-1.0) if p[1] > 0] + [(1e-20, 3e-37)]),
    "log2": (0, 100, next_to(1.0)),
    "log10": (0, 100, next_to(1.0)),
    "sin": (-100, 100, QUARTER_TURNS + LARGE_ANGLES),
    "cos": (-100, 100, QUARTER_TURNS + LARGE_ANGLES),
    "tan": (-100, 100, QUARTER_TURNS + LARGE_ANGLES),
    "asin": (-1, 1, below_one()),
    "acos": (-1, 1, below_one()),
    "atan": (-10, 10, next_to(1.0) + LARGE_ANGLES),
    "sinh": (-700, 700, [(1e-20, 3e-37)]),
    "cosh": (-700, 700, [(1e-20, 3e-37)]),
    "tanh": (-20, 20, [(1e-20, 3e-37)]),
    "asinh": (-20, 20, [(1e-20, 3e-37)] + LARGE_ANGLES),
    "acosh": (1, 20, [p for p in next_to(1.0) if p[1] > 0] + LARGE_ANGLES),
    "atanh": (-1, 1, below_one()),
    "erf": (-6.5, 6.5, next_to(1.0) + [(1e-20, 3e-37)]),
    "erfc": (-6, 26, next_to(6.0)),
    "lgamma": (-20, 20, next_to(1.0) + next_to(2.0) + next_to(-3.0) + [pair(mpf(10) ** 100 / 3)]),
}
BINARY = {
    "powf": [((1.0, 1e-30), (1e30, 0.0)), ((10.0, 1e-17), (300.0, 1e-15)), ((-2.0, 1e-20), (-301.0, 0.0))],
    "rem": [((1.0, 1e-300), (1.0, 0.0)), ((1.0, -1e-30), (1.0, 0.0)), ((1e22, 0.5), (3.0, 1e-17)), ((-7.0, 1e-20), (7.0, 0.0))],
    "hypot": [((3.0, 1e-17), (4.0, -1e-17)), ((1e300, 1e283), (1e300, 1e280))],
    "atan2": [((1.0, 1e-17), (-1.0, 1e-30)), ((1e-300, 0.0), (-1e300, 1e280)), ((-1.0, 1e-20), (1e-30, 0.0))],
    "add": [((1.0, 1e-20), (-1.0, 1e-30)), ((1e30, 1e10), (-1e30, 3.5))],
    "mul": [((1.0, 1e-20), (1.0, -1e-20)), ((1e-200, 1e-217), (1e-95, 1e-112)), ((1e160, 1e143), (1e148, 1e131))],
    "div": [((1.0, 1e-20), (1.0, -1e-20)), ((1e-200, 1e-217), (1e100, 1e83)), ((1e300, 1e283), (1e-8, 1e-25))],
}


def row(op, parameter, arguments):
    at = [mpf(hi) + mpf(lo) for hi, lo in arguments]
    if op in EXACT:
        value = EXACT[op](*at).value
    else:
        value = SMOOTH[op](*at) if parameter is None else SMOOTH[op](*at, parameter)
    parts = [part.hex() for argument in arguments for part in argument] + ["-"] * (4 - 2 * len(arguments))
    return "\t".join([op, "-" if parameter is None else str(parameter), *parts, mp.nstr(value, 40)])


def main():
    generator = random.Random(20)
    rows = ["op\tparam\tx_hi\tx_lo\ty_hi\ty_lo\tvalue"]
    for op, (low, high, special) in UNARY.items():
        for argument in [spread(generator, low, high) for _ in range(RANDOM_POINTS)] + special:
            rows.append(row(op, None, [argument]))
    for op, special in BINARY.items():
        for _ in range(RANDOM_POINTS):
            lowest = 0 if op == "powf" else -50
            rows.append(row(op, None, [spread(generator, lowest, 50), spread(generator, -50, 50)]))
        rows += [row(op, None, list(arguments)) for arguments in special]
    for n in (-1000, -3, 2, 3, 7, 500, 2**20):
        rows.append(row("powi", n, [spread(generator, 0.99, 1.01)]))
        rows.append(row("powi", n, [(1.0, 1e-40)]))
    for order in (0, 1, 2, 5, 19, 20, 25):
        for low, high in [(0.1, 5), (5, 100), (-10, 0)]:
            for _ in range(3):
                rows.append(row("polygamma", order, [spread(generator, low, high)]))
    path = Path(__file__).resolve().parent / "double_double.tsv"
    path.write_text("\n".join(rows) + "\n")
    print(f"{path}: {len(rows) - 1} rows")


if __name__ == "__main__":
    main()
