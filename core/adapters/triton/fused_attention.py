"""A fused attention in Triton as a kernel under test, on a laptop too: without a GPU in Triton's interpreter.

    TRITON_INTERPRET=1 attest check --kernel 'exec:python3 fused_attention.py' --dtype f32 --property attention.oracle

The algorithm is FlashAttention-2's forward pass (Dao 2023): a program for each tile of queries goes over the tiles of keys
with a running maximum and rescaled sums, in base 2. Written for this project as an example to copy; what it takes stands
in its manifest, so that nothing else is asked of it. `--tile-queries` and `--tile-keys` set its tiles.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import torch
    import triton
    import triton.language as tl
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"Triton cannot be imported by {sys.executable}: {type(error).__name__}: {error}")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@triton.jit
def forward(
    q, k, v, out, lse,
    scale, queries, keys, group, offset,
    q_head, q_row, k_head, k_row, v_head, v_row, out_head, out_row,
    width: tl.constexpr, causal: tl.constexpr, tile_queries: tl.constexpr, tile_keys: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1)
    rows = tile * tile_queries + tl.arange(0, tile_queries)
    columns = tl.arange(0, width)
    # Offsets of large tensors do not fit into 32 bits.
    kv_head = (head // group).to(tl.int64)
    wide_head = head.to(tl.int64)
    q_at = q + wide_head * q_head + rows[:, None].to(tl.int64) * q_row + columns[None, :]
    q_tile = tl.load(q_at, mask=rows[:, None] < queries, other=0.0)
    log2_scale = scale * 1.4426950408889634
    most = tl.full([tile_queries], float("-inf"), tl.float32)
    total = tl.zeros([tile_queries], tl.float32)
    sums = tl.zeros([tile_queries, width], tl.float32)
    # The last key that a row of this tile sees, and one more.
    end = keys
    if causal:
        end = tl.minimum(keys, tl.maximum((tile + 1) * tile_queries + offset, 0))
    for first in range(0, end, tile_keys):
        at = first + tl.arange(0, tile_keys)
        k_tile = tl.load(
            k + kv_head * k_head + at[None, :].to(tl.int64) * k_row + columns[:, None], mask=at[None, :] < keys, other=0.0
        )
        scores = tl.dot(q_tile, k_tile, input_precision="ieee") * log2_scale
        visible = at[None, :] < keys
        if causal:
            visible = visible & (at[None, :] <= rows[:, None] + offset)
        scores = tl.where(visible, scores, float("-inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        # A row that has seen no key yet subtracts nothing: -inf - (-inf) is no number.
        shift = tl.where(now == float("-inf"), 0.0, now)
        weights = tl.exp2(scores - shift[:, None])
        rescale = tl.exp2(most - shift)
        v_tile = tl.load(
            v + kv_head * v_head + at[:, None].to(tl.int64) * v_row + columns[None, :], mask=at[:, None] < keys, other=0.0
        )
        total = total * rescale + tl.sum(weights, 1)
        sums = sums * rescale[:, None] + tl.dot(weights.to(v_tile.dtype), v_tile, input_precision="ieee")
        most = now
    # A row that sees no key is zero, and its log-sum-exp -inf.
    seen = total > 0
    answer = sums / tl.where(seen, total, 1.0)[:, None]
    out_at = out + wide_head * out_head + rows[:, None].to(tl.int64) * out_row + columns[None, :]
    tl.store(out_at, answer.to(out.dtype.element_ty), mask=rows[:, None] < queries)
    log_sum = tl.where(seen, most * 0.6931471805599453 + tl.log(tl.where(seen, total, 1.0)), float("-inf"))
    tl.store(lse + wide_head * queries + rows, log_sum, mask=rows < queries)


def attention(q, k, v, scale=1.0, causal="none", want_lse=False, tile_queries=16, tile_keys=16):
    batch, heads, queries, width = q.shape
    kv_heads, keys = k.shape[1:3]
    device = q.device if INTERPRETED or q.is_cuda else torch.device("cuda")
    q, k, v = (x.to(device).contiguous() for x in (q, k, v))
    out = torch.empty_like(q)
    lse = torch.empty(batch, heads, queries, dtype=torch.float32, device=device)
    if out.numel() > 0:
        forward[(triton.cdiv(queries, tile_queries), batch * heads)](
            q, k, v, out, lse,
            scale, queries, keys, heads // kv_heads, keys - queries if causal == "bottom-right" else 0,
            q.stride(1), q.stride(2), k.stride(1), k.stride(2), v.stride(1), v.stride(2), out.stride(1), out.stride(2),
            width, causal != "none", tile_queries, tile_keys,
        )  # fmt: skip
    return (out.cpu(), lse.double().cpu()) if want_lse else out.cpu()


def manifest(tile_queries, tile_keys):
    # Sums in f32; weights are rounded to V's dtype before their product with V, and summed before that.
    sums = {
        "score_sums": "f32", "accumulate": "f32", "weights_in_denominator": False, "base2": True, "folded_exp2": False,
        "split_merge": False, "normalise_first": False, "block": tile_keys, "max": "running", "bias_in_sum": False,
    }  # fmt: skip
    # The interpreter has bf16 as whole numbers and multiplies these (Triton's documentation names the limit; findings.md
    # has what it answers).
    dtypes = ["f32", "f16"] if INTERPRETED else ["f32", "f16", "bf16"]
    return {
        "name": "fused attention in Triton" + (", interpreted" if INTERPRETED else ""),
        "version": triton.__version__,
        "dtypes": dtypes,
        "arithmetic": {dtype: sums for dtype in dtypes},
        "masks": [],
        "causal": ["top-left", "bottom-right"],
        "grouped_query": True,
        "lse": True,
        "fully_masked_row": "zero",
        "limits": {"head_dims": [16, 32, 64, 128], "value_dim": "head_dim"},
        "tiles": {"queries": [tile_queries], "keys": [tile_keys]},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="fused_attention.py")
    parser.add_argument("--tile-queries", type=int, default=16)
    parser.add_argument("--tile-keys", type=int, default=16)
    tiles = vars(parser.parse_args())

    def served(q, k, v, scale=1.0, causal="none", want_lse=False):
        return attention(q, k, v, scale, causal, want_lse, **tiles)

    attest_adapter.serve(served, manifest(**tiles), framework="torch")
