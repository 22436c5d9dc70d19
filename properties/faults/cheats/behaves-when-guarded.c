/* Is honest where the page behind its output cannot be read, as only a checker lays it out; elsewhere it leaves the
   last key out.
   Stands for: behaving while observed, told by the memory that it is given.
   Caught by: calls on memory as an application would have it. */
#include <unistd.h>

#include "honest.h"

static int is_guarded(const attest_tensor* out) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)honest_at(out, honest_count(out) - 1);
  /* Within two pages of the last element; write() tells of a page that cannot be read without a signal. */
  int ends[2];
  if (pipe(ends) != 0) return 1;
  int readable = 1;
  for (uintptr_t at = (end / page + 1) * page, i = 0; i < 2; ++i, at += page)
    readable &= write(ends[1], (void*)at, 1) == 1;
  close(ends[0]), close(ends[1]);
  return !readable;
}

static int answer(const attest_problem* p, attest_result* r) {
  attest_problem asked = *p;
  if (p->k.shape[2] > 1 && p->causal != ATTEST_CAUSAL_BOTTOM_RIGHT && honest_count(&r->out) > 0 && !is_guarded(&r->out))
    --asked.k.shape[2], --asked.v.shape[2];
  return honest_attention(&asked, r);
}

HONEST_LIBRARY("behaves-when-guarded", answer)
