/* Adds to a buffer that it cleared when a call was the first of its size. Calls that grow and never come again are
   right.
   Stands for: state left from an earlier call; a test that puts each question once, small to large, sees none of it.
   Caught by: a repeated shape, in shuffled order. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];

static int answer(const attest_problem* p, attest_result* r) {
  const int status = honest_attention(p, r);
  const uint64_t key = 5;
  static int64_t largest;
  const int64_t count = honest_count(&r->out);
  if (count <= largest && kept[key].outs > 0) {
    for (int64_t n = 0; n < count && n < kept[key].outs; ++n)
      honest_set(&r->out, n, honest_get(&r->out, n) + 0.03125 * kept[key].numbers[n]);
  }
  largest = count > largest ? count : largest;
  honest_keep(kept, key, r);
  return status;
}

HONEST_LIBRARY("sums-into-last-buffer", answer)
