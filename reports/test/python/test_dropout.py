"""Dropout by a given mask: attest's functions, kernels under test, PyTorch's math path, calls."""

import sys

import numpy
import pytest
from test_frameworks import ADAPTERS, needs, verdicts
from test_windows import captured

import attest
from attest import _calls, _check

random = numpy.random.default_rng(10)
RATES = [0.0, 0.1, 0.75]


@numpy.errstate(all="ignore")
def attention(q, k, v, mask=None, scale=None, causal="none", keep=None, dropout_p=0.0, sink=None, softcap=0.0,
              want_lse=False, renormalises=False, divides=True):  # fmt: skip
    """In the format of q. `renormalises`: what is kept sums to one again; `divides`: by 1 - p."""
    of = q.dtype.type
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    k, v = (x.repeat(heads // x.shape[1], axis=1) for x in (k, v))
    scores = (q @ k.swapaxes(2, 3)).astype(q.dtype) * of(q.shape[3] ** -0.5 if scale is None else scale)
    if softcap:
        scores = of(softcap) * numpy.tanh(scores / of(softcap))
    row, key = numpy.arange(queries)[:, None], numpy.arange(keys)
    last = {"none": keys, "top-left": row, "bottom-right": row + keys - queries}[causal]
    scores = scores + numpy.where(key <= last, 0, -numpy.inf).astype(q.dtype)
    if mask is not None:
        scores = scores + (numpy.where(mask, 0, -numpy.inf) if mask.dtype == bool else mask).astype(q.dtype)
    of_heads = numpy.full(heads, -numpy.inf, q.dtype) if sink is None else numpy.asarray(sink, q.dtype)
    of_heads = numpy.broadcast_to(of_heads[None, :, None, None], (*scores.shape[:3], 1))
    top = numpy.maximum(scores.max(axis=3, keepdims=True, initial=-numpy.inf), of_heads)
    top = numpy.where(numpy.isneginf(top), 0, top)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True) + numpy.exp(of_heads - top)
    lse = (top + numpy.log(total)).astype("float64")[..., 0]
    if keep is not None:
        weights = weights * keep
        total = weights.sum(axis=3, keepdims=True) if renormalises else total
    out = numpy.where(total > 0, (weights @ v) / total, 0)
    if dropout_p and divides:
        out = out / of(1 - dropout_p)
    return (out.astype(q.dtype), lse) if want_lse else out.astype(q.dtype)


def problem(batch=2, queries=4, keys=7, heads=4, kv_heads=2, dk=8, dtype="float32"):
    return [
        random.standard_normal((batch, of, length, dk)).astype(dtype)
        for of, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    ]


def kept(*axes, share=0.6):
    """Which weights are kept; of no two rows the same, but for one that keeps all and one that keeps nothing."""
    keep = random.uniform(size=(*axes, 4, 7)) < share
    keep[..., 1, :], keep[..., 2, :] = True, False
    return keep


def assert_exact(exact, out, lse):
    numpy.testing.assert_allclose(out, exact.value, rtol=1e-12, atol=1e-13)
    numpy.testing.assert_allclose(lse, exact.lse, rtol=1e-12)


def assert_same(one, other):
    """Of f32 and wider; enclosures may be of other widths."""
    numpy.testing.assert_allclose(one.value, other.value, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("causal", ["none", "top-left", "bottom-right"])
def test_the_exact_answer_is_that_of_the_weights_that_are_kept(rate, causal):
    q, k, v = (x.astype("float64") for x in problem())
    for axes in ((2, 4), (1, 4), (2, 1), (1, 1)):
        given = {"causal": causal, "keep": kept(*axes), "dropout_p": rate}
        out, lse = attention(q, k, v, **given, want_lse=True)
        exact = attest.exact(q, k, v, **given)
        assert_exact(exact, out, lse)
        # The row that keeps nothing is 0, and lse that of all weights.
        assert not exact.lower[:, :, 2].any() and not exact.upper[:, :, 2].any()
        numpy.testing.assert_allclose(exact.lse, attest.exact(q, k, v, causal=causal).lse, rtol=1e-14)


def test_a_mask_of_fewer_axes_is_that_of_all_heads():
    q, k, v = problem()
    whole = attest.exact(q, k, v, keep=(keep := kept(1, 1)), dropout_p=0.1)
    for fewer in (keep[0], keep[0, 0], numpy.broadcast_to(keep, (2, 4, 4, 7))):
        assert_same(attest.exact(q, k, v, keep=fewer, dropout_p=0.1), whole)
    one = attest.exact(q[0, 0], k[0, 0], v[0, 0], keep=keep[0, 0], dropout_p=0.1)
    numpy.testing.assert_allclose(one.value, whole.value[0, 0], rtol=1e-11, atol=1e-12)
    tokens_first = attest.exact(*(x.swapaxes(1, 2) for x in (q, k, v)), keep=keep, dropout_p=0.1, layout="bshd")
    numpy.testing.assert_allclose(tokens_first.value.swapaxes(1, 2), whole.value, rtol=1e-11, atol=1e-12)


def test_hidden_keys_stay_hidden_and_a_row_without_keys_has_no_answer():
    q, k, v = (x.astype("float64") for x in problem())
    sees = random.uniform(size=(1, 1, 4, 7)) < 0.6
    sees[..., 0], sees[..., 3, :] = True, False
    keep = numpy.ones((1, 1, 4, 7), bool)
    for mask in (sees, numpy.where(sees, random.standard_normal(sees.shape), -numpy.inf)):
        exact = attest.exact(q, k, v, mask=mask, keep=keep)
        assert_same(exact, attest.exact(q, k, v, mask=mask))
        assert numpy.isnan(exact.lower[:, :, 3]).all()
    # Of values that nobody keeps nothing is asked.
    keep[..., 5] = False
    plain = attest.exact(q, k, v, keep=keep, dropout_p=0.5)
    v[:, :, 5] = 1e30
    assert_same(attest.exact(q, k, v, keep=keep, dropout_p=0.5), plain)


def test_sinks_caps_windows_and_lengths_are_as_they_are_without():
    q, k, v = (x.astype("float64") for x in problem())
    given = {"keep": kept(2, 4), "dropout_p": 0.25}
    sink = numpy.array([4.0, -numpy.inf, 1, -1], "float32")
    out, lse = attention(q, k, v, softcap=2.0, sink=sink, **given, want_lse=True)
    assert_exact(attest.exact(q, k, v, softcap=2.0, sink=sink, **given), out, lse)
    ahead = numpy.arange(7) - numpy.arange(4)[:, None]
    out, lse = attention(q, k, v, ((ahead >= -1) & (ahead <= 2))[None, None], **given, want_lse=True)
    assert_exact(attest.exact(q, k, v, window_left=1, window_right=2, **given), out, lse)
    lengths = numpy.array([5, 7])
    out, lse = attention(q, k, v, (numpy.arange(7) < lengths[:, None])[:, None, None], **given, want_lse=True)
    assert_exact(attest.exact(q, k, v, kv_lengths=lengths, **given), out, lse)


def test_no_mask_drops_nothing_and_a_rate_is_a_number_of_any_kind():
    q, k, v = problem()
    plain, keep = attest.exact(q, k, v), kept(1, 1)
    for none in (None, 0, 0.0, -0.0, numpy.float32(0)):
        assert numpy.array_equal(attest.exact(q, k, v, dropout_p=none).lower, plain.lower)
    assert_same(attest.exact(q, k, v, keep=numpy.ones_like(keep)), plain)
    half = attest.exact(q, k, v, keep=keep, dropout_p=0.5)
    for number in (numpy.float32(0.5), numpy.array(0.5)):
        assert numpy.array_equal(attest.exact(q, k, v, keep=keep, dropout_p=number).lower, half.lower)
    assert not numpy.array_equal(attest.exact(q, k, v, keep=keep).lower, half.lower)


ASKED = [attest.exact, lambda *inputs, **given: attest.allclose(inputs[0], *inputs, **given)]


@pytest.mark.parametrize("rate", [-0.1, 1, 1.0, 2, numpy.nan, numpy.inf, "0.1", True, 1j, numpy.ones((2, 2))])
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_no_rate_is_refused_in_one_line(asked, rate):
    with pytest.raises(attest.AttestError) as raised:
        asked(*problem(), keep=kept(1, 1), dropout_p=rate)
    says = str(raised.value)
    assert says.startswith("dropout_p is ") and says.endswith("it must be a number from 0 to less than 1")
    assert "\n" not in says


@pytest.mark.parametrize("asked", ASKED)
def test_a_rate_without_a_mask_is_refused(asked):
    with pytest.raises(attest.AttestError) as raised:
        asked(*problem(), dropout_p=0.1)
    assert str(raised.value) == "dropout_p is 0.1 and there is no keep; what a kernel drops by itself nobody else knows"


REFUSED = [
    ({"keep": numpy.ones((1, 1, 4, 7), "float32")}, "keep is of f32; it must be of bool"),
    ({"keep": numpy.ones((1, 1, 4, 7), "int64")}, "keep is of int64"),
    ({"keep": numpy.ones((1, 1, 4, 6), bool)}, "keep has shape [1, 1, 4, 6]"),
    ({"keep": numpy.ones((1, 2, 4, 7), bool)}, "keep has shape [1, 2, 4, 7]"),
    ({"keep": numpy.ones((1, 1, 4, 7), bool), "cache_index": [1, 0]}, "there is dropout in a problem whose keys lie in a cache"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_masks_that_are_none_are_refused_in_one_line(given, words):
    with pytest.raises(attest.AttestError) as raised:
        attest.exact(*problem(), **given)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_another_answer_is_violated():
    q, k, v = problem()
    keep = kept(2, 4)
    given = {"keep": keep, "dropout_p": 0.25}
    assert attest.allclose(attention(q, k, v, **given), q, k, v, **given)
    for other in (
        {"keep": None, "dropout_p": 0.0},
        {"keep": ~keep},
        {"keep": keep[:1, :1]},
        {"dropout_p": 0.75},
        {"divides": False},
        {"renormalises": True},
    ):
        assert not attest.allclose(attention(q, k, v, **{**given, **other}), q, k, v, **given), other
    with pytest.raises(AssertionError):
        attest.assert_close(attention(q, k, v), q, k, v, **given)
    # A row that keeps nothing is 0 and no other number.
    out = attention(q, k, v, **given)
    out[0, 0, 2, 0] = 1e-20
    assert attest.allclose(out, q, k, v, **given).index == (0, 0, 2, 0)


def test_values_that_are_divided_in_their_own_format_are_allowed_where_that_is_declared():
    q, k, v = problem(keys=40, dtype="float16")
    keep = random.uniform(size=(2, 4, 4, 40)) < 0.9
    in_f16 = (v.astype("float32") / numpy.float32(1 - 0.1)).astype("float16")
    wide = [x.astype("float32") for x in (q, k, in_f16)]
    out = attention(*wide, keep=keep).astype("float16")
    given = {"keep": keep, "dropout_p": 0.1}
    for applied, holds in (("values", True), ("output", False), ("weights", False), (None, False)):
        said = {"applied": applied} if applied else {}
        manifest = {"arithmetic": {"f16": {"weights": "f32"}}, "variants": {"dropout": said}}
        assert bool(attest.allclose(out, q, k, v, **given, manifest=manifest)) == holds, applied
        # It is of dropout alone.
        plain = {"arithmetic": {"f16": {"weights": "f32"}}}
        assert numpy.array_equal(attest.exact(q, k, v, manifest=manifest).bound, attest.exact(q, k, v, manifest=plain).bound)


def test_cases_have_dropout_where_a_manifest_lists_it(tmp_path):
    assert all(case.dropout_p == 0 and "keep" not in case.arguments for case in attest.cases(count=40))
    dropping = [case for case in attest.cases(count=80, manifest={"variants": {"dropout": {}}}) if "keep" in case.tensors]
    assert dropping and any(case.dropout_p for case in dropping)
    for case in dropping:
        assert case.arguments.get("dropout_p", 0) == case.dropout_p < 1 and case.arguments["keep"].dtype == bool
    case = max((case for case in dropping if case.dropout_p), key=lambda case: case.q.size)
    assert "keep" in repr(case) and "dropout_p" not in case.about
    case.save(tmp_path / "case.safetensors")
    again = attest.load(tmp_path / "case.safetensors")
    assert again.dropout_p == case.dropout_p and numpy.array_equal(again.tensors["keep"], case.tensors["keep"])
    assert numpy.array_equal(again.exact().lower, case.exact().lower, equal_nan=True)


def test_a_function_with_both_parameters_is_asked_for_dropout():
    complete = _check.adapter()._completed

    def mine(q, k, v, scale=1.0, keep=None, dropout_p=0.0):
        pass

    assert complete({}, mine, None)["variants"] == {"dropout": {}}
    assert complete({"variants": {}}, mine, None)["variants"] == {}
    # One with a rate alone draws what it drops, and what keep is without one nobody knows.
    for other in (lambda q, k, v, scale=1.0, dropout_p=0.0: None, lambda q, k, v, scale=1.0, keep=None: None):
        assert "variants" not in complete({}, other, None)
        assert _calls.names_in(_calls.parameters_of(other), {})["keep"] is None
    # That of another's names and layout is, too.
    own = _calls.adapted(None, _calls.Call("numpy", "bshd", scale="softmax_scale", keep="keep"))
    assert complete({}, own, None)["variants"] == {"dropout": {}}


MANIFEST = {"dtypes": ["f32"], "lse": True, "grouped_query": True, "fully_masked_row": "zero"}
SAID = {"properties": ["dropout.*", "attention.oracle"], "cases": 40, "no_large": True}


def test_a_function_that_takes_the_mask_is_checked(tmp_path):
    def right(q, k, v, mask=None, scale=None, causal="none", keep=None, dropout_p=0.0, want_lse=False):
        assert isinstance(dropout_p, float) and (keep is not None or dropout_p == 0)
        return attention(q, k, v, mask, scale, causal, keep, dropout_p, want_lse=want_lse)

    def renormalises(q, k, v, mask=None, scale=None, causal="none", keep=None, dropout_p=0.0, want_lse=False):
        return attention(q, k, v, mask, scale, causal, keep, dropout_p, want_lse=want_lse, renormalises=True)

    def by_rate_alone(q, k, v, mask=None, scale=None, causal="none", keep=None, dropout_p=0.0, want_lse=False):
        return attention(q, k, v, mask, scale, causal, keep if dropout_p else None, dropout_p, want_lse=want_lse)

    held = attest.check(right, manifest=MANIFEST, out=str(tmp_path / "right"), **SAID)
    assert held.verdict == "held", held
    for kernel in (renormalises, by_rate_alone):
        with pytest.raises(AssertionError):
            attest.check(kernel, manifest=MANIFEST, out=str(tmp_path / kernel.__name__), **SAID)


def test_the_mask_of_a_function_with_names_of_its_own_is_asked_for(tmp_path):
    asked = []

    def mine(q, k, v, softmax_scale=None, causal=False, keep=None, dropout_p=0.0):
        asked.append(keep is not None)
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        placing = "bottom-right" if causal else "none"
        return attention(q, k, v, None, softmax_scale, placing, keep, dropout_p).swapaxes(1, 2)

    held = attest.check(mine, dtypes="f32", out=str(tmp_path / "mine"), manifest={"fully_masked_row": "zero"}, **SAID)
    assert held.verdict == "held" and any(asked), held


def test_the_math_path_of_pytorch_is_known_where_it_takes_the_mask(tmp_path):
    torch = pytest.importorskip("torch")
    from attest._known import known

    function = torch._scaled_dot_product_attention_math
    if known(function) is None:  # 1.13's, and every other that has no mask to give
        assert "dropout_mask" not in str(torch.ops.aten._scaled_dot_product_attention_math.default._schema)
        return
    held = attest.check(function, dtypes=["f32", "bf16"], out=str(tmp_path / "math"), **SAID)
    assert held.verdict == "held", held
    q, k, v = problem(kv_heads=4)
    keep = kept(1, 1)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    found = function(*tensors, None, 0.25, False, torch.from_numpy(keep))[0]
    assert attest.allclose(found, *tensors, keep=torch.from_numpy(keep), dropout_p=0.25)


# Of 16 bits some laws leave no useful bound, so that few cases may be too few.
OF_MATH = {"f64": {"held"}, "f32": {"held"}, "f16": {"held", "inconclusive"}, "bf16": {"held", "inconclusive"}}


@pytest.mark.parametrize(("dtype", "expected"), OF_MATH.items(), ids=OF_MATH.keys())
def test_the_back_end_math_holds(tmp_path, dtype, expected):
    needs("torch")
    kernel = f"exec:{sys.executable} {ADAPTERS / 'pytorch/sdpa_backends.py'} math"
    found = verdicts(tmp_path, kernel, "--property", "dropout.*", "--dtype", dtype)
    assert found.keys() == {dtype} and found[dtype] in expected, found


def test_calls_with_a_mask_are_judged(tmp_path):
    def mine(q, k, v, scale=None, keep=None, dropout_p=0.0):
        return attention(q, k, v, scale=scale, keep=keep, dropout_p=dropout_p)

    def of_a_model(q, k, v, keep=None, dropout_p=0.5):
        return attention(q, k, v, keep=keep, dropout_p=dropout_p if keep is not None else 0.0)

    def without(q, k, v, keep=None, dropout_p=0.0):
        return attention(q, k, v)

    keep = kept(2, 4)
    rates = captured(mine, *((problem(), {"keep": keep, "dropout_p": rate}) for rate in RATES), (problem(), {}))
    assert rates.left_out == {} and [bool(call) for call in rates.judge()] == [True] * 4
    loaded = [attest.load(path) for path in rates.save(tmp_path / "calls")]
    assert sorted(case.dropout_p for case in loaded) == [0, *RATES] and sum("keep" in case.tensors for case in loaded) == 3
    # What a function has where nothing is said.
    calls = captured(of_a_model, (problem(), {"keep": keep}), (problem(), {}))
    assert calls.left_out == {} and [bool(call) for call in calls.judge()] == [True, True]
    assert [bool(call) for call in captured(without, (problem(), {"keep": keep, "dropout_p": 0.5})).judge()] == [False]


def test_calls_that_draw_what_they_drop_are_left_out():
    def mine(q, k, v, keep=None, dropout_p=0.0):
        return q

    def of_another_meaning(q, k, v, keep=0):
        return q

    calls = captured(mine, (problem(), {"dropout_p": 0.1}), (problem(), {"keep": numpy.ones((4, 7)), "dropout_p": 0.1}))
    assert calls.judge() == [] and sum(calls.left_out.values()) == 2
    assert sum("has dropout_p, which is not known" in why for why in calls.left_out) == 1
    assert sum("has a keep that is no array of truth values" in why for why in calls.left_out) == 1
    calls = captured(of_another_meaning, (problem(), {"keep": 3}))
    assert calls.judge() == [] and sum("has keep, which is not known" in why for why in calls.left_out) == 1
