// The scale of a problem in its queries.
#pragma once

#include <optional>

#include "core/problem/case.h"

namespace attest {

/// One problem twice: with a scale that is a power of two, and with that in Q and a scale of 1.
struct ScaledQueries {
  Case apart, together;
};
/// The case so, its scale exchanged for a power of two where it is none; in a proof any scale. Nothing where an element
/// of Q times the scale is no number of its format.
[[nodiscard]] std::optional<ScaledQueries> with_scale_in_queries(const Case& c);

}  // namespace attest
