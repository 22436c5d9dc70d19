// tolerances.toml, read by two parsers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "reports/results/tolerance.h"
#include "reports/test/fakes.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Three ordinary cases with an error of 2^-20, and one of huge values with an error of 2^90.
Tally measured(bool gaussian = true) {
  Tally tally;
  for (std::int64_t k = 0; k < 4; ++k) {
    ErrorSample sample;
    const double error = k < 3 ? 0x1p-20 : 0x1p90;
    sample.keys = 20, sample.elements = 10, sample.worst_error = error,
    sample.worst_utilisation = sample.worst_normal = 0.5;
    sample.atol.fill(error);
    Verdict verdict{.utilisation = 0.5};
    verdict.errors = std::make_shared<ErrorSample>(sample);
    tally.add(k, verdict,
              !gaussian ? ""
              : k < 3   ? "scores:gaussian values:gaussian scale:inverse-root"
                        : "values:huge");
  }
  return tally;
}

Journal journal_of(const std::vector<std::string>& kernels, const std::string& name, bool gaussian = true) {
  Journal journal = fake::ended_journal();
  for (const std::string& kernel : kernels) {
    fake::add_batch(journal, {"attention.oracle", kernel, "f32"}, measured(gaussian));
    journal.kernels.push_back({kernel, nlohmann::json{{"name", name}}.dump(), ""});
  }
  return journal;
}

std::string toml_of(const Journal& journal) {
  const Summary summary = summarise(journal, "");
  return tolerances_toml(tolerance_rows(summary, journal), summary);
}

/// As Python's tomllib reads it; inf as text, for JSON has none.
nlohmann::json by_python(const std::string& text) {
  const fake::Folder folder;
  std::ofstream(folder / "t.toml") << text;
  const ShellResult result = shell(folder,
                                   "/usr/bin/python3 -c 'import json, tomllib\n"
                                   "tables = tomllib.load(open(\"t.toml\", \"rb\"))\n"
                                   "for kernel in tables.values():\n"
                                   "  for dtype in kernel.values():\n"
                                   "    for name, number in dtype.items():\n"
                                   "      assert type(number) is float\n"
                                   "      dtype[name] = repr(number)\n"
                                   "print(json.dumps(tables))'");
  EXPECT_EQ(result.status, 0) << result.output << text;
  return result.status == 0 ? parsed_json(result.output) : nlohmann::json();
}

TEST(TolerancesToml, AreOfOrdinaryInputsAndNameWhereTheyComeFrom) {
  const std::string text = toml_of(journal_of({"exec:mine"}, "mine"));
  const toml::table tables = toml::parse(text);
  const auto atol = tables["mine"]["f32"]["atol"].value<double>();
  ASSERT_TRUE(atol.has_value()) << text;
  EXPECT_GE(*atol, 2 * 0x1p-20);
  EXPECT_LE(*atol, 2 * 0x1.2p-20);
  EXPECT_EQ(tables["mine"]["f32"]["rtol"].value<double>(), 0.0);
  EXPECT_THAT(text,
              HasSubstr("# 3 cases, 30 elements of ordinary inputs: worst error 9.54e-07, worst utilisation 0.5."));
  EXPECT_THAT(text, HasSubstr("# With every kind of inputs, huge ones too, 4 cases: atol = 1.3e+27, rtol = 0.0."));
  EXPECT_THAT(text, HasSubstr("--seed 1 --cases 1 --shard 0/1"));
  EXPECT_THAT(
      text,
      HasSubstr("# CAUTION: from 3 ordinary cases, 0 of more than 64 keys: too few to rely on; attest check --kernel "
                "exec:mine --dtype f32 --property attention.oracle --cases 4000 has more."));
  EXPECT_THAT(text, Not(HasSubstr("VIOLATED")));
  EXPECT_EQ(by_python(text)["mine"]["f32"]["rtol"], "0.0");
}

TEST(TolerancesToml, SayWhereTheKernelIsViolated) {
  Journal journal = journal_of({"exec:mine"}, "mine");
  fake::add_batch(journal, {"attention.finite", "exec:mine", "f32"}, fake::tally_of(0, 1));
  EXPECT_THAT(toml_of(journal), HasSubstr("# VIOLATED"));
  const toml::table tables = toml::parse(toml_of(journal));
  EXPECT_TRUE(tables["mine"]["f32"].is_table());
  EXPECT_FALSE(tables["mine"]["f32"]["atol"]) << "none to copy";
}

TEST(TolerancesToml, AreOfAllCasesWhereNoneIsOrdinary) {
  const toml::table tables = toml::parse(toml_of(journal_of({"exec:mine"}, "mine", /*gaussian=*/false)));
  EXPECT_GE(tables["mine"]["f32"]["atol"].value_or(0.0), 0x1p90);
}

TEST(TolerancesToml, AreNoneOfWhatACampaignBred) {
  Journal journal = journal_of({"exec:mine"}, "mine");
  journal.run->fuzz = true;
  const std::string text = toml_of(journal);
  EXPECT_THAT(text, HasSubstr("\n# None here: a campaign breeds its cases to be hard. attest check has some.\n"));
  EXPECT_THAT(text, Not(HasSubstr("atol = ")));
  EXPECT_THAT(text, Not(HasSubstr("They are twice"))) << "it is said of none";
  EXPECT_TRUE(toml::parse(text).empty());
}

TEST(TolerancesToml, SayThatThereAreNone) {
  Journal journal = fake::ended_journal();
  journal.kernels = {{"exec:mine", "{}", ""}};
  fake::add_batch(journal, {"attention.finite", "exec:mine", "f32"}, fake::tally_of(5));
  const std::string text = toml_of(journal);
  EXPECT_THAT(text, HasSubstr("\n# None here: no answer was held against the exact one.\n"));
  EXPECT_THAT(text, Not(HasSubstr("They are twice")));
  EXPECT_TRUE(toml::parse(text).empty());
  EXPECT_THAT(toml_of(journal_of({"exec:mine"}, "mine")), HasSubstr("\n# They are twice"));
}

TEST(TolerancesToml, NameTheFileOfTheWorstCase) {
  Journal journal = journal_of({"exec:mine"}, "mine", /*gaussian=*/false);
  journal.run->case_files = {"a", "b", "c", "my case.safetensors"};
  EXPECT_THAT(
      toml_of(journal),
      HasSubstr("check --kernel exec:mine --dtype f32 --property attention.oracle --case 'my case.safetensors'\n"));
}

TEST(TolerancesToml, AreReadWhateverAKernelIsCalled) {
  for (const std::string& name :
       {std::string("a.b"), std::string("\"]\n[x]\ny = 1"), std::string("\\u0000"), std::string("\x01\x7f"),
        std::string("a b"), std::string("é"), std::string("'"), std::string("# x")}) {
    const std::string text = toml_of(journal_of({"exec:" + name}, name));
    const toml::table tables = toml::parse(text);
    ASSERT_EQ(tables.size(), 1U) << text;
    EXPECT_TRUE(tables[name]["f32"]["atol"].is_floating_point()) << text;
    EXPECT_EQ(by_python(text).begin().key(), name);
  }
  EXPECT_EQ(toml::parse(toml_of(journal_of({"exec:a", "exec:b"}, "same"))).size(), 2U);
}

TEST(TolerancesToml, HaveInfinityWhereNothingWouldDo) {
  Journal journal = fake::ended_journal();
  ErrorSample sample;
  sample.keys = 1, sample.elements = 1;
  sample.atol.fill(std::numeric_limits<double>::infinity());
  Verdict verdict;
  verdict.errors = std::make_shared<ErrorSample>(sample);
  Tally tally;
  tally.add(0, verdict, "values:gaussian");
  fake::add_batch(journal, {"attention.oracle", "k", "f32"}, tally);
  EXPECT_EQ(by_python(toml_of(journal))["k"]["f32"]["atol"], "inf");
}

}  // namespace
}  // namespace attest
