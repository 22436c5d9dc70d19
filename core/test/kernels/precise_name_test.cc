#include "core/kernels/precise_name.h"

#include <gtest/gtest.h>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/core_functions.h"
#include "core/scalars/wide.h"
#include "core/support/errors.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

std::unique_ptr<Kernel> opened(const std::string& spec) {
  return std::move(open_kernels(spec, {}).front());
}

long double unit_of(Kernel& kernel) {
  const Case c = test::one_query(DType::f64, {1}, {0.5, -0.25}, {1, 2});
  return kernel.run(c, std::nullopt, false).out.as<Enclosures>()->unit();
}

TEST(PreciseName, AsksForDigitsOrBits) {
  EXPECT_EQ(precise_name("core:mpfr@300").name, "core:mpfr");
  EXPECT_EQ(precise_name("core:mpfr@300").digits, 300U);
  EXPECT_EQ(precise_name("core:mpfr").digits, std::nullopt);
  for (const unsigned bits : {66U, 100U, 1000U, 9000U}) {
    const unsigned digits = *precise_name("core:arb@" + std::to_string(bits) + "b").digits;
    EXPECT_GE(bits_of_digits(digits), static_cast<long>(bits));
    EXPECT_LT(bits_of_digits(digits - 1), static_cast<long>(bits));
  }
}

TEST(PreciseName, RefusesWhatIsNoPrecision) {
  for (const char* const id : {"core:mpfr@", "core:mpfr@0", "core:mpfr@19", "core:mpfr@1000000", "core:mpfr@3001",
                               "core:mpfr@99999999999999999999", "core:mpfr@-300", "core:mpfr@300 ", "core:mpfr@300d",
                               "core:mpfr@b", "core:mpfr@10b", "core:mpfr@1000000b", "core:mpfr@3e2"})
    EXPECT_EQ(refusal([&] { (void)precise_name(id); }),
              "--kernel is \"" + std::string(id) +
                  "\": a precision is from 20 to 3000 decimal digits, as in core:mpfr@300, or from 66 to 9968 bits, as "
                  "in core:mpfr@1000b");
}

TEST(PreciseName, OpensTheCoreWithThatPrecisionUnderThatId) {
  for (const char* const family : {"core:mpfr", "core:mpfi", "core:arb"}) {
    const std::string id = std::string(family) + "@300";
    const auto kernel = opened(id);
    EXPECT_EQ(kernel->id(), id);
    EXPECT_EQ(kernel->manifest().name, id);
    EXPECT_EQ(kernel->digits(), 300U);
    EXPECT_EQ(kernel->clone()->digits(), 300U);
    EXPECT_EQ(opened(family)->digits(), run_time_digits);
    EXPECT_EQ(core_functions(id), core_functions(family));
  }
  EXPECT_LE(unit_of(*opened("core:mpfr@300")), 1e-300L);
  EXPECT_LE(unit_of(*opened("core:mpfr@1000b")), 0x1p-1000L);
  EXPECT_GT(unit_of(*opened("core:mpfr@1000b")), 0x1p-1010L);
  EXPECT_GT(unit_of(*opened("core:mpfr@1000")), 0) << "below every double";
  EXPECT_GT(unit_of(*opened("core:mpfr")), 1e-70L) << "the next call has its own again";
  EXPECT_LE(unit_of(*opened("core:cpp_dec_float@80")), 1e-100L);
}

TEST(PreciseName, TakesTheNextOfFixedWidthsAndSaysSo) {
  const auto next = opened("core:cpp_dec_float@80");
  EXPECT_EQ(next->id(), "core:cpp_dec_float@80");
  EXPECT_EQ(next->digits(), 100U);
  EXPECT_EQ(next->notes(), std::vector<std::string>{"computes with 100 decimal digits, the next width there is"});
  EXPECT_EQ(next->clone()->notes(), next->notes());
  EXPECT_EQ(core_functions(next->id())->scalar, "cpp_dec_float_100");
  EXPECT_TRUE(opened("core:cpp_dec_float@100")->notes().empty());
  EXPECT_EQ(opened("core:cpp_bin_float@51")->digits(), opened("core:cpp_bin_float_100")->digits());
}

TEST(PreciseName, RefusesWhereThereIsNoPrecisionToChoose) {
  const std::string any = "; with any precision there are core:mpfr, core:mpfi, core:arb";
  const auto refused = [](const std::string& spec) { return refusal([&] { (void)opened(spec); }); };
  EXPECT_EQ(refused("core:double@300"), "--kernel is \"core:double@300\": core:double has 53 bits" + any);
  EXPECT_EQ(refused("core:half@300"), "--kernel is \"core:half@300\": core:half has 11 bits" + any);
  EXPECT_EQ(refused("core:cpp_dec_float_100@50"),
            "--kernel is \"core:cpp_dec_float_100@50\": core:cpp_dec_float_100 has 100 decimal digits" + any);
  EXPECT_EQ(refused("core:cpp_dec_float@400"),
            "--kernel is \"core:cpp_dec_float@400\": core:cpp_dec_float has up to 300 digits" + any);
  EXPECT_EQ(refused("builtin:flash@300"),
            "--kernel is \"builtin:flash@300\": builtin:flash has no precision to choose" + any);
  EXPECT_EQ(refused("core:mpff@300"), "--kernel is \"core:mpff@300\", which is no kernel; did you mean \"core:mpfr\"?");
}

}  // namespace
}  // namespace attest
