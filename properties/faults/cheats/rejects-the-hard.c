/* Says of every problem with unequal lengths that it is invalid.
   Stands for: what is hard is called a mistake of whoever asks.
   Caught by: a contract in which the problem is valid. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  if (p->q.shape[2] != p->k.shape[2]) return ATTEST_REJECTED;
  return honest_attention(p, r);
}

HONEST_LIBRARY("rejects-the-hard", answer)
