/* Leaves the last key out beyond 512 keys.
   Stands for: wrong only at production shapes, where one key of many moves the answer little.
   Caught by: the oracle, at more than 512 keys. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  attest_problem shorter = *p;
  /* The bottom-right form counts from the last key. */
  if (p->k.shape[2] > 512 && p->causal != ATTEST_CAUSAL_BOTTOM_RIGHT) --shorter.k.shape[2], --shorter.v.shape[2];
  return honest_attention(&shorter, r);
}

HONEST_LIBRARY("drops-last-key-beyond-512", answer)
