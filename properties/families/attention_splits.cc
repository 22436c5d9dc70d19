// attention: blocks of keys and their log-sum-exp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/split_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

Verdict excused(Excuse why) {
  return {.outcome = Outcome::excused, .reason = std::string(name_of(why))};
}

/// Keys between two cuts: one, or as many as the manifest lets a block have.
std::int64_t least_block(const Kernel& kernel, const Case& c) {
  const std::int64_t least = fewest(kernel, {1, 1}).keys;
  return keys_of(c) % least == 0 ? least : 1;
}

/// 0 … N cut into up to three runs of keys, some of them empty.
std::vector<Indices> key_blocks(const Case& c, std::int64_t least) {
  const std::int64_t N = keys_of(c), cuts = N / least + 1;
  std::int64_t first = least * argument(c, "cut", cuts), second = least * argument(c, "cut2", cuts);
  if (second < first) std::swap(first, second);
  std::vector<Indices> blocks(3);
  for (std::int64_t j = 0; j < N; ++j) blocks[j < first ? 0 : j < second ? 1 : 2].push_back(j);
  return blocks;
}

/// One block of keys: its attention, and the log-sum-exp of a row with how far it may be off.
struct Block {
  std::optional<Result> out;  ///< nothing: an empty block
  struct Lse {
    double value, error;
  };
  [[nodiscard]] Lse lse(std::int64_t row) const {
    if (!out) return {-infinity, 0};
    const RowBound& bound = out->run().row_bound(row);
    if (bound.excuse == Excuse::fully_masked) return {-infinity, 0};
    if (!out->run().lse().present()) return {bound.lse, bound.lse_certificate};
    return {out->run().lse()[row], bound.lse_allowed};
  }
};

/// What a merged element is and how far it may be off; or why there is nothing to say.
struct Merged {
  double value = 0, error = 0;
  Excuse excuse = Excuse::none;
};

// With L_t exact and lse_t within d of it, the weights w_t = e^lse_t / sum e^lse are off by a factor in e^±2d; o is a
// convex combination of the blocks' exact O_t, so that |O_t - o| <= 2 max(|o_t| + B_t). The merge differs from o by at
// most sum_t w_t B_t + (e^2d - 1) 2 max(|o_t| + B_t). A block whose weight underflows has no part in that maximum: it
// is known to (e^2d - 1) w_t (|o_t| + B_t) and two of the smallest number.
Merged merge(const std::vector<Block>& blocks, const std::vector<Numbers>& outs, std::int64_t e, std::int64_t dv) {
  constexpr double smallest = std::numeric_limits<double>::denorm_min();
  double most = -infinity, off = 0x1p-42;  // rounding of the differences, up to 745, and of what follows
  for (const Block& block : blocks) {
    const auto [lse, error] = block.lse(e / dv);
    if (std::isnan(lse) || !(error < 0.25)) return {.excuse = std::isnan(lse) ? Excuse::overflow : Excuse::infinite};
    most = std::max(most, lse);
    off = std::max(off, error + 0x1p-42);
  }
  if (most == -infinity) return {.excuse = Excuse::fully_masked};
  if (most == infinity) return {.excuse = Excuse::overflow};
  double sum = 0;
  for (const Block& block : blocks) sum += std::exp(block.lse(e / dv).value - most);
  Merged merged;
  double bounds = 0, reach = 0;
  for (std::size_t t = 0; t < blocks.size(); ++t) {
    const double lse = blocks[t].lse(e / dv).value;
    if (lse == -infinity) continue;
    const Numbers& out = outs[t];
    if (out.excuse(e) != Excuse::none && out.excuse(e) != Excuse::vacuous) return {.excuse = out.excuse(e)};
    if (!std::isfinite(out.value(e)) || !(out.allowed(e) < infinity)) return {.excuse = Excuse::infinite};
    // Divided by the sum first: the sum of the products may lie beyond the range, their mean does not.
    const auto allowed = static_cast<double>(out.allowed(e));
    const double weight = std::exp(lse - most) / sum, size = std::fabs(out.value(e)) + allowed;
    merged.value += weight * out.value(e);
    bounds += std::max(weight, smallest) * allowed + smallest;
    if (weight < std::numeric_limits<double>::min()) {
      bounds += (std::expm1(2 * off) * weight + 2 * smallest) * size;
    } else {
      reach = std::max(reach, size);
    }
  }
  if (!std::isfinite(merged.value)) return {.excuse = Excuse::overflow};
  merged.error = (bounds + std::expm1(2 * off) * 2 * reach) * (1 + 0x1p-40) + smallest;
  return merged;
}

/// In a proof: sum_t e^lse_t O_t / sum_t e^lse_t as formulas.
Verdict formally_merged(const Result& whole, const std::vector<Block>& blocks, const std::vector<Numbers>& outs,
                        std::int64_t dv) {
  const Numbers left(whole);
  return agree({left, left.formally([&](std::int64_t e) {
                  std::optional<Expression> sum, merged;
                  for (std::size_t t = 0; t < blocks.size(); ++t) {
                    if (!blocks[t].out || outs[t].excuse(e) != Excuse::none) continue;  // no visible key: lse = -inf
                    const Expression& lse = blocks[t].out->run().formal_lse()[e / dv];
                    const Expression weight = ScalarTraits<Expression>::exp(lse), term = weight * outs[t].formal(e);
                    sum = sum ? *sum + weight : weight;
                    merged = merged ? *merged + term : term;
                  }
                  return *merged / *sum;
                })});
}

}  // namespace

// +: attention over concatenated key blocks is the merge of the blocks' attentions, weighted by e^lse; an empty block
// has lse = -inf and changes nothing.
Verdict split_merge(Kernel& kernel, const Case& c) {
  const std::int64_t least = least_block(kernel, c);
  if (least > 1 && keys_of(c) == least)
    return {.outcome = Outcome::skipped,
            .reason = fmt::format("has {} keys, and the manifest allows no block of fewer", least)};
  const Result whole = run(kernel, c);
  std::vector<Block> blocks;
  std::vector<Numbers> outs;
  const std::vector<Indices> parts = key_blocks(c, least);
  const std::int64_t filled = std::ranges::count_if(parts, [](const Indices& keys) { return !keys.empty(); });
  std::int64_t holder = argument(c, "holder", std::max<std::int64_t>(filled, 1));  // of the sink
  for (const Indices& keys : parts) {
    Block block;
    if (!keys.empty()) {
      Case part = with_keys(c, keys);
      if (holder-- != 0) drop_variant(part, sink_variant.name);
      block.out = run_with_lse(kernel, std::move(part));
    }
    outs.push_back(block.out ? Numbers(*block.out) : Numbers());
    blocks.push_back(std::move(block));
  }
  const std::int64_t dv = c.v().shape()[3];
  if (in_a_proof()) return formally_merged(whole, blocks, outs, dv);
  Indices judged;
  std::vector<double> values, errors;
  Excuse why = Excuse::none;
  for (std::int64_t e = 0; e < whole.elements(); ++e) {
    const Merged merged = merge(blocks, outs, e, dv);
    if (merged.excuse != Excuse::none) {
      why = merged.excuse;
      continue;
    }
    judged.push_back(e);
    values.push_back(merged.value);
    errors.push_back(merged.error);
  }
  if (judged.empty() && why != Excuse::none) return excused(why);
  const Shape shape{static_cast<std::int64_t>(judged.size())};
  return agree({Numbers(whole.at(shape, judged)), Numbers(shape, values).loosened(errors)});
}

namespace {

/// The sink of a head; -inf: none.
double sink_of(const Case& c, std::int64_t h) {
  const Tensor& sinks = c[Slot::sink];
  return sinks.present() ? sinks[h] : -infinity;
}

/// In a proof: what is added to the score of a visible key.
Expression formal_bias(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  GenericInputs& inputs = GenericInputs::current();
  const Tensor& mask = c.mask();
  const bool adds = mask.present() && mask.dtype() != DType::boolean;
  const Expression entry = inputs.at(adds ? mask_entry(mask, b, h, i, j) : 0.0);
  if (!c[Slot::alibi_slopes].present()) return entry;
  const Expression away = ScalarTraits<Expression>::from_double(distance_of(c, b, i, j));
  return entry - inputs.at(slope_of(c, b, h)) * away;
}

}  // namespace

Verdict formally_in_lse_range(Kernel& kernel, const Case& c) {
  const std::int64_t batch = batch_of(c), heads = heads_of(c), M = queries_of(c), N = keys_of(c), dk = c.q().shape()[3];
  using Traits = ScalarTraits<Expression>;
  GenericInputs& inputs = GenericInputs::current();
  const Result out = run_with_lse(kernel, c);
  for (std::int64_t row = 0; row < batch * heads * M; ++row) {
    const std::int64_t b = row / M / heads, h = row / M % heads, i = row % M, kv = kv_head_of(c, h);
    std::optional<Expression> sum;
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      Expression product = Traits::from_double(0);
      for (std::int64_t d = 0; d < dk; ++d)
        product = product + inputs.at(c.q().at(b, h, i, d)) * inputs.at(c.k().at(b, kv, j, d));
      const Expression scale = inputs.at(c.scale);
      const Expression bias = formal_bias(c, b, h, i, j);
      const Expression cap = inputs.at(c.softcap);
      const Expression s =
          c.softcap == 0 ? score(product, bias, scale, convention_of(c)) : cap * tanh_of(scale * product / cap) + bias;
      const Expression term = Traits::exp(s);
      sum = sum ? *sum + term : term;
    }
    if (const double sink = sink_of(c, h); sink != -infinity) {
      const Expression term = Traits::exp(inputs.at(sink));
      sum = sum ? *sum + term : term;
    }
    if (!sum) continue;
    const Expression found = Traits::exp(out.run().formal_lse()[row]);
    if (!inputs.identical(found, *sum))
      return violated(Violation::lse,
                      fmt::format("lse {}: its exponential and the sum of those of the scores differ by a "
                                  "multiple of {}",
                                  row, inputs.difference(found, *sum)));
  }
  return {};
}

namespace {

// +: max_j s_j <= lse_i <= max_j s_j + ln N over the visible keys, and a sink as one of them, the scores in double with
// their own error.
Verdict lse_range(Kernel& kernel, const Case& c) {
  if (in_a_proof()) return formally_in_lse_range(kernel, c);
  if (std::string why = why_no_lse(kernel.manifest(), c); !why.empty())
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  const Reply reply = answer(kernel, c, c.dtype(), /*want_lse=*/true);
  const AttentionBounds bounds =
      attention_bounds(c, kernel.manifest().arithmetic_for(c), kernel.manifest().claims_to(Claim::ignores_dead_values));
  std::vector<double> found, low, high, errors;
  Excuse why = Excuse::none;
  const std::int64_t M = queries_of(c), N = keys_of(c), heads = heads_of(c);
  for (std::int64_t row = 0; row < batch_of(c) * heads * M; ++row) {
    const RowBound& bound = bounds.rows[static_cast<std::size_t>(row)];
    if (bound.excuse != Excuse::none || !(bound.lse_allowed < infinity)) {
      why = bound.excuse == Excuse::none ? Excuse::infinite : bound.excuse;
      continue;
    }
    const double sink = sink_of(c, row / M % heads);
    double most = sink, error = 0;
    std::int64_t visible = sink == -infinity ? 0 : 1;
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c, row / M / heads, row / M % heads, row % M, j)) continue;
      const Score score = score_of(c, row / M / heads, row / M % heads, row % M, j);
      most = std::max(most, score.value), error = std::max(error, score.error);
      ++visible;
    }
    found.push_back(reply.lse[row]);
    low.push_back(most);
    high.push_back(most + std::log(static_cast<double>(visible)));
    errors.push_back(bound.lse_allowed + error + 0x1p-50 * (std::fabs(most) + std::log(static_cast<double>(visible))));
  }
  if (found.empty() && why != Excuse::none) return excused(why);
  const Shape shape{static_cast<std::int64_t>(found.size())};
  return within(Numbers(shape, found).loosened(errors), Numbers(shape, low), Numbers(shape, high));
}

constexpr std::array in_blocks{
    needed(hypotheses::no_causal_form, "the form counts keys, and a block begins to count anew")};

const Property family[] = {
    {.name = "attention.split-merge",
     .statement = "attention over concatenated key blocks is the log-sum-exp-weighted merge of the blocks' attentions; "
                  "an empty block has lse = −∞ and changes nothing",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = in_blocks,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).masked().at_least(0, 2); },
     .check = split_merge},
    {.name = "attention.lse-range",
     .statement = "max_j s_j ≤ lse_i ≤ max_j s_j + ln N",
     .source = "+",
     .needs = "attention, lse",
     .floating_point = "bound",
     .under = "window chunk lengths packed left_pad sink softcap dropout alibi",
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = lse_range},
};

}  // namespace

std::span<const Property> attention_split_properties() {
  return family;
}

}  // namespace attest
