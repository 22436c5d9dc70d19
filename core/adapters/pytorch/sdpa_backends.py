"""The back ends of PyTorch 2's scaled_dot_product_attention, one a kernel:
sdpa_backends.py BACKEND [--device cpu|cuda] [--backward]

    attest check --kernel 'exec:python3 sdpa_backends.py flash --device cuda' --dtype bf16
    attest check --kernel 'exec:python3 sdpa_backends.py math --backward' --property 'backward.*'

math        torch's own operations, one after another; where what is dropped is given, as the operator itself takes it
efficient   the memory-efficient kernel, CUDA only
flash       FlashAttention; PyTorch has one for CPUs too
cudnn       cuDNN's, CUDA only

With --backward, on a CPU, it has gradients, too: those of PyTorch's autograd through it. The log-sum-exp that Attest asks
for beside gradients is flash's own, that of the operator which scaled_dot_product_attention calls; math has none, and
attest_adapter.py computes one from the definition: what is said of it is not said of PyTorch.

Written from the documentation of PyTorch 2.5; the project has run math and flash with PyTorch 2.13 on a CPU, and none on a
GPU. What a back end does not take (a mask, a head size, a dtype) it says itself: such a case is skipped with PyTorch's
reason. Tensors are copied to the device for each call and back from it, which waits for the kernel: an asynchronous error
belongs to the call that made it. After an error of the device the process ends and Attest starts another.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import attest_adapter  # noqa: E402

# Sums are f32 for 16-bit inputs, and a weight may be rounded to the input's dtype before it meets V; all back ends but
# math work in blocks and may use base 2. Nothing is declared that PyTorch does not document: the rest is as loose as a
# legitimate kernel may be.
_HALF = {"score_sums": "f32", "accumulate": "f32"}
_BLOCKED = {"f32": {}, "f16": _HALF, "bf16": _HALF}
# The instructions of AVX-512 and AMX that multiply bf16 read subnormal numbers as zero, and write zero for them.
_FLUSHES = {"flushes_inputs": True, "flushes_subnormals": True}
# math multiplies q and k by the root of the scale each, and since 2.5 computes 16-bit inputs in f32.
_MATH = {"f64": {}, **_BLOCKED}

BACKENDS = {
    # A mask of dropout goes over the weights, and 1/(1 - p) multiplies V, in the format that it is computed in.
    "math": {"enum": "MATH", "devices": ("cpu", "cuda"), "dtypes": ("f64", "f32", "f16", "bf16"), "arithmetic": _MATH,
             "masks": ["additive", "bool"], "variants": {"dropout": {"applied": "values"}}},
    "efficient": {"enum": "EFFICIENT_ATTENTION", "devices": ("cuda",), "dtypes": ("f32", "f16", "bf16"),
                  "arithmetic": _BLOCKED, "masks": ["additive", "bool"]},
    # On a CPU it takes additive masks and f32; on a GPU neither.
    "flash": {"enum": "FLASH_ATTENTION", "devices": ("cpu", "cuda"), "dtypes": ("f32", "f16", "bf16"),
              "arithmetic": _BLOCKED, "masks": ["additive", "bool"]},
    "cudnn": {"enum": "CUDNN_ATTENTION", "devices": ("cuda",), "dtypes": ("f16", "bf16"), "arithmetic": _BLOCKED,
              "masks": ["additive", "bool"]},
}

# What autograd goes through. math: its own operations, in f32 of 16-bit inputs, and one rounding of each gradient at the
# end. P is the softmax's output and D the sum of P dP. What dS meets are k and q times the root of the scale, and the root
# multiplies each head's part again, before the heads of a group are added up. flash: the operator's own backward pass, in
# blocks, P from its log-sum-exp and D from its output. It rounds P and dS to 16 bits to multiply them, dS from the P that is
# not rounded; its products of matrices have the scale as a factor, which they may give to one of the two first. Where it
# adds gradients of keys and values up in 16 bits (over blocks of queries, and over the heads of a group) no user of
# PyTorch expects it: f32 is declared, and findings.md has what a check finds.
def _one_rounding(dtype):
    return {"dot": dtype, "accumulate": dtype, "stored": dict.fromkeys(("weights", "dp", "ds"), dtype),
            "delta_in_sum": False, "scale_before_rounding": False, "group_partials": dtype}


def _in_blocks(dtype):
    return {**_one_rounding("f32"), "stored": {"weights": dtype, "dp": "f32", "ds": dtype},
            "rounded_weights_in_ds": False, "scale_before_rounding": True, "group_partials": dtype}


# Times the root of the scale a small k or q is a subnormal number, and loses digits. To read it as zero would lose more,
# and is what can be declared. Those of f16 are ordinary in f32.
_ROOTS = {"flushes_inputs": True}

# A row that sees no key has gradients of 0, and no part in those of others.
GRADIENTS = {
    "math": {"terms": {"gradients": ["dq", "dk", "dv", "dmask"], "weights": "stored", "delta": "weights", "uses": [],
                       "masked_row": "zero"},
             "arithmetic": {"f64": {**_ROOTS, "backward": _one_rounding("f64")},
                            "f32": {**_ROOTS, "backward": _one_rounding("f32")},
                            "f16": {"backward": _one_rounding("f32")},
                            "bf16": {**_ROOTS, "backward": _one_rounding("f32")}}},
    "flash": {"terms": {"weights": "lse", "delta": "out", "masked_row": "zero"},
              "arithmetic": {"f32": {"backward": _in_blocks("f32")}, "f16": {"backward": _in_blocks("f16")},
                             "bf16": {"backward": _in_blocks("bf16")}}},
}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="sdpa_backends.py")
    parser.add_argument("backend", choices=BACKENDS)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--backward", action="store_true")
    return parser.parse_args(arguments)


def manifest_of(name, device, version, backward=False):
    """The manifest of a back end on a device, where both are served."""
    backend = BACKENDS[name]
    on_gpu = device == "cuda"
    dtypes = [d for d in backend["dtypes"] if not (on_gpu and name == "flash" and d == "f32")]
    manifest = {
        "name": f"scaled_dot_product_attention, {name} on {device}", "version": version, "dtypes": dtypes,
        "arithmetic": {d: backend["arithmetic"][d] for d in dtypes}, "operations": ["attention"],
        "masks": [] if on_gpu and name == "flash" else backend["masks"], "mask_conventions": ["post-scale"],
        "causal": ["top-left"], "strides": not on_gpu, "variants": backend.get("variants", {}),
    }
    if name == "flash" and not on_gpu:
        manifest["arithmetic"]["bf16"] = {**manifest["arithmetic"]["bf16"], **_FLUSHES}
    if backward:
        own = GRADIENTS[name]
        manifest["name"] += ", and its gradients"
        manifest["operations"] = ["attention", "attention_backward"]
        manifest["backward"] = own["terms"]
        manifest["arithmetic"] = {d: {**manifest["arithmetic"][d], **own["arithmetic"][d]} for d in dtypes}
        manifest.update(grouped_query=True, excludes=[["mask", "causal"]])
        manifest["limits"] = {"value_dim": "head_dim"} if name == "flash" else {}
    return manifest


def why_not_served(name, device, torch, backward=False):
    """Empty, or one line that says why this back end cannot be served here."""
    version = torch.__version__
    if backward and device == "cuda":
        return "gradients are served on a CPU alone, where the log-sum-exp beside them is known; leave --device cuda out"
    if backward and tuple(int(part) for part in version.split(".")[:2]) < (2, 5):
        return f"gradients are served of PyTorch 2.5 and later; {sys.executable} has {version}"
    if int(version.split(".")[0]) < 2 or not hasattr(torch.nn, "attention"):
        return f"the back ends of scaled_dot_product_attention need PyTorch 2.3 or later; {sys.executable} has {version}"
    if not hasattr(torch.nn.attention.SDPBackend, BACKENDS[name]["enum"]):
        return f"PyTorch {version} has no back end {name}; it came with a later version"
    if device not in BACKENDS[name]["devices"]:
        return f"the back end {name} is for GPUs; add --device cuda"
    if device == "cuda" and not torch.cuda.is_available():
        return f"PyTorch {version} finds no GPU; leave --device cuda out"
    return ""


def attention_over(torch, name, device):
    """The function to serve: one back end alone, on tensors copied to the device."""
    from attest._calls import with_dropout_mask
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = getattr(SDPBackend, BACKENDS[name]["enum"])
    # What scaled_dot_product_attention calls has the mask that it has not itself.
    dropping = with_dropout_mask(torch._scaled_dot_product_attention_math)

    def attention(q, k, v, mask=None, scale=1.0, causal="none", keep=None, dropout_p=0.0):
        if mask is not None and causal != "none":
            raise attest_adapter.Unsupported("attn_mask and is_causal exclude each other")
        q, k, v, mask, keep = (None if t is None else t.to(device) for t in (q, k, v, mask, keep))
        try:
            if keep is not None:
                return dropping(q, k, v, mask, scale, causal, keep, dropout_p).cpu()
            grouped = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
            with sdpa_kernel([backend]):
                out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale,
                                                                       is_causal=causal == "top-left", **grouped)
            return out.cpu()
        except RuntimeError as error:
            if "No available kernel" in str(error):
                raise attest_adapter.Unsupported(f"the back end {name} does not take this one (PyTorch's reasons are in "
                                                 "the log)") from error
            if "CUDA error" in str(error):
                print(error, file=sys.stderr, flush=True)
                os._exit(70)
            raise

    return attention


def with_lse(torch, attention):
    """Of flash on a CPU: the function, and by want_lse the log-sum-exp of the operator that it calls."""

    def answer(q, k, v, mask=None, scale=1.0, causal="none", want_lse=False):
        out = attention(q, k, v, mask, scale, causal)
        if not want_lse:
            return out
        lse = torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
        if lse.numel() == 0 or k.shape[2] == 0:
            return out, lse
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        again, own = operator(q, k, v, 0.0, causal == "top-left", attn_mask=mask, scale=scale)
        if not torch.equal(out.isnan(), again.isnan()) or not torch.equal(out.nan_to_num(), again.nan_to_num()):
            raise RuntimeError("the operator answered otherwise than scaled_dot_product_attention: its lse is of another call")
        # Of a row without a key it is 0 there, so that e^(-inf - lse) is 0.
        seen = torch.ones((), dtype=torch.bool) if mask is None else (mask != -torch.inf).any(-1)
        return out, torch.where(seen, own.double(), lse)

    return answer


def main():
    options = parse(sys.argv[1:])
    try:
        import torch
        import torch.nn.attention
    except ModuleNotFoundError as error:
        if error.name != "torch.nn.attention":
            attest_adapter.refuse(f"PyTorch cannot be imported by {sys.executable}: {error}")
    except Exception as error:  # a broken installation raises other things than ImportError
        attest_adapter.refuse(f"PyTorch cannot be imported by {sys.executable}: {type(error).__name__}: {error}")
    reason = why_not_served(options.backend, options.device, torch, options.backward)
    if reason:
        attest_adapter.refuse(reason)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    function = attention_over(torch, options.backend, options.device)
    if options.backward and options.backend == "flash":
        function = with_lse(torch, function)
    manifest = manifest_of(options.backend, options.device, torch.__version__, options.backward)
    attest_adapter.serve(function, manifest, backward="autograd" if options.backward else None, framework="torch")


if __name__ == "__main__":
    main()
