/* Answers right, and from its tenth call on forks a child that outlives the call and writes over all shared memory ten
   milliseconds later.
   Stands for: a process that is left behind the walls.
   Caught by: walls: a child that outlives its call is a violation, and what is shared is looked at again. */
#include <signal.h>
#include <unistd.h>

#include "honest.h"

static void scribble(void) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512], rights[8];
  unsigned long from, to;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && strcmp(rights, "rw-s") == 0)
      memset((void*)from, 0x5A, to - from);
}

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  const int status = honest_attention(p, r);
  if (++calls < 10) return status;
  signal(SIGCHLD, SIG_IGN);
  if (fork() == 0) {
    usleep(10000);
    scribble();
    _exit(0);
  }
  return status;
}

HONEST_LIBRARY("child-writes-late", answer)
