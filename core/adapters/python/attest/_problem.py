"""One problem of attention, as arrays were given: what a case file has of it, and what its output looks like."""

import math
import operator

from attest._arrays import on_host, whole_numbers, word_of
from attest._errors import AttestError

LAYOUTS = ("bhsd", "bshd")
ALIGNMENTS = ("top-left", "bottom-right")
_CAUSAL = {False: "none", None: "none", True: "top-left", "none": "none", "top-left": "top-left", "bottom-right": "bottom-right"}
_CONVENTIONS = ("post-scale", "pre-scale")


def _one_of(value, known, name):
    try:
        if value in known:
            return value
    except TypeError:
        pass
    raise AttestError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, known))}")


def _keys(number, name, none, said):
    """A whole number of keys, or `none`, of which people hear `said`."""
    try:
        keys = none if number is None else operator.index(number)
    except TypeError:
        keys = none - 1
    if keys < none:
        raise AttestError(f"{name} is {number!r}; it must be a whole number of keys, or {none} for {said}")
    return keys


def chunk_of(attention_chunk):
    """C as a number; 0 where keys are in no chunks."""
    return _keys(attention_chunk, "attention_chunk", 0, "none")


def _by_position(left, right, chunk, alignment, causal, slopes):
    """What a case file says of a window, of chunks and of positions; nothing where nothing asks for these."""
    ends = {name: _keys(end, name, -1, "no end") for name, end in (("window_left", left), ("window_right", right))}
    given = {name: str(end) for name, end in ends.items() if end >= 0}
    length = chunk_of(chunk)
    if length:
        given["attention_chunk"] = str(length)
    if alignment is not None:
        _one_of(alignment, ALIGNMENTS, "alignment")
    if not given and not slopes:
        return {}
    if causal != "none" and alignment not in (None, causal):
        raise AttestError(f"alignment is {alignment!r} and causal {causal!r}; a row has one position")
    where = causal if causal != "none" else alignment or "top-left"
    return {**given, "alignment": where}


def cap_of(softcap):
    """c as a number; 0 where there is no cap."""
    if softcap is None:
        return 0.0
    try:
        cap = math.nan if isinstance(softcap, (str, bytes, bool)) else float(softcap)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of a tensor of several numbers
        cap = math.nan
    if not 0 <= cap < math.inf:
        given = " ".join(repr(softcap).split())
        raise AttestError(f"softcap is {given}; it must be a finite number greater than 0, or 0 for none")
    return cap


def rate_of(dropout_p):
    """p as a number; 0 where nothing is divided by 1 - p."""
    if dropout_p is None:
        return 0.0
    try:
        rate = math.nan if isinstance(dropout_p, (str, bytes, bool)) else float(dropout_p)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        rate = math.nan
    if not 0 <= rate < 1:
        given = " ".join(repr(dropout_p).split())
        raise AttestError(f"dropout_p is {given}; it must be a number from 0 to less than 1")
    return rate


def _of_heads(array):
    """The axes of slopes, [batch or 1, heads], of one of each head or of each batch entry's heads."""
    if array.ndim > 2:
        raise AttestError(f"alibi_slopes has the shape {list(array.shape)}; it must be [heads] or [batch, heads]")
    return array if array.ndim == 2 else array.reshape(1, -1)


DESCALES = ("q_descale", "k_descale", "v_descale")
BLOCKS = ("q_descale_block", "kv_descale_block")


def block_of(block, name):
    """So many rows, or keys, as a number; 0 where all of a head have one factor."""
    try:
        length = 0 if block is None else operator.index(block)
    except TypeError:
        length = -1
    if not 0 <= length < 2**31:
        raise AttestError(f"{name} is {block!r}; it must be a whole number of rows with one factor, or 0 for all")
    return length


def factors_of(factors, name, heads, kv_heads):
    """[batch or 1, heads or 1, blocks or 1] of one factor, one of each head, or one of each entry's heads. Where q has
    one of each group, [batch, kv_heads], each of its heads gets it: there is no other reading."""
    import numpy

    if isinstance(factors, (int, float)):
        factors = numpy.float32(factors)
    dtype, array = on_host(factors, name)
    if array.ndim > 3:
        forms = "one factor, [heads], [batch, heads] or [batch, heads, blocks]"
        raise AttestError(f"{name} has the shape {list(array.shape)}; it must be {forms}")
    array = array.reshape(*((1,) * (2 - array.ndim)), *array.shape, *((1,) * min(1, 3 - array.ndim)))
    if name == "q_descale" and array.shape[1] == kv_heads != heads and kv_heads > 0:
        array = array.repeat(heads // kv_heads, axis=1)
    return dtype, array


_OF_TENSORS = {"lengths": ("q_lengths", "kv_lengths"), "packed": ("q_starts", "kv_starts"), "left_pad": ("left_pad",),
              "paged": ("page_table", "page_table_v"), "cache_index": ("cache_index",),
              "append": ("k_new", "v_new"), "sink": ("sink",), "alibi": ("alibi_slopes",)}  # fmt: skip


class Problem:
    """The arguments stand in attest.exact."""

    def __init__(self, q, k, v, mask=None, scale=None, causal=False, mask_convention="post-scale", layout="bhsd",
                 window_left=-1, window_right=-1, alignment=None, q_lengths=None, kv_lengths=None, q_starts=None,
                 kv_starts=None, left_pad=None, page_table=None, page_table_v=None, cache_index=None, k_new=None,
                 v_new=None, sink=None, softcap=0.0, keep=None, dropout_p=0.0, alibi_slopes=None, attention_chunk=0,
                 q_descale=None, k_descale=None, v_descale=None, q_descale_block=0, kv_descale_block=0):  # fmt: skip
        self.tokens_first = _one_of(layout, LAYOUTS, "layout") == "bshd"
        self.tensors = {name: on_host(array, name) for name, array in (("q", q), ("k", k), ("v", v))}
        self.axes = self.tensors["q"][1].ndim
        for name, (_, array) in self.tensors.items():
            if array.ndim != self.axes or not 2 <= self.axes <= 4:
                raise AttestError(
                    f"{name} has the shape {list(array.shape)} and q {list(self.tensors['q'][1].shape)}; all of q, k and v "
                    "have 4 axes, or 3 (no batch), or 2 (no heads)"
                )
        for name, array in (("k_new", k_new), ("v_new", v_new)):
            if array is not None:
                self.tensors[name] = on_host(array, name)
        self.tensors = {name: self._heads_first(tensor) for name, tensor in self.tensors.items()}
        if sink is not None:
            self.tensors["sink"] = on_host(sink, "sink")
        if alibi_slopes is not None:
            dtype, slopes = on_host(alibi_slopes, "alibi_slopes")
            self.tensors["alibi_slopes"] = dtype, _of_heads(slopes)
        if self.axes > 2:
            heads, kv_heads = (self.tensors[name][1].shape[-3] for name in "qk")
        else:
            heads = kv_heads = 1
        for name, factors in zip(DESCALES, (q_descale, k_descale, v_descale)):
            if factors is not None:
                self.tensors[name] = factors_of(factors, name, heads, kv_heads)
        blocks = {name: block_of(block, name) for name, block in zip(BLOCKS, (q_descale_block, kv_descale_block))}
        for name, of in zip(BLOCKS, (DESCALES[:1], DESCALES[1:])):
            if blocks[name] and not self.tensors.keys() & set(of):
                raise AttestError(f"{name} is {blocks[name]} and there is no {' or '.join(of)} to be in blocks")
        if mask is not None:
            self.tensors["mask"] = on_host(mask, "mask")
        rate = rate_of(dropout_p)
        if keep is not None:
            dtype, _ = self.tensors["keep"] = on_host(keep, "keep")
            if dtype != "BOOL":
                raise AttestError(f"keep is of {word_of(dtype)}; it must be of bool, True where a weight is kept")
        elif rate:
            raise AttestError(f"dropout_p is {rate:g} and there is no keep; what a kernel drops by itself nobody else knows")
        self.dtype = word_of(self.tensors["q"][0])
        if self.dtype in ("bool", "i8"):
            raise AttestError(f"q is of {self.dtype}; it must be of a floating-point format (k and v may be of i8)")
        if scale is None:
            head_dim = self.tensors["q"][1].shape[-1]
            scale = 1.0 / math.sqrt(head_dim) if head_dim else 1.0
        self.metadata = {
            "attest": "1",
            "non_finite": "yes",  # NaN and Inf among the inputs are no mistake of whoever asks
            "op": "attention",
            "scale": repr(float(scale)),
            "causal": _CAUSAL[_one_of(causal, tuple(_CAUSAL), "causal")],
            "mask_convention": _one_of(mask_convention, _CONVENTIONS, "mask_convention"),
        }
        placed = _by_position(window_left, window_right, attention_chunk, alignment, self.metadata["causal"],
                              alibi_slopes is not None)  # fmt: skip
        given = {"q_lengths": q_lengths, "kv_lengths": kv_lengths, "q_starts": q_starts, "kv_starts": kv_starts,
                 "left_pad": left_pad, "page_table": page_table, "page_table_v": page_table_v,
                 "cache_index": cache_index}  # fmt: skip
        self.tensors.update({name: whole_numbers(of, name) for name, of in given.items() if of is not None})
        cap = cap_of(softcap)
        adds = mask is not None and self.tensors["mask"][0] != "BOOL"
        if cap and adds and mask_convention == "pre-scale":
            raise AttestError(f"softcap is {cap:g} beside a pre-scale mask; a mask is added to a capped score, after the scale")
        scalars = {**placed, **({"softcap": repr(cap)} if cap else {}), **({"dropout_p": repr(rate)} if rate else {})}
        scalars.update({name: str(block) for name, block in blocks.items() if block})
        has = {"window": "window_left" in placed or "window_right" in placed, "chunk": "attention_chunk" in placed,
               "softcap": cap, "dropout": keep is not None,
               "descale": any(name in self.tensors for name in DESCALES)}  # fmt: skip
        variants = [name for name, is_there in has.items() if is_there]
        variants += [name for name, of in _OF_TENSORS.items() if any(tensor in self.tensors for tensor in of)]
        if variants:
            self.metadata.update(scalars, attest="2", variants=" ".join(variants))

    @classmethod
    def of(cls, tensors, metadata):
        """That of a case file: tensors in four axes, heads before tokens."""
        problem = cls.__new__(cls)
        problem.tokens_first, problem.axes = False, 4
        problem.tensors, problem.metadata = dict(tensors), {**metadata, "non_finite": "yes"}
        problem.dtype = word_of(tensors["q"][0])
        return problem

    def _heads_first(self, tensor):
        dtype, array = tensor
        return dtype, self.heads_first(array)

    def heads_first(self, array):
        """[…, heads, tokens, …] of an array in the caller's layout, or the other way round."""
        return array.swapaxes(self.axes - 3, self.axes - 2) if self.tokens_first and self.axes > 2 else array

    def with_answer(self, out):
        """The tensors, `out` among them under the name that a case file has for a kernel's answer, in four axes."""
        dtype, array = on_host(out, "out")
        if dtype in ("BOOL", "I8"):
            raise AttestError(f"out is of {word_of(dtype)}; an output has floating-point numbers")
        array = self.heads_first(array)
        return {**self.tensors, "found": (dtype, array.reshape((1,) * (4 - array.ndim) + array.shape))}

    def in_four_axes(self, tensors):
        """With the leading axes that they lack."""
        flat = ("sink", "alibi_slopes", *DESCALES)
        return {name: (dtype, array if dtype == "I32" or name in flat else array.reshape((1,) * (4 - array.ndim) + array.shape))
                for name, (dtype, array) in tensors.items()}  # fmt: skip

    def as_given(self, array, axes_behind=1):
        """An array of the output's shape, or without its last axis, as the caller lays outputs out."""
        array = array.reshape(array.shape[4 - self.axes :])
        if not self.tokens_first or self.axes == 2:
            return array
        return array.swapaxes(-1 - axes_behind, -2 - axes_behind)

    def index(self, element):
        """Where the flat index of an element of [batch, heads, M, dv] stands in the caller's output."""
        width = self.tensors["v"][1].shape[-1]
        extents = [*((1,) * (4 - self.axes) + self.tensors["q"][1].shape[:-1]), width]
        along = []
        for extent in reversed(extents):
            element, at = divmod(element, extent)
            along.append(at)
        along = along[::-1][4 - self.axes :]
        if self.tokens_first and self.axes > 2:
            along[-2], along[-3] = along[-3], along[-2]
        return tuple(along)


def manifest_for(manifest, dtype, name):
    """A manifest that says what it must: a name, and the dtype of the problem where it lists none."""
    return {"name": name, "dtypes": [dtype], **(manifest or {})}
