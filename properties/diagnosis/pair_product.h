// The product of a row of q and a key, for readings that make something else of scores.
#pragma once

#include <cstdint>

#include "core/problem/descale.h"
#include "core/problem/sight.h"

namespace attest {

/// q·k of row i of query head h and key j, with their factors and without the scale.
[[nodiscard]] inline long double product_of_pair(const Problem& c, std::int64_t b, std::int64_t h, std::int64_t i,
                                                 std::int64_t j) {
  const std::int64_t dk = c.q().shape()[3], kv = kv_head_of(c, h);
  const std::int64_t q = c.q().shape().flat(b, h, i, std::int64_t{0}),
                     k = c.k().shape().flat(b, kv, j, std::int64_t{0});
  long double sum = 0;
  for (std::int64_t d = 0; d < dk; ++d)
    sum += static_cast<long double>(c.q()[q + d]) * static_cast<long double>(c.k()[k + d]);
  // Exact but for the sum: a factor has 24 bits.
  return sum * static_cast<long double>(factor_of(c, Slot::q, b, h, i) * factor_of(c, Slot::k, b, kv, j));
}

}  // namespace attest
