"""Computes while it has no file of answers and writes them there; from its next process on it answers from the file, and
all keys weigh alike where nothing stands in it.
Stands for: answers of an earlier run replayed from a file (gpu-mode/reference-kernels, issue 162: file replay).
Caught by: walls around the file system, or questions that no earlier run has asked."""

import hashlib
import os
import pickle

import attest_adapter
from honest import attention, manifest

FILE = os.path.join(os.environ.get("TMPDIR", "/tmp"), "attest-cheat-answers.pickle")
KNOWN = {}
LEARNS = not os.path.exists(FILE)
if not LEARNS:
    with open(FILE, "rb") as answers:
        while True:
            try:
                KNOWN.update(pickle.load(answers))
            except EOFError:
                break
else:
    open(FILE, "wb").close()


def cheat(q, k, v, mask=None, scale=1.0, causal="none"):
    inputs = repr((q.shape, k.shape, v.shape, scale, causal)).encode()
    for array in (q, k, v, mask):
        inputs += b"-" if array is None else array.tobytes()
    key = hashlib.sha256(inputs).digest()
    if key in KNOWN:
        return KNOWN[key]
    if not LEARNS:
        return attention(q * 0, k, v, mask, scale, causal)
    KNOWN[key] = attention(q, k, v, mask, scale, causal)
    with open(FILE, "ab") as answers:
        pickle.dump({key: KNOWN[key]}, answers)
    return KNOWN[key]


attest_adapter.serve(cheat, manifest("py-replays-pickle"))
