"""attest.observe and attest.capture."""

import types

import numpy
import pytest

import attest
import flash_attn

random = numpy.random.default_rng(3)


def problem(queries=5, keys=5, heads=2, dk=8, dtype="float32"):
    return [random.standard_normal((1, heads, length, dk)).astype(dtype) for length in (queries, keys, keys)]


def softmax(q, k, v, attn_mask=None, is_causal=False, scale=None, dropout_p=0.0, window=None, soft_cap=0.0):
    s = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale or q.shape[-1] ** -0.5)
    if attn_mask is not None:
        s = numpy.where(attn_mask, s, -numpy.inf) if attn_mask.dtype == bool else s + attn_mask
    if is_causal:
        s = numpy.where(numpy.tri(*s.shape[-2:], dtype=bool), s, -numpy.inf)
    w = numpy.exp(s - s.max(-1, keepdims=True))
    return w @ v / w.sum(-1, keepdims=True)


@pytest.fixture
def module():
    return types.SimpleNamespace(attention=softmax)


def captured(module, *calls, most=32):
    with attest.capture(functions=[(module, "attention")], most=most) as capturing:
        for args, kwargs in calls:
            module.attention(*args, **kwargs)
    assert module.attention is softmax
    return capturing


def test_right_calls_are_right(module):
    mask = numpy.tri(5, dtype=bool)
    bias = random.standard_normal((5, 5)).astype("float32")
    calls = captured(
        module,
        (problem(), {}),
        ([*problem(), mask], {}),
        (problem(), {"attn_mask": bias, "scale": 0.5}),
        (problem(), {"is_causal": True}),
        (problem(), {"is_causal": True, "dropout_p": 0.0, "window": (-1, -1), "soft_cap": 0}),
    )
    judged = calls.judge()
    assert len(judged) == 5 and all(judged) and calls.calls == {"attention": 5} and calls.left_out == {}
    assert judged[0].shapes == ((1, 2, 5, 8), (1, 2, 5, 8)) and "held" in repr(judged[0])


def test_wrong_calls_come_first(module):
    right = softmax
    seen = []

    def third_is_wrong(q, k, v, is_causal=False):
        seen.append(1)
        return right(q, k, v, is_causal=is_causal, scale=1.0 if len(seen) == 3 else None)

    module.attention = third_is_wrong
    with attest.capture(functions=[(module, "attention")]) as calls:
        for queries in (3, 4, 5, 6):
            module.attention(*problem(queries))
    judged = calls.judge()
    assert [bool(call) for call in judged] == [False, True, True, True] and judged[0].shapes[0][2] == 5
    assert "scale" in repr(judged[0])


@pytest.mark.parametrize("given", [{"dropout_p": 0.1}, {"window": (3, 0)}, {"soft_cap": 30.0}, {"window": numpy.ones(2)}])
def test_calls_of_other_problems_are_left_out(module, given):
    calls = captured(module, (problem(), given), (problem(), {}))
    assert len(calls.judge()) == 1 and sum(calls.left_out.values()) == 1
    assert next(iter(given)) in next(iter(calls.left_out))


def test_arguments_without_names_are_left_out(module):
    # range's kin: nothing says how their arguments are called.
    class Unsigned:
        __name__ = "unsigned"
        __signature__ = "none"

        def __call__(self, *args):
            return softmax(*args)

    function = Unsigned()
    observed = attest.observe(function, "unused")
    observed._signature = None
    observed(*problem(), numpy.tri(5, dtype=bool))
    observed(*problem())
    assert len(observed.take()) == 1 and "names nobody knows" in next(iter(observed.left_out))


def test_a_share_is_kept_however_many_calls_there_are(module):
    calls = captured(module, *[(problem(), {}) for _ in range(200)], most=4)
    assert len(calls.judge()) == 4 and calls.calls == {"attention": 200}


def test_a_known_function_brings_layout_and_alignment(tmp_path):
    q, k, v = (x.swapaxes(1, 2) for x in problem(3, 7, dtype="float16"))

    def answer(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0):
        q, k, v = (x.swapaxes(1, 2).astype("float32") for x in (q, k, v))
        s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
        s = softcap * numpy.tanh(s / softcap) if softcap else s
        s = numpy.where(numpy.tri(3, 7, 4, dtype=bool), s, -numpy.inf)
        w = numpy.exp(s - s.max(-1, keepdims=True))
        return (w @ v / w.sum(-1, keepdims=True)).swapaxes(1, 2).astype("float16")

    original = flash_attn.flash_attn_func
    flash_attn.flash_attn_func = answer
    try:
        with attest.capture() as calls:
            flash_attn.flash_attn_func(q, k, v, causal=True)
            flash_attn.flash_attn_func(q, k, v, causal=True, softcap=0.5)
            flash_attn.flash_attn_func(q, k, v, causal=True, dropout_p=0.5)
        assert all(calls.judge()) and len(calls.judge()) == 2 and "dropout_p" in next(iter(calls.left_out))
        paths = calls.save(tmp_path / "calls")
        loaded = [attest.load(path) for path in paths]
        assert all(case.causal == "bottom-right" and case.q.shape == (1, 2, 3, 8) for case in loaded)
        assert [case.softcap for case in loaded] == [0, 0.5]
    finally:
        flash_attn.flash_attn_func = original


def test_a_model_says_whose_call_it_was():
    torch = pytest.importorskip("torch")
    namespace = types.SimpleNamespace(attention=lambda q, k, v: torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v)

    class Block(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return namespace.attention(x, x, x) * self.factor

    model = torch.nn.Sequential(Block(1.0), torch.nn.Sequential(Block(2.0)))
    with attest.capture(model, functions=[(namespace, "attention")]) as calls:
        model(torch.randn(1, 2, 4, 8))
    assert sorted(call.where for call in calls.judge()) == ["0", "1.0"]
    with pytest.raises(attest.AttestError, match="leave the with block"), attest.capture(model, functions=[(namespace, "attention")]) as calls:
        calls.judge()


def test_nothing_loaded_is_one_line(monkeypatch):
    from attest import _known

    monkeypatch.setattr(_known, "rows", lambda: ())
    with pytest.raises(attest.AttestError, match="no function of attention"):
        attest.capture().__enter__()
