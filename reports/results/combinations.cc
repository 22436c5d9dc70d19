#include "reports/results/combinations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <tuple>

#include "core/problem/fields.h"
#include "reports/results/summary.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Nothing where a combination does not say it.
std::optional<bool> has(const Combination& one, Feature feature) {
  switch (feature) {
    case Feature::mask:
      return one.masking != Masking::none;
    case Feature::additive_mask:
      return one.masking == Masking::additive;
    case Feature::bool_mask:
      return one.masking == Masking::boolean;
    case Feature::causal:
      return one.placing == Placing::causal_top_left || one.placing == Placing::causal_bottom_right;
    case Feature::top_left:
      return one.placing == Placing::causal_top_left;
    case Feature::bottom_right:
      return one.placing == Placing::causal_bottom_right;
    case Feature::grouped_query:
      return one.grouped;
    case Feature::bias_kv:
      return false;
    case Feature::unequal_lengths:
    case Feature::fewer_keys:
    case Feature::output_projection:
    case Feature::lse:
      return std::nullopt;
    default:
      // The word of a variant is its name.
      return one.has_variant(name_of(feature));
  }
}

bool fits(const Combination& one, const std::vector<Feature>& required, const std::vector<Feature>& excluded) {
  return std::ranges::all_of(required, [&](Feature feature) { return has(one, feature).value_or(true); }) &&
         std::ranges::none_of(excluded, [&](Feature feature) { return has(one, feature).value_or(false); });
}

bool lists(const Manifest& m, Causal form) {
  return std::ranges::count(m.causal, form) > 0;
}

bool offers_placing(const Manifest& m, const Combination& one) {
  // What counts positions has an alignment without a causal form, too.
  const auto counts = [&](const Variant& variant) { return one.has_variant(variant.name); };
  const bool counted = std::ranges::any_of(positional_variants, counts);
  const auto aligned = [&](Causal form) {
    return counted && std::ranges::all_of(positional_variants, [&](const Variant& variant) {
             const auto terms = m.variants.find(variant.name);
             return !counts(variant) ||
                    (terms != m.variants.end() && std::ranges::count(terms->second.alignment, form) > 0);
           });
  };
  switch (one.placing) {
    case Placing::none:
      return !counted;
    case Placing::aligned_top_left:
      return aligned(Causal::top_left);
    case Placing::aligned_bottom_right:
      return aligned(Causal::bottom_right);
    case Placing::causal_top_left:
      return lists(m, Causal::top_left);
    case Placing::causal_bottom_right:
      return lists(m, Causal::bottom_right);
  }
  return false;
}

constexpr std::array masks{Masking::none, Masking::boolean, Masking::additive};

/// The variants of a problem that has as few as it can beside these: pages and new keys go with lengths.
std::string together(std::set<std::string_view> variants) {
  if (variants.contains(paged_variant.name) || variants.contains(append_variant.name))
    variants.insert(lengths_variant.name);
  std::vector<std::string_view> in_order;
  for (const Variant& variant : attest::variants())
    if (variants.contains(variant.name)) in_order.push_back(variant.name);
  return fmt::format("{}", fmt::join(in_order, "+"));
}

/// Visits every combination of these variants.
template <class Visit>
void for_each_of(const std::string& variants, Visit visit) {
  for (std::size_t placing = 0; placing < Words<Placing>::names.size(); ++placing)
    for (const bool grouped : {false, true})
      for (const Masking masking : masks) visit(Combination{variants, static_cast<Placing>(placing), grouped, masking});
}

/// What a combination has, with some of it left open.
struct Pattern {
  std::optional<Placing> placing;
  std::optional<bool> grouped;
  std::optional<Masking> masking;

  [[nodiscard]] bool has(const Combination& one) const {
    return placing.value_or(one.placing) == one.placing && grouped.value_or(one.grouped) == one.grouped &&
           masking.value_or(one.masking) == one.masking;
  }
  [[nodiscard]] std::string words() const {
    std::vector<std::string_view> parts;
    if (placing) parts.push_back(placing_words(*placing));
    if (grouped) parts.emplace_back(*grouped ? "with grouped heads" : "without grouped heads");
    if (masking)
      parts.emplace_back(*masking == Masking::none      ? "without a mask"
                         : *masking == Masking::boolean ? "with a bool mask"
                                                        : "with an additive mask");
    return parts.empty() ? "at all" : fmt::format("{}", fmt::join(parts, " "));
  }
};

/// That of a combination which leaves out what the bits do not name.
Pattern pattern_of(const Combination& one, unsigned bits) {
  Pattern pattern;
  if ((bits & 1U) != 0) pattern.masking = one.masking;
  if ((bits & 2U) != 0) pattern.placing = one.placing;
  if ((bits & 4U) != 0) pattern.grouped = one.grouped;
  return pattern;
}

}  // namespace

bool offers(const Manifest& m, const Combination& one) {
  if (one.grouped && (!m.grouped_query || (!m.group_sizes.empty() && m.group_sizes.back() == 1))) return false;
  if (!one.grouped && !m.group_sizes.empty() && m.group_sizes.front() > 1) return false;
  if ((one.masking == Masking::boolean && !m.bool_masks) || (one.masking == Masking::additive && !m.additive_masks))
    return false;
  if (!offers_placing(m, one) || !fits(one, m.required, {})) return false;
  for (const auto& [name, terms] : m.variants)
    if (one.has_variant(name) && !fits(one, terms.required, terms.excluded)) return false;
  return std::ranges::none_of(m.excluded, [&](const std::vector<Feature>& together) {
    return std::ranges::all_of(together, [&](Feature feature) { return has(one, feature).value_or(false); });
  });
}

CombinationCounts combinations_in(const DrawnCounts& drawn, const Manifest& m) {
  CombinationCounts counts;
  if (m.variants.empty()) return counts;
  bool has_variant = false;
  for (const auto& [word, cases] : drawn) {
    if (const auto one = combination_of_kind(word)) counts[*one] += cases;
    has_variant = has_variant || word.ends_with(":given");
  }
  if (counts.empty() && has_variant) return counts;
  // What was judged beside another variant was judged.
  const auto was_judged = [&](std::string_view variant, const Combination& one) {
    return std::ranges::any_of(counts, [&](const auto& other) {
      return other.second > 0 && other.first.has_variant(variant) && other.first.placing == one.placing &&
             other.first.grouped == one.grouped && other.first.masking == one.masking;
    });
  };
  for (const auto& [name, terms] : m.variants)
    for_each_of(together({name}), [&, variant = std::string_view(name)](const Combination& one) {
      if (offers(m, one) && !was_judged(variant, one)) counts.try_emplace(one, 0);
    });
  return counts;
}

VariantPairs pairs_offered(const Manifest& m) {
  VariantPairs pairs;
  for (auto one = m.variants.begin(); one != m.variants.end(); ++one)
    for (auto other = std::next(one); other != m.variants.end(); ++other) {
      if (!go_together(one->first, other->first)) continue;
      bool offered = false;
      for_each_of(together({one->first, other->first}),
                  [&](const Combination& both) { offered = offered || offers(m, both); });
      if (offered) pairs.emplace(one->first, other->first);
    }
  return pairs;
}

Pairs pairs_in(const Summary& summary) {
  Pairs pairs;
  for (const KernelSummary& kernel : summary.kernels)
    if (kernel.judged() > 0) pairs.offered.insert(kernel.pairs.begin(), kernel.pairs.end());
  if (pairs.offered.empty()) return pairs;
  const CombinationCounts counts = combinations_in(summary);
  const auto was_judged = [&](const std::string& one, const std::string& other) {
    return std::ranges::any_of(counts, [&](const auto& judged) {
      return judged.second > 0 && judged.first.has_variant(one) && judged.first.has_variant(other);
    });
  };
  for (const auto& [one, other] : pairs.offered) {
    if (!was_judged(one, other)) pairs.never.emplace(one, other);
    for (const std::string& name : {one, other})
      if (!was_judged(name, name)) pairs.unjudged.insert(name);
  }
  return pairs;
}

CombinationCounts combinations_in(const Summary& summary) {
  CombinationCounts all;
  for (const KernelSummary& kernel : summary.kernels)
    if (kernel.judged() > 0)
      for (const auto& [one, cases] : kernel.combinations) all[one] += cases;
  return all;
}

namespace {

/// Has it all of these variants, named with a plus between two?
bool includes(const Combination& one, std::string_view variants) {
  return std::ranges::all_of(variants | std::views::split('+'), [&](const auto& name) {
    return one.has_variant(std::string_view(name.begin(), name.end()));
  });
}

}  // namespace

std::map<std::string, std::vector<std::string>> never_combined(const CombinationCounts& counts) {
  std::map<std::string, std::vector<std::string>> never;
  std::map<std::string, std::vector<Pattern>> said;
  // Of fewest words first: what they say need not be said again.
  for (const unsigned bits : {0U, 1U, 2U, 4U, 3U, 5U, 6U, 7U}) {
    for (const auto& [one, cases] : counts) {
      const auto is_said = [&](const Pattern& pattern) { return pattern.has(one); };
      if (cases > 0 || std::ranges::any_of(said[one.variants], is_said)) continue;
      const Pattern pattern = pattern_of(one, bits);
      const bool none = std::ranges::none_of(counts, [&](const auto& other) {
        return other.second > 0 && includes(other.first, one.variants) && pattern.has(other.first);
      });
      if (!none) continue;
      said[one.variants].push_back(pattern);
      never[one.variants].push_back(pattern.words());
    }
  }
  return never;
}

std::string combinations_text(const CombinationCounts& counts) {
  constexpr std::size_t shown = 2;
  std::vector<std::string> all, unjudged;
  for (const auto& [variants, words] : never_combined(counts)) {
    // By what else a case has: what was judged beside another variant was judged.
    std::map<std::tuple<Placing, bool, Masking>, bool> was_judged;
    for (const auto& [one, cases] : counts)
      if (one.variants == variants || (cases > 0 && includes(one, variants)))
        was_judged[{one.placing, one.grouped, one.masking}] |= cases > 0;
    const auto of = std::ssize(was_judged), judged = std::ranges::count(was_judged | std::views::values, true);
    if (judged == 0) {
      unjudged.push_back(one_line(variants));
      continue;
    }
    const std::span some(words.data(), std::min(shown, words.size()));
    all.push_back(fmt::format("{} of {} combinations of {} judged; never {}{}", judged, of, one_line(variants),
                              fmt::join(some, ", "),
                              words.size() > shown ? fmt::format(" and {} more", words.size() - shown) : ""));
  }
  if (!unjudged.empty()) all.insert(all.begin(), fmt::format("no judged case has {}", fmt::join(unjudged, ", ")));
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string pairs_text(const Pairs& pairs) {
  constexpr std::size_t shown = 3;
  const auto of_judged = [&](const auto& pair) {
    return !pairs.unjudged.contains(pair.first) && !pairs.unjudged.contains(pair.second);
  };
  std::vector<std::string> words;
  for (const auto& pair : pairs.never)
    if (of_judged(pair)) words.push_back(fmt::format("{} with {}", pair.first, pair.second));
  if (words.empty()) return "";
  const auto offered = static_cast<std::size_t>(std::ranges::count_if(pairs.offered, of_judged));
  const std::size_t never = words.size();
  words.resize(std::min(never, shown));
  return fmt::format("{} of {} pairs of variants judged together; never {}{}", offered - never, offered,
                     fmt::join(words, ", "), never > shown ? fmt::format(" and {} more", never - shown) : "");
}

std::string_view placing_words(Placing placing) {
  constexpr std::array<std::string_view, 5> words{"not causal", "not causal, aligned top-left",
                                                  "not causal, aligned bottom-right", "causal top-left",
                                                  "causal bottom-right"};
  const auto i = static_cast<std::size_t>(placing);
  return i < words.size() ? words[i] : "?";
}

}  // namespace attest
