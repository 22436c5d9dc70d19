"""attest.cases, attest.load and attest.strategies."""

import itertools

import numpy
import pytest

import attest
from attest import _cases


def plain(q, k, v, mask=None, scale=1.0, causal="none", mask_convention="post-scale"):
    """Attention as anybody writes it, of everything that a case may ask."""
    k, v = (numpy.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    wide = numpy.float64 if q.dtype == numpy.float64 else numpy.float32
    q, k, v = (x.astype(wide) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2)
    additive = mask is not None and mask.dtype != bool
    if additive and mask_convention == "pre-scale":
        scores = (scores + mask.astype(wide)) * wide(scale)
    else:
        scores = scores * wide(scale) + (mask.astype(wide) if additive else 0)
    queries, keys = scores.shape[-2:]
    if causal != "none":
        shift = keys - queries if causal == "bottom-right" else 0
        hidden = numpy.arange(keys)[None, :] > numpy.arange(queries)[:, None] + shift
        scores = numpy.where(hidden, -numpy.inf, scores)
    if mask is not None and mask.dtype == bool:
        scores = numpy.where(mask, scores, -numpy.inf)
    with numpy.errstate(all="ignore"):
        weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf))
        return weights / weights.sum(axis=-1, keepdims=True) @ v


def answer(case):
    with numpy.errstate(over="ignore", invalid="ignore"):
        out = plain(case.q, case.k, case.v, **case.arguments)
        return out.astype(case.q.dtype)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_right_answers_to_drawn_cases_are_right(dtype):
    verdicts, asked = [], set()
    for case in attest.cases(seed=3, dtype=dtype, count=120):
        assert case.dtype == dtype and case.operation == "attention"
        asked.update(case.arguments)
        verdicts.append(case.allclose(answer(case)).verdict)
    assert set(verdicts) <= {"held", "excused"} and verdicts.count("held") > 60
    assert asked == {"scale", "mask", "causal", "mask_convention"}


def test_cases_are_a_function_of_seed_and_k():
    one, again, other = (list(attest.cases(seed=s, dtype="f32", count=5)) for s in (1, 1, 2))
    assert [repr(c) for c in one] == [repr(c) for c in again] != [repr(c) for c in other]
    assert len({repr(c) for c in one}) == 5
    assert one[4].about["k"] == "4" and one[4].about["seed"] == "1" and one[4].about["property"] == "attention.oracle"
    endless = itertools.islice(attest.cases(dtype=numpy.float16, property="causal.prefix"), 3)
    assert [c.dtype for c in endless] == ["f16"] * 3


def test_shapes_and_limits():
    shapes = [(1, 4, 2, 64, 96, 16), (2, 2, 2, 5, 7, 8, 3)]
    drawn = list(attest.cases(dtype="f32", shapes=shapes, large="all", count=4))
    assert [c.q.shape for c in drawn[:2]] == [(1, 4, 64, 16), (2, 2, 5, 8)] and drawn[1].v.shape == (2, 2, 7, 3)
    limited = {"limits": {"head_dims": [64], "keys_multiple": 32}}
    for case in attest.cases(dtype="f32", manifest=limited, count=20):
        assert case.q.shape[-1] == 64 and case.k.shape[2] % 32 == 0


def test_multihead_cases_have_their_weights():
    case = next(attest.cases(property="multihead.oracle"))
    assert case.operation == "multihead" and {"w_q", "w_k", "w_v"} <= set(case.tensors) and case.heads >= 1
    assert "heads" in case.arguments and "w_q" not in case.arguments
    with pytest.raises(attest.AttestError, match="one of multihead"):
        case.exact()


def test_saved_and_loaded(tmp_path):
    for dtype in ("f32", "bf16"):
        for case in attest.cases(seed=5, dtype=dtype, count=20):
            case.save(tmp_path / "case.safetensors")
            loaded = attest.load(tmp_path / "case.safetensors")
            assert repr(loaded) == repr(case) and dict(loaded.about) == dict(case.about)
            for name, tensor in case.tensors.items():
                assert numpy.array_equal(loaded.tensors[name], tensor, equal_nan=True)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 7, b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"{}", b"\x05" + b"\x00" * 7 + b"[1,2]", b"x" * 4096],
)
def test_what_is_no_case_costs_one_line(tmp_path, content):
    (tmp_path / "case").write_bytes(content)
    with pytest.raises(attest.AttestError) as raised:
        attest.load(tmp_path / "case")
    assert str(tmp_path / "case") in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(attest.AttestError, match="no-such"):
        attest.load(tmp_path / "no-such")


@pytest.mark.parametrize(
    "options, line",
    [
        ({"property": "attention.orakel"}, "attention.orakel is no property"),
        ({"dtype": "int8"}, "int8"),
        ({"shapes": [(1, 2)]}, "1,2"),
        ({"large": "many"}, "many"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options_cost_one_line(options, line):
    with pytest.raises(attest.AttestError, match=line) as raised:
        next(attest.cases(**options))
    assert "\n" not in str(raised.value)


def test_torch_cases():
    torch = pytest.importorskip("torch")
    for dtype, of in (("f64", torch.float64), ("f16", torch.float16), ("bf16", torch.bfloat16)):
        for case in attest.cases(seed=9, dtype=dtype, count=10):
            tensors = case.torch()
            assert tensors.q.dtype is of and repr(tensors) == repr(case)
            assert numpy.array_equal(tensors.q.double().numpy(), case.q.astype("float64"), equal_nan=True)
            assert tensors.allclose(torch.from_numpy(answer(case).astype("float64")).to(of)).verdict in ("held", "excused")


def test_strategies_find_and_shrink():
    hypothesis = pytest.importorskip("hypothesis")
    from attest import strategies

    settings = hypothesis.settings(database=None, deadline=None, max_examples=100, derandomize=True)
    quiet = hypothesis.settings(settings, suppress_health_check=list(hypothesis.HealthCheck))

    @quiet
    @hypothesis.given(strategies.cases(dtype=["f32", "bf16"]))
    def right(case):
        assert case.allclose(answer(case)).verdict in ("held", "excused")

    right()
    failing = []

    @quiet
    @hypothesis.given(strategies.cases())
    def drops_the_last_key(case):
        if case.k.shape[2] < 2 or case.mask is not None or case.causal != "none":
            return
        out = plain(case.q, case.k[:, :, :-1], case.v[:, :, :-1], case.mask, case.scale).astype(case.q.dtype)
        found = case.allclose(out)
        if found.verdict == "violated":
            failing.append(case)
        assert found.verdict != "violated"

    with pytest.raises(AssertionError):
        drops_the_last_key()
    smallest = failing[-1]
    # Two keys of one column, one query of one head: what a person reads.
    assert smallest.q.shape == (1, 1, 1, 1) and smallest.k.shape == (1, 1, 2, 1) and smallest.v.shape[3] == 1, smallest
    assert len(_cases.Case.__repr__(smallest).splitlines()) < 12
