// OP_MULTIHEAD_ATT of Distributed Llama's CPU device (nn-cpu-ops.cpp), as the engine's executor calls it:
//
//     sh core/adapters/distributed-llama/recipe.sh FOLDER
//     attest check --kernel FOLDER/lib/distributed-llama.so
//
// distributed-llama.so        -march=native, as the Makefile has it: AVX2 with an exp of its own, where the machine has
//                             AVX2
// distributed-llama-plain.so  nn-cpu-ops.cpp without it: the plain loops of a machine of x86-64 without AVX2
//
// A call answers a batch of queries over one cache, each at a position whose cache holds the keys and values of all
// positions up to it. What stands here fills the cache and states the positions that show each query the keys it may
// see: the last of its sequence, or under a causal form its own.
#include <attest/kernel.h>
#include <attest/known_arguments.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "nn-cpu-ops.hpp"

#if defined(__ARM_NEON)
#error "the manifest does not say what Distributed Llama computes with NEON"
#endif

namespace {

// softmax_F32 takes the maximum of all scores first, then exp and its sum, and normalises the weights before they meet
// V, all in f32.
#define ARITHMETIC                                                                                  \
  R"("max": "running", "block": 0, "base2": false, "split_merge": false, "normalise_first": true,)" \
  R"( "prescaled_q": null, "bias_in_sum": false)"
#if defined(__AVX2__)
// expf_avx2 has 2^f, f from -1/2 to 1/2, as a polynomial of degree 4 with the coefficients of the series at 0: it errs
// by up to 498 ulp, of all numbers from -87.3 to 0. Below -87.68 it is 0, as the bits it makes for 2^-127 are those of
// 0. Keys that fill no vector of 8 have the C library's expf, of 1 ulp.
#define NAME "Distributed Llama multiheadAtt_F32, AVX2"
#define OWN_ARITHMETIC                                                                           \
  R"(, "division_roundings": 2, "exp_ulp": 500, "flushes_subnormals": true, "paths": [{"when":)" \
  R"( {"keys": "<8"}, "exp_ulp": 1, "flushes_subnormals": false}])"
#define COLUMNS R"("head_dim_multiple": 8, )"  // an assertion of dotProduct_F32
#else
#define NAME "Distributed Llama multiheadAtt_F32, plain loops"
#define OWN_ARITHMETIC R"(, "division_roundings": 1, "exp_ulp": 1)"
#define COLUMNS ""
#endif

constexpr const char* manifest =
    R"({"name": ")" NAME R"(", "version": ")" DISTRIBUTED_LLAMA_VERSION R"(", "dtypes": ["f32"],)"
    R"( "arithmetic": {)" ARITHMETIC OWN_ARITHMETIC R"(},)"
    // A query's row depends neither on others nor on keys behind its position.
    R"( "claims": ["deterministic", "batch-invariant", "padding-invariant", "ignores-dead-values"],)"
    R"( "causal": ["top-left", "bottom-right"], "masks": [], "grouped_query": true, "scale": "inv-sqrt-dk",)"
    R"( "variants": {"lengths": {"queries": false}},)"
    // A query sees the key of its own position at least.
    R"( "excludes": [["causal", "fewer-keys"], ["lengths", "fewer-keys"]],)"
    R"( "limits": {)" COLUMNS R"("value_dim": "head_dim", "min_keys": 1, "max_keys": 16777216}})";  // positions are f32

constexpr std::int64_t most_queries = 32;  // of a call: the engine's own number unless it is told another

std::size_t count(std::int64_t of) {
  return static_cast<std::size_t>(of);
}

NnByte* bytes(std::vector<float>& of) {
  return reinterpret_cast<NnByte*>(of.data());
}

// Copies one batch entry of a row-major tensor [batch][heads][tokens][dk] into a cache [tokens][heads][dk].
void fill(std::vector<float>& cache, const attest_tensor& t, std::int64_t entry) {
  const std::int64_t heads = t.shape[1], tokens = t.shape[2], dk = t.shape[3];
  const auto* from = static_cast<const float*>(t.data) + entry * heads * tokens * dk;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t j = 0; j < tokens; ++j, from += dk) std::copy_n(from, dk, cache.data() + (j * heads + h) * dk);
}

// The position of row i of an entry, which sees the keys up to there.
std::int64_t position(const attest_problem& p, std::int64_t entry, std::int64_t i) {
  const bool lengths = p.size > offsetof(attest_problem, variants) && (p.variants & ATTEST_LENGTHS) != 0;
  const std::int64_t keys = lengths ? static_cast<const std::int32_t*>(p.kv_lengths.data)[entry] : p.k.shape[2];
  if (p.causal == ATTEST_CAUSAL_TOP_LEFT) return i;
  return p.causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? i + keys - p.q.shape[2] : keys - 1;
}

void attend(const attest_problem& p, const attest_result& r) {
  const std::int64_t heads = p.q.shape[1], rows = p.q.shape[2], dk = p.q.shape[3];
  const std::int64_t kv_heads = p.k.shape[1], keys = p.k.shape[2];
  const std::int64_t width = heads * dk, at_once = std::min(rows, most_queries);

  // What the operation reads and writes; the numbers are places in the lists of buffers and pipes.
  std::vector<float> query(count(at_once * width)), key(count(keys * kv_heads * dk)), value(key.size());
  std::vector<float> att(count(at_once * heads * keys)), out(query.size()), positions(count(at_once));
  NnByte* buffers[] = {bytes(query), bytes(key), bytes(value), bytes(att)};
  NnByte* pipes[] = {bytes(positions)};
  std::vector<NnByte*> output;
  for (std::int64_t i = 0; i < at_once; ++i) output.push_back(bytes(out) + count(i * width) * sizeof(float));
  NnMultiHeadAttOpConfig config{};
  config.nHeads = config.nHeads0 = static_cast<NnUint>(heads);
  config.nKvHeads = static_cast<NnUint>(kv_heads);
  config.headDim = static_cast<NnUint>(dk);
  config.seqLen = static_cast<NnUint>(keys);
  config.qSliceD0 = static_cast<NnUint>(width);
  config.kvDim0 = static_cast<NnUint>(kv_heads * dk);
  config.positionPipeIndex = 0;
  config.queryBufferIndex = 0, config.keyCacheBufferIndex = 1, config.valueCacheBufferIndex = 2;
  config.attBufferIndex = 3;
  NnCpuOpContext context{};
  context.buffers = buffers, context.pipes = pipes, context.output = output.data(), context.opConfig = &config;
  const NnCpuOpForward forward = getCpuOpForward(OP_MULTIHEAD_ATT, F32_F32_F32);

  // NaN where the operation is to write: the engine's buffers are not new.
  constexpr float unwritten = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
    fill(key, p.k, b), fill(value, p.v, b);
    const auto* const q = static_cast<const float*>(p.q.data) + b * rows * width;
    auto* const to = static_cast<float*>(r.out.data) + b * rows * width;
    for (std::int64_t first = 0; first < rows; first += at_once) {
      const std::int64_t batch = std::min(at_once, rows - first);
      for (std::int64_t i = 0; i < batch; ++i) {
        positions[count(i)] = static_cast<float>(position(p, b, first + i));
        for (std::int64_t h = 0; h < heads; ++h)
          std::copy_n(q + (h * rows + first + i) * dk, dk, query.data() + (i * heads + h) * dk);
      }
      std::fill(att.begin(), att.end(), unwritten), std::fill(out.begin(), out.end(), unwritten);
      forward(1, 0, static_cast<NnUint>(batch), &context);
      for (std::int64_t i = 0; i < batch; ++i)
        for (std::int64_t h = 0; h < heads; ++h)
          std::copy_n(out.data() + (i * heads + h) * dk, dk, to + (h * rows + first + i) * dk);
    }
  }
}

}  // namespace

const char* attest_kernel_manifest() {
  return manifest;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  const int known = attest_known_arguments(p, r, message, message_size);
  if (known != ATTEST_OK) return known;
  if (p->v.shape[3] != p->q.shape[3]) {
    std::snprintf(message, message_size, "keys and values have one width in Distributed Llama");
    return ATTEST_UNSUPPORTED;
  }
  attend(*p, *r);
  return ATTEST_OK;
}
