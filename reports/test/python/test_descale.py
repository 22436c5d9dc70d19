"""Factors of q, k and v, and caches of 8 bits: attest's functions, kernels under test, FlashAttention 3, FlexAttention,
calls."""

import inspect

import numpy
import pytest
from test_frameworks import needs
from test_windows import captured

import attest
from attest import _calls, _check, _kernels, _known, _problem

random = numpy.random.default_rng(13)


def times(x, factors, block):
    """x [batch, heads, rows, width] times factors [batch or 1, heads or 1, blocks or 1], in f64."""
    x = x.astype("float64")
    if factors is None:
        return x
    row = numpy.arange(x.shape[2]) // (block or x.shape[2])
    return x * numpy.asarray(factors, "float64")[:, :, row if factors.shape[2] > 1 else row * 0, None]


@numpy.errstate(all="ignore")
def attention(q, k, v, mask=None, scale=None, causal="none", q_descale=None, k_descale=None, v_descale=None,
              q_descale_block=0, kv_descale_block=0, want_lse=False):  # fmt: skip
    """In f64; the output in the format of q."""
    dtype, heads = q.dtype, q.shape[1]
    q = times(q, q_descale, q_descale_block)
    k, v = times(k, k_descale, kv_descale_block), times(v, v_descale, kv_descale_block)
    k, v = (x.repeat(heads // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + (numpy.where(mask, 0, -numpy.inf) if mask.dtype == bool else mask)
    if causal != "none":
        corner = k.shape[2] - q.shape[2] if causal == "bottom-right" else 0
        scores = numpy.where(numpy.tri(*scores.shape[2:], corner, dtype=bool), scores, -numpy.inf)
    top = scores.max(axis=3, keepdims=True, initial=-numpy.inf)
    weights = numpy.exp(scores - numpy.where(numpy.isneginf(top), 0, top))
    total = weights.sum(axis=3, keepdims=True)
    out = numpy.where(total > 0, (weights @ v) / total, 0).astype(dtype)
    lse = (top + numpy.log(total))[..., 0]
    return (out, lse) if want_lse else out


def problem(batch=2, queries=5, keys=7, heads=4, kv_heads=2, dk=8, dtype="float32"):
    return [
        random.standard_normal((batch, of, length, dk)).astype(dtype)
        for of, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    ]


def in_8_bits(**given):
    """q in f32, k and v in int8."""
    q, k, v = problem(**given)
    return [q, *(random.integers(-128, 128, x.shape).astype("int8") for x in (k, v))]


def factors(*shape):
    return random.uniform(0.004, 0.02, shape).astype("float32")


GIVEN = {
    "one": {"q_descale": factors(1, 1, 1), "k_descale": factors(1, 1, 1), "v_descale": factors(1, 1, 1)},
    "a head": {"k_descale": factors(1, 2, 1), "v_descale": factors(1, 2, 1)},
    "an entry": {"q_descale": factors(2, 4, 1) * 100, "k_descale": factors(2, 2, 1), "v_descale": factors(2, 1, 1)},
    "blocks": {"k_descale": factors(2, 2, 3), "v_descale": factors(1, 2, 3), "kv_descale_block": 3},
    "rows": {"q_descale": factors(1, 1, 3) * 100, "k_descale": factors(1, 1, 1), "q_descale_block": 2},
    "each key": {"v_descale": factors(1, 2, 7), "kv_descale_block": 1},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("causal", ["none", "bottom-right"])
def test_the_exact_answer_is_that_of_the_products(given, causal):
    q, k, v = in_8_bits()
    out, lse = attention(q.astype("float64"), k, v, causal=causal, **given, want_lse=True)
    exact = attest.exact(q, k, v, causal=causal, **given)
    numpy.testing.assert_allclose(out, exact.value, rtol=1e-7, atol=1e-9)
    numpy.testing.assert_allclose(lse, exact.lse, rtol=1e-7, atol=1e-9)
    assert attest.allclose(out.astype("float32"), q, k, v, causal=causal, **given)


def test_factors_of_fewer_axes_are_those_of_all():
    given = {"k_descale": factors(1, 2, 1), "v_descale": factors(2, 2, 1)}

    def of(**other):
        return _problem.Problem(*in_8_bits(), **other).tensors

    def same(one, other):
        assert one[0] == other[0] == "F32" and numpy.array_equal(one[1], other[1])

    same(of(k_descale=given["k_descale"][0, :, 0])["k_descale"], of(**given)["k_descale"])
    same(of(v_descale=given["v_descale"][:, :, 0])["v_descale"], of(**given)["v_descale"])
    for one in (0.5, numpy.float32(0.5), numpy.array(0.5, "float32"), numpy.array([0.5], "float32")):
        same(of(k_descale=one)["k_descale"], ("F32", numpy.full((1, 1, 1), 0.5, "float32")))
    # Of q, one of each group of heads.
    groups = factors(2, 2)
    same(of(q_descale=groups)["q_descale"], ("F32", groups.repeat(2, axis=1)[:, :, None]))
    tokens_first = [x.swapaxes(1, 2) for x in in_8_bits()]
    behind = _problem.Problem(*tokens_first, layout="bshd", q_descale=groups)
    same(behind.tensors["q_descale"], of(q_descale=groups)["q_descale"])
    alone = _problem.Problem(*(x[0, 0] for x in in_8_bits()), k_descale=0.5)
    assert alone.tensors["k_descale"][1].shape == (1, 1, 1)
    assert alone.in_four_axes(alone.tensors)["k_descale"][1].shape == (1, 1, 1)


def test_a_case_file_says_what_is_in_blocks():
    q, k, v = in_8_bits()
    given = {"k_descale": factors(1, 1, 4), "kv_descale_block": 2, "softcap": 3, "kv_lengths": [3, 7]}
    said = _problem.Problem(q, k, v, **given).metadata
    assert said["kv_descale_block"] == "2" and "q_descale_block" not in said
    assert said["attest"] == "2" and said["variants"] == "softcap descale lengths"
    assert _problem.Problem(q, k, v).metadata["attest"] == "1"


REFUSED_HERE = [
    ({"k_descale": numpy.ones((1, 1, 1, 1), "float32")}, "k_descale has the shape [1, 1, 1, 1]; it must be one factor"),
    ({"q_descale_block": 2}, "q_descale_block is 2 and there is no q_descale"),
    ({"q_descale": 1.0, "kv_descale_block": 2}, "kv_descale_block is 2 and there is no k_descale or v_descale"),
    ({"k_descale": 1.0, "kv_descale_block": -1}, "kv_descale_block is -1; it must be a whole number"),
    ({"k_descale": 1.0, "kv_descale_block": 1.5}, "kv_descale_block is 1.5; it must be a whole number"),
]
REFUSED_BY_THE_PROGRAM = [
    ({"k_descale": numpy.ones(3, "float32")}, "k_descale has shape [1, 3, 1]"),
    ({"q_descale": numpy.ones((2, 3), "float32")}, "q_descale has shape [2, 3, 1]"),
    ({"k_descale": numpy.ones((1, 1, 3), "float32"), "kv_descale_block": 2}, "k_descale has shape [1, 1, 3]"),
    ({"k_descale": numpy.ones(2)}, "k_descale is f64; it must be f32"),
    ({"k_descale": numpy.array([1, 0], "float32")}, "k_descale holds 0 at [0, 1, 0]; a factor is finite and"),
    ({"v_descale": numpy.array([numpy.inf, 1], "float32")}, "v_descale holds inf at [0, 0, 0]"),
    ({"v_descale": numpy.array([1, numpy.nan], "float32")}, "v_descale holds nan at [0, 1, 0]"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED_HERE, ids=[words for _, words in REFUSED_HERE])
def test_what_is_no_factor_is_refused_in_one_line(given, words):
    with pytest.raises(attest.AttestError) as raised:
        _problem.Problem(*problem(), **given)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("given", "words"), REFUSED_BY_THE_PROGRAM, ids=[words for _, words in REFUSED_BY_THE_PROGRAM])
def test_what_is_no_factor_of_these_tensors_is_refused_in_one_line(given, words):
    with pytest.raises(attest.AttestError) as raised:
        attest.exact(*problem(), **given)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_beside_f64_factors_are_powers_of_two():
    q, k, v = problem(dtype="float64")
    assert attest.exact(q, k, v, k_descale=0.25).judged.all()
    with pytest.raises(attest.AttestError) as raised:
        attest.exact(q, k, v, k_descale=0.75)
    assert "beside which a factor is a power of two" in str(raised.value)


def test_whole_numbers_are_those_of_keys_and_values_alone():
    q, k, v = in_8_bits()
    whole = numpy.ones(q.shape, "int8")
    with pytest.raises(attest.AttestError, match="q is of i8; it must be of a floating-point format"):
        _problem.Problem(whole, k, v)
    with pytest.raises(attest.AttestError, match="out is of i8"):
        _problem.Problem(q, k, v).with_answer(whole)
    with pytest.raises(attest.AttestError, match="mask is i8"):
        attest.exact(q, k, v, mask=numpy.ones((5, 7), "int8"))


def test_another_answer_is_violated():
    q, k, v = in_8_bits()
    given = GIVEN["blocks"] | {"q_descale": factors(2, 4, 1) * 100}
    assert attest.allclose(attention(q, k, v, **given), q, k, v, **given)
    for other in (
        {"q_descale": None},
        {"v_descale": None},
        {"q_descale": given["q_descale"][:, ::-1]},
        {"k_descale": given["k_descale"][::-1]},
        {"k_descale": given["k_descale"][:, :, ::-1]},
        {"k_descale": given["v_descale"], "v_descale": given["k_descale"][:1]},
        {"kv_descale_block": 4},
    ):
        assert not attest.allclose(attention(q, k, v, **{**given, **other}), q, k, v, **given), other


def test_cases_have_factors_where_a_manifest_lists_them(tmp_path):
    assert all("k_descale" not in case.arguments for case in attest.cases(count=40))
    manifest = {"kv_dtypes": ["i8"], "variants": {"descale": {"tensors": ["k", "v"], "kv_blocks": [4, 16]}}}
    cases = attest.cases(count=600, manifest=manifest)
    drawn = [case for case in cases if case.tensors.keys() & {"k_descale", "v_descale"}]
    assert drawn and all("q_descale" not in case.tensors for case in drawn)
    assert {case.k.dtype.name for case in drawn} == {"int8"} and {case.q.dtype.name for case in drawn} == {"float32"}
    assert {case.kv_descale_block for case in drawn} <= {0, 4, 16} and any(case.kv_descale_block for case in drawn)
    case = max(drawn, key=lambda case: (case.kv_descale_block > 0, case.q.size))
    assert case.arguments["kv_descale_block"] == case.kv_descale_block and "kv_descale_block" not in case.about
    case.save(tmp_path / "case.safetensors")
    again = attest.load(tmp_path / "case.safetensors")
    assert again.kv_descale_block == case.kv_descale_block and numpy.array_equal(again.k, case.k)
    assert numpy.array_equal(again.exact().lower, case.exact().lower, equal_nan=True)


def test_a_function_with_factors_is_asked_for_them():
    complete = _check.adapter()._completed

    def of_a_cache(q, k, v, scale=1.0, k_descale=None, v_descale=None):
        pass

    def of_blocks(q, k, v, scale=1.0, q_descale=None, k_descale=None, q_descale_block=0, kv_descale_block=0):
        pass

    def of_half_the_blocks(q, k, v, scale=1.0, q_descale=None, k_descale=None, q_descale_block=0):
        pass

    assert complete({}, of_a_cache, None)["variants"] == {"descale": {"tensors": ["k", "v"], "per_batch": True}}
    assert complete({"variants": {}}, of_a_cache, None)["variants"] == {}
    blocked = {"tensors": ["q", "k"], "per_batch": True, "blocks": "any"}
    assert complete({}, of_blocks, None)["variants"] == {"descale": blocked}
    assert "blocks" not in complete({}, of_half_the_blocks, None)["variants"]["descale"]


MANIFEST = {"dtypes": ["f32"], "lse": True, "grouped_query": True, "fully_masked_row": "zero"}
CACHE = {**MANIFEST, "kv_dtypes": ["i8"], "variants": {"descale": {"tensors": ["k", "v"], "requires": []}}}
SAID = {"properties": ["descale.*", "attention.oracle"], "cases": 40, "no_large": True}


def test_a_function_with_factors_is_checked(tmp_path):
    def right(q, k, v, mask=None, scale=None, causal="none", q_descale=None, k_descale=None, v_descale=None,
              q_descale_block=0, kv_descale_block=0, want_lse=False):  # fmt: skip
        of = q_descale, k_descale, v_descale, q_descale_block, kv_descale_block
        return attention(q, k, v, mask, scale, causal, *of, want_lse)

    def of_the_first_block(q, k, v, mask=None, scale=None, causal="none", q_descale=None, k_descale=None,
                           v_descale=None, q_descale_block=0, kv_descale_block=0, want_lse=False):  # fmt: skip
        first = [None if of is None else of[:, :, :1] for of in (q_descale, k_descale, v_descale)]
        return attention(q, k, v, mask, scale, causal, *first, want_lse=want_lse)

    def with_v_in_lse(q, k, v, mask=None, scale=None, causal="none", q_descale=None, k_descale=None, v_descale=None,
                      q_descale_block=0, kv_descale_block=0, want_lse=False):  # fmt: skip
        of = q_descale, k_descale, v_descale, q_descale_block, kv_descale_block
        out = attention(q, k, v, mask, scale, causal, *of, want_lse)
        if not want_lse or v_descale is None:
            return out
        return out[0], out[1] + numpy.log(float(v_descale.max()))

    held = attest.check(right, manifest=MANIFEST, out=str(tmp_path / "right"), **SAID)
    assert held.verdict == "held", held
    for kernel in (of_the_first_block, with_v_in_lse):
        with pytest.raises(AssertionError):
            attest.check(kernel, manifest=MANIFEST, out=str(tmp_path / kernel.__name__), **SAID)


def test_a_cache_in_8_bits_is_checked(tmp_path):
    asked = set()

    def cache(q, k, v, mask=None, scale=None, causal="none", k_descale=None, v_descale=None, want_lse=False):
        asked.add((k.dtype.name, v.dtype.name, k_descale is not None))
        return attention(q, k, v, mask, scale, causal, None, k_descale, v_descale, want_lse=want_lse)

    def without(q, k, v, mask=None, scale=None, causal="none", k_descale=None, v_descale=None, want_lse=False):
        return attention(q, k, v, mask, scale, causal, want_lse=want_lse)

    held = attest.check(cache, manifest=CACHE, out=str(tmp_path / "cache"), **SAID)
    assert held.verdict == "held" and ("int8", "int8", True) in asked, held
    with pytest.raises(AssertionError):
        attest.check(without, manifest=CACHE, out=str(tmp_path / "without"), **SAID)


def test_one_length_of_blocks_need_not_be_told(tmp_path):
    def of_4(q, k, v, mask=None, scale=None, causal="none", k_descale=None, v_descale=None):
        return attention(q, k, v, mask, scale, causal, None, k_descale, v_descale, kv_descale_block=4)

    one = {"dtypes": ["f32"], "grouped_query": True, "fully_masked_row": "zero"}
    told = {**one, "variants": {"descale": {"tensors": ["k", "v"], "kv_blocks": [4]}}}
    held = attest.check(of_4, manifest=told, out=str(tmp_path / "told"), **SAID)
    assert held.verdict == "held", held


def f8(*shape):
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "float8_e4m3fn"):
        pytest.skip(f"torch {torch.__version__} has no float8")
    return torch.from_numpy(random.standard_normal(shape).astype("float32")).to(torch.float8_e4m3fn)


def numbers(tensor):
    return tensor.double().numpy()


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func"])
def test_flash_attention_3_gets_factors_of_groups(name):
    q, k, v = f8(2, 4, 5, 16), f8(2, 2, 7, 16), f8(2, 2, 7, 16)
    import flash_attn_interface
    import torch

    served = _known.known(getattr(flash_attn_interface, name)).make(getattr(flash_attn_interface, name))
    assert {"q_descale", "k_descale", "v_descale", "out_dtype"} <= inspect.signature(served).parameters.keys()
    for shape in ((2, 2, 1), (1, 2, 1), (2, 1, 1), (1, 1, 1)):
        of_q, of_k, of_v = (random.uniform(0.5, 2, shape).astype("float32") for _ in range(3))
        of_heads = of_q.repeat(4 // shape[1], axis=1) if shape[1] > 1 else of_q
        given = {"q_descale": of_heads, "k_descale": of_k, "v_descale": of_v}
        tensors = {tensor: torch.from_numpy(of) for tensor, of in given.items()}
        out, lse = served(q, k, v, scale=0.3, out_dtype="bf16", want_lse=True, **tensors)
        expected, logs = attention(*map(numbers, (q, k, v)), scale=0.3, **given, want_lse=True)
        assert out.dtype == torch.bfloat16 and numpy.allclose(lse.numpy(), logs, atol=1e-5)
        # Weights are rounded to 4 bits.
        assert numpy.abs(numbers(out) - expected).max() < 0.06 * numpy.abs(numbers(v)).max() * of_v.max()
        assert served(q, k, v, scale=0.3, **tensors).dtype == torch.float8_e4m3fn
    with pytest.raises(NotImplementedError, match="the heads of a group"):
        served(q, k, v, scale=0.3, q_descale=torch.arange(1.0, 5.0).reshape(1, 4, 1))
    with pytest.raises(NotImplementedError, match="beside 8 bits alone"):
        served(q.half(), k.half(), v.half(), scale=0.3, k_descale=torch.ones(1, 1, 1))


def test_flash_attention_3_is_asked_for_factors_in_8_bits_alone():
    pytest.importorskip("torch")
    import flash_attn_interface

    row = _known.known(flash_attn_interface.flash_attn_func)
    plain = _kernels._known_merged({}, row)
    assert "f8_e4m3" not in plain["dtypes"] and "descale" not in plain["variants"] and "out_dtypes" not in plain
    narrow = _kernels._known_merged({"dtypes": ["f8_e4m3"]}, row)
    assert narrow["variants"]["descale"]["applied"] == "products" and narrow["out_dtypes"] == {"f8_e4m3": ["bf16"]}
    assert set(plain["variants"]) == set(narrow["variants"]) - {"descale"}


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func"])
def test_the_factors_of_flash_attention_3_are_known(name, monkeypatch):
    f8(1)
    import flash_attn_interface

    function = getattr(flash_attn_interface, name)
    what = {"dtypes": "f8_e4m3", "properties": "attention.oracle,descale.*", "no_large": True, "cases": 60}
    assert attest.check(function, **what).verdict == "held"
    real = flash_attn_interface.of_heads
    for of_heads in (
        lambda descale, q, k: real(None, q, k),
        lambda descale, q, k: real(None if descale is None else descale.flip(0).flip(1), q, k),
    ):
        monkeypatch.setattr(flash_attn_interface, "of_heads", of_heads)
        with pytest.raises(AssertionError):
            attest.check(function, **what)


def test_flex_attention_multiplies_scores():
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    import torch

    served = _calls.flexible(flex.flex_attention)
    q, k, v = (x.astype("float64") for x in problem())
    sees = random.uniform(size=(2, 1, 5, 7)) < 0.6
    sees[..., 0] = True
    for of_q in (None, factors(2, 4, 3) * 100, factors(1, 1, 1) * 100, factors(1, 4, 1) * 100):
        for of_k in (None, factors(2, 2, 4) * 100, factors(1, 1, 4) * 100, factors(2, 1, 1) * 100):
            given = {"q_descale": of_q, "k_descale": of_k, "mask": sees}
            blocks = {"q_descale_block": 2, "kv_descale_block": 2}
            tensors = {name: None if of is None else torch.from_numpy(of) for name, of in given.items()}
            out = served(*map(torch.from_numpy, (q, k, v)), scale=0.7, **tensors, **blocks)
            expected = attention(q, k, v, scale=0.7, **given, **blocks)
            numpy.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)


def test_flex_attention_with_factors_is_checked(tmp_path):
    needs("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    said = {**SAID, "cases": 12, "properties": ["attention.oracle", "descale.equals-multiplied", "descale.blocks"]}
    held = attest.check(flex.flex_attention, dtypes=["f32", "bf16"], out=str(tmp_path / "flex"), **said)
    assert held.verdict == "held", held


def test_calls_with_factors_are_judged(tmp_path):
    def mine(q, k, v, k_descale=None, v_descale=None, kv_descale_block=0):
        return attention(q, k, v, k_descale=k_descale, v_descale=v_descale, kv_descale_block=kv_descale_block)

    def without(q, k, v, k_descale=None, v_descale=None):
        return attention(q, k, v)

    given = GIVEN["a head"], GIVEN["blocks"], {}
    calls = captured(mine, *((in_8_bits() if of else problem(), of) for of in given))
    assert calls.left_out == {} and [bool(call) for call in calls.judge()] == [True] * 3
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    kept = sorted((case.kv_descale_block, case.k.dtype.name) for case in loaded)
    assert kept == [(0, "float32"), (0, "int8"), (3, "int8")]
    assert [bool(call) for call in captured(without, (in_8_bits(), GIVEN["a head"])).judge()] == [False]


def test_calls_of_flash_attention_3_with_factors_are_judged(tmp_path):
    q, k, v = f8(1, 5, 4, 16), f8(1, 7, 2, 16), f8(1, 7, 2, 16)
    import flash_attn_interface
    import torch

    with attest.capture(functions=[(flash_attn_interface, "flash_attn_func")]) as calls:
        given = {"k_descale": torch.full((1, 2), 0.25), "v_descale": torch.rand(1, 2) + 0.5}
        flash_attn_interface.flash_attn_func(q, k, v, q_descale=torch.rand(1, 2) + 0.5, **given)
        flash_attn_interface.flash_attn_func(q.half(), k.half(), v.half(), **given)
    assert len(calls.judge()) == 1 and all(calls.judge())
    assert ["k_descale beside torch.float16" in why for why in calls.left_out] == [True]
    (case,) = (attest.load(path) for path in calls.save(tmp_path / "calls"))
    assert case.tensors["q_descale"].shape == (1, 4, 1) and case.dtype == "f8_e4m3"
