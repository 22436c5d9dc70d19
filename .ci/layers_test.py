#!/usr/bin/env python3
"""layers.py sees each kind of include that it is there to see, and no other."""
import pathlib
import subprocess
import sys
import tempfile

TREE = {
    "core/value/tensor.h": "",
    "core/problem/case.h": '#include "core/value/tensor.h"\n#include <vector>\n',
    "core/value/dtype.cc": '#include "core/problem/case.h"\n',
    "core/oracle/judge.cc": '#include "properties/road/check.h"\n',
    "properties/road/check.h": '#include "core/problem/case.h"\n',
    "properties/road/shrink.cc": '#include "check.h"\n',
    "core/test/problem/cases.h": '#include "core/problem/case.h"\n',
    "core/problem/validate.cc": '#include "core/test/problem/cases.h"\n',
    "core/bound/row_bound.cc": '#include "fmt/format.h"\n',
    "core/test/problem/case_test.cc": '#include "core/test/problem/cases.h"\n#include "properties/road/check.h"\n',
    "fuzz/search.h": '#include "properties/road/check.h"\n',
    "fuzz/targets/search_fuzzer.cc": '#include "fuzz/search.h"\n',
    "reports/main.cc": '#include "fuzz/search.h"\n',
    # A folder within another has a place of its own.
    "core/oracle/rows/head.h": '#include "core/oracle/judge.h"\n',
    "core/oracle/judge.h": "",
    "core/oracle/facts.cc": '#include "core/oracle/rows/head.h"\n',
    # A type of an unnamed namespace is its file's own.
    "core/value/shape.h": "namespace attest {\nstruct Change {\n};\nclass Shape : Change {\n};\n}  // namespace attest\n",
    "fuzz/input.h": "namespace attest {\nnamespace {\nstruct Shape {\n};\n}  // namespace\nstruct Change {\n};\n}  // namespace attest\n",
    "core/test/shape_test.cc": "namespace attest {\nnamespace {\nstruct Change {\n};\n}  // namespace\nstruct Shape;\n}  // namespace attest\n",
    "core/value/detail.h": "namespace attest::detail {\nstruct Change {\n};\n}  // namespace attest::detail\n",
    **{f"fuzz/part_{i}.cc": "" for i in range(32)},
}
WRONG = [
    "fuzz has 34 files, more than 33",
    "attest::Change is defined by core/value/shape.h and fuzz/input.h",
    'core/bound/row_bound.cc: "fmt/format.h" is not written from the root of the tree',
    "core/oracle/judge.cc includes properties/road/check.h, which comes after it",
    "core/oracle/rows/head.h includes core/oracle/judge.h, which comes after it",
    "core/problem/validate.cc includes core/test/problem/cases.h, which is a test's",
    "core/test/problem/case_test.cc includes properties/road/check.h, which comes after it",
    "core/value/dtype.cc includes core/problem/case.h, which comes after it",
    'properties/road/shrink.cc: "check.h" is not written from the root of the tree',
    f"7 includes against the order, of {len(TREE)} files",
]

with tempfile.TemporaryDirectory() as folder:
    for name, text in TREE.items():
        file = pathlib.Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    run = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("layers.py"), folder], capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout.splitlines() == WRONG, run.stdout + run.stderr
with tempfile.TemporaryDirectory() as empty:
    assert subprocess.run([sys.executable, pathlib.Path(__file__).with_name("layers.py"), empty], capture_output=True).returncode == 1
