"""A whole kernel under test: attest check --kernel 'exec:python3 numpy_example.py'."""

import attest_adapter
import numpy


def attention(q, k, v, mask=None, scale=1.0, window_left=-1, window_right=-1, attention_chunk=0, alignment=None):
    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)
    if mask is not None:
        scores = numpy.where(mask, scores, -numpy.inf) if mask.dtype == bool else scores + mask
    if alignment is not None:
        rows, keys = scores.shape[-2:]
        key = numpy.arange(keys)
        position = numpy.arange(rows)[:, None] + (keys - rows) * (alignment == "bottom-right")
        ahead = key - position
        outside = (window_left >= 0) & (ahead < -window_left) | (window_right >= 0) & (ahead > window_right)
        if attention_chunk:
            outside |= key // attention_chunk != position // attention_chunk
        scores = numpy.where(outside, -numpy.inf, scores)
    # initial: without any key the maximum is -inf, and the row 0/0, NaN as for a fully masked one.
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


# numpy's vectorised float32 exp is wrong by up to 2.52 ulp.
manifest = {"name": "numpy example", "fully_masked_row": "nan", "arithmetic": {"f32": {"exp_ulp": 3}}}
attest_adapter.serve(attention, manifest)
