// Infinity, by a name short enough for formulas. For source files: in a header it would meet names of the same kind.
#pragma once

#include <limits>

namespace attest {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace attest
