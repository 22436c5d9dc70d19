"""attest.exact and attest.allclose, beside softmax in 60 digits."""

import math
import os
import signal
import threading
from decimal import Decimal, localcontext

import numpy
import pytest

import attest
from attest import _service

random = numpy.random.default_rng(7)


def problem(batch=1, heads=2, kv_heads=1, queries=3, keys=5, dk=4, dv=3, dtype="float32"):
    def drawn(*shape):
        return random.standard_normal(shape).astype(dtype)

    return drawn(batch, heads, queries, dk), drawn(batch, kv_heads, keys, dk), drawn(batch, kv_heads, keys, dv)


def softmax_in_digits(q, k, v, scale=None, visible=lambda i, j: True, added=lambda b, h, i, j: 0.0):
    """The definition in 60 decimal digits, as nested lists of Decimal."""
    batch, heads, queries, dk = q.shape
    group = heads // k.shape[1]
    with localcontext() as context:
        context.prec = 60
        # The double that is asked for, not the real number.
        scale = Decimal(1.0 / math.sqrt(dk) if scale is None else scale)

        def row(b, h, i):
            kv = h // group
            keys = [j for j in range(k.shape[2]) if visible(i, j)]
            scores = [
                scale * sum(Decimal(float(x)) * Decimal(float(y)) for x, y in zip(q[b, h, i], k[b, kv, j]))
                + Decimal(added(b, h, i, j))
                for j in keys
            ]
            weights = [(s - max(scores)).exp() for s in scores]
            return [
                sum(w * Decimal(float(v[b, kv, j, c])) for w, j in zip(weights, keys)) / sum(weights)
                for c in range(v.shape[3])
            ]

        return [[[row(b, h, i) for i in range(queries)] for h in range(heads)] for b in range(batch)]


def plain(q, k, v, scale=None, factor=1.0):
    """Attention as anybody writes it, in the dtype of q."""
    k, v = (numpy.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scale = (1.0 / math.sqrt(q.shape[-1]) if scale is None else scale) * factor
    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def encloses(exact, digits, width):
    for index in numpy.ndindex(exact.lower.shape):
        b, h, i, c = index
        lower, upper = Decimal(exact.lower[index]), Decimal(exact.upper[index])
        assert lower <= digits[b][h][i][c] <= upper, index
        assert upper - lower <= Decimal(width), index
    return True


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_exact_encloses_what_digits_say(dtype):
    q, k, v = problem(dtype=dtype)
    exact = attest.exact(q, k, v)
    # Of float64 as narrow as doubles are, since its own bound is hardly wider.
    assert encloses(exact, softmax_in_digits(q, k, v), 5e-16 if dtype == "float64" else 1e-12)
    assert exact.judged.all() and exact.finite.all() and exact.excused == {}
    assert (exact.bound > 0).all() and (exact.bound < {"float64": 1e-13, "float32": 1e-4, "float16": 1}[dtype]).all()


def test_exact_of_masks_and_causal_forms():
    q, k, v = problem(batch=2, heads=2, kv_heads=2, queries=3, keys=5)
    top = attest.exact(q, k, v, causal=True)
    assert encloses(top, softmax_in_digits(q, k, v, visible=lambda i, j: j <= i), 1e-12)
    bottom = attest.exact(q, k, v, causal="bottom-right", scale=0.75)
    assert encloses(bottom, softmax_in_digits(q, k, v, 0.75, lambda i, j: j <= i + 2), 1e-12)
    seen = random.integers(0, 2, (3, 5)).astype(bool)
    seen[:, 0] = True
    assert encloses(attest.exact(q, k, v, mask=seen), softmax_in_digits(q, k, v, visible=lambda i, j: seen[i, j]), 1e-12)
    bias = random.standard_normal((2, 1, 3, 5)).astype("float32")
    biased = attest.exact(q, k, v, mask=bias)
    assert encloses(biased, softmax_in_digits(q, k, v, added=lambda b, h, i, j: float(bias[b, 0, i, j])), 1e-12)
    before = attest.exact(q, k, v, mask=bias, scale=0.5, mask_convention="pre-scale")
    halved = softmax_in_digits(q, k, v, 0.5, added=lambda b, h, i, j: 0.5 * float(bias[b, 0, i, j]))
    assert encloses(before, halved, 1e-12)


def test_exact_says_where_nothing_is_judged():
    q, k, v = problem(queries=2, keys=3)
    seen = numpy.array([[True, True, False], [False, False, False]])
    exact = attest.exact(q, k, v, mask=seen)
    assert exact.judged[..., 0, :].all() and not exact.judged[..., 1, :].any()
    assert numpy.isnan(exact.lower[..., 1, :]).all() and numpy.isinf(exact.bound[..., 1, :]).all()
    assert not exact.finite[..., 1, :].any() and (exact.lse[..., 1] == -numpy.inf).all()
    assert exact.excused == {"fully masked": exact.judged[..., 1, :].size}
    v[..., 0, 0] = numpy.nan
    assert attest.exact(q, k, v).excused == {"not finite": exact.judged.size}


def test_log_sum_exp():
    q, k, v = problem()
    scores = numpy.einsum("bhmd,bknd->bhmn", q.astype("float64"), k.astype("float64")) / 2.0
    exact = attest.exact(q, k, v)
    assert exact.lse.shape == q.shape[:3]
    assert numpy.allclose(exact.lse, numpy.log(numpy.exp(scores).sum(-1)), rtol=1e-12, atol=1e-14)
    assert (exact.lse_bound > 0).all() and (exact.lse_bound < 1e-4).all()


def test_rows_are_those_of_the_whole():
    q, k, v = problem(batch=2, heads=4, kv_heads=2, queries=6)
    whole = attest.exact(q, k, v, causal=True)
    rows = [(1, 3, 5), (0, 0, 0), (1, 2, 4), (1, 3, 5)]
    some = attest.exact(q, k, v, causal=True, rows=rows)
    for at, row in enumerate(rows):
        for name in ("lower", "upper", "bound", "judged", "lse", "lse_bound"):
            assert numpy.array_equal(getattr(some, name)[at], getattr(whole, name)[row]), (name, row)
    narrow = attest.exact(q, k, v, causal=True, rows=rows, narrow=True)
    assert ((narrow.lower >= some.lower) & (narrow.upper <= some.upper)).all()
    assert (narrow.upper - narrow.lower <= 2 * numpy.spacing(numpy.abs(narrow.upper))).all()


def test_layouts():
    q, k, v = problem(batch=2, heads=4, kv_heads=2, queries=3)
    exact = attest.exact(q, k, v)
    tokens_first = attest.exact(*(x.swapaxes(1, 2) for x in (q, k, v)), layout="bshd")
    assert numpy.array_equal(tokens_first.lower, exact.lower.swapaxes(1, 2))
    assert numpy.array_equal(tokens_first.lse, exact.lse.swapaxes(1, 2))
    rows = [(1, 2, 0)]
    some = attest.exact(*(x.swapaxes(1, 2) for x in (q, k, v)), layout="bshd", rows=rows)
    assert numpy.array_equal(some.lower, exact.lower[1, 2, 0][None])
    no_batch = attest.exact(q[1], k[1], v[1])
    assert numpy.array_equal(no_batch.upper, exact.upper[1])
    no_heads = attest.exact(q[1, 3], k[1, 1], v[1, 1])
    assert numpy.array_equal(no_heads.upper, exact.upper[1, 3]) and no_heads.lse.shape == (3,)
    # Strides are the caller's: what is looked at are the numbers.
    assert numpy.array_equal(attest.exact(q[..., ::-1], k[..., ::-1], v).judged, exact.judged)


def test_the_bound_is_of_the_declared_arithmetic():
    q, k, v = problem(dtype="float16", keys=64)
    loose = attest.exact(q, k, v)
    sharp = attest.exact(q, k, v, manifest={"arithmetic": {"f16": {"weights": "f32"}}})
    assert (sharp.bound < loose.bound).all() and numpy.array_equal(sharp.lower, loose.lower)
    wide = attest.exact(q, k, v, out_dtype="f32", manifest={"arithmetic": {"f16": {"weights": "f32"}}})
    assert (wide.bound < sharp.bound).all() and numpy.median(wide.bound / sharp.bound) < 0.25


def test_error_and_utilisation():
    q, k, v = problem()
    exact, right = attest.exact(q, k, v), plain(q, k, v)
    share = exact.utilisation(right)
    assert ((share >= 0) & (share <= 1)).all() and (exact.error(right) < 1e-5).all()
    for index in numpy.ndindex(right.shape):
        found, lower, upper = (Decimal(float(x[index])) for x in (right, exact.lower, exact.upper))
        assert Decimal(exact.error(right)[index]) >= max(found - lower, upper - found)
    wrong = right.copy()
    wrong[0, 1, 2, 0] += 1
    assert exact.utilisation(wrong)[0, 1, 2, 0] > 1e4
    wrong[0, 0, 0, 0], wrong[0, 0, 0, 1] = numpy.nan, numpy.inf
    assert exact.utilisation(wrong)[0, 0, 0, 0] == numpy.inf == exact.error(wrong)[0, 0, 0, 1]


def test_allclose_holds_what_is_right():
    for dtype in ("float64", "float32", "float16"):
        q, k, v = problem(batch=2, heads=4, kv_heads=2, queries=7, keys=33, dk=16, dv=8, dtype=dtype)
        found = attest.allclose(plain(q, k, v), q, k, v)
        assert found and found.verdict == "held" and 0 < found.utilisation <= 1 and found.judged == 2 * 4 * 7 * 8
        assert found.beyond == 0 and found.rows == found.rows_judged == 56 and "held: " in repr(found)


def test_allclose_judges_out_as_what_it_is():
    q, k, v = problem(dtype="float16", keys=40)
    wide = plain(*(x.astype("float32") for x in (q, k, v)))
    assert attest.allclose(wide, q, k, v)
    coarse = wide * numpy.float32(1 + 2**-9)
    sharp = {"arithmetic": {"f16": {"weights": "f32"}}}
    assert attest.allclose(coarse.astype("float16"), q, k, v, manifest=sharp).utilisation > 0.25
    assert not attest.allclose(coarse, q, k, v, manifest=sharp)


def test_allclose_says_what_is_wrong():
    q, k, v = problem(batch=2, heads=4, kv_heads=2, queries=7, keys=33, dk=16, dv=8)
    found = attest.allclose(plain(q, k, v, scale=1.0), q, k, v)
    assert not found and found.verdict == "violated" and found.beyond > 100 and found.utilisation > 100
    assert found.found == plain(q, k, v, scale=1.0)[found.index]
    exact = attest.exact(q, k, v)
    assert exact.lower[found.index] <= found.exact[1] and found.exact[0] <= exact.upper[found.index]
    assert found.error == pytest.approx(abs(found.found - found.exact[0]), rel=1e-6)
    assert found.readings and "scale" in found.readings[0]
    lines = found.message.splitlines()
    assert lines[0].startswith("attest: violated: ") and len(lines) <= 25 and all(len(line) < 160 for line in lines)
    assert f"out{list(found.index)}" in found.message and found.readings[0] in found.message
    with pytest.raises(AssertionError, match="violated"):
        attest.assert_close(plain(q, k, v, scale=1.0), q, k, v)


def test_allclose_finds_one_element():
    q, k, v = problem(batch=2, heads=4, kv_heads=2, queries=7, keys=33, dk=16, dv=8)
    right = plain(q, k, v)
    for value in (numpy.nan, numpy.inf, right[1, 2, 3, 4] + numpy.float32(1e-3)):
        out = right.copy()
        out[1, 2, 3, 4] = value
        found = attest.allclose(out, q, k, v)
        assert not found and found.index == (1, 2, 3, 4) and found.beyond == 1
        swapped = attest.allclose(*(x.swapaxes(1, 2) for x in (out, q, k, v)), layout="bshd")
        assert swapped.index == (1, 3, 2, 4)


def test_what_is_not_judged_is_not_close():
    q, k, v = problem(queries=1)
    nothing = numpy.zeros((1, 5), bool)
    found = attest.allclose(plain(q, k, v), q, k, v, mask=nothing)
    assert not found and found.verdict == "excused" and "excused" in repr(found)
    assert attest.allclose(plain(q, k, v)[:, :, :0], q[:, :, :0], k, v).verdict == "held"


def test_held_says_how_much_was_not_judged():
    q, k, v = problem(queries=4)
    seen = numpy.ones((4, 5), bool)
    seen[1:] = False
    found = attest.allclose(plain(q, k, v), q, k, v, mask=seen)
    assert found and found.judged == 2 * 3 and found.unjudged == 2 * 3 * 3
    assert "18 elements are not judged" in repr(found) and "not judged" not in repr(attest.allclose(plain(q, k, v), q, k, v))


def tiled(q, k, v, tile=64, rescales=True, group=None):
    """FlashAttention's forward pass, tile by tile, in float32 with weights rounded to float16."""
    heads, kv_heads, dk = q.shape[1], k.shape[1], q.shape[-1]
    out = numpy.empty((*q.shape[:-1], v.shape[-1]), "float16")
    for b, h in numpy.ndindex(q.shape[0], heads):
        kv = group(h) if group else h // (heads // kv_heads)
        scores = q[b, h].astype("float32") @ k[b, kv].astype("float32").T * numpy.float32(dk**-0.5)
        most, total, sums = -numpy.inf, 0.0, 0.0
        for at in range(0, k.shape[2], tile):
            part = scores[:, at : at + tile]
            now = numpy.maximum(most, part.max(-1, keepdims=True))
            weights = numpy.exp(part - now)
            before = numpy.exp(most - now) if rescales or at == 0 else numpy.float32(1)
            total = total * before + weights.sum(-1, keepdims=True)
            sums = sums * before + weights.astype("float16").astype("float32") @ v[b, kv, at : at + tile].astype("float32")
            most = now
        out[b, h] = sums / total
    return out


def test_a_kernel_in_tiles():
    # Two and more tiles of queries and keys, the last of them partial; two groups of three heads; dk and dv differ.
    q, k, v = problem(batch=2, heads=6, kv_heads=2, queries=100, keys=150, dk=64, dv=32, dtype="float16")
    right = attest.allclose(tiled(q, k, v), q, k, v)
    assert right and right.judged == 2 * 6 * 100 * 32 and right.unjudged == 0, right
    unscaled = attest.allclose(tiled(q, k, v, rescales=False), q, k, v)
    assert not unscaled and unscaled.utilisation > 10
    mixed_up = attest.allclose(tiled(q, k, v, group=lambda h: h % 2), q, k, v)
    assert not mixed_up and mixed_up.index[1] in (1, 2, 3, 4)
    short = attest.allclose(tiled(q, k[:, :, :-1], v[:, :, :-1]), q, k, v, manifest={"arithmetic": {"f16": {"weights": "f16"}}})
    assert not short and short.beyond > 1000


def test_sampled_rows():
    q, k, v = problem(heads=4, kv_heads=4, queries=300, keys=40, dk=8, dv=8)
    found = attest.allclose(plain(q, k, v), q, k, v, rows=64)
    assert found and found.rows_judged == 64 and found.rows == 1200 and "64 of 1,200 rows judged" in repr(found)
    out = plain(q, k, v)
    out[0, :, -1] += 1  # the last row of each head is always among them
    assert not attest.allclose(out, q, k, v, rows=64)


def test_large_answers_make_room():
    q, k, v = problem(heads=8, kv_heads=8, queries=400, keys=3, dk=2, dv=64)
    exact = attest.exact(q, k, v)
    assert exact.lower.nbytes > 1 << 20
    again = attest.exact(q[:, :, :1], k, v)
    assert numpy.array_equal(again.lower, exact.lower[:, :, :1])


@pytest.mark.parametrize(
    "change, line",
    [
        ({"layout": "bhds"}, "layout is 'bhds'; it must be one of 'bhsd', 'bshd'"),
        ({"causal": "left"}, "causal is 'left'; it must be one of"),
        ({"mask_convention": "both"}, "mask_convention is 'both'; it must be one of 'post-scale', 'pre-scale'"),
        ({"scale": 0.0}, "scale"),
        ({"scale": float("nan")}, "scale"),
        ({"mask": numpy.zeros((3, 4), bool)}, "mask"),
        ({"mask": numpy.zeros((3, 5), int)}, "mask is of int64; it must be of one of float64, float32"),
        ({"q": numpy.zeros((1, 2, 3, 4), complex)}, "q is of complex128; it must be of one of float64"),
        ({"q": "q"}, "q is of str"),
        ({"k": numpy.zeros((1, 1, 5, 3), "float32")}, "k"),
        ({"k": numpy.zeros((1, 5, 4), "float32")}, r"k has the shape \[1, 5, 4\] and q \[1, 2, 3, 4\]; all of q, k and v"),
        ({"v": numpy.zeros((1, 1, 4, 3), "float32")}, "v"),
        ({"rows": [(0, 0, 3)]}, r"rows must be a list of rows of the output, \(batch entry, head, query\) each, within"),
        ({"rows": []}, "rows must be"),
        ({"rows": [1]}, "rows must be"),
        ({"out_dtype": "float12"}, "out_dtype"),
        ({"manifest": {"dtypes": ["f64"]}}, 'manifest: "dtypes" has no f32, the dtype of q'),
        ({"manifest": {"arithmetik": {}}}, "arithmetik.*arithmetic"),
    ],
)
def test_mistakes_cost_one_line(change, line):
    q, k, v = problem()
    arguments = {"q": q, "k": k, "v": v, **change}
    with pytest.raises(attest.AttestError, match=line) as raised:
        attest.exact(**arguments)
    assert "\n" not in str(raised.value)
    # The next question is answered.
    assert attest.exact(q, k, v).judged.all()


@pytest.mark.parametrize(
    "request_, line",
    [
        ({"ask": "nothing"}, "nothing"),
        ({}, "a request says under"),
        ({"ask": "bounds", "rowz": [1]}, "rowz"),
        ({"ask": "bounds", "manifest": {"name": "m", "dtypes": ["f32"]}, "rows": [-1]}, "rows"),
        ({"ask": "bounds", "manifest": "none"}, "manifest"),
        ({"ask": "judge", "manifest": {"name": "m", "dtypes": ["f32"]}}, "has no answer to judge"),
        ({"ask": "case", "property": "attention.orakel", "dtype": "f32"}, "attention.orakel is no property"),
        ({"ask": "case", "property": "attention.oracle", "dtype": "f33"}, "dtype"),
        ({"ask": "case", "property": "attention.oracle", "dtype": "f32", "shapes": ["1,2"]}, "shapes"),
    ],
)
def test_requests_that_are_none_are_refused(request_, line):
    from attest._problem import Problem

    asked = Problem(*problem())
    with pytest.raises(attest.AttestError, match=line):
        _service.ask(request_, asked.metadata, asked.tensors)
    with pytest.raises(attest.AttestError, match="the problem"):
        _service.ask({"ask": "bounds"}, {**asked.metadata, "op": "nothing"}, asked.tensors)


def test_one_process_answers_all_and_is_replaced():
    q, k, v = problem()
    attest.exact(q, k, v)
    first = _service._service
    attest.exact(q, k, v)
    assert _service._service is first
    os.kill(first._process.pid, signal.SIGKILL)
    first._process.wait()
    with pytest.raises(attest.AttestError, match="attest's process ended with status -9 before it answered"):
        attest.exact(q, k, v)
    assert attest.exact(q, k, v).judged.all() and _service._service is not first


def test_threads_and_forks():
    problems = [problem(queries=n) for n in range(1, 9)]
    alone = [attest.exact(*p).lower for p in problems]
    together = [None] * len(problems)

    def ask(at):
        together[at] = attest.exact(*problems[at]).lower

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(problems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(numpy.array_equal(a, b) for a, b in zip(alone, together))
    child = os.fork()
    if child == 0:
        same = numpy.array_equal(attest.exact(*problems[0]).lower, alone[0])
        _service._end()
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert numpy.array_equal(attest.exact(*problems[1]).lower, alone[1])


def test_torch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in problem(heads=4, kv_heads=4, queries=9, keys=9))

    def attention(q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v

    assert attest.allclose(attention(q, k, v), q, k, v)
    q, k, v = (x.detach().bfloat16() for x in (q, k, v))
    out = attention(*(x.float() for x in (q, k, v))).bfloat16()
    assert attest.allclose(out, q, k, v) and not attest.allclose(out * 1.05, q, k, v)
    digits = softmax_in_digits(*(x.float().numpy() for x in (q, k, v)))
    assert encloses(attest.exact(q, k, v), digits, 1e-12)
