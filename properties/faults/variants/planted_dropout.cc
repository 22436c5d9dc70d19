#include "properties/faults/variants/planted_dropout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/value/tensor.h"

namespace attest {

DrawnKeep with_own_mask(const attest_problem& p, Slip slip) {
  const auto is = [&](Slip mistake) { return slip == mistake; };
  double rate = p.dropout_p;
  if (is("own-dropout-keeps-by-p")) rate = 1 - rate;
  // A random byte is no larger than the one that 1 - p is rounded down to.
  if (is("own-dropout-of-bytes")) rate = 1 - (std::floor(255 * (1 - rate)) + 1) / 256;
  const std::int64_t seed = is("own-dropout-seed-ignored") ? 0 : p.dropout_seed;
  DrawnKeep drawn(p, [&](const KeptPlace& at) {
    const std::int64_t h = is("own-dropout-alike-in-every-head") ? 0 : at.h;
    const std::int64_t i = is("own-dropout-alike-in-every-row") ? 0 : at.i;
    return keeps_at(seed, (at.b * p.q.shape[1] + h) * p.q.shape[2] + i, at.j, rate);
  });
  if (is("own-dropout-not-scaled") && draws_own_dropout(p)) drawn.problem.dropout_p = 0;
  return drawn;
}

bool drops_weights(const attest_problem& p, Slip slip) {
  const auto is = [&](Slip mistake) { return slip == mistake; };
  if ((p.variants & ATTEST_DROPOUT) == 0 || is("dropout-ignored")) return false;
  // The kernel for single queries knows of none.
  return !is("dropout-ignored-for-one-query") || p.q.shape[2] > 1;
}

bool keeps_weight(const attest_problem& p, Slip slip, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto is = [&](Slip mistake) { return slip == mistake; };
  const attest_tensor& keep = p.keep;
  const std::int64_t queries = p.q.shape[2], keys = p.k.shape[2];
  if (is("dropout-mask-of-key-value-head")) h /= p.q.shape[1] / p.k.shape[1];
  if (is("dropout-mask-of-first-batch") || keep.shape[0] == 1) b = 0;
  if (is("dropout-mask-of-first-head") || keep.shape[1] == 1) h = 0;
  if (is("dropout-mask-of-first-row")) i = 0;
  if (is("dropout-mask-transposed") && queries == keys) std::swap(i, j);
  std::int64_t at = offset_in(keep, b, h, i, j);
  if (is("dropout-mask-strides-ignored")) {
    // What lies beyond the tensor's memory is not the mistake that is planted.
    const std::int64_t last = offset_in(keep, keep.shape[0] - 1, keep.shape[1] - 1, queries - 1, keys - 1);
    at = std::min(((b * keep.shape[1] + h) * queries + i) * keys + j, last);
  }
  return (load_element(keep.data, DType::boolean, at) != 0) != is("dropout-mask-inverted");
}

template <class Real>
Real gain_of_dropout(const attest_problem& p, Slip slip) {
  const auto is = [&](Slip mistake) { return slip == mistake; };
  if (!drops_weights(p, slip) || is("dropout-not-scaled")) return 1;
  const double rate = p.dropout_p;
  const auto over_kept = [](double of) { return Real{1} / (Real{1} - static_cast<Real>(of)); };
  const Real right = over_kept(rate);
  if (is("dropout-scaled-twice")) return right * right;
  if (is("dropout-scaled-down")) return Real{1} - static_cast<Real>(rate);
  // Kernels of these two have no dropout at a rate of 0.
  if (is("dropout-scaled-by-p") && rate > 0) return static_cast<Real>(rate);
  if (is("dropout-over-p") && rate > 0) return Real{1} / static_cast<Real>(rate);
  // The probability that a random byte is no larger than the one that 1 - p is rounded down to.
  if (is("dropout-scale-quantised")) return static_cast<Real>(256 / (std::floor(255 * (1 - rate)) + 1));
  if (is("dropout-in-sixteenths")) return over_kept(std::min(std::round(16 * rate), 15.0) / 16);
  if (is("dropout-scale-in-bf16")) return static_cast<Real>(round_to(DType::bf16, double{right}));
  if (is("dropout-p-in-f16")) return over_kept(round_to(DType::f16, rate));
  return right;
}

template float gain_of_dropout(const attest_problem&, Slip);
template double gain_of_dropout(const attest_problem&, Slip);

}  // namespace attest
