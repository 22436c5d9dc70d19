"""The Python of the guide's pages runs, block after block as a reader would type it."""

import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "guide"


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (GUIDE / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["exact.md"])
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    assert blocks(page)
    for at, block in enumerate(blocks(page)):
        if "hypothesis" in block:
            pytest.importorskip("hypothesis")
        exec(compile(block, f"{page}, block {at + 1}", "exec"), names)  # what the page says, and nothing else
