/* Computes one call of fifteen of a size, and answers the fourteen that follow with the same.
   Stands for: batch and skip (gpu-mode/reference-kernels, pull request 104: 14 of 15 timed calls were look-ups).
   Caught by: a repeated shape with other data. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];
static int answered[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  uint64_t key = 17;
  const attest_tensor* const all[] = {&p->q, &p->k, &p->v, &p->mask};
  for (int i = 0; i < 4; ++i) key = honest_hash_tensor(key, all[i], 0);
  int* const of_this = &answered[key % HONEST_KEPT];
  if ((*of_this)++ % 15 != 0 && honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("every-fifteenth-call", answer)
