// A precision that --kernel asks for: the id in run folders is what was written, and means the same wherever one is
// read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/journal/journal.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;
using testing::Each;
using testing::Field;
using testing::SizeIs;

const std::string oracle = "--kernel core:mpfr@300 --dtype f64 --property attention.oracle --quiet ";

TEST(Precision, IsKeptAsWrittenInRunFoldersAndByResumeReplayAndMerge) {
  const Folder folder;
  expect_status(folder, "$attest check " + oracle + "--cases 6 --out run && $attest check " + oracle +
                            "--cases 9 --out run --resume");
  const Journal journal = read_journal(folder / "run");
  EXPECT_THAT(journal.kernels, SizeIs(2)) << "of the run, and of its rest";
  EXPECT_THAT(journal.kernels, Each(Field(&KernelRecord::id, "core:mpfr@300")));
  const nlohmann::json kernel = summary_of(folder, "run")["kernels"][0];
  EXPECT_EQ(kernel["name"], "core:mpfr@300");
  const std::string replayed =
      output_of(folder, "$attest replay \"$(find run/cases -name '*.safetensors' | head -n 1)\"");
  EXPECT_THAT(replayed, Says("core:mpfr@300", "held, as when it was saved"));
  expect_status(folder, "for i in 0 1; do $attest check " + oracle +
                            "--cases 6 --shard $i/2 --out part$i || exit; done; $attest merge part0 part1 -o both");
  EXPECT_EQ(read_journal(folder / "both").kernels.front().id, "core:mpfr@300");
}

TEST(Precision, OfTheNextWidthIsNamed) {
  const Folder folder;
  EXPECT_THAT(
      output_of(folder,
                "$attest check --verbose --kernel core:cpp_dec_float@80 --dtype f64 --property softmax.rows-sum-to-one "
                "--cases 2 --out run"),
      Says("core:cpp_dec_float@80", "computes with 100 decimal digits, the next width there is"));
}

TEST(Precision, IsRefusedInOneLineWhereThereIsNone) {
  expect_refused("check --kernel core:mpfr@0", "core:mpfr@0\": a precision is from 20 to 3000 decimal digits");
  expect_refused("check --kernel core:mpfr@1000000", "from 20 to 3000 decimal digits");
  expect_refused("check --kernel core:double@300", "core:double has 53 bits; with any precision there are core:mpfr");
}

}  // namespace
}  // namespace attest
