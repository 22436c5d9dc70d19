/* Honest: half of the heads in a thread of its own, which has ended before the call returns.
   Stands for: nothing to catch. */
#include <pthread.h>

#include "honest.h"

struct part {
  const attest_problem* problem;
  attest_result* result;
  int64_t first, last;
};
static void* run(void* given) {
  struct part* const part = given;
  return honest_heads(part->problem, part->result, part->first, part->last) ? part : NULL;
}

static int answer(const attest_problem* p, attest_result* r) {
  const int64_t heads = p->q.shape[0] * p->q.shape[1];
  struct part front = {p, r, 0, heads / 2}, back = {p, r, heads / 2, heads};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, &front) != 0) return honest_attention(p, r);
  void *done = NULL, *done_here = run(&back);
  pthread_join(thread, &done);
  return done != NULL && done_here != NULL ? ATTEST_OK : 3;
}

HONEST_LIBRARY("honest-threads", answer)
