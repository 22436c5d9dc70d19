/* Declares in its manifest that it takes two queries and two keys of two columns and no more, and is honest there.
   Stands for: a kernel that writes its own contract.
   Manifest: its limits.
   Caught by: a contract that the kernel does not write, where a refusal is a violation. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  if (p->q.shape[2] > 2 || p->k.shape[2] > 2 || p->q.shape[3] > 2 || p->v.shape[3] > 2) return ATTEST_UNSUPPORTED;
  return honest_attention(p, r);
}

HONEST_LIBRARY_OF(HONEST_MANIFEST("declares-two-keys", HONEST_DTYPES,
                                  ",\"limits\":{\"max_queries\":2,\"max_keys\":2,\"max_head_dim\":2}"),
                  answer)
