"""Sinks: a score without a key for each head, in attest's functions, in kernels under test and in FlexAttention."""

import numpy
import pytest
from test_frameworks import needs

import attest

random = numpy.random.default_rng(8)


def with_sink(q, k, v, mask=None, scale=None, causal="none", sink=None, window_left=-1, want_lse=False, times=1):
    """Attention whose sum has e^sink of each head `times` times."""
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    k, v = (x.repeat(heads // x.shape[1], axis=1) for x in (k, v))
    scores = (q @ k.swapaxes(2, 3)).astype(q.dtype) * q.dtype.type(q.shape[3] ** -0.5 if scale is None else scale)
    row, key = numpy.arange(queries)[:, None], numpy.arange(keys)[None, :]
    seen = numpy.ones((queries, keys), bool)
    if causal == "top-left":
        seen &= key <= row
    if causal == "bottom-right":
        seen &= key <= row + keys - queries
    hidden = numpy.where(seen, 0, -numpy.inf).astype(q.dtype)
    if mask is not None:
        hidden = hidden + (numpy.where(mask, 0, -numpy.inf) if mask.dtype == bool else mask).astype(q.dtype)
    scores = scores + hidden
    of_head = numpy.full(heads, -numpy.inf, q.dtype) if sink is None else numpy.asarray(sink).astype(q.dtype)
    of_head = numpy.broadcast_to(of_head[None, :, None, None], scores.shape[:3] + (1,))
    top = numpy.maximum(scores.max(axis=3, keepdims=True, initial=-numpy.inf), of_head)
    top = numpy.where(numpy.isneginf(top), 0, top).astype(q.dtype)
    weights, rest = numpy.exp(scores - top), numpy.exp(of_head - top) * q.dtype.type(times)
    total = weights.sum(axis=3, keepdims=True) + rest
    with numpy.errstate(invalid="ignore", divide="ignore"):
        out = numpy.where(total > 0, (weights @ v) / total, 0).astype(q.dtype)
        lse = (top + numpy.log(total)).astype("float64")[..., 0]
    return (out, lse) if want_lse else out


def problem(batch=2, queries=4, keys=7, heads=4, kv_heads=2, dk=8):
    return [
        random.standard_normal((batch, of, length, dk)).astype("float32")
        for of, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    ]


SINKS = numpy.array([0.5, -numpy.inf, 2, -1], "float32")


def test_the_exact_answer_is_that_of_a_key_without_a_value():
    q, k, v = (x.astype("float64") for x in problem())
    out, lse = with_sink(q, k, v, sink=SINKS, want_lse=True)
    exact = attest.exact(q, k, v, sink=SINKS)
    numpy.testing.assert_allclose(out, (exact.lower + exact.upper) / 2, rtol=1e-13, atol=1e-15)
    numpy.testing.assert_allclose(lse, exact.lse, rtol=1e-13)
    # Another format of the sinks is the same numbers, and no sink is -inf.
    for other in (SINKS.astype("float64"), SINKS.astype("float16")):
        assert numpy.array_equal(attest.exact(q, k, v, sink=other).lower, exact.lower)
    plain, none = attest.exact(q, k, v), attest.exact(q, k, v, sink=numpy.full(4, -numpy.inf, "float32"))
    assert numpy.array_equal(plain.lower, none.lower)


def test_a_row_that_sees_no_key_is_0_and_its_lse_the_sink():
    q, k, v = problem()
    mask = numpy.ones((1, 1, 4, 7), bool)
    mask[..., 2, :] = False
    exact = attest.exact(q, k, v, mask=mask, sink=SINKS)
    for head in (0, 2, 3):
        assert not exact.lower[:, head, 2].any() and not exact.upper[:, head, 2].any()
        assert (exact.lse[:, head, 2] == SINKS[head]).all()
    assert numpy.isnan(exact.lower[:, 1, 2]).all()


def test_an_answer_without_the_sink_is_violated_and_told_so():
    q, k, v = problem()
    assert attest.allclose(with_sink(q, k, v, sink=SINKS), q, k, v, sink=SINKS)
    for out, words in (
        (with_sink(q, k, v), "there were no sink"),
        (with_sink(q, k, v, sink=SINKS, times=2), "the sink counted 2 times"),
        (with_sink(q, k, v, sink=SINKS * q.shape[3] ** -0.5), "the sink were multiplied by the scale"),
    ):
        wrong = attest.allclose(out, q, k, v, sink=SINKS)
        assert not wrong and words in str(wrong), wrong


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ([1.0, 2.0], "sink has shape [2]"),
        ([1.0, numpy.nan, 2.0, 3.0], "sink holds nan"),
        ([1.0, numpy.inf, 2.0, 3.0], "sink holds inf"),
    ],
)
def test_sinks_that_are_none_are_refused_in_one_line(sink, words):
    q, k, v = problem()
    with pytest.raises(attest.AttestError) as raised:
        attest.exact(q, k, v, sink=numpy.array(sink, "float32"))
    assert words in str(raised.value) and "\n" not in str(raised.value)


MANIFEST = {"dtypes": ["f32"], "lse": True, "causal": ["top-left", "bottom-right"], "grouped_query": True,
            "fully_masked_row": "zero", "variants": {"sink": {}}}  # fmt: skip
SAID = {"properties": ["sink.*", "attention.oracle"], "cases": 40, "no_large": True}


def test_a_function_with_a_sink_is_checked(tmp_path):
    def right(q, k, v, mask=None, scale=None, causal="none", sink=None, want_lse=False):
        return with_sink(q, k, v, mask, scale, causal, sink, want_lse=want_lse)

    def twice(q, k, v, mask=None, scale=None, causal="none", sink=None, want_lse=False):
        return with_sink(q, k, v, mask, scale, causal, sink, want_lse=want_lse, times=2)

    held = attest.check(right, manifest=MANIFEST, out=str(tmp_path / "right"), **SAID)
    assert held.verdict == "held", held
    with pytest.raises(AssertionError) as raised:
        attest.check(twice, manifest=MANIFEST, out=str(tmp_path / "wrong"), **SAID)
    assert "the sink counted 2 times" in str(raised.value)


def test_an_lse_of_the_keys_alone_is_completed_where_it_is_said_to_be_that(tmp_path):
    def keys_alone(q, k, v, mask=None, scale=None, causal="none", sink=None, want_lse=False):
        out = with_sink(q, k, v, mask, scale, causal, sink)
        return (out, with_sink(q, k, v, mask, scale, causal, want_lse=True)[1]) if want_lse else out

    said = {**MANIFEST, "variants": {"sink": {"lse": "without"}}}
    held = attest.check(keys_alone, manifest=said, out=str(tmp_path / "without"), **SAID)
    assert held.verdict == "held", held
    with pytest.raises(AssertionError):
        attest.check(keys_alone, manifest=MANIFEST, out=str(tmp_path / "with"), **SAID)


def test_flex_attention_has_sinks_through_its_lse(tmp_path):
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    said = {**SAID, "cases": 12}
    held = attest.check(flex.flex_attention, dtypes=["f32", "f64"], out=str(tmp_path / "flex"), **said)
    assert held.verdict == "held", held
