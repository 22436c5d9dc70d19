// Gradients by the output, and by the log-sum-exp: as a loss has them, and such as make what a backward pass subtracts
// nearly equal, leave the range of small formats, or concern some rows alone.
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

bool draws_loss_by_lse(std::uint64_t seed) {
  return (seed >> 44) % 4 == 0;
}

namespace {

/// Of the size of the gradients by the output, half of them whole numbers, and one in four 0.
Tensor filled_loss_by_lse(const Recipe& r, const Case& c) {
  const Tensor& d_out = c[Slot::d_out];
  const Shape& shape = d_out.shape();
  Stream stream = stream_of(r, Slot::d_lse);
  const bool whole = stream.one_in(2);
  const double most = std::sqrt(format_of(c.dtype()).largest);
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row) {
    double size = 0;
    for (std::int64_t e = row * shape[3]; e < (row + 1) * shape[3]; ++e) size = std::max(size, std::fabs(d_out[e]));
    const double x = whole ? static_cast<double>(stream.between(-2, 2)) : stream.gaussian();
    numbers.push_back(stream.one_in(4) ? 0 : x * (size > 0 ? std::min(size, most) : 1));
  }
  return stored(c.dtype(), {shape[0], shape[1], shape[2]}, numbers);
}

}  // namespace

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
  if (r.loss_by_lse) c[Slot::d_lse] = filled_loss_by_lse(r, c);
}

}  // namespace attest
