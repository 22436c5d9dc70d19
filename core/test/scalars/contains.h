// Whether an enclosure holds a number.
#pragma once

#include "core/scalars/arb.h"
#include "core/scalars/mpfi.h"
#include "core/scalars/mpfr.h"

namespace attest::test {

[[nodiscard]] inline bool contains(const Interval& interval, const Mpfr& x) {
  return mpfi_is_inside_fr(x.backend().data(), interval.backend().data()) > 0;
}
[[nodiscard]] inline bool contains(const Arb& ball, const Mpfr& x) {
  Arb point;
  arf_set_mpfr(arb_midref(point.ball()), x.backend().data());
  return arb_contains(ball.ball(), point.ball()) != 0;
}

}  // namespace attest::test
