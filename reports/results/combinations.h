// Which combinations of variants, causal forms, groups of heads and masks (combination.h) kernels were judged on, and
// which that their manifests offer they were not. Of kernels that list a variant; of others nothing is said.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/manifest.h"
#include "core/problem/combination.h"

namespace attest {

struct Summary;  // summary.h

/// Judged cases by combination.
using CombinationCounts = std::map<Combination, std::int64_t>;

/// Whether the manifest lets a problem have it. By its words alone: what they ask of lengths may be met.
[[nodiscard]] bool offers(const Manifest& manifest, const Combination& combination);

/// Of the judged cases' kinds, and 0 for each other that the manifest offers with one variant. Empty where the manifest
/// lists no variant, and of a journal of before they were counted.
[[nodiscard]] CombinationCounts combinations_in(const DrawnCounts& drawn, const Manifest& manifest);

/// Pairs of variants, each with its names in order.
using VariantPairs = std::set<std::pair<std::string, std::string>>;

/// Two variants that the manifest lists and lets one problem have (go_together).
[[nodiscard]] VariantPairs pairs_offered(const Manifest& manifest);

/// Of the pairs that a kernel's manifest offers those that no kernel was judged on: `never`, of `offered`; and the
/// variants of pairs that no judged case had at all.
struct Pairs {
  VariantPairs offered, never;
  std::set<std::string> unjudged;
};
[[nodiscard]] Pairs pairs_in(const Summary& summary);

/// Of all kernels and dtypes together.
[[nodiscard]] CombinationCounts combinations_in(const Summary& summary);

/// "with an additive mask", "causal bottom-right with grouped heads": as few words as say which combinations of a
/// variant have no case, by variant.
[[nodiscard]] std::map<std::string, std::vector<std::string>> never_combined(const CombinationCounts& counts);

/// "no judged case has sink; 21 of 24 combinations of window judged; never with an additive mask, …" for a terminal;
/// empty where all were, and where there are none.
[[nodiscard]] std::string combinations_text(const CombinationCounts& counts);
/// "60 of 69 pairs of variants judged together; never sink with window, …", empty likewise. Of variants that were
/// judged: what no case had at all, combinations_text tells.
[[nodiscard]] std::string pairs_text(const Pairs& pairs);

/// "causal bottom-right", "not causal, from the top left".
[[nodiscard]] std::string_view placing_words(Placing placing);

}  // namespace attest
