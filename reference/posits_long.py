"""Writes a long table of functions of posits of 32 and 64 bits, random and hard cases, from mpmath. It is not kept in the repository.

Needs mpmath; run from anywhere: python3 posits_long.py CASES [SEED [OP ...]] > table.tsv
CASES is per function and width, half of them random, half hard. 35000 make a million per width (half an hour). Then

    PALINODE_POSIT_TABLE=$PWD/table.tsv cargo test --release -p palinode-num posit::functions -- --ignored

Rows (tab separated, one header line): op, width, x, y, m, e. Encodings are hexadecimal; the result is m 2^e, cut off after 192 bits, and is not
rounded to a posit: the test does that by comparison with exact borders.

Hard: the argument is the posit next to where the function crosses a border between two posits. Where results are coarser than
arguments, the function is then as close to the border as it can be.
"""

import random
import sys

from mpmath import mp, mpf

from posits import DOMAIN, OF_TWO, as_mpf, exactly, random_bits, value

BITS = 192

INVERSE = {
    "sqrt": lambda z: z * z,
    "cbrt": lambda z: z**3,
    "exp": mp.log,
    "exp2": lambda z: mp.log(z) / mp.ln2,
    "exp_m1": lambda z: mp.log1p(z),
    "ln": mp.exp,
    "ln_1p": mp.expm1,
    "log2": lambda z: mpf(2) ** z,
    "log10": lambda z: mpf(10) ** z,
    "sin": mp.asin,
    "cos": mp.acos,
    "tan": mp.atan,
    "asin": mp.sin,
    "acos": mp.cos,
    "atan": mp.tan,
    "sinh": mp.asinh,
    "cosh": mp.acosh,
    "tanh": mp.atanh,
    "asinh": mp.sinh,
    "acosh": mp.cosh,
    "atanh": mp.tanh,
    "erf": lambda z: mp.erfinv(z),
    "erfc": lambda z: mp.erfinv(1 - z),
    "logistic": lambda z: mp.log(z / (1 - z)),
    "softplus": lambda z: mp.log(mp.expm1(z)),
    # With the second argument given.
    "hypot": lambda z, y: mp.sqrt(z * z - y * y),
    "atan2": lambda z, x: x * mp.tan(z),
    "powf": lambda z, y: z ** (1 / y),
}


def below(x, width):
    """The encoding of a posit next to an mpf: cut off, not rounded."""
    scale = int(mp.mag(x)) - 1
    if abs(scale) >= 4 * width - 8:
        return None
    regime, exponent = scale >> 2, scale & 3
    head = "1" * (regime + 1) + "0" if regime >= 0 else "0" * -regime + "1"
    fraction = int(mp.floor(mp.ldexp(abs(x), -scale + width)))
    text = "0" + head + format(exponent, "02b") + format(fraction, "b")[1:]
    code = int(text[:width].ljust(width, "0"), 2)
    return code if x > 0 else (1 << width) - code


def inside(op, codes, width):
    """The arguments, if the function is neither trivial nor undefined there."""
    values = [None if code is None else value(code, width) for code in codes]
    if any(v is None or v == 0 for v in values):
        return None
    x = [as_mpf(v) for v in values]
    if op == "powf":
        return x if x[0] > 0 and x[0] != 1 and abs(x[1] * mp.log(x[0])) < 600 else None
    return x if op in OF_TWO or DOMAIN[op](x[0]) else None


def random_case(op, width, source):
    return [random_bits(source, width) for _ in range(2 if op in OF_TWO else 1)]


def hard_case(op, width, source):
    # Most borders next to 1, where posits are fine, the others anywhere.
    code = random_bits(source, width) % (1 << (width - 1))
    if source.random() < 0.7:
        code = (1 << (width - 2)) + source.getrandbits(width - 5) - (1 << (width - 6))
    border = value(2 * code + 1, width + 1)
    if border is None or border == 0:
        return [None]
    border = as_mpf(border) * source.choice([1, -1])
    rest = [random_bits(source, width)] if op in OF_TWO else []
    others = [value(code, width) for code in rest]
    if any(v is None or v == 0 for v in others):
        return [None]
    try:
        x = INVERSE[op](border, *map(as_mpf, others))
    except (ValueError, ZeroDivisionError, OverflowError):
        return [None]
    if not isinstance(x, mpf) or not mp.isfinite(x) or x == 0 or abs(mp.mag(x)) > 4 * width:
        return [None]
    return [below(x, width), *rest]


def cases(op, width, count, seed):
    source = random.Random(f"{seed} {op} {width}")
    done = 0
    while done < count:
        hard = op in INVERSE and done % 2 == 1
        codes = (hard_case if hard else random_case)(op, width, source)
        x = inside(op, codes, width)
        # Half an hour is enough: terms of the series of lgamma grow with the argument.
        if x is None or op == "lgamma" and abs(x[0]) > 1e6 and source.random() < 0.9:
            continue
        yield codes, exactly(op, *x)
        done += 1


def main(count, seed=1, *asked):
    mp.dps = 60
    print("op\twidth\tx\ty\tm\te")
    for op in asked or [*DOMAIN, *OF_TWO]:
        for width in (32, 64):
            for codes, result in cases(op, width, count, seed):
                man, exp = map(int, result.man_exp)
                surplus = max(0, man.bit_length() - BITS)
                sign = "-" if result < 0 else ""
                y = f"{codes[1]:x}" if len(codes) == 2 else "-"
                print(f"{op}\t{width}\t{codes[0]:x}\t{y}\t{sign}{man >> surplus}\t{exp + surplus}")
        print(op, "done", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
