"""tinygrad's Tensor.scaled_dot_product_attention on a CPU:
attest check --kernel 'exec:python3 tinygrad_kernels.py PATH' --timeout 60s

clang  compiled from C by clang, tinygrad's default
llvm   compiled from LLVM's IR by libLLVM
x86    by tinygrad's own code generator for x86-64

The path is the code generator that DEV names. tinygrad compiles each shape when it first comes, in a second or more,
on a busy machine in more than the 10 s that a reply has; what it compiled is kept in this process alone. clang is that
of the environment which recipe.sh made, where there is one.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

GENERATORS = {"clang": "CLANG", "llvm": "LLVM", "x86": "X86"}
if len(sys.argv) != 2 or sys.argv[1] not in GENERATORS:
    sys.exit(f"usage: tinygrad_kernels.py {'|'.join(GENERATORS)}")
PATH = sys.argv[1]
clang = os.path.join(os.path.dirname(sys.executable), "clang")
# tinygrad reads these when it is imported.
os.environ.update(DEV=f"CPU:{GENERATORS[PATH]}", CACHELEVEL="0")
if os.path.exists(clang):
    os.environ["CC"] = clang
try:
    import importlib.metadata

    import numpy
    from tinygrad import Tensor, dtypes

    (Tensor([1.0]) + 1).numpy()  # finds the compiler
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"tinygrad cannot be run by {sys.executable}: {type(error).__name__}: {error}")


def theirs(array):
    """A tensor of tinygrad, in memory as a caller's; the bits of bfloat16 as numbers."""
    tensor = Tensor(numpy.ascontiguousarray(array))
    return (tensor.bitcast(dtypes.bfloat16) if array.dtype == numpy.uint16 else tensor).contiguous().realize()


def ours(tensor):
    tensor = tensor.contiguous().realize()
    return (tensor.bitcast(dtypes.uint16) if tensor.dtype == dtypes.bfloat16 else tensor).numpy()


def attention(q, k, v, mask=None, causal="none"):
    grouped = k.shape[1] != q.shape[1]
    q, k, v = theirs(q), theirs(k), theirs(v)
    mask = None if mask is None else theirs(mask)
    return ours(q.scaled_dot_product_attention(k, v, mask, is_causal=causal == "top-left", enable_gqa=grouped))


# mixin/rand.py and mixin/op.py: q·k is summed in float32 at least, divided by the root of dk, and has the mask added
# there; then it has the dtype of q, in which the softmax takes the exponential and multiplies by the reciprocal of the
# sum before the weights meet V. exp is 2 to the power of x times log2 e, in float32. Sums of 16 bits are float32. Where
# float16 is emulated, as over LLVM, "denormals are zero!" (codegen/decomp/dtype.py).
whole = {"prescaled_q": None, "normalise_first": True, "split_merge": False, "folded_exp2": False, "block": 0,
         "bias_in_sum": False, "weights_in_denominator": False}  # fmt: skip


emulated = {"flushes_subnormals": True, "flushes_inputs": True} if PATH == "llvm" else {}


def half(dtype):
    return {**whole, "score_sums": "f32", "accumulate": "f32", "stored": {"biased": dtype}, "weights": dtype,
            "weights_in_denominator": True}  # fmt: skip


# A boolean mask becomes one of 0 and -inf.
manifest = {
    "name": f"tinygrad scaled_dot_product_attention, {PATH}", "version": importlib.metadata.version("tinygrad"),
    "dtypes": ["f64", "f32", "f16", "bf16"],
    "arithmetic": {"f64": whole, "f32": whole, "f16": {**half("f16"), **emulated}, "bf16": half("bf16")},
    "scale": "inv-sqrt-dk", "causal": ["top-left"], "excludes": [["mask", "causal"]], "grouped_query": True,
}  # fmt: skip

if __name__ == "__main__":
    attest_adapter.serve(attention, manifest, bf16="bits")
