// The floating-point environment that a kernel is entered with and must leave behind.
#pragma once

#include <cstdint>
#include <string>

namespace attest {

/// What of the environment decides results and traps: rounding direction, flush-to-zero and denormals-are-zero, the
/// precision of x87, the exceptions that raise a signal. Exception flags are no part of it. On x86-64 it is read from
/// MXCSR and the x87 control word, so that a bit that no double shows is seen too; elsewhere found out by arithmetic.
class FloatEnvironment {
 public:
  [[nodiscard]] static FloatEnvironment current();
  /// What the contract promises on entry: round to nearest, subnormals kept, no exception raises a signal.
  [[nodiscard]] static FloatEnvironment standard();
  /// Makes the calling thread's environment this one; off x86-64 the standard one.
  void install() const;
  [[nodiscard]] bool operator==(const FloatEnvironment&) const = default;
  /// In what this differs from `before`, in words that follow "it": "rounds upward, flushes subnormal results to zero
  /// (FTZ)". Empty where it does not.
  [[nodiscard]] std::string difference_from(const FloatEnvironment& before) const;

 private:
  // On x86-64 MXCSR without its flags, and the control word; elsewhere fegetround() and whether subnormals are lost.
  std::uint32_t first_ = 0, second_ = 0;
};

}  // namespace attest
