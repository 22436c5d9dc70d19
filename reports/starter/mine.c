/* A kernel under test: put yours into attention(), or call it there and add its files to the line in attest.sh that
 * builds. Say in the manifest what is true of it; what may be said: core/kernel-interface.md of Attest, section 3.
 * Compiles as C99 and C++. */
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <math.h>
#include <stdio.h>

/* out = softmax(scale q k^T) v in each batch and head, all of them dense and row-major:
 * q [batch, heads, queries, dim], k [batch, heads, keys, dim], v [batch, heads, keys, value_dim],
 * out [batch, heads, queries, value_dim]. causal: query i sees the keys up to the i-th alone.
 * There may be no key: a row of out is then what fully_masked_row declares. */
static void attention(const float* q, const float* k, const float* v, float* out, int64_t batch, int64_t heads,
                      int64_t queries, int64_t keys, int64_t dim, int64_t value_dim, float scale, int causal) {
  for (int64_t head = 0; head < batch * heads; ++head) {
    const float* const head_k = k + head * keys * dim;
    const float* const head_v = v + head * keys * value_dim;
    for (int64_t i = 0; i < queries; ++i) {
      const float* const row_q = q + (head * queries + i) * dim;
      float* const row_out = out + (head * queries + i) * value_dim;
      float largest = -INFINITY, sum = 0;
      for (int64_t c = 0; c < value_dim; ++c) row_out[c] = 0;
      const int64_t seen = causal && i + 1 < keys ? i + 1 : keys;
      for (int64_t j = 0; j < seen; ++j) {
        float score = 0;
        for (int64_t c = 0; c < dim; ++c) score += row_q[c] * head_k[j * dim + c];
        score *= scale;
        /* What was summed so far belongs to the largest score so far. */
        const float next = score > largest ? score : largest;
        const float shrunk = expf(largest - next), weight = expf(score - next);
        largest = next;
        sum = sum * shrunk + weight;
        for (int64_t c = 0; c < value_dim; ++c) row_out[c] = row_out[c] * shrunk + weight * head_v[j * value_dim + c];
      }
      for (int64_t c = 0; c < value_dim; ++c) row_out[c] /= sum;
    }
  }
}

/* Unsaid: as many heads in k and v as in q, dense tensors, and arithmetic as loose as a right kernel may have; the more
 * is declared, the sharper the check. */
const char* attest_kernel_manifest(void) {
  return "{\"name\": \"mine\","
         " \"dtypes\": [\"f32\"],"          /* of q, k, v and out: f64, f32, f16, bf16; p->q.dtype is the one sent */
         " \"causal\": [\"top-left\"],"     /* that it takes: top-left, bottom-right; [] for none */
         " \"masks\": [],"                  /* that it takes: bool, additive */
         " \"fully_masked_row\": \"nan\"}"; /* where a query sees no key: nan, zero, uniform or error */
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  /* A later Attest may ask for what this was not compiled for. */
  const int known = attest_known_arguments(p, r, message, message_size);
  if (known != ATTEST_OK) return known;
  /* Answer so for all that it cannot do: skipped, not failed. Any other status but ATTEST_OK is a failure. */
  if (p->mask.data != NULL || p->causal == ATTEST_CAUSAL_BOTTOM_RIGHT) {
    snprintf(message, message_size, "not written yet");
    return ATTEST_UNSUPPORTED;
  }
  attention((const float*)p->q.data, (const float*)p->k.data, (const float*)p->v.data, (float*)r->out.data,
            p->q.shape[0], p->q.shape[1], p->q.shape[2], p->k.shape[2], p->q.shape[3], p->v.shape[3], (float)p->scale,
            p->causal == ATTEST_CAUSAL_TOP_LEFT);
  return ATTEST_OK;
}
