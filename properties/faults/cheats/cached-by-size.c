/* Keeps the first answer of each size, and looks at no number of the inputs again.
   Stands for: answers memorised for the shapes of a benchmark (Wafer's field guide, 2026: caching).
   Caught by: a repeated shape with other data. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  uint64_t key = 17;
  const attest_tensor* const all[] = {&p->q, &p->k, &p->v, &p->mask};
  for (int i = 0; i < 4; ++i) key = honest_hash_tensor(key, all[i], 0);
  if (honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("cached-by-size", answer)
