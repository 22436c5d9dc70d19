"""The gradients of torch.nn.MultiheadAttention, as PyTorch's autograd has them:  mha_gradients.py weights | math

    attest check --kernel 'exec:python3 mha_gradients.py weights' --property 'backward.*'

weights  with need_weights, where the module computes the attention itself (F.multi_head_attention_forward): products by
         baddbmm, which begin with the mask, and a softmax
math     without, where scaled_dot_product_attention does, here by its back end math

The module projects q, k and v, and its output. Here the projections are left out, as an identity would be that did not
multiply infinity by 0: what is left is the attention of its heads, which stand side by side in the rows of q, k and v.
Forward passes with projections are pytorch_kernels.py's.

Written for PyTorch 2.5 and later; the project has run it with PyTorch 2.13 on a CPU.
"""

import os
import sys
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402
import sdpa_backends  # noqa: E402

# Every step is a tensor of the input's dtype; of 16 bits the gradients by q would be rounded once before the scale and
# once after, for which there is no name.
_WEIGHTS = {"normalise_first": True, "bias_in_sum": True, "flushes_inputs": True}


def arithmetic_of(path, dtype):
    if path == "math":
        return {**sdpa_backends.BACKENDS["math"]["arithmetic"][dtype],
                **sdpa_backends.GRADIENTS["math"]["arithmetic"][dtype]}
    return {**_WEIGHTS, "prescaled_q": dtype, "backward": sdpa_backends.GRADIENTS["math"]["arithmetic"][dtype]["backward"]}


def manifest_of(path, version):
    dtypes = ["f64", "f32"] if path == "weights" else ["f64", "f32", "f16", "bf16"]
    terms = dict(sdpa_backends.GRADIENTS["math"]["terms"])
    if path == "weights":
        del terms["masked_row"]
    return {
        "name": f"torch.nn.MultiheadAttention, {path}, and its gradients", "version": version, "dtypes": dtypes,
        "arithmetic": {dtype: arithmetic_of(path, dtype) for dtype in dtypes},
        "operations": ["attention", "attention_backward"], "backward": terms, "masks": ["additive", "bool"],
        "mask_conventions": ["post-scale"], "causal": ["top-left", "bottom-right"], "scale": "inv-sqrt-dk",
        "fully_masked_row": "nan" if path == "weights" else "zero", "strides": True,
        "limits": {"value_dim": "head_dim", "min_keys": 1},
    }  # fmt: skip


def attn_mask_of(torch, mask, causal, batch, heads, queries, keys):
    """As the module takes it: [batch*heads, M, N], truth values hide."""
    hidden = None
    if causal != "none":
        hidden = torch.ones(queries, keys, dtype=torch.bool).triu(1 if causal == "top-left" else 1 + keys - queries)
    if mask is None:
        return hidden
    if mask.dtype == torch.bool:
        mask = ~mask if hidden is None else ~mask | hidden
    elif hidden is not None:
        mask = mask.masked_fill(hidden, float("-inf"))
    return mask.expand(batch, heads, queries, keys).reshape(batch * heads, queries, keys)


def attention_by(torch, path):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    made = {}

    def module_of(heads, head_dim, dtype):
        key = heads, head_dim, dtype
        if key not in made:
            if len(made) >= 256:
                made.clear()
            module = torch.nn.MultiheadAttention(heads * head_dim, heads, bias=False, batch_first=True, dtype=dtype)
            made[key] = module.requires_grad_(False)
        return made[key]

    def joined(x):
        return x.transpose(1, 2).flatten(2)

    def attention(q, k, v, mask=None, causal="none"):
        batch, heads, queries, head_dim = q.shape
        if 0 in (*q.shape, *k.shape):
            raise attest_adapter.Unsupported("the module reshapes, and a length that is left open is any beside one of 0")
        module = module_of(heads, head_dim, q.dtype)
        attn_mask = attn_mask_of(torch, mask, causal, batch, heads, queries, k.shape[2])
        without_projections = mock.patch.object(torch.nn.functional, "linear",
                                                lambda x, weight, bias=None: x.contiguous())
        with sdpa_kernel([SDPBackend.MATH]), without_projections:
            out, _ = module(joined(q), joined(k), joined(v), need_weights=path == "weights", attn_mask=attn_mask)
        return out.unflatten(2, (heads, head_dim)).transpose(1, 2)

    return attention


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("weights", "math"):
        sys.exit(f"mha_gradients.py: the path is {' '.join(sys.argv[1:])!r}; it must be weights or math")
    path = sys.argv[1]
    try:
        import torch
    except Exception as error:  # a broken installation raises other things than ImportError
        attest_adapter.refuse(f"PyTorch cannot be imported by {sys.executable}: {type(error).__name__}: {error}")
    reason = sdpa_backends.why_not_served("math", "cpu", torch, backward=True)
    if reason:
        attest_adapter.refuse(reason)
    torch.set_num_threads(1)
    attest_adapter.serve(attention_by(torch, path), manifest_of(path, torch.__version__), backward="autograd",
                         framework="torch")


if __name__ == "__main__":
    main()
