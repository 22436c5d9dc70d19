// attest prove as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attest/files.h"
#include "program_checks.h"
#include "shell.h"

namespace attest {
namespace {

using fake::Folder;

TEST(ProveProgram, SaysWhatStandsBehindEachRow) {
  const Folder folder;
  const ShellResult result =
      shell(folder, "$attest prove --property 'masked.*' --shape 2,3,2,2,2 --shape 2,2,2,1,1 --certificate proofs");
  EXPECT_EQ(result.status, 0) << result.output;
  for (const char* const part :
       {"masked.suppression", "symbolic", "all real inputs at 2 shapes, 2,3,2,2,2 to 2,2,2,1,1",
        "masked.conventions-differ", "refuted", "counterexample: one query and two keys", "nothing about rounding"})
    EXPECT_NE(result.output.find(part), std::string::npos) << part << " in " << result.output;
  const std::string certificate = read_file(folder / "proofs/masked.suppression.txt");
  EXPECT_NE(certificate.find("b_is = −∞ ⇒"), std::string::npos) << certificate;
  EXPECT_NE(certificate.find("= exp("), std::string::npos) << certificate;
}

TEST(ProveProgram, WritesJson) {
  const Folder folder;
  const ShellResult result =
      shell(folder, "$attest prove --property attention.query-deletion --up-to 2,2,2,1,1 --json");
  EXPECT_EQ(result.status, 0) << result.output;
  const nlohmann::json all = nlohmann::json::parse(result.output);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["property"], "attention.query-deletion");
  EXPECT_EQ(all[0]["evidence"], "symbolic");
  EXPECT_EQ(all[0]["shapes"], (nlohmann::json{{2, 2, 2, 1, 1}}));
  EXPECT_GT(all[0]["equalities"], 0);
}

TEST(ProveProgram, RefusesATypoInOneLine) {
  expect_refused("prove --property masked.supression", "did you mean \"masked.suppression\"?");
  expect_refused("prove --shape 2,2,2,2", "it must be M,N,dk,dv,h");
  expect_refused("prove --shape 2,1,2,2,1", "N and dk from 2");
  expect_refused("prove --shape 2,2,2,x,1", "--shape is \"x\"");
  expect_refused("prove --up-to 2,2,2,2,65", "all up to 64");
  expect_refused("prove --shpe 2,2,2,2,1", "did you mean \"--shape\"?");
  expect_refused("prove --certificate /dev/null/x --property softmax.monotone", "--certificate");
  expect_refused("prove extra", "unexpected argument \"extra\"");
}

}  // namespace
}  // namespace attest
