/* Attention in float without masks, two passes, of at most eight of everything. */
#include <attest/kernel.h>
#include <math.h>
#include <stdio.h>

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"mine\", \"dtypes\": [\"f32\"], \"grouped_query\": true, \"masks\": [],"
         " \"limits\": {\"max_head_dim\": 8, \"max_queries\": 8, \"max_keys\": 8, \"max_heads\": 8}}";
}

static float* at(const attest_tensor* t, int64_t b, int64_t h, int64_t i, int64_t c) {
  return (float*)t->data + b * t->stride[0] + h * t->stride[1] + i * t->stride[2] + c * t->stride[3];
}

static float score(const attest_problem* p, int64_t b, int64_t h, int64_t kv, int64_t i, int64_t j) {
  float dot = 0;
  for (int64_t c = 0; c < p->q.shape[3]; ++c) dot += *at(&p->q, b, h, i, c) * *at(&p->k, b, kv, j, c);
  return dot * (float)p->scale;
}

static void row(const attest_problem* p, attest_result* r, int64_t b, int64_t h, int64_t i) {
  const int64_t keys = p->k.shape[2], width = p->v.shape[3], kv = h / (p->q.shape[1] / p->k.shape[1]);
  float largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < keys; ++j) largest = fmaxf(largest, score(p, b, h, kv, i, j));
  for (int64_t c = 0; c < width; ++c) *at(&r->out, b, h, i, c) = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const float weight = expf(score(p, b, h, kv, i, j) - largest);
    sum += weight;
    for (int64_t c = 0; c < width; ++c) *at(&r->out, b, h, i, c) += weight * *at(&p->v, b, kv, j, c);
  }
  for (int64_t c = 0; c < width; ++c) *at(&r->out, b, h, i, c) /= sum;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  if (p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE) {
    snprintf(message, message_size, "masks are not written yet");
    return ATTEST_UNSUPPORTED;
  }
  for (int64_t b = 0; b < p->q.shape[0]; ++b)
    for (int64_t h = 0; h < p->q.shape[1]; ++h)
      for (int64_t i = 0; i < p->q.shape[2]; ++i) row(p, r, b, h, i);
  return ATTEST_OK;
}
