"""Keeps answers by the sizes of the arrays and their identity, which the next arrays may have again.
Stands for: a cache by object identity (gpu-mode/reference-kernels, pull request 102).
Caught by: a repeated shape with other data."""

import attest_adapter
from honest import attention, manifest

CACHE = {}


def cheat(q, k, v, mask=None, scale=1.0, causal="none"):
    key = (id(q), id(k), id(v), q.shape, k.shape, v.shape, mask is None, scale, causal)
    if key not in CACHE:
        CACHE[key] = attention(q, k, v, mask, scale, causal)
    return CACHE[key]


attest_adapter.serve(cheat, manifest("py-cached-by-id"))
