"""Kernels that take large tensors in shared memory, written out without attest_adapter.py: shares.py MODE. No library.

The answer is q, in f64. Each mode but "correct" differs from it in one thing.
"""

import json
import mmap
import os
import struct
import sys
import time

mode = sys.argv[1]
MANIFEST = {"name": "shares", "dtypes": ["f64"], "operations": ["attention"], "lse": True, "shared_memory": True}


def read_exactly(count):
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


def parsed(body):
    (size,) = struct.unpack_from("<Q", body)
    header = json.loads(body[8 : 8 + size])
    return header.pop("__metadata__"), header, 8 + size


def reply(header, blob=b""):
    text = json.dumps(header).encode()
    data = struct.pack("<QQ", 8 + len(text) + len(blob), len(text)) + text + blob
    while data:
        data = data[os.write(1, data) :]


def answered_in_frame(header, body, start):
    begin, end = header["q"]["data_offsets"]
    return {"out": {**header["q"], "data_offsets": [0, end - begin]}}, body[start + begin : start + end]


def refused(change):
    """Whether the system refuses a change of a sealed file."""
    try:
        change()
    except OSError:
        return True
    return False


def leave_a_writer(path, wait):
    """A process that goes on writing to the answer."""
    if os.fork() == 0:
        file = os.open(path, os.O_RDWR)
        time.sleep(wait)
        for _ in range(200):
            os.pwrite(file, struct.pack("<d", 7.0) * 4096, 0)
            time.sleep(0.005)
        os._exit(0)


def answer(metadata):
    with open(metadata["request_file"], "rb") as file:
        body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    said, header, start = parsed(body)
    places = json.loads(metadata["reply"])
    begin, end = header["q"]["data_offsets"]
    out = places["out"]
    assert start % 64 == 0 and out["shape"] == header["q"]["shape"], (start, out)
    descriptor = os.open(metadata["reply_file"], os.O_RDWR)
    room = mmap.mmap(descriptor, 0)
    if mode in ("shrinks", "grows"):
        length = 4096 if mode == "shrinks" else 1 << 30
        request = os.open(metadata["request_file"], os.O_RDWR)
        if not all(refused(lambda file=file: os.ftruncate(file, length)) for file in (descriptor, request)):
            return reply({"__metadata__": {"status": "failed", "message": "a file could be cut off"}})
    elif mode == "writes-to-request":
        body[start : start + 8] = struct.pack("<d", 5.0)  # its own copy
        request = os.open(metadata["request_file"], os.O_RDWR)
        if not refused(lambda: os.pwrite(request, b"x", start)) or not refused(lambda: mmap.mmap(request, 0)):
            return reply({"__metadata__": {"status": "failed", "message": "the request could be changed"}})
        body = open(metadata["request_file"], "rb").read()
    elif mode == "writes-late":
        leave_a_writer(metadata["reply_file"], 0.3)
    elif mode == "punches":
        import ctypes

        ctypes.CDLL(None).fallocate(descriptor, 3, ctypes.c_long(0), ctypes.c_long(1 << 20))
    if mode == "ignores":
        return reply(*answered_in_frame(header, body, start))
    if mode == "other-shape":
        frame, blob = answered_in_frame(header, body, start)
        frame["out"]["shape"] = frame["out"]["shape"][::-1]
        return reply(frame, blob)
    if mode == "says-maybe":
        return reply({"__metadata__": {"shared_memory": "maybe"}})
    if mode == "says-both":
        frame, blob = answered_in_frame(header, body, start)
        return reply({"__metadata__": {"shared_memory": "yes"}, **frame}, blob)
    if mode == "declines":
        return reply({"__metadata__": {"status": "unsupported", "message": "not today"}})
    if mode == "dies":
        os.abort()
    if mode == "unreachable":
        return reply({"__metadata__": {"shared_memory": "unreachable"}})
    if mode != "writes-nothing":
        whole = slice(begin + start, (begin + start + 4096) if mode == "writes-a-part" else (end + start))
        room[: whole.stop - whole.start] = body[whole]
    if "lse" in places:
        first, last = places["lse"]["data_offsets"]
        assert said["want"] == "lse" and first % 64 == 0
        room[first:last] = struct.pack("<d", 3.0) * ((last - first) // 8)
    return reply({"__metadata__": {"shared_memory": "yes"}})


while True:
    (length,) = struct.unpack("<Q", read_exactly(8))
    body = read_exactly(length)
    metadata, header, start = parsed(body)
    if metadata["op"] == "manifest":
        reply({"__metadata__": {"manifest": json.dumps(MANIFEST)}})
    elif "request_file" in metadata:
        answer(metadata)
    else:
        # So that a test sees which way a call has gone.
        frame, blob = answered_in_frame(header, body, start)
        reply(frame, struct.pack("<d", -1.0) + blob[8:])
