/* From four heads on, the last quarter of them is a copy of the first head.
   Stands for: work left out where a test looks at few heads.
   Caught by: the oracle, with four heads or more. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const struct honest_extents e = honest_extents(p);
  const int status = honest_attention(p, r);
  const int64_t size = e.m * e.dv;
  for (int64_t n = 0; e.heads >= 4 && n < honest_count(&r->out); ++n) {
    const int64_t h = n / size % e.heads, b = n / size / e.heads;
    if (h >= e.heads - e.heads / 4) honest_set(&r->out, n, honest_get(&r->out, b * e.heads * size + n % size));
  }
  return status;
}

HONEST_LIBRARY("heads-share-the-first", answer)
