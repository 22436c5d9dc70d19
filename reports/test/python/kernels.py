"""Kernels of tests, right ones, and wrong ones by a factor of the scale."""

import numpy

MANIFEST = {"fully_masked_row": "nan"}


def made(factor=1.0):
    """A function of attest_adapter.py's contract on NumPy."""

    def mine(q, k, v, mask=None, scale=1.0):
        with numpy.errstate(all="ignore"):
            scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale * factor)
            if mask is not None:
                scores = numpy.where(mask, scores, -numpy.inf) if mask.dtype == bool else scores + mask
            weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf))
            return weights @ v / weights.sum(axis=-1, keepdims=True)

    return mine
