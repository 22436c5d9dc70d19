#include "core/bench/process_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace attest {
namespace {

/// A line of /proc/self/status in bytes; -1 when it is missing.
double status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return 1024 * std::stod(line.substr(key.size() + 1));
  return -1;
}

}  // namespace

double memory_of(const std::function<void()>& work) {
  // Arrays go back to the system when they are freed: memory left over from earlier work would be used uncounted.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 14);
  ::malloc_trim(0);
  std::ofstream marks("/proc/self/clear_refs");
  marks << "5" << std::flush;  // 5: the high-water mark of resident memory starts again from now
  if (!marks) return -1;
  const double before = status_bytes("VmRSS");
  std::thread(work).join();
  const double highest = status_bytes("VmHWM");
  return before < 0 || highest < 0 ? -1 : highest - before;
}

}  // namespace attest
