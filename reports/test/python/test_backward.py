"""Backward passes of Python functions: what they are given and return, right and wrong ones, and those of autograd."""

import subprocess

import numpy
import pytest
from test_frameworks import adapter, needs, verdicts

import attest
from attest import _check

ORACLES = {"backward.oracle-dq", "backward.oracle-dk", "backward.oracle-dv"}
PROPERTIES = ["backward.oracle-*", "backward.given", "backward.gauge", "backward.dv-sums-to-do", "backward.hidden-keys",
              "backward.zero-dout"]  # fmt: skip
GRADIENTS = {"dtypes": ["f64", "f32"], "properties": PROPERTIES, "no_large": True, "cases": 60}
MANIFEST = {"grouped_query": True, "masks": ["additive", "bool"], "backward": {"masked_row": "zero"}}
EVERY = ["dq", "dk", "dv", "dmask", "dsink"]
OF_ALL = {**MANIFEST, "backward": {"masked_row": "zero", "gradients": EVERY}}


def hidden(queries, keys, mask, causal, window_left, window_right, attention_chunk, alignment):
    """Which keys rows do not see, as an array that broadcasts to [batch, heads, M, N]."""
    from_last = (alignment if causal == "none" else causal) == "bottom-right"
    row, key = numpy.arange(queries)[:, None] + (keys - queries if from_last else 0), numpy.arange(keys)
    none = numpy.zeros((queries, keys), bool) if mask is None else ~mask if mask.dtype == bool else numpy.isneginf(mask)
    none = none | (key > row if causal != "none" else False)
    none = none | (key < row - window_left if window_left >= 0 else False)
    none = none | (key > row + window_right if window_right >= 0 else False)
    return none | (key // attention_chunk != row // attention_chunk if attention_chunk else False)


class Kernel:
    """Attention and its backward pass on NumPy; `mistake` is made in the latter."""

    def __init__(self, mistake="", of_all=False):
        self.mistake, self.of_all = mistake, of_all

    @staticmethod
    def scores(q, k, mask, scale, softcap, **sight):
        """(scores, the derivative of the cap at each, which are hidden)"""
        k = k.repeat(q.shape[1] // k.shape[1], axis=1)
        unseen = hidden(q.shape[2], k.shape[2], mask, **sight)
        scores, slope = (q @ k.swapaxes(2, 3)) * q.dtype.type(scale), q.dtype.type(1)
        if softcap:
            capped = numpy.tanh(scores / q.dtype.type(softcap))
            scores, slope = q.dtype.type(softcap) * capped, 1 - capped * capped
        scores = scores if mask is None or mask.dtype == bool else scores + mask
        return numpy.where(unseen, -numpy.inf, scores).astype(q.dtype), slope, unseen

    @staticmethod
    def factors(keep, dropout_p, dtype):
        return dtype.type(1) if keep is None else keep.astype(dtype) / dtype.type(1 - dropout_p)

    @numpy.errstate(all="ignore")
    def forward(self, q, k, v, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1, attention_chunk=0,
                alignment=None, softcap=0.0, sink=None, keep=None, dropout_p=0.0, want_lse=False):  # fmt: skip
        scores, *_ = self.scores(q, k, mask, scale, softcap, causal=causal, window_left=window_left,
                                 window_right=window_right, attention_chunk=attention_chunk, alignment=alignment)  # fmt: skip
        top = scores.max(axis=3, keepdims=True, initial=-numpy.inf)
        if sink is not None:
            sink = sink.astype(q.dtype)[:, None, None]
            top = numpy.maximum(top, sink)
        offset = numpy.where(numpy.isneginf(top), 0, top)
        weights = numpy.exp(scores - offset)
        total = weights.sum(axis=3, keepdims=True) + (0 if sink is None else numpy.exp(sink - offset))
        v = v.repeat(q.shape[1] // v.shape[1], axis=1)
        weights = weights * self.factors(keep, dropout_p, q.dtype)
        out = numpy.where(total > 0, weights @ v / total, 0).astype(q.dtype)
        return (out, (top + numpy.log(total)).astype("float64")[..., 0]) if want_lse else out

    @numpy.errstate(all="ignore")
    def backward(self, q, k, v, d_out, out, lse, mask=None, scale=1.0, causal="none", window_left=-1, window_right=-1,
                 attention_chunk=0, alignment=None, softcap=0.0, sink=None, keep=None, dropout_p=0.0,
                 d_lse=None):  # fmt: skip
        wrong = self.mistake
        scores, slope, unseen = self.scores(q, k, mask, scale, softcap, causal=causal, window_left=window_left,
                                            window_right=window_right, attention_chunk=attention_chunk,
                                            alignment=alignment)  # fmt: skip
        slope, factors = (1 if wrong == "no slope of the cap" else slope), self.factors(keep, dropout_p, q.dtype)
        group = q.shape[1] // k.shape[1]
        wide_k, wide_v = k.repeat(group, axis=1), v.repeat(group, axis=1)
        weights = numpy.where(unseen, 0, numpy.exp(scores - lse[..., None].astype(q.dtype)))
        delta = 0 if wrong == "no delta" else (d_out * out).sum(axis=3, keepdims=True)
        if d_lse is not None and wrong != "no d_lse":
            delta = delta - d_lse[..., None]
        of_weights = (1 if wrong == "no dropout of dP" else factors) * (d_out @ wide_v.swapaxes(2, 3))
        of_biased = numpy.where(unseen, 0, weights * (of_weights - delta))
        ds = of_biased * slope
        of_scale = q.dtype.type(1 if wrong == "no scale" else scale)

        def summed(parts):
            parts = parts.reshape(*k.shape[:2], group, *parts.shape[2:])
            return parts[:, :, 0] if wrong == "first head of a group" else parts.sum(axis=2)

        dq = (of_scale * (ds @ wide_k)).astype(q.dtype)
        dk, dv = summed(of_scale * (ds.swapaxes(2, 3) @ q)), summed((weights * factors).swapaxes(2, 3) @ d_out)
        found = [dq, dk.astype(q.dtype), (dv + dv if wrong == "dv twice" else dv).astype(q.dtype)]
        if self.of_all and mask is not None and mask.dtype != bool:
            shared = tuple(axis for axis in (0, 1) if mask.shape[axis] == 1)
            of_mask = (ds if wrong == "dmask behind the cap" else of_biased).sum(axis=shared, keepdims=True)
            found.append((of_mask / len(q) if wrong == "mean over a batch" and 0 in shared else of_mask).astype(mask.dtype))
        if self.of_all and sink is not None:
            share = numpy.where(numpy.isneginf(sink)[:, None, None], 0, numpy.exp(sink[:, None, None] - lse[..., None]))
            of_sink = (share * delta).sum(axis=(0, 2, 3))
            found.append((of_sink if wrong == "dsink with the other sign" else -of_sink).astype(sink.dtype))
        return tuple(found)

    def checked(self, **arguments):
        return attest.check(self.forward, **{"backward": self.backward, "manifest": MANIFEST, **GRADIENTS, **arguments})

    def failure(self, **arguments):
        with pytest.raises(AssertionError) as caught:
            self.checked(**arguments)
        return caught.value


def violated(result):
    return {record["property"] for record in result.records() if record["verdict"] == "violated"}


def test_a_right_one_holds_under_all_that_it_takes():
    result = Kernel(of_all=True).checked(manifest=OF_ALL, cases=150, properties="backward.*")
    records = result.records()
    assert result.verdict == "held"
    held = {record["property"]: record["held"] for record in records}
    assert {*ORACLES, "backward.given", "backward.gauge", "backward.dv-sums-to-do"} < set(held)
    # The manifest does not say where D comes from, and a function of arrays has no strides.
    unasked = {"backward.dq-dk-need-delta", "backward.split-keys", "backward.strides"}
    assert {name for name, count in held.items() if count <= 30} == unasked, held


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [
        ("no delta", {"backward.oracle-dq", "backward.oracle-dk", "backward.given"}),
        ("no scale", {"backward.oracle-dq", "backward.oracle-dk", "backward.given"}),
        ("no slope of the cap", {"backward.oracle-dq", "backward.oracle-dk", "backward.given"}),
        ("no dropout of dP", {"backward.oracle-dq", "backward.oracle-dk", "backward.given"}),
        ("first head of a group", {"backward.oracle-dk", "backward.oracle-dv", "backward.given", "backward.dv-sums-to-do"}),
        ("dv twice", {"backward.oracle-dv", "backward.given", "backward.dv-sums-to-do"}),
    ],
)
def test_a_wrong_one_is_violated(mistake, seen):
    error = Kernel(mistake).failure(cases=200)
    assert error.result.verdict == "violated" and seen <= violated(error.result)


BY_ARGUMENTS = ["backward.oracle-dmask", "backward.ds-rows-sum-to-zero", "backward.oracle-dsink", "sink.gradient-*",
                "softcap.gradient-factor"]  # fmt: skip


def test_gradients_by_masks_and_sinks_hold():
    result = Kernel(of_all=True).checked(manifest=OF_ALL, properties=BY_ARGUMENTS, cases=100)
    assert result.verdict == "held"
    held = {record["property"]: record["held"] for record in result.records()}
    asked = {"backward.oracle-dmask", "backward.ds-rows-sum-to-zero", "backward.oracle-dsink", "sink.gradient-sign",
             "sink.gradient-balance", "softcap.gradient-factor"}  # fmt: skip
    assert all(held[name] > 15 for name in asked), held


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [
        ("dmask behind the cap", {"backward.oracle-dmask", "softcap.gradient-factor"}),
        ("mean over a batch", {"backward.oracle-dmask", "sink.gradient-balance"}),
        ("dsink with the other sign", {"backward.oracle-dsink", "sink.gradient-sign", "sink.gradient-balance"}),
        ("no delta", {"backward.oracle-dmask", "backward.ds-rows-sum-to-zero", "backward.oracle-dsink"}),
    ],
)
def test_a_wrong_gradient_by_a_mask_or_a_sink_is_violated(mistake, seen):
    error = Kernel(mistake, of_all=True).failure(manifest=OF_ALL, properties=BY_ARGUMENTS, cases=200)
    assert seen <= violated(error.result)


def test_gradients_by_the_log_sum_exp_hold():
    result = Kernel(of_all=True).checked(manifest=OF_ALL, properties=["backward.lse-only", *ORACLES], cases=100)
    held = {record["property"]: record["held"] for record in result.records()}
    assert result.verdict == "held" and held["backward.lse-only"] > 50, held
    error = Kernel("no d_lse").failure(properties=["backward.lse-only", *ORACLES], cases=100)
    assert {"backward.lse-only", "backward.oracle-dq", "backward.oracle-dk"} <= violated(error.result)
    assert "backward.oracle-dv" not in violated(error.result)


@pytest.mark.parametrize("connected", [True, False])
def test_autograd_has_gradients_by_the_log_sum_exp(connected):
    torch = pytest.importorskip("torch")

    def attention(q, k, v, scale=1.0, want_lse=False):
        scores = scale * (q @ k.transpose(-2, -1))
        out = torch.softmax(scores, -1) @ v
        lse = torch.logsumexp(scores, -1).double()
        return (out, lse if connected else lse.detach()) if want_lse else out

    arguments = {"backward": "autograd", "framework": "torch", "dtypes": ["f64", "f32"], "no_large": True, "cases": 60,
                 "properties": ["backward.lse-only", *ORACLES], "manifest": {"limits": {"min_keys": 1},
                 "backward": {"d_lse": True}}}  # fmt: skip
    if connected:
        result = attest.check(attention, **arguments)
        held = {record["property"]: record["held"] for record in result.records()}
        assert result.verdict == "held" and held["backward.lse-only"] > 50, held
        return
    with pytest.raises(AssertionError, match="no autograd leads from the log-sum-exp"):
        attest.check(attention, **arguments)


def test_autograd_has_gradients_by_masks_and_sinks():
    torch = pytest.importorskip("torch")

    def attention(q, k, v, mask=None, scale=1.0, sink=None):
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = scale * (q @ k.transpose(-2, -1))
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        if sink is None:
            return torch.softmax(scores, -1) @ v
        column = sink.to(q.dtype)[None, :, None, None].expand(*scores.shape[:3], 1)
        return torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1] @ v

    manifest = {**OF_ALL, "backward": {"gradients": EVERY}}
    result = attest.check(attention, backward="autograd", framework="torch", manifest=manifest, dtypes=["f64", "f32"],
                          no_large=True, properties=[*ORACLES, *BY_ARGUMENTS[:-1]], cases=80)  # fmt: skip
    held = {record["property"]: record["held"] for record in result.records()}
    assert result.verdict == "held"
    assert held["backward.oracle-dmask"] > 15 and held["backward.oracle-dsink"] > 15, held


def test_a_wrong_log_sum_exp_is_no_mistake_of_the_backward_pass():
    class Other(Kernel):
        def forward(self, q, k, v, mask=None, scale=1.0, want_lse=False):
            out = super().forward(q, k, v, mask, scale, want_lse=True)
            return (out[0], out[1] + 0.25) if want_lse else out[0]

        def backward(self, q, k, v, d_out, out, lse, mask=None, scale=1.0):
            return super().backward(q, k, v, d_out, out, lse, mask, scale)

    result = Other().failure(properties=["backward.given", "backward.oracle-*", "attention.oracle"]).result
    assert violated(result) == {"attention.oracle"}, "at the log-sum-exp that it returned it is right"


def test_it_is_given_what_it_takes():
    class Looks(Kernel):
        def backward(self, q, k, v, d_out, out, mask=None, scale=1.0):
            dtypes.update(x.dtype for x in (q, k, v, d_out, out))
            assert d_out.shape == out.shape == (*q.shape[:3], v.shape[3])
            numpy.testing.assert_array_equal(out, self.forward(q, k, v, mask, scale))
            _, lse = self.forward(q, k, v, mask, scale, want_lse=True)
            return dict(zip(("dv", "dk", "dq"), reversed(super().backward(q, k, v, d_out, out, lse, mask, scale))))

    dtypes = set()
    plain = {**MANIFEST, "causal": [], "variants": {}}
    assert Looks().checked(manifest=plain, properties="backward.*").verdict == "held"
    assert dtypes == {numpy.dtype("float32"), numpy.dtype("float64")}


@numpy.errstate(all="ignore")
def test_the_log_sum_exp_is_given_as_it_was_returned():
    """As FlashAttention has it: +inf in a row that sees no key, so that e^(score - lse) is 0 there."""

    def forward(q, k, v, mask=None, scale=1.0, want_lse=False):
        scores = (q @ k.swapaxes(2, 3)) * q.dtype.type(scale)
        scores = scores if mask is None else numpy.where(mask, scores, -numpy.inf).astype(q.dtype)
        top = scores.max(axis=3, keepdims=True, initial=-numpy.inf)
        weights = numpy.exp(scores - numpy.where(numpy.isneginf(top), 0, top))
        total = weights.sum(axis=3, keepdims=True)
        lse = numpy.where(total > 0, top + numpy.log(total), numpy.inf).astype("float64")[..., 0]
        out = numpy.where(total > 0, weights @ v / total, 0).astype(q.dtype)
        return (out, lse) if want_lse else out

    def backward(q, k, v, d_out, out, lse, mask=None, scale=1.0):
        scores = (q @ k.swapaxes(2, 3)) * q.dtype.type(scale)
        scores = scores if mask is None else numpy.where(mask, scores, -numpy.inf).astype(q.dtype)
        weights = numpy.exp(scores - lse[..., None].astype(q.dtype))
        ds = weights * (d_out @ v.swapaxes(2, 3) - (d_out * out).sum(axis=3, keepdims=True)) * q.dtype.type(scale)
        return ds @ k, ds.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ d_out

    manifest = {"masks": ["bool"], "fully_masked_row": "zero", "backward": {"masked_row": "zero"}}
    arguments = {"backward": backward, **GRADIENTS, "properties": [*PROPERTIES, "backward.masked-row"]}
    assert attest.check(forward, manifest={**manifest, "lse_convention": {"empty": "+inf"}}, **arguments).verdict == "held"


@pytest.mark.parametrize("seeds_apart", [0, 1])
@numpy.errstate(all="ignore")
def test_a_mask_of_dropout_is_drawn_again(seeds_apart):
    def kept(q, k, dropout_p, seed):
        if not dropout_p:
            return q.dtype.type(1)
        drawn = numpy.random.default_rng(seed).random((*q.shape[:3], k.shape[2])) >= dropout_p
        return drawn.astype(q.dtype) / q.dtype.type(1 - dropout_p)

    def forward(q, k, v, scale=1.0, dropout_p=0.0, dropout_seed=0, want_lse=False):
        scores = (q @ k.swapaxes(2, 3)) * q.dtype.type(scale)
        top = scores.max(axis=3, keepdims=True, initial=-numpy.inf)
        weights = numpy.exp(scores - top)
        total = weights.sum(axis=3, keepdims=True)
        out = (weights * kept(q, k, dropout_p, dropout_seed)) @ v / total
        return (out, (top + numpy.log(total)).astype("float64")[..., 0]) if want_lse else out

    def backward(q, k, v, d_out, out, lse, scale=1.0, dropout_p=0.0, dropout_seed=0):
        factors = kept(q, k, dropout_p, dropout_seed + seeds_apart)
        weights = numpy.exp((q @ k.swapaxes(2, 3)) * q.dtype.type(scale) - lse[..., None].astype(q.dtype))
        of_weights = factors * (d_out @ v.swapaxes(2, 3))
        ds = weights * (of_weights - (d_out * out).sum(axis=3, keepdims=True)) * q.dtype.type(scale)
        return ds @ k, ds.swapaxes(2, 3) @ q, (weights * factors).swapaxes(2, 3) @ d_out

    def checked(**of_backward):
        manifest = {"variants": {"dropout": {"mask": ["own"]}}, "backward": of_backward}
        return attest.check(forward, backward=backward, manifest=manifest, **{**GRADIENTS, "properties": "dropout.*"})

    # Nothing is asked of one that does not say so.
    assert checked().verdict == "held"
    if seeds_apart:
        with pytest.raises(AssertionError) as caught:
            checked(own_dropout=True)
        assert violated(caught.value.result) == {"dropout.same-mask"}
    else:
        held = {record["property"]: record["held"] for record in checked(own_dropout=True).records()}
        assert held["dropout.same-mask"] > 30


def returns(value_of):
    class Returns(Kernel):
        def backward(self, q, k, v, d_out, **named):
            return value_of(q, k, v)

    return Returns()


@pytest.mark.parametrize(
    ("value_of", "said"),
    [
        (lambda q, k, v: (q, k), "TypeError: the backward function returned 2 of what are to be dq, dk, dv"),
        (lambda q, k, v: q, "TypeError: the backward function returned 1 of what are to be dq, dk, dv"),
        (lambda q, k, v: None, "TypeError: the backward function returned 1 of what are to be dq, dk, dv"),
        (lambda q, k, v: (q, None, v), "TypeError: the backward function returned None as dk"),
        (lambda q, k, v: {"dq": q, "dw": k}, "TypeError: the backward function returned dq, dw where dq, dk, dv are due"),
        (lambda q, k, v: (q, k, v.astype("f2")), "the function returned dv in float16 where float64 is due"),
        (lambda q, k, v: (q, k, v[..., :0]), "malformed reply: dv has the shape"),
    ],
)
def test_a_return_that_is_none_costs_one_line(value_of, said):
    lines = str(returns(value_of).failure(dtypes="f64", properties="backward.oracle-dv", cases=5)).splitlines()
    assert sum(said in " ".join(line.split()) for line in lines) >= 1, "\n".join(lines)


def test_gradients_are_those_that_the_manifest_lists():
    class Values(Kernel):
        def backward(self, q, k, v, d_out, out, lse, mask=None, scale=1.0):
            return super().backward(q, k, v, d_out, out, lse, mask, scale)[2]

    manifest = {**MANIFEST, "causal": [], "variants": {}, "backward": {"gradients": ["dv"], "masked_row": "zero"}}
    result = Values().checked(manifest=manifest, properties="backward.*")
    assert result.verdict == "held"
    assert Values("dv twice").failure(manifest=manifest).result.verdict == "violated"


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (Kernel().forward, {"backward": 3}, "backward is 3; it must be callable, or 'autograd'"),
        (Kernel().forward, {"backward": "vjp"}, "backward is 'vjp'; it must be callable, or 'autograd'"),
        (Kernel().forward, {"backward": lambda q, k, v: q}, "the backward function has no parameter d_out"),
        (lambda q, k, v: v, {"backward": Kernel().backward}, "takes lse, which the function does not return"),
        (None, {"backward": Kernel().backward, "multihead": len}, "backward is the backward pass of an attention function"),
        (Kernel().forward, {"backward": "autograd", "framework": "numpy"}, "autograd is PyTorch's"),
        (Kernel().forward, {"backward": Kernel().backward, "manifest": {"lse": False}}, 'state "lse": true'),
    ],
)
def test_misuse_is_one_line(function, arguments, said):
    with pytest.raises(attest.AttestError) as caught:
        attest.check(function, **{**GRADIENTS, **arguments})
    assert said in str(caught.value) and "\n" not in str(caught.value)


def completed(function, backward, manifest=None):
    return _check.adapter()._completed(manifest, function, None, backward)


def test_the_manifest_is_completed():
    def plain(q, k, v, sink=None, window_left=-1, q_lengths=None):
        return v

    def by_itself(q, k, v, d_out):
        return q, k, v

    full = completed(Kernel().forward, Kernel().backward)
    assert full["operations"] == ["attention", "attention_backward"] and full["lse"] is True
    assert full["backward"] == {"uses": ["out", "lse"], "weights": "lse", "d_lse": True}
    alone = completed(plain, by_itself)
    assert alone["backward"] == {"uses": [], "weights": "stored"}
    # The adapter's own log-sum-exp knows some of the variants.
    without_lse = {"queries": True, "keys": False, "excludes": ["lse"]}
    assert alone["variants"] == {"window": {"left": True, "right": False}, "sink": {}, "lengths": without_lse}
    sinks = {"variants": {"sink": {"lse": "without"}}}
    assert completed(plain, by_itself, sinks)["variants"] == {"sink": {"lse": "without", "excludes": ["lse"]}}
    assert completed(plain, by_itself, {"backward": {"uses": ["out"]}})["backward"]["uses"] == ["out"]
    again = completed(Kernel().forward, "autograd")
    assert again["backward"] == {"own_forward": True, "uses": ["out", "lse"], "weights": "lse"}
    assert completed(plain, "autograd", {"backward": {"own_forward": False}})["backward"]["own_forward"] is False
    assert "lse" not in completed(plain, None) and "backward" not in completed(plain, None)


@pytest.mark.parametrize("causal", ["none", "top-left", "bottom-right"])
@pytest.mark.parametrize("kind", ["", "bool", "post-scale", "pre-scale"])
def test_a_log_sum_exp_is_computed_for_a_function_without(causal, kind):
    random = numpy.random.default_rng(3)
    q, k, sinks = (random.standard_normal(shape) for shape in ((2, 4, 5, 8), (2, 2, 7, 8), 4))
    mask = {"": None, "bool": random.uniform(size=(1, 4, 5, 7)) < 0.6}.get(kind, random.standard_normal((2, 1, 5, 7)))
    if kind.endswith("scale"):
        mask[..., 3] = -numpy.inf
    for sight in ({}, {"window_left": 2, "window_right": 1}, {"attention_chunk": 3}, {"softcap": 2.0}, {"sink": sinks}):
        corner = "bottom-right" if causal == "none" else causal
        of_scores = {"softcap": sight.pop("softcap", 0.0), "sink": sight.pop("sink", None)}
        if of_scores["softcap"] and kind == "pre-scale":
            continue  # they exclude each other
        sight = {"window_left": -1, "window_right": -1, "attention_chunk": 0, "alignment": corner, **sight}
        convention = kind if kind.endswith("scale") else "post-scale"
        lse = _check.adapter()._log_sum_exp(q, k, mask, 0.3, causal, convention, **sight, **of_scores)
        scores = q @ k.repeat(2, axis=1).swapaxes(2, 3)
        added = 0 if mask is None or mask.dtype == bool else mask
        if of_scores["softcap"]:
            scores = 2 * numpy.tanh(0.3 * scores / 2) + added
        else:
            scores = 0.3 * (scores + added) if kind == "pre-scale" else 0.3 * scores + added
        seen = numpy.where(hidden(5, 7, mask, causal, **sight), 0, numpy.exp(scores)).sum(axis=3)
        seen = seen if of_scores["sink"] is None else seen + numpy.exp(sinks[:, None])
        with numpy.errstate(divide="ignore"):
            numpy.testing.assert_allclose(lse, numpy.log(seen), rtol=1e-13, atol=1e-13)
    assert numpy.isneginf(_check.adapter()._log_sum_exp(q, k[:, :, :0])).all()


def test_a_function_without_one_has_gradients_too():
    def forward(q, k, v, mask=None, scale=1.0):
        return Kernel().forward(q, k, v, mask, scale)

    def backward(q, k, v, d_out, mask=None, scale=1.0):
        out, lse = Kernel().forward(q, k, v, mask, scale, want_lse=True)
        return Kernel().backward(q, k, v, d_out, out, lse, mask, scale)

    result = attest.check(forward, backward=backward, manifest=MANIFEST, **{**GRADIENTS, "properties": "backward.*"})
    judged = {record["property"]: record["held"] for record in result.records()}
    assert result.verdict == "held" and all(judged[oracle] > 30 for oracle in ORACLES)
    assert judged.get("backward.given", 0) == 0, "its weights are not made of the log-sum-exp that it is given"


def test_a_backward_pass_has_the_style_of_its_function():
    def forward(q, k, v, softmax_scale=1.0):  # [batch, tokens, heads, width]
        return Kernel().forward(*(x.swapaxes(1, 2) for x in (q, k, v)), scale=softmax_scale).swapaxes(1, 2)

    def backward(q, k, v, d_out, softmax_scale=1.0):
        q, k, v, d_out = (x.swapaxes(1, 2) for x in (q, k, v, d_out))
        out, lse = Kernel().forward(q, k, v, scale=softmax_scale, want_lse=True)
        gradients = Kernel(mistake).backward(q, k, v, d_out, out, lse, scale=softmax_scale)
        return [x.swapaxes(1, 2) for x in gradients]

    mistake = ""
    assert attest.check(forward, backward=backward, **{**GRADIENTS, "properties": "backward.*"}).verdict == "held"
    mistake = "first head of a group"
    with pytest.raises(AssertionError):
        attest.check(forward, backward=backward, **{**GRADIENTS, "properties": "backward.*"})


def torch_attention(q, k, v, mask=None, scale=1.0):
    import torch

    scores = (q @ k.transpose(-1, -2)) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v


# Of weights that a function does not return a log-sum-exp of, backward.given says nothing.
OF_STORED = {**GRADIENTS, "properties": [name for name in PROPERTIES if name != "backward.given"]}
AUTOGRAD = {**OF_STORED, "backward": "autograd", "framework": "torch"}


def test_autograd_of_pytorch():
    needs("torch")
    result = attest.check(torch_attention, **AUTOGRAD)
    held = {record["property"]: record["held"] for record in result.records()}
    assert result.verdict == "held" and all(held[oracle] > 20 for oracle in ORACLES) and held["backward.dv-sums-to-do"] > 20


@pytest.mark.parametrize("of", ["q", "k", "v"])
def test_autograd_that_forgets_an_input_is_violated(of):
    needs("torch")

    def forgets(q, k, v, scale=1.0):
        q, k, v = (x.detach() if name == of else x for name, x in (("q", q), ("k", k), ("v", v)))
        return torch_attention(q, k, v, scale=scale)

    with pytest.raises(AssertionError) as caught:
        attest.check(forgets, **AUTOGRAD)
    assert f"backward.oracle-d{of}" in violated(caught.value.result)


def test_a_wrong_backward_pass_within_autograd_is_violated():
    needs("torch")
    import torch

    class NoDelta(torch.autograd.Function):
        @staticmethod
        def forward(context, q, k, v, scale):
            weights = torch.softmax(q @ k.transpose(-1, -2) * scale, -1)
            context.save_for_backward(q, k, v, weights)
            context.scale = scale
            return weights @ v

        @staticmethod
        def backward(context, d_out):
            q, k, v, weights = context.saved_tensors
            ds = weights * (d_out @ v.transpose(-1, -2)) * context.scale
            return ds @ k, ds.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ d_out, None

    with pytest.raises(AssertionError) as caught:
        attest.check(lambda q, k, v, scale: NoDelta.apply(q, k, v, scale), **AUTOGRAD)
    assert "backward.oracle-dq" in violated(caught.value.result)
    assert "backward.dv-sums-to-do" not in violated(caught.value.result)


def test_what_is_not_asked_for_may_be_left_out():
    seen = set()

    def backward(q, k, v, d_out, out, lse, scale=1.0, wanted=()):
        seen.add(tuple(wanted))
        found = dict(zip(("dq", "dk", "dv"), Kernel().backward(q, k, v, d_out, out, lse, scale=scale)))
        if wanted == ["dk"]:
            found["dk"] = found["dk"] * 0
        return {name: found[name] for name in wanted}

    def forward(q, k, v, scale=1.0, want_lse=False):
        return Kernel().forward(q, k, v, scale=scale, want_lse=want_lse)

    arguments = {**GRADIENTS, "manifest": {"grouped_query": True}, "properties": ["backward.subset", *ORACLES]}
    with pytest.raises(AssertionError) as caught:
        attest.check(forward, backward=backward, **arguments)
    assert violated(caught.value.result) == {"backward.subset"}
    assert seen == {("dq", "dk", "dv"), ("dq",), ("dk",), ("dv",), ("dq", "dk"), ("dq", "dv"), ("dk", "dv")}


def test_autograd_that_needs_all_inputs_to_require_gradients_is_violated():
    torch = pytest.importorskip("torch")

    class KeysBesideQueries(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, scale):
            p = torch.softmax(scale * (q @ k.transpose(-2, -1)), -1)
            ctx.save_for_backward(q, k, v, p)
            ctx.scale = scale
            return p @ v

        @staticmethod
        def backward(ctx, d_out):
            q, k, v, p = ctx.saved_tensors
            dp = d_out @ v.transpose(-2, -1)
            ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * ctx.scale
            dk = ds.transpose(-2, -1) @ q if ctx.needs_input_grad[0] else torch.zeros_like(k)
            return ds @ k, dk, p.transpose(-2, -1) @ d_out, None

    def attention(q, k, v, scale=1.0):
        return KeysBesideQueries.apply(q, k, v, scale)

    arguments = {**AUTOGRAD, "properties": ["backward.subset", *ORACLES]}
    with pytest.raises(AssertionError) as caught:
        attest.check(attention, **arguments)
    assert violated(caught.value.result) == {"backward.subset"}


def test_autograd_of_what_answers_otherwise_every_time_is_nothing_to_judge():
    needs("torch")
    calls = []

    def changes(q, k, v, scale=1.0):
        calls.append(1)
        return torch_attention(q, k, v, scale=scale) + len(calls)

    with pytest.raises(AssertionError) as caught:
        attest.check(changes, **AUTOGRAD)
    assert caught.value.result.verdict == "inconclusive"
    assert any("called again, the function answers otherwise" in of["reason"] for of in caught.value.result.records())


def test_autograd_is_not_judged_at_a_log_sum_exp_that_is_not_the_functions():
    """Of a part of the keys whose output is that of all, as where all values are the same, the log-sum-exp alone tells."""
    torch = pytest.importorskip("torch")

    def attention(q, k, v, scale=1.0, want_lse=False):
        scores = scale * (q @ k.transpose(-2, -1))
        out = torch.softmax(scores, -1) @ v
        return (out, torch.logsumexp(scores, -1).double()) if want_lse else out

    arguments = {"backward": "autograd", "framework": "torch", "dtypes": ["f64"], "no_large": True, "cases": 400,
                 "properties": ["backward.split-keys"], "manifest": {"limits": {"min_keys": 1},
                 "backward": {"uses": ["out", "lse"], "weights": "lse", "delta": "out", "own_forward": False}}}  # fmt: skip
    with pytest.raises(AssertionError) as caught:
        attest.check(attention, **arguments)
    assert caught.value.result.verdict != "violated", violated(caught.value.result)
    assert any("called again, the function answers otherwise" in of["reason"] for of in caught.value.result.records())


def test_autograd_needs_a_function_that_it_can_follow():
    needs("torch")
    import torch

    def leaves_it(q, k, v, scale=1.0):
        return torch.from_numpy(Kernel().forward(*(x.detach().numpy() for x in (q, k, v)), scale=scale))

    with pytest.raises(AssertionError, match='backward is "autograd", and none leads from the output'):
        attest.check(leaves_it, **AUTOGRAD)


FLUSHES = {"arithmetic": {"flushes_subnormals": True, "flushes_inputs": True}}


def test_autograd_of_jax():
    needs("jax")
    import jax

    # JAX compiles for each shape anew.
    few = {"properties": ["backward.oracle-*", "backward.dv-sums-to-do"], "dtypes": "f32", "cases": 12,
           "shape": [(1, 4, 2, 3, 5, 8)], "shapes_only": True, "backward": "autograd", "manifest": FLUSHES}  # fmt: skip

    def right(q, k, v, scale=1.0):
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) * scale, -1) @ v

    @jax.custom_vjp
    def of_scores(q, k, v, scale):
        return right(q, k, v, scale)

    def saved(q, k, v, scale):
        return right(q, k, v, scale), (q, k, v, scale)

    def no_delta(saved, d_out):
        q, k, v, scale = saved
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * scale, -1)
        ds = weights * (d_out @ v.swapaxes(-1, -2)) * scale
        return ds @ k, ds.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ d_out, 0.0

    of_scores.defvjp(saved, no_delta)

    def wrong(q, k, v, scale=1.0):
        return of_scores(q, k, v, scale)

    assert attest.check(right, **few).verdict == "held"
    assert attest.check(jax.nn.dot_product_attention, **{**few, "properties": "backward.dv-sums-to-do"}).verdict == "held"
    with pytest.raises(AssertionError) as caught:
        attest.check(wrong, **few)
    assert "backward.oracle-dq" in violated(caught.value.result)

    def biased(q, k, v, mask=None, scale=1.0):
        scores = q @ k.swapaxes(-1, -2) * scale
        return jax.nn.softmax(scores if mask is None else scores + mask, -1) @ v

    listed = {"masks": ["additive"], "backward": {"gradients": ["dq", "dk", "dv", "dmask"]}}
    by_mask = {**few, "manifest": {**FLUSHES, **listed}, "properties": ["backward.oracle-dmask", "backward.oracle-dq"]}
    result = attest.check(biased, **by_mask)
    assert result.verdict == "held" and min(record["held"] for record in result.records()) > 3


@pytest.mark.parametrize(
    ("modules", "script", "dtype", "cases"),
    [
        (["torch"], "pytorch/sdpa_backends.py math --backward", "f64", 20),
        (["torch"], "pytorch/sdpa_backends.py math --backward", "bf16", 20),
        (["torch"], "pytorch/sdpa_backends.py flash --backward", "f32", 20),
        (["torch"], "pytorch/mha_gradients.py weights", "f32", 20),
        (["torch"], "pytorch/mha_gradients.py math", "f16", 20),
        (["jax"], "jax/jax_kernel.py --backward", "f32", 10),
    ],
)
def test_gradients_of_frameworks_hold(tmp_path, modules, script, dtype, cases):
    needs(*modules)
    properties = ["--property", "backward.dv-sums-to-do", "--property", "backward.oracle-*"]
    assert verdicts(tmp_path, adapter(*script.split()), *properties, "--dtype", dtype, cases=cases) == {dtype: "held"}


def test_the_back_end_whose_gradients_are_served_says_what_it_lacks():
    needs("torch")
    run = subprocess.run(
        [_check._program(), "check", "--kernel", adapter("pytorch/sdpa_backends.py", "math", "--backward", "--device", "cuda")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 3 and "leave --device cuda out" in run.stderr


def test_gradients_in_16_bits_are_added_up_in_16_bits_by_flash_on_a_cpu():
    """As findings.md has it, without Attest: what 65535 rows add to the gradient of the one value is lost."""
    needs("torch")
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.zeros(1, 1, n, 1, dtype=torch.bfloat16, requires_grad=True) for n in (65536, 1, 1))
    d_out = torch.full_like(q, 2.0**-17).detach()
    d_out[0, 0, 0] = 1
    found = []
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel([backend]):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        found.append(torch.autograd.grad(out, v, d_out)[0].item())
    assert found == [1.5, 1.0]
