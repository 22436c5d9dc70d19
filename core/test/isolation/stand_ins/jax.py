"""What jax_kernel.py needs of JAX, in numpy: shows how the adapter calls JAX, not what JAX computes."""

import types

import numpy

__version__ = "0"
config = types.SimpleNamespace(update=lambda name, value: None)


def jit(function, static_argnames=()):
    return function


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False,
                          query_seq_lengths=None, key_value_seq_lengths=None, local_window_size=None):
    """[batch, tokens, heads, width], as JAX's documentation has it; key and value may have fewer heads."""
    groups = query.shape[2] // key.shape[2]
    key, value = key.repeat(groups, axis=2), value.repeat(groups, axis=2)
    scores = numpy.einsum("btnh,bsnh->bnts", query, key) * scale
    scores = scores if bias is None else scores + bias
    visible = numpy.tril(numpy.ones(scores.shape[-2:], bool)) if is_causal else True
    visible = visible if mask is None else visible & mask
    if local_window_size is not None:
        rows, keys = numpy.indices(scores.shape[-2:])
        left, right = local_window_size
        visible = visible & (keys >= rows - left) & (keys <= rows + right)
    if key_value_seq_lengths is not None:
        visible = visible & (numpy.arange(scores.shape[-1]) < key_value_seq_lengths[:, None, None, None])
    scores = numpy.where(visible, scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    out = numpy.einsum("bnts,bsnh->btnh", weights, value)
    if query_seq_lengths is not None:
        out[numpy.arange(out.shape[1]) >= query_seq_lengths[:, None]] = 0
    return out.astype(query.dtype)


nn = types.SimpleNamespace(dot_product_attention=dot_product_attention)
