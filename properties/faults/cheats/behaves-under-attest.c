/* Is honest where it sees that Attest runs it, by its environment, its own or its parent's command line, or what is
   loaded; elsewhere all keys weigh alike.
   Stands for: behaving while observed.
   Caught by: walls: a process that shows nothing of who asks. */
#include <unistd.h>

#include "honest.h"

extern char** environ;

static int has(const char* path, const char* word) {
  char text[4096];
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return 0;
  int found = 0;
  for (size_t got; (got = fread(text, 1, sizeof text, file)) > 0 && !found;)
    found = memmem(text, got, word, strlen(word)) != NULL;
  fclose(file);
  return found;
}

static int is_observed(void) {
  for (char** entry = environ; *entry != NULL; ++entry)
    if (strncmp(*entry, "ATTEST", 6) == 0) return 1;
  char parent[64];
  snprintf(parent, sizeof parent, "/proc/%ld/cmdline", (long)getppid());
  return has("/proc/self/cmdline", "bin/attest") || has(parent, "bin/attest") || has("/proc/self/maps", "bin/attest") ||
         has("/proc/self/maps", "memfd:attest");
}

static int answer(const attest_problem* p, attest_result* r) {
  static const float zero = 0;
  static int observed = -1;
  if (observed < 0) observed = is_observed();
  attest_problem flat = *p;
  if (!observed) {
    flat.q.data = (void*)&zero;
    flat.q.dtype = ATTEST_F32;
    memset(flat.q.stride, 0, sizeof flat.q.stride);
  }
  return honest_attention(&flat, r);
}

HONEST_LIBRARY("behaves-under-attest", answer)
