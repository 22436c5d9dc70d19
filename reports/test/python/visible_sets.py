"""Which keys the rows of an adapter's function see, as JSON in a file:  visible_sets.py FILE VARIANT SCRIPT [WORD…]

The script is run as it is, but for what it serves, which is called here: with q = 0 and the identity as v a row's output is
1/n on the n keys that it sees. Of the variant window each window is asked for in the alignments that the manifest offers; of
lengths, left_pad and packed each causal form beside them.
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


def seen(out, keys, entry=0):
    """A row of NaN or zeros sees no key; so does a uniform one where none is asked for."""
    out = numpy.asarray(out, numpy.float64)
    sets = []
    for row in out[entry, 0, :, :keys]:
        there = numpy.nonzero(numpy.nan_to_num(row))[0]
        assert len(there) == 0 or numpy.allclose(row[there], 1 / len(there), rtol=1e-2), row
        sets.append(there.tolist())
    return sets


def problem(framework, batch, queries, keys):
    inputs = [
        numpy.zeros((batch, 1, queries, 16)), numpy.ones((batch, 1, keys, 16)), numpy.tile(numpy.eye(keys, 16), (batch, 1, 1, 1))
    ]  # fmt: skip
    inputs = [array.astype("f4") for array in inputs]
    if framework == "torch":
        import torch

        inputs = [torch.from_numpy(array) for array in inputs]
    return inputs


def whole_numbers(framework, numbers):
    numbers = numpy.asarray(numbers, numpy.int32)
    if framework == "torch":
        import torch

        return torch.from_numpy(numbers)
    return numbers


def windows(function, manifest, framework):
    terms = manifest["variants"]["window"]
    required = "causal" in terms.get("requires", ())
    for alignment in terms.get("alignment", manifest.get("causal") or ["top-left", "bottom-right"]):
        for queries, keys in LENGTHS:
            inputs = problem(framework, 1, queries, keys)
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


def causal_forms(manifest, terms):
    """Those that the manifest allows beside the variant."""
    forms = ["none", *(manifest.get("causal") or [])]
    excluded, required = terms.get("excludes", ()), terms.get("requires", ())
    if "causal" in required:
        forms.remove("none")
    return [
        form for form in forms
        if form == "none" or not {"causal", form} & set(excluded) and not {"top-left", "bottom-right"} - {form} & set(required)
    ]  # fmt: skip


def lengths(function, manifest, framework):
    terms = manifest["variants"]["lengths"]
    queries, keys, whole = 5, 9, ([5, 2, 3], [6, 9, 3])
    inputs = problem(framework, 3, queries, keys)
    for causal in causal_forms(manifest, terms):
        for of_queries in [False, True] if terms.get("queries", True) else [False]:
            for of_keys in [False, True] if terms.get("keys", True) else [False]:
                if not of_queries and not of_keys:
                    continue
                given = {"q_lengths": whole_numbers(framework, whole[0])} if of_queries else {}
                if of_keys:
                    given["kv_lengths"] = whole_numbers(framework, whole[1])
                if causal != "none":
                    given["causal"] = causal
                try:
                    out = function(*inputs, scale=1.0, **given)
                except attest_adapter.Unsupported:
                    continue
                for entry in range(3):
                    rows = whole[0][entry] if of_queries else queries
                    own = whole[1][entry] if of_keys else keys
                    expected = asked(-1, -1, causal, causal != "none", rows, own)
                    found = seen(out, keys, entry)[:rows]
                    found = [[] if not right and len(row) == keys else row for row, right in zip(found, expected)]
                    yield {"asked": [causal, of_queries, of_keys, entry], "seen": found, "expected": expected}


def left_pad(function, manifest, framework):
    queries, keys, pads, ends = 5, 9, [2, 0, 4], [6, 9, 5]
    inputs = problem(framework, 3, queries, keys)
    for causal in causal_forms(manifest, manifest["variants"]["left_pad"]):
        for of_keys in [False, True] if "lengths" in manifest["variants"] else [False]:
            given = {"left_pad": whole_numbers(framework, pads)}
            if of_keys:
                given["kv_lengths"] = whole_numbers(framework, ends)
            if causal != "none":
                given["causal"] = causal
            out = function(*inputs, scale=1.0, **given)
            for entry in range(3):
                own = (ends[entry] if of_keys else keys) - pads[entry]
                expected = [[pads[entry] + j for j in row] for row in asked(-1, -1, causal, causal != "none", queries, own)]
                found = [
                    [] if not right and len(row) == keys else row for row, right in zip(seen(out, keys, entry), expected)
                ]
                yield {"asked": [causal, of_keys, entry], "seen": found, "expected": expected}


def packed(function, manifest, framework):
    q_starts, kv_starts = [0, 3, 3, 5], [0, 4, 6, 13]
    inputs = problem(framework, 1, q_starts[-1], kv_starts[-1])
    starts = {"q_starts": whole_numbers(framework, q_starts), "kv_starts": whole_numbers(framework, kv_starts)}
    for causal in causal_forms(manifest, manifest["variants"]["packed"]):
        out = function(*inputs, scale=1.0, **starts, **({} if causal == "none" else {"causal": causal}))
        expected = []
        for s in range(3):
            rows, first, own = q_starts[s + 1] - q_starts[s], kv_starts[s], kv_starts[s + 1] - kv_starts[s]
            expected += [[first + j for j in row] for row in asked(-1, -1, causal, causal != "none", rows, own)]
        yield {"asked": [causal], "seen": seen(out, kv_starts[-1]), "expected": expected}


def main(file, variant, script, *words):
    served = []
    attest_adapter.serve = lambda function, manifest=None, **options: served.append((function, manifest, options))
    sys.argv = [script, *words]
    runpy.run_path(script, run_name="__main__")
    function, manifest, options = served[0]
    manifest = attest_adapter._completed(dict(manifest), function, None)
    with open(file, "w") as out:
        json.dump(list(globals()[variant](function, manifest, options.get("framework", "numpy"))), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
