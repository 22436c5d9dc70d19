// What a planted kernel makes of a cap of its scores, of rows or of tiles.
#pragma once

#include "properties/faults/make.h"

namespace attest {

/// The cap of the problem, by the slip; 0: none.
[[nodiscard]] double softcap_of(const attest_problem& p, Slip slip);

/// Scores under a cap c > 0.
template <class Real>
struct PlantedCap {
  Real cap;  ///< c
  Real scale;
  DType dtype;
  Slip slip;

  /// c tanh(scale qk/c) + bias, or what the slip makes of it.
  [[nodiscard]] Real score(Real qk, Real bias) const;

 private:
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip mistake) const { return slip == mistake; }
  [[nodiscard]] Real narrow(Real value) const { return static_cast<Real>(round_to(dtype, double{value})); }
  [[nodiscard]] Real capped(Real qk) const;
  [[nodiscard]] Real tanh(Real z) const;
};

extern template struct PlantedCap<float>;
extern template struct PlantedCap<double>;

}  // namespace attest
