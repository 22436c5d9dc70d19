"""A process of the program that answers one question after another, so that a question costs no start of a program."""

import atexit
import json
import math
import mmap
import os
import struct
import subprocess
import tempfile
import threading

from attest import _check
from attest._arrays import CARRIERS
from attest._errors import AttestError


def _shared_file():
    """The descriptor of a file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("attest")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def case_file(metadata, tensors):
    """A case file in pieces: the bytes of its head, and the arrays that follow. `tensors`: by name what on_host gives."""
    header, end = {"__metadata__": metadata}, 0
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head, [array for _, array in tensors.values()]


def save_case(path, metadata, tensors):
    """Writes a case file whole or not at all."""
    head, body = case_file(metadata, tensors)
    part = f"{os.fspath(path)}.part"
    with open(part, "wb") as file:
        file.write(head)
        for array in body:
            file.write(array.tobytes())
    os.replace(part, path)


class _Service:
    def __init__(self):
        self.owner = os.getpid()
        self._memory, self._size, self._map = _shared_file(), 0, None
        command = [_check._program(), "service", str(self._memory)]
        # A session of its own: Ctrl-C is for this process, which then ends the other.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(self._memory,), start_new_session=True
        )
        self._line()

    def _line(self):
        line = self._process.stdout.readline()
        if not line:
            raise AttestError(f"attest's process ended with status {self._process.wait()} before it answered")
        answer = json.loads(line)
        if "refused" in answer:
            raise AttestError(answer["refused"])
        return answer

    def _mapped(self, size):
        if size > self._size:
            size = max(size, 2 * self._size, 1 << 20)
            if os.fstat(self._memory).st_size < size:
                os.ftruncate(self._memory, size)
            self._map, self._size = mmap.mmap(self._memory, size), size
        return self._map

    def ask(self, request, metadata, tensors):
        """The answer, its tensors as arrays of their own, and the header of the file that they came in. `tensors`: by name
        what on_host gives."""
        import numpy

        head, body = case_file(metadata, tensors)
        end = len(head) + sum(array.nbytes for array in body)
        place = self._mapped(end)
        place[: len(head)] = head
        first = len(head)
        for array in body:
            if array.size > 0:
                numpy.copyto(numpy.frombuffer(place, array.dtype, array.size, first).reshape(array.shape), array)
            first += array.nbytes
        try:
            self._process.stdin.write(json.dumps({**request, "bytes": end}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # whoever reads no more answers no more, which is told below
        answer = self._line()
        return (answer, *self._tensors(answer["bytes"]))

    def _tensors(self, size):
        import numpy

        if size == 0:
            return {}, {}
        place = self._mapped(size)
        (length,) = struct.unpack_from("<Q", place)
        header = json.loads(place[8 : 8 + length])
        arrays = {}
        for name, of in header.items():
            if name != "__metadata__":
                first = 8 + length + of["data_offsets"][0]
                array = numpy.frombuffer(place, CARRIERS[of["dtype"]], math.prod(of["shape"]), first)
                arrays[name] = array.reshape(of["shape"]).copy()
        return arrays, header

    def close(self):
        if self.owner == os.getpid():
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            try:
                stream.close()
            except OSError:  # what was not sent has nobody left to read it
                pass
        self._map = None
        os.close(self._memory)


_lock = threading.Lock()
_service = None


def ask(request, metadata, tensors):
    """The answer and its tensors, as ask_for_file gives them."""
    return ask_for_file(request, metadata, tensors)[:2]


def ask_for_file(request, metadata, tensors):
    """As _Service.ask, of the one process that this one has for it; a forked process starts one of its own."""
    global _service
    with _lock:
        if _service is not None and _service.owner != os.getpid():
            _service.close()
            _service = None
        if _service is None:
            _service = _Service()
        try:
            return _service.ask(request, metadata, tensors)
        except AttestError:
            if _service._process.poll() is not None:
                _end()
            raise
        except BaseException:
            # Where the question stopped nobody knows: another one would get this one's answer.
            _end()
            raise


def _end():
    global _service
    if _service is not None:
        _service.close()
        _service = None


atexit.register(_end)
