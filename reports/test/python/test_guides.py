"""The code of the guide's pages about Python: what they call right passes, and what they call wrong fails."""

import os
import re

import attest
import pytest

pytest_plugins = ["pytester"]
HERE = os.path.dirname(os.path.abspath(__file__))
GUIDE = os.path.join(HERE, "../../guide")
# Of each page the frameworks whose code is run where they are there, and the versions that it needs.
PAGES = {
    "pytest.md": {}, "gradients.md": {}, "pytorch.md": {"torch": "1.12"}, "jax.md": {"jax": None},
    "triton.md": {"torch": "2.5", "triton": None},
}  # fmt: skip
NEEDS = {"test_sdpa.py": ("torch", "2.5")}
FEW = ["--attest-cases=20", "-k", "oracle or no-leak or split-merge or test_"]
FEWER = {"triton.md": ["--attest-cases=4", "-k", "oracle"], "jax.md": ["-k", "oracle"]}


def lacking(module, version):
    """Why code that needs the module is not run; empty where it is there. It is loaded before pytester is, which forgets
    what was loaded since."""
    try:
        pytest.importorskip(module, version)
    except pytest.skip.Exception as reason:
        return str(reason)
    return ""


LACKING = {need: lacking(*need) for need in {*NEEDS.values(), *(need for of in PAGES.values() for need in of.items())}}


def files_of(page):
    """By name the files that a page has, blocks that begin with their names."""
    with open(os.path.join(GUIDE, page), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    assert all(re.match(r"# test_\w+\.py\n", block) for block in blocks), page
    return {block[2 : block.index("\n")]: block for block in blocks}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_does_what_the_page_says(page, pytester, monkeypatch):
    for need in PAGES[page].items():
        if LACKING[need]:
            pytest.skip(LACKING[need])
    files = {name: text for name, text in files_of(page).items() if name not in NEEDS or not LACKING[NEEDS[name]]}
    assert files
    for name, text in files.items():
        (pytester.path / name).write_text(text)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(attest.__file__)))
    result = pytester.runpytest_subprocess("-pattest._pytest", "-pno:cacheprovider", "-rA", *FEWER.get(page, FEW))
    told = re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", result.stdout.str(), re.MULTILINE)
    verdicts = {}
    for verdict, test in told:
        verdicts.setdefault(test.split("[")[0] if "::attest_case" in test else "::".join(test.split("::")[:2]), set()).add(verdict)
    assert verdicts and result.ret in (0, 1)
    for test, found in verdicts.items():
        assert ("FAILED" in found) == ("::wrong" in test) and "ERROR" not in found, (test, found, result.stdout.str())


@pytest.mark.parametrize("page", ["exact.md"])
def test_the_blocks_of_a_page_run_one_after_another(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with open(os.path.join(GUIDE, page), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
    assert blocks
    for at, block in enumerate(blocks):
        if "hypothesis" in block:
            pytest.importorskip("hypothesis")
        exec(compile(block, f"{page}, block {at + 1}", "exec"), names)  # what the page says, and nothing else


def test_every_page_that_has_python_is_run():
    pages = {page for page in os.listdir(GUIDE) if re.search(r"^# test_\w+\.py$", open(os.path.join(GUIDE, page)).read(), re.MULTILINE)}
    assert pages == set(PAGES)
