#include "properties/faults/variants/planted_alibi.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "core/value/tensor.h"

namespace attest {

bool has_slopes(const attest_problem& p) {
  return (p.variants & ATTEST_ALIBI) != 0;
}

bool counts_from_the_last_key(const attest_problem& p) {
  return (p.causal != ATTEST_CAUSAL_NONE ? p.causal : p.alignment) == ATTEST_CAUSAL_BOTTOM_RIGHT;
}

template <class Real>
PlantedSlopes<Real>::PlantedSlopes(const attest_problem& p, Slip slip, std::int64_t b, std::int64_t h,
                                   std::int64_t further)
    : p_(p), slip_(slip), further_(further), slope_(has_slopes(p) ? slope_of(b, h) : Real{0}) {}

template <class Real>
Real PlantedSlopes<Real>::slope_of(std::int64_t b, std::int64_t h) const {
  if (is("alibi-ignored") || (is("alibi-ignored-for-one-query") && queries_ == 1)) return 0;
  if (is("alibi-ignored-without-mask") && p_.mask.data == nullptr) return 0;
  if (is("alibi-off-where-the-first-slope-is-zero") && given_slope(b, 0) == 0) return 0;
  const std::int64_t heads = p_.q.shape[1];
  if (is("alibi-slope-of-key-value-head")) h /= heads / p_.k.shape[1];
  // As a formula has them that says h for h + 1.
  if (is("alibi-slope-of-the-head-before")) return h == 0 ? Real{1} : static_cast<Real>(given_slope(b, h - 1));
  if (is("alibi-slopes-of-so-many-heads"))
    return static_cast<Real>(std::exp2(-8 * static_cast<double>(h + 1) / static_cast<double>(heads)));
  const double slope = given_slope(b, h);
  if (is("alibi-negative-slope-dropped")) return static_cast<Real>(std::max(slope, 0.0));
  if (is("alibi-slope-in-bf16")) return static_cast<Real>(round_to(DType::bf16, slope));
  return static_cast<Real>(slope);
}

template <class Real>
double PlantedSlopes<Real>::given_slope(std::int64_t b, std::int64_t h) const {
  const attest_tensor& slopes = p_.alibi_slopes;
  const std::int64_t heads = slopes.shape[1];
  if (slopes.shape[0] == 1 || is("alibi-slopes-of-first-batch")) b = 0;
  std::int64_t at = offset_in(slopes, b, h);
  // What lies beyond the tensor's memory is not the mistake that is planted.
  if (is("alibi-strides-ignored")) at = std::min(b * heads + h, offset_in(slopes, slopes.shape[0] - 1, heads - 1));
  return load_element(slopes.data, static_cast<DType>(slopes.dtype), at);
}

template <class Real>
std::int64_t PlantedSlopes<Real>::position(std::int64_t i) const {
  bool from_last = counts_from_the_last_key(p_);
  if (is("alibi-top-left-for-bottom-right")) from_last = false;
  if (is("alibi-bottom-right-for-top-left")) from_last = true;
  // The number of keys stands for the index of the last one.
  if (is("alibi-decode-counts-from-the-length") && from_last && queries_ == 1) ++i;
  return i + (from_last ? keys_ - queries_ : 0) + further_;
}

template <class Real>
Real PlantedSlopes<Real>::distance(std::int64_t i, std::int64_t j) const {
  const std::int64_t p = position(i);
  if (is("alibi-offset-missing-under-causal") && causal_) return static_cast<Real>(i - j);
  if (is("alibi-signed-without-causal") && !causal_) return static_cast<Real>(p - j);
  const auto rounded = [&](DType format) {
    const double row = round_to(format, static_cast<double>(p)), key = round_to(format, static_cast<double>(j));
    return static_cast<Real>(std::abs(row - key));
  };
  if (is("alibi-positions-in-bf16")) return rounded(DType::bf16);
  if (is("alibi-positions-in-f16")) return rounded(DType::f16);
  const std::int64_t away = std::abs(p - j);
  return static_cast<Real>(is("alibi-distance-in-8-bits") ? away & 0xff : away);
}

template <class Real>
Real PlantedSlopes<Real>::added(std::int64_t i, std::int64_t j) const {
  const Real right = -(slope_ * distance(i, j));
  if (is("alibi-rewards-distance")) return -right;
  if (is("alibi-bias-in-bf16")) return static_cast<Real>(round_to(DType::bf16, double{right}));
  if (is("alibi-before-the-scale")) return static_cast<Real>(p_.scale) * right;
  // Of the kernel's exponents to base 2 only this has no factor log2(e), which all of a score is multiplied by.
  if (is("alibi-without-log2e")) return right * std::numbers::ln2_v<Real>;
  return right;
}

template <class Real>
Real PlantedSlopes<Real>::added_to_sink(std::int64_t i) const {
  // Its scores have slope * j, which are larger by slope * p than they should be, and so is their sum.
  return is("alibi-sink-without-the-shift") && causal_ ? -(slope_ * static_cast<Real>(position(i))) : Real{0};
}

template <class Real>
Real PlantedSlopes<Real>::added_to_lse(std::int64_t i) const {
  return is("alibi-lse-of-columns") && causal_ ? slope_ * static_cast<Real>(position(i)) : Real{0};
}

template class PlantedSlopes<float>;
template class PlantedSlopes<double>;

}  // namespace attest
