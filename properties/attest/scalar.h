// A scalar of one's own as a kernel of the generic core: every property of the catalogue on a number class.
//
//   template <>
//   struct attest::ScalarTraits<Mine> : attest::NumberTraits<Mine> {
//     static constexpr std::string_view name = "mine";
//   };
//   ATTEST_CATALOGUE_OF(Mine, attest::add_scalar<Mine>())      // with <attest/gtest.h>
#pragma once

#include <string>

#include "core/definition/bodies/instantiate.h"
#include "core/kernels/bodies/attention.h"
#include "core/kernels/bodies/kernel.h"
#include "core/kernels/bodies/matrices.h"
#include "core/kernels/bodies/multihead.h"
#include "core/kernels/bodies/scores.h"
#include "core/kernels/bodies/weighted.h"
#include "core/kernels/kernel_families.h"
#include "core/scalars/number.h"

namespace attest {

/// Makes "core:NAME", NAME being ScalarTraits<T>::name, a kernel that open_kernels knows in this program, and returns
/// that id. T has +, -, *, / and what core/definition/scalar.h asks of ScalarTraits<T>, which NumberTraits<T> says of a
/// class with std::numeric_limits, exp and log: an infinity and a quiet NaN, and of another base than 2 Boost's `str`.
/// NumberTraits takes exp for good to 8 units in the last place; `rounding()` says otherwise. Eigen's matrices hold T,
/// so Eigen::NumTraits<T> has to be there: <boost/multiprecision/eigen.hpp> has it of Boost's. Before the first kernel
/// is opened, and not for two threads at once; again for the same T it does nothing.
template <class T>
std::string add_scalar() {
  static const CoreFunctions functions = [] {
    CoreFunctions f = detail::named_functions<T>();
    detail::set_matrix_functions<T>(f);
    detail::set_attention_functions<T>(f);
    detail::set_score_functions<T>(f);
    detail::set_weighted_functions<T>(f);
    detail::set_multihead_functions<T>(f);
    return f;
  }();
  const std::string id = "core:" + std::string(functions.scalar);
  if (core_functions(id) == nullptr) add_core_functions(functions);
  add_kernel_family([] { return std::vector<KernelEntry>{detail::core_entry<T>()}; });
  return id;
}

}  // namespace attest
