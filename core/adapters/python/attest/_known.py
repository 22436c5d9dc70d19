"""Functions of frameworks that are known: how each is called, and its manifest."""

import sys
from dataclasses import dataclass, replace
from typing import Callable, Optional

from attest._calls import Call, adapted, flexible, of_heads, parameters_of, with_dropout_mask
from attest._windows import FLASH, JAX, Window

# Sums of 16-bit inputs in f32, weights rounded to the input's dtype: that is the default, and as tight as documents are.
_NO_MASK_BESIDE_CAUSAL = {"excludes": [["mask", "causal"]]}


@dataclass(frozen=True)
class Known:
    """A function by the module and the name under which users find it."""

    module: str
    name: str
    framework: str
    layout: str
    make: Callable  # a function of the contract, of this one
    manifest: dict
    gpu: bool = False  # runs on one alone
    window: Optional[Window] = None  # what its window is called and means
    lengths: tuple = ()  # what lengths of queries and of keys are called
    exists: Callable = lambda function: True  # as it is known here; an earlier version may lack what its manifest lists
    in_8_bits: Optional[dict] = None  # what its manifest has instead where f8_e4m3 alone is asked for


def _called(call):
    def make(function):
        return adapted(function, call)

    make.call = call
    return make


_JAX_LENGTHS = ("query_seq_lengths", "key_value_seq_lengths")
_FLASH = Call("torch", "bshd", scale="softmax_scale", causal="causal", softcap="softcap", window=FLASH,
              slopes="alibi_slopes", lse="return_attn_probs")  # fmt: skip
_FLASH_MANIFEST = {
    "dtypes": ["f16", "bf16"],
    "masks": [],
    "causal": ["bottom-right"],
    # csrc/flash_attn/src/mask.h: the distance, and in causal kernels the number of the key alone, over the scale or the cap,
    # which multiply it again. With a window's left end a causal form is a window, too, and has the distance, which no one
    # manifest says of both: it is not asked for.
    "variants": {"window": {"alignment": ["bottom-right"]}, "softcap": {},
                 "alibi": {"form": "column-divided", "per_batch": True, "alignment": ["bottom-right"],
                           "excludes": ["window"]}},
    "lse": True,
    # csrc/flash_attn/src/softmax.h: +inf of a row without a key, but for kernels that split the keys.
    "lse_convention": {"alibi": "column", "empty": "+inf"},
    # tanh is the instruction tanh.approx.f32, whose relative error PTX bounds by 2^-11.
    "arithmetic": {"tanh": {"relative": 2.0**-11}},
    "grouped_query": True,
    "fully_masked_row": "zero",
    "limits": {"value_dim": "head_dim", "head_dim_multiple": 8, "max_head_dim": 256, "min_queries": 1, "min_keys": 1},
}  # fmt: skip


# Another package, of which hopper/flash_attn_interface.py is the module: no slopes, and chunks, which hopper/mask.h
# counts from the bottom right, as windows. -inf is the log-sum-exp of a row without a key (hopper/softmax.h).
_FLASH_3 = replace(_FLASH, slopes=None, chunk="attention_chunk", descale=True)
_FLASH_3_MANIFEST = {
    **{key: value for key, value in _FLASH_MANIFEST.items() if key != "lse_convention"},
    "variants": {"window": {"alignment": ["bottom-right"]}, "chunk": {"alignment": ["bottom-right"]}, "softcap": {}},
}


def _has_chunks(function):
    """Not in the first releases of FlashAttention 3, which return the log-sum-exp unasked, too."""
    return {"attention_chunk", "return_attn_probs"} <= set(parameters_of(function) or ())


def _in_8_bits(manifest):
    """Factors are looked at beside float8 alone (hopper/flash_api.cpp), whose output is bfloat16. They multiply the
    scale, or what a cap is taken of, and what divides by the sum of weights (hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp,
    softmax.h). Output in 8 bits is that in 16, rounded again: weights in 8 bits may err by 32 times as much."""
    return {
        "out_dtypes": {"f8_e4m3": ["bf16"]},
        "variants": {**manifest["variants"], "descale": {"per_batch": True, "applied": "products"}},
        "limits": {**manifest["limits"], "head_dim_multiple": 16},
    }


def _takes_a_dropout_mask(function):
    """Since PyTorch 2.0, and heads in groups since 2.5; 1.13 has a function of the same name without."""
    import torch

    arguments = torch.ops.aten._scaled_dot_product_attention_math.default._schema.arguments
    return {"dropout_mask", "scale", "enable_gqa"} <= {argument.name for argument in arguments}


def _on_a_cache(function):
    """flash_attn_with_kvcache: k and v are the cache, in place, and what a call appends are its k and v."""

    def attention(q, k, v, scale=1.0, causal="none", window_left=-1, window_right=-1, kv_lengths=None, left_pad=None,
                  page_table=None, cache_index=None, k_new=None, v_new=None, softcap=0.0, alibi_slopes=None,
                  want_lse=False):  # fmt: skip
        q, k, v, k_new, v_new = (None if t is None else t.transpose(1, 2) for t in (q, k, v, k_new, v_new))
        out = function(q, k, v, k=k_new, v=v_new, cache_seqlens=kv_lengths, cache_batch_idx=cache_index,
                       cache_leftpad=left_pad, block_table=page_table, softmax_scale=scale, causal=causal != "none",
                       window_size=(window_left, window_right), softcap=softcap,
                       alibi_slopes=None if alibi_slopes is None else of_heads(alibi_slopes),
                       return_softmax_lse=want_lse)  # fmt: skip
        out, *lse = out if isinstance(out, (tuple, list)) else (out,)
        return (out.transpose(1, 2), lse[0].double()) if want_lse else out.transpose(1, 2)

    return attention


_TABLE = (
    Known(
        "torch.nn.functional",
        "scaled_dot_product_attention",
        "torch",
        "bhsd",
        _called(Call("torch", scale="scale", mask="attn_mask", causal="is_causal", gqa="enable_gqa")),
        {"dtypes": ["f64", "f32", "f16", "bf16"], "causal": ["top-left"], "grouped_query": True, **_NO_MASK_BESIDE_CAUSAL},
    ),
    Known(
        "torch",
        "_scaled_dot_product_attention_math",
        "torch",
        "bhsd",
        with_dropout_mask,
        # aten/src/ATen/native/transformers/attention.cpp: 1/(1 - p) multiplies V, in the format that it is computed in.
        {"dtypes": ["f64", "f32", "f16", "bf16"], "causal": ["top-left"], "grouped_query": True,
         "variants": {"dropout": {"applied": "values"}}, **_NO_MASK_BESIDE_CAUSAL},
        exists=_takes_a_dropout_mask,
    ),
    Known(
        "torch.nn.attention.flex_attention",
        "flex_attention",
        "torch",
        "bhsd",
        flexible,
        {"dtypes": ["f64", "f32", "f16", "bf16"], "causal": ["top-left"], "grouped_query": True,
         "variants": {"window": {"alignment": ["top-left", "bottom-right"]},
                      "chunk": {"alignment": ["top-left", "bottom-right"]},
                      "lengths": {}, "packed": {}, "left_pad": {}, "sink": {}, "softcap": {},
                      "alibi": {"per_batch": True, "alignment": ["top-left", "bottom-right"]},
                      "descale": {"tensors": ["q", "k"], "per_batch": True, "blocks": "any", "applied": "products"}},
         # torch.tanh: 1 ulp on a CPU, 2 on a GPU, where it is CUDA's tanhf.
         "arithmetic": {"tanh": {"ulp": 2.5}},
         "limits": {"min_queries": 1, "min_keys": 1}},
    ),
    Known(
        "jax.nn",
        "dot_product_attention",
        "jax",
        "bshd",
        _called(Call("jax", "bshd", scale="scale", mask="mask", bias="bias", causal="is_causal", window=JAX,
                     lengths=_JAX_LENGTHS)),
        # A boolean mask puts a finite number in the place of a score, an additive one does not: rows without a visible
        # key have no one policy to declare. There is no maximum of no scores.
        {"dtypes": ["f32", "f16", "bf16"], "causal": ["top-left"], "grouped_query": True,
         "variants": {"window": {"alignment": ["top-left"]}, "lengths": {"padding": "zero"}},
         "limits": {"value_dim": "head_dim", "min_keys": 1}},
        window=JAX,
        lengths=_JAX_LENGTHS,
    ),
    Known("flash_attn", "flash_attn_func", "torch", "bshd", _called(_FLASH), _FLASH_MANIFEST, gpu=True, window=FLASH),
    Known(
        "flash_attn",
        "flash_attn_varlen_func",
        "torch",
        "thd",
        _called(replace(_FLASH, layout="thd")),
        {**_FLASH_MANIFEST, "variants": {**_FLASH_MANIFEST["variants"], "packed": {}}},
        gpu=True,
        window=FLASH,
    ),
    Known(
        "flash_attn",
        "flash_attn_with_kvcache",
        "torch",
        "bshd",
        _on_a_cache,
        # csrc/flash_attn/flash_api.cpp, mha_fwd_kvcache: pages of 256 keys and their multiples, neither padding nor an
        # index beside them; a call appends no more than it has room for.
        {**_FLASH_MANIFEST,
         "variants": {**_FLASH_MANIFEST["variants"], "lengths": {"queries": False}, "append": {}, "cache_index": {},
                      "left_pad": {"requires": ["lengths"], "excludes": ["paged"]}, "paged": {"page_sizes": [256]}}},
        gpu=True,
        window=FLASH,
    ),
    Known(
        "flash_attn_interface",
        "flash_attn_func",
        "torch",
        "bshd",
        _called(_FLASH_3),
        _FLASH_3_MANIFEST,
        gpu=True,
        window=FLASH,
        exists=_has_chunks,
        in_8_bits=_in_8_bits(_FLASH_3_MANIFEST),
    ),
    Known(
        "flash_attn_interface",
        "flash_attn_varlen_func",
        "torch",
        "thd",
        _called(replace(_FLASH_3, layout="thd")),
        {**_FLASH_3_MANIFEST, "variants": {**_FLASH_3_MANIFEST["variants"], "packed": {}}},
        gpu=True,
        window=FLASH,
        exists=_has_chunks,
        in_8_bits=_in_8_bits({**_FLASH_3_MANIFEST, "variants": {**_FLASH_3_MANIFEST["variants"], "packed": {}}}),
    ),
)  # fmt: skip


def known(function):
    """The row of a function, or None."""
    for row in _TABLE:
        module = sys.modules.get(row.module)
        if module is not None and getattr(module, row.name, None) is function and row.exists(function):
            return row
    return None


def rows():
    """All of them."""
    return _TABLE
