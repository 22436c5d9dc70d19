// Laws of what a row sees by its position (core/problem/sight.h), which hold of windows and of chunks alike. Of cases
// without sequences.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/generators/recipe.h"
#include "properties/language/agree.h"

namespace attest::sight_laws {

[[nodiscard]] Sight seen_by(const Case& c, std::int64_t i);
/// first, first + 1, … below last.
[[nodiscard]] Indices range(std::int64_t first, std::int64_t last);
/// An alignment that the kernel has for the variant: where positions of the case count from already, or else one of the
/// case's own choice.
[[nodiscard]] Causal some_alignment(const Kernel& kernel, const Case& c, const Variant& variant);
/// Q = 0, and V is 1 at the key and 0 at the others, so that a row is the weight of that key: 1/n where it is one of n
/// that the row sees.
[[nodiscard]] Case with_one_value(const Case& c, std::int64_t key);
/// Outputs and log-sum-exps.
[[nodiscard]] Verdict same(Kernel& kernel, const Case& left, const Case& right, Match match);

/// The keys that a window or chunks hide, hidden by the mask; a causal form stays. A boolean mask where the case says
/// so or there is no other.
[[nodiscard]] Verdict equals_mask(Kernel& kernel, const Case& c);
/// Whatever hides keys is one mask that shows what all of it shows.
[[nodiscard]] Verdict intersects(Kernel& kernel, const Case& c);
/// Q = 0 and V = I: a row's weights are 1/n on the n keys that it sees, and 0 on the others.
[[nodiscard]] Verdict visible_set(Kernel& kernel, const Case& c);
/// A row's output and log-sum-exp do not depend on the keys and values that its position hides from it.
[[nodiscard]] Verdict row_locality(Kernel& kernel, const Case& c);
/// A row is attention over the keys that its position shows, where the manifest lets a problem have so few.
[[nodiscard]] Verdict slice(Kernel& kernel, const Case& c);
/// The keys before `first`, which no row sees, may be deleted, as many as are a whole multiple of `step`. Of positions
/// from the last key.
[[nodiscard]] Verdict eviction(Kernel& kernel, const Case& c, std::int64_t first, std::int64_t step);
/// The keys from `last` on, which no row sees, may be deleted. Of positions from the first key.
[[nodiscard]] Verdict tail(Kernel& kernel, const Case& c, std::int64_t last);
/// A row whose position shows it no key, of which there is one: the policy; the other rows are as if it were deleted.
[[nodiscard]] Verdict empty_row(Kernel& kernel, const Case& c);
/// The whole answer is finite and within the bound.
[[nodiscard]] Verdict leading_blocks(Kernel& kernel, const Case& c);
/// M = N: positions that count from the other end are the same.
[[nodiscard]] Verdict alignments_agree(Kernel& kernel, const Case& c);
/// Each row sees the key at its own place alone: o_i = v_i and lse_i = s_ii.
[[nodiscard]] Verdict one_key(Kernel& kernel, const Case& c);
/// No log-sum-exp falls from `narrow` to `wide`, in which each row sees what it saw and perhaps more. `how`: what
/// became of the one, "as the left end moves away by 2".
[[nodiscard]] Verdict lse_monotone(Kernel& kernel, const Case& narrow, const Case& wide, std::string_view how);

// What is drawn.
/// Without a causal form, with this alignment.
void aligned(Recipe& r, Causal alignment);
void any_causal_form(Recipe& r);

}  // namespace attest::sight_laws
