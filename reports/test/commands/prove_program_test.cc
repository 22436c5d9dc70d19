// attest prove as a user runs it.
#include <gtest/gtest.h>

#include <map>

#include "core/journal/journal.h"
#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

TEST(ProveProgram, SaysWhatStandsBehindEachRow) {
  const Folder folder;
  const std::string result =
      output_of(folder, "$attest prove --property 'masked.*' --shape 2,3,2,2,2 --shape 2,2,2,1,1 --certificate proofs");
  EXPECT_THAT(result, Says("masked.suppression", "symbolic",
                           "the core's templates at 2 shapes, 2,2,2,1,1 to 2,3,2,2,2: all real inputs",
                           "masked.conventions-differ", "refuted", "counterexample: one query and two keys",
                           "nothing here is about rounding"));
  const std::string certificate = read_file(folder / "proofs/masked.suppression.txt");
  EXPECT_THAT(certificate, Says("b_is = −∞ ⇒", "= exp("));
}

TEST(ProveProgram, LeavesCertificatesThatAnIndependentCheckerAccepts) {
  const Folder folder;
  if (shell(folder, "/usr/bin/python3 -c ''").status != 0) GTEST_SKIP() << "there is no Python";
  const std::string checker = "/usr/bin/python3 '" + source_folder() + "/properties/test/proofs/check_certificate.py' ";
  expect_status(folder, "$attest prove --property 'masked.*' --certificate proofs");
  const std::string accepted = output_of(folder, checker + "proofs/*.txt");
  EXPECT_EQ(lines_in(accepted), 14) << accepted;
  // One coefficient, of each file in turn.
  const ShellResult refused =
      shell(folder,
            "cp proofs/masked.zero-mask.txt whole.txt; for file in proofs/*.txt; do sed -i '0,/^left  = "
            "(\\(-\\?\\)/s//left  = (\\12*/' $file; " +
                checker + "$file | grep -q 'are different polynomials' || echo $file is accepted; done");
  EXPECT_EQ(refused.output, "");
  EXPECT_THAT(output_of(folder, "sed -i 's/^E1 = .*//' whole.txt; " + checker + "whole.txt", 1),
              Says("E1 is not defined"));
}

TEST(ProveProgram, WritesJson) {
  const Folder folder;
  const std::string result =
      output_of(folder, "$attest prove --property attention.query-deletion --up-to 2,2,2,1,1 --json");
  const nlohmann::json all = parsed_json(result);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["property"], "attention.query-deletion");
  EXPECT_EQ(all[0]["evidence"][0]["level"], "coq-all-shapes");
  EXPECT_EQ(all[0]["evidence"][1]["level"], "symbolic");
  EXPECT_EQ(all[0]["proofs"][0]["shapes"], (nlohmann::json{{2, 2, 2, 1, 1}}));
  EXPECT_GT(all[0]["proofs"][0]["comparisons"], 0);
}

TEST(ProveProgram, KeepsWhatItEstablishedInAJournal) {
  const Folder folder;
  const std::string prove = "$attest prove --property 'causal.*' --shape 2,3,2,2,1 --out ";
  expect_status(folder, prove + "proofs");
  const Journal journal = read_journal(folder / "proofs");
  EXPECT_FALSE(journal.unfinished());
  std::map<std::string, int> levels;
  for (const ProofRecord& record : journal.proofs) ++levels[record.level];
  EXPECT_EQ(levels["coq-all-shapes"], 5);
  EXPECT_EQ(levels["symbolic"], 9);
  EXPECT_GT(levels["abstract"], 0);
  // The same twice is one; a run's folder is not overwritten unasked.
  expect_status(folder, prove + "again");
  expect_status(folder, "$attest merge proofs again -o merged.jsonl");
  EXPECT_EQ(read_journal(folder / "merged.jsonl").proofs.size(), journal.proofs.size());
  expect_status(folder, prove + "proofs 2>&1", 2);
  expect_status(folder, prove + "proofs --overwrite");
  expect_status(folder, "$attest report proofs -o page.html");
  const std::string page = read_file(folder / "page.html");
  EXPECT_THAT(page, Says("coq-all-shapes", "causal.no-leak"));
}

TEST(ProveProgram, RefutesTheoremsWithoutAHypothesis) {
  const Folder folder;
  const std::string result =
      output_of(folder, "$attest prove --without unmasked --property 'attention.*' --witness kept");
  EXPECT_THAT(result,
              Says("without unmasked: no mask and no causal form", "attention.query-deletion", "refuted",
                   "causal top-left", "attention.query-locality", "not needed", "held in 24 cases", "0 unexpected",
                   "attest replay kept/attention.query-deletion--without-unmasked.safetensors"));

  const std::string shown =
      output_of(folder, "$attest replay kept/attention.query-deletion--without-unmasked.safetensors", 1);
  EXPECT_THAT(shown, Says("q f64 [", "attention.query-deletion without unmasked: refuted, the enclosures are apart",
                          "\nreproduced\n"));
  expect_status(folder,
                "$attest replay kept/attention.query-deletion--without-unmasked.safetensors --kernel "
                "builtin:flash",
                2);
}

TEST(ProveProgram, SaysWhyAHypothesisIsNotNeeded) {
  const Folder folder;
  const std::string result =
      output_of(folder, "$attest prove --without no-biases --property weights.permutation-equivariance --json");
  const nlohmann::json all = parsed_json(result);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["outcome"], "not needed");
  EXPECT_EQ(all[0]["without"], "no-biases");
  EXPECT_GE(all[0]["cases"], 24);
  EXPECT_THAT(output_of(folder, "$attest prove --without two-queries --property attention.query-deletion"),
              Says("no matter"));
}

TEST(ProveProgram, RefusesATypoInOneLine) {
  expect_refused("prove --without unmaskd", "did you mean \"unmasked\"?");
  expect_refused("prove --without 'quite another thing'", "unmasked");
  expect_refused("prove --without", "--without");
  expect_refused("prove --without one-head --property 'attention.*'", "none of the 30 chosen properties states it");
  expect_refused("prove --witness kept", "give a hypothesis with it");
  expect_refused("prove --without one-head --shape 2,2,2,2,1", "--shape is for proofs");
  expect_refused("prove --without one-head --witness /dev/null/x", "--witness");
  expect_refused("prove --property masked.supression", "did you mean \"masked.suppression\"?");
  expect_refused("prove --shape 2,2,2,2", "it must be M,N,dk,dv,h");
  expect_refused("prove --shape 2,1,2,2,1", "N and dk from 2");
  expect_refused("prove --shape 2,2,2,x,1", "--shape is \"x\"");
  expect_refused("prove --up-to 2,2,2,2,513", "all up to 512");
  expect_refused("prove --shpe 2,2,2,2,1", "did you mean \"--shape\"?");
  expect_refused("prove --certificate /dev/null/x --property softmax.monotone", "--certificate");
  expect_refused("prove --back-end symbolc", "did you mean \"symbolic\"?");
  expect_refused("prove --variants 0", "--variants");
  expect_refused("prove --out /dev/null/x --property softmax.monotone", "/dev/null/x");
  expect_refused("prove extra", "unexpected argument \"extra\"");
}

}  // namespace
}  // namespace attest
