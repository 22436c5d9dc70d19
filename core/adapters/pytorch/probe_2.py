"""What the manifests of pytorch_kernels.py rest on under PyTorch 2, found by trying: prints each fact, exits 1 if one does
not hold. probe.py is the same of PyTorch 1.13.
"""

import torch

from facts import fact, raises, tell

sdpa = torch.nn.functional.scaled_dot_product_attention
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def qkv(*, m=3, n=5, d=4, dv=4, dtype=torch.float32):
    return tuple(torch.randn(1, 2, *shape).to(dtype) for shape in ((m, d), (n, d), (n, dv)))


@fact("sdpa takes f64, f32, f16 and bf16, boolean and additive masks")
def _():
    return all(sdpa(*qkv(dtype=t), torch.ones(3, 5, dtype=u)).dtype == t for t in DTYPES for u in (torch.bool, t))


@fact("sdpa's causal form is top-left")
def _():
    q, k, v = qkv()
    return torch.equal(sdpa(q, k, v, is_causal=True), sdpa(q, k, v, torch.ones(3, 5, dtype=torch.bool).tril()))


@fact("sdpa refuses a mask beside the causal form where v has another width than q, and takes both where it has the same")
def _():
    mask = torch.ones(3, 5, dtype=torch.bool)
    return raises(lambda: sdpa(*qkv(dv=6), mask, is_causal=True)) and not raises(lambda: sdpa(*qkv(), mask, is_causal=True))


@fact("sdpa: over no keys the output is NaN where the sum of the queries overflows")
def _():
    _, k, v = qkv(n=0)
    full = (torch.full((1, 2, 3, 4), share * torch.finfo(torch.float32).max) for share in (0.01, 0.5))
    return [bool(sdpa(q, k, v).isnan().all()) for q in full] == [False, True]


@fact("sdpa: a fully masked row is zero, and so is the output for no keys, whichever back end computes")
def _():
    return all(
        (sdpa(*qkv(dtype=t, dv=dv), torch.zeros(3, 5, dtype=torch.bool)) == 0).all() and (sdpa(*qkv(n=0, dv=dv)) == 0).all()
        for t in DTYPES
        for dv in (4, 6)
    )


math_path = torch._scaled_dot_product_attention_math


@fact("sdpa's math path drops by a mask of what is kept, after the softmax, and divides the values by 1 - p before the sum")
def _():
    q, k, v = qkv(dtype=torch.float64)
    keep = torch.rand(1, 1, 3, 5) < 0.6
    weights = torch.softmax(q @ k.mT * 0.5, -1) * keep
    close = torch.allclose(math_path(q, k, v, None, 0.3, False, keep)[0], weights @ v / 0.7, rtol=1e-12, atol=1e-14)
    # 2^127 / 0.5 is no number of f32, and a quarter of it would be.
    q, k, v = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 4, 1), torch.tensor([2.0**127, 0, 0, 0]).view(1, 1, 4, 1)
    return close and math_path(q, k, v, None, 0.5, False, v[..., 0] > 0)[0].isinf().all()


@fact("sdpa's math path looks at the mask of dropout beside a rate alone, of which 2^-1074 changes nothing else")
def _():
    q, k, v = qkv()
    keep = torch.zeros(1, 1, 3, 5, dtype=torch.bool)
    all_kept = math_path(q, k, v, None, 2.0**-1074, False, ~keep)[0]
    none = math_path(q, k, v, None, 2.0**-1074, False, keep)[0]
    unasked = math_path(q, k, v, None, 0.0, False, keep)[0]
    return (none == 0).all() and torch.equal(all_kept, unasked)


def module(dtype=torch.float32, heads=2, **options):
    return torch.nn.MultiheadAttention(8, heads, batch_first=True, dtype=dtype, **options).eval()


def goes_native(m, x, mask=None):
    """Whether the module calls the native function."""
    called = []
    native = torch._native_multi_head_attention

    def watch(*arguments, **named):
        called.append(True)
        return native(*arguments, **named)

    torch._native_multi_head_attention = watch
    try:
        m(x, x, x, need_weights=False, attn_mask=mask)
        return bool(called)
    finally:
        torch._native_multi_head_attention = native


HIDES_ALL = torch.ones(5, 5, dtype=torch.bool)


@fact("the fast path is taken for self-attention in evaluation with biases, an even number of heads, and masks of truth values")
def _():
    x = torch.randn(2, 5, 8)
    takes = all(goes_native(module(t), x.to(t), mask) for t in DTYPES for mask in (None, HIDES_ALL.triu(1)))
    others = (module(heads=1), module(bias=False), module().train())
    return takes and not any(goes_native(m, x) for m in others) and not goes_native(module(), x, torch.zeros(5, 5))


@fact("nn.MultiheadAttention: a fully masked row is NaN on the fast path and zero before the output projection elsewhere")
def _():
    x = torch.randn(2, 5, 8)
    m = module()
    fast = m(x, x, x, need_weights=False, attn_mask=HIDES_ALL)[0]
    slow = m.train()(x, x, x, need_weights=False, attn_mask=HIDES_ALL)[0]
    return fast.isnan().all() and torch.equal(slow, m.out_proj.bias.expand_as(slow))


@fact("nn.MultiheadAttention reshapes no mask by heads of no elements")
def _():
    x, none = torch.randn(2, 5, 8), torch.randn(2, 0, 8)
    return raises(lambda: module()(x, none, none, need_weights=False, attn_mask=torch.ones(4, 5, 0, dtype=torch.bool)))


def first_column(dtype, bias):
    """A module whose queries, keys and values are the sum of a token's two numbers, plus `bias`."""
    m = torch.nn.MultiheadAttention(2, 2, batch_first=True, dtype=dtype).eval()
    m.in_proj_weight.fill_(1)
    m.in_proj_bias.fill_(bias)
    m.out_proj.weight.copy_(torch.eye(2))
    m.out_proj.bias.zero_()
    return m


@fact("the fast path keeps scores in f16: 256 * 256 overflows, and the answer is NaN where it is 256 in training")
def _():
    x, m = torch.tensor([[[256.0, 0.0]]]).half(), first_column(torch.float16, 0)
    fast, slow = m(x, x, x, need_weights=False)[0], m.train()(x, x, x, need_weights=False)[0]
    return fast.isnan().all() and (slow == 256).all()


@fact("the fast path rounds a projection before it adds the bias: 1 + 2^-9 - 1 is 0 in bf16, and 2^-9 in training")
def _():
    x, m = torch.tensor([[[1, 2.0**-9]]]).bfloat16(), first_column(torch.bfloat16, -1)
    fast, slow = m(x, x, x, need_weights=False)[0], m.train()(x, x, x, need_weights=False)[0]
    return (fast == 0).all() and (slow == 2.0**-9).all()


@fact("nn.Linear does so, too, for an input in another memory layout than row-major")
def _():
    weight, bias = torch.ones(1, 2).bfloat16(), torch.full((1,), -1).bfloat16()
    x = torch.tensor([[[1, 2.0**-9], [0, 0]], [[0, 0], [0, 0]]]).bfloat16()
    token_major = x.transpose(0, 1).contiguous().transpose(0, 1)
    linear = torch.nn.functional.linear
    return linear(x, weight, bias)[0, 0, 0] == 2.0**-9 and linear(token_major, weight, bias)[0, 0, 0] == 0


tell()
