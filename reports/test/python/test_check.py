"""attest.check: what it returns and raises, and the options of the command line."""

import collections.abc
import json
import pathlib
import re
import subprocess
import time

import attest
import pytest
from attest import _check, _options, _result
from kernels import MANIFEST, made

ORACLE = {"dtypes": "f32", "properties": "attention.oracle", "manifest": MANIFEST, "no_large": True}


def failure_of(function, **arguments):
    with pytest.raises(AssertionError) as caught:
        attest.check(function, **{**ORACLE, "cases": 60, **arguments})
    return caught.value


def test_the_result_is_the_summary_and_more(tmp_path):
    result = attest.check(made(), **{**ORACLE, "dtypes": ["f32", "f64"], "cases": 300}, out=tmp_path / "run")
    assert isinstance(result, collections.abc.Mapping) and isinstance(result, attest.Result)
    assert result == json.loads((tmp_path / "run/summary.json").read_text())
    assert result.verdict == result["verdict"] == "held"
    assert result.causes == [] and result.folder == tmp_path / "run" and result.report.is_file()
    assert set(result.tolerances) == {"f32", "f64"}
    assert 0 < result.tolerances["f64"]["atol"] < 1e-12 < result.tolerances["f32"]["atol"] < 1e-3


def test_a_temporary_folder_is_gone_where_all_held():
    result = attest.check(made(), cases=20, **ORACLE)
    assert result.folder is None and result.report is None and result.verdict == "held"


def test_a_failure_is_one_cause_in_25_lines():
    error = failure_of(made(1.01), properties=None, cases=40)
    lines = str(error).splitlines()
    assert len(lines) <= 25
    assert re.match(r"mine: violated: attention\.\S+ in f32, ", lines[0])
    assert sum(line.startswith("VIOLATED ") for line in lines) == 1
    assert sum(line.startswith("  what ") for line in lines) == 1
    assert any(line.startswith("  replay: ATTEST_REPLAY=/") for line in lines)
    assert lines[-1] == f"report: {error.result.report}" and error.result.report.is_file()
    assert error.result.verdict == "violated"
    (cause,) = error.result.causes
    assert cause["what"] == "an error beyond its bound" and cause["when"].startswith("in ") and "replay" not in cause


def test_a_failure_of_many_dtypes_and_a_long_reason_keeps_to_25_lines():
    def mine(q, k, v):
        raise ValueError("first line\n" + "x" * 3000 + "\nlast line")

    error = failure_of(mine, dtypes=["f64", "f32", "f16", "bf16"], properties=["attention.oracle", "softmax.*"], cases=5)
    assert len(str(error).splitlines()) <= 25


def of_a_message(why="why", notes=0, reason="out[0] = 1"):
    """A result as summary.json has it, of nine properties and two causes."""
    finding = {"k": 1, "class": "bound", "case": "cases/x y.safetensors", "reason": reason}
    properties = [{"name": f"attention.{index}", "verdict": "violated", "findings": [finding]} for index in range(9)]
    told = [{"what": what, "why": why, "found": "stands above", "replay": "attest replay"} for what in ("one", "two")]
    return _result.Result(
        {"verdict": "violated", "kernels": [{"dtype": "f32", "properties": properties}],
         "causes": [{"told": one, "example": {"property": "attention.3"}} for one in told],
         "notes": [{"kernel": "mine", "text": f"note {index}"} for index in range(notes)],
         "concluded": {"exit_status": 1, "headline": "violated", "problems": [], "worse": []}},
        pathlib.Path("run"),
    )  # fmt: skip


def test_a_message_is_of_the_summary_alone():
    assert _result.message("mine", of_a_message(), again=lambda about: f"pytest {about}").splitlines() == [
        "mine: violated: attention.0 in f32, attention.1 in f32, attention.2 in f32 and 6 more",
        "VIOLATED attention.3 by mine in f32, case 1 (bound)",
        "  out[0] = 1",
        "  what      one",
        "  why       why",
        "  replay: ATTEST_REPLAY='run/cases/x y.safetensors' pytest attention.3",
        "report: run/report.html",
    ]
    preferred = _result.message("mine", of_a_message(), prefer="attention.7", again=lambda about: about)
    assert "VIOLATED attention.7 by" in preferred and "safetensors' attention.7\n" in preferred


def test_a_message_is_cut():
    result = of_a_message(why=" ".join(["word"] * 70), notes=9)
    result["concluded"]["problems"] = [f"WORSE {index}" for index in range(30)]
    lines = _result.message("mine", result).splitlines()
    assert len(lines) == 25 and "two" not in "".join(lines) and max(map(len, lines[1:-2])) <= 100
    assert [line for line in lines if line.startswith("note: ")] == [f"note: note {index}" for index in range(4)]
    assert lines[-3] == "  … the rest stands in the report" and lines[-1] == "report: run/report.html"


def test_words_of_a_kernel_keep_to_a_line():
    lines = _result.message("mine", of_a_message(why="a\nb\x1b[2J", reason="\u202ex\n" + "y" * 9000)).splitlines()
    assert len(lines) == 7 and all(line.isprintable() for line in lines)
    assert len(lines[2]) < 500 and lines[2].startswith("  \ufffdx y")


def test_what_is_undecided_says_why():
    def mine(q, k, v, scale=1.0):
        if q.shape[2] > 1:
            raise attest.Unsupported("many queries")
        return made()(q, k, v, scale=scale)

    error = failure_of(mine, properties=None, cases=100)
    assert str(error).startswith("mine: inconclusive") and "undecided" in str(error)
    assert error.result.verdict == "inconclusive" and len(str(error).splitlines()) <= 25


def test_options_are_those_of_the_command_line(tmp_path):
    attest.check(made(), cases=20, **ORACLE, junit=tmp_path / "j.xml", fail_fast=True, shapes_only=False, time="30s")
    assert "<testsuite" in (tmp_path / "j.xml").read_text()
    shapes = {"no_large": None, "shape": [(1, 2, 2, 3, 55, 4), "1,1,1,2,66,8"], "shapes_only": True}
    journal = attest.check(made(), cases=20, **{**ORACLE, **shapes}, out=tmp_path / "run", seed=7).folder / "run.jsonl"
    begins = json.loads(journal.read_text().splitlines()[0])
    assert begins["seed"] == 7 and "1,2,2,3,55,4" in str(begins) and "1,1,1,2,66,8" in str(begins)


def test_every_option_that_the_shell_completes_is_a_keyword():
    program = _check._program()
    script = subprocess.run([program, "--bash-completion"], stdout=subprocess.PIPE, check=True).stdout.decode()
    words = re.search(r"^ +check\) choices='(.*?)'", script, re.MULTILINE)[1].split()
    options = {word[2:].replace("-", "_") for word in words if word.startswith("--")} - {"help"}
    assert set(_options.options_of(program)) - {"help"} == options and len(options) > 30
    values = set(re.findall(r"check:--([a-z-]+)[|)]", script))
    assert {name for name, value in _options.options_of(program).items() if value} >= {
        name.replace("-", "_") for name in values - {"output"}
    }


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"fail_fst": True}, "there is no argument 'fail_fst'; did you mean 'fail_fast'?"),
        ({"caess": 3}, "there is no argument 'caess'; did you mean 'cases'?"),
        ({"kernel": "builtin:flash"}, "there is no argument 'kernel'"),
        ({"fail_fast": 3}, "fail_fast is 3; it must be True or False"),
        ({"junit": object}, "which no option takes"),
        ({"framework": "paddle"}, "framework is 'paddle'; it must be 'numpy', 'torch', 'jax' or 'cupy'"),
        ({"layout": "sbhd"}, "layout is 'sbhd'; it must be 'bhsd', 'bshd' or 'thd'"),
        ({"is_causal": True}, "is_causal is True; it must be the name of the function's parameter, or False"),
        ({"time": "soon"}, "--time"),
    ],
)
def test_misuse_is_one_line(wrong, said):
    with pytest.raises(attest.AttestError) as caught:
        attest.check(made(), cases=5, **{**ORACLE, **wrong})
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_worse_than_a_baseline_is_a_failure(tmp_path):
    attest.check(made(), cases=400, **ORACLE, out=tmp_path / "before")
    attest.check(made(), **ORACLE, baseline=tmp_path / "before")
    error = failure_of(made(1.0000003), cases=None, baseline=tmp_path / "before")
    assert str(error).startswith("mine: held, and worse than the baseline\n")
    assert "WORSE attention.oracle by mine in f32" in str(error)
    assert len(str(error).splitlines()) <= 25


# Whose cases four jobs take side by side.
AT_ONCE = {"dtypes": ["f32", "f64"], "properties": ["attention.oracle", "attention.finite"], "manifest": MANIFEST, "jobs": 4}


def test_a_call_that_waits_for_its_turn_is_not_late():
    def slow(q, k, v, scale=1.0):
        time.sleep(0.4)
        return made()(q, k, v, scale=scale)

    # The last of four waits for 1.2 s before its own time begins.
    assert attest.check(slow, **AT_ONCE, no_large=True, cases=3, timeout="1s").verdict == "held"


def test_of_calls_at_once_the_one_that_is_late_is_told():
    def sometimes_late(q, k, v, scale=1.0):
        time.sleep(1.2 if k.shape[2] == 7 else 0.1)
        return made()(q, k, v, scale=scale)

    shapes = {"shape": [(1, 1, 1, 2, n, 4) for n in (3, 5, 7)], "shapes_only": True, "no_large": None}
    error = failure_of(sometimes_late, **AT_ONCE, **shapes, cases=6, timeout="500ms")
    findings = [(of["dtype"], one) for of in error.result["kernels"] for entry in of["properties"] for one in entry["findings"]]
    assert {dtype for dtype, _ in findings} == {"f32", "f64"}
    assert all("no reply within 0.5 s" in one["reason"] for _, one in findings)
    assert {attest.load(error.result.folder / one["case"]).k.shape[2] for _, one in findings} == {7}


def test_every_public_name_says_what_it_is_and_where_it_is_from():
    for name in attest.__all__:
        told = getattr(attest, name).__doc__
        assert told and len(told.split()) > 3, name
        if name not in ("AttestError", "Unsupported", "Rejected"):
            assert re.search(r"Source:\s+\S", told) or name == "assert_close", name


def test_a_run_is_read_again_and_is_flat_for_pandas(tmp_path):
    result = failure_of(made(1.01), dtypes="f32", properties="attention.*", cases=20, out=tmp_path / "run").result
    (tmp_path / "run" / "report.html").unlink()
    for named in (tmp_path / "run", tmp_path / "run" / "report.html", str(tmp_path / "run")):
        again = attest.report(named)
        assert again == result and again.causes == result.causes and again.report.exists() and again.folder == tmp_path / "run"
    assert {"what", "when", "smallest", "fails"} <= set(again.causes[0])
    records = again.records()
    assert len(records) == sum(len(of["properties"]) for of in again["kernels"]) and {one["dtype"] for one in records} == {"f32"}
    wrong = next(one for one in records if one["property"] == "attention.oracle")
    assert wrong["verdict"] == "violated" and wrong["violated"] > 0 and wrong["utilisation"] > 1
    assert all(one["cases"] == sum(one[key] for key in ("held", "violated", "skipped", "excused", "inconclusive")) for one in records)
    (tmp_path / "empty").mkdir()
    with pytest.raises(attest.AttestError, match="is no folder of a run"):
        attest.report(tmp_path / "empty")
