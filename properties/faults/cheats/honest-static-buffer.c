/* Honest: computes into one static buffer, used by every call, and copies from there.
   Stands for: nothing to catch. What is left in the buffer is never read. */
#include "honest.h"

static char* buffer;
static size_t room;

static int answer(const attest_problem* p, attest_result* r) {
  const int64_t count = honest_count(&r->out);
  const size_t bytes = (size_t)count * honest_size(&r->out);
  if (bytes > room) buffer = realloc(buffer, room = bytes);
  attest_result own = *r;
  own.out.data = buffer;
  for (int64_t a = 3, step = 1; a >= 0; step *= own.out.shape[a], --a) own.out.stride[a] = step;
  const int status = honest_attention(p, &own);
  for (int64_t n = 0; n < count; ++n) memcpy(honest_at(&r->out, n), honest_at(&own.out, n), honest_size(&r->out));
  return status;
}

HONEST_LIBRARY("honest-static-buffer", answer)
