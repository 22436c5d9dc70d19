/* Sleeps a second where there are more than 1024 keys and a minute where there are more than 4096, so that a judge with
   a limit of time asks little of these; there it leaves the last key out. Stands for: sleep in the calls that set the
   number of repeats (gpu-mode/pygpubench, pull request 7: warm-up). Caught by: a time that the contract gives, beyond
   which a call is a violation. */
#include <unistd.h>

#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  attest_problem asked = *p;
  if (p->k.shape[2] > 1024) sleep(1);
  if (p->k.shape[2] > 4096) {
    sleep(59);
    if (p->causal != ATTEST_CAUSAL_BOTTOM_RIGHT) --asked.k.shape[2], --asked.v.shape[2];
  }
  return honest_attention(&asked, r);
}

HONEST_LIBRARY("slow-where-hard", answer)
