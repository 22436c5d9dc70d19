"""ONNX Runtime's attention on a CPU, from PyPI, as kernels under test:  ort_python.py KERNEL

attention, attention-23            the operator Attention of ONNX opset 24 and of opset 23
attention-25                       that of opset 25, which has windows (ONNX Runtime 1.32)
multihead                          com.microsoft.MultiHeadAttention, on queries, keys and values projected already
group-query, group-query-f16       com.microsoft.GroupQueryAttention, which is causal: the keys before the queries are its
                                   cache

    pip install onnxruntime onnx
    attest check --kernel 'exec:python3 ort_python.py attention'

The manifests state what was found by trying; ort_kernels.js has the same operators through Node.js. A model is made for
each kind of case, of one operator.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import numpy
    import onnxruntime
    from onnx import TensorProto, helper
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"onnxruntime and onnx cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def require(condition, why):
    if not condition:
        raise attest_adapter.Unsupported(why)


@functools.lru_cache(maxsize=256)
def session(operator, domain, version, attributes, inputs, outputs):
    """Of one operator; inputs and outputs are (element type, rank), None where one is left out."""

    def names(values, letter):
        return [f"{letter}{i}" if value else "" for i, value in enumerate(values)]

    def infos(values, letter):
        return [helper.make_tensor_value_info(name, value[0], [None] * value[1])
                for name, value in zip(names(values, letter), values) if value]

    node = helper.make_node(operator, names(inputs, "x"), names(outputs, "y"), domain=domain, **dict(attributes))
    graph = helper.make_graph([node], operator, infos(inputs, "x"), infos(outputs, "y"))
    imports = [helper.make_opsetid(domain, version)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(operator, arrays, rank, *, domain="", version=1, outputs=1, **attributes):
    """The first output of the operator over arrays, None where an input is left out."""
    kinds = tuple(a if a is None else (helper.np_dtype_to_tensor_dtype(a.dtype), a.ndim) for a in arrays)
    made = tuple((kinds[0][0], rank if i == 0 else 4) for i in range(outputs))
    of_one = session(operator, domain, version, tuple(sorted(attributes.items())), kinds, made)
    feeds = {f"x{i}": numpy.ascontiguousarray(a) for i, a in enumerate(arrays) if a is not None}
    return of_one.run(["y0"], feeds)[0]


def token_major(x):
    batch, heads, tokens, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, tokens, heads * width)


def head_major(out, heads):
    batch, tokens, width = out.shape
    return out.reshape(batch, tokens, heads, width // heads).swapaxes(1, 2)


def with_lengths(arrays, causal, kv_lengths):
    """The inputs with nonpad_kv_seqlen; with it a causal form counts from each sequence's last key."""
    if kv_lengths is None:
        require(causal != "bottom-right", "is causal at the top left, without lengths")
        return arrays
    require(causal != "top-left", "is causal at the bottom right, with lengths")
    return [*arrays, None, None, kv_lengths.astype(numpy.int64)]


# The attribute is f32, and rounded to f16 beside inputs of that.
CAPS = {"float32": (2.0**-64, 2.0**64), "float16": (2.0**-14, 65504.0)}


def capped(softcap, dtype):
    """The attribute for a cap, which is taken of the scaled product, before the mask; none where there is no cap."""
    if not softcap:
        return {}
    least, most = CAPS[dtype]
    require(least <= softcap <= most, f"takes softcaps from {least:g} to {most:g} in {dtype}")
    return {"softcap": softcap}


def attention_23(q, k, v, mask=None, scale=1.0, causal="none", softcap=0.0):
    is_causal = int(causal == "top-left")
    return run("Attention", [q, k, v, mask], 4, version=23, scale=scale, is_causal=is_causal, **capped(softcap, q.dtype.name))


def attention_24(q, k, v, mask=None, scale=1.0, causal="none", kv_lengths=None, softcap=0.0):
    arrays, is_causal = with_lengths([q, k, v, mask], causal, kv_lengths), int(causal != "none")
    return run("Attention", arrays, 4, version=24, scale=scale, is_causal=is_causal, **capped(softcap, q.dtype.name))


def windowed_attention(q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, alignment=None,
                       softcap=0.0):  # fmt: skip
    # ONNX docs/Operators.md, Attention-25: both ends inclusive, -1 for none; positions from the length of the past, which is 0.
    window = {"left_window_size": window_left, "right_window_size": window_right} if alignment else {}
    given = {"scale": scale, "is_causal": int(causal == "top-left"), **window, **capped(softcap, q.dtype.name)}
    return run("Attention", [q, k, v, mask], 4, version=25, **given)


def multihead(q, k, v, mask=None, scale=1.0, causal="none"):
    # query, key, value, bias, key_padding_mask, attention_bias
    inputs = [token_major(q), token_major(k), token_major(v), None, None, mask]
    out = run("MultiHeadAttention", inputs, 3, domain="com.microsoft", num_heads=q.shape[1], scale=scale,
              unidirectional=int(causal == "top-left"))
    return head_major(out, q.shape[1])


def group_query(q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, alignment=None, softcap=0.0):
    (batch, heads, queries, _), keys = q.shape, k.shape[2]
    sees = causal == "bottom-right" or queries == 1 and causal == "none" or queries == keys and causal == "top-left"
    require(sees, "is causal, aligned at the bottom right")
    require(keys >= queries, "takes a new key for every query")
    past = keys - queries
    require(past == 0 or queries == 1 or batch == 1, "takes one sequence where several queries follow cached keys")
    # query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos, sin, position_ids, attention_bias
    inputs = [token_major(q), token_major(k[:, :, past:]), token_major(v[:, :, past:]), k[:, :, :past], v[:, :, :past],
              numpy.full(batch, keys - 1, numpy.int32), numpy.array(keys, numpy.int32), None, None, None, mask]
    # ONNX Runtime's docs/ContribOperators.md: a window counts the query itself and ends at it, -1 for none.
    window = {} if alignment is None else {"local_window_size": min(window_left, keys) + 1}
    out = run("GroupQueryAttention", inputs, 3, domain="com.microsoft", outputs=3, num_heads=heads,
              kv_num_heads=k.shape[1], scale=scale, **window, **capped(softcap, "float32"))
    return head_major(out, heads)


# As in ort_kernels.js, where each entry has its reason.
F32 = {"base2": False, "split_merge": False, "prescaled_q": None, "division_roundings": 2}
# Scores are capped by the C library's tanh of f32. Those in f16 are written to memory before and after.
LIBRARY_TANH = {"tanh": {"ulp": 2.5}}
WHOLE_ROWS = {**F32, **LIBRARY_TANH, "block": 0}
SUMS = {"score_sums": "f32", "accumulate": "f32"}
COMMON = {"version": onnxruntime.__version__, "claims": ["deterministic"], "mask_conventions": ["post-scale"]}
# Until 1.26 the mask was added before the cap, as ONNX 1.21 has it, and a key that it hides had the score -softcap.
SOFTCAP = {"softcap": {}} if tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 27) else {}
ATTENTION = {
    **COMMON, "dtypes": ["f32", "f16"], "masks": ["additive", "bool"], "causal": ["top-left"], "grouped_query": True,
    "fully_masked_row": "zero", "limits": {"min_queries": 1, "min_keys": 1},
    "arithmetic": {"f32": WHOLE_ROWS,
                   "f16": {**WHOLE_ROWS, **SUMS, "stored": {"capped": "f16", "biased": "f16"}, "weights": "f16"}},
    "variants": SOFTCAP,
}  # fmt: skip
# Opset 25 is computed by other operators. Tanh is a rational function, of f32 5.5 ulp off at the most.
OF_OPERATORS = {dtype: {**arithmetic, "tanh": {"ulp": 6}} for dtype, arithmetic in ATTENTION["arithmetic"].items()}
GROUP_QUERY = {
    **COMMON, "name": "com.microsoft.GroupQueryAttention", "masks": ["additive"], "causal": ["top-left", "bottom-right"],
    "variants": {"window": {"right": False, "requires": ["causal"]}, "softcap": {}}, "grouped_query": True,
    "limits": {"value_dim": "head_dim", "head_dim_multiple": 8, "min_queries": 1, "min_keys": 1},
}  # fmt: skip
KERNELS = {
    "attention": (attention_24, {
        **ATTENTION, "name": "ONNX Attention", "causal": ["top-left", "bottom-right"],
        "variants": {"lengths": {"queries": False, "excludes": ["top-left"]}, **SOFTCAP}}),
    "attention-25": (windowed_attention, {
        **ATTENTION, "name": "ONNX Attention, opset 25", "arithmetic": OF_OPERATORS,
        "variants": {"window": {"alignment": ["top-left"]}, **SOFTCAP}}),
    "attention-23": (attention_23, {**ATTENTION, "name": "ONNX Attention, opset 23"}),
    "multihead": (multihead, {
        **COMMON, "name": "com.microsoft.MultiHeadAttention", "dtypes": ["f32"], "masks": ["additive"],
        "causal": ["top-left"], "fully_masked_row": "nan", "arithmetic": F32, "limits": {"min_keys": 1}}),
    "group-query": (group_query, {
        **GROUP_QUERY, "dtypes": ["f32"], "fully_masked_row": "zero", "arithmetic": {**F32, **LIBRARY_TANH}}),
    "group-query-f16": (group_query, {
        **GROUP_QUERY, "dtypes": ["f16"], "fully_masked_row": "nan",
        "arithmetic": {**F32, **LIBRARY_TANH, **SUMS, "weights": "f32"}}),
}  # fmt: skip

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in KERNELS:
        sys.exit(f"ort_python.py: the kernel is {name!r}; it must be one of {', '.join(KERNELS)}")
    attest_adapter.serve(*KERNELS[name])
