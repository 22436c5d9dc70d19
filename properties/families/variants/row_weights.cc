#include "properties/families/variants/row_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/problem/sight.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/families/variants/row_lse.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {

RowPlace place_of(const Case& c, std::int64_t row) {
  const std::int64_t M = queries_of(c), heads = heads_of(c);
  return {row / M / heads, row / M % heads, row % M};
}

std::int64_t rows_of(const Case& c) {
  return batch_of(c) * heads_of(c) * queries_of(c);
}

std::vector<SeenKey> seen_keys(const Case& c, std::int64_t row) {
  const auto [b, h, i] = place_of(c, row);
  std::vector<SeenKey> keys;
  for (std::int64_t j = 0; j < keys_of(c); ++j)
    if (!hidden(c, b, h, i, j)) keys.push_back({j, scaled_product(c, b, h, i, j), bias_of(c, b, h, i, j)});
  return keys;
}

KeyWeights::KeyWeights(Kernel& kernel, const Case& c) : read_(read_weights(kernel, c)) {
  for (const Result& block : read_.blocks) blocks_.emplace_back(block);
}

double KeyWeights::allowed(std::int64_t row, std::int64_t j) const {
  const Numbers& block = block_of(j);
  const Excuse excuse = block.excuse(element(row, j));
  if (excuse != Excuse::none && excuse != Excuse::vacuous) return infinity;
  // An enclosure that reaches to infinity says nothing.
  if (block.own().present() && !in_a_proof() && !std::isfinite(block.value(element(row, j)))) return infinity;
  return static_cast<double>(block.allowed(element(row, j)));
}

std::optional<Verdict> KeyWeights::not_finite(std::int64_t row, const std::vector<SeenKey>& keys) const {
  for (const SeenKey& key : keys) {
    const double weight = value(row, key.j);
    if (std::isfinite(weight) || !(allowed(row, key.j) < infinity)) continue;
    if (!block_of(key.j).finite_required(element(row, key.j))) continue;
    return violated(Violation::not_finite, fmt::format("the weight of key {} in row {} is {}; it must be finite", key.j,
                                                       row, printed(weight)));
  }
  return std::nullopt;
}

Weight weight_of(const KeyWeights& weights, std::int64_t row, std::int64_t j) {
  const double allowed = weights.allowed(row, j), value = weights.value(row, j);
  if (!(allowed < infinity) || !std::isfinite(value)) return {};
  return {std::max(value - allowed, 0.0), value + allowed};
}

Verdict weights_apart(double error, std::string reason) {
  Verdict verdict = violated(Violation::bound, std::move(reason));
  verdict.error = error;
  return verdict;
}

DType widest_mask(const Kernel& kernel, const Case& c) {
  DType widest = c.dtype();
  for (const DType format : kernel.manifest().mask_dtypes)
    if (format_of(format).unit < format_of(widest).unit) widest = format;
  return in_a_proof() ? DType::f64 : widest;
}

double largest_entry(const Kernel& kernel, const Case& c) {
  const double largest = format_of(widest_mask(kernel, c)).largest;
  const std::optional<DType> converted = kernel.manifest().arithmetic_for(c).mask_format;
  return converted && !in_a_proof() ? std::min(largest, format_of(*converted).largest) : largest;
}

long double moved_mean(double range, double delta) {
  return static_cast<long double>(range) * static_cast<long double>(std::expm1(2 * delta) * std::exp(2 * delta));
}

std::vector<double> ranges_of(const Case& c, std::int64_t row, const std::vector<SeenKey>& keys) {
  const auto [b, h, i] = place_of(c, row);
  const bool drops = c[Slot::keep].present(), sinks = c[Slot::sink].present();
  const double gain = drops ? 1 / (1 - c.dropout_p) : 1;
  const std::int64_t dv = c.v().shape()[3];
  std::vector<double> ranges;
  for (std::int64_t k = 0; k < dv; ++k) {
    double low = drops || sinks ? 0 : infinity, high = drops || sinks ? 0 : -infinity;
    for (const SeenKey& key : keys) {
      const double v = c.v().at(b, kv_head_of(c, h), key.j, k);
      low = std::min(low, v), high = std::max(high, v);
    }
    ranges.push_back(gain * (high - low));
  }
  return ranges;
}

Verdict agree_to_scores(const Case& c, const Result& left, const Result& right, double most, const OfRow& delta,
                        const OfRow& shift) {
  const std::int64_t dv = c.v().shape()[3];
  Indices judged;
  std::vector<long double> apart;
  Verdict of_lse;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    const std::vector<SeenKey> keys = seen_keys(c, row);
    const double by = keys.empty() ? infinity : delta(row, keys);
    if (!(by <= most)) continue;
    const Lse one = lse_of(left, row), other = lse_of(right, row);
    // A mask that the kernel converts hides more than the case does; such a row is its policy's.
    if (one.empty || other.empty) continue;
    const std::vector<double> ranges = ranges_of(c, row, keys);
    for (std::int64_t k = 0; k < dv; ++k) {
      judged.push_back(row * dv + k);
      apart.push_back(moved_mean(ranges[static_cast<std::size_t>(k)], by));
    }
    if (!one.known || !other.known || !(by < infinity)) continue;
    const double ahead = shift ? shift(row, keys) : 0;
    if (std::fabs(one.value + ahead - other.value) <=
        one.error + other.error + by + 0x1p-49 * (1 + std::fabs(one.value) + std::fabs(ahead)))
      continue;
    of_lse = violated(Violation::lse,
                      fmt::format("lse {} is {:.9g} and {:.9g}, of scores that are within {:.3g}{}", row,
                                  printed(one.value), printed(other.value), by,
                                  shift ? fmt::format(" of being {:.9g} higher", printed(ahead)) : std::string()));
  }
  if (judged.empty() && rows_of(c) > 0) return excused("the scores of no row are known well enough");
  const Shape shape{std::ssize(judged)};
  return worse_of(
      {agree_to_within({Numbers(left.at(shape, judged)), Numbers(right.at(shape, judged))}, apart), of_lse});
}

}  // namespace attest
