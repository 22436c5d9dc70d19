// What is said while nothing can be shown yet: a kernel that takes long to start, or to answer for the first time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace attest {

/// Says on standard error, once it has lasted for so long, that the kernel's first reply is waited for; nothing where
/// `quiet`.
class Waiting {
 public:
  explicit Waiting(bool quiet, std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace attest
