'use strict';
// What the manifests of ort_kernels.js rest on, found by trying: prints each fact, exits 1 if one does not hold.
// Run it when onnxruntime-node changes: a line that says NO is a manifest to be written anew.
const { run, tokenMajor, tokens } = require('./operator');

const tensor = (shape, value) => (
  { dtype: 'f32', shape, data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i)) });
const zeros = (...shape) => tensor(shape, () => 0);
/** Values [1, heads, N, d], those of key j all 10^j: a row of equal scores tells which keys it saw. */
const powers = (heads, N, d) => tensor([1, heads, N, d], (i) => 10 ** (Math.floor(i / d) % N));
const hidden = (...shape) => tensor(shape, () => -Infinity);
/** An additive mask of zeros and others as a boolean one. */
const bool = (t) => ({ dtype: 'bool', shape: t.shape, data: Uint8Array.from(t.data, (x) => Number(x === 0)) });
const HALVES = new Map([[0, 0], [1, 0x3c00], [10, 0x4900], [100, 0x5640], [-Infinity, 0xfc00]]);
const half = (t) => t && ({ dtype: 'f16', shape: t.shape, data: Uint16Array.from(t.data, (x) => HALVES.get(x)) });

const attention = (version, tensors, ints = {}) => (
  run({ type: 'Attention', domain: '', version, floats: { scale: 1 }, ints }, tensors, /*rank=*/ 4));
const contributed = (type, ints) => ({ type, domain: 'com.microsoft', version: 1, floats: { scale: 1 }, ints });
const multihead = ([q, k, v], bias, unidirectional = 0) => run(
  contributed('MultiHeadAttention', { num_heads: q.shape[1], unidirectional }),
  [tokenMajor(q), tokenMajor(k), tokenMajor(v), null, null, bias], /*rank=*/ 3);
function groupQuery([q, k, v], bias) {
  const [batch, heads, M] = q.shape, N = k.shape[2];
  const count = (shape, x) => ({ dtype: 'i32', shape, data: new Int32Array(shape.length === 0 ? 1 : batch).fill(x) });
  return run(
    contributed('GroupQueryAttention', { num_heads: heads, kv_num_heads: k.shape[1] }),
    [tokenMajor(q), tokenMajor(tokens(k, N - M, N)), tokenMajor(tokens(v, N - M, N)),
      tokens(k, 0, N - M), tokens(v, 0, N - M), count([batch], N - 1), count([], N), null, null, null, bias],
    /*rank=*/ 3, /*outputs=*/ 3);
}

const same = (found, expected) => found.length === expected.length && expected.every((x, i) => Object.is(found[i], x));
async function refuses(call) {
  try {
    await call();
    return false;
  } catch {
    return true;
  }
}
const isNaNHalf = (bits) => (bits & 0x7fff) > 0x7c00;

const facts = {
  'Attention exists in opsets 23 and 24, not in 22': async () => (
    !await refuses(() => attention(23, [zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), null]))
      && await refuses(() => attention(22, [zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), null]))),
  'Attention: is_causal is top-left, under a mask too': async () => {
    for (const m of [null, bool(zeros(1, 1, 2, 3))]) {
      const out = await attention(24, [zeros(1, 1, 2, 1), zeros(1, 1, 3, 1), powers(1, 3, 1), m], { is_causal: 1 });
      if (!same(out, [1, 5.5])) return false;
    }
    return true;
  },
  'Attention: true in a boolean mask lets attend': async () => {
    const first = bool(tensor([1, 1, 1, 2], (i) => i));
    return same(await attention(24, [zeros(1, 1, 1, 1), zeros(1, 1, 2, 1), powers(1, 2, 1), first]), [1]);
  },
  'Attention: query head h reads key head h / (heads / kv_heads)': async () => {
    const v = tensor([1, 2, 1, 1], (i) => i);
    return same(await attention(24, [zeros(1, 4, 1, 1), zeros(1, 2, 1, 1), v, null]), [0, 0, 1, 1]);
  },
  'Attention: a row without a visible key is 0, in both formats and under both kinds of mask': async () => {
    const given = [zeros(1, 1, 1, 1), zeros(1, 1, 2, 1), powers(1, 2, 1)], none = hidden(1, 1, 1, 2);
    return same(await attention(24, [...given, none]), [0]) && same(await attention(24, [...given, bool(none)]), [0])
      && same(await attention(24, [...given, none].map(half)), [0]);
  },
  'Attention takes neither M = 0 nor N = 0': async () => (
    await refuses(() => attention(24, [zeros(1, 1, 0, 1), zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), null]))
      && await refuses(() => attention(24, [zeros(1, 1, 1, 1), zeros(1, 1, 0, 1), zeros(1, 1, 0, 1), null]))),
  'MultiHeadAttention: a row without a visible key is NaN, and over no keys 0': async () => {
    const masked = await multihead([zeros(1, 1, 1, 1), zeros(1, 1, 2, 1), powers(1, 2, 1)], hidden(1, 1, 1, 2));
    const empty = await multihead([zeros(1, 1, 1, 1), zeros(1, 1, 0, 1), zeros(1, 1, 0, 1)], null);
    return same(masked, [NaN]) && same(empty, [0]);
  },
  'MultiHeadAttention: unidirectional is causal for M = N': async () => (
    same(await multihead([zeros(1, 1, 2, 1), zeros(1, 1, 2, 1), powers(1, 2, 1)], null, 1), [1, 5.5])),
  'MultiHeadAttention: unidirectional with M < N is top-left but for the last query, which sees every key': async () => (
    same(await multihead([zeros(1, 1, 2, 1), zeros(1, 1, 3, 1), powers(1, 3, 1)], null, 1), [1, 37])),
  'GroupQueryAttention is causal, aligned at the bottom right, over its cache': async () => {
    const out = await groupQuery([zeros(1, 1, 2, 8), zeros(1, 1, 3, 8), powers(1, 3, 8)], null);
    return out.every((x, i) => x === (i < 8 ? 5.5 : 37));
  },
  'GroupQueryAttention takes head sizes that 8 divides': async () => (
    await refuses(() => groupQuery([zeros(1, 1, 1, 4), zeros(1, 1, 1, 4), zeros(1, 1, 1, 4)], null))),
  'GroupQueryAttention takes one sequence where several queries follow cached keys': async () => (
    await refuses(() => groupQuery([zeros(2, 1, 2, 8), zeros(2, 1, 3, 8), zeros(2, 1, 3, 8)], null))),
  'GroupQueryAttention: a row without a visible key is 0 in float32 (NaN if there is but one key), NaN in float16': async () => {
    const given = (N) => [zeros(1, 1, 1, 8), zeros(1, 1, N, 8), powers(1, N, 8)], none = (N) => hidden(1, 1, 1, N);
    return (await groupQuery(given(2), none(2))).every((x) => x === 0)
      && (await groupQuery(given(1), none(1))).every(Number.isNaN)
      && (await groupQuery(given(2).map(half), half(none(2)))).every(isNaNHalf);
  },
};

(async () => {
  let failed = 0;
  for (const [text, test] of Object.entries(facts)) {
    const holds = await test();
    failed += Number(!holds);
    console.log(holds ? 'yes' : 'NO ', text);
  }
  const { version } = require('onnxruntime-node/package.json'), { length } = Object.keys(facts);
  console.log(`onnxruntime-node ${version}: ${length - failed} of ${length} facts hold`);
  process.exit(failed ? 1 : 0);
})();
