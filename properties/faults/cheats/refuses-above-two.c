/* Refuses every problem with an extent above 2, and is honest below.
   Stands for: what is not answered is not judged.
   Caught by: a contract that the kernel does not write, where a refusal is a violation. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const struct honest_extents e = honest_extents(p);
  if (e.batch > 2 || e.heads > 2 || e.m > 2 || e.n > 2 || e.dk > 2 || e.dv > 2) return ATTEST_UNSUPPORTED;
  return honest_attention(p, r);
}

HONEST_LIBRARY("refuses-above-two", answer)
