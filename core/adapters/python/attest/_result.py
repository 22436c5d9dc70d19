"""What a run found: its result as a mapping, and what an AssertionError says of it."""

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

from attest._errors import AttestError

MOST_LINES = 25
_PROPERTIES_NAMED = 3
_NOTES = 4
_MOST_LETTERS = 400  # of a line
_LABEL, _WIDTH = 10, 100  # columns of a label and of a line
# What is told of it. What was found stands above it, and what replays it below.
_OF_A_CAUSE = ("what", "why", "when", "smallest", "right", "fails")
_COUNTS = ("held", "violated", "skipped", "excused", "inconclusive")


class Result(dict):
    """summary.json of a run (kernel-interface.md, section 4), and beside it:

    verdict     "held", "violated" or "inconclusive"; "" where a single saved case was judged again
    causes      what is wrong, each as a dict of lines: "what", "why", "when", "smallest", "fails" and others, as far as they
                are known; none where nothing is
    tolerances  by dtype {"atol": …, "rtol": …}, which right answers of this kernel keep on ordinary inputs: errors in
                the output's own unit, and as a share of the exact answer; without the dtypes of which too little was seen
    folder      the run's, a Path; None where it was a temporary one, which is removed where all held
    report      the page of the run in it, a Path, or None

    Source: kernel-interface.md, section 4 (verdicts and the summary), "Errors and tolerances".
    """

    def __init__(self, summary=(), folder=None):
        super().__init__(summary)
        self.folder = folder
        # How the command line replays it is nothing to a function that lives in Python: the message has what does.
        told = [cause["told"] for cause in self.get("causes", ()) if "told" in cause]
        self.causes = [{label: line for label, line in one.items() if label != "replay"} for one in told]
        self.tolerances = tolerances_of(folder) if folder is not None else {}

    @property
    def verdict(self):
        return self.get("verdict", "")

    @property
    def report(self):
        return self.folder / "report.html" if self.folder is not None else None

    def records(self):
        """A dict for each kernel, dtype and property, flat, as pandas.DataFrame takes a list of them: kernel, dtype, property,
        verdict, reason, how many cases there were, were held, violated, skipped, excused and inconclusive, and `utilisation`, the
        worst error as a share of what is allowed (NaN where nothing was judged, inf for NaN found)."""
        return [
            {
                "kernel": of["name"],
                "dtype": of["dtype"],
                "property": entry["name"],
                **{key: entry[key] for key in ("verdict", "reason", "cases", *_COUNTS)},
                "utilisation": float(entry["worst"]["utilisation"]) if entry.get("worst") else float("nan"),
            }
            for of in self.get("kernels", ())
            for entry in of["properties"]
        ]


def read_result(folder):
    return Result(json.loads((folder / "summary.json").read_text()), folder)


def report(run):
    """What a run found, of attest check in whichever way it was started: the Result of its folder, whose page is drawn where it
    has none. `run`: the folder, or the page in it. Raises AttestError, one line, for what is no run. Source:
    kernel-interface.md, section 4."""
    folder = Path(run)
    folder = folder.parent if folder.name == "report.html" else folder
    if not (folder / "run.jsonl").exists():
        raise AttestError(f"{folder} is no folder of a run: it has no run.jsonl")
    if not all((folder / name).exists() for name in ("summary.json", "report.html")):
        from attest import _check

        drawn = subprocess.run([_check._program(), "report", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if drawn.returncode not in (0, 1, 4):
            raise AttestError(drawn.stdout.decode(errors="replace").strip())
    return read_result(folder)


def tolerances_of(folder):
    """By dtype those to copy: of ordinary inputs, over all lengths and masks."""
    try:
        rows = json.loads((folder / "tolerances.json").read_text())["rows"]
    except (OSError, ValueError, KeyError):
        return {}
    return {
        row["dtype"]: {"atol": row["atol"], "rtol": row["rtol"]}
        for row in rows
        if row["values"] == "ordinary" and row["keys"] == row["mask"] == "all" and row["atol"] is not None
    }


def _again(_):
    """How this very test is started: in pytest the one test, else the program that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST")
    if test:
        return shlex.join([sys.executable, "-m", "pytest", re.sub(r" \((setup|call|teardown)\)$", "", test)])
    return shlex.join(sys.orig_argv if hasattr(sys, "orig_argv") else [sys.executable, *sys.argv])  # 3.9 has no orig_argv


def _line(words):
    """Words of whoever wrote a kernel on one line that is not long, without what is not seen."""
    words = "".join(one if one.isprintable() else "\ufffd" for one in " ".join(words.split()))
    return words if len(words) <= _MOST_LETTERS else words[: _MOST_LETTERS - 1] + "…"


def _said(label, words):
    """A label and what is said under it, in lines of a terminal."""
    return textwrap.wrap(
        f"{label:<{_LABEL}}{_line(words)}", _WIDTH, initial_indent="  ", subsequent_indent=" " * (2 + _LABEL), break_on_hyphens=False
    )


def _findings(result):
    """Each saved violation: its property, its dtype and itself."""
    for of in result["kernels"]:
        for entry in of["properties"]:
            for finding in entry["findings"] if entry["verdict"] == "violated" else ():
                yield entry["name"], of["dtype"], finding


def finding_lines(name, result, prefer, again=None):
    """A violation that the run found, of the property that is preferred where it has one; the last line replays it. `again`:
    of a property what runs its test."""
    found = list(_findings(result))
    found = [one for one in found if one[0] == prefer] or found
    if not found:
        return []
    of, dtype, finding = found[0]
    lines = [f"VIOLATED {of} by {name} in {dtype}, case {finding['k']} ({finding['class']})", f"  {_line(finding['reason'])}"]
    if finding["case"]:
        case = shlex.quote(str(result.folder / finding["case"]))
        lines.append(f"  replay: ATTEST_REPLAY={case} {(again or _again)(of)}")
    return lines


def wrong_in(summary):
    """(property, dtype) of what has the run's verdict."""
    return [
        (entry["name"], of["dtype"])
        for of in summary["kernels"]
        for entry in of["properties"]
        if entry["verdict"] == summary["verdict"]
    ]


def _undecided(result):
    """Why nothing is said of a dtype."""
    for of in result["kernels"]:
        if of["verdict"] == "inconclusive":
            open_ones = [f"{one['name']}: {one['reason']}" for one in of["properties"] if one["verdict"] == "inconclusive"]
            yield f"in {of['dtype']}: {of.get('left_out') or next(iter(open_ones), '')}"


def _head(name, result):
    if result.verdict == "held":  # and yet not accepted: worse than a baseline, or not as was known
        return f"{name}: {result['concluded']['headline']}"
    wrong = [f"{of} in {dtype}" for of, dtype in wrong_in(result)]
    more = f" and {len(wrong) - _PROPERTIES_NAMED} more" if len(wrong) > _PROPERTIES_NAMED else ""
    return f"{name}: {result.verdict}: {', '.join(wrong[:_PROPERTIES_NAMED])}{more}"


def message(name, result, prefer=None, again=None):
    """What an AssertionError says, in at most 25 lines: the verdict, one finding with the line that replays it, and one
    cause.

    prefer     the property whose finding is told, where it has one
    again      of a property what runs its test; the default runs what runs now
    """
    lines = [_head(name, result), *(f"note: {_line(note['text'])}" for note in result["notes"][:_NOTES])]
    causes = result.get("causes", ())
    if prefer is None and causes:
        prefer = causes[0]["example"]["property"]
    finding = finding_lines(name, result, prefer, again)
    replay = [line for line in finding if line.startswith("  replay: ")]
    lines += [line for line in finding if line not in replay]
    last = [*replay, f"report: {result.report}"]
    told = []
    if result.causes:
        for label, words in result.causes[0].items():
            told += _said(label, words) if label in _OF_A_CAUSE else []
    elif result.verdict == "inconclusive":
        for why in _undecided(result):
            told += _said("undecided", why)
    told += map(_line, result["concluded"]["problems"])
    room = MOST_LINES - len(lines) - len(last)
    if len(told) > room:
        told = [*told[: room - 1], "  … the rest stands in the report"]
    return "\n".join([*lines, *told, *last])
