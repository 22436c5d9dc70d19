"""Functions of frameworks that are known: how each is called, and its manifest."""

import sys
from dataclasses import dataclass
from typing import Callable, Optional

from attest._calls import Call, adapted, flexible
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


def _called(call):
    return lambda function: adapted(function, call)


_JAX_LENGTHS = ("query_seq_lengths", "key_value_seq_lengths")
_FLASH = Call("torch", "bshd", scale="softmax_scale", causal="causal", window=FLASH)
_FLASH_MANIFEST = {
    "dtypes": ["f16", "bf16"],
    "masks": [],
    "causal": ["bottom-right"],
    "variants": {"window": {"alignment": ["bottom-right"]}},
    "grouped_query": True,
    "fully_masked_row": "zero",
    "limits": {"value_dim": "head_dim", "head_dim_multiple": 8, "max_head_dim": 256, "min_queries": 1, "min_keys": 1},
}

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
        "torch.nn.attention.flex_attention",
        "flex_attention",
        "torch",
        "bhsd",
        flexible,
        {"dtypes": ["f64", "f32", "f16", "bf16"], "causal": ["top-left"], "grouped_query": True,
         "variants": {"window": {"alignment": ["top-left", "bottom-right"]}, "lengths": {}, "packed": {}, "left_pad": {}},
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
        _called(Call("torch", "thd", scale="softmax_scale", causal="causal", window=FLASH)),
        {**_FLASH_MANIFEST, "variants": {**_FLASH_MANIFEST["variants"], "packed": {}}},
        gpu=True,
        window=FLASH,
    ),
)  # fmt: skip


def known(function):
    """The row of a function, or None."""
    for row in _TABLE:
        module = sys.modules.get(row.module)
        if module is not None and getattr(module, row.name, None) is function:
            return row
    return None


def rows():
    """All of them."""
    return _TABLE
