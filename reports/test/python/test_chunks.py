"""Chunks of keys: adapters by the keys that rows see, attest's functions, kernels under test, FlashAttention 3."""

import sys
import types

import numpy
import pytest
from test_windows import attention, band, captured, visible_sets

import attest
from attest import _calls, _capture, _check, _known

CHUNKED = [(["numpy"], "python/numpy_example.py", 128), (["torch"], "pytorch/flex_kernels.py flex", 192)]
random = numpy.random.default_rng(13)


@pytest.mark.parametrize(("modules", "script", "count"), CHUNKED, ids=[script for _, script, _ in CHUNKED])
def test_an_adapters_rows_see_the_keys_of_their_chunk(tmp_path, modules, script, count):
    chunks = visible_sets(tmp_path, "chunks", modules, script)
    assert len(chunks) == count
    for chunk in chunks:
        assert chunk["seen"] == chunk["expected"], chunk["asked"]


def test_chunks_count_in_each_sequence(tmp_path):
    chunks = visible_sets(tmp_path, "chunked_sequences", ["torch"], "pytorch/flex_kernels.py flex")
    assert len(chunks) == 42
    for chunk in chunks:
        assert chunk["seen"] == chunk["expected"], chunk["asked"]


def problem(queries=4, keys=7, heads=2, dk=8, batch=1, dtype="float32"):
    return [random.standard_normal((batch, heads, length, dk)).astype(dtype) for length in (queries, keys, keys)]


def chunks(queries, keys, attention_chunk, alignment="top-left"):
    """True where a row sees a key; of Python's and NumPy's division, which rounds down."""
    p = numpy.arange(queries)[:, None] + (keys - queries if alignment == "bottom-right" else 0)
    return numpy.arange(keys) // attention_chunk == p // attention_chunk


@numpy.errstate(all="ignore")
def chunked(q, k, v, attention_chunk=0, alignment="top-left", seen=True):
    if attention_chunk:
        seen = seen & chunks(q.shape[2], k.shape[2], attention_chunk, alignment)
    return attention(q, k, v, seen)


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
@pytest.mark.parametrize(
    ("lengths", "length"), [((4, 7), 1), ((4, 7), 3), ((5, 5), 2), ((7, 4), 3), ((1, 6), 4), ((4, 7), 100)]
)
def test_chunks_are_the_mask_of_their_rows(alignment, lengths, length):
    q, k, v = problem(*lengths)
    seen = chunks(*lengths, length, alignment)
    given = {"attention_chunk": length, "alignment": alignment}
    by_chunk, by_mask = attest.exact(q, k, v, **given), attest.exact(q, k, v, mask=seen)
    # A row before the keys, or behind them, has no answer either way.
    rows = seen.any(-1)
    assert numpy.isnan(by_chunk.lower[:, :, ~rows]).all() and not numpy.isnan(by_chunk.lower[:, :, rows]).any()
    (lower, upper, bound), (lower_of_mask, upper_of_mask, bound_of_mask) = (
        [of[:, :, rows] for of in (exact.lower, exact.upper, exact.bound)] for exact in (by_chunk, by_mask)
    )
    assert numpy.all(lower <= upper_of_mask) and numpy.all(lower_of_mask <= upper)
    assert numpy.allclose(bound, bound_of_mask, rtol=1e-6)
    out = chunked(q, k, v, **given)
    assert attest.allclose(out, q, k, v, **given).verdict == "held"
    # Chunks of a key more or less, and none, are other problems, where they show other keys.
    longer, shorter = (chunks(*lengths, max(length + more, 1), alignment) for more in (1, -1))
    for wrong in (longer, shorter, numpy.ones_like(seen)):
        wrong = wrong & rows[:, None]
        if not numpy.array_equal(wrong, seen) and wrong[rows].any(-1).all():
            with numpy.errstate(all="ignore"):
                out = attention(q, k, v, wrong)
            assert not attest.allclose(out, q, k, v, **given)


def test_chunks_windows_masks_and_causal_forms_hide_together():
    q, k, v = problem(5, 9)
    own = random.uniform(size=(1, 1, 5, 9)) < 0.7
    places = (("none", "top-left"), ("none", "bottom-right"), ("top-left", None), ("bottom-right", None))
    for causal, alignment in places:
        corner = alignment or causal
        seen = chunks(5, 9, 4, corner) & band(5, 9, 2, 1, corner)
        if causal != "none":
            seen = seen & band(5, 9, -1, 0, corner)
        own[..., numpy.arange(5), seen.argmax(-1)] = True  # each row sees a key
        given = {"causal": causal, "alignment": alignment, "attention_chunk": 4, "window_left": 2, "window_right": 1}
        assert attest.allclose(attention(q, k, v, seen & own), q, k, v, mask=own, **given)
        assert not attest.allclose(attention(q, k, v, band(5, 9, 2, 1, corner)), q, k, v, mask=own, **given)


def test_without_a_word_chunks_count_from_the_top_left():
    q, k, v = problem()
    plain = attest.exact(q, k, v, attention_chunk=2)
    assert numpy.array_equal(plain.lower, attest.exact(q, k, v, attention_chunk=2, alignment="top-left").lower)
    assert not numpy.array_equal(plain.lower, attest.exact(q, k, v, attention_chunk=2, alignment="bottom-right").lower)


def test_no_chunks_are_no_chunks():
    q, k, v = problem()
    for none in (0, None):
        assert attest.allclose(attention(q, k, v, True), q, k, v, attention_chunk=none, alignment="bottom-right")


def test_chunks_of_each_sequence_count_in_it():
    q, k, v = problem(batch=2)
    given = {"attention_chunk": 2, "alignment": "bottom-right"}
    exact = attest.exact(q, k, v, q_lengths=[3, 4], kv_lengths=[5, 7], left_pad=[1, 0], **given)
    own = attest.exact(q[:1, :, :3], k[:1, :, 1:5], v[:1, :, 1:5], **given)
    numpy.testing.assert_allclose(exact.value[:1, :, :3], own.value, rtol=1e-11, atol=1e-12)
    own = attest.exact(q[1:], k[1:], v[1:], **given)
    numpy.testing.assert_allclose(exact.value[1:], own.value, rtol=1e-11, atol=1e-12)
    packed = attest.exact(q[:1], k[:1], v[:1], q_starts=[0, 1, 4], kv_starts=[0, 3, 7], **given)
    for rows, keys in ((slice(0, 1), slice(0, 3)), (slice(1, 4), slice(3, 7))):
        one = attest.exact(*(x[:1, :, part] for x, part in ((q, rows), (k, keys), (v, keys))), **given)
        numpy.testing.assert_allclose(packed.value[:, :, rows], one.value, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"attention_chunk": -1}, "attention_chunk is -1; it must be a whole number of keys, or 0 for none"),
        ({"attention_chunk": 1.5}, "attention_chunk is 1.5; it must be"),
        ({"attention_chunk": 2**31}, "attention_chunk is 2147483648; it must be 0, or from 1 to 2147483647"),
        ({"attention_chunk": 2, "alignment": "centre"}, "alignment is 'centre'; it must be one of"),
        ({"attention_chunk": 2, "alignment": "top-left", "causal": "bottom-right"}, "a row has one position"),
    ],
)
def test_wrong_chunks_are_refused_in_one_line(given, says):
    with pytest.raises(attest.AttestError, match=says) as raised:
        attest.exact(*problem(), **given)
    assert "\n" not in str(raised.value)


def test_cases_have_chunks_where_a_manifest_lists_them(tmp_path):
    assert all("attention_chunk" not in case.arguments for case in attest.cases(count=40))
    manifest = {"variants": {"chunk": {"alignment": ["bottom-right"]}}}
    drawn = [case for case in attest.cases(count=200, manifest=manifest) if case.attention_chunk]
    assert drawn and all(case.arguments["alignment"] == "bottom-right" for case in drawn)
    assert all("window_left" not in case.arguments and case.window_left == -1 for case in drawn)
    case = max(drawn, key=lambda case: case.q.size)
    assert "attention_chunk" in repr(case) and "attention_chunk" not in case.about
    case.save(tmp_path / "case.safetensors")
    again = attest.load(tmp_path / "case.safetensors")
    assert again.arguments["attention_chunk"] == case.attention_chunk and again.alignment == case.alignment
    assert numpy.array_equal(again.exact().lower, case.exact().lower, equal_nan=True)


CHUNKED_REQUEST = {"op": "attention", "attest": "2", "scale": "1", "mask_convention": "post-scale", "causal": "none",
                   "variants": "chunk", "attention_chunk": "3", "alignment": "bottom-right"}  # fmt: skip


def test_a_function_with_chunks_gets_them_by_name():
    adapter = _check.adapter()

    def server(function, **manifest):
        return adapter.Server(None, function, None, adapter._completed(manifest, function, None), None)

    def asked(server, **changed):
        metadata = {name: value for name, value in {**CHUNKED_REQUEST, **changed}.items() if value is not None}
        adapter._refuse_unknown(metadata, {}, server.listed)
        return server.by_name("attention", metadata, {}, 1, False)

    def mine(q, k, v, attention_chunk=0, alignment=None, causal="none"):
        pass

    def without_alignment(q, k, v, attention_chunk=0):
        pass

    def windowed(q, k, v, window_left=-1, alignment=None):
        pass

    assert adapter._completed({}, mine, None)["variants"] == {"chunk": {}}
    assert adapter._completed({"variants": {}}, mine, None)["variants"] == {}
    given = asked(server(mine))
    assert given == {"attention_chunk": 3, "alignment": "bottom-right", "causal": "none"}
    assert type(given["attention_chunk"]) is int
    plain = asked(server(mine), variants=None, attention_chunk=None, alignment=None, attest="1")
    assert plain == {"attention_chunk": 0, "alignment": None, "causal": "none"}
    # Of one alignment, by the manifest, nothing need be said.
    one = {"variants": {"chunk": {"alignment": ["bottom-right"]}}}
    assert asked(server(without_alignment, **one)) == {"attention_chunk": 3}
    with pytest.raises(adapter.Unsupported, match="no parameter alignment"):
        asked(server(without_alignment, **one), alignment="top-left")
    with pytest.raises(adapter.Unsupported, match='the variant "chunk"'):
        asked(server(windowed))
    # That of another's names is asked for them, where they are told.
    own = _calls.adapted(None, _calls.Call("numpy", "bshd", scale="softmax_scale", chunk="chunk_size"))
    assert adapter._completed({}, own, None)["variants"] == {"chunk": {}}


MANIFEST = {"dtypes": ["f32"], "masks": [], "fully_masked_row": "nan", "arithmetic": {"f32": {"exp_ulp": 3}}}
SAID = {"properties": ["chunk.*", "attention.oracle"], "cases": 40, "no_large": True}


def test_a_function_with_chunks_is_checked(tmp_path):
    def plain(q, k, v, scale, seen):
        with numpy.errstate(all="ignore"):
            s = numpy.where(seen, (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale), -numpy.inf)
            w = numpy.exp(s - s.max(-1, keepdims=True, initial=-numpy.inf))
            return w @ v / w.sum(-1, keepdims=True)

    def shown(q, k, attention_chunk, alignment):
        return chunks(q.shape[2], k.shape[2], attention_chunk, alignment) if attention_chunk else True

    def right(q, k, v, scale=1.0, attention_chunk=0, alignment=None):
        assert (alignment is None) == (attention_chunk == 0)
        return plain(q, k, v, scale, shown(q, k, attention_chunk, alignment))

    def from_the_top_left(q, k, v, scale=1.0, attention_chunk=0, alignment=None):
        return plain(q, k, v, scale, shown(q, k, attention_chunk, "top-left"))

    def of_windows(q, k, v, scale=1.0, attention_chunk=0, alignment=None):
        ends = (attention_chunk - 1,) * 2
        return plain(q, k, v, scale, band(q.shape[2], k.shape[2], *ends, alignment) if attention_chunk else True)

    held = attest.check(right, manifest=MANIFEST, out=str(tmp_path / "right"), **SAID)
    assert held.verdict == "held", held
    for kernel in (from_the_top_left, of_windows):
        with pytest.raises(AssertionError):
            attest.check(kernel, manifest=MANIFEST, out=str(tmp_path / kernel.__name__), **SAID)


def test_which_of_the_functions_that_are_known_have_chunks():
    rows = {(row.module, row.name): row.manifest.get("variants", {}) for row in _known.rows()}
    flex = rows["torch.nn.attention.flex_attention", "flex_attention"]
    assert flex["chunk"] == {"alignment": ["top-left", "bottom-right"]}
    assert {place for place, variants in rows.items() if "chunk" in variants} == {
        ("torch.nn.attention.flex_attention", "flex_attention"),
        ("flash_attn_interface", "flash_attn_func"),
        ("flash_attn_interface", "flash_attn_varlen_func"),
    }


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func"])
def test_the_chunks_of_flash_attention_3_are_known(name, monkeypatch):
    torch = pytest.importorskip("torch")
    import flash_attn_interface

    function = getattr(flash_attn_interface, name)
    what = {"dtypes": "bf16", "properties": "attention.oracle,chunk.*", "no_large": True, "cases": 60}
    assert attest.check(function, **what).verdict == "held"
    for chunk_of in (
        # Chunks that begin a key later, those of positions rounded towards 0, and none.
        lambda positions, length: torch.div(positions - 1, length, rounding_mode="floor"),
        lambda positions, length: torch.div(positions, length, rounding_mode="trunc"),
        lambda positions, length: torch.zeros_like(positions),
    ):
        monkeypatch.setattr(flash_attn_interface, "chunk_of", chunk_of)
        with pytest.raises(AssertionError):
            attest.check(function, **what)


def test_an_early_flash_attention_3_is_none_of_those_known(monkeypatch):
    pytest.importorskip("torch")
    import flash_attn_interface

    assert _known.known(flash_attn_interface.flash_attn_func).manifest["lse"]

    def early(q, k, v, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0):
        pass

    monkeypatch.setattr(flash_attn_interface, "flash_attn_func", early)
    assert _known.known(early) is None


def test_calls_with_chunks_are_judged(tmp_path):
    def mine(q, k, v, attention_chunk=0, alignment="top-left"):
        return chunked(q, k, v, attention_chunk, alignment)

    def from_the_top_left(q, k, v, attention_chunk=0, alignment="top-left"):
        return chunked(q, k, v, attention_chunk, "top-left")

    last = (problem(), {"attention_chunk": 3, "alignment": "bottom-right"})
    calls = captured(mine, (problem(), {"attention_chunk": 3}), (problem(), {}), last)
    assert calls.left_out == {} and [bool(call) for call in calls.judge()] == [True] * 3
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    assert sorted((case.attention_chunk, str(case.alignment)) for case in loaded) == [
        (0, "None"),
        (3, "bottom-right"),
        (3, "top-left"),
    ]
    assert [bool(call) for call in captured(from_the_top_left, last).judge()] == [False]


def test_the_chunks_of_a_model_may_be_what_its_function_has():
    def mine(q, k, v, attention_chunk=3):
        return chunked(q, k, v, attention_chunk)

    def without(q, k, v, attention_chunk=3):
        return chunked(q, k, v)

    assert [bool(call) for call in captured(mine, (problem(), {})).judge()] == [True]
    assert [bool(call) for call in captured(without, (problem(), {})).judge()] == [False]


def test_calls_of_flash_attention_3_with_chunks_are_judged(tmp_path):
    torch = pytest.importorskip("torch")
    import flash_attn_interface

    q, k, v = (torch.from_numpy(array).transpose(1, 2) for array in problem(3, 7))
    with attest.capture(functions=[(flash_attn_interface, "flash_attn_func")]) as calls:
        flash_attn_interface.flash_attn_func(q, k, v, attention_chunk=4)
        flash_attn_interface.flash_attn_func(q, k, v, causal=True, window_size=(1, -1), attention_chunk=2, num_splits=3)
        flash_attn_interface.flash_attn_func(q, k, v, attention_chunk=4, q_descale=torch.ones(1, 2))
    assert len(calls.judge()) == 2 and all(calls.judge()) and "q_descale" in next(iter(calls.left_out))
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    assert {(case.attention_chunk, case.window_left, case.causal, case.alignment) for case in loaded} == {
        (4, -1, "none", "bottom-right"),
        (2, 1, "bottom-right", "bottom-right"),
    }


def test_chunks_of_another_name_are_left_out():
    def mine(q, k, v, attention_chunk_size=0):
        return q

    calls = captured(mine, (problem(), {"attention_chunk_size": 4}), (problem(), {"attention_chunk_size": 0}))
    assert calls.calls == {"attention": 2} and list(calls.left_out.values()) == [1]
    assert "has attention_chunk_size, which is not known" in next(iter(calls.left_out))


def test_what_attest_knows_and_is_loaded_is_observed(monkeypatch):
    def early(q, k, v, softmax_scale=None):
        pass

    def now(q, k, v, attention_chunk=0, return_attn_probs=False):
        pass

    for function, count in ((early, 0), (now, 1)):
        module = types.SimpleNamespace(flash_attn_func=function)
        monkeypatch.setitem(sys.modules, "flash_attn_interface", module)
        assert sum(one is module for one, _ in _capture._places()) == count
