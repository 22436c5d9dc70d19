// Where the bound of an element comes from, stage by stage.
#pragma once

#include <array>
#include <cstdint>

#include "core/bound/row_bound.h"
#include "core/measure/error_statistics.h"

namespace attest::detail {

/// The parts of ElementTerms::allowed by Stage, error-bounds.md 1.1; they add up to it, to within 2^-20. The errors of
/// scores and of exponentials act together, as S: each key's part of it is shared in the ratio of the two parts of E_j.
/// Of an attention row just evaluated: `o` its values, k the column, `scratch` as key_terms left it.
[[nodiscard]] std::array<double, stage_count> budget_parts(const Profile& p, const RowKeys& row, const KeyTerms& terms,
                                                           const RowValues& values, const ElementTerms& element,
                                                           std::int64_t k, double o, const BoundScratch& scratch);

}  // namespace attest::detail
