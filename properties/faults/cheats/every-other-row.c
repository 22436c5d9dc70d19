/* From 64 queries on, every other row is the mean of its neighbours.
   Stands for: work left out that a loose tolerance on long inputs does not see.
   Caught by: the oracle, at 64 queries or more. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const struct honest_extents e = honest_extents(p);
  const int status = honest_attention(p, r);
  for (int64_t n = 0; e.m >= 64 && n < honest_count(&r->out); ++n) {
    const int64_t i = n / e.dv % e.m;
    if (i % 2 == 0 || i + 1 == e.m) continue;
    honest_set(&r->out, n, 0.5 * (honest_get(&r->out, n - e.dv) + honest_get(&r->out, n + e.dv)));
  }
  return status;
}

HONEST_LIBRARY("every-other-row", answer)
