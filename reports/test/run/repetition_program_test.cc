// A kernel whose fault comes and goes, as a user meets it: what is printed of it, and what replay makes of its case.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/journal/journal.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

/// A Python kernel that is wrong in each call for which `wrong` is true; it counts its calls in `calls`.
void write_kernel(const Folder& folder, const std::string& wrong) {
  std::ofstream(folder / "mine.py") << "import os, sys\nsys.path.insert(0, '" ATTEST_SOURCE_DIR
                                       "/core/adapters/python')\nimport attest_adapter\nimport numpy\ncalls = 0\n"
                                       "def attention(q, k, v, scale=1.0):\n"
                                       "    global calls\n"
                                       "    calls += 1\n"
                                       "    if k.shape[2] == 0: raise attest_adapter.Rejected('no keys')\n"
                                       "    s = scale * (q @ k.swapaxes(-1, -2))\n"
                                       "    w = numpy.exp(s - s.max(-1, keepdims=True))\n"
                                       "    out = (w / w.sum(-1, keepdims=True)) @ v\n"
                                       "    return out + 1000 if "
                                    << wrong
                                    << " else out\n"
                                       "attest_adapter.serve(attention, {'name': 'mine', 'dtypes': ['f64'], 'masks': "
                                       "[], 'fully_masked_row': 'nan'})\n";
}
bool has_numpy(const Folder& folder) {
  return shell(folder, "/usr/bin/python3 -c 'import numpy'").status == 0;
}
ShellResult check(const Folder& folder, int cases) {
  return shell(folder,
               "$attest check --kernel 'exec:/usr/bin/python3 mine.py' --property attention.oracle --jobs 1 --out run "
               "--cases " +
                   std::to_string(cases));
}
void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in " << text;
}

TEST(RepetitionProgram, MakesTheCallsAgainThatAStateTakes) {
  const Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_kernel(folder, "calls % 3 == 0");
  const ShellResult checked = check(folder, 12);
  EXPECT_EQ(checked.status, 1) << checked.output;
  expect_has(checked.output, "not repeatable by itself: a kernel started afresh violates it after 2 other calls");
  EXPECT_EQ(checked.output.find("explained"), std::string::npos) << checked.output;
  const Journal journal = read_journal(folder / "run");
  ASSERT_FALSE(journal.findings.empty());
  for (const FindingRecord& finding : journal.findings) {
    const ShellResult again = shell(folder, "$attest replay run/" + finding.case_file);
    EXPECT_EQ(again.status, 1) << again.output;
    expect_has(again.output, "after 2 other calls, as it was found\nviolated: ");
    expect_has(again.output, "\nreproduced\n");
    EXPECT_EQ(again.output.find("0 of "), std::string::npos) << again.output;
  }
  // Merged into a folder, the calls go with the case.
  EXPECT_EQ(shell(folder, "$attest merge run -o whole/").status, 0);
  const ShellResult merged = shell(folder, "$attest replay whole/" + journal.findings.front().case_file);
  expect_has(merged.output, "\nreproduced\n");
  EXPECT_EQ(shell(folder, "rm run/" + journal.findings.front().repetition->before.front()).status, 0);
  const ShellResult missing = shell(folder, "$attest replay run/" + journal.findings.front().case_file);
  EXPECT_EQ(missing.status, 2) << missing.output;
  expect_has(missing.output, "needs the calls before it, and one cannot be made");
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
    expect_has(again.output, "not repeatable: violated in ");
    expect_has(again.output, " of 64 checks now, in " + std::to_string(finding.repetition->again) + " of 8 when");
    EXPECT_EQ(again.status, 1) << again.output;
  }
}

}  // namespace
}  // namespace attest
