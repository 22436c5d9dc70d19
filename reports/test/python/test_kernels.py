"""What attest.check finds out about a function: whose arrays it takes, in which layout, and what else it takes."""

import sys

import attest
import numpy
import pytest
from attest import _check, _kernels
from kernels import MANIFEST, made

FEW = {"cases": 20, "no_large": True, "dtypes": "f32"}


def found(function, **arguments):
    return _check.Kernel(function, **arguments)


def verdict_of(function, **arguments):
    try:
        return attest.check(function, **{**FEW, **arguments}).verdict
    except AssertionError as error:
        return error.result.verdict


def bshd(factor=1.0):
    def tokens_first(q, k, v, sm_scale=None):
        q, k, v = (array.swapaxes(1, 2) for array in (q, k, v))
        return made(factor)(q, k, v, scale=sm_scale).swapaxes(1, 2)

    return tokens_first


def test_a_function_of_the_contract_is_called_as_it_is():
    function = made()
    kernel = found(function)
    assert kernel.found.function is function and kernel.found.framework == "numpy"
    assert kernel.manifest == {"name": "mine"}


def test_a_layout_is_found_also_where_the_function_is_wrong():
    for factor, verdict in ((1.0, "held"), (1.02, "violated")):
        kernel = found(bshd(factor))
        assert "bshd" in kernel.manifest["version"] and "limits" not in kernel.manifest
        assert verdict_of(bshd(factor), properties="attention.oracle") == verdict
    with pytest.raises(AssertionError):
        attest.check(bshd(), layout="bhsd", properties="attention.oracle", **FEW)


def test_of_two_layouts_that_are_answered_the_nearer_one_is_taken():
    def sloppy(q, k, v, sm_scale=1.0):
        out = numpy.zeros(q.shape[:3] + v.shape[3:], q.dtype)
        for head in range(min(q.shape[2], k.shape[2])):
            one = [array[:, None, :, head] for array in (q, k, v)]
            out[:, :, head] = made(1.5)(*one, scale=sm_scale)[:, 0]
        return out

    assert "bshd" in found(sloppy).manifest["version"]


def test_names_are_found_by_the_signature_or_said():
    def odd(q, k, v, temperature=None, hidden=None):
        return made()(q, k, v, hidden, temperature)

    kernel = found(odd, scale="temperature", mask="hidden")
    assert kernel.manifest["masks"] == ["bool", "additive"] and "scale" in kernel.found.function.__signature__.parameters
    assert verdict_of(odd, scale="temperature", mask="hidden", manifest=MANIFEST) == "held"
    with pytest.raises((attest.AttestError, AssertionError)):
        attest.check(odd, mask="hidden", manifest=MANIFEST, properties="attention.oracle", **FEW)  # no scale is given


def aligned(alignment, lengths=None, beside_a_mask=True):
    def causal_kernel(q, k, v, scale=1.0, attn_mask=None, is_causal=False):
        queries, keys = q.shape[2], k.shape[2]
        mask = attn_mask
        if is_causal:
            if lengths == "same" and queries != keys:
                raise ValueError("of equal lengths alone")
            if not beside_a_mask and mask is not None:
                raise ValueError("a mask or causal")
            seen = numpy.tri(queries, keys, 0 if alignment == "top-left" else keys - queries, dtype=bool)
            if mask is not None and mask.dtype == bool:
                seen = seen & mask
            elif mask is not None:
                seen = numpy.where(seen, mask, q.dtype.type(-numpy.inf))
            mask = numpy.broadcast_to(seen, (1, 1) + seen.shape[-2:]) if seen.ndim == 2 else seen
        return made()(q, k, v, mask, scale)

    return causal_kernel


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
def test_the_alignment_of_a_causal_form_is_found(alignment):
    assert found(aligned(alignment)).manifest["causal"] == [alignment]
    assert verdict_of(aligned(alignment), properties="causal.*", manifest=MANIFEST) == "held"
    other = "top-left" if alignment == "bottom-right" else "bottom-right"
    wrong = {**MANIFEST, "causal": [other]}
    assert verdict_of(aligned(alignment), properties="causal.alignment", manifest=wrong, cases=60) == "violated"


def test_what_excludes_what_is_found():
    assert "excludes" not in found(aligned("top-left")).manifest
    assert found(aligned("top-left", beside_a_mask=False)).manifest["excludes"] == [["mask", "causal"]]
    assert found(aligned("top-left", lengths="same")).manifest["excludes"] == [["causal", "unequal-lengths"]]


def test_masks_of_one_kind_are_found():
    def added(q, k, v, bias=None, softmax_scale=1.0):
        return made()(q, k, v, None if bias is None else bias + q.dtype.type(0), softmax_scale)

    def hiding(q, k, v, attn_mask=None, softmax_scale=1.0):
        return made()(q, k, v, None if attn_mask is None else attn_mask != 0, softmax_scale)

    assert found(added).manifest["masks"] == ["additive"]
    assert found(hiding).manifest["masks"] == ["bool"]


def test_grouped_queries_are_offered_where_they_are_right():
    def repeated(q, k, v, sm_scale=1.0, wrong=False):
        k, v = ((numpy.tile(x, (1, q.shape[1] // x.shape[1], 1, 1)) if wrong else numpy.repeat(x, q.shape[1] // x.shape[1], 1))
                for x in (k, v))  # fmt: skip
        return made()(q, k, v, scale=sm_scale)

    assert found(repeated).manifest["grouped_query"] is True
    assert found(lambda q, k, v, sm_scale=1.0: repeated(q, k, v, sm_scale, True)).manifest["grouped_query"] is False


def test_limits_are_found_where_a_function_raises():
    def strict(q, k, v, sm_scale=1.0):
        assert q.shape[-1] == v.shape[-1] == 64 and q.shape[2] % 64 == 0 and k.shape[2] % 64 == 0 and k.shape[2] > 0
        return made()(q, k, v, scale=sm_scale)

    limits = found(strict).manifest["limits"]
    assert limits == {"value_dim": "head_dim", "head_dims": [64], "queries_multiple": 64, "keys_multiple": 64, "min_keys": 1}
    assert verdict_of(strict, properties="attention.oracle") == "held"
    assert found(strict, manifest={"limits": {"head_dims": [64]}}).manifest["limits"] == {"head_dims": [64]}


def test_a_function_that_takes_no_arrays_says_so_in_one_line(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delitem(sys.modules, "jax", raising=False)  # what is loaded is tried

    def refusing(q, k, v):
        raise ValueError(f"no {type(q).__module__}")

    with pytest.raises(attest.AttestError) as caught:
        found(refusing)
    assert str(caught.value) == (
        "attest.check: refusing takes no arrays that were tried: numpy: ValueError: no numpy; torch: ValueError: no torch"
    )

    def broken(q, k, v):
        raise KeyError("weights")

    assert verdict_of(broken, properties="attention.oracle") == "violated"


def test_what_a_function_refuses_by_name_is_an_answer():
    pytest.importorskip("torch")

    def choosy(q, k, v):
        raise attest.Unsupported("not this one")

    assert found(choosy).found.function is choosy


def of_torch(factor=1.0):
    torch = pytest.importorskip("torch")

    def attention(query, key, value, scale=1.0):
        return torch.softmax(query @ key.transpose(2, 3) * (scale * factor), -1) @ value

    return attention


def test_tensors_of_torch_are_found():
    kernel = found(of_torch())
    assert kernel.found.framework == "torch" and kernel.found.function.__name__ == "attention"
    assert verdict_of(of_torch(), properties="attention.oracle", manifest=MANIFEST) == "held"
    assert verdict_of(of_torch(1.02), properties="attention.oracle", manifest=MANIFEST) == "violated"


def test_tensors_of_torch_are_computed_by_one_thread(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before, seen = torch.get_num_threads(), set()

    def watched(q, k, v, scale=1.0):
        seen.add((isinstance(q, torch.Tensor), torch.get_num_threads()))
        return of_torch()(q, k, v, scale)

    try:
        torch.set_num_threads(2)
        assert verdict_of(watched, properties="attention.oracle", framework="torch", layout="bhsd", manifest=MANIFEST) == "held"
        assert seen == {(True, 1)} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["flash_attn_func", "flash_attn_varlen_func"])
def test_flash_attention_is_known(name, monkeypatch):
    pytest.importorskip("torch")
    import flash_attn

    properties = ["attention.oracle", "causal.*"]
    function = getattr(flash_attn, name)
    assert found(function).manifest["causal"] == ["bottom-right"]
    assert verdict_of(function, dtypes="bf16", properties=properties) == "held"
    # The same with the causal form at the other corner.
    real = flash_attn.torch.Tensor.tril
    monkeypatch.setattr(flash_attn.torch.Tensor, "tril", lambda self, diagonal=0: real(self, 0))
    assert verdict_of(function, dtypes="bf16", properties="causal.no-leak", cases=60) == "violated"


def test_packed_tokens_are_found_by_their_names():
    pytest.importorskip("torch")
    import flash_attn

    def packed(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=None, causal=False):
        lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
        return flash_attn.flash_attn_varlen_func(q, k, v, *lengths, 0.0, softmax_scale, causal)

    manifest = found(packed, dtypes="f32").manifest
    assert "thd" in manifest["version"] and manifest["causal"] == ["bottom-right"] and manifest["grouped_query"] is True


def test_scaled_dot_product_attention_works_by_name_alone():
    torch = pytest.importorskip("torch", "2.5")
    function = torch.nn.functional.scaled_dot_product_attention
    properties = ["attention.oracle", "causal.*", "masked.*"]
    result = attest.check(function, cases=20, no_large=True, properties=properties, inconclusive="held")
    assert [of["dtype"] for of in result["kernels"]] == ["f64", "f32", "f16", "bf16"] and result.verdict == "held"
    assert not [one for of in result["kernels"] for one in of["properties"] if one["name"] == "causal.no-leak" and not one["held"]]


def test_flex_attention_works_by_name_alone():
    pytest.importorskip("torch", "2.5")
    from torch.nn.attention.flex_attention import flex_attention

    for properties in ("causal.no-leak", "masked.renormalisation"):
        assert verdict_of(flex_attention, properties=properties, cases=5) == "held"


def test_functions_of_jax():
    jax = pytest.importorskip("jax")

    assert verdict_of(jax.nn.dot_product_attention, properties="causal.no-leak", cases=3) == "held"

    def mine(q, k, v, scale=1.0):
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) * scale, -1) @ v

    kernel = found(mine)
    assert kernel.found.arrays == "jax" and kernel.found.bf16 == "bits" and kernel.manifest["dtypes"] == ["f32", "f16", "bf16"]
    for static, causal in ((None, []), ("is_causal", ["top-left"])):  # a flag that is traced is refused
        compiled = jax.jit(jax.nn.dot_product_attention, static_argnames=static)
        manifest = found(compiled, dtypes="bf16", layout="bshd").manifest
        assert sorted(manifest["masks"]) == ["additive", "bool"] and manifest["causal"] == causal
    assert verdict_of(mine, properties="attention.oracle", cases=3) == "held"
    assert verdict_of(lambda q, k, v, scale=1.0: mine(q, k, v, 1.1 * scale), properties="attention.oracle", cases=3) == "violated"


def test_the_gpu_is_tried_where_the_processor_is_refused(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(_kernels, "_Trial", lambda *of: places.append((of[0], of[2])) or Raises(of[2]))
    places = []

    class Raises:
        def __init__(self, device):
            self.framework, self.errors, self.answers = "torch", [f"RuntimeError: no {device}"], 0

        def problem(self, extents):
            return []

        def error(self, function, inputs):
            return None

    with pytest.raises(attest.AttestError, match="torch: RuntimeError: no None; torch on cuda: RuntimeError: no cuda"):
        found(lambda q, k, v: q, framework="torch", dtypes="f32")
    assert places == [("torch", None), ("torch", "cuda")]
