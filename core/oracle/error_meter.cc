#include "core/oracle/error_meter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/bound/budget.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

/// Utilisations beyond it are errors of another kind; in a sum they would drown all others.
constexpr double most_in_sums = 4;

/// 2^-exponent of the unit in the last place of |exact|: of its binade, or of the subnormals below them.
double inverse_ulp(double size, const Format& format) {
  const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(size) >> 52U);
  const std::int64_t exponent = std::max<std::int64_t>(bits - 1023, format.min_exponent) - format.precision + 1;
  // 2^-exponent as a pattern where it is a normal number; f64 near its own edge is beyond.
  return exponent > -1023 ? std::bit_cast<double>(static_cast<std::uint64_t>(1023 - exponent) << 52U)
                          : std::ldexp(1.0, 1023);
}

}  // namespace

void ErrorMeter::note_row(const Head& head, const Row& row) {
  note(head.bias, row.n < head.keys);
}

void ErrorMeter::take_worst(double utilisation, std::int64_t element, const Worst& worst) {
  if (!(utilisation > worst_utilisation_ || (utilisation == worst_utilisation_ && element < worst_element_))) return;
  worst_utilisation_ = utilisation;
  worst_element_ = element;
  worst_ = worst;
}

void ErrorMeter::add(std::int64_t element, std::int64_t k, double found, double exact, const Decision& decision) {
  ErrorSample& s = *sample_;
  ++s.elements;
  if (!std::isfinite(decision.error)) {
    s.worst_error = s.worst_ulp = infinity;
    ++s.histogram[0][utilisation_bins - 1];
    s.worst_normal = infinity;
    take_worst(infinity, element, {k, exact, decision});
    return;
  }
  const double difference = found - exact, size = std::abs(exact);
  const double ratio = decision.error == 0 ? 0 : decision.error / decision.allowed;
  const double utilisation = ratio >= 0 ? ratio : infinity;
  ++s.histogram[difference < 0 ? 1 : 0][utilisation_bin(utilisation)];
  s.worst_error = std::max(s.worst_error, decision.error);
  s.worst_ulp = std::max(s.worst_ulp, decision.error * inverse_ulp(size, format_));
  // 0/0 is no error.
  const double signed_share = difference == 0 ? 0 : difference / decision.allowed;
  const double share = std::clamp(signed_share, -most_in_sums, most_in_sums);
  row_bias_ += share;
  row_squares_ += share * share;
  // The last is the least of them, so that nothing below it changes any.
  if (decision.outcome == Outcome::held && decision.error > s.atol.back()) {
    for (std::size_t i = 0; i < relative_steps.size(); ++i) {
      // The rounding of the difference is at most 2^-53 of the error: added.
      const double rest = decision.error * (1 + 0x1p-50) - relative_steps[i] * unit_ * size;
      s.atol[i] = std::max(s.atol[i], rest);
    }
  }
  const bool subnormal =
      decision.outcome == Outcome::held && size < format_.min_normal && decision.allowed <= format_.min_subnormal;
  double& worst_of_kind = subnormal ? s.worst_subnormal : s.worst_normal;
  worst_of_kind = std::max(worst_of_kind, utilisation);
  take_worst(utilisation, element, {k, exact, decision});
}

void ErrorMeter::end_row(const RowOracle* oracle) {
  if (worst_.k >= 0 && oracle) describe(*oracle, worst_.k, worst_.exact, worst_.decision);
  worst_.k = -1;
  sum_bias_.add(row_bias_), sum_squares_.add(row_squares_);
  row_bias_ = row_squares_ = 0;
}

void ErrorMeter::add_sum(std::int64_t element, double found, double exact, const Decision& decision, double size) {
  add(element, 0, found, exact, decision);
  if (worst_.k >= 0) describe_size(size, exact, decision);
  end_row(nullptr);
}

void ErrorMeter::describe_size(double sum, double exact, const Decision& decision) {
  const double ratio = sum / std::abs(exact);
  sample_->condition = sum == 0 || !(ratio > 1) ? 1 : ratio;
  const double scale = format_.unit * sum;
  const bool scalable = scale > 0 && std::isfinite(scale) && std::isfinite(decision.error);
  sample_->scaled_error = scalable ? decision.error / scale : 0;
  sample_->scaled_allowed = scalable ? decision.allowed / scale : 0;
}

void ErrorMeter::describe(const RowOracle& oracle, std::int64_t k, double exact, const Decision& decision) {
  const RowKeys& keys = oracle.row().keys;
  const RowValues& values = oracle.row().values;
  double sum = 0;
  for (std::int64_t j = 0; j < keys.n; ++j) {
    const std::int64_t at = keys.index == nullptr ? j : keys.index[j];
    sum += keys.alpha[j] * std::abs(values.v[at * values.stride + k]);
  }
  sum *= oracle.profile().gain;
  describe_size(sum, exact, decision);
  sample_->budget = budget_of(
      budget_parts(oracle.profile(), keys, oracle.terms(), values, oracle.element(k), k, exact, oracle.scratch()));
  const auto [least, most] = std::minmax_element(keys.s, keys.s + keys.n);
  sample_->score_range = keys.n == 0 ? 0 : *most - *least;
}

std::shared_ptr<const ErrorSample> ErrorMeter::take(std::int64_t keys) {
  sample_->keys = keys;
  sample_->worst_utilisation = std::max(0.0, worst_utilisation_);
  sample_->bias = sum_bias_.value(), sample_->squares = sum_squares_.value();
  sample_->mask = static_cast<MaskEffect>((bias_ ? 1 : 0) + (hides_ ? 2 : 0));
  return std::move(sample_);
}

}  // namespace attest::detail
