// What the rows about the backward pass have in common.
#pragma once

#include <array>
#include <string_view>

#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"

namespace attest {

/// Variants that a backward pass may have, and that say by position what a row sees.
inline constexpr std::string_view by_position = "window chunk";
/// Where rows or keys are taken away, or change their places, nothing that counts them stays as it was.
inline constexpr std::string_view without_positions = "";

/// The row with what all of them have. It holds under windows and chunks unless it says otherwise.
[[nodiscard]] constexpr Property about_gradients(Property row, std::string_view under = by_position) {
  row.source = "+";
  row.needs = "attention_backward";
  row.operation = Operation::attention;
  if (row.backward == Backward::none) row.backward = Backward::any;
  row.under = under;
  return row;
}

inline constexpr std::array of_gradients{defining(hypotheses::gradients, "it is about them")};

[[nodiscard]] inline Case any_with_gradients(Draw& draw) {
  return draw.attention().with_gradients();
}
/// Without causal forms; three in four with a mask.
[[nodiscard]] inline Case masked_with_gradients(Draw& draw) {
  return draw.attention().masked().with_gradients();
}

}  // namespace attest
