#include "properties/diagnosis/misread_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "core/bound/error_bound.h"
#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/diagnosis/variants/dropout_misreadings.h"

namespace attest {
namespace {

/// A case of that shape and nothing but q, k and v, whose keys have these scores: the first, and all others.
Case with_scores(const Case& shape, double first, double others) {
  Case c = shape;
  c[Slot::mask] = Tensor();
  drop_positions(c);
  c.softcap = 0;
  for (const Variant& variant : {dropout_variant, alibi_variant, descale_variant}) drop_variant(c, variant.name);
  c.provenance = {};
  const Extents e = extents_of(c);
  const auto fill = [&](Slot slot, auto&& number) {
    Tensor tensor(c[slot].dtype(), c[slot].shape());
    for (std::int64_t at = 0; at < tensor.elements(); ++at) tensor.set(at, number(at));
    c[slot] = std::move(tensor);
  };
  c.scale = inverse_root(e.dk);
  fill(Slot::q, [&](std::int64_t at) { return at % e.dk == 0 ? 1.0 : 0.0; });
  fill(Slot::k, [&](std::int64_t at) {
    if (at % e.dk != 0) return 0.0;
    return (at / e.dk % e.keys == 0 ? first : others) / c.scale;
  });
  fill(Slot::v, [](std::int64_t) { return 1.0; });
  return c;
}

enum class Answer { right, not_finite, other };
Answer answer_to(Kernel& kernel, const Case& c) {
  if (!why_unsupported(kernel.manifest(), c).empty()) return Answer::other;
  const Reply reply = kernel.run(c);
  if (reply.status != CallStatus::ok || reply.out.shape() != c.out_shape()) return Answer::other;
  bool finite = true;
  for (std::int64_t at = 0; at < reply.out.elements(); ++at) finite = finite && std::isfinite(reply.out[at]);
  if (!finite) return Answer::not_finite;
  const Outcome outcome = judge_attention(c, reply.out, Tensor(), kernel.manifest().arithmetic_for(c)).outcome;
  return outcome == Outcome::held ? Answer::right : Answer::other;
}

/// Exact numbers of a row; where nothing is dropped, the log-sum-exp is that of what is kept, and 1 - p is 1. Without
/// slopes and a causal form nothing is shifted.
struct RowNumbers {
  double lse = 0, largest = 0;           ///< the log-sum-exp; the largest score, a sink's among them
  double lse_of_kept = 0, log_kept = 0;  ///< the log-sum-exp of the keys that are not dropped; ln(1 - p)
  double shift = 0;                      ///< the slope times the row's position: of scores to which slope·j is added
  double corner = 0;                     ///< the slope times (N - M), where positions count from the last key
};
struct LseReading {
  std::string_view words;
  double (*made)(const RowNumbers& row);
};
constexpr LseReading lse_readings[] = {
    {"the log-sum-exp were to base 2", [](const RowNumbers& row) { return row.lse * std::numbers::log2e; }},
    {"the log-sum-exp were that of scores less their maximum",
     [](const RowNumbers& row) { return row.lse - row.largest; }},
    {"the log-sum-exp were the maximum of the scores", [](const RowNumbers& row) { return row.largest; }},
    {"the log-sum-exp were the sum of e^(score - maximum), without its logarithm",
     [](const RowNumbers& row) { return std::exp(row.lse - row.largest); }},
    {"the log-sum-exp had the other sign", [](const RowNumbers& row) { return -row.lse; }},
    {"the log-sum-exp were that of the weights that are kept", [](const RowNumbers& row) { return row.lse_of_kept; }},
    {"the log-sum-exp were that of the weights that are kept, divided by 1 - p",
     [](const RowNumbers& row) { return row.lse_of_kept - row.log_kept; }},
    {"the log-sum-exp were that of all weights, divided by 1 - p",
     [](const RowNumbers& row) { return row.lse - row.log_kept; }},
    {"the log-sum-exp were that of all weights, multiplied by 1 - p",
     [](const RowNumbers& row) { return row.lse + row.log_kept; }},
    {"the log-sum-exp were larger by slope·p, as where slope·j is added to scores",
     [](const RowNumbers& row) { return row.lse + row.shift; }},
    {"the log-sum-exp were less by slope·p, as where it is taken for that of scores to which slope·j is added",
     [](const RowNumbers& row) { return row.lse - row.shift; }},
    {"the log-sum-exp were larger by slope·(N - M), as where slope·(j - i) is added to scores",
     [](const RowNumbers& row) { return row.lse + row.corner; }}};

/// The largest score of a row that sees a key.
double largest_score(const Case& c, std::int64_t row) {
  const Extents e = extents_of(c);
  const std::int64_t b = row / e.queries / e.heads, h = row / e.queries % e.heads, i = row % e.queries;
  double largest = -infinity;
  for (std::int64_t j = 0; j < e.keys; ++j) {
    if (hidden(c, b, h, i, j)) continue;
    const auto product = static_cast<double>(product_of_pair(c, b, h, i, j));
    largest = std::max(largest, score_in(c, product, bias_of(c, b, h, i, j)));
  }
  return largest;
}

/// That of the row's head; -inf: it has none.
double sink_of(const Case& c, std::int64_t row) {
  const Tensor& sinks = c[Slot::sink];
  return sinks.present() ? sinks[row / queries_of(c) % heads_of(c)] : -infinity;
}

/// What RowNumbers says of slopes.
void take_slopes(const Case& c, std::int64_t row, RowNumbers& numbers) {
  const std::int64_t M = queries_of(c), b = row / M / heads_of(c), h = row / M % heads_of(c), i = row % M;
  const std::optional<Sequence> own = sequence_at(c, b, i);
  if (!own || c.causal == Causal::none) return;
  const std::int64_t at = i - own->first_query, p = position(sight_rule(c), at, own->queries, own->keys);
  numbers.shift = slope_of(c, b, h) * static_cast<double>(p);
  numbers.corner = slope_of(c, b, h) * static_cast<double>(p - at);
}

}  // namespace

std::optional<std::string> overflowing_exp(Kernel& kernel, const Case& shape) {
  const Extents e = extents_of(shape);
  if (shape.operation != Operation::attention || e.queries == 0 || e.keys == 0) return std::nullopt;
  for (const DType format : {DType::f16, DType::f32, DType::f64}) {
    // e^limit is the largest number of the format; the sum of as many as there are keys is no larger below.
    const double limit = std::log(format_of(format).largest), room = std::log(static_cast<double>(e.keys)) + 2;
    const double below = std::floor(limit - room), above = std::ceil(limit + 2);
    if (below < 1) continue;
    const auto beyond = [&](std::string_view what) {
      return fmt::format("{} were subtracted from scores, and exp overflows beyond {:.3g}, in {}", what, limit,
                         name_of(format));
    };
    if (answer_to(kernel, with_scores(shape, below, below)) == Answer::right &&
        answer_to(kernel, with_scores(shape, above, above)) == Answer::not_finite)
      return beyond("no maximum");
    if (e.keys > 1 && answer_to(kernel, with_scores(shape, 0, below)) == Answer::right &&
        answer_to(kernel, with_scores(shape, 0, above)) == Answer::not_finite &&
        answer_to(kernel, with_scores(shape, above, above)) == Answer::right)
      return beyond("the first score, and not the maximum,");
  }
  return std::nullopt;
}

std::optional<std::string> misread_lse(Kernel& kernel, std::span<const Case> cases) {
  std::array<bool, std::size(lse_readings)> fits{};
  fits.fill(true);
  std::size_t wrong = 0;
  for (const Case& c : cases) {
    if (c.operation != Operation::attention) continue;
    const Arithmetic& arithmetic = kernel.manifest().arithmetic_for(c);
    if (!why_no_lse(kernel.manifest(), c).empty()) continue;
    const Reply reply = kernel.run(c, c.dtype(), /*want_lse=*/true);
    if (reply.status != CallStatus::ok || !reply.lse.present()) continue;
    const AttentionBounds bounds = attention_bounds(c, arithmetic);
    const bool drops = c[Slot::keep].present();
    const AttentionBounds of_kept = drops ? attention_bounds(with_dropped_keys_hidden(c), arithmetic) : bounds;
    for (std::int64_t row = 0; row < reply.lse.elements(); ++row) {
      const RowBound& b = bounds.rows[static_cast<std::size_t>(row)];
      if (b.excuse != Excuse::none || !std::isfinite(b.lse)) continue;
      const double found = reply.lse[row], allowed = b.lse_allowed + b.lse_certificate;
      RowNumbers exact{.lse = b.lse,
                       .largest = std::max(largest_score(c, row), sink_of(c, row)),
                       .lse_of_kept = of_kept.rows[static_cast<std::size_t>(row)].lse,
                       .log_kept = std::log1p(-c.dropout_p)};
      take_slopes(c, row, exact);
      wrong += std::abs(found - b.lse) > 4 * allowed;
      for (std::size_t i = 0; i < fits.size(); ++i) {
        const double other = lse_readings[i].made(exact);
        if (std::isnan(other)) continue;
        // Of a row that drops every key it is -inf, or NaN where a maximum of nothing is subtracted.
        if (std::isinf(other) && std::isfinite(exact.largest)) {
          fits[i] = fits[i] && !std::isfinite(found);
          continue;
        }
        // What is made of it is rounded, too: relative to all that it is made of.
        const double room = 2 * allowed + 0x1p-40 * (std::abs(exact.largest) + std::abs(other)) +
                            4 * format_of(arithmetic.score_sums).unit * (std::abs(exact.largest) + std::abs(other));
        fits[i] = fits[i] && std::abs(found - other) <= room;
      }
    }
  }
  if (wrong < 2 || std::ranges::count(fits, true) != 1) return std::nullopt;
  return std::string(lse_readings[static_cast<std::size_t>(std::ranges::find(fits, true) - fits.begin())].words);
}

}  // namespace attest
