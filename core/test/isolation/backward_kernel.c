/* A kernel with a backward pass, in C99 and in f64: grouped queries, causal forms, additive masks, caps and sinks, weights
   formed again from the log-sum-exp, D from the output. WRONG names the one thing that a build of it does wrong. */
#include <attest/kernel.h>
#include <math.h>
#include <stdio.h>

#define RIGHT 0
#define FORGETS_DELTA 1
#define LAST_HEAD_OF_GROUP 2
#define SCALES_TWICE 3
#define LEAVES_DK_UNWRITTEN 4
#define WRITES_TO_LSE 5
#define ADDS_TO_DV 6
#define WITHOUT_THE_CAPS_SLOPE 7
#define MASK_OF_THE_LAST_HEAD 8
#define DSINK_NOT_NEGATED 9
#define IGNORES_D_LSE 10
#define DK_NEEDS_DQ 11

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"backward\", \"dtypes\": [\"f64\"], \"operations\": [\"attention\", \"attention_backward\"],"
         " \"lse\": true, \"masks\": [\"additive\"], \"causal\": [\"top-left\", \"bottom-right\"], \"grouped_query\": true,"
         " \"fully_masked_row\": \"zero\", \"thread_safe\": true, \"variants\": {\"softcap\": {}, \"sink\": {}},"
         " \"backward\": {\"masked_row\": \"zero\", \"weights\": \"lse\", \"delta\": \"out\", \"d_lse\": true,"
         " \"gradients\": [\"dq\", \"dk\", \"dv\", \"dmask\", \"dsink\"],"
         " \"claims\": [\"deterministic\"]}}";
}

static double* at(const attest_tensor* t, int64_t b, int64_t h, int64_t i, int64_t c) {
  return (double*)t->data + b * t->stride[0] + h * t->stride[1] + i * t->stride[2] + c * t->stride[3];
}

static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

/* Of the mask, whose first axes may have length 1. */
static double* at_mask(const attest_tensor* t, int64_t b, int64_t h, int64_t i, int64_t j) {
  return at(t, t->shape[0] == 1 ? 0 : b, t->shape[1] == 1 ? 0 : h, i, j);
}
static double sink_of(const attest_problem* p, int64_t h) {
  return (p->variants & ATTEST_SINK) != 0 ? ((const float*)p->sink.data)[h * p->sink.stride[0]] : -INFINITY;
}

/* Scaled and, where there is a cap, capped. */
static double score(const attest_problem* p, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t group = p->q.shape[1] / p->k.shape[1];
  const double s = p->scale * dot(at(&p->q, b, h, i, 0), at(&p->k, b, h / group, j, 0), p->q.shape[3]);
  return p->softcap > 0 ? p->softcap * tanh(s / p->softcap) : s;
}

static double biased(const attest_problem* p, int64_t b, int64_t h, int64_t i, int64_t j) {
  return score(p, b, h, i, j) + (p->mask.data != NULL ? *at_mask(&p->mask, b, h, i, j) : 0);
}

/* So many keys, the first ones, does row i see. */
static int64_t sees(const attest_problem* p, int64_t i) {
  const int64_t keys = p->k.shape[2], rows = p->q.shape[2];
  int64_t last = keys;
  if (p->causal == ATTEST_CAUSAL_TOP_LEFT) last = i + 1;
  if (p->causal == ATTEST_CAUSAL_BOTTOM_RIGHT) last = i + keys - rows + 1;
  return last < 0 ? 0 : last > keys ? keys : last;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  const int64_t group = p->q.shape[1] / p->k.shape[1], dv = p->v.shape[3];
  (void)message, (void)message_size;
  for (int64_t b = 0; b < p->q.shape[0]; ++b)
    for (int64_t h = 0; h < p->q.shape[1]; ++h)
      for (int64_t i = 0; i < p->q.shape[2]; ++i) {
        const int64_t n = sees(p, i);
        const double sink = sink_of(p, h);
        double top = sink;
        for (int64_t j = 0; j < n; ++j) {
          const double s = biased(p, b, h, i, j);
          top = s > top ? s : top;
        }
        const int empty = top == -INFINITY;
        double sum = empty ? 0 : exp(sink - top);
        for (int64_t c = 0; c < dv; ++c) *at(&r->out, b, h, i, c) = 0;
        for (int64_t j = 0; !empty && j < n; ++j) {
          const double w = exp(biased(p, b, h, i, j) - top);
          sum += w;
          for (int64_t c = 0; c < dv; ++c) *at(&r->out, b, h, i, c) += w * *at(&p->v, b, h / group, j, c);
        }
        for (int64_t c = 0; !empty && c < dv; ++c) *at(&r->out, b, h, i, c) /= sum;
        if (r->lse.data != NULL) *at(&r->lse, b, h, i, 0) = empty ? -INFINITY : top + log(sum);
      }
  return ATTEST_OK;
}

static double of_lse(const attest_backward_problem* problem, int64_t b, int64_t h, int64_t i) {
  return problem->d_lse.data == NULL || WRONG == IGNORES_D_LSE ? 0 : *at(&problem->d_lse, b, h, i, 0);
}

int attest_kernel_attention_backward(const attest_backward_problem* problem, attest_gradients* g, char* message,
                                     size_t message_size) {
  const attest_problem* p = problem->forward;
  const int64_t group = p->q.shape[1] / p->k.shape[1], dk = p->q.shape[3], dv = p->v.shape[3], keys = p->k.shape[2];
  if (problem->size < sizeof *problem || g->size < sizeof *g) {
    snprintf(message, message_size, "smaller structures than this kernel knows");
    return ATTEST_UNSUPPORTED;
  }
  for (int64_t b = 0; b < p->k.shape[0]; ++b)
    for (int64_t h = 0; h < p->k.shape[1]; ++h)
      for (int64_t j = 0; j < keys; ++j) {
        for (int64_t c = 0; WRONG != LEAVES_DK_UNWRITTEN && g->dk.data != NULL && c < dk; ++c) *at(&g->dk, b, h, j, c) = 0;
        for (int64_t c = 0; WRONG != ADDS_TO_DV && g->dv.data != NULL && c < dv; ++c) *at(&g->dv, b, h, j, c) = 0;
      }
  for (int64_t e = 0; g->dmask.data != NULL && e < g->dmask.shape[0] * g->dmask.stride[0]; ++e)
    ((double*)g->dmask.data)[e] = 0;
  for (int64_t b = 0; b < p->q.shape[0]; ++b)
    for (int64_t h = 0; h < p->q.shape[1]; ++h)
      for (int64_t i = 0; i < p->q.shape[2]; ++i) {
        const double* const go = at(&problem->d_out, b, h, i, 0);
        const int64_t n = sees(p, i), kv = h / group;
        const double lse = *at(&problem->lse, b, h, i, 0);
        const double delta =
            (WRONG == FORGETS_DELTA ? 0 : dot(go, at(&problem->out, b, h, i, 0), dv)) - of_lse(problem, b, h, i);
        const double scale = WRONG == SCALES_TWICE ? p->scale * p->scale : p->scale;
        for (int64_t c = 0; g->dq.data != NULL && c < dk; ++c) *at(&g->dq, b, h, i, c) = 0;
        if (lse == -INFINITY) continue;
        for (int64_t j = 0; j < n; ++j) {
          const double s = score(p, b, h, i, j), w = exp(biased(p, b, h, i, j) - lse), y = p->softcap > 0 ? s / p->softcap : 0;
          const double slope = WRONG == WITHOUT_THE_CAPS_SLOPE ? 1 : 1 - y * y;
          const double of_biased = w * (dot(go, at(&p->v, b, kv, j, 0), dv) - delta), ds = of_biased * slope * scale;
          if (g->dmask.data != NULL) {
            double* const to = at_mask(&g->dmask, b, h, i, j);
            *to = WRONG == MASK_OF_THE_LAST_HEAD ? of_biased : *to + of_biased;
          }
          for (int64_t c = 0; g->dq.data != NULL && c < dk; ++c) *at(&g->dq, b, h, i, c) += ds * *at(&p->k, b, kv, j, c);
          if (WRONG == LAST_HEAD_OF_GROUP && h % group != group - 1) continue;
          const int without_dk = WRONG == DK_NEEDS_DQ && g->dq.data == NULL;
          for (int64_t c = 0; g->dk.data != NULL && !without_dk && c < dk; ++c) *at(&g->dk, b, kv, j, c) += ds * *at(&p->q, b, h, i, c);
          for (int64_t c = 0; g->dv.data != NULL && c < dv; ++c) *at(&g->dv, b, kv, j, c) += w * go[c];
        }
        if (WRONG == WRITES_TO_LSE) *at(&problem->lse, b, h, i, 0) = 0;
      }
  for (int64_t h = 0; g->dsink.data != NULL && h < p->q.shape[1]; ++h) {
    double sum = 0;
    for (int64_t b = 0; b < p->q.shape[0]; ++b)
      for (int64_t i = 0; i < p->q.shape[2]; ++i) {
        const double lse = *at(&problem->lse, b, h, i, 0);
        const double delta =
            dot(at(&problem->d_out, b, h, i, 0), at(&problem->out, b, h, i, 0), dv) - of_lse(problem, b, h, i);
        if (lse > -INFINITY) sum += exp(sink_of(p, h) - lse) * delta;
      }
    ((float*)g->dsink.data)[h * g->dsink.stride[0]] = (float)(WRONG == DSINK_NOT_NEGATED ? sum : -sum);
  }
  return ATTEST_OK;
}
