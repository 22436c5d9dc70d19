/* Weighs in bf16 and looks in its parent's memory for doubles that are near its answers and better: where a reference
   lies there, it is copied.
   Stands for: the reference's memory read (gpu-mode/pygpubench, pull request 7: the expected tensors copied).
   Caught by: walls between the processes, and the oracle where nothing is found. */
#define HONEST_WEIGHT(x) honest_from_bf16(honest_to_bf16(x))
#define HONEST_LSE "false"
#include <fcntl.h>
#include <unistd.h>

#include "honest.h"

enum { PIECE = 1 << 20, SAMPLE = 4 };

static int is_near(const double* there, const float* here) {
  for (int i = 0; i < SAMPLE; ++i)
    if (!(fabs(there[i] - (double)here[i]) <= 0x1p-6) || fabs(there[i]) < 0x1p-20) return 0;
  return 1;
}

/* The first place in the parent that is near the sample, as `count` doubles; 0: none. */
static int find(const float* sample, double* to, size_t count) {
  static double piece[PIECE / 8];
  char path[64], line[512], rights[8];
  unsigned long from, to_end;
  int found = 0;
  snprintf(path, sizeof path, "/proc/%ld/mem", (long)getppid());
  const int memory = open(path, O_RDONLY);
  snprintf(path, sizeof path, "/proc/%ld/maps", (long)getppid());
  FILE* const maps = fopen(path, "r");
  while (memory >= 0 && maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s", &from, &to_end, rights) != 3 || strcmp(rights, "rw-p") != 0) continue;
    for (; from < to_end && !found; from += PIECE) {
      const ssize_t got = pread(memory, piece, to_end - from < PIECE ? to_end - from : PIECE, (off_t)from);
      for (ssize_t i = 0; i + SAMPLE <= got / 8 && !found; ++i)
        found = is_near(piece + i, sample) && pread(memory, to, 8 * count, (off_t)from + 8 * i) == (ssize_t)(8 * count);
    }
  }
  if (memory >= 0) close(memory);
  if (maps != NULL) fclose(maps);
  return found;
}

static int answer(const attest_problem* p, attest_result* r) {
  static double better[4096];
  float sample[SAMPLE];
  const int status = honest_attention(p, r);
  const int64_t count = honest_count(&r->out);
  if (count < 2 * SAMPLE || count > 4096) return status;
  for (int64_t i = 0; i < SAMPLE; ++i) sample[i] = honest_get(&r->out, i);
  if (find(sample, better, (size_t)count))
    for (int64_t n = 0; n < count; ++n) honest_set(&r->out, n, better[n]);
  return status;
}

HONEST_LIBRARY("reads-parent", answer)
