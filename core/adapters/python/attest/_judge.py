"""attest.judge: attest judge (reports/guide/judging.md), with its judgement as a mapping."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Iterator, Optional, Union

from attest import _check
from attest._errors import AttestError


class Judgement(Mapping):
    """What judgement.json says of a kernel (schemas/judgement.schema.json); True where it is a pass.

    `text` is what attest judge prints: the share that was judged, the verdict, and what is wrong; `folder` the run's. Source:
    reports/guide/judging.md.
    """

    def __init__(self, members: dict, text: str, folder: Path):
        self._members, self.text, self.folder = members, text, folder

    def __getitem__(self, name):
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __bool__(self) -> bool:
        return self["verdict"] == "pass"

    def __repr__(self) -> str:
        return self.text.rstrip("\n")

    @property
    def verdict(self) -> str:
        """ "pass", "fail" or "undecided"."""
        return self["verdict"]


def _spec(kernel):
    """A kernel as the command line has it: a Python file is started by the Python that judges."""
    if not isinstance(kernel, (str, os.PathLike)):
        raise AttestError(
            f"the kernel is a {type(kernel).__name__}; what is judged runs behind walls, in a process of its own: give a shared "
            "library, a .py file that serves a function by attest_adapter, or a kernel as attest judge --kernel takes it"
        )
    path = os.fspath(kernel)
    if not path.endswith(".py"):
        return path
    return f"exec:{shlex.quote(sys.executable)} {shlex.quote(os.path.abspath(path))}"


def judge(
    kernel: Union[str, os.PathLike, None] = None,
    contract: Union[str, os.PathLike, dict] = "sdpa-f32",
    *,
    captured: Union[str, os.PathLike, None] = None,
    time: Union[str, float, None] = None,
    time_with: Optional[int] = None,
    fail_fast: bool = False,
    walls: bool = True,
    seed: Optional[int] = None,
    jobs: Optional[int] = None,
    out: Union[str, os.PathLike, None] = None,
) -> Judgement:
    """Judges a kernel that nobody trusts by a contract that is yours.

    kernel    a shared library, a .py file that serves a function by attest_adapter, or any that attest judge --kernel takes
    contract  a file, a name that attest judge --print-contract knows, or the contract itself as a dict
    captured  instead of a kernel: a folder of calls that attest.observe kept
    time      begin nothing after so many seconds, or "20s", "2m": what was not judged by then makes it no pass
    time_with  time so many calls of each of the contract's shapes, among the judged ones
    fail_fast  stop at the first violation
    walls     False: the kernel may reach what the user can, and it is no pass
    seed      judge as an earlier judgement did; given, it is no secret
    out       the run's folder, which is overwritten (default: a temporary one, removed after a pass)

    Returns the Judgement, whatever its verdict. Raises AttestError, one line or a few, where nothing could be judged: an
    argument, the contract, the kernel or the machine is wrong for it. Source: reports/guide/judging.md.
    """
    program = _check._program()
    with tempfile.TemporaryDirectory(prefix="attest-judge-") as scratch:
        if isinstance(contract, dict):
            path = os.path.join(scratch, "contract.json")
            with open(path, "w") as file:
                json.dump(contract, file)
            contract = path
        written = os.path.join(scratch, "judgement.json")
        folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="attest-run-"))
        command = [program, "judge", "--contract", os.fspath(contract), "--json", written, "--overwrite"]
        command += ["--out", str(folder.absolute())]
        for option, value in (
            ("--kernel", None if kernel is None else _spec(kernel)),
            ("--captured", None if captured is None else os.fspath(captured)),
            ("--time", time),
            ("--time-with", time_with),
            ("--seed", seed),
            ("--jobs", jobs),
        ):
            if value is not None:
                command += [option, str(value)]
        command += ["--fail-fast"] * bool(fail_fast) + ["--no-walls"] * (not walls)
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "ATTEST_COMMAND": "attest"},
        )
        text, said = (stream.decode(errors="replace") for stream in (ended.stdout, ended.stderr))
        judgement = None
        if ended.returncode in (0, 1, 4):
            with open(written) as file:
                judgement = Judgement(json.load(file), text, folder)
        if out is None and (judgement is None or judgement):
            shutil.rmtree(folder, ignore_errors=True)
        if judgement is None:
            raise AttestError(said.strip() or f"attest judge ended with status {ended.returncode}")
        return judgement
