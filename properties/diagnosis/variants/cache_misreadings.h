// What a wrong kernel may have taken the tables and indices of a cache for.
#pragma once

#include <vector>

#include "properties/diagnosis/variants/sequence_misreadings.h"

namespace attest {

/// Of a case of attention, outside of every cache; none where it is in none.
[[nodiscard]] std::vector<MisreadSequences> misread_cache(const Case& c);

}  // namespace attest
