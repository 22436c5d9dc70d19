"""attest.exact, attest.allclose and attest.assert_close."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

from attest import _service
from attest._arrays import word_of
from attest._errors import AttestError
from attest._problem import Problem, manifest_for


@dataclass(frozen=True)
class Exact:
    """What is known of the output of a problem, element by element: arrays of float64 or bool, in the output's shape and
    layout; with `rows`, [rows, dv].

    lower, upper  the exact answer lies between them: proved. NaN where there is none (no key is visible, NaN in an input)
    bound         no kernel of the arithmetic is farther from the exact answer: proved. inf where nothing is
    judged        is a finite number there held to the bound? Not where no key is visible, an input is not finite, scores
                  may overflow, or the bound would accept anything
    finite        must a finite number be there? NaN and Inf are wrong then
    lse           the log-sum-exp of each row (no last axis); -inf where no key is visible
    lse_bound     of a kernel's log-sum-exp, as bound
    excused       how many elements are not judged, by the word for why

    Source: error-bounds.md.
    """

    lower: Any
    upper: Any
    bound: Any
    judged: Any
    finite: Any
    lse: Any
    lse_bound: Any
    excused: Dict[str, int] = field(default_factory=dict)

    @property
    def value(self):
        """The middle of each enclosure."""
        return self.lower + (self.upper - self.lower) / 2

    def error(self, out):
        """How far `out`, an array of numbers in the same shape, is from the exact answer, from above; NaN where there is
        no exact answer, inf where `out` is not finite."""
        import numpy

        out = numpy.asarray(out, numpy.float64)
        with numpy.errstate(invalid="ignore"):
            error = numpy.maximum(out - self.lower, self.upper - out)
            # Rounded upwards: a difference of doubles is 0 only where there is none.
            error = numpy.where(error > 0, numpy.nextafter(error, numpy.inf), error)
            return numpy.where(numpy.isfinite(out) | numpy.isnan(self.lower), error, numpy.inf)

    def utilisation(self, out):
        """The error as a share of the bound: at most 1 of every right kernel, 0 where both are 0. NaN where nothing is
        judged."""
        import numpy

        error = self.error(out)
        with numpy.errstate(invalid="ignore", divide="ignore"):
            share = numpy.where(error == 0, 0.0, error / self.bound)
        return numpy.where(self.judged, share, numpy.nan)


@dataclass(frozen=True)
class Closeness:
    """What attest.allclose found. True where the answer is right: `assert attest.allclose(…)` shows the message.

    verdict      "held"; "violated"; "excused": nothing could be judged, as in Exact.judged; "inconclusive"
    utilisation  the largest error as a share of its bound; inf for NaN or Inf found where a number must be
    error, allowed, found, exact  at that element; `exact` is (lower, upper)
    index        of that element in out, or None
    judged, beyond  elements that were judged, and of those how many lie beyond their bound
    unjudged     elements of the rows looked at of which nothing is said, as in Exact.judged: whatever stands there is no mistake
    rows_judged, rows  rows of the output that were looked at, and that there are
    readings     what a wrong answer is the right answer to: "the scale were 1"

    Source: error-bounds.md (what is allowed), kernel-interface.md, section 4 (verdicts).
    """

    verdict: str
    message: str
    utilisation: float
    error: float
    allowed: float
    index: Optional[Tuple[int, ...]]
    found: Optional[float]
    exact: Optional[Tuple[float, float]]
    judged: int
    beyond: int
    rows_judged: int
    rows: int
    unjudged: int = 0
    readings: Tuple[str, ...] = ()

    def __bool__(self):
        return self.verdict == "held"

    def __repr__(self):
        return self.message

    __str__ = __repr__


def _flat_rows(rows, problem):
    """(flat indices, ascending and each once; where each of the rows asked for stands among them)"""
    import numpy

    q = problem.tensors["q"][1].shape[:-1]
    try:
        chosen = numpy.asarray(rows)
        if chosen.ndim == 1 and len(q) == 1:
            chosen = chosen[:, None]
        if chosen.size == 0 or chosen.ndim != 2 or chosen.shape[1] != len(q) or chosen.dtype.kind not in "iu":
            raise ValueError
        flat = numpy.ravel_multi_index(tuple(chosen.T), q)
    except ValueError:
        axes = ", ".join(("batch entry", "head", "query")[3 - len(q) :])
        raise AttestError(
            f"rows must be a list of rows of the output, ({axes}) each, within {list(q)} (heads before queries)"
        ) from None
    return numpy.unique(flat, return_inverse=True)


def exact(
    q,
    k,
    v,
    *,
    mask=None,
    scale: Optional[float] = None,
    causal=False,
    mask_convention: str = "post-scale",
    layout: str = "bhsd",
    window_left: int = -1,
    window_right: int = -1,
    alignment: Optional[str] = None,
    q_lengths=None,
    kv_lengths=None,
    q_starts=None,
    kv_starts=None,
    left_pad=None,
    page_table=None,
    page_table_v=None,
    cache_index=None,
    k_new=None,
    v_new=None,
    sink=None,
    softcap: float = 0.0,
    keep=None,
    dropout_p: float = 0.0,
    alibi_slopes=None,
    attention_chunk: int = 0,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    q_descale_block: int = 0,
    kv_descale_block: int = 0,
    out_dtype: Optional[str] = None,
    manifest: Optional[dict] = None,
    rows=None,
    narrow: Optional[bool] = None,
) -> Exact:
    """The exact answer of softmax(scale·QKᵀ + mask)·V as a proved enclosure of each element, and the bound that every
    right kernel keeps.

    q, k, v    [batch, heads, M, dk], [batch, kv_heads, N, dk], [batch, kv_heads, N, dv]; or all of them without a batch, or
               without heads. Of NumPy, torch, JAX or CuPy, in float64, 32, 16, bfloat16 or float8, on any device; heads is
               a multiple of kv_heads, and head h reads key-value head h // (heads / kv_heads)
    mask       [batch or 1, heads or 1, M, N], or fewer leading axes: bool (True: may attend), or numbers that are added to
               the scores
    scale      multiplies q·k (default: 1/sqrt(dk))
    causal     False, True or "top-left" (query i sees keys up to i), "bottom-right" (the last query sees the last key)
    mask_convention  "post-scale": scale·qk + mask, "pre-scale": scale·(qk + mask)
    layout     "bhsd", or "bshd": tokens before heads, in q, k, v and what comes back
    window_left, window_right  a query at position p sees keys p - window_left to p + window_right, both inclusive; -1: that
               side has no end
    alignment  what the position of query i is where there is a window, chunks or slopes: "top-left" (default): i;
               "bottom-right": i + N - M; as causal where that is given
    q_lengths, kv_lengths  [batch], whole numbers: the first so many queries and keys of each entry are its own (default: all),
               and positions, M and N are those; what is behind them is padding, which has no answer
    q_starts, kv_starts  [sequences + 1], whole numbers from 0: the batch is 1, and sequence s has the tokens from start[s] to
               before start[s + 1], as cu_seqlens says it
    left_pad   [batch], whole numbers: so many of the first keys of each entry are padding too; kv_lengths counts them, positions
               and N do not
    page_table, page_table_v  [batch, columns], whole numbers: k is [pages, kv_heads, page size, dk], v alike, and key j of
               entry b stands in slot j % page size of page page_table[b, j // page size]; kv_lengths says how many keys there
               are. page_table_v: that of v (default: the same)
    cache_index  [batch], whole numbers: the row of k and v, which may have more of them than the batch, that entry b reads
    k_new, v_new  in k's and v's layout, L tokens of each entry that a call appends behind the kv_lengths keys that k and v
               hold; positions and N are those of kv_lengths + L. Their formats are those of k and v
    sink       [heads], numbers or -inf (none): a score without a key, which has its share of the weights of each of the head's
               rows and adds no value
    softcap    c > 0: scale·qk becomes c·tanh(scale·qk / c) before the mask is added to it, which is post-scale (default 0: as
               it is); a sink is not capped
    keep, dropout_p  [batch or 1, heads or 1, M, N] of bool, or fewer leading axes, and 0 <= p < 1: once the weights are
               normalised, those where keep is False become 0 and the others are divided by 1 - p (default 0: by nothing).
               Nothing is normalised again, and lse is that of all weights. What a kernel drops by a mask of its own nobody
               else knows: a dropout_p without keep is refused
    alibi_slopes  [heads] or [batch, heads] of float32: slope·|p - j| is taken from the score of key j in a row at position p,
               after the scale and a cap, beside a mask, which is post-scale. p is what alignment says, i or i + N - M, and
               both count in the row's own sequence
    attention_chunk  C > 0: a query at position p sees keys of its own chunk alone, those j with j // C == p // C, of
               those that mask, causal form and window show it; none where p < 0. p is what alignment says (default 0:
               there are no chunks)
    q_descale, k_descale, v_descale  factors of float32 above 0, which q, k and v are to be multiplied by: one, [heads],
               [batch, heads] or [batch, heads, blocks], of k and v kv_heads for heads; [batch, kv_heads] of q, as
               FlashAttention 3 has it, is one for the heads of each group. lse is that of the products. Beside them k
               and v may be of int8; beside float64 they are powers of two
    q_descale_block, kv_descale_block  so many rows of q, or keys, have a factor together: row i that of block
               i // length (default 0: all of a head have one). i counts padding, and not pages or rows of a cache
    out_dtype  of the output that the bound is for, "f32" (default: q's)
    manifest   what the kernel declares of its arithmetic and claims, as for attest.check; the more it says the tighter the
               bound. Without it: of every legitimate kernel
    rows       the rows of the output that are wanted, as (batch entry, head, query) each; default: all
    narrow     enclosures a unit or two in the last place of a double wide, in Arb's balls: some ten to a hundred times as
               slow. Else as wide as it takes to judge the dtype (default: for float64)

    Raises AttestError, one line, where an argument is wrong. Source: error-bounds.md; the enclosure is the oracle's of every
    verdict of attest.
    """
    problem = Problem(q, k, v, mask, scale, causal, mask_convention, layout, window_left, window_right, alignment,
                      q_lengths, kv_lengths, q_starts, kv_starts, left_pad, page_table, page_table_v, cache_index,
                      k_new, v_new, sink, softcap, keep, dropout_p, alibi_slopes, attention_chunk, q_descale, k_descale,
                      v_descale, q_descale_block, kv_descale_block)  # fmt: skip
    return exact_of(problem, out_dtype, manifest, rows, narrow)


def exact_of(problem, out_dtype=None, manifest=None, rows=None, narrow=None):
    dtype = problem.dtype
    request = {"ask": "bounds", "manifest": manifest_for(manifest, dtype, "the function")}
    request["narrow"] = dtype == "f64" if narrow is None else bool(narrow)
    if out_dtype is not None:
        request["out_dtype"] = str(out_dtype)
    order = None
    if rows is not None:
        flat, order = _flat_rows(rows, problem)
        request["rows"] = flat.tolist()
    answer, arrays = _service.ask(request, problem.metadata, problem.tensors)
    for name, array in arrays.items():
        of_rows = name in ("lse", "lse_bound")
        arrays[name] = array[order.reshape(-1)] if order is not None else problem.as_given(array, 0 if of_rows else 1)
    return Exact(**arrays, excused=answer["excused"])


def _number(value):
    return float(value)  # JSON has no inf and no NaN: they come as words


def _message(answer, index, unjudged):
    def at_worst(error=True):
        if index is None:
            return []
        lower, upper = map(_number, answer["exact"])
        exactly = f"{lower!r}" if lower == upper else f"between {lower!r} and {upper!r}"
        return [f"  out{list(index)} is {_number(answer['found'])!r}; exact: {exactly}"] + (
            [f"  error {_number(answer['error']):.3g}, allowed {_number(answer['allowed']):.3g}"] if error else []
        )

    rows = "" if answer["rows_judged"] == answer["rows"] else f"{answer['rows_judged']:,} of {answer['rows']:,} rows judged"
    share = _number(answer["utilisation"])
    verdict = answer["verdict"]
    if verdict == "held":
        lines = [f"held: the largest error is {share:.3g} of what is allowed, {answer['elements_judged']:,} elements judged"]
    elif verdict == "violated":
        times = f"{share:.4g} times what a right kernel may err by" if share < float("inf") else answer["reason"]
        lines = [f"violated: {answer['elements_beyond']:,} of {answer['elements_judged']:,} elements; {times}", *at_worst()]
        lines += [f"  it computes as if {reading}" for reading in answer["readings"]]
    else:
        lines = [f"{verdict}: {answer['reason'] or 'there is nothing to judge'}", *at_worst(error=False)]
    # Held says no more than was seen.
    excused = f"{unjudged:,} elements are not judged: no key is visible, an input is not finite, or no useful bound exists"
    rest = [rows] * bool(rows) + [excused] * (unjudged > 0 and verdict in ("held", "violated"))
    return "\n".join(["attest: " + lines[0], *lines[1:], *("  " + line for line in rest)])


def allclose(
    out,
    q,
    k,
    v,
    *,
    mask=None,
    scale: Optional[float] = None,
    causal=False,
    mask_convention: str = "post-scale",
    layout: str = "bhsd",
    window_left: int = -1,
    window_right: int = -1,
    alignment: Optional[str] = None,
    q_lengths=None,
    kv_lengths=None,
    q_starts=None,
    kv_starts=None,
    left_pad=None,
    page_table=None,
    page_table_v=None,
    cache_index=None,
    k_new=None,
    v_new=None,
    sink=None,
    softcap: float = 0.0,
    keep=None,
    dropout_p: float = 0.0,
    alibi_slopes=None,
    attention_chunk: int = 0,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    q_descale_block: int = 0,
    kv_descale_block: int = 0,
    manifest: Optional[dict] = None,
    rows: Optional[int] = None,
) -> Closeness:
    """Is `out` what a right kernel may answer to this problem? Every element is held to its own proved bound, so that there
    is no tolerance to choose.

    out    [batch, heads, M, dv] in the layout of q, in any of the dtypes: it is judged as an output of that dtype
    rows   how many rows to judge, the same share of every head: drawn, and the first, the last, those at the edges of tiles
           and those with the largest and the most even scores. Default: all, and 4,096 of a problem that takes more than
           2^36 multiplications; 0: all
    Everything else as in attest.exact.

    Returns a Closeness, which is True for "held" and nothing else. Raises AttestError where an argument is wrong. Source:
    error-bounds.md.
    """
    problem = Problem(q, k, v, mask, scale, causal, mask_convention, layout, window_left, window_right, alignment,
                      q_lengths, kv_lengths, q_starts, kv_starts, left_pad, page_table, page_table_v, cache_index,
                      k_new, v_new, sink, softcap, keep, dropout_p, alibi_slopes, attention_chunk, q_descale, k_descale,
                      v_descale, q_descale_block, kv_descale_block)  # fmt: skip
    return allclose_of(problem, out, manifest, rows)


def allclose_of(problem, out, manifest=None, rows=None):
    request = {"ask": "judge", "manifest": manifest_for(manifest, problem.dtype, "the function")}
    if rows is not None:
        request["rows"] = int(rows)
    tensors = problem.with_answer(out)
    if word_of(tensors["found"][0]) != problem.dtype:
        request["out_dtype"] = word_of(tensors["found"][0])
    answer, _ = _service.ask(request, problem.metadata, tensors)
    index = problem.index(answer["element"]) if answer["element"] >= 0 else None
    exactly = tuple(map(_number, answer["exact"])) if "exact" in answer else None
    unjudged = answer["rows_judged"] * problem.tensors["v"][1].shape[-1] - answer["elements_judged"]
    return Closeness(
        verdict=answer["verdict"],
        message=_message(answer, index, unjudged),
        utilisation=_number(answer["utilisation"]),
        error=_number(answer["error"]),
        allowed=_number(answer["allowed"]),
        index=index,
        found=_number(answer["found"]) if "found" in answer else None,
        exact=exactly,
        judged=answer["elements_judged"],
        beyond=answer["elements_beyond"],
        rows_judged=answer["rows_judged"],
        rows=answer["rows"],
        unjudged=unjudged,
        readings=tuple(answer["readings"]),
    )


def assert_close(out, q, k, v, **arguments) -> Closeness:
    """attest.allclose, which raises AssertionError with its message where it is not True."""
    __tracebackhide__ = True
    found = allclose(out, q, k, v, **arguments)
    if not found:
        raise AssertionError(found.message)
    return found
