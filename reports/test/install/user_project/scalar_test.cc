// A scalar of one's own, sixty decimal digits of Boost's, under the whole catalogue.
#include <attest/gtest.h>
#include <attest/scalar.h>

#include <boost/multiprecision/cpp_dec_float.hpp>
#include <boost/multiprecision/eigen.hpp>

using Mine = boost::multiprecision::number<boost::multiprecision::cpp_dec_float<60>, boost::multiprecision::et_off>;
template <>
struct attest::ScalarTraits<Mine> : attest::NumberTraits<Mine> {
  static constexpr std::string_view name = "mine";
};
ATTEST_CATALOGUE_OF(Mine60, attest::add_scalar<Mine>(), /*cases=*/2)
