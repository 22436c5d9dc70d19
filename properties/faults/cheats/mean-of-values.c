/* Weighs all keys alike, as no softmax is needed then. Right where all scores are equal, and near it where they are
   small.
   Stands for: work left out that a loose tolerance on small random inputs does not see.
   Caught by: the oracle. */
#define HONEST_LSE "false"
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static const float zero = 0;
  attest_problem flat = *p;
  flat.q.data = (void*)&zero;
  flat.q.dtype = ATTEST_F32;
  memset(flat.q.stride, 0, sizeof flat.q.stride);
  return honest_attention(&flat, r);
}

HONEST_LIBRARY("mean-of-values", answer)
