#include "reports/formats/summary_markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "reports/page/print.h"
#include "reports/run_folder/run_folder.h"
#include "reports/test/fakes.h"
#include "reports/test/journals.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string markdown_of(const Journal& journal, const std::string& folder = "run") {
  return to_markdown(summarise(journal, folder), journal, folder, conclude(summarise(journal, folder)));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(CodeSpan, HoldsWhateverThereIs) {
  EXPECT_EQ(code_span("a|b"), "`a|b`");
  EXPECT_EQ(code_span("a\\|b", /*in_table=*/true), "`a\\¦b`");
  EXPECT_EQ(code_span("a`b``c"), "```a`b``c```");
  EXPECT_EQ(code_span("`"), "`` ` ``");
  EXPECT_EQ(code_span(" a "), "`  a  `");
  EXPECT_EQ(code_span("a\nb\x1b[2J"), "`a b [2J`");
  EXPECT_EQ(code_span(""), "(empty)");
  EXPECT_EQ(code_span("  "), "(empty)");
  EXPECT_EQ(code_span("\xff"), "`\xEF\xBF\xBD`");
  EXPECT_LT(code_span(std::string(100000, 'x')).size(), 500U);
}

TEST(Markdown, SaysWhatARunAmountsTo) {
  const fake::Folder folder;
  Journal journal = fake::mixed_journal();
  journal.meta.push_back({"note", {{"kernel", "builtin:bad"}, {"text", "prints a lot"}}});
  ASSERT_EQ(journal.batches.back().subject.kernel, "builtin:good");
  journal.batches.back().tally.reach = Reach{320, 8192, 256, 64, 8, 2, 1};
  std::filesystem::create_directories(folder / "cases");
  const std::string worst = case_file_name({"attention.oracle", "builtin:good", "bf16"}, "builtin:good", "worst");
  std::ofstream(folder / worst) << "a case";
  const std::string text = markdown_of(journal, folder.path().string());
  EXPECT_THAT(text, StartsWith("## ❌ Attest: violated\n"));
  EXPECT_THAT(text,
              HasSubstr("| `builtin:bad` | `f32` | ❌ violated | 12 | 0 | 3 | `attention.oracle` | – | – | – |\n"
                        "| `builtin:good` | `bf16` | ✅ held | 9 | 0 | 0.25 | `attention.oracle` | M 320, N 8192, "
                        "dk 256, 8 heads |"));
  EXPECT_THAT(text, HasSubstr("Reach: the largest M, N, dk and number of heads"));
  EXPECT_THAT(text, HasSubstr("❌ `builtin:bad` in `f32` violates `attention.oracle`, 2 of 5 cases: "
                              "`out[0] = 2; accepted is [0, 1]`\n\n```sh\nattest replay " +
                              folder.path().filename().string() + "/cases/k7.safetensors\n```\n"));
  EXPECT_THAT(text, HasSubstr("❔ `builtin:bad` in `f32` is undecided for `softmax.monotone`, 1 of 3 cases"));
  EXPECT_THAT(text, HasSubstr("# builtin:good, bf16: 0.25 of what is allowed, attention.oracle\nattest replay " +
                              folder.path().filename().string() + "/" + worst));
  EXPECT_THAT(text, HasSubstr("- `builtin:bad`: `prints a lot`\n"));
  EXPECT_THAT(text, HasSubstr("- `pytorch:*` did not start: `no torch`\n"));
  EXPECT_THAT(text, HasSubstr("- `builtin:bad` in `f32`: `masked.row-shift`: `skipped: has N keys`"));
  EXPECT_THAT(text, Not(HasSubstr("Cut here")));
  journal.meta = {{"end", {{"interrupted", "yes"}}}};
  EXPECT_THAT(markdown_of(journal), HasSubstr("**Interrupted**"));
  EXPECT_THAT(markdown_of(fake::ended_journal()), HasSubstr("No kernel was checked."));
}

TEST(Markdown, StaysWithinItsLimitAndSaysWhatIsCut) {
  Journal journal = fake::ended_journal();
  // The sizes at which one section after the other begins to be cut, and far beyond.
  for (const int kernels : {5, 100, 2000}) {
    for (int i = static_cast<int>(journal.batches.size()); i < kernels; ++i) {
      const std::string id = fmt::format("exec:{} {}", i, std::string(static_cast<std::size_t>(i % 600), '`'));
      const Subject subject{"attention.oracle", id, "f32"};
      fake::add_batch(journal, subject, fake::tally_of(3, 2));
      fake::add_finding(journal, subject, std::string(static_cast<std::size_t>(i % 5000), '|'), i);
      journal.kernels.push_back({fmt::format("pytorch:{}", i), "", std::string(3000, 'y')});
      journal.meta.push_back({"note", {{"kernel", id}, {"text", std::string(3000, 'z')}}});
    }
    const Comparison changes{.differences = std::vector<Difference>(static_cast<std::size_t>(kernels),
                                                                    {Direction::worse, "errors", std::string(900, '`'),
                                                                     "f32", "p", std::string(900, 'w')})};
    const Summary summary = summarise(journal, "run");
    ASSERT_LE(to_markdown(summary, journal, "run", conclude(summary, {.changes = changes})).size(), markdown_limit);
    const std::string text = markdown_of(journal);
    ASSERT_LE(text.size(), markdown_limit);
    const std::size_t rows = count_of(text, "\n| `"), findings = count_of(text, "❌ `exec") + count_of(text, "❌ ``");
    EXPECT_GT(rows, 4U);
    std::map<std::string, std::size_t> cut;
    const std::regex line("_Cut here: ([0-9]+) of ([0-9]+) ([a-z]+); the report has them all\\._\n");
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
      cut[(*at)[3]] = std::stoul((*at)[1]);
    EXPECT_EQ(rows + cut["rows"], static_cast<std::size_t>(kernels));
    EXPECT_EQ(cut.contains("notes"), kernels >= 100);
    if (kernels == 2000) {
      EXPECT_GT(cut["findings"], 1000U);
      EXPECT_GT(findings, 10U);
      EXPECT_GT(text.size(), markdown_limit / 2) << "as much as there is room for";
    }
  }
}

TEST(Comment, HasNoMoreLinesThanSomebodyReads) {
  const auto lines_of = [](const std::string& text) { return count_of(text, "\n"); };
  Journal journal = fake::mixed_journal();
  const auto comment = [&](const Comparison& changes) {
    const Summary summary = summarise(journal, "run");
    return to_comment(summary, journal, "run", conclude(summary, {.changes = changes}));
  };
  const Difference worse{Direction::worse, "errors", "k", "f32", "attention.oracle", "errors grew"};
  const std::string few = comment({.differences = {worse}, .subjects = 7, .baseline = "base.json"});
  EXPECT_THAT(few, StartsWith("## ❌ Attest: "));
  EXPECT_THAT(few, HasSubstr("Against `base.json`: 1 worse, 0 better"));
  EXPECT_THAT(few, HasSubstr("`builtin:bad` | `f32`"));
  EXPECT_LE(lines_of(few), comment_lines);
  for (int i = 0; i < 200; ++i) {
    const Subject subject{"attention.oracle", fmt::format("exec:{}", i), "f32"};
    fake::add_batch(journal, subject, fake::tally_of(3, 2));
    fake::add_finding(journal, subject, "far", i);
    journal.meta.push_back(record_of(Cause{.kernel = subject.kernel,
                                           .dtypes = {"f32"},
                                           .properties = {"attention.oracle"},
                                           .misreadings = {"the scale were 1"},
                                           .right = {"N=64"},
                                           .condition = "N > 64",
                                           .cases = 3,
                                           .example = subject,
                                           .example_k = i}));
  }
  const std::string many =
      comment({.differences = std::vector<Difference>(300, worse), .subjects = 7, .baseline = "b"});
  EXPECT_LE(lines_of(many), comment_lines) << many;
  EXPECT_THAT(many, HasSubstr("it computes as if the scale were 1"));
  EXPECT_THAT(many, HasSubstr("attest replay run"));
  EXPECT_THAT(many, HasSubstr("300 worse"));
  EXPECT_THAT(many, HasSubstr("_Cut here: "));
}

TEST(Markdown, SaysWhatChangedAgainstABaseline) {
  const Journal journal = fake::mixed_journal();
  Comparison changes{.differences = {{Direction::worse, "errors", "k|`x`", "f32", "attention.oracle", "errors <b>grew"},
                                     {Direction::better, "verdict", "k", "f16", "", "was violated and is held"}},
                     .subjects = 7,
                     .baseline = "base.json"};
  const Summary summary = summarise(journal, "run");
  const auto text = [&] { return to_markdown(summary, journal, "run", conclude(summary, {.changes = changes})); };
  EXPECT_THAT(text(),
              HasSubstr("\n### What changed\n\nAgainst `base.json`: 1 worse, 1 better, of 7 properties that both "
                        "runs have.\n\nThe noise between two runs of one kernel: "));
  EXPECT_THAT(text(), HasSubstr(".\n\n- ❌ worse: `attention.oracle` by `` k|`x` `` in `f32`: `errors <b>grew`\n"
                                "- ✅ better: `k` in `f16`: `was violated and is held`\n"));
  EXPECT_LT(text().find("### What changed"), text().find("### Kernels"));
  EXPECT_THAT(text(), testing::ContainsRegex("^## ❌ Attest: [a-z]+, and worse than the baseline\n"));
  changes.differences.resize(1);
  changes.differences.resize(3000, changes.differences.front());
  EXPECT_THAT(text(), testing::ContainsRegex("_Cut here: [0-9]+ of 3000 changes; the report has them all._"));
  EXPECT_LE(text().size(), markdown_limit);
  changes.differences.clear();
  EXPECT_THAT(text(), HasSubstr("runs have.\n\nNothing lies beyond the noise"));
  EXPECT_THAT(text(), Not(HasSubstr("worse than the baseline")));
  EXPECT_THAT(markdown_of(journal), Not(HasSubstr("What changed")));
}

TEST(Markdown, ShowsTheWorstKernelsWhereNotAllFit) {
  Journal journal = fake::ended_journal();
  for (int i = 0; i < 2000; ++i)
    fake::add_batch(journal, {"attention.oracle", fmt::format("builtin:{:04}", i), "f32"}, fake::tally_of(3, i / 1999));
  EXPECT_THAT(markdown_of(journal), HasSubstr("| `builtin:1999` | `f32` | ❌ violated"));
}

TEST(Markdown, TakesNothingFromAKernelForMarkdown) {
  const fake::Folder folder;
  if (shell(folder, "command -v cmark-gfm").status != 0) GTEST_SKIP() << "cmark-gfm is not here";
  const auto parsed = [&](const std::string& text) {
    std::ofstream(folder / "summary.md") << text;
    const ShellResult result = shell(folder, "cmark-gfm --unsafe -e table -e autolink -t xml summary.md");
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  };
  // Where a page without hostile names has none of these, one with them has none either.
  const char* const foreign[] = {"<html_block", "<html_inline", "<link", "<image", "<thematic_break", "<block_quote"};
  const auto nodes = [](const std::string& xml, const std::string& node) { return count_of(xml, node); };
  const std::string calm = parsed(markdown_of(fake::hostile_journal("calm"), "calm"));
  for (const std::string evil : {"<script>alert(1)</script>",
                                 "`",
                                 "``",
                                 "a`b",
                                 "x|y",
                                 "\\|",
                                 "\\",
                                 "\n\n# title\n\n",
                                 "\n```\n",
                                 "](http://evil)",
                                 "![x](http://evil)",
                                 "http://evil.example",
                                 "www.evil.example",
                                 "@everyone",
                                 "#1",
                                 "<!--",
                                 "***",
                                 "~~~",
                                 "&lt;",
                                 "\xff\xfe",
                                 "--- | ---",
                                 "   ",
                                 "'\n````\n<b>"}) {
    const std::string xml = parsed(markdown_of(fake::hostile_journal(evil), evil));
    for (const char* node : foreign) EXPECT_EQ(nodes(xml, node), 0U) << node << " of " << evil << "\n" << xml;
    for (const char* node : {"<heading", "<table_row", "<table_cell", "<code_block", "<paragraph", "<item", "<strong"})
      EXPECT_EQ(nodes(xml, node), nodes(calm, node)) << node << " of " << evil << "\n" << xml;
  }
}

TEST(SummaryMarkdown, OfProofsAloneSpeaksOfProofs) {
  Journal journal = fake::ended_journal();
  journal.proofs = {{"masked.zero-mask", "symbolic", "the core's templates", ""}, {"x", "*evil*", "y", "z"}};
  const std::string text = to_markdown(summarise(journal, ""), journal, "", conclude(summarise(journal, "")));
  EXPECT_EQ(
      text,
      "## Attest: proofs\n\n2 properties over the real numbers: ✅ 1 proved for small shapes, ➖ 1 of a kind that "
      "this version does not know. No kernel was run.\n");
}

}  // namespace
}  // namespace attest
