// A right kernel that makes something else of factors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "properties/diagnosis/variants/descale_misreadings.h"
#include "properties/test/diagnosis/other_variant.h"

namespace attest {

class OtherFactors : public OtherVariant {
 public:
  explicit OtherFactors(Change change)
      : OtherVariant([](const Case& c) { return has_variant(c, descale_variant.name); }, std::move(change)) {}
};

inline void forget_factors(Case& c) {
  drop_variant(c, descale_variant.name);
}
inline OtherVariant::Change forget_factors_of(Slot tensor) {
  return [tensor](Case& c) {
    c[descale_of(tensor)] = Tensor();
    settle_blocks(c);
  };
}
/// Other factors, made of a case and a place.
inline OtherVariant::Change another_factor(std::function<double(const Case& c, const FactorPlace& at)> factor) {
  return [factor = std::move(factor)](Case& c) {
    const Case before = c;
    c = with_factors(before, [&](const FactorPlace& at) { return factor(before, at); });
  };
}
inline double factor_at(const Case& c, const FactorPlace& at) {
  const std::int64_t last = c[at.tensor].shape()[2] - 1;
  return factor_of(c, at.tensor, at.batch, at.head, std::clamp<std::int64_t>(at.row, 0, last));
}
/// That of another place.
inline OtherVariant::Change factor_of_other(std::function<FactorPlace(const Case& c, FactorPlace at)> other) {
  return another_factor(
      [other = std::move(other)](const Case& c, const FactorPlace& at) { return factor_at(c, other(c, at)); });
}

}  // namespace attest
