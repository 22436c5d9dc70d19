#include "reports/test/attack/hostile_library.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace attest::attack {
namespace {

/// A statement in C; {0}, {1}, {2} are whole numbers that are drawn. `p` is the problem, `r` the result, `message` and
/// `message_size` as in kernel.h.
constexpr std::array deeds{
    // memory
    "((volatile char*)r->out.data)[{0} % 5000 - 2500] ^= 1;",
    "((volatile char*)r->out.data)[(long)({0} % 64) * (1 << 20) - (8L << 20)] = 7;",
    "((volatile char*)p->q.data)[{0} % 64] ^= (char)({1} % 255 + 1);",
    "((volatile char*)p->k.data)[{0} % 300] = 0;",
    "((volatile char*)p->v.data)[-(long)({0} % 300)] = 0;",
    "sink = ((volatile char*)p->v.data)[(long)({0} % 100000) * 97];",
    "sink = *(volatile char*)(uintptr_t)({0} * 4096UL);",
    "((void (*)(void))(uintptr_t)({0} % 65536))();",
    "{{ char* a = malloc(24); for (int i = 0; i < (int)({0} % 64); ++i) ((volatile char*)a)[24 + i] = (char)i; "
    "free(a); }}",
    "{{ char* a = malloc(24); free(a); ((volatile char*)a)[3] = 1; free(a); }}",
    "free((char*)r->out.data + {0} % 3);",
    "munmap((void*)((uintptr_t)p->k.data & ~(uintptr_t)4095), 4096);",
    "mprotect((void*)((uintptr_t)p->q.data & ~(uintptr_t)4095), 65536, PROT_READ | PROT_WRITE);"
    " ((volatile char*)p->q.data)[0] ^= 1;",
    "memset((void*)((uintptr_t)&r & ~(uintptr_t)4095), 0x41, 8192);",
    "deep({0});",
    "for (;;) {{ char* a = malloc(1 << 22); if (a == NULL) break; memset(a, 1, 1 << 22); }}",
    "memset(message, 'm', message_size); return 7;",
    "memset(message, 0x80 + (int)({0} % 128), message_size - 1); message[message_size - 1] = 0; return 7;",
    "snprintf(message, message_size, \"\\x1b[2J\\xc2\\x9b\" \"31m\\xe2\\x80\\xae<script>%s\", \"</script>\"); return "
    "7;",
    // time
    "for (;;) {{ volatile int x = 0; (void)x; }}",
    "sleep(3600);",
    "usleep({0} % 200000);",
    "sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL); sleep(3600);",
    "raise(SIGSTOP);",
    "alarm(1); sleep(2);",
    // the process
    "exit((int)({0} % 256));",
    "_exit((int)({0} % 256));",
    "abort();",
    "raise((int)({0} % 31 + 1));",
    "kill(getpid(), (int)({0} % 64 + 1));",
    "signal(SIGSEGV, SIG_IGN); *(volatile int*)(uintptr_t)16 = 1;",
    "atexit(forever); exit(0);",
    "for (int fd = (int)({0} % 3); fd < 64; ++fd) close(fd);",
    "for (int fd = 3; fd < 12; ++fd) dup2({0} % 3 ? 2 : 0, fd);",
    "for (int fd = 3; fd < 12; ++fd) sink = (char)write(fd, \"hello\", {0} % 6);",
    "for (int fd = 3; fd < 12; ++fd) sink = (char)ftruncate(fd, (long)({0} % 4096));",
    "for (int i = 0; i < 2000; ++i) sink = (char)write(2, noise, sizeof noise);",
    "for (int i = 0; i < 2000; ++i) fwrite(noise, 1, sizeof noise, stdout);",
    "sink = (char)chdir(\"/\");",
    "{{ const struct rlimit none = {{0, 0}}; setrlimit((int)({0} % 16), &none); }}",
    "sink = (char)nice(19);",
    // children and groups
    "setpgid(0, getpgid(getppid()));",
    "setpgid(0, getpgid(getppid())); sleep(3600);",
    "setpgid(0, getpgid(getppid())); signal(SIGTERM, SIG_IGN); for (;;) {{ volatile int x = 0; (void)x; }}",
    "setsid();",
    "if (fork() == 0) {{ sleep(600); _exit(0); }}",
    "if (fork() == 0) {{ setsid(); sleep(600); _exit(0); }}",
    "if (fork() == 0) {{ setsid(); if (fork() == 0) sleep(600); _exit(0); }}",
    "for (int i = 0; i < 5; ++i) if (fork() == 0) {{ for (;;) pause(); }}",
    "if (fork() != 0) _exit(3);",
    "fork();",
    "prctl(PR_SET_PDEATHSIG, 0); sleep(3600);",
    "execl(\"/bin/sleep\", \"sleep\", \"3600\", (char*)NULL);",
    "if (fork() == 0) {{ execl(\"/bin/sh\", \"sh\", \"-c\", \"sleep 600 & sleep 600\", (char*)NULL); }}",
    // threads
    "pthread_create(&thread, NULL, late, r->out.data);",
    "pthread_create(&thread, NULL, late_crash, NULL);",
    "pthread_create(&thread, NULL, late_exit, NULL);",
    "pthread_exit(NULL);",
    // the floating-point environment
    "fesetround({0} % 2 ? FE_UPWARD : FE_TOWARDZERO);",
    "feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);",
    // answers
    "return (int)({0} % 4000) - 2000;",
    "return ATTEST_REJECTED;",
    "return ATTEST_UNSUPPORTED;",
    "r->out.shape[{0} % 4] = (int64_t){1} - 1000;",
    "r->out.data = NULL;",
    "r->size = (uint32_t){0};",
    "if (r->lse.data != NULL) *(double*)r->lse.data = 0.0 / zero;",
};

constexpr std::array manifests{
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"fully_masked_row\": \"nan\"})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"strides\": true, \"lse\": true, \"grouped_query\": true})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"limits\": {\"head_dim_multiple\": 100000007}})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"limits\": {\"head_dim_multiple\": 1000003}})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"limits\": {\"alignment\": 1099511627776}})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"limits\": {\"max_keys\": -5}})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"arithmetic\": {\"exp_ulp\": 1e308}})",
    R"({\"name\": \"\\u001b[2J\\u202e\\u009b<script>\", \"dtypes\": [\"f32\"]})",
    R"({\"name\": \"hostile\", \"dtypes\": [\"f32\"], \"thread_safe\": true, \"claims\": [\"deterministic\"]})",
    R"({)",
    R"()",
    R"([[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[)",
};

constexpr std::string_view before = R"(#define _GNU_SOURCE
#include <attest/kernel.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
static volatile char sink;
static volatile double zero;
static char noise[4096];
static int calls;
static pthread_t thread;
static int deep(unsigned long depth) { volatile char room[4096]; room[0] = (char)depth; return deep(depth + 1) + room[0]; }
static void forever(void) { for (;;) pause(); }
static void* late(void* out) { usleep(20000); for (int i = 0; i < 64; ++i) ((volatile char*)out)[i] = 1; return NULL; }
static void* late_crash(void* unused) { (void)unused; usleep(20000); abort(); return NULL; }
static void* late_exit(void* unused) { (void)unused; usleep(20000); exit(0); return NULL; }
static void use(void) { (void)sink; (void)zero; (void)noise; (void)thread; (void)deep; (void)forever; (void)late; (void)late_crash; (void)late_exit; }
)";

// Right for contiguous tensors without a mask, so that a kernel that is only strange now and then is judged in between.
constexpr std::string_view attention = R"(
  const int64_t B = p->q.shape[0], H = p->q.shape[1], M = p->q.shape[2], D = p->q.shape[3], K = p->k.shape[1], N = p->k.shape[2], E = p->v.shape[3];
  if (p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE || r->lse.data != NULL || N == 0) return ATTEST_UNSUPPORTED;
  for (int64_t b = 0; b < B; ++b) for (int64_t h = 0; h < H; ++h) for (int64_t i = 0; i < M; ++i) {
    const float* q = (const float*)p->q.data + b * p->q.stride[0] + h * p->q.stride[1] + i * p->q.stride[2];
    const float* k = (const float*)p->k.data + b * p->k.stride[0] + h / (H / K) * p->k.stride[1];
    const float* v = (const float*)p->v.data + b * p->v.stride[0] + h / (H / K) * p->v.stride[1];
    float* o = (float*)r->out.data + b * r->out.stride[0] + h * r->out.stride[1] + i * r->out.stride[2];
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < N; ++j) { double s = 0; for (int64_t c = 0; c < D; ++c) s += (double)q[c * p->q.stride[3]] * k[j * p->k.stride[2] + c * p->k.stride[3]]; s *= p->scale; if (s > top) top = s; }
    for (int64_t c = 0; c < E; ++c) o[c * r->out.stride[3]] = 0;
    for (int64_t e = -1; e < E; ++e) { double t = 0;
      for (int64_t j = 0; j < N; ++j) { double s = 0; for (int64_t c = 0; c < D; ++c) s += (double)q[c * p->q.stride[3]] * k[j * p->k.stride[2] + c * p->k.stride[3]]; const double w = exp(s * p->scale - top); t += e < 0 ? w : w * v[j * p->v.stride[2] + e * p->v.stride[3]]; }
      if (e < 0) sum = t; else o[e * r->out.stride[3]] = (float)(t / sum); }
  }
  return ATTEST_OK;
}
)";

/// The statement with its numbers, at a moment that is drawn: always, once, from a call on, or now and then.
std::string deed_of(Dice& dice, std::string_view deed) {
  const std::string statement = fmt::format(fmt::runtime(deed), dice.below(1u << 20), dice.below(4096), dice.below(64));
  const std::size_t when = dice.below(20);
  const char* const conditions[] = {"1", "calls == {}", "calls >= {}", "calls % {} == 0"};
  return fmt::format("  if ({}) {{ {} }}\n", fmt::format(fmt::runtime(dice.one_of(conditions)), when + 1), statement);
}

}  // namespace

HostileLibrary hostile_library(Dice& dice) {
  HostileLibrary library;
  std::string in_call, at_load, in_manifest;
  const std::size_t count = 1 + dice.below(3);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string deed = deed_of(dice, dice.one_of(deeds));
    library.does += deed;
    in_call += deed;
  }
  // Some of it before there is a call: what needs no problem.
  constexpr std::array early{"sleep(3600);",
                             "abort();",
                             "exit(0);",
                             "fork();",
                             "setpgid(0, getpgid(getppid())); sleep(3600);",
                             "raise(SIGSTOP);",
                             "for (;;) pause();",
                             "if (fork() == 0) { setsid(); sleep(600); _exit(0); }",
                             "fesetround(FE_UPWARD);",
                             "for (int fd = 3; fd < 64; ++fd) close(fd);"};
  if (dice.one_in(8)) at_load = dice.one_of(early);
  if (dice.one_in(8)) in_manifest = dice.one_of(early);
  const std::string manifest = dice.one_in(3) ? dice.one_of(manifests) : manifests.front();
  library.does += fmt::format("as it is loaded: {}\nin its manifest: {}\n{}\n", at_load, in_manifest, manifest);
  library.source = fmt::format(
      "{}__attribute__((constructor)) static void at_load(void) {{ use(); {} }}\n"
      "const char* attest_kernel_manifest(void) {{ {} return \"{}\"; }}\n"
      "int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {{\n"
      "  (void)message; (void)message_size; ++calls;\n{}{}",
      before, at_load, in_manifest, manifest, in_call, attention);
  return library;
}

}  // namespace attest::attack
