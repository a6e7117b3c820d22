"""Writes posits.tsv: the functions of posits, correctly rounded, from mpmath.

Needs mpmath; run from anywhere: python3 posits.py [op ...]   (with ops: print those rows, write nothing)

Posits are decoded by the formula of the Posit Standard (2022), section 3.3, and rounded by comparison with the borders
between them: the posits of one bit more. Neither is how the Rust code does it.

Rows (tab separated, one header line): op, width, x, y, result. Encodings are hexadecimal.
- width 8: x and y are `-`, result is all 256 results, from the encoding 00 on.
- width 16: x and y are `-`, result is the FNV-1a hash (64 bits) of all 65536 results, two bytes each, low byte first.
- width 32 and 64: one random argument (or two) and the result.
- functions of two arguments: width 8 has the hash of all 65536 results, one byte each, for the encoding of x and then of y from 00 on;
  width 16 that of 2^15 results for pairs of encodings from splitmix64 (PAIRS), two bytes each; y is `all`.
- polygamma: y is the order, in decimal. Width 8 as above; width 16 is the hash of the results for every 8th encoding, from 0000 on.
"""

import random
import sys
from bisect import bisect_left
from fractions import Fraction
from math import isqrt
from pathlib import Path

from mpmath import mp, mpf

from functions import SMOOTH

DIGITS = 70
PAIRS = 1 << 15


def value(bits, width):
    """The standard's formula, as a fraction; None for NaR."""
    if bits == 0:
        return Fraction(0)
    if bits == 1 << (width - 1):
        return None
    text = format(bits, f"0{width}b")
    s, body = int(text[0]), text[1:]
    run = len(body) - len(body.lstrip(body[0]))
    r = run - 1 if body[0] == "1" else -run
    rest = body[run + 1 :]
    e = int(rest[:2].ljust(2, "0"), 2)
    f = Fraction(int(rest[2:], 2), 1 << len(rest[2:])) if rest[2:] else Fraction(0)
    power = (1 - 2 * s) * (4 * r + e + s)
    return ((1 - 3 * s) + f) * Fraction(2) ** power


def fraction(x):
    """An mpf as a fraction."""
    man, exp = x.man_exp
    return Fraction(int(man)) * Fraction(2) ** exp


def rounded(x, width, borders=None):
    """The encoding of the posit nearest to an mpf (None is NaR)."""
    if x is None:
        return 1 << (width - 1)
    if x == 0:
        return 0
    size = abs(x)
    largest = (1 << (width - 1)) - 1
    if borders is not None:
        # How many borders are below tells between which of them it lies.
        index = bisect_left(borders, size)
        code = index + 1
        if index < len(borders) and borders[index] == size and code % 2 == 1:
            code += 1
    else:
        size = fraction(size)
        low, high = 1, largest
        while low < high:
            middle = (low + high) // 2
            border = value(2 * middle + 1, width + 1)
            if size < border or size == border and middle % 2 == 0:
                high = middle
            else:
                low = middle + 1
        code = low
    return code if x > 0 else (1 << width) - code


def as_mpf(v):
    return mpf(v.numerator) / mpf(v.denominator)


ANY = lambda x: True
DOMAIN = {
    "cbrt": ANY,
    "exp": ANY,
    "exp2": ANY,
    "exp_m1": ANY,
    "ln": lambda x: x > 0,
    "ln_1p": lambda x: x > -1,
    "log2": lambda x: x > 0,
    "log10": lambda x: x > 0,
    "sin": ANY,
    "cos": ANY,
    "tan": ANY,
    "asin": lambda x: abs(x) <= 1,
    "acos": lambda x: abs(x) <= 1,
    "atan": ANY,
    "sinh": ANY,
    "cosh": ANY,
    "tanh": ANY,
    "asinh": ANY,
    "acosh": lambda x: x >= 1,
    "atanh": lambda x: abs(x) < 1,
    "erf": ANY,
    "erfc": ANY,
    "lgamma": lambda x: x > 0 or x != mp.floor(x),
    "logistic": ANY,
    "softplus": ANY,
    "sqrt": lambda x: x >= 0,
}
OF_TWO = ["hypot", "atan2", "powf"]
ORDERS = [0, 1, 2, 5]


def exactly(op, *x):
    """The function in many digits; exact where the result may lie on a border."""
    v = x[0]
    if op == "exp2" and v == mp.floor(v):
        return mp.ldexp(1, int(v)) if abs(v) < 2000 else (mpf(10) ** 400 if v > 0 else mpf(10) ** -400)
    # Beyond these sizes every result is an end of the range or a limit, and evaluating it takes forever.
    if op in ("exp", "exp2", "exp_m1", "sinh", "cosh", "logistic", "softplus", "erfc", "tanh", "erf") and abs(v) > 4000:
        huge, tiny = mpf(10) ** 400, mpf(10) ** -400
        grown, gone = {
            "exp": (huge, tiny),
            "exp2": (huge, tiny),
            "exp_m1": (huge, -1 + tiny),
            "sinh": (huge, -huge),
            "cosh": (huge, huge),
            "logistic": (1 - tiny, tiny),
            "softplus": (v, tiny),
            "erfc": (tiny, 2 - tiny),
            "tanh": (1 - tiny, -1 + tiny),
            "erf": (1 - tiny, -1 + tiny),
        }[op]
        return grown if v > 0 else gone
    if op == "softplus" and v < -150:
        # ln(1 + e^v) is e^v but for 65 digits.
        return mp.exp(v)
    # Small arguments cancel against 1: as many digits more.
    size = max((0.302 * abs(mp.mag(t)) for t in x if t != 0), default=0)
    if op == "softplus" and v < 0:
        # So does e^v.
        size = max(size, -v)
    with mp.workdps(DIGITS + 2 * int(size)):
        return SMOOTH[op](*x)


def all_results(op, width):
    borders = [as_mpf(value(2 * code + 1, width + 1)) for code in range(1, (1 << (width - 1)) - 1)]
    for bits in range(1 << width):
        v = value(bits, width)
        x = None if v is None else as_mpf(v)
        inside = x is not None and DOMAIN[op](x)
        yield rounded(exactly(op, x) if inside else None, width, borders)


def rational_root(v):
    """The square root of a fraction that is not negative, if it is rational."""
    n, d = isqrt(v.numerator), isqrt(v.denominator)
    return Fraction(n, d) if n * n == v.numerator and d * d == v.denominator else None


def exact_power(x, y):
    """x^y as a fraction where it is rational and may lie on a border; x > 0, y is a dyadic fraction."""
    root, denominator = x, y.denominator
    while denominator > 1 and root is not None:
        root, denominator = rational_root(root), denominator // 2
    return None if root is None else root**y.numerator


def of_two(op, x, y):
    """A function of two fractions, None being NaR: a fraction if it is rational, else an mpf."""
    if x is None or y is None:
        return None
    if op == "hypot":
        root = rational_root(x * x + y * y)
        return root if root is not None else exactly(op, as_mpf(x), as_mpf(y))
    if op == "atan2":
        return Fraction(0) if x == 0 and y >= 0 else exactly(op, as_mpf(x), as_mpf(y))
    if y == 0:
        return Fraction(1)
    if x == 0:
        return Fraction(0) if y > 0 else None
    if x < 0 and y.denominator != 1:
        return None
    sign = -1 if x < 0 and y.numerator % 2 == 1 else 1
    size = abs(x)
    if size == 1:
        return Fraction(sign)
    # Beyond these sizes every result is an end of the range.
    growth = as_mpf(y) * mp.log(as_mpf(size), 2)
    if abs(growth) > 2000:
        return sign * (mpf(2) ** 2000 if growth > 0 else mpf(2) ** -2000)
    power = exact_power(size, y)
    return sign * (power if power is not None else exactly(op, as_mpf(size), as_mpf(y)))


def rounded_any(v, width, borders):
    """`rounded`, also of fractions."""
    if not isinstance(v, Fraction):
        return rounded(v, width, borders)
    # A fraction of few bits is a float exactly; one of many is not on a border.
    man = v.numerator.bit_length() + v.denominator.bit_length()
    with mp.workprec(max(mp.prec, man + 64)):
        return rounded(as_mpf(v), width, borders)


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) % (1 << 64)
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
        z = (z ^ z >> 27) * 0x94D049BB133111EB % (1 << 64)
        yield z ^ z >> 31


def pairs(width):
    if width == 8:
        yield from ((x, y) for x in range(256) for y in range(256))
        return
    source = splitmix(16)
    for _ in range(PAIRS):
        word = next(source)
        yield word & 0xFFFF, word >> 16 & 0xFFFF


def hash_of_pairs(op, width):
    borders = [as_mpf(value(2 * code + 1, width + 1)) for code in range(1, (1 << (width - 1)) - 1)]
    values = [value(bits, width) for bits in range(1 << width)]
    results = (rounded_any(of_two(op, values[x], values[y]), width, borders) for x, y in pairs(width))
    return fnv(b"".join(code.to_bytes(width // 8, "little") for code in results))


def fnv(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % (1 << 64)
    return state


def random_bits(source, width):
    """Encodings of every length of regime."""
    bits = source.getrandbits(width)
    shift = source.randrange(0, width - 2) if source.random() < 0.3 else 0
    sign = bits >> (width - 1)
    signed = (bits - (sign << width)) >> shift
    return signed % (1 << width)


def random_rows(op, width, count):
    source = random.Random(f"{op} {width}")
    done = 0
    while done < count:
        codes = [random_bits(source, width) for _ in range(2 if op in OF_TWO else 1)]
        values = [value(code, width) for code in codes]
        if any(v is None or v == 0 for v in values):
            continue
        x = [as_mpf(v) for v in values]
        if op == "powf":
            x[0], codes[0] = abs(x[0]), codes[0] if x[0] > 0 else (1 << width) - codes[0]
            if abs(x[1] * mp.log(x[0])) > 600:
                continue
        elif op in DOMAIN and not DOMAIN[op](x[0]):
            continue
        done += 1
        y = f"{codes[1]:x}" if op in OF_TWO else "-"
        yield f"{op}\t{width}\t{codes[0]:x}\t{y}\t{rounded(exactly(op, *x), width):x}"


def polygamma(order, x):
    """None at poles. From the definition where mpmath's own function is slow or gives up: next to a pole, and far out."""
    if x <= 0 and x == mp.floor(x):
        return None
    with mp.workdps(DIGITS + 20 + 2 * int(abs(mp.log(abs(x), 10)))):
        # The recurrence takes the pole away before the function is asked.
        if abs(x) < mpf(2) ** -30:
            pole = (-1) ** (order + 1) * mp.factorial(order) / x ** (order + 1)
            return pole + mp.psi(order, 1 + x)
        return mp.psi(order, x)


def polygamma_rows():
    for order in ORDERS:
        for width, step in ((8, 1), (16, 8)):
            results = []
            for bits in range(0, 1 << width, step):
                v = value(bits, width)
                x = None if v is None else polygamma(order, as_mpf(v))
                results.append(rounded(x, width).to_bytes(width // 8, "little"))
            data = b"".join(results)
            yield f"polygamma\t{width}\t-\t{order}\t{data.hex() if width == 8 else format(fnv(data), '016x')}"
        for width in (32, 64):
            source, done = random.Random(f"polygamma {order} {width}"), 0
            while done < 60:
                bits = random_bits(source, width)
                v = value(bits, width)
                # Far below zero a posit is a whole number, or lies between two poles where results take as many digits as the argument.
                if v is None or v == 0 or v < -1000 or polygamma(order, as_mpf(v)) is None:
                    continue
                done += 1
                yield f"polygamma\t{width}\t{bits:x}\t{order}\t{rounded(polygamma(order, as_mpf(v)), width):x}"


def rows(op):
    if op == "polygamma":
        yield from polygamma_rows()
        return
    if op in DOMAIN:
        eight = bytes(all_results(op, 8))
        yield f"{op}\t8\t-\t-\t{eight.hex()}"
        sixteen = b"".join(code.to_bytes(2, "little") for code in all_results(op, 16))
        yield f"{op}\t16\t-\t-\t{fnv(sixteen):016x}"
    else:
        for width in (8, 16):
            yield f"{op}\t{width}\t-\tall\t{hash_of_pairs(op, width):016x}"
    for width in (32, 64):
        yield from random_rows(op, width, 40)


def main(asked):
    mp.dps = DIGITS
    lines = ["op\twidth\tx\ty\tresult"]
    for op in asked or [*DOMAIN, *OF_TWO, "polygamma"]:
        for line in rows(op):
            lines.append(line)
            if asked:
                print(line if len(line) < 100 else line[:100] + "...", flush=True)
        print(op, "done", file=sys.stderr, flush=True)
    if not asked:
        (Path(__file__).parent / "posits.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
