"""attention.key-value-permutation as one would test it with Hypothesis, NumPy and mpmath: prints cases a second.

Shapes up to 8, a kernel in float32, both sides held to the exact value (mpmath, 170 bits) within a fixed tolerance.
"""
import time

import mpmath
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

mpmath.mp.prec = 170
CASES = 300
extent = st.integers(1, 8)


@st.composite
def cases(draw):
    m, n, dk, dv = (draw(extent) for _ in range(4))
    floats = st.floats(-8, 8, width=32)
    tensors = [draw(hnp.arrays(np.float32, shape, elements=floats)) for shape in ((m, dk), (n, dk), (n, dv))]
    return tensors, draw(st.permutations(range(n)))


def kernel(q, k, v):
    s = (q @ k.T) * np.float32(1 / np.sqrt(q.shape[1]))
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p @ v) / p.sum(axis=1, keepdims=True)


def exact(q, k, v):
    scale = 1 / mpmath.sqrt(q.shape[1])
    rows = []
    for i in range(q.shape[0]):
        s = [scale * mpmath.fdot(zip(map(float, q[i]), map(float, key))) for key in k]
        w = [mpmath.exp(x) for x in s]
        total = mpmath.fsum(w)
        rows.append([mpmath.fdot(zip(w, map(float, v[:, c]))) / total for c in range(v.shape[1])])
    return rows


def holds(out, want):
    return all(abs(float(out[i, c]) - x) <= 1e-4 * (1 + abs(x)) for i, row in enumerate(want) for c, x in enumerate(row))


count = 0


@settings(max_examples=CASES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def key_value_permutation(case):
    global count
    count += 1
    (q, k, v), order = case
    want = exact(q, k, v)
    assert holds(kernel(q, k, v), want)
    assert holds(kernel(q, k[order], v[order]), exact(q, k[order], v[order]))


start = time.process_time()
key_value_permutation()
print(count / (time.process_time() - start))
