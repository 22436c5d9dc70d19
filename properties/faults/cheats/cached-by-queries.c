/* Keeps answers by the whole of q and the sizes of the rest: keys and values may change unseen.
   Stands for: a cache by content that leaves a part of it out.
   Caught by: a repeat with other keys or values. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  uint64_t key = honest_hash_bytes(17, &p->scale, sizeof p->scale);
  key = honest_hash_bytes(key, &p->causal, sizeof p->causal);
  key = honest_hash_tensor(key, &p->q, INT64_MAX);
  const attest_tensor* const all[] = {&p->k, &p->v, &p->mask};
  for (int i = 0; i < 3; ++i) key = honest_hash_tensor(key, all[i], 0);
  if (honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("cached-by-queries", answer)
