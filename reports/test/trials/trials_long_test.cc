// The program with one more of each kind, made by exactly the files that CONTRIBUTING names (make.cmake): everything
// that people and machines meet of it is there, and it does what it is for.
#include <gmock/gmock.h>

#include "reports/test/json.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

using testing::HasSubstr;

/// What bash offers at the end of the line.
std::string offered(const fake::Folder& folder, const std::string& line) {
  return output_of(folder, "$attest --bash-completion > completion && bash --norc -c '. ./completion; COMP_LINE=\"" +
                               line + "\"; COMP_POINT=${#COMP_LINE}; _attest; echo \"${COMPREPLY[@]}\"'");
}

TEST(TrialProperty, IsListedCheckedAndProved) {
  const fake::Folder folder;
  EXPECT_THAT(output_of(folder, "$attest list --properties"), HasSubstr("softmax.trial\n"));
  const std::string check = "$attest check --property softmax.trial --dtype f32 --cases 200 --quiet --out ";
  expect_status(folder, check + "right --kernel builtin:flash");
  expect_status(folder, check + "wrong --kernel fault:last-value-column", 1);
  const nlohmann::json found = summary_of(folder, "wrong");
  EXPECT_THAT(found.dump(), HasSubstr("softmax.trial"));
  EXPECT_THAT(output_of(folder, "$attest prove --property softmax.trial"), HasSubstr("symbolic"));
}

TEST(TrialPlantedFault, IsCaught) {
  const fake::Folder folder;
  EXPECT_THAT(output_of(folder, "$attest audit --kernel fault:trial --out audit"),
              HasSubstr("fault:trial: flagged by case"));
  expect_status(folder,
                "$attest check --kernel fault:trial --property attention.oracle --dtype f32 --cases 50 --quiet --out c",
                1);
}

TEST(TrialScalar, IsAKernelThatHolds) {
  const fake::Folder folder;
  EXPECT_THAT(output_of(folder, "$attest list --kernels"),
              testing::ContainsRegex("core:trial +the definition in long double, rounded once"));
  // The second is judged by the core's own functions on the scalar.
  for (const std::string property : {"attention.oracle", "softmax.columnwise-is-transpose", "multihead.oracle"}) {
    expect_status(folder, joined({"$attest check --kernel core:trial --cases 30 --quiet --property ", property,
                                  " --out ", property}));
    EXPECT_EQ(summary_of(folder, property)["kernels"].size(), 2U) << "f64 and f32";
  }
}

TEST(TrialKernel, Holds) {
  const fake::Folder folder;
  EXPECT_THAT(output_of(folder, "$attest list --kernels"), HasSubstr("builtin:trial"));
  expect_status(folder, "$attest check --kernel builtin:trial --cases 10 --quiet --out run");
  EXPECT_EQ(summary_of(folder, "run")["kernels"].size(), 4U);
}

TEST(TrialReportSection, StandsOnThePageAndInTheSummary) {
  const fake::Folder folder;
  expect_status(folder, "$attest check --kernel builtin:flash --dtype f32 --cases 5 --quiet --out run");
  EXPECT_THAT(read_file(folder / "run/report.html"), HasSubstr("Kernels that were tried: 1."));
  EXPECT_THAT(read_file(folder / "run/summary.md"), HasSubstr("Tried: "));
}

TEST(TrialOutputFormat, IsWrittenByEveryCommandThatJudgesOrJoins) {
  const fake::Folder folder;
  expect_status(folder,
                "$attest check --kernel builtin:flash --dtype f32 --cases 5 --quiet --out run --trial checked.txt");
  EXPECT_EQ(read_file(folder / "checked.txt"), "run run, exit status 0\nbuiltin:flash f32\n");
  expect_status(folder, "$attest report run --trial reported.txt && cmp checked.txt reported.txt");
  expect_status(folder, "$attest merge run -o merged.jsonl --trial merged.txt && grep -q flash merged.txt");
  for (const char* const command : {"check", "fuzz", "merge", "report"}) {
    EXPECT_THAT(output_of(folder, joined({"$attest ", command, " --help"})), HasSubstr("write the trial there"));
    EXPECT_THAT(offered(folder, joined({"attest ", command, " --tr"})), HasSubstr("--trial")) << command;
  }
  EXPECT_THAT(output_of(folder, "$attest --man-page"), HasSubstr("write the trial there"));
  EXPECT_THAT(output_of(folder, "$attest check --kernel builtin:flash --trial none/t.txt", 2),
              HasSubstr("--trial \"none/t.txt\" has no folder to stand in"));
}

TEST(TrialCommandLineOption, IsShownAndHeeded) {
  const fake::Folder folder;
  EXPECT_THAT(output_of(folder, "$attest list --help"), HasSubstr("how many properties there are"));
  EXPECT_THAT(output_of(folder, "$attest --man-page"), HasSubstr("how many properties there are"));
  EXPECT_THAT(offered(folder, "attest list --tr"), HasSubstr("--trial"));
  const auto all = parsed_json(output_of(folder, "$attest list --properties --json"));
  EXPECT_EQ(std::stoul(output_of(folder, "$attest list --trial")), all["properties"].size());
}

}  // namespace
}  // namespace attest
