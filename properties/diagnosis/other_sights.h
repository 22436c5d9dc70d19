// Cases whose rows see other keys than they are to: masks in the place of what hides by position.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"

namespace attest {

/// A reading of what hides keys by their position.
struct MisreadSight {
  std::string words;            ///< that follow "it computes as if"; with a # for the size, where there is one
  std::optional<Case> problem;  ///< with a mask that shows what rows see then; nothing: the case tells nothing of it
  std::int64_t size = 0;        ///< 0: none
};

/// Has it a causal form, a window or chunks?
[[nodiscard]] bool hides_by_position(const Problem& c);
/// Can its mask say which keys rows see? One that adds numbers cannot in a format without infinity.
[[nodiscard]] bool can_hide_by_mask(const Case& c);

/// Without that variant and with that causal form, and with a mask, which adds numbers only where the case's own does.
[[nodiscard]] Case without_sight_of(const Variant& variant, Case c, Causal causal);
/// Of what the mask of `open` shows row i, the keys of sight(i) alone.
[[nodiscard]] Case narrowed(const Case& open, const std::function<Sight(std::int64_t i)>& sight);

}  // namespace attest
