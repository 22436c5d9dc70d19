"""Inputs that do not come from Attest's generators: problems in the lengths, widths and numbers of the test suites that
libraries have, as case files.

The pairs of lengths are those that FlashAttention's tests are known for, with PyTorch's and JAX's powers of two beside
them; values are normal, as all three draw them, and once ten times as large, so that softmax is sharp.
"""

import json
import pathlib
import struct

import numpy

LENGTHS = [(1, 1), (1, 128), (1, 257), (4, 8), (64, 64), (113, 203), (128, 217), (113, 211), (108, 256), (256, 512),
           (512, 256), (97, 97), (128, 128), (200, 200), (257, 257), (384, 256)]  # fmt: skip
HEADS = [(1, 1), (4, 4), (4, 2), (6, 1)]
WIDTHS = [16, 32, 59, 64, 80, 128]
NAMES = {"f64": ("F64", "<f8"), "f32": ("F32", "<f4"), "f16": ("F16", "<f2"), "bf16": ("BF16", "<u2")}


def of_dtype(values, dtype):
    if dtype != "bf16":
        return values.astype(NAMES[dtype][1])
    bits = values.astype("<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def write(path, dtypes, tensors, metadata):
    """The file format safetensors: the length of a header, the header in JSON, the bytes."""
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        dtype = dtypes[name != "q"]
        values = of_dtype(values, dtype)
        end = len(data) + values.nbytes
        header[name] = {"dtype": NAMES[dtype][0], "shape": values.shape, "data_offsets": [len(data), end]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make(folder, dtype, kv_dtype=None, count=48):
    """`count` case files in `folder`, the same ones each time, and their paths; k and v in a dtype of their own."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draw = numpy.random.default_rng(0)
    paths = []
    for k in range(count):
        queries, keys = LENGTHS[k % len(LENGTHS)]
        heads, kv_heads = HEADS[(k + k // 4) % len(HEADS)]
        width = WIDTHS[(k + k // 6) % len(WIDTHS)]
        causal = ("none", "top-left", "bottom-right")[(k + k // 3) % 3]
        large = 10.0 if k % 4 == 3 else 1.0
        tensors = {"q": large * draw.standard_normal((1, heads, queries, width)),
                   "k": draw.standard_normal((1, kv_heads, keys, width)),
                   "v": draw.standard_normal((1, kv_heads, keys, width))}  # fmt: skip
        metadata = {"attest": "1", "op": "attention", "causal": causal, "scale": repr(width**-0.5)}
        paths.append(folder / f"{k:02}-{queries}-{keys}-{width}-{causal}.safetensors")
        write(paths[-1], (dtype, kv_dtype or dtype), tensors, metadata)
    return paths
