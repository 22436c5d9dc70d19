"""What functions of frameworks mean by a window, one word of many conventions, and what attest means by theirs.

attest's own: a row at position p sees keys p - left to p + right, both inclusive, and -1 is an end that is not there;
p is i, or i + N - M (kernel-interface.md).
"""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Window:
    """The parameter of a function, what its positions count from, and both conversions."""

    name: str
    alignment: str
    theirs: Callable  # of (left, right, queries, keys), attest's
    ends: Callable  # (left, right) of a value that a caller passed; ValueError where no two ends say the same


def _flash_ends(value):
    left, right = (int(end) for end in value)
    return max(left, -1), max(right, -1)


def _jax_ends(value):
    left, right = (value, value) if isinstance(value, int) else value
    if left < 0 or right < 0:
        raise ValueError(f"a call has local_window_size {value!r}, whose ends lie on one side of the query")
    return int(left), int(right)


def inclusive_numbers(left, right, queries, keys):
    """Both ends as numbers, -1 as one behind which there is no key; none is larger, which would overflow beside a position."""
    return tuple(queries + keys if end < 0 else min(end, queries + keys) for end in (left, right))


# flash_attn/flash_attn_interface.py, and FlashAttention 3: (left, right), both inclusive, -1: none, bottom-right always.
FLASH = Window("window_size", "bottom-right", lambda left, right, queries, keys: (left, right), _flash_ends)
# jax/_src/nn/functions.py, _get_window_mask: (left, right), both inclusive, a number both; -1 is a number; top-left always.
JAX = Window("local_window_size", "top-left", inclusive_numbers, _jax_ends)
