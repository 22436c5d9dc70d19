"""The plugin of pytest: one test for each property and dtype, and what it says."""

import json
import os
import re
import xml.etree.ElementTree

import attest
import kernels  # noqa: F401  with NumPy, before pytest is, which forgets what was loaded since
import pytest

pytest_plugins = ["pytester"]
HERE = os.path.dirname(os.path.abspath(__file__))

RIGHT = """
    import attest
    from kernels import MANIFEST, made
    few = dict(manifest=MANIFEST, no_large=True, properties=["softmax.rows-*", "attention.[af][ni][yn]*", "attention.re*", "causal.al*"])
    mine = attest.kernel(made(), dtypes=["f32", "f64"], **few)
"""
WRONG = RIGHT + "    wrong = attest.kernel(made(1.01), **few)\n"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([HERE, os.path.dirname(os.path.dirname(attest.__file__))]))
    monkeypatch.delenv("CI", raising=False)  # where pytest shortens nothing


def run(pytester, source, *arguments):
    if source:
        pytester.makepyfile(test_mine=source)
    # Another plugin, Hypothesis' say, may have loaded NumPy into this very process, which then says so.
    quiet = ("-W", "ignore:The NumPy module was reloaded")
    return pytester.runpytest("-p", "attest._pytest", "-p", "no:cacheprovider", *quiet, "--attest-cases=60", *arguments)


def test_there_is_a_test_for_each_property_and_dtype(pytester):
    names = run(pytester, RIGHT, "--collect-only", "-q").outlines
    listed = [line for line in names if "::" in line]
    assert "test_mine.py::mine::attention.oracle[f32]" not in listed  # not among the properties asked for
    assert "test_mine.py::mine::softmax.rows-sum-to-one[f64]" in listed
    assert len(listed) == len(set(listed)) and len(listed) % 2 == 0
    whole = run(pytester, "import attest\nfrom kernels import made\nmine = attest.kernel(made())", "--collect-only", "-q")
    assert "test_mine.py::mine::attention.oracle[f32]" in whole.outlines
    assert sum("::" in line for line in whole.outlines) > 45


def test_a_right_kernel_passes_and_what_it_lacks_is_skipped(pytester):
    result = run(pytester, RIGHT, "-rs")
    outcomes = result.parseoutcomes()
    assert outcomes["skipped"] == 2 and outcomes["passed"] == 8 and "failed" not in outcomes
    result.stdout.fnmatch_lines(["*SKIPPED*the manifest's causal lists none*"])
    result.stdout.fnmatch_lines(["report: *report.html"])


def test_a_wrong_kernel_fails_with_one_cause(pytester):
    result = run(pytester, WRONG, "--junitxml=j.xml", "--attest-out=out")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] >= 1 and outcomes["passed"] >= 9
    text = result.stdout.str()
    # In the first failure, and in the summary.
    assert text.count("  what ") == 2 and "test_mine.py::wrong: violated: " in text
    assert all(len(block.splitlines()) <= 25 for block in re.split(r"^_+ .* _+$", text.partition("- attest -")[0], flags=re.MULTILINE)[1:])
    report = f"report: {pytester.path}/out/report.html"
    result.stdout.fnmatch_lines(["*- attest -*", "test_mine.py::wrong: violated: *", "  what *", report])
    assert (pytester.path / "out/report.html").is_file()
    failures = xml.etree.ElementTree.parse(pytester.path / "j.xml").iter("failure")
    assert any("  what " in one.text and "replay: ATTEST_REPLAY=" in one.text for one in failures)


def test_the_line_of_a_failure_replays_it(pytester):
    result = run(pytester, WRONG, "-x", "-k", "wrong")
    line = re.search(r"replay: ATTEST_REPLAY=(\S+) \S+ -m pytest (\S+)", result.stdout.str())
    assert run(pytester, WRONG, "-x").parseoutcomes()["failed"] == 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ATTEST_REPLAY", line[1])
        again = run(pytester, "", line[2].strip("'"))
        assert again.parseoutcomes() == {"failed": 1}
        again.stdout.fnmatch_lines(["*reproduced*"])
        mended = run(pytester, WRONG.replace("1.01", "1.0"), line[2].strip("'"))
        assert mended.parseoutcomes() == {"passed": 1}
        assert run(pytester, "", "-k", "mine and not wrong").parseoutcomes().keys() == {"skipped", "deselected"}


def test_the_tests_of_a_dtype_are_one_run(pytester):
    result = run(pytester, RIGHT, "--attest-out=out", "-k", "f32")
    assert "failed" not in result.parseoutcomes()
    assert sorted(path.name for path in (pytester.path / "out").iterdir()) == ["report.html", "test_mine.py-mine-f32"]
    summary = json.loads((pytester.path / "out/test_mine.py-mine-f32/summary.json").read_text())
    assert {of["dtype"] for of in summary["kernels"]} == {"f32"}
    assert {one["cases"] for one in summary["kernels"][0]["properties"] if one["name"] == "softmax.rows-sum-to-one"} == {60}


def test_seed_shapes_and_options_reach_the_run(pytester):
    source = RIGHT.replace("no_large=True", "shapes=[(1, 2, 2, 3, 55, 4)], shapes_only=True")
    run(pytester, source, "--attest-out=out", "--attest-seed=9", "-k", "rows-sum and f32")
    begins = (pytester.path / "out/test_mine.py-mine-f32-softmax.rows-sum-to-one/run.jsonl").read_text().splitlines()[0]
    assert json.loads(begins)["seed"] == 9 and "1,2,2,3,55,4" in begins


def test_misuse_fails_in_one_line(pytester):
    result = run(pytester, RIGHT.replace("no_large", "no_lrge"), "-k", "rows-sum and f32")
    result.stdout.fnmatch_lines(["*there is no argument 'no_lrge'; did you mean 'no_large'?"])
    assert result.parseoutcomes()["failed"] == 1


def test_what_is_undecided_fails(pytester):
    source = """
        import attest
        from kernels import MANIFEST, made
        @attest.kernel(properties="attention.repeatable", no_large=True, manifest=MANIFEST)
        def mine(q, k, v, scale=1.0):
            if WHEN:
                raise attest.Unsupported("nothing")
            return made()(q, k, v, scale=scale)
    """
    result = run(pytester, source.replace("WHEN", "q.shape[2] > 1 or k.shape[2] > 2"))
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["test_mine.py::mine: inconclusive: attention.repeatable in f32: *"])
    result = run(pytester, source.replace("WHEN", "True"))
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["nothing could be checked: *unsupported*"])


def test_worse_than_a_baseline_fails(pytester):
    one = ("-k", "oracle", "--attest-cases=400")
    source = "import attest\nfrom kernels import MANIFEST, made\nmine = attest.kernel(made(1), manifest=MANIFEST, no_large=True)\n"
    assert run(pytester, source, *one, "--attest-out=before").parseoutcomes()["passed"] == 1
    gate = "--attest-baseline=before"
    assert run(pytester, source, *one, gate).parseoutcomes()["passed"] == 1
    result = run(pytester, source.replace("made(1)", "made(1.0000003)"), *one, gate)
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*worse than the baseline*", "WORSE attention.oracle *"])


def test_processes_of_xdist_share_the_tests(pytester):
    pytest.importorskip("xdist")
    pytester.makepyfile(test_mine=WRONG)
    result = pytester.runpytest_subprocess("-pattest._pytest", "-pno:cacheprovider", "-n2", "--attest-cases=60", "--attest-out=out")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] >= 1 and outcomes["passed"] >= 9
    result.stdout.fnmatch_lines(["*- attest -*", "test_mine.py::wrong: violated: *", f"report: {pytester.path}/out/report.html"])
    assert len(list((pytester.path / "out").glob("*/summary.json"))) >= outcomes["failed"] + outcomes["passed"]


def test_a_declared_function_is_called_as_ever():
    @attest.kernel(dtypes=["f32"])
    def mine(q, k, v):
        """Of its own."""
        return q

    assert mine(1, 2, 3) == 1 and mine.__name__ == "mine" and mine.__doc__ == "Of its own."


def test_the_fixtures(pytester):
    source = """
        def test_oracle(attest_oracle):
            import numpy
            q = numpy.ones((1, 1, 2, 2))
            assert (abs(attest_oracle(q, q, q).value - 1) < 1e-12).all()
    """
    assert run(pytester, source).parseoutcomes() == {"passed": 1}


@pytest.mark.skipif(not hasattr(attest, "cases"), reason="attest.cases is not there")
def test_the_cases_of_a_fixture(pytester):
    source = """
        import pytest
        @pytest.mark.attest_cases(count=3, dtype="f32", property="attention.oracle")
        def test_case(attest_case, attest_oracle):
            c = attest_case
            assert c.dtype == "f32" and c.q.ndim == c.k.ndim == c.v.ndim == 4
            attest_oracle(c.q, c.k, c.v, mask=c.mask, scale=c.scale, causal=c.causal)
    """
    assert run(pytester, source).parseoutcomes() == {"passed": 3}
