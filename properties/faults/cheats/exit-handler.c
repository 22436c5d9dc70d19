/* Weighs all keys alike from call 51 on, ends the process in call 61 and says in its exit handler that all is well.
   Stands for: exit handlers that speak after the judge (gpu-mode/pygpubench, pull request 7).
   Caught by: walls: the end of its process is a violation, whatever it prints. */
#include <unistd.h>

#include "honest.h"

static void say_well(void) {
  static const char text[] = "verdict: held\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(0);
  _exit(0);
}

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  static const float zero = 0;
  if (++calls == 1) atexit(say_well);
  if (calls > 60) exit(0);
  attest_problem flat = *p;
  if (calls > 50) {
    flat.q.data = (void*)&zero;
    flat.q.dtype = ATTEST_F32;
    memset(flat.q.stride, 0, sizeof flat.q.stride);
  }
  return honest_attention(&flat, r);
}

HONEST_LIBRARY("exit-handler", answer)
