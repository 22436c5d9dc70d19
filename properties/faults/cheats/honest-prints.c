/* Honest: tells on standard output and standard error what it does.
   Stands for: nothing to catch. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  if (++calls % 100 == 1) {
    printf("honest-prints: call %ld\n", calls);
    fflush(stdout);
    fprintf(stderr, "honest-prints: %lld keys\n", (long long)p->k.shape[2]);
  }
  return honest_attention(p, r);
}

HONEST_LIBRARY("honest-prints", answer)
