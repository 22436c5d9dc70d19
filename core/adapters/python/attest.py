"""Attest in a Python test: a function under test, and an AssertionError that says what is wrong and replays it.

    import attest

    def test_attention():
        attest.check(my_attention, dtypes=["f32"], cases=200)

The function is called in this process: closures, fixtures and devices are what they are in the test. What it gets and
returns, and what a manifest may declare, stands in attest_adapter.py, beside this file:

    def my_attention(q, k, v, mask=None, scale=1.0): ...    # q [batch, heads, M, dk], k and v [batch, kv_heads, N, dk|dv]

This file needs the program `attest` and attest_adapter.py. Beside them, in an installation or in the source tree, it finds
both; elsewhere, the program on the PATH or as $ATTEST_PROGRAM, and the adapter through it or in $ATTEST_ADAPTERS.
"""

import importlib.util
import json
import os
import re
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SOCKET = "ATTEST_PYTHON_SOCKET"
_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_FINDINGS_SHOWN = 3
_PREFLIGHT = "preflight of "  # begins the lines that attest prints before a run begins


class AttestError(Exception):
    """Nothing could be checked: the program is not there, or what it was asked is wrong."""


def check(
    function=None,
    *,
    dtypes=None,
    cases=None,
    properties=None,
    manifest=None,
    multihead=None,
    framework="numpy",
    bf16="f32",
    device=None,
    seed=None,
    out=None,
    arguments=(),
    program=None,
):
    """Checks an attention function against every property. Returns the run's summary.json as a dict.

    dtypes      "f64", "f32", "f16", "bf16", or NumPy's or torch's own (default: f64 and f32)
    cases       per property and dtype (default: attest's own, which takes minutes)
    properties  names, globs allowed (default: all)
    manifest    what the function supports and promises, a dict; the more it says the sharper the check
    multihead   a multi-head function, instead of the other or beside it
    framework   "numpy" or "torch": what the function gets and returns (of JAX: "numpy"); bf16 and device as
                attest_adapter.serve has them
    out         the run's folder, which is overwritten (default: a temporary one, removed when all held)
    arguments   further words for attest check

    Raises AssertionError where a property is violated, or where nothing was violated and something could not be decided:
    it has the findings, each with the command that replays it, and the report's path. Raises AttestError where nothing
    could be checked. What is wrong with the first answer of all, or long about it, is printed on standard error before the
    run. With ATTEST_REPLAY=CASE in the environment it judges that saved case alone, if it is of this function.
    """
    __tracebackhide__ = True
    attest = _program(program)
    adapter = _adapter(attest)
    try:
        adapter.refuse_misuse(function, multihead, framework, bf16, device)
    except ValueError as error:
        raise AttestError(f"attest.check: {error}") from None
    manifest = dict(manifest or {})
    if dtypes is not None:
        manifest["dtypes"] = [_dtype_word(dtype) for dtype in ([dtypes] if isinstance(dtypes, str) else dtypes)]
    name = manifest.setdefault("name", getattr(function or multihead, "__name__", "python function"))
    kernel = f"exec:{shlex.quote(sys.executable)} -S {shlex.quote(os.path.abspath(__file__))} {shlex.quote(name)}"

    def serve(channel):
        return adapter.make_server(adapter.Channel(*channel), function, manifest, multihead, framework, bf16, device)

    def tell(line):
        print(_named(line, kernel, name), file=sys.stderr, flush=True)

    replayed = os.environ.get("ATTEST_REPLAY")
    if replayed:
        if _kernel_of(replayed) != kernel:
            return {}
        status, text = _run([attest, "replay", replayed], serve)
        if status == 1:
            raise AssertionError(_named(text, kernel, name))
        if status != 0:
            raise AttestError(text.strip())
        return {}

    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="attest-run-"))
    command = [attest, "check", "--kernel", kernel, "--jobs", "1", "--quiet", "--overwrite"]
    command += ["--out", str(folder.absolute())]
    for glob in [properties] if isinstance(properties, str) else properties or ():
        command += ["--property", glob]
    for option, value in (("--cases", cases), ("--seed", seed)):
        if value is not None:
            command += [option, str(value)]
    kept = out is not None
    try:
        status, text = _run([*command, *arguments], serve, tell)
        if status not in (0, 1, 4):
            why = "\n".join(filter(None, (_why_nothing(folder), _named(text, kernel, name).strip())))
            raise AttestError(why or f"{attest} ended with status {status}")
        summary = json.loads((folder / "summary.json").read_text())
        if status != 0:
            kept = True
            raise AssertionError(_message(summary, text, kernel, name, folder))
        return summary
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def observe(function, folder, *, most=64, layout="bhsd"):
    """The function, wrapped: some of its calls, chosen at random, are kept for `attest judge --captured FOLDER`. What it
    takes and costs stands in attest_observe.py, beside this file."""
    import attest_observe

    return attest_observe.observe(function, folder, most=most, layout=layout)


def __getattr__(name):
    # The exceptions that a function may raise.
    if name in ("Unsupported", "Rejected"):
        return getattr(_adapter(_program(None)), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _dtype_word(dtype):
    word = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    return _DTYPES.get(word, word)


def _program(program):
    here = Path(__file__).resolve().parent
    if program or os.environ.get("ATTEST_PROGRAM"):
        return str(program or os.environ["ATTEST_PROGRAM"])
    beside = [here.parents[3] / "bin/attest"] if len(here.parents) > 3 else []
    if (here / "attest_adapter.py").exists() and len(here.parents) > 2:
        beside += [here.parents[2] / "build/release/bin/attest", here.parents[2] / "attest"]
    for path in beside:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("attest")
    if found is None:
        raise AttestError("the program attest is not on the PATH; install it, or name it in $ATTEST_PROGRAM")
    return found


_loaded = None


def _adapter(attest):
    """attest_adapter.py as a module that leaves this process's standard output alone."""
    global _loaded
    if _loaded is None:
        folders = [Path(__file__).resolve().parent, Path(attest).resolve().parents[1] / "share/attest/adapters/python"]
        if os.environ.get("ATTEST_ADAPTERS"):
            folders.insert(1, Path(os.environ["ATTEST_ADAPTERS"]) / "python")
        files = [folder / "attest_adapter.py" for folder in folders]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            raise AttestError(f"attest_adapter.py is in none of {', '.join(map(str, folders))}; copy it beside attest.py")
        spec = importlib.util.spec_from_file_location("_attest_adapter_in_process", file)
        module = importlib.util.module_from_spec(spec)
        module._owns_standard_output = False
        spec.loader.exec_module(module)
        _loaded = module
    return _loaded


def _kernel_of(case):
    """The kernel that a saved case names; the header of a safetensors file is JSON behind its length."""
    try:
        with open(case, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    except (OSError, ValueError) as error:
        raise AttestError(f"ATTEST_REPLAY is {case}, which is no case: {error}") from error
    return header.get("__metadata__", {}).get("kernel")


def _run(command, serve, tell=lambda line: None):
    """Runs attest and answers, in this thread, what its relays hand over. Returns its exit status and its output. What it
    says before it begins is told at once: a run of a slow function may take hours."""
    with tempfile.TemporaryDirectory(prefix="attest-") as folder, tempfile.TemporaryFile() as output:
        address = os.path.join(folder, "socket")
        with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
            listener.bind(address)
            listener.listen()
            selector.register(listener, selectors.EVENT_READ)
            environment = {**os.environ, _SOCKET: address, "ATTEST_COMMAND": "attest"}
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
            connections, told, look_at = {}, 0, 0.0
            try:
                while process.poll() is None:
                    if time.monotonic() >= look_at:
                        lines = _preflight_lines(output)
                        for line in lines[told:]:
                            tell(line)
                        told, look_at = len(lines), time.monotonic() + 0.2
                    for key, _ in selector.select(timeout=0.05):
                        if key.fileobj is listener:
                            _accept(listener, selector, connections, serve)
                        elif not key.data.answer_one():
                            _close(key.fileobj, selector, connections)
            finally:
                if process.poll() is None:
                    process.terminate()
                for requests in list(connections):
                    _close(requests, selector, connections)
                process.wait()
        output.seek(0)
        return process.returncode, output.read().decode(errors="replace")


def _preflight_lines(output):
    """The whole lines of a preflight at the beginning of what was printed so far."""
    # pread: the place from which attest goes on writing is this file's own.
    text = os.pread(output.fileno(), 1 << 14, 0).decode(errors="replace")
    return [line for line in text.split("\n")[:-1] if line.startswith(_PREFLIGHT)]


def _accept(listener, selector, connections, serve):
    connection, _ = listener.accept()
    connection.settimeout(10)
    _, channel, _, _ = socket.recv_fds(connection, 1, 2)
    if len(channel) != 2:
        connection.close()
        return
    connections[channel[0]] = (connection, channel)
    # Registered first: whatever serve raises is what the caller is told, and _close finds what it is to take away.
    key = selector.register(channel[0], selectors.EVENT_READ)
    selector.modify(key.fileobj, key.events, serve(channel))


def _close(requests, selector, connections):
    selector.unregister(requests)
    connection, channel = connections.pop(requests)
    for descriptor in channel:
        os.close(descriptor)
    connection.close()


def _named(text, kernel, name):
    return text.replace(kernel, name)


def _again():
    """How this very test is started: in pytest the one test, else the program that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST")
    words = [sys.executable, "-m", "pytest", re.sub(r" \((setup|call|teardown)\)$", "", test)] if test else sys.orig_argv
    return shlex.join(words)


def _why_nothing(folder):
    """Why no case was judged, by property; empty where there is no summary."""
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return ""
    reasons = {entry["reason"] for kernel in summary["kernels"] for entry in kernel["properties"]}
    return "nothing could be checked: " + "; ".join(sorted(filter(None, reasons)))


def _message(summary, text, kernel, name, folder):
    """What was found, with the first findings as attest prints them and a command of this process's for each."""
    lines, findings = [], 0
    for line in _named(text, kernel, name).splitlines():
        if line.startswith(_PREFLIGHT):
            lines.append(line)
            continue
        findings += not line.startswith(" ")
        if findings > _FINDINGS_SHOWN:
            continue
        if line.startswith("  replay: "):
            case = next((word for word in shlex.split(line) if word.endswith(".safetensors")), "")
            line = f"  replay: ATTEST_REPLAY={shlex.quote(case)} {_again()}"
        lines.append(line)
    wrong = [
        f"{entry['name']} in {of['dtype']}"
        for of in summary["kernels"]
        for entry in of["properties"]
        if entry["verdict"] == summary["verdict"]
    ]
    if findings > _FINDINGS_SHOWN:
        lines.append(f"and {findings - _FINDINGS_SHOWN} more findings")
    head = f"{name}: {summary['verdict']}: {', '.join(wrong)}"
    return "\n".join([head, *lines, f"report: {folder / 'report.html'}"])


def _relay():
    """The process that attest starts: hands its pipes to the test's process and waits until that is done with them."""
    import attest_adapter  # takes standard output for replies

    address = os.environ.get(_SOCKET)
    try:
        if not address:
            raise OSError(f"{_SOCKET} is not set")
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    except OSError as error:
        name = sys.argv[1] if len(sys.argv) > 1 else "the function"
        attest_adapter.refuse(
            f"{name} lives in the Python process that tested it ({error}); run that again with ATTEST_REPLAY=CASE set"
        )
    socket.send_fds(connection, [b"x"], [0, attest_adapter._replies])
    os.close(0)
    os.close(attest_adapter._replies)
    connection.recv(1)


if __name__ == "__main__":
    _relay()
