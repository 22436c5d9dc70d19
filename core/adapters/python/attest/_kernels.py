"""Finds out, by its signature and by calling it on tiny problems, what a function takes: whose arrays, in which layout, and
which masks, causal forms and heads."""

import sys
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from attest import _calls
from attest._errors import AttestError
from attest._known import known as known_row

_CLOSE = 0.05  # an error of values between -1 and 1 by which a wrong kernel is still known from one of another layout
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16"}

# Of an array's module whose it is.
_OWNERS = {"numpy": "numpy", "torch": "torch", "jax": "jax", "jaxlib": "jax", "cupy": "cupy"}


@dataclass
class Found:
    """What attest_adapter.py serves: functions of its contract, the manifest, and whose arrays they get."""

    function: Any
    multihead: Any
    manifest: dict
    framework: str = "numpy"
    bf16: str = "f32"
    device: Optional[str] = None
    arrays: str = "numpy"  # whose the function itself gets
    backward: Any = None
    call: Optional[_calls.Call] = None  # how the function is called, where that is not as the contract has it


@dataclass(frozen=True)
class _Extents:
    """Of a problem to try; `limits`: what it says of a function that takes this one and none of those before it."""

    queries: int
    keys: int
    dk: int
    dv: int
    limits: dict = field(default_factory=dict)
    heads: int = 3
    kv_heads: int = 3


_SAME = {"value_dim": "head_dim"}
# Distinct extents first, so that axes that are exchanged do not fit; then what more and more kernels ask for.
_TRIED = (
    _Extents(5, 7, 4, 6),
    _Extents(5, 7, 8, 8, _SAME),
    _Extents(5, 7, 16, 16, {**_SAME, "head_dim_multiple": 16}),
    _Extents(5, 7, 64, 64, {**_SAME, "head_dims": [64]}),
    _Extents(6, 6, 8, 8, {**_SAME, "same_lengths": True}),
    _Extents(6, 6, 64, 64, {**_SAME, "same_lengths": True, "head_dims": [64]}),
    _Extents(64, 128, 64, 64, {**_SAME, "head_dims": [64], "queries_multiple": 64, "keys_multiple": 64}),
    _Extents(128, 256, 64, 64, {**_SAME, "head_dims": [64], "queries_multiple": 128, "keys_multiple": 128}),
    _Extents(128, 128, 64, 64, {**_SAME, "head_dims": [64], "same_lengths": True, "queries_multiple": 128}),
)


class _Trial:
    """Problems in the arrays of the adapter, and how far a function's answer is from the exact one."""

    def __init__(self, framework, dtype, device):
        from attest import _check

        self.framework, self.dtype = framework, dtype
        self.errors, self.answers, self.returned = [], 0, framework
        self._adapter = _check.adapter()
        base, bits = _calls.adapter_framework(framework)
        self._arrays = self._adapter.make_framework(base, bits or "f32", device)

    def array(self, values):
        """As attest_adapter.py makes them of a request."""
        import numpy

        dtype = "BOOL" if values.dtype == bool else self.dtype.upper()
        if dtype == "BF16":
            values = self._adapter.f32_to_bf16(values)
        elif dtype != "BOOL":
            values = values.astype(_DTYPES[self.dtype])
        return self._arrays.read(dtype, values.shape, bytearray(numpy.ascontiguousarray(values)), 0)

    def problem(self, extents):
        import numpy

        random = numpy.random.default_rng(1)
        shapes = [
            (2, extents.heads, extents.queries, extents.dk),
            (2, extents.kv_heads, extents.keys, extents.dk),
            (2, extents.kv_heads, extents.keys, extents.dv),
        ]
        return [self.array(random.uniform(-1, 1, shape)) for shape in shapes]

    def error(self, function, inputs, **given):
        """How far the answer is from the exact one; None where there is no answer of the right shape. `given`: mask, causal."""
        from attest import _exact

        plain = {"mask": None, "scale": inputs[0].shape[-1] ** -0.5, "causal": "none", "mask_convention": "post-scale",
                 "want_lse": False, "out_dtype": None, **given}  # fmt: skip
        known = _calls.parameters_of(function)
        named = plain if known is None else {name: value for name, value in plain.items() if name in known}
        try:
            out = self._called(function, inputs, named)
        except Exception as error:  # whatever it raises, it does not take this
            # What it refuses by name is an answer: it knows what it was given.
            self.answers += isinstance(error, (self._adapter.Unsupported, self._adapter.Rejected, NotImplementedError))
            self.errors.append(f"{type(error).__name__}: {error}".split("\n")[0])
            return None
        self.answers += 1
        out = out[0] if isinstance(out, (tuple, list)) and len(out) else out
        self.returned = _OWNERS.get(type(out).__module__.partition(".")[0], self.returned)
        try:
            if self.framework == "jax" and self.dtype == "bf16":  # of which the adapter has bits alone
                inputs, out = [_calls.Jax.there(array) for array in inputs], _calls.Jax.there(out)
                given = {name: _calls.Jax.there(value) if name == "mask" else value for name, value in given.items()}
            return _exact.allclose(out, *inputs, **given).error
        except (AttestError, AttributeError) as error:
            self.errors.append(str(error).split("\n")[0])
            return None

    def _called(self, function, inputs, named):
        import numpy

        with numpy.errstate(all="ignore"), self._arrays.scope():
            return function(*inputs, **named)


def _frameworks(function):
    """Those to try: NumPy's arrays, and those of what this process has loaded, the function's own first."""
    own = (getattr(function, "__module__", None) or "").partition(".")[0]
    loaded = [name for name in _calls.FRAMEWORKS if name == "numpy" or name == own or sys.modules.get(name)]
    return sorted(loaded, key=lambda name: name != own)


def _refuse_misuse(framework, layout, names):
    def refuse(name, value, known):
        raise AttestError(f"attest.check: {name} is {value!r}; it must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}")

    if framework is not None and framework not in _calls.FRAMEWORKS:
        refuse("framework", framework, _calls.FRAMEWORKS)
    if layout is not None and layout not in _calls.LAYOUTS:
        refuse("layout", layout, _calls.LAYOUTS)
    for name, says in names.items():
        if says is not None and says is not False and not isinstance(says, str):
            name = "is_causal" if name == "causal" else name
            raise AttestError(f"attest.check: {name} is {says!r}; it must be the name of the function's parameter, or False")


def _merged(manifest, additions):
    """The manifest, and what it leaves out. What it limits by itself is limited by nothing else."""
    return {**{key: value for key, value in additions.items() if key not in manifest}, **manifest}


def _known_merged(manifest, row):
    """The manifest, and what is known of the function. What rows say of arithmetic is how exact a cap's tanh is."""
    additions = {"name": row.name, **row.manifest}
    if row.in_8_bits and manifest.get("dtypes") == ["f8_e4m3"]:
        additions.update(row.in_8_bits)
    variants = manifest.get("variants", additions.get("variants", {}))
    if "softcap" not in variants:
        additions.pop("arithmetic", None)
    if not manifest.get("lse", True):
        additions.pop("lse_convention", None)
    elif "alibi" not in variants and "lse_convention" in additions:
        additions["lse_convention"] = {**additions["lse_convention"], "alibi": "definition"}
    return _merged(manifest, additions)


_AUTOGRAD = ("torch", "jax")


def find(function, multihead, manifest, framework=None, bf16="f32", device=None, layout=None, names=None, backward=None):
    """What is to be served. AttestError, one line, for wrong arguments, and where the function takes nobody's arrays.
    `names`: by meaning the caller's names of parameters, False for none."""
    _refuse_misuse(framework, layout, names or {})
    whose = _AUTOGRAD if backward == "autograd" else _calls.FRAMEWORKS
    found = _find(function, multihead, manifest, framework, bf16, device, layout, names or {}, whose)
    if backward is not None:
        listed = ((manifest or {}).get("backward") or {}).get("gradients", ("dq", "dk", "dv"))
        _find_backward(found, function, backward, listed)
    return found


def _find_backward(found, function, backward, gradients):
    """Makes a backward pass one of the contract, as the function was; with autograd the gradients that are listed."""
    if backward == "autograd" and found.arrays == "jax":
        found.function, found.backward = _calls.by_vjp(function, found.call, gradients)
    elif backward == "autograd":
        if found.arrays not in _AUTOGRAD:
            raise AttestError(
                f"attest.check: backward is 'autograd', which PyTorch and JAX have, and the function gets arrays of {found.arrays}"
            )
        found.backward = backward
    elif found.call is None and found.function is not function:
        raise AttestError(
            f"attest.check: {_calls.name_of(function)} is known by its name, and how a backward function of its style is called "
            "is not; say backward='autograd', or check a function of your own that calls it"
        )
    elif found.call is not None and found.call.layout == "thd":
        raise AttestError("attest.check: backward is a function, and the layout 'thd'; packed tokens have backward='autograd' alone")
    else:
        found.backward = backward if found.call is None else _calls.adapted_backward(backward, found.call)


def _find(function, multihead, manifest, framework, bf16, device, layout, names, whose):
    if device is not None and framework is None:
        framework = "torch"
    if function is None:
        return Found(None, multihead, manifest, framework or "numpy", bf16, device)
    row = known_row(function)
    if row is not None and framework in (None, row.framework) and layout in (None, row.layout):
        if row.gpu and device is None:
            import torch

            device = "cuda" if torch.cuda.is_available() else None
        manifest = _known_merged(manifest, row)
        call = getattr(row.make, "call", None)
        return _served(row.make(function), row.framework, multihead, manifest, bf16, device, call)
    parameters = _calls.parameters_of(function)
    named = _calls.names_in(parameters or {}, names)
    contract = parameters is None or _calls.speaks_the_contract(parameters, named)
    if layout is None and parameters is not None and _calls.is_packed(parameters):
        layout = "thd"
    if contract and framework is not None and layout == "bhsd":
        return _served(function, framework, multihead, manifest, bf16, device)
    search = _Search(function, parameters or {}, named, contract, manifest, device)
    frameworks = [framework] if framework else [name for name in _frameworks(function) if name in whose]
    if not frameworks:
        raise AttestError("attest.check: backward is 'autograd', which PyTorch and JAX have; the test has imported neither")
    best = search.best(frameworks, [layout] if layout else ["bhsd", "bshd"], whose)
    if best is None:
        # What it says of every array alike is no word about arrays: the run tells it, with its case.
        if len(set(search.last_errors.values())) > 1:
            told = "; ".join(f"{name}: {error}" for name, error in search.last_errors.items())
            raise AttestError(f"attest.check: {_calls.name_of(function)} takes no arrays that were tried: {told}")
        if contract and layout in (None, "bhsd"):
            return _served(function, framework or frameworks[0], multihead, manifest, bf16, device)
        best = _Best(_calls.Call(framework or frameworks[0], layout or "bhsd", **named), _TRIED[0])
    return search.served(best, multihead, bf16)


def _served(function, framework, multihead, manifest, bf16, device, call=None):
    """A function of the contract, on the arrays of the adapter; what JAX and CuPy take is made of NumPy's."""
    base, bits = _calls.adapter_framework(framework)
    return Found(function, multihead, manifest, base, bits or bf16, device, framework, call=call)


@dataclass
class _Best:
    call: _calls.Call
    extents: _Extents
    error: float = 0.0
    dtype: str = "f32"


class _Search:
    """The calls of one function."""

    def __init__(self, function, parameters, named, contract, manifest, device):
        self.function, self.parameters, self.named, self.contract = function, parameters, named, contract
        self.manifest, self.device = manifest, device
        self.last_errors = {}

    def _dtypes(self):
        return [of for of in self.manifest.get("dtypes", ("f32", "f16", "bf16")) if of in _DTYPES]

    def _as_called(self, call):
        """The function as it is, where it speaks the contract already, so that no call costs more than it must."""
        plain = call.framework in ("numpy", "torch") and call.layout == "bhsd"
        return self.function if self.contract and plain else self._adapted(call)

    def _adapted(self, call):
        return _calls.adapted(self.function, call)

    def best(self, frameworks, layouts, whose=_calls.FRAMEWORKS):
        """The first of the frameworks whose arrays are answered in the right shape, by arrays of one of `whose`; there the layout whose answer is nearest
        to the exact one. None where it raises on all."""
        answered = None
        for framework, device in self._places(frameworks):
            for dtype in self._dtypes():
                trial = _Trial(framework, dtype, device)
                found = self._best_of(trial, layouts)
                if found is not None and trial.returned != framework and trial.returned in _calls.FRAMEWORKS:
                    # JAX takes NumPy's arrays, too, of which bfloat16 is none.
                    other = self._best_of(_Trial(trial.returned, dtype, device), layouts) if trial.returned in whose else None
                    found = other or (found if trial.returned in whose else None)
                if found is not None:
                    self.device = device
                    return found
                if trial.answers > 0 and answered is None:
                    answered = _Best(self._call(framework, layouts[0]), _TRIED[0], dtype=dtype)
                if trial.errors:
                    place = framework if device is None else f"{framework} on {device}"
                    self.last_errors.setdefault(place, trial.errors[0])
        return answered

    def _places(self, frameworks):
        """Whose arrays, and where they lie: of torch's on the GPU, too, where there is one and nothing is said."""
        for framework in frameworks:
            yield framework, self.device
            if framework == "torch" and self.device is None:
                import torch

                if torch.cuda.is_available():
                    yield framework, "cuda"

    def _call(self, framework, layout):
        lse = "want_lse" if self.contract and "want_lse" in self.parameters else None
        return _calls.Call(framework, layout, lse=lse, **self.named)

    def _best_of(self, trial, layouts):
        for extents in _TRIED:
            nearest = None
            for layout in layouts:
                call = self._call(trial.framework, layout)
                error = trial.error(self._as_called(call), trial.problem(extents))
                if error is not None and (nearest is None or error < nearest.error):
                    nearest = _Best(call, extents, error, trial.dtype)
                if error is not None and error < _CLOSE:
                    return nearest
            if nearest is not None and extents is not _TRIED[0] and trial.answers > 1:
                # It answers more, if in another shape: that is wrong, and limits nothing.
                return _Best(nearest.call, _TRIED[0], dtype=trial.dtype)
            if nearest is not None:
                return nearest  # wrong, and in this layout least so
        return None

    def served(self, best, multihead, bf16):
        """The function in the call that was found, its manifest completed by what was tried."""
        call, manifest = best.call, self.manifest
        additions = {}
        if best.extents.limits:
            additions["limits"] = best.extents.limits
        trial = _Trial(call.framework, best.dtype, self.device)
        if not self.contract or call.framework in ("jax", "cupy"):
            for key, value in _Capabilities(self, trial, best).tried().items():
                additions[key] = {**additions.get("limits", {}), **value} if key == "limits" else value
        if "dtypes" not in manifest and (call.framework == "jax" or best.dtype != "f32"):
            additions["dtypes"] = self._dtypes_of(call, best)
        function = self._as_called(call)
        if function is not self.function or additions.get("limits"):
            additions["version"] = _words(call, additions)
        manifest = _merged(manifest, additions)
        changed = None if function is self.function else call
        return _served(function, call.framework, multihead, manifest, bf16, self.device, changed)

    def _dtypes_of(self, call, best):
        """Those that it answers in; JAX makes f32 of f64, where it is not told otherwise."""
        wide = ["f64"] if call.framework != "jax" or sys.modules["jax"].config.jax_enable_x64 else []
        answered = []
        for dtype in [*wide, "f32", "f16", "bf16"]:
            trial = _Trial(call.framework, dtype, self.device)
            if trial.error(self._as_called(call), trial.problem(best.extents)) is not None:
                answered.append(dtype)
        return answered or [best.dtype]


def _words(call, additions):
    """What was found, for the reports."""
    words = [f"arrays of {call.framework}", call.layout]
    if additions.get("causal"):
        words.append(f"causal {additions['causal'][0]}")
    words += [f"{key} {value}" for key, value in additions.get("limits", {}).items()]
    return "found by trying: " + ", ".join(words)


class _Capabilities:
    """What a function that does not speak the contract takes beside q, k and v."""

    def __init__(self, search, trial, best):
        self.search, self.trial, self.best, self.call = search, trial, best, best.call

    def _error(self, extents=None, mask=None, **named):
        """Of the exact answer; `mask` is the kind of one."""
        extents = extents or self.best.extents
        if mask is not None:
            named["mask"] = self._mask(mask, extents)
        return self.trial.error(self.search._as_called(self.call), self.trial.problem(extents), **named)

    def tried(self):
        """Keys of the manifest."""
        found = {"masks": self._masks(), "grouped_query": self._grouped()}
        if self.call.causal:
            found.update(self._causal())
        limits = {}
        for key, change in (("min_queries", {"queries": 0}), ("min_keys", {"keys": 0})):
            if self._error(replace(self.best.extents, **change)) is None:
                limits[key] = 1
        if limits:
            found["limits"] = limits
        if found["masks"] and found.get("causal"):
            same = replace(self.best.extents, keys=self.best.extents.queries)
            if self._error(same, mask=found["masks"][0], causal=found["causal"][0]) is None:
                found["excludes"] = [*found.get("excludes", ()), ["mask", "causal"]]
        return found

    def _mask(self, kind, extents):
        import numpy

        shape = (2, extents.heads, extents.queries, extents.keys)
        random = numpy.random.default_rng(2)
        if kind == "additive":
            return self.trial.array(random.uniform(-1, 1, shape))
        sees = random.uniform(0, 1, shape) < 0.6
        sees[..., 0] = True
        return self.trial.array(sees)

    def _masks(self):
        kinds = (["bool"] if self.call.mask else []) + (["additive"] if self.call.mask or self.call.bias else [])
        errors = {kind: self._error(mask=kind) for kind in kinds}
        taken = [kind for kind in kinds if errors[kind] is not None]
        # Of a mask of one kind the other may be taken for something else; of a wrong kernel neither is right.
        return [kind for kind in taken if errors[kind] < _CLOSE] or taken

    def _causal(self):
        """The alignment whose answer is nearer to the exact one, where M and N differ."""
        errors = {}
        for alignment in ("top-left", "bottom-right"):
            error = self._error(causal=alignment)
            if error is not None:
                errors[alignment] = error
        if errors:
            return {"causal": [min(errors, key=errors.get)]}
        if self._error(replace(self.best.extents, keys=self.best.extents.queries), causal="top-left") is not None:
            return {"causal": ["top-left"], "excludes": [["causal", "unequal-lengths"]]}
        return {"causal": []}

    def _grouped(self):
        error = self._error(replace(self.best.extents, heads=4, kv_heads=2))
        return error is not None and error < _CLOSE
