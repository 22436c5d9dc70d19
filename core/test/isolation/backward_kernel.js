'use strict';
// A kernel with a backward pass through attest_adapter.js, in f64: backward_kernel.js MODE. "right" is, "no-dk" and
// "short-dq" answer with less than is due, and "without-delta" is wrong.
const path = require('node:path');
const { serve } = require(path.join(__dirname, '../../adapters/node/attest_adapter'));

const mode = process.argv[2];
const dot = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0);

/** Calls each(row of q, key and value row, head of these, index of the row) for every row. */
function rows({ q, k }, each) {
  const [batch, heads, M] = q.shape, group = heads / k.shape[1];
  for (let b = 0, row = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) for (let i = 0; i < M; ++i) each({ b, h, i, kv: Math.floor(h / group), row: row++ });
  }
}

const scoresOf = ({ q, k, scale }, { b, h, i, kv }) =>
  Array.from({ length: k.shape[2] }, (_, j) => scale * dot(q.row(b, h, i), k.row(b, kv, j)));

function attention(given) {
  const { q, v, wantLse } = given, [batch, heads, M] = q.shape, width = v.shape[3];
  const out = new Float64Array(batch * heads * M * width), lse = new Float64Array(batch * heads * M);
  rows(given, (at) => {
    const scores = scoresOf(given, at), top = Math.max(...scores), weights = scores.map((s) => Math.exp(s - top));
    const total = weights.reduce((sum, w) => sum + w, 0);
    lse[at.row] = top + Math.log(total);
    for (let c = 0; c < width; ++c)
      out[at.row * width + c] = weights.reduce((sum, w, j) => sum + w * v.row(at.b, at.kv, j)[c], 0) / total;
  });
  return wantLse ? { out, lse } : out;
}

function backward(given) {
  const { q, k, v, scale, dOut, out, lse, dLse } = given;
  const zeros = ({ dtype, shape, data }) => Object.assign(Object.create(Object.getPrototypeOf(q)),
    { dtype, shape, data: new Float64Array(data.length) });
  const dq = zeros(q), dk = zeros(k), dv = zeros(v);
  rows(given, (at) => {
    const { b, h, i, kv } = at, go = dOut.row(b, h, i);
    const delta = (mode === 'without-delta' ? 0 : dot(go, out.row(b, h, i))) - (dLse === null ? 0 : dLse.data[at.row]);
    scoresOf(given, at).forEach((score, j) => {
      const weight = Math.exp(score - lse.data[at.row]), ds = scale * weight * (dot(go, v.row(b, kv, j)) - delta);
      dq.row(b, h, i).forEach((_, c, to) => { to[c] += ds * k.row(b, kv, j)[c]; });
      dk.row(b, kv, j).forEach((_, c, to) => { to[c] += ds * q.row(b, h, i)[c]; });
      dv.row(b, kv, j).forEach((_, c, to) => { to[c] += weight * go[c]; });
    });
  });
  if (mode === 'no-dk') return { dq: dq.data, dv: dv.data };
  return { dq: mode === 'short-dq' ? dq.data.slice(1) : dq.data, dk: dk.data, dv: dv.data };
}

serve(attention, {
  name: 'backward', dtypes: ['f64'], masks: [], causal: [], grouped_query: true, limits: { min_keys: 1 },
  backward: { weights: 'lse', delta: 'out', d_lse: true },
}, { backward });
