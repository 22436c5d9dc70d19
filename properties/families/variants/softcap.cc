// softcap: a scaled product t is c tanh(t/c) before anything is added to it, so that no score of a product exceeds c.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/row_lse.h"
#include "properties/families/variants/row_weights.h"
#include "properties/families/variants/scaled_queries.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/not_judged.h"
#include "properties/language/refute.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

Case without_softcap(Case c) {
  drop_variant(c, softcap_variant.name);
  return c;
}
Case with_softcap(Case c, double softcap) {
  c.softcap = softcap;
  return c;
}

/// What the product of two weights may stand for, underflow included.
Weight product_of_weights(const Weight& a, const Weight& b) {
  constexpr double lost = 0x1p-960;
  const double least = a.least * b.least / (1 + 0x1p-40);
  return {least > lost ? least : 0, a.most * b.most * (1 + 0x1p-40) + lost};
}

// No bias: P_ij/P_il <= e^(2c), and |lse_i - ln n_i| <= c, however large Q is.
Verdict weights_bounded(Kernel& kernel, const Case& c) {
  const KeyWeights weights(kernel, c);
  const Result out = run_with_lse(kernel, c);
  return each_row(c, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    const RowBound& bound = out.run().row_bound(row);
    std::optional<Verdict> judged;
    if (out.run().lse().present() && bound.excuse == Excuse::none && bound.lse_allowed < infinity) {
      const double lse = out.run().lse()[row], even = std::log(static_cast<double>(keys.size()));
      if (!(std::fabs(lse - even) <= (c.softcap + bound.lse_allowed) * rounded + 0x1p-50))
        return violated(Violation::lse,
                        fmt::format("lse {} is {:.9g}; of {} keys whose scores are within {:.6g} of 0 it is {:.9g} to "
                                    "within that",
                                    row, printed(lse), keys.size(), c.softcap, even));
      judged = Verdict{};
    }
    if (2 * c.softcap > 600) return judged;
    const SeenKey *low = nullptr, *high = nullptr;
    Weight least, most;
    for (const SeenKey& key : keys) {
      const Weight weight = weight_of(weights, row, key.j);
      if (!(weight.most < infinity)) continue;
      if (!low || weight.most < least.most) low = &key, least = weight;
      if (!high || weight.least > most.least) high = &key, most = weight;
    }
    if (!low) return judged;
    const double bound_of_weight = std::exp(2 * c.softcap) * least.most * rounded;
    // No weight is above 1, and so none could be above that.
    if (bound_of_weight >= 1) return judged;
    if (most.least <= bound_of_weight) return Verdict{};
    return weights_apart(
        most.least - bound_of_weight,
        fmt::format("in row {} key {} has a weight of at least {:.6g} and key {} of at most {:.6g}: they are "
                    "further apart than e^(2c), c = {:.6g}",
                    row, high->j, most.least, low->j, least.most, c.softcap));
  });
}

/// In a proof: the double that stands for c tanh(t/c) - t + added, t the scaled product.
double formal_entry(const Case& c, const RowPlace& at, std::int64_t j, double added) {
  double product = 0;
  for (std::int64_t e = 0; e < c.q().shape()[3]; ++e)
    product = sum_of(product, product_of(c.q().at(at.b, at.h, at.i, e), c.k().at(at.b, kv_head_of(c, at.h), j, e)));
  const double t = product_of(c.scale, product);
  const double capped = product_of(c.softcap, tangent_of(product_of(t, inverse_of(c.softcap))));
  return sum_of(sum_of(capped, product_of(-1, t)), added);
}

// The same as without a cap and with c tanh(t/c) - t in the mask. Its entries are rounded to the mask's format, and by
// that much scores are apart.
Verdict equals_mask(Kernel& kernel, const Case& c) {
  const std::int64_t batch = batch_of(c), heads = heads_of(c), M = queries_of(c), N = keys_of(c);
  Case masked = without_softcap(with_causal_written_out(with_convention_of_numbers(c)));
  Tensor mask(widest_mask(kernel, c), {batch, heads, M, N});
  const double largest = largest_entry(kernel, c);
  std::vector<double> deltas;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    for (std::int64_t j = 0; j < N; ++j) mask.set(row * N + j, -infinity);
    double delta = 0;
    for (const SeenKey& key : seen_keys(c, row)) {
      if (in_a_proof()) {
        mask.set(row * N + key.j, formal_entry(c, place_of(c, row), key.j, key.added));
        continue;
      }
      const double t = key.product.value, y = capped(t, c.softcap), entry = (y - t) + key.added;
      const double held = round_to(mask.dtype(), std::clamp(entry, -largest, largest));
      mask.set(row * N + key.j, held);
      // The slope of c tanh(t/c) - t is between -1 and 0.
      delta = std::max(delta, key.product.error + std::fabs(held - entry) +
                                  0x1p-49 * (std::fabs(y) + std::fabs(t) + std::fabs(key.added)));
    }
    deltas.push_back(delta);
  }
  masked[Slot::mask] = std::move(mask);
  set_layouts(masked, Layouts());
  const Result left = run_with_lse(kernel, c), right = run_with_lse(kernel, within_reach(kernel, masked));
  if (in_a_proof()) return same(left, right, Match::bound);
  return agree_to_scores(c, left, right, 0.25, [&](std::int64_t row, const std::vector<SeenKey>&) {
    return deltas[static_cast<std::size_t>(row)];
  });
}

/// The largest |t| of a visible key of any row, with its error.
double largest_product(const Case& c) {
  double most = 0;
  for (std::int64_t row = 0; row < rows_of(c); ++row)
    for (const SeenKey& key : seen_keys(c, row))
      most = std::max(most, std::fabs(key.product.value) + key.product.error);
  return most;
}

// |c tanh(t/c) - t| <= |t|^3/(3c^2): from some c on the cap changes nothing, at that rate.
Verdict limit(Kernel& kernel, const Case& c) {
  const double most = largest_product(c), times = std::ldexp(1.0, static_cast<int>(argument(c, "times", 12)));
  const double cap = most > 0 ? most * times : c.softcap;
  if (!std::isfinite(cap)) return excused("a product is too large for a cap above it");
  const Result left = run_with_lse(kernel, with_softcap(c, cap)), right = run_with_lse(kernel, without_softcap(c));
  return agree_to_scores(c, left, right, 2, [&](std::int64_t, const std::vector<SeenKey>& keys) {
    double delta = 0;
    for (const SeenKey& key : keys) {
      const double z = (std::fabs(key.product.value) + key.product.error) / cap;
      delta = std::max(delta, z * z * z * cap / 3 * rounded);
    }
    return delta;
  });
}

// c = 0 is no cap, and nothing of an earlier call's stays.
Verdict off(Kernel& kernel, const Case& c) {
  const Case plain = without_softcap(c);
  const Result before = run_with_lse(kernel, plain);
  static_cast<void>(run(kernel, c));
  const Result after = run_with_lse(kernel, plain);
  // One call twice: what is NaN the first time may be so again.
  const Match match = bits_if(kernel, {Claim::deterministic});
  return worse_of({agree({after, before}, match, /*about_bits=*/true), agree_in_lse({after, before}, match)});
}

// No bias: P_j(q) P_j(-q) is e^-(lse(q) + lse(-q)), the same for every key j.
Verdict odd(Kernel& kernel, const Case& c) {
  Case turned = c;
  turned[Slot::q] = mapped(c.q(), [](std::int64_t, double q) { return product_of(-1, q); });
  const KeyWeights weights(kernel, c), opposite(kernel, turned);
  const Result out = run_with_lse(kernel, c), back = run_with_lse(kernel, turned);
  if (in_a_proof()) {
    GenericInputs& inputs = GenericInputs::current();
    for (std::int64_t row = 0; row < rows_of(c); ++row) {
      for (const SeenKey& key : seen_keys(c, row)) {
        const Expression sum = out.run().formal_lse()[row] + back.run().formal_lse()[row];
        const Expression product = weights.formal(row, key.j) * opposite.formal(row, key.j);
        if (!inputs.identical(product * ScalarTraits<Expression>::exp(sum), ScalarTraits<Expression>::from_double(1)))
          return violated(Violation::bound,
                          fmt::format("the weights of key {} in row {} do not multiply to that", key.j, row));
      }
    }
    return {};
  }
  return each_row(c, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    if (auto verdict = opposite.not_finite(row, keys)) return verdict;
    Weight all;  // of what all products are
    const Lse one = lse_of(out, row), other = lse_of(back, row);
    if (one.known && other.known) {
      const double sum = -(one.value + other.value), error = one.error + other.error + 0x1p-48 * (1 + std::fabs(sum));
      all = {std::exp(sum - error), std::exp(sum + error)};
    }
    bool judged = false;
    for (const SeenKey& key : keys) {
      const Weight a = weight_of(weights, row, key.j), b = weight_of(opposite, row, key.j);
      if (!(a.most < infinity && b.most < infinity)) continue;
      const Weight product = product_of_weights(a, b);
      judged = true;
      if (product.most < all.least / rounded || product.least > all.most * rounded)
        return weights_apart(
            std::max(all.least - product.most, product.least - all.most),
            fmt::format("in row {} the weights of key {} for q and for -q multiply to {:.6g} … {:.6g}, and "
                        "those of other keys, or what the two lse say, to {:.6g} … {:.6g}",
                        row, key.j, product.least, product.most, all.least, all.most));
      all = {std::max(all.least, product.least), std::min(all.most, product.most)};
    }
    return judged ? std::optional(Verdict{}) : std::nullopt;
  });
}

/// The keys of a row in the order of their products, where the next is certainly the larger one.
std::vector<std::pair<SeenKey, SeenKey>> ascending_pairs(std::vector<SeenKey> keys) {
  std::ranges::sort(keys, {}, [](const SeenKey& key) { return std::pair(key.product.value, key.j); });
  std::vector<std::pair<SeenKey, SeenKey>> pairs;
  const auto add = [&](const SeenKey& lower, const SeenKey& higher) {
    if (higher.product.value - higher.product.error > lower.product.value + lower.product.error)
      pairs.emplace_back(lower, higher);
  };
  for (std::size_t at = 1; at < keys.size(); ++at) add(keys[at - 1], keys[at]);
  add(keys.front(), keys.back());
  return pairs;
}

// No bias: t_ij >= t_il means P_ij >= P_il.
Verdict monotone(Kernel& kernel, const Case& c) {
  const KeyWeights weights(kernel, c);
  return each_row(c, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    bool judged = false;
    for (const auto& [lower, higher] : ascending_pairs(keys)) {
      const Weight less = weight_of(weights, row, lower.j), more = weight_of(weights, row, higher.j);
      if (!(less.most < infinity && more.most < infinity)) continue;
      judged = true;
      if (less.least <= more.most) continue;
      return weights_apart(
          less.least - more.most,
          fmt::format("in row {} key {} weighs at least {:.6g} and key {} at most {:.6g}, whose product "
                      "with the row is the larger one: {:.6g} and {:.6g}",
                      row, lower.j, less.least, higher.j, more.most, lower.product.value, higher.product.value));
    }
    return judged ? std::optional(Verdict{}) : std::nullopt;
  });
}

// |s_j - s_l| <= |t_j - t_l| before anything is added: of two keys the one with the larger product is the heavier by no
// larger a factor than without the cap.
Verdict contraction(Kernel& kernel, const Case& c) {
  const KeyWeights weights(kernel, c), plain(kernel, without_softcap(c));
  return each_row(c, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    bool judged = false;
    for (const auto& [lower, higher] : ascending_pairs(keys)) {
      const Weight less = weight_of(weights, row, lower.j), more = weight_of(weights, row, higher.j);
      const Weight less_plain = weight_of(plain, row, lower.j), more_plain = weight_of(plain, row, higher.j);
      if (!(less.most < infinity && more.most < infinity && less_plain.most < infinity && more_plain.most < infinity))
        continue;
      judged = true;
      const double found = product_of_weights(more, less_plain).least,
                   bound = product_of_weights(more_plain, less).most;
      if (found <= bound) continue;
      return weights_apart(
          found - bound,
          fmt::format("in row {} keys {} and {} weigh at least {:.6g} and at most {:.6g}, and without the "
                      "cap at most {:.6g} and at least {:.6g}: less unequal",
                      row, higher.j, lower.j, more.least, less.most, more_plain.most, less_plain.least));
    }
    return judged ? std::optional(Verdict{}) : std::nullopt;
  });
}

// (scale, Q) is (1, scale Q) with the same c: the cap sees the scaled product. A power of two, by which numbers are
// multiplied exactly.
Verdict scale_before(Kernel& kernel, const Case& c) {
  const std::optional<ScaledQueries> both = with_scale_in_queries(c);
  if (!both) return excused("scale q is no number of its format");
  return same(run_with_lse(kernel, within_reach(kernel, both->apart)),
              run_with_lse(kernel, within_reach(kernel, both->together)), Match::bound);
}

// A hidden key has no weight, whatever the cap, and one that the mask adds the lowest number to neither.
Verdict masks_after(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), i = argument(c, "i", M), s = argument(c, "s", N);
  const std::int64_t spared = (s + 1 + argument(c, "l", N - 1)) % N;
  const Case masked = hide_and_spare(with_convention_of_numbers(c), i, s, spared);
  const KeyWeights weights(kernel, masked);
  GenericInputs* const inputs = in_a_proof() ? &GenericInputs::current() : nullptr;
  bool judged = false;
  for (std::int64_t row = i; row < rows_of(c); row += M) {
    if (inputs != nullptr) {
      if (!inputs->identical(weights.formal(row, s), ScalarTraits<Expression>::from_double(0)))
        return violated(Violation::bound, fmt::format("key {} is hidden from row {} and has a weight", s, row));
      continue;
    }
    const auto [b, h, at] = place_of(c, row);
    if (!hidden(masked, b, h, at, s) || !(weights.allowed(row, s) < infinity)) continue;
    judged = true;
    if (weights.value(row, s) == 0) continue;
    return violated(Violation::bound, fmt::format("key {} is hidden from row {} and has a weight of {:.6g}", s, row,
                                                  printed(weights.value(row, s))));
  }
  if (inputs != nullptr) return {};
  if (!judged) return excused("no row that the key is hidden from has a bound");
  if (!kernel.manifest().additive_masks) return {};
  // So low that no product brings it back: half the lowest number, but where that leaves the domain.
  const double lowest = std::max(-1e9, -format_of(c.dtype()).largest / 4);
  if (!(-lowest > 4 * (2 * c.softcap + 100))) return {};
  const Case low = with_mask_entry(masked, i, s, lowest);
  if (!why_unsupported(kernel.manifest(), low).empty()) return {};
  const KeyWeights beside(kernel, low);
  for (std::int64_t row = i; row < rows_of(c); row += M) {
    const std::vector<SeenKey> keys = seen_keys(low, row);
    double most_added = -infinity;
    for (const SeenKey& key : keys)
      if (key.j != s) most_added = std::max(most_added, key.added);
    // The others' scores are at least -c above what is added to them.
    const double exponent = lowest + 2 * c.softcap - most_added, allowed = beside.allowed(row, s);
    if (!(allowed < infinity) || !(exponent < -700)) continue;
    if (std::fabs(beside.value(row, s)) <= allowed + std::exp(exponent)) continue;
    return violated(Violation::bound,
                    fmt::format("{:.3g} is added to the score of key {} in row {}, which has a weight "
                                "of {:.6g}",
                                lowest, s, row, printed(beside.value(row, s))));
  }
  return {};
}

// What a mask adds is not capped: Q = 0, and more than 2c is added to one key, whose weight is more than e^(2c) times
// that of the others.
Verdict bias_after(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), s = argument(c, "s", N);
  const double added = in_a_proof() ? any_number(0) : 2 * c.softcap + 1;
  Case still = with_mask_entry(with_convention_of_numbers(c), -1, s, added);
  still[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  for (std::int64_t e = 0; e < still.mask().elements(); ++e)
    if (e % N != s && still.mask()[e] != -infinity) still[Slot::mask].set(e, 0);
  const double held = still.mask()[s];
  const KeyWeights weights(kernel, still);
  if (in_a_proof()) {
    GenericInputs& inputs = GenericInputs::current();
    for (std::int64_t row = 0; row < rows_of(c); ++row)
      for (const SeenKey& key : seen_keys(still, row)) {
        if (key.j == s) continue;
        const Expression larger = weights.formal(row, key.j) * ScalarTraits<Expression>::exp(inputs.at(held));
        if (!inputs.identical(weights.formal(row, s), larger))
          return violated(Violation::bound, fmt::format("in row {} key {} is not e^b times as heavy", row, s));
      }
    return {};
  }
  if (!(held > 2 * c.softcap) || !std::isfinite(held)) return excused("the mask's format holds no number above 2c");
  return each_row(still, [&](std::int64_t row, const std::vector<SeenKey>& keys) -> std::optional<Verdict> {
    if (auto verdict = weights.not_finite(row, keys)) return verdict;
    const bool sees = std::ranges::any_of(keys, [&](const SeenKey& key) { return key.j == s; });
    const Weight found = weight_of(weights, row, s);
    if (!sees || !(found.most < infinity)) return std::nullopt;
    const double expected = 1 / (1 + static_cast<double>(keys.size() - 1) * std::exp(-held));
    if (found.least <= expected * rounded && found.most >= expected / rounded) return Verdict{};
    return weights_apart(
        std::max(found.least - expected, expected - found.most),
        fmt::format("with Q = 0 and {:.6g} added to key {} in row {} of {} keys, its weight is {:.6g} … "
                    "{:.6g}, not {:.9g}",
                    held, s, row % M, keys.size(), found.least, found.most, expected));
  });
}

/// A cap so low that each product of a visible key that is not 0 is at least 20 times as large; nothing where none is,
/// or it is no size that a law can tell anything by.
std::optional<double> saturating_cap(const Case& c) {
  double least = infinity;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    for (const SeenKey& key : seen_keys(c, row)) {
      if (key.product.size == 0) continue;
      if (!(std::fabs(key.product.value) > 1024 * key.product.error)) return std::nullopt;
      least = std::min(least, std::fabs(key.product.value));
    }
  }
  const double times = 20 * std::exp2(static_cast<double>(argument(c, "times", 8)));
  // Between what is small beside every other rounding and where 2c e^-40 would be a difference of scores.
  const double cap = least / times;
  if (!(cap > 0x1p-40 && cap < 0x1p40)) return std::nullopt;
  return cap;
}

// All |t| >= 20c: each score is +-c to within 2c e^(-2|t|/c), and the output the mean over the two groups of keys.
Verdict saturates(Kernel& kernel, const Case& c) {
  const std::optional<double> cap = saturating_cap(c);
  if (!cap) return excused("no cap lies so far below the products");
  const Case low = with_softcap(c, *cap);
  const Result out = run(kernel, low);
  const std::int64_t dv = c.v().shape()[3];
  Indices judged;
  std::vector<double> expected;
  std::vector<long double> errors;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    const auto [b, h, i] = place_of(c, row);
    const std::vector<SeenKey> keys = seen_keys(low, row);
    if (keys.empty()) continue;
    const std::vector<double> ranges = ranges_of(low, row, keys);
    const auto score = [&](const SeenKey& key) {
      return key.product.size == 0 ? 0.0 : std::copysign(*cap, key.product.value);
    };
    double most = -infinity;
    for (const SeenKey& key : keys) most = std::max(most, score(key));
    double sum = 0;
    for (const SeenKey& key : keys) sum += std::exp(score(key) - most);
    for (std::int64_t k = 0; k < dv; ++k) {
      double mean = 0, size = 0;
      for (const SeenKey& key : keys) {
        const double weight = std::exp(score(key) - most) / sum, v = c.v().at(b, kv_head_of(c, h), key.j, k);
        mean += weight * v, size += weight * std::fabs(v);
      }
      judged.push_back(row * dv + k);
      expected.push_back(mean);
      errors.push_back(moved_mean(ranges[static_cast<std::size_t>(k)], 2 * *cap * std::exp(-39)) +
                       static_cast<long double>(static_cast<double>(keys.size() + 8) * 0x1p-50 * size));
    }
  }
  if (judged.empty() && rows_of(c) > 0) return excused(std::string(name_of(Excuse::fully_masked)));
  const Shape shape{std::ssize(judged)};
  return agree({Numbers(out.at(shape, judged)), Numbers(shape, expected).loosened(errors)});
}

// Refuted: with a cap, k_j + a in the place of every k_j changes nothing. The first column alone is not 0: 1 in Q, 0 in
// the first key and 2 in the others, in units that the scale makes 1, c = 1; V tells the first key from the others.
Verdict breaks_key_translation(Kernel& kernel, const Case& c) {
  const Format& format = format_of(c.k().dtype());
  const double most = 8 / c.scale;
  if (!in_a_proof() && !(most <= format.largest / 4 && 1 / c.scale >= format.min_normal))
    return excused("the format of the keys holds no key with a score of 1");
  return refuted(/*budget=*/4, [&](int n) {
    const std::int64_t dk = c.q().shape()[3], dv = c.v().shape()[3], N = keys_of(c);
    const double unit = 1 / c.scale, step = n + 1;
    Case plain = with_softcap(c, 1);
    plain[Slot::q] = mapped(c.q(), [&](std::int64_t e, double) { return e % dk == 0 ? 1.0 : 0.0; });
    plain[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / dv % N == 0 ? 1.0 : 0.0; });
    const auto keys = [&](double moved) {
      return mapped(c.k(), [&](std::int64_t e, double) {
        return e % dk != 0 ? 0.0 : unit * ((e / dk % N == 0 ? 0.0 : 2.0) + moved);
      });
    };
    Case translated = plain;
    plain[Slot::k] = keys(0), translated[Slot::k] = keys(step);
    return Attempt{run(kernel, translated), run(kernel, plain),
                   fmt::format("Q = e_1, scores of 0 and 2 before a cap of 1, and {:g} added to both", step)};
  });
}

constexpr Stated one = defining(hypotheses::softcap, "the theorem is about one");
constexpr std::array any_capped{one};
constexpr std::array capped_alone{one, needed(hypotheses::only_hides,
                                              "what is added to scores is not capped, and orders "
                                              "keys by itself")};
constexpr std::array capped_and_masked{
    one, defining(hypotheses::infinite_dtype, "the mask is written out, and has to hide what positions hide")};
constexpr std::array capped_two_keys{one, defining(hypotheses::two_keys, "one key is hidden and another is not"),
                                     defining(hypotheses::a_query, "a row has weights"),
                                     defining(hypotheses::no_causal_form, "the theorem hides keys by the mask"),
                                     defining(hypotheses::infinity_to_hide, "the theorem hides keys")};
constexpr std::array capped_and_biased{one, defining(hypotheses::a_query_and_a_key, "a row has weights"),
                                       defining(hypotheses::no_causal_form, "the theorem adds to the mask"),
                                       defining(hypotheses::infinity_for_a_mask, "the mask is written out")};
constexpr std::array broken{one, defining(hypotheses::unmasked, "the counterexample has none"),
                            defining(hypotheses::a_query, "a counterexample needs one"),
                            defining(hypotheses::two_keys, "a counterexample needs them")};

/// No mask that adds numbers: one that hides at random in its place.
void hides_only(Recipe& r) {
  constexpr MaskKind adding[] = {MaskKind::bias, MaskKind::alibi, MaskKind::finite_sentinel};
  if (std::ranges::count(adding, r.mask) > 0) r.mask = MaskKind::random;
}
void some_keys(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = std::max(r.keys, 1);
}
/// Lengths at which loops over pairs of rows and keys are soon done.
void few(Recipe& r) {
  r.keys = std::min(r.keys, 300), r.queries = std::min(r.queries, 80);
}

const Property family[] = {
    {.name = "softcap.weights-bounded",
     .statement = "no bias: P_ij/P_il ≤ e^{2c} and |lse_i − ln n_i| ≤ c, however large Q is",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk",
     .hypotheses = capped_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(hides_only).where(few).with_softcap();
     },
     .check = weights_bounded},
    {.name = "softcap.equals-mask",
     .statement = "a cap is no cap and the mask c·tanh(t/c) − t, t the scaled products",
     .source = "+",
     .needs = "attention, softcap, additive masks",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk",
     .hypotheses = capped_and_masked,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(few).with_softcap(); },
     .check = equals_mask},
    {.name = "softcap.limit",
     .statement = "|c·tanh(t/c) − t| ≤ |t|³/(3c²): the larger c, the nearer to no cap, at that rate",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk alibi",
     .hypotheses = any_capped,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(few).with_softcap(); },
     .check = limit},
    {.name = "softcap.off",
     .statement = "c = 0 is no cap, and nothing of an earlier call's stays",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bitwise if deterministic",
     .variant = "softcap",
     .under = "window chunk lengths packed left_pad sink dropout alibi",
     .hypotheses = any_capped,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_softcap();
     },
     .check = off},
    {.name = "softcap.odd",
     .statement = "no bias: P_j(q)·P_j(−q) = e^{−lse(q) − lse(−q)} for every key j",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk",
     .hypotheses = capped_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(hides_only).where(few).with_softcap();
     },
     .check = odd},
    {.name = "softcap.monotone",
     .statement = "no bias: t_ij ≥ t_il ⇒ P_ij ≥ P_il",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk",
     .hypotheses = capped_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(hides_only).where(few).with_softcap();
     },
     .check = monotone},
    {.name = "softcap.contraction",
     .statement = "t_ij ≥ t_il ⇒ P_ij/P_il is at most what it is without the cap",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk alibi",
     .hypotheses = any_capped,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(few).with_softcap(); },
     .check = contraction},
    {.name = "softcap.scale-before",
     .statement = "(scale, Q) is (1, scale·Q) with the same c: the cap sees the scaled product",
     .source = "+",
     .needs = "attention, softcap, any scale",
     .floating_point = "bound",
     .variant = "softcap",
     .under = "window chunk dropout alibi",
     .hypotheses = any_capped,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_softcap().where([](Recipe& r) {
         if (r.scale == ScaleKind::one) r.scale = ScaleKind::power_of_two;
       });
     },
     .check = scale_before},
    {.name = "softcap.masks-after",
     .statement = "a hidden key has weight 0, and one that the mask adds −10⁹ to as well",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "zero bitwise; of the finite entry: bound",
     .variant = "softcap",
     .hypotheses = capped_two_keys,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).masked().at_least(1, 2).where(few).with_softcap();
     },
     .check = masks_after},
    {.name = "softcap.bias-after",
     .statement = "Q = 0 and b > 2c added to one key: its weight is e^b times that of the others, above e^{2c}",
     .source = "+",
     .needs = "attention, softcap, additive masks",
     .floating_point = "bound",
     .variant = "softcap",
     .hypotheses = capped_and_biased,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).masked().where(some_keys).where(few).with_softcap();
     },
     .check = bias_after},
    {.name = "softcap.saturates",
     .statement = "all |t| ≥ 20c: scores are ±c to within 2c·e^{−2|t|/c}, the output is the mean over the two groups",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "bound; finite",
     .variant = "softcap",
     .under = "window chunk",
     .hypotheses = capped_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(hides_only).where(few).with_softcap();
     },
     .check = saturates},
    {.name = "softcap.breaks-key-translation",
     .statement = "with a cap, the same vector added to every key changes nothing",
     .source = "+",
     .needs = "attention, softcap",
     .floating_point = "counterexample",
     .variant = "softcap",
     .hypotheses = broken,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().at_least(1, 2).with_softcap(); },
     .check = breaks_key_translation},
};

}  // namespace

std::span<const Property> softcap_properties() {
  return family;
}

}  // namespace attest
