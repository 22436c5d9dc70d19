// attest audit as a user runs it.
#include <gtest/gtest.h>

#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

nlohmann::json audit_of(const fake::Folder& folder, const std::string& run) {
  return parsed_json(read_file(folder / (run + "/audit.json")));
}

TEST(AuditProgram, AuditsWhatIsNamedAndStoresIt) {
  const fake::Folder folder;
  const std::string result = output_of(
      folder, "$attest audit --kernel 'fault:masked-row-*' --kernel control:exp2 --cases 300 --jobs 2 --out a --quiet");
  EXPECT_EQ(result, "");
  const nlohmann::json audit = audit_of(folder, "a");
  EXPECT_EQ(audit["schema"], "attest-audit/1");
  EXPECT_TRUE(audit["passed"]);
  EXPECT_EQ(audit["caught"], 4);
  EXPECT_EQ(audit["faults"].size(), 4U);
  EXPECT_EQ(audit["faults"][0]["kind"], "masks");
  EXPECT_EQ(audit["kinds"][0]["caught_by_short_check"], 4);
  EXPECT_EQ(audit["controls"][0]["judged"], 1500);
  EXPECT_THAT(read_file(folder / "a/audit.md"), Says("| masked-row-is-nan | masks | A |", "| masks | 4 | 4 | 4 |"));
  const std::string again = output_of(folder, "$attest audit --kernel control:exp2 --cases 1 --out a", 2);
  EXPECT_EQ(again, "attest: a: holds an audit already; replace it by --overwrite or choose another --out\n");
}

TEST(AuditProgram, FailsWhereAFaultIsMissed) {
  const fake::Folder folder;
  // One case cannot show it.
  EXPECT_THAT(output_of(folder, "$attest audit --kernel fault:index-wraps --cases 1", 1),
              Says("not caught: fault:index-wraps"));
  EXPECT_EQ(audit_of(folder, "attest-audit-001")["not_caught"][0], "fault:index-wraps");
}

TEST(AuditProgram, RefusesATypoInOneLine) {
  const fake::Folder folder;
  const auto refusal = [&](const std::string& arguments) {
    const std::string result = output_of(folder, "$attest audit " + arguments, 2);
    return result;
  };
  EXPECT_EQ(
      refusal("--kernel fault:mask-scald"),
      "attest: --kernel is \"fault:mask-scald\", no planted fault or control of attest list --kernels; did you mean "
      "\"fault:mask-scaled\"?\n");
  EXPECT_EQ(refusal("--cases 0"), "attest: --cases is 0; it must be at least 1\n");
  EXPECT_THAT(refusal("--case 5"), Says("did you mean \"--cases\"?"));
  EXPECT_FALSE(std::filesystem::exists(folder / "attest-audit-001"));
}

TEST(AuditProgram, FaultsAreListedAndCheckedByName) {
  const fake::Folder folder;
  const ShellResult list = shell(folder, "$attest list --kernels");
  EXPECT_THAT(list.output, Says("fault:mask-scaled", "control:exp2"));
  expect_status(
      folder,
      "$attest check --kernel fault:all-zeros --property attention.oracle --dtype f32 --cases 1 --quiet --out r", 1);
}

TEST(AuditProgram, LeavesWhatIsDoneWhenInterrupted) {
  const fake::Folder folder;
  expect_status(folder,
                "$attest audit --kernel fault:all-zeros --kernel control:exp2 --cases 1000000000 "
                "--jobs 1 --quiet --out a & pid=$!; sleep 1; kill -INT $pid; wait $pid",
                130);
  EXPECT_TRUE(audit_of(folder, "a")["interrupted"]);
}

// What needs two tiles of keys and 64 queries is in no small case.
TEST(AuditProgram, DrawsTheShapesOfACheck) {
  const fake::Folder folder;
  expect_status(folder, "$attest audit --kernel fault:prefill-sum-not-rescaled --out a --quiet");
  EXPECT_TRUE(audit_of(folder, "a")["passed"]);
}

}  // namespace
}  // namespace attest
