// What a wrong kernel may have taken factors of q, k and v for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A row of q, or a key or value, in a head of that tensor's own.
struct FactorPlace {
  Slot tensor = Slot::q;
  std::int64_t batch = 0, head = 0, row = 0;
};
/// What such a row counts times itself.
using FactorAt = std::function<double(const FactorPlace& at)>;

/// A reading of the factors of a case.
struct MisreadDescale {
  std::string words;      ///< that follow "it computes as if"; with a # for the size, where there is one
  std::int64_t size = 0;  ///< 0: none
  std::string remedy{};   ///< what makes such a kernel right, as a sentence; empty: nothing that an adapter can do
  /// With other factors, or without some; or what the reading makes of scores is in the mask, of f64.
  Case problem;
};

/// None where the case has no factors. Of one sequence. Two may be the same problem, where no other case would be read
/// in two ways; none has the case's own factors.
[[nodiscard]] std::vector<MisreadDescale> misread_descale(const Case& c);

/// With a factor for each row in the place of the factors that there are, rounded to f32. A tensor without stays so.
[[nodiscard]] Case with_factors(const Case& c, const FactorAt& factor);
/// Does each row count as often in the one as in the other? Of problems that differ in their factors at most.
[[nodiscard]] bool have_the_same_factors(const Case& a, const Case& b);

}  // namespace attest
