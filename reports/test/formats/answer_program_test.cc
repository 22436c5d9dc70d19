// What is wrong with a kernel stands in the first 25 lines of a terminal of 80 columns, at the top of the page and at
// the top of summary.md: kernel, dtype, cause, the smallest input, what to type next.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/support/files.h"
#include "core/test/sanitizers.h"
#include "reports/formats/summary_markdown.h"
#include "reports/page/print.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Wrong {
  std::string fault, dtype, cause;
  int cases = 200;
  std::string besides{};  ///< what else is said of it
};
class Answer : public testing::TestWithParam<Wrong> {};

/// Without the line breaks of a terminal's width.
std::string joined(const std::string& text) {
  std::string words;
  for (const char c : text) {
    if (c != '\n' && c != ' ')
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  }
  return words;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

TEST_P(Answer, IsThereInTenSeconds) {
  const auto& [fault, dtype, cause, cases, besides] = GetParam();
  // Each is a run of thousands of cases, and the words are the same.
  if (under_address_sanitizer && fault != "interleaved-groups") GTEST_SKIP() << "one fault is enough for a sanitizer";
  const fake::Folder folder;
  const ShellResult result = shell(folder, "$attest check --kernel fault:" + fault + " --dtype " + dtype + " --cases " +
                                               std::to_string(cases) + " --out run --comment comment.md 2>/dev/null");
  EXPECT_EQ(result.status, 1);
  const std::vector<std::string> lines = lines_of(result.output);
  EXPECT_LE(lines.size(), 25U) << result.output;
  for (const std::string& line : lines) EXPECT_LE(columns_of_text(line), 80U) << line;
  const std::string said = joined(result.output);
  EXPECT_THAT(said, HasSubstr("✗ fault:" + fault + " " + dtype + " WRONG"));
  EXPECT_THAT(said, AllOf(HasSubstr(cause), HasSubstr(besides)));
  EXPECT_THAT(said, HasSubstr(" smallest " + dtype + " "));
  EXPECT_THAT(said, HasSubstr("attest replay run "));
  EXPECT_THAT(said, AllOf(HasSubstr("(violated, exit status 1; "), HasSubstr("attest findings run")));
  EXPECT_THAT(said, HasSubstr(" otherwise right where judged: "));
  // In 16 bits the rounding of an output to them is often all that is allowed, and said of 99 % it would say nothing.
  EXPECT_THAT(said, HasSubstr(dtype == "f32" ? " of what is allowed; " : " cases"));
  EXPECT_THAT(said,
              AllOf(HasSubstr(" properties (1 needs a promised arithmetic) "), HasSubstr(" dk "), HasSubstr(" H ")));
  EXPECT_THAT(said, AllOf(HasSubstr("never judged: M > "), HasSubstr("; for some of it add --shape=1,1,1,")));
  EXPECT_THAT(said, testing::Not(HasSubstr("is not determined: "))) << "what is not known explains nothing";
  // What it says to type.
  EXPECT_EQ(shell(folder, "$attest replay run").status, 1);
  const std::string page = read_file(folder / "run/report.html");
  const std::size_t causes = page.find("<section id=\"causes\">"), behind = page.find("<section", causes + 1);
  ASSERT_NE(causes, std::string::npos);
  // Behind the strip of verdicts, which is a line.
  EXPECT_EQ(page.find("<section"), page.find("<section id=\"verdicts\">"));
  EXPECT_EQ(page.find("<section", page.find("<section") + 1), causes);
  const std::string first = page.substr(causes, behind - causes);
  for (const std::string& part :
       {"fault:" + fault, dtype, escaped(cause), std::string("<dt>smallest</dt>"), std::string("attest replay run")})
    EXPECT_THAT(first, HasSubstr(part));
  const std::string comment = read_file(folder / "comment.md");
  EXPECT_LE(lines_of(comment).size(), comment_lines) << comment;
  for (const std::string& part :
       {"fault:" + fault, dtype, cause, std::string("- smallest: `"), std::string("attest replay run")})
    EXPECT_THAT(comment, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Answer,
    testing::Values(Wrong{"interleaved-groups", "bf16", "head h read key-value head h mod KV"},
                    Wrong{"mask-of-first-head", "f32", "every head had the mask of the first"},
                    Wrong{"mask-axes-exchanged", "f32", "batch entries and heads of the mask were exchanged", 500},
                    Wrong{"bool-mask-inverted", "f16", "true hid a key"},
                    Wrong{"bool-mask-added", "f32", "the boolean mask were added to the scores"},
                    Wrong{"top-left-for-bottom-right", "f64", "the causal form were aligned to the first keys"},
                    Wrong{"scale-of-all-heads", "f32", "the scale were 1/sqrt(heads·dk)"},
                    Wrong{"head-dim-in-eights", "f32", "columns of q and k behind the last whole 8 were not there"},
                    Wrong{"split-drops-remainder", "f32", "keys behind the last whole 4 were not there"},
                    Wrong{"keys-transposed-when-square", "f32", "k lay in memory column by column"},
                    Wrong{"last-tile-not-rescaled", "f32", "N > 128", 500},
                    Wrong{"prefill-sum-not-rescaled", "f32", "M >= ", 500,
                          "the sum of weights so far were not rescaled where the maximum rises, in steps of 64 keys"},
                    Wrong{"lse-of-last-tile-unwritten", "f32", "dk=1 (from the second query tile of 64 on)", 500},
                    Wrong{"bias-sign", "f32", "what the mask adds between -8 and 0 were added with the other sign"},
                    Wrong{"output-not-rescaled", "f32", "not rescaled where the maximum rises, in steps of 16 keys"},
                    Wrong{"no-maximum", "f32", "no maximum were subtracted from scores, and exp overflows"},
                    Wrong{"exp-clamped", "f32", "an error beyond its bound", 200,
                          "what goes wrong first: the weights"}),
    [](const testing::TestParamInfo<Wrong>& one) {
      std::string name = one.param.fault;
      std::ranges::replace(name, '-', '_');
      return name;
    });

/// Of all dtypes, of several causes, of long explanations: what is least needed is left out.
TEST(AnswerProgram, KeepsToOneScreenHoweverMuchThereIsToSay) {
  if (under_address_sanitizer) GTEST_SKIP() << "runs of a whole catalogue";
  for (const char* const kernels :
       {"fault:odd-tile-counted-twice", "fault:exp-clamped", "fault:window-of-48",
        "fault:interleaved-groups --kernel fault:coarse-exp --kernel fault:bias-sign --kernel builtin:flash"}) {
    const fake::Folder folder;
    const ShellResult result =
        shell(folder, std::string("$attest check --kernel ") + kernels + " --cases 50 --out run 2>/dev/null");
    const std::vector<std::string> lines = lines_of(result.output);
    EXPECT_LE(lines.size(), 25U) << result.output;
    for (const std::string& line : lines) {
      EXPECT_LE(columns_of_text(line), 80U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << '"' << line << '"';
    }
    EXPECT_THAT(joined(result.output), AllOf(HasSubstr(" what "), HasSubstr("attest replay run ")));
  }
}

/// What it needs for its right answers stands beside what is wrong, where there is room.
TEST(AnswerProgram, OfAKernelThatIsWrongHasTheToleranceOfItsRightAnswers) {
  if (under_address_sanitizer) GTEST_SKIP() << "the run of a whole catalogue";
  const fake::Folder folder;
  const ShellResult result =
      shell(folder, "$attest check --kernel fault:interleaved-groups --dtype f32 --cases 600 --out run 2>/dev/null");
  EXPECT_LE(lines_of(result.output).size(), 25U) << result.output;
  EXPECT_THAT(joined(result.output), HasSubstr(", by its right answers (misses "));
}

/// All that a run found keeps to the terminal's width, but for what is to be typed.
TEST(FindingsProgram, BreaksItsLines) {
  const fake::Folder folder;
  shell(folder, "$attest check --kernel fault:coarse-exp --dtype f32 --cases 60 --property 'attention.*' --out run");
  const ShellResult result = shell(folder, "$attest findings run");
  for (const std::string& line : lines_of(result.output))
    EXPECT_TRUE(columns_of_text(line) <= 80 || line.starts_with("  replay: ") ||
                line.find(' ', line.find_first_not_of(' ')) == std::string::npos)
        << line;
  EXPECT_THAT(joined(result.output), AllOf(HasSubstr("VIOLATED attention.oracle by fault:coarse-exp in f32, case "),
                                           HasSubstr("; accepted is [")));
}

/// A kernel that answers nothing was not tested, and nobody is to take it for one that could not be decided.
TEST(AnswerProgram, OfAKernelThatRefusesAllSaysThatItWasNotTested) {
  const fake::Folder folder;
  write_file_atomically(folder / "refuses.py",
                        "import attest_adapter\n"
                        "def attention(*_, **__):\n    raise attest_adapter.Unsupported('not today')\n"
                        "attest_adapter.serve(attention, {'name': 'refuses', 'dtypes': ['f32']})\n");
  const ShellResult result =
      shell(folder,
            "$attest check --kernel 'exec:python3 refuses.py' --cases 20 --property attention.oracle --out run "
            "2>/dev/null");
  EXPECT_EQ(result.status, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("? refuses  f32  NOT TESTED\n"));
}

/// What was not judged, as the kernel was given up, is none of the cases that it fails in.
TEST(AnswerProgram, OfAKernelThatIsGivenUpCountsWhatWasJudged) {
  const fake::Folder folder;
  write_file_atomically(folder / "fails.py",
                        "import attest_adapter\n"
                        "def attention(*_, **__):\n    raise ValueError('no such thing')\n"
                        "attest_adapter.serve(attention, {'name': 'fails', 'dtypes': ['f32']})\n");
  const ShellResult result =
      shell(folder,
            "$attest check --kernel 'exec:python3 fails.py' --cases 40 --property attention.oracle --out run "
            "2>/dev/null");
  EXPECT_EQ(result.status, 1) << result.output;
  const auto judged = summary_of(folder, "run")["kernels"][0]["properties"][0]["violated"].get<int>();
  EXPECT_LT(judged, 40);
  EXPECT_THAT(joined(result.output), HasSubstr(fmt::format(" when in {} of {} cases", judged, judged)));
}

TEST(AnswerProgram, OfAKernelThatHoldsSaysHowFarThatGoes) {
  if (under_address_sanitizer) GTEST_SKIP() << "the run of a whole catalogue";
  const fake::Folder folder;
  const ShellResult result = shell(folder, "$attest check --kernel builtin:flash --dtype f32 --out run 2>/dev/null");
  EXPECT_EQ(result.status, 0);
  const std::vector<std::string> lines = lines_of(result.output);
  EXPECT_LE(lines.size(), 16U) << result.output;
  for (const std::string& line : lines) EXPECT_LE(columns_of_text(line), 80U) << line;
  const std::string said = joined(result.output);
  EXPECT_THAT(said, HasSubstr("✓ builtin:flash f32 right where judged"));
  EXPECT_THAT(said, HasSubstr("never judged: M > "));
  EXPECT_THAT(said, HasSubstr("tolerance f32 atol "));
  EXPECT_THAT(said, HasSubstr("; PyTorch's 1e-05, 1.3e-06 misses at least "));
  EXPECT_THAT(said, HasSubstr("(held, exit status 0; "));
}

}  // namespace
}  // namespace attest
