"""Gradients of the models by JAX: jit, 64 bits, one core, loops by scan. Without params: values."""

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


def burgers(params, _, steps=1_000):
    disturbance = params["disturbance"]
    n = disturbance.shape[0]
    angle = jnp.arange(n) * (2 * jnp.pi / n)
    u = 1 + jnp.sin(angle) / 2 + jnp.cos(3 * angle) / 4 + disturbance

    def step(u, _):
        right, left = jnp.roll(u, -1), jnp.roll(u, 1)
        return u - 0.1 * u * (right - left) + 0.2 * (right - 2 * u + left), None

    u, _ = jax.lax.scan(step, u, None, length=steps)
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


def burgers_long(params, inputs):
    return burgers(params, inputs, 10_000)


def chain(params, inputs):
    x = {**params, **inputs}["x"]
    wave = jnp.exp(-(x**2) / 2) * jnp.sin(3 * x)
    slope = jnp.tanh(x) * jnp.log(1 + x**2)
    y = wave + slope - jnp.sqrt(x**2 + 1) / (2 + jnp.cos(x))
    return jnp.sum(y * y)


chain_long = chain_value = chain_long_value = chain


def product(_, inputs):
    return inputs["a"] @ inputs["b"]


def reprojection_error(camera, point, weight, seen):
    x = point - camera[3:6]
    square = jnp.sum(camera[:3] ** 2)
    turns = square > 0
    angle = jnp.sqrt(jnp.where(turns, square, 1.0))
    cosine, sine = jnp.where(turns, jnp.cos(angle), 1.0), jnp.where(turns, jnp.sin(angle), 1.0)
    axis = camera[:3] / angle
    rotated = x * cosine + jnp.cross(axis, x) * sine + axis * (jnp.dot(axis, x) * (1 - cosine))
    uv = rotated[:2] / rotated[2]
    r = jnp.sum(uv**2)
    return weight * (uv * (1 + camera[9] * r + camera[10] * r**2) * camera[6] + camera[7:9] - seen)


def ba(_, inputs):
    """All errors, then the entries of their sparse Jacobian, row by row."""
    weight = inputs["weights"]
    at = jnp.arange(weight.shape[0])
    cameras, points = (inputs[name][at % inputs[name].shape[0]] for name in ("cameras", "points"))
    observations = (cameras, points, weight, inputs["seen"])
    errors = jax.vmap(reprojection_error)(*observations)
    by_camera, by_point, by_weight = jax.vmap(jax.jacrev(reprojection_error, (0, 1, 2)))(*observations)
    blocks = jnp.concatenate([by_camera, by_point, by_weight[:, :, None]], axis=2)
    return errors, 1 - weight**2, blocks, -2 * weight


model, params, inputs = read()
if model not in globals():
    print("NO MODEL")
    raise SystemExit(0)
function = globals()[model]
compiled = jax.jit(jax.value_and_grad(function) if params else function)
names = list(params)
params = {name: jnp.asarray(data) for name, data in params.items()}
inputs = {name: jnp.asarray(data) for name, data in inputs.items()}


def call():
    results = jax.block_until_ready(compiled(params, inputs))
    if not names:
        return jax.tree.leaves(results)
    value, gradients = results
    return [value, *(gradients[name] for name in names)]


answer("jax", call)
