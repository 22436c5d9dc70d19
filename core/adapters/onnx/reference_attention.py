"""The reference implementation of ONNX's operator Attention, in NumPy:  reference_attention.py PATH

    attest check --kernel 'exec:python3 reference_attention.py no-cache'

no-cache        all keys are an input, and positions are counted from the first one: top-left
internal-cache  all keys but the last M come as past_key and past_value, and the past is as long as it: bottom-right
external-cache  nonpad_kv_seqlen says how many keys an entry has, and positions are counted from the last: bottom-right

The path is what inputs the operator has. What is called is _compute_attention of onnx/reference/ops/op_attention.py, as
the ReferenceEvaluator calls it for a node of opset 25.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import ml_dtypes
    import numpy
    import onnx
    from onnx.reference.ops import op_attention
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"onnx cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def theirs(array):
    """The bits of bfloat16 as numbers."""
    return array.view(ml_dtypes.bfloat16) if array is not None and array.dtype == numpy.uint16 else array


def run(q, k, v, mask, scale, causal, window_left, window_right, softcap, **cache):
    # The type of the softmax is an attribute. None leaves it as it is; 16 bits have float32 here.
    precision = onnx.TensorProto.FLOAT if q.itemsize == 2 else None
    out = op_attention._compute_attention(
        *map(theirs, (q, k, v, mask)), scale=scale, is_causal=int(causal != "none"), softcap=softcap,
        softmax_precision=precision, left_window_size=window_left, right_window_size=window_right,
        **{name: theirs(array) for name, array in cache.items()})[0]  # fmt: skip
    return out.view(numpy.uint16) if out.dtype == ml_dtypes.bfloat16 else out


def no_cache(q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, alignment=None,
             softcap=0.0):  # fmt: skip
    return run(q, k, v, mask, scale, causal, window_left, window_right, softcap)


def internal_cache(q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, alignment=None,
                   softcap=0.0):  # fmt: skip
    past = k.shape[2] - q.shape[2]
    return run(q, k[:, :, past:], v[:, :, past:], mask, scale, causal, window_left, window_right, softcap,
               past_key=k[:, :, :past], past_value=v[:, :, :past])  # fmt: skip


def external_cache(q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, alignment=None,
                   softcap=0.0, kv_lengths=None):  # fmt: skip
    lengths = numpy.full(q.shape[0], k.shape[2]) if kv_lengths is None else kv_lengths
    return run(q, k, v, mask, scale, causal, window_left, window_right, softcap,
               nonpad_kv_seqlen=lengths.astype(numpy.int64))  # fmt: skip


FUNCTIONS = {"no-cache": no_cache, "internal-cache": internal_cache, "external-cache": external_cache}

# q and k are each multiplied by the root of the scale, in their own dtype, as the operator's description has it: that
# is a rounding of the root and of the product for both, of which prescaled_q says those of q. No key says those of k;
# base 2, which is left unstated, has room for them. A subnormal k times a root may be lost. The softmax of whole rows
# divides by its sum before v is met.
WHOLE_ROWS = {"split_merge": False, "normalise_first": True, "block": 0, "bias_in_sum": False, "division_roundings": 1,
              "flushes_inputs": True}  # fmt: skip
# NumPy sums products of float16 in float32, and its bfloat16 is that of ml_dtypes. Each step is an array of the dtype,
# the cap's too; the softmax is float32, and its weights are rounded once they are normalised.
HALF = {"score_sums": "f32", "accumulate": "f32", "weights_in_denominator": False}


def arithmetic_of(dtype):
    if dtype in ("f64", "f32"):
        return {**WHOLE_ROWS, "prescaled_q": dtype}
    stored = dict.fromkeys(("raw", "scaled", "capped", "biased"), dtype)
    return {**WHOLE_ROWS, **HALF, "prescaled_q": dtype, "stored": stored, "weights": dtype}


def manifest_of(path):
    at = "top-left" if path == "no-cache" else "bottom-right"
    dtypes = ["f64", "f32", "f16", "bf16"]
    variants = {"window": {"alignment": [at]}, "softcap": {}}
    if path == "external-cache":
        variants["lengths"] = {"queries": False}
    return {
        "name": f"ONNX reference Attention, {path}", "version": onnx.__version__, "dtypes": dtypes,
        "arithmetic": {dtype: arithmetic_of(dtype) for dtype in dtypes}, "claims": ["deterministic"],
        "masks": ["additive", "bool"], "mask_conventions": ["post-scale"], "causal": [at], "grouped_query": True,
        "variants": variants, "fully_masked_row": "zero",
        # The row's maximum is asked of no number where there are no keys. A past is not less than none.
        "limits": {"min_keys": 1}, "excludes": [["fewer-keys"]] if path == "internal-cache" else [],
    }  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FUNCTIONS:
        sys.exit(f"usage: reference_attention.py {'|'.join(FUNCTIONS)}")
    attest_adapter.serve(FUNCTIONS[sys.argv[1]], manifest_of(sys.argv[1]), bf16="bits")
