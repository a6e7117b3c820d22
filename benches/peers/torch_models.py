"""Gradients of the array models by PyTorch: eager, 64 bits, one thread. Its loops of short rounds take
seconds, so the models by loops over numbers are left out."""

try:
    import torch
except ImportError:
    print("NOT INSTALLED")
    raise SystemExit(0)

from exchange import answer, read

torch.set_num_threads(1)


def mlp(params, inputs):
    h1 = torch.relu(inputs["x"] @ params["W1"] + params["b1"])
    h2 = torch.relu(h1 @ params["W2"] + params["b2"])
    logits = h2 @ params["W3"] + params["b3"]
    batch, classes = logits.shape
    norm = torch.logsumexp(logits, 1)
    chosen = logits[torch.arange(batch), torch.arange(batch) % classes]
    return (norm.sum() - chosen.sum()) / batch


def burgers(params, _):
    disturbance = params["disturbance"]
    n = disturbance.shape[0]
    # Integers times a number of Python would be in single precision.
    angle = torch.arange(n, dtype=torch.float64) * (2 * torch.pi / n)
    u = 1 + torch.sin(angle) / 2 + torch.cos(3 * angle) / 4 + disturbance
    for _ in range(1000):
        right, left = torch.roll(u, -1), torch.roll(u, 1)
        u = u - 0.1 * u * (right - left) + 0.2 * (right - 2 * u + left)
    return (u**2).sum()


def gmm(params, inputs):
    alphas, means, icf, x = params["alphas"], params["means"], params["icf"], inputs["x"]
    n, d = x.shape
    components = alphas.shape[0]
    logs = icf[:, :d]
    columns, rows = torch.triu_indices(d, d, 1)
    factors = torch.diag_embed(torch.exp(logs))
    lower = torch.zeros(components, d, d, dtype=torch.float64)
    lower[:, rows, columns] = icf[:, d:]
    factors = factors + lower
    scaled = torch.einsum("kij,nkj->nki", factors, x[:, None, :] - means[None, :, :])
    terms = alphas + logs.sum(1) - 0.5 * (scaled**2).sum(2)
    mixed = torch.logsumexp(terms, 1)
    return mixed.sum() - n * torch.logsumexp(alphas, 0) + 0.5 * (factors**2).sum()


def lstm(params, inputs):
    w, u, b, v, x = params["W"], params["U"], params["b"], params["V"], inputs["x"]
    h = b.shape[0] // 4
    hidden = cell = torch.zeros(h, dtype=torch.float64)
    error = 0.0
    for t in range(x.shape[0] - 1):
        z = w @ x[t] + u @ hidden + b
        forget, taken, given = (torch.sigmoid(z[k * h : (k + 1) * h]) for k in range(3))
        cell = cell * forget + taken * torch.tanh(z[3 * h :])
        hidden = given * torch.tanh(cell)
        miss = v @ hidden - x[t + 1]
        error = error + torch.dot(miss, miss)
    return error / (x.shape[0] - 1)


mlp784 = mlp


model, params, inputs = read()
if model not in globals():
    print("NO MODEL")
    raise SystemExit(0)
params = {name: torch.tensor(data, requires_grad=True) for name, data in params.items()}
inputs = {name: torch.tensor(data) for name, data in inputs.items()}


def call():
    value = globals()[model](params, inputs)
    gradients = torch.autograd.grad(value, list(params.values()))
    return [value.detach(), *(g.numpy() for g in gradients)]


answer("torch", call)
