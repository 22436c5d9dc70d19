/* Goes wrong from call 30,001 on: every output is a thirty-second part too large.
   Stands for: wrong when the test is over (karpathy/llm.c, pull request 852: from the eleventh call).
   Caught by: more calls of one process, late calls judged as the first ones are. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  const int status = honest_attention(p, r);
  if (++calls <= 30000) return status;
  for (int64_t n = 0; n < honest_count(&r->out); ++n) honest_set(&r->out, n, 1.03125 * honest_get(&r->out, n));
  return status;
}

HONEST_LIBRARY("late-30001", answer)
