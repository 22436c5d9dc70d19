// The exactness rule at the end of error-bounds.md 1.7.
#pragma once

#include "core/oracle/rows/head.h"

namespace attest::detail {

/// Are all q.k of the visible keys exact in the accumulator of the profile, in any order of summation? All q_c k_jc are
/// multiples of 2^e, and X_j (with |b_j| where the bias may be in the sum) at most 2^(p+e). `most_size`: largest X_j.
[[nodiscard]] bool exact_in_any_order(const Head& head, const Row& row, const Profile& p, double most_size);

}  // namespace attest::detail
