"""Gradients of the models by JAX: jit, 64 bits, one core, loops by scan."""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

try:
    import jax
except ImportError:
    print("NOT INSTALLED")
    raise SystemExit(0)

import jax.numpy as jnp
import numpy
from exchange import answer, read

jax.config.update("jax_enable_x64", True)


def burgers(params, _):
    disturbance = params["disturbance"]
    n = disturbance.shape[0]
    angle = jnp.arange(n) * (2 * jnp.pi / n)
    u = 1 + jnp.sin(angle) / 2 + jnp.cos(3 * angle) / 4 + disturbance

    def step(u, _):
        right, left = jnp.roll(u, -1), jnp.roll(u, 1)
        return u - 0.1 * u * (right - left) + 0.2 * (right - 2 * u + left), None

    u, _ = jax.lax.scan(step, u, None, length=1000)
    return jnp.sum(u**2)


def heat2d(params, _):
    r = params["r"]

    def step(u, _):
        middle = u[1:-1, 1:-1]
        across = u[1:-1, :-2] + u[1:-1, 2:]
        along = u[:-2, 1:-1] + u[2:, 1:-1]
        return u.at[1:-1, 1:-1].set(middle + r * (across + along - 4 * middle)), None

    u, _ = jax.lax.scan(step, params["start"], None, length=200)
    return jnp.sum((u - 0.5) ** 2)


def lorenz(params, _):
    sigma, rho, beta = params["sigma"], params["rho"], params["beta"]

    def step(state, _):
        x, y, z = state
        dx, dy, dz = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
        return (x + 0.001 * dx, y + 0.001 * dy, z + 0.001 * dz), None

    (x, y, z), _ = jax.lax.scan(step, (params["x0"], params["y0"], params["z0"]), None, length=400)
    return x**2 + y**2 + z**2


def nchain(params, _):
    def step(x, _):
        return jnp.sin(x) * params["a"] + params["b"], None

    return jax.lax.scan(step, params["x0"], None, length=10_000)[0]


def logistic(params, _):
    def step(x, _):
        return params["r"] * x * (1 - x), None

    return jax.lax.scan(step, params["x0"], None, length=100_000)[0]


def mlp(params, inputs):
    h1 = jax.nn.relu(inputs["x"] @ params["W1"] + params["b1"])
    h2 = jax.nn.relu(h1 @ params["W2"] + params["b2"])
    logits = h2 @ params["W3"] + params["b3"]
    batch, classes = logits.shape
    norm = jax.scipy.special.logsumexp(logits, axis=1)
    chosen = logits[jnp.arange(batch), jnp.arange(batch) % classes]
    return (jnp.sum(norm) - jnp.sum(chosen)) / batch


def gmm(params, inputs):
    alphas, means, icf, x = params["alphas"], params["means"], params["icf"], inputs["x"]
    n, d = x.shape
    logs = icf[:, :d]
    columns, rows = numpy.triu_indices(d, 1)

    def factor(icf):
        return jnp.diag(jnp.exp(icf[:d])).at[rows, columns].set(icf[d:])

    factors = jax.vmap(factor)(icf)
    scaled = jnp.einsum("kij,nkj->nki", factors, x[:, None, :] - means[None, :, :])
    terms = alphas + jnp.sum(logs, axis=1) - 0.5 * jnp.sum(scaled**2, axis=2)
    mixed = jax.scipy.special.logsumexp(terms, axis=1)
    return jnp.sum(mixed) - n * jax.scipy.special.logsumexp(alphas) + 0.5 * jnp.sum(factors**2)


def lstm(params, inputs):
    w, u, b, v, x = params["W"], params["U"], params["b"], params["V"], inputs["x"]
    h = b.shape[0] // 4

    def step(state, pair):
        hidden, cell = state
        now, following = pair
        z = w @ now + u @ hidden + b
        forget, taken, given = (jax.nn.sigmoid(z[k * h : (k + 1) * h]) for k in range(3))
        cell = cell * forget + taken * jnp.tanh(z[3 * h :])
        hidden = given * jnp.tanh(cell)
        miss = v @ hidden - following
        return (hidden, cell), jnp.dot(miss, miss)

    zeros = jnp.zeros(h)
    _, errors = jax.lax.scan(step, (zeros, zeros), (x[:-1], x[1:]))
    return jnp.sum(errors) / (x.shape[0] - 1)


mlp784 = mlp
gmm_loops = gmm


def lstm_gradbench(params, inputs):
    main, sequence = params["main"], inputs["sequence"]
    steps, b = sequence.shape
    layers = inputs["start"].shape[0]

    def step(state, ends):
        hidden, cell = state
        now, after = ends
        signal = params["in_weight"] * now
        hiddens, cells = [], []
        for l in range(layers):
            w, bias = main[8 * l : 8 * l + 4], main[8 * l + 4 : 8 * l + 8]
            forget = jax.nn.sigmoid(signal * w[0] + bias[0])
            taken = jax.nn.sigmoid(hidden[l] * w[1] + bias[1])
            given = jax.nn.sigmoid(signal * w[2] + bias[2])
            cells.append(cell[l] * forget + taken * jnp.tanh(hidden[l] * w[3] + bias[3]))
            signal = given * jnp.tanh(cells[l])
            hiddens.append(signal)
        guess = signal * params["out_weight"] + params["out_bias"]
        norm = jnp.log(jnp.sum(jnp.exp(guess)) + 2)
        return (jnp.stack(hiddens), jnp.stack(cells)), jnp.dot(guess - norm, after)

    start = inputs["start"]
    _, terms = jax.lax.scan(step, (start, start), (sequence[:-1], sequence[1:]))
    return -jnp.sum(terms) / ((steps - 1) * b)


model, params, inputs = read()
if model not in globals():
    print("NO MODEL")
    raise SystemExit(0)
gradient = jax.jit(jax.value_and_grad(globals()[model]))
params = {name: jnp.asarray(data) for name, data in params.items()}
inputs = {name: jnp.asarray(data) for name, data in inputs.items()}


def call():
    value, gradients = jax.block_until_ready(gradient(params, inputs))
    return value, [gradients[name] for name in params]


answer("jax", call)
