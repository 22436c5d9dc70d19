'use strict';
// Functions put under test through attest_adapter.js, each right or wrong in one way: adapter_kernels.js MODE.
const path = require('node:path');
const { serve, refuse, Unsupported, Rejected } = require(
  path.join(__dirname, '../../adapters/node/attest_adapter'));

console.log('this line would break the frames if the adapter let it');

const outOf = ({ q, v }) => new q.data.constructor(q.shape[0] * q.shape[1] * q.shape[2] * v.shape[3]);

const functions = {
  echo: ({ q }) => q.data,
  later: async ({ q }) => {
    await new Promise((resolve) => { setTimeout(resolve, 1); });
    return q.data;
  },
  prints: ({ q }) => {
    console.log('a line per call');
    return q.data;
  },
  fails: () => { throw new TypeError('a message with "quotes",\nlines and ünïcode'); },
  refuses: () => { throw new Rejected('I do not like it'); },
  declines: () => { throw new Unsupported('not today'); },
  'wrong-type': ({ q }) => Float64Array.from(q.data),
  'wrong-length': ({ q }) => q.data.slice(1),
  nothing: () => undefined,
  // What arrives, in the place of the answer: scale, an element of the mask, letters of causal and of the convention.
  tells: (problem) => {
    const { mask, scale, causal, maskConvention } = problem;
    const out = outOf(problem);
    out.set([scale, mask === null ? 0 : mask.row(1, 1, 1)[1], causal.charCodeAt(0), maskConvention.charCodeAt(1)]);
    return out;
  },
  // The same of chunks, and of what counts positions as they do; 0 where there are none.
  chunks: (problem) => {
    const { attentionChunk, alignment, windowLeft } = problem;
    const out = outOf(problem);
    out.set([attentionChunk ?? 0, alignment?.charCodeAt(0) ?? 0, windowLeft ?? 0]);
    return out;
  },
  // The same of factors and whole numbers.
  factors: (problem) => {
    const { k, kDescale, vDescale, kvDescaleBlock, qDescale } = problem;
    const out = outOf(problem);
    const first = k.data instanceof Int8Array ? k.data[0] : 0;
    out.set([first, kDescale?.data[1] ?? 0, vDescale?.shape[2] ?? 0, kvDescaleBlock ?? 0, qDescale ? 1 : 0]);
    return out;
  },
  // The sum of each row of q in f64, as lse.
  lse: ({ q, wantLse }) => {
    if (!wantLse) return q.data;
    const [batch, heads, M] = q.shape;
    const lse = new Float64Array(batch * heads * M);
    for (let r = 0; r < lse.length; ++r) lse[r] = q.row(0, Math.floor(r / M), r % M).reduce((sum, x) => sum + x, 0);
    return { out: q.data, lse };
  },
};

// Writes the new key of each entry into the cache, and answers q.
const appends = (into) => ({ q, k, v, kvLengths, kNew, vNew }) => {
  if (kNew === undefined) return q.data;
  const [batch, heads, L] = kNew.shape;
  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let t = 0; t < L; ++t) {
        k.row(b, h, kvLengths.data[b] + t + into).set(kNew.row(b, h, t));
        v.row(b, h, kvLengths.data[b] + t).set(vNew.row(b, h, t));
      }
    }
  }
  return q.data;
};

const mode = process.argv[2];
const everything = ['f64', 'f32', 'f16', 'bf16', 'f8_e4m3', 'f8_e5m2'];
if (mode === 'multihead') {
  serve(null, {}, {
    multihead: ({ q, heads, w_o, b_q }) => q.data.map((x, i) => x + heads + b_q.data[i % b_q.data.length] + (w_o ? 1 : 0)),
  });
} else if (mode === 'absent') {
  refuse('there is nothing here to serve');
} else if (mode.startsWith('appends')) {
  serve(appends(mode === 'appends-early' ? -1 : 0), { dtypes: ['f32'], variants: { lengths: {}, append: {} } });
} else if (mode === 'chunks') {
  serve(functions.chunks, { dtypes: ['f32'], variants: { window: {}, chunk: {} } });
} else if (mode === 'factors') {
  serve(functions.factors, { dtypes: ['f32'], kv_dtypes: ['f32', 'i8'], variants: { descale: { blocks: 'any' } } });
} else if (mode === 'strides') {
  serve(functions.echo, { strides: true });
} else if (mode === 'shared-memory') {
  serve(functions.echo, { shared_memory: true });
} else {
  serve(functions[mode], {
    dtypes: everything, lse: mode === 'lse', causal: ['top-left'], mask_conventions: ['post-scale', 'pre-scale'],
  });
}
