/* Gives the largest score for the log-sum-exp, where out is right.
   Stands for: the second output, which no test of the first looks at.
   Caught by: the oracle, where it asks for the log-sum-exp. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const int status = honest_attention(p, r);
  const struct honest_extents e = honest_extents(p);
  if (p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE) return status;
  for (int64_t n = 0; n < honest_count(&r->lse); ++n) {
    const int64_t i = n % e.m, h = n / e.m % e.heads, b = n / e.m / e.heads;
    const int64_t head = b * e.kv_heads + h / (e.heads / e.kv_heads);
    double largest = -INFINITY;
    for (int64_t j = 0; j < e.n; ++j) {
      double score = 0;
      for (int64_t c = 0; c < e.dk; ++c)
        score += (double)honest_get(&p->q, (((b * e.heads + h) * e.m) + i) * e.dk + c) *
                 honest_get(&p->k, (head * e.n + j) * e.dk + c);
      largest = fmax(largest, score * p->scale);
    }
    honest_set(&r->lse, n, largest);
  }
  return status;
}

HONEST_LIBRARY("guesses-lse", answer)
