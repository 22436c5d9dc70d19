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

TEST(ProveProgram, LeavesCertificatesThatAnIndependentCheckerAccepts) {
  const Folder folder;
  if (shell(folder, "/usr/bin/python3 -c ''").status != 0) GTEST_SKIP() << "there is no Python";
  const std::string checker = "/usr/bin/python3 '" ATTEST_SOURCE_DIR "/properties/test/check_certificate.py' ";
  EXPECT_EQ(shell(folder, "$attest prove --property 'masked.*' --certificate proofs").status, 0);
  const ShellResult accepted = shell(folder, checker + "proofs/*.txt");
  EXPECT_EQ(accepted.status, 0) << accepted.output;
  EXPECT_EQ(lines_in(accepted.output), 10) << accepted.output;
  // One coefficient, of each file in turn.
  const ShellResult refused =
      shell(folder,
            "cp proofs/masked.zero-mask.txt whole.txt; for file in proofs/*.txt; do sed -i '0,/^left  = (/s//left  = "
            "(2*/' $file; " +
                checker + "$file | grep -q 'are different polynomials' || echo $file is accepted; done");
  EXPECT_EQ(refused.output, "");
  const ShellResult undefined = shell(folder, "sed -i 's/^E1 = .*//' whole.txt; " + checker + "whole.txt");
  EXPECT_EQ(undefined.status, 1);
  EXPECT_NE(undefined.output.find("E1 is not defined"), std::string::npos) << undefined.output;
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
