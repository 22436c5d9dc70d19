#include "reports/run/in_parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace attest {

void in_parallel(std::size_t count, int jobs, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto job = [&] {
    try {
      for (std::size_t n = next++; n < count; n = next++) work(n);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < jobs; ++i) threads.emplace_back(job);
    job();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace attest
