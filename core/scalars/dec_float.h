// Boost's cpp_dec_float with 100 and 300 decimal digits as scalars of the core; no expression templates, so that
// one operation is one rounding in a stated order. How many digits one has is a matter of its type: what --kernel asks
// for after an @ is computed on the next of these that has as many.
#pragma once

#include <boost/multiprecision/cpp_dec_float.hpp>
#include <boost/multiprecision/eigen.hpp>

#include "core/scalars/number.h"

namespace attest {

template <unsigned digits>
using DecFloat =
    boost::multiprecision::number<boost::multiprecision::cpp_dec_float<digits>, boost::multiprecision::et_off>;

/// It carries 16 decimal digits or more beyond those it promises (cpp_dec_float_elem_number). The last eight of a
/// product may be those of a factor; which one's is told by the order of the factors, and by which is a temporary. So
/// sums, products and quotients, conversions and the reduction of exp's argument err by less than 10^-8 of a unit
/// 10^-digits and of |x|. Its exp ends a series of terms that halve or more below 10^(1-digits), and nowhere is the
/// result below a third (pow.hpp of Boost 1.74 to 1.81): 4 units.
template <unsigned digits>
struct DecFloatTraits : NumberTraits<DecFloat<digits>> {
  static constexpr unsigned decimal_digits = digits;
  [[nodiscard]] static WideRounding rounding() {
    WideRounding rounding = NumberTraits<DecFloat<digits>>::rounding();
    rounding.unit /= 10;
    rounding.exp_units = 4, rounding.exp_growth = 0x1p-20;
    return rounding;
  }
};

template <>
struct ScalarTraits<DecFloat<100>> : DecFloatTraits<100> {
  static constexpr std::string_view name = "cpp_dec_float_100";
  static constexpr std::string_view summary = "the definition in 100 decimal digits of base 10, rounded once";
};
template <>
struct ScalarTraits<DecFloat<300>> : DecFloatTraits<300> {
  static constexpr std::string_view name = "cpp_dec_float_300";
  static constexpr std::string_view summary = "the definition in 300 decimal digits of base 10, rounded once";
};

}  // namespace attest
