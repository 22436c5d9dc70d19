"""The adapters to frameworks of today: each is asked a few cases where its framework is installed for this interpreter."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attest import _check

ADAPTERS = Path(__file__).resolve().parents[3] / "core/adapters"
ORACLE = ("--property", "attention.oracle", "--no-large", "--timeout", "120")


def lacking(reason):
    """Skips, but fails where all frameworks are said to be here."""
    if os.environ.get("ATTEST_ALL_FRAMEWORKS"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def needs(*modules):
    """Skips with the reason where one is missing; "torch" is PyTorch 2.5 or later."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            lacking(f"{module} is not installed for {sys.executable}")
        if module == "torch":
            import torch

            if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 5):
                lacking(f"these are kernels of PyTorch 2.5 and later; {sys.executable} has {torch.__version__}")


def verdicts(tmp_path, kernel, *arguments, cases=20, path=None):
    """Of the definition alone, by dtype."""
    out = tmp_path / "run"
    environment = {**os.environ, "PATH": path or os.environ["PATH"], "TRITON_INTERPRET": "1"}
    run = subprocess.run(
        [_check._program(), "check", "--kernel", kernel, *ORACLE, "--cases", str(cases), *arguments, "--out", str(out)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert (out / "summary.json").exists(), run.stdout + run.stderr
    return {kernel["dtype"]: kernel["verdict"] for kernel in json.loads((out / "summary.json").read_text())["kernels"]}


def adapter(script, *words):
    return f"exec:{sys.executable} {ADAPTERS / script} {' '.join(words)}"


HOLDS = [
    (["torch"], "pytorch/sdpa_backends.py math", "bf16", 20),
    (["torch"], "pytorch/sdpa_backends.py flash", "bf16", 20),
    (["torch"], "pytorch/flex_kernels.py flex", "f32", 20),
    (["torch"], "pytorch/flex_kernels.py nested", "f16", 20),
    (["torch", "triton"], "triton/fused_attention.py", "f16", 20),
    # Each shape is compiled.
    (["jax"], "jax/jax_kernel.py", "f32", 10),
    (["jax"], "jax/pallas_kernels.py gpu", "bf16", 4),
    (["onnxruntime", "onnx"], "onnxruntime/ort_python.py attention", "f16", 20),
    (["onnxruntime", "onnx"], "onnxruntime/ort_python.py attention-23", "f16", 20),
    (["openvino"], "openvino/openvino_kernel.py", "f32", 20),
]


@pytest.mark.parametrize(("modules", "script", "dtype", "cases"), HOLDS, ids=[script for _, script, *_ in HOLDS])
def test_holds(tmp_path, modules, script, dtype, cases):
    needs(*modules)
    assert verdicts(tmp_path, adapter(*script.split()), "--dtype", dtype, cases=cases) == {dtype: "held"}


def test_pytorch_of_the_python_on_the_path_is_checked_by_default(tmp_path):
    needs("torch")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    found = verdicts(tmp_path, "pytorch:sdpa", path=path)
    assert found == dict.fromkeys(("f64", "f32", "f16", "bf16"), "held")  # 1.13 has no f16


def test_what_pytorch_2_does_otherwise_is_found(tmp_path):
    needs("torch")
    run = subprocess.run([sys.executable, ADAPTERS / "pytorch/probe_2.py"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_causal_form_of_onnxruntimes_multihead_is_found(tmp_path):
    needs("onnxruntime", "onnx")
    kernel = adapter("onnxruntime/ort_python.py", "multihead")
    assert verdicts(tmp_path, kernel, cases=60) == {"f32": "violated"}
