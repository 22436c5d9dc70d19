"""The plugin of pytest: a test for each property and dtype of every function under @attest.kernel, and the fixtures
attest_case and attest_oracle."""

import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import attest
from attest import _check, _options, _result
from attest._declared import Declared
from attest._known import known

_CASES = 300  # from here on a property needs thirty judged cases
_CASES_OF_FIXTURE = 20
# JAX compiles for each shape anew, some tenths of a second each: a function of its arrays is asked for few cases of few
# shapes, where nothing else is said.
_CASES_OF_JAX = 20
_SHAPES_OF_JAX = ["1,2,2,5,7,8", "2,2,1,7,5,8", "1,1,1,1,33,16", "1,2,2,17,17,64"]


def pytest_addoption(parser):
    group = parser.getgroup("attest", "attention kernels under @attest.kernel")
    group.addoption("--attest-cases", type=int, metavar="N", help=f"cases per property and dtype (default: {_CASES})")
    group.addoption("--attest-seed", type=int, metavar="N", help="seed of the cases (default: 1)")
    group.addoption(
        "--attest-baseline",
        metavar="PATH",
        help="fail where something became worse since then: an earlier session's --attest-out, a run's folder or its "
        "tolerances.json",
    )
    group.addoption("--attest-out", metavar="DIR", help="where runs and report.html go (default: pytest's temporary folder)")


def pytest_configure(config):
    config.addinivalue_line("markers", "attest: the tests that @attest.kernel makes")
    config.addinivalue_line(
        "markers", "attest_cases(count=20, dtype='f32', property=None): the cases that the fixture attest_case goes through"
    )
    config.pluginmanager.register(_Session(config), "attest-session")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, name, obj):
    if isinstance(obj, Declared):
        return _Function.from_parent(collector, name=name, declared=obj)
    return None


def _dtypes_of(declared):
    row = known(declared.function) if declared.function is not None else None
    given = declared.dtypes or declared.arguments.get("manifest", {}).get("dtypes") or (row and row.manifest["dtypes"])
    given = given or ["f32"]
    return [_check.dtype_word(dtype) for dtype in ([given] if isinstance(given, str) else given)]


_catalogue = {}


def _properties_of(declared):
    program = _check._program(declared.arguments.get("program"))
    if program not in _catalogue:
        listed = subprocess.run([program, "list", "--properties", "--json"], stdout=subprocess.PIPE, check=True).stdout
        _catalogue[program] = json.loads(listed)["properties"]
    entries = {"multihead"} if declared.arguments.get("multihead") else set()
    entries |= {"attention"} if declared.function is not None else set()
    entries |= {"attention_backward"} if declared.arguments.get("backward") is not None else set()
    globs = [declared.properties] if isinstance(declared.properties, str) else declared.properties or ["*"]
    return [
        one["name"]
        for one in _catalogue[program]
        if one["needs"] in entries and any(fnmatch.fnmatchcase(one["name"], glob) for glob in globs)
    ]


class _Function(pytest.Collector):
    """The tests of one function."""

    def __init__(self, declared, **others):
        super().__init__(**others)
        self.declared = declared
        self._kernel = None

    def collect(self):
        try:
            properties, dtypes = _properties_of(self.declared), _dtypes_of(self.declared)
        except attest.AttestError as error:
            raise self.CollectError(str(error)) from None
        for dtype in dtypes:
            for name in properties:
                yield _Item.from_parent(self, name=f"{name}[{dtype}]", about=name, dtype=dtype)

    def kernel(self):
        """Ready to be checked; what the function takes is found out once. Its name is this node's, so that a session's runs
        are of kernels with a name each."""
        if self._kernel is None:
            given = {key: value for key, value in self.declared.arguments.items() if key in _check.KERNEL_ARGUMENTS}
            given["manifest"] = {"name": self.nodeid, **(given.get("manifest") or {})}
            self._kernel = _check.Kernel(self.declared.function, dtypes=_dtypes_of(self.declared), **given)
        return self._kernel

    def words(self):
        """Further options of attest check."""
        program = _check._program(self.declared.arguments.get("program"))
        options = {key: value for key, value in self.declared.arguments.items() if key not in _check.KERNEL_ARGUMENTS}
        words = list(options.pop("arguments", ()))
        if self.declared.shapes:
            options["shape"] = [shape if isinstance(shape, str) else tuple(shape) for shape in self.declared.shapes]
        return [*_options.words_of(program, options, (*_check.KERNEL_ARGUMENTS, "arguments")), *words]


class _Failed(Exception):
    """A property that is violated or undecided: what a test that failed says."""


class _Told:
    """What pytest prints of a test that failed; where it has a line for that, the first one."""

    def __init__(self, text, path):
        self.text = text
        self.reprcrash = _Crash(text.partition("\n")[0], str(path))

    def __str__(self):
        return self.text

    def toterminal(self, writer):
        writer.line(self.text)


class _Crash:
    def __init__(self, message, path):
        self.message, self.path, self.lineno = message, path, 0

    def __str__(self):
        return f"{self.path}: {self.message}"


class _Item(pytest.Item):
    def __init__(self, about, dtype, **others):
        super().__init__(**others)
        self.about, self.dtype = about, dtype
        self.add_marker("attest")

    def runtest(self):
        replayed = os.environ.get("ATTEST_REPLAY")
        if replayed:
            kernel = self.parent.kernel()
            if not kernel.is_of(replayed):
                pytest.skip("ATTEST_REPLAY names a case of another kernel")
            try:
                kernel.replay(replayed)
            except AssertionError as error:
                raise _Failed(str(error)) from None
            return
        self.config.pluginmanager.get_plugin("attest-session").run_of(self).judge(self)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (_Failed, attest.AttestError)):
            return _Told(str(excinfo.value), self.path)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, f"{self.parent.name}::{self.name}"


class _Run:
    """One run of attest check, by which one or several tests are answered."""

    def __init__(self, session, first, properties):
        self.answer, self.error, self.told_at = None, None, None
        self.name = re.sub(r"[^\w.-]+", "-", first.parent.nodeid).strip("-") + f"-{first.dtype}"
        if len(properties) == 1:
            self.name += f"-{properties[0]}"
        self.parent, self.dtype = first.parent.nodeid, first.dtype
        self.folder = session.folder() / self.name
        options = first.config.option
        try:
            kernel = first.parent.kernel()
        except attest.AttestError as error:
            self.error = error
            return
        words = [*first.parent.words(), "--dtype", first.dtype]
        of_jax = kernel.found.arrays == "jax"
        if of_jax and not any(word.startswith(("--shape", "--no-large")) for word in words):
            words += ["--shapes-only"] + [f"--shape={shape}" for shape in _SHAPES_OF_JAX]
        for name in properties:
            words += ["--property", name]
        words += session.baseline_words(self.name)
        cases = first.parent.declared.cases if options.attest_cases is None else options.attest_cases
        if cases is None and "--baseline" not in words:
            cases = _CASES_OF_JAX if of_jax else _CASES
        for option, value in (("--cases", cases), ("--seed", options.attest_seed)):
            words += [] if value is None else [option, str(value)]
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.answer = kernel.run(words, self.folder, quiet_preflight=True)
        except attest.AttestError as error:
            self.error = error
            return
        summary = self.answer.result
        self.entries = {entry["name"]: entry for of in summary["kernels"] for entry in of["properties"]}
        self.left_out = next((of["shapes"]["left_out"] for of in summary["kernels"] if "left_out" in of.get("shapes", {})), "")

    def _worse(self, about):
        """What became worse of a property since the baseline."""
        worse = self.answer.result["concluded"]["worse"]
        own = [one for one in worse if one["property"] == about]
        if not own and not any(one["property"] in self.entries for one in worse):
            own = worse
        return [self.answer.kernel.named(f"WORSE {one['words']}") for one in own]

    def judge(self, item):
        """Fails or skips the test, or lets it pass."""
        if self.error is not None:
            nothing = re.match(r"nothing could be checked: (.*)", str(self.error))
            if nothing and _is_ruled_out(nothing[1]):
                pytest.skip(nothing[1])
            raise self.error
        entry = self.entries.get(item.about)
        worse = self._worse(item.about) if self.answer.status == 1 else []
        if entry is None or entry["verdict"] == "skipped" and not worse:
            pytest.skip(entry["reason"] if entry else "no case was drawn")
        if entry["verdict"] == "violated":
            if self.told_at is None:
                self.told_at = item.nodeid
                raise _Failed(self.answer.message(item.about, self.again))
            raise _Failed(self.answer.finding(item.about, self.again) + f"\nthe cause is told at {self.told_at}")
        if worse:
            raise _Failed("\n".join([f"{self.parent}: worse than the baseline", *worse]))
        if entry["verdict"] == "inconclusive":
            raise _Failed(f"{self.parent}: inconclusive: {item.about} in {item.dtype}: {entry['reason']}")
        if self.left_out and self.answer.result.verdict == "inconclusive" and self.told_at is None:
            self.told_at = item.nodeid
            raise _Failed(f"{self.parent}: inconclusive in {item.dtype}: {self.left_out}")

    def again(self, about):
        """What one types to run the test of a property again."""
        return shlex.join([sys.executable, "-m", "pytest", f"{self.parent}::{about}[{self.dtype}]"])

    def facts(self):
        """For the summary of the terminal, and for the session's report; of another process, too."""
        if self.answer is None:
            return {"function": self.parent, "folder": None, "cause": []}
        # A property that was asked by name and that the manifest rules out is a test that is skipped, and nothing else.
        failed = self.answer.result.verdict != "held" or self.answer.status == 1
        lines = self.answer.message(again=self.again).splitlines() if failed else []
        return {"function": self.parent, "folder": str(self.folder), "cause": [x for x in lines if not x.startswith("report: ")]}


def _is_ruled_out(reason):
    """Whether a run that judged nothing is one that the manifest left nothing to judge, and no failure."""
    return "unsupported" not in reason


class _Session:
    """The runs of a session of pytest."""

    def __init__(self, config):
        self.config = config
        self.runs, self.facts, self.selected = {}, [], {}
        self._folder = None
        self._is_worker = hasattr(config, "workerinput")

    def folder(self):
        """Where runs go."""
        if self._folder is None:
            given = self.config.option.attest_out or (self._is_worker and self.config.workerinput.get("attest_out"))
            self._folder = Path(given).absolute() if given else self._temporary()
        return self._folder

    def _temporary(self):
        factory = getattr(self.config, "_tmp_path_factory", None)
        return factory.mktemp("attest") if factory is not None else Path(tempfile.mkdtemp(prefix="attest-"))

    def baseline_words(self, run):
        given = self.config.option.attest_baseline
        if not given:
            return []
        path = Path(given).absolute()
        if path.is_dir() and not (path / "run.jsonl").exists() and not (path / "tolerances.json").exists():
            path = path / run  # of a session: what is new in this one is compared with nothing
            if not path.is_dir():
                return []
        return ["--baseline", str(path)]

    @pytest.hookimpl
    def pytest_collection_finish(self, session):
        for item in session.items:
            if isinstance(item, _Item):
                self.selected.setdefault((item.parent.nodeid, item.dtype), []).append(item.about)

    def run_of(self, item):
        """The tests of a function in a dtype that were selected are answered by one run, when the first is due. A process of
        xdist does not know which of them will be its own: a run for each."""
        group = (item.parent.nodeid, item.dtype)
        together = self.selected.get(group, [item.about])
        if self._is_worker or item.about not in together:
            group, together = (*group, item.about), [item.about]
        if group not in self.runs:
            self.runs[group] = _Run(self, item, together)
            self.facts.append(self.runs[group].facts())
        return self.runs[group]

    def pytest_sessionfinish(self):
        if self._is_worker:
            self.config.workeroutput["attest"] = self.facts

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.facts += getattr(node, "workeroutput", {}).get("attest", [])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["attest_out"] = str(self.folder())

    def pytest_terminal_summary(self, terminalreporter):
        if not self.facts:
            return
        told = {}
        for one in self.facts:
            if one["cause"]:
                told.setdefault(one["function"], one["cause"])
        folders = sorted({one["folder"] for one in self.facts if one["folder"]})
        report = _report_of(folders, self.folder())
        if not told and not report:
            return
        terminalreporter.section("attest", sep="-")
        for lines in told.values():
            terminalreporter.write_line("\n".join(lines))
        if report:
            terminalreporter.write_line(f"report: {report}")


def _report_of(folders, into):
    """One page of all runs, or None where it cannot be drawn."""
    if not folders:
        return None
    page = into / "report.html"
    drawn = subprocess.run(
        [_check._program(), "report", *folders, "-o", str(page)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return page if drawn.returncode == 0 else None


def pytest_generate_tests(metafunc):
    if "attest_case" not in metafunc.fixturenames:
        return
    if any("attest_case" in _names_of(mark) for mark in metafunc.definition.iter_markers("parametrize")):
        return
    marker = metafunc.definition.get_closest_marker("attest_cases")
    options = metafunc.config.option
    asked = {"count": options.attest_cases or _CASES_OF_FIXTURE, "seed": options.attest_seed or 1}
    asked.update(marker.kwargs if marker else {})
    if not hasattr(attest, "cases"):
        skip = pytest.mark.skip(reason="this version of attest draws no cases")
        metafunc.parametrize("attest_case", [pytest.param(None, marks=skip)], indirect=True)
        return
    drawn = list(attest.cases(**asked))
    metafunc.parametrize("attest_case", drawn, indirect=True, ids=[f"case{index}" for index in range(len(drawn))])


def _names_of(mark):
    names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


@pytest.fixture
def attest_case(request):
    """A case as attest.check draws them, each of those that the marker attest_cases asks for: .q, .k, .v, .mask, .scale,
    .causal and .dtype."""
    return request.param


@pytest.fixture
def attest_oracle():
    """attest.exact: the exact answer to a problem and its proved bound."""
    return attest.exact
