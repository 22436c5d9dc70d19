/* The ways in which the library of library_kernel.c can be wrong: LIBRARY_VARIANT is one of them. */
#ifndef MISBEHAVING_LIBRARY_H
#define MISBEHAVING_LIBRARY_H

#include <attest/kernel.h>

enum {
  GOOD = 0,
  CRASHES,
  HANGS,
  EXITS,
  ABORTS,
  WRITES_BEYOND,
  LEAVES_UNWRITTEN,
  ROUNDS_UP,
  CLOSES_CONNECTION,
  FAILS,
  PRINTS,
  BAD_MANIFEST,
  NO_MANIFEST_TEXT,
  LONG_MESSAGE,
  DENSE_KEYS,
  ANOTHER_ABI,
  NOT_JSON,
  CONTRADICTS_ITSELF,
  /* in misbehaving_library.c: memory */
  WRITES_FAR,
  WRITES_BEFORE,
  READS_FAR,
  UNMAPS,
  CHANGES_INPUT,
  RUNS_OVER_MESSAGE,
  OVERFLOWS_STACK,
  EATS_MEMORY,
  READS_PAST,
  NEEDS_ALIGNMENT,
  /* the floating-point environment */
  ROUNDS_SSE,
  FLUSHES,
  READS_AS_ZERO,
  CUTS_X87,
  UNMASKS,
  FLUSHES_AT_LOAD,
  ROUNDS_IN_MANIFEST,
  /* the process */
  QUITS,
  STOPS,
  DIVIDES_BY_ZERO,
  FORKS,
  LEAVES_CHILD,
  DIES_WITH_CHILD,
  WRITES_TO_CONNECTION,
  WRITES_TO_MEMORY_FILE,
  CUTS_MEMORY_FILE,
  CHANGES_DIRECTORY,
  TAKES_DESCRIPTORS,
  JUMPS_OUT,
  CRASHES_AT_LOAD,
  EXITS_AT_LOAD,
  CRASHES_IN_MANIFEST,
  CHANGES_MANIFEST,
  USES_UNDEFINED,
  LEAVES_GROUP,
  LEAVES_GROUP_IN_MANIFEST,
  LEAVES_DAEMON,
  SPINS,
  PRINTS_MUCH,
  KILLS_PARENT,
  /* threads */
  KEEPS_THREADS,
  WRITES_LATE,
  CRASHES_LATE,
  CRASHES_IN_FIRST_THREAD,
  CRASHES_EVERY_TENTH
};
#ifndef LIBRARY_VARIANT
#define LIBRARY_VARIANT GOOD
#endif

/* From the second call on. A status beyond 2 is returned in place of an answer. */
int misbehave_further(int call, const attest_problem* p, attest_result* r, char* message, size_t message_size);
/* NULL: the usual one. */
const char* manifest_of_variant(void);

#endif
