"""Stands in for the package flash_attn: its functions' signatures, layouts, causal form and windows, computed by torch."""

import torch


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
    deterministic=False, return_attn_probs=False,
):  # fmt: skip
    q, k, v = (array.transpose(1, 2) for array in (q, k, v))
    k, v = (array.repeat_interleave(q.shape[1] // array.shape[1], 1) for array in (k, v))
    scores = q.float() @ k.float().transpose(2, 3) * (q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale)
    corner = scores.shape[-1] - scores.shape[-2]
    left, right = window_size
    for hidden, seen in (
        (causal, lambda all: all.tril(corner)),
        (left >= 0, lambda all: all.triu(corner - left)),
        (right >= 0, lambda all: all.tril(corner + right)),
    ):
        if hidden:
            scores = scores.masked_fill(~seen(torch.ones(scores.shape[-2:], dtype=torch.bool)), -torch.inf)
    out = torch.nan_to_num(torch.softmax(scores, -1)).to(v.dtype).float() @ v.float()
    return out.to(q.dtype).transpose(1, 2)


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False,
    window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None,
):  # fmt: skip
    assert max_seqlen_q >= 1 and max_seqlen_k >= 1 and cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
    out = torch.empty_like(q)
    for index in range(len(cu_seqlens_q) - 1):
        rows = slice(cu_seqlens_q[index], cu_seqlens_q[index + 1])
        keys = slice(cu_seqlens_k[index], cu_seqlens_k[index + 1])
        out[rows] = flash_attn_func(q[None, rows], k[None, keys], v[None, keys], 0.0, softmax_scale, causal, window_size)[0]
    return out
