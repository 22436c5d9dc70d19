// Combinations: which variants, causal form, groups of heads and mask a problem has together. A kernel may be right
// with each of them alone; runs count their cases by these, so that what was never judged together can be said.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "core/problem/problem.h"

namespace attest {

/// How rows lie on the keys.
enum class Placing : std::uint8_t {
  none,  ///< no causal form, and nothing that asks for an alignment
  aligned_top_left,
  aligned_bottom_right,
  causal_top_left,
  causal_bottom_right
};
template <>
struct Words<Placing> {
  static constexpr std::array<std::string_view, 5> names{"not-causal", "aligned-top-left", "aligned-bottom-right",
                                                         "causal-top-left", "causal-bottom-right"};
};

enum class Masking : std::uint8_t { none, boolean, additive };
template <>
struct Words<Masking> {
  static constexpr std::array<std::string_view, 3> names{"no-mask", "bool-mask", "additive-mask"};
};

struct Combination {
  std::string variants;  ///< by name, a plus between two; never empty
  Placing placing = Placing::none;
  bool grouped = false;  ///< fewer key-value heads than heads
  Masking masking = Masking::none;

  [[nodiscard]] bool has_variant(std::string_view name) const;
  [[nodiscard]] auto operator<=>(const Combination&) const = default;
};

/// Whether any problem has both of these variants, as validate.cc lets it. Of two that are not the same.
[[nodiscard]] bool go_together(std::string_view one, std::string_view other);

/// Of a valid problem; nothing of one without a variant.
[[nodiscard]] std::optional<Combination> combination_of(const Problem& c);

/// The word of a drawn case's kinds for it, as journals count it: "combination:window/causal-top-left/grouped/no-mask".
[[nodiscard]] std::string kind_of(const Combination& combination);
/// The combination of such a word; nothing for any other.
[[nodiscard]] std::optional<Combination> combination_of_kind(std::string_view kind);
inline constexpr std::string_view combination_group = "combination:";

}  // namespace attest
