// Arrangements of a case's mask that keep its form: a boolean mask stays boolean, an additive one additive; where there
// is none, an additive one is written out (a boolean one where the dtype has no infinity). Of cases without a causal
// form.
#pragma once

#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// The case with a mask, of zeros (or all visible) where it had none.
[[nodiscard]] Case with_some_mask(Case c);
/// Key s hidden from row i of every batch entry and head, or from every row where i < 0.
[[nodiscard]] Case hide(Case c, std::int64_t i, std::int64_t s);
/// The same; a row of these that then sees nothing sees key l instead, l != s, which nothing is added to.
[[nodiscard]] Case hide_and_spare(Case c, std::int64_t i, std::int64_t s, std::int64_t l);
/// The same problem with its mask and what positions hide, by causal form, window and chunks, as one boolean mask, and
/// none of these. Of a case whose mask only hides.
[[nodiscard]] Case with_boolean_mask(Case c);
/// The same with one mask that is boolean where that is asked for and the case's mask only hides, or where the dtype
/// has no infinity; else additive.
[[nodiscard]] Case with_causal_as_mask(const Case& c, bool boolean);
/// Of every row the last key that it sees in some batch entry and head, or -1.
[[nodiscard]] Indices last_visible(const Case& c);
/// Mask entries that are all 0 or -inf, or boolean; also no mask.
[[nodiscard]] bool only_hides(const Case& c);

}  // namespace attest
