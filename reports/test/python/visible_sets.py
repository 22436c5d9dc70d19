"""Which keys the rows of an adapter's function see under windows, as JSON in a file:  visible_sets.py FILE SCRIPT [WORD…]

The script is run as it is, but for what it serves, which is called here: with q = 0 and the identity as v a row's output is
1/n on the n keys that it sees. Each window is asked for in the alignments that the manifest offers.
"""

import json
import os
import runpy
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../core/adapters/python"))
import attest_adapter  # noqa: E402
import numpy  # noqa: E402

WINDOWS = [(0, -1), (2, -1), (9, -1), (-1, 0), (-1, 1), (-1, 6), (2, 1), (1, 2), (0, 0), (2**31 - 1, 1), (1, 2**31 - 1)]
LENGTHS = [(5, 9), (9, 5), (6, 6), (1, 6)]


def asked(left, right, alignment, causal, queries, keys):
    """The sets of the definition."""
    offset = keys - queries if alignment == "bottom-right" else 0
    return [
        [
            j for j in range(keys)
            if (left < 0 or j >= i + offset - left) and (right < 0 or j <= i + offset + right) and (not causal or j <= i + offset)
        ]
        for i in range(queries)
    ]  # fmt: skip


def seen(out, keys):
    """A row of NaN or zeros sees no key; so does a uniform one where none is asked for."""
    out = numpy.asarray(out, numpy.float64)
    sets = []
    for row in out[0, 0, :, :keys]:
        there = numpy.nonzero(numpy.nan_to_num(row))[0]
        assert len(there) == 0 or numpy.allclose(row[there], 1 / len(there), rtol=1e-2), row
        sets.append(there.tolist())
    return sets


def rows_of(function, manifest, framework):
    terms = manifest["variants"]["window"]
    required = "causal" in terms.get("requires", ())
    for alignment in terms.get("alignment", manifest.get("causal") or ["top-left", "bottom-right"]):
        for queries, keys in LENGTHS:
            inputs = [numpy.zeros((1, 1, queries, 16)), numpy.ones((1, 1, keys, 16)), numpy.eye(keys, 16)[None, None]]
            inputs = [array.astype("f4") for array in inputs]
            if framework == "torch":
                import torch

                inputs = [torch.from_numpy(array) for array in inputs]
            for left, right in WINDOWS:
                if left >= 0 and not terms.get("left", True) or right >= 0 and not terms.get("right", True):
                    continue
                given = {"window_left": left, "window_right": right, "alignment": alignment}
                given = {name: value for name, value in given.items() if name != "window_right" or terms.get("right", True)}
                if required:
                    given["causal"] = alignment
                try:
                    out = function(*inputs, scale=1.0, **given)
                except attest_adapter.Unsupported:
                    continue
                expected = asked(left, right, alignment, required, queries, keys)
                found = [
                    [] if not right and len(row) == keys else row for row, right in zip(seen(out, keys), expected)
                ]
                yield {"asked": [left, right, alignment, queries, keys], "seen": found, "expected": expected}


def main(file, script, *words):
    served = []
    attest_adapter.serve = lambda function, manifest=None, **options: served.append((function, manifest, options))
    sys.argv = [script, *words]
    runpy.run_path(script, run_name="__main__")
    function, manifest, options = served[0]
    manifest = attest_adapter._completed(dict(manifest), function, None)
    with open(file, "w") as out:
        json.dump(list(rows_of(function, manifest, options.get("framework", "numpy"))), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
