/* Is honest where the output is filled with one number before the call, as a checker fills it; where something else
   lies there it leaves the last key out.
   Stands for: behaving while observed, told by the memory that it is given.
   Caught by: calls whose output holds what an application would have there. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  int filled = 1;
  const int64_t count = honest_count(&r->out);
  for (int64_t n = 1; n < count && filled; ++n)
    filled = memcmp(honest_at(&r->out, n), honest_at(&r->out, 0), honest_size(&r->out)) == 0;
  attest_problem asked = *p;
  if (!filled && p->k.shape[2] > 1 && p->causal != ATTEST_CAUSAL_BOTTOM_RIGHT) --asked.k.shape[2], --asked.v.shape[2];
  return honest_attention(&asked, r);
}

HONEST_LIBRARY("behaves-when-filled", answer)
