#include "core/oracle/rows/mag.h"

#include <cmath>
#include <limits>

namespace attest::detail {

Mag Mag::of(long double size) {
  if (!(size < std::numeric_limits<long double>::infinity())) return std::numeric_limits<double>::infinity();
  int exponent = 0;
  const long double part = std::frexp(size, &exponent);
  Mag mag(std::nextafter(static_cast<double>(part), 1.0));
  if (size == 0) mag = Mag();
  mag_mul_2exp_si(mag.x_, mag.x_, exponent);
  return mag;
}

long double Mag::size() const {
  if (is_infinite()) return std::numeric_limits<long double>::infinity();
  if (mag_is_zero(x_) != 0) return 0;
  arf_t exact;
  mpfr_t rounded;
  arf_init(exact);
  mpfr_init2(rounded, 64);
  arf_set_mag(exact, x_);
  arf_get_mpfr(rounded, exact, MPFR_RNDU);
  mpfr_check_range(rounded, 0, MPFR_RNDU);
  const long double size = mpfr_get_ld(rounded, MPFR_RNDU);
  mpfr_clear(rounded);
  arf_clear(exact);
  return size;
}

}  // namespace attest::detail
