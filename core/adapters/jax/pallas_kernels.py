"""The attention that JAX ships in Pallas, as kernels under test without a GPU or TPU:  pallas_kernels.py gpu | tpu

gpu    jax.experimental.pallas.ops.gpu.attention.mha, with interpret=True
tpu    jax.experimental.pallas.ops.tpu.flash_attention.flash_attention, in force_tpu_interpret_mode

    attest check --kernel 'exec:python3 pallas_kernels.py gpu' --dtype f32 --property attention.oracle --cases 60

Interpreted, a kernel is a program of XLA's for a CPU: what holds here is its algorithm, not the arithmetic of the device
that it was written for. Each shape is compiled when it first comes, in half a second and more, so that the manifests take
few of them.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import jax
    from attest._calls import Jax
    from jax.experimental.pallas import tpu
    from jax.experimental.pallas.ops.gpu import attention as gpu_attention
    from jax.experimental.pallas.ops.tpu import flash_attention as tpu_attention
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"JAX's Pallas cannot be imported by {sys.executable}: {type(error).__name__}: {error}")

TILE = 16


@functools.partial(jax.jit, static_argnames=("scale", "causal"))
def on_gpu(q, k, v, scale, causal):
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    sizes = gpu_attention.BlockSizes(block_q=TILE, block_k=TILE)
    out = gpu_attention.mha(q, k, v, None, scale, causal, block_sizes=sizes, interpret=True)
    return out.swapaxes(1, 2)


@functools.partial(jax.jit, static_argnames=("scale", "causal"))
def on_tpu(q, k, v, bias, scale, causal):
    sizes = tpu_attention.BlockSizes(block_q=TILE, block_k_major=TILE, block_k=TILE, block_b=1)
    with tpu.force_tpu_interpret_mode():
        return tpu_attention.flash_attention(q, k, v, bias, causal=causal, sm_scale=scale, block_sizes=sizes)


def gpu(q, k, v, scale=1.0, causal="none"):
    q, k, v = (Jax.there(x) for x in (q, k, v))
    return Jax.back(on_gpu(q, k, v, scale, causal == "top-left"))


def pallas_tpu(q, k, v, mask=None, scale=1.0, causal="none", mask_convention="pre-scale"):
    if mask is not None:
        mask = jax.numpy.broadcast_to(Jax.there(mask), (*q.shape[:3], k.shape[2]))
    q, k, v = (Jax.there(x) for x in (q, k, v))
    return Jax.back(on_tpu(q, k, v, mask, scale, causal == "top-left"))


# XLA's programs for a CPU flush subnormal numbers, read or made.
FLUSHES = {"flushes_subnormals": True, "flushes_inputs": True}
COMMON = {
    "version": jax.__version__, "arithmetic": FLUSHES,
    "causal": ["top-left"], "mask_conventions": ["post-scale"], "claims": ["deterministic"],
    # Sums in f32; hidden scores are a large finite number, so that a row without a visible key is no policy's.
    "limits": {"head_dims": [16], "value_dim": "head_dim", "min_queries": TILE, "min_keys": TILE,
               "queries_multiple": TILE, "keys_multiple": TILE, "max_queries": 2 * TILE, "max_keys": 2 * TILE,
               "max_heads": 2},
    "tiles": {"queries": [TILE], "keys": [TILE]},
}  # fmt: skip
KERNELS = {
    "gpu": (gpu, {**COMMON, "name": "Pallas' mha for GPUs, interpreted", "dtypes": ["f32", "f16", "bf16"], "masks": []}),
    "tpu": (pallas_tpu, {**COMMON, "name": "Pallas' flash_attention for TPUs, interpreted", "dtypes": ["f32", "bf16"],
                         "masks": ["additive"],
                         # The bias is added to q.k, and the sum multiplied by the scale.
                         "mask_conventions": ["pre-scale"],
                         # Of several tiles of keys it wants 128 in each.
                         "limits": {**COMMON["limits"], "max_keys": TILE}}),
}  # fmt: skip


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in KERNELS:
        sys.exit(f"pallas_kernels.py: the kernel is {name!r}; it must be one of {', '.join(KERNELS)}")
    jax.config.update("jax_platforms", "cpu")
    attest_adapter.serve(*KERNELS[name], bf16="bits")
