// A right kernel that makes something else of slopes.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/test/diagnosis/other_variant.h"

namespace attest {

class OtherSlopes : public OtherVariant {
 public:
  explicit OtherSlopes(
      Change output, Change lse = [](Case&) {},
      MadeLse made = [](const Case&, std::int64_t, double lse) { return lse; })
      : OtherVariant(Slot::alibi_slopes, std::move(output), std::move(lse), std::move(made)) {}
};

inline void forget_slopes(Case& c) {
  drop_variant(c, alibi_variant.name);
}

/// A row and a key that it sees, by their places in their sequence.
struct SlopedPair {
  double slope = 0;
  std::int64_t row = 0, key = 0;  ///< i and j
  std::int64_t position = 0;      ///< p
  std::int64_t M = 0, N = 0;      ///< of the sequence
  double t = 0, entry = 0;        ///< the scaled product; what an additive mask adds
  std::int64_t head = 0;
  [[nodiscard]] double away() const { return std::fabs(static_cast<double>(position - key)); }
};
using OtherScoreOf = std::function<double(const SlopedPair& at)>;

/// Scores become what `score` says, in a mask of f64, in the place of products, a cap, slopes and positions.
inline OtherVariant::Change another_score(OtherScoreOf score) {
  return [score = std::move(score)](Case& c) {
    Case level = c;
    forget_slopes(level);
    Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const auto [b, h, i, j] = mask.shape().index_of(e);
      mask.set(e, -infinity);
      const std::optional<Sequence> own = sequence_at(c, b, i);
      if (!own || hidden(c, b, h, i, j)) continue;
      SlopedPair at{.slope = slope_of(c, b, h), .row = i - own->first_query, .key = j - own->first_key};
      at.M = own->queries, at.N = own->keys, at.head = h;
      at.position = position(sight_rule(c), at.row, at.M, at.N);
      at.t = c.scale * static_cast<double>(product_of_pair(c, b, h, i, j));
      at.entry = bias_of(level, b, h, i, j);
      mask.set(e, score(at));
    }
    forget_slopes(c);
    drop_variant(c, softcap_variant.name);
    drop_positions(c);
    c[Slot::mask] = std::move(mask);
    c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  };
}
/// What slopes add becomes what `term` says; a cap, if there is one, and the mask are as they were.
inline OtherVariant::Change another_term(OtherScoreOf term) {
  return [term = std::move(term)](Case& c) {
    const double softcap = c.softcap;
    another_score([&](const SlopedPair& at) { return capped(at.t, softcap) + at.entry + term(at); })(c);
  };
}
/// -slope |p' - j| of another position.
inline OtherVariant::Change another_position(std::function<std::int64_t(const SlopedPair& at)> position) {
  return another_term([position = std::move(position)](const SlopedPair& at) {
    return -at.slope * std::fabs(static_cast<double>(position(at) - at.key));
  });
}
/// Other slopes, of an entry's row of them and a head, as f32 holds them.
inline OtherVariant::Change another_slope(
    std::function<double(const Tensor& slopes, const Case& c, std::int64_t entry, std::int64_t h)> slope) {
  return [slope = std::move(slope)](Case& c) {
    const Tensor before = c[Slot::alibi_slopes];
    const std::int64_t heads = before.shape()[1];
    c[Slot::alibi_slopes] =
        mapped(before, [&](std::int64_t e, double) { return slope(before, c, e / heads, e % heads); });
  };
}
inline OtherVariant::Change slopes_times(std::function<double(const Case& c)> factor) {
  return [factor = std::move(factor)](Case& c) {
    const double times = factor(c);
    c[Slot::alibi_slopes] = mapped(c[Slot::alibi_slopes], [&](std::int64_t, double old) { return times * old; });
  };
}

}  // namespace attest
