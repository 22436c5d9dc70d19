/* Writes NaN where there is much to do, from 64 keys on.
   Stands for: NaN, which a comparator that asks "error > allowed" lets through (gpu-mode/pygpubench, pull request 7).
   Caught by: the oracle. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  if (p->k.shape[2] < 64) return honest_attention(p, r);
  honest_fill(r, NAN);
  return ATTEST_OK;
}

HONEST_LIBRARY("nan-as-wildcard", answer)
