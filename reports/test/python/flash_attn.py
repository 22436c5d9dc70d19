"""Stands in for the package flash_attn: its functions' signatures, layouts, causal form, windows, caps, slopes and
log-sum-exps, computed by torch."""

import torch


def biased(scores, alibi_slopes, by_columns):
    """[batch, heads, M, N] with what [heads] or [batch, heads] of slopes add. Of causal kernels that is the number of the key
    alone, times the slope, which makes all of a row's scores larger by the slope times its position."""
    queries, keys = scores.shape[-2:]
    key = torch.arange(keys)
    added = key if by_columns else -(torch.arange(queries)[:, None] + keys - queries - key).abs()
    return scores + alibi_slopes.reshape(-1, alibi_slopes.shape[-1])[:, :, None, None] * added


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
    deterministic=False, return_attn_probs=False,
):  # fmt: skip
    q, k, v = (array.transpose(1, 2) for array in (q, k, v))
    k, v = (array.repeat_interleave(q.shape[1] // array.shape[1], 1) for array in (k, v))
    scores = q.float() @ k.float().transpose(2, 3) * (q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale)
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi_slopes is not None:
        assert alibi_slopes.dtype == torch.float32 and alibi_slopes.shape in (scores.shape[1:2], scores.shape[:2])
        scores = biased(scores, alibi_slopes, causal and window_size[0] < 0)
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
    out = out.to(q.dtype).transpose(1, 2)
    lse = torch.logsumexp(scores, -1)
    return (out, torch.where(torch.isneginf(lse), torch.inf, lse), None) if return_attn_probs else out


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False,
    window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None,
):  # fmt: skip
    assert max_seqlen_q >= 1 and max_seqlen_k >= 1 and cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
    out, lse = torch.empty_like(q), torch.empty(q.shape[1], q.shape[0])
    for index in range(len(cu_seqlens_q) - 1):
        slopes = alibi_slopes if alibi_slopes is None or alibi_slopes.ndim == 1 else alibi_slopes[index]
        rows = slice(cu_seqlens_q[index], cu_seqlens_q[index + 1])
        keys = slice(cu_seqlens_k[index], cu_seqlens_k[index + 1])
        one = flash_attn_func(
            q[None, rows], k[None, keys], v[None, keys], 0.0, softmax_scale, causal, window_size, softcap, slopes, False, True
        )
        out[rows], lse[:, rows] = one[0][0], one[1][0]
    return (out, lse, None) if return_attn_probs else out


def flash_attn_with_kvcache(
    q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None, cache_batch_idx=None,
    cache_leftpad=None, block_table=None, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
    rotary_interleaved=True, alibi_slopes=None, num_splits=0, return_softmax_lse=False,
):  # fmt: skip
    assert (k is None) == (v is None) and (k is None or cache_seqlens is not None)
    out, lse = torch.empty_like(q), torch.empty(q.shape[0], q.shape[2], q.shape[1])
    for b in range(q.shape[0]):
        slopes = alibi_slopes if alibi_slopes is None or alibi_slopes.ndim == 1 else alibi_slopes[b]
        if block_table is not None:  # views of the pages, one behind the other
            slots = [(page, slot) for page in block_table[b].tolist() for slot in range(k_cache.shape[1])]
        else:
            row = b if cache_batch_idx is None else int(cache_batch_idx[b])
            slots = [(row, slot) for slot in range(k_cache.shape[1])]
        length = len(slots) if cache_seqlens is None else int(cache_seqlens[b])
        for t in range(0 if k is None else k.shape[1]):
            k_cache[slots[length]], v_cache[slots[length]] = k[b, t], v[b, t]
            length += 1
        first = 0 if cache_leftpad is None else int(cache_leftpad[b])
        if first == length:
            out[b], lse[b] = 0, torch.inf
            continue
        keys, values = (torch.stack([cache[at] for at in slots[first:length]])[None] for cache in (k_cache, v_cache))
        one = flash_attn_func(
            q[b : b + 1], keys, values, 0.0, softmax_scale, causal, window_size, softcap, slopes, False, True
        )
        out[b], lse[b] = one[0][0], one[1][0]
    return (out, lse) if return_softmax_lse else out
