"""attest.observe: keeps some of the calls that a program makes of its attention, chosen at random.

A function that is right whenever it knows that it is judged is judged here by the calls that counted. Inputs are copied
before the function sees them and the output as soon as it returns, so that neither can be changed later. Which calls are
kept nobody knows before: every call has the same chance, however many there are (Vitter's and Li's reservoirs), and the
longer the program runs the rarer a copy is; a call that is not kept costs a comparison.
"""

import atexit
import inspect
import math
import os
import random

from attest import _service
from attest._known import known
from attest._problem import BLOCKS, DESCALES, LAYOUTS, Problem, block_of, cap_of, chunk_of, rate_of

_MASKS = ("mask", "attn_mask", "attention_mask", "bias")
_SCALES = ("scale", "sm_scale", "softmax_scale")
_CAUSAL = ("causal", "is_causal")
_SOFTCAP, _CHUNK = "softcap", "attention_chunk"
_WINDOW = ("window_left", "window_right", "alignment")
_TENSORS = ("q_lengths", "kv_lengths", "q_starts", "kv_starts", "left_pad", "sink", "keep", "alibi_slopes", *DESCALES)
_KEEP, _RATE, _SLOPES = "keep", "dropout_p", "alibi_slopes"
# What changes no number, or is looked at elsewhere: heads tell of groups themselves.
_NEUTRAL = ("enable_gqa", "deterministic", "return_attn_probs", "implementation", "training",
            "num_splits", "pack_gqa", "sm_margin")  # fmt: skip
# Of functions that are not written in Python nothing says how their arguments are called.
_POSITIONAL = {"scaled_dot_product_attention": ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")}


def _copy(tensor):
    """A copy that nothing else writes to; of a device's tensor it stays there."""
    if type(tensor).__module__.partition(".")[0] == "torch":
        return tensor.detach().clone()
    if hasattr(tensor, "copy"):
        return tensor.copy()
    import numpy

    return numpy.array(tensor)


def _is_neutral(value, default):
    """None, False, 0, (-1, -1), or what it is where nobody says: an argument that asks for nothing."""
    if value is None or hasattr(value, "shape"):
        return value is None
    return value == default or value in (0, (-1, -1), [-1, -1])


class Kept:
    """A call that was kept: what was asked, and what came back. `where`: whose call it was, where that is known."""

    def __init__(self, arguments, defaults, layout, alignment, where="", window=None, lengths=(), only_in_8_bits=False):
        names = list(arguments)
        if len(names) < 3:
            raise ValueError("a call has fewer than three arguments; q, k and v come first")
        q, k, v = (arguments[name] for name in names[:3])
        rest = {name: arguments[name] for name in names[3:]}

        def named(known_names):
            return next((rest[name] for name in known_names if rest.get(name) is not None), None)

        placed = any(name in defaults for name in (*_WINDOW[:2], _CHUNK, _SLOPES))
        named_by_contract = tuple(name for name in _WINDOW if name in defaults) if placed else ()
        # By the contract's names, where the function has them; lengths by its own, too.
        tensors = {name: name for name in _TENSORS if name in defaults}
        if _RATE not in defaults:
            tensors.pop(_KEEP, None)  # of another meaning
        tensors.update(zip(lengths, _TENSORS))
        expected = {*_MASKS, *_SCALES, *_CAUSAL, _SOFTCAP, _CHUNK, *_NEUTRAL, *named_by_contract, *tensors}
        expected.update([window.name] if window else ())
        blocks = [name for name in BLOCKS if name in defaults and tensors.keys() & set(DESCALES)]
        expected.update(blocks)
        factors = [name for name in DESCALES if rest.get(name) is not None]
        if factors and only_in_8_bits and q.element_size() > 1:
            raise ValueError(f"a call has {factors[0]} beside {q.dtype}, and it is looked at beside 8 bits alone")
        # Without what is kept a rate says that the function alone knows what it drops.
        drops = _KEEP in tensors and rest.get(_KEEP) is not None
        expected.update([_RATE] if drops else ())
        if drops and not str(getattr(rest[_KEEP], "dtype", "")).endswith("bool"):
            raise ValueError("a call has a keep that is no array of truth values, which is not known here")
        for name, value in rest.items():
            if name in expected:
                continue
            if not _is_neutral(value, defaults.get(name)):
                raise ValueError(f"a call has {name}, which is not known here: its answer is that of another problem")
        if rest.get("mask") is not None and rest.get("bias") is not None:
            raise ValueError("a call has a mask and a bias, which are two masks")
        causal, mask = named(_CAUSAL), named(_MASKS)
        self.given = {"scale": named(_SCALES), "mask": None if mask is None else _copy(mask), "layout": layout}
        self.given["causal"] = causal if isinstance(causal, str) else alignment if causal else "none"
        # A model's own cap and chunks may be what its function has where nothing is said.
        self.given[_SOFTCAP] = cap_of(rest.get(_SOFTCAP, defaults.get(_SOFTCAP)))
        self.given[_CHUNK] = chunk_of(rest.get(_CHUNK, defaults.get(_CHUNK)))
        if drops:
            self.given[_RATE] = rate_of(rest.get(_RATE, defaults.get(_RATE)))
        self.given.update({name: block_of(rest.get(name, defaults[name]), name) for name in blocks})
        self.given.update({name: rest[name] for name in named_by_contract if rest.get(name) is not None})
        self.given.update({ours: _copy(rest[name]) for name, ours in tensors.items() if rest.get(name) is not None})
        if window and not _is_neutral(rest.get(window.name), defaults.get(window.name)):
            left, right = window.ends(rest[window.name])
            self.given.update(window_left=left, window_right=right, alignment=window.alignment)
        is_causal = self.given["causal"] != "none"
        corner = self.given.setdefault("alignment", None if is_causal else alignment)
        if is_causal and corner not in (None, self.given["causal"]):
            raise ValueError(f"a call is causal, {self.given['causal']}, and has positions that are {corner}")
        self.inputs = [_copy(array) for array in (q, k, v)]
        self.found, self.where = None, where

    def problem(self):
        return Problem(*self.inputs, **self.given)

    def save(self, path):
        """A case file, the answer in it."""
        problem = self.problem()
        metadata = {name: value for name, value in problem.metadata.items() if name != "non_finite"}
        _service.save_case(path, metadata, problem.in_four_axes(problem.with_answer(self.found)))


class Observed:
    """The function, called as before. `calls`: how many there were; `left_out`: why calls that were chosen could not be
    kept, and how many."""

    def __init__(self, function, folder, most, layout, causal="top-left"):
        row = known(function)
        layout = (row.layout if row else "bhsd") if layout is None else layout
        if layout not in LAYOUTS:
            raise ValueError(f"layout is {layout!r}; it is one of {', '.join(LAYOUTS)}")
        if most < 1:
            raise ValueError(f"most is {most}; it is at least 1")
        self._function, self._most, self._layout = function, most, layout
        self._folder = None if folder is None else os.fspath(folder)
        self._alignment = row.manifest["causal"][0] if row else causal
        self._window = row.window if row else None
        self._lengths = row.lengths if row else ()
        self._only_in_8_bits = row is not None and row.in_8_bits is not None  # are factors looked at
        self.where = lambda: ""
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None
        self._defaults = {p.name: p.default for p in self._signature.parameters.values()} if self._signature else {}
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
            arguments = self._arguments(args, kwargs)
            call = Kept(arguments, self._defaults, self._layout, self._alignment, self.where(), self._window,
                        self._lengths, self._only_in_8_bits)  # fmt: skip
        except Exception as error:  # observing changes nothing of what the program does
            self.left_out[str(error)] = self.left_out.get(str(error), 0) + 1
            return self._function(*args, **kwargs)
        answer = self._function(*args, **kwargs)
        call.found = _copy(answer[0] if isinstance(answer, (tuple, list)) else answer)
        if len(self._kept) < self._most:
            self._kept.append(call)
        else:
            self._kept[self._random.randrange(self._most)] = call
        return answer

    def _arguments(self, args, kwargs):
        if self._signature is None:
            names = _POSITIONAL.get(getattr(self._function, "__name__", ""), ("q", "k", "v"))
            if len(args) > len(names):
                raise ValueError("a call has arguments behind q, k and v whose names nobody knows; pass them by name")
            return {**dict(zip(names, args)), **kwargs}
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

    def take(self):
        """What was kept; no more is."""
        atexit.unregister(self.close)
        self._next = math.inf
        kept, self._kept = self._kept, []
        return kept

    def close(self):
        """Writes what was kept, and keeps no more. Gives the files' paths."""
        kept = self.take()
        if self._folder is None:
            return []
        os.makedirs(self._folder, exist_ok=True)
        paths = [os.path.join(self._folder, f"call-{i:04}.safetensors") for i in range(len(kept))]
        for call, path in zip(kept, paths):
            call.save(path)
        return paths


def observe(function, folder, *, most=64, layout=None, causal="top-left"):
    """The function, wrapped: of its calls `most`, chosen at random, are written to `folder` in the end, for `attest judge
    --captured FOLDER` and attest.judge.

        attention = attest.observe(attention, "calls")       # before the benchmark that times it
        ...                                                  # the benchmark, as ever
        attention.close()                                    # or at the program's end, by itself

    function  takes q, k and v first; mask (attn_mask, bias), scale (sm_scale, softmax_scale) and causal (is_causal) are
              known by their names, and without a scale it is 1/sqrt(dk). So are window_left, window_right and alignment
              as attest.exact has them, flash_attn's window_size and JAX's local_window_size, and so are q_lengths,
              kv_lengths, q_starts, kv_starts, sink, softcap, attention_chunk and alibi_slopes, keep and dropout_p,
              q_descale, k_descale, v_descale and their blocks, and JAX's query_seq_lengths and key_value_seq_lengths.
              A call with anything else that is not neutral (dropout by a mask of the function's own, another's window)
              is not kept, and `left_out` says why
    layout    of q, k, v and the output: "bhsd" [batch, heads, tokens, width] or "bshd" [batch, tokens, heads, width]
              (default: a known function's own, else "bhsd")
    causal    what the causal form means where it is a truth value, and what the positions of a window, of chunks or of
              slopes count from where nothing says it, if the function is not known

    Raises ValueError where an argument is wrong. Source: reservoirs by Vitter 1985 and Li 1994; kernel-interface.md, "Case
    files".
    """
    return Observed(function, folder, most, layout, causal)
