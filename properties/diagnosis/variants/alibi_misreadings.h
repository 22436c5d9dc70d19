// What a wrong kernel may have taken ALiBi slopes for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A row and a key of its sequence, which counts their places by itself.
struct SlopePlace {
  std::int64_t batch = 0, head = 0, row = 0, key = 0;  ///< of the problem
  std::int64_t position = 0;                           ///< p, of the row
  std::int64_t place = 0;                              ///< j, of the key
  double slope = 0;
};
/// What is added to the score of such a pair.
using SlopeTerm = std::function<double(const SlopePlace& at)>;

/// A reading of the slopes of a case. Its words call the position of a row p, and the place of a key j.
struct MisreadSlopes {
  std::string words;      ///< that follow "it computes as if"; with a # for the size, where there is one
  std::int64_t size = 0;  ///< 0: none
  std::string remedy{};   ///< what makes such a kernel right, as a sentence; empty: nothing that an adapter can do
  /// What is added is nearly the same: answers in a narrow format may not tell it from what is meant.
  bool is_near = false;
  /// With other slopes, of f64 where f32 does not hold them, or another alignment; or without slopes, and what the
  /// reading makes of scores is in the mask, of f64.
  Case problem;
};

/// Of a case of one sequence; none where it has no slopes. One that is the case itself may be among them, and two that
/// are the same problem, where no other case would be read in two ways.
[[nodiscard]] std::vector<MisreadSlopes> misread_slopes(const Case& c);

/// The case without slopes, and with what `term` says of each pair in its mask, of f64, beside what it has of its own.
/// What hides keys by their position stays.
[[nodiscard]] Case with_slope_terms(const Case& c, const SlopeTerm& term);
/// The same with what the slopes do add. A case without slopes stays as it is.
[[nodiscard]] Case with_slopes_as_mask(const Case& c);
/// Every slope as many times as large.
[[nodiscard]] Case with_slopes_times(const Case& c, double factor);

}  // namespace attest
