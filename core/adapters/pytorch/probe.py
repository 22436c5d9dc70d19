"""What the manifests of pytorch_kernels.py rest on, found by trying: prints each fact, exits 1 if one does not hold.

Run it when PyTorch changes: a line that says NO is a manifest to be written anew.
"""

import math

import torch

from facts import fact, raises, tell

sdpa = torch.nn.functional._scaled_dot_product_attention


def qkv(*, m=3, n=5, d=4, dtype=torch.float32):
    return (torch.randn(1, 2, m, d).to(dtype), torch.randn(1, 2, n, d).to(dtype), torch.randn(1, 2, n, d).to(dtype))


def equal(a, b):
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


@fact("sdpa has no f16 on a CPU")
def _():
    return raises(lambda: sdpa(*qkv(dtype=torch.float16)))


@fact("sdpa has no scale parameter")
def _():
    return raises(lambda: sdpa(*qkv(), scale=1.0))


@fact("sdpa takes f64, f32 and bf16, boolean and additive masks")
def _():
    return all(sdpa(*qkv(dtype=t), torch.ones(3, 5, dtype=u))[0].dtype == t
               for t in (torch.float64, torch.float32, torch.bfloat16) for u in (torch.bool, t))


@fact("sdpa's causal form is top-left")
def _():
    q, k, v = qkv()
    return equal(sdpa(q, k, v, None, 0.0, False, True)[0], sdpa(q, k, v, torch.ones(3, 5, dtype=torch.bool).tril())[0])


@fact("sdpa refuses a mask beside the causal form")
def _():
    return raises(lambda: sdpa(*qkv(), torch.ones(3, 5, dtype=torch.bool), 0.0, False, True))


@fact("sdpa has no grouped queries")
def _():
    return raises(lambda: sdpa(torch.randn(1, 4, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)))


@fact("sdpa: a fully masked row is NaN")
def _():
    return sdpa(*qkv(), torch.zeros(3, 5, dtype=torch.bool))[0].isnan().all()


@fact("sdpa: no keys at all give zeros, not NaN")
def _():
    return (sdpa(*qkv(n=0))[0] == 0).all()


@fact("sdpa: a hidden key whose score overflows makes the row NaN")
def _():
    q, k, v = qkv()
    k[..., 4, :] = 3e38
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 4] = False
    return sdpa(q.abs() * 100, k, v, mask)[0].isnan().all()


@fact("sdpa multiplies q by 1/sqrt(dk), itself rounded to q's dtype")
def _():
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        q, k, v = qkv(d=7, dtype=dtype)
        q_scaled = q * torch.tensor(1 / math.sqrt(7), dtype=torch.float64).to(dtype)
        weights = torch.softmax(torch.bmm(q_scaled[0], k[0].transpose(1, 2)), -1)
        if not torch.equal(sdpa(q, k, v, None, 0.0, True)[1][0], weights):
            return False
    return True


def one_product(terms):
    """q.k of ones, as sdpa multiplies."""
    ones = torch.ones(1, 1, terms).bfloat16()
    return torch.bmm(ones, ones.transpose(1, 2)).item()


@fact("bf16: q.k is summed in bf16 where a product has fewer than 400 multiplications, else in more (ones: 256, 400)")
def _():
    return one_product(399) == 256 and one_product(400) == 400


def summed_in_bf16(weights, values):
    """weights @ values with every product and every partial sum rounded to bf16."""
    total = torch.zeros(weights.shape[0], values.shape[1]).bfloat16()
    for j in range(weights.shape[1]):
        total = total + weights[:, j:j + 1] * values[j:j + 1]
    return total


# Products of more multiplications go to oneDNN where the CPU has AVX-512.
ONEDNN_FROM = 16**3


@fact("bf16: sums over keys have every product and partial sum rounded to bf16, in products up to 16^3 multiplications")
def _():
    return all(torch.equal(torch.bmm(w[None], v[None])[0], summed_in_bf16(w, v)) for w, v in
               ((torch.rand(m, n).bfloat16(), torch.randn(n, d).bfloat16())
                for m, n, d in ((1, 3, 2), (1, 400, 1), (20, 20, 10), (16, 16, 16))))


def large_products_sum_in_bf16():
    """True: as the small ones; False: in f32, rounded once; None: neither."""
    w, v = torch.rand(20, 30).bfloat16(), torch.randn(30, 40).bfloat16()
    assert 20 * 30 * 40 > ONEDNN_FROM
    found, wide = torch.bmm(w[None], v[None])[0], w.double() @ v.double()
    if torch.equal(found, summed_in_bf16(w, v)):
        return True
    # One rounding to 8 bits, of a sum whose own error is far smaller.
    return False if ((found.double() - wide).abs() <= wide.abs() * 2.0**-8 * 1.001 + 1e-5).all() else None


@fact("bf16: in larger products too, unless oneDNN has bf16 for the CPU (AVX-512): then they sum in f32 and round once")
def _():
    return large_products_sum_in_bf16() is not None


@fact("bf16: products below the normal numbers are rounded, not flushed")
def _():
    least = 2.0**-133
    half = torch.full((1, 1, 1), 0.5).bfloat16()
    found = [torch.bmm(half, torch.tensor([[[n * least]]]).bfloat16()).item() / least for n in (1, 3, 5, 6)]
    return found == [0, 2, 2, 3]


@fact("bf16: 2048 ones on one half, q = 0: 0.125 where 0.5 is right, and 0.5 where oneDNN multiplies")
def _():
    v = torch.zeros(1, 1, 2048, 8).bfloat16()
    v[:, :, 1024:] = 1
    out = sdpa(torch.zeros(1, 1, 1, 8).bfloat16(), torch.zeros(1, 1, 2048, 8).bfloat16(), v)[0]
    return (out == (0.125 if large_products_sum_in_bf16() else 0.5)).all()


@fact("bf16: softmax works in f32 and is rounded once")
def _():
    x = torch.randn(50, 3000).bfloat16()
    return torch.equal(torch.softmax(x, -1), torch.softmax(x.float(), -1).bfloat16())


@fact("f32: exp is within 1 ulp, down to the smallest subnormal")
def _():
    worst = 0.0
    for low, high in ((-1.0, 0.0), (-87.0, -1.0), (-104.0, -87.0)):
        x = torch.rand(1_000_000) * (high - low) + low
        exact = torch.exp(x.double())
        ulp = torch.exp2(torch.floor(torch.log2(exact)) - 23).clamp(min=2.0**-149)
        worst = max(worst, ((torch.exp(x).double() - exact).abs() / ulp).max().item())
    return worst <= 1.0


@fact("softmax multiplies by the reciprocal of the sum")
def _():
    x = torch.randn(100000, 2)
    weights = torch.exp(x - x.max(-1, keepdim=True)[0])
    return torch.equal(torch.softmax(x, -1), weights * (1 / (weights[:, :1] + weights[:, 1:])))


@fact("subnormal results are kept")
def _():
    return torch.softmax(torch.tensor([[0.0, -100.0]]), -1)[0, 1] > 0


@fact("a mask beside nn.MultiheadAttention's scores is the sum's first term")
def _():
    big = torch.full((1, 1, 1), 2.0**24)
    return torch.baddbmm(big, torch.ones(1, 1, 8), torch.ones(1, 8, 1))[0, 0, 0] == 2.0**24


def module(heads=2, **options):
    m = torch.nn.MultiheadAttention(8, heads, batch_first=True, **options)
    m.in_proj_bias is None or torch.nn.init.normal_(m.in_proj_bias)
    return m.eval()


def goes_native(m, x):
    """Whether the module calls the native function."""
    called = []
    native = torch._native_multi_head_attention

    def watch(*arguments, **named):
        called.append(True)
        return native(*arguments, **named)

    torch._native_multi_head_attention = watch
    try:
        m(x, x, x, need_weights=False)
        return bool(called)
    finally:
        torch._native_multi_head_attention = native


@fact("the fast path is taken for self-attention in evaluation, with an even number of heads, and not in training")
def _():
    x = torch.randn(2, 5, 8)
    return goes_native(module(), x) and not goes_native(module(heads=1), x) and not goes_native(module().train(), x)


@fact("the fast path without biases raises an error")
def _():
    x = torch.randn(2, 5, 8)
    return raises(lambda: module(bias=False)(x, x, x, need_weights=False))


@fact("the fast path has no f16 on a CPU")
def _():
    x = torch.randn(2, 5, 8).half()
    return raises(lambda: module().half()(x, x, x, need_weights=False))


@fact("nn.MultiheadAttention: a fully masked row is NaN")
def _():
    x = torch.randn(2, 5, 8)
    return module().train()(x, x, x, need_weights=False, attn_mask=torch.ones(5, 5, dtype=torch.bool))[0].isnan().all()


tell()
