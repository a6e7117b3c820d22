"""Where each function is evaluated: `(op, region, parameter or None, arguments)`.

Every sign and branch region has a name, so that a bug planted in one branch is caught and located.
No point lies on a kink or a pole: what happens there is convention, tested elsewhere.
"""

TINY = [1e-300, 3e-20, 2.5e-9, 4e-5]
MODERATE = [0.0123, 0.24, 0.5, 0.77, 1.0, 1.31, 2.0, 2.9, 5.3, 11.7]
SATURATED = [40.0, 88.5, 300.0, 700.0]
HUGE = [1e9, 3e25, 1e300]


def both_signs(region, magnitudes):
    yield region + "+", [(m,) for m in magnitudes]
    yield region + "-", [(-m,) for m in magnitudes]


def signs(region, magnitudes):
    return list(both_signs(region, magnitudes))


def one(region, values):
    return [(region, [(v,) for v in values])]


def pairs(region, points):
    return [(region, points)]


def quadrants(points):
    """Each point in the four combinations of signs."""
    for name, sx, sy in [("++", 1, 1), ("+-", 1, -1), ("-+", -1, 1), ("--", -1, -1)]:
        yield name, [(sx * x, sy * y) for x, y in points]


NEAR_AND_FAR = [(0.3, 2.7), (2.7, 0.3), (1.5, 4.0), (7.25, 1.1), (1e-20, 3.0), (3.0, 1e-20), (123.4, 67.8)]
EXTREME_PAIRS = [(1e200, 3e99), (1e-200, 3e-99), (2e150, 1e-150), (1e300, 0.25)]
NOT_INTEGER = [0.2, 0.49, 0.51, 0.9, 1.1, 1.4, 1.6, 2.3, 2.7, 17.25, 99.9, 1234.4, 1e6 + 0.3, 3e-7, 1e-300]

GENERAL_UNARY = signs("tiny", TINY) + signs("moderate", MODERATE) + signs("extreme", HUGE)
ON_REAL_LINE = signs("tiny", TINY) + signs("moderate", MODERATE) + signs("saturated", SATURATED)
POSITIVE = (
    one("tiny", [1e-300, 3e-20, 1e-9, 0.001])
    + one("below1", [0.05, 0.2, 0.4, 0.55, 0.7, 0.85, 0.95])
    + one("near1", [1 - 1e-9, 1 + 1e-9, 0.9999, 1.0001, 1 + 2**-52])
    + one("above1", [1.2, 1.41, 1.5, 2.0, 3.3, 9.0, 100.0])
    + one("extreme", [1e9, 3e25, 1e100, 1e300])
)
UNIT_INTERVAL = (
    signs("tiny", TINY)
    + signs("middle", [0.1, 0.25, 0.4, 0.5, 0.6, 0.75])
    + signs("edge", [0.9, 0.99, 0.9999, 1 - 1e-10, 1 - 2**-50])
)
TRIGONOMETRIC = (
    signs("tiny", TINY)
    + signs("quadrant1", [0.1, 0.5, 0.78, 0.79, 1.2, 1.5])
    + signs("quadrant2", [1.6, 2.0, 2.8, 3.1])
    + signs("quadrant3", [3.2, 4.0, 4.6])
    + signs("quadrant4", [4.8, 5.5, 6.2])
    + signs("far", [37.5, 1000.25, 12345.678, 99999.5])
    + signs("extreme", [1e9, 1e22])
)

UNARY = {
    "neg": GENERAL_UNARY,
    "recip": signs("tiny", [1e-300, 3e-20, 2.5e-9]) + signs("moderate", MODERATE) + signs("extreme", [1e9, 3e25, 1e150]),
    "abs": GENERAL_UNARY,
    "signum": GENERAL_UNARY,
    "floor": signs("fraction", NOT_INTEGER),
    "ceil": signs("fraction", NOT_INTEGER),
    "round": signs("fraction", NOT_INTEGER),
    "trunc": signs("fraction", NOT_INTEGER),
    "fract": signs("fraction", NOT_INTEGER),
    "sqrt": POSITIVE,
    "cbrt": GENERAL_UNARY,
    "exp": ON_REAL_LINE + one("overflow", [709.0, 709.7]) + one("underflow", [-708.0, -740.0]),
    "exp2": ON_REAL_LINE + one("overflow", [1000.5, 1023.5]) + one("underflow", [-1020.25, -1060.5]),
    "exp_m1": ON_REAL_LINE + one("overflow", [709.0, 709.7]) + one("underflow", [-708.0, -740.0]),
    "ln": POSITIVE,
    "ln_1p": signs("tiny", TINY)
    + one("negative", [-0.1, -0.3, -0.5, -0.7, -0.9, -0.999, -1 + 1e-10])
    + one("moderate", [0.1, 0.3, 0.41, 0.6, 1.0, 1.7, 2.0, 5.0, 30.0])
    + one("extreme", HUGE),
    "log2": POSITIVE,
    "log10": POSITIVE,
    "sin": TRIGONOMETRIC,
    "cos": TRIGONOMETRIC,
    "tan": TRIGONOMETRIC + signs("near_pole", [1.57, 1.5707963, 1.5707963267948966, 4.71238898]),
    "asin": UNIT_INTERVAL,
    "acos": UNIT_INTERVAL,
    "atan": GENERAL_UNARY,
    "sinh": ON_REAL_LINE + signs("overflow", [709.5, 710.25]),
    "cosh": ON_REAL_LINE + signs("overflow", [709.5, 710.25]),
    "tanh": ON_REAL_LINE + signs("knee", [0.55, 9.0, 18.5, 22.0]),
    "asinh": GENERAL_UNARY,
    "acosh": one("near1", [1 + 2**-50, 1 + 1e-10, 1.0001, 1.001, 1.01, 1.05])
    + one("moderate", [1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 4.4, 6.0, 10.0, 25.0, 100.0])
    + one("extreme", [12345.6, 1e9, 2e15, 3e25, 1e100, 1e150, 1e200, 1e300]),
    "atanh": UNIT_INTERVAL,
    "erf": signs("tiny", TINY)
    + signs("moderate", [0.1, 0.3, 0.6, 0.84, 0.85, 1.0, 1.24, 1.26, 1.7, 2.3, 2.9, 4.0, 5.8])
    + signs("saturated", [6.1, 10.0, 26.0, 40.0, 700.0]),
    "erfc": signs("tiny", TINY)
    + signs("moderate", [0.1, 0.3, 0.6, 0.84, 0.85, 1.0, 1.24, 1.26, 1.7, 2.3, 2.9, 4.0, 5.8])
    + one("tail", [6.1, 8.0, 10.0, 15.5, 20.0, 26.0, 27.0])
    + one("saturated", [-6.1, -10.0, -26.0, -40.0, -700.0, 40.0, 700.0]),
    "lgamma": one("tiny+", [1e-300, 3e-20, 1e-9])
    + one("tiny-", [-1e-300, -3e-20, -1e-9])
    + one("below1", [0.05, 0.2, 0.4, 0.6, 0.8])
    + one("near1", [1 - 1e-9, 1 + 1e-9, 0.99, 1.01, 1 + 2**-52])
    + one("between", [1.1, 1.3, 1.4616, 1.6, 1.8])
    + one("near2", [2 - 1e-9, 2 + 1e-9, 1.99, 2.01])
    + one("large", [2.5, 3.0, 4.5, 7.9, 8.1, 20.0, 100.0, 1e6])
    + one("extreme", [1e15, 1e100, 1e300])
    + one("negative_even", [-0.1, -0.5, -0.9, -2.2, -2.5, -4.7, -10.4, -100.3])
    + one("negative_odd", [-1.1, -1.5, -1.9, -3.2, -3.6, -5.5, -11.3, -151.75]),
    "logistic": ON_REAL_LINE,
    "softplus": ON_REAL_LINE,
    "relu": GENERAL_UNARY,
}

BINARY = {
    "powf": pairs("positive_fraction", [(0.3, 0.5), (2.5, 0.7), (1.7, 2.5), (9.0, 1.5), (0.04, 3.3), (1.0001, 1234.5)])
    + pairs("positive_negative_fraction", [(0.3, -0.5), (2.5, -0.7), (1.7, -2.5), (9.0, -1.5), (0.04, -3.3)])
    + pairs("positive_zero", [(0.3, 0.0), (1.0, 0.0), (2.5, 0.0), (1e200, 0.0)])
    + pairs("positive_integer", [(0.3, 1.0), (2.5, 1.0), (2.5, 2.0), (0.7, 3.0), (1.9, 10.0), (3.0, 200.0)])
    + pairs("positive_negative_integer", [(0.3, -1.0), (2.5, -2.0), (0.7, -3.0), (1.9, -10.0)])
    + pairs("base_one", [(1.0, 0.5), (1.0, 1.0), (1.0, -2.0), (1.0, 100.5)])
    + pairs("negative_odd", [(-0.3, 1.0), (-2.5, 3.0), (-1.9, 11.0), (-0.7, -1.0), (-2.5, -3.0)])
    + pairs("negative_even", [(-0.3, 2.0), (-2.5, 4.0), (-1.9, 10.0), (-0.7, -2.0), (-2.5, -4.0)])
    + pairs("negative_zero", [(-0.3, 0.0), (-2.5, 0.0)])
    + pairs("tiny", [(1e-300, 0.5), (1e-20, 1.5), (1e-9, -2.5), (0.5, 1e-20), (2.5, 1e-300)])
    + pairs("extreme", [(1e100, 3.0), (10.0, 307.5), (10.0, -305.5), (1e300, 0.99), (1e300, -0.99)]),
}
for op in ["add", "sub", "mul", "strong_mul", "div", "rem", "copysign", "hypot", "atan2", "min", "max"]:
    BINARY[op] = list(quadrants(NEAR_AND_FAR))
for op in ["add", "sub", "copysign", "min", "max", "atan2"]:
    BINARY[op] += pairs("extreme", EXTREME_PAIRS)
BINARY["hypot"] += pairs("extreme", [(1e200, 3e199), (1e-200, 3e-199), (2e150, 1e100), (1e300, 1e300), (3.0, 4.0)])
BINARY["atan2"] += pairs("axis", [(1.5, 0.0), (-1.5, 0.0), (0.0, 2.5)])
BINARY["div"] += pairs("extreme", [(1e200, 3e99), (1e-200, 3e-99), (1e-150, 2e50), (0.0, 3.0), (0.0, -3.0)])
for op in ["mul", "strong_mul"]:
    BINARY[op] += pairs("extreme", [(1e200, 3e99), (1e-200, 3e-99), (2e150, 1e-150), (0.0, 1e300), (-1e300, 0.0)])
BINARY["rem"] += pairs("large_quotient", [(12345.678, 0.1), (1e6, -0.37), (-98765.4, 3.1), (1e17, 7.5), (1e200, 3e99)])

TERNARY = {
    "mul_add": [
        (name, [(sx * 1.3, sy * 2.7, sw * 0.9), (sx * 0.4, sy * 0.11, sw * 30.0), (sx * 7.5, sy * 1e-3, sw * 1e-9),
                (sx * 1e20, sy * 3.0, sw * 1e18)])
        for name, sx, sy, sw in [
            ("+++", 1, 1, 1), ("++-", 1, 1, -1), ("+-+", 1, -1, 1), ("+--", 1, -1, -1),
            ("-++", -1, 1, 1), ("-+-", -1, 1, -1), ("--+", -1, -1, 1), ("---", -1, -1, -1),
        ]
    ]
    + [("cancelling", [(1.1, 1.1, -1.21), (3.0, 1 / 3, -1.0), (0.0, 5.0, 2.0)])],
    "clamp": [
        ("below", [(-2.0, -1.0, 1.0), (0.2, 0.5, 0.7), (-9.0, -8.5, 0.0), (1e-20, 1e-3, 1.0), (-1e300, -1.0, 2.0),
                   (3.1, 3.3, 40.0), (-0.4, -0.3, -0.2), (0.0, 1e-9, 5.0), (100.0, 250.0, 300.0)]),
        ("inside", [(0.5, -1.0, 1.0), (0.6, 0.5, 0.7), (-8.0, -8.5, 0.0), (0.01, 1e-3, 1.0), (0.0, -1.0, 2.0),
                    (3.7, 3.3, 40.0), (-0.25, -0.3, -0.2), (1e-8, 1e-9, 5.0), (275.5, 250.0, 300.0)]),
        ("above", [(1.5, -1.0, 1.0), (0.8, 0.5, 0.7), (1e-8, -8.5, 0.0), (2.5, 1e-3, 1.0), (1e300, -1.0, 2.0),
                   (41.2, 3.3, 40.0), (-0.1, -0.3, -0.2), (5.5, 1e-9, 5.0), (301.0, 250.0, 300.0)]),
    ],
}

POWI_EXPONENTS = [-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7]
POWI_LARGE = {100: [1.1, -0.9], 101: [1.1, -0.9], -100: [1.1, -0.9], 1000: [1.5, 0.75], -1000: [1.5], 100000: [1.0001, 0.9999]}
POLYGAMMA = [
    ("tiny+", [1e-20, 1e-5]),
    ("tiny-", [-1e-20, -1e-5]),
    ("small", [0.3, 0.9, 1.0, 1.4616321449683623]),
    ("moderate", [1.7, 2.0, 5.5, 11.9]),
    ("large", [30.25, 1000.5, 1e9]),
    ("negative_even", [-0.3, -0.5, -2.4, -6.75, -40.2]),
    ("negative_odd", [-1.3, -1.5, -3.9, -7.2, -41.6]),
]


def all_points():
    for table in (UNARY, BINARY, TERNARY):
        for op, regions in table.items():
            for region, points in regions:
                for arguments in points:
                    yield op, region, None, arguments
    for n in POWI_EXPONENTS:
        for region, bases in [("+", [0.37, 1.9]), ("-", [-0.37, -1.9])]:
            for base in bases:
                yield "powi", f"{'even' if n % 2 == 0 else 'odd'}{region}", n, (base,)
    for n, bases in POWI_LARGE.items():
        for base in bases:
            yield "powi", "large_exponent", n, (base,)
    for base, n in [(1e100, 3), (1e-100, 3), (1e-20, 7), (1e150, -2), (-1e100, 3), (1e-50, -5)]:
        yield "powi", "extreme", n, (base,)
    for order in range(6):
        for region, points in POLYGAMMA:
            for x in points:
                yield "polygamma", region, order, (x,)
