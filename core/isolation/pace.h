// How fast a kernel is, and how long its calls are waited for where the user has set no limit. A small case has ten
// seconds, and a kernel that does not answer it in them hangs. A large one may honestly take longer: its limit grows
// with its cost (core/problem/cost.h) by the speed of the calls that were answered before, and one that has no answer
// even then proves nothing. The clock decides how long is waited and what is not asked, never whether an answer is
// right.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "core/problem/case.h"

namespace attest {

/// The most that a case is given, in ordinary limits: five minutes. And how many times as long as its cost makes
/// likely.
inline constexpr int longest_limit = 30;
inline constexpr double patience = 10;
/// Costs up to this are small: a kernel that does half a million multiplications a second is done within the ordinary
/// limit.
inline constexpr double small_cost = 0x1p22;
/// After so many late calls, or after its calls have taken so many ordinary limits longer than one in all (ten
/// minutes), a kernel is asked no case as dear as the cheapest of these.
inline constexpr int most_late_calls = 3, most_overtime = 60;

/// Of one kernel, its clones included. Any thread.
class Pace {
 public:
  /// `given` by the user: every call's limit, and none of what follows. `ordinary` is the limit of a small case, and
  /// the least of any.
  Pace(std::optional<std::chrono::milliseconds> given, std::chrono::milliseconds ordinary)
      : given_(given), ordinary_(ordinary) {}

  [[nodiscard]] std::chrono::milliseconds limit_of(const Case& c) const;
  /// Takes note of an answer.
  void answered(const Case& c, std::chrono::nanoseconds took);
  /// Takes note that there was none within limit_of(c). Empty where that is the kernel's fault: a limit was given, or
  /// the case is small. Else what to say of it: its flops, the speed that was measured, and the remedy.
  [[nodiscard]] std::string late(const Case& c, std::chrono::nanoseconds took);
  /// Empty, or why the kernel is not asked this case any more.
  [[nodiscard]] std::string why_not_asked(const Case& c) const;

 private:
  /// The slowest call that was answered among those of costs from a power of two to the next.
  struct Slowest {
    double seconds_per_cost = 0;  ///< 0: none
    double flops = 0, seconds = 0;
  };
  [[nodiscard]] const Slowest* nearest(double cost) const;
  void note_overtime(double cost, std::chrono::nanoseconds took);
  [[nodiscard]] std::string speed_text(double cost) const;

  const std::optional<std::chrono::milliseconds> given_;
  const std::chrono::milliseconds ordinary_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::array<Slowest, 64> by_power_{};
  int late_calls_ = 0;
  std::chrono::nanoseconds overtime_{0};
  double cheapest_ = std::numeric_limits<double>::infinity();  ///< cost of calls beyond the ordinary limit
};

}  // namespace attest
