/* Copies V: row i is value i. Right where there is one key.
   Stands for: the input copied to the output (Wafer's field guide, 2026).
   Caught by: the oracle. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const struct honest_extents e = honest_extents(p);
  if (e.n <= 1 || r->lse.data != NULL) return honest_attention(p, r);
  for (int64_t n = 0; n < honest_count(&r->out); ++n) {
    const int64_t c = n % e.dv, i = n / e.dv % e.m, h = n / e.dv / e.m % e.heads, b = n / e.dv / e.m / e.heads;
    const int64_t head = b * e.kv_heads + h / (e.heads / e.kv_heads);
    honest_set(&r->out, n, honest_get(&p->v, (head * e.n + i % e.n) * e.dv + c));
  }
  return ATTEST_OK;
}

HONEST_LIBRARY("copies-values", answer)
