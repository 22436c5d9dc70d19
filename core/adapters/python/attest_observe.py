"""Keeps some of the calls that a program makes of its attention, chosen at random, for `attest judge --captured DIR`.

    import attest
    attention = attest.observe(attention, "calls")       # before the benchmark that times it
    ...                                                  # the benchmark, as ever
    attention.close()                                    # or at the program's end, by itself

A function that is right whenever it knows that it is judged is judged here by the calls that counted. Inputs are copied
before the function sees them and the output as soon as it returns, so that neither can be changed later. Which calls are
kept nobody knows before: every call has the same chance, however many there are (Vitter's and Li's reservoirs), and the
longer the program runs the rarer a copy is; a call that is not kept costs a comparison.
"""

import atexit
import inspect
import json
import math
import os
import random
import struct

_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL"}
_MASKS = ("mask", "attn_mask", "attention_mask")
_SCALES = ("scale", "sm_scale", "softmax_scale")
_CAUSAL = ("causal", "is_causal")
_LAYOUTS = ("bhsd", "bshd")


def _is_torch(tensor):
    return type(tensor).__module__.partition(".")[0] == "torch"


def _copy(tensor):
    """A copy that nothing else writes to; of a device's tensor it stays there."""
    if _is_torch(tensor):
        return tensor.detach().clone()
    if hasattr(tensor, "copy"):
        return tensor.copy()
    import numpy

    return numpy.array(tensor)


def _on_host(tensor):
    """(the name in a safetensors file, the shape, the bytes)"""
    if _is_torch(tensor):
        import torch

        name = str(tensor.dtype).partition(".")[2]
        flat = tensor.contiguous().cpu().reshape(-1)
        return _NAMES[name], tuple(tensor.shape), flat.view(torch.uint8).numpy().tobytes()
    if hasattr(tensor, "get"):  # CuPy's
        tensor = tensor.get()
    import numpy

    array = numpy.asarray(tensor)
    return _NAMES[array.dtype.name], array.shape, array.tobytes()


def _with_four_axes(shape):
    return (1,) * (4 - len(shape)) + tuple(shape)


def _heads_first(tensor):
    """[batch, tokens, heads, width] as [batch, heads, tokens, width]."""
    return tensor.transpose(1, 2) if _is_torch(tensor) else tensor.swapaxes(1, 2)


class _Call:
    """What was asked, as a case file has it."""

    def __init__(self, arguments, layout):
        values = list(arguments.values())
        if len(values) < 3:
            raise ValueError("a call has fewer than three arguments; q, k and v come first")

        def named(names, absent):
            return next((arguments[name] for name in names if arguments.get(name) is not None), absent)

        if arguments.get("dropout_p"):
            raise ValueError("a call has dropout, whose answer is random")
        self.layout = layout
        self.tensors = {"q": _copy(values[0]), "k": _copy(values[1]), "v": _copy(values[2])}
        mask = named(_MASKS, None)
        if mask is not None:
            self.tensors["mask"] = _copy(mask)
        causal = named(_CAUSAL, False)
        self.causal = causal if isinstance(causal, str) else "top-left" if causal else "none"
        scale = named(_SCALES, None)
        self.scale = 1.0 / math.sqrt(values[0].shape[-1]) if scale is None else float(scale)

    def save(self, path):
        metadata = {
            "attest": "1",
            "op": "attention",
            "scale": repr(self.scale),
            "causal": self.causal,
            "mask_convention": "post-scale",
        }
        header, body, end = {"__metadata__": metadata}, [], 0
        for name, tensor in self.tensors.items():
            if self.layout == "bshd" and name != "mask":
                tensor = _heads_first(tensor)
            dtype, shape, raw = _on_host(tensor)
            header[name] = {"dtype": dtype, "shape": _with_four_axes(shape), "data_offsets": [end, end + len(raw)]}
            body.append(raw)
            end += len(raw)
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        part = f"{path}.part"
        with open(part, "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head)
            file.writelines(body)
        os.replace(part, path)


class Observed:
    """The function, called as before. `calls`: how many there were; `left_out`: why calls that were chosen could not be
    kept, and how many."""

    def __init__(self, function, folder, most, layout):
        if layout not in _LAYOUTS:
            raise ValueError(f"layout is {layout!r}; it is one of {', '.join(_LAYOUTS)}")
        if most < 1:
            raise ValueError(f"most is {most}; it is at least 1")
        self._function, self._folder, self._most, self._layout = function, os.fspath(folder), most, layout
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None
        self._random = random.SystemRandom()
        self._kept = []
        self._weight = 1.0
        self._next = 1
        self.calls = 0
        self.left_out = {}
        atexit.register(self.close)

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.calls < self._next:
            return self._function(*args, **kwargs)
        return self._keep(args, kwargs)

    def __getattr__(self, name):
        return getattr(self._function, name)

    def _keep(self, args, kwargs):
        self._choose_next()
        try:
            call = _Call(self._arguments(args, kwargs), self._layout)
        except Exception as error:  # observing changes nothing of what the program does
            self.left_out[str(error)] = self.left_out.get(str(error), 0) + 1
            return self._function(*args, **kwargs)
        answer = self._function(*args, **kwargs)
        call.tensors["found"] = _copy(answer[0] if isinstance(answer, tuple) else answer)
        if len(self._kept) < self._most:
            self._kept.append(call)
        else:
            self._kept[self._random.randrange(self._most)] = call
        return answer

    def _arguments(self, args, kwargs):
        if self._signature is None:
            return {**{f"argument {i}": value for i, value in enumerate(args)}, **kwargs}
        bound = self._signature.bind(*args, **kwargs)
        return dict(bound.arguments)

    def _choose_next(self):
        """Li's algorithm L: how many calls are passed over before the next that is kept."""
        if self.calls < self._most:
            self._next = self.calls + 1
            return
        self._weight *= math.exp(math.log(1.0 - self._random.random()) / self._most)
        skipped = math.floor(math.log(1.0 - self._random.random()) / math.log1p(-self._weight)) if self._weight < 1 else 0
        self._next = self.calls + skipped + 1

    def close(self):
        """Writes what was kept, and keeps no more. Gives the files' paths."""
        atexit.unregister(self.close)
        self._next = math.inf
        kept, self._kept = self._kept, []
        os.makedirs(self._folder, exist_ok=True)
        paths = [os.path.join(self._folder, f"call-{i:04}.safetensors") for i in range(len(kept))]
        for call, path in zip(kept, paths):
            call.save(path)
        return paths


def observe(function, folder, *, most=64, layout="bhsd"):
    """The function, wrapped: of its calls `most`, chosen at random, are written to `folder` in the end.

    function  takes q, k and v first; mask (attn_mask), scale (sm_scale, softmax_scale) and causal (is_causal) are known
              by their names, and without a scale it is 1/sqrt(dk). A call with dropout is not kept
    layout    of q, k, v and the output: "bhsd" [batch, heads, tokens, width] or "bshd" [batch, tokens, heads, width]
    """
    return Observed(function, folder, most, layout)
