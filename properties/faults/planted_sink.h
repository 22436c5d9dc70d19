// What of a sink a planted kernel takes, of rows or of tiles.
#pragma once

#include <cstdint>

#include "properties/faults/make.h"

namespace attest {

/// The sink of head h, by the slip; -inf: none.
[[nodiscard]] double sink_of(const attest_problem& p, Slip slip, std::int64_t h);

}  // namespace attest
