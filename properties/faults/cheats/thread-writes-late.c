/* Returns at once, and a thread writes the answer two milliseconds later.
   Stands for: work deferred to a thread (Wafer's field guide, 2026, and DeepReinforce's Hacks and Defenses: thread
   injection) or to another stream.
   Caught by: the output read as soon as the call returns. */
#include <pthread.h>
#include <unistd.h>

#include "honest.h"

struct work {
  attest_problem problem;
  attest_result result;
};
static void* run(void* given) {
  struct work* const work = given;
  usleep(2000);
  honest_attention(&work->problem, &work->result);
  free(work);
  return NULL;
}

static int answer(const attest_problem* p, attest_result* r) {
  struct work* const work = malloc(sizeof *work);
  pthread_t thread;
  if (work == NULL) return 3;
  work->problem = *p, work->result = *r;
  if (pthread_create(&thread, NULL, run, work) != 0) return 3;
  pthread_detach(thread);
  return ATTEST_OK;
}

HONEST_LIBRARY("thread-writes-late", answer)
