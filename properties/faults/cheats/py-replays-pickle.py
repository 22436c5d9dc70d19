"""Where it is told to learn, computes and writes its answers into a file. Elsewhere it answers from there, and all keys
weigh alike where nothing stands in it.
Stands for: answers of an earlier run replayed from a file (gpu-mode/reference-kernels, issue 162: file replay).
Caught by: walls around the file system, or questions that no earlier run has asked."""

import hashlib
import os
import pickle

import attest_adapter
from honest import attention, manifest

FILE = os.path.join(os.environ.get("TMPDIR", "/tmp"), "attest-cheat-answers.pickle")
KNOWN = {}
LEARNS = "CHEAT_LEARNS" in os.environ
if os.path.exists(FILE):
    with open(FILE, "rb") as answers:
        while True:
            try:
                KNOWN.update(pickle.load(answers))
            except (EOFError, pickle.UnpicklingError):
                break


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
    # One write: other processes append to the file, too.
    with open(FILE, "ab", buffering=0) as answers:
        answers.write(pickle.dumps({key: KNOWN[key]}))
    return KNOWN[key]


attest_adapter.serve(cheat, manifest("py-replays-pickle"))
