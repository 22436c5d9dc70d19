// What the cases that a kernel fails have in common and other cases have not: "H > KV > 1", "N > 64 and a causal form".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// What is looked at of a case: its extents and what it has, not its numbers, but for the size of products beside a
/// softcap, what slopes and factors are and what dropout drops.
struct Traits {
  Extents extents;
  /// "a mask", "a causal form", "in f16", "scores huge", …: what some cases have and others have not.
  std::vector<std::string> words;
};
[[nodiscard]] Traits traits_of(const Case& c);

/// A case that was judged.
struct Observed {
  Traits traits;
  bool violated = false;
  std::optional<Traits> smaller{};  ///< of a violated one: what is left of it where it was made smaller, violated still
};

/// A condition, with the cases that meet it and the others.
struct Condition {
  std::string words{};            ///< follows "cases with"; empty: every case, for no condition tells them apart
  std::vector<std::size_t> of{};  ///< the observed cases that it explains, violated ones and held ones, ascending
  std::int64_t cases = 0, violated = 0;
  std::int64_t others = 0, others_violated = 0;
};

/// The conditions under which cases are violated, the one that explains most first; each further one explains what is
/// violated of the cases that meet none before it, and its counts are of these. A condition has at most three parts.
/// Of all conditions that is taken which, with its parts, makes the shortest description of which cases are violated
/// (minimum description length, Rissanen 1978): log2 C(n, v) + log2(n + 1) bits for v violated ones of n, with the
/// condition and without, and the bits that name its parts. One that does not make it shorter by 10 bits is none. Where
/// a condition that every violated case meets makes it shorter by a fifth as much as all of these together, it stands
/// alone: one mistake shows more often in some cases than in others. So does the first where further ones leave over
/// more than one case in a hundred, and none is given without which cases are violated a tenth as often. All violated
/// cases belong to one of the conditions: those that meet none belong to the first, and with no condition at all there
/// is one without words. What most of the violated cases that were made smaller have lost by that is no part of any,
/// and bounds of extents are those of the smaller ones. Empty where nothing is violated.
[[nodiscard]] std::vector<Condition> conditions_of(std::span<const Observed> observed);

}  // namespace attest
