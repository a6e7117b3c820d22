"""The product of matrices by numpy: OpenBLAS, one thread."""

import numpy
from exchange import answer, read

model, _, inputs = read()
if model != "product":
    print("NO MODEL")
    raise SystemExit(0)
answer("numpy", lambda: [inputs["a"] @ inputs["b"]])
