"""Attest in a Python test: a function under test, and an AssertionError that says what is wrong and replays it.

    import attest

    def test_attention():
        attest.check(my_attention, dtypes=["f32"], cases=200)

The function is called in this process: closures, fixtures and devices are what they are in the test. What it gets and
returns, and what a manifest may declare, stands in attest_adapter.py:

    def my_attention(q, k, v, mask=None, scale=1.0): ...    # q [batch, heads, M, dk], k and v [batch, kv_heads, N, dk|dv]

This package needs the program `attest` and attest_adapter.py. Installed by pip, in an installation or in the source tree it
finds both; elsewhere, the program on the PATH or as $ATTEST_PROGRAM, and the adapter through it or in $ATTEST_ADAPTERS.

`python -m attest` runs the program.
"""

from attest._capture import Captured, Capturing, capture
from attest._cases import Case, cases, load
from attest._check import check
from attest._declared import kernel
from attest._errors import AttestError
from attest._exact import Closeness, Exact, allclose, assert_close, exact
from attest._judge import Judgement, judge
from attest._observe import observe
from attest._result import Result, report

__all__ = [
    "AttestError",
    "Captured",
    "Capturing",
    "Case",
    "Closeness",
    "Exact",
    "Judgement",
    "Rejected",
    "Result",
    "Unsupported",
    "allclose",
    "assert_close",
    "capture",
    "cases",
    "check",
    "exact",
    "judge",
    "kernel",
    "load",
    "observe",
    "report",
]


def __getattr__(name):
    # The exceptions that a function may raise; the file that has them is found by the program.
    if name in ("Unsupported", "Rejected"):
        from attest._check import exception

        return exception(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
