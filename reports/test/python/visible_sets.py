"""Which keys the rows of an adapter's function see, as JSON in a file:  visible_sets.py FILE VARIANT SCRIPT [WORD…]

The script is run as it is, but for what it serves, which is called here: with q = 0 and the identity as v a row's output is
1/n on the n keys that it sees. Of windows and chunks each is asked for in the alignments that the manifest offers; of
lengths, left_pad and packed each causal form beside them, and of chunked_sequences chunks beside each of these three.
"""

import json
import os
import runpy
import sys
from itertools import product

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../core/adapters/python"))
import attest_adapter  # noqa: E402
import numpy  # noqa: E402

WINDOWS = [(0, -1), (2, -1), (9, -1), (-1, 0), (-1, 1), (-1, 6), (2, 1), (1, 2), (0, 0), (2**31 - 1, 1), (1, 2**31 - 1)]
CHUNKS = [1, 2, 3, 4, 5, 8, 9, 2**31 - 1]
LENGTHS = [(5, 9), (9, 5), (6, 6), (1, 6)]


def asked(left, right, alignment, causal, queries, keys, chunk=0):
    """The sets of the definition."""
    offset = keys - queries if alignment == "bottom-right" else 0

    def sees(p, j):
        in_window = (left < 0 or j >= p - left) and (right < 0 or j <= p + right)
        return in_window and (not causal or j <= p) and (not chunk or j // chunk == p // chunk)

    return [[j for j in range(keys) if sees(i + offset, j)] for i in range(queries)]


def seen(out, keys, entry=0):
    """A row of NaN or zeros sees no key."""
    out = numpy.asarray(out, numpy.float64)
    sets = []
    for row in out[entry, 0, :, :keys]:
        there = numpy.nonzero(numpy.nan_to_num(row))[0]
        assert len(there) == 0 or numpy.allclose(row[there], 1 / len(there), rtol=1e-2), row
        sets.append(there.tolist())
    return sets


def seen_for(expected, out, keys, entry=0):
    """As seen, of as many rows as are expected; a uniform one sees no key, too, where none is."""
    found = seen(out, keys, entry)[: len(expected)]
    return [[] if not right and len(row) == keys else row for row, right in zip(found, expected)]


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
    for alignment in alignments(manifest, terms):
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
                found = seen_for(expected, out, keys)
                yield {"asked": [left, right, alignment, queries, keys], "seen": found, "expected": expected}


def alignments(manifest, terms):
    return terms.get("alignment", manifest.get("causal") or ["top-left", "bottom-right"])


def chunks(function, manifest, framework):
    """By themselves, beside the causal form of the same alignment, and each of both beside a window."""
    for alignment in alignments(manifest, manifest["variants"]["chunk"]):
        forms = ["none", *(form for form in manifest.get("causal") or [] if form == alignment)]
        windows_beside = [(-1, -1), (2, 1)] if "window" in manifest["variants"] else [(-1, -1)]
        for (queries, keys), chunk, causal, (left, right) in product(LENGTHS, CHUNKS, forms, windows_beside):
            given = {"attention_chunk": chunk, "alignment": alignment}
            if causal != "none":
                given["causal"] = causal
            if max(left, right) >= 0:
                given.update(window_left=left, window_right=right)
            out = function(*problem(framework, 1, queries, keys), scale=1.0, **given)
            expected = asked(left, right, alignment, causal != "none", queries, keys, chunk)
            question = [chunk, left, right, causal, alignment, queries, keys]
            yield {"asked": question, "seen": seen_for(expected, out, keys), "expected": expected}


def chunked_sequences(function, manifest, framework):
    """Which count in each sequence by itself, and behind its padding on the left."""
    q_lengths, kv_lengths, pads = [5, 2, 4], [6, 9, 3], [2, 3, 0]
    q_starts, kv_starts = [0, 3, 3, 5], [0, 4, 6, 13]
    lists = {"q_lengths": q_lengths, "kv_lengths": kv_lengths, "left_pad": pads, "q_starts": q_starts,
             "kv_starts": kv_starts}  # fmt: skip
    numbers = {name: whole_numbers(framework, of) for name, of in lists.items()}
    for alignment, chunk in product(alignments(manifest, manifest["variants"]["chunk"]), (1, 2, 3)):
        given = {"scale": 1.0, "attention_chunk": chunk, "alignment": alignment}
        for padded in (False, True):
            names = ["q_lengths", "kv_lengths", *["left_pad"][:padded]]
            out = function(*problem(framework, 3, 5, 9), **given, **{name: numbers[name] for name in names})
            for entry in range(3):
                first = pads[entry] * padded
                sets = asked(-1, -1, alignment, False, q_lengths[entry], kv_lengths[entry] - first, chunk)
                expected = [[first + j for j in row] for row in sets]
                question = [chunk, alignment, padded, entry]
                yield {"asked": question, "seen": seen_for(expected, out, 9, entry), "expected": expected}
        inputs = problem(framework, 1, q_starts[-1], kv_starts[-1])
        out = function(*inputs, **given, q_starts=numbers["q_starts"], kv_starts=numbers["kv_starts"])
        expected = []
        for s in range(3):
            rows, first, own = q_starts[s + 1] - q_starts[s], kv_starts[s], kv_starts[s + 1] - kv_starts[s]
            expected += [[first + j for j in row] for row in asked(-1, -1, alignment, False, rows, own, chunk)]
        yield {"asked": [chunk, alignment, "packed"], "seen": seen(out, kv_starts[-1]), "expected": expected}


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
                    found = seen_for(expected, out, keys, entry)
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
                found = seen_for(expected, out, keys, entry)
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
