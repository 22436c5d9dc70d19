#include "core/problem/combination.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/problem/fields.h"

namespace attest {
namespace {

constexpr std::string_view grouped_word = "grouped", each_word = "not-grouped";

Placing placing_of(const Problem& c) {
  if (c.causal == Causal::top_left) return Placing::causal_top_left;
  if (c.causal == Causal::bottom_right) return Placing::causal_bottom_right;
  if (c.alignment == Causal::top_left) return Placing::aligned_top_left;
  return c.alignment == Causal::bottom_right ? Placing::aligned_bottom_right : Placing::none;
}

Masking masking_of(const Problem& c) {
  if (!c.mask().present()) return Masking::none;
  return c.mask().dtype() == DType::boolean ? Masking::boolean : Masking::additive;
}

std::vector<std::string_view> parts_of(std::string_view words, char between) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(between, at), words.size());
    parts.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

bool Combination::has_variant(std::string_view name) const {
  return std::ranges::count(parts_of(variants, '+'), name) > 0;
}

bool go_together(std::string_view one, std::string_view other) {
  using Pair = std::pair<std::string_view, std::string_view>;
  // Packed sequences have their own lengths and lie in no cache, of which there is one, and in which nothing is
  // dropped.
  static constexpr std::array apart{
      Pair{packed_variant.name, lengths_variant.name},     Pair{packed_variant.name, left_pad_variant.name},
      Pair{packed_variant.name, paged_variant.name},       Pair{packed_variant.name, append_variant.name},
      Pair{packed_variant.name, cache_index_variant.name}, Pair{paged_variant.name, cache_index_variant.name},
      Pair{dropout_variant.name, paged_variant.name},      Pair{dropout_variant.name, append_variant.name},
      Pair{dropout_variant.name, cache_index_variant.name}};
  return std::ranges::none_of(apart,
                              [&](const Pair& pair) { return pair == Pair{one, other} || pair == Pair{other, one}; });
}

std::optional<Combination> combination_of(const Problem& c) {
  Combination found;
  for (const Variant& variant : variants_of(c)) {
    if (!found.variants.empty()) found.variants += '+';
    found.variants += variant.name;
  }
  if (found.variants.empty()) return std::nullopt;
  found.placing = placing_of(c);
  found.grouped = c.operation == Operation::attention && c.q().shape()[1] != c.k().shape()[1];
  found.masking = masking_of(c);
  return found;
}

std::string kind_of(const Combination& one) {
  return fmt::format("{}{}/{}/{}/{}", combination_group, one.variants, name_of(one.placing),
                     one.grouped ? grouped_word : each_word, name_of(one.masking));
}

std::optional<Combination> combination_of_kind(std::string_view kind) {
  if (!kind.starts_with(combination_group)) return std::nullopt;
  const std::vector<std::string_view> parts = parts_of(kind.substr(combination_group.size()), '/');
  if (parts.size() != 4 || parts[0].empty()) return std::nullopt;
  const std::optional<Placing> placing = named<Placing>(parts[1]);
  const std::optional<Masking> masking = named<Masking>(parts[3]);
  if (!placing || !masking || (parts[2] != grouped_word && parts[2] != each_word)) return std::nullopt;
  return Combination{std::string(parts[0]), *placing, parts[2] == grouped_word, *masking};
}

}  // namespace attest
