#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/oracle/gradients/exact_gradients.h"
#include "core/oracle/gradients/gradients.h"
#include "core/oracle/rows/ball_row.h"
#include "core/support/infinity.h"

namespace attest {
namespace {

constexpr Enclosure undefined{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};

Enclosure enclosure_of(const Arb& x) {
  if (x.is_undefined()) return undefined;
  return {detail::lower_end(x.ball()), detail::upper_end(x.ball())};
}

/// Neighbouring ends, or those of a number that is 0 as far as balls tell.
bool is_narrow(const Enclosure& e) {
  constexpr double next_to_nothing = 0x1p-200;
  const bool neighbours = e.upper <= std::nextafter(std::nextafter(e.lower, infinity), infinity);
  return neighbours || e.upper - e.lower <= next_to_nothing;
}

GradientEnclosures enclosures(const detail::GradientTask& task, long bits) {
  const Problem& c = task.c;
  GradientEnclosures all;
  for (const Gradient of : gradients_by_inputs)
    all[static_cast<std::size_t>(of)].assign(static_cast<std::size_t>(c[slot_of(of)].elements()), Enclosure{});
  const auto take = [&](Gradient of, std::int64_t row, const Matrix<Arb>& from, Index i) {
    for (Index e = 0; e < from.cols(); ++e)
      all[static_cast<std::size_t>(of)][static_cast<std::size_t>(row * from.cols() + e)] = enclosure_of(from(i, e));
  };
  detail::for_each_group(c, [&](const Sequence& s, std::int64_t kv) {
    // Without a key dq is 0.
    if (s.keys == 0) return;
    const std::vector<Gradients<Arb>> pages = detail::exact_gradients(task, s, kv, bits);
    const auto heads = static_cast<std::int64_t>(pages.size());
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const std::int64_t row = detail::row_of_key(c, s, kv, j);
      take(Gradient::k, row, pages.front().k, j), take(Gradient::v, row, pages.front().v, j);
    }
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i)
        take(Gradient::q, detail::row_of_query(c, s, kv * heads + h, i), pages[static_cast<std::size_t>(h)].q, i);
  });
  const detail::ExactSharedGradients shared = detail::exact_shared_gradients(task, bits);
  const auto take_all = [&](Gradient of, const std::vector<Arb>& from) {
    std::ranges::transform(from, std::back_inserter(all[static_cast<std::size_t>(of)]), enclosure_of);
  };
  take_all(Gradient::mask, shared.mask), take_all(Gradient::sink, shared.sink);
  return all;
}

}  // namespace

GradientEnclosures gradient_enclosures(const Problem& c) {
  // What a forward pass has returned is no part of the definition.
  const Shape out = c.out_shape();
  const BackwardInputs given{c[Slot::d_out], c[Slot::d_lse], Tensor(c.dtype(), out),
                             Tensor(DType::f64, {out[0], out[1], out[2]})};
  const Arithmetic forward;
  const BackwardArithmetic backward;
  GradientEnclosures all;
  bool narrow = false;
  for (long bits = 128; !narrow && bits <= GradientOptions().max_ball_precision; bits *= 2) {
    all = enclosures({c, given, forward, backward, GradientOptions()}, bits);
    narrow = std::ranges::all_of(all, [](const auto& elements) { return std::ranges::all_of(elements, is_narrow); });
  }
  return all;
}

}  // namespace attest
