"""More of PyTorch 2's attention as kernels under test on a CPU, one a name:  flex_kernels.py flex | flex-compiled | nested

flex            torch.nn.attention.flex_attention as its Python code computes it
flex-compiled   the same through torch.compile: inductor writes C++ for it, and needs a compiler for that
nested          scaled_dot_product_attention over nested tensors (layout torch.jagged), whose batch entries have lengths of
                their own: here a batch's own entry beside one of other numbers and another length

    attest check --kernel 'exec:python3 flex_kernels.py flex-compiled' --timeout 120 --property attention.oracle

torch.nn.attention.varlen has nothing for CPUs. What is compiled is made for kinds of shapes, each in some seconds, when
the first of its kind comes: that needs --timeout, and the manifest keeps to few kinds.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import torch
    import torch.nn.attention.flex_attention as flex
    from attest._calls import flexible
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"PyTorch 2 cannot be imported by {sys.executable}: {type(error).__name__}: {error}")


def top_left(score, batch, head, i, j):
    return torch.where(j <= i, score, -torch.inf)


def compiled():
    # Beyond the limit of versions it would go on uncompiled, and say so only in a warning.
    torch._dynamo.config.recompile_limit = 512
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    function = torch.compile(flex.flex_attention, dynamic=True)

    def attention(q, k, v, scale=None, causal="none"):
        return function(q, k, v, score_mod=None if causal == "none" else top_left, scale=scale)

    return attention


def nested(q, k, v, scale=None, q_lengths=None, kv_lengths=None):
    def own(x, lengths):
        """Each entry's own tokens, [tokens, heads, width]."""
        entries = x.transpose(1, 2).unbind(0)
        return entries if lengths is None else [entry[:n] for entry, n in zip(entries, lengths.tolist())]

    def beside_another(x, length, lengths):
        """Nested of [tokens, heads, width]: a batch's entries, and after each one that is longer or shorter."""
        entries = own(x, lengths)
        other = torch.ones(length, *entries[0].shape[1:], dtype=x.dtype)
        pairs = [part for entry in entries for part in (entry, other)]
        return torch.nested.nested_tensor(pairs, layout=torch.jagged).transpose(1, 2)

    keys = k.shape[2] + 3
    inputs = beside_another(q, 2, q_lengths), beside_another(k, keys, kv_lengths), beside_another(v, keys, kv_lengths)
    answers = torch.nn.functional.scaled_dot_product_attention(*inputs, scale=scale).unbind()[::2]
    out = torch.zeros(*q.shape[:3], v.shape[3], dtype=q.dtype)
    for entry, answer in zip(out, answers):
        entry[:, : answer.shape[1]] = answer
    return out


# q and k times the root of the scale, scores and weights are tensors of the dtype, where sdpa over plain tensors has them in
# f32.
NESTED = {"f64": {}, "f32": {}, **{
    dtype: {"prescaled_q": dtype, "stored": {"raw": dtype, "scaled": dtype, "biased": dtype}, "weights": dtype,
            "score_sums": "f32", "accumulate": "f32"} for dtype in ("f16", "bf16")}}
# The instruction of AVX-512 that multiplies bf16 reads subnormal numbers as zero, and writes zero for them.
NESTED["bf16"].update(flushes_inputs=True, flushes_subnormals=True)

# Scores are f32 and f64, and tanh of these errs by at most 1 ulp, whether it is SLEEF's or MKL's: of f32 0.52 in all.
COMMON = {"version": torch.__version__, "mask_conventions": ["post-scale"]}
KERNELS = {
    "flex": (lambda: flexible(flex.flex_attention), {
        **COMMON, "name": "flex_attention", "dtypes": ["f64", "f32", "f16", "bf16"], "causal": ["top-left"],
        "variants": {"window": {"alignment": ["top-left", "bottom-right"]},
                     "chunk": {"alignment": ["top-left", "bottom-right"]},
                     "lengths": {}, "packed": {}, "left_pad": {}, "sink": {}, "softcap": {},
                     # The distance times the slope, in the format of scores.
                     "alibi": {"per_batch": True, "alignment": ["top-left", "bottom-right"]},
                     # Scores times the factors; of values there is nothing to multiply.
                     "descale": {"tensors": ["q", "k"], "per_batch": True, "blocks": "any", "applied": "products"}},
        "arithmetic": {"tanh": {"ulp": 1}},
        "grouped_query": True,
        "fully_masked_row": "zero", "strides": True,
        "limits": {"min_queries": 1, "min_keys": 1}}),
    "flex-compiled": (compiled, {
        **COMMON, "name": "flex_attention, compiled", "dtypes": ["f32", "f16", "bf16"], "masks": [],
        "causal": ["top-left"],
        "limits": {"head_dims": [16], "value_dim": "head_dim", "min_queries": 2, "min_keys": 2, "max_queries": 64,
                   "max_keys": 64}}),
    "nested": (lambda: nested, {
        **COMMON, "name": "scaled_dot_product_attention of nested tensors", "dtypes": ["f64", "f32", "f16", "bf16"],
        "arithmetic": NESTED, "masks": [], "variants": {"lengths": {"padding": "zero"}}, "limits": {"min_queries": 1, "min_keys": 1}}),
}  # fmt: skip


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in KERNELS:
        sys.exit(f"flex_kernels.py: the kernel is {name!r}; it must be one of {', '.join(KERNELS)}")
    torch.set_num_threads(1)
    make, manifest = KERNELS[name]
    attest_adapter.serve(make(), manifest, framework="torch")
