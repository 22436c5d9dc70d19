#include "reports/conclusion/known.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/problem/case.h"
#include "core/test/refusal.h"
#include "reports/conclusion/conclusion.h"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string good =
    "# expected\n[[finding]]\nkernel = \"mine\"\ndtype = \"f32\"\nproperty = \"attention.oracle\"\n"
    "reason = \"the scale is rounded\"\ndate = 2026-01-31\n";

/// The one line that a file is refused with.
std::string refusal_of(const std::string& text) {
  return refusal([&] { return parse_known_findings(text, "known.toml"); });
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = good;
  return text.replace(text.find(from), from.size(), to);
}

TEST(KnownFindings, AreReadWithTheirLines) {
  const auto findings =
      parse_known_findings(good + "\n" + replaced("f32", "f64") + "class = \"bound\"\n", "known.toml");
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kernel, "mine");
  EXPECT_EQ(findings[0].dtype, "f32");
  EXPECT_EQ(findings[0].property, "attention.oracle");
  EXPECT_EQ(findings[0].reason, "the scale is rounded");
  EXPECT_EQ(findings[0].date, "2026-01-31");
  EXPECT_EQ(findings[0].kind, "");
  EXPECT_EQ(findings[0].line, 2U);
  EXPECT_EQ(findings[1].kind, "bound");
  EXPECT_EQ(findings[1].line, 10U);
  // A project without findings keeps its empty file.
  EXPECT_TRUE(parse_known_findings("", "known.toml").empty());
  EXPECT_TRUE(parse_known_findings("# none\n", "known.toml").empty());
}

TEST(KnownFindings, AreRefusedInOneLineWithTheNumberTheRuleAndTheRemedy) {
  const auto expect = [](const std::string& text, const std::string& line, const std::string& part) {
    const std::string said = refusal_of(text);
    EXPECT_TRUE(said.starts_with("known.toml, line " + line + ": ")) << said;
    EXPECT_THAT(said, Says(part));
  };
  expect(replaced("\"mine\"", "\"mine"), "3", "this is not TOML");
  expect(replaced("\"mine\"", ""), "3", "this is not TOML");
  expect(good + "dtype = \"f64\"\n", "8", "this is not TOML");
  expect(replaced("reason", "raeson"), "6", "unknown key \"raeson\"; did you mean \"reason\"?");
  expect(replaced("\"attention.oracle\"", "\"attention.orcale\""), "5", "did you mean \"attention.oracle\"?");
  expect(replaced("\"f32\"", "\"f31\""), "4", "unknown dtype \"f31\"; it must be f64, f32, f16 or bf16");
  expect(replaced("\"f32\"", "\"bool\""), "4", "unknown dtype");
  expect(replaced("\"f32\"", "32"), "4", "dtype must be a text");
  expect(replaced("\"mine\"", "\"\""), "3", "kernel must be a text that is not empty");
  expect(replaced("date = 2026-01-31", ""), "2", "the finding has no date; it needs kernel, dtype, property, reason");
  expect(replaced("2026-01-31", "\"2026-01-31\""), "7", "as date = 2026-01-31");
  expect(replaced("2026-01-31", "2026-01-31T10:00:00"), "7", "as date = 2026-01-31");
  expect(replaced("[[finding]]", "[finding]"), "2", "in two pairs of brackets");
  expect(replaced("[[finding]]", "[[findings]]"), "2", "did you mean \"finding\"?");
  expect("finding = [1]\n", "1", "must be a table");
  expect(good + good, "9", "attention.oracle by mine in f32 stands at line 2 already");
}

PropertySummary property_of(const std::string& name, Outcome verdict) {
  PropertySummary property;
  property.name = name;
  property.verdict = verdict;
  property.reason = "so it was";
  property.tally.held = 5;
  if (verdict == Outcome::violated) {
    FindingRecord finding;
    finding.verdict.outcome = Outcome::violated;
    finding.verdict.violation = Violation::bound;
    property.findings.push_back(finding);
  }
  return property;
}

Summary summary_of(Outcome oracle, Outcome repeatable) {
  Summary summary;
  KernelSummary kernel;
  kernel.id = "exec:python3 mine.py";
  kernel.name = "mine";
  kernel.dtype = "f32";
  kernel.properties = {property_of("attention.oracle", oracle), property_of("attention.repeatable", repeatable)};
  kernel.verdict = worse(oracle, repeatable);
  summary.verdict = kernel.verdict;
  summary.kernels.push_back(kernel);
  return summary;
}

KnownComparison compared(const std::string& text, const Summary& summary, bool complete = true) {
  return compare_with_known(parse_known_findings(text, "known.toml"), "known.toml", summary, complete);
}

TEST(KnownFindings, MakeWhatIsExpectedNoFailure) {
  for (const std::string& text : {good, replaced("mine", "exec:python3 mine.py"), good + "class = \"bound\"\n"}) {
    const Summary found = summary_of(Outcome::violated, Outcome::held);
    const KnownComparison result = compared(text, found);
    EXPECT_THAT(result.problems, IsEmpty());
    EXPECT_THAT(result.remarks, IsEmpty());
    EXPECT_EQ(result.expected.size(), 1U);
    EXPECT_EQ(conclude(found, {.known = result}).exit_status, 0);
  }
  // What else could not be decided still counts.
  const Summary undecided = summary_of(Outcome::violated, Outcome::inconclusive);
  EXPECT_EQ(conclude(undecided, {.known = compared(good, undecided)}).exit_status, 4);
}

/// A glob is of properties that one mistake may break: each may be violated, and one of them is.
TEST(KnownFindings, MayNameSeveralProperties) {
  const std::string several = replaced("attention.oracle", "attention.*");
  for (const Summary& found :
       {summary_of(Outcome::violated, Outcome::violated), summary_of(Outcome::held, Outcome::violated)}) {
    const KnownComparison result = compared(several, found);
    EXPECT_THAT(result.problems, IsEmpty());
    EXPECT_EQ(conclude(found, {.known = result}).exit_status, 0);
  }
  EXPECT_THAT(compared(several, summary_of(Outcome::held, Outcome::held)).problems,
              ElementsAre(Says("GONE known.toml, line 2: attention.* by mine in f32")));
  EXPECT_THAT(compared(several, summary_of(Outcome::held, Outcome::held), /*complete=*/false).problems, IsEmpty());
  EXPECT_THAT(compared(replaced("attention.oracle", "masked.*"), summary_of(Outcome::violated, Outcome::held)).problems,
              ElementsAre(Says("NEW attention.oracle")));
  EXPECT_THAT(refusal_of(replaced("attention.oracle", "atention.*")), Says("atention.*"));
}

TEST(KnownFindings, DoNotHideANewOne) {
  const Summary both = summary_of(Outcome::violated, Outcome::violated);
  const KnownComparison other = compared(good, both);
  EXPECT_THAT(other.problems, ElementsAre("NEW attention.repeatable by mine in f32: so it was"));
  EXPECT_EQ(conclude(both, {.known = other}).exit_status, 1);
  EXPECT_THAT(compared("", summary_of(Outcome::violated, Outcome::held)).problems,
              ElementsAre("NEW attention.oracle by mine in f32: so it was"));
  // Of another kind than the one that is known, by another kernel, in another dtype.
  EXPECT_THAT(compared(good + "class = \"died\"\n", summary_of(Outcome::violated, Outcome::held)).problems,
              ElementsAre(Says("NEW attention.oracle")));
  for (const std::string& text : {replaced("mine", "other"), replaced("f32", "f64")}) {
    const KnownComparison result = compared(text, summary_of(Outcome::violated, Outcome::held));
    EXPECT_THAT(result.problems, ElementsAre(Says("NEW attention.oracle")));
    EXPECT_THAT(result.remarks, ElementsAre(Says("known.toml, line 2: ")));
  }
}

TEST(KnownFindings, AreMissedWhenTheyAreGone) {
  for (const Outcome outcome : {Outcome::held, Outcome::inconclusive, Outcome::skipped}) {
    const KnownComparison result = compared(good, summary_of(outcome, Outcome::held));
    EXPECT_THAT(result.problems, ElementsAre(Says("GONE known.toml, line 2: attention.oracle by mine in f32")));
    EXPECT_THAT(result.problems[0], Says("since 2026-01-31 (the scale is rounded)", "remove the entry"));
  }
  // A part of a run may not have come to it.
  const KnownComparison part = compared(good, summary_of(Outcome::held, Outcome::held), /*complete=*/false);
  EXPECT_THAT(part.problems, IsEmpty());
  EXPECT_THAT(part.remarks, ElementsAre(Says("did not show")));
}

/// The kernel's version, and whether a finding of 1.13 is one of it.
TEST(KnownFindings, MayBeOfAVersionOfTheKernelAlone) {
  const std::string of_1_13 = replaced("dtype", "version = \"1.13\"\ndtype");
  EXPECT_EQ(parse_known_findings(of_1_13, "known.toml")[0].version, "1.13");
  const std::vector<std::pair<std::string, bool>> versions{
      {"1.13", true}, {"1.13.1", true},  {"1.13+cpu", true}, {"1.13-rc1", true}, {"1.130", false}, {"1.13a", false},
      {"1.1", false}, {"2.13.0", false}, {"", false},        {"11.13", false},   {"2.1.13", false}};
  for (const auto& [version, is_of] : versions) {
    Summary found = summary_of(Outcome::violated, Outcome::held);
    found.kernels[0].version = version;
    const KnownComparison result = compared(of_1_13, found);
    EXPECT_EQ(result.expected.size(), is_of ? 1U : 0U) << version;
    EXPECT_EQ(conclude(found, {.known = result}).exit_status, is_of ? 0 : 1) << version;
    // What is not violated in another version is not gone.
    found = summary_of(Outcome::held, Outcome::held);
    found.kernels[0].version = version;
    const KnownComparison held = compared(of_1_13, found);
    if (is_of) {
      EXPECT_THAT(held.problems, ElementsAre(Says("GONE known.toml, line 2: attention.oracle by mine in f32")))
          << version;
    } else {
      EXPECT_THAT(held.problems, IsEmpty()) << version;
      EXPECT_THAT(held.remarks, ElementsAre("known.toml, line 2: attention.oracle by mine 1.13 in f32 is not part of "
                                            "this run"));
    }
  }
  // Of each version there may be an entry, and one of whichever.
  EXPECT_EQ(parse_known_findings(of_1_13 + good + replaced("dtype", "version = \"2.13\"\ndtype"), "").size(), 3U);
  EXPECT_THAT(refusal_of(of_1_13 + of_1_13), Says("line 10: attention.oracle by mine 1.13 in f32 stands at line 2"));
  EXPECT_THAT(refusal_of(replaced("dtype", "version = \"\"\ndtype")),
              Says("known.toml, line 4: version must be a text that is not empty"));
  EXPECT_THAT(refusal_of(replaced("dtype", "version = 1.13\ndtype")), Says("line 4: version must be a text"));
  EXPECT_THAT(refusal_of(replaced("dtype", "vresion = \"1\"\ndtype")), Says("did you mean \"version\"?"));
}

}  // namespace
}  // namespace attest
