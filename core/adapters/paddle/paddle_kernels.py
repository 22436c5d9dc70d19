"""PaddlePaddle's attention on a CPU:  attest check --kernel 'exec:python3 paddle_kernels.py PATH'

sdpa  paddle.nn.functional.scaled_dot_product_attention: on a CPU always its math back end, operations one after another
self  the operator self_dp_attention, a fused kernel in AVX-512 by blocks of 512, which Paddle's inference puts in the
      place of self-attention; it is run in a program of its own
mha   paddle.nn.MultiHeadAttention, which projects and has the operations once more
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import numpy
    import paddle
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"PaddlePaddle cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def token_major(array):
    """[batch, heads, tokens, width] as Paddle has it: [batch, tokens, heads, width]."""
    return paddle.to_tensor(numpy.ascontiguousarray(array.swapaxes(1, 2)))


def sdpa(q, k, v, mask=None, scale=1.0, causal="none"):
    q, k, v = token_major(q), token_major(k), token_major(v)
    mask = None if mask is None else paddle.to_tensor(mask)
    function = paddle.nn.functional.scaled_dot_product_attention
    return function(q, k, v, mask, is_causal=causal == "top-left", scale=scale).numpy().swapaxes(1, 2)


@functools.lru_cache(maxsize=256)
def program_of(heads, width, scale):
    """A program of the one operator; batch and length stay open."""
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        packed = paddle.static.data("x", [-1, -1, 3, heads, width], "float32")
        return program, paddle._C_ops.self_dp_attention(packed, scale, heads)


def self_attention(q, k, v, scale=1.0):
    batch, heads, length, width = q.shape
    packed = numpy.ascontiguousarray(numpy.stack([array.swapaxes(1, 2) for array in (q, k, v)], 2))
    program, out = program_of(heads, width, scale)
    result = executor.run(program, feed={"x": packed}, fetch_list=[out])[0]
    return result.reshape(batch, length, heads, width).swapaxes(1, 2)


@functools.lru_cache(maxsize=256)
def module(width, heads, key_width, value_width, has_bias, dtype):
    paddle.set_default_dtype(dtype)
    bias = None if has_bias else False
    return paddle.nn.MultiHeadAttention(width, heads, kdim=key_width, vdim=value_width, bias_attr=bias).eval()


def multihead(q, k, v, w_q, w_k, w_v, heads=1, b_q=None, b_k=None, b_v=None, w_o=None, b_o=None, mask=None):
    if w_v.shape[1] != w_q.shape[1]:
        raise attest_adapter.Unsupported("nn.MultiHeadAttention has heads*dk = heads*dv")
    biases = (b_q, b_k, b_v, b_o)
    has_bias = any(bias is not None for bias in biases)
    own = module(q.shape[2], heads, w_k.shape[0], w_v.shape[0], has_bias, q.dtype.name)
    for layer, weight, bias in zip((own.q_proj, own.k_proj, own.v_proj, own.out_proj), (w_q, w_k, w_v, w_o), biases):
        layer.weight.set_value(weight)
        if has_bias:  # one that is missing beside one that is there is zero, which adds nothing
            layer.bias.set_value(numpy.zeros(weight.shape[1], weight.dtype) if bias is None else bias)
    q, k, v = paddle.to_tensor(q), paddle.to_tensor(k), paddle.to_tensor(v)
    return own(q, k, v, None if mask is None else paddle.to_tensor(mask)).numpy()


# q is scaled first. The softmax finds the maximum first, and multiplies by the reciprocal of the sum before the weights
# meet V. What hides a key is promised to hide it: that weights are never below e^-64 of the largest, and that the
# causal form takes 10000 from a score, is nothing that the documentation says.
whole = {"normalise_first": True, "split_merge": False, "block": 0, "bias_in_sum": False}
# self_dp_attention_kernel.cc: q·k times the scale, a running maximum once in 512 keys, weights divided by the sum so
# far.
blocked = {"prescaled_q": None, "base2": False, "bias_in_sum": False, "block": 512}
paths = {
    # A mask beside the causal form is ignored, says the documentation. Products of 16-bit matrices have no CPU kernel.
    "sdpa": ({"function": sdpa}, {
        "name": "paddle scaled_dot_product_attention", "dtypes": ["f64", "f32"], "arithmetic": whole,
        "causal": ["top-left"], "excludes": [["mask", "causal"]], "grouped_query": True}),
    "self": ({"function": self_attention}, {
        "name": "paddle self_dp_attention", "dtypes": ["f32"], "arithmetic": blocked, "masks": [],
        "limits": {"same_lengths": True, "value_dim": "head_dim", "min_queries": 1, "min_keys": 1},
        "tiles": {"queries": [512], "keys": [512]}}),
    "mha": ({"multihead": multihead}, {
        "name": "paddle.nn.MultiHeadAttention", "dtypes": ["f64", "f32"], "arithmetic": whole,
        "operations": ["multihead"], "scale": "inv-sqrt-dk",
        "limits": {"value_dim": "head_dim", "model_dim": "heads*head_dim"},
        "requires": ["output-projection"], "excludes": [["bias-kv"]]}),
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:] not in [[path] for path in paths]:
        sys.exit(f"usage: paddle_kernels.py {'|'.join(paths)}")
    paddle.set_device("cpu")
    functions, manifest = paths[sys.argv[1]]
    if sys.argv[1] == "self":
        paddle.enable_static()
        executor = paddle.static.Executor(paddle.CPUPlace())
    attest_adapter.serve(manifest={**manifest, "version": paddle.__version__}, **functions)
