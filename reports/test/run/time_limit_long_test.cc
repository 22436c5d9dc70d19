// Time limits of large cases as a user meets them: a run waits ten seconds and more for each.
#include <gtest/gtest.h>

#include "core/problem/case.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/places.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

using fake::Folder;

TEST(TimeLimitLong, ALargeCaseWithoutAnAnswerIsInconclusiveAndASmallOneViolated) {
  const Folder folder;
  save_case(testing_process::attention_case(DType::f64, {1, 1, 1000, 1000, 1, 1}), folder / "large.safetensors");
  save_case(testing_process::attention_case(DType::f64, {1, 1, 4, 4, 4, 4}), folder / "small.safetensors");
  const auto check = [&](const std::string& mode, const std::string& more) {
    return shell(folder, "$attest check --verbose --kernel \"exec:exec python3 -I -S '" + source_folder() +
                             "/core/test/isolation/misbehave.py' " + mode +
                             "\" --property attention.oracle --jobs 1 --out run --overwrite --case " + more);
  };
  const ShellResult late = check("hangs-when-large", "large.safetensors");
  EXPECT_EQ(late.status, 4) << late.output;
  EXPECT_THAT(late.output, Says("inconclusive", "late: no reply within", "4e+06 flops",
                                "give more time with --timeout SECONDS, or leave such cases out with --no-large"));
  const ShellResult given = check("hangs-when-large", "large.safetensors --timeout 300ms");
  EXPECT_EQ(given.status, 1) << given.output;
  EXPECT_THAT(given.output, Says("timed out: no reply within 0.3 s"));
  const ShellResult small = check("hangs", "small.safetensors");
  EXPECT_EQ(small.status, 1) << small.output;
  EXPECT_THAT(small.output, Says("timed out: no reply within 10 s"));
}

}  // namespace
}  // namespace attest
