"""Flax's dot_product_attention as JAX compiles it for a CPU:  flax_kernels.py PATH

    attest check --kernel 'exec:python3 flax_kernels.py linen' --timeout 60s

linen  flax.linen.dot_product_attention
nnx    flax.nnx.dot_product_attention, its own operations: given a module, in which it leaves the weights. Without one
       it calls jax.nn.dot_product_attention, which core/adapters/jax has

Under jit each shape is compiled when it first comes, in a quarter of a second and more.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import flax
    import jax
    import ml_dtypes
    import numpy
    from flax import linen, nnx
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"Flax cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


class Holder(nnx.Module):
    """Of the weights that nnx.dot_product_attention leaves in the module that it is given."""


@jax.jit
def by_linen(q, k, v, bias, mask):
    return linen.dot_product_attention(q, k, v, bias, mask)


@functools.partial(jax.jit, static_argnames="is_causal")
def by_nnx(q, k, v, bias, mask, is_causal):
    return nnx.dot_product_attention(q, k, v, bias, mask, is_causal=is_causal, module=Holder())


def numbers(array):
    """The bits of bfloat16 as numbers."""
    return array.view(ml_dtypes.bfloat16) if array is not None and array.dtype == numpy.uint16 else array


def token_major(array):
    return numbers(array).swapaxes(1, 2)


def answered(function, q, k, v, mask, **options):
    hidden, bias = (mask, None) if mask is None or mask.dtype == bool else (None, numbers(mask))
    try:
        out = numpy.asarray(function(token_major(q), token_major(k), token_major(v), bias, hidden, **options))
    except Exception as error:
        # XLA has no product of some shapes and formats for a CPU.
        if "not supported" in str(error):
            raise attest_adapter.Unsupported(str(error).split("\n")[0]) from error
        raise
    out = out.swapaxes(1, 2)
    return out.view(numpy.uint16) if out.dtype == ml_dtypes.bfloat16 else out


def linen_attention(q, k, v, mask=None):
    return answered(by_linen, q, k, v, mask)


def nnx_attention(q, k, v, mask=None, causal="none"):
    return answered(by_nnx, q, k, v, mask, is_causal=causal == "top-left")


FUNCTIONS = {"linen": linen_attention, "nnx": nnx_attention}

# q is divided by the root of dk in its own dtype, in which the softmax of whole rows is computed, too, as the
# description of linen's force_fp32_for_softmax says: of 16 bits the score less the maximum, its exponential, the sum of
# these, which is rounded once, and the quotient. A boolean mask and nnx's causal form put the lowest number in the
# place of a score, so that a row without a visible key is uniform under them, and NaN under an additive mask: no one
# policy to declare. XLA's programs for a CPU flush subnormal numbers, read or made.
WHOLE_ROWS = {"base2": False, "split_merge": False, "normalise_first": True, "block": 0, "bias_in_sum": False,
              "flushes_subnormals": True, "flushes_inputs": True}  # fmt: skip


def arithmetic_of(dtype):
    if dtype == "f32":
        return {**WHOLE_ROWS, "prescaled_q": "f32"}
    return {**WHOLE_ROWS, "prescaled_q": dtype, "score_sums": dtype, "accumulate": dtype, "summation_depth": 1,
            "weights": dtype, "stored": {"raw": dtype, "biased": dtype}}  # fmt: skip


def manifest_of(path):
    dtypes = ["f32", "f16", "bf16"]
    return {
        "name": f"flax.{path}.dot_product_attention", "version": flax.__version__, "dtypes": dtypes,
        "arithmetic": {dtype: arithmetic_of(dtype) for dtype in dtypes}, "claims": ["deterministic"],
        "masks": ["additive", "bool"], "mask_conventions": ["post-scale"], "scale": "inv-sqrt-dk",
        "causal": ["top-left"] if path == "nnx" else [], "grouped_query": path == "nnx",
        "limits": {"min_keys": 1},  # there is no maximum of no scores
    }  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FUNCTIONS:
        sys.exit(f"usage: flax_kernels.py {'|'.join(FUNCTIONS)}")
    jax.config.update("jax_platforms", "cpu")
    attest_adapter.serve(FUNCTIONS[sys.argv[1]], manifest_of(sys.argv[1]), bf16="bits")
