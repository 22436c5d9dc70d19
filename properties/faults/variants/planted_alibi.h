// What a planted kernel makes of slopes, of rows or of tiles.
#pragma once

#include <cstdint>

#include "properties/faults/make.h"

namespace attest {

[[nodiscard]] bool has_slopes(const attest_problem& p);

/// Does the position of a row count from the last key?
[[nodiscard]] bool counts_from_the_last_key(const attest_problem& p);

/// What slopes add to the scores of one head's rows, by the slip: -slope |p - j|, computed in Real.
template <class Real>
class PlantedSlopes {
 public:
  /// `further`: Miscount::slopes (planted_sequences.h).
  PlantedSlopes(const attest_problem& p, Slip slip, std::int64_t b, std::int64_t h, std::int64_t further);

  /// Whether anything is added.
  [[nodiscard]] bool any() const { return slope_ != 0; }
  /// To the score of row i and key j.
  [[nodiscard]] Real added(std::int64_t i, std::int64_t j) const;
  /// To the sink of row i.
  [[nodiscard]] Real added_to_sink(std::int64_t i) const;
  /// To the log-sum-exp of row i, when all else is done.
  [[nodiscard]] Real added_to_lse(std::int64_t i) const;

 private:
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }
  [[nodiscard]] Real slope_of(std::int64_t b, std::int64_t h) const;
  [[nodiscard]] double given_slope(std::int64_t b, std::int64_t h) const;
  [[nodiscard]] std::int64_t position(std::int64_t i) const;
  [[nodiscard]] Real distance(std::int64_t i, std::int64_t j) const;

  const attest_problem& p_;
  Slip slip_;
  std::int64_t further_;
  std::int64_t queries_ = p_.q.shape[2], keys_ = p_.k.shape[2];
  bool causal_ = p_.causal != ATTEST_CAUSAL_NONE;
  Real slope_;
};

extern template class PlantedSlopes<float>;
extern template class PlantedSlopes<double>;

}  // namespace attest
