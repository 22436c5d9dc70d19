"""Serves the attention of a task in KernelBench's manner: a file with a module ModelNew, whose forward takes Q, K and V.

    attest judge --contract contract.json --kernel 'exec:python3 -m attest_kernelbench model_new.py'

The module is made as the task makes it: ModelNew(*get_init_inputs()), where the file has such a function. forward may
name attn_mask or mask, is_causal and scale; a problem that has what it does not name is answered `unsupported`. Another
class than ModelNew may be named behind the file.
"""

import attest_adapter  # first: it takes standard output for the replies

import importlib.util
import inspect
import sys

import torch

_DTYPES = ["f64", "f32", "f16", "bf16"]


def _module_of(path):
    spec = importlib.util.spec_from_file_location("model_new", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _model_of(path, name):
    module = _module_of(path)
    if not hasattr(module, name):
        attest_adapter.refuse(f"{path} has no class {name}")
    arguments = module.get_init_inputs() if hasattr(module, "get_init_inputs") else ()
    return getattr(module, name)(*arguments).eval()


def _named(parameters, names):
    return next((name for name in names if name in parameters), None)


def _served(model):
    parameters = inspect.signature(model.forward).parameters
    mask_name = _named(parameters, ("attn_mask", "mask"))
    causal_name = _named(parameters, ("is_causal", "causal"))
    scale_name = _named(parameters, ("scale", "sm_scale"))

    def attention(q, k, v, mask=None, causal="none", scale=None):
        asked = {}
        for name, value, is_asked in (
            (mask_name, mask, mask is not None),
            (causal_name, True, causal == "top-left"),
            (scale_name, scale, abs(scale * q.shape[-1] ** 0.5 - 1) > 1e-12),
        ):
            if not is_asked:
                continue
            if name is None:
                raise attest_adapter.Unsupported("forward names no parameter for it")
            asked[name] = value
        if causal == "bottom-right":
            raise attest_adapter.Unsupported("is_causal is top-left")
        return model(q, k, v, **asked)

    return attention


def main(words):
    if not 1 <= len(words) <= 2:
        attest_adapter.refuse("give the file of ModelNew, and perhaps another class's name")
    model = _model_of(words[0], words[1] if len(words) > 1 else "ModelNew")
    manifest = {"name": words[0].rpartition("/")[2], "dtypes": _DTYPES, "causal": ["top-left"], "grouped_query": True}
    attest_adapter.serve(_served(model), manifest, framework="torch")


if __name__ == "__main__":
    main(sys.argv[1:])
