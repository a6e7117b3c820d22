"""Reads the inputs that the bench wrote, times a call, writes the answer."""

import os
import sys
import time

import numpy


def read():
    """The model's name, its params and its other inputs, by name."""
    model, folder = sys.argv[1], sys.argv[2]
    params, inputs = {}, {}
    for line in open(os.path.join(folder, "inputs.txt")):
        name, role, shape = line.rstrip("\n").split(" ")
        shape = [int(n) for n in shape.split(",") if n]
        data = numpy.fromfile(os.path.join(folder, name)).reshape(shape)
        (params if role == "param" else inputs)[name] = data
    return model, params, inputs


def peak_mib():
    """Of this process; `getrusage` gives that of the process that started it, if that is larger."""
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024


def answer(system, call):
    """`call` gives a list of numbers and arrays, of which the first number is the value, and waits for them."""
    start = time.perf_counter()
    results = call()
    first = time.perf_counter() - start
    best, begin, calls = float("inf"), time.perf_counter(), 0
    while calls < 3 or (time.perf_counter() - begin < 3 and calls < 2000):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        calls += 1
    peak = peak_mib()
    flat = numpy.concatenate([numpy.asarray(r, dtype=numpy.float64).reshape(-1) for r in results])
    flat.tofile(os.path.join(sys.argv[2], system + ".results"))
    print("RESULT", best * 1e3, first * 1e3, peak)
