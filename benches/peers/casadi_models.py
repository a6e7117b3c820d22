"""Gradients of the models by loops over numbers by CasADi: `mapaccum` of a step, interpreted by its virtual
machine."""

try:
    import casadi
except ImportError:
    print("NOT INSTALLED")
    raise SystemExit(0)

import numpy
from exchange import answer, read


def last(step, state, params, rounds):
    """The state after so many rounds of `step(state, params)`."""
    function = casadi.Function("step", [state, params], [step])
    return function.mapaccum("rounds", rounds)


def lorenz():
    state, p = casadi.SX.sym("state", 3), casadi.SX.sym("p", 3)
    x, y, z = state[0], state[1], state[2]
    sigma, rho, beta = p[0], p[1], p[2]
    change = casadi.vertcat(sigma * (y - x), x * (rho - z) - y, x * y - beta * z)
    rounds = last(state + 0.001 * change, state, p, 400)
    start, params = casadi.MX.sym("start", 3), casadi.MX.sym("params", 3)
    end = rounds(start, casadi.repmat(params, 1, 400))[:, -1]
    return ["x0", "y0", "z0"], ["sigma", "rho", "beta"], start, params, casadi.sumsqr(end)


def nchain():
    x, p = casadi.SX.sym("x"), casadi.SX.sym("p", 2)
    rounds = last(casadi.sin(x) * p[0] + p[1], x, p, 10_000)
    start, params = casadi.MX.sym("start"), casadi.MX.sym("params", 2)
    return ["x0"], ["a", "b"], start, params, rounds(start, casadi.repmat(params, 1, 10_000))[:, -1]


def logistic():
    x, p = casadi.SX.sym("x"), casadi.SX.sym("p")
    rounds = last(p * x * (1 - x), x, p, 100_000)
    start, params = casadi.MX.sym("start"), casadi.MX.sym("params")
    return ["x0"], ["r"], start, params, rounds(start, casadi.repmat(params, 1, 100_000))[:, -1]


model, params, _ = read()
if model not in ("lorenz", "nchain", "logistic"):
    print("NO MODEL")
    raise SystemExit(0)
states, others, start, rest, value = globals()[model]()
both = casadi.Function("both", [start, rest], [value, casadi.gradient(value, start), casadi.gradient(value, rest)])
at = [numpy.array([params[name] for name in names]).reshape(-1) for names in (states, others)]


def call():
    value, by_state, by_rest = both(*at)
    by_name = dict(zip(states + others, numpy.concatenate([numpy.array(by_state).reshape(-1), numpy.array(by_rest).reshape(-1)])))
    return [value, *(by_name[name] for name in params)]


answer("casadi", call)
