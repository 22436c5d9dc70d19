#include "core/kernel/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"

namespace attest {
namespace {

std::optional<std::int64_t> least_of(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

std::string listed(const std::vector<Feature>& features, std::string_view between) {
  std::vector<std::string_view> words;
  words.reserve(features.size());
  for (const Feature feature : features) words.push_back(name_of(feature));
  return fmt::format("{}", fmt::join(words, between));
}

}  // namespace

bool AllowedExtents::has(std::int64_t extent) const {
  return from(extent) == extent;
}

std::optional<std::int64_t> AllowedExtents::from(std::int64_t extent) const {
  if (!list.empty()) {
    const auto found = std::ranges::lower_bound(list, extent);
    return found == list.end() ? std::nullopt : std::optional(*found);
  }
  const std::int64_t up = (std::max(extent, least) + multiple - 1) / multiple * multiple;
  return most && up > *most ? std::nullopt : std::optional(up);
}

std::int64_t AllowedExtents::nearest(std::int64_t extent) const {
  if (const auto up = from(extent)) return *up;
  if (!list.empty()) return list.back();
  const std::int64_t largest = *most / multiple * multiple;
  return largest >= std::max(least, std::int64_t{1}) ? largest : extent;
}

AllowedExtents allowed_queries(const Manifest& m) {
  return {.multiple = m.queries_multiple, .least = m.min_queries, .most = m.max_queries};
}

AllowedExtents allowed_keys(const Manifest& m) {
  return {.multiple = m.keys_multiple, .least = m.min_keys, .most = m.max_keys};
}

AllowedExtents allowed_tokens(const Manifest& m) {
  return {.multiple = std::lcm(m.queries_multiple, m.keys_multiple),
          .least = std::max(m.min_queries, m.min_keys),
          .most = least_of(m.max_queries, m.max_keys)};
}

AllowedExtents allowed_head_dims(const Manifest& m) {
  return {.list = m.head_dims, .multiple = m.head_dim_multiple, .least = 1, .most = m.max_head_dim};
}

AllowedExtents allowed_value_dims(const Manifest& m) {
  if (m.value_dims.empty()) return allowed_head_dims(m);
  return {.list = m.value_dims};
}

bool allows_heads(const Manifest& m, std::int64_t heads, std::int64_t kv_heads) {
  if (heads % m.heads_multiple != 0 || heads > m.max_heads.value_or(heads) || heads % kv_heads != 0) return false;
  if (kv_heads != heads && !m.grouped_query) return false;
  return m.group_sizes.empty() || std::ranges::binary_search(m.group_sizes, heads / kv_heads);
}

bool has(const Case& c, Feature feature) {
  const auto any_sequence = [&](auto is) { return std::ranges::any_of(sequences_of(c), is); };
  switch (feature) {
    case Feature::mask:
      return c.mask().present();
    case Feature::additive_mask:
      return c.mask().present() && c.mask().dtype() != DType::boolean;
    case Feature::bool_mask:
      return c.mask().present() && c.mask().dtype() == DType::boolean;
    case Feature::causal:
      return c.causal != Causal::none;
    case Feature::top_left:
      return c.causal == Causal::top_left;
    case Feature::bottom_right:
      return c.causal == Causal::bottom_right;
    case Feature::grouped_query:
      return c.operation == Operation::attention && c.q().shape()[1] != c.k().shape()[1];
    case Feature::unequal_lengths:
      return any_sequence([](const Sequence& s) { return s.queries != s.keys; });
    case Feature::fewer_keys:
      return any_sequence([](const Sequence& s) { return s.keys < s.queries; });
    case Feature::output_projection:
      return c.operation == Operation::attention || c[Slot::w_o].present();
    case Feature::bias_kv:
      return c[Slot::bias_k].present() || c[Slot::bias_v].present();
    case Feature::window:
    case Feature::lengths:
    case Feature::packed:
    case Feature::left_pad:
    case Feature::paged:
    case Feature::append:
    case Feature::cache_index:
    case Feature::sink:
    case Feature::softcap:
    case Feature::dropout:
    case Feature::alibi:
    case Feature::chunk:
    case Feature::descale:
      return has_variant(c, name_of(feature));
    case Feature::lse:
      return asks_for_gradients(c);  // the forward call before a backward call is asked for one
  }
  return false;
}

bool lacks(const Case& c, Feature feature) {
  return feature != Feature::lse && !has(c, feature);
}

std::string why_no_lse(const Manifest& m, const Case& c) {
  if (!m.lse) return "the manifest's lse is false";
  const auto of_call = [&](Feature feature) { return feature == Feature::lse || has(c, feature); };
  const auto lists_it = [](const std::vector<Feature>& words) { return std::ranges::count(words, Feature::lse) > 0; };
  for (const std::vector<Feature>& together : m.excluded)
    if (lists_it(together) && std::ranges::all_of(together, of_call))
      return fmt::format("has {}; the manifest's excludes lists that", listed(together, " with "));
  for (const auto& [name, terms] : m.variants)
    if (lists_it(terms.excluded) && has_variant(c, name))
      return fmt::format("has the variant {} with lse; the manifest's variants.{}.excludes lists it", name, name);
  return {};
}

bool asks_lse(const Manifest& m, const Case& c, bool wanted) {
  if (c.operation == Operation::multihead) return false;  // which has many, one a head, and returns none
  if (wanted || c.operation != Operation::attention) return wanted && why_no_lse(m, c).empty();
  if (!why_no_lse(m, c).empty()) return false;
  const auto lists_it = [](const std::vector<Feature>& words) { return std::ranges::count(words, Feature::lse) > 0; };
  return lists_it(m.required) || std::ranges::any_of(m.variants, [&](const auto& variant) {
           return lists_it(variant.second.required) && has_variant(c, variant.first);
         });
}

std::string why_features(const Manifest& m, const Case& c) {
  const auto of_case = [&](Feature feature) { return has(c, feature); };
  const auto lacking = std::ranges::find_if(m.required, [&](Feature feature) { return lacks(c, feature); });
  if (lacking != m.required.end())
    return fmt::format("is without {}; the manifest's requires lists it", name_of(*lacking));
  for (const std::vector<Feature>& together : m.excluded) {
    if (std::ranges::all_of(together, of_case))
      return fmt::format("has {}; the manifest's excludes lists that", listed(together, " with "));
  }
  return {};
}

}  // namespace attest
