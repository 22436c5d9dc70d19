#include "reports/conclusion/conclusion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test/says.h"
#include "reports/formats/html.h"
#include "reports/formats/junit.h"
#include "reports/formats/sarif.h"
#include "reports/formats/summary_markdown.h"
#include "reports/formats/table.h"
#include "reports/page/print.h"
#include "reports/sections/sections.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

using Subjects = std::vector<std::pair<std::string, Tally>>;

Tally excused(std::int64_t cases) {
  Tally tally;
  for (std::int64_t k = 0; k < cases; ++k) tally.add(k, {.outcome = Outcome::excused, .reason = "overflows"});
  return tally;
}

/// Properties of the kernel k in f32.
Journal journal_of(const Subjects& subjects, bool interrupted = false) {
  Journal journal = fake::ended_journal();
  if (interrupted) journal.meta.back().facts["interrupted"] = "yes";
  for (const auto& [property, tally] : subjects) fake::add_batch(journal, {property, "k", "f32"}, tally);
  return journal;
}

Conclusion concluded(const Subjects& subjects, bool interrupted = false, Expectations expectations = {}) {
  return conclude(summarise(journal_of(subjects, interrupted), ""), std::move(expectations));
}

int status_of(const Tally& one, bool interrupted = false, bool inconclusive_held = false) {
  return concluded({{"p", one}}, interrupted, {.inconclusive_held = inconclusive_held}).exit_status;
}

TEST(Conclusion, GivesTheContractsExitStatus) {
  EXPECT_EQ(status_of(fake::tally_of(1)), 0);
  EXPECT_EQ(status_of(fake::tally_of(1, 1, 0, 1)), 1);
  EXPECT_EQ(status_of(fake::tally_of(1, 1, 0, 1), /*interrupted=*/true), 1);
  EXPECT_EQ(status_of(fake::tally_of(0, 0, 3)), 3);
  EXPECT_EQ(status_of({}), 3);
  EXPECT_EQ(concluded({}).exit_status, 3);
  EXPECT_EQ(status_of(fake::tally_of(1, 0, 0, 1)), 4);
  EXPECT_EQ(status_of(excused(3)), 4);
  EXPECT_EQ(status_of(fake::tally_of(1, 0, 0, 1), false, /*inconclusive_held=*/true), 0);
  EXPECT_EQ(status_of({}, false, /*inconclusive_held=*/true), 3) << "nothing was checked, whatever counts as held";
  EXPECT_EQ(status_of(fake::tally_of(1), /*interrupted=*/true), 130);
  EXPECT_EQ(status_of(fake::tally_of(1, 0, 0, 1), /*interrupted=*/true), 4);
  EXPECT_EQ(status_of({}, /*interrupted=*/true), 130);
  // One subject held, another not reached: interrupted is not inconclusive, but out of time is.
  const Subjects two{{"p", fake::tally_of(1)}, {"q", {}}};
  EXPECT_EQ(concluded(two, /*interrupted=*/true).exit_status, 130);
  EXPECT_EQ(concluded(two).exit_status, 4);
}

TEST(Conclusion, CountsEachVerdictByTheRules) {
  const Subjects subjects{
      {"held", fake::tally_of(3)},          {"known", fake::tally_of(3, 1)},           {"new", fake::tally_of(3, 1)},
      {"skipped", fake::tally_of(0, 0, 3)}, {"undecided", fake::tally_of(3, 0, 0, 1)}, {"unreached", {}}};
  const KnownComparison known{.source = "", .expected = {{"known", "k", "f32"}}, .problems = {}, .remarks = {}};
  const auto counted = [&](bool interrupted, bool inconclusive_held) {
    std::vector<Counted> all;
    const Conclusion conclusion =
        concluded(subjects, interrupted, {.inconclusive_held = inconclusive_held, .known = known});
    for (const auto& [subject, one] : conclusion.subjects) all.push_back(one);
    return all;
  };
  using enum Counted;
  EXPECT_THAT(counted(false, false), ElementsAre(held, expected, violated, skipped, undecided, undecided));
  EXPECT_THAT(counted(false, true), ElementsAre(held, expected, violated, skipped, held, held));
  EXPECT_THAT(counted(true, false), ElementsAre(held, expected, violated, skipped, undecided, unreached));
  EXPECT_THAT(counted(true, true), ElementsAre(held, expected, violated, skipped, held, unreached));
}

TEST(Conclusion, SaysWhyARunIsNotWhole) {
  const auto faults = [](const Journal& journal) {
    std::vector<std::string_view> types;
    for (const RunFault& fault : conclude(summarise(journal, "")).faults) types.push_back(fault.type);
    return types;
  };
  EXPECT_THAT(faults(journal_of({{"p", fake::tally_of(1)}})), IsEmpty());
  EXPECT_THAT(faults(journal_of({})), ElementsAre("nothing"));
  EXPECT_THAT(faults(journal_of({}, /*interrupted=*/true)), ElementsAre("interrupted"));
  Journal killed = journal_of({{"p", fake::tally_of(0, 0, 1)}});
  killed.meta.pop_back();
  EXPECT_THAT(faults(killed), ElementsAre("unfinished", "nothing"));
}

/// That the property or the kernel was asked for, and what it names.
void ask(Journal& journal, const std::string& option, const std::string& name, const std::set<std::string>& answers) {
  journal.meta.insert(journal.meta.begin() + 1, record_of(Asked{option, name, answers}));
}

TEST(Conclusion, NamesWhatWasAskedForAndJudgedInNoCase) {
  Journal journal = journal_of({{"p", fake::tally_of(3)}, {"q", fake::tally_of(0, 0, 3)}});
  const auto conclusion = [&](bool inconclusive_held = false) {
    return conclude(summarise(journal, ""), {.inconclusive_held = inconclusive_held});
  };
  ask(journal, "--property", "p", {"p"});
  ask(journal, "--property", "?", {"p", "q"});
  ask(journal, "--kernel", "k*", {"j", "k"});
  EXPECT_THAT(conclusion().passed_over, IsEmpty());
  EXPECT_EQ(conclusion().exit_status, 0);
  ask(journal, "--property", "q", {"q"});
  ask(journal, "--property", "other*", {"other-1", "other-2"});
  ask(journal, "--kernel", "j\x1b", {"j"});
  ask(journal, "--kernel", "p", {"p"});
  const auto lines = ElementsAre("--kernel \"p\": judged in no case, so that the run says nothing of it",
                                 "--kernel \"j\\x1b\": judged in no case, so that the run says nothing of it",
                                 "--property \"other*\": judged on no kernel, so that the run says nothing of it",
                                 "--property \"q\": judged on no kernel, so that the run says nothing of it");
  EXPECT_THAT(conclusion().passed_over, lines);
  EXPECT_THAT(conclusion().problems, lines);
  EXPECT_EQ(conclusion().exit_status, 4);
  EXPECT_EQ(conclusion().headline, "inconclusive");
  // It is said all the same.
  EXPECT_THAT(conclusion(/*inconclusive_held=*/true).passed_over, lines);
  EXPECT_THAT(conclusion(true).problems, IsEmpty());
  EXPECT_EQ(conclusion(true).exit_status, 0);
  EXPECT_EQ(conclusion(true).headline, "held");
  // Other shards may have judged it.
  const Journal whole = journal;
  for (BatchRecord& batch : journal.batches) batch.shard = {1, 3};
  EXPECT_THAT(conclusion().passed_over, IsEmpty());
  EXPECT_EQ(conclusion().exit_status, 0);
  // A violation is what is to be said, and so is that nothing was checked.
  journal = whole;
  fake::add_batch(journal, {"r", "k", "f32"}, fake::tally_of(1, 1));
  EXPECT_THAT(conclusion().passed_over, IsEmpty());
  EXPECT_EQ(conclusion().exit_status, 1);
  journal = whole;
  journal.batches.erase(journal.batches.begin());
  EXPECT_THAT(conclusion().passed_over, IsEmpty());
  EXPECT_EQ(conclusion().exit_status, 3);
}

TEST(Asked, IsReadAsItWasWrittenAndOnce) {
  const Asked asked{"--kernel", "builtin:*\n\"", {"builtin:a", "b\nc", ""}};
  EXPECT_EQ(asked_in({record_of(asked), {"begin", {{"option", "x"}}}, record_of(asked)}), std::vector<Asked>{asked});
}

Expectations with(bool inconclusive_held, int known, bool worse) {
  Expectations expectations{.inconclusive_held = inconclusive_held};
  if (known > 0)
    expectations.known =
        KnownComparison{.source = "known.toml", .expected = {}, .problems = {}, .remarks = {"k.toml, line 1: x"}};
  if (known == 1) expectations.known->expected.insert({"violated", "k", "f32"});
  if (known == 2) expectations.known->problems.emplace_back("GONE held by k in f32: …");
  expectations.changes = Comparison{.differences = {{Direction::better, "errors", "k", "f32", "held", "errors shrank"}},
                                    .subjects = 1,
                                    .baseline = "base"};
  if (worse)
    expectations.changes->differences.insert(expectations.changes->differences.begin(),
                                             {Direction::worse, "errors", "k", "f32", "held", "errors grew"});
  return expectations;
}

/// Every combination of what a run may hold and be held against.
TEST(Conclusion, IsTheSameInEveryFormat) {
  enum Bit { held, violated, skipped, undecided, unreached, all_excused, interrupted, counts_as_held, worse, asked };
  for (int which = 0; which < 1024; ++which) {
    for (int known = 0; known < 3; ++known) {
      const auto has = [&](Bit bit) { return (which >> bit) % 2 != 0; };
      Subjects subjects;
      if (has(held)) subjects.emplace_back("held", fake::tally_of(3));
      if (has(violated)) subjects.emplace_back("violated", fake::tally_of(3, 1));
      if (has(skipped)) subjects.emplace_back("skipped", fake::tally_of(0, 0, 3));
      if (has(undecided)) subjects.emplace_back("undecided", fake::tally_of(3, 0, 0, 1));
      if (has(unreached)) subjects.emplace_back("unreached", Tally());
      if (has(all_excused)) subjects.emplace_back("all-excused", excused(1));
      Journal journal = journal_of(subjects, has(interrupted));
      if (has(violated)) fake::add_finding(journal, {"violated", "k", "f32"}, "out[0] = 2");
      if (has(asked)) ask(journal, "--property", "skipped", {"skipped"});
      const Summary summary = summarise(journal, "");
      const Conclusion conclusion = conclude(summary, with(has(counts_as_held), known, has(worse)));
      const int status = conclusion.exit_status;
      SCOPED_TRACE(fmt::format("{:b} {}: {} {}", which, known, status, conclusion.headline));

      // The contract, written out once more.
      const bool checked = has(held) || has(violated) || has(undecided) || has(all_excused);
      const bool open = has(undecided) || has(all_excused) || (has(unreached) && !has(interrupted));
      const bool wrong = (has(violated) && known != 1) || known == 2 || has(worse);
      const int expected = wrong                                ? 1
                           : !checked                           ? (has(interrupted) ? 130 : 3)
                           : open && !has(counts_as_held)       ? 4
                           : has(interrupted)                   ? 130
                           : has(asked) && !has(counts_as_held) ? 4
                                                                : 0;
      EXPECT_EQ(status, expected);

      // No headline is better than the exit status.
      const bool bad = conclusion.sign == Outcome::violated || conclusion.sign == Outcome::inconclusive;
      if (status == 1) {
        EXPECT_EQ(conclusion.sign, Outcome::violated);
      }
      if (status == 4) {
        EXPECT_EQ(conclusion.sign, has(violated) ? Outcome::violated : Outcome::inconclusive);
      }
      EXPECT_TRUE(bad || status == 0 || status == 3 || status == 130);
      EXPECT_EQ(conclusion.headline.ends_with("worse than the baseline"), has(worse));

      // The formats have the headline,
      const std::string badge = fmt::format("<span class=\"badge {}\">", name_of(conclusion.sign));
      const std::string headline = html_of(headline_page({summary, journal, "run", conclusion}));
      EXPECT_THAT(headline, Says("<p class=\"headline\">" + badge, "</span> " + conclusion.headline + "</span> "));
      EXPECT_THAT(closing_line(conclusion, Ending::complete, 1), StartsWith(conclusion.headline + ": "));
      const std::string markdown = to_markdown(summary, journal, "run", conclusion);
      EXPECT_THAT(markdown.substr(0, markdown.find('\n')), testing::EndsWith(" Attest: " + conclusion.headline));
      // a failure or an error where the exit status is not 0, and nowhere else,
      const std::string xml = to_junit(summary, journal, "run", conclusion);
      const bool failed = xml.find("<failure ") != std::string::npos, error = xml.find("<error ") != std::string::npos;
      EXPECT_EQ(failed || error, status != 0) << xml;
      EXPECT_TRUE(failed || status != 1) << xml;
      // and the problems and faults, each once.
      const auto log = parsed_json(to_sarif(summary, journal, "run", conclusion));
      std::vector<std::string> problems;
      for (const auto& result : log["runs"][0]["results"]) {
        if (result["ruleId"] == "run")
          problems.push_back(result["message"]["text"]);
        else
          EXPECT_EQ(result.contains("suppressions"), known == 1);
      }
      EXPECT_EQ(problems, conclusion.problems);
      for (const std::string& problem : problems) EXPECT_THAT(xml, Says(xml_escaped(problem)));
      const auto& invocation = log["runs"][0]["invocations"][0];
      EXPECT_EQ(invocation.contains("toolExecutionNotifications"), !conclusion.faults.empty());
      EXPECT_EQ(xml.find("name=\"run\"><error") == std::string::npos &&
                    xml.find("name=\"run\">\n      <error") == std::string::npos,
                conclusion.faults.empty())
          << xml;
      EXPECT_EQ(status == 3, !conclusion.faults.empty() && conclusion.faults.back().type == "nothing" && !wrong);
    }
  }
}

TEST(Conclusion, IsTheTitleOfThePage) {
  const Journal journal = journal_of({{"held", fake::tally_of(3)}});
  const Summary summary = summarise(journal, "");
  const auto title = [&](int known, bool worse) {
    const std::string page = html_page(summary, journal, "", conclude(summary, with(false, known, worse)));
    const std::size_t begin = page.find("<title>") + 7;
    return page.substr(begin, page.find("</title>") - begin);
  };
  EXPECT_EQ(title(0, false), "Attest: held");
  EXPECT_EQ(title(0, true), "Attest: held, and worse than the baseline");
  EXPECT_EQ(title(2, false), "Attest: held, and a known violation is gone");
}

TEST(Conclusion, IsPrintedAtTheEndOfARun) {
  const Summary summary = summarise(journal_of({{"held", fake::tally_of(3)}}), "");
  const Conclusion both = conclude(summary, with(false, 2, true));
  EXPECT_THAT(expectations_text(both, false),
              StartsWith("WORSE held by k in f32: errors grew\nBETTER held by k in f32: errors shrank\n"
                         "baseline: 1 worse, 1 better, of 1 properties that both runs have (base)\nThe noise "));
  EXPECT_THAT(expectations_text(both, false),
              testing::EndsWith("\nGONE held by k in f32: …\nknown: 0 expected, 1 new or gone (known.toml)\n"));
  EXPECT_EQ(expectations_text(both, /*quiet=*/true), "WORSE held by k in f32: errors grew\nGONE held by k in f32: …\n");
  EXPECT_EQ(passed_over_text(both, false), "note: k.toml, line 1: x\n");
  EXPECT_EQ(passed_over_text(both, true), "");
  EXPECT_EQ(expectations_text(conclude(summary), false), "");
  Journal journal = journal_of({{"held", fake::tally_of(3)}});
  ask(journal, "--property", "q", {"q"});
  const Conclusion passed = conclude(summarise(journal, ""));
  EXPECT_EQ(passed_over_text(passed, true),
            "attest: --property \"q\": judged on no kernel, so that the run says nothing of it\n");
  EXPECT_THAT(closing_line(passed, Ending::out_of_time, 1), NeverSays("held"));
}

}  // namespace
}  // namespace attest
