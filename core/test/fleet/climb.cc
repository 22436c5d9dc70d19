#include "core/test/fleet/climb.h"

#include <cmath>
#include <random>

namespace attest::fleet {
namespace {

/// One change to one number of a case; what it becomes stays finite in the dtype.
void change(Case& c, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  if (below(24) == 0) {
    c.scale *=
        below(2) == 0 ? 1 + 0x1p-20 * static_cast<double>(below(64)) : std::exp2(static_cast<double>(below(3)) - 1);
    return;
  }
  constexpr Slot slots[] = {Slot::q, Slot::k, Slot::v, Slot::mask};
  Tensor& tensor = c[slots[below(c.mask().present() ? 4 : 3)]];
  const std::int64_t at = below(static_cast<std::uint64_t>(tensor.elements()));
  const Format& format = format_of(tensor.dtype());
  const double old = tensor[at];
  double x = old;
  switch (below(8)) {
    case 0:
      x *= 2;
      break;
    case 1:
      x /= 2;
      break;
    case 2:
      x = -x;
      break;
    case 3:
      x = tensor[below(static_cast<std::uint64_t>(tensor.elements()))];
      break;
    case 4:
      x = std::normal_distribution<double>()(random) * (std::fabs(x) + 1);
      break;
    case 5:
      x = std::exp2(static_cast<double>(below(8)) - 4);
      break;
    default:
      // A few last places up or down, and a little above the next power of two's grid.
      x *= 1 + 2 * format.unit * static_cast<double>(below(9) - 4);
      break;
  }
  if (std::isinf(old) || std::fabs(x) > format.largest) return;
  tensor.set(at, x);
}

}  // namespace

void climb(const Emulation& kernel, std::uint64_t seed, std::int64_t steps, Ledger& ledger) {
  std::mt19937_64 random(seed);
  constexpr std::int64_t steps_per_start = 500;
  for (std::int64_t start = 0; start * steps_per_start < steps; ++start) {
    const auto regime = static_cast<Regime>(start % validated_regimes);
    const Size size{.M = 1,
                    .N = 1 + static_cast<std::int64_t>(random() % 24),
                    .dk = 1 + static_cast<std::int64_t>(random() % 6),
                    .dv = 1};
    Case best = draw(regime, kernel.arithmetic.input, size, random());
    double height = 0;
    for (std::int64_t step = 0; step < steps_per_start; ++step) {
      Case next = best;
      const std::int64_t changes = 1 + static_cast<std::int64_t>(random() % 3);
      for (std::int64_t i = 0; i < changes; ++i) change(next, random);
      Ledger one;
      one.add(kernel.name, regime, seed, next, kernel.arithmetic, emulate(kernel, next));
      const Entry found = one.total();
      if (found.checks > 0 && found.worst >= height) {
        height = found.worst;
        best = std::move(next);
      }
      ledger.merge(one);
    }
  }
}

}  // namespace attest::fleet
