#include "core/problem/sight.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"

namespace attest {

bool counts_positions(const Problem& c) {
  const std::uint32_t bits = variant_bits(c);
  return std::ranges::any_of(positional_variants, [&](const Variant& variant) { return (bits & variant.bit) != 0; });
}

void settle_alignment(Problem& c) {
  if (!counts_positions(c))
    c.alignment = Causal::none;
  else if (c.causal != Causal::none)
    c.alignment = c.causal;
  else if (c.alignment == Causal::none)
    c.alignment = Causal::top_left;
}

std::int64_t batch_of(const Problem& c) {
  return c.q().shape()[0];
}

std::int64_t heads_of(const Problem& c) {
  return c.operation == Operation::attention ? c.q().shape()[1] : c.heads;
}

std::int64_t kv_head_of(const Problem& c, std::int64_t h) {
  return h / (c.q().shape()[1] / c.k().shape()[1]);
}

std::int64_t queries_of(const Problem& c) {
  return c.q().shape()[c.operation == Operation::attention ? 2 : 1];
}

std::int64_t keys_of(const Problem& c) {
  return c.k().shape()[c.operation == Operation::attention ? 2 : 1];
}

double mask_entry(const Tensor& mask, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  return mask.at(mask.shape()[0] == 1 ? 0 : batch, mask.shape()[1] == 1 ? 0 : head, i, j);
}

namespace {

bool hidden_in(const Problem& c, const Sequence& s, std::int64_t head, std::int64_t i, std::int64_t j) {
  if (!has_key(s, j) || !sight(sight_rule(c), i - s.first_query, s.queries, s.keys).sees(j - s.first_key)) return true;
  const Tensor& mask = c.mask();
  if (!mask.present()) return false;
  const double entry = mask_entry(mask, s.entry, head, i, j);
  return mask.dtype() == DType::boolean ? entry == 0.0 : entry == -std::numeric_limits<double>::infinity();
}

}  // namespace

bool hidden(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  const std::optional<Sequence> own = sequence_at(c, batch, i);
  return !own || hidden_in(c, *own, head, i, j);
}

double slope_of(const Problem& c, std::int64_t batch, std::int64_t head) {
  const Tensor& slopes = c[Slot::alibi_slopes];
  return slopes.present() ? slopes.at(slopes.shape()[0] == 1 ? 0 : batch, head) : 0.0;
}

double distance_of(const Problem& c, std::int64_t batch, std::int64_t i, std::int64_t j) {
  const std::optional<Sequence> own = sequence_at(c, batch, i);
  if (!own) return 0;
  const std::int64_t p = position(sight_rule(c), i - own->first_query, own->queries, own->keys);
  return static_cast<double>(std::abs(p - (j - own->first_key)));
}

double slope_term(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  return -slope_of(c, batch, head) * distance_of(c, batch, i, j);
}

double bias_of(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  const Tensor& mask = c.mask();
  const double entry = mask.present() && mask.dtype() != DType::boolean ? mask_entry(mask, batch, head, i, j) : 0.0;
  return c[Slot::alibi_slopes].present() ? entry + slope_term(c, batch, head, i, j) : entry;
}

bool keeps(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  const Tensor& keep = c[Slot::keep];
  return !keep.present() || mask_entry(keep, batch, head, i, j) != 0;
}

bool has_fully_masked_row(const Problem& c) {
  if (c[Slot::bias_k].present()) return false;
  const std::int64_t heads = heads_of(c);
  for (const Sequence& s : sequences_of(c)) {
    const std::int64_t end = s.first_key + s.keys;
    for (std::int64_t h = 0; h < heads; ++h) {
      const bool sinks = c[Slot::sink].present() && std::isfinite(c[Slot::sink][h]);
      for (std::int64_t i = s.first_query; i < s.first_query + s.queries; ++i) {
        std::int64_t j = s.first_key;
        while (j < end && hidden_in(c, s, h, i, j)) ++j;
        if (j == end && !sinks) return true;
      }
    }
  }
  return false;
}

}  // namespace attest
