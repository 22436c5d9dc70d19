#include "fuzz/level.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

namespace attest {
namespace {

constexpr std::size_t levels = 64, targets = 16;

/// libFuzzer reads and clears the section of this name, in every program and shared object that has one; its size must
/// be a multiple of 8. Atomic, as several jobs reach levels at once, and as the stores of what nobody here reads would
/// be dropped.
__attribute__((section("__libfuzzer_extra_counters"))) std::atomic<std::uint8_t> reached[levels * targets];
static_assert(sizeof(reached) == levels * targets);

}  // namespace

void show_level(std::size_t target, double quality) {
  if (!(quality > 0)) return;
  const double level = std::clamp(levels - 1 + 4 * std::log2(std::min(quality, 1.0)), 0.0, levels - 1.0);
  reached[target % targets * levels + static_cast<std::size_t>(level)].store(1, std::memory_order_relaxed);
}

}  // namespace attest
