/* Sees only the last 256 keys where there are 1024 or more: a quarter of the work or less.
   Stands for: wrong only at production shapes; dense attention answered by a sliding window.
   Caught by: the oracle, at 1024 keys or more. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const int64_t n = p->k.shape[2];
  if (n < 1024 || p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE) return honest_attention(p, r);
  attest_problem last = *p;
  last.k.data = (char*)p->k.data + (n - 256) * p->k.stride[2] * (int64_t)honest_size(&p->k);
  last.v.data = (char*)p->v.data + (n - 256) * p->v.stride[2] * (int64_t)honest_size(&p->v);
  last.k.shape[2] = last.v.shape[2] = 256;
  return honest_attention(&last, r);
}

HONEST_LIBRARY("window-at-production", answer)
