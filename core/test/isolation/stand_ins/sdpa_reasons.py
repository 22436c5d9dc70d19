"""Why sdpa_backends.py refuses to serve, asked of stand-ins for the module torch; exits 1 at the first wrong answer."""

import os
import sys
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../adapters/pytorch"))
from sdpa_backends import BACKENDS, manifest_of, why_not_served  # noqa: E402


def torch(version, backends, gpu=False):
    nn = SimpleNamespace(attention=SimpleNamespace(SDPBackend=SimpleNamespace(**dict.fromkeys(backends))))
    return SimpleNamespace(__version__=version, nn=nn if backends else SimpleNamespace(),
                           cuda=SimpleNamespace(is_available=lambda: gpu))


EARLY = ("MATH", "EFFICIENT_ATTENTION", "FLASH_ATTENTION")
ALL = (*EARLY, "CUDNN_ATTENTION")
for name, device, library, reason in (
        ("math", "cpu", torch("1.13.1", ()), "need PyTorch 2.3 or later"),
        ("math", "cpu", torch("2.1.0", ()), "need PyTorch 2.3 or later"),
        ("cudnn", "cuda", torch("2.3.0", EARLY, gpu=True), "has no back end cudnn"),
        ("cudnn", "cpu", torch("2.5.0", ALL), "is for GPUs; add --device cuda"),
        ("efficient", "cpu", torch("2.5.0", ALL, gpu=True), "is for GPUs; add --device cuda"),
        ("flash", "cuda", torch("2.5.0", ALL), "finds no GPU"),
        ("flash", "cpu", torch("2.5.0", ALL), ""),
        ("cudnn", "cuda", torch("2.5.0", ALL, gpu=True), "")):
    found = why_not_served(name, device, library)
    if bool(found) != bool(reason) or reason not in found:
        sys.exit(f"{name} on {device} with {library.__version__}: {found!r}, not {reason!r}")

for name, backend in BACKENDS.items():
    for device in backend["devices"]:
        manifest = manifest_of(name, device, "2.5.0")
        if list(manifest["arithmetic"]) != manifest["dtypes"] or not manifest["dtypes"]:
            sys.exit(f"{name} on {device}: {manifest}")
if manifest_of("flash", "cuda", "2.5.0")["masks"] or "f32" in manifest_of("flash", "cuda", "2.5.0")["dtypes"]:
    sys.exit("flash on a GPU takes neither masks nor f32")
