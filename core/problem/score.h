// The score of a query and a key, from their product: scale and mask in the order that the convention says.
#pragma once

#include "core/problem/problem.h"

namespace attest {

/// scale*qk + added, or scale*(qk + added). For every number that has + and *.
template <class T>
[[nodiscard]] constexpr T score(const T& qk, const T& added, const T& scale, MaskConvention convention) {
  return convention == MaskConvention::pre_scale ? scale * (qk + added) : scale * qk + added;
}

/// What the mask adds to a score: scale*added, or added.
template <class T>
[[nodiscard]] constexpr T mask_term(const T& added, const T& scale, MaskConvention convention) {
  return convention == MaskConvention::pre_scale ? scale * added : added;
}

}  // namespace attest
