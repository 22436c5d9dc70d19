// Laws about functions that only the generic core has: two of them, or one on two problems, on the scalar that a kernel
// "core:SCALAR" names.
#pragma once

#include <span>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/core_functions.h"
#include "core/measure/verdict.h"

namespace attest {

/// One of the core's functions of a case, such as &CoreFunctions::multihead.
using CoreFunction = Values (*CoreFunctions::*)(const Case&);

/// The core's functions on the kernel's scalar where two expressions of one number have the same bits there; null for
/// any other kernel, and where the order of factors tells (CoreFunctions::commutes).
[[nodiscard]] const CoreFunctions* core_of_bits(const Kernel& kernel);
/// Skipped, and says so: the property is about the core's functions, and core_of_bits has none.
[[nodiscard]] Verdict about_the_core(const Kernel& kernel);

/// left(l) and right(r) bit by bit; skipped without core_of_bits, and where the core refuses the case (N = 0).
[[nodiscard]] Verdict same_in_core(const Kernel& kernel, CoreFunction left, const Case& l, CoreFunction right,
                                   const Case& r);

/// |left - right| <= allowed[e], +0 being -0; intervals must overlap to within it. An infinite `allowed` excuses.
[[nodiscard]] Verdict agree_in_core(const Values& left, const Values& right, std::span<const long double> allowed);

/// agree_in_core with nothing allowed: on intervals violated where two of them are apart.
[[nodiscard]] Verdict equal_in_core(const Values& left, const Values& right);
/// The same of left(c) and right(c); skipped without core_of_bits.
template <CoreFunction left, CoreFunction right>
[[nodiscard]] Verdict equal_in_core(Kernel& kernel, const Case& c) {
  const CoreFunctions* const core = core_of_bits(kernel);
  return core == nullptr ? about_the_core(kernel) : equal_in_core((core->*left)(c), (core->*right)(c));
}

/// A matrix of numbers on a scalar, known by their sizes: |exact| <= size, |computed - exact| <= error.
struct Sized {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> size;
  std::vector<long double> error;

  /// Exactly known: the page `page` of the last two axes of a tensor.
  explicit Sized(const Tensor& exact, std::int64_t page = 0);
  Sized(std::int64_t rows, std::int64_t columns);
  [[nodiscard]] Sized transposed() const;
};
/// How a scalar rounds: unit roundoff, and what an operation loses to underflow at most.
struct CoreRounding {
  long double unit = 0, underflow = 0;
  double largest = 0;
  double conversions = 0;  ///< roundings of a double to the scalar
};
[[nodiscard]] CoreRounding rounding_of(const Values& numbers);
/// The product in any order of summation: n roundings a term (error-bounds.md 1.1). Infinite errors where the scalar
/// may overflow.
[[nodiscard]] Sized times(const Sized& a, const Sized& b, const CoreRounding& rounding);
/// scale times each, scale itself rounded.
[[nodiscard]] Sized times(const Sized& a, double scale, const CoreRounding& rounding);
/// Adds the errors of a page to `allowed`.
void allow(std::vector<long double>& allowed, const Sized& page);

}  // namespace attest
