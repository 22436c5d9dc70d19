/* What the library of library_kernel.c does wrong where that takes more than a line: memory, processes, threads. */
#define _GNU_SOURCE
#include "misbehaving_library.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define VARIANT ((int)LIBRARY_VARIANT)

#if !defined(EXPORTS_NOTHING)

static jmp_buf gone;
/* Volatile: a compiler that knows it to be NULL may leave out the function that writes there. */
static int* volatile nowhere;

#ifdef __SSE2__
static void set_mxcsr(unsigned bits) {
  _mm_setcsr(_mm_getcsr() | bits);
}
static void cut_x87(void) {
  unsigned short control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  control = (unsigned short)((control & ~0x300u) | 0x200u);
  __asm__ volatile("fldcw %0" : : "m"(control));
}
static void change_environment(void) {
  switch (VARIANT) {
    case ROUNDS_SSE:
    case ROUNDS_IN_MANIFEST:
      set_mxcsr(0x4000);
      break;
    case FLUSHES:
    case FLUSHES_AT_LOAD:
      set_mxcsr(0x8040);
      break;
    case READS_AS_ZERO:
      set_mxcsr(0x40);
      break;
    case CUTS_X87:
      cut_x87();
      break;
    case UNMASKS:
      _mm_setcsr(_mm_getcsr() & ~0x280u);
      break;
    default:
      break;
  }
}
#else
static void change_environment(void) {}
#endif

/* Into the group of whoever started us: who kills ours finds nobody there. */
static void leave_group(void) {
  if (setpgid(0, getpgid(getppid())) != 0) abort();
}

/* A grandchild in a session of its own, whose parent is gone. */
static void start_daemon(void) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const pid_t grandchild = fork();
    if (grandchild == 0) sleep(600);
    if (grandchild != 0) fprintf(stderr, "daemon %ld\n", (long)grandchild);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void print_much(void) {
  static char line[1 << 12];
  memset(line, 'x', sizeof line);
  line[sizeof line - 1] = '\n';
  for (int i = 0; i < 16 << 8; ++i)
    if (write(2, line, sizeof line) < 0) abort();
  fprintf(stderr, "the last line\n");
}

static void crash(int signal) {
  (void)signal;
  *nowhere = 1;
}

__attribute__((constructor)) static void at_load(void) {
  if (VARIANT == FLUSHES_AT_LOAD) change_environment();
  if (VARIANT == CRASHES_AT_LOAD) *nowhere = 1;
  if (VARIANT == EXITS_AT_LOAD) exit(0);
}

const char* manifest_of_variant(void) {
  static char text[256];
  switch (VARIANT) {
    case ROUNDS_IN_MANIFEST:
      change_environment();
      return NULL;
    case CRASHES_IN_MANIFEST:
      abort();
    case LEAVES_GROUP_IN_MANIFEST:
      leave_group();
      for (;;) sleep(60);
    case JUMPS_OUT:
      if (setjmp(gone) != 0) abort();
      return NULL;
    case CHANGES_MANIFEST:
      snprintf(text, sizeof text, "{\"name\": \"library %ld\", \"dtypes\": [\"f64\"], \"masks\": []}", (long)getpid());
      return text;
    default:
      return NULL;
  }
}

/* Deep enough for any stack; the volatile array keeps the compiler from making a loop of it. */
static int recurse(int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return depth > (1 << 30) ? 0 : recurse(depth + 1) + room[0];
}

static void eat_memory(void) {
  const size_t piece = (size_t)16 << 20;
  for (;;) {
    char* const more = mmap(NULL, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED) break;
    for (size_t i = 0; i < piece; i += 4096) more[i] = 1;
  }
  *nowhere = 1;
}

static double* late_out;

static void* late(void* unused) {
  (void)unused;
  usleep(50000);
  if (VARIANT == CRASHES_LATE) *nowhere = 1;
  if (VARIANT == WRITES_LATE) *late_out = 1;
  if (VARIANT == KEEPS_THREADS) sleep(600);
  return NULL;
}

static void start_thread(attest_result* r) {
  pthread_t thread;
  late_out = r->out.data;
  if (pthread_create(&thread, NULL, late, NULL) == 0) pthread_detach(thread);
}

#ifdef NEEDS_MISSING
int attest_test_stub(void);
#endif
#ifdef HAS_UNDEFINED
int attest_test_defined_nowhere(void);
#endif

/* One element past tensor number scale / 2 of q, k, v and out, dense and of doubles: behind it where scale is odd. */
static void read_past(const attest_problem* p, const attest_result* r) {
  const attest_tensor* const tensors[4] = {&p->q, &p->k, &p->v, &r->out};
  const int which = (int)p->scale;
  const attest_tensor* const t = tensors[which / 2 % 4];
  const int64_t size = t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
  const volatile double seen = ((const volatile double*)t->data)[which % 2 != 0 ? size : -1];
  (void)seen;
}

int misbehave_further(int call, const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  static const struct rlimit none = {0, 0};
  volatile int zero = 0;
  volatile char seen;
  switch (VARIANT) {
    case WRITES_FAR:
      ((volatile char*)r->out.data)[1 << 20] = 0;
      break;
    case WRITES_BEFORE:
      ((volatile char*)p->q.data)[-200] = 0;
      break;
    case READS_FAR:
      seen = ((const volatile char*)p->q.data)[-(1 << 20)];
      (void)seen;
      break;
#ifdef __SSE2__
    case NEEDS_ALIGNMENT:
      __asm__ volatile("movapd (%0), %%xmm0" : : "r"(p->k.data) : "xmm0");
      break;
#endif
    case READS_PAST:
      read_past(p, r);
      break;
    case UNMAPS:
      munmap((void*)((uintptr_t)p->k.data & ~(uintptr_t)4095), 4096);
      break;
    case CHANGES_INPUT:
      ((unsigned char*)p->k.data)[0] ^= 1;
      break;
    case RUNS_OVER_MESSAGE:
      for (size_t i = 0; i <= message_size; ++i) ((volatile char*)message)[i] = 'm';
      break;
    case OVERFLOWS_STACK:
      return recurse(0);
    case EATS_MEMORY:
      eat_memory();
      break;
    case ROUNDS_SSE:
    case FLUSHES:
    case READS_AS_ZERO:
    case CUTS_X87:
    case UNMASKS:
      change_environment();
      break;
    case QUITS:
      _exit(0);
    case STOPS:
      raise(SIGSTOP);
      break;
    case DIVIDES_BY_ZERO:
      return 7 / zero;
    case FORKS:
      return fork() < 0 ? 7 : 0;
    case LEAVES_CHILD:
    case DIES_WITH_CHILD: {
      const pid_t child = fork();
      if (child == 0) {
        sleep(600);
        _exit(0);
      }
      fprintf(stderr, "child %ld\n", (long)child);
      if (VARIANT == DIES_WITH_CHILD) _exit(3);
      break;
    }
    case LEAVES_GROUP:
      leave_group();
      fprintf(stderr, "worker %ld\n", (long)getpid());
      for (;;) sleep(60);
    case LEAVES_DAEMON:
      start_daemon();
      break;
    case SPINS:
      fprintf(stderr, "worker %ld\n", (long)getpid());
      start_daemon();
      for (;;) zero = 0;
    case PRINTS_MUCH:
      print_much();
      break;
    case KILLS_PARENT:
      fprintf(stderr, "worker %ld\n", (long)getpid());
      kill(getppid(), SIGKILL);
      for (;;) sleep(60);
    case WRITES_TO_CONNECTION:
      return write(3, "hello", 5) == 5 ? 0 : 7;
    case WRITES_TO_MEMORY_FILE:
      return write(4, "hello", 5) == 5 ? 0 : 7;
    case CUTS_MEMORY_FILE:
      return ftruncate(4, 0) != 0 ? 0 : 7;
    case CHANGES_DIRECTORY:
      return chdir("/") == 0 ? 0 : 7;
    case TAKES_DESCRIPTORS:
      return setrlimit(RLIMIT_NOFILE, &none) == 0 ? 0 : 7;
    case JUMPS_OUT:
      longjmp(gone, 1);
    case CHANGES_MANIFEST:
      abort();
    case KEEPS_THREADS:
    case WRITES_LATE:
    case CRASHES_LATE:
      if (call == 2) start_thread(r);
      break;
    case CRASHES_IN_FIRST_THREAD:
      signal(SIGALRM, crash);
      alarm(1);
      break;
    case CRASHES_EVERY_TENTH:
      if (call % 10 == 0) abort();
      break;
#ifdef NEEDS_MISSING
    case GOOD:
      return attest_test_stub();
#endif
#ifdef HAS_UNDEFINED
    case USES_UNDEFINED:
      return attest_test_defined_nowhere();
#endif
    default:
      break;
  }
  return 0;
}

#endif
