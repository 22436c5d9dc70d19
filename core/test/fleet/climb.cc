#include "core/test/fleet/climb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "core/problem/descale.h"

namespace attest::fleet {
namespace {

/// One of the numbers of variants that the case has; false: it has none.
bool change_argument(Case& c, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  if (c.softcap > 0 && below(2) == 0) {
    const double by =
        below(2) == 0 ? 1 + 0x1p-20 * static_cast<double>(below(64)) : std::exp2(static_cast<double>(below(3)) - 1);
    c.softcap = std::clamp(c.softcap * by, 0x1p-60, 0x1p60);
    return true;
  }
  if (c.dropout_p > 0 && below(2) == 0) {
    c.dropout_p = std::clamp(c.dropout_p * (1 + 0x1p-10 * static_cast<double>(below(9) - 4)), 0x1p-20, 0.999);
    return true;
  }
  if (c.window_left < 0 && c.window_right < 0) return false;
  std::int64_t& end = c.window_right < 0 || (c.window_left >= 0 && below(2) == 0) ? c.window_left : c.window_right;
  end = std::max<std::int64_t>(0, end + below(3) - 1);
  return true;
}

}  // namespace

double changed(const Tensor& tensor, std::int64_t at, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  if (tensor.dtype() == DType::boolean) return 1 - tensor[at];
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
  return std::isinf(old) || std::fabs(x) > format.largest ? old : x;
}

namespace {

/// One change to one number of a case; what it becomes stays finite in the dtype.
void change(Case& c, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  if (below(24) == 0) {
    c.scale *=
        below(2) == 0 ? 1 + 0x1p-20 * static_cast<double>(below(64)) : std::exp2(static_cast<double>(below(3)) - 1);
    return;
  }
  if (below(24) == 0 && change_argument(c, random)) return;
  std::vector<Slot> slots{Slot::q, Slot::k, Slot::v};
  for (const Slot slot :
       {Slot::mask, Slot::sink, Slot::keep, Slot::alibi_slopes, Slot::q_descale, Slot::k_descale, Slot::v_descale})
    if (c[slot].present()) slots.push_back(slot);
  Tensor& tensor = c[slots[static_cast<std::size_t>(below(slots.size()))]];
  const std::int64_t at = below(static_cast<std::uint64_t>(tensor.elements()));
  double x = changed(tensor, at, random);
  const bool factor = std::ranges::any_of(std::array{Slot::q, Slot::k, Slot::v},
                                          [&](Slot one) { return &tensor == &c[descale_of(one)]; });
  if (factor && !(round_to(DType::f32, x) > 0)) return;
  if (factor && c.dtype() == DType::f64) x = std::exp2(std::round(std::log2(x)));
  tensor.set(at, x);
}

}  // namespace

void climb(const Emulation& kernel, std::uint64_t seed, std::int64_t steps, Ledger& ledger, Added added) {
  std::mt19937_64 random(seed);
  constexpr std::int64_t steps_per_start = 500;
  for (std::int64_t start = 0; start * steps_per_start < steps; ++start) {
    const auto regime = static_cast<Regime>(start % validated_regimes);
    const Size size{.M = 1,
                    .N = 1 + static_cast<std::int64_t>(random() % 24),
                    .dk = 1 + static_cast<std::int64_t>(random() % 6),
                    .dv = 1};
    Case best = draw(regime, kernel.arithmetic.input, size, random());
    add(added, best, random);
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
