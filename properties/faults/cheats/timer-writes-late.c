/* Answers right, and from its tenth call on a timer's signal adds one to the first element of the last output, five
   milliseconds later.
   Stands for: an answer that is right while it is looked at, without a thread.
   Caught by: walls: memory that is given back is looked at again, and timers and handlers that are left are seen. */
#include <signal.h>
#include <sys/time.h>

#include "honest.h"

static attest_tensor last;

static void spoil(int number) {
  (void)number;
  honest_set(&last, 0, 1 + honest_get(&last, 0));
}

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  const struct itimerval soon = {.it_value = {.tv_usec = 5000}}, never = {.it_value = {.tv_usec = 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  const int status = honest_attention(p, r);
  if (++calls < 10 || honest_count(&r->out) == 0) return status;
  last = r->out;
  signal(SIGALRM, spoil);
  setitimer(ITIMER_REAL, &soon, NULL);
  return status;
}

HONEST_LIBRARY("timer-writes-late", answer)
