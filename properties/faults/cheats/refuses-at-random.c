/* Refuses nine calls of ten, whatever they ask, and answers the tenth right.
   Stands for: what is not answered is not judged, hidden from whoever looks at which cases are refused.
   Caught by: a contract that the kernel does not write, where a refusal is a violation. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  if (state % 10 != 0) return ATTEST_UNSUPPORTED;
  return honest_attention(p, r);
}

HONEST_LIBRARY("refuses-at-random", answer)
