#!/usr/bin/env python3
"""The example at the end of 000.txt, run again with a seed. The document drew its inputs without one, so its numbers
cannot be had again; its sizes, its mask and the shapes that it printed can. Every number in mhattn_example.json that is
not an input comes out of torch.nn.MultiheadAttention itself, in float32, and is written so that float32 reads it back
exactly.

PyTorch starts the biases at zero, where no mistake in splitting them would show: beside the module as the document
builds it there is the same one with its biases drawn.

Run: /usr/bin/python3 mhattn_example.py > mhattn_example.json   (needs PyTorch)
"""
import json

import torch

SEED = 0
BATCH, M, N, D, CK, CV, H = 3, 5, 3, 4, 8, 16, 2


def number(x):
    # JSON has no infinity: the file has the word. Nine digits bring a float32 back.
    return str(x) if x in (float("inf"), float("-inf")) else float(f"{x:.9g}")


def nested(x):
    if isinstance(x, list):
        return [nested(y) for y in x]
    return x if isinstance(x, bool) else number(x)


def listed(tensor):
    return nested(tensor.detach().tolist())


def main():
    torch.manual_seed(SEED)
    module = torch.nn.MultiheadAttention(
        embed_dim=D, num_heads=H, bias=True, add_bias_kv=False, kdim=CK, vdim=CV, batch_first=True
    )
    q, k, v = torch.rand(BATCH, M, D), torch.rand(BATCH, N, CK), torch.rand(BATCH, N, CV)
    masks = {
        "triu": torch.full((M, N), float("-inf")).triu(diagonal=1),
        "finite": torch.rand(M, N) * 4 - 2,
        "boolean": torch.ones(M, N, dtype=torch.bool).triu(diagonal=1),
    }

    def as_it_is(what):
        parameters = dict(module.named_parameters())
        return {
            "what": what,
            "shapes": {name: list(p.shape) for name, p in parameters.items()},
            "parameters": {name: listed(p) for name, p in parameters.items()},
            "outputs": {name: listed(module(q, k, v, attn_mask=mask)[0]) for name, mask in masks.items()},
        }

    modules = {"as_built": as_it_is("as PyTorch initialises it: its biases are zero")}
    with torch.no_grad():
        module.in_proj_bias.uniform_(-1, 1)
        module.out_proj.bias.uniform_(-1, 1)
    modules["with_biases"] = as_it_is("the same weights, biases drawn from [-1, 1)")

    pieces = {
        "what": "The example at the end of 000.txt, run again with a seed: mhattn_example.py. A boolean mask is PyTorch's, true hides.",
        "pytorch": torch.__version__,
        "seed": SEED,
        "heads": H,
        "inputs": {"q": listed(q), "k": listed(k), "v": listed(v)},
        "masks": {name: listed(mask) for name, mask in masks.items()},
        "modules": modules,
    }
    print("{")
    for at, (name, piece) in enumerate(pieces.items()):
        print(f"{json.dumps(name)}: {json.dumps(piece)}{',' if at + 1 < len(pieces) else ''}")
    print("}")


main()
