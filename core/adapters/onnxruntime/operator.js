'use strict';
// One operator of ONNX Runtime, run on a CPU with one thread; and the memory layouts that the operators want.
const ort = require('onnxruntime-node');
const { modelOf } = require('./onnx_model');

/** Adapter dtype → onnxruntime's name. */
const TYPES = { f32: 'float32', f16: 'float16', bool: 'bool', i32: 'int32' };
const MAX_SESSIONS = 64;
const sessions = new Map();

async function sessionOf(operator, inputs, outputs) {
  const key = JSON.stringify([operator, inputs, outputs]);
  let session = sessions.get(key);
  if (session === undefined) {
    if (sessions.size >= MAX_SESSIONS) {
      for (const old of sessions.values()) await old.release();
      sessions.clear();
    }
    session = await ort.InferenceSession.create(modelOf(operator, inputs, outputs), {
      intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
    });
    sessions.set(key, session);
  }
  return session;
}

/** Runs the operator on tensors { dtype, shape, data } (null: left out); the first output's numbers, or its bits. */
async function run(operator, tensors, rank, outputs = 1) {
  const described = tensors.map((t, i) => t && { name: `x${i}`, type: TYPES[t.dtype], rank: t.shape.length });
  const made = Array.from({ length: outputs }, (_, i) => (
    { name: `y${i}`, type: described[0].type, rank: i === 0 ? rank : 4 }));
  const session = await sessionOf(operator, described, made);
  const feeds = {};
  tensors.forEach((t, i) => {
    if (t) feeds[`x${i}`] = new ort.Tensor(TYPES[t.dtype], t.data, t.shape);
  });
  const { data } = (await session.run(feeds, ['y0'])).y0;
  // Newer Node.js has Float16Array and onnxruntime uses it; the adapter speaks bits.
  return described[0].type === 'float16' ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data;
}

/** [batch, heads, tokens, width] as [batch, tokens, heads*width]. */
function tokenMajor({ dtype, shape: [batch, heads, tokens, width], data }) {
  const moved = new data.constructor(data.length);
  let to = 0;
  for (let b = 0; b < batch; ++b) {
    for (let t = 0; t < tokens; ++t) {
      for (let h = 0; h < heads; ++h, to += width) {
        const from = ((b * heads + h) * tokens + t) * width;
        moved.set(data.subarray(from, from + width), to);
      }
    }
  }
  return { dtype, shape: [batch, tokens, heads * width], data: moved };
}

/** The way back: numbers of [batch, tokens, heads*width] as those of [batch, heads, tokens, width]. */
function headMajor(data, [batch, heads, tokens, width]) {
  return tokenMajor({ shape: [batch, tokens, heads, width], data }).data;
}

/** Tokens [first, last) of [batch, heads, tokens, width]. */
function tokens({ dtype, shape: [batch, heads, count, width], data }, first, last) {
  const part = new data.constructor(batch * heads * (last - first) * width);
  for (let r = 0; r < batch * heads; ++r) {
    part.set(data.subarray((r * count + first) * width, (r * count + last) * width), r * (last - first) * width);
  }
  return { dtype, shape: [batch, heads, last - first, width], data: part };
}

module.exports = { run, tokenMajor, headMajor, tokens };
