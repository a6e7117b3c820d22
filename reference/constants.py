"""Writes the tables of constants of palinode-num. Needs mpmath; run from anywhere: python3 constants.py

Input: nothing. Output: crates/palinode-num/src/bernoulli.rs
and crates/palinode-num/src/double_double/constants.rs.

A constant that f64 cannot hold is stored as an unevaluated sum of f64s, each the nearest f64 to what the
ones before it leave over. Python's repr of a float reads back as the same float, and so does Rust's parser.
"""

from pathlib import Path

from mpmath import mp, mpf

mp.prec = 2000
SOURCES = Path(__file__).resolve().parent.parent / "crates" / "palinode-num" / "src"
NOTE = "Written by `reference/constants.py`: change that file, not this one."


def parts(value, count):
    """The value as a sum of `count` f64s, largest first."""
    rest, found = mpf(value), []
    for _ in range(count):
        nearest = float(rest)
        found.append(nearest)
        rest -= mpf(nearest)
    return found


def literal(number):
    return repr(number)


def tuple_of(value, count):
    return "(" + ", ".join(literal(part) for part in parts(value, count)) + ")"


def table(name, doc, values, visibility="pub(crate) "):
    values = list(values)
    lines = [f"/// {doc}", f"{visibility}const {name}: [(f64, f64); {len(values)}] = ["]
    lines += [f"    {tuple_of(value, 2)}," for value in values]
    return "\n".join(lines + ["];"])


def write(path, header, items):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(["//! " + header + f"\n//!\n//! {NOTE}"] + items) + "\n")
    print(path)


write(
    SOURCES / "bernoulli.rs",
    "The Bernoulli numbers of the asymptotic series of the gamma function.",
    [
        table(
            "BERNOULLI",
            "`B_2, B_4, ...`, each the sum of its two parts.",
            (mp.bernoulli(2 * k) for k in range(1, 31)),
        )
    ],
)


def wide(value):
    """A positive value as `Wide::table(exponent, limbs)`: 192 bits, highest limb first."""
    mantissa, exponent = mp.frexp(mpf(value))
    digits = int(mp.nint(mp.ldexp(mantissa, 192)))
    limbs = [f"0x{(digits >> shift) & (2**64 - 1):016x}" for shift in (128, 64, 0)]
    return f"Wide::table({exponent}, [{', '.join(limbs)}])"


def wide_constant(name, doc, value):
    return f"/// {doc}\npub(crate) const {name}: Wide = {wide(value)};"


def wide_table(name, doc, values):
    values = list(values)
    lines = [f"/// {doc}", f"pub(crate) const {name}: [Wide; {len(values)}] = ["]
    lines += [f"    {wide(value)}," for value in values]
    return "\n".join(lines + ["];"])


def bits_of_two_over_pi(words):
    bits = int(mp.floor(mp.ldexp(2 / mp.pi, 64 * words)))
    lines = [
        "/// The binary digits of `2 / pi` after the point, highest first: enough for the largest `f64`.",
        f"pub(crate) const TWO_OVER_PI_BITS: [u64; {words}] = [",
    ]
    lines += [
        f"    0x{(bits >> (64 * (words - 1 - index))) & (2**64 - 1):016x}," for index in range(words)
    ]
    return "\n".join(lines + ["];"])


write(
    SOURCES / "wide" / "constants.rs",
    "Constants to 192 bits.",
    [
        "use super::Wide;",
        wide_constant("PI", "pi.", mp.pi),
        wide_constant("TWO_OVER_PI", "`2 / pi`.", 2 / mp.pi),
        wide_constant("LN_2", "`ln 2`.", mp.ln2),
        wide_constant("LN_10", "`ln 10`.", mp.ln10),
        wide_constant("ONE_THIRD", "`1 / 3`.", mpf(1) / 3),
        wide_constant("ONE_OVER_SQRT_PI", "`1 / sqrt(pi)`.", 1 / mp.sqrt(mp.pi)),
        wide_constant("LN_SQRT_TWO_PI", "`ln(2 pi) / 2`.", mp.log(2 * mp.pi) / 2),
        wide_constant("EULER_GAMMA", "Euler's constant.", mp.euler),
        wide_constant("ZETA_2_OVER_2", "`zeta(2) / 2`.", mp.zeta(2) / 2),
        wide_table(
            "INVERSE_FACTORIALS",
            "`1 / n!`, from `n = 0`.",
            (1 / mp.factorial(n) for n in range(0, 45)),
        ),
        wide_table(
            "STIRLING",
            "The magnitudes of `B_2k / (2k (2k - 1))`, from `k = 1`; the signs alternate.",
            (abs(mp.bernoulli(2 * k)) / (2 * k * (2 * k - 1)) for k in range(1, 31)),
        ),
        bits_of_two_over_pi(22),
    ],
)

write(
    SOURCES / "double_double" / "constants.rs",
    "The named constants as pairs of `f64`s.",
    ["use core::f64::consts;"]
    + [
        f"pub(super) const {name}: (f64, f64) = (consts::{nearest}, {literal(parts(value, 2)[1])});"
        for name, nearest, value in [
            ("PI", "PI", mp.pi),
            ("E", "E", mp.e),
            ("LN_2", "LN_2", mp.ln2),
            ("LN_10", "LN_10", mp.ln10),
            ("TWO_OVER_SQRT_PI", "FRAC_2_SQRT_PI", 2 / mp.sqrt(mp.pi)),
        ]
    ],
)
