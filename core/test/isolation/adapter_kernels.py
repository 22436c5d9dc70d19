"""Functions put under test through attest_adapter.py, each right or wrong in one way: adapter_kernels.py MODE."""

import sys

import attest_adapter

print("this line would break the frames if the adapter let it")

import numpy  # noqa: E402

mode = sys.argv[1]


def softmax_product(q, k, v, mask=None, scale=1.0):
    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)
    if mask is not None:
        scores = numpy.where(mask, scores, -numpy.inf) if mask.dtype == bool else scores + mask
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def scale_one_percent_off(q, k, v, mask=None, scale=1.0):
    return softmax_product(q, k, v, mask, 1.01 * scale)


def plain(q, k, v):
    return softmax_product(q, k, v, None, 1 / numpy.sqrt(q.shape[-1]))


def fails(q, k, v, mask=None, scale=1.0):
    raise ValueError('a message with "quotes",\nlines and ünïcode')


def refuses(q, k, v, mask=None, scale=1.0):
    raise attest_adapter.Rejected("I do not like it")


def declines(q, k, v, mask=None, scale=1.0):
    raise attest_adapter.Unsupported("not today")


def wrong_dtype(q, k, v, mask=None, scale=1.0):
    return softmax_product(q, k, v, mask, scale).astype(numpy.float64)


def wrong_shape(q, k, v, mask=None, scale=1.0):
    return softmax_product(q, k, v, mask, scale)[..., :-1]


def prints(q, k, v, mask=None, scale=1.0):
    print("a line per call")
    return softmax_product(q, k, v, mask, scale)


def echo_q(q, k, v, **named):
    return q


def writes_to_inputs(q, k, v, scale=1.0):
    q *= q.dtype.type(scale)
    return softmax_product(q, k, v)


def with_lse(q, k, v, scale=1.0, want_lse=False):
    scores = (q @ k.swapaxes(-1, -2)).astype(numpy.float64) * scale
    out = softmax_product(q, k, v, None, scale)
    return (out, numpy.log(numpy.exp(scores).sum(axis=-1))) if want_lse else out


def multihead_sum(q, k, v, w_q, w_k, w_v, heads, scale=1.0, b_q=None):
    return q + q.dtype.type(heads) + (0 if b_q is None else b_q)


def torch_attention(q, k, v, mask=None, scale=1.0):
    import torch

    scores = (q @ k.transpose(-1, -2)) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v


def behind_row(k):
    """A view of k's first row and the element behind it."""
    width = k.shape[-1] + 1
    if not isinstance(k, numpy.ndarray):
        return k.as_strided((width,), (1,), k.storage_offset())
    return numpy.lib.stride_tricks.as_strided(k, (width,), (k.itemsize,))


def about_strides(q, k, v, scale=1.0):
    """scale 1: the strides of k, counted in elements, in the place of the first numbers of q. 2: reads the gap behind a
    row of k, 3: writes to it, 4: writes to k."""
    torch = not isinstance(q, numpy.ndarray)
    out = q.clone() if torch else q.copy()
    if scale == 1.0:
        for i, stride in enumerate(k.stride() if torch else [step // k.itemsize for step in k.strides]):
            out[0, 0, 0, i] = float(stride)
    elif scale == 2.0:
        out[0, 0, 0, 0] += 0 * behind_row(k)[-1]
    else:
        behind_row(k)[-1 if scale == 3.0 else 0] = 0
    return out


def appends(q, k, v, kv_lengths=None, k_new=None, v_new=None):
    """Writes new keys into the cache, as `mode` has it, and attends to them."""
    if mode == "appends-copied" and k_new is not None:
        k, v = (t.copy() if isinstance(t, numpy.ndarray) else t.clone() for t in (k, v))
    xp = numpy if isinstance(q, numpy.ndarray) else __import__("torch")
    out = xp.zeros(tuple(q.shape[:3]) + tuple(v.shape[3:]), dtype=q.dtype)
    for b in range(q.shape[0]):
        length = k.shape[2] if kv_lengths is None else int(kv_lengths[b])
        keys, values = k[b : b + 1, :, :length], v[b : b + 1, :, :length]
        if k_new is not None:
            end = length + k_new.shape[2]
            if mode != "appends-nothing":
                k[b, :, length:end], v[b, :, length:end] = k_new[b], v_new[b]
            if mode == "appends-elsewhere":
                k[b, :, length - 1] = k_new[b, :, 0]
            keys = xp.concatenate([keys, k_new[b : b + 1]], 2)
            values = xp.concatenate([values, v_new[b : b + 1]], 2)
        attend = softmax_product if xp is numpy else torch_attention
        out[b : b + 1] = attend(q[b : b + 1], keys, values, None, 1 / q.shape[-1] ** 0.5)
    return (out, None, k, v) if mode == "appends-copied" and k_new is not None else out


if mode.startswith("appends"):
    torch = mode == "appends-torch"
    attest_adapter.serve(appends, {"dtypes": ["f32"]} if torch else None, framework="torch" if torch else "numpy")
elif mode in ("strides-numpy", "strides-torch"):
    attest_adapter.serve(about_strides, {"dtypes": ["f32"], "strides": True}, framework=mode[len("strides-") :])
elif mode == "multihead":
    attest_adapter.serve(multihead=multihead_sum)
elif mode == "torch":
    attest_adapter.serve(torch_attention, {"dtypes": ["f64", "f32", "bf16"]}, framework="torch")
elif mode == "torch-echo":
    attest_adapter.serve(echo_q, {"dtypes": ["f64", "f32", "f16", "bf16"]}, framework="torch")
elif mode == "torch-device":
    attest_adapter.serve(echo_q, {"dtypes": ["f64", "f32", "f16", "bf16"]}, framework="torch", device="cpu")
elif mode == "torch-dlpack":
    # What is no tensor of PyTorch's comes in through DLPack.
    attest_adapter.serve(lambda q, k, v, scale: q.numpy(), {"dtypes": ["f64", "f32", "f16"]}, framework="torch")
elif mode == "unshared":
    attest_adapter.serve(softmax_product, {"shared_memory": False})
elif mode == "echo-bits":
    attest_adapter.serve(echo_q, {"dtypes": ["f16", "bf16", "f8_e4m3", "f8_e5m2"]}, bf16="bits")
elif mode == "bf16":
    attest_adapter.serve(softmax_product, {"dtypes": ["bf16"]})
elif mode == "echo-bf16":
    attest_adapter.serve(echo_q, {"dtypes": ["bf16"]})
elif mode == "lse":
    attest_adapter.serve(with_lse, {"lse": True})
else:
    attest_adapter.serve(globals()[mode.replace("-", "_")], {"version": "3"})
