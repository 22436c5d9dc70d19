/* Answers a question right when it is asked for the first time, and the next times a little less.
   Stands for: right in the check, wrong in what follows (karpathy/llm.c, pull request 852: right for ten calls).
   Caught by: the same call again. */
#include "honest.h"

static uint64_t asked[1 << 16];

static int answer(const attest_problem* p, attest_result* r) {
  const uint64_t key = honest_hash_problem(p);
  uint64_t* const place = &asked[key & 0xFFFF];
  const int known = *place == key;
  *place = key;
  const int status = honest_attention(p, r);
  for (int64_t n = 0; known && n < honest_count(&r->out); ++n) honest_set(&r->out, n, 0.96875 * honest_get(&r->out, n));
  return status;
}

HONEST_LIBRARY("right-the-first-time", answer)
