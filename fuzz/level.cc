#include "fuzz/level.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace attest {
namespace {

constexpr std::size_t levels = 64, targets = 16;

/// libFuzzer reads and clears the section of this name, in every program and shared object that has one; its size must
/// be a multiple of 8. Volatile, or the stores are dropped, as nobody here reads them.
__attribute__((section("__libfuzzer_extra_counters"))) volatile std::uint8_t reached[levels * targets];

}  // namespace

void show_level(std::size_t target, double quality) {
  if (!(quality > 0)) return;
  const double level = std::clamp(levels - 1 + 4 * std::log2(std::min(quality, 1.0)), 0.0, levels - 1.0);
  reached[target % targets * levels + static_cast<std::size_t>(level)] = 1;
}

}  // namespace attest
