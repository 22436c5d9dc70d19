#include "reports/formats/sarif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "properties/catalogue/property.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

/// What the standard demands of every log (SARIF 2.1.0, sections 3.13 to 3.58): members that must be there, words that
/// must be of a list, indices that must be in range.
void expect_valid(const Json& log) {
  ASSERT_EQ(log.at("version"), "2.1.0");
  ASSERT_EQ(log.at("runs").size(), 1U);
  const Json& run = log["runs"][0];
  const Json& driver = run.at("tool").at("driver");
  EXPECT_FALSE(driver.at("name").get<std::string>().empty());
  std::set<std::string> ids;
  for (const Json& rule : driver.at("rules")) {
    EXPECT_TRUE(ids.insert(rule.at("id")).second) << "two rules of one id";
    for (const char* text : {"shortDescription", "fullDescription", "help"})
      EXPECT_NE(rule.value(text, Json{{"text", "it may be absent"}}).at("text"), "");
  }
  const std::set<std::string> levels{"none", "note", "warning", "error"};
  for (const Json& result : run.at("results")) {
    EXPECT_FALSE(result.at("message").at("text").get<std::string>().empty());
    EXPECT_TRUE(levels.contains(result.at("level")));
    // Section 3.27.10: of a kind other than fail there is no level.
    EXPECT_EQ(result.at("kind") == "fail", result["level"] != "none");
    EXPECT_EQ(driver["rules"].at(result.at("ruleIndex").get<std::size_t>()).at("id"), result.at("ruleId"));
    for (const Json& location : result.at("locations")) {
      const Json& artifact = location.at("physicalLocation").at("artifactLocation");
      const std::string uri = artifact.at("uri");
      EXPECT_EQ(uri.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/%"),
                std::string::npos)
          << uri;
      EXPECT_NE(uri.front(), '/') << "relative to the run";
      EXPECT_GE(location["physicalLocation"].at("region").at("startLine"), 1);
      // What is not of the run is of the repository, and what it was made of stands beside it.
      EXPECT_EQ(artifact.contains("uriBaseId"),
                run.contains("originalUriBaseIds") && !result.contains("relatedLocations"));
      EXPECT_EQ(artifact.value("uriBaseId", "RUN"), "RUN");
    }
    for (const Json& one : result.value("suppressions", Json::array())) EXPECT_EQ(one.at("kind"), "external");
  }
  for (const Json& invocation : run.at("invocations")) {
    EXPECT_TRUE(invocation.at("executionSuccessful").is_boolean());
    for (const Json& one : invocation.value("toolExecutionNotifications", Json::array())) {
      EXPECT_TRUE(levels.contains(one.at("level")));
      EXPECT_FALSE(one.at("message").at("text").get<std::string>().empty());
    }
  }
  if (run.contains("originalUriBaseIds")) {
    EXPECT_THAT(run["originalUriBaseIds"]["RUN"]["uri"].get<std::string>(), StartsWith("file:///"));
    EXPECT_THAT(run["originalUriBaseIds"]["RUN"]["uri"].get<std::string>(), EndsWith("/"));
  }
}

Json sarif_of(const Journal& journal, const std::string& folder = "my run", Expectations expectations = {}) {
  const Summary summary = summarise(journal, "");
  Json log = Json::parse(to_sarif(summary, journal, folder, conclude(summary, std::move(expectations))));
  expect_valid(log);
  return log["runs"][0];
}

TEST(Sarif, HasAResultForEachFindingAndARuleForEachProperty) {
  const Json run = sarif_of(fake::mixed_journal());
  const Json& rules = run["tool"]["driver"]["rules"];
  ASSERT_EQ(rules.size(), 4U) << "a property of two kernels is one rule";
  for (const Json& rule : rules) {
    const auto properties = properties_matching(rule["id"].get<std::string>());
    ASSERT_EQ(properties.size(), 1U);
    EXPECT_THAT(rule["help"]["text"].get<std::string>(), StartsWith(std::string(properties[0]->statement)));
    EXPECT_THAT(rule["help"]["text"].get<std::string>(), HasSubstr(std::string(properties[0]->floating_point)));
  }
  const Json& results = run["results"];
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0]["ruleId"], "attention.oracle");
  EXPECT_EQ(results[0]["level"], "error");
  EXPECT_EQ(results[0]["message"]["text"],
            "builtin:bad violates attention.oracle in f32: out[0] = 2; accepted is [0, 1]\n"
            "replay: attest replay 'my run/cases/k7.safetensors'");
  const Json& where = results[0]["locations"][0]["physicalLocation"]["artifactLocation"];
  EXPECT_EQ(where["uri"], "cases/k7.safetensors");
  EXPECT_THAT(run["originalUriBaseIds"]["RUN"]["uri"].get<std::string>(), EndsWith("/my%20run/"));
  EXPECT_EQ(results[1]["kind"], "open");
  EXPECT_EQ(results[1]["level"], "none");
  EXPECT_NE(results[0]["partialFingerprints"], results[1]["partialFingerprints"]);
  const Json& invocation = run["invocations"][0];
  EXPECT_EQ(invocation["executionSuccessful"], true);
  EXPECT_EQ(invocation["startTimeUtc"], "2026-01-31T01:02:03Z");
  EXPECT_EQ(invocation["endTimeUtc"], "2026-01-31T01:02:05Z");
  EXPECT_EQ(invocation["toolExecutionNotifications"][0]["message"]["text"], "pytorch:* did not start: no torch");
}

Journal journal_with_causes(const std::vector<Cause>& causes) {
  Journal journal = fake::mixed_journal();
  for (const Cause& cause : causes) journal.meta.push_back(record_of(cause));
  return journal;
}

std::string print_of(const Json& result) {
  return result["partialFingerprints"]["attestCause/v1"].get<std::string>();
}

TEST(Sarif, HasAnAlertForEachCauseKnownByWhatItIs) {
  const Cause read{.kernel = "builtin:bad",
                   .dtypes = {"f32"},
                   .properties = {"attention.oracle"},
                   .misreadings = {"as if the scale were 1"},
                   .example = {"attention.oracle", "builtin:bad", "f32"},
                   .example_k = 7};
  Cause met = read, unknown = read;
  Cause again = read;
  met.misreadings = {}, met.condition = "H > KV > 1";
  again.condition = "M > 1";
  unknown.misreadings = {};
  const Json results = sarif_of(journal_with_causes({read, met, unknown, again}))["results"];
  std::vector<std::string> prints;
  for (const Json& result : results)
    if (result["partialFingerprints"].contains("attestCause/v1")) prints.push_back(print_of(result));
  EXPECT_EQ(prints, (std::vector<std::string>{"builtin:bad/as if the scale were 1", "builtin:bad/bound",
                                              "builtin:bad/bound/2", "builtin:bad/as if the scale were 1/2"}))
      << "and no condition that was found among what was drawn";
  // Where more is found in another run, these are the same.
  EXPECT_EQ(print_of(sarif_of(journal_with_causes({met, read}))["results"].back()), prints[0]);
}

TEST(Sarif, PutsAlertsWhereTheKernelsSourceIs) {
  const Cause cause{.kernel = "builtin:bad",
                    .dtypes = {"f32"},
                    .properties = {"attention.oracle"},
                    .example = {"attention.oracle", "builtin:bad", "f32"},
                    .example_k = 7};
  Journal journal = journal_with_causes({cause});
  for (MetaRecord& meta : journal.meta)
    if (meta.event == "begin") meta.facts[source_fact] = "src/my flash.cu:42";
  const Json result = sarif_of(journal)["results"].back();
  const Json& at = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(at["artifactLocation"], (Json{{"uri", "src/my%20flash.cu"}})) << "relative to the repository";
  EXPECT_EQ(at["region"]["startLine"], 42);
  EXPECT_EQ(result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"], "cases/k7.safetensors");
  // What the manifest says counts where the run was told nothing, and is somebody else's input.
  const auto place = [&](const std::string& manifest, const std::string& told) {
    Journal of = journal_with_causes({cause});
    of.kernels = {{.id = "builtin:bad", .manifest = manifest, .not_started = ""}};
    for (MetaRecord& meta : of.meta)
      if (meta.event == "begin" && !told.empty()) meta.facts[source_fact] = told;
    return sarif_of(of)["results"].back()["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
  };
  const std::string manifest = R"({"name": "mine", "dtypes": ["f32"], "source": "mine.cu:7"})";
  EXPECT_EQ(place(manifest, ""), "mine.cu");
  EXPECT_EQ(place(manifest, "other.cu"), "other.cu");
  EXPECT_EQ(place(R"({"name": "mine", "dtypes": ["f32"], "source": "../mine.cu"})", ""), "cases/k7.safetensors");
  EXPECT_EQ(place("{", ""), "cases/k7.safetensors");
}

TEST(Sarif, SuppressesWhatIsExpectedAndNothingElse) {
  const Journal journal = fake::mixed_journal();
  const auto suppressed = [&](const std::set<Subject>& expected) {
    const KnownComparison known{.source = "", .expected = expected, .problems = {}, .remarks = {}};
    return sarif_of(journal, "run", {.known = known})["results"][0].contains("suppressions");
  };
  EXPECT_FALSE(suppressed({}));
  EXPECT_FALSE(suppressed({{"attention.oracle", "builtin:bad", "bf16"}}));
  EXPECT_TRUE(suppressed({{"attention.oracle", "builtin:bad", "f32"}}));
}

/// All of a cause has to be expected, and what no cause tells is an alert by itself.
TEST(Sarif, SuppressesACauseOfWhichAllIsExpected) {
  const Subject oracle{"attention.oracle", "builtin:bad", "f32"}, finite{"attention.finite", "builtin:bad", "f32"};
  Cause cause{.kernel = oracle.kernel,
              .dtypes = {"f32"},
              .properties = {oracle.property},
              .misreadings = {},
              .example = oracle,
              .example_k = 7};
  const auto results = [&](const std::set<Subject>& expected) {
    Journal journal = journal_with_causes({cause});
    fake::add_batch(journal, finite, fake::tally_of(3, 2));
    fake::add_finding(journal, finite, "out[0] = nan", 9);
    const KnownComparison known{.source = "", .expected = expected, .problems = {}, .remarks = {}};
    std::vector<std::pair<std::string, bool>> all;
    const Json told = sarif_of(journal, "run", {.known = known})["results"];
    for (const Json& one : told)
      if (one["kind"] == "fail") all.emplace_back(one["ruleId"], one.contains("suppressions"));
    return all;
  };
  using All = std::vector<std::pair<std::string, bool>>;
  EXPECT_EQ(results({oracle}), (All{{finite.property, false}, {oracle.property, true}}));
  EXPECT_EQ(results({finite}), (All{{finite.property, true}, {oracle.property, false}}));
  cause.properties.push_back(finite.property);
  EXPECT_EQ(results({oracle}), (All{{oracle.property, false}})) << "half of it is new";
  EXPECT_EQ(results({oracle, finite}), (All{{oracle.property, true}}));
}

TEST(Sarif, HasAResultForEachProblemOfTheRun) {
  const std::vector<std::string> problems{"WORSE attention.oracle by mine in f32: errors grew", "WORSE \xff"};
  const KnownComparison known{.source = "", .expected = {}, .problems = problems, .remarks = {}};
  for (const std::string folder : {"run", ""}) {
    const Json run = sarif_of(fake::mixed_journal(), folder, {.known = known});
    ASSERT_EQ(run["results"].size(), 4U);
    const Json& result = run["results"][2];
    EXPECT_EQ(result["level"], "error");
    EXPECT_EQ(result["message"]["text"], problems[0]);
    EXPECT_EQ(result["partialFingerprints"]["attestProblem/v1"], "WORSE attention.oracle by mine in f32");
    EXPECT_EQ(run["tool"]["driver"]["rules"][result["ruleIndex"].get<std::size_t>()]["id"], result["ruleId"]);
    EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "summary.md");
  }
}

TEST(Sarif, SaysWhereARunIsNotWhole) {
  Journal journal = fake::mixed_journal();
  journal.meta.back().facts["interrupted"] = "yes";
  EXPECT_EQ(sarif_of(journal)["invocations"][0]["executionSuccessful"], false);
  const Json nothing = sarif_of(fake::ended_journal(), "");
  EXPECT_TRUE(nothing["results"].empty());
  EXPECT_FALSE(nothing.contains("originalUriBaseIds"));
  EXPECT_EQ(nothing["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"], "Nothing was checked.");
}

TEST(Sarif, IsValidWhateverAKernelSays) {
  for (const std::string& evil : {std::string("\"\\\n"), std::string("\xff\xfe"), std::string("\0\x01", 2),
                                  std::string("../%41 ?#[]@"), std::string("/etc/passwd")})
    EXPECT_EQ(sarif_of(fake::hostile_journal(evil), evil)["results"].size(), 1U) << evil;
}

TEST(UriOfPath, LeavesNothingToMisread) {
  EXPECT_EQ(uri_of_path("cases/a-b_c.d~e"), "cases/a-b_c.d~e");
  EXPECT_EQ(uri_of_path("a b%:?#\xC3\xA9"), "a%20b%25%3A%3F%23%C3%A9");
}

}  // namespace
}  // namespace attest
