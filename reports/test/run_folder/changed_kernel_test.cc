// Runs that go on with other files than they began with.
#include "reports/run_folder/changed_kernel.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/kernels/kernel_files.h"
#include "core/support/errors.h"
#include "reports/results/summary.h"
#include "reports/run_folder/version.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

const std::string hash_a(64, 'a'), hash_b(64, 'b');

KernelRecord record_of(FileHashes files) {
  return {"exec:./mine", R"({"name":"mine"})", "", std::move(files)};
}

Journal earlier_with(std::vector<KernelRecord> kernels, const std::string& build = build_id()) {
  Journal journal;
  journal.meta.push_back({"begin", {{"build", build}}});
  journal.kernels = std::move(kernels);
  return journal;
}

struct Resumed {
  std::string refusal;
  std::vector<MetaRecord> notes;
  FileHashes files;
};

Resumed resumed(const Journal& earlier, FileHashes now, bool accepted = false) {
  std::vector<KernelRecord> records{record_of(std::move(now))};
  Resumed outcome;
  try {
    outcome.notes = refuse_changed_files(earlier, records, accepted, "run");
  } catch (const UsageError& error) {
    outcome.refusal = error.what();
  }
  outcome.files = records.front().files;
  return outcome;
}

TEST(ChangedKernel, IsRefusedByTheNameOfTheFile) {
  const std::string remedy =
      "; start a new run, or accept it with --accept-changed-kernel: the verdicts are then of both";
  const Journal earlier = earlier_with({record_of({{"./mine", {hash_a}}, {"data", {hash_a}}})});
  EXPECT_EQ(resumed(earlier, {{"./mine", {hash_a}}, {"data", {hash_a}}}).refusal, "");
  EXPECT_EQ(
      resumed(earlier, {{"./mine", {hash_a}}, {"data", {hash_b}}}).refusal,
      "kernel exec:./mine: data has changed (SHA-256 aaaaaaaaaaaa…, now bbbbbbbbbbbb…) since the run in run" + remedy);
  EXPECT_EQ(resumed(earlier, {{"./mine", {hash_a}}}).refusal,
            "kernel exec:./mine: data is gone since the run in run" + remedy);
  EXPECT_EQ(resumed(earlier, {{"./mine", {hash_a}}, {"data", {hash_a}}, {"more", {hash_a}}}).refusal,
            "kernel exec:./mine: more is new since the run in run" + remedy);
}

TEST(ChangedKernel, IsInTheRecordWhereItIsAccepted) {
  const Journal earlier = earlier_with({record_of({{"./mine", {hash_a}}})});
  const Resumed outcome = resumed(earlier, {{"./mine", {hash_b}}}, /*accepted=*/true);
  EXPECT_EQ(outcome.refusal, "");
  EXPECT_EQ(outcome.files, (FileHashes{{"./mine", {hash_a, hash_b}}}));
  // From then on either is known.
  const Journal both = earlier_with({record_of({{"./mine", {hash_a}}}), record_of(outcome.files)});
  EXPECT_EQ(resumed(both, {{"./mine", {hash_a}}}).refusal, "");
  EXPECT_EQ(resumed(both, {{"./mine", {hash_b}}}).files, outcome.files);
}

TEST(ChangedKernel, IsNotToldOfAJournalWithoutHashes) {
  const Resumed outcome = resumed(earlier_with({record_of({})}, ""), {{"./mine", {hash_b}}});
  // A begin without a build, as journals of before have them.
  Journal earlier = earlier_with({record_of({})});
  earlier.meta.front().facts.clear();
  const Resumed old = resumed(earlier, {{"./mine", {hash_b}}});
  EXPECT_EQ(old.refusal, "");
  ASSERT_EQ(old.notes.size(), 1U);
  EXPECT_EQ(old.notes[0].event, "note");
  EXPECT_EQ(old.notes[0].facts.at("kernel"), "exec:./mine");
  EXPECT_NE(old.notes[0].facts.at("text").find("kept no hash"), std::string::npos);
  // One of attest's own has no files, then as now.
  EXPECT_TRUE(resumed(earlier, {}).notes.empty());
  EXPECT_NE(outcome.refusal, "");
}

TEST(ChangedKernel, MayBeAttestItself) {
  const Journal earlier = earlier_with({record_of({})}, std::string(40, 'c'));
  const std::string refusal = resumed(earlier, {}).refusal;
  EXPECT_TRUE(refusal.starts_with("attest itself has changed since the run in run (build cccccccccccc…, now "))
      << refusal;
  EXPECT_EQ(resumed(earlier, {}, /*accepted=*/true).refusal, "");
}

TEST(ChangedKernel, IsNotedInTheSummary) {
  Journal journal = earlier_with({record_of({{"./mine", {hash_a, hash_b}}, {"data", {hash_a}}})});
  journal.batches.push_back({{"attention.oracle", "exec:./mine", "f32"}, 0, 1, {}, {}});
  journal.batches.back().tally.add(0, {.utilisation = 0.5});
  Summary summary = summarise(journal, {});
  ASSERT_EQ(summary.notes.size(), 1U);
  EXPECT_EQ(summary.notes[0].text, "./mine changed within this run: its verdicts are of more than one build");
  journal.kernels.front().files["./mine"] = {hash_a};
  EXPECT_TRUE(summarise(journal, {}).notes.empty());
  journal.meta.push_back({"begin", {{"build", std::string(40, 'c')}}});
  summary = summarise(journal, {});
  ASSERT_EQ(summary.notes.size(), 1U);
  EXPECT_NE(summary.notes[0].text.find("2 builds of attest itself made this run"), std::string::npos);
}

TEST(ChangedKernel, IsSeenThatChangesDuringARun) {
  const fake::Folder folder;
  const std::string library = folder / "mine.so";
  std::ofstream(library) << "one";
  std::vector<KernelRecord> records{{library, "{}", ""}};
  add_files(records, "");
  ASSERT_EQ(records[0].files.size(), 1U);
  EXPECT_TRUE(changed_meanwhile(records, "").empty());
  std::ofstream(library) << "two";
  const std::vector<KernelRecord> changed = changed_meanwhile(records, "");
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].files.at(library).size(), 2U);
}

TEST(ChangedKernel, HasTheFilesOfWhatItIsComparedWith) {
  const fake::Folder folder;
  const std::string other = folder / "other.so";
  std::ofstream(other) << "one";
  std::vector<KernelRecord> records{{"builtin:flash", "{}", ""}, {"pytorch:*", "", "not there"}};
  add_files(records, other);
  EXPECT_TRUE(records[0].files.contains(other));
  EXPECT_TRUE(records[1].files.empty());
}

}  // namespace
}  // namespace attest
