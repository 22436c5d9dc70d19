// The threads of a run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attest {

/// Work on several threads that somebody waits for. What one of them throws ends none of the others by itself: they ask
/// failed().
class Jobs {
 public:
  /// Begins work on a thread of its own.
  void start(std::function<void()> work);
  /// Counts work on a thread that nobody joins until end_apart() is called.
  void begin_apart();
  void end_apart();
  /// Keeps the first error. Safe from any thread.
  void fail(std::exception_ptr error);
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// Waits until all have ended, calls `tick` ten times a second meanwhile, and throws the first error, be it of a job
  /// or of `tick`.
  void wait(const std::function<void()>& tick);

 private:
  std::mutex mutex_;  ///< guards running_ and error_
  std::condition_variable one_ended_;
  int running_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
  std::vector<std::jthread> threads_;  ///< the last member: joined before the others go
};

/// Calls work(n) once for each n from 0 to count - 1, in that order, on `jobs` threads, each of which takes the next n
/// when it has ended one. After one has thrown no more are begun, and it is thrown here when all have ended.
void in_parallel(std::size_t count, int jobs, const std::function<void(std::size_t)>& work);

}  // namespace attest
