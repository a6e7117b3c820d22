"""Writes rules.tsv: values and derivatives of every function of the rule table in arbitrary precision.

Needs mpmath; run from anywhere: python3 generate.py [op ...]   (with ops: print those rows, write nothing)

Input: functions.py (what), points.py (where). Output: rules.tsv; its columns are described in README.md.

Derivatives of smooth functions are central differences with a step so small, in so many digits, that 44
digits of two different steps in two different precisions agree. No rule and no symbolic derivative is used.
"""

import struct
import sys
from pathlib import Path

from mpmath import mp, mpf

from functions import EXACT, LINEAR_IN, SMOOTH, UNIT_STEP
from points import all_points

ARGUMENTS = "xyw"
AGREEING_DIGITS = 44
WRITTEN_DIGITS = 40
# (bits of the step below the argument, working digits), two of each, tried until they agree.
LEVELS = [((166, 220), (200, 300)), ((166, 600), (200, 800)), ((166, 1400), (200, 1700)), ((166, 3000), (200, 3500))]
F32_SMALLEST, F32_LARGEST = mpf(2) ** -126, (2 - mpf(2) ** -23) * mpf(2) ** 127


def as_f32(v):
    """The nearest f32, or None where that is not a normal number or zero."""
    if v == 0:
        return v
    if not float(F32_SMALLEST) <= abs(v) <= float(F32_LARGEST):
        return None
    return struct.unpack("f", struct.pack("f", v))[0]


def differences(op, function, arguments, step_bits, working_digits):
    """Value, gradient and second derivatives `{(i, j): value}` by central differences."""
    mp.dps = working_digits
    at = [mpf(v) for v in arguments]
    scales = [mpf(1) if v == 0 or (op in UNIT_STEP and abs(v) > 1) else abs(v) for v in at]
    # A power of two: argument plus step is exact, so second differences of straight lines are exactly 0.
    steps = [mp.ldexp(scale, -step_bits) for scale in scales]
    seen = {}

    def moved(*shifts):
        if shifts not in seen:
            seen[shifts] = function(*(v + shift * step for v, shift, step in zip(at, shifts, steps)))
        return seen[shifts]

    count = len(at)

    def unit(index, amount):
        return tuple(amount if k == index else 0 for k in range(count))

    def both(i, a, j, b):
        return tuple(a if k == i else b if k == j else 0 for k in range(count))

    value = moved(*([0] * count))

    def visible(difference):
        """A difference in the last few of the working digits is rounding noise."""
        return difference if abs(difference) > abs(value) * mpf(10) ** (20 - working_digits) else mpf(0)

    # A real power of a negative base exists at integer exponents only.
    free = [index for index in range(count) if not (op == "powf" and at[0] < 0 and index == 1)]
    gradient = [mp.nan] * count
    second = {(i, j): mp.nan for i in range(count) for j in range(i, count)}
    for i in free:
        plus, minus = moved(*unit(i, 1)), moved(*unit(i, -1))
        gradient[i] = visible(plus - minus) / (2 * steps[i])
        second[i, i] = mpf(0) if (op, i) in LINEAR_IN else visible(plus - 2 * value + minus) / steps[i] ** 2
        for j in free:
            if j > i:
                corners = (
                    moved(*both(i, 1, j, 1))
                    - moved(*both(i, 1, j, -1))
                    - moved(*both(i, -1, j, 1))
                    + moved(*both(i, -1, j, -1))
                )
                second[i, j] = visible(corners) / (4 * steps[i] * steps[j])
    return [value] + gradient + [second[key] for key in sorted(second)]


def agree(a, b):
    if mp.isnan(a) or mp.isnan(b):
        return mp.isnan(a) and mp.isnan(b)
    return abs(a - b) <= abs(a) * mpf(10) ** -AGREEING_DIGITS


def measured(op, function, arguments):
    """The differences at the first level where two precisions agree.

    Two zeros may only mean that both precisions were too low to see anything: they are believed at the last level.
    """
    for coarse, fine in LEVELS:
        first = differences(op, function, arguments, *coarse)
        second = differences(op, function, arguments, *fine)
        last = (coarse, fine) == LEVELS[-1]
        if all(agree(a, b) and (last or b != 0) for a, b in zip(first, second)):
            return second
    shown = [[mp.nstr(v, 20) for v in numbers] for numbers in (first, second)]
    sys.exit(f"{op}{arguments}: the differences do not settle: {shown}")


def exact(function, arguments):
    mp.dps = 1000
    at = [mpf(v) for v in arguments]
    answer = function(*at)
    count = len(at)
    keys = [(i, j) for i in range(count) for j in range(i, count)]
    return [answer.value] + [mpf(v) for v in answer.gradient] + [mpf(answer.second.get(key, 0)) for key in keys]


def row(op, region, parameter, arguments):
    if op in EXACT:
        numbers = exact(EXACT[op], arguments)
    elif parameter is None:
        numbers = measured(op, SMOOTH[op], arguments)
    else:
        numbers = measured(op, lambda x: SMOOTH[op](x, parameter), arguments)
    count = len(arguments)
    first_order = numbers[: 1 + count]
    representable = all(mp.isnan(v) or v == 0 or F32_SMALLEST <= abs(v) <= F32_LARGEST for v in first_order)
    fits = "f32" if representable and all(as_f32(v) == v for v in arguments) else "f64"
    text = [op, region, "-" if parameter is None else str(parameter), fits]
    text += [v.hex() for v in arguments] + ["-"] * (3 - count)
    written = [mp.nstr(v, WRITTEN_DIGITS) for v in numbers]
    text += written[: 1 + count] + ["-"] * (3 - count)
    names = [(i, j) for i in range(count) for j in range(i, count)]
    second = dict(zip(names, written[1 + count :]))
    text += [second.get((i, j), "-") for i in range(3) for j in range(i, 3)]
    return "\t".join(text)


def header():
    second = ["d" + ARGUMENTS[i] + ARGUMENTS[j] for i in range(3) for j in range(i, 3)]
    return "\t".join(["op", "region", "param", "fits", *ARGUMENTS, "value", *("d" + a for a in ARGUMENTS), *second])


def rounded_for_f32(index, arguments):
    """Two of three points are moved to arguments that f32 holds too; the third keeps all its bits."""
    if index % 3 == 0:
        return arguments
    return tuple(v if as_f32(v) is None or as_f32(v) in (1.0, -1.0, 2.0) else as_f32(v) for v in arguments)


def main():
    wanted = sys.argv[1:]
    rows = [header()]
    for index, (op, region, parameter, arguments) in enumerate(all_points()):
        if not wanted or op in wanted:
            rows.append(row(op, region, parameter, rounded_for_f32(index, arguments)))
    if wanted:
        print("\n".join(rows))
    else:
        path = Path(__file__).resolve().parent / "rules.tsv"
        path.write_text("\n".join(rows) + "\n")
        print(f"{path}: {len(rows) - 1} rows")


if __name__ == "__main__":
    main()
