// Keys whose values show what becomes of them.
#pragma once

#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {

/// Fewer keys have no second tile of the usual kinds.
inline constexpr std::int64_t fewest_marked = 64;

/// Gives four keys values that are so large that what becomes of these keys shows within any bound, though they weigh
/// no more than others: the last one, one of the second 256, one behind the first 600, and one anywhere, as far as
/// there are so many. Each in a column of its own, so that no two cancel. The recipe has at least four columns of
/// values, a key, and no overrides.
void mark_keys(Recipe& r, Stream& stream);

}  // namespace attest
