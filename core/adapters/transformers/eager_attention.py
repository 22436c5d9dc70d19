"""The eager attention of Hugging Face's Transformers on a CPU:  eager_attention.py PATH [OPTION…]

    attest check --kernel 'exec:python3 eager_attention.py llama'
    attest check --kernel 'exec:python3 eager_attention.py llama --backward' --property 'backward.*'

llama    eager_attention_forward of models/llama/modeling_llama.py with its repeat_kv, which most decoders have copied
gemma2   that of models/gemma2/modeling_gemma2.py, which caps scores
gpt-oss  that of models/gpt_oss/modeling_gpt_oss.py, which has sinks

The path is the module from which the function is imported; a model calls it where attn_implementation is "eager". Of
the model's attention module it reads a few attributes alone, which an object without a class has here. The mask is the
additive one that the model makes: a causal form is in it.

--backward  gradients, too, those of PyTorch's autograd; Transformers has no log-sum-exp, and what attest_adapter.py
            computes beside gradients says nothing about it
--dropout   dropout, too, whose mask nn.functional.dropout draws by PyTorch's seed
"""

import argparse
import importlib
import os
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

MODULES = {"llama": "llama.modeling_llama", "gemma2": "gemma2.modeling_gemma2", "gpt-oss": "gpt_oss.modeling_gpt_oss"}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="eager_attention.py")
    parser.add_argument("path", choices=MODULES)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--dropout", action="store_true")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    try:
        import torch
        import transformers

        module = importlib.import_module(f"transformers.models.{MODULES[options.path]}")
    except Exception as error:  # a broken installation raises other things than ImportError
        attest_adapter.refuse(f"Transformers cannot be imported by {sys.executable}: {type(error).__name__}: {error}")
    torch.set_num_threads(1)
    manifest = manifest_of(options, transformers.__version__)
    backward = "autograd" if options.backward else None
    attest_adapter.serve(FUNCTIONS[options.path](torch, module), manifest, backward=backward, framework="torch")


def attributes(q, k, **others):
    """What eager_attention_forward reads of the attention module that it is given."""
    return types.SimpleNamespace(num_key_value_groups=q.shape[1] // k.shape[1], **others)


def ours(result):
    """Of (out, weights), the former token-major."""
    return result[0].transpose(1, 2)


def llama(torch, module):
    def attention(q, k, v, mask=None, scale=1.0, dropout_p=0.0, dropout_seed=0):
        torch.manual_seed(dropout_seed)
        of_model = attributes(q, k, training=dropout_p > 0)
        return ours(module.eager_attention_forward(of_model, q, k, v, mask, scaling=scale, dropout=dropout_p))

    return attention


def gemma2(torch, module):
    def attention(q, k, v, mask=None, scale=1.0, softcap=None, dropout_p=0.0, dropout_seed=0):
        torch.manual_seed(dropout_seed)
        of_model = attributes(q, k, training=dropout_p > 0)
        return ours(module.eager_attention_forward(of_model, q, k, v, mask, dropout_p, scale, softcap))

    return attention


def gpt_oss(torch, module):
    def attention(q, k, v, mask=None, scale=1.0, sink=None, dropout_p=0.0, dropout_seed=0):
        torch.manual_seed(dropout_seed)
        of_model = attributes(q, k, training=dropout_p > 0, sinks=sink)
        return ours(module.eager_attention_forward(of_model, q, k, v, mask, scaling=scale, dropout=dropout_p))

    return attention


FUNCTIONS = {"llama": llama, "gemma2": gemma2, "gpt-oss": gpt_oss}

# Operations of PyTorch, each of which makes a tensor of q's dtype: the product, that times the scale, the mask added.
# The softmax of whole rows is float32's; its weights are normalised, and rounded to q's dtype before they meet v.
WHOLE_ROWS = {"prescaled_q": None, "base2": False, "split_merge": False, "normalise_first": True, "block": 0,
              "bias_in_sum": False, "weights_in_denominator": False}  # fmt: skip


# AVX-512's product of bf16 reads subnormal numbers as zero, and writes zero for them.
FLUSHES = {"flushes_inputs": True, "flushes_subnormals": True}
SIXTEEN_BITS = {"f16": {}, "bf16": FLUSHES}
VARIANTS = {"llama": {}, "gemma2": {"softcap": {}}, "gpt-oss": {"sink": {}}}
# nn.functional.dropout draws a mask itself, whose 1/(1 - p) multiplies the rounded weights.
DROPOUT = {"dropout": {"applied": "weights", "mask": ["own"]}}


def arithmetic_of(path, dtype, backward):
    if dtype == "f32":
        own = WHOLE_ROWS
    else:
        steps = ("raw", "scaled", "biased", *(["capped"] if path == "gemma2" else []))
        own = {**WHOLE_ROWS, **SIXTEEN_BITS[dtype], "score_sums": "f32", "accumulate": "f32",
               "stored": dict.fromkeys(steps, dtype), "weights": dtype}  # fmt: skip
    # Autograd's tensors have q's dtype, too: dP is rounded to it, and dS, which is taken of the float32 weights, before
    # the scale and behind it, so that neither is stated; repeat_kv adds up what its heads have been given.
    gradients = {"dot": "f32", "accumulate": "f32", "stored": dict.fromkeys(("weights", "dp", "ds"), dtype),
                 "rounded_weights_in_ds": False, "delta_in_sum": False, "group_partials": dtype}  # fmt: skip
    return {**own, "backward": gradients} if backward else own


def manifest_of(options, version):
    path, dtypes = options.path, ["f32", "f16", "bf16"]
    manifest = {
        "name": f"Transformers eager attention, {path}", "version": version, "dtypes": dtypes,
        "arithmetic": {dtype: arithmetic_of(path, dtype, options.backward) for dtype in dtypes},
        # A boolean mask would be added as ones and zeros.
        "masks": ["additive"], "mask_conventions": ["post-scale"], "grouped_query": True, "strides": True,
        "claims": ["deterministic"], "variants": {**VARIANTS[path], **(DROPOUT if options.dropout else {})},
        # Over no keys PyTorch's products are 0, where a row whose keys are all hidden is NaN: no policy is both.
        "fully_masked_row": "nan", "limits": {"min_keys": 1},
    }  # fmt: skip
    if path == "gpt-oss":
        manifest["requires"] = ["sink"]
    if options.backward:
        manifest["name"] += ", and its gradients"
        gradients = ["dq", "dk", "dv", "dmask", *(["dsink"] if path == "gpt-oss" else [])]
        manifest["backward"] = {"gradients": gradients, "weights": "stored", "delta": "weights", "uses": [],
                                "own_dropout": options.dropout}  # fmt: skip
    return manifest


if __name__ == "__main__":
    main()
