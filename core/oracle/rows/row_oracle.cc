#include "core/oracle/rows/row_oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/bound/underflow.h"

namespace attest::detail {

Excuse RowOracle::start(const Head& head, std::span<const std::int64_t> rows, const Profile& profile,
                        bool ignores_dead_values, bool want_lse, long max_precision) {
  head_ = &head;
  profile_ = &profile;
  level_ = 1;
  certain_ = true;
  known_ = {};
  known_.max_precision = max_precision;
  balls_.precision = 0;
  if (static_cast<std::int64_t>(elements_.size()) < head.dv) elements_.resize(static_cast<std::size_t>(head.dv));
  const Excuse excuse = evaluate(rows, ignores_dead_values, want_lse, max_precision);
  known_.first_level = level_;
  known_.first_bits = known_.bits;
  return excuse;
}

Excuse RowOracle::start(const Head& head, std::int64_t i, const Profile& profile, bool ignores_dead_values,
                        bool want_lse, long max_precision) {
  std::array<std::int64_t, rows_at_once> rows{};
  std::iota(rows.begin(), rows.end(), i);
  const auto count = static_cast<std::size_t>(std::min(rows_at_once, head.queries - i));
  return start(head, std::span(rows).first(count), profile, ignores_dead_values, want_lse, max_precision);
}

Excuse RowOracle::evaluate(std::span<const std::int64_t> rows, bool ignores_dead_values, bool want_lse,
                           long max_precision) {
  const Excuse excuse = evaluate_double(*head_, rows, *profile_, ignores_dead_values, want_lse, row_);
  if (excuse != Excuse::none) return excuse;
  if (gains()) {
    answer_.assign(row_.o.begin(), row_.o.begin() + head_->dv);
    for (double& value : answer_) value *= head_->gain.high;
  }
  bound_known_ = bound_from(row_.o.data());
  if (!terms_.in_domain) return Excuse::overflow;
  if (!bound_known_ && !evaluate_double_double())
    certain_ = evaluate_balls(first_precision(terms_.largest_score), max_precision);
  return certain_ && !terms_.in_domain ? Excuse::overflow : Excuse::none;
}

void RowOracle::begin_again() {
  if (known_.first_level == 3) {
    if (known_.bits != known_.first_bits) evaluate_balls(known_.first_bits, known_.max_precision);
    return;
  }
  level_ = known_.first_level;
  if (!known_.attached) return;
  known_.attached = false;
  row_.keys = known_.keys;
  row_.values = known_.values;
  bound_from(level_ == 2 ? pairs_.o.data() : row_.o.data());
}

bool RowOracle::bound_from(const double* o) {
  terms_ = key_terms(*profile_, row_.keys, row_.q, scratch_);
  // Weights of relative error e^{4 max E} - 1 change the bound by as much: within its 2^-20 below this.
  bool sure = terms_.in_domain && terms_.most_E_here <= 0x1p-24;
  if (!sure) return false;
  element_bounds(*profile_, row_.keys, terms_, row_.values, o, nullptr, scratch_, elements_.data());
  for (std::int64_t k = 0; k < head_->dv && sure; ++k) sure = element(k).trusted;
  return sure;
}

bool RowOracle::evaluate_double_double() {
  if (known_.pairs) {
    if (known_.pairs_are_sure) level_ = 2;
    return known_.pairs_are_sure;
  }
  known_.pairs = true;
  if (!pairs_.evaluate(*head_, row_)) return false;
  for (std::int64_t k = 0; gains() && k < head_->dv; ++k)
    if (!std::isfinite(pair(k).high) || !std::isfinite(pair(k).low)) return false;
  const auto columns = static_cast<std::size_t>(head_->dv);
  if (radius_.size() < columns) radius_.resize(columns);
  if (!bound_known_) {
    pairs_.attach(row_.keys, row_.values);
    if (!bound_from(pairs_.o.data())) return false;
    for (std::size_t k = 0; k < columns; ++k) radius_[k] = elements_[k].certificate;
    known_.pairs_are_sure = true;
    level_ = 2;
    return true;
  }
  // The certificate is linear in the unit but for its terms of underflow, which are added whole. That S is centred at
  // the value of double costs most_E_here times its certificate: within the 2^-20 that it is rounded up by.
  const double n = static_cast<double>(row_.n), underflow = subnormal(16 * (row_.n + 16));
  for (std::size_t k = 0; k < columns; ++k) {
    const double most_v = std::max(std::fabs(row_.values.low[k]), std::fabs(row_.values.high[k]));
    radius_[k] = double_double_unit / row_.keys.unit * elements_[k].certificate +
                 profile_->gain * ((1 + 0x1p-20) * n * 0x1p-1020 * most_v + (most_v > 0 ? underflow : 0.0));
  }
  known_.pairs_are_sure = true;
  level_ = 2;
  return true;
}

bool RowOracle::evaluate_balls(long bits, long max_precision) {
  if (bits != known_.bits) {
    known_.bits = bits;
    do {
      balls_.evaluate(*head_, row_, std::min(bits, max_precision));
      bits *= 2;
    } while (!balls_.settled && balls_.precision < max_precision);
  }
  level_ = 3;
  if (!balls_.settled) return false;
  if (!known_.attached) known_.keys = row_.keys, known_.values = row_.values;
  known_.attached = true;
  balls_.attach(row_.keys, row_.values);
  row_.values.o_low = nullptr;
  terms_ = key_terms(*profile_, row_.keys, row_.q, scratch_);
  element_bounds(*profile_, row_.keys, terms_, row_.values, balls_.value.data(), balls_.radius.data(), scratch_,
                 elements_.data());
  return true;
}

void RowOracle::evaluate_alarm(double probability) {
  alarms_.resize(static_cast<std::size_t>(head_->dv));
  const double* const o = level_ == 1 ? row_.o.data() : level_ == 2 ? pairs_.o.data() : balls_.value.data();
  row_alarm_.evaluate(*profile_, row_.keys, terms_, row_.values, row_.q, head_->k.data(), o, scratch_, elements_.data(),
                      probability, alarms_.data());
}

DoubleDouble RowOracle::pair(std::int64_t k) const {
  const auto at = static_cast<std::size_t>(k);
  const DoubleDouble value{pairs_.o[at], pairs_.o_low[at]};
  return gains() ? product_of(value, head_->gain) : value;
}

double RowOracle::value(std::int64_t k) const {
  if (level_ == 2) return pair(k).high;
  if (level_ == 1) return values()[k];
  return gains() ? middle(balls_.answer(k)) : balls_.value[static_cast<std::size_t>(k)];
}

double RowOracle::radius(std::int64_t k) const {
  return level_ == 2 ? radius_[static_cast<std::size_t>(k)] : element(k).certificate;
}

double RowOracle::lse_radius() const {
  if (level_ == 3) return middle_error(balls_.lse[0]);
  const double n = static_cast<double>(row_.n), size = std::fabs(row_.m) + std::log(n) + 1;
  if (level_ == 1) return (1 + 0x1p-20) * (terms_.most_E_here + (n + 8) * 0x1p-53 + 0x1p-51 * size);
  // Scores and weights as the values; 2^-86 of the exponential in the logarithm, a few 2^-106 of every part.
  const double here = terms_.most_E_here * (double_double_unit / row_.keys.unit);
  return (1 + 0x1p-20) * (here + (n + 8) * double_double_unit + 0x1p-85 + 0x1p-100 * size);
}

double RowOracle::certificate(std::int64_t k) const {
  return radius(k) + (level_ == 2 ? std::fabs(pair(k).low) : 0.0);
}

double RowOracle::lse_certificate() const {
  return lse_radius() + (level_ == 2 ? std::fabs(pairs_.lse.low) : 0.0);
}

namespace {

/// The interval of distances from what is within `radius` of a number whose own distance is d to within 2^-51.
void widen(double d, double radius, double& lower, double& upper) {
  upper = d * (1 + 0x1p-50) + radius;
  lower = d * (1 - 0x1p-50) - radius;
}

}  // namespace

void RowOracle::distance(std::int64_t k, double found, double& lower, double& upper) const {
  if (level_ == 3) return balls_.distance(k, found, lower, upper);
  widen(level_ == 2 ? distance_to(pair(k), found) : std::fabs(found - values()[k]), radius(k), lower, upper);
}

void RowOracle::lse_distance(double found, double& lower, double& upper) const {
  if (level_ == 3) return balls_.lse_distance(found, lower, upper);
  widen(level_ == 2 ? distance_to(pairs_.lse, found) : std::fabs(found - lse()), lse_radius(), lower, upper);
}

}  // namespace attest::detail
