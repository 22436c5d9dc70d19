#include "properties/arrangement/shifted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/support/infinity.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/generators/stream.h"

namespace attest {

TwoCases translated(const Case& c, Slot slot) {
  TwoCases two{c, c};
  Tensor &before = two.before[slot], &after = two.after[slot];
  const Tensor& old = c[slot];
  const Shape& shape = old.shape();
  const std::int64_t N = shape[2], columns = shape[3];
  const std::string_view of = slot == Slot::k ? "c" : "c-of-v";
  for (std::int64_t page = 0; page < shape[0] * shape[1]; ++page) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto at = [&](std::int64_t j) { return (page * N + j) * columns + column; };
      if (in_a_proof()) {
        const double shift = any_number(1);
        for (std::int64_t j = 0; j < N; ++j) after.set(at(j), sum_of(old[at(j)], shift));
        continue;
      }
      double largest = 0;
      for (std::int64_t j = 0; j < N; ++j) largest = std::max(largest, std::fabs(old[at(j)]));
      Stream stream(seed_argument(c, fmt::format("{}{}.{}", of, page, column)));
      const int power = (largest > 0 ? std::ilogb(largest) : 0) + static_cast<int>(stream.between(-4, 2));
      const double shift = stream.either(std::ldexp(1.0, power));
      bool exact = true;
      for (std::int64_t j = 0; j < N && exact; ++j) {
        after.set(at(j), old[at(j)] + shift);
        const double sum = after[at(j)], rest = sum - shift;
        before.set(at(j), rest);
        exact = std::isfinite(sum) && before[at(j)] == rest && rest + shift == sum;
      }
      for (std::int64_t j = 0; j < N && !exact; ++j) {
        before.set(at(j), old[at(j)]);
        after.set(at(j), old[at(j)]);
      }
    }
  }
  return two;
}

TwoCases with_row_shifted(const Case& c, std::int64_t i) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  const bool hiding_only = only_hides(c);
  const double most = std::ldexp(0.125, std::min(format_of(c.dtype()).precision, 10));
  Case grid = with_additive_mask(c);
  grid[Slot::mask] = mapped(grid.mask(), [&](std::int64_t, double old) {
    return old == -infinity || in_a_proof() ? old : std::clamp(std::round(4 * old) / 4, -most, most);
  });
  // Where B is 0 wherever it is finite, 0 + t is exact for every t.
  const double small[] = {most, -most, most / 2, -most / 4}, large[] = {1, -8, 64, -256};
  const double t = any_number(hiding_only ? large[argument(c, "t", 4)] : small[argument(c, "t", 4)]);
  Case shifted = grid;
  shifted[Slot::mask] =
      mapped(grid.mask(), [&](std::int64_t e, double old) { return e / N % M == i ? sum_of(old, t) : old; });
  return {std::move(grid), std::move(shifted)};
}

}  // namespace attest
