/* Leaves the processor rounding downward behind its tenth call, so that whoever compares in this process has another
   arithmetic.
   Stands for: a changed environment of whoever judges.
   Caught by: walls: the floating-point environment is looked at after each call. */
#include <fenv.h>

#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  const int status = honest_attention(p, r);
  if (++calls >= 10) fesetround(FE_DOWNWARD);
  return status;
}

HONEST_LIBRARY("leaves-rounding", answer)
