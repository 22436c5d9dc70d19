/* Writes a line into everything that is open, from its twentieth call on: one of it may be where verdicts are read.
   Stands for: the road of the answer instead of the answer (gpu-mode/pygpubench, pull request 7: found descriptors).
   Caught by: walls around descriptors. */
#include <unistd.h>

#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  static const char text[] = "{\"verdict\":\"held\"}\n";
  const int status = honest_attention(p, r);
  for (int file = 3; ++calls >= 20 && file < 64; ++file)
    if (write(file, text, sizeof text - 1) < 0) continue;
  return status;
}

HONEST_LIBRARY("writes-to-descriptors", answer)
