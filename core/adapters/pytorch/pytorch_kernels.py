"""PyTorch's attention as kernels under test, of 1.13 or of 2:  pytorch_kernels.py sdpa | mha | mha-fast

sdpa      torch.nn.functional.scaled_dot_product_attention, in 1.13 its forerunner of one underscore more: what users call,
          which chooses among its back ends by itself (sdpa_backends.py has each alone)
mha       torch.nn.MultiheadAttention as its Python code computes it (F.multi_head_attention_forward)
mha-fast  torch.nn.MultiheadAttention through the native fast path (torch._native_multi_head_attention)

The manifests state what probe.py (1.13) and probe_2.py (2) found them to do on a CPU, and for sums what PyTorch's users
may expect: f32 for 16-bit inputs.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

try:
    import torch
except Exception as error:  # a broken installation raises other things than ImportError
    attest_adapter.refuse(f"PyTorch cannot be imported by {sys.executable}: {type(error).__name__}: {error}")

_VERSION = torch.__version__
_IS_2 = not _VERSION.startswith("1.")

# In 1.13 q is scaled before the product (prescaled_q): divided by sqrt(dk) in Python code, multiplied by 1/sqrt(dk), itself
# rounded to q's dtype, in sdpa's own. softmax takes the row's maximum, exponentiates with SLEEF
# (1.0 ulp), sums, and multiplies each weight by the sum's reciprocal before it meets V; no base 2, no parts.
_WIDE = {"exp_ulp": 1, "max": "running", "base2": False, "split_merge": False, "normalise_first": True, "block": 0,
         "division_roundings": 2, "bias_in_sum": False}
_F32 = {**_WIDE, "prescaled_q": "f32"}
_F64 = {**_WIDE, "prescaled_q": "f64"}
# The slow path hands the mask to baddbmm, which begins its sums with it.
_MHA = {"f64": {**_F64, "bias_in_sum": True}, "f32": {**_F32, "bias_in_sum": True}}
# Every intermediate result is a bf16 tensor; softmax works in f32 inside. That its products do not sum in f32 (probe.py
# has the particulars) is what a check of sdpa in bf16 is to find.
_BF16 = {**_WIDE, "prescaled_q": "bf16", "stored": {"scaled": "bf16", "biased": "bf16"}, "weights": "bf16",
         "score_sums": "f32", "accumulate": "f32"}


# A kernel may reject N = 0, or treat it as it does a row that hides every key. PyTorch 1.13 does neither: zeros for N = 0,
# NaN for such a row. In 2 both are zero.
_NO_KEYS = "N = 0: PyTorch gives zeros there and NaN where every key is hidden; the contract knows one of the two"


def sdpa(q, k, v, mask=None, scale=None, causal="none"):
    # The back ends differ in whether they take both, and the documentation says that it is an error.
    _require(mask is None or causal == "none", "attn_mask and is_causal exclude each other")
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, 0.0, causal == "top-left", scale=scale, enable_gqa=q.shape[1] != k.shape[1])


def sdpa_1(q, k, v, mask=None, causal="none"):
    if mask is not None and causal != "none":
        raise attest_adapter.Unsupported("attn_mask and is_causal exclude each other")
    if q.shape[1] != k.shape[1]:
        raise attest_adapter.Unsupported("has no grouped queries")
    _require(k.shape[2] > 0, _NO_KEYS)
    return torch.nn.functional._scaled_dot_product_attention(q, k, v, mask, 0.0, False, causal == "top-left")[0]


class _Module:
    """A module to be filled with the case's parameters; making one costs more than a small case does."""

    _cache = {}

    def __init__(self, embed_dim, heads, kdim, vdim, bias, add_bias_kv, dtype):
        m = torch.nn.MultiheadAttention(embed_dim, heads, dropout=0.0, bias=bias, add_bias_kv=add_bias_kv, kdim=kdim,
                                        vdim=vdim, batch_first=True, dtype=dtype)
        self.module = m
        self.zero = torch.zeros(embed_dim, dtype=dtype)
        # A linear layer holds the transposes of our weights: these are views of the parameters the way cases have them.
        self.packed = m.in_proj_weight.data.t() if m._qkv_same_embed_dim else None
        separate = () if m._qkv_same_embed_dim else (m.q_proj_weight, m.k_proj_weight, m.v_proj_weight)
        self.separate = [weight.data.t() for weight in separate]
        self.in_bias = m.in_proj_bias.data if bias else None
        self.out_weight = m.out_proj.weight.data.t()
        self.out_bias = m.out_proj.bias.data if bias else None
        self.bias_kv = (m.bias_k.data.view(-1), m.bias_v.data.view(-1)) if add_bias_kv else None

    @classmethod
    def of(cls, *key):
        found = cls._cache.get(key)
        if found is None:
            if len(cls._cache) >= 256:
                cls._cache.clear()
            found = cls._cache[key] = cls(*key)
        return found

    def fill(self, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, bias_k=None, bias_v=None):
        """Takes the case's parameters. A bias that is missing beside one that is there is zero, which adds nothing."""
        if self.packed is not None:
            torch.cat((w_q, w_k, w_v), 1, out=self.packed)
        else:
            for parameter, weight in zip(self.separate, (w_q, w_k, w_v)):
                parameter.copy_(weight)
        self.out_weight.copy_(w_o)
        if self.in_bias is not None:
            torch.cat([self.zero if b is None else b for b in (b_q, b_k, b_v)], out=self.in_bias)
            self.out_bias.copy_(self.zero if b_o is None else b_o)
        if self.bias_kv is not None:
            self.bias_kv[0].copy_(bias_k)
            self.bias_kv[1].copy_(bias_v)
        return self.module


def _attn_mask(mask, causal, batch, heads, queries, keys):
    """attn_mask as nn.MultiheadAttention takes it: True hides, [M, N] or [batch*heads, M, N]."""
    hidden = None
    if causal != "none":
        # top-left: key j is hidden from row i when j > i; bottom-right: when j > i + N - M.
        offset = 1 if causal == "top-left" else 1 + keys - queries
        hidden = torch.ones(queries, keys, dtype=torch.bool).triu(offset)
    if mask is None:
        return hidden
    if mask.dtype == torch.bool:
        mask = ~mask
        if hidden is not None:
            mask = mask | hidden
    elif hidden is not None:
        mask = mask.masked_fill(hidden, float("-inf"))
    if mask.shape[0] * mask.shape[1] == 1:
        return mask.view(queries, keys)
    # PyTorch 2 leaves a length to reshape, which is any where the others are zero, and raises an error.
    _require(not _IS_2 or mask.numel() > 0, "a mask by heads has an element")
    return mask.expand(batch, heads, queries, keys).reshape(batch * heads, queries, keys)


def _require(condition, why):
    if not condition:
        raise attest_adapter.Unsupported(why)


def _check_shapes(q, w_q, w_v, w_o):
    embed_dim = q.shape[2]
    _require(w_q.shape[1] == w_v.shape[1] == embed_dim, "nn.MultiheadAttention has heads*dk = heads*dv = c_q")
    _require(w_o is not None, "nn.MultiheadAttention always has an output projection")
    _require(w_o.shape[1] == embed_dim, "nn.MultiheadAttention has d_o = c_q")


def mha(q, k, v, w_q, w_k, w_v, heads, b_q=None, b_k=None, b_v=None, w_o=None, b_o=None, bias_k=None, bias_v=None,
        mask=None, causal="none"):
    _check_shapes(q, w_q, w_v, w_o)
    _require(_IS_2 or k.shape[1] > 0 or bias_k is not None, _NO_KEYS)
    _require((bias_k is None) == (bias_v is None), "add_bias_kv adds both or neither")
    bias = any(b is not None for b in (b_q, b_k, b_v, b_o))
    slot = _Module.of(q.shape[2], heads, k.shape[2], v.shape[2], bias, bias_k is not None, q.dtype)
    module = slot.fill(w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, bias_k, bias_v)
    module.training = True  # without dropout the same function, and the fast path is for evaluation only
    attn_mask = _attn_mask(mask, causal, q.shape[0], heads, q.shape[1], k.shape[1])
    return module(q, k, v, need_weights=False, attn_mask=attn_mask)[0]


def mha_fast(q, k, v, w_q, w_k, w_v, heads, b_q=None, b_k=None, b_v=None, w_o=None, b_o=None, mask=None,
             causal="none"):
    _check_shapes(q, w_q, w_v, w_o)
    _require(heads % 2 == 0, "the fast path wants an even number of heads")
    _require(_same_bits(q, k) and _same_bits(q, v), "the fast path is for self-attention")
    # It wants biases too: without them 1.13 raises a TypeError, and 2 goes another way. Zeros stand for them.
    slot = _Module.of(q.shape[2], heads, None, None, True, False, q.dtype)
    module = slot.fill(w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o)
    module.training = False
    attn_mask = _attn_mask(mask, causal, q.shape[0], heads, q.shape[1], k.shape[1])
    return module(q, q, q, need_weights=False, attn_mask=attn_mask)[0]


def _same_bits(a, b):
    """Whether two tensors are one; bits decide where NaN keeps equal from being true."""
    return a.shape == b.shape and (torch.equal(a, b) or _bytes(a).equal(_bytes(b)))


def _bytes(a):
    return a.contiguous().view(torch.uint8)


_COMMON = {"version": _VERSION, "claims": ["deterministic"], "mask_conventions": ["post-scale"], "strides": True}
_SDPA = {**_COMMON, "operations": ["attention"], "masks": ["additive", "bool"], "causal": ["top-left"],
         "excludes": [["mask", "causal"]]}
_MULTIHEAD = {**_COMMON, "operations": ["multihead"], "scale": "inv-sqrt-dk", "requires": ["output-projection"]}
_MODULE = {**_MULTIHEAD, "name": "torch.nn.MultiheadAttention", "masks": ["additive", "bool"],
           "causal": ["top-left", "bottom-right"]}
_MODULE_LIMITS = {"value_dim": "head_dim", "model_dim": "heads*head_dim"}
_FAST = {**_MULTIHEAD, "name": "torch.nn.MultiheadAttention, native fast path", "excludes": [["bias-kv"]],
         "fully_masked_row": "nan"}
_FAST_LIMITS = {**_MODULE_LIMITS, "heads_multiple": 2, "self_attention_only": True}

KERNELS_1 = {
    "sdpa": {"function": sdpa_1, "manifest": {
        **_SDPA, "name": "torch.nn.functional._scaled_dot_product_attention", "dtypes": ["f64", "f32", "bf16"],
        "arithmetic": {"f64": _F64, "f32": _F32, "bf16": _BF16}, "fully_masked_row": "nan", "scale": "inv-sqrt-dk",
        "limits": {"min_keys": 1}}},
    "mha": {"multihead": mha, "manifest": {
        **_MODULE, "dtypes": ["f64", "f32"], "arithmetic": _MHA, "fully_masked_row": "nan",
        "limits": {**_MODULE_LIMITS, "min_keys": 1}}},
    "mha-fast": {"multihead": mha_fast, "manifest": {
        **_FAST, "dtypes": ["f64", "f32"], "arithmetic": {"f64": _F64, "f32": _F32}, "masks": [], "causal": [],
        "limits": {**_FAST_LIMITS, "min_keys": 1}}},
}  # fmt: skip

# Which back end computes follows from shapes, masks and processor: what is allowed is what each of them may do.
_DTYPES = ["f64", "f32", "f16", "bf16"]
# The instructions of AVX-512 and AMX that multiply bf16 read subnormal numbers as zero, and write zero for them.
_FLUSHES = {"flushes_inputs": True, "flushes_subnormals": True}
# The fast path keeps q times the scale, the scores and the weights as tensors of the dtype.
_FAST_2 = {"f64": {}, "f32": {}, **{
    dtype: {"prescaled_q": dtype, "stored": {"scaled": dtype, "biased": dtype}, "weights": dtype, "score_sums": "f32",
            "accumulate": "f32"} for dtype in ("f16", "bf16")}}
KERNELS_2 = {
    "sdpa": {"function": sdpa, "manifest": {
        **_SDPA, "name": "torch.nn.functional.scaled_dot_product_attention", "dtypes": _DTYPES,
        "arithmetic": {"f64": {}, "f32": {}, "f16": {}, "bf16": _FLUSHES},
        "fully_masked_row": "zero", "grouped_query": True}},
    "mha": {"multihead": mha, "manifest": {
        **_MODULE, "dtypes": _DTYPES, "fully_masked_row": "zero", "limits": _MODULE_LIMITS}},
    "mha-fast": {"multihead": mha_fast, "manifest": {
        **_FAST, "dtypes": _DTYPES, "arithmetic": _FAST_2, "masks": ["bool"], "causal": ["top-left", "bottom-right"],
        "limits": _FAST_LIMITS}},
}  # fmt: skip
KERNELS = KERNELS_2 if _IS_2 else KERNELS_1


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in KERNELS:
        sys.exit(f"pytorch_kernels.py: the kernel is {name!r}; it must be one of {', '.join(KERNELS)}")
    # Zeros where no key is seen came with 2.5, and so did enable_gqa.
    release = tuple(int(part) for part in _VERSION.split(".")[:2])
    if release < (2, 5) and not hasattr(torch.nn.functional, "_scaled_dot_product_attention"):
        attest_adapter.refuse(f"PyTorch cannot be imported by {sys.executable} in a version that is served here, 1.13, or "
                              f"2.5 and later: it has {_VERSION}")
    torch.set_num_threads(1)
    attest_adapter.serve(**KERNELS[name], framework="torch")


if __name__ == "__main__":
    main()
