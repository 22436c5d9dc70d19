'use strict';
// A whole kernel under test, f32 in plain JavaScript: attest check --kernel 'exec:node plain_example.js'.
const { serve } = require('attest_adapter');

const f = Math.fround;

function attention({ q, k, v, mask, scale }) {
  const [batch, heads, M] = q.shape, N = k.shape[2], dv = v.shape[3], out = new Float32Array(batch * heads * M * dv);
  for (let at = 0, row = 0; row < batch * heads * M; ++row) {
    const b = Math.floor(row / (heads * M)), h = Math.floor(row / M) % heads, i = row % M;
    // pass 1: scores and row maximum
    const scores = Array.from({ length: N }, (_, j) => {
      const key = k.row(b, h, j), score = f(q.row(b, h, i).reduce((sum, x, c) => f(sum + f(x * key[c])), 0) * f(scale));
      if (mask === null) return score;
      return mask.dtype === 'bool' ? (mask.row(b, h, i)[j] ? score : -Infinity) : f(score + mask.row(b, h, i)[j]);
    });
    const top = scores.reduce((x, y) => Math.max(x, y), -Infinity);
    // pass 2: weights, their sum, and the weighted mean of the values; 0/0, NaN, where there is no key to see
    const weights = scores.map((x) => f(Math.exp(f(x - top))));
    const total = weights.reduce((sum, w) => f(sum + w), 0);
    for (let c = 0; c < dv; ++c) out[at++] = weights.reduce((sum, w, j) => f(sum + f(w * v.row(b, h, j)[c])), 0) / total;
  }
  return out;
}

// Math.exp is computed in double and rounded to float once, so it is wrong by little more than half an ulp.
serve(attention, {
  name: 'plain JavaScript', dtypes: ['f32'], fully_masked_row: 'nan',
  arithmetic: { exp_ulp: 1, base2: false, normalise_first: false, block: 0, bias_in_sum: false, division_roundings: 1 },
});
