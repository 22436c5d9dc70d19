"""Keras 3's attention over TensorFlow, on a CPU:  attest check --kernel 'exec:python3 keras_kernels.py PATH'

ops         keras.ops.dot_product_attention, TensorFlow's operations one after another
ops-xla     the same, compiled by XLA (tf.function with jit_compile): each shape when it first comes
attention   keras.layers.Attention, the layer of one head, with use_scale for the scale; the masks that it takes hide
            keys, and queries, of a batch entry: lengths here
mha         keras.layers.MultiHeadAttention, which projects and calls keras.ops.dot_product_attention
mha-scores  the same, asked for its scores, too (return_attention_scores): it computes them itself then, by einsum
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
try:
    import keras
    import ml_dtypes
    import numpy
    import tensorflow
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"Keras cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def theirs(array):
    """A tensor of TensorFlow; the bits of bfloat16 as numbers."""
    return tensorflow.constant(array.view(ml_dtypes.bfloat16) if array.dtype == numpy.uint16 else array)


def ours(tensor):
    array = tensor.numpy()
    return array.view(numpy.uint16) if array.dtype == ml_dtypes.bfloat16 else array


def token_major(array):
    """[batch, heads, tokens, width] as Keras has it: [batch, tokens, heads, width]."""
    return theirs(array.swapaxes(1, 2))


def dot_product_attention(q, k, v, bias, mask, scale, is_causal):
    return keras.ops.dot_product_attention(q, k, v, bias, mask, scale, is_causal)


compiled = tensorflow.function(dot_product_attention, jit_compile=True)


def over(function):
    def attention(q, k, v, mask=None, scale=1.0, causal="none"):
        hidden, bias = (mask, None) if mask is None or mask.dtype == bool else (None, theirs(mask))
        shared = k.shape[1] == 1 < q.shape[1]
        q, k, v = token_major(q), token_major(k), token_major(v)
        try:
            return ours(function(q, k, v, bias, hidden, scale, causal == "top-left")).swapaxes(1, 2)
        except (ValueError, tensorflow.errors.InvalidArgumentError) as error:
            # One key-value head for all heads is documented, and einsum refuses it.
            if shared and ("Expected dimension" in str(error) or "Dimensions must be equal" in str(error)):
                raise attest_adapter.Unsupported("one key-value head for all: einsum refuses it") from error
            raise

    return attention


@functools.lru_cache(maxsize=None)
def attention_layer(dtype):
    layer = keras.layers.Attention(use_scale=True, dtype=dtype)
    layer.build([(1, 1, 1), (1, 1, 1)])
    return layer


def keys_there(lengths, batch, heads, length):
    """[batch * heads, length], true in front of each entry's length; all of it without lengths."""
    lengths = numpy.full(batch, length) if lengths is None else lengths
    return numpy.repeat(numpy.arange(length) < lengths[:, None], heads, 0)


def one_headed(q, k, v, scale=1.0, causal="none", q_lengths=None, kv_lengths=None):
    batch, heads, queries, _ = q.shape
    flat = [theirs(array.reshape(batch * heads, *array.shape[2:])) for array in (q, v, k)]
    there = None
    if q_lengths is not None or kv_lengths is not None:
        of_keys = keys_there(kv_lengths, batch, heads, k.shape[2])
        there = [keys_there(q_lengths, batch, heads, queries), of_keys, of_keys]
    layer = attention_layer(flat[0].dtype.name)
    layer.scale.assign(scale)
    out = ours(layer(flat, mask=there, use_causal_mask=causal == "top-left"))
    return out.reshape(batch, heads, queries, v.shape[3])


@functools.lru_cache(maxsize=256)
def multi_head_layer(dtype, heads, c_q, c_k, c_v, width, value_width, c_out, has_bias):
    layer = keras.layers.MultiHeadAttention(
        heads, width, value_width, use_bias=has_bias, output_shape=c_out, dtype=dtype)  # fmt: skip
    layer.build((1, 1, c_q), (1, 1, c_v), (1, 1, c_k))
    return layer


def multi_headed(with_scores):
    def multihead(q, k, v, w_q, w_k, w_v, heads=1, b_q=None, b_k=None, b_v=None, w_o=None, b_o=None, mask=None,
                  causal="none"):  # fmt: skip
        biases = (b_q, b_k, b_v, b_o)
        has_bias = any(bias is not None for bias in biases)
        q, k, v = theirs(q), theirs(k), theirs(v)
        layer = multi_head_layer(q.dtype.name, heads, w_q.shape[0], w_k.shape[0], w_v.shape[0], w_q.shape[1] // heads,
                                 w_v.shape[1] // heads, w_o.shape[1], has_bias)  # fmt: skip
        parts = (layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense)
        for part, weight, bias in zip(parts, (w_q, w_k, w_v, w_o), biases):
            part.kernel.assign(tensorflow.reshape(theirs(weight), part.kernel.shape))
            if has_bias:  # one that is missing beside one that is there is zero, which adds nothing
                bias = numpy.zeros(weight.shape[1], weight.dtype) if bias is None else bias
                part.bias.assign(tensorflow.reshape(theirs(bias), part.bias.shape))
        causal = causal == "top-left"
        out = layer(q, v, k, attention_mask=mask, return_attention_scores=with_scores, use_causal_mask=causal)
        return ours(out[0] if with_scores else out)

    return multihead


# The softmax finds the maximum first, and multiplies by the reciprocal of the sum before the weights meet V. TensorFlow
# has the processor flush subnormal numbers, read or made, in all kernels (kernel_and_device.cc); those of float16 are
# ordinary in float32.
common = {"normalise_first": True, "split_merge": False, "block": 0, "bias_in_sum": False,
          "weights_in_denominator": False}  # fmt: skip
whole = {**common, "flushes_subnormals": True, "flushes_inputs": True}
# keras.ops: q·k is a tensor of q's dtype, and what follows float32 ("Softmax is always carried out in high precision",
# says the source), up to the weights, which have the dtype of k. A mask is converted to the dtype of q. Sums of 16 bits
# are taken for float32, as users may expect, here and below.


def half(dtype):
    return {**(common if dtype == "f16" else whole), "score_sums": "f32", "accumulate": "f32", "weights": dtype}


def of_ops(dtype):
    return {**half(dtype), "prescaled_q": None, "stored": {"raw": dtype}, "mask_format": dtype}


# The layers compute in the dtype of q throughout, and round the scale to it.
def of_layers(dtype):
    return {**half(dtype), "prescaled_q": dtype, "stored": {"raw": dtype, "scaled": dtype, "biased": dtype}}


ops = {"f64": whole, "f32": whole, "f16": of_ops("f16"), "bf16": of_ops("bf16")}
layers = {"f64": whole, "f32": whole, "f16": of_layers("f16"), "bf16": of_layers("bf16")}

# What hides a key puts a finite number in the place of its score, so that a row without a visible key is uniform under
# a boolean mask and NaN under an additive one: no one policy to declare. Nor is there one of layers, whose
# documentation asks for a key to each row.
of_operation = {
    "arithmetic": ops, "causal": ["top-left"], "grouped_query": True, "mask_dtypes": ["f32", "f16", "bf16"],
    "kv_dtypes": {
        "f64": ["f64", "f32"], "f32": ["f32", "f16", "bf16", ["f16", "bf16"]], "f16": ["f16"], "bf16": ["bf16"]},
}  # fmt: skip
of_module = {"operations": ["multihead"], "causal": ["top-left"], "masks": ["bool"], "scale": "inv-sqrt-dk",
             "requires": ["output-projection"], "excludes": [["bias-kv"]]}  # fmt: skip
paths = {
    "ops": ({"function": over(dot_product_attention)}, {"name": "keras.ops.dot_product_attention", **of_operation}),
    "ops-xla": ({"function": over(compiled)}, {
        "name": "keras.ops.dot_product_attention, compiled by XLA", **of_operation}),
    "attention": ({"function": one_headed}, {
        "name": "keras.layers.Attention", "arithmetic": layers, "masks": [], "causal": ["top-left"],
        "variants": {"lengths": {"padding": "zero"}}}),
    "mha": ({"multihead": multi_headed(False)}, {
        "name": "keras.layers.MultiHeadAttention", "arithmetic": ops, **of_module}),
    "mha-scores": ({"multihead": multi_headed(True)}, {
        "name": "keras.layers.MultiHeadAttention, with its scores", "arithmetic": layers, **of_module}),
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:] not in [[path] for path in paths]:
        sys.exit(f"usage: keras_kernels.py {'|'.join(paths)}")
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    functions, manifest = paths[sys.argv[1]]
    manifest["version"] = f"{keras.__version__}, TensorFlow {tensorflow.__version__}"
    manifest["dtypes"] = list(manifest["arithmetic"])
    attest_adapter.serve(manifest=manifest, bf16="bits", **functions)
