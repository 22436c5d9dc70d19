"""ALiBi slopes, -slope |p - j| added to scores: attest's functions, kernels under test, flash_attn, FlexAttention, calls."""

import numpy
import pytest
from test_frameworks import needs
from test_windows import captured

import attest
from attest import _calls, _check

random = numpy.random.default_rng(11)
SLOPES = numpy.array([0.5, 0, -0.3, 2.0**-7], "float32")
OF_EACH = numpy.array([[0.5, 0, -0.3, 2.0**-7], [0.1, 1, 0.25, 0.9]], "float32")


def positions(queries, keys, alignment):
    return numpy.arange(queries)[:, None] + (keys - queries if alignment == "bottom-right" else 0)


def distance(p, j):
    return -numpy.abs(p - j)


@numpy.errstate(all="ignore")
def attention(q, k, v, mask=None, scale=None, causal="none", alibi_slopes=None, alignment=None, softcap=0.0, sink=None,
              want_lse=False, curve=distance, before_the_cap=False, sign=1):  # fmt: skip
    """In the format of q. `curve`: what a slope of 1 adds, of positions and keys; `before_the_cap`: to what is capped."""
    of = q.dtype.type
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    k, v = (x.repeat(heads // x.shape[1], axis=1) for x in (k, v))
    scores = (q @ k.swapaxes(2, 3)).astype(q.dtype) * of(q.shape[3] ** -0.5 if scale is None else scale)
    corner = alignment if causal == "none" else causal
    p, key = positions(queries, keys, corner), numpy.arange(keys)
    bias = numpy.zeros((1, 1, queries, keys), q.dtype)
    if alibi_slopes is not None:
        slopes = numpy.asarray(alibi_slopes, q.dtype)
        bias = sign * slopes.reshape(-1, heads)[:, :, None, None] * curve(p, key).astype(q.dtype)
    if before_the_cap:
        scores, bias = scores + bias, of(0)
    if softcap:
        scores = of(softcap) * numpy.tanh(scores / of(softcap))
    if mask is not None:
        scores = scores + (numpy.where(mask, 0, -numpy.inf) if mask.dtype == bool else mask).astype(q.dtype)
    scores = scores + bias
    if causal != "none":
        scores = numpy.where(key <= p, scores, of(-numpy.inf))
    of_heads = numpy.full(heads, -numpy.inf, q.dtype) if sink is None else numpy.asarray(sink, q.dtype)
    of_heads = numpy.broadcast_to(of_heads[None, :, None, None], (*scores.shape[:3], 1))
    top = numpy.maximum(scores.max(axis=3, keepdims=True, initial=-numpy.inf), of_heads)
    top = numpy.where(numpy.isneginf(top), 0, top)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True) + numpy.exp(of_heads - top)
    out = numpy.where(total > 0, (weights @ v) / total, 0).astype(q.dtype)
    lse = (top + numpy.log(total)).astype("float64")[..., 0]
    return (out, lse) if want_lse else out


def problem(batch=2, queries=4, keys=7, heads=4, kv_heads=2, dk=8, dtype="float32"):
    return [
        random.standard_normal((batch, of, length, dk)).astype(dtype)
        for of, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    ]


def assert_exact(exact, out, lse):
    numpy.testing.assert_allclose(out, exact.value, rtol=1e-12, atol=1e-13)
    numpy.testing.assert_allclose(lse, exact.lse, rtol=1e-12, atol=1e-13)


def assert_same(one, other):
    """Of f32 and wider; enclosures may be of other widths."""
    numpy.testing.assert_allclose(one.value, other.value, rtol=1e-11, atol=1e-12)


PLACES = [("none", "top-left"), ("none", "bottom-right"), ("top-left", None), ("bottom-right", None)]


@pytest.mark.parametrize(("causal", "alignment"), PLACES)
@pytest.mark.parametrize("lengths", [(4, 7), (7, 4), (1, 6), (5, 5)])
def test_the_exact_answer_is_that_of_distances(causal, alignment, lengths):
    q, k, v = (x.astype("float64") for x in problem(queries=lengths[0], keys=lengths[1]))
    for slopes in (SLOPES, SLOPES[None], OF_EACH):
        out, lse = attention(q, k, v, causal=causal, alignment=alignment, alibi_slopes=slopes, want_lse=True)
        exact = attest.exact(q, k, v, causal=causal, alignment=alignment, alibi_slopes=slopes)
        rows = numpy.isfinite(lse)  # of M > N some see no key
        assert rows.any() and numpy.isnan(exact.value[~rows]).all()
        numpy.testing.assert_allclose(out[rows], exact.value[rows], rtol=1e-12, atol=1e-13)
        numpy.testing.assert_allclose(lse[rows], exact.lse[rows], rtol=1e-12, atol=1e-13)


def test_without_a_word_positions_are_from_the_top_left():
    q, k, v = problem()
    plain = attest.exact(q, k, v, alibi_slopes=SLOPES)
    assert numpy.array_equal(plain.lower, attest.exact(q, k, v, alibi_slopes=SLOPES, alignment="top-left").lower)
    assert not numpy.array_equal(plain.lower, attest.exact(q, k, v, alibi_slopes=SLOPES, alignment="bottom-right").lower)


def test_slopes_are_a_mask_of_their_numbers():
    q, k, v = (x.astype("float64") for x in problem())
    own = random.standard_normal((2, 4, 4, 7))
    added = OF_EACH.astype("float64")[:, :, None, None] * distance(positions(4, 7, "bottom-right"), numpy.arange(7))
    by_slopes = attest.exact(q, k, v, mask=own, alibi_slopes=OF_EACH, alignment="bottom-right")
    by_mask = attest.exact(q, k, v, mask=own + added)
    assert_same(by_slopes, by_mask)
    sees = random.uniform(size=(1, 1, 4, 7)) < 0.6
    sees[..., 0] = True
    by_slopes = attest.exact(q, k, v, mask=sees, alibi_slopes=OF_EACH, alignment="bottom-right")
    assert_same(by_slopes, attest.exact(q, k, v, mask=numpy.where(sees, added, -numpy.inf)))


def test_slopes_of_fewer_axes_are_those_of_all_entries():
    q, k, v = problem()
    whole = attest.exact(q, k, v, alibi_slopes=SLOPES)
    for other in (SLOPES[None], numpy.stack([SLOPES, SLOPES])):
        assert_same(attest.exact(q, k, v, alibi_slopes=other), whole)
    entry = attest.exact(q[0], k[0], v[0], alibi_slopes=SLOPES)
    numpy.testing.assert_allclose(entry.value, whole.value[0], rtol=1e-11, atol=1e-12)
    head = attest.exact(q[0, 2], k[0, 1], v[0, 1], alibi_slopes=SLOPES[2:3])
    numpy.testing.assert_allclose(head.value, whole.value[0, 2], rtol=1e-11, atol=1e-12)
    tokens_first = attest.exact(*(x.swapaxes(1, 2) for x in (q, k, v)), alibi_slopes=SLOPES, layout="bshd")
    numpy.testing.assert_allclose(tokens_first.value.swapaxes(1, 2), whole.value, rtol=1e-11, atol=1e-12)


def test_no_slopes_are_those_of_0():
    q, k, v = problem()
    plain = attest.exact(q, k, v)
    assert_same(attest.exact(q, k, v, alibi_slopes=numpy.zeros(4, "float32")), plain)
    assert numpy.array_equal(attest.exact(q, k, v, alibi_slopes=None, alignment="bottom-right").lower, plain.lower)


def test_caps_sinks_windows_and_sequences_are_as_they_are_without():
    q, k, v = (x.astype("float64") for x in problem())
    given = {"alibi_slopes": OF_EACH, "alignment": "bottom-right"}
    sink = numpy.array([4.0, -numpy.inf, 1, -1], "float32")
    out, lse = attention(q, k, v, softcap=2.0, sink=sink, **given, want_lse=True)
    assert_exact(attest.exact(q, k, v, softcap=2.0, sink=sink, **given), out, lse)
    ahead = numpy.arange(7) - positions(4, 7, "bottom-right")
    out, lse = attention(q, k, v, ((ahead >= -1) & (ahead <= 2))[None, None], **given, want_lse=True)
    assert_exact(attest.exact(q, k, v, window_left=1, window_right=2, **given), out, lse)
    # Of its own M and N, and behind what is padding.
    exact = attest.exact(q, k, v, q_lengths=[3, 4], kv_lengths=[5, 7], left_pad=[1, 0], **given)
    own = attention(q[:1, :, :3], k[:1, :, 1:5], v[:1, :, 1:5], alibi_slopes=OF_EACH[:1], alignment="bottom-right")
    numpy.testing.assert_allclose(own[0], exact.value[0, :, :3], rtol=1e-12, atol=1e-13)
    other = attention(q[1:], k[1:], v[1:], alibi_slopes=OF_EACH[1:], alignment="bottom-right")
    numpy.testing.assert_allclose(other[0], exact.value[1], rtol=1e-12, atol=1e-13)
    packed = attest.exact(q[:1], k[:1], v[:1], q_starts=[0, 1, 4], kv_starts=[0, 3, 7], **{**given, "alibi_slopes": SLOPES})
    for rows, keys in ((slice(0, 1), slice(0, 3)), (slice(1, 4), slice(3, 7))):
        one = [x[:1, :, part] for x, part in ((q, rows), (k, keys), (v, keys))]
        expected = attention(*one, alibi_slopes=SLOPES, alignment="bottom-right")
        numpy.testing.assert_allclose(packed.value[:, :, rows], expected, rtol=1e-12, atol=1e-13)
    keep = random.uniform(size=(1, 1, 4, 7)) < 0.6
    assert attest.exact(q, k, v, keep=keep, dropout_p=0.25, **given).judged.any()


REFUSED = [
    ({"alibi_slopes": numpy.ones(3, "float32")}, "alibi_slopes has shape [1, 3]"),
    ({"alibi_slopes": numpy.ones((3, 4), "float32")}, "alibi_slopes has shape [3, 4]"),
    ({"alibi_slopes": numpy.ones((1, 1, 4), "float32")}, "alibi_slopes has the shape [1, 1, 4]; it must be [heads] or"),
    ({"alibi_slopes": numpy.ones(4)}, "alibi_slopes is f64; it must be f32"),
    ({"alibi_slopes": numpy.ones(4, bool)}, "alibi_slopes is bool; it must be f32"),
    ({"alibi_slopes": numpy.array([1, 1, numpy.nan, 1], "float32")}, "alibi_slopes holds nan at [0, 2]"),
    ({"alibi_slopes": numpy.array([1, numpy.inf, 1, 1], "float32")}, "alibi_slopes holds inf at [0, 1]"),
    ({"alibi_slopes": SLOPES, "alignment": "centre"}, "alignment is 'centre'; it must be one of"),
    ({"alibi_slopes": SLOPES, "alignment": "top-left", "causal": "bottom-right"}, "a row has one position"),
    ({"alibi_slopes": SLOPES, "mask": numpy.ones((1, 1, 4, 7), "float32"), "mask_convention": "pre-scale"},
     "alibi_slopes is present beside a pre-scale mask"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_slopes_that_are_none_are_refused_in_one_line(given, words):
    with pytest.raises(attest.AttestError) as raised:
        attest.exact(*problem(), **given)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def squared(p, j):
    return -((p - j) ** 2)


def test_another_answer_is_violated():
    q, k, v = problem()
    given = {"alibi_slopes": OF_EACH, "alignment": "bottom-right", "softcap": 2.0}
    assert attest.allclose(attention(q, k, v, **given), q, k, v, **given)
    for other in (
        {"alibi_slopes": None},
        {"alibi_slopes": OF_EACH[:, ::-1]},
        {"alibi_slopes": OF_EACH[::-1]},
        {"alibi_slopes": OF_EACH[:1]},
        {"alibi_slopes": numpy.abs(OF_EACH)},
        {"alignment": "top-left"},
        {"sign": -1},
        {"curve": squared},
        {"curve": lambda p, j: j - p},
        {"before_the_cap": True},
    ):
        assert not attest.allclose(attention(q, k, v, **{**given, **other}), q, k, v, **given), other
    with pytest.raises(AssertionError):
        attest.assert_close(attention(q, k, v, softcap=2.0), q, k, v, **given)


def test_slopes_times_the_number_of_the_key_are_the_same_under_a_causal_form():
    q, k, v = problem()
    for causal in ("top-left", "bottom-right"):
        given = {"causal": causal, "alibi_slopes": OF_EACH}
        out = attention(q, k, v, **given, curve=lambda p, j: j + 0 * p)
        manifest = {"causal": [causal], "variants": {"alibi": {"form": "column", "per_batch": True}}}
        assert attest.allclose(out, q, k, v, **given, manifest=manifest)
    without = {"alibi_slopes": OF_EACH, "alignment": "bottom-right"}
    assert not attest.allclose(attention(q, k, v, **without, curve=lambda p, j: j + 0 * p), q, k, v, **without)


def test_cases_have_slopes_where_a_manifest_lists_them(tmp_path):
    assert all("alibi_slopes" not in case.arguments for case in attest.cases(count=40))
    manifest = {"variants": {"alibi": {"alignment": ["bottom-right"]}}}
    sloped = [case for case in attest.cases(count=80, manifest=manifest) if "alibi_slopes" in case.tensors]
    assert sloped and all(case.arguments["alignment"] == "bottom-right" for case in sloped)
    for case in sloped:
        slopes = case.arguments["alibi_slopes"]
        assert slopes.dtype == "float32" and slopes.shape == (1, case.q.shape[1])
        assert "window_left" not in case.arguments and case.window_left == -1
    of_entries = attest.cases(count=80, manifest={"variants": {"alibi": {"per_batch": True}}})
    assert any(case.tensors["alibi_slopes"].shape[0] > 1 for case in of_entries if "alibi_slopes" in case.tensors)
    case = max(sloped, key=lambda case: case.q.size)
    assert "alibi_slopes" in repr(case) and "alignment" not in case.about
    case.save(tmp_path / "case.safetensors")
    again = attest.load(tmp_path / "case.safetensors")
    assert again.alignment == case.alignment
    assert numpy.array_equal(again.tensors["alibi_slopes"], case.tensors["alibi_slopes"])
    assert numpy.array_equal(again.exact().lower, case.exact().lower, equal_nan=True)


def test_a_function_with_slopes_is_asked_for_them():
    complete = _check.adapter()._completed

    def mine(q, k, v, scale=1.0, alibi_slopes=None):
        pass

    assert complete({}, mine, None)["variants"] == {"alibi": {"per_batch": True}}
    assert complete({"variants": {}}, mine, None)["variants"] == {}
    # That of another's names is, where they are told.
    own = _calls.adapted(None, _calls.Call("numpy", "bshd", scale="softmax_scale", slopes="slopes"))
    assert complete({}, own, None)["variants"] == {"alibi": {"per_batch": True}}


MANIFEST = {"dtypes": ["f32"], "lse": True, "grouped_query": True, "fully_masked_row": "zero"}
SAID = {"properties": ["alibi.*", "attention.oracle"], "cases": 40, "no_large": True}


def test_a_function_with_slopes_is_checked(tmp_path):
    def right(q, k, v, mask=None, scale=None, causal="none", alibi_slopes=None, alignment=None, want_lse=False):
        assert alibi_slopes is None or (alibi_slopes.dtype == "float32" and alibi_slopes.ndim == 2)
        assert (alignment is None) == (alibi_slopes is None)
        return attention(q, k, v, mask, scale, causal, alibi_slopes, alignment, want_lse=want_lse)

    def from_the_top_left(q, k, v, mask=None, scale=None, causal="none", alibi_slopes=None, alignment=None, want_lse=False):
        return attention(q, k, v, mask, scale, causal, alibi_slopes, "top-left", want_lse=want_lse)

    def of_the_first_entry(q, k, v, mask=None, scale=None, causal="none", alibi_slopes=None, alignment=None, want_lse=False):
        slopes = None if alibi_slopes is None else alibi_slopes[:1]
        return attention(q, k, v, mask, scale, causal, slopes, alignment, want_lse=want_lse)

    held = attest.check(right, manifest=MANIFEST, out=str(tmp_path / "right"), **SAID)
    assert held.verdict == "held", held
    for kernel in (from_the_top_left, of_the_first_entry):
        with pytest.raises(AssertionError):
            attest.check(kernel, manifest=MANIFEST, out=str(tmp_path / kernel.__name__), **SAID)


def test_a_causal_form_says_positions_to_a_function_without_an_alignment(tmp_path):
    asked = []

    def mine(q, k, v, mask=None, scale=None, causal="none", alibi_slopes=None):
        asked.append(alibi_slopes is not None and causal != "none")
        assert alibi_slopes is None or causal != "none"
        return attention(q, k, v, mask, scale, causal, alibi_slopes)

    manifest = {"dtypes": ["f32"], "grouped_query": True, "fully_masked_row": "zero"}
    said = {**SAID, "properties": ["attention.oracle"], "cases": 200}
    held = attest.check(mine, manifest=manifest, out=str(tmp_path / "mine"), **said)
    assert held.verdict == "held" and any(asked), held


def test_an_lse_of_columns_is_taken_for_what_it_is_said_to_be(tmp_path):
    def columns(q, k, v, mask=None, scale=None, causal="none", alibi_slopes=None, alignment=None, want_lse=False):
        curve = distance if causal == "none" else lambda p, j: j + 0 * p
        return attention(q, k, v, mask, scale, causal, alibi_slopes, alignment, want_lse=want_lse, curve=curve)

    said = {"causal": ["top-left", "bottom-right"], "variants": {"alibi": {"form": "column", "per_batch": True}}}
    told = {**MANIFEST, **said, "lse_convention": {"alibi": "column"}}
    held = attest.check(columns, manifest=told, out=str(tmp_path / "told"), **SAID)
    assert held.verdict == "held", held
    with pytest.raises(AssertionError):
        attest.check(columns, manifest={**MANIFEST, **said}, out=str(tmp_path / "untold"), **SAID)


def test_an_lse_of_rows_without_keys_is_taken_for_what_it_is_said_to_be(tmp_path):
    def infinite(q, k, v, mask=None, scale=None, causal="none", want_lse=False):
        out, lse = attention(q, k, v, mask, scale, causal, want_lse=True)
        return (out, numpy.where(numpy.isneginf(lse), numpy.inf, lse)) if want_lse else out

    said = {**SAID, "properties": ["attention.oracle", "masked.*"], "cases": 80}
    told = {**MANIFEST, "lse_convention": {"empty": "+inf"}}
    held = attest.check(infinite, manifest=told, out=str(tmp_path / "told"), **said)
    assert held.verdict == "held", held
    with pytest.raises(AssertionError):
        attest.check(infinite, manifest=MANIFEST, out=str(tmp_path / "untold"), **said)


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"])
def test_the_slopes_of_flash_attention_are_known(name, monkeypatch):
    pytest.importorskip("torch")
    import flash_attn

    function = getattr(flash_attn, name)
    what = {"dtypes": "bf16", "properties": "attention.oracle,alibi.*", "no_large": True, "cases": 60}
    assert attest.check(function, **what).verdict == "held"
    # Where its caller wants no slopes, there are none, and nothing to say of its log-sum-exps beside them.
    without = attest.check(function, manifest={"variants": {}}, **{**what, "properties": "attention.oracle"})
    assert without.verdict == "held"
    real = flash_attn.biased
    for biased in (
        lambda scores, slopes, by_columns: real(scores, -slopes, by_columns),
        lambda scores, slopes, by_columns: real(scores, slopes.flip(-1), by_columns),
        # The log-sum-exp is no longer that of columns.
        lambda scores, slopes, by_columns: real(scores, slopes, False),
    ):
        monkeypatch.setattr(flash_attn, "biased", biased)
        with pytest.raises(AssertionError):
            attest.check(function, **what)


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
def test_flex_attention_counts_in_each_sequence(alignment):
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    import torch

    served = _calls.flexible(flex.flex_attention)
    q, k, v = (x.astype("float64") for x in problem())
    sees = random.uniform(size=(2, 1, 4, 7)) < 0.6
    sees[..., 0] = True
    for given in (
        {"alignment": alignment},
        {"alignment": alignment, "softcap": 2.0},
        {"alignment": alignment, "mask": sees},
        {"causal": "top-left", "alignment": "top-left", "mask": random.standard_normal((1, 4, 4, 7))},
        {"alignment": alignment, "sink": numpy.array([4.0, -numpy.inf, 9, -1])},
    ):
        for slopes in (SLOPES[None], OF_EACH):
            tensors = {name: torch.from_numpy(of) if hasattr(of, "shape") else of for name, of in given.items()}
            out = served(*map(torch.from_numpy, (q, k, v)), scale=0.7, alibi_slopes=torch.from_numpy(slopes), **tensors)
            expected = attention(q, k, v, scale=0.7, alibi_slopes=slopes, **given)
            numpy.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)
    ahead = numpy.arange(7) - positions(4, 7, alignment)
    window = {"window_left": 2, "window_right": 1, "alignment": alignment}
    out = served(*map(torch.from_numpy, (q, k, v)), scale=0.7, alibi_slopes=torch.from_numpy(OF_EACH), **window)
    seen = ((ahead >= -2) & (ahead <= 1))[None, None]
    expected = attention(q, k, v, seen, scale=0.7, alibi_slopes=OF_EACH, alignment=alignment)
    numpy.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)
    lengths = {"q_lengths": torch.tensor([3, 4]), "kv_lengths": torch.tensor([5, 7])}
    out = served(*map(torch.from_numpy, (q, k, v)), scale=0.7, alibi_slopes=torch.from_numpy(OF_EACH), alignment=alignment,
                 **lengths)  # fmt: skip
    own = attention(q[:1, :, :3], k[:1, :, :5], v[:1, :, :5], scale=0.7, alibi_slopes=OF_EACH[:1], alignment=alignment)
    numpy.testing.assert_allclose(out[0, :, :3].numpy(), own[0], rtol=1e-12, atol=1e-13)


def test_flex_attention_with_slopes_is_checked(tmp_path):
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    laws = ["attention.oracle", "alibi.equals-mask"]
    said = {**SAID, "cases": 12, "properties": laws}
    held = attest.check(flex.flex_attention, dtypes=["f32", "bf16"], out=str(tmp_path / "flex"), **said)
    assert held.verdict == "held", held


def test_calls_with_slopes_are_judged(tmp_path):
    def mine(q, k, v, alibi_slopes=None, alignment="top-left"):
        slopes = None if alibi_slopes is None else numpy.asarray(alibi_slopes)
        return attention(q, k, v, alibi_slopes=slopes, alignment=alignment)

    def without(q, k, v, alibi_slopes=None):
        return attention(q, k, v)

    calls = captured(mine, (problem(), {"alibi_slopes": SLOPES}), (problem(), {}),
                     (problem(), {"alibi_slopes": OF_EACH, "alignment": "bottom-right"}))  # fmt: skip
    assert calls.left_out == {} and [bool(call) for call in calls.judge()] == [True] * 3
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    shapes = sorted(case.tensors["alibi_slopes"].shape for case in loaded if "alibi_slopes" in case.tensors)
    assert shapes == [(1, 4), (2, 4)]
    assert sorted(str(case.alignment) for case in loaded) == ["None", "bottom-right", "top-left"]
    assert [bool(call) for call in captured(without, (problem(), {"alibi_slopes": SLOPES})).judge()] == [False]


def test_calls_of_flash_attention_with_slopes_are_judged(tmp_path):
    torch = pytest.importorskip("torch")
    import flash_attn

    q, k, v = (torch.from_numpy(x).transpose(1, 2) for x in problem(queries=3))
    with attest.capture(functions=[(flash_attn, "flash_attn_func")]) as calls:
        flash_attn.flash_attn_func(q, k, v, alibi_slopes=torch.from_numpy(SLOPES))
        flash_attn.flash_attn_func(q, k, v, causal=True, alibi_slopes=torch.from_numpy(OF_EACH))
    assert calls.left_out == {} and len(calls.judge()) == 2 and all(calls.judge())
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    assert {(case.causal, case.alignment) for case in loaded} == {("none", "bottom-right"), ("bottom-right", "bottom-right")}


def test_calls_with_what_is_no_slope_are_left_out():
    def mine(q, k, v, alibi_slopes=None, alibi=None):
        return q

    calls = captured(mine, (problem(), {"alibi": 0.5}))
    assert calls.judge() == [] and sum("has alibi, which is not known" in why for why in calls.left_out) == 1
