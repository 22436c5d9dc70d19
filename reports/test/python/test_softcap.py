"""Capped scores, c tanh(t/c) of the scaled products t: attest's functions, kernels under test, FlexAttention, calls."""

import sys

import numpy
import pytest
from test_frameworks import ADAPTERS, needs, verdicts
from test_windows import captured

import attest
from attest import _calls, _check

random = numpy.random.default_rng(9)
CAPS = [0.5, 5.0, 50.0]


def capped(t, cap):
    return cap * numpy.tanh(t / cap)


@numpy.errstate(all="ignore")
def attention(q, k, v, mask=None, scale=None, causal="none", softcap=0.0, sink=None, want_lse=False, curve=capped,
              after_the_mask=False):  # fmt: skip
    """In the format of q. `curve`: what becomes of a scaled product; `after_the_mask`: of a score."""
    of = q.dtype.type
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    k, v = (x.repeat(heads // x.shape[1], axis=1) for x in (k, v))
    scores = (q @ k.swapaxes(2, 3)).astype(q.dtype) * of(q.shape[3] ** -0.5 if scale is None else scale)
    row, key = numpy.arange(queries)[:, None], numpy.arange(keys)
    last = {"none": keys, "top-left": row, "bottom-right": row + keys - queries}[causal]
    added = numpy.where(key <= last, 0, -numpy.inf).astype(q.dtype)
    if mask is not None:
        added = added + (numpy.where(mask, 0, -numpy.inf) if mask.dtype == bool else mask).astype(q.dtype)
    if softcap:
        scores = curve(scores + added, of(softcap)) if after_the_mask else curve(scores, of(softcap)) + added
    else:
        scores = scores + added
    if sink is not None:  # a key whose value is 0
        of_heads = numpy.broadcast_to(numpy.asarray(sink, q.dtype)[None, :, None, None], (*scores.shape[:3], 1))
        scores = numpy.concatenate([scores, of_heads], axis=3)
        v = numpy.concatenate([v, numpy.zeros_like(v[:, :, :1])], axis=2)
    top = scores.max(axis=3, keepdims=True, initial=-numpy.inf)
    top = numpy.where(numpy.isneginf(top), 0, top)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True)
    out = numpy.where(total > 0, (weights @ v) / total, 0).astype(q.dtype)
    lse = (top + numpy.log(total)).astype("float64")[..., 0]
    return (out, lse) if want_lse else out


def problem(batch=2, queries=4, keys=7, heads=4, kv_heads=2, dk=8, size=3.0, dtype="float32"):
    """With scaled products of some 10 or 20, so that every one of CAPS matters."""
    q, k, v = (
        random.standard_normal((batch, of, length, dk)) for of, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    )
    return [(q * size).astype(dtype), (k * size).astype(dtype), v.astype(dtype)]


def bias(queries=4, keys=7, dtype="float32"):
    """Additive, and one key hidden."""
    mask = (3 * random.standard_normal((1, 1, queries, keys))).astype(dtype)
    mask[..., 2] = -numpy.inf
    return mask


def assert_exact(exact, out, lse):
    numpy.testing.assert_allclose(out, exact.value, rtol=1e-12, atol=1e-13)
    numpy.testing.assert_allclose(lse, exact.lse, rtol=1e-12)


@pytest.mark.parametrize("softcap", CAPS)
@pytest.mark.parametrize("causal", ["none", "top-left", "bottom-right"])
def test_the_exact_answer_is_that_of_capped_products(softcap, causal):
    q, k, v = (x.astype("float64") for x in problem())
    out, lse = attention(q, k, v, causal=causal, softcap=softcap, want_lse=True)
    assert_exact(attest.exact(q, k, v, causal=causal, softcap=softcap), out, lse)


def test_the_scale_comes_before_the_cap_and_the_mask_after_it():
    q, k, v = (x.astype("float64") for x in problem())
    sees = random.uniform(size=(2, 4, 4, 7)) < 0.6
    sees[..., 0] = True
    for mask in (bias().astype("float64"), sees):
        out, lse = attention(q, k, v, mask, 0.7, softcap=5.0, want_lse=True)
        assert_exact(attest.exact(q, k, v, mask=mask, scale=0.7, softcap=5.0), out, lse)


def test_a_sink_is_neither_scaled_nor_capped():
    q, k, v = (x.astype("float64") for x in problem())
    sink = numpy.array([4.0, -numpy.inf, 9, -1], "float32")
    out, lse = attention(q, k, v, softcap=2.0, sink=sink, want_lse=True)
    assert_exact(attest.exact(q, k, v, softcap=2.0, sink=sink), out, lse)


def test_no_cap_is_no_cap_and_a_number_of_any_kind_is_one():
    q, k, v = problem()
    plain, five = attest.exact(q, k, v), attest.exact(q, k, v, softcap=5.0)
    assert not numpy.array_equal(plain.lower, five.lower)
    for none in (None, 0, 0.0, -0.0, numpy.float32(0)):
        assert numpy.array_equal(attest.exact(q, k, v, softcap=none).lower, plain.lower)
    for number in (5, numpy.float32(5), numpy.int64(5), numpy.array(5.0)):
        assert numpy.array_equal(attest.exact(q, k, v, softcap=number).lower, five.lower)


WRONG = {
    "there were no softcap": {"softcap": 0.0},
    "t became tanh(t/c), and not c·tanh(t/c)": {"curve": lambda t, c: numpy.tanh(t / c)},
    "t became c·tanh(t), and not c·tanh(t/c)": {"curve": lambda t, c: c * numpy.tanh(t)},
    "t were cut off at -c and c, without a tanh": {"curve": lambda t, c: numpy.clip(t, -c, c)},
    "the cap were taken after the mask": {"after_the_mask": True},
}


def test_another_answer_is_violated_and_told_what_it_is():
    q, k, v = problem()
    mask = bias()
    mask[..., 2] = 1  # hides nothing
    given = {"mask": mask, "softcap": 5.0}
    assert attest.allclose(attention(q, k, v, **given), q, k, v, **given)
    for words, other in WRONG.items():
        wrong = attest.allclose(attention(q, k, v, **{**given, **other}), q, k, v, **given)
        assert not wrong and words in str(wrong), (words, wrong)
    with pytest.raises(AssertionError, match="there were no softcap"):
        attest.assert_close(attention(q, k, v, mask), q, k, v, **given)


@pytest.mark.parametrize("softcap", [-1, -1e-300, numpy.nan, numpy.inf, "50", True, 1j, numpy.ones((2, 2)), [5.0]])
@pytest.mark.parametrize("asked", [attest.exact, lambda *inputs, **given: attest.allclose(inputs[0], *inputs, **given)])
def test_what_is_no_cap_is_refused_in_one_line(asked, softcap):
    with pytest.raises(attest.AttestError) as raised:
        asked(*problem(), softcap=softcap)
    says = str(raised.value)
    assert says.startswith("softcap is ") and says.endswith("it must be a finite number greater than 0, or 0 for none")
    assert "\n" not in says


def test_a_mask_before_the_scale_is_refused_beside_a_cap():
    q, k, v = problem()
    with pytest.raises(attest.AttestError) as raised:
        attest.exact(q, k, v, mask=bias(), mask_convention="pre-scale", softcap=30.0)
    assert str(raised.value) == "softcap is 30 beside a pre-scale mask; a mask is added to a capped score, after the scale"
    # What is added nowhere has no convention.
    sees = numpy.isfinite(bias())
    for mask, cap in ((sees, 30.0), (None, 30.0), (bias(), 0.0)):
        attest.exact(q, k, v, mask=mask, mask_convention="pre-scale", softcap=cap)


def approximate(t, c):
    """As tanh.approx.f32 may err."""
    return c * (numpy.tanh(t / c) * t.dtype.type(1 + 0.9 * 2.0**-11))


def test_a_declared_error_of_tanh_is_allowed():
    q, k, v = problem()
    out = attention(q, k, v, softcap=50.0, curve=approximate)
    assert not attest.allclose(out, q, k, v, softcap=50.0)
    for said, holds in (({"relative": 2.0**-11}, True), ({"absolute": 2.0**-11}, True), ({"ulp": 2.5}, False)):
        manifest = {"arithmetic": {"f32": {"tanh": said}}, "variants": {"softcap": {}}}
        assert bool(attest.allclose(out, q, k, v, softcap=50.0, manifest=manifest)) == holds, said
        # It is of caps alone.
        assert numpy.array_equal(attest.exact(q, k, v, manifest=manifest).bound, attest.exact(q, k, v).bound)


def test_steps_of_the_cap_that_are_written_to_memory_are_allowed_where_that_is_declared():
    def stored(t, c):
        z = (t / c).astype("float16")
        y = numpy.tanh(z.astype("float32")).astype("float16")
        return (c * y.astype("float32")).astype("float16").astype("float32")

    q, k, v = problem()
    out = attention(q, k, v, softcap=50.0, curve=stored)
    assert not attest.allclose(out, q, k, v, softcap=50.0)
    manifest = {"arithmetic": {"f32": {"stored": {"capped": "f16"}}}, "variants": {"softcap": {}}}
    assert attest.allclose(out, q, k, v, softcap=50.0, manifest=manifest)


def test_cases_have_caps_where_a_manifest_lists_them(tmp_path):
    assert all(case.softcap == 0 and "softcap" not in case.arguments for case in attest.cases(count=40))
    with_caps = [case for case in attest.cases(count=80, manifest={"variants": {"softcap": {}}}) if case.softcap]
    assert with_caps and all(case.arguments["softcap"] == case.softcap > 0 for case in with_caps)
    assert all(case.mask_convention == "post-scale" for case in with_caps)
    case = max(with_caps, key=lambda case: case.q.size)
    assert "softcap" in repr(case) and "softcap" not in case.about
    case.save(tmp_path / "case.safetensors")
    again = attest.load(tmp_path / "case.safetensors")
    assert again.softcap == case.softcap and numpy.array_equal(again.exact().lower, case.exact().lower)


def test_a_function_with_the_parameter_is_asked_for_caps():
    complete = _check.adapter()._completed

    def mine(q, k, v, scale=1.0, softcap=0.0):
        pass

    assert complete({}, mine, None)["variants"] == {"softcap": {}}
    assert complete({"variants": {}}, mine, None)["variants"] == {}
    assert "variants" not in complete({}, lambda q, k, v, scale=1.0: None, None)
    # That of another's names and layout is, too.
    own = _calls.adapted(None, _calls.Call("numpy", "bshd", scale="softmax_scale", softcap="softcap"))
    assert complete({}, own, None)["variants"] == {"softcap": {}}


MANIFEST = {"dtypes": ["f32"], "lse": True, "grouped_query": True, "fully_masked_row": "zero"}
SAID = {"properties": ["softcap.*", "attention.oracle"], "cases": 40, "no_large": True}


def test_a_function_with_a_softcap_is_checked(tmp_path):
    def right(q, k, v, mask=None, scale=None, causal="none", softcap=0.0, want_lse=False):
        assert isinstance(softcap, float)
        return attention(q, k, v, mask, scale, causal, softcap, want_lse=want_lse)

    def or_none(q, k, v, mask=None, scale=None, causal="none", softcap=None, want_lse=False):
        assert softcap is None or softcap > 0
        return right(q, k, v, mask, scale, causal, 0.0 if softcap is None else softcap, want_lse)

    def of_products(q, k, v, mask=None, scale=None, causal="none", softcap=0.0, want_lse=False):
        return attention(q, k, v, mask, scale, causal, softcap * scale, want_lse=want_lse)

    for kernel in (right, or_none):
        held = attest.check(kernel, manifest=MANIFEST, out=str(tmp_path / kernel.__name__), **SAID)
        assert held.verdict == "held", held
    with pytest.raises(AssertionError) as raised:
        attest.check(of_products, manifest=MANIFEST, out=str(tmp_path / "wrong"), **SAID)
    assert "softcap" in str(raised.value)


def test_the_softcap_of_a_function_with_names_of_its_own_is_asked_for(tmp_path):
    asked = []

    def mine(q, k, v, softmax_scale=None, causal=False, softcap=0.0):
        asked.append(softcap)
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        out = attention(q, k, v, scale=softmax_scale, causal="bottom-right" if causal else "none", softcap=softcap)
        return out.swapaxes(1, 2)

    held = attest.check(mine, dtypes="f32", out=str(tmp_path / "mine"), manifest={"fully_masked_row": "zero"}, **SAID)
    assert held.verdict == "held" and any(asked), held


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"])
def test_the_softcap_of_flash_attention_is_known(name, monkeypatch):
    torch = pytest.importorskip("torch")
    import flash_attn

    function = getattr(flash_attn, name)
    what = {"dtypes": "bf16", "properties": "attention.oracle,softcap.*", "no_large": True, "cases": 60}
    assert attest.check(function, **what).verdict == "held"
    # tanh.approx.f32 holds, and a cap that is not there does not.
    real = torch.tanh
    monkeypatch.setattr(torch, "tanh", lambda x: real(x) * (1 + 0.9 * 2.0**-11))
    assert attest.check(function, **what).verdict == "held"
    monkeypatch.setattr(torch, "tanh", lambda x: x)
    with pytest.raises(AssertionError, match="there were no softcap"):
        attest.check(function, **what)
    # Where its caller wants no cap, there is none, and nothing to say of its tanh.
    uncapped = attest.check(function, manifest={"variants": {}}, **{**what, "properties": "attention.oracle"})
    assert uncapped.verdict == "held"


@pytest.mark.parametrize("softcap", CAPS)
def test_flex_attention_caps_before_what_masks(softcap):
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    import torch

    served = _calls.flexible(flex.flex_attention)
    q, k, v = (x.astype("float64") for x in problem())
    sees = random.uniform(size=(2, 1, 4, 7)) < 0.6
    sees[..., 0] = True
    for given in (
        {},
        {"causal": "top-left"},
        {"mask": bias(dtype="float64")},
        {"mask": sees, "causal": "top-left"},
        {"sink": numpy.array([4.0, -numpy.inf, 9, -1])},
    ):
        tensors = {name: torch.from_numpy(of) if hasattr(of, "shape") else of for name, of in given.items()}
        out = served(*map(torch.from_numpy, (q, k, v)), scale=0.7, softcap=softcap, **tensors)
        expected = attention(q, k, v, scale=0.7, softcap=softcap, **given)
        numpy.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)
    # Beside a window, which is a mask of its own.
    window = {"window_left": 2, "window_right": 1, "alignment": "top-left"}
    out = served(*map(torch.from_numpy, (q, k, v)), scale=0.7, softcap=softcap, **window)
    ahead = numpy.arange(7) - numpy.arange(4)[:, None]
    expected = attention(q, k, v, ((ahead >= -2) & (ahead <= 1))[None, None], scale=0.7, softcap=softcap)
    numpy.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)


def test_flex_attention_with_a_softcap_is_checked(tmp_path):
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    laws = ["attention.oracle", "softcap.equals-mask", "softcap.masks-after", "softcap.bias-after", "softcap.off"]
    said = {**SAID, "cases": 12, "properties": laws}
    held = attest.check(flex.flex_attention, dtypes=["f32", "bf16"], out=str(tmp_path / "flex"), **said)
    assert held.verdict == "held", held


def test_calls_with_a_softcap_are_judged(tmp_path):
    def mine(q, k, v, scale=None, softcap=0.0):
        return attention(q, k, v, scale=scale, softcap=softcap)

    def of_a_model(q, k, v, softcap=5.0):
        return attention(q, k, v, softcap=softcap)

    def without(q, k, v, softcap=5.0):
        return attention(q, k, v)

    calls = captured(mine, (problem(), {"softcap": 5.0}), (problem(), {"softcap": None}), (problem(), {}))
    assert calls.left_out == {} and [bool(call) for call in calls.judge()] == [True, True, True]
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    assert sorted(case.softcap for case in loaded) == [0, 0, 5]
    # What a function has where nothing is said, and what is said to be as it is.
    calls = captured(of_a_model, (problem(), {}), (problem(), {"softcap": 5.0}), (problem(), {"softcap": 0}))
    assert calls.left_out == {} and [bool(call) for call in calls.judge()] == [True, True, True]
    wrong = captured(without, (problem(), {})).judge()
    assert [bool(call) for call in wrong] == [False] and "there were no softcap" in repr(wrong[0])


def test_calls_with_what_is_no_cap_are_left_out():
    def mine(q, k, v, softcap=0.0, soft_cap=0.0):
        return q

    calls = captured(mine, *((problem(), given) for given in ({"softcap": -1.0}, {"softcap": numpy.ones(4)}, {"soft_cap": 5.0})))
    assert calls.judge() == [] and sum(calls.left_out.values()) == 3
    assert sum("must be a finite number" in why for why in calls.left_out) == 2
    assert sum("has soft_cap, which is not known" in why for why in calls.left_out) == 1


def test_calls_of_flash_attention_with_a_softcap_are_judged(tmp_path):
    torch = pytest.importorskip("torch")
    import flash_attn

    q, k, v = (torch.from_numpy(x).transpose(1, 2) for x in problem(queries=3))
    with attest.capture(functions=[(flash_attn, "flash_attn_func")]) as calls:
        flash_attn.flash_attn_func(q, k, v, softcap=5.0)
        flash_attn.flash_attn_func(q, k, v, causal=True, window_size=(1, -1), softcap=30.0)
    assert calls.left_out == {} and len(calls.judge()) == 2 and all(calls.judge())
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    assert {(case.softcap, case.window_left) for case in loaded} == {(5.0, -1), (30.0, 1)}


# GroupQueryAttention and causal forms of opset 24 refuse much of what is drawn, so that few cases may be too few.
CAPPED = [
    ("attention-23", {"held"}),
    ("attention-25", {"held"}),
    ("attention", {"held", "inconclusive"}),
    ("group-query", {"held", "inconclusive"}),
    ("group-query-f16", {"held", "inconclusive"}),
]


@pytest.mark.parametrize(("name", "expected"), CAPPED, ids=[name for name, _ in CAPPED])
def test_the_operators_of_onnx_cap_before_the_mask(tmp_path, name, expected):
    needs("onnxruntime", "onnx")
    kernel = f"exec:{sys.executable} {ADAPTERS / 'onnxruntime/ort_python.py'} {name}"
    found = verdicts(tmp_path, kernel, "--property", "softcap.*", cases=20)
    assert found and set(found.values()) <= expected, found
