// Agreement of laws that claim bits inside the domain of definition only: what hidden keys hold, where rows end.
#pragma once

#include "properties/language/agree.h"

namespace attest {

/// What two calls must agree in that differ in hidden keys and values alone, as long as these are finite. The same bits
/// from a kernel that is deterministic and promises to ignore dead values. The same values (+0 equals -0) from one that
/// is only deterministic, which is about the same call: it may add 0 times a hidden value, and the sign of that product
/// is the sign of a sum that is 0. Nothing else of the value is left where -inf is added to a score inside the domain:
/// the score is -inf, which is no maximum, its weight is exactly 0 (A1 of error-bounds.md), and adding a zero rounds
/// nothing. Else the bound.
[[nodiscard]] Match match_of_dead_values(const Kernel& kernel);

/// agree, about bits; where bits must agree and do not, elements of fully masked rows and those outside the domain of
/// definition on either side are not held to it. Excused when no other element is left.
[[nodiscard]] Verdict agree_in_domain(Sides sides, Match match);

/// The log-sum-exps of the rows that two results of attention hold, in their order, where both rows lie inside the
/// domain: bits (values) where these must agree, else to within what both are allowed. Held where a run has none. In a
/// proof the same formulas.
[[nodiscard]] Verdict agree_in_lse_in_domain(Sides sides, Match match);

}  // namespace attest
