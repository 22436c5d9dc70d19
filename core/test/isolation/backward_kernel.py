"""A kernel with a backward pass over standard input and output, in f64: backward_kernel.py MODE. No library.

"right" answers with gradients written out, "all" with all of them whatever is asked for; "no-dk" leaves dk out of its
reply, and "other-shape" transposes dq; "strides" takes strides, and says those that it is told of instead of gradients;
"lengths" takes lengths of keys, and returns what has not been written of dk and dv behind them.
"""

import json
import math
import os
import random
import struct
import sys

mode = sys.argv[1]
MANIFEST = {
    "name": "backward",
    "dtypes": ["f64"],
    "operations": ["attention", "attention_backward"],
    "masks": [],
    "lse": True,
    "backward": {"weights": "lse", "delta": "out", "d_lse": True},
    "strides": mode == "strides",
    "variants": {"lengths": {"queries": False}} if mode == "lengths" else {},
}


def read_exactly(count):
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


def request():
    (length,) = struct.unpack("<Q", read_exactly(8))
    body = read_exactly(length)
    (size,) = struct.unpack_from("<Q", body)
    header = json.loads(body[8 : 8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        width, letter = {"F64": (8, "d"), "I32": (4, "i")}[t["dtype"]]
        numbers = struct.unpack(f"<{(end - begin) // width}{letter}", body[8 + size + begin : 8 + size + end])
        tensors[name] = (t["shape"], numbers)
    return metadata, tensors


def reply(tensors, **metadata):
    header, blob = {"__metadata__": metadata}, b""
    for name, (shape, numbers) in tensors.items():
        data = struct.pack(f"<{len(numbers)}d", *numbers)
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    body = struct.pack("<Q", len(text)) + text + blob
    data = struct.pack("<Q", len(body)) + body
    while data:
        data = data[os.write(1, data) :]


def rows(tensor):
    """Rows of the last axis, one head after another: (batch, heads, rows, columns), a list of lists."""
    shape, numbers = tensor
    width = shape[3]
    return shape, [list(numbers[at : at + width]) for at in range(0, len(numbers), width)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def keys_of(tensors, entry):
    return tensors["kv_lengths"][1][entry] if "kv_lengths" in tensors else tensors["k"][0][2]


def forward(scale, tensors):
    (b, h, m, _), q = rows(tensors["q"])
    (_, hk, n, _), k = rows(tensors["k"])
    (_, _, _, e), v = rows(tensors["v"])
    out, lse = [], []
    for head in range(b * h):
        keys = (head // h * hk + head % h * hk // h) * n
        for i in range(m):
            scores = [scale * dot(q[head * m + i], k[keys + j]) for j in range(keys_of(tensors, head // h))]
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            lse.append(top + math.log(sum(weights)))
            out += [sum(w * v[keys + j][c] for j, w in enumerate(weights)) / sum(weights) for c in range(e)]
    return {"out": ([b, h, m, e], out), "lse": ([b, h, m], lse)}


def backward(scale, tensors):
    (b, h, m, d), q = rows(tensors["q"])
    (_, hk, n, _), k = rows(tensors["k"])
    (_, _, _, e), v = rows(tensors["v"])
    _, g = rows(tensors["d_out"])
    _, out = rows(tensors["out"])
    lse = tensors["lse"][1]
    of_lse = tensors["d_lse"][1] if "d_lse" in tensors else [0.0] * len(lse)
    dq = [[0.0] * d for _ in q]
    dk = [[0.0] * d for _ in k]
    dv = [[0.0] * e for _ in v]
    for head in range(b * h):
        keys = (head // h * hk + head % h * hk // h) * n
        for i in range(head * m, head * m + m):
            delta = dot(g[i], out[i]) - of_lse[i]
            for j in range(keys, keys + keys_of(tensors, head // h)):
                weight = math.exp(scale * dot(q[i], k[j]) - lse[i])
                score = scale * weight * (dot(g[i], v[j]) - delta)
                for c in range(d):
                    dq[i][c] += score * k[j][c]
                    dk[j][c] += score * q[i][c]
                for c in range(e):
                    dv[j][c] += weight * g[i][c]
    for entry in range(b):
        for j in range(entry * hk * n, (entry + 1) * hk * n):
            if j % n < keys_of(tensors, entry):
                continue
            dk[j] = [random.random() for _ in dk[j]]
            dv[j] = [math.nan for _ in dv[j]]
    flat = lambda matrix: [x for row in matrix for x in row]
    return {"dq": ([b, h, m, d], flat(dq)), "dk": ([b, hk, n, d], flat(dk)), "dv": ([b, hk, n, e], flat(dv))}


while True:
    metadata, tensors = request()
    if metadata["op"] == "manifest":
        reply({}, manifest=json.dumps(MANIFEST))
        continue
    scale = float(metadata["scale"])
    if metadata.get("causal", "none") != "none" or tensors["k"][0][2] == 0:
        reply({}, status="unsupported", message="no causal form, and a key at least")
    elif metadata["op"] == "attention":
        reply(forward(scale, tensors))
    elif mode == "strides":
        reply({}, status="failed", message=metadata.get("strides", "none"))
    else:
        assert metadata["attest"] == "2", metadata
        all_of_them = backward(scale, tensors)
        gradients = {name: all_of_them[name] for name in (all_of_them if mode == "all" else metadata["want"].split())}
        if mode == "no-dk":
            del gradients["dk"]
        if mode == "other-shape":
            shape, numbers = gradients["dq"]
            gradients["dq"] = ([shape[0], shape[1], shape[3], shape[2]], numbers)
        reply(gradients)
