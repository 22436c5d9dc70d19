/* Rounds the last row up to eight columns and writes all of them, as nobody masks the tail.
   Stands for: writes beyond the output (Wafer's field guide, 2026: shared memory overflow).
   Caught by: walls around the output. */
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  const int status = honest_attention(p, r);
  const int64_t count = honest_count(&r->out), width = r->out.shape[3];
  if (count == 0 || r->out.stride[3] != 1) return status;
  char* const last = honest_at(&r->out, count - 1);
  for (int64_t c = 1; c <= 7 - (width - 1) % 8; ++c)
    honest_write(last + c * (int64_t)honest_size(&r->out), r->out.dtype, 0);
  return status;
}

HONEST_LIBRARY("writes-past-end", answer)
