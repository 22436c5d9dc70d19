// The scalars that kernels "core:NAME" compute on, in the order of `attest list`: one row here, and its kernel, the
// core's functions on it and the typed tests follow.
#pragma once

#include <cstddef>

#include "core/scalars/arb.h"
#include "core/scalars/bin_float.h"
#include "core/scalars/dec_float.h"
#include "core/scalars/half.h"
#include "core/scalars/mpfi.h"
#include "core/scalars/mpfr.h"

namespace attest {

template <class... T>
struct Scalars {
  static constexpr std::size_t count = sizeof...(T);
  template <template <class...> class To>
  using in = To<T...>;
  template <class... More>
  using with = Scalars<T..., More...>;

  /// visit.operator()<T>() for every scalar T.
  template <class Visit>
  static void for_each(Visit visit) {
    (visit.template operator()<T>(), ...);
  }
};

using EveryScalar = Scalars<float, double, Eigen::half, Eigen::bfloat16, BinFloat50, BinFloat100, DecFloat<100>,
                            DecFloat<300>, Mpfr, Interval, Arb>;

}  // namespace attest
