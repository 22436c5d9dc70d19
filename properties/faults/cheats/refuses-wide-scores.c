/* Refuses where scores may be large, which is where exponentials overflow and roundings show.
   Stands for: what is hard is refused.
   Caught by: a contract that the kernel does not write, where a refusal is a violation. */
#include "honest.h"

static double largest_of(const attest_tensor* t) {
  double largest = 0;
  for (int64_t n = 0; n < honest_count(t); ++n) largest = fmax(largest, fabs((double)honest_get(t, n)));
  return largest;
}

static int answer(const attest_problem* p, attest_result* r) {
  if (largest_of(&p->q) * largest_of(&p->k) * p->scale * (double)p->q.shape[3] > 8) return ATTEST_UNSUPPORTED;
  return honest_attention(p, r);
}

HONEST_LIBRARY("refuses-wide-scores", answer)
