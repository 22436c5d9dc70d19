"""lucidrains' flash-attention-jax on a CPU:  flash_attention_jax_kernels.py PATH [--backward]

    attest check --kernel 'exec:python3 flash_attention_jax_kernels.py flash' --timeout 60s
    attest check --kernel 'exec:python3 flash_attention_jax_kernels.py causal --backward' --property 'backward.oracle*'

flash         flash_attention, by chunks of 1024 queries and 1024 keys; its mask of keys is made of lengths and padding
causal        causal_flash_attention, by the same chunks
plain         attention, the operations one after another, which the package has to compare with
plain-causal  causal_attention, likewise

With --backward flash and causal have gradients, by the two functions that jax.vjp calls in their place, the library's
own forward and backward pass. Of the former flash has its log-sum-exp, and causal none: what attest_adapter.py computes
says nothing about it. Each shape is compiled when it first comes, in a second and more.
"""

import argparse
import importlib
import importlib.metadata
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import flash_attention_jax
    import jax
    import numpy
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"its library cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def key_mask(k, kv_lengths, left_pad):
    """[batch, N], True where a key counts."""
    keys = numpy.arange(k.shape[2])
    ends = numpy.full(k.shape[0], k.shape[2]) if kv_lengths is None else kv_lengths
    begins = numpy.zeros(k.shape[0], numpy.int32) if left_pad is None else left_pad
    return (keys >= begins[:, None]) & (keys < ends[:, None])


def of_keys(function):
    def attention(q, k, v, kv_lengths=None, left_pad=None):
        return numpy.asarray(function(q, k, v, key_mask(k, kv_lengths, left_pad)))

    return attention


def causal_of(function):
    def attention(q, k, v, causal="bottom-right"):
        return numpy.asarray(function(q, k, v))

    return attention


def gradients(module, inputs, d_out, out):
    again, residuals = module.flash_attention_forward(*inputs)
    if not numpy.array_equal(again, out, equal_nan=True):
        raise attest_adapter.Unsupported("called again, it answers otherwise: its gradients are of another output")
    return tuple(map(numpy.asarray, module.flash_attention_backward(residuals, d_out)[:3]))


def flash_forward(q, k, v, kv_lengths=None, left_pad=None, want_lse=False):
    mask = key_mask(k, kv_lengths, left_pad)
    out, (*_, lse) = FLASH.flash_attention_forward(q, k, v, mask)
    # Of a row that sees no key it is -1000023, from where the maximum begins.
    lse = numpy.where(mask.any(-1)[:, None, None], numpy.asarray(lse, numpy.float64), -numpy.inf)
    return (numpy.asarray(out), lse) if want_lse else numpy.asarray(out)


def flash_backward(q, k, v, d_out, out, lse, kv_lengths=None, left_pad=None):
    return gradients(FLASH, (q, k, v, key_mask(k, kv_lengths, left_pad)), d_out, out)


def causal_forward(q, k, v, causal="bottom-right"):
    return numpy.asarray(CAUSAL.flash_attention_forward(q, k, v)[0])


def causal_backward(q, k, v, d_out, out, causal="bottom-right"):
    return gradients(CAUSAL, (q, k, v), d_out, out)


# The package's own attributes of these names are the functions.
FLASH = importlib.import_module("flash_attention_jax.flash_attention")
CAUSAL = importlib.import_module("flash_attention_jax.causal_flash_attention")
FORWARD = {
    "flash": of_keys(flash_attention_jax.flash_attention),
    "causal": causal_of(flash_attention_jax.causal_flash_attention),
    "plain": of_keys(flash_attention_jax.attention),
    "plain-causal": causal_of(flash_attention_jax.causal_attention),
}
WITH_GRADIENTS = {"flash": (flash_forward, flash_backward), "causal": (causal_forward, causal_backward)}

# q is scaled first. By chunks the output is kept normalised: what a chunk adds is multiplied by the reciprocal of the
# sum so far, and what was there by the quotient of the sums. XLA's programs for a CPU flush subnormal numbers, read or
# made.
SHARED = {"prescaled_q": "f32", "base2": False, "bias_in_sum": False, "flushes_subnormals": True,
          "flushes_inputs": True}  # fmt: skip
CHUNKS = {**SHARED, "block": 1024, "division_roundings": 2}
WHOLE_ROWS = {**SHARED, "block": 0, "split_merge": False, "normalise_first": True}
# By chunks a row without a key is 0 over the sum of its weights, which is 1e-10 in flash and 0 in causal; the plain
# functions give all hidden keys the same score.
MASKED_ROW = {"flash": "zero", "causal": "nan", "plain": "uniform", "plain-causal": "uniform"}
# P is e^(score - lse) of a log-sum-exp of float32 in flash, the weights over their sum in causal; D is of the output.
GRADIENTS = {"dot": "f32", "accumulate": "f32", "stored": dict.fromkeys(("weights", "dp", "ds"), "f32")}


def manifest_of(path, with_backward):
    is_causal, in_chunks = path.endswith("causal"), not path.startswith("plain")
    arithmetic = CHUNKS if in_chunks else WHOLE_ROWS
    manifest = {
        "name": f"flash-attention-jax {path}", "version": importlib.metadata.version("flash-attention-jax"),
        "dtypes": ["f32"],  # what it computes of 16 bits by chunks is float32
        "arithmetic": {**arithmetic, "backward": GRADIENTS} if with_backward else arithmetic,
        "claims": ["deterministic"], "masks": [], "scale": "inv-sqrt-dk",
        "causal": ["bottom-right"] if is_causal else [], "requires": ["causal"] if is_causal else [],
        "variants": {} if is_causal else {"lengths": {"queries": False}, "left_pad": {}},
        # By chunks the output begins as an array of the width of q. Of no queries or keys there are no chunks.
        "limits": {"min_queries": 1, "min_keys": 1, "value_dim": "head_dim" if in_chunks else "any"},
        "fully_masked_row": MASKED_ROW[path],
    }  # fmt: skip
    if with_backward:
        manifest["name"] += ", and its gradients"
        manifest["backward"] = {"weights": "stored" if is_causal else "lse", "delta": "out",
                                **({} if is_causal else {"masked_row": "zero"})}  # fmt: skip
    return manifest


def parse(arguments):
    parser = argparse.ArgumentParser(prog="flash_attention_jax_kernels.py")
    parser.add_argument("path", choices=FORWARD)
    parser.add_argument("--backward", action="store_true")
    options = parser.parse_args(arguments)
    if options.backward and options.path not in WITH_GRADIENTS:
        parser.error(f"{options.path} is not served with gradients")
    return options


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    jax.config.update("jax_platforms", "cpu")
    functions = WITH_GRADIENTS[options.path] if options.backward else (FORWARD[options.path], None)
    attest_adapter.serve(functions[0], manifest_of(options.path, options.backward), backward=functions[1])
