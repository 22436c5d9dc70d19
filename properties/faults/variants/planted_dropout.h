// Which of its weights a planted kernel drops, of rows or of tiles, and what it makes of the others.
#pragma once

#include <cstdint>

#include "core/call/drawn_keep.h"
#include "properties/faults/make.h"

namespace attest {

/// The problem with the mask that the kernel draws where it is given none, by the slip.
[[nodiscard]] DrawnKeep with_own_mask(const attest_problem& p, Slip slip);

/// Whether weights are dropped at all, by the slip.
[[nodiscard]] bool drops_weights(const attest_problem& p, Slip slip);

/// Whether row i of head h of entry b keeps the weight of key j, by the slip. The problem has a mask of dropout.
[[nodiscard]] bool keeps_weight(const attest_problem& p, Slip slip, std::int64_t b, std::int64_t h, std::int64_t i,
                                std::int64_t j);

/// What multiplies what is kept, by the slip: 1/(1 - p), computed in Real; 1 where nothing is dropped.
template <class Real>
[[nodiscard]] Real gain_of_dropout(const attest_problem& p, Slip slip);

extern template float gain_of_dropout(const attest_problem&, Slip);
extern template double gain_of_dropout(const attest_problem&, Slip);

}  // namespace attest
