/* Computes the first batch entry, and copies it to the others where there are three or more.
   Stands for: inputs that a test repeats along the batch.
   Caught by: the oracle, with three batch entries or more. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const int status = honest_attention(p, r);
  const int64_t batch = p->q.shape[0];
  if (batch < 3) return status;
  const int64_t outs = honest_count(&r->out) / batch, lses = honest_count(&r->lse) / batch;
  for (int64_t n = outs; n < outs * batch; ++n) honest_set(&r->out, n, honest_get(&r->out, n % outs));
  for (int64_t n = lses; n < lses * batch; ++n) memcpy(honest_at(&r->lse, n), honest_at(&r->lse, n % lses), 8);
  return status;
}

HONEST_LIBRARY("first-batch-only", answer)
