#include "properties/road/jobs.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace attest {

void Jobs::start(std::function<void()> work) {
  begin_apart();
  threads_.emplace_back([this, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      fail(std::current_exception());
    }
    end_apart();
  });
}

void Jobs::begin_apart() {
  const std::lock_guard lock(mutex_);
  ++running_;
}

void Jobs::end_apart() {
  // Notified under the lock: whoever waits may destroy this as soon as it has seen the last one end.
  const std::lock_guard lock(mutex_);
  --running_;
  one_ended_.notify_one();
}

void Jobs::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  failed_ = true;
}

void Jobs::wait(const std::function<void()>& tick) {
  std::unique_lock lock(mutex_);
  while (!one_ended_.wait_for(lock, std::chrono::milliseconds(100), [&] { return running_ == 0; })) {
    lock.unlock();
    try {
      tick();
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
}

void in_parallel(std::size_t count, int jobs, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  Jobs all;
  for (int i = 0; i < std::max(1, jobs); ++i) {
    all.start([&] {
      for (std::size_t n = next++; n < count && !all.failed(); n = next++) work(n);
    });
  }
  all.wait([] {});
}

}  // namespace attest
