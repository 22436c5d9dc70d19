"""Kernels over standard input and output, most of them wrong in one way: misbehave.py MODE [MANIFEST-FILE]. No library.

Each mode but "correct" differs from it in one thing. All of them speak f64 only and answer with attention written out.
"""

import json
import math
import os
import signal
import struct
import sys
import time

mode = sys.argv[1]
calls = 0
MANIFEST = {"name": "misbehave", "dtypes": ["f64"], "operations": ["attention"], "lse": True}


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
        tensors[name] = (t["shape"], body[8 + size + begin : 8 + size + end], t["dtype"])
    return metadata, tensors


def write(data):
    while data:
        data = data[os.write(1, data) :]


def frame(header, blob=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    body = struct.pack("<Q", len(text)) + text + blob
    return struct.pack("<Q", len(body)) + body


def tensor_frame(*tensors, **metadata):
    header, blob = ({"__metadata__": metadata} if metadata else {}), b""
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    return frame(header, blob)


def f64(values):
    return struct.pack(f"<{len(values)}d", *values)


def attention(metadata, tensors):
    (b, h, m, d), q = tensors["q"][0], struct.unpack(f"<{len(tensors['q'][1]) // 8}d", tensors["q"][1])
    (_, _, n, e), v = tensors["v"][0], struct.unpack(f"<{len(tensors['v'][1]) // 8}d", tensors["v"][1])
    k = struct.unpack(f"<{len(tensors['k'][1]) // 8}d", tensors["k"][1])
    scale = float(metadata["scale"])
    out, lse = [], []
    for head in range(b * h):
        for i in range(m):
            row = q[(head * m + i) * d : (head * m + i + 1) * d]
            keys = [k[(head * n + j) * d : (head * n + j + 1) * d] for j in range(n)]
            scores = [scale * sum(x * y for x, y in zip(row, key)) for key in keys]
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            lse.append(top + math.log(total))
            for c in range(e):
                out.append(sum(w * v[(head * n + j) * e + c] for j, w in enumerate(weights)) / total)
    return [b, h, m, e], out, lse


def leave_group():
    """Into the group of whoever started us: who kills ours finds nobody there."""
    os.setpgid(0, os.getpgid(os.getppid()))
    print("worker", os.getpid(), file=sys.stderr, flush=True)


def start_daemon():
    """A grandchild in a session of its own, whose parent is gone."""
    child = os.fork()
    if child == 0:
        os.setsid()
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(600)
        else:
            print("daemon", grandchild, file=sys.stderr, flush=True)
        os._exit(0)
    os.waitpid(child, 0)


def be_held():
    """A tracer in a session of its own, which never asks what became of us: once killed, we cannot be reaped by our parent,
    as if we waited for a device that does not answer."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    seize, set_tracer, any_tracer = 0x4206, 0x59616D61, ctypes.c_ulong(-1)
    libc.prctl(set_tracer, any_tracer, 0, 0, 0)
    traced, ready = os.getpid(), os.pipe()
    if os.fork() == 0:
        os.setsid()
        held = libc.ptrace(seize, traced, None, None) == 0
        print("holder" if held else "refused", os.getpid(), "worker", traced, file=sys.stderr, flush=True)
        os.write(ready[1], b".")
        time.sleep(600)
        os._exit(0)
    os.read(ready[0], 1)


def print_much():
    for _ in range(16):
        sys.stderr.write(("x" * 127 + "\n") * (1 << 13))
    print("the last line", file=sys.stderr, flush=True)


def large(tensors):
    return tensors["q"][0][2] > 500


def answer(metadata, tensors):
    if mode in ("slow", "hangs-when-large", "stops-when-large", "hangs"):
        if mode == "hangs" or (mode == "hangs-when-large" and large(tensors)):
            time.sleep(600)
        elif mode == "stops-when-large" and large(tensors):
            os.kill(os.getpid(), signal.SIGSTOP)
        elif mode == "slow":
            time.sleep(0.001 * tensors["q"][0][2])
        return write(tensor_frame(("out", "F64", *tensors["q"][:2])))
    shape, out, lse = attention(metadata, tensors)
    good = ("out", "F64", shape, f64(out))
    last = [shape[0], shape[1], shape[2]]
    if mode == "die-every-third" and calls % 3 == 0:
        sys.exit(5)
    elif mode == "segfault-second" and calls == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif mode == "die-always":
        sys.exit(9)
    elif mode == "late" and calls == 2:
        # A helper process that outlives a kill of its parent alone; the test looks for it.
        import subprocess

        helper = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        print("helper", helper.pid, file=sys.stderr, flush=True)
        time.sleep(600)
    elif mode == "leaves-group" and calls == 2:
        leave_group()
        time.sleep(600)
    elif mode == "held" and calls == 2:
        be_held()
        time.sleep(600)
    elif mode == "spins" and calls == 2:
        print("worker", os.getpid(), file=sys.stderr, flush=True)
        start_daemon()
        while True:
            pass
    elif mode == "daemon" and calls == 2:
        start_daemon()
        time.sleep(600)
    elif mode == "prints-much" and calls == 2:
        print_much()
        write(tensor_frame(good))
    elif mode == "frame-large":
        # As long a frame as any may be, with nothing wrong at its start.
        header = json.dumps({"out": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}).encode()
        write(struct.pack("<QQ", 1 << 30, len(header)) + header)
        for _ in range((1 << 10) - 1):
            write(b"\1" * (1 << 20))
        time.sleep(600)
    elif mode == "print-line" and calls == 2:
        write(b"Loading the model, please wait: 10 % done\n")
        write(tensor_frame(good))
    elif mode == "print-short" and calls == 2:
        write(b"hi\n")
        write(tensor_frame(good))
    elif mode == "print-newline" and calls == 2:
        write(b"\n")
        write(tensor_frame(good))
    elif mode == "print-after" and calls == 2:
        write(tensor_frame(good) + b"done\n")
    elif mode == "print-between" and calls == 2:
        write(tensor_frame(good))
        time.sleep(0.2)
        write(b"done\n")
    elif mode == "nul":
        write(b"\0" * 64)
    elif mode == "frame-zero":
        write(struct.pack("<Q", 0))
    elif mode == "frame-tiny":
        write(struct.pack("<Q", 4) + b"abcd")
    elif mode == "frame-huge":
        write(struct.pack("<Q", (1 << 30) + 1))
    elif mode == "frame-short":
        whole = tensor_frame(good)
        write(struct.pack("<Q", len(whole) - 8 - 8) + whole[8:-8])
    elif mode == "frame-truncated":
        write(tensor_frame(good)[:-4])
        sys.exit(0)
    elif mode == "frame-stuck":
        write(tensor_frame(good)[:-4])
        time.sleep(600)
    elif mode == "no-header":
        write(struct.pack("<Q", 40) + b"x" * 40)
    elif mode == "not-json":
        write(frame(b"{this is no JSON}       "))
    elif mode == "no-out":
        write(tensor_frame(("output", "F64", shape, f64(out))))
    elif mode == "nothing":
        write(frame({}))
    elif mode == "extra-tensor":
        write(tensor_frame(good, ("weights", "F64", [1], f64([1.0]))))
    elif mode == "wrong-shape":
        write(tensor_frame(("out", "F64", shape[::-1], f64(out))))
    elif mode == "wrong-rank":
        write(tensor_frame(("out", "F64", [len(out)], f64(out))))
    elif mode == "wrong-dtype":
        write(tensor_frame(("out", "F32", shape, struct.pack(f"<{len(out)}f", *out))))
    elif mode == "wrong-offsets":
        write(frame({"out": {"dtype": "F64", "shape": shape, "data_offsets": [8, 8 + 8 * len(out)]}}, f64(out)))
    elif mode == "overlap":
        entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 8 * len(out)]}
        write(frame({"out": entry, "lse": entry}, f64(out)))
    elif mode == "wrong-lse":
        write(tensor_frame(good, ("lse", "F32", last, struct.pack(f"<{len(lse)}f", *lse))))
    elif mode == "no-lse":
        write(tensor_frame(good))
    elif mode == "bad-status":
        write(tensor_frame(good, status="fine"))
    elif mode in ("unsupported", "rejected", "failed"):
        write(tensor_frame(status=mode, message=f"this is {mode}"))
    elif mode == "close-output" and calls == 2:
        os.close(1)
        time.sleep(600)
    elif mode == "pid-or-wrong-shape" and calls == 2:
        write(tensor_frame(("out", "F64", shape[::-1], f64(out))))
    elif mode == "pid-or-not-json" and calls == 2:
        write(frame(b"{this is no JSON}       "))
    elif mode.startswith("pid"):
        write(tensor_frame(("out", "F64", shape, f64([float(os.getpid())] * len(out)))))
    elif metadata.get("want") == "lse":
        write(tensor_frame(good, ("lse", "F64", last, f64(lse))))
    else:
        write(tensor_frame(good))


if mode == "die-at-once":
    print("the library libfoo is missing", file=sys.stderr)
    sys.exit(7)
elif mode == "print-at-once":
    write(b"Welcome to the kernel\nversion 1\n")
elif mode == "hang-at-once":
    time.sleep(600)
elif mode == "leaves-group-at-once":
    leave_group()
    time.sleep(600)
elif mode == "prints-much-and-dies":
    print_much()
    sys.exit(7)
elif mode == "close-input":
    os.close(0)
    time.sleep(600)
elif mode == "environment":
    facts = [os.environ.get("OMP_NUM_THREADS"), str(os.getpgrp() == os.getpid())]
    facts.append(" ".join(sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd))))
    facts.append(str(signal.getsignal(signal.SIGINT) is signal.default_int_handler))
    MANIFEST["version"] = "; ".join(map(str, facts))
elif mode == "new-manifest":
    MANIFEST["version"] = str(os.getpid())
elif mode == "bad-manifest":
    MANIFEST["dtypes"] = ["f65"]
elif mode == "silent-operations":
    del MANIFEST["operations"]
elif mode == "multihead":
    del MANIFEST["operations"]

while True:
    metadata, tensors = request()
    if metadata["op"] == "manifest":
        if mode == "no-manifest":
            write(tensor_frame(name="no manifest here"))
        elif mode == "text-for-manifest":
            write(b"Traceback (most recent call last):\n  File \"x\", line 1\n" + b"y" * 100)
        else:
            write(tensor_frame(manifest=json.dumps(MANIFEST)))
        if mode == "ignore-input":
            time.sleep(600)
        if mode == "close-input-later":
            os.close(0)
            time.sleep(600)
        if mode == "die-after-manifest":
            sys.exit(4)
        continue
    if metadata["op"] == "multihead":
        if mode == "multihead":
            shape, data, dtype = tensors["q"]
            write(tensor_frame(("out", dtype, shape, data)))
        else:
            write(tensor_frame(status="unsupported", message="no multihead"))
        continue
    calls += 1
    if mode == "new-manifest" and calls == 2:
        sys.exit(1)
    answer(metadata, tensors)
