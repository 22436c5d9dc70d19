"""Sequences of lengths of their own: adapters by the keys that rows see, and what attest's functions make of lengths."""

import numpy
import pytest
from test_frameworks import needs
from test_windows import attention, captured, visible_sets

import attest

LENGTHS = [
    (["torch"], "pytorch/flex_kernels.py flex", 18),
    (["torch"], "pytorch/flex_kernels.py nested", 9),
    (["jax"], "jax/jax_kernel.py", 18),
    (["onnxruntime", "onnx"], "onnxruntime/ort_python.py attention", 6),
]
random = numpy.random.default_rng(6)
KV_LENGTHS, Q_LENGTHS = [4, 7, 1], [2, 4, 3]
Q_STARTS, KV_STARTS = [0, 2, 2, 5], [0, 3, 5, 9]


@pytest.mark.parametrize(("modules", "script", "count"), LENGTHS, ids=[script for _, script, _ in LENGTHS])
def test_an_adapters_rows_see_the_keys_of_their_own_lengths(tmp_path, modules, script, count):
    of_lengths = visible_sets(tmp_path, "lengths", modules, script)
    assert len(of_lengths) == count
    for one in of_lengths:
        assert one["seen"] == one["expected"], one["asked"]


def test_the_rows_of_packed_sequences_see_the_keys_of_their_own(tmp_path):
    of_packed = visible_sets(tmp_path, "packed", ["torch"], "pytorch/flex_kernels.py flex")
    assert len(of_packed) == 2
    for one in of_packed:
        assert one["seen"] == one["expected"], one["asked"]


def test_the_rows_of_an_entry_see_the_keys_behind_its_padding_on_the_left(tmp_path):
    of_left_pad = visible_sets(tmp_path, "left_pad", ["torch"], "pytorch/flex_kernels.py flex")
    assert len(of_left_pad) == 12
    for one in of_left_pad:
        assert one["seen"] == one["expected"], one["asked"]


def problem(batch=3, queries=4, keys=7, heads=2, dk=8):
    return [random.standard_normal((batch, heads, length, dk)).astype("float32") for length in (queries, keys, keys)]


def own(lengths, extent):
    return numpy.arange(extent) < numpy.asarray(lengths)[:, None]


@pytest.mark.parametrize("causal", [None, "top-left", "bottom-right"])
def test_each_entry_is_as_if_it_were_alone(causal):
    q, k, v = problem()
    together = attest.exact(q, k, v, causal=causal, q_lengths=Q_LENGTHS, kv_lengths=KV_LENGTHS)
    for b, (rows, keys) in enumerate(zip(Q_LENGTHS, KV_LENGTHS)):
        alone = attest.exact(q[b : b + 1, :, :rows], k[b : b + 1, :, :keys], v[b : b + 1, :, :keys], causal=causal)
        lower, upper = together.lower[b : b + 1, :, :rows], together.upper[b : b + 1, :, :rows]
        there = ~numpy.isnan(numpy.asarray(alone.lower))
        assert numpy.all((alone.lower <= upper)[there]) and numpy.all((lower <= alone.upper)[there])


def test_lengths_are_the_mask_that_hides_what_is_behind_them():
    q, k, v = problem()
    seen = own(KV_LENGTHS, 7)[:, None, None]
    out = attention(q, k, v, seen)
    assert attest.allclose(out, q, k, v, kv_lengths=KV_LENGTHS)
    assert not attest.allclose(out, q, k, v)
    # Another entry's lengths.
    assert not attest.allclose(out, q, k, v, kv_lengths=KV_LENGTHS[::-1])
    # Rows of no sequence are nobody's.
    out[~own(Q_LENGTHS, 4)[:, None].repeat(2, 1)] = 1e6
    assert attest.allclose(out, q, k, v, q_lengths=Q_LENGTHS, kv_lengths=KV_LENGTHS)
    out[0, 0, 0, 0] += 1
    assert not attest.allclose(out, q, k, v, q_lengths=Q_LENGTHS, kv_lengths=KV_LENGTHS)


def test_packed_sequences_are_a_block_diagonal_mask():
    q, k, v = problem(1, 5, 9)
    of_row = numpy.searchsorted(Q_STARTS, numpy.arange(5), "right")
    of_key = numpy.searchsorted(KV_STARTS, numpy.arange(9), "right")
    out = attention(q, k, v, of_row[:, None] == of_key)
    assert attest.allclose(out, q, k, v, q_starts=Q_STARTS, kv_starts=KV_STARTS)
    assert not attest.allclose(out, q, k, v)
    assert not attest.allclose(out, q, k, v, q_starts=Q_STARTS, kv_starts=[0, 4, 5, 9])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kv_lengths": [4, 8, 1]}, "8"),
        ({"kv_lengths": [4, -1, 1]}, "-1"),
        ({"kv_lengths": [4, 7]}, "kv_lengths"),
        ({"kv_lengths": [4, 1.5, 1]}, "1.5"),
        ({"q_starts": [0, 4]}, "kv_starts"),
        ({"q_starts": [0, 4], "kv_starts": [0, 7]}, "in a batch of 1"),
    ],
)
def test_wrong_lengths_are_refused_in_one_line(given, says):
    with pytest.raises(attest.AttestError, match=says) as refused:
        attest.exact(*problem(), **given)
    assert "\n" not in str(refused.value)


def test_cases_have_lengths_where_a_manifest_lists_them(tmp_path):
    def names(manifest):
        return {name for case in attest.cases(count=80, manifest=manifest) for name in case.arguments}

    assert not names(None) & {"q_lengths", "kv_lengths", "q_starts", "kv_starts"}
    assert {"q_lengths", "kv_lengths"} <= names({"variants": {"lengths": {}}})
    assert "q_lengths" not in names({"variants": {"lengths": {"queries": False}}})
    assert {"q_starts", "kv_starts"} <= names({"variants": {"packed": {}}})


def test_the_packed_sequences_of_flash_attention_are_known(monkeypatch):
    pytest.importorskip("torch")
    import flash_attn

    what = {"dtypes": "bf16", "properties": "attention.oracle,varlen.*", "no_large": True, "cases": 60}
    assert attest.check(flash_attn.flash_attn_varlen_func, **what).verdict == "held"

    # What it is to compute for each sequence: of the keys of the one before it.
    real = flash_attn.flash_attn_varlen_func

    def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, *args, **given):
        same = cu_seqlens_k.clone()
        if len(same) > 2:
            same[1] = max(int(same[1]) - 1, int(same[0]))
        return real(q, k, v, cu_seqlens_q, same, *args, **given)

    monkeypatch.setattr(flash_attn, "flash_attn_varlen_func", flash_attn_varlen_func)
    with pytest.raises(AssertionError):
        attest.check(flash_attn_varlen_func, **what)


def test_the_lengths_of_jax_are_known():
    needs("jax")
    import jax

    what = {"dtypes": "f32", "properties": "attention.oracle", "no_large": True, "cases": 30}
    assert attest.check(jax.nn.dot_product_attention, **what).verdict == "held"


def test_calls_with_lengths_are_judged():
    def mine(q, k, v, kv_lengths):
        return attention(q, k, v, own(kv_lengths, k.shape[2])[:, None, None])

    def wrong(q, k, v, kv_lengths):
        return attention(q, k, v, own(numpy.asarray(kv_lengths) + 1, k.shape[2])[:, None, None])

    call = (problem(), {"kv_lengths": numpy.asarray(KV_LENGTHS, "int32")})
    assert [bool(one) for one in captured(mine, call).judge()] == [True]
    assert [bool(one) for one in captured(wrong, call).judge()] == [False]


def test_calls_with_the_lengths_of_jax_are_judged():
    needs("jax")
    import jax

    q, k, v = (jax.numpy.asarray(array.swapaxes(1, 2)) for array in problem())
    given = {"query_seq_lengths": jax.numpy.asarray(Q_LENGTHS), "key_value_seq_lengths": jax.numpy.asarray(KV_LENGTHS)}
    with attest.capture(functions=[(jax.nn, "dot_product_attention")]) as calls:
        jax.nn.dot_product_attention(q, k, v, **given)
        jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=given["key_value_seq_lengths"], is_causal=True)
    assert calls.left_out == {} and len(calls.judge()) == 2 and all(calls.judge())


def in_pages(array, table, pages):
    """The keys of each entry, two to a page, where the table says."""
    pool = numpy.full((pages, array.shape[1], 2, array.shape[3]), numpy.nan, "float32")
    for b, row in enumerate(table):
        for column, page in enumerate(row):
            pool[page, :, : array[b, :, 2 * column : 2 * column + 2].shape[1]] = array[b, :, 2 * column : 2 * column + 2]
    return pool


def test_keys_in_pages_are_the_keys_one_after_another():
    q, k, v = problem(batch=2, keys=5)
    table = [[6, 0, 3], [1, 5, 2]]
    paged = {"page_table": table, "kv_lengths": [5, 4]}
    pools = in_pages(k, table, 8), in_pages(v, table, 8)
    exact, plain = attest.exact(q, *pools, **paged), attest.exact(q, k, v, kv_lengths=[5, 4])
    assert numpy.array_equal(exact.lower, plain.lower) and numpy.array_equal(exact.upper, plain.upper)
    out = attention(q, k, v, own([5, 4], 5)[:, None, None])
    assert attest.allclose(out, q, *pools, **paged)
    assert not attest.allclose(out, q, *pools, page_table=[[6, 0, 3], [1, 1, 2]], kv_lengths=[5, 4])
    values = [[7, 4, 2], [0, 1, 6]]
    assert attest.allclose(out, q, pools[0], in_pages(v, values, 8), page_table_v=values, **paged)
    with pytest.raises(attest.AttestError, match=r"page_table holds 8 at \[0, 1\]; k has pages 0 to 7"):
        attest.exact(q, *pools, page_table=[[6, 8, 3], [1, 5, 2]], kv_lengths=[5, 4])
    with pytest.raises(attest.AttestError, match="page_table is present without kv_lengths"):
        attest.exact(q, *pools, page_table=table)


def test_the_cache_of_flash_attention_is_known_and_written(monkeypatch):
    pytest.importorskip("torch")
    import flash_attn

    what = {"dtypes": "bf16", "properties": "attention.oracle,cache.append,cache.write,cache.index", "no_large": True,
            "cases": 40}  # fmt: skip
    assert attest.check(flash_attn.flash_attn_with_kvcache, **what).verdict == "held"

    # The answer is right, and the cache lacks what came.
    real = flash_attn.flash_attn_with_kvcache

    def flash_attn_with_kvcache(q, k_cache, v_cache, **given):
        return real(q, k_cache.clone(), v_cache.clone(), **given)

    monkeypatch.setattr(flash_attn, "flash_attn_with_kvcache", flash_attn_with_kvcache)
    with pytest.raises(AssertionError, match="a call writes the new keys into the cache, bit for bit"):
        attest.check(flash_attn_with_kvcache, **what)


def test_new_keys_are_those_behind_the_lengths():
    q, k, v = problem(batch=2, keys=5)
    before = numpy.asarray([3, 2])
    cache = [array.copy() for array in (k, v)]
    new = [numpy.stack([array[b, :, n : n + 2] for b, n in enumerate(before)]) for array in (k, v)]
    for array in cache:
        for b, n in enumerate(before):
            array[b, :, n:] = numpy.nan
    exact = attest.exact(q, *cache, kv_lengths=before, k_new=new[0], v_new=new[1])
    plain = attest.exact(q, k, v, kv_lengths=before + 2)
    assert numpy.array_equal(exact.lower, plain.lower) and numpy.array_equal(exact.upper, plain.upper)
    out = attention(q, k, v, own(before + 2, 5)[:, None, None])
    assert attest.allclose(out, q, *cache, kv_lengths=before, k_new=new[0], v_new=new[1])
    with pytest.raises(attest.AttestError, match="k_new is present without kv_lengths"):
        attest.exact(q, *cache, k_new=new[0], v_new=new[1])
    with pytest.raises(attest.AttestError, match=r"kv_lengths holds 4 at \[0\] and k_new has 2 tokens"):
        attest.exact(q, *cache, kv_lengths=[4, 2], k_new=new[0], v_new=new[1])


def test_entries_lie_in_the_rows_that_the_index_names_behind_their_padding():
    q, k, v = problem(batch=2, keys=5)
    rows = [3, 1]
    cache = [numpy.full((5, *array.shape[1:]), numpy.nan, "float32") for array in (k, v)]
    for entire, array in zip(cache, (k, v)):
        entire[rows] = array
    seen = own([5, 5], 5) & ~own([0, 2], 5)
    out = attention(q, k, v, seen[:, None, None])
    assert attest.allclose(out, q, *cache, cache_index=rows, left_pad=[0, 2])
    assert not attest.allclose(out, q, *cache, cache_index=rows)
    with pytest.raises(attest.AttestError, match="left_pad holds 6 at"):
        attest.exact(q, k, v, left_pad=[6, 0])


def paged_numpy(q, k, v, mask=None, scale=None, causal="none", kv_lengths=None, left_pad=None, page_table=None, behind=0):
    """A kernel that reads its keys page by page. `behind`: so many slots too many."""
    batch, heads, queries, _ = q.shape
    group, page = heads // k.shape[1], k.shape[2]
    out = numpy.zeros((batch, heads, queries, v.shape[3]), q.dtype)
    for b in range(batch):
        end = k.shape[2] if kv_lengths is None else int(kv_lengths[b])
        if page_table is None:
            keys, values, length = k[b], v[b], end
        else:
            length = end + (behind if end % page else 0)
            gathered = [numpy.concatenate([pool[page_table[b, at]] for at in range(-(-end // page))], axis=1) if end else None
                        for pool in (k, v)]  # fmt: skip
            keys, values = gathered if end else (k[0, :, :0], v[0, :, :0])
        first = 0 if left_pad is None else int(left_pad[b])
        for h in range(heads):
            scores = scale * (q[b, h].astype("f8") @ keys[h // group, first:length].astype("f8").T)
            if mask is not None:
                part = mask[b % mask.shape[0], h % mask.shape[1], :, first:length]
                scores = numpy.where(part, scores, -numpy.inf) if part.dtype == bool else scores + part.astype("f8")
            n = length - first
            if causal != "none":
                shift = n - queries if causal == "bottom-right" else 0
                scores = numpy.where(numpy.arange(n) <= numpy.arange(queries)[:, None] + shift, scores, -numpy.inf)
            with numpy.errstate(invalid="ignore"):
                weights = numpy.exp(scores - scores.max(axis=1, initial=-numpy.inf, keepdims=True))
                weights = weights / weights.sum(axis=1, keepdims=True)
            out[b, h] = numpy.nan if n == 0 else weights @ values[h // group, first:length].astype("f8")
    return out


PAGED = {"dtypes": ["f32"], "grouped_query": True, "fully_masked_row": "nan",
         "variants": {"lengths": {"queries": False}, "left_pad": {}, "paged": {"page_sizes": [2, 3, 16]}}}  # fmt: skip


def test_a_kernel_of_pages_is_judged_and_the_slot_that_it_reads_behind_a_length_is_named(tmp_path):
    def right(q, k, v, mask=None, scale=None, causal="none", kv_lengths=None, left_pad=None, page_table=None):
        return paged_numpy(q, k, v, mask, scale, causal, kv_lengths, left_pad, page_table)

    def wrong(q, k, v, mask=None, scale=None, causal="none", kv_lengths=None, left_pad=None, page_table=None):
        return paged_numpy(q, k, v, mask, scale, causal, kv_lengths, left_pad, page_table, behind=1)

    said = {"properties": ["paged.*", "attention.oracle", "cache.left-pad"], "cases": 30, "no_large": True}
    held = attest.check(right, manifest=PAGED, out=str(tmp_path / "right"), **said)
    assert held.verdict == "held", held
    with pytest.raises(AssertionError) as raised:
        attest.check(wrong, manifest=PAGED, out=str(tmp_path / "wrong"), **said)
    assert "behind" in str(raised.value)
    one = {**said, "properties": "paged.tail-slots-dead"}
    with pytest.raises(AssertionError) as raised:
        attest.check(wrong, manifest=PAGED, out=str(tmp_path / "tail"), **one)
    assert "matters, key" in str(raised.value)
