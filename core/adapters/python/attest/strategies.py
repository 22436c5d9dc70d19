"""Hypothesis strategies of attention problems, drawn and shrunk by attest.

    from hypothesis import given
    from attest import strategies

    @given(strategies.cases(dtype="f32"))
    def test_mine(case):
        assert case.allclose(mine(case.q, case.k, case.v, **case.arguments))

Needs Hypothesis, which pip installs.
"""

from typing import Optional, Sequence, Union

from hypothesis import strategies as st

from attest import _cases

_MOST = 2**62
# Zero where a step is taken: that is where Hypothesis goes as it shrinks, and hardly one that is drawn is.
_RARELY_ZERO = st.sampled_from(range(1024))
# An axis keeps so many indices: drawn, hardly one is cropped.
_EXTENT = st.integers(1, 2**40)
# Of attention and of multi-head attention, at least as many as there are.
_AXES, _FORMS, _TENSORS = (7, 12), 32, (4, 14)


@st.composite
def cases(
    draw,
    dtype: Union[str, Sequence[str]] = "f32",
    *,
    property: str = "attention.oracle",
    manifest: Optional[dict] = None,
    shapes: Optional[Sequence] = None,
    large: str = "none",
):
    """Cases as attest.cases gives them, in one dtype or one of several. What Hypothesis shows of a failing test has become
    simpler by attest's own steps: one head, shorter axes, no mask, simpler numbers."""
    word = draw(st.sampled_from([dtype] if isinstance(dtype, str) else list(dtype)))
    request = _cases._drawing(word, property, manifest, shapes, large)
    request["seed"], request["k"] = draw(st.integers(0, _MOST)), draw(st.integers(0, 99))
    of = int(property.startswith("multihead"))
    one_head, head = draw(_RARELY_ZERO) == 0, draw(st.integers(0, 255))
    if one_head:
        request["head"] = [head]
    request["crop"] = [draw(_EXTENT) for _ in range(_AXES[of])]
    request["forms"] = [form for form in range(_FORMS) if draw(_RARELY_ZERO) == 0]
    request["numbers"] = [draw(_RARELY_ZERO) for _ in range(_TENSORS[of])]
    return _cases._case_of(request, {}, {})
