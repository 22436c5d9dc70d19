/* Goes wrong ten seconds after it was loaded.
   Stands for: wrong when the test is over, by the clock instead of by calls.
   Caught by: a process that is asked for longer, late calls judged as the first ones are. */
#include <time.h>

#include "honest.h"

static time_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec;
}
static time_t loaded;
__attribute__((constructor)) static void begin(void) {
  loaded = now();
}

static int answer(const attest_problem* p, attest_result* r) {
  const int status = honest_attention(p, r);
  if (now() - loaded <= 10) return status;
  for (int64_t n = 0; n < honest_count(&r->out); ++n) honest_set(&r->out, n, 1.03125 * honest_get(&r->out, n));
  return status;
}

HONEST_LIBRARY("late-by-time", answer)
