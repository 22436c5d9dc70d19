'use strict';
// ONNX Runtime's attention on a CPU as kernels under test:  ort_kernels.js KERNEL
//
// attention, attention-23            the operator Attention of ONNX opset 24 and of opset 23
// multihead                          com.microsoft.MultiHeadAttention, on queries, keys and values projected already
// group-query, group-query-f16       com.microsoft.GroupQueryAttention, which is causal: the keys before the queries
//                                    are its cache. Its float16 has another answer to a row without a visible key.
//
// The manifests state what probe.js found them to do. A model is made for each kind of case, of one operator.
const { serve, refuse, Unsupported } = require('../node/attest_adapter');

let run, tokenMajor, headMajor, tokens;
try {
  ({ run, tokenMajor, headMajor, tokens } = require('./operator'));
} catch (error) {
  refuse(`onnxruntime-node cannot be loaded by ${process.execPath}: ${String(error.message).split('\n')[0]}`);
}

function requireThat(condition, why) {
  if (!condition) throw new Unsupported(why);
}

const NO_TOKENS = 'takes no sequence without tokens';

function onnxAttention(version) {
  return ({ q, k, v, mask, scale, causal }) => {
    requireThat(q.shape[2] > 0 && k.shape[2] > 0, NO_TOKENS);
    const ints = { is_causal: Number(causal === 'top-left') };
    return run({ type: 'Attention', domain: '', version, floats: { scale }, ints }, [q, k, v, mask], /*rank=*/ 4);
  };
}

async function multihead({ q, k, v, mask, scale, causal }) {
  const heads = q.shape[1];
  requireThat(k.shape[2] > 0, 'N = 0: zeros there and NaN where every key is hidden; the contract knows one of the two');
  const operator = {
    type: 'MultiHeadAttention', domain: 'com.microsoft', version: 1, floats: { scale },
    ints: { num_heads: heads, unidirectional: Number(causal === 'top-left') },
  };
  // query, key, value, bias, key_padding_mask, attention_bias
  const inputs = [tokenMajor(q), tokenMajor(k), tokenMajor(v), null, null, mask];
  const out = await run(operator, inputs, /*rank=*/ 3);
  return headMajor(out, [q.shape[0], heads, q.shape[2], v.shape[3]]);
}

async function groupQuery({ q, k, v, mask, scale, causal }) {
  const [batch, heads, M, width] = q.shape, N = k.shape[2];
  const sees = causal === 'bottom-right' || (causal === 'none' && M === 1) || (causal === 'top-left' && M === N);
  requireThat(sees, 'is causal, aligned at the bottom right');
  requireThat(M > 0, NO_TOKENS);
  requireThat(N >= M, 'takes a new key for every query');
  const past = N - M;
  requireThat(past === 0 || M === 1 || batch === 1, 'takes one sequence where several queries follow cached keys');
  const operator = {
    type: 'GroupQueryAttention', domain: 'com.microsoft', version: 1, floats: { scale },
    ints: { num_heads: heads, kv_num_heads: k.shape[1] },
  };
  const int32 = (shape, numbers) => ({ dtype: 'i32', shape, data: Int32Array.from(numbers) });
  // query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos, sin, position_ids, attention_bias
  const inputs = [
    tokenMajor(q), tokenMajor(tokens(k, past, N)), tokenMajor(tokens(v, past, N)),
    tokens(k, 0, past), tokens(v, 0, past), int32([batch], Array(batch).fill(N - 1)), int32([], [N]), null, null, null, mask,
  ];
  const out = await run(operator, inputs, /*rank=*/ 3, /*outputs=*/ 3);
  return headMajor(out, [batch, heads, M, width]);
}

// Sums are those of MLAS's f32 products: scale multiplies the finished q.k, or each part of it, in the sum that begins
// with the mask. Its exp gives 0 below the normal numbers. Softmax multiplies by the reciprocal of the sum; the flash
// paths, for which the row is cut into blocks that fit the cache, divide.
const F32 = { base2: false, split_merge: false, prescaled_q: null, division_roundings: 2 };
const WHOLE_ROWS = { ...F32, block: 0 };
const SUMS = { score_sums: 'f32', accumulate: 'f32' };
const COMMON = {
  version: require('onnxruntime-node/package.json').version, claims: ['deterministic'],
  mask_conventions: ['post-scale'],
};
const ATTENTION = {
  ...COMMON, dtypes: ['f32', 'f16'], masks: ['additive', 'bool'], causal: ['top-left'], grouped_query: true,
  fully_masked_row: 'zero',
  // Scores and weights are f16 in memory.
  arithmetic: { f32: WHOLE_ROWS, f16: { ...WHOLE_ROWS, ...SUMS, stored: { biased: 'f16' }, weights: 'f16' } },
};

const GROUP_QUERY = {
  ...COMMON, name: 'com.microsoft.GroupQueryAttention', masks: ['additive'], causal: ['top-left', 'bottom-right'],
  grouped_query: true, limits: { value_dim: 'head_dim', head_dim_multiple: 8 },
};

const KERNELS = {
  attention: [onnxAttention(24), { ...ATTENTION, name: 'ONNX Attention' }],
  'attention-23': [onnxAttention(23), { ...ATTENTION, name: 'ONNX Attention, opset 23' }],
  // unidirectional hides the keys behind a query from all queries but the last: a check finds that where M is not N.
  multihead: [multihead, {
    ...COMMON, name: 'com.microsoft.MultiHeadAttention', dtypes: ['f32'], masks: ['additive'], causal: ['top-left'],
    fully_masked_row: 'nan', arithmetic: F32,
  }],
  // With one key a row that does not see it is NaN, against the policy: a check finds that.
  'group-query': [groupQuery, {
    ...GROUP_QUERY, dtypes: ['f32'], fully_masked_row: 'zero', arithmetic: F32,
  }],
  'group-query-f16': [groupQuery, {
    ...GROUP_QUERY, dtypes: ['f16'], fully_masked_row: 'nan', arithmetic: { ...F32, ...SUMS, weights: 'f32' },
  }],
};

const name = process.argv[2];
if (process.argv.length !== 3 || !Object.hasOwn(KERNELS, name)) {
  console.error(`ort_kernels.js: the kernel is '${name ?? ''}'; it must be one of ${Object.keys(KERNELS).join(', ')}`);
  process.exit(2);
}
serve(...KERNELS[name]);
