// Where a tally counts a case.
#pragma once

#include <cstddef>

namespace attest {

/// The bin of Tally::histogram.
[[nodiscard]] std::size_t tally_bin(double utilisation);

}  // namespace attest
