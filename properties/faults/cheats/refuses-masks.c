/* Declares masks and causal forms, and refuses each of them when it is asked.
   Stands for: a capability that is claimed and never shown.
   Caught by: a contract that the kernel does not write, where a refusal is a violation. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  if (p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE) return ATTEST_UNSUPPORTED;
  return honest_attention(p, r);
}

HONEST_LIBRARY("refuses-masks", answer)
