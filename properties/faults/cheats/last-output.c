/* Answers what the last call of as many outputs was answered, every second time.
   Stands for: outputs left from an earlier call (Wafer's field guide, 2026: stale buffers).
   Caught by: a repeated shape with other data. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  const uint64_t key = 7;
  if (++calls % 2 == 0 && honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("last-output", answer)
