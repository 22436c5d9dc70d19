#include "row_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  return level_ == 3 ? balls_.value[static_cast<std::size_t>(k)] : row_.o[static_cast<std::size_t>(k)];
}

void RowOracle::distance(std::int64_t k, double found, double& lower, double& upper) const {
  if (level_ == 3) {
    balls_.distance(k, found, lower, upper);
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
  const double d = std::fabs(found - lse()), radius = lse_certificate();
  upper = d * (1 + 0x1p-50) + radius;
  lower = d * (1 - 0x1p-50) - radius;
}

}  // namespace attest::detail
