/* Keeps answers by the sizes and the first eight elements of q, k and v.
   Stands for: an output cache by a light fingerprint of the inputs (flashinfer-bench-starter-kit, issue 21).
   Caught by: a repeat that changes what the fingerprint leaves out. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  uint64_t key = honest_hash_bytes(17, &p->scale, sizeof p->scale);
  key = honest_hash_bytes(key, &p->causal, sizeof p->causal);
  key = honest_hash_bytes(key, &p->mask_convention, sizeof p->mask_convention);
  const attest_tensor* const all[] = {&p->q, &p->k, &p->v, &p->mask};
  for (int i = 0; i < 4; ++i) key = honest_hash_tensor(key, all[i], 8);
  if (honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("cached-by-fingerprint", answer)
