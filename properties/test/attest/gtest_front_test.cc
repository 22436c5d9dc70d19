// What the GoogleTest front says of a function that is wrong: run in a list of results of its own.
#include <attest/gtest.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include <algorithm>

#include "core/kernel/forwarding_kernel.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

std::unique_ptr<Kernel> causal_ignored() {
  return toy_kernel(Bug::causal);
}
std::unique_ptr<Kernel> right() {
  return toy_kernel(Bug::none);
}

/// Every message of the failures (or skips) that the body of a test leaves.
std::string said_by(const CatalogueCell& cell) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    check_cell(cell);
  }
  std::string text;
  for (int i = 0; i < results.size(); ++i) {
    text += results.GetTestPartResult(i).failed() ? "failed: " : "skipped: ";
    text += results.GetTestPartResult(i).message();
  }
  return text;
}

TEST(GTestFront, ShowsTheShrunkCaseOfABrokenFunction) {
  const std::string text = said_by({.property = "attention.oracle",
                                    .dtype = DType::f64,
                                    .make = causal_ignored,
                                    .cases = 200,
                                    .kernel_option = "./libmine.so"});
  EXPECT_TRUE(text.starts_with("failed: ")) << text;
  EXPECT_NE(text.find("attention.oracle is violated by toy in f64, case "), std::string::npos) << text;
  EXPECT_NE(text.find("the shrunk case:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("q f64 [1, 1, 1, 1]"), std::string::npos) << text;
  EXPECT_NE(text.find("attest check --kernel './libmine.so' --property attention.oracle --dtype f64"),
            std::string::npos)
      << text;
}

/// A kernel that throws, which the interface forbids.
class Throwing final : public ForwardingKernel {
 public:
  using ForwardingKernel::ForwardingKernel;
  Reply run(const Case&, std::optional<DType>, bool) override { throw std::runtime_error("out of order"); }
};

TEST(GTestFront, TakesNoExceptionForAViolation) {
  Throwing kernel(right());
  EXPECT_THAT([&] { (void)check_property("attention.finite", kernel, DType::f64, 5); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("out of order")));
}

TEST(GTestFront, IsSilentAboutARightFunction) {
  EXPECT_EQ(said_by({.property = "attention.finite", .dtype = DType::f64, .make = right}), "");
}

TEST(GTestFront, SaysWhyAPropertyIsSkipped) {
  EXPECT_EQ(said_by({.property = "multihead.torch-case", .dtype = DType::f64, .make = right}),
            "skipped: skipped: the kernel has no multihead entry");
  const std::unique_ptr<Kernel> kernel = toy_kernel(Bug::none);
  const PropertyReport report = check_property("multihead.torch-case", *kernel, DType::f64, 50);
  EXPECT_EQ(report.outcome, Outcome::skipped);
  EXPECT_EQ(report.text, "the kernel has no multihead entry");
  EXPECT_THROW((void)check_property("attention.oracel", *kernel, DType::f64, 50), UsageError);
}

TEST(GTestFront, HasACellPerPropertyAndDtype) {
  const auto function = [](const attest_problem&, attest_result&, std::string&) { return ATTEST_UNSUPPORTED; };
  const auto cells = catalogue_cells(R"({"name": "mine", "dtypes": ["f32", "bf16"]})", function);
  EXPECT_EQ(cells.size(), 2 * property_names().size());
  EXPECT_TRUE(said_by(cells[0]).starts_with("skipped: "));
}

TEST(GTestFront, FailsForAWrongManifest) {
  const auto cells = catalogue_cells(R"({"name": "mine", "dtypes": ["f33"]})", nullptr);
  ASSERT_EQ(cells.size(), 1U);
  const std::string text = said_by(cells[0]);
  EXPECT_TRUE(text.starts_with("failed: ")) << text;
  EXPECT_NE(text.find("f33"), std::string::npos) << text;
}

}  // namespace
}  // namespace attest
