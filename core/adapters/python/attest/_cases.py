"""attest.Case, attest.cases and attest.load."""

import dataclasses
import json
import os
import struct
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

from attest import _check, _exact, _service
from attest._arrays import CARRIERS, on_host, word_of
from attest._errors import AttestError
from attest._problem import BLOCKS, Problem, manifest_for

# The metadata of a case file that says what is asked; everything else there is about where the case comes from.
_SCALARS = (
    "scale", "causal", "mask_convention", "heads", "variants", "window_left", "window_right", "attention_chunk",
    "alignment", "softcap", "dropout_p", "dropout_seed", "q_descale_block", "kv_descale_block",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One problem, as attest draws it or as a case file has it. Printed, it is in words and numbers.

    dtype      "f64", "f32", "f16", "bf16", …: of q, and of what a kernel is to return
    tensors    arrays by name: q, k and v, mask where there is one, and a multi-head problem's weights. bf16 is float32, the
               same numbers, and float8 its bits as uint8; see torch()
    scale, causal, mask_convention  as in attest.exact
    operation  "attention" or "multihead"; heads is of the latter
    window_left, window_right  as in attest.exact, of a case that has a window
    attention_chunk  as in attest.exact; 0 of a case without chunks
    alignment  as in attest.exact, of a case that has a window, chunks or ALiBi slopes; else None
    softcap    as in attest.exact; 0 of a case without one
    dropout_p  as in attest.exact, of a case whose tensors have a keep; else 0
    q_descale_block, kv_descale_block  as in attest.exact; 0 of a case without factors in blocks
    about      where it comes from: "property", "seed", "k", "kinds" and others, as far as they are known

    Source: kernel-interface.md, "Case files".
    """

    dtype: str
    operation: str
    tensors: Mapping[str, Any]
    scale: float
    causal: str
    mask_convention: str
    heads: Optional[int]
    window_left: int
    window_right: int
    attention_chunk: int
    alignment: Optional[str]
    softcap: float
    dropout_p: float
    q_descale_block: int
    kv_descale_block: int
    about: Mapping[str, str]
    _text: str
    _bits: Dict[str, tuple]  # as a case file has the tensors, by name
    _metadata: Dict[str, str]

    @property
    def q(self):
        return self.tensors["q"]

    @property
    def k(self):
        return self.tensors["k"]

    @property
    def v(self):
        return self.tensors["v"]

    @property
    def mask(self):
        return self.tensors.get("mask")

    @property
    def arguments(self) -> Dict[str, Any]:
        """What is not neutral beside q, k, v (and w_q, w_k, w_v): `function(case.q, case.k, case.v, **case.arguments)`."""
        named: Dict[str, Any] = {"scale": self.scale}
        if self.operation == "multihead":
            named["heads"] = self.heads
        given = ("q", "k", "v") if self.operation == "attention" else ("q", "k", "v", "w_q", "w_k", "w_v")
        named.update({name: tensor for name, tensor in self.tensors.items() if name not in given})
        if self.causal != "none":
            named["causal"] = self.causal
        if self.mask_convention != "post-scale":
            named["mask_convention"] = self.mask_convention
        if max(self.window_left, self.window_right) >= 0:
            named.update(window_left=self.window_left, window_right=self.window_right)
        if self.attention_chunk:
            named["attention_chunk"] = self.attention_chunk
        if self.alignment is not None:
            named["alignment"] = self.alignment
        if self.softcap:
            named["softcap"] = self.softcap
        if self.dropout_p:
            named["dropout_p"] = self.dropout_p
        named.update({name: getattr(self, name) for name in BLOCKS if getattr(self, name)})
        return named

    def torch(self, device=None) -> "Case":
        """The same case in torch's tensors, of the dtype that it says."""
        import torch

        known = {"BF16": torch.bfloat16, "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}

        def tensor(dtype, bits):
            if dtype in known:
                of = known[dtype] if dtype == "BF16" else getattr(torch, known[dtype])
                return torch.from_numpy(bits.view("int16" if dtype == "BF16" else "uint8").copy()).view(of).to(device)
            return torch.from_numpy(bits.copy()).to(device)

        return dataclasses.replace(self, tensors={name: tensor(*bits) for name, bits in self._bits.items()})

    def _problem(self):
        if self.operation != "attention":
            raise AttestError(f"the case is one of {self.operation}; attest.check and attest replay judge these")
        return Problem.of(self._bits, self._metadata)

    def exact(self, **options) -> "_exact.Exact":
        """attest.exact of this problem; options: out_dtype, manifest, rows, narrow."""
        return _exact.exact_of(self._problem(), **options)

    def allclose(self, out, **options) -> "_exact.Closeness":
        """attest.allclose of what a function returned for this problem; options: manifest, rows. Of bf16 an array of float32
        is rounded to bf16 first, as that is what the function was given."""
        if self.dtype == "bf16" and on_host(out, "out")[0] == "F32":
            out = _RoundedToBf16(out)
        return _exact.allclose_of(self._problem(), out, **options)

    def save(self, path) -> None:
        """Writes a case file, which attest check --case and attest replay take."""
        _service.save_case(path, self._metadata, self._bits)

    def __repr__(self):
        return self._text.rstrip("\n")


class _RoundedToBf16:
    def __init__(self, out):
        adapter = _check.adapter()
        self.attest_bits = "BF16", adapter.f32_to_bf16(on_host(out, "out")[1])


def _shown(dtype, bits):
    if dtype != "BF16":
        return bits
    return _check.adapter().bf16_to_f32(bits)


def _case_of(request, metadata, tensors):
    answer, arrays, described = _service.ask_for_file({"ask": "case", **request}, metadata, tensors)
    said = described["__metadata__"]
    bits = {name: (described[name]["dtype"], array) for name, array in arrays.items()}
    return Case(
        dtype=word_of(bits["q"][0]),
        operation=said["op"],
        tensors={name: _shown(*of) for name, of in bits.items()},
        scale=float(said["scale"]),
        causal=said.get("causal", "none"),
        mask_convention=said.get("mask_convention", "post-scale"),
        heads=int(said["heads"]) if said["op"] == "multihead" else None,
        window_left=int(said.get("window_left", -1)),
        window_right=int(said.get("window_right", -1)),
        attention_chunk=int(said.get("attention_chunk", 0)),
        alignment=said.get("alignment"),
        softcap=float(said.get("softcap", 0)),
        dropout_p=float(said.get("dropout_p", 0)),
        q_descale_block=int(said.get("q_descale_block", 0)),
        kv_descale_block=int(said.get("kv_descale_block", 0)),
        about={key: value for key, value in said.items() if key not in ("attest", "op", *_SCALARS)},
        _text=answer["text"],
        _bits=bits,
        _metadata=said,
    )


def load(path) -> Case:
    """A saved case: those of a run lie in its folder's cases/, and attest.observe's are some. AttestError, one line, for a
    file that is none. Source: kernel-interface.md, "Case files"."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            (length,) = struct.unpack("<Q", file.read(8))
            if length > size - 8:
                raise ValueError("is no safetensors file")
            header = json.loads(file.read(length))
            import numpy

            body = numpy.frombuffer(file.read(), numpy.uint8)
        metadata = header.pop("__metadata__", {})
        tensors = {}
        for name, of in header.items():
            first, end = of["data_offsets"]
            tensors[name] = (of["dtype"], body[first:end].view(CARRIERS[of["dtype"]]).reshape(of["shape"]))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise AttestError(f"{os.fspath(path)} is no case file: {error}") from None
    tensors.pop("found", None)  # what a kernel answered
    try:
        return _case_of({}, metadata, tensors)
    except AttestError as error:
        raise AttestError(f"{os.fspath(path)}: {error}") from None


def _drawing(dtype, property, manifest, shapes, large):
    request = {"property": property, "dtype": _check.dtype_word(dtype), "large": large}
    if manifest is not None:
        request["manifest"] = manifest_for(manifest, request["dtype"], "the function")
    if shapes is not None:
        request["shapes"] = [_shape_text(shape) for shape in ([shapes] if isinstance(shapes, str) else shapes)]
    return request


def _shape_text(shape):
    return shape if isinstance(shape, str) else ",".join(str(int(extent)) for extent in shape)


def cases(
    seed: int = 1,
    dtype: str = "f32",
    shapes: Optional[Sequence] = None,
    *,
    property: str = "attention.oracle",
    count: Optional[int] = None,
    manifest: Optional[dict] = None,
    large: str = "none",
) -> Iterator[Case]:
    """The cases that attest check draws for a property: case k is a function of seed, property, dtype and k alone.

    seed      of a run, attest check --seed
    dtype     "f64", "f32", "f16", "bf16", or NumPy's or torch's own
    shapes    draw these in the place of production shapes: (batch, heads, key-value heads, queries, keys, columns of keys
              [and of values]) each, as attest check --shape has them; with large="all" no others
    property  whose cases: those of attention.oracle are of every kind
    count     so many (default: without end)
    manifest  what a function supports: cases are brought to its limits of shape. What masks and causal forms it takes is
              for whoever calls it. Windows, chunks, caps, slopes, factors, lengths and other variants are drawn where
              it lists them
    large     "none", "some" (about a third of the cost) or "all": production shapes

    Raises AttestError, one line, where an argument is wrong. Source: theorems.md has the properties; the cases are those of
    attest check.
    """
    request = _drawing(dtype, property, manifest, shapes, large)
    k = 0
    while count is None or k < count:
        yield _case_of({**request, "seed": int(seed), "k": k}, {}, {})
        k += 1
