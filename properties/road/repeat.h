// Repeating what was violated: whether it comes back at once, whether a kernel started afresh violates it too, and
// where neither is so, which calls before it it takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// A call that a kernel was given.
struct Call {
  Case problem;
  DType output = DType::f32;
  bool want_lse = false;
};
/// Makes the call; what comes back is of no interest.
void make(const Call& call, Kernel& kernel);

/// A violated case, checked as whoever found it does.
using CheckOfKernel = std::function<Verdict(Kernel&)>;

/// In how many of `times` checks at once the case is violated again.
[[nodiscard]] std::int64_t violated_again(const CheckOfKernel& check, Kernel& kernel, std::int64_t times);

/// Starts kernels afresh, as often and as long as it may: a process may take seconds to start. Outlives none of them.
class FreshKernels {
 public:
  using Start = std::function<std::unique_ptr<Kernel>()>;
  FreshKernels(Start start, int most, std::chrono::milliseconds time)
      : start_(std::move(start)), left_(most), time_(time) {}

  /// Is the case violated by a kernel that was started afresh and given these calls first? Nothing where no further one
  /// may be started, or one does not start.
  [[nodiscard]] std::optional<bool> violates(const CheckOfKernel& check, std::span<const Call> before);
  /// The same after steps, whose calls are kept in `made`.
  [[nodiscard]] std::optional<bool> violates_after(const CheckOfKernel& check,
                                                   std::span<const std::function<void(Kernel&)>> steps,
                                                   std::vector<Call>& made);

 private:
  std::unique_ptr<Kernel> next();
  template <class Use>
  std::optional<bool> timed(Use&& use);

  Start start_;
  int left_;
  std::chrono::milliseconds time_;
};

/// The fewest calls found that make a kernel started afresh violate the case, three times out of three: first the last
/// of `history`, more and more of it, then those without which it is not violated are left. Empty: none were found.
[[nodiscard]] std::vector<Call> calls_it_takes(const CheckOfKernel& check,
                                               std::span<const std::function<void(Kernel&)>> history,
                                               FreshKernels& fresh);

}  // namespace attest
