"""sdpa_backends.py over what PyTorch 1.13 can put in the place of PyTorch 2: shows what the adapter asks of PyTorch and
what it makes of its errors, not what PyTorch 2 computes. Arguments: those of sdpa_backends.py."""

import contextlib
import os
import sys
import types

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../adapters/pytorch"))

chosen = []


@contextlib.contextmanager
def sdpa_kernel(backends):
    chosen[:] = backends
    yield
    chosen.clear()


def scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    if chosen == ["flash"] and attn_mask is not None:
        chosen.clear()
        raise RuntimeError("No available kernel. Aborting execution.")
    if chosen not in (["math"], ["flash"]):
        raise RuntimeError(f"the back ends chosen are {chosen}")
    scores = q @ k.transpose(-1, -2) * scale
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    return torch.softmax(scores, -1) @ v


module = types.ModuleType("torch.nn.attention")
module.sdpa_kernel = sdpa_kernel
module.SDPBackend = types.SimpleNamespace(MATH="math", FLASH_ATTENTION="flash", EFFICIENT_ATTENTION="efficient")
sys.modules["torch.nn.attention"] = torch.nn.attention = module
torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention
torch.__version__ = "2.5.0"

import sdpa_backends  # noqa: E402

sdpa_backends.main()
