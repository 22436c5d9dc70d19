#include "row_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../bound/inner_loops.h"

namespace attest::detail {

Excuse RowOracle::start(const Head& head, std::int64_t i, const Profile& profile, bool ignores_dead_values,
                        bool want_lse, long max_precision) {
  head_ = &head;
  profile_ = &profile;
  level_ = 1;
  certain_ = true;
  balls_.precision = 0;
  if (static_cast<std::int64_t>(elements_.size()) < head.dv) elements_.resize(static_cast<std::size_t>(head.dv));
  const Excuse excuse = evaluate_double(head, i, profile, ignores_dead_values, want_lse, row_);
  if (excuse != Excuse::none) return excuse;
  terms_ = key_terms(profile, row_.keys, row_.q, scratch_);
  if (!terms_.in_domain) return Excuse::overflow;
  // Weights of relative error e^{4 max E} - 1 change the bound by as much: within its 2^-20 below this.
  bool sure = terms_.most_E_here <= 0x1p-24;
  if (sure) {
    element_bounds(profile, row_.keys, terms_, row_.values, row_.o.data(), nullptr, scratch_, elements_.data());
    for (std::int64_t k = 0; k < head.dv && sure; ++k) sure = element(k).trusted;
  }
  if (!sure) certain_ = evaluate_balls(first_precision(terms_.largest_score), max_precision);
  return certain_ && !terms_.in_domain ? Excuse::overflow : Excuse::none;
}

namespace {

/// a + b = s + e.
void two_sum(double a, double b, double& s, double& e) {
  s = a + b;
  const double t = s - a;
  e = (a - (s - t)) + (b - t);
}

}  // namespace

// Error of the double-double pass, as that of the double pass in element_bounds. Scores: 2 (dk+2)^2 2^-106 X_j for the
// product (inner_loops.h), a few 2^-104 for scale, bias and reference, 2^-86 for exp. Their effect on the quotient is
// at most the largest ratio of theirs to the kernel's E_j times S, termwise. Sums: 2 (n+2)^2 2^-106 of numerator and
// denominator each, division a few 2^-104.
bool RowOracle::evaluate_double_double() {
  const Head& head = *head_;
  const std::int64_t n = row_.n;
  const double tau = head.scale, u2 = 0x1p-106;
  // Products and Dekker's splitting must neither overflow nor lose their errors to underflow.
  double most_v = 0;
  for (std::int64_t k = 0; k < head.dv; ++k) most_v = std::max(most_v, element(k).most);
  double most_q = 0;
  for (std::int64_t c = 0; c < head.dk; ++c) most_q = std::max(most_q, std::fabs(row_.q[c]));
  if (!(head.finite && most_v < 0x1p400 && most_q < 0x1p400 && head.most_k < 0x1p400)) return false;
  if (!(tau > 0x1p-400 && tau < 0x1p400 && terms_.largest_score < 0x1p400)) return false;

  const InnerLoops& loops = inner_loops();
  const auto room = static_cast<std::size_t>(padded(head.keys));
  if (hi_.size() < room)
    for (auto* array : {&hi_, &lo_, &w_hi_, &w_lo_}) array->resize(room);
  const std::int64_t* index = row_.keys.index;
  const std::int64_t last = index ? index[n - 1] + 1 : head.keys;
  loops.dots_dd(row_.q, head.dk, head.panels.data(), (last + panel_width - 1) / panel_width, hi_.data(), lo_.data());
  const double dk = static_cast<double>(head.dk), count = static_cast<double>(n);
  const double on_size = 2 * (dk + 2) * (dk + 2) * u2 + 0x1p-100, by_underflow = dk * tau * 0x1p-1060;
  const double m = row_.m;
  double ratio = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const auto from = static_cast<std::size_t>(index ? index[j] : j);
    const double x = hi_[from], p = tau * x;
    double s = p, e = std::fma(tau, x, -p) + tau * lo_[from];
    double size = tau * row_.keys.size[j];
    if (row_.keys.b) {
      const double value = row_.mask[from];
      const bool pre = head.convention == MaskConvention::pre_scale;
      const double b = pre ? tau * value : value;
      double rest = 0;
      two_sum(p, b, s, rest);
      e += rest + (pre ? std::fma(tau, value, -b) : 0.0);
      size += std::fabs(b);
    }
    two_sum(s, e, w_hi_[at], w_lo_[at]);
    if (row_.keys.la[j] + scratch_.E[at] > -1490)
      ratio = std::max(ratio, (on_size * size + 0x1p-100 * std::fabs(m) + by_underflow + 0x1p-85) / scratch_.E[at]);
  }
  if (!(ratio <= 1)) return false;
  loops.weights_dd(w_hi_.data(), w_lo_.data(), n, m);
  const auto columns = static_cast<std::size_t>(head.stride);
  if (o_hi_.size() < columns)
    for (auto* array : {&o_hi_, &o_lo_, &radius_}) array->resize(columns);
  loops.combine_dd(w_hi_.data(), w_lo_.data(), index, n, head.v.data(), head.stride, o_hi_.data(), o_lo_.data());
  double l = 0, l_rest = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    double e = 0;
    two_sum(l, w_hi_[static_cast<std::size_t>(j)], l, e);
    l_rest += e + w_lo_[static_cast<std::size_t>(j)];
  }
  two_sum(l, l_rest, l, l_rest);
  const double sums = 4 * (count + 4) * (count + 4) * u2 + 0x1p-98;
  for (std::int64_t k = 0; k < head.dv; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const double quotient = o_hi_[at] / l;
    const double rest = std::fma(-quotient, l, o_hi_[at]) + (o_lo_[at] - quotient * l_rest);
    two_sum(quotient, rest / l, o_hi_[at], o_lo_[at]);
    const ElementTerms& e = element(k);
    radius_[at] = (1 + 0x1p-20) * (ratio * e.spread + sums * e.weighted + count * 0x1p-1015 * e.most) + 0x1p-1060;
  }
  level_ = 2;
  return true;
}

bool RowOracle::evaluate_balls(long bits, long max_precision) {
  do {
    balls_.evaluate(*head_, row_, std::min(bits, max_precision));
    bits *= 2;
  } while (!balls_.settled && balls_.precision < max_precision);
  level_ = 3;
  if (!balls_.settled) return false;
  balls_.attach(row_.keys, row_.values);
  terms_ = key_terms(*profile_, row_.keys, row_.q, scratch_);
  element_bounds(*profile_, row_.keys, terms_, row_.values, balls_.value.data(), balls_.radius.data(), scratch_,
                 elements_.data());
  return true;
}

double RowOracle::value(std::int64_t k) const {
  if (level_ == 2) return o_hi_[static_cast<std::size_t>(k)];
  return level_ == 3 ? balls_.value[static_cast<std::size_t>(k)] : row_.o[static_cast<std::size_t>(k)];
}

void RowOracle::distance(std::int64_t k, double found, double& lower, double& upper) const {
  if (level_ == 3) {
    balls_.distance(k, found, lower, upper);
    return;
  }
  if (level_ == 2) {
    const auto at = static_cast<std::size_t>(k);
    double apart = 0, rest = 0;
    two_sum(found, -o_hi_[at], apart, rest);
    const double difference = std::fabs(apart + (rest - o_lo_[at]));
    upper = difference * (1 + 0x1p-50) + radius_[at];
    lower = difference * (1 - 0x1p-50) - radius_[at];
    return;
  }
  const double d = std::fabs(found - value(k)), radius = element(k).certificate;
  upper = d * (1 + 0x1p-50) + radius;
  lower = d * (1 - 0x1p-50) - radius;
}

double RowOracle::lse_certificate() const {
  if (level_ == 3) return middle_error(balls_.lse[0]);
  const double n = static_cast<double>(row_.n);
  return (1 + 0x1p-20) * (terms_.most_E_here + (n + 8) * 0x1p-53 + 0x1p-51 * (std::fabs(row_.m) + std::log(n) + 1));
}

void RowOracle::lse_distance(double found, double& lower, double& upper) const {
  if (level_ == 3) {
    balls_.lse_distance(found, lower, upper);
    return;
  }
  const double d = std::fabs(found - lse()), radius = lse_certificate();
  upper = d * (1 + 0x1p-50) + radius;
  lower = d * (1 - 0x1p-50) - radius;
}

}  // namespace attest::detail
