// attest tolerance as a user runs it.
#include <gtest/gtest.h>

#include "reports/test/json.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

TEST(ToleranceProgram, InformsAndJudgesNothing) {
  const fake::Folder folder;
  const std::string wolf = output_of(
      folder, "$attest tolerance --atol 0 --rtol 0 --kernel builtin:two-pass --dtype f32 --cases 40 --json --jobs 1");
  const auto json = parsed_json(wolf);
  EXPECT_GT(json["kernels"][0]["refused_cases"], 10);
  // The line that is printed runs the case.
  const std::string line = json["kernels"][0]["worst"]["rerun"];
  ASSERT_TRUE(line.starts_with("attest check ")) << line;
  EXPECT_EQ(shell(folder, "$attest" + line.substr(6) + " --quiet").status, 0) << line;
  EXPECT_THAT(
      output_of(folder,
                "$attest tolerance --atol inf --rtol 0 --kernel builtin:two-pass --dtype f32 --cases 20 --jobs 1"),
      Says("right answers refused in 0 of", "all-zeros"));
}

TEST(ToleranceProgram, RefusesNonsenseInOneLine) {
  const std::string rest = " --rtol 0 --kernel builtin:flash";
  for (const char* const atol : {"-1", "nan", "-nan", "abc", "1e-5x", "-inf"})
    expect_refused("tolerance --atol=" + std::string(atol) + rest, "it must be a number of at least 0");
  expect_refused("tolerance --atol=" + rest, "--atol has no value");
  expect_refused("tolerance --atol ''" + rest, "it must be a number of at least 0");
  expect_refused("tolerance --atol 1" + std::string(" --kernel builtin:flash"), "needs --rtol too");
  expect_refused("tolerance --rtol 1 --kernel builtin:flash", "needs --atol too");
  expect_refused("tolerance --atol 0 --rtol 0", "needs --kernel");
  expect_refused("tolerance --atol 0 --rtol 0 --kernel 'builtin:*'", "takes one");
  expect_refused("tolerance --atol 0 --rtol 0 --kernel builtin:flish", "did you mean");
  expect_refused("tolerance --atol 0 --rtol 0 --kernel builtin:flash --cases 0", "--cases is 0");
  expect_refused("tolerance --atol 0 --rtol 0 --kernel builtin:flash --dtype f8_e4m3", "none of the dtypes", 3);
}

}  // namespace
}  // namespace attest
