// A right kernel that makes something else of dropout.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/call/drawn_keep.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/diagnosis/other_variant.h"

namespace attest {

class OtherDropout : public OtherVariant {
 public:
  using MadeLseOf = std::function<double(const Case& c, double lse)>;
  explicit OtherDropout(
      Change output, Change lse = [](Case&) {}, MadeLseOf made = [](const Case&, double lse) { return lse; })
      : OtherVariant(Slot::keep, std::move(output), std::move(lse),
                     [made = std::move(made)](const Case& c, std::int64_t, double old) { return made(c, old); }) {}
};

inline void forget_dropout(Case& c) {
  drop_variant(c, dropout_variant.name);
}

/// What is dropped becomes what is hidden, and what slopes add is in the mask.
inline void hide_dropped(Case& c) {
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    mask.set(e, hidden(c, b, h, i, j) || !keeps(c, b, h, i, j) ? -infinity : bias_of(c, b, h, i, j));
  }
  forget_dropout(c);
  drop_positions(c);
  drop_variant(c, alibi_variant.name);
  c[Slot::mask] = std::move(mask);
}

/// What keep says of a place becomes what it said of another one, of its own pages, heads and batch entries shared or
/// not: kept(before, place).
inline OtherDropout::Change another_keep(std::function<double(const Tensor& keep, const Case& c, KeptPlace at)> kept) {
  return [kept = std::move(kept)](Case& c) {
    const Tensor before = c[Slot::keep];
    c[Slot::keep] = mapped(before, [&](std::int64_t e, double) {
      const auto [b, h, i, j] = before.shape().index_of(e);
      return kept(before, c, {b, h, i, j});
    });
  };
}

}  // namespace attest
