"""jax.nn.dot_product_attention as a kernel under test:  attest check --kernel 'exec:python3 jax_kernel.py [--backward]'

Under jit, on a CPU: each shape is compiled when it first comes, in a quarter of a second and more. What a GPU computes in
place of float32 is asked for by JAX_DEFAULT_MATMUL_PRECISION; the project has run it on a CPU alone.

With --backward it has gradients, too, those of jax.vjp. JAX's own log-sum-exp is rounded to the format of k, and used by
nobody: attest_adapter.py computes the one that Attest asks for beside gradients, and what is said of it is not said of JAX.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import jax
    import ml_dtypes
    import numpy
    from attest._windows import JAX
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"JAX cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def token_major(array):
    """[batch, heads, tokens, width] as JAX has it: [batch, tokens, heads, width]; the bits of bfloat16 as numbers."""
    array = array.view(ml_dtypes.bfloat16) if array.dtype == numpy.uint16 else array
    return array.swapaxes(1, 2)


@functools.partial(jax.jit, static_argnames=("scale", "is_causal", "window"))
def compiled(q, k, v, bias, mask, q_lengths, kv_lengths, scale, is_causal, window):
    return jax.nn.dot_product_attention(
        q, k, v, bias, mask, scale=scale, is_causal=is_causal, query_seq_lengths=q_lengths,
        key_value_seq_lengths=kv_lengths, local_window_size=window)  # fmt: skip


@functools.partial(jax.jit, static_argnames=("scale", "is_causal", "window"))
def compiled_gradients(d_out, q, k, v, bias, *others, scale, is_causal, window):
    _, pull = jax.vjp(lambda q, k, v, bias: compiled(q, k, v, bias, *others, scale, is_causal, window), q, k, v, bias)
    return pull(d_out)


def theirs(q, k, v, mask, scale, causal, window_left, window_right, alignment, q_lengths, kv_lengths):
    """The arguments of `compiled` for a problem of the contract."""
    if k.shape[2] == 0:
        raise attest_adapter.Unsupported("N = 0: there is no maximum of no scores")
    hidden, bias = (mask, None) if mask is None or mask.dtype == bool else (None, mask)
    if bias is not None and bias.dtype == numpy.uint16:
        bias = bias.view(ml_dtypes.bfloat16)
    window = None if alignment is None else JAX.theirs(window_left, window_right, q.shape[2], k.shape[2])
    arrays = (token_major(q), token_major(k), token_major(v), bias, hidden, q_lengths, kv_lengths)
    return arrays, {"scale": scale, "is_causal": causal == "top-left", "window": window}


def ours(array):
    return of_bits(array.swapaxes(1, 2))


def of_bits(array):
    array = numpy.asarray(array)
    return array.view(numpy.uint16) if array.dtype == ml_dtypes.bfloat16 else array


def answered(function, arrays, options):
    try:
        return function(*arrays, **options)
    except Exception as error:
        # XLA has no bf16 product of some shapes for a CPU, as of one number by one.
        if "not supported" in str(error):
            raise attest_adapter.Unsupported(str(error).split("\n")[0]) from error
        raise


def attention(q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, alignment=None,
              q_lengths=None, kv_lengths=None):  # fmt: skip
    asked = (mask, scale, causal, window_left, window_right, alignment, q_lengths, kv_lengths)
    return ours(answered(compiled, *theirs(q, k, v, *asked)))


def backward(q, k, v, d_out, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, alignment=None):
    arrays, options = theirs(q, k, v, mask, scale, causal, window_left, window_right, alignment, None, None)
    *of_inputs, of_bias = answered(compiled_gradients, (token_major(d_out), *arrays), options)
    return (*map(ours, of_inputs), *([] if of_bias is None else [of_bits(of_bias)]))


# Scores are summed and kept in float32, scaled after the product; the weights are normalised in float32 and rounded to
# the dtype of k before they meet v. A boolean mask and the causal form put a finite number in the place of a score, so
# that a row without a visible key is uniform under them and NaN under an additive mask: no one policy to declare. XLA's
# programs for a CPU flush subnormal numbers, read or made.
f32 = {"flushes_subnormals": True, "flushes_inputs": True, "base2": False, "split_merge": False, "prescaled_q": None, "normalise_first": True, "block": 0}
half = {**f32, "score_sums": "f32", "accumulate": "f32"}
manifest = {
    "name": "jax.nn.dot_product_attention", "version": jax.__version__,
    "dtypes": ["f32", "bf16"],  # f16 with sums in float32 it refuses on a CPU
    "arithmetic": {"f32": f32, "bf16": {**half, "weights": "bf16"}},
    "claims": ["deterministic"], "masks": ["additive", "bool"], "mask_conventions": ["post-scale"],
    "causal": ["top-left"], "variants": {"window": {"alignment": ["top-left"]}, "lengths": {"padding": "zero"}},
    "grouped_query": True,
    "limits": {"value_dim": "head_dim"},
}

# Of the backward pass: P is the softmax's output in float32, rounded to the dtype of k where it multiplies dO; dP has that
# dtype, too, and D is the sum of P dP in float32. dS takes the scale first; the product with k and q rounds it to bf16
# beside these (its algorithm is BF16_BF16_F32), and sums over rows and heads of a group at once.
def of_backward(dtype):
    return {"dot": "f32", "accumulate": "f32", "stored": {"weights": dtype, "dp": dtype, "ds": dtype},
            "rounded_weights_in_ds": False, "delta_in_sum": False, "scale_before_rounding": True, "group_partials": "f32"}


with_backward = {
    **manifest, "name": "jax.nn.dot_product_attention, and its gradients",
    "backward": {"gradients": ["dq", "dk", "dv", "dmask"], "weights": "stored", "delta": "weights", "uses": []},
    "arithmetic": {dtype: {**own, "backward": of_backward(dtype)} for dtype, own in manifest["arithmetic"].items()},
}

if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--backward"]):
        sys.exit(f"jax_kernel.py: {' '.join(sys.argv[1:])} is unknown; --backward is all that it takes")
    jax.config.update("jax_platforms", "cpu")
    if sys.argv[1:]:
        attest_adapter.serve(attention, with_backward, backward=backward, bf16="bits")
    else:
        attest_adapter.serve(attention, manifest, bf16="bits")
