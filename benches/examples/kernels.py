"""What `kernels.rs` measures, by numpy on one thread: `python3 kernels.py`."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time

import numpy as np


def fastest(call):
    call()
    start = time.perf_counter()
    call()
    calls = max(1, min(100_000, int(2e-3 / max(time.perf_counter() - start, 1e-7))))
    best = float("inf")
    for _ in range(40):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


print("ns per element:")
for n in [3, 16, 100, 1000, 1_000_000]:
    a, b = np.random.rand(n), np.random.rand(n)
    sum_, dot = (fastest(call) * 1e9 / n for call in (lambda: a.sum(), lambda: a @ b))
    lines = a.reshape(100, -1) if n % 100 == 0 else None
    over = "" if lines is None else f", over 100 lines {fastest(lambda: lines.sum(0)) * 1e9 / n:.3f}"
    print(f"  {n}: sum {sum_:.3f}, dot product {dot:.3f}{over}")

print("GFlop/s (ns) of products, the factors by rows or by columns:")
squares = [[n] * 3 for n in [3, 8, 16, 64, 128, 256, 1000]]
for m, k, n in squares + [[1024, 64, 128], [64, 1024, 128], [1, 256, 256], [256, 1, 256], [1024, 10, 10]]:
    c, found = np.zeros((m, n)), []
    for a_by_rows, b_by_rows in [(True, True), (False, True), (True, False), (False, False)]:
        a = np.random.rand(m, k) if a_by_rows else np.random.rand(k, m).T
        b = np.random.rand(k, n) if b_by_rows else np.random.rand(n, k).T
        seconds = fastest(lambda: np.matmul(a, b, out=c))
        found.append(f"{2e-9 * m * k * n / seconds:.1f} ({seconds * 1e9:.0f})")
    print(f"  {m} by {k} by {n}: ", "  ".join(found))

print("of a matrix, by rows or by columns, and a vector:")
for n in [3, 8, 16, 64, 256, 1000]:
    x, y, found = np.random.rand(n), np.zeros(n), []
    for a in [np.random.rand(n, n), np.random.rand(n, n).T]:
        seconds = fastest(lambda: np.matmul(a, x, out=y))
        found.append(f"{2e-9 * n * n / seconds:.1f} ({seconds * 1e9:.0f})")
    print(f"  {n} by {n}: ", "  ".join(found))
