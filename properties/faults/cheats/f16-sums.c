/* Sums weights and weighted values in f16 from 128 keys on, in every dtype, and says nothing.
   Stands for: lower precision than declared, where it saves most.
   Caught by: the oracle, at 128 keys or more. */
static int narrow;
#define HONEST_SUM(x) (narrow ? honest_from_f16(honest_to_f16(x)) : (x))
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  narrow = p->k.shape[2] >= 128;
  return honest_attention(p, r);
}

HONEST_LIBRARY("f16-sums", answer)
