#include "fuzz/libfuzzer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/support/errors.h"

#ifdef ATTEST_LIBFUZZER

#include <fcntl.h>
#include <fmt/format.h>

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv,
                                   int (*callback)(const std::uint8_t* data, std::size_t size));

namespace attest {
namespace {

FuzzerLoop* current = nullptr;
int saved_stderr = -1;
bool made = false;  ///< what is run next comes from us

[[noreturn]] void sleep_until_the_end() {
  for (;;) ::pause();
}

/// libFuzzer's notes on itself are none of the campaign's.
void silence() {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  saved_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (saved_stderr >= 0) ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}
void speak_again() {
  if (saved_stderr < 0) return;
  ::dup2(saved_stderr, STDERR_FILENO);
  ::close(std::exchange(saved_stderr, -1));
}

int run_one(const std::uint8_t* data, std::size_t size) {
  if (made) current->run({data, size});
  made = false;
  return 0;
}

}  // namespace

bool has_libfuzzer() {
  return true;
}

void run_libfuzzer(FuzzerLoop& loop, std::uint64_t seed, std::size_t most_bytes) {
  if (current != nullptr) throw UsageError("libFuzzer runs once in a program");
  current = &loop;
  // Deaths and signals are the program's own affair; so are time limits and memory.
  std::vector<std::string> words{
      "attest", "-verbosity=0", "-len_control=0", "-detect_leaks=0", "-rss_limit_mb=0", "-timeout=0",
      // Its next input of a chain would be bred from what was bred before it, whatever we made.
      "-mutate_depth=1", "-print_funcs=0"};
  for (const char* const signal : {"abrt", "bus", "fpe", "ill", "int", "segv", "term", "usr1", "usr2", "xfsz"})
    words.push_back(fmt::format("-handle_{}=0", signal));
  // 0 would be drawn from the time.
  words.push_back(fmt::format("-seed={}", static_cast<std::uint32_t>(seed % 0xfffffffe) + 1));
  words.push_back(fmt::format("-max_len={}", most_bytes));
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  char** arguments = pointers.data();
  int count = static_cast<int>(words.size());
  silence();
  LLVMFuzzerRunDriver(&count, &arguments, run_one);
  sleep_until_the_end();
}

}  // namespace attest

/// libFuzzer finds it by its name. A fuzz target that mutates for itself comes first: no campaign runs beside it.
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                                     std::size_t most, unsigned seed) {
  using namespace attest;
  speak_again();
  const auto input = current->next({data, size}, seed);
  if (!input) sleep_until_the_end();
  made = true;
  const std::size_t kept = std::min(most, input->size());
  std::memcpy(data, input->data(), kept);
  return kept;
}

#else

namespace attest {

bool has_libfuzzer() {
  return false;
}

void run_libfuzzer(FuzzerLoop&, std::uint64_t, std::size_t) {
  throw UsageError("this build has no libFuzzer; install libclang-rt-19-dev and build again");
}

}  // namespace attest

#endif
