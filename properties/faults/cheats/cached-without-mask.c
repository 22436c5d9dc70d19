/* Keeps answers by the whole of q, k and v: mask, causal form and scale may change unseen.
   Stands for: a cache by content that leaves a part of it out.
   Caught by: a repeat with another mask, causal form or scale. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  uint64_t key = 17;
  const attest_tensor* const all[] = {&p->q, &p->k, &p->v};
  for (int i = 0; i < 3; ++i) key = honest_hash_tensor(key, all[i], INT64_MAX);
  if (honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("cached-without-mask", answer)
