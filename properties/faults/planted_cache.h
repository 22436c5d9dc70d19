// Keys and values in a cache, in every planted kernel: gathered, so that the rest of it need not know of caches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/call/gathered_keys.h"
#include "properties/faults/make.h"

namespace attest {

class PlantedCache {
 public:
  /// Gathers as the slip understands the tables; `tile`: keys that the kernel takes at a time. The problem outlives it.
  PlantedCache(const attest_problem& p, Slip slip, std::int64_t tile);
  [[nodiscard]] const attest_problem& problem() const { return gathered_.problem; }

 private:
  GatheredKeys gathered_;
  std::vector<std::int32_t> lengths_;  ///< of keys, where the slip changes them
};

}  // namespace attest
