# A kernel under test: put yours into attention(), and say in the manifest what is true of it. attest.sh checks it.
# What a manifest may say: core/kernel-interface.md of Attest, section 3.
import attest_adapter
import numpy


def attention(q, k, v, mask=None, scale=1.0, causal="none"):
    """softmax(scale q k^T) v for q [batch, heads, queries, dim], k [batch, heads, keys, dim], v [batch, heads, keys,
    value_dim] and a mask [batch or 1, heads or 1, queries, keys]: bool, True where a key is seen, or added to scores.
    causal is a word, "none" or one of the manifest's: query i sees the keys up to the i-th alone, on top of the mask."""
    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)
    if mask is not None:
        scores = numpy.where(mask, scores, -numpy.inf) if mask.dtype == bool else scores + mask
    if causal == "top-left":
        scores = numpy.where(numpy.tri(*scores.shape[-2:], dtype=bool), scores, -numpy.inf)
    # initial: there may be no key at all.
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


# Unsaid: as many heads in k and v as in q, and arithmetic as loose as a right kernel may have; the more
# is declared, the sharper the check.
manifest = {
    "name": "mine",
    "dtypes": ["f32"],              # of q, k, v and the result: f64, f32, f16, bf16
    "causal": ["top-left"],         # that it takes: top-left, bottom-right; [] for none
    "masks": ["bool", "additive"],  # that it takes; [] for none
    "fully_masked_row": "nan",      # where a query sees no key: nan, zero, uniform or error
    "arithmetic": {"exp_ulp": 3},   # numpy.exp on some processors
}
# framework="torch": tensors of PyTorch instead of NumPy's arrays.
attest_adapter.serve(attention, manifest)
