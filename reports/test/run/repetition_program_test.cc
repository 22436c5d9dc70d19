// A kernel whose fault comes and goes, as a user meets it: what is printed of it, and what replay makes of its case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/journal/journal.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;
using testing::AllOf;

/// A Python kernel that is wrong in each call for which `wrong` is true; it counts its calls in `calls`.
void write_kernel(const Folder& folder, const std::string& wrong) {
  write_python(folder, "mine",
               "import os\ncalls = 0\n"
               "def attention(q, k, v, scale=1.0):\n"
               "    global calls\n"
               "    calls += 1\n"
               "    if k.shape[2] == 0: raise attest_adapter.Rejected('no keys')\n"
               "    s = scale * (q @ k.swapaxes(-1, -2))\n"
               "    w = numpy.exp(s - s.max(-1, keepdims=True))\n"
               "    out = (w / w.sum(-1, keepdims=True)) @ v\n"
               "    return out + 1000 if " +
                   wrong + " else out\n",
               "'dtypes': ['f64']");
}
ShellResult check(const Folder& folder, int cases) {
  return shell(
      folder,
      "$attest check --verbose --kernel 'exec:/usr/bin/python3 mine.py' --property attention.oracle --jobs 1 --out run "
      "--cases " +
          std::to_string(cases));
}
TEST(RepetitionProgram, MakesTheCallsAgainThatAStateTakes) {
  const Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_kernel(folder, "calls % 3 == 0");
  const ShellResult checked = check(folder, 12);
  EXPECT_EQ(checked.status, 1) << checked.output;
  EXPECT_THAT(checked.output,
              AllOf(Says("not repeatable by itself: a kernel started afresh violates it after 2 other calls"),
                    NeverSays("explained")));
  const Journal journal = read_journal(folder / "run");
  ASSERT_FALSE(journal.findings.empty());
  for (const FindingRecord& finding : journal.findings) {
    EXPECT_THAT(output_of(folder, "$attest replay run/" + finding.case_file, 1),
                AllOf(Says("after 2 other calls, as it was found\nviolated: ", "\nreproduced\n"), NeverSays("0 of ")));
  }
  // Merged into a folder, the calls go with the case.
  expect_status(folder, "$attest merge run -o whole/");
  const ShellResult merged = shell(folder, "$attest replay whole/" + journal.findings.front().case_file);
  EXPECT_THAT(merged.output, Says("\nreproduced\n"));
  expect_status(folder, "rm run/" + journal.findings.front().repetition->before.front());
  EXPECT_THAT(output_of(folder, "$attest replay run/" + journal.findings.front().case_file, 2),
              Says("needs the calls before it, and one cannot be made"));
}

TEST(RepetitionProgram, SaysHowOftenWhatComesAndGoesComes) {
  const Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_kernel(folder, "os.urandom(1)[0] < 80");
  // A third of them is judged, and three in ten of these are wrong: that all are right is less likely than 1e-9.
  const ShellResult checked = check(folder, 180);
  EXPECT_EQ(checked.status, 1) << checked.output;
  const Journal journal = read_journal(folder / "run");
  ASSERT_FALSE(journal.findings.empty());
  for (const FindingRecord& finding : journal.findings) {
    ASSERT_TRUE(finding.repetition) << finding.verdict.reason;
    if (!finding.repetition->before.empty()) continue;  // by chance a call before it seemed to bring it back
    const ShellResult again = shell(folder, "$attest replay run/" + finding.case_file);
    EXPECT_THAT(again.output,
                Says("not repeatable: violated in ",
                     " of 64 checks now, in " + std::to_string(finding.repetition->again) + " of 8 when"));
    EXPECT_EQ(again.status, 1) << again.output;
  }
}

}  // namespace
}  // namespace attest
