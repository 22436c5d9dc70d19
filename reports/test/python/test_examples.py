"""The kernel in C with a backward pass that the guide shows: right as it stands, and wrong with something left out."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from attest import _check

ROOT = Path(__file__).resolve().parents[3]
KERNEL = ROOT / "reports/examples/stored_weights.c"
DQ, DK, DV = ("backward.oracle-dq", "backward.oracle-dk", "backward.oracle-dv")
MISTAKES = {
    "none": ("", "", set()),
    "no D": ("((i == j ? 1.0F : 0.0F) - row[j])", "(i == j ? 1.0F : 0.0F)", {DQ, DK}),
    "no scale in dk": ("[c] += part_of(qkv, s, t, 0, h)[c] * of_scores[j] * scale",
                       "[c] += part_of(qkv, s, t, 0, h)[c] * of_scores[j]", {DK}),
    "dv of the last row alone": ("[c] += row[j] * g[c]", "[c] = row[j] * g[c]", {DV}),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_stored_weights(mistake, tmp_path):
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    right, wrong, seen = MISTAKES[mistake]
    text = KERNEL.read_text()
    assert not right or text.count(right) == 1
    source, library, run = tmp_path / "kernel.c", tmp_path / "libkernel.so", tmp_path / "run"
    source.write_text(text.replace(right, wrong) if right else text)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-I", ROOT / "core/include", "-o", library, source, "-lm"], check=True)
    subprocess.run([_check._program(), "check", "--kernel", library, "--property", "attention.oracle,backward.*",
                    "--cases", "400", "--no-large", "--out", run], capture_output=True, check=False)  # fmt: skip
    [kernel] = json.loads((run / "summary.json").read_text())["kernels"]
    verdict = {one["name"]: one["verdict"] for one in kernel["properties"]}
    assert {name for name in (DQ, DK, DV, "attention.oracle") if verdict[name] == "violated"} == seen
    if not seen:
        assert {verdict[name] for name in (DQ, DK, DV, "attention.oracle")} == {"held"}
        assert "violated" not in verdict.values()
