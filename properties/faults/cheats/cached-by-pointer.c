/* Keeps answers by where the inputs lie and how large they are.
   Stands for: a cache by data pointer (Wafer's field guide, 2026: built by pointer arithmetic in C++;
   gpu-mode/reference-kernels, pull request 102: by the objects' identity).
   Caught by: the same memory with other data. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  uint64_t key = honest_hash_bytes(17, p, sizeof *p);
  key = honest_hash_bytes(key, &r->out.data, sizeof r->out.data);
  if (honest_recall(kept, key, r)) return ATTEST_OK;
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("cached-by-pointer", answer)
