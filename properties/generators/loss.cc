// Gradients by the output: as a loss has them, and such as make what a backward pass subtracts nearly equal, leave the
// range of small formats, or concern some rows alone.
#include <algorithm>
#include <cmath>

#include "core/problem/sight.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {

LossKind drawn_loss(std::uint64_t seed) {
  constexpr auto kinds = static_cast<std::uint64_t>(LossKind::count) - 1;
  return static_cast<LossKind>(1 + (seed >> 20) % kinds);
}

void fill_loss(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention || r.loss == LossKind::none) return;
  const Shape shape = c.out_shape();
  const Format& format = format_of(c.dtype());
  Stream stream = stream_of(r, Slot::d_out);
  const double huge = std::min(0x1p80, std::sqrt(format.largest));
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(shape.elements()));
  const std::int64_t columns = shape[3], rows = shape[0] * shape[1] * shape[2];
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t hot = stream.below(columns);
    const bool zero = r.loss == LossKind::zero_rows && stream.one_in(2);
    for (std::int64_t e = 0; e < columns; ++e) {
      double x = stream.gaussian();
      if (r.loss == LossKind::one_hot) x = e == hot ? 1 : 0;
      if (r.loss == LossKind::cancelling)
        x = (e % 2 == 0 ? 1 : -1) * (1 + 0x1p-9 * static_cast<double>(stream.below(3)));
      if (r.loss == LossKind::huge) x *= huge;
      if (r.loss == LossKind::subnormal) x *= 4 * format.min_normal;
      if (r.loss == LossKind::heavy) x = stream.heavy();
      if (r.loss == LossKind::integers) x = static_cast<double>(stream.between(-2, 2));
      numbers.push_back(zero ? 0 : x);
    }
  }
  c[Slot::d_out] = stored(c.dtype(), shape, numbers);
}

}  // namespace attest
