#include "properties/diagnosis/other_sights.h"

#include <utility>
#include <vector>

#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"

namespace attest {

bool hides_by_position(const Problem& c) {
  return c.causal != Causal::none || has_variant(c, window_variant.name) || has_variant(c, chunk_variant.name);
}

bool can_hide_by_mask(const Case& c) {
  return only_hides(c) || c.dtype() != DType::f8_e4m3;
}

Case without_sight_of(const Variant& variant, Case c, Causal causal) {
  drop_variant(c, variant.name);
  c.causal = causal;
  return only_hides(c) ? with_boolean_mask(std::move(c)) : with_additive_mask(std::move(c));
}

Case narrowed(const Case& open, const std::function<Sight(std::int64_t i)>& sight) {
  const std::int64_t rows = queries_of(open), keys = keys_of(open);
  std::vector<Sight> sights;
  for (std::int64_t i = 0; i < rows; ++i) sights.push_back(sight(i));
  const double hides = open.mask().dtype() == DType::boolean ? 0.0 : -infinity;
  Case other = open;
  other[Slot::mask] = mapped(open.mask(), [&](std::int64_t e, double old) {
    return sights[static_cast<std::size_t>(e / keys % rows)].sees(e % keys) ? old : hides;
  });
  return other;
}

}  // namespace attest
