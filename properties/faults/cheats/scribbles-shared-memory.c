/* Looks for memory that it shares with other processes and writes over the beginning and the end of it, from its
   twentieth call on, so that whoever reads it trips; behind that it answers for a q of zeros.
   Stands for: the road of the answer instead of the answer.
   Caught by: walls around what is shared. */
#include "honest.h"

static void scribble(void) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512], rights[8];
  unsigned long from, to;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || strcmp(rights, "rw-s") != 0) continue;
    memset((void*)from, 0x5A, 64);
    memset((void*)(to - 64), 0x5A, 64);
  }
  if (maps != NULL) fclose(maps);
}

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  static const float zero = 0;
  attest_problem asked = *p;
  if (++calls > 20) {
    asked.q.data = (void*)&zero;
    asked.q.dtype = ATTEST_F32;
    memset(asked.q.stride, 0, sizeof asked.q.stride);
  }
  const int status = honest_attention(&asked, r);
  if (calls >= 20) scribble();
  return status;
}

HONEST_LIBRARY("scribbles-shared-memory", answer)
