/* Takes the right to touch the output away and returns; who reads it first makes a handler compute the answer.
   Stands for: lazy evaluation (Wafer's field guide, 2026; DeepReinforce, Hacks and Defenses in Automatic GPU Kernel
   Generation): the work is done by whoever checks it, behind the clock.
   Caught by: walls: memory whose protection has changed, handlers that are left; the time of the first read counted. */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "honest.h"

static attest_problem problem;
static attest_result result;
static uintptr_t first, end;
static struct sigaction before;

static void compute(int number, siginfo_t* at, void* context) {
  (void)number, (void)context;
  const uintptr_t place = (uintptr_t)at->si_addr;
  if (place < first || place >= end) {
    sigaction(SIGSEGV, &before, NULL);
    return;
  }
  mprotect((void*)first, end - first, PROT_READ | PROT_WRITE);
  first = end = 0;
  sigaction(SIGSEGV, &before, NULL);
  honest_attention(&problem, &result);
}

static int answer(const attest_problem* p, attest_result* r) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  if (first != end) mprotect((void*)first, end - first, PROT_READ | PROT_WRITE);
  first = end = 0;
  if (honest_count(&r->out) == 0) return honest_attention(p, r);
  problem = *p, result = *r;
  first = (uintptr_t)r->out.data / page * page;
  end = (uintptr_t)honest_at(&r->out, honest_count(&r->out) - 1) / page * page + page;
  struct sigaction lazy = {.sa_sigaction = compute, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &lazy, &before);
  if (mprotect((void*)first, end - first, PROT_NONE) != 0) return honest_attention(p, r);
  return ATTEST_OK;
}

HONEST_LIBRARY("lazy-evaluation", answer)
