// What chunks leave of the keys, in every planted kernel.
#pragma once

#include <cstdint>

#include "properties/faults/make.h"
#include "properties/faults/planted_sequences.h"
#include "properties/faults/variants/planted_window.h"

namespace attest {

[[nodiscard]] bool has_chunks(const attest_problem& p);

/// The keys of the chunk that row i is in, within 0 and N; all of them without chunks. What window, causal form and
/// mask hide is not left out.
[[nodiscard]] KeyRange chunk_of(const attest_problem& p, Slip slip, const Miscount& miscount, std::int64_t i);

/// Whether the slip drops the causal form because of the chunks.
[[nodiscard]] bool chunks_drop_causal(const attest_problem& p, Slip slip);

}  // namespace attest
