/* Answers right, and from its tenth call on a thread adds one to the first element twenty milliseconds later.
   Stands for: an answer that is right while it is looked at.
   Caught by: walls: memory that is given back is looked at again, and threads that outlive a call are seen. */
#include <pthread.h>
#include <unistd.h>

#include "honest.h"

static void* spoil(void* given) {
  attest_tensor* const out = given;
  usleep(20000);
  honest_set(out, 0, 1 + honest_get(out, 0));
  free(out);
  return NULL;
}

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  const int status = honest_attention(p, r);
  if (++calls < 10 || honest_count(&r->out) == 0) return status;
  attest_tensor* const out = malloc(sizeof *out);
  pthread_t thread;
  if (out == NULL) return status;
  *out = r->out;
  if (pthread_create(&thread, NULL, spoil, out) == 0)
    pthread_detach(thread);
  else
    free(out);
  return status;
}

HONEST_LIBRARY("thread-spoils-later", answer)
