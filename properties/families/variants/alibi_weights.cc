// alibi: the weights that slopes alone make, where the products are 0 or too small to matter.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/row_weights.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/not_judged.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

/// What a weight may have lost to underflow, on the way to it or by being a double.
constexpr double lost = 0x1p-1060;

Case with_zero_queries(Case c) {
  c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  return c;
}

/// Of a row of the only sequence.
std::int64_t position_of(const Case& c, std::int64_t row) {
  return position(sight_rule(c), place_of(c, row).i, queries_of(c), keys_of(c));
}
double slope_of_row(const Case& c, std::int64_t row) {
  const auto [b, h, i] = place_of(c, row);
  return slope_of(c, b, h);
}
const SeenKey* find_key(const std::vector<SeenKey>& keys, std::int64_t j) {
  const auto found = std::ranges::lower_bound(keys, j, {}, &SeenKey::j);
  return found == keys.end() || found->j != j ? nullptr : &*found;
}

/// In a proof: e^(m n), m the slope of a row.
Expression power(const Case& c, std::int64_t row, std::int64_t n) {
  using Traits = ScalarTraits<Expression>;
  return Traits::exp(GenericInputs::current().at(slope_of_row(c, row)) * Traits::from_double(static_cast<double>(n)));
}

/// In a proof: the weights of a row add up to 1, and of two keys one after another e^(m d) P_j is the same.
std::optional<Verdict> not_formally_geometric(const Case& c, const KeyWeights& weights, std::int64_t row,
                                              const std::vector<SeenKey>& keys) {
  GenericInputs& inputs = GenericInputs::current();
  std::optional<Expression> sum;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const Expression weight = weights.formal(row, keys[n].j);
    sum = sum ? *sum + weight : weight;
    if (n == 0) continue;
    const Expression grown = weights.formal(row, keys[n - 1].j) * power(c, row, keys[n].j - keys[n - 1].j);
    if (!inputs.identical(weight, grown))
      return violated(Violation::bound, fmt::format("in row {} key {} is not e^m times as heavy", row, keys[n].j));
  }
  if (inputs.identical(*sum, ScalarTraits<Expression>::from_double(1))) return std::nullopt;
  return violated(Violation::bound, fmt::format("the weights of row {} do not add up to 1", row));
}

// Q = 0, causal: P_ij = e^(-m(p - j)) over the sum of these, which of n keys up to p is (1 - e^(-mn))/(1 - e^(-m)).
Verdict geometric(Kernel& kernel, const Case& c) {
  const Case still = with_zero_queries(c);
  const KeyWeights weights(kernel, still);
  return each_row(still, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    if (in_a_proof()) {
      auto verdict = not_formally_geometric(still, weights, row, keys);
      return verdict ? std::move(verdict) : std::optional(Verdict{});
    }
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    const double m = slope_of_row(c, row);
    // Counted from the heaviest key: the product is exact.
    const std::int64_t heaviest = m >= 0 ? keys.back().j : keys.front().j;
    const auto part = [&](const SeenKey& key) { return std::exp(m * static_cast<double>(key.j - heaviest)); };
    double sum = 0;
    for (const SeenKey& key : keys) sum += part(key);
    bool judged = false;
    for (const SeenKey& key : keys) {
      const Weight found = weight_of(weights, row, key.j);
      if (!(found.most < infinity)) continue;
      judged = true;
      const double expected = part(key) / sum;
      if (found.least <= expected * rounded + lost && found.most >= expected / rounded - lost) continue;
      return weights_apart(
          std::max(found.least - expected, expected - found.most),
          fmt::format("with Q = 0 and a slope of {:.9g} the weight of key {} in row {}, whose position "
                      "is {}, is {:.6g} … {:.6g}, not {:.9g}",
                      m, key.j, row, position_of(c, row), found.least, found.most, expected));
    }
    return judged ? std::optional(Verdict{}) : std::nullopt;
  });
}

// Q = 0, not causal: a key d before the position of a row weighs what the one d behind it does.
Verdict two_sided(Kernel& kernel, const Case& c) {
  const Case still = with_zero_queries(c);
  const KeyWeights weights(kernel, still);
  return each_row(still, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    const std::int64_t p = position_of(c, row);
    if (!in_a_proof())
      if (auto verdict = weights.not_finite(row, keys)) return verdict;
    bool judged = false;
    for (const SeenKey& before : keys) {
      if (before.j >= p) break;
      const SeenKey* const behind = find_key(keys, 2 * p - before.j);
      if (behind == nullptr) continue;
      if (in_a_proof()) {
        if (!GenericInputs::current().identical(weights.formal(row, before.j), weights.formal(row, behind->j)))
          return violated(Violation::bound,
                          fmt::format("in row {} keys {} and {} weigh not the same", row, before.j, behind->j));
        judged = true;
        continue;
      }
      const Weight one = weight_of(weights, row, before.j), other = weight_of(weights, row, behind->j);
      if (!(one.most < infinity && other.most < infinity)) continue;
      judged = true;
      if (one.least <= other.most * rounded + lost && other.least <= one.most * rounded + lost) continue;
      return weights_apart(
          std::max(one.least - other.most, other.least - one.most),
          fmt::format("with Q = 0 in row {}, whose position is {}, key {} weighs {:.6g} … {:.6g} and key {}, as far "
                      "behind it, {:.6g} … {:.6g}",
                      row, p, before.j, one.least, one.most, behind->j, other.least, other.most));
    }
    return judged ? std::optional(Verdict{}) : std::nullopt;
  });
}

/// By how much the largest score of a row lies above that of the key at its position, without slopes, and the error of
/// that; nothing where the row does not see that key.
std::optional<double> above_own_key(const Case& plain, std::int64_t p, std::int64_t row,
                                    const std::vector<SeenKey>& keys) {
  if (find_key(keys, p) == nullptr) return std::nullopt;
  const auto [b, h, i] = place_of(plain, row);
  const Score own = score_of(plain, b, h, i, p);
  double above = 0;
  for (const SeenKey& key : keys) {
    if (key.j == p) continue;
    const Score score = score_of(plain, b, h, i, key.j);
    above = std::max(above, (score.value - own.value) + score.error + own.error);
  }
  return above;
}

// Causal, and a slope that is larger than any difference of scores by some: a row is the value at its position, but for
// e^(above - m)/(1 - e^-m) of the range of the values.
Verdict slope_limit(Kernel& kernel, const Case& c) {
  Case plain = c;
  drop_variant(plain, alibi_variant.name);
  const Tensor& given = c[Slot::alibi_slopes];
  const std::int64_t heads = heads_of(c), dv = c.v().shape()[3];
  const auto of_slope = [&](std::int64_t row) {
    const auto [b, h, i] = place_of(c, row);
    return static_cast<std::size_t>((given.shape()[0] == 1 ? 0 : b) * heads + h);
  };
  std::vector<std::optional<double>> above;
  std::vector<double> most(static_cast<std::size_t>(given.elements()), 0.0);
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    above.push_back(above_own_key(plain, position_of(c, row), row, seen_keys(c, row)));
    double& of_all = most[of_slope(row)];
    if (above.back()) of_all = std::max(of_all, *above.back());
  }
  Stream stream(seed_argument(c, "above"));
  Case steep = c;
  steep[Slot::alibi_slopes] = mapped(given, [&](std::int64_t e, double) {
    const double difference = most[static_cast<std::size_t>(e)];
    return std::isfinite(difference) ? std::min(difference, 0x1p60) + stream.uniform(2, 40) : 2;
  });
  const Result out = run(kernel, steep);
  Indices judged;
  std::vector<double> expected;
  std::vector<long double> errors;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    if (!above[static_cast<std::size_t>(row)]) continue;
    const double m = slope_of_row(steep, row), by = *above[static_cast<std::size_t>(row)] - m;
    if (!(by < 0)) continue;
    const auto [b, h, i] = place_of(c, row);
    const std::vector<double> ranges = ranges_of(c, row, seen_keys(c, row));
    const double others = std::exp(by) / -std::expm1(-m) * rounded;
    for (std::int64_t k = 0; k < dv; ++k) {
      judged.push_back(row * dv + k);
      expected.push_back(c.v().at(b, kv_head_of(c, h), position_of(c, row), k));
      errors.push_back(static_cast<long double>(others) *
                           static_cast<long double>(ranges[static_cast<std::size_t>(k)]) +
                       static_cast<long double>(std::numeric_limits<double>::denorm_min()));
    }
  }
  if (judged.empty() && rows_of(c) > 0) return excused("no row sees the key at its position");
  const Shape shape{std::ssize(judged)};
  return agree({Numbers(out.at(shape, judged)), Numbers(shape, expected).loosened(errors)});
}

/// Caps up to which e^-2c is a weight that no rounding makes.
constexpr double most_cap = 2;

// Q = 0 beside a cap, and a slope above 2c: what a slope takes is not capped.
Verdict after_softcap(Kernel& kernel, const Case& c) {
  Case still = with_zero_queries(c);
  if (!in_a_proof()) {
    still.softcap = std::min(c.softcap, most_cap);
    still[Slot::alibi_slopes] =
        mapped(c[Slot::alibi_slopes], [&](std::int64_t, double) { return 2 * still.softcap + 1; });
  }
  const KeyWeights weights(kernel, still);
  return each_row(still, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    const std::int64_t p = position_of(c, row);
    if (p < 1 || find_key(keys, p) == nullptr || find_key(keys, 0) == nullptr) return std::nullopt;
    if (in_a_proof()) {
      if (GenericInputs::current().identical(weights.formal(row, p), weights.formal(row, 0) * power(still, row, p)))
        return Verdict{};
      return violated(Violation::bound, fmt::format("in row {} key {} is not e^(m p) times as heavy", row, p));
    }
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    const Weight own = weight_of(weights, row, p), first = weight_of(weights, row, 0);
    if (!(own.most < infinity && first.most < infinity)) return std::nullopt;
    const double m = slope_of_row(still, row), share = std::exp(-m * static_cast<double>(p));
    const double least = own.least * share / rounded - lost, most = own.most * share * rounded + lost;
    if (first.least <= most && first.most >= least) return Verdict{};
    return weights_apart(
        std::max(first.least - most, least - first.most),
        fmt::format("with Q = 0, a cap of {:.6g} and a slope of {:.6g} in row {}, whose position is {}, key 0 weighs "
                    "{:.6g} … {:.6g}, and e^-mp of the weight of key {} is {:.6g} … {:.6g}",
                    still.softcap, m, row, p, first.least, first.most, p, least, most));
  });
}

constexpr Stated sloped = defining(hypotheses::alibi, "the theorem is about slopes"),
                 adds_nothing = needed(hypotheses::only_hides, "what a mask adds to scores orders keys by itself");
constexpr std::array causal_slopes{
    sloped, defining(hypotheses::causal_form, "the form ends the keys of a row at its position"), adds_nothing};
constexpr std::array slopes_both_ways{
    sloped, defining(hypotheses::no_causal_form, "the form hides one of the two keys"), adds_nothing};
constexpr std::array steep_slopes{sloped,
                                  defining(hypotheses::causal_form, "keys on both sides would weigh twice as much"),
                                  defining(hypotheses::a_query_and_a_key, "a row is to see a key")};
constexpr std::array capped_slopes{sloped, defining(hypotheses::softcap, "the theorem is about a cap too"),
                                   defining(hypotheses::two_keys, "two keys are weighed"), adds_nothing};

/// No mask that adds numbers: one that hides at random in its place.
void hides_only(Recipe& r) {
  constexpr MaskKind adding[] = {MaskKind::bias, MaskKind::alibi, MaskKind::finite_sentinel};
  if (std::ranges::count(adding, r.mask) > 0) r.mask = MaskKind::random;
}
/// Lengths at which loops over pairs of rows and keys are soon done.
void few(Recipe& r) {
  r.keys = std::min(r.keys, 300), r.queries = std::min(r.queries, 80);
}
void causal(Recipe& r) {
  if (r.causal == Causal::none) r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
}
void not_causal(Recipe& r) {
  r.causal = Causal::none;
}

const Property family[] = {
    {.name = "alibi.geometric",
     .statement = "Q = 0, causal: P_ij = e^{−m(p−j)}(1 − e^{−m})/(1 − e^{−mn}) over the n keys up to p, so that "
                  "P_{i,j−1}/P_ij = e^{−m}",
     .source = "+",
     .needs = "attention, alibi, causal",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk softcap",
     .hypotheses = causal_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .at_least(1, 2)
           .where(few)
           .where(hides_only)
           .where(causal)
           .with_slopes();
     },
     .check = geometric},
    {.name = "alibi.two-sided",
     .statement = "Q = 0, not causal: P_{i,p−d} = P_{i,p+d}",
     .source = "+",
     .needs = "attention, alibi",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk softcap",
     .hypotheses = slopes_both_ways,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .at_least(2, 3)
           .where(few)
           .where(hides_only)
           .where(not_causal)
           .with_slopes();
     },
     .check = two_sided},
    {.name = "alibi.slope-limit",
     .statement = "causal: |o_i − v_p| ≤ e^{Δ−m}/(1 − e^{−m})·range(v), Δ = max_j s_j − s_p of the scores without "
                  "slopes",
     .source = "+",
     .needs = "attention, alibi, causal",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk softcap",
     .hypotheses = steep_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).at_least(1, 2).where(few).where(causal).with_slopes();
     },
     .check = slope_limit},
    {.name = "alibi.after-softcap",
     .statement = "Q = 0 beside a cap c, m > 2c: P_ip = e^{mp}·P_i0, which is above e^{2c}·P_i0",
     .source = "+",
     .needs = "attention, alibi, softcap",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk softcap",
     .hypotheses = capped_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .at_least(2, 2)
           .where(few)
           .where(hides_only)
           .with_slopes()
           .with_softcap();
     },
     .check = after_softcap},
};

}  // namespace

std::span<const Property> alibi_weight_properties() {
  return family;
}

}  // namespace attest
