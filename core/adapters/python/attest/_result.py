"""What a run found: its result as a mapping, and what an AssertionError says of it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from attest._errors import AttestError

MOST_LINES = 25
_PROPERTIES_NAMED = 3
_PREFLIGHT_LINES = 4
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


def blocks_of(answer):
    """What attest check prints at its end, by its empty lines: who is wrong, then each cause, then the rest."""
    return [block.split("\n") for block in answer.strip("\n").split("\n\n")]


def _is_cause(block):
    return any(re.match(r"  what {2,}", line) for line in block)


def _again(_):
    """How this very test is started: in pytest the one test, else the program that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST")
    if test:
        return shlex.join([sys.executable, "-m", "pytest", re.sub(r" \((setup|call|teardown)\)$", "", test)])
    return shlex.join(sys.orig_argv if hasattr(sys, "orig_argv") else [sys.executable, *sys.argv])  # 3.9 has no orig_argv


def unwrapped(text):
    """Lines that were broken where the terminal ends, whole again."""
    return re.sub(r"\n {4,}", " ", text)


def _findings(text):
    """Of what attest findings prints each finding: what is violated, what was found there, how to replay it."""
    return re.findall(r"^(VIOLATED .*)\n((?:  .*\n)*?)  replay: (.*)$", text, re.MULTILINE)


def _first(findings, prefer):
    """The first of the property that is preferred, else the first."""
    chosen = [one for one in findings if prefer and one[0].startswith(f"VIOLATED {prefer} ")]
    return (chosen or findings)[:1]


def finding_lines(text, prefer, again):
    """A finding of what attest findings prints; the last line is the one that replays it. `again`: of a property what runs
    its test."""
    for violated, found, replay in _first(_findings(text), prefer):
        return [violated, *found.splitlines(), f"  replay: ATTEST_REPLAY={shlex.quote(_case_in(replay))} {again(violated.split()[1])}"]
    return []


def _case_in(replay):
    return next((word for word in shlex.split(replay) if word.endswith(".safetensors")), "")


def wrong_in(summary):
    """(property, dtype) of what has the run's verdict."""
    return [
        (entry["name"], of["dtype"])
        for of in summary["kernels"]
        for entry in of["properties"]
        if entry["verdict"] == summary["verdict"]
    ]


def _head(name, result, answer):
    if result.verdict == "held":  # and yet not accepted: worse than a baseline, or not as was known
        said = re.search(r"^ {2}\((.*?), exit status", answer.replace("\n  ", "\n  "), re.MULTILINE | re.DOTALL)
        return f"{name}: {' '.join(said[1].split()) if said else 'not accepted'}"
    wrong = [f"{of} in {dtype}" for of, dtype in wrong_in(result)]
    more = f" and {len(wrong) - _PROPERTIES_NAMED} more" if len(wrong) > _PROPERTIES_NAMED else ""
    return f"{name}: {result.verdict}: {', '.join(wrong[:_PROPERTIES_NAMED])}{more}"


def message(name, result, answer, findings, preflight=(), rest="", prefer=None, again=None):
    """What an AssertionError says, in at most 25 lines: the verdict, one finding with the line that replays it, and one
    cause.

    answer     what attest check printed of causes (its answer)
    findings   what attest findings prints of the run, unwrapped
    preflight  the lines of the kernel's first answer
    rest       what attest check printed behind its answer: of a baseline, of known findings
    prefer     the property whose finding is told, where it has one
    again      of a property what runs its test; the default runs what runs now
    """
    lines = [_head(name, result, answer), *list(preflight)[:_PREFLIGHT_LINES]]
    last = [f"report: {result.report}"]
    if prefer is None and result.get("causes"):
        prefer = result["causes"][0]["example"]["property"]
    finding = finding_lines(findings, prefer, again or _again)
    lines += finding[:-1]
    last = finding[-1:] + last
    told = next(filter(_is_cause, blocks_of(answer)), None)
    if told is None:  # nothing is violated: what is open stands in a block of its own
        told = next((block for block in blocks_of(answer)[1:] if block[0].startswith("  undecided")), [])
    told = [line for line in told if not line.startswith("  replay ")]
    told += [line for line in rest.splitlines() if line]
    room = MOST_LINES - len(lines) - len(last)
    if len(told) > room:
        told = [*told[: room - 1], "  … the rest stands in the report"]
    return "\n".join([*lines, *told, *last])
