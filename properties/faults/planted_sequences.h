// Sequences of lengths of their own, padded or packed, in every planted kernel: each is a problem of its own.
#pragma once

#include <cstdint>
#include <functional>

#include "properties/faults/make.h"

namespace attest {

[[nodiscard]] bool has_sequences(const attest_problem& p);

/// attend(problem, result, further) for each sequence, as the slip understands them: views of the tensors, of one batch
/// entry and without the variants that say where the sequence lies; by `further` slopes take its rows to lie further
/// behind its keys than they do. Rows of no sequence become 0.
void for_each_sequence(const attest_problem& p, attest_result& result, Slip slip,
                       const std::function<void(const attest_problem&, attest_result&, std::int64_t)>& attend);

}  // namespace attest
