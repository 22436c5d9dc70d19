/* One call in ten thousand, drawn by the processor's clock, has one wrong element.
   Stands for: a race that is seldom lost.
   Caught by: as many calls, every element of each judged. */
#include <time.h>

#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static uint64_t state;
  if (state == 0) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    state = (uint64_t)at.tv_nsec * 0x9E3779B97F4A7C15u + (uint64_t)at.tv_sec + 1;
  }
  const int status = honest_attention(p, r);
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  const int64_t count = honest_count(&r->out);
  if (state % 10000 != 0 || count == 0) return status;
  const int64_t n = (int64_t)(state / 10000 % (uint64_t)count);
  honest_set(&r->out, n, 1 + 2 * honest_get(&r->out, n));
  return status;
}

HONEST_LIBRARY("once-in-ten-thousand", answer)
