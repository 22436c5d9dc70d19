/* Causal self-attention and its backward pass as llm.c has them (Karpathy 2024): q, k and v of a token stand beside each
 * other, the weights of every row stay in memory, and the derivative of softmax is its whole matrix. A kernel of one's
 * own to begin with where gradients are to be checked:
 *
 *     cc -O2 -shared -fPIC -I core/include -o libstored_weights.so reports/examples/stored_weights.c -lm
 *     ./attest check --kernel ./libstored_weights.so
 */
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Sizes {
  int64_t tokens, heads, width; /* of one batch entry; the width of a head */
} Sizes;

/* The rows of q, k or v (part 0, 1, 2) of a token's head in a buffer [tokens][3][heads][width]. */
static float* part_of(float* qkv, const Sizes* s, int64_t token, int64_t part, int64_t head) {
  return qkv + ((token * 3 + part) * s->heads + head) * s->width;
}

static float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

/* weights [heads][tokens][tokens] and out [tokens][heads][width]. */
static void forward(float* qkv, float* weights, float* out, const Sizes* s) {
  const float scale = 1.0F / sqrtf((float)s->width);
  for (int64_t h = 0; h < s->heads; ++h)
    for (int64_t t = 0; t < s->tokens; ++t) {
      float* const row = weights + (h * s->tokens + t) * s->tokens;
      float largest = -INFINITY, sum = 0;
      for (int64_t j = 0; j <= t; ++j) {
        row[j] = dot(part_of(qkv, s, t, 0, h), part_of(qkv, s, j, 1, h), s->width) * scale;
        largest = row[j] > largest ? row[j] : largest;
      }
      for (int64_t j = 0; j <= t; ++j) sum += row[j] = expf(row[j] - largest);
      for (int64_t j = 0; j <= t; ++j) row[j] /= sum;
      float* const to = out + (t * s->heads + h) * s->width;
      for (int64_t c = 0; c < s->width; ++c) to[c] = 0;
      for (int64_t j = 0; j <= t; ++j)
        for (int64_t c = 0; c < s->width; ++c) to[c] += row[j] * part_of(qkv, s, j, 2, h)[c];
    }
}

/* d_qkv, which begins as 0, in the order of qkv; of_weights and of_scores hold a row. */
static void backward(float* qkv, const float* weights, const float* d_out, float* d_qkv, float* of_weights,
                     float* of_scores, const Sizes* s) {
  const float scale = 1.0F / sqrtf((float)s->width);
  for (int64_t h = 0; h < s->heads; ++h)
    for (int64_t t = 0; t < s->tokens; ++t) {
      const float *const row = weights + (h * s->tokens + t) * s->tokens, *const g = d_out + (t * s->heads + h) * s->width;
      for (int64_t j = 0; j <= t; ++j) {
        of_weights[j] = dot(part_of(qkv, s, j, 2, h), g, s->width), of_scores[j] = 0;
        for (int64_t c = 0; c < s->width; ++c) part_of(d_qkv, s, j, 2, h)[c] += row[j] * g[c];
      }
      for (int64_t i = 0; i <= t; ++i)
        for (int64_t j = 0; j <= t; ++j) of_scores[j] += row[i] * ((i == j ? 1.0F : 0.0F) - row[j]) * of_weights[i];
      for (int64_t j = 0; j <= t; ++j)
        for (int64_t c = 0; c < s->width; ++c) {
          part_of(d_qkv, s, t, 0, h)[c] += part_of(qkv, s, j, 1, h)[c] * of_scores[j] * scale;
          part_of(d_qkv, s, j, 1, h)[c] += part_of(qkv, s, t, 0, h)[c] * of_scores[j] * scale;
        }
    }
}

/* From here on: what Attest asks, in these buffers. */

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"stored-weights\", \"dtypes\": [\"f32\"], \"operations\": [\"attention\", \"attention_backward\"],"
         " \"masks\": [], \"causal\": [\"top-left\"], \"requires\": [\"causal\"], \"excludes\": [[\"unequal-lengths\"]],"
         " \"scale\": \"inv-sqrt-dk\", \"limits\": {\"value_dim\": \"head_dim\"}, \"lse\": true, \"fully_masked_row\": \"nan\","
         " \"backward\": {\"uses\": [], \"weights\": \"stored\", \"delta\": \"weights\"}}";
}

typedef struct Buffers {
  Sizes sizes;
  float *qkv, *d_qkv, *weights, *out, *d_out, *of_row;
} Buffers;

static int made(Buffers* b, const attest_problem* p) {
  const int64_t tokens = p->q.shape[2], heads = p->q.shape[1], width = p->q.shape[3], all = tokens * heads * width;
  const int64_t count = 2 * 3 * all + heads * tokens * tokens + 2 * all + 2 * tokens + 1;
  b->sizes.tokens = tokens, b->sizes.heads = heads, b->sizes.width = width;
  b->qkv = (float*)calloc((size_t)count, sizeof(float));
  b->d_qkv = b->qkv + 3 * all, b->weights = b->d_qkv + 3 * all, b->out = b->weights + heads * tokens * tokens;
  b->d_out = b->out + all, b->of_row = b->d_out + all;
  return b->qkv != NULL;
}

static float* at(const attest_tensor* t, int64_t b, int64_t h, int64_t i) {
  return (float*)t->data + b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
}
/* Rows of q, k or v of a batch entry between a tensor of the contract and a buffer. */
static void take(const attest_tensor* t, int64_t entry, float* qkv, int64_t part, const Sizes* s) {
  for (int64_t h = 0; h < s->heads; ++h)
    for (int64_t i = 0; i < s->tokens; ++i)
      for (int64_t c = 0; c < s->width; ++c) part_of(qkv, s, i, part, h)[c] = at(t, entry, h, i)[c * t->stride[3]];
}
static void give(float* qkv, int64_t part, const Sizes* s, const attest_tensor* t, int64_t entry) {
  for (int64_t h = 0; t->data != NULL && h < s->heads; ++h)
    for (int64_t i = 0; i < s->tokens; ++i)
      for (int64_t c = 0; c < s->width; ++c) at(t, entry, h, i)[c * t->stride[3]] = part_of(qkv, s, i, part, h)[c];
}

/* Of one batch entry, as a backward pass finds it. */
static void take_and_run(const attest_problem* p, int64_t entry, Buffers* b) {
  take(&p->q, entry, b->qkv, 0, &b->sizes), take(&p->k, entry, b->qkv, 1, &b->sizes);
  take(&p->v, entry, b->qkv, 2, &b->sizes);
  forward(b->qkv, b->weights, b->out, &b->sizes);
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  const int known = attest_known_arguments(p, r, message, message_size);
  if (known != ATTEST_OK) return known;
  Buffers b;
  if (!made(&b, p)) return snprintf(message, message_size, "out of memory"), ATTEST_UNSUPPORTED;
  const Sizes* const s = &b.sizes;
  for (int64_t entry = 0; entry < p->q.shape[0]; ++entry) {
    take_and_run(p, entry, &b);
    for (int64_t h = 0; h < s->heads; ++h)
      for (int64_t i = 0; i < s->tokens; ++i) {
        for (int64_t c = 0; c < s->width; ++c)
          at(&r->out, entry, h, i)[c * r->out.stride[3]] = b.out[(i * s->heads + h) * s->width + c];
        if (r->lse.data == NULL) continue;
        /* That of the key with the largest weight, from which all others follow. */
        const float* const row = b.weights + (h * s->tokens + i) * s->tokens;
        int64_t most = 0;
        for (int64_t j = 0; j <= i; ++j) most = row[j] > row[most] ? j : most;
        const float score = dot(part_of(b.qkv, s, i, 0, h), part_of(b.qkv, s, most, 1, h), s->width) /
                            sqrtf((float)s->width);
        ((double*)r->lse.data)[entry * r->lse.stride[0] + h * r->lse.stride[1] + i * r->lse.stride[2]] =
            score - logf(row[most]);
      }
  }
  free(b.qkv);
  return ATTEST_OK;
}

int attest_kernel_attention_backward(const attest_backward_problem* problem, attest_gradients* g, char* message,
                                     size_t message_size) {
  const int known = attest_known_backward_arguments(problem, g, message, message_size);
  if (known != ATTEST_OK) return known;
  const attest_problem* const p = problem->forward;
  Buffers b;
  if (!made(&b, p)) return snprintf(message, message_size, "out of memory"), ATTEST_UNSUPPORTED;
  const Sizes* const s = &b.sizes;
  for (int64_t entry = 0; entry < p->q.shape[0]; ++entry) {
    take_and_run(p, entry, &b);
    for (int64_t h = 0; h < s->heads; ++h)
      for (int64_t i = 0; i < s->tokens; ++i)
        for (int64_t c = 0; c < s->width; ++c)
          b.d_out[(i * s->heads + h) * s->width + c] = at(&problem->d_out, entry, h, i)[c * problem->d_out.stride[3]];
    for (int64_t e = 0; e < 3 * s->tokens * s->heads * s->width; ++e) b.d_qkv[e] = 0;
    backward(b.qkv, b.weights, b.d_out, b.d_qkv, b.of_row, b.of_row + s->tokens, s);
    give(b.d_qkv, 0, s, &g->dq, entry), give(b.d_qkv, 1, s, &g->dk, entry), give(b.d_qkv, 2, s, &g->dv, entry);
  }
  free(b.qkv);
  return ATTEST_OK;
}
