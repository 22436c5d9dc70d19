"""How functions of frameworks are called for the contract of attest_adapter.py: layouts, arrays and names of arguments."""

import inspect
import math
import sys
from dataclasses import dataclass
from typing import Optional

from attest._windows import Window, inclusive_numbers

LAYOUTS = ("bhsd", "bshd", "thd")
WINDOW = ["window_left", "window_right"]
CHUNK = ["attention_chunk"]
SEQUENCES = ["q_lengths", "kv_lengths", "q_starts", "kv_starts", "left_pad"]
FRAMEWORKS = ("numpy", "torch", "jax", "cupy")

# The names that parameters have, by what they mean; those of the contract come first.
_NAMES = {
    "scale": ("scale", "sm_scale", "softmax_scale"),
    "mask": ("mask", "attn_mask"),
    "bias": ("bias", "attn_bias"),
    "causal": ("causal", "is_causal"),
    "gqa": ("enable_gqa",),
    "softcap": ("softcap",),
    "keep": ("keep",),
}
_PACKED = ("cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k")


@dataclass(frozen=True)
class Call:
    """How a function wants to be called: in which layout, and the names of its parameters for what a problem has beside q, k
    and v, None where it has none. `bias` is one for additive masks alone."""

    framework: str
    layout: str = "bhsd"
    scale: Optional[str] = None
    mask: Optional[str] = None
    bias: Optional[str] = None
    causal: Optional[str] = None
    gqa: Optional[str] = None
    softcap: Optional[str] = None
    keep: Optional[str] = None  # goes with a rate, dropout_p
    descale: bool = False  # q_descale, k_descale and v_descale, each [batch, kv_heads]
    slopes: Optional[str] = None  # [heads], or [batch, heads] where they differ, counted as `window` counts
    lse: Optional[str] = None  # a truth value, with which the log-sum-exps come second
    alignment: str = "top-left"  # what the causal form means where M and N differ
    window: Optional[Window] = None
    chunk: Optional[str] = None  # a number of keys, 0 for none, counted as `window` counts
    lengths: tuple = ()  # what lengths of queries and of keys are called


def parameters_of(function):
    """By name, or None where nothing says them or the function takes any."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a function that is not written in Python
        return {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return {name: p for name, p in parameters.items() if p.kind is not p.POSITIONAL_ONLY}


def names_in(parameters, given):
    """What each of the meanings is called by the function; `given`: the names that the caller knows, False for none."""
    named = {}
    for meaning, names in _NAMES.items():
        says = given.get(meaning)
        named[meaning] = next((name for name in names if name in parameters), None) if says is None else says or None
    if "dropout_p" not in parameters:  # of another meaning, where nothing says the rate
        named["keep"] = None
    return named


def speaks_the_contract(parameters, named):
    """Whether the names and what they stand for are those of attest_adapter.py. A causal form is a word there, and a truth
    value almost everywhere else: the default says which."""
    causal = parameters.get("causal")
    is_flag = causal is not None and (isinstance(causal.default, bool) or causal.annotation in (bool, "bool"))
    foreign = any(name is not None and name != meaning for meaning, name in named.items())
    return not is_flag and not foreign and named["bias"] is None and not set(_PACKED) & set(parameters)


def is_packed(parameters):
    return set(_PACKED) <= set(parameters)


class _Plain:
    """Arrays that the adapter hands over as the function takes them."""

    @staticmethod
    def there(array):
        return array

    @staticmethod
    def back(array):
        return array

    @staticmethod
    def whole(array):
        """In memory as its shape says: what most kernels expect, and what their callers have."""
        import numpy

        return array.contiguous() if hasattr(array, "contiguous") else numpy.ascontiguousarray(array)

    @staticmethod
    def double(array):
        return array.double() if hasattr(array, "double") else array.astype("float64")

    @staticmethod
    def lengths(values, like):
        import numpy

        values = numpy.asarray(values, numpy.int32)
        return like.new_tensor(values, dtype=sys.modules["torch"].int32) if hasattr(like, "new_tensor") else values


class Jax:
    """NumPy's arrays, bfloat16 as its bits, to JAX's and back."""

    @staticmethod
    def there(array):
        import jax.numpy
        import ml_dtypes

        return jax.numpy.asarray(array.view(ml_dtypes.bfloat16) if array.dtype == "uint16" else array)

    @staticmethod
    def back(array):
        import numpy

        array = numpy.asarray(array)
        return array.view(numpy.uint16) if array.dtype.name == "bfloat16" else array

    @staticmethod
    def whole(array):
        return array

    @staticmethod
    def double(array):
        import numpy

        return numpy.asarray(array, numpy.float64)

    @staticmethod
    def lengths(values, like):
        import jax.numpy

        return jax.numpy.asarray(values, jax.numpy.int32)


class _Traced(Jax):
    """JAX's arrays to a function and back as they are, so that JAX may follow them."""

    @staticmethod
    def back(array):
        return array

    @staticmethod
    def double(array):
        return array


class _Cupy(_Plain):
    @staticmethod
    def there(array):
        import cupy

        return cupy.asarray(array)

    @staticmethod
    def back(array):
        import cupy

        return cupy.asnumpy(array)

    @staticmethod
    def whole(array):
        import cupy

        return cupy.ascontiguousarray(array)

    @staticmethod
    def lengths(values, like):
        import cupy

        return cupy.asarray(values, cupy.int32)


_ARRAYS = {"numpy": _Plain, "torch": _Plain, "jax": Jax, "cupy": _Cupy}


def adapter_framework(framework):
    """What attest_adapter.py calls the arrays that it makes: (framework, bf16)."""
    return ("torch", None) if framework == "torch" else ("numpy", "bits" if framework == "jax" else None)


def with_signature(function, name, parameters):
    """The function, by whose signature the adapter sees what it can be given."""
    q, k, v = (inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in "qkv")
    others = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in parameters]
    function.__signature__ = inspect.Signature([q, k, v, *others])
    function.__name__ = name
    return function


def name_of(function):
    return getattr(function, "__name__", None) or type(function).__name__


def of_heads(slopes):
    """[heads] where no entry of the batch has slopes of its own, as FlashAttention 2 takes either."""
    return slopes[0] if slopes.shape[0] == 1 else slopes


def of_groups(factors, batch, groups):
    """[batch, kv_heads] of factors [batch or 1, heads or 1, 1], as FlashAttention 3 takes those of q, too."""
    heads = factors.shape[1]
    if heads > groups:
        each = factors.reshape(factors.shape[0], groups, heads // groups)
        if (each != each[..., :1]).any():
            raise NotImplementedError("the heads of a group have one factor of q together")
        factors = each[..., :1]
    return factors[..., 0].expand(batch, groups).contiguous()


class _Adapted:
    """How a function, or a backward pass of its style, is called for one of the contract."""

    def __init__(self, call, arrays=None):
        self.call, self.arrays = call, arrays or _ARRAYS[call.framework]
        self.packed, self.tokens_first = call.layout == "thd", call.layout == "bshd"

    def there(self, array):
        array = self.arrays.there(array)
        if self.packed:
            batch, heads, tokens, width = array.shape
            return self.arrays.whole(array.swapaxes(1, 2)).reshape(batch * tokens, heads, width)
        return self.arrays.whole(array.swapaxes(1, 2)) if self.tokens_first else array

    def back(self, array, like):
        """As the contract has it; `like`: what has its batch and tokens."""
        if self.packed:
            array = array.reshape(like.shape[0], like.shape[2], *array.shape[1:])
        return self.arrays.back(array.swapaxes(1, 2) if self.packed or self.tokens_first else array)

    def lse_back(self, lse, q):
        if self.packed:
            if lse.ndim != 2:
                raise NotImplementedError("the log-sum-exps of packed sequences come padded")
            lse = lse.reshape(q.shape[1], q.shape[0], q.shape[2]).swapaxes(0, 1)
        return self.arrays.double(lse)

    def asked(self, q, k, v, mask=None, scale=None, causal="none", window_left=-1, window_right=-1, alignment=None,
              q_lengths=None, kv_lengths=None, q_starts=None, kv_starts=None, softcap=0.0, keep=None, dropout_p=0.0,
              alibi_slopes=None, attention_chunk=0, q_descale=None, k_descale=None, v_descale=None):  # fmt: skip
        """(q, k, v as the function has them, what it is given by name) of a problem of the contract."""
        call, arrays = self.call, self.arrays
        given = {call.softcap: softcap} if softcap else {}
        if attention_chunk:
            given[call.chunk] = attention_chunk
        factors = {"q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale}
        factors = {name: of for name, of in factors.items() if of is not None}
        if factors and q.element_size() > 1:
            raise NotImplementedError("it looks at factors beside 8 bits alone")
        sequences = q.shape[0] if q_starts is None else len(q_starts) - 1
        given.update({name: of_groups(of, sequences, k.shape[1]) for name, of in factors.items()})
        if alibi_slopes is not None:
            given[call.slopes] = arrays.there(of_heads(alibi_slopes))
        if keep is not None:
            given.update({call.keep: arrays.there(keep), "dropout_p": dropout_p})
        for name, lengths in zip(call.lengths, (q_lengths, kv_lengths)):
            if lengths is not None:
                given[name] = arrays.there(lengths)
        if max(window_left, window_right) >= 0:
            given[call.window.name] = call.window.theirs(window_left, window_right, q.shape[2], k.shape[2])
        if call.scale:
            given[call.scale] = scale
        if mask is not None:
            # Of NumPy's bfloat16 there are bits alone, so that a dtype says only whether it is of truth values.
            hides = str(mask.dtype).endswith("bool")
            given[call.mask if hides or not call.bias else call.bias] = arrays.there(mask)
        if call.causal and causal != "none":
            given[call.causal] = True
        if call.gqa and q.shape[1] != k.shape[1]:
            given[call.gqa] = True
        inputs = [self.there(array) for array in (q, k, v)]
        if self.packed:
            for side, array, starts in (("q", q, q_starts), ("k", k, kv_starts)):
                batch, tokens = array.shape[0], array.shape[2]
                ends = [tokens * index for index in range(batch + 1)] if starts is None else starts.tolist()
                given[f"cu_seqlens_{side}"] = arrays.lengths(ends, inputs[0])
                given[f"max_seqlen_{side}"] = max([1, *(end - first for first, end in zip(ends, ends[1:]))])
        return inputs, given

    def names(self):
        """Those arguments of `asked` that the function has."""
        call = self.call
        offered = {"scale": call.scale, "mask": call.mask or call.bias, "causal": call.causal, "softcap": call.softcap}
        names = [name for name, has in offered.items() if has]
        names += WINDOW if call.window else []
        names += CHUNK if call.chunk else []
        names += ["alignment"] if call.window or call.chunk else []
        names += SEQUENCES[:2] if call.lengths else SEQUENCES[2:4] if self.packed else []
        names += ["keep", "dropout_p"] if call.keep else []
        names += ["alibi_slopes"] if call.slopes else []
        return names + (["q_descale", "k_descale", "v_descale"] if call.descale else [])


def adapted(function, call, arrays=None):
    """The function as one of the contract."""
    as_called = _Adapted(call, arrays)

    def called(q, k, v, want_lse=False, out_dtype=None, **asked):
        inputs, given = as_called.asked(q, k, v, **asked)
        if call.lse and want_lse:
            given[call.lse] = True
        out = function(*inputs, **given)
        found = as_called.back(out[0] if isinstance(out, (tuple, list)) else out, q)
        if call.descale and out_dtype is None and q.element_size() == 1:
            found = found.to(q.dtype)
        return (found, as_called.lse_back(out[1], q)) if call.lse and want_lse else found

    names = [*as_called.names(), *(["want_lse"] if call.lse else []), *(["out_dtype"] if call.descale else [])]
    return with_signature(called, name_of(function), names)


def adapted_backward(backward, call):
    """A backward pass that has the layout of a function and its names for what a problem has, as one of the contract."""
    as_called, known = _Adapted(call), parameters_of(backward)
    own = [name for name in ("out", "lse") if known is None or name in known]
    own += [name for name in ("d_lse", "wanted") if name in (known or ())]

    def called(q, k, v, d_out, out=None, lse=None, d_lse=None, wanted=None, **asked):
        inputs, given = as_called.asked(q, k, v, **asked)
        answers = {"out": None if out is None else as_called.there(out), "wanted": wanted}
        for name, tensor in (("lse", lse), ("d_lse", d_lse)):
            answers[name] = None if tensor is None else as_called.arrays.there(tensor)
        given.update({name: answers[name] for name in own})
        result = backward(*inputs, d_out=as_called.there(d_out), **given)
        like = {"dq": q, "dk": k, "dv": v}

        def back(x, name):
            # A mask and sinks have the contract's own layout.
            return as_called.back(x, like[name]) if name in like else as_called.arrays.back(x)

        if isinstance(result, dict):
            return {name: back(x, name) for name, x in result.items()}
        if not isinstance(result, (tuple, list)) or len(result) < len(like):
            return result
        return tuple(back(x, name) for x, name in zip(result, [*like, *["dmask"] * (len(result) - len(like))]))

    return with_signature(called, name_of(backward), [*as_called.names(), "d_out", *own])


def by_vjp(function, call, gradients):
    """(forward, backward): a function of JAX as one of the contract, and its backward pass by jax.vjp through it, the
    gradients that are listed. Both are of one transformation: XLA may round otherwise in another program."""
    traced, plain = adapted(function, call, _Traced), adapted(function, call)

    def pulled(q, k, v, asked):
        import jax

        by_name = {of: asked[of] for name, of in (("dmask", "mask"), ("dsink", "sink")) if name in gradients and has(asked, of)}
        arrays = [Jax.there(array) for array in (q, k, v, *by_name.values())]
        names = ["dq", "dk", "dv", *(f"d{of}" for of in by_name)]
        pulled_back = jax.vjp(lambda q, k, v, *others: traced(q, k, v, **{**asked, **dict(zip(by_name, others))}), *arrays)
        return names, *pulled_back

    def has(asked, name):
        return asked.get(name) is not None and asked[name].dtype != bool

    def forward(q, k, v, want_lse=False, **asked):
        if want_lse:
            return plain(q, k, v, want_lse=True, **asked)
        return Jax.back(pulled(q, k, v, asked)[1])

    def backward(q, k, v, d_out, out, **asked):
        import numpy

        names, again, pull = pulled(q, k, v, asked)
        if not numpy.array_equal(Jax.back(again), out, equal_nan=out.dtype != numpy.uint16):
            raise NotImplementedError("called again, the function answers otherwise: its gradients are those of another output")
        return {name: Jax.back(x) for name, x in zip(names, pull(Jax.there(d_out))) if name in gradients}

    forward.__signature__, forward.__name__ = plain.__signature__, plain.__name__
    names = [name for name in plain.__signature__.parameters if name not in ("q", "k", "v", "want_lse", "out_dtype")]
    return forward, with_signature(backward, "backward", [*names, "d_out", "out"])


def _sequences(tokens, batch, lengths, starts, pad):
    """[(entry, first token, number of tokens)] of the sequences of a batch."""
    if starts is not None:
        ends = starts.tolist()
        return [(0, first, end - first) for first, end in zip(ends, ends[1:])]
    firsts = [0] * batch if pad is None else pad.tolist()
    ends = [tokens] * batch if lengths is None else lengths.tolist()
    return [(entry, first, end - first) for entry, (first, end) in enumerate(zip(firsts, ends))]


def _places(q, k, lengths, starts, left_pad, from_last):
    """The number of each token's sequence and its position in it, as [batch, tokens] of queries and of keys. Two tokens of
    no sequence have different numbers. `from_last`: the last query stands at the last key."""
    import torch

    sides = []
    for array, of, beginning, pad, none in ((q, lengths[0], starts[0], None, -1), (k, lengths[1], starts[1], left_pad, -2)):
        batch, tokens = array.shape[0], array.shape[2]
        number = torch.full((batch, tokens), none, device=array.device)
        position = torch.zeros_like(number)
        sides.append((number, position, _sequences(tokens, batch, of, beginning, pad)))
    (number_q, position_q, of_q), (number_k, position_k, of_k) = sides
    for s, ((entry, first_q, queries), (_, first_k, keys)) in enumerate(zip(of_q, of_k)):
        offset = keys - queries if from_last else 0
        for number, position, first, count, shift in (
            (number_q, position_q, first_q, queries, offset), (number_k, position_k, first_k, keys, 0)
        ):  # fmt: skip
            number[entry, first : first + count] = s
            position[entry, first : first + count] = torch.arange(shift, shift + count, device=number.device)
    return number_q, position_q, number_k, position_k


def _block_mask(q, k, left, right, chunk, alignment, causal="none", lengths=(None, None), starts=(None, None),
                left_pad=None):  # fmt: skip
    """Sequences, a window and chunks as FlexAttention has them: a function of positions, which may be attest's."""
    from torch.nn.attention.flex_attention import create_block_mask

    queries, keys = q.shape[2], k.shape[2]
    from_last = (alignment if causal == "none" else causal) == "bottom-right"
    number_q, position_q, number_k, position_k = _places(q, k, lengths, starts, left_pad, from_last)
    # No larger than it takes, so that nothing overflows beside a position.
    left, right = inclusive_numbers(left, right, queries, keys)

    def shows(b, h, i, j):
        ahead = position_k[b, j] - position_q[b, i]
        seen = (number_q[b, i] == number_k[b, j]) & (ahead >= -left) & (ahead <= right)
        if chunk:  # rounded down, so that a position before the keys is in a chunk without any
            seen = seen & (position_q[b, i] // chunk == position_k[b, j] // chunk)
        return seen & (ahead <= 0) if causal != "none" else seen

    return create_block_mask(shows, q.shape[0], None, queries, keys, device=q.device)


def _with_lse(function, q, k, v, given):
    """FlexAttention's output and log-sum-exp, which later versions ask for in another way."""
    try:
        from torch.nn.attention.flex_attention import AuxRequest
    except ImportError:
        return function(q, k, v, return_lse=True, **given)
    out, other = function(q, k, v, return_aux=AuxRequest(lse=True), **given)
    return out, other.lse


def with_dropout_mask(function):
    """PyTorch's math path, torch._scaled_dot_product_attention_math, which takes what is kept as dropout_mask."""

    def called(q, k, v, mask=None, scale=None, causal="none", keep=None, dropout_p=0.0):
        given = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
        if mask is not None and str(mask.dtype).endswith("bool"):
            # scaled_dot_product_attention makes numbers of truth values first; here they would be added as 0 and 1.
            mask = q.new_zeros(mask.shape).masked_fill(~mask, -math.inf)
        if keep is not None:
            # It looks at the mask beside a rate alone. Of this one 1/(1 - p) is 1.
            given.update(dropout_mask=keep, dropout_p=dropout_p or math.ulp(0.0))
        return function(q, k, v, mask, is_causal=causal != "none", scale=scale, **given)[0]

    return with_signature(called, name_of(function), ["mask", "scale", "causal", "keep", "dropout_p"])


def _factor(factors, block, b, h, i):
    """That of a row, or key, of factors [batch or 1, heads or 1, blocks or 1]."""
    batch, heads, blocks = factors.shape
    return factors[b if batch > 1 else 0, h if heads > 1 else 0, i // block if blocks > 1 else 0]


def flexible(function):
    """FlexAttention, whose masks are functions of a score and its place."""

    def called(q, k, v, mask=None, scale=None, causal="none", window_left=-1, window_right=-1, alignment=None,
               q_lengths=None, kv_lengths=None, q_starts=None, kv_starts=None, left_pad=None, sink=None,
               softcap=0.0, alibi_slopes=None, attention_chunk=0, q_descale=None, k_descale=None, q_descale_block=0,
               kv_descale_block=0):  # fmt: skip
        import torch

        if sink is not None and q.dtype in (torch.float16, torch.bfloat16):
            raise NotImplementedError("FlexAttention rounds its output to 16 bits before the sink's factor")

        sequences = any(of is not None for of in (q_lengths, kv_lengths, q_starts, left_pad))
        of_scores = torch.float64 if q.dtype == torch.float64 else torch.float32
        of_q, of_k = (None if of is None else of.to(of_scores) for of in (q_descale, k_descale))
        if alibi_slopes is not None:
            # In the format of scores, so that a product with a distance is rounded once.
            slopes = alibi_slopes.to(of_scores)
            from_last = (alignment if causal == "none" else causal) == "bottom-right"
            places = _places(q, k, (q_lengths, kv_lengths), (q_starts, kv_starts), left_pad, from_last)
            position_q, position_k = places[1], places[3]

        def score_mod(score, b, h, i, j):
            if of_q is not None:
                score = score * _factor(of_q, q_descale_block, b, h, i)
            if of_k is not None:
                score = score * _factor(of_k, kv_descale_block, b, h // (q.shape[1] // k.shape[1]), j)
            if softcap:
                score = softcap * torch.tanh(score / softcap)
            if alibi_slopes is not None:
                away = (position_q[b, i] - position_k[b, j]).abs()
                score = score - slopes[b if slopes.shape[0] > 1 else 0, h] * away
            if mask is not None:
                at = mask[b if mask.shape[0] > 1 else 0, h if mask.shape[1] > 1 else 0, i, j]
                score = torch.where(at, score, -torch.inf) if mask.dtype == torch.bool else score + at
            return torch.where(j <= i, score, -torch.inf) if causal == "top-left" and not sequences else score

        changed = softcap or any(of is not None for of in (mask, alibi_slopes, of_q, of_k))
        plain = not changed and (causal == "none" or sequences)
        given = {"score_mod": None if plain else score_mod, "scale": scale, "enable_gqa": q.shape[1] != k.shape[1]}
        if sequences:
            given["block_mask"] = _block_mask(q, k, window_left, window_right, attention_chunk, alignment, causal,
                                              (q_lengths, kv_lengths), (q_starts, kv_starts), left_pad)  # fmt: skip
        elif max(window_left, window_right) >= 0 or attention_chunk:
            given["block_mask"] = _block_mask(q, k, window_left, window_right, attention_chunk, alignment)
        if sink is None:
            return function(q, k, v, **given)
        out, lse = _with_lse(function, q, k, v, given)
        # e^lse / (e^lse + e^sink), of what there is: without a sink nothing changes, nor does a row without a key.
        above = lse - sink.to(lse.dtype)[None, :, None]
        return out * torch.where(torch.isneginf(sink)[None, :, None], 1, torch.sigmoid(above))[..., None].to(out.dtype)

    names = ["mask", "scale", "causal", *WINDOW, *CHUNK, "alignment", *SEQUENCES, "sink", "softcap", "alibi_slopes"]
    names += ["q_descale", "k_descale", "q_descale_block", "kv_descale_block"]
    return with_signature(called, name_of(function), names)
