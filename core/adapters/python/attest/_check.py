"""attest.check and attest.observe; what the package offers stands in __init__.py."""

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

_SOCKET = "ATTEST_PYTHON_SOCKET"  # as in _relay.py
_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_FINDINGS_SHOWN = 3
_PACKAGE = Path(__file__).resolve().parent
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
    kernel = f"exec:{shlex.quote(sys.executable)} -S {shlex.quote(str(_PACKAGE / '_relay.py'))} {shlex.quote(name)}"

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
    takes and costs stands in attest_observe.py."""
    return _load("attest_observe").observe(function, folder, most=most, layout=layout)


def exception(name):
    """Unsupported or Rejected, which a function may raise."""
    return getattr(_adapter(), name)


def _dtype_word(dtype):
    word = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    return _DTYPES.get(word, word)


def _program(program=None):
    """The program: as it is named, else the one of this package, of the installation or of the tree that it lies in, else
    the one on the PATH."""
    _refuse_another()
    if program or os.environ.get("ATTEST_PROGRAM"):
        return str(program or os.environ["ATTEST_PROGRAM"])
    above = _PACKAGE.parents
    # PACKAGE/program/bin of a wheel; PREFIX/share/attest/adapters/python/attest; TREE/core/adapters/python/attest
    own = [_PACKAGE / "program/bin/attest"]
    own += [above[4] / "bin/attest"] if len(above) > 4 else []
    own += [above[3] / "build/release/bin/attest", above[3] / "attest"] if len(above) > 3 else []
    for path in own:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("attest")
    if found is None:
        raise AttestError("the program attest is not on the PATH; install it, or name it in $ATTEST_PROGRAM")
    return found


def _refuse_another():
    """The distribution `attest` of PyPI is another project, with a module of the same name. In one folder, each has
    overwritten files of the other, and takes them away when it goes."""
    for entry in _PACKAGE.parent.iterdir():
        if entry.name.lower().startswith("attest-") and entry.suffix in (".dist-info", ".egg-info"):
            raise AttestError(
                f"two projects have the module attest, and both are installed: attest-attention, which is this one, and "
                f"attest ({entry}); keep one: pip uninstall attest attest-attention, then pip install attest-attention"
            )


_modules = {}


def _load(name, attest=None):
    """The module of this name that lies beside this package or among the program's adapters. It is not in sys.modules:
    a script that Attest runs loads the same file for itself, and there it owns standard output."""
    if name not in _modules:
        file = next((file for file in (folder / f"{name}.py" for folder in _folders(attest)) if file.is_file()), None)
        if file is None:
            raise AttestError(
                f"{name}.py is in none of {', '.join(map(str, _folders(attest)))}; name the adapters' folder in "
                "$ATTEST_ADAPTERS"
            )
        spec = importlib.util.spec_from_file_location(f"_{name}_in_process", file)
        module = importlib.util.module_from_spec(spec)
        module._owns_standard_output = False
        spec.loader.exec_module(module)
        _modules[name] = module
    return _modules[name]


def _folders(attest):
    yield _PACKAGE.parent
    if os.environ.get("ATTEST_ADAPTERS"):
        yield Path(os.environ["ATTEST_ADAPTERS"]) / "python"
    yield Path(attest or _program()).resolve().parents[1] / "share/attest/adapters/python"


def _adapter(attest=None):
    """attest_adapter.py as a module that leaves this process's standard output alone."""
    return _load("attest_adapter", attest)


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
    words = [sys.executable, "-m", "pytest", re.sub(r" \((setup|call|teardown)\)$", "", test)] if test else _words_of_this_process()
    return shlex.join(words)


def _words_of_this_process():
    return sys.orig_argv if hasattr(sys, "orig_argv") else [sys.executable, *sys.argv]  # Python 3.9 has no orig_argv


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
