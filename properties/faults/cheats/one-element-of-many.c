/* Of outputs with 65,536 elements or more one is wrong, at a place that follows from the inputs.
   Stands for: a mistake that no sample of the output and no mean error shows.
   Caught by: the oracle, every element of a large output judged. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const int status = honest_attention(p, r);
  const int64_t count = honest_count(&r->out);
  if (count < 65536) return status;
  const int64_t n = (int64_t)(honest_hash_tensor(17, &p->q, 64) % (uint64_t)count);
  honest_set(&r->out, n, 1 + 2 * honest_get(&r->out, n));
  return status;
}

HONEST_LIBRARY("one-element-of-many", answer)
