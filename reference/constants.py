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
