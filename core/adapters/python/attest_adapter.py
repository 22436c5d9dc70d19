"""Puts a Python function under test by Attest. One file, no dependency but numpy (or torch, for torch functions).

    import attest_adapter                      # first: it takes standard output for the replies

    def attention(q, k, v, mask=None, scale=1.0): ...
    attest_adapter.serve(attention, {"name": "mine", "dtypes": ["f32"]})

and then:  attest check --kernel 'exec:python3 mine.py'

The function gets q [batch, heads, M, dk], k and v [batch, kv_heads, N, dk|dv] by position, and by name those of these
that it has parameters for:
    mask             None, or [batch|1, heads|1, M, N]: boolean (True: may attend) or additive
    scale            multiplies q.k (a function without it is asked for 1/sqrt(dk) only)
    causal           "none", "top-left" or "bottom-right", on top of the mask
    mask_convention  "post-scale": scale*qk + mask, or "pre-scale": scale*(qk + mask)
    want_lse         True: return (out, lse), lse [batch, heads, M] in float64
    out_dtype        None, or the dtype of out as a word: "f32"
    window_left, window_right, alignment
                     a row at position p sees keys p - window_left .. p + window_right; -1: that side has no end.
                     alignment "top-left": p = i; "bottom-right": p = i + N - M; None without a window, chunks or slopes
A function with either end as a parameter is asked for windows, unless the manifest's "variants" says otherwise. It can
leave alignment out where the manifest lists one alone: "variants": {"window": {"alignment": ["top-left"]}}. Beside a
causal form alignment is that of the form.
    attention_chunk  0, or a whole number C > 0: a row at position p sees keys j of its own chunk alone, those with
                     j // C == p // C, of those that mask, causal form and window show it; none where p < 0
    q_lengths, kv_lengths
                     None, or [batch], int32: the first so many rows and keys of each entry are its own; those behind
                     are padding, and positions, M and N are those of the entry's own lengths
    q_starts, kv_starts
                     None, or [sequences + 1], int32: batch is 1, and sequence s has the tokens from start[s] to before
                     start[s + 1]
    left_pad         None, or [batch], int32: so many of the first keys of each entry are padding; kv_lengths counts
                     them, positions and N do not
    page_table, page_table_v
                     None, or [batch, columns], int32: k is [pages, kv_heads, page size, dk], v alike, and key j of entry
                     b stands in slot j % page size of page table[b, j // page size]; kv_lengths is there. page_table_v:
                     that of v, None: the same
    cache_index      None, or [batch], int32: entry b reads row cache_index[b] of k and v, which have more rows than
                     the batch
    k_new, v_new     None, or [batch, kv_heads, L, dk|dv]: the function writes them into k and v behind the kv_lengths keys
                     that these hold, and its rows see them: positions and N are those of kv_lengths + L. Where k and v
                     cannot be written to, it returns (out, lse, k, v)
    sink             None, or [heads], float32: e**sink joins the sum of the weights of each row of the head, and the
                     sum in its lse, with no value; -inf: none. A row that sees no key is 0 then, its lse the sink
    softcap          0.0 (None where that is the parameter's default), or a number c > 0: scale*qk becomes
                     c*tanh(scale*qk/c) before the mask is added to it
    keep, dropout_p  None and 0.0, or [batch|1, heads|1, M, N], boolean (True: kept), and 0 <= p < 1: once the weights are
                     normalised, those that are not kept become 0, and the others are divided by 1 - p; nothing is
                     normalised again, and lse is that of all weights. A keep comes with a p of 0, too
    alibi_slopes     None, or [batch|1, heads], float32: slope*|p - j| is taken from the score of key j in a row at
                     position p, after the scale and a cap, beside a mask. p is as alignment says
    q_descale, k_descale, v_descale
                     None, or [batch|1, heads|1, blocks|1], of k and v kv_heads for heads, float32: row i of q counts as
                     q_descale[b, h, i // q_descale_block] times itself, and key j and its value likewise, by
                     kv_descale_block, wherever in a cache they lie. lse is that of these products
    q_descale_block, kv_descale_block
                     so many rows, or keys, have a factor together, the last ones what is left; 0: all of a head
A function with these as parameters is asked for chunks of keys, for sequences of lengths of their own, padded, packed
or in a cache, for sinks, for capped scores, for ALiBi slopes, for factors and, where it has both keep and dropout_p,
for dropout, likewise. Without a block's parameter it is asked for one factor to a head, or for blocks of the one length
that the manifest lists: "variants": {"descale": {"kv_blocks": [64]}}. k and v come in int8 where its "kv_dtypes" lists
"i8".
It returns out [batch, heads, M, dv] in q's dtype, or (out, lse). It may raise Unsupported (it cannot do this one: the
case is skipped) or Rejected (the problem is invalid); any other exception is a failure of the kernel.

backward= names the backward pass of the function, or is "autograd": that of PyTorch through the function itself, with
framework="torch". A backward function gets q, k and v by position, and by name d_out, the gradient by the output, in its
shape, and those of these that it has parameters for:
    out, lse         what the function itself returned for this problem, lse in float64; a function that takes lse must
                     have a forward function with the parameter want_lse
    d_lse            the gradient by the log-sum-exp [batch, heads, M] in q's dtype, or None, where there is none
    mask, scale, causal, mask_convention, window_left, window_right, attention_chunk, alignment
                     as above
It returns dq, dk and dv (of them those that the manifest's "backward" lists in "gradients"), or a dict of these names, in
the shapes and dtypes of q, k and v; dk and dv are summed over the heads of a group. A function with a parameter wanted is
told which are asked for, a list of names, and may return a dict of these alone. Where "gradients" lists "dmask", or
"dsink", it returns that behind these for problems that have an additive mask, or sinks, in the shape and dtype of it and
summed over axes of length 1; "autograd" has them by a mask and sinks that require gradients, and takes d_lse where the
manifest's "backward" says "d_lse": True and autograd leads from the lse of the function. "operations", "lse" and, in
"backward", "uses", "own_forward", "d_lse" and "weights" are filled in where the manifest is silent: weights are "lse" where lse is taken, or by "autograd" where
the function has want_lse, else "stored". "autograd" calls the function again, which "own_forward" says. Attest asks for a log-sum-exp beside
gradients: of a function without want_lse this file computes one itself, from the definition in float64, of which no verdict
says anything about the function.

multihead= names a function of q, k, v [batch, length, channels], w_q, w_k, w_v by position, and by name heads, b_q,
b_k, b_v, w_o, b_o, bias_k, bias_v (None: absent), mask, scale, causal, mask_convention. Weights multiply as in X*W.

With "strides": true in the manifest the arrays come in other memory layouts too (token-major, padded rows, stride 0, …):
views of larger buffers that hold NaN between the elements. A call that changes such a buffer has failed.

framework="numpy": arrays; bf16 is float32 here (exact on the way in, rounded once to nearest on the way out), or with
bf16="bits" its uint16 patterns; fp8 is uint8 patterns. framework="torch": tensors, in inference mode, on device="cuda"
where that is said; fp8 in PyTorch 2.1 and later. The function may return whatever the framework takes in through
DLPack, on a device too.

Large tensors come in shared memory: arrays and tensors are views of it, begin at multiples of 64 bytes where their sizes
let them, and may be written to, which nobody else sees; what the function returns is copied once, to where Attest reads
it. With "shared_memory": false in the manifest everything goes through standard input and output.
"""

import os

# The package attest, which serves other pipes, sets this before it loads the module.
_owns_standard_output = globals().get("_owns_standard_output", True)
if _owns_standard_output:
    # Before anything else can print: what is printed from here on goes to standard error, the replies to this copy.
    _replies = os.dup(1)
    os.dup2(2, 1)

import contextlib  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import mmap  # noqa: E402
import struct  # noqa: E402
import sys  # noqa: E402
import traceback  # noqa: E402

_MAX_FRAME = 1 << 30
_USUAL_FRAME = 1 << 13  # a frame of fewer bytes is read by one call of the system
_LENGTH = struct.Struct("<Q")
_LENGTHS = struct.Struct("<QQ")
_decoded = json.JSONDecoder().raw_decode  # json.loads first finds out what it was given
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1, "I32": 4, "I8": 1}
_MULTIHEAD_OPTIONAL = ("b_q", "b_k", "b_v", "w_o", "b_o", "bias_k", "bias_v")
# What a request may hold: its keys, with the words that each may be where these are few, and its tensors.
_KEYS = {
    "attest": ("1", "2"),
    "op": ("attention", "multihead", "attention_backward"),
    "scale": None,
    "mask_convention": ("post-scale", "pre-scale"),
    "causal": ("none", "top-left", "bottom-right"),
    "heads": None,
    "want": None,
    "out_dtype": tuple(name.lower() for name in _SIZES if name not in ("BOOL", "I32", "I8")),
    "strides": None,
}
# The arguments of variants, with what they are where a problem has none of it. One that stands in no row here has an
# argument of its own name.
_VARIANTS = {
    "window": {"window_left": -1, "window_right": -1, "alignment": None},
    "chunk": {"attention_chunk": 0, "alignment": None},
    "lengths": {"q_lengths": None, "kv_lengths": None},
    "packed": {"q_starts": None, "kv_starts": None},
    "left_pad": {"left_pad": None},
    "paged": {"page_table": None, "page_table_v": None},
    "append": {"k_new": None, "v_new": None},
    "cache_index": {"cache_index": None},
    "sink": {"sink": None},
    "softcap": {"softcap": 0.0},
    # The seed is that of a mask that the function draws itself, which the manifest's "mask" of dropout says.
    "dropout": {"keep": None, "dropout_p": 0.0, "dropout_seed": 0},
    "alibi": {"alibi_slopes": None, "alignment": None},
    "descale": {"q_descale": None, "k_descale": None, "v_descale": None, "q_descale_block": 0, "kv_descale_block": 0},
}
_NEUTRAL = {name: value for arguments in _VARIANTS.values() for name, value in arguments.items()}
_GRADIENTS = {"dq": "q", "dk": "k", "dv": "v", "dmask": "mask", "dsink": "sink"}  # and of what
# Of arguments that a function takes by name, and that not every problem has.
_GRADIENTS_BY_NAME = {"dmask": "mask", "dsink": "sink"}
# What the backward pass of an attention function may take beside all that this takes.
_OF_BACKWARD = ("d_out", "out", "lse", "d_lse")
# Variants that _log_sum_exp knows.
_IN_LSE = ("window", "chunk", "softcap", "sink", "dropout")
_TENSORS = {
    "attention": ("q", "k", "v", "mask"),
    "attention_backward": ("q", "k", "v", "mask", *_OF_BACKWARD),
    "multihead": ("q", "k", "v", "mask", "w_q", "w_k", "w_v", *_MULTIHEAD_OPTIONAL),
}
# What a problem has when nothing is said, so that a function without the parameter can serve it all the same.
_ABSENT = {
    "mask": None,
    "causal": "none",
    "want_lse": False,
    "out_dtype": None,
    **dict.fromkeys(_MULTIHEAD_OPTIONAL),
    **_NEUTRAL,
}


class Unsupported(Exception):
    """The kernel cannot do this problem: it is skipped and counted."""


class Rejected(Exception):
    """The problem is invalid."""


def _pieces(count):
    """Slices that stay in a cache: of large arrays intermediate results cost more than the work."""
    return (slice(start, start + (1 << 15)) for start in range(0, count, 1 << 15))


def bf16_to_f32(bits):
    """uint16 patterns of bfloat16 as float32, exactly."""
    import numpy

    bits = numpy.asarray(bits, numpy.uint16)
    result = numpy.empty(bits.shape, numpy.uint32)
    flat, into = bits.reshape(-1), result.reshape(-1)
    for piece in _pieces(flat.size):
        numpy.left_shift(flat[piece], numpy.uint32(16), out=into[piece], dtype=numpy.uint32)
    return result.view(numpy.float32)


def f32_to_bf16(values, result=None):
    """float32 as uint16 patterns of bfloat16, rounded once to nearest, ties to even; NaN stays NaN. In `result`, a
    contiguous array of as many, where one is given."""
    import numpy

    values = numpy.ascontiguousarray(values, numpy.float32)
    result = numpy.empty(values.shape, numpy.uint16) if result is None else result
    flat, into = values.reshape(-1), result.reshape(-1)
    for piece in _pieces(flat.size):
        bits = flat[piece].view(numpy.uint32)
        high = bits >> numpy.uint32(16)
        rounded = (bits + numpy.uint32(0x7FFF) + (high & numpy.uint32(1))) >> numpy.uint32(16)
        is_nan = (bits & numpy.uint32(0x7FFFFFFF)) > numpy.uint32(0x7F800000)
        into[piece] = numpy.where(is_nan, high | numpy.uint32(0x40), rounded)
    return result


def _number_or_word(text):
    """What stands in a request, as a whole number, a number or a word."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def _refuse_unknown(metadata, header, listed):
    """Raises Unsupported for an argument of a later Attest that is not among those that the manifest lists: left out, it
    would be judged as if it had been heeded."""
    op = metadata["op"]
    for name in metadata.get("variants", "").split():
        if not set(_VARIANTS.get(name, (name,))) <= listed:
            raise Unsupported(f'this attest_adapter.py does not know the variant "{name}", or its manifest does not list it')
    for key, value in metadata.items():
        if key in listed or key == "variants":
            continue
        if key not in _KEYS or (key == "heads" and op != "multihead"):
            raise Unsupported(f'this attest_adapter.py does not know the key "{key}" of a request')
        if _KEYS[key] and value not in _KEYS[key]:
            raise Unsupported(f'this attest_adapter.py does not know "{value}" as {key}')
    known_wants = _GRADIENTS if op == "attention_backward" else ("lse",)
    for word in metadata.get("want", "").split():
        if word not in known_wants:
            raise Unsupported(f'this attest_adapter.py does not know "{word}" as want of {op}')
    for name, tensor in header.items():
        if name not in _TENSORS[op] and name not in listed:
            raise Unsupported(f'this attest_adapter.py does not know a tensor "{name}" of {op}')
        if tensor["dtype"] not in _SIZES:
            raise Unsupported(f'this attest_adapter.py does not know the dtype {tensor["dtype"]} of {name}')


def _parsed(body, at=0):
    """Metadata and header of a safetensors file that begins at a byte of `body`, and where its tensors begin."""
    (length,) = _LENGTH.unpack_from(body, at)
    header, _ = _decoded(body[at + 8 : at + 8 + length].decode())
    return header.pop("__metadata__", {}), header, at + 8 + length


def _mapped(path, flags, access):
    """A file of Attest's, as a whole. OSError where there is none: in a container the same path may be another file."""
    if not os.readlink(path).startswith("/memfd:attest-"):
        raise OSError(f"{path} is no file of Attest's")
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, 0, access=access)
    finally:
        os.close(descriptor)


class _Room:
    """Shared memory for an answer; `places` is where its tensors go, as a safetensors header says it."""

    def __init__(self, path, places):
        self.memory = _mapped(path, os.O_RDWR, mmap.ACCESS_WRITE)
        self.places = places

    def place(self, name, dtype, shape):
        """Where a tensor goes, as a view of its bytes; None where another one is due there."""
        due = self.places.get(name, {})
        if due.get("dtype") != dtype or due.get("shape") != list(shape):
            return None
        begin, end = due["data_offsets"]
        return memoryview(self.memory)[begin:end]


class Channel:
    """Requests from one descriptor and replies to another: a frame each, as kernel-interface.md has them."""

    def __init__(self, requests, replies):
        self.requests, self.replies = requests, replies
        self.ahead = b""  # what came behind the last request
        self.room = None  # for the answer to the last request, where that came in shared memory

    def _frame(self):
        """The next one, its length included, in a buffer that is nobody else's; None at the end."""
        frame, got, size = bytearray(_USUAL_FRAME), len(self.ahead), None
        frame[:got] = self.ahead
        while True:
            if size is None and got >= 8:
                size = 8 + _LENGTH.unpack_from(frame)[0]
                if size > 8 + _MAX_FRAME:
                    raise SystemExit("attest_adapter: the input carries no frames; start this with attest --kernel 'exec:…'")
                if size > len(frame):
                    whole = bytearray(size)
                    whole[:got] = memoryview(frame)[:got]
                    frame = whole
            if size is not None and got >= size:
                break
            n = os.readv(self.requests, [memoryview(frame)[got:] if got else frame])
            if n == 0:
                return None
            got += n
        self.ahead = bytes(frame[size:got])
        return frame

    def _write(self, parts):
        total = sum(map(len, parts))
        sent = os.writev(self.replies, parts)
        if sent < total:
            rest = memoryview(b"".join(parts))
            while sent < total:
                sent += os.write(self.replies, rest[sent:])

    def reply(self, metadata, tensors=()):
        """One frame; `tensors` are (name, safetensors dtype, shape, bytes)."""
        entries = [f'"__metadata__": {json.dumps(metadata)}'] if metadata else []
        end = 0
        for name, dtype, shape, data in tensors:
            begin, end = end, end + len(data)
            extents = ", ".join(map(str, shape))
            entries.append(f'"{name}": {{"dtype": "{dtype}", "shape": [{extents}], "data_offsets": [{begin}, {end}]}}')
        text = f"{{{', '.join(entries)}}}".encode()
        text += b" " * (-len(text) % 8)
        self._write([_LENGTHS.pack(8 + len(text) + end, len(text)), text, *(t[3] for t in tensors)])

    def request(self):
        """The next: its metadata, the header's entries by name, the body, where tensors begin; None at the end."""
        body = self._frame()
        if body is None:
            return None
        metadata, header, start = _parsed(body, 8)
        self.room = None
        if "request_file" not in metadata:
            return metadata, header, body, start
        try:
            # Private: what the function writes to its inputs is nobody else's.
            body = _mapped(metadata["request_file"], os.O_RDONLY, mmap.ACCESS_COPY)
            self.room = _Room(metadata["reply_file"], json.loads(metadata["reply"]))
        except (OSError, ValueError):
            self.reply({"shared_memory": "unreachable"})
            return self.request()
        metadata, header, start = _parsed(body)
        return metadata, header, body, start


_NO_SCOPE = contextlib.nullcontext()


class _Numpy:
    def __init__(self, bf16):
        import numpy

        self.numpy = numpy
        self.bf16_as_f32 = bf16 == "f32"
        self.dtypes = {
            "F64": numpy.dtype(numpy.float64),
            "F32": numpy.dtype(numpy.float32),
            "F16": numpy.dtype(numpy.float16),
            "BF16": numpy.dtype(numpy.uint16),
            "F8_E4M3": numpy.dtype(numpy.uint8),
            "F8_E5M2": numpy.dtype(numpy.uint8),
            "BOOL": numpy.dtype(numpy.bool_),
            "I32": numpy.dtype(numpy.int32),
            "I8": numpy.dtype(numpy.int8),
        }

    def read(self, dtype, shape, body, offset):
        array = self.numpy.ndarray(shape, self.dtypes[dtype], body, offset)
        if dtype == "BF16" and self.bf16_as_f32:
            return bf16_to_f32(array)
        return array if array.flags.aligned else array.copy()

    def laid_out(self, array, start, strides, elements):
        numpy = self.numpy
        hidden = 1 if array.dtype == bool else 0x7F if array.dtype == numpy.int8 else 0xFF
        buffer = numpy.full(elements * array.itemsize, hidden, numpy.uint8)
        whole = buffer.view(array.dtype)
        steps = [stride * array.itemsize for stride in strides]
        view = numpy.lib.stride_tricks.as_strided(whole[start:], array.shape, steps)
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
        view[once] = array[once]
        return view, (buffer, buffer.copy())

    def unchanged(self, memory):
        return self.numpy.array_equal(*memory)

    def checked(self, value, dtype, name):
        array = self.numpy.asarray(value)
        converts = dtype == "BF16" and self.bf16_as_f32
        due = self.dtypes["F32" if converts else dtype]
        if array.dtype != due:
            raise TypeError(f"the function returned {name} in {array.dtype} where {due} is due; end it with .astype({due})")
        return array

    def in_double(self, array):
        """As an array of NumPy, whatever the format."""
        if array.dtype == self.numpy.uint8:
            raise Unsupported("no log-sum-exp is computed of patterns of 8 bits; return it, with a parameter want_lse")
        numbers = bf16_to_f32(array) if array.dtype == self.numpy.uint16 else array
        return numbers.astype(self.numpy.float64)

    def of_double(self, array):
        return array

    def bytes_of(self, array, dtype):
        return (f32_to_bf16(array) if dtype == "BF16" and self.bf16_as_f32 else array).tobytes()

    def write_to(self, place, array, dtype):
        into = self.numpy.frombuffer(place, self.dtypes[dtype]).reshape(array.shape)
        if dtype == "BF16" and self.bf16_as_f32:
            f32_to_bf16(array, into)
        else:
            self.numpy.copyto(into, array)

    def scope(self):
        return _NO_SCOPE

    def scope_of_backward(self):
        return _NO_SCOPE


class _Torch:
    def __init__(self, device):
        import torch

        self.torch = torch
        self.device = device
        self.dtypes = {
            "F64": torch.float64,
            "F32": torch.float32,
            "F16": torch.float16,
            "BF16": torch.bfloat16,
            "BOOL": torch.bool,
            "I32": torch.int32,
            "I8": torch.int8,
        }
        in_8_bits = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
        self.dtypes.update({ours: getattr(torch, name) for ours, name in in_8_bits.items() if hasattr(torch, name)})

    def read(self, dtype, shape, body, offset):
        if dtype not in self.dtypes:
            raise Unsupported(f"torch tensors of {dtype} are not made here")
        count = math.prod(shape)
        if count == 0:
            return self.torch.empty(shape, dtype=self.dtypes[dtype], device=self.device)
        size = _SIZES[dtype]
        if offset % size:
            body, offset = bytearray(body[offset : offset + count * size]), 0
        bits = self.torch.uint8 if dtype.startswith("F8") else self.dtypes[dtype]
        tensor = self.torch.frombuffer(body, dtype=bits, count=count, offset=offset)
        tensor = tensor.view(self.dtypes[dtype]).view(shape)
        return tensor if self.device is None else tensor.to(self.device)

    def laid_out(self, tensor, start, strides, elements):
        torch = self.torch
        if tensor.is_floating_point():
            # All bits: NaN in every format, and not every format can be filled with a number.
            size = elements * tensor.element_size()
            buffer = torch.full((size,), 0xFF, dtype=torch.uint8, device=self.device).view(tensor.dtype)
        else:
            hidden = True if tensor.dtype == torch.bool else torch.iinfo(tensor.dtype).max
            buffer = torch.full((elements,), hidden, dtype=tensor.dtype, device=self.device)
        # What lies along a stride of 0 is written once: torch refuses to write through a view that overlaps itself.
        once = tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]
        buffer.as_strided(once.shape, strides, start).copy_(once)
        return buffer.as_strided(tensor.shape, strides, start), (buffer, buffer.clone())

    def unchanged(self, memory):
        now, before = (buffer.view(self.torch.uint8) for buffer in memory)
        return self.torch.equal(now, before)

    def checked(self, value, dtype, name):
        if not isinstance(value, self.torch.Tensor):
            value = self.torch.from_dlpack(value)
        due = self.dtypes[dtype]
        if value.dtype != due:
            raise TypeError(f"the function returned {name} in {value.dtype} where {due} is due; end it with .to({due})")
        return value

    def in_double(self, tensor):
        return tensor.detach().double().cpu().numpy()

    def of_double(self, array):
        return self.torch.from_numpy(array)

    def bytes_of(self, tensor, dtype):
        bits = tensor.detach().cpu().contiguous()
        if dtype == "BF16":
            bits = bits.view(self.torch.int16)
        elif dtype.startswith("F8"):
            bits = bits.view(self.torch.uint8)
        return bits.numpy().tobytes()

    def write_to(self, place, tensor, dtype):
        # From a device straight to where Attest reads it.
        bits = self.torch.uint8 if dtype.startswith("F8") else tensor.dtype
        self.torch.frombuffer(place, dtype=bits).view(tensor.dtype).view(tensor.shape).copy_(tensor)

    def scope(self):
        return self.torch.inference_mode()

    def scope_of_backward(self):
        # Tensors of inference mode are none that autograd could follow.
        return self.torch.inference_mode(False)

    def read_apart(self, dtype, shape, body, offset):
        """In memory of its own, at a place that does not depend on the request's head: products sum in another order where
        they begin elsewhere, and autograd calls the function a second time."""
        return self.read(dtype, shape, body, offset).clone()

    def by_autograd(self, function, gradients):
        """(forward, backward): the function, and its backward pass by PyTorch's autograd through it, the gradients that are
        listed. Both call it on tensors that require gradients, as what is chosen inside may depend on that."""
        torch = self.torch

        def outputs(inputs, named):
            with torch.enable_grad():
                result = function(*inputs, **named)
            return result if isinstance(result, (tuple, list)) else (result,)

        def leaves(*tensors):
            return [tensor.detach().requires_grad_() for tensor in tensors]

        def with_leaves(q, k, v, named, wanted=None):
            """(by gradient, q, k and v first, what it is by; what is passed by name). Who wants some of the gradients alone
            has made nothing else require them."""
            by = {"dq": q, "dk": k, "dv": v}
            for gradient, name in _GRADIENTS_BY_NAME.items():
                tensor = named.get(name)
                if gradient in gradients and tensor is not None and tensor.dtype != torch.bool:
                    by[gradient] = tensor
            there = [gradient for gradient in by if gradient in gradients]
            for gradient in by if wanted is None or set(wanted) == set(there) else wanted:
                [by[gradient]] = leaves(by[gradient])
                if gradient in _GRADIENTS_BY_NAME:
                    named = {**named, _GRADIENTS_BY_NAME[gradient]: by[gradient]}
            return by, named

        def forward(q, k, v, **named):
            if named.get("k_new") is not None:  # it writes to k and v
                return function(q, k, v, **named)
            by, named = with_leaves(q, k, v, named)
            result = outputs(list(by.values())[:3], named)
            result = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in result)
            return result if len(result) > 1 else result[0]

        def backward(q, k, v, d_out, out=None, lse=None, d_lse=None, wanted=gradients, **named):
            by, named = with_leaves(q, k, v, named, wanted)
            if d_lse is not None or (lse is not None and _has(function, "want_lse")):
                named = {**named, "want_lse": True}
            again, *others = outputs(list(by.values())[:3], named)
            lse_again = others[0] if others else None
            if not isinstance(again, torch.Tensor) or not again.requires_grad:
                raise TypeError(
                    'backward is "autograd", and none leads from the output to q, k and v: the function must be made of '
                    "PyTorch's operations, or of functions with a backward pass of their own"
                )
            losses = {again: d_out}
            if d_lse is not None:
                if not isinstance(lse_again, torch.Tensor) or not lse_again.requires_grad:
                    raise TypeError('"backward" says "d_lse", and no autograd leads from the log-sum-exp to q and k')
                losses[lse_again] = d_lse.to(lse_again.dtype)
            of_another = out is not None and not self.equal(again.detach(), out)
            # One that the adapter made of the scores is no answer of the function.
            if lse is not None and isinstance(lse_again, torch.Tensor):
                of_another = of_another or not self.equal(lse_again.detach(), lse)
            if of_another:
                raise Unsupported("called again, the function answers otherwise: its gradients are those of another output")
            # Of an input on which nothing depends it is None.
            by = {name: x for name, x in by.items() if name in wanted}
            found = torch.autograd.grad(list(losses), list(by.values()), list(losses.values()), allow_unused=True)
            return {name: torch.zeros_like(by[name]) if x is None else x for name, x in zip(by, found)}

        return forward, backward

    def equal(self, a, b):
        return self.torch.equal(a.isnan(), b.isnan()) and self.torch.equal(a.nan_to_num(), b.nan_to_num())


_SCORES_AT_ONCE = 1 << 20
# The arguments of _log_sum_exp that are numbers and words.
_LSE_WORDS = ("scale", "causal", "mask_convention", "window_left", "window_right", "attention_chunk", "alignment",
              "softcap")  # fmt: skip


def _log_sum_exp(q, k, mask=None, scale=1.0, causal="none", mask_convention="post-scale", window_left=-1, window_right=-1,
                 attention_chunk=0, alignment=None, softcap=0.0, sink=None):  # fmt: skip
    """That of the definition, in float64, of arrays of float64 and a mask of these or of truth values; dropout has no part
    in it."""
    import numpy

    (batch, heads, queries, _), (_, groups, keys, _) = q.shape, k.shape
    sinks = numpy.full(heads, -numpy.inf) if sink is None else sink
    lse = numpy.repeat(sinks[None, :, None], queries, axis=2).repeat(batch, axis=0)
    if keys == 0:
        return lse
    from_last = (alignment if causal == "none" else causal) == "bottom-right"
    j = numpy.arange(keys)
    at_once = max(1, _SCORES_AT_ONCE // keys)
    for b, h, first in ((b, h, i) for b in range(batch) for h in range(heads) for i in range(0, queries, at_once)):
        rows = slice(first, first + at_once)
        position = numpy.arange(queries)[rows, None] + (keys - queries if from_last else 0)
        with numpy.errstate(all="ignore"):
            scores = q[b, h, rows] @ k[b, h // (heads // groups)].T
            biased = None if mask is None else mask[b if mask.shape[0] > 1 else 0, h if mask.shape[1] > 1 else 0, rows]
            adds = biased is not None and biased.dtype != bool
            scores = scale * (scores + biased) if adds and mask_convention == "pre-scale" else scale * scores
            scores = softcap * numpy.tanh(scores / softcap) if softcap else scores
            scores = scores + biased if adds and mask_convention == "post-scale" else scores
            hidden = (j > position) if causal != "none" else numpy.zeros(scores.shape, bool)
            if biased is not None:
                hidden = hidden | (numpy.isneginf(biased) if adds else ~biased)
            if window_left >= 0:
                hidden = hidden | (j < position - window_left)
            if window_right >= 0:
                hidden = hidden | (j > position + window_right)
            if attention_chunk:  # rounded down, so that a row before the keys is in a chunk without any
                hidden = hidden | (position // attention_chunk != j // attention_chunk)
            scores = numpy.where(hidden, -numpy.inf, scores)
            most = numpy.maximum(scores.max(axis=-1), sinks[h])
            offset = numpy.where(numpy.isfinite(most), most, 0)
            weights = numpy.exp(scores - offset[:, None]).sum(axis=-1) + numpy.exp(sinks[h] - offset)
            lse[b, h, rows] = offset + numpy.log(weights)
    return lse


def _parameters(function):
    """Names the function can be given, with their defaults, or None when it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name: p.default for p in parameters if p.kind is not p.POSITIONAL_ONLY}


def _has(function, name):
    """Whether a function can be given an argument of this name."""
    known = _parameters(function)
    return known is None or name in known


def _backward_completed(terms, attention, backward):
    """What the manifest's "backward" says, with what follows from the functions."""
    terms = dict(terms or {})
    if backward == "autograd":  # out is compared with what the function answers when it is called again
        uses = ["out", "lse"] if _has(attention, "want_lse") else ["out"]
        terms.setdefault("own_forward", True)
    else:
        uses = [name for name in ("out", "lse") if _has(backward, name)]
        if "d_lse" in (_parameters(backward) or ()):
            terms.setdefault("d_lse", True)
    terms.setdefault("uses", uses)
    terms.setdefault("weights", "lse" if "lse" in terms["uses"] else "stored")
    return terms


def _has_lse(name, terms):
    """Whether the log-sum-exp of a function that returns none is known beside this variant."""
    return name in _IN_LSE and terms.get("lse") != "without"


def _completed(manifest, attention, multihead, backward=None):
    """The manifest with what follows from the functions, where it says nothing."""
    manifest = dict(manifest or {})
    function = attention or multihead
    entries = {"attention": attention, "multihead": multihead, "attention_backward": backward}
    manifest.setdefault("name", getattr(function, "__name__", "python function"))
    manifest.setdefault("dtypes", ["f64", "f32"])
    manifest.setdefault("operations", [op for op, entry in entries.items() if entry])
    if backward is not None:
        manifest.setdefault("lse", True)
        manifest["backward"] = _backward_completed(manifest.get("backward"), attention, backward)
    manifest.setdefault("shared_memory", True)
    known = _parameters(function)
    if known is not None:
        if "scale" not in known:
            manifest.setdefault("scale", "inv-sqrt-dk")
        if "mask" not in known:
            manifest.setdefault("masks", [])
        manifest.setdefault("causal", ["top-left", "bottom-right"] if "causal" in known else [])
        ends = {end: f"window_{end}" in known for end in ("left", "right")}
        lengths = {"queries": "q_lengths" in known, "keys": "kv_lengths" in known}
        served = {"window": ends} if any(ends.values()) else {}
        if any(lengths.values()):
            served["lengths"] = lengths
        if {"q_starts", "kv_starts"} <= known.keys():
            served["packed"] = {}
        served.update({name: {} for name in ("left_pad", "cache_index", "sink", "softcap") if name in known})
        if "page_table" in known and lengths["keys"]:
            served["paged"] = {"two_tables": "page_table_v" in known}
        if {"k_new", "v_new"} <= known.keys() and lengths["keys"]:
            served["append"] = {}
        if "attention_chunk" in known:
            served["chunk"] = {}
        if "alibi_slopes" in known:
            served["alibi"] = {"per_batch": True}
        factors = [tensor for tensor in "qkv" if f"{tensor}_descale" in known]
        if factors:
            blocks = {"q_descale_block" if tensor == "q" else "kv_descale_block" for tensor in factors}
            served["descale"] = {"tensors": factors, "per_batch": True}
            served["descale"].update({"blocks": "any"} if blocks <= known.keys() else {})
        # A rate alone is that of a mask that the function draws itself.
        if {"keep", "dropout_p"} <= known.keys():
            served["dropout"] = {}
        if served:
            manifest.setdefault("variants", served)
    if backward is not None and not _has(attention, "want_lse"):
        manifest["variants"] = {
            name: terms if _has_lse(name, terms) else {**terms, "excludes": [*terms.get("excludes", ()), "lse"]}
            for name, terms in manifest.get("variants", {}).items()
        }
    return manifest


class Server:
    """Answers the requests of a channel by the functions; see serve."""

    takes_turns = False  # whether whoever answers this channel answers others meanwhile, one request after the other

    def __init__(self, channel, attention, multihead, manifest, framework, backward=None):
        self.channel = channel
        self.functions = {"attention": attention, "multihead": multihead, "attention_backward": backward}
        self.by_autograd = backward == "autograd"
        if self.by_autograd:
            self.functions["attention"], self.functions["attention_backward"] = framework.by_autograd(
                attention, manifest["backward"].get("gradients", ("dq", "dk", "dv"))
            )
        self.known = {op: _parameters(f) for op, f in self.functions.items() if f}
        if backward == "autograd":
            known = self.known["attention"] = _parameters(attention)
            self.known["attention_backward"] = None if known is None else {**known, **dict.fromkeys((*_OF_BACKWARD, "wanted"))}
        self.makes_lse = backward is not None and not _has(attention, "want_lse")
        self.manifest = manifest
        self.framework = framework
        listed = [argument for name in manifest.get("variants", ()) for argument in _VARIANTS.get(name, (name,))]
        variants = manifest.get("variants", {})
        placed = [variants[name] for name in ("window", "chunk", "alibi") if name in variants]
        self.alignments = {corner for terms in placed for corner in terms.get("alignment", manifest.get("causal", ()))}
        factors = variants.get("descale", {})
        self.blocks = {f"{side}_descale_block": factors.get(f"{side}_blocks", []) for side in ("q", "kv")}
        self.listed = frozenset(listed) - _KEYS.keys()
        self.out_dtypes = {name.lower(): name for name in _SIZES}

    def by_name(self, op, metadata, tensors, head_dim, additive):
        """What is passed by name. Raises Unsupported when the function lacks a parameter that the problem needs."""
        values = {
            "mask": tensors.get("mask"),
            "scale": float(metadata["scale"]),
            "causal": metadata["causal"],
            "mask_convention": metadata["mask_convention"],
        }
        if op == "attention_backward":
            values.update({name: tensors[name] for name in _OF_BACKWARD if name in tensors})
            if "d_lse" in (self.known[op] or ()):
                values.setdefault("d_lse", None)
            if self.by_autograd or "wanted" in (self.known[op] or ()):
                values["wanted"] = metadata["want"].split()
        else:
            values["want_lse"] = metadata.get("want") == "lse" and not (op == "attention" and self.makes_lse)
            values["out_dtype"] = metadata.get("out_dtype")
        if op == "multihead":
            values["heads"] = int(metadata["heads"])
            for name in _MULTIHEAD_OPTIONAL:
                values[name] = tensors.get(name)
        for name in self.listed:
            if name in metadata:
                value = _number_or_word(metadata[name])
                values[name] = float(value) if isinstance(_NEUTRAL.get(name), float) else value
            elif name in tensors:
                values[name] = tensors[name]
            elif name in _NEUTRAL:
                values[name] = _NEUTRAL[name]
        known = self.known[op]
        if known is None:
            return values
        for name in [name for name in values if name not in known]:
            value = values.pop(name)
            if name == "scale":
                served = abs(value * math.sqrt(head_dim) - 1.0) <= 1e-12
            elif name == "alignment":
                # Said by the causal form, or by the manifest, where that lists one alone.
                served = value is None or value == metadata["causal"] or {value} == self.alignments
            elif name in self.blocks:
                served = value == 0 or [value] == self.blocks[name]
            elif name in _OF_BACKWARD:
                served = name != "d_lse"
            elif name == "mask_convention":
                served = value == "post-scale" or not additive
            else:
                plain = value is None or isinstance(value, (str, bool, int, float))
                served = plain and name in _ABSENT and value == _ABSENT[name]
            if not served:
                which = "the backward function" if op == "attention_backward" else "the function"
                raise Unsupported(f"{which} has no parameter {name}")
        if values.get("softcap") == 0.0 and known["softcap"] is None:
            values["softcap"] = None  # many a function divides by whatever else it is given
        return values

    def answer(self, metadata, header, body, start):
        op = metadata["op"]
        if op == "manifest":
            turns = {"takes_turns": "yes"} if self.takes_turns else {}
            return self.channel.reply({"manifest": json.dumps(self.manifest), **turns})
        function = self.functions.get(op)
        if function is None:
            raise Unsupported(f"there is no {op} function")
        _refuse_unknown(metadata, header, self.listed)
        if op == "attention_backward" and "want" not in metadata:
            raise Unsupported("the request for gradients names none of them in want")
        if op != "attention_backward":
            return self.answer_by(function, metadata, header, body, start)
        with self.framework.scope_of_backward():
            return self.answer_by(function, metadata, header, body, start)

    def answer_by(self, function, metadata, header, body, start):
        op, read = metadata["op"], self.framework.read_apart if self.by_autograd else self.framework.read
        tensors = {name: read(t["dtype"], t["shape"], body, start + t["data_offsets"][0]) for name, t in header.items()}
        caches = ("k", "v") if "k_new" in tensors else ()
        memories, places = {}, json.loads(metadata.get("strides", "{}"))
        for name, place in places.items():
            if place["elements"] > 0:
                tensors[name], memories[name] = self.framework.laid_out(tensors[name], **place)
        names = ("q", "k", "v") if op != "multihead" else ("q", "k", "v", "w_q", "w_k", "w_v")
        if op != "multihead":
            head_dim = header["q"]["shape"][-1]
        else:
            head_dim = header["w_q"]["shape"][1] // int(metadata["heads"])
        additive = "mask" in header and header["mask"]["dtype"] != "BOOL"
        named = self.by_name(op, metadata, tensors, head_dim, additive)
        result = function(*[tensors[name] for name in names], **named)
        for name, memory in memories.items():
            if name in caches:  # whose elements are the function's to write, and not what lies between them
                memory = (memory[0], self.framework.laid_out(tensors[name], **places[name])[1][0])
            if not self.framework.unchanged(memory):
                raise RuntimeError(f"the function wrote to its input {name}, or between the elements of it")
        if op == "attention_backward":
            named_gradients = _gradients(result, self.gradients_of(tensors), metadata["want"].split())
            return self.reply_checked([(name, header[_GRADIENTS[name]]["dtype"], value) for name, value in named_gradients])
        out, lse, *written = result if isinstance(result, tuple) else (result, None)
        if out is None:
            raise TypeError("the function returned None; it must return out")
        outputs = [("out", self.out_dtypes.get(metadata.get("out_dtype"), header["q"]["dtype"]), out)]
        if metadata.get("want") == "lse" and op == "attention" and self.makes_lse:
            lse = self.lse_of(metadata, tensors)
        if lse is not None and metadata.get("want") == "lse":
            outputs.append(("lse", "F64", lse))
        for name, value in zip(caches, written or [tensors[name] for name in caches]):
            outputs.append((name, header[name]["dtype"], value))
        return self.reply_checked(outputs)

    def gradients_of(self, tensors):
        """Those of a problem: what the manifest lists, where the problem has what they are by."""
        listed = self.manifest["backward"].get("gradients", ("dq", "dk", "dv"))
        by = {name: tensors.get(_GRADIENTS[name]) for name in _GRADIENTS if name in listed}
        return [name for name, tensor in by.items() if tensor is not None and not str(tensor.dtype).endswith("bool")]

    def lse_of(self, metadata, tensors):
        """Of a function that returns none."""
        words = {name: _number_or_word(metadata[name]) for name in _LSE_WORDS if name in metadata}
        q, k, mask, sink = (tensors.get(name) for name in ("q", "k", "mask", "sink"))
        if mask is not None:
            boolean = str(mask.dtype).endswith("bool")
            mask = self.framework.in_double(mask).astype(bool) if boolean else self.framework.in_double(mask)
        if sink is not None:
            words["sink"] = self.framework.in_double(sink)
        lse = _log_sum_exp(self.framework.in_double(q), self.framework.in_double(k), mask, **words)
        return self.framework.of_double(lse)

    def reply_checked(self, outputs):
        return self.reply([(name, dtype, self.framework.checked(value, dtype, name)) for name, dtype, value in outputs])

    def reply(self, outputs):
        """In shared memory where there is room for just these, else in the frame: what is wrong with them is seen there."""
        framework, room = self.framework, self.channel.room
        places = [room and room.place(name, dtype, value.shape) for name, dtype, value in outputs]
        if room and None not in places and len(outputs) == len(room.places):
            for place, (_, dtype, value) in zip(places, outputs):
                if len(place) > 0:
                    framework.write_to(place, value, dtype)
            return self.channel.reply({"shared_memory": "yes"})
        entries = [(name, dtype, list(value.shape), framework.bytes_of(value, dtype)) for name, dtype, value in outputs]
        return self.channel.reply(None, entries)

    def answer_one(self):
        """Answers the next request; False at the end of them, and where nobody reads replies any more."""
        try:
            request = self.channel.request()
            if request is None:
                return False
            with self.framework.scope_of_backward() if self.by_autograd else self.framework.scope():
                self.answer_or_say_why(request)
        except BrokenPipeError:
            return False
        self.channel.room = None
        return True

    def answer_or_say_why(self, request):
        try:
            self.answer(*request)
        except (Unsupported, NotImplementedError) as error:
            self.channel.reply({"status": "unsupported", "message": str(error)})
        except Rejected as error:
            self.channel.reply({"status": "rejected", "message": str(error)})
        except BrokenPipeError:
            raise
        except Exception as error:  # whatever the function does wrong is a finding about it
            traceback.print_exc(file=sys.stderr)
            self.channel.reply({"status": "failed", "message": f"{type(error).__name__}: {error}"})


def _gradients(result, there, wanted):
    """[(name, gradient)] of what a backward function returned: all that there are, or of these what is wanted alone."""
    due = ", ".join(there)
    if isinstance(result, dict):
        if set(result) not in (set(there), set(wanted)):
            raise TypeError(f"the backward function returned {', '.join(map(str, result)) or 'nothing'} where {due} are due")
        return [(name, result[name]) for name in wanted]
    if not isinstance(result, (tuple, list)):
        result = (result,)
    if len(result) != len(there):
        raise TypeError(f"the backward function returned {len(result)} of what are to be {due}; return these, or a dict of them")
    found = dict(zip(there, result))
    for name in wanted:
        if found[name] is None:
            raise TypeError(f"the backward function returned None as {name}")
    return [(name, found[name]) for name in wanted]


def refuse_misuse(function, multihead, framework, bf16, device=None, backward=None):
    """ValueError, one line, where what is to be served cannot be."""
    if function is None and multihead is None:
        raise ValueError("there is nothing to call; give an attention function, multihead=, or both")
    for name, called in (("the function", function), ("multihead", multihead)):
        if called is not None and not callable(called):
            raise ValueError(f"{name} is {called!r}; it must be callable")
    if backward is not None:
        refuse_backward(function, backward, framework)
    if framework not in ("numpy", "torch"):
        raise ValueError(
            f"framework is {framework!r}; it must be 'numpy' or 'torch' (a function of JAX takes NumPy's arrays: 'numpy')"
        )
    if device is not None and framework != "torch":
        raise ValueError(f"device is {device!r}; only framework='torch' has devices")
    if bf16 not in ("f32", "bits"):
        raise ValueError(f"bf16 is {bf16!r}; it must be 'f32' or 'bits'")


def refuse_backward(function, backward, framework):
    """ValueError, one line, where what is to be the backward pass of a function cannot be."""
    if function is None:
        raise ValueError("backward is the backward pass of an attention function; give that, too")
    if backward == "autograd":
        if framework != "torch":
            raise ValueError(
                f"backward is 'autograd' and framework {framework!r}; autograd is PyTorch's: say framework='torch', or give a "
                "backward function"
            )
        return
    if not callable(backward):
        raise ValueError(f"backward is {backward!r}; it must be callable, or 'autograd'")
    if not _has(backward, "d_out"):
        raise ValueError("the backward function has no parameter d_out, by which it is given the gradient by the output")
    known = _parameters(backward)
    if known is not None and "lse" in known and not _has(function, "want_lse"):
        raise ValueError(
            "the backward function takes lse, which the function does not return: give it a parameter want_lse, and return "
            "(out, lse) where that is True"
        )


def make_framework(framework, bf16="f32", device=None):
    """What makes arrays of a request's bytes, and takes those of an answer apart."""
    return _Torch(device) if framework == "torch" else _Numpy(bf16)


def make_server(channel, function, manifest, multihead, framework, bf16, device=None, backward=None):
    """The server that serve runs; ValueError where the arguments are wrong."""
    refuse_misuse(function, multihead, framework, bf16, device, backward)
    manifest = _completed(manifest, function, multihead, backward)
    return Server(channel, function, multihead, manifest, make_framework(framework, bf16, device), backward)


def serve(function=None, manifest=None, *, multihead=None, backward=None, framework="numpy", bf16="f32", device=None):
    """Answers requests on standard input until it ends.

    manifest: the dict of kernel-interface.md, section 3. "name", "dtypes" (f64 and f32), "operations" and what follows
    from the functions' parameters are filled in where it is silent.
    """
    server = make_server(Channel(0, _replies), function, manifest, multihead, framework, bf16, device, backward)
    while server.answer_one():
        pass


def refuse(message):
    """Tells Attest in one line why this kernel cannot be served, and ends the program with status 3."""
    channel = Channel(0, _replies)
    if channel.request() is not None:
        channel.reply({"status": "failed", "message": message})
    raise SystemExit(3)
