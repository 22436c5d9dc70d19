"""Stands in for the module flash_attn_interface, FlashAttention 3: its functions' signatures, layouts, causal form,
windows, chunks, caps, factors and log-sum-exps, computed by torch."""

import torch


def chunk_of(positions, attention_chunk):
    """The number of the chunk, rounded down, so that positions before the keys are in one without any."""
    return torch.div(positions, attention_chunk, rounding_mode="floor")


def of_heads(descale, q, k):
    """[batch, heads, 1, 1] of what batch entries and key-value heads have; 1 in 16 bits, where nobody looks at it."""
    if descale is None or q.element_size() > 1:
        return torch.ones(1, 1, 1, 1)
    assert descale.dtype == torch.float32 and descale.shape == k.shape[:2]
    return descale.repeat_interleave(q.shape[1] // k.shape[1], 1)[:, :, None, None]


def flash_attn_func(
    q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
    window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0,
    return_attn_probs=False,
):  # fmt: skip
    q, k, v = (array.transpose(1, 2) for array in (q, k, v))
    of_q, of_k, of_v = (of_heads(descale, q, k) for descale in (q_descale, k_descale, v_descale))
    k, v = (array.float().repeat_interleave(q.shape[1] // array.shape[1], 1) for array in (k, v))
    scores = q.float() @ k.transpose(2, 3) * (q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale)
    scores = scores * (of_q * of_k)
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    queries, keys = scores.shape[-2:]
    position, key = torch.arange(queries)[:, None] + keys - queries, torch.arange(keys)
    left, right = window_size
    hidden = (key > position) & bool(causal)
    if left >= 0:
        hidden |= key < position - left
    if right >= 0:
        hidden |= key > position + right
    if attention_chunk > 0:
        hidden |= chunk_of(key, attention_chunk) != chunk_of(position, attention_chunk)
    scores = scores.masked_fill(hidden, -torch.inf)
    out = torch.nan_to_num(torch.softmax(scores, -1)).to(q.dtype).float() @ v * of_v
    out = out.to(q.dtype if q.element_size() > 1 else torch.bfloat16).transpose(1, 2)
    return (out, torch.logsumexp(scores, -1)) if return_attn_probs else out


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None, seqused_k=None, softmax_scale=None,
    causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None, window_size=(-1, -1), attention_chunk=0,
    softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0, return_attn_probs=False,
):  # fmt: skip
    assert max_seqlen_q >= 1 and max_seqlen_k >= 1 and cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
    out = torch.empty_like(q, dtype=q.dtype if q.element_size() > 1 else torch.bfloat16)
    lse = torch.empty(q.shape[1], q.shape[0])
    assert all(of is None or of.shape[0] == len(cu_seqlens_q) - 1 for of in (q_descale, k_descale, v_descale))
    for index in range(len(cu_seqlens_q) - 1):
        rows = slice(cu_seqlens_q[index], cu_seqlens_q[index + 1])
        keys = slice(cu_seqlens_k[index], cu_seqlens_k[index + 1])
        factors = (None if of is None else of[index : index + 1] for of in (q_descale, k_descale, v_descale))
        one = flash_attn_func(
            q[None, rows], k[None, keys], v[None, keys], softmax_scale, causal, None, *factors, window_size=window_size,
            attention_chunk=attention_chunk, softcap=softcap, return_attn_probs=True,
        )  # fmt: skip
        out[rows], lse[:, rows] = one[0][0], one[1][0]
    return (out, lse) if return_attn_probs else out
