"""attest.check and attest.observe; what the package offers stands in __init__.py."""

import contextlib
import importlib.util
import inspect
import json
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attest import _kernels, _options, _result
from attest._errors import AttestError

_SOCKET = "ATTEST_PYTHON_SOCKET"  # as in _relay.py
_MOST_JOBS = 4
_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_PACKAGE = Path(__file__).resolve().parent
_PREFLIGHT = "preflight of "  # begins the lines that attest prints before a run begins


def check(
    function=None,
    *,
    dtypes=None,
    cases=None,
    properties=None,
    manifest=None,
    multihead=None,
    backward=None,
    framework=None,
    bf16="f32",
    device=None,
    layout=None,
    scale=None,
    mask=None,
    is_causal=None,
    seed=None,
    out=None,
    arguments=(),
    program=None,
    **options,
):
    """Checks an attention function against every property, in this process.

    function    is called with q [batch, heads, M, dk], k [batch, kv_heads, N, dk] and v [batch, kv_heads, N, dv], all without
                a unit, and returns [batch, heads, M, dv]; attest_adapter.py says what it may take by name
    dtypes      "f64", "f32", "f16", "bf16", or NumPy's or torch's own (default: f64 and f32, or what is known of the function)
    cases       per property and dtype (default: attest's own, which takes minutes)
    properties  names, globs allowed (default: all)
    manifest    what the function supports and promises, a dict; the more it says the sharper the check
    multihead   a multi-head function, instead of the other or beside it
    backward    the function's backward pass, so that its gradients are checked, too: a function of q, k and v, and by name
                d_out, those of out and lse that it uses, and what the function itself takes, in the same layout and under
                the same names; it returns dq, dk and dv, and what else the manifest's "backward" lists in "gradients". Or
                "autograd": that of PyTorch or JAX through the function
    framework   "numpy", "torch", "jax" or "cupy": what the function gets (default: what it is found to take, tried in this
                order); bf16 and device as attest_adapter.serve has them
    layout      "bhsd" (above), "bshd" [batch, tokens, heads, width], or "thd": [tokens of all sequences, heads, width] with
                cu_seqlens_q, cu_seqlens_k, max_seqlen_q and max_seqlen_k by name (default: what it is found to take)
    scale, mask, is_causal  the names of the function's parameters for these, where they are others than scale, sm_scale,
                softmax_scale; mask, attn_mask, bias; causal, is_causal. False: it has none
    seed        of the cases, a whole number (default: 1)
    out         the run's folder, which is overwritten (default: a temporary one, removed when all held)
    arguments   further words for attest check
    options     every other option of attest check by its name: fail_fast=True, baseline="run", shape=[(1, 8, 2, 64, 200, 64)]

    torch.nn.functional.scaled_dot_product_attention, FlexAttention's flex_attention, jax.nn.dot_product_attention,
    flash_attn's flash_attn_func, flash_attn_varlen_func and flash_attn_with_kvcache, and the first two of
    FlashAttention 3 (flash_attn_interface) are known: they need no other argument.

    Returns a Result: the run's summary.json as a dict, with verdict, causes, tolerances and folder. Raises AssertionError
    where a property is violated, or where nothing was violated and something could not be decided: at most 25 lines that
    have the cause, a finding with the command that replays it, and the report's path; its `result` is the Result. Raises
    AttestError where nothing could be checked. What is wrong with the first answer of all, or long about it, is printed on
    standard error before the run. With ATTEST_REPLAY=CASE in the environment it judges that saved case alone, if it is of
    this function.

    Source: kernel-interface.md (what is called, and the manifest), theorems.md (the properties), error-bounds.md (what is
    allowed).
    """
    __tracebackhide__ = True
    attest = _program(program)
    words = _options.words_of(attest, options, inspect.signature(check).parameters)
    kernel = Kernel(
        function, multihead, manifest, dtypes, framework, bf16, device, layout, scale, mask, is_causal, attest, backward
    )
    replayed = os.environ.get("ATTEST_REPLAY")
    if replayed:
        if kernel.is_of(replayed):
            kernel.replay(replayed)
        return _result.Result()
    for glob in [properties] if isinstance(properties, str) else properties or ():
        words += ["--property", glob]
    for option, value in (("--cases", cases), ("--seed", seed)):
        if value is not None:
            words += [option, str(value)]
    answer = kernel.run([*words, *arguments], out)
    if answer.status == 0:
        return answer.result
    error = AssertionError(answer.message())
    error.result = answer.result
    raise error


# What is said of the function itself; the rest is of a run.
KERNEL_ARGUMENTS = (
    "multihead", "backward", "manifest", "framework", "bf16", "device", "layout", "scale", "mask", "is_causal", "program",
)  # fmt: skip


class Kernel:
    """A function that is ready to be checked; the arguments are those of check."""

    def __init__(self, function, multihead=None, manifest=None, dtypes=None, framework=None, bf16="f32", device=None,
                 layout=None, scale=None, mask=None, is_causal=None, program=None, backward=None):  # fmt: skip
        self.attest = _program(program)
        self._adapter = adapter(self.attest)
        served = "torch" if framework in ("torch", None) or (framework, backward) == ("jax", "autograd") else "numpy"
        try:
            self._adapter.refuse_misuse(function, multihead, served, bf16, device, backward)
        except ValueError as error:
            raise AttestError(f"attest.check: {error}") from None
        manifest = dict(manifest or {})
        if dtypes is not None:
            manifest["dtypes"] = [dtype_word(dtype) for dtype in ([dtypes] if isinstance(dtypes, str) else dtypes)]
        names = {"scale": scale, "mask": mask, "causal": is_causal}
        self.found = _kernels.find(function, multihead, manifest, framework, bf16, device, layout, names, backward)
        self.manifest = self.found.manifest
        self.name = self.manifest.setdefault("name", getattr(function or multihead, "__name__", "python function"))
        self.id = f"exec:{shlex.quote(sys.executable)} -S {shlex.quote(str(_PACKAGE / '_relay.py'))} {shlex.quote(self.name)}"

    @contextlib.contextmanager
    def _one_thread(self):
        """Most cases are small: threads that wait for each other, and for those of attest, cost several times what they save.
        A kernel of a program of its own has one, too, unless OMP_NUM_THREADS says otherwise."""
        if self.found.framework != "torch" or "OMP_NUM_THREADS" in os.environ:
            yield
            return
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def _serve(self, channel):
        found = self.found
        channel = self._adapter.Channel(*channel)
        server = self._adapter.make_server(
            channel, found.function, self.manifest, found.multihead, found.framework, found.bf16, found.device, found.backward
        )
        server.takes_turns = True
        return server

    def named(self, text):
        return text.replace(self.id, self.name)

    def is_of(self, case):
        """Whether a saved case is of this function."""
        return _kernel_of(case) == self.id

    def replay(self, case):
        """Judges a saved case of this function again: AssertionError where it is violated."""
        __tracebackhide__ = True
        with self._one_thread():
            status, text, errors = _run([self.attest, "replay", case], self._serve)
        if status == 1:
            raise AssertionError(self.named(text))
        if status != 0:
            raise AttestError((text + errors).strip())

    def run(self, words, out=None, quiet_preflight=False):
        """Answers a run of attest check with these words. AttestError where nothing could be checked."""
        folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="attest-run-"))
        command = [self.attest, "check", "--kernel", self.id, "--out", str(folder.absolute())]
        given = {word.partition("=")[0] for word in words}
        command += [] if "--jobs" in given else ["--jobs", str(_jobs())]
        command += [] if "--resume" in given else ["--overwrite"]
        kept = out is not None

        def tell(line):
            print(self.named(line), file=sys.stderr, flush=True)

        try:
            with self._one_thread():
                status, text, errors = _run([*command, *words], self._serve, *([] if quiet_preflight else [tell]))
            if status not in (0, 1, 4):
                why = _why_nothing(folder) or self.named(errors).strip() or self.named(text).strip()
                raise AttestError(why or f"{self.attest} ended with status {status}")
            answer = Answer(self, status, folder)
            kept = kept or status != 0
            if not kept:
                answer.result.folder = None
            return answer
        finally:
            if not kept:
                shutil.rmtree(folder, ignore_errors=True)


class Answer:
    """What a run came to: its exit status and its result, and what is to be told of it."""

    def __init__(self, kernel, status, folder):
        self.kernel, self.status = kernel, status
        self.result = _result.read_result(folder)

    def message(self, prefer=None, again=None):
        """In at most 25 lines, as an AssertionError says it; `prefer`: a property whose finding is to be told."""
        return self.kernel.named(_result.message(self.kernel.name, self.result, prefer, again))

    def finding(self, about, again):
        """The first finding of a property, with the line that replays it."""
        return self.kernel.named("\n".join(_result.finding_lines(self.kernel.name, self.result, about, again)))


def _jobs():
    """How many cases are judged side by side, while the function, in this one thread, answers the next. The processes of
    xdist share the cores already."""
    return 1 if "PYTEST_XDIST_WORKER" in os.environ else min(_MOST_JOBS, len(os.sched_getaffinity(0)))


def exception(name):
    """Unsupported or Rejected, which a function may raise."""
    return getattr(adapter(), name)


def dtype_word(dtype):
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


def adapter(attest=None):
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
    """Runs attest and answers, in this thread, what its relays hand over. Returns its exit status, its output and
    its errors. What it says before it begins is told at once: a run of a slow function may take hours."""
    with tempfile.TemporaryDirectory(prefix="attest-") as folder, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        address = os.path.join(folder, "socket")
        with socket.socket(socket.AF_UNIX) as listener, select.epoll() as waiting:
            listener.bind(address)
            listener.listen()
            waiting.register(listener, select.EPOLLIN)
            environment = {**os.environ, _SOCKET: address, "ATTEST_COMMAND": "attest"}
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment)
            connections, told, look_at = {}, 0, 0.0
            try:
                while True:
                    ready = waiting.poll(0.05)
                    for descriptor, _ in ready:
                        if descriptor == listener.fileno():
                            _accept(listener, waiting, connections, serve)
                        elif not connections[descriptor].server.answer_one():
                            _close(descriptor, waiting, connections)
                    # A look at the process, and at what it printed, costs as much as a small call.
                    if ready and time.monotonic() < look_at:
                        continue
                    lines = _preflight_lines(errors)
                    for line in lines[told:]:
                        tell(line)
                    told, look_at = len(lines), time.monotonic() + 0.05
                    if process.poll() is not None:
                        break
            finally:
                if process.poll() is None:
                    process.terminate()
                for requests in list(connections):
                    _close(requests, waiting, connections)
                process.wait()
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return process.returncode, *texts


def _preflight_lines(output):
    """The whole lines of a preflight at the beginning of what was printed so far."""
    # pread: the place from which attest goes on writing is this file's own.
    text = os.pread(output.fileno(), 1 << 14, 0).decode(errors="replace")
    return [line for line in text.split("\n")[:-1] if line.startswith(_PREFLIGHT)]


class _Connection:
    """A relay: who waits at the other end of its socket, the pipes that it handed over, and what answers them."""

    def __init__(self, connection, channel):
        self.connection, self.channel, self.server = connection, channel, None


def _accept(listener, waiting, connections, serve):
    connection, _ = listener.accept()
    connection.settimeout(10)
    _, channel, _, _ = socket.recv_fds(connection, 1, 2)
    if len(channel) != 2:
        connection.close()
        return
    # Registered first: whatever serve raises is what the caller is told, and _close finds what it is to take away.
    one = connections[channel[0]] = _Connection(connection, channel)
    waiting.register(channel[0], select.EPOLLIN)
    one.server = serve(channel)


def _close(requests, waiting, connections):
    waiting.unregister(requests)
    one = connections.pop(requests)
    for descriptor in one.channel:
        os.close(descriptor)
    one.connection.close()


def _why_nothing(folder):
    """Why no case was judged, by property; empty where there is no summary."""
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return ""
    reasons = {entry["reason"] for kernel in summary["kernels"] for entry in kernel["properties"]}
    return "nothing could be checked: " + "; ".join(sorted(filter(None, reasons)))
