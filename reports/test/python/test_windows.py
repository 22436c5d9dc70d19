"""Windows: adapters of frameworks by the keys that rows see, and what attest's functions make of conventions."""

import json
import subprocess
import sys
import types
from pathlib import Path

import numpy
import pytest
from test_frameworks import ADAPTERS, needs

import attest

WINDOWED = [
    (["numpy"], "python/numpy_example.py", 88),
    (["torch"], "pytorch/flex_kernels.py flex", 88),
    (["jax"], "jax/jax_kernel.py", 44),
    (["onnxruntime", "onnx"], "onnxruntime/ort_python.py attention-25", 44),
    (["onnxruntime", "onnx"], "onnxruntime/ort_python.py group-query", 12),
]


def visible_sets(tmp_path, variant, modules, script):
    """What visible_sets.py has to tell of the adapter."""
    needs(*modules)
    file, words = tmp_path / "sets.json", script.split()
    command = [sys.executable, Path(__file__).parent / "visible_sets.py", file, variant, ADAPTERS / words[0], *words[1:]]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(file.read_text())


@pytest.mark.parametrize(("modules", "script", "count"), WINDOWED, ids=[script for _, script, _ in WINDOWED])
def test_an_adapters_rows_see_the_keys_that_are_asked_for(tmp_path, modules, script, count):
    windows = visible_sets(tmp_path, "windows", modules, script)
    if "attention-25" in script.split() and not windows:
        pytest.skip("this ONNX Runtime has no opset 25")
    assert len(windows) == count
    for window in windows:
        assert window["seen"] == window["expected"], window["asked"]


random = numpy.random.default_rng(5)


def problem(queries=4, keys=7, heads=2, dk=8, dtype="float32"):
    return [random.standard_normal((1, heads, length, dk)).astype(dtype) for length in (queries, keys, keys)]


def band(queries, keys, left, right, alignment="top-left"):
    ahead = numpy.arange(keys) - numpy.arange(queries)[:, None] - (keys - queries if alignment == "bottom-right" else 0)
    return ((left < 0) | (ahead >= -left)) & ((right < 0) | (ahead <= right))


def attention(q, k, v, mask):
    s = numpy.where(mask, (q @ k.swapaxes(-1, -2)) * q.dtype.type(q.shape[-1] ** -0.5), -numpy.inf)
    w = numpy.exp(s - s.max(-1, keepdims=True))
    return w @ v / w.sum(-1, keepdims=True)


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
@pytest.mark.parametrize(("left", "right"), [(1, 0), (2, -1), (-1, 1), (0, 0), (100, 100)])
def test_a_window_is_the_mask_of_its_band(alignment, left, right):
    q, k, v = problem()
    seen = band(4, 7, left, right, alignment)
    window = {"window_left": left, "window_right": right, "alignment": alignment}
    by_window, by_mask = attest.exact(q, k, v, **window), attest.exact(q, k, v, mask=seen)
    # Enclosures of one number, and bounds of the same keys.
    assert numpy.all(by_window.lower <= by_mask.upper) and numpy.all(by_mask.lower <= by_window.upper)
    assert numpy.allclose(by_window.bound, by_mask.bound, rtol=1e-6)
    assert attest.allclose(attention(q, k, v, seen), q, k, v, **window)
    other = band(4, 7, left, right, "top-left" if alignment == "bottom-right" else "bottom-right")
    if not numpy.array_equal(seen, other):
        assert not attest.allclose(attention(q, k, v, other), q, k, v, **window)


def test_a_window_beside_a_causal_form_is_aligned_as_that():
    q, k, v = problem()
    seen = band(4, 7, 2, 0, "bottom-right")
    assert attest.allclose(attention(q, k, v, seen), q, k, v, causal="bottom-right", window_left=2)
    assert attest.allclose(attention(q, k, v, seen), q, k, v, causal="bottom-right", window_left=2, alignment="bottom-right")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"window_left": -2}, "window_left is -2; it must be a whole number of keys, or -1 for no end"),
        ({"window_right": 1.5}, "window_right is 1.5; it must be"),
        ({"window_right": 1, "alignment": "centre"}, "alignment is 'centre'; it must be one of"),
        ({"window_left": 1, "alignment": "top-left", "causal": "bottom-right"}, "a row has one position"),
    ],
)
def test_wrong_windows_are_refused_in_one_line(given, says):
    with pytest.raises(attest.AttestError, match=says):
        attest.exact(*problem(), **given)


def test_no_window_is_no_window():
    q, k, v = problem()
    assert attest.allclose(attention(q, k, v, True), q, k, v, window_left=-1, window_right=None, alignment="bottom-right")


def test_cases_have_windows_where_a_manifest_lists_them(tmp_path):
    assert all(case.alignment is None and "window_left" not in case.arguments for case in attest.cases(count=40))
    manifest = {"variants": {"window": {"alignment": ["bottom-right"]}}}
    windowed = [case for case in attest.cases(count=80, manifest=manifest) if case.alignment]
    assert windowed and all(case.arguments["alignment"] == "bottom-right" for case in windowed)
    case = max(windowed, key=lambda case: case.q.size)
    case.save(tmp_path / "case.safetensors")
    again = attest.load(tmp_path / "case.safetensors")
    assert again.arguments["window_left"] == case.window_left and again.window_right == case.window_right


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func"])
def test_the_windows_of_flash_attention_are_known(name, monkeypatch):
    torch = pytest.importorskip("torch")
    import flash_attn

    function = getattr(flash_attn, name)
    of_windows = ["attention.oracle", "window.slice"]
    what = {"dtypes": "bf16", "properties": of_windows, "no_large": True, "cases": 60}
    assert attest.check(function, **what).verdict == "held"
    # A left end that is one key short.
    real = torch.Tensor.triu
    monkeypatch.setattr(torch.Tensor, "triu", lambda self, diagonal=0: real(self, diagonal + 1))
    with pytest.raises(AssertionError):
        attest.check(function, **what)


def test_the_windows_of_jax_are_known():
    needs("jax")
    import jax

    what = {"dtypes": "f32", "properties": "attention.oracle", "no_large": True, "cases": 30}
    assert attest.check(jax.nn.dot_product_attention, **what).verdict == "held"


def captured(function, *calls, name="attention"):
    module = types.SimpleNamespace(**{name: function})
    with attest.capture(functions=[(module, name)]) as capturing:
        for args, given in calls:
            getattr(module, name)(*args, **given)
    return capturing


def test_calls_with_the_contracts_window_are_judged():
    def mine(q, k, v, window_left=-1, window_right=-1, alignment="top-left"):
        return attention(q, k, v, band(q.shape[2], k.shape[2], window_left, window_right, alignment))

    def short(q, k, v, window_left=-1, window_right=-1, alignment="top-left"):
        return mine(q, k, v, max(window_left - 1, 0), window_right, alignment)

    calls = [(problem(), {"window_left": 2}), (problem(), {"window_right": 1, "alignment": "bottom-right"})]
    right = captured(mine, *calls)
    assert right.left_out == {} and [bool(call) for call in right.judge()] == [True, True]
    assert [bool(call) for call in captured(short, calls[0]).judge()] == [False]


def test_calls_with_the_windows_of_frameworks_are_judged(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    import flash_attn

    q, k, v = (torch.from_numpy(array).transpose(1, 2) for array in problem(3, 7))
    with attest.capture(functions=[(flash_attn, "flash_attn_func")]) as calls:
        flash_attn.flash_attn_func(q, k, v, window_size=(2, 0))
        flash_attn.flash_attn_func(q, k, v, causal=True, window_size=(1, -1))
    assert calls.left_out == {} and len(calls.judge()) == 2 and all(calls.judge())
    loaded = [attest.load(path) for path in calls.save(tmp_path / "calls")]
    assert {(case.window_left, case.window_right, case.alignment) for case in loaded} == {
        (2, 0, "bottom-right"),
        (1, -1, "bottom-right"),
    }


def test_calls_with_the_windows_of_jax_are_judged():
    needs("jax")
    import jax

    q, k, v = (jax.numpy.asarray(array.swapaxes(1, 2)) for array in problem(3, 7))
    with attest.capture(functions=[(jax.nn, "dot_product_attention")]) as calls:
        jax.nn.dot_product_attention(q, k, v, local_window_size=(1, 2))
        jax.nn.dot_product_attention(q, k, v, local_window_size=1)
        jax.nn.dot_product_attention(q, k, v, local_window_size=(-1, 2))
    assert len(calls.judge()) == 2 and all(calls.judge())
    assert "on one side of the query" in next(iter(calls.left_out))
