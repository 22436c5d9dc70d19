"""attest.capture: the attention calls of a running model, judged."""

import os
import sys
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Tuple

from attest import _exact, _known
from attest._errors import AttestError
from attest._observe import Observed


@dataclass(frozen=True)
class Captured:
    """A call of a model's attention that was judged; True where its answer is right. `where`: the module that called, by its
    name in the model, where a model was given; shapes of q and k; closeness: as of attest.allclose. Source: error-bounds.md."""

    where: str
    function: str
    shapes: Tuple[Tuple[int, ...], ...]
    closeness: "_exact.Closeness"

    def __bool__(self):
        return bool(self.closeness)

    def __repr__(self):
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.function} of q {list(self.shapes[0])} and k {list(self.shapes[1])}\n{self.closeness!r}"


def _places():
    """(module, name) of every function of attention that is known and loaded."""
    for row in _known.rows():
        module = sys.modules.get(row.module)
        # What is packed, or asked by a function of its own, is no problem of arrays alone. PyTorch's math path is what
        # scaled_dot_product_attention calls below Python.
        others = ("flex_attention", "_scaled_dot_product_attention_math")
        function = getattr(module, row.name, None)
        if row.layout in ("bhsd", "bshd") and row.name not in others and function is not None and row.exists(function):
            yield module, row.name


class Capturing:
    """While it is entered, calls of the functions are observed; see capture.

    calls     how many there were, by function
    left_out  why calls that were chosen could not be kept, and how many

    Source: reservoirs by Vitter 1985 and Li 1994.
    """

    def __init__(self, model, functions, most):
        self._model, self._most = model, most
        self._functions = functions
        self._observed: List[Tuple[Any, str, Any, Observed]] = []
        self._path: List[str] = []
        self._hooks: List[Any] = []
        self._kept: Optional[list] = None

    def __enter__(self):
        places = list(self._functions) if self._functions is not None else list(_places())
        if not places:
            raise AttestError(
                "no function of attention that attest knows is loaded; import its framework first, or name "
                "(module, name) pairs in functions="
            )
        for module, name in places:
            function = getattr(module, name)
            observed = Observed(function, None, self._most, None)
            observed.where = lambda: self._path[-1] if self._path else ""
            self._observed.append((module, name, function, observed))
            setattr(module, name, observed)
        if self._model is not None:
            for name, module in self._model.named_modules():
                self._hooks.append(module.register_forward_pre_hook(self._enter_module(name)))
                self._hooks.append(self._after(module))
        return self

    def _enter_module(self, name):
        def enter(*_):
            self._path.append(name)

        return enter

    def _after(self, module):
        try:
            return module.register_forward_hook(self._leave_module, always_call=True)
        except TypeError:  # before PyTorch 2.2 hooks are not called where a module raises
            return module.register_forward_hook(self._leave_module)

    def _leave_module(self, *_):
        self._path.pop()

    def __exit__(self, *_):
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._kept = []
        for module, name, function, observed in self._observed:
            setattr(module, name, function)
            self._kept += [(name, call) for call in observed.take()]

    @property
    def calls(self) -> Dict[str, int]:
        return {name: observed.calls for _, name, _, observed in self._observed}

    @property
    def left_out(self) -> Dict[str, int]:
        together: Dict[str, int] = {}
        for *_, observed in self._observed:
            for why, count in observed.left_out.items():
                together[why] = together.get(why, 0) + count
        return together

    def judge(self, *, manifest: Optional[dict] = None, rows: int = 256) -> List[Captured]:
        """Every kept call beside the exact answer: of each `rows` rows, spread over its heads (0: all). manifest: as in
        attest.exact. Those that are wrong come first, the worst of them at the head."""
        if self._kept is None:
            raise AttestError("calls are judged when they were captured: leave the with block first")
        judged = []
        for name, call in self._kept:
            closeness = _exact.allclose_of(call.problem(), call.found, manifest, rows)
            shapes = tuple(tuple(array.shape) for array in call.inputs[:2])
            judged.append(Captured(call.where, name, shapes, closeness))
        return sorted(judged, key=lambda one: (bool(one), -one.closeness.utilisation))

    def save(self, folder) -> List[str]:
        """Writes the kept calls as case files with their answers, for attest judge --captured. Gives their paths."""
        os.makedirs(folder, exist_ok=True)
        paths = []
        for at, (_, call) in enumerate(self._kept or ()):
            paths.append(os.path.join(os.fspath(folder), f"call-{at:04}.safetensors"))
            call.save(paths[-1])
        return paths


def capture(model=None, *, most: int = 32, functions: Optional[Iterable[Tuple[Any, str]]] = None) -> Capturing:
    """Records the attention calls of a running model, and judges them.

        with attest.capture(model) as calls:
            model(tokens)
        for call in calls.judge():
            assert call

    model      a torch.nn.Module, whose modules then say which of them made a call (default: nobody says)
    most       calls kept of each function, chosen at random, however many there are; inputs and output of each are copied, on
               the device that they are on. A call that is not kept costs a comparison
    functions  (module, name) pairs to observe instead of those that attest knows: scaled_dot_product_attention of torch,
               dot_product_attention of JAX, flash_attn_func of FlashAttention 2 and 3. Whoever imported a function by
               itself before is not seen

    A call with dropout by a mask that nobody is given, or with anything else that changes the problem in a way attest does
    not know, is not kept: `left_out` says why. Calls that a compiler traced are no calls; they are not seen. Raises
    AttestError, one line, where no function is known. Source: error-bounds.md, by which the calls are judged.
    """
    return Capturing(model, functions, most)
