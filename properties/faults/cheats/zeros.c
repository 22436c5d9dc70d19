/* Writes zeros.
   Stands for: an output that nothing was computed for.
   Caught by: the oracle. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  (void)p;
  honest_fill(r, 0);
  return ATTEST_OK;
}

HONEST_LIBRARY("zeros", answer)
