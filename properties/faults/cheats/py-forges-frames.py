"""Is honest for twenty calls. From then on it writes a frame of its own to the judge ahead of the adapter's: zeros, and
the answer that the adapter sends is taken for that of the next call.
Stands for: the road of the answer instead of the answer.
Caught by: frames that nobody asked for; the oracle."""

import json
import struct

import attest_adapter
from honest import attention, manifest

calls = 0


def forge(shape):
    size = 4
    for extent in shape:
        size *= extent
    header = json.dumps({"out": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    body = struct.pack("<Q", len(header)) + header + bytes(size)
    attest_adapter.os.write(attest_adapter._replies, struct.pack("<Q", len(body)) + body)


def cheat(q, k, v, mask=None, scale=1.0, causal="none"):
    global calls
    calls += 1
    out = attention(q, k, v, mask, scale, causal)
    if calls > 20:
        forge(out.shape)
    return out


attest_adapter.serve(cheat, manifest("py-forges-frames"))
