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

# Of the steps by which a case gets simpler, one after another, as many may be taken as are decided here; each is taken
# where a number is 0, which is where Hypothesis goes as it shrinks. Drawn, hardly one is.
_PLACES = 64
_RARELY_ZERO = st.sampled_from(range(4096))
_MOST = 2**62


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
    simpler by attest's own steps: fewer heads, shorter axes, no mask, simpler numbers."""
    word = draw(st.sampled_from([dtype] if isinstance(dtype, str) else list(dtype)))
    request = _cases._drawing(word, property, manifest, shapes, large)
    request["seed"], request["k"] = draw(st.integers(0, _MOST)), draw(st.integers(0, 99))
    taken = [place for place in range(_PLACES) if draw(_RARELY_ZERO) == 0]
    if taken:
        request["steps"] = taken
    return _cases._case_of(request, {}, {})
