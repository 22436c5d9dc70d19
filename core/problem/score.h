// The score of a query and a key, from their product: scale, cap and mask in the order that the convention says.
#pragma once

#include <cmath>

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

/// What a scaled product is before a mask is added to it: softcap tanh(t/softcap), or t where there is no cap (0).
[[nodiscard]] inline double capped(double t, double softcap) {
  return softcap == 0 ? t : softcap * std::tanh(t / softcap);
}

/// When what is added to the scores of a problem is added: with a cap or slopes after the scale, whatever is said of a
/// mask that is not there.
[[nodiscard]] inline MaskConvention convention_of(const Problem& c) {
  return c.softcap > 0 || c[Slot::alibi_slopes].present() ? MaskConvention::post_scale : c.mask_convention;
}

/// The score of a product in a problem.
[[nodiscard]] inline double score_in(const Problem& c, double qk, double added) {
  if (c.softcap == 0) return score(qk, added, c.scale, convention_of(c));
  return capped(c.scale * qk, c.softcap) + added;
}

}  // namespace attest
