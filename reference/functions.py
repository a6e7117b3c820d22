"""The functions of the rule table, defined from first principles in arbitrary precision.

Two kinds. SMOOTH functions are plain callables: their derivatives are measured by differences in
generate.py. EXACT functions are piecewise linear or polynomial: they return their value together with exact
first and second derivatives, because differences of such functions show nothing but rounding.

Nothing here repeats a rule of palinode-core: no smooth function states its derivative.
"""

from mpmath import mp, mpf


def cube_root(x):
    return mp.sign(x) * mp.root(abs(x), 3)


def ln_abs_gamma(x):
    return mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))


def power(x, y):
    if x < 0:
        # Defined for integer exponents only.
        return x ** int(y)
    return x**y


SMOOTH = {
    "div": lambda x, y: x / y,
    "recip": lambda x: 1 / x,
    "powi": lambda x, n: x**n,
    "powf": power,
    "sqrt": mp.sqrt,
    "cbrt": cube_root,
    "hypot": lambda x, y: mp.sqrt(x * x + y * y),
    "exp": mp.exp,
    "exp2": lambda x: mp.exp(x * mp.ln2),
    "exp_m1": lambda x: mp.exp(x) - 1,
    "ln": mp.log,
    "ln_1p": lambda x: mp.log(1 + x),
    "log2": lambda x: mp.log(x) / mp.ln2,
    "log10": lambda x: mp.log(x) / mp.ln10,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "atan2": mp.atan2,
    "sinh": lambda x: (mp.exp(x) - mp.exp(-x)) / 2,
    "cosh": lambda x: (mp.exp(x) + mp.exp(-x)) / 2,
    "tanh": lambda x: 1 - 2 / (mp.exp(2 * x) + 1),
    "asinh": lambda x: mp.sign(x) * mp.log(abs(x) + mp.sqrt(x * x + 1)),
    "acosh": lambda x: mp.log(x + mp.sqrt(x * x - 1)),
    "atanh": lambda x: mp.log((1 + x) / (1 - x)) / 2,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "lgamma": ln_abs_gamma,
    "polygamma": lambda x, order: mp.psi(order, x),
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log(1 + mp.exp(x)),
}

# Second differences along these arguments vanish; measuring them would only measure noise.
LINEAR_IN = {("div", 0)}

# Functions whose own scale of change is 1, however large the argument: steps must not grow with it.
UNIT_STEP = {"sin", "cos", "tan", "lgamma", "polygamma"}


class Exact:
    """A value, its gradient and the nonzero second derivatives `{(i, j): value}` with i <= j."""

    def __init__(self, value, gradient, second=None):
        self.value, self.gradient, self.second = value, gradient, second or {}


def truncated(q):
    return mp.floor(q) if q >= 0 else mp.ceil(q)


def remainder(x, y):
    quotient = truncated(x / y)
    return Exact(x - quotient * y, [1, -quotient])


def copysign(x, y):
    flip = mp.sign(x) * mp.sign(y)
    return Exact(x * flip, [flip, 0])


def smaller(x, y):
    return Exact(min(x, y), [1, 0] if x < y else [0, 1])


def larger(x, y):
    return Exact(max(x, y), [1, 0] if x > y else [0, 1])


def clamp(x, low, high):
    if x < low:
        return Exact(low, [0, 1, 0])
    if x > high:
        return Exact(high, [0, 0, 1])
    return Exact(x, [1, 0, 0])


def away_from_zero_at_half(x):
    return mp.sign(x) * mp.floor(abs(x) + mpf(1) / 2)


EXACT = {
    "add": lambda x, y: Exact(x + y, [1, 1]),
    "sub": lambda x, y: Exact(x - y, [1, -1]),
    "mul": lambda x, y: Exact(x * y, [y, x], {(0, 1): 1}),
    "strong_mul": lambda x, y: Exact(x * y, [y, x], {(0, 1): 1}),
    "mul_add": lambda x, y, w: Exact(x * y + w, [y, x, 1], {(0, 1): 1}),
    "rem": remainder,
    "neg": lambda x: Exact(-x, [-1]),
    "abs": lambda x: Exact(abs(x), [mp.sign(x)]),
    "signum": lambda x: Exact(mp.sign(x), [0]),
    "copysign": copysign,
    "min": smaller,
    "max": larger,
    "clamp": clamp,
    "floor": lambda x: Exact(mp.floor(x), [0]),
    "ceil": lambda x: Exact(mp.ceil(x), [0]),
    "round": lambda x: Exact(away_from_zero_at_half(x), [0]),
    "trunc": lambda x: Exact(truncated(x), [0]),
    "fract": lambda x: Exact(x - truncated(x), [1]),
    "relu": lambda x: Exact(max(x, mpf(0)), [1 if x > 0 else 0]),
}
