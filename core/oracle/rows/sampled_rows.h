// Some rows of a head, where there are too many to judge them all and none repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "core/oracle/rows/head.h"

namespace attest::detail {

/// `count` different rows of the head, ascending; all of them where it has no more. The first and the last; edges of
/// tiles, multiples of 16 to 256 and the rows beside them; those with the largest queries, which have the largest
/// scores, and with the smallest, which weigh their keys most evenly; the rest is drawn from `seed` and nothing else.
void sample_rows(const Head& head, std::int64_t count, std::uint64_t seed, std::vector<std::int64_t>& rows);

}  // namespace attest::detail
