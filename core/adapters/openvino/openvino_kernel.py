"""OpenVINO's ScaledDotProductAttention (opset 13) on a CPU:  attest check --kernel 'exec:python3 openvino_kernel.py'

A model of the one operator is compiled for each kind of case, with all sizes left open; inference is asked for in f32,
which a processor with bf16 else computes in that.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import numpy
    import openvino
    from openvino import opset13
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"OpenVINO cannot be imported by {sys.executable}: {type(error).__name__}: {error}")

CORE = openvino.Core()


@functools.lru_cache(maxsize=None)
def compiled(mask, dtype, causal):
    """Of one operator; `mask` is its dtype, None for none."""
    q, k, v = (opset13.parameter([-1, -1, -1, -1], dtype) for _ in range(3))
    scale = opset13.parameter([], dtype)
    masks = [opset13.parameter([-1, -1, -1, -1], mask)] if mask is not None else []
    # Without a mask there is no scale: it comes behind it. One zero says nothing.
    there = masks[0] if masks else opset13.constant(numpy.zeros((), dtype))
    node = opset13.scaled_dot_product_attention(q, k, v, there, scale, causal=causal)
    model = openvino.Model([node], [q, k, v, scale, *masks])
    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    return CORE.compile_model(model, "CPU", hints)


def attention(q, k, v, mask=None, scale=1.0, causal="none"):
    kind = None if mask is None else mask.dtype
    model = compiled(kind, q.dtype, causal == "top-left")
    inputs = [q, k, v, numpy.array(scale, q.dtype)] + ([] if mask is None else [mask])
    return model(inputs)[0].copy()


manifest = {
    "name": "OpenVINO ScaledDotProductAttention", "version": openvino.__version__.split("-")[0], "dtypes": ["f32"],
    "masks": ["additive", "bool"], "mask_conventions": ["post-scale"], "causal": ["top-left"],
    "fully_masked_row": "nan", "limits": {"min_queries": 1, "min_keys": 1}, "excludes": [["mask", "causal"]],
}  # fmt: skip

if __name__ == "__main__":
    attest_adapter.serve(attention, manifest)
