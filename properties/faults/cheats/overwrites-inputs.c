/* Overwrites q with zeros and answers for these, so that a reference that is computed afterwards from the same memory
   agrees.
   Stands for: inputs overwritten before the reference reads them (KernelBench, pull request 82).
   Caught by: walls around the inputs. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  for (int64_t n = 0; n < honest_count(&p->q); ++n) honest_set(&p->q, n, 0);
  return honest_attention(p, r);
}

HONEST_LIBRARY("overwrites-inputs", answer)
