#include "properties/faults/planted_softcap.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attest {

double softcap_of(const attest_problem& p, Slip slip) {
  const auto is = [&](Slip mistake) { return slip == mistake; };
  if ((p.variants & ATTEST_SOFTCAP) == 0 || is("softcap-ignored")) return 0;
  // Taken by the kernel for single queries alone.
  if (is("softcap-of-single-queries") && p.q.shape[2] > 1) return 0;
  if (is("softcap-of-thirty")) return 30;
  if (is("softcap-rounded-cap")) return std::max(1.0, std::round(p.softcap));
  return p.softcap;
}

template <class Real>
Real PlantedCap<Real>::score(Real qk, Real bias) const {
  // A key that is hidden is the caller's.
  if (is("softcap-after-bias") || is("softcap-after-mask")) return cap * tanh((scale * qk + bias) / cap);
  return capped(qk) + bias;
}

template <class Real>
Real PlantedCap<Real>::capped(Real qk) const {
  const Real t = scale * qk, z = t / cap;
  if (is("softcap-times-score")) return z * tanh(z);
  if (is("softcap-keeps-score")) return t * tanh(z);
  if (is("softcap-factor-missing")) return tanh(z);
  if (is("softcap-argument-whole")) return cap * tanh(t);
  if (is("softcap-clamped")) return std::clamp(t, -cap, cap);
  if (is("softcap-of-positive-scores") && t < 0) return t;
  if (is("softcap-without-sign")) return cap * tanh(std::abs(z));
  if (is("softcap-scale-twice")) return cap * tanh(scale * z);
  if (is("softcap-before-scale")) return scale * (cap * tanh(qk / cap));
  if (is("softcap-of-base-two")) {
    constexpr Real log2e = std::numbers::log2e_v<Real>;
    return cap * tanh(t * log2e / cap) / log2e;
  }
  if (is("softcap-in-the-dtype")) return narrow(cap * narrow(tanh(narrow(z))));
  return cap * tanh(z);
}

template <class Real>
Real PlantedCap<Real>::tanh(Real z) const {
  if (is("softcap-overflows")) {
    const Real above = std::exp(z), below = std::exp(-z);
    return (above - below) / (above + below);
  }
  if (is("softcap-by-softsign")) return z / (1 + std::abs(z));
  const Real y = std::tanh(z);
  if (!is("softcap-approximate")) return y;
  // Eleven bits of it are kept.
  int exponent = 0;
  const Real significand = std::frexp(y, &exponent);
  return std::ldexp(std::round(std::ldexp(significand, 11)), exponent - 11);
}

template struct PlantedCap<float>;
template struct PlantedCap<double>;

}  // namespace attest
