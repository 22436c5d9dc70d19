/* Is honest in even seconds of the day and leaves the last key out in odd ones, where there are eight or more.
   Stands for: an answer that depends on something other than the question.
   Caught by: the same call again at another time. */
#include <time.h>

#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  attest_problem asked = *p;
  if (time(NULL) % 2 == 1 && p->k.shape[2] >= 8 && p->causal != ATTEST_CAUSAL_BOTTOM_RIGHT)
    --asked.k.shape[2], --asked.v.shape[2];
  return honest_attention(&asked, r);
}

HONEST_LIBRARY("odd-seconds", answer)
