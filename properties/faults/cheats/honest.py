"""An honest forward pass of attention over NumPy's arrays, which the cheats in Python begin with."""

import numpy

MANIFEST = {
    "dtypes": ["f32"],
    "causal": ["top-left", "bottom-right"],
    "masks": ["bool", "additive"],
    "grouped_query": True,
    "fully_masked_row": "zero",
    "claims": ["deterministic"],
}


def manifest(name):
    return {"name": name, **MANIFEST}


def attention(q, k, v, mask=None, scale=1.0, causal="none"):
    group = q.shape[1] // k.shape[1]
    k, v = (numpy.repeat(x, group, axis=1).astype(numpy.float64) for x in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scores = (q.astype(numpy.float64) @ k.swapaxes(-1, -2)) * scale
    hidden = numpy.zeros(scores.shape, bool)
    if mask is not None and mask.dtype == bool:
        hidden |= ~mask
    elif mask is not None:
        hidden |= mask == -numpy.inf
        scores = scores + mask
    if causal != "none":
        last = keys - queries if causal == "bottom-right" else 0
        hidden |= ~numpy.tri(queries, keys, last, dtype=bool)
    scores = numpy.where(hidden, -numpy.inf, scores)
    largest = scores.max(axis=-1, keepdims=True, initial=-numpy.inf)
    weights = numpy.exp(scores - numpy.where(numpy.isinf(largest), 0, largest))
    sums = weights.sum(axis=-1, keepdims=True)
    # A value that no row sees may be NaN, which 0 times it is too.
    seen = numpy.where((~hidden).any(axis=2)[..., None], v, 0)
    return (weights @ seen / numpy.where(sums == 0, 1, sums)).astype(q.dtype)
