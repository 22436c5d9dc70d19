// A scalar that this library does not know, under the catalogue; and one whose exp is wrong in a late digit.
#include <attest/check_property.h>
#include <attest/scalar.h>
#include <gtest/gtest.h>

#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfr.hpp>

namespace attest {
namespace {

namespace mp = boost::multiprecision;

/// Two classes of 300 digits or little more, so that each has traits of its own.
using Right = mp::number<mp::mpfr_float_backend<300>, mp::et_off>;
using Wrong = mp::number<mp::mpfr_float_backend<301>, mp::et_off>;

}  // namespace

template <>
struct ScalarTraits<Right> : NumberTraits<Right> {
  static constexpr std::string_view name = "right300";
};
/// Its exp(x) is off by x units of the 290th digit.
template <>
struct ScalarTraits<Wrong> : NumberTraits<Wrong> {
  static constexpr std::string_view name = "wrong290";
  [[nodiscard]] static Wrong exp(const Wrong& x) {
    static const Wrong off("1e-290");
    return NumberTraits<Wrong>::exp(x) * (1 + x * off);
  }
};

namespace {

std::unique_ptr<Kernel> opened(const std::string& id) {
  return std::move(open_kernels(id, {}).front());
}

TEST(AddScalar, MakesAKernelWithTheCoresFunctions) {
  const std::string id = add_scalar<Right>();
  EXPECT_EQ(id, "core:right300");
  EXPECT_EQ(add_scalar<Right>(), id);
  const auto kernel = opened(id);
  EXPECT_EQ(kernel->digits(), 300U);
  ASSERT_NE(core_functions(id), nullptr);
  EXPECT_EQ(std::ranges::count(known_kernels(), id), 1);
}

TEST(AddScalar, HoldsARightOneUnderTheWholeCatalogue) {
  const auto kernel = opened(add_scalar<Right>());
  for (const std::string& property : property_names()) {
    const PropertyReport report = check_property(property, *kernel, DType::f64, /*cases=*/3);
    EXPECT_NE(report.outcome, Outcome::violated) << report.text;
    EXPECT_NE(report.outcome, Outcome::inconclusive) << property << ": " << report.text;
  }
}

TEST(AddScalar, ViolatesAnExpThatIsWrongInThe290thDigit) {
  const auto kernel = opened(add_scalar<Wrong>());
  for (const char* const property : {"attention.oracle", "multihead.oracle", "attention.any-length"}) {
    const PropertyReport report = check_property(property, *kernel, DType::f64, /*cases=*/40);
    EXPECT_EQ(report.outcome, Outcome::violated) << property << ": " << report.text;
  }
  // Rounded to a dtype it is right.
  const PropertyReport rounded = check_property("attention.lse-range", *kernel, DType::f64, /*cases=*/40);
  EXPECT_EQ(rounded.outcome, Outcome::held) << rounded.text;
}

}  // namespace
}  // namespace attest
