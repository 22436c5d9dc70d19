"""MLX's attention on a CPU as kernels under test:  attest check --kernel 'exec:python3 mlx_kernels.py PATH'

fast       mx.fast.scaled_dot_product_attention, of which MLX has one path on a CPU (the fused kernels are for GPUs)
fast-f16   the same in float16
fast-bf16  the same in bfloat16: MLX takes no sinks of a wider dtype than q's, and a manifest names theirs once for all
mha        mlx.nn.MultiHeadAttention, which projects and then calls the same function

bfloat16 goes in and out as its bits.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import mlx.core as mx
    import mlx.nn
    import numpy
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"MLX cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def theirs(array):
    """An array of MLX; the bits of bfloat16 as numbers."""
    if array.dtype == numpy.uint16:
        return mx.array(array).view(mx.bfloat16)
    return mx.array(array, dtype=mx.float64 if array.dtype == numpy.float64 else None)


def ours(array):
    return numpy.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array)


def attention(q, k, v, mask=None, scale=1.0, causal="none", sink=None):
    q, k, v = theirs(q), theirs(k), theirs(v)
    mask = "causal" if causal == "bottom-right" else None if mask is None else theirs(mask)
    sink = None if sink is None else theirs(sink)
    return ours(mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask, sinks=sink))


@functools.lru_cache(maxsize=256)
def module(dims, heads, c_q, c_k, c_v, value_dims, c_out, bias):
    return mlx.nn.MultiHeadAttention(dims, heads, c_q, c_k, c_v, value_dims, c_out, bias)


def multihead(q, k, v, w_q, w_k, w_v, heads=1, b_q=None, b_k=None, b_v=None, w_o=None, b_o=None, mask=None):
    biases = (b_q, b_k, b_v, b_o)
    has_bias = any(bias is not None for bias in biases)
    own = module(w_q.shape[1], heads, w_q.shape[0], w_k.shape[0], w_v.shape[0], w_v.shape[1], w_o.shape[1], has_bias)
    layers = (own.query_proj, own.key_proj, own.value_proj, own.out_proj)
    for layer, weight, bias in zip(layers, (w_q, w_k, w_v, w_o), biases):
        layer.weight = theirs(weight).T
        if has_bias:  # one that is missing beside one that is there is zero, which adds nothing
            layer.bias = theirs(numpy.zeros(weight.shape[1], weight.dtype) if bias is None else bias)
    return ours(own(theirs(q), theirs(k), theirs(v), None if mask is None else theirs(mask)))


# fast.cpp: q is scaled in its dtype, the products of matrices and the sum with a mask are tensors of that dtype, and so
# are the weights, which softmax.cpp normalises in float32 by the reciprocal of their sum, before they are rounded. It
# finds the maximum first. exp (simd/math.h) is 2 to the power of the difference times log2 e, by a polynomial. Sums of
# 16 bits are float32 (simd_gemm.h); others are in the order of the BLAS.
whole = {"normalise_first": True, "split_merge": False, "folded_exp2": False, "block": 0, "division_roundings": 2,
         "bias_in_sum": False, "weights_in_denominator": False}  # fmt: skip


def half(dtype):
    return {**whole, "prescaled_q": dtype, "stored": {"scaled": dtype, "biased": dtype}, "weights": dtype,
            "score_sums": "f32", "accumulate": "f32"}  # fmt: skip


# "The softmax operation is performed in float32 regardless of the input precision", says the documentation: of float64,
# too.
arithmetic = {"f64": {**whole, "score_sums": "f32"}, "f32": whole, "f16": half("f16"), "bf16": half("bf16")}


def fast(dtypes, narrower, pairs=()):
    """The manifest for these dtypes of q, with the narrower ones that k, v and a mask may have beside it."""
    return {
        "name": "mx.fast.scaled_dot_product_attention", "version": mx.__version__, "dtypes": dtypes,
        "arithmetic": {dtype: arithmetic[dtype] for dtype in dtypes}, "causal": ["bottom-right"],
        "excludes": [["mask", "causal"]], "grouped_query": True, "mask_dtypes": narrower,
        "kv_dtypes": {dtypes[-1]: [dtypes[-1], *narrower, *pairs]}, "variants": {"sink": {"dtypes": [dtypes[-1]]}},
    }  # fmt: skip


# A boolean mask and the causal form put a finite number in the place of a score, so that a row without a visible key
# is uniform under them and NaN under an additive mask: no one policy to declare.
manifests = {
    "fast": fast(["f64", "f32"], ["f16", "bf16"], [["f16", "bf16"]]),
    "fast-f16": fast(["f16"], []),
    "fast-bf16": fast(["bf16"], []),
    "mha": {
        "name": "mlx.nn.MultiHeadAttention", "version": mx.__version__, "dtypes": list(arithmetic),
        "arithmetic": arithmetic, "operations": ["multihead"], "scale": "inv-sqrt-dk",
        "requires": ["output-projection"], "excludes": [["bias-kv"]],
    },
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:] not in [[path] for path in manifests]:
        sys.exit(f"usage: mlx_kernels.py {'|'.join(manifests)}")
    path = sys.argv[1]
    mx.set_default_device(mx.cpu)
    functions = {"function": attention} if path != "mha" else {"multihead": multihead}
    attest_adapter.serve(manifest=manifests[path], bf16="bits", **functions)
