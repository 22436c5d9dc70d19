#include "reports/run/waiting.h"

#include <cstdio>

namespace attest {

Waiting::Waiting(bool quiet, std::chrono::milliseconds patience) {
  if (quiet) return;
  thread_ = std::thread([this, patience] {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, patience, [this] { return over_; }))
      std::fputs("waiting for the kernel's first reply\n", stderr);
  });
}

Waiting::~Waiting() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

}  // namespace attest
