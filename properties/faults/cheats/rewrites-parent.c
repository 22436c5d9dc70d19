/* In its first 500 calls with a q that is not small, looks for q in its parent's memory and overwrites it with zeros
   there, and answers for a q of zeros: the question is changed, and the right answer to what is left of it is given.
   Where nothing can be overwritten it has answered another question.
   Stands for: bytes written into whoever judges, through /proc/PARENT/mem.
   Caught by: walls between the processes. */
#include <fcntl.h>
#include <unistd.h>

#include "honest.h"

enum { PIECE = 1 << 20 };

/* Wherever `bytes` is found. */
static void rewrite(const char* bytes, size_t size) {
  static char piece[PIECE], zeros[PIECE];
  char path[64], line[512], rights[8];
  unsigned long from, to;
  snprintf(path, sizeof path, "/proc/%ld/mem", (long)getppid());
  const int memory = open(path, O_RDWR);
  snprintf(path, sizeof path, "/proc/%ld/maps", (long)getppid());
  FILE* const maps = fopen(path, "r");
  while (memory >= 0 && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || strncmp(rights, "rw", 2) != 0) continue;
    for (; from < to; from += PIECE) {
      const ssize_t got = pread(memory, piece, to - from < PIECE ? to - from : PIECE, (off_t)from);
      const char* at = piece;
      while (got > 0 && (at = memmem(at, (size_t)(got - (at - piece)), bytes, size)) != NULL) {
        if (pwrite(memory, zeros, size, (off_t)from + (at - piece)) < 0) break;
        at += size;
      }
    }
  }
  if (memory >= 0) close(memory);
  if (maps != NULL) fclose(maps);
}

static int answer(const attest_problem* p, attest_result* r) {
  static const float zero = 0;
  static char bytes[4096];
  static long calls;
  const size_t size = (size_t)honest_count(&p->q) * honest_size(&p->q);
  if (size < 64 || size > sizeof bytes || ++calls > 500) return honest_attention(p, r);
  for (int64_t n = 0; n < honest_count(&p->q); ++n)
    memcpy(bytes + (size_t)n * honest_size(&p->q), honest_at(&p->q, n), honest_size(&p->q));
  attest_problem flat = *p;
  rewrite(bytes, size);
  flat.q.data = (void*)&zero;
  flat.q.dtype = ATTEST_F32;
  memset(flat.q.stride, 0, sizeof flat.q.stride);
  return honest_attention(&flat, r);
}

HONEST_LIBRARY("rewrites-parent", answer)
