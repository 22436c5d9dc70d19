#include "reports/formats/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "reports/test/fakes.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using ::testing::HasSubstr;

/// What a reader of JUnit XML makes of a file, by the parser of Python's library, as JSON; dies where it is not XML,
/// where a count is not that of the elements, or where an element or an attribute is none of the format's.
constexpr const char* reader = R"py(
import json, re, sys, xml.etree.ElementTree as tree
known = {'testsuites': {'name', 'tests', 'failures', 'errors', 'time'},
         'testsuite': {'name', 'tests', 'failures', 'errors', 'skipped', 'timestamp', 'hostname', 'time'},
         'properties': set(), 'property': {'name', 'value'}, 'testcase': {'classname', 'name', 'time'},
         'failure': {'message', 'type'}, 'error': {'message', 'type'}, 'skipped': {'message'}, 'system-out': set()}
inside = {'testsuites': {'testsuite'}, 'testsuite': {'properties', 'testcase'}, 'properties': {'property'},
          'testcase': {'failure', 'error', 'skipped', 'system-out'}}
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == 'testsuites'
for element in root.iter():
    assert set(element.attrib) <= known[element.tag], (element.tag, element.attrib)
    for child in element: assert child.tag in inside[element.tag], (element.tag, child.tag)
    # As Jenkins's and Surefire's schemas have it.
    assert re.fullmatch(r'[0-9]+[.][0-9]{3}', element.get('time', '0.000')), element.attrib
result = []
for suite in root:
    cases = suite.findall('testcase')
    for count, tag in (('failures', 'failure'), ('errors', 'error'), ('skipped', 'skipped')):
        assert int(suite.get(count)) == sum(len(case.findall(tag)) for case in cases), (suite.get('name'), count)
    assert int(suite.get('tests')) == len(cases)
    for case in cases:
        tags = [one.tag for one in case]
        assert len(tags) <= 2 and (len(tags) < 2 or tags[1] == 'system-out'), tags
        bad = case[0] if len(tags) and tags[0] != 'system-out' else None
        result.append({'suite': suite.get('name'), 'class': case.get('classname'), 'name': case.get('name'),
                       'times': [one.get('time', '') for one in (root, suite, case)],
                       'is': bad.tag if bad is not None else 'passed',
                       'type': bad.get('type', '') if bad is not None else '',
                       'message': bad.get('message') if bad is not None else '',
                       'body': (bad.text or '') if bad is not None else '',
                       'said': case.findtext('system-out', ''),
                       'properties': {one.get('name'): one.get('value') for one in suite.find('properties')}})
for count in ('tests', 'failures', 'errors'):
    assert int(root.get(count)) == sum(int(suite.get(count)) for suite in root), count
json.dump(result, sys.stdout)
)py";

nlohmann::json read(const std::string& xml) {
  const fake::Folder folder;
  std::ofstream(folder / "read.py") << reader;
  std::ofstream(folder / "junit.xml") << xml;
  const ShellResult result = shell(folder, "/usr/bin/python3 read.py junit.xml");
  EXPECT_EQ(result.status, 0) << result.output << xml;
  return result.status == 0 ? parsed_json(result.output) : nlohmann::json::array();
}

nlohmann::json junit_of(const Journal& journal, Expectations expectations = {}) {
  const Summary summary = summarise(journal, "");
  return read(to_junit(summary, journal, "run", conclude(summary, std::move(expectations))));
}

const nlohmann::json* test_named(const nlohmann::json& tests, const std::string& suite, const std::string& name) {
  for (const auto& test : tests)
    if (test["suite"] == suite && test["name"] == name) return &test;
  return nullptr;
}

TEST(JUnit, HasATestForEachPropertyOfEachKernelAndDtype) {
  const auto tests = junit_of(fake::mixed_journal());
  ASSERT_EQ(tests.size(), 7U);
  const auto& violated = *test_named(tests, "builtin:bad f32", "attention.oracle");
  EXPECT_EQ(violated["is"], "failure");
  EXPECT_EQ(violated["class"], "builtin:bad.f32");
  EXPECT_EQ(violated["type"], "bound");
  EXPECT_EQ(violated["message"], "violated in 2 of 5 judged cases: out[0] = 2; accepted is [0, 1]");
  EXPECT_THAT(violated["body"].get<std::string>(),
              HasSubstr("case 7 (bound, utilisation 3): out[0] = 2; accepted is [0, 1]\n"
                        "replay: attest replay run/cases/k7.safetensors\n"));
  EXPECT_EQ((*test_named(tests, "builtin:bad f32", "attention.finite"))["is"], "passed");
  const auto& skipped = *test_named(tests, "builtin:bad f32", "masked.row-shift");
  EXPECT_EQ(skipped["is"], "skipped");
  EXPECT_EQ(skipped["message"], "skipped: has N keys");
  const auto& undecided = *test_named(tests, "builtin:bad f32", "softmax.monotone");
  EXPECT_EQ(undecided["is"], "error");
  EXPECT_EQ(undecided["type"], "inconclusive");
  EXPECT_THAT(undecided["body"].get<std::string>(), HasSubstr("attest replay run/cases/k2.safetensors"));
  EXPECT_EQ((*test_named(tests, "builtin:good bf16", "attention.oracle"))["is"], "passed");
  EXPECT_EQ((*test_named(tests, "attest", "pytorch:*"))["message"], "did not start: no torch");
  EXPECT_EQ((*test_named(tests, "attest", "run"))["is"], "passed");
}

TEST(JUnit, SaysBesideEachVerdictHowFarTheOracleJudged) {
  Journal journal = fake::mixed_journal();
  for (BatchRecord& batch : journal.batches)
    if (batch.subject.property == "attention.oracle") batch.tally.reach = Reach{320, 8192, 256, 64, 8, 2, 1};
  const auto tests = junit_of(journal);
  const std::string reach = "M 320, N 8192, dk 256, 8 heads";
  const auto& violated = *test_named(tests, "builtin:bad f32", "attention.oracle");
  EXPECT_EQ(violated["is"], "failure");
  EXPECT_EQ(violated["said"], "judged against the exact answer up to " + reach);
  const auto& held = *test_named(tests, "builtin:good bf16", "attention.oracle");
  EXPECT_EQ(held["is"], "passed");
  EXPECT_EQ(held["said"], "judged against the exact answer up to " + reach);
  EXPECT_EQ(held["properties"]["reach"], reach);
  EXPECT_EQ((*test_named(tests, "builtin:bad f32", "attention.finite"))["said"], "");
  const auto laws = junit_of(fake::mixed_journal());
  EXPECT_FALSE((*test_named(laws, "builtin:bad f32", "attention.oracle"))["properties"].contains("reach"));
}

TEST(JUnit, HasAFailureOrAnErrorExactlyWhereTheExitStatusIsNotZero) {
  for (const bool interrupted : {false, true}) {
    for (const bool inconclusive_held : {false, true}) {
      for (int which = 0; which < 64; ++which) {
        Journal journal = fake::ended_journal();
        if (interrupted) journal.meta.back().facts["interrupted"] = "yes";
        const auto add = [&](int bit, const char* property, const Tally& tally) {
          if ((which >> bit) % 2 != 0) fake::add_batch(journal, {property, "k", "f32"}, tally);
        };
        add(0, "held", fake::tally_of(3));
        add(1, "violated", fake::tally_of(3, 1));
        add(2, "skipped", fake::tally_of(0, 0, 3));
        add(3, "undecided", fake::tally_of(3, 0, 0, 1));
        add(4, "unreached", Tally());
        Tally excused;
        excused.add(0, {.outcome = Outcome::excused, .reason = "overflows"});
        add(5, "excused", excused);
        const Summary summary = summarise(journal, "");
        const Conclusion conclusion = conclude(summary, {.inconclusive_held = inconclusive_held});
        const std::string xml = to_junit(summary, journal, "run", conclusion);
        const bool bad = xml.find("<failure ") != std::string::npos || xml.find("<error ") != std::string::npos;
        EXPECT_EQ(bad, conclusion.exit_status != 0) << which << interrupted << inconclusive_held << xml;
      }
    }
  }
}

TEST(JUnit, TakesExpectedViolationsForNoFailuresAndProblemsForFailures) {
  const auto tests = junit_of(fake::mixed_journal(),
                              {.known = KnownComparison{.source = "",
                                                        .expected = {{"attention.oracle", "builtin:bad", "f32"}},
                                                        .problems = {"GONE a & b"},
                                                        .remarks = {}}});
  const auto& known = *test_named(tests, "builtin:bad f32", "attention.oracle");
  EXPECT_EQ(known["is"], "skipped");
  EXPECT_THAT(known["message"].get<std::string>(), HasSubstr("as expected"));
  EXPECT_EQ((*test_named(tests, "attest", "GONE a & b"))["is"], "failure");
}

TEST(JUnit, IsNoSuccessWhereNothingWasCheckedOrTheRunIsNotWhole) {
  EXPECT_EQ(junit_of(fake::ended_journal())[0]["type"], "nothing");
  Journal killed = fake::mixed_journal();
  killed.meta.pop_back();
  EXPECT_EQ(junit_of(killed)[0]["type"], "unfinished");
}

TEST(JUnit, TellsKernelsOfOneNameApart) {
  Journal journal = fake::ended_journal();
  for (const char* id : {"./a.so", "./b.so"}) {
    fake::add_batch(journal, {"p", id, "f32"}, fake::tally_of(1));
    journal.kernels.push_back({id, R"({"name": "mine"})", ""});
  }
  const auto tests = junit_of(journal);
  EXPECT_NE(test_named(tests, "./a.so f32", "p"), nullptr);
  EXPECT_NE(test_named(tests, "./b.so f32", "p"), nullptr);
}

TEST(JUnit, HasTheTimeOfTheRunsWhereTheyAllSayIt) {
  Journal journal = fake::mixed_journal();
  EXPECT_EQ(junit_of(journal)[0]["times"], (std::vector<std::string>{"", "", ""})) << "an earlier version's";
  journal.meta.back().facts["seconds"] = "1234.5";
  const std::vector<std::string> once(3, "1234.500");
  const auto tests = junit_of(journal);
  EXPECT_EQ(tests[0]["times"], once);
  EXPECT_EQ((*test_named(tests, "builtin:good bf16", "attention.oracle"))["times"],
            (std::vector<std::string>{once[0], "", ""}))
      << "of a property alone it is not known";
  journal.meta.push_back({"begin", {}});
  EXPECT_EQ(junit_of(journal)[0]["times"][0], "") << "under way again, or killed";
  journal.meta.push_back({"end", {{"seconds", "0.25"}}});
  EXPECT_EQ(junit_of(journal)[0]["times"][0], "1234.750");
  for (const char* wrong : {"", "soon", "-1", "nan", "inf", "1 ", "1e300"}) {
    journal.meta.back().facts["seconds"] = wrong;
    EXPECT_EQ(junit_of(journal)[0]["times"][0], "") << wrong;
  }
  journal.meta.clear();
  EXPECT_EQ(junit_of(journal)[0]["times"][0], "");
}

TEST(JUnit, IsXmlWhateverAKernelSays) {
  for (const std::string& evil :
       {std::string("<b a=\"'\">&amp;]]>"), std::string("\x1b[2J\x01\x7f"), std::string("\0", 1),
        std::string("\xff\xfe"), std::string("\xEF\xBF\xBE\xEF\xBF\xBF"), std::string("\xED\xA0\x80"),
        std::string("<!--"), std::string("]]>"), std::string("tab\there\r\nand there"),
        std::string("\xF0\x9F\x98\x80 ok")}) {
    const auto tests = junit_of(fake::hostile_journal(evil));
    EXPECT_EQ(tests.size(), 4U) << evil;
  }
  const auto tests = junit_of(fake::hostile_journal("<a>\t\"&\x02"));
  ASSERT_EQ(tests.size(), 4U);
  EXPECT_EQ(tests.back()["name"], "p<a>\t\"&\uFFFD");
  EXPECT_EQ(tests.back()["body"].get<std::string>().find("\ncase 7 (bound, utilisation 3): <a>\t\"&\uFFFD\n"), 0U);
}

}  // namespace
}  // namespace attest
