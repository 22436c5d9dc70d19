// An example of a CUDA kernel under test: f32 attention in a shared library against <attest/kernel.h>. What is CUDA's is
// the upper half, what Attest asks of the host side the lower one:
//
// - Who copies. Attest hands over host pointers, row-major where the manifest does not say "strides": true, and wants the
//   answer in host memory: this file copies in and out, whole tensors at a time, into device buffers that live as long
//   as the process.
// - Asynchronous errors. A launch returns before the kernel has run, so the call waits for it and answers for it; else
//   the next case is blamed. An error that stays (an illegal address ruins the whole context) ends the process: Attest
//   reports the call, with the last line of standard error, and starts the library anew.
// - Batching. Isolation and copies cost a call more than a small problem does. One launch covers every batch entry, head
//   and row of the problem; nothing is copied a row at a time.
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int threads = 128;
constexpr int64_t max_keys = 8192;  // of a row's scores in shared memory

/// Shapes as in kernel.h: q [batch, heads, M, dk], k [batch, kv_heads, N, dk], v [batch, kv_heads, N, dv], out [batch,
/// heads, M, dv], lse [batch, heads, M] or null; the mask [mask_batch, mask_heads, M, N] is one of the two or neither.
struct Problem {
  const float *q, *k, *v, *bias;
  const unsigned char* allowed;
  float* out;
  double* lse;
  int64_t batch, heads, kv_heads, M, N, dk, dv, mask_batch, mask_heads;
  float scale;
  int causal;
};

__device__ bool visible(const Problem& p, int64_t mask_row, int64_t i, int64_t j) {
  if (p.causal == ATTEST_CAUSAL_TOP_LEFT && j > i) return false;
  if (p.causal == ATTEST_CAUSAL_BOTTOM_RIGHT && j > i + p.N - p.M) return false;
  if (p.bias != nullptr && p.bias[mask_row * p.N + j] == -INFINITY) return false;
  return p.allowed == nullptr || p.allowed[mask_row * p.N + j] != 0;
}

/// The block's result of `combine` over one value a thread, for every thread.
template <class Combine>
__device__ float over_block(float mine, float* scratch, Combine combine) {
  scratch[threadIdx.x] = mine;
  __syncthreads();
  for (int width = threads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) scratch[threadIdx.x] = combine(scratch[threadIdx.x], scratch[threadIdx.x + width]);
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

/// One block a row of out.
__global__ void attention(Problem p) {
  extern __shared__ float weights[];  // [N]
  __shared__ float scratch[threads];
  const int64_t row = blockIdx.x, i = row % p.M, h = row / p.M % p.heads, b = row / (p.M * p.heads);
  const int64_t kv_head = b * p.kv_heads + h / (p.heads / p.kv_heads);
  const int64_t mask_row = ((p.mask_batch == 1 ? 0 : b) * p.mask_heads + (p.mask_heads == 1 ? 0 : h)) * p.M + i;
  const float *q = p.q + row * p.dk, *k = p.k + kv_head * p.N * p.dk, *v = p.v + kv_head * p.N * p.dv;

  // pass 1: scores and row maximum
  float top = -INFINITY;
  for (int64_t j = threadIdx.x; j < p.N; j += threads) {
    float score = -INFINITY;
    if (visible(p, mask_row, i, j)) {
      float dot = 0.0f;
      for (int64_t c = 0; c < p.dk; ++c) dot += q[c] * k[j * p.dk + c];
      score = dot * p.scale;
      if (p.bias != nullptr) score += p.bias[mask_row * p.N + j];
    }
    weights[j] = score;
    top = fmaxf(top, score);
  }
  top = over_block(top, scratch, [](float x, float y) { return fmaxf(x, y); });

  // pass 2: weights and their sum; NaN where no key is visible
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < p.N; j += threads) sum += weights[j] = expf(weights[j] - top);
  sum = over_block(sum, scratch, [](float x, float y) { return x + y; });
  if (p.N == 0) sum = NAN;

  // pass 3: the weighted mean of the values, without those of hidden keys, whatever they hold
  for (int64_t c = threadIdx.x; c < p.dv; c += threads) {
    float o = 0.0f;
    for (int64_t j = 0; j < p.N; ++j) {
      if (weights[j] != 0.0f) o += weights[j] * v[j * p.dv + c];
    }
    p.out[row * p.dv + c] = o / sum;
  }
  if (p.lse != nullptr && threadIdx.x == 0) p.lse[row] = static_cast<double>(top) + log(static_cast<double>(sum));
}

constexpr int failed = 3;

/// Device memory that grows as needed and is kept for the next call.
class Buffer {
 public:
  /// Room for `bytes`, not initialised; null when there is none.
  void* room(size_t bytes) {
    if (bytes <= bytes_ && data_ != nullptr) return data_;
    cudaFree(data_);
    data_ = nullptr;
    bytes_ = cudaMalloc(&data_, bytes > 0 ? bytes : 1) == cudaSuccess ? bytes : 0;
    return data_;
  }
  /// The same with a copy of a host tensor in it; null for an absent one too.
  void* copy_of(const attest_tensor& t, size_t element) {
    if (t.data == nullptr) return nullptr;
    size_t bytes = element;
    for (int axis = 0; axis < t.rank; ++axis) bytes *= static_cast<size_t>(t.shape[axis]);
    void* const memory = room(bytes);
    if (memory != nullptr) cudaMemcpy(memory, t.data, bytes, cudaMemcpyHostToDevice);
    return memory;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/// ATTEST_OK, or the status of a call that failed, with its message. Does not return from an error that stays.
int outcome(const char* what, char* message, size_t message_size) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return ATTEST_OK;
  snprintf(message, message_size, "%s: %s", what, cudaGetErrorString(error));
  if (cudaDeviceSynchronize() == cudaSuccess) return failed;
  fprintf(stderr, "%s\n", message);
  fflush(stderr);
  _Exit(70);
}

}  // namespace

extern "C" const char* attest_kernel_manifest() {
  // expf is wrong by at most 2 ulp (CUDA Programming Guide, "Mathematical Functions"); products are fused into sums.
  return R"({"name": "CUDA example", "dtypes": ["f32"], "fully_masked_row": "nan", "lse": true, "grouped_query": true,
    "arithmetic": {"exp_ulp": 2, "base2": false, "split_merge": false, "normalise_first": false, "prescaled_q": null,
                   "block": 0, "bias_in_sum": false, "division_roundings": 1},
    "claims": ["deterministic", "batch-invariant", "ignores-dead-values"],
    "causal": ["top-left", "bottom-right"], "limits": {"max_keys": 8192}})";
}

extern "C" int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  if (const int known = attest_known_arguments(p, r, message, message_size)) return known;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    snprintf(message, message_size, "there is no CUDA device: %s", cudaGetErrorString(cudaGetLastError()));
    return ATTEST_UNSUPPORTED;
  }
  static Buffer q, k, v, mask, out, lse;
  const bool is_bool = p->mask.dtype == ATTEST_BOOL;
  void* const on_device = mask.copy_of(p->mask, is_bool ? 1 : sizeof(float));
  Problem d{};
  d.q = static_cast<const float*>(q.copy_of(p->q, sizeof(float)));
  d.k = static_cast<const float*>(k.copy_of(p->k, sizeof(float)));
  d.v = static_cast<const float*>(v.copy_of(p->v, sizeof(float)));
  d.allowed = is_bool ? static_cast<const unsigned char*>(on_device) : nullptr;
  d.bias = is_bool ? nullptr : static_cast<const float*>(on_device);
  d.batch = p->q.shape[0], d.heads = p->q.shape[1], d.M = p->q.shape[2], d.dk = p->q.shape[3];
  d.kv_heads = p->k.shape[1], d.N = p->k.shape[2], d.dv = p->v.shape[3];
  d.mask_batch = p->mask.shape[0], d.mask_heads = p->mask.shape[1];
  d.scale = static_cast<float>(p->scale), d.causal = p->causal;
  const int64_t rows = d.batch * d.heads * d.M;
  if (rows == 0) return ATTEST_OK;
  if (d.N > max_keys || rows > INT32_MAX) return ATTEST_UNSUPPORTED;
  const size_t out_bytes = static_cast<size_t>(rows * d.dv) * sizeof(float);
  const size_t lse_bytes = static_cast<size_t>(rows) * sizeof(double);
  d.out = static_cast<float*>(out.room(out_bytes));
  if (r->lse.data != nullptr) d.lse = static_cast<double*>(lse.room(lse_bytes));
  if (const int status = outcome("copying to the device", message, message_size)) return status;

  attention<<<static_cast<unsigned>(rows), threads, static_cast<size_t>(d.N) * sizeof(float)>>>(d);
  if (const int status = outcome("launching", message, message_size)) return status;
  cudaDeviceSynchronize();
  if (const int status = outcome("running", message, message_size)) return status;

  cudaMemcpy(r->out.data, d.out, out_bytes, cudaMemcpyDeviceToHost);
  if (d.lse != nullptr) cudaMemcpy(r->lse.data, d.lse, lse_bytes, cudaMemcpyDeviceToHost);
  return outcome("copying from the device", message, message_size);
}
