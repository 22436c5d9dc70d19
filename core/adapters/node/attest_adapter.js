'use strict';
// Puts a JavaScript function under test by Attest. One file, no dependency but Node.js 18 or later.
//
//     const { serve } = require('attest_adapter');      // first: it takes standard output for the replies
//
//     function attention({ q, k, v, mask, scale }) { … return out; }
//     serve(attention, { name: 'mine', dtypes: ['f32'], causal: [] });
//
// and then:  attest check --kernel 'exec:node mine.js'
//
// The function gets one object, and may return a promise:
//     q, k, v          tensors [batch, heads, M, dk], [batch, kv_heads, N, dk], [batch, kv_heads, N, dv]
//     mask             null, or a tensor [batch|1, heads|1, M, N]: 'bool' (1: may attend) or additive
//     scale            multiplies q.k
//     causal           'none', 'top-left' or 'bottom-right', on top of the mask
//     maskConvention   'post-scale': scale*qk + mask, or 'pre-scale': scale*(qk + mask)
//     wantLse          true: return { out, lse }, lse a Float64Array of [batch, heads, M]
//     outDtype         the dtype of out as a word: 'f32'
// and, where they are given, the arguments of the variants that the manifest lists, their names in camelCase:
//     windowLeft, windowRight, alignment   of "variants": { "window": {} }; an end that is not given has none. The
//                                          position of row i is i ('top-left') or i + N - M ('bottom-right')
//     attentionChunk, alignment            of "chunk": {}: a number C > 0; a row at position p sees keys of its own chunk
//                                          alone, those j where floor(j/C) is floor(p/C); none where p < 0
//     qLengths, kvLengths                  of "lengths": {}: tensors [batch], 'i32'; one that is not given is all of M, or N
//     qStarts, kvStarts                    of "packed": {}: tensors [sequences + 1], 'i32', in a batch of 1
//     leftPad                              of "left_pad": {}: a tensor [batch], 'i32'; so many first keys are padding
//     pageTable, pageTableV                of "paged": {}: tensors [batch, columns], 'i32'; k and v are pages then
//     cacheIndex                           of "cache_index": {}: a tensor [batch], 'i32'; the row of k and v of each entry
//     kNew, vNew                           of "append": {}: tensors [batch, kv_heads, L, dk|dv]; the function writes them
//                                          into k.data and v.data behind the kvLengths keys that these hold
//     sink                                 of "sink": {}: a tensor [heads], 'f32'; e^sink joins the sum of the weights of
//                                          each row of the head, with no value; -Infinity: none
//     softcap                              of "softcap": {}: a number c > 0; scale*qk becomes c*tanh(scale*qk/c) before the
//                                          mask is added to it
//     keep, dropoutP                       of "dropout": {}: a tensor [batch|1, heads|1, M, N], 'bool' (1: kept), and a
//                                          number 0 < p < 1; of the normalised weights those that are not kept become 0,
//                                          and the others are divided by 1 - p, where it is given
//     alibiSlopes, alignment               of "alibi": {}: a tensor [batch|1, heads], 'f32'; slope*|p - j| is taken from
//                                          the score of key j in a row at position p, after the scale, beside a mask
//     qDescale, kDescale, vDescale         of "descale": {}: tensors [batch|1, heads|1, blocks|1], 'f32', of k and v
//                                          kv_heads for heads; row i of q counts as the factor of block
//     qDescaleBlock, kvDescaleBlock        floor(i / qDescaleBlock) times itself, keys and values likewise; where a
//                                          block is not given, all rows have one
// A multihead function gets q, k, v [batch, length, channels], heads, and the tensors w_q, w_k, w_v, b_q, b_k, b_v, w_o,
// b_o, bias_k, bias_v (null: absent).
//
// serve(attention, manifest, { backward }) has a backward pass, too. That function gets what attention gets, and
//     dOut             the gradient by the output, a tensor of its shape
//     out, lse         null, or what attention itself returned, lse a tensor 'f64', where "uses" in the manifest's
//                      "backward" lists them; unstated: both
//     dLse             null, or the gradient by the log-sum-exp, a tensor [batch, heads, M] in q's dtype, where "d_lse"
//                      of the manifest's "backward" is true
//     wants            of 'dq', 'dk', 'dv', 'dmask' and 'dsink' those that are asked for
// It returns { dq, dk, dv }, arrays of the lengths and dtypes of q, k and v, and so dmask and dsink; dk and dv are summed
// over the heads of a group, dmask over the axes of length 1. attention must return an lse then.
//
// A tensor is { dtype, shape, data } and, where it has four axes, row(b, h, i): its last axis there, where an axis of
// length 1 repeats. data is row-major: Float64Array, Float32Array, for f16 and bf16 the bits in a Uint16Array, for fp8 and
// bool a Uint8Array, for i8 an Int8Array. The function returns out [batch, heads, M, dv] as such an array of outDtype,
// all of it. It may throw Unsupported (it cannot do this one: the case is skipped) or Rejected (the problem is
// invalid); anything else it throws is a failure of the kernel.
//
// The manifest is that of kernel-interface.md, section 3: what it leaves out is asked for as stated there, so a function
// that knows no masks says masks: []. Arrays are row-major here and come in frames: "strides" and "shared_memory" have no
// place in it.

const fs = require('node:fs');

// Before anything else can print: what is printed from here on goes to standard error, the replies to this copy. Node
// has no dup2, but what is opened gets the lowest free number, which is the one just closed.
let replies = 1;
try {
  replies = fs.openSync('/proc/self/fd/1', fs.constants.O_WRONLY);
  fs.closeSync(1);
  fs.openSync('/proc/self/fd/2', fs.constants.O_WRONLY | fs.constants.O_APPEND);
} catch {
  // Behind walls there is no /proc: what JavaScript prints is led away all the same.
  process.stdout.write = process.stderr.write.bind(process.stderr);
}

const MAX_FRAME = 2 ** 30;
const ARRAYS = {
  F64: Float64Array, F32: Float32Array, F16: Uint16Array, BF16: Uint16Array, F8_E4M3: Uint8Array, F8_E5M2: Uint8Array,
  BOOL: Uint8Array, I32: Int32Array, I8: Int8Array,
};
const MULTIHEAD_TENSORS = ['w_q', 'w_k', 'w_v', 'b_q', 'b_k', 'b_v', 'w_o', 'b_o', 'bias_k', 'bias_v'];
// What a request may hold: its keys, with the words that each may be where these are few, and its tensors.
const KEYS = {
  attest: ['1', '2'], op: ['attention', 'multihead', 'attention_backward'], scale: null, mask_convention: ['post-scale', 'pre-scale'],
  causal: ['none', 'top-left', 'bottom-right'], heads: null, want: null,
  out_dtype: Object.keys(ARRAYS).filter((name) => !['BOOL', 'I32', 'I8'].includes(name))
    .map((name) => name.toLowerCase()),
};
// The arguments of variants. One that stands in no row here has an argument of its own name.
const VARIANTS = {
  window: ['window_left', 'window_right', 'alignment'],
  chunk: ['attention_chunk', 'alignment'], lengths: ['q_lengths', 'kv_lengths'],
  packed: ['q_starts', 'kv_starts'], left_pad: ['left_pad'],
  paged: ['page_table', 'page_table_v'], append: ['k_new', 'v_new'],
  cache_index: ['cache_index'], sink: ['sink'], softcap: ['softcap'],
  dropout: ['keep', 'dropout_p', 'dropout_seed'],
  alibi: ['alibi_slopes', 'alignment'],
  descale: ['q_descale', 'k_descale', 'v_descale', 'q_descale_block', 'kv_descale_block'],
};
const ATTENTION_TENSORS = ['q', 'k', 'v', 'mask'];
const BACKWARD_TENSORS = ['d_out', 'out', 'lse', 'd_lse'];
const TENSORS = {
  attention: ATTENTION_TENSORS, multihead: [...ATTENTION_TENSORS, ...MULTIHEAD_TENSORS],
  attention_backward: [...ATTENTION_TENSORS, ...BACKWARD_TENSORS],
};
const GRADIENTS = { dq: 'q', dk: 'k', dv: 'v', dmask: 'mask', dsink: 'sink' }; // and of what

/** The kernel cannot do this problem: it is skipped and counted. */
class Unsupported extends Error {}

/** The problem is invalid. */
class Rejected extends Error {}

class Tensor {
  constructor(dtype, shape, data) {
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  row(b, h, i) {
    const [batch, heads, rows, width] = this.shape;
    const start = (((batch === 1 ? 0 : b) * heads + (heads === 1 ? 0 : h)) * rows + i) * width;
    return this.data.subarray(start, start + width);
  }
}

/** `count` bytes of standard input, or null at its end. */
function read(count) {
  const bytes = Buffer.allocUnsafe(count);
  for (let got = 0; got < count;) {
    const n = fs.readSync(0, bytes, got, count - got, null);
    if (n === 0) return null;
    got += n;
  }
  return bytes;
}

function write(bytes) {
  for (let sent = 0; sent < bytes.length;) sent += fs.writeSync(replies, bytes, sent);
}

function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** One frame; `tensors` are [name, safetensors dtype, shape, typed array]. */
function reply(metadata, tensors = []) {
  const header = metadata ? { __metadata__: metadata } : {};
  const parts = [];
  let end = 0;
  for (const [name, dtype, shape, data] of tensors) {
    header[name] = { dtype, shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
    parts.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  }
  let text = Buffer.from(JSON.stringify(header));
  text = Buffer.concat([text, Buffer.alloc(-text.length & 7, ' ')]);
  write(Buffer.concat([u64(8 + text.length + end), u64(text.length), text, ...parts]));
}

/** The next request: its metadata and its tensors by name; null at the end. */
function request() {
  const prefix = read(8);
  if (prefix === null) return null;
  const length = prefix.readBigUInt64LE();
  if (length > MAX_FRAME) {
    process.stderr.write("attest_adapter: standard input carries no frames; start this with attest --kernel 'exec:…'\n");
    process.exit(1);
  }
  const body = read(Number(length));
  if (body === null) return null;
  const start = 8 + Number(body.readBigUInt64LE());
  const { __metadata__: metadata = {}, ...entries } = JSON.parse(body.toString('utf8', 8, start));
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries)) {
    // A copy: a typed array wants its numbers aligned, and what the function writes to it harms nothing.
    const bytes = Uint8Array.prototype.slice.call(body, start + from, start + to);
    tensors[name] = new Tensor(dtype.toLowerCase(), shape, new (ARRAYS[dtype] ?? Uint8Array)(bytes.buffer));
  }
  return { metadata, tensors };
}

/**
 * Throws Unsupported for an argument of a later Attest that is not among those that the manifest lists: left out, it would
 * be judged as if it had been heeded.
 */
function refuseUnknown({ metadata, tensors }, listed) {
  const { op } = metadata;
  const refuse = (what) => { throw new Unsupported(`this attest_adapter.js does not know ${what}`); };
  for (const name of (metadata.variants ?? '').split(' ').filter(Boolean)) {
    if (!(VARIANTS[name] ?? [name]).every((argument) => listed.includes(argument))) refuse(`the variant "${name}"`);
  }
  for (const [key, value] of Object.entries(metadata)) {
    if (listed.includes(key) || key === 'variants') continue;
    const known = Object.hasOwn(KEYS, key) && (key !== 'heads' || op === 'multihead');
    if (!known) refuse(`the key "${key}" of a request`);
    if (KEYS[key] !== null && !KEYS[key].includes(value)) refuse(`"${value}" as ${key}`);
  }
  const wants = op === 'attention_backward' ? Object.keys(GRADIENTS) : ['lse'];
  for (const word of (metadata.want ?? '').split(' ').filter(Boolean)) {
    if (!wants.includes(word)) refuse(`"${word}" as want`);
  }
  if (op === 'attention_backward' && !metadata.want) refuse('a request for gradients that wants none');
  for (const [name, { dtype }] of Object.entries(tensors)) {
    if (!TENSORS[op].includes(name) && !listed.includes(name)) refuse(`a tensor "${name}" of ${op}`);
    if (!Object.hasOwn(ARRAYS, dtype.toUpperCase())) refuse(`the dtype ${dtype.toUpperCase()} of ${name}`);
  }
}

const camelCase = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

function problem(metadata, { q, k, v, mask = null, ...others }, listed) {
  const given = {
    q, k, v, mask, scale: Number(metadata.scale), causal: metadata.causal, maskConvention: metadata.mask_convention,
    wantLse: metadata.want === 'lse', outDtype: metadata.out_dtype ?? q.dtype,
  };
  if (metadata.op === 'multihead') {
    given.heads = Number(metadata.heads);
    for (const name of MULTIHEAD_TENSORS) given[name] = others[name] ?? null;
  }
  if (metadata.op === 'attention_backward') {
    for (const name of BACKWARD_TENSORS) given[camelCase(name)] = others[name] ?? null;
    given.wants = metadata.want.split(' ');
  }
  for (const name of listed) {
    if (Object.hasOwn(metadata, name)) {
      given[camelCase(name)] = Number.isNaN(Number(metadata[name])) ? metadata[name] : Number(metadata[name]);
    } else if (Object.hasOwn(others, name)) {
      given[camelCase(name)] = others[name];
    }
  }
  return given;
}

function outputShape(op, { q, v, w_v, w_o }) {
  if (op === 'multihead') return [q.shape[0], q.shape[1], (w_o ?? w_v).shape[1]];
  return [q.shape[0], q.shape[1], q.shape[2], v.shape[3]];
}

/** The reply's entry for a tensor that the function returned. */
function output(name, dtype, shape, data) {
  const due = ARRAYS[dtype];
  const count = shape.reduce((product, length) => product * length, 1);
  if (!(data instanceof due) || data.length !== count) {
    const found = data?.constructor ? `${data.constructor.name} of ${data.length}` : String(data);
    throw new TypeError(`the function returned ${found} for ${name} where ${due.name} of ${count} is due`);
  }
  return [name, dtype, shape, data];
}

async function answer(functions, manifest, { metadata, tensors }) {
  const { op } = metadata;
  if (op === 'manifest') return reply({ manifest: JSON.stringify(manifest) });
  const listed = Object.keys(manifest.variants ?? {}).flatMap((name) => VARIANTS[name] ?? [name])
    .filter((name) => !Object.hasOwn(KEYS, name));
  refuseUnknown({ metadata, tensors }, listed);
  if (!functions[op]) throw new Unsupported(`there is no ${op} function`);
  const given = problem(metadata, tensors, listed);
  const result = await functions[op](given);
  if (op === 'attention_backward') {
    return reply(null, given.wants.map((name) => {
      const { dtype, shape } = tensors[GRADIENTS[name]];
      return output(name, dtype.toUpperCase(), shape, result?.[name]);
    }));
  }
  const { out, lse } = ArrayBuffer.isView(result) ? { out: result } : (result ?? {});
  const shape = outputShape(op, given);
  const entries = [output('out', given.outDtype.toUpperCase(), shape, out)];
  if (given.wantLse && lse !== undefined) entries.push(output('lse', 'F64', shape.slice(0, 3), lse));
  if (tensors.k_new) {
    for (const name of ['k', 'v']) entries.push([name, tensors[name].dtype.toUpperCase(), tensors[name].shape, tensors[name].data]);
  }
  return reply(null, entries);
}

/**
 * Answers requests on standard input until it ends. "name", "dtypes" (f64 and f32) and "operations" are filled in where
 * the manifest is silent, and "lse" where there is a backward pass. Each function may be null.
 */
async function serve(attention, manifest = {}, { multihead = null, backward = null } = {}) {
  const functions = { attention, multihead, attention_backward: backward };
  const operations = Object.keys(functions).filter((op) => functions[op]);
  if (operations.length === 0) refuse('serve needs a function, { multihead }, or both');
  if (backward && !attention) refuse('{ backward } is the backward pass of an attention function, and there is none');
  if (manifest.strides) refuse('arrays are row-major here: leave "strides" out of the manifest');
  if (manifest.shared_memory) refuse('arrays come in frames here: leave "shared_memory" out of the manifest');
  const name = functions[operations[0]].name || 'JavaScript function';
  const filled = { name, dtypes: ['f64', 'f32'], operations, ...(backward ? { lse: true } : {}) };
  const complete = { ...filled, ...manifest };
  for (let next = request(); next !== null; next = request()) {
    try {
      await answer(functions, complete, next);
    } catch (error) {
      if (error?.code === 'EPIPE') return;
      const status = error instanceof Unsupported ? 'unsupported' : error instanceof Rejected ? 'rejected' : 'failed';
      if (status === 'failed') console.error(error);
      reply({ status, message: status === 'failed' ? String(error) : error.message });
    }
  }
}

/** Tells Attest in one line why this kernel cannot be served, and ends the program with status 3. */
function refuse(message) {
  if (request() !== null) reply({ status: 'failed', message });
  process.exit(3);
}

module.exports = { serve, refuse, Unsupported, Rejected };
