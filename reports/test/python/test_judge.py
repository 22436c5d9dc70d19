"""attest.judge."""

import json
import subprocess

import pytest

import attest
from attest import _check

CONTRACT = {
    "schema": "attest-contract/1",
    "name": "two shapes",
    "kernel": {"dtypes": ["f32"], "masks": [], "causal": ["top-left"]},
    "shapes": ["1,2,2,7,9,8", "1,1,1,16,16,4"],
    "cases": 20,
}


def test_a_right_kernel_passes_and_leaves_nothing():
    judged = attest.judge("builtin:flash", CONTRACT)
    assert judged and judged.verdict == judged["verdict"] == "pass" and judged["share"] == 1
    assert judged["contract"] == "two shapes" and 0 < judged["worst"] <= 1 and "PASS" in repr(judged)
    assert not judged.folder.exists() and set(judged) == set(dict(judged))


def test_a_wrong_kernel_fails_and_its_run_is_kept(tmp_path):
    (tmp_path / "contract.json").write_text(json.dumps(CONTRACT))
    judged = attest.judge("fault:scale-ignored", tmp_path / "contract.json", out=tmp_path / "run", seed=7, jobs=1)
    assert not judged and judged.verdict == "fail" and judged["causes"] and judged["seed"] in (7, "7")
    assert judged.folder == tmp_path / "run" and (tmp_path / "run" / "report.html").exists()
    again = json.loads((tmp_path / "run" / "judgement.json").read_text())
    assert dict(judged) == again


def test_a_python_file_is_started_by_this_python(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import attest_adapter\nimport numpy\n"
        "def attention(q, k, v, scale=1.0, causal='none'):\n"
        "    s = (q @ k.swapaxes(-1, -2)) * numpy.float32(scale)\n"
        "    if causal == 'top-left':\n"
        "        s = numpy.where(numpy.tri(*s.shape[-2:], dtype=bool), s, -numpy.inf)\n"
        "    with numpy.errstate(all='ignore'):\n"
        "        w = numpy.exp(s - s.max(-1, keepdims=True, initial=-numpy.inf))\n"
        "        return w @ v / w.sum(-1, keepdims=True)\n"
        "attest_adapter.serve(attention, {'name': 'mine', 'dtypes': ['f32']})\n"
    )
    judged = attest.judge(tmp_path / "mine.py", CONTRACT, walls=False, fail_fast=True)
    # Without walls it is no pass, however right it is.
    assert judged.verdict == "undecided" and judged["share"] == 1 and not judged["causes"], judged


def test_captured_calls_are_judged(tmp_path):
    import numpy

    def attention(q, k, v):
        s = (q @ k.swapaxes(-1, -2)) * numpy.float32(q.shape[-1] ** -0.5)
        w = numpy.exp(s - s.max(-1, keepdims=True))
        return w @ v / w.sum(-1, keepdims=True)

    random = numpy.random.default_rng(1)
    observed = attest.observe(attention, tmp_path / "calls")
    for _ in range(5):
        for _, h, _, m, n, d in ((1, 2, 2, 7, 9, 8), (1, 1, 1, 16, 16, 4)):
            observed(*(random.standard_normal((1, h, length, d)).astype("float32") for length in (m, n, n)))
    observed.close()
    contract = {**CONTRACT, "share": 0.5}
    assert attest.judge(captured=tmp_path / "calls", contract=contract)["cases"] == 10


@pytest.mark.parametrize(
    "arguments, line",
    [
        ({"kernel": print}, "the kernel is a builtin_function_or_method; what is judged runs behind walls"),
        ({"kernel": "builtin:flsh"}, "builtin:flsh"),
        ({}, "--kernel is missing"),
        ({"kernel": "builtin:flash", "contract": "sdpa-f33"}, "sdpa-f33"),
        ({"kernel": "builtin:flash", "contract": {**CONTRACT, "cases": -1}}, "cases"),
        ({"kernel": "builtin:flash", "time": "soon"}, "soon"),
    ],
)
def test_mistakes_cost_a_line(arguments, line):
    with pytest.raises(attest.AttestError, match=line):
        attest.judge(**{"contract": CONTRACT, **arguments})


def test_starters_are_known_by_name():
    named = subprocess.run([_check._program(), "judge", "--print-contract", "sdpa-f32"], stdout=subprocess.PIPE)
    assert json.loads(named.stdout)["name"] == "sdpa-f32"
