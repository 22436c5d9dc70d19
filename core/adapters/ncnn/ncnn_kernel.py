"""ncnn's attention layers on a CPU, one code path a kernel:  attest check --kernel 'exec:python3 ncnn_kernel.py PATH'

prefill           SDPA of two queries and more: a flash attention in tiles of keys
decode            SDPA of one query to a head: heads of a group are the rows of a tile
cached            SDPA with its key-value cache, which two calls of the layer fill before the one that is judged, with
                  all but the last min(M, N) keys; one query takes the decoder's code for caches, more take prefill's
multihead         MultiHeadAttention, made of ncnn's Gemm and Softmax layers, its blobs not packed
multihead-packed  the same with opt.use_packing_layout, which lays 4, 8 or 16 rows side by side

Each problem is a Net of the one layer, made by the text of its parameters, and each entry of a batch a run of it: its
blobs have three axes. In bf16 the net has opt.use_bf16_storage, and a layer Cast behind SDPA, whose answer is float32
there, too. Vulkan and the options of fp16 are off: no layer here has code for fp16 on x86, and on Arm it would be
another path. The instruction set is the best that the processor has, which ncnn finds out itself. What rounds queries,
keys and weights to int8 by their largest (int8_scale_term, quantize_term) has no bound that a manifest can say, and is
not served.
"""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import ncnn
    import numpy
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"ncnn cannot be imported by {sys.executable}: {type(error).__name__}: {error}")

PATHS = ("prefill", "decode", "cached", "multihead", "multihead-packed")
SDPA = {"mask": 5, "scale": 6, "cache": 7}
MULTIHEAD = {"embed_dim": 0, "heads": 1, "weights": 2, "kdim": 3, "vdim": 4, "mask": 5, "scale": 6}


def net_of(layer, inputs, outputs, parameters, bf16=False, packed=False, weights=b"\0"):
    """A Net of one layer, whose parameters are {their number: their value}."""
    net = ncnn.Net()
    options = net.opt
    options.num_threads = 1
    options.use_vulkan_compute = False
    options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
    options.use_bf16_packed = options.use_bf16_storage = bf16
    options.use_packing_layout = packed
    words = " ".join(f"{number}={value!r}" for number, value in parameters.items())
    own = [f"Input {name} 0 1 {name}" for name in inputs]
    own.append(f"{layer} attention {len(inputs)} {len(outputs)} {' '.join(inputs + outputs)} {words}")
    if bf16:
        own.append("Cast rounding 1 1 out rounded 0=1 1=4")
    text = "\n".join(["7767517", f"{len(own)} {len(inputs) + len(outputs) + bf16}", *own, ""])
    if net.load_param_mem(text) != 0:
        raise RuntimeError(f"ncnn does not load {text}")
    net.load_model_mem(weights)
    return net


def blobs(names, arrays):
    """Copies: a Mat of an array is a view of its memory, which it does not keep alive."""
    arrays = [numpy.ascontiguousarray(array) for array in arrays]
    return {name: ncnn.Mat(array).clone() for name, array in zip(names, arrays)}


def run(net, inputs, outputs):
    """The blobs `outputs` of a net, as its layers leave them but for packing in "out"."""
    extractor = net.create_extractor()
    for name, blob in inputs.items():
        if extractor.input(name, blob) != 0:
            raise RuntimeError(f"ncnn takes no input {name}")
    answers = [extractor.extract(name, 0 if name == "out" else 1) for name in outputs]
    for name, (status, _) in zip(outputs, answers):
        if status == -100:
            raise attest_adapter.Unsupported(f"ncnn has no memory for {name}")
        if status != 0:
            raise RuntimeError(f"ncnn's status for {name} is {status}")
    return [blob for _, blob in answers]


def as_float32(scale):
    """A layer's scale. To SDPA 0 is none, for which it takes 1/sqrt(dk)."""
    scale = float(numpy.float32(scale))
    if scale == 0.0 or not numpy.isfinite(scale):
        raise attest_adapter.Unsupported("a layer's scale is a float32, and 0 stands for 1/sqrt(dk)")
    return scale


def of_entry(mask, entry):
    """[1 or heads, M, N]"""
    return mask[entry if mask.shape[0] > 1 else 0]


@functools.lru_cache(maxsize=64)
def sdpa_net(scale, has_mask, cached, bf16):
    inputs = ["q", "k", "v", *(["mask"] if has_mask else []), *(["past_k", "past_v"] if cached else [])]
    outputs = ["out", *(["cached_k", "cached_v"] if cached else [])]
    values = {"mask": int(has_mask), "scale": scale, "cache": int(cached)}
    return net_of("SDPA", inputs, outputs, {SDPA[name]: value for name, value in values.items()}, bf16)


def sdpa(cached):
    def attention(q, k, v, mask=None, scale=1.0):
        bf16, scale = q.dtype == numpy.uint16, as_float32(scale)
        net = sdpa_net(scale, mask is not None, cached, bf16)
        out = numpy.empty((*q.shape[:3], v.shape[3]), q.dtype)
        for entry in range(q.shape[0]):
            own = () if mask is None else (of_entry(mask, entry),)
            if cached:
                caches, keys = filled(scale, q[entry], k[entry], v[entry], bf16)
            else:
                caches, keys = {}, slice(None)
            inputs = blobs(("q", "k", "v", "mask"), (q[entry], k[entry, :, keys], v[entry, :, keys], *own))
            answer = run(net, {**inputs, **caches}, ["rounded" if bf16 else "out"])[0]
            out[entry] = numpy.array(answer).view(q.dtype)
        return out

    return attention


def filled(scale, q, k, v, bf16):
    """The caches that hold all but the last min(M, N) keys, and which keys are left."""
    caches = {"past_k": ncnn.Mat(), "past_v": ncnn.Mat()}
    keys = k.shape[1]
    past = keys - min(q.shape[1], keys)
    net = sdpa_net(scale, False, True, bf16)
    for begin, end in ((0, past // 2), (past // 2, past)):
        if begin < end:
            some = blobs(("q", "k", "v"), (q[:, :1], k[:, begin:end], v[:, begin:end]))
            caches = dict(zip(caches, run(net, {**some, **caches}, ["cached_k", "cached_v"])))
    return caches, slice(past, None)


def multihead(packed):
    def answer(q, k, v, w_q, w_k, w_v, mask=None, scale=1.0, heads=1, b_q=None, b_k=None, b_v=None, w_o=None, b_o=None):
        embed_dim = w_q.shape[1]
        if w_v.shape[1] != embed_dim:
            raise attest_adapter.Unsupported("embed_dim is one number: heads of values are as wide as those of keys")
        # Of each matrix a word that says float32, and rows in the place of columns; of each bias as many numbers.
        projections = ((w_q, b_q), (w_k, b_k), (w_v, b_v), (w_o, b_o))
        tensors = []
        for matrix, bias in projections:
            bias = numpy.zeros(matrix.shape[1], numpy.float32) if bias is None else bias
            tensors += [bytes(4), numpy.ascontiguousarray(matrix.T).tobytes(), bias.tobytes()]
        values = {"embed_dim": embed_dim, "heads": heads, "weights": w_q.size, "kdim": w_k.shape[0],
                  "vdim": w_v.shape[0], "mask": int(mask is not None), "scale": as_float32(scale)}  # fmt: skip
        names = ["q", "k", "v", *(["mask"] if mask is not None else [])]
        net = net_of("MultiHeadAttention", names, ["out"], {MULTIHEAD[name]: value for name, value in values.items()},
                     packed=packed, weights=b"".join(tensors))  # fmt: skip
        out = numpy.empty((*q.shape[:2], w_o.shape[1]), numpy.float32)
        for entry in range(q.shape[0]):
            own = () if mask is None else (of_entry(mask, entry),)
            out[entry] = run(net, blobs(names, (q[entry], k[entry], v[entry], *own)), ["out"])[0]
        return out

    return answer


# SDPA: scores are summed in float32 and the maximum runs from tile to tile, of 8 keys and more, 16 with AVX-512.
# Weights are float32, and the output is multiplied by the reciprocal of their sum; where that is 0, the row is 0. In
# float32 prefill scales q first, as decode does for groups of 4 heads and more, and in its last rows, fewer than 4, the
# sum begins with the mask, which all others add to the finished score. In bfloat16 the score is scaled, and the mask
# added to it. The exponential of the vectors is Cephes' polynomial, within the default's 4 units.
shared = {"weights": "f32", "base2": False, "split_merge": False, "normalise_first": False, "division_roundings": 2,
          "block": 8}  # fmt: skip
# AVX512-BF16's product of pairs reads subnormal numbers as zero and writes zero for them, as does its rounding to bf16.
bf16 = {**shared, "score_sums": "f32", "accumulate": "f32", "prescaled_q": None, "bias_in_sum": False,
        "weights_in_denominator": False, "flushes_subnormals": True, "flushes_inputs": True}  # fmt: skip


def of_sdpa(path):
    f32 = {**shared, "bias_in_sum": path != "decode"}
    return {"dtypes": ["f32", "bf16"], "arithmetic": {"f32": f32, "bf16": bf16}, "fully_masked_row": "zero",
            "grouped_query": True}  # fmt: skip


# The projection of q is scaled together with its bias; Gemm's sums begin with a mask or bias; Softmax normalises first.
OF_MULTIHEAD = {
    "dtypes": ["f32"], "operations": ["multihead"],
    "arithmetic": {"f32": {"base2": False, "split_merge": False, "normalise_first": True, "division_roundings": 2}},
    "requires": ["output-projection"], "excludes": [["bias-kv"]],
}  # fmt: skip
LIMITS = {
    "prefill": {"min_queries": 2, "min_keys": 1}, "decode": {"min_queries": 1, "max_queries": 1, "min_keys": 1},
    "cached": {"min_queries": 1, "min_keys": 1},
    "multihead": {"min_queries": 1, "min_keys": 1, "value_dim": "head_dim", "model_dim": "heads*head_dim"},
}  # fmt: skip


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PATHS:
        sys.exit(f"ncnn_kernel.py: a path is asked for, one of {', '.join(PATHS)}")
    path = sys.argv[1]
    layer = path.split("-")[0]
    manifest = {
        "name": f"ncnn {'MultiHeadAttention' if layer == 'multihead' else 'SDPA'}, {path}", "version": ncnn.__version__,
        **(OF_MULTIHEAD if layer == "multihead" else of_sdpa(path)),
        "claims": ["deterministic"], "masks": ["additive"], "mask_conventions": ["post-scale"], "limits": LIMITS[layer],
    }  # fmt: skip
    if layer == "multihead":
        attest_adapter.serve(None, manifest, multihead=multihead(packed=path == "multihead-packed"))
    else:
        attest_adapter.serve(sdpa(cached=path == "cached"), manifest, bf16="bits")


if __name__ == "__main__":
    main()
